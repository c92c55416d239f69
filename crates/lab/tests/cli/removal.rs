//! Removal of cgroups while a scenario runs.

use crate::results::json;
use crate::{GOOD, check_failure, check_success, pageout, text, with_scenario};

/// A job that ends, beside the reader of the good scenario. It takes some milliseconds, as pages come one by one.
const JOB: &str = r#"
[[device]]
name = "nvme"
read_ahead_kb = 0

[[memcg]]
path = "/batch/job"

[[task]]
name = "job"
memcg = "/batch/job"
lifetime = "task"

[[task.object]]
channel = "file"
size = "1MiB"
workload = { pattern = "sequential" }
"#;

fn events(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("\n[[event]]\n{line}\n")).collect()
}

#[test]
fn a_cgroup_that_is_removed_leaves_its_pages_to_whoever_reclaims_them() {
    let directory = with_scenario(&format!(
        "{GOOD}{JOB}{}",
        events(&[
            "at = \"1ms\"\nrmdir = \"/sys/fs/cgroup/batch/job\"",
            "at = \"40ms\"\nrmdir = \"/sys/fs/cgroup/batch\"",
            "at = \"40ms\"\nrmdir = \"/sys/fs/cgroup/batch/job\"",
            "at = \"41ms\"\nread = \"/sys/fs/cgroup/batch/cgroup.stat\"",
            "at = \"1ms\"\nevery = \"5ms\"\nread = \"/sys/fs/cgroup/batch/job/memory.current\"",
            "at = \"50ms\"\nwrite = \"/sys/fs/cgroup/batch/memory.reclaim\"\nvalue = \"2MiB\"",
            "at = \"60ms\"\nread = \"/sys/fs/cgroup/batch/cgroup.stat\"",
        ])
    ));
    let result = json(directory.path(), &["run", "scenario.toml"]);
    let error = |at: usize| result["writes"][at]["error"].as_str().unwrap_or("").to_string();
    assert!(error(0).contains("EBUSY") && error(0).contains("a process runs in it"), "{}", error(0));
    assert!(error(1).contains("remove its child groups first: job"), "{}", error(1));
    assert_eq!(result["writes"][2]["error"], serde_json::Value::Null);
    assert_eq!(result["writes"][3]["reclaimed_pages"], 256);
    let reads = result["reads"].as_array().unwrap();
    let is_of = |read: &&serde_json::Value, file: &str| read["path"].as_str().unwrap().ends_with(file);
    let stats = reads.iter().filter(|read| is_of(read, "cgroup.stat"));
    let stats: Vec<&str> = stats.map(|read| read["text"].as_str().unwrap()).collect();
    assert_eq!(
        stats,
        ["nr_descendants 0\nnr_dying_descendants 1\n", "nr_descendants 0\nnr_dying_descendants 0\n"]
    );
    let last = reads.iter().rev().find(|read| is_of(read, "memory.current"));
    assert!(last.unwrap()["at_ns"].as_u64().unwrap() < 40_000_001, "reading it again and again ends with it");
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("rmdir") && printed.contains("refused"), "{printed}");
    let memcgs = result["memcgs"].as_array().unwrap();
    let job = memcgs.iter().find(|memcg| memcg["path"] == "/batch/job").unwrap();
    assert_eq!(job["removed_at_ns"], 40_000_000, "its figures are those of then: {job}");
    assert!(job["files"]["memory.current"].as_str().unwrap().parse::<u64>().unwrap() >= 1 << 20, "{job}");
    assert!(job["counters"]["file"].as_u64().unwrap() >= 1 << 20, "{job}");
    assert!(printed.contains("memcg /batch/job (classic@6.12): removed at 40.0 ms, with 1"), "{printed}");
}

#[test]
fn a_removal_that_can_not_be_is_refused_before_the_run_with_what_would_be_right() {
    for (event, job, parts) in [
        (
            "at = \"1ms\"\nrmdir = \"/sys/fs/cgroup/batch/jab\"",
            JOB,
            &["there is no cgroup `/batch/jab`", "/batch/job"][..],
        ),
        (
            "at = \"1ms\"\nrmdir = \"/sys/fs/cgroup\"",
            JOB,
            &["`/sys/fs/cgroup` is not a directory of a cgroup"],
        ),
        ("at = \"1ms\"\nrmdir = \"/sys/fs/cgroup/batch/job/memory.max\"", JOB, &["there is no cgroup"]),
        (
            "at = \"1ms\"\nrmdir = \"/sys/fs/cgroup/web\"",
            JOB,
            &["task `reader` runs in it and never exits", "lifetime = \"task\""],
        ),
        (
            "at = \"1ms\"\nevery = \"1ms\"\nrmdir = \"/sys/fs/cgroup/batch/job\"",
            JOB,
            &["a cgroup can be removed only once"],
        ),
        (
            "at = \"1ms\"\nrmdir = \"/sys/fs/cgroup/batch/job\"\nread = \"/proc/vmstat\"",
            JOB,
            &["expected one per event"],
        ),
    ] {
        let directory = with_scenario(&format!("{GOOD}{job}\n[[event]]\n{event}\n"));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml"]), 2, parts);
    }
}

#[test]
fn limits_of_swap_are_keys_of_a_cgroup() {
    let limited = GOOD.replace("memory.max = \"1MiB\"", "memory.max = \"1MiB\"\nmemory.swap.high = \"2MiB\"");
    let directory = with_scenario(&limited);
    let output = pageout(directory.path(), &["run", "scenario.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_file_of_a_removed_cgroup_ends_the_run_with_why_it_is_gone() {
    let gone = events(&[
        "at = \"40ms\"\nrmdir = \"/sys/fs/cgroup/batch/job\"",
        "at = \"50ms\"\nread = \"/sys/fs/cgroup/batch/job/memory.stat\"",
    ]);
    let directory = with_scenario(&format!("{GOOD}{JOB}{gone}"));
    let output = pageout(directory.path(), &["run", "scenario.toml"]);
    let stderr = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("memory.stat") && stderr.contains("its cgroup was removed"), "{stderr}");
}

/// Each group has the lists of a kernel of its own, so that folios have to find their places on other lists.
#[test]
fn pages_of_a_removed_cgroup_are_its_parents_whatever_lists_both_have() {
    for (parent, job) in
        [("mglru@2026", "mglru@2026"), ("classic@6.12", "mglru@2026"), ("mglru@6.12", "classic@2026")]
    {
        let job = JOB.replace(
            "[[memcg]]\npath = \"/batch/job\"",
            &format!(
                "[[memcg]]\npath = \"/batch\"\npolicy = \"{parent}\"\n[[memcg]]\npath = \"/batch/job\"\npolicy = \"{job}\""
            ),
        );
        let directory = with_scenario(&format!(
            "{GOOD}{job}{}",
            events(&[
                "at = \"40ms\"\nrmdir = \"/sys/fs/cgroup/batch/job\"",
                "at = \"41ms\"\nread = \"/sys/fs/cgroup/batch/cgroup.stat\"",
                "at = \"41ms\"\nread = \"/sys/fs/cgroup/batch/memory.stat\"",
                "at = \"50ms\"\nwrite = \"/sys/fs/cgroup/batch/memory.reclaim\"\nvalue = \"1MiB\"",
                "at = \"60ms\"\nread = \"/sys/fs/cgroup/batch/memory.stat\"",
            ])
        ));
        let result = json(directory.path(), &["run", "scenario.toml"]);
        let read = |at: usize| result["reads"][at]["text"].as_str().unwrap();
        assert_eq!(read(0), "nr_descendants 0\nnr_dying_descendants 0\n");
        assert!(read(1).contains("\nfile 1048576\n"), "{}", read(1));
        assert!(read(2).contains("\nfile 0\n"), "{}", read(2));
    }
}
