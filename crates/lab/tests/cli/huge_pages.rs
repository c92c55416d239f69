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
