//! Requests for blocks of pages: pools of huge pages, and the thread that makes blocks in advance.

use super::{check_failure, check_success, pageout, run_with, scenarios, text};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

#[test]
fn a_busy_machine_gives_its_page_cache_as_huge_pages_and_kills_nobody() {
    let output = pageout(&scenarios(), &["compare", "huge-pages-under-load.toml", "--json"]);
    check_success(&output);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expectations = result["expectations"].as_array().unwrap();
    assert_eq!(expectations.len(), 4);
    assert!(expectations.iter().all(|expectation| expectation["is_true"] == true), "{expectations:?}");
}

#[test]
fn anonymous_memory_comes_2_mib_at_a_time_where_it_may_and_is_swapped_out_page_by_page() {
    let output = pageout(&scenarios(), &["compare", "huge-pages-anonymous.toml", "--json"]);
    check_success(&output);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expectations = result["expectations"].as_array().unwrap();
    assert_eq!(expectations.len(), 5);
    assert!(expectations.iter().all(|expectation| expectation["is_true"] == true), "{expectations:?}");
}

#[test]
fn kernel_files_say_how_much_is_of_huge_pages() {
    let events = "[kernel]\ntransparent_hugepage = \"always\"\n\n\
         [[event]]\nat = \"1s\"\nread = \"/proc/meminfo\"\n\n\
         [[task]]\nname = \"heap\"\n\n\
         [[task.object]]\nchannel = \"anonymous\"\nsize = \"6MiB\"\n\
         workload = { pattern = \"uniform\", ops = 100_000_000, write_ratio = 1.0 }\n\n[[memcg]]";
    let output = run_with("[[memcg]]", events, &["--json"]);
    check_success(&output);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let meminfo = result["reads"][0]["text"].as_str().unwrap();
    assert!(
        meminfo.lines().any(|line| line.split_whitespace().eq(["AnonHugePages:", "6144", "kB"])),
        "{meminfo}"
    );
}

#[test]
fn huge_pages_that_cannot_be_are_refused() {
    let output = run_with("[[memcg]]", "[kernel]\ntransparent_hugepage = true\n\n[[memcg]]", &[]);
    check_failure(&output, 2, &["transparent_hugepage", "never", "madvise", "always", "scenario.toml:"]);
    let output = run_with("channel = \"file\"", "channel = \"file\"\nhugepage = true", &[]);
    check_failure(
        &output,
        2,
        &["hugepage = true", "only a mapping has a hint about huge pages", "scenario.toml:"],
    );
    let both = "[kernel]\ntransparent_hugepage = \"madvise\"\n\n[[memcg]]";
    let output = run_with("[[memcg]]", both, &["--set", "machine.page_stands_for=4"]);
    check_failure(&output, 2, &["a page must stand for exactly one", "machine.page_stands_for"]);
}

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Memory that is first used after the file was written comes in huge pages, and the file shows what holds.
#[test]
fn who_has_huge_pages_changes_while_the_machine_runs() {
    let events = format!(
        "[[event]]\nat = \"1us\"\nread = \"{ENABLED}\"\n\n\
         [[event]]\nat = \"2us\"\nwrite = \"{ENABLED}\"\nvalue = \"always\"\n\n\
         [[event]]\nat = \"2s\"\nread = \"{ENABLED}\"\n\n\
         [[event]]\nat = \"2s\"\nread = \"/proc/meminfo\"\n\n\
         [[task]]\nname = \"heap\"\nstart = \"1s\"\n\n\
         [[task.object]]\nchannel = \"anonymous\"\nsize = \"6MiB\"\n\
         workload = {{ pattern = \"uniform\", ops = 100_000_000, write_ratio = 1.0 }}\n\n[[memcg]]"
    );
    let output = run_with("[[memcg]]", &events, &["--json"]);
    check_success(&output);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let read = |at: usize| result["reads"][at]["text"].as_str().unwrap();
    assert_eq!([read(0), read(1)], ["always madvise [never]\n", "[always] madvise never\n"]);
    let huge = |line: &str| line.split_whitespace().eq(["AnonHugePages:", "6144", "kB"]);
    assert!(read(2).lines().any(huge), "{}", read(2));
}

#[test]
fn a_word_that_enabled_or_defrag_does_not_take_is_refused() {
    let write = |file: &str, value: &str| {
        format!(
            "[[event]]\nat = \"1ms\"\nwrite = \"/sys/kernel/mm/transparent_hugepage/{file}\"\nvalue = \"{value}\"\n\n[[memcg]]"
        )
    };
    let output = run_with("[[memcg]]", &write("enabled", "sometimes"), &[]);
    check_failure(&output, 2, &["`sometimes` is none of the allowed values", "scenario.toml:"]);
    let output = run_with("[[memcg]]", &write("defrag", "sometimes"), &[]);
    check_failure(
        &output,
        2,
        &["`sometimes` is none of the allowed values", "defer+madvise", "scenario.toml:"],
    );
    let output = run_with("[[memcg]]", &write("hugepages-64kB/enabled", "sometimes"), &[]);
    check_failure(&output, 2, &["`sometimes` is none of the allowed values", "inherit", "scenario.toml:"]);
    let output = run_with("[[memcg]]", &write("hugepages-64kB/enabled", "inherit"), &[]);
    check_success(&output);
    let output = run_with("[[memcg]]", &write("khugepaged/max_ptes_none", "512"), &[]);
    check_failure(&output, 2, &["511", "scenario.toml:"]);
    let output = run_with("[[memcg]]", &write("hugepages-64kB/stats/swpout", "0"), &[]);
    check_failure(&output, 2, &["hugepages-64kB/stats/swpout can't be written"]);
    let output = run_with("[[memcg]]", &write("khugepaged", "always"), &[]);
    check_failure(&output, 2, &["`khugepaged`", "known: enabled"]);
    let output = run_with("[[memcg]]", &write("enabled", "always"), &["--set", "machine.page_stands_for=4"]);
    check_failure(&output, 2, &["a page must stand for exactly one", "machine.page_stands_for"]);
}

#[test]
fn a_pool_is_read_as_it_was_written_as_far_as_there_is_memory() {
    let events = format!(
        "[[event]]\nat = \"1us\"\nwrite = \"{POOL}\"\nvalue = 3\n\n\
         [[event]]\nat = \"1ms\"\nread = \"{POOL}\"\n\n[[memcg]]"
    );
    let output = run_with("[[memcg]]", &events, &["--json"]);
    check_success(&output);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["reads"][0]["text"], "3\n");
    let threads: Vec<&str> =
        result["threads"].as_array().unwrap().iter().map(|thread| thread["name"].as_str().unwrap()).collect();
    assert!(threads.contains(&"kcompactd0"), "{threads:?}");
}

#[test]
fn a_pool_that_is_none_or_a_size_that_is_no_number_is_refused() {
    let write = |path: &str, value: &str| {
        format!("[[event]]\nat = \"1ms\"\nwrite = \"{path}\"\nvalue = {value}\n\n[[memcg]]")
    };
    let output = run_with("[[memcg]]", &write(POOL, "-1"), &[]);
    check_failure(&output, 2, &["`value`", "scenario.toml:"]);
    let output = run_with("[[memcg]]", &write(POOL, "\"many\""), &[]);
    check_failure(&output, 2, &["`value`"]);
    let path = "/sys/kernel/mm/hugepages/hugepages-2000kB/nr_hugepages";
    let output = run_with("[[memcg]]", &write(path, "1"), &[]);
    check_failure(
        &output,
        2,
        &["there is no pool of huge pages", "did you mean `hugepages-2048kB/nr_hugepages`?"],
    );
}

#[test]
fn the_time_of_kcompactd_is_told() {
    let arguments = ["run", "huge-pages-under-load.toml", "--variant", "heap"];
    let output = pageout(&scenarios(), &arguments);
    check_success(&output);
    let summary = text(&output.stdout);
    assert!(summary.contains("kcompactd0 "), "{summary}");
}
