//! Soft limits of cgroup v1.

use serde_json::Value;

use super::{check_failure, check_success, pageout, scenarios, text, with_scenario};

/// Two groups that read more than there is memory for; one of them has a soft limit.
const TWO: &str = r#"
[machine]
cpus = 2
memory = "64MiB"

[kernel]
memcg.cgroup_version = 1

[[memcg]]
path = "/small"

[[memcg]]
path = "/large"
memory.soft_limit_in_bytes = "16MiB"

[[file]]
name = "others"
size = "128MiB"

[[task]]
name = "small"
memcg = "/small"
cpu = 0

[[task.object]]
channel = "file"
size = "24MiB"
workload = { pattern = "sequential" }

[[task]]
name = "large"
memcg = "/large"
cpu = 1
start = "200ms"

[[task.object]]
channel = "file"
file = "others"
workload = { pattern = "sequential" }
"#;

/// A counter of a group at the end, as `/proc/vmstat` and `memory.stat` name it.
fn counter(result: &Value, path: &str, name: &str) -> i64 {
    let groups = result["memcgs"].as_array().unwrap();
    let group = groups.iter().find(|group| group["path"] == path).expect("it is there");
    group["counters"][name].as_i64().expect("it has that counter")
}

#[test]
fn a_group_above_its_soft_limit_gives_all_that_a_short_machine_takes() {
    let run = |scenario: &str| -> Value {
        let directory = with_scenario(scenario);
        serde_json::from_str(&check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"])))
            .unwrap()
    };
    let soft = run(TWO);
    // The walk of groups follows, and takes a page here and there.
    let taken = ["/small", "/large"].map(|path| counter(&soft, path, "pgsteal"));
    assert!(taken[0] * 100 < taken[1], "{taken:?}");
    assert_eq!(soft["memcgs"][1]["files"]["memory.soft_limit_in_bytes"], "16777216");
    let none = run(&TWO.replace("\"16MiB\"", "\"max\""));
    assert!(counter(&none, "/small", "pgsteal") > 1000, "without one both give");
}

#[test]
fn groups_of_cgroup_v2_have_no_soft_limit_in_their_results() {
    let directory = with_scenario(super::GOOD);
    let output = check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"]));
    assert!(!output.contains("soft_limit"), "{output}");
    let v1 = ["run", "scenario.toml", "--set", "kernel.memcg.cgroup_version=1"];
    let summary = check_success(&pageout(directory.path(), &v1));
    assert!(!summary.contains("soft_limit"), "no limit is no news: {summary}");
}

#[test]
fn reclaim_for_a_soft_limit_is_told_in_both_dialects_within_the_call_that_it_is_part_of() {
    let directory = with_scenario(TWO);
    let begins = "mm_vmscan_memcg_softlimit_reclaim_begin: order=0 ";
    for (profile, dialect, fields) in [
        ("classic@6.12", "modern", "gfp_flags=GFP_"),
        ("classic@2010", "2010", "may_writepage=1 gfp_flags=GFP_"),
        ("classic@2010-nodirect", "2010", "may_writepage=0 gfp_flags=GFP_"),
    ] {
        let begin = format!("{begins}{fields}");
        let profile = format!("kernel.profile={profile}");
        let arguments =
            ["run", "scenario.toml", "--set", &profile, "--trace", "trace.txt", "--trace-dialect", dialect];
        check_success(&pageout(directory.path(), &arguments));
        let trace = std::fs::read_to_string(directory.path().join("trace.txt")).unwrap();
        let count = |part: &str| trace.lines().filter(|line| line.contains(part)).count();
        assert!(count(&begin) > 0, "{begin}");
        assert_eq!(count("softlimit_reclaim_begin"), count("softlimit_reclaim_end"));
        assert!(count("softlimit_reclaim_end: nr_reclaimed=32") > 0);
        let report = check_success(&pageout(directory.path(), &["vmscan-report", "trace.txt"]));
        assert!(report.contains("soft"), "{report}");
    }
}

#[test]
fn a_page_that_went_for_a_soft_limit_says_so() {
    let directory = with_scenario(TWO);
    let story =
        check_success(&pageout(directory.path(), &["explain", "scenario.toml", "--page", "others:1000"]));
    let story = story.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(story.contains("for its soft limit") && story.contains("above it"), "{story}");
}

#[test]
fn a_soft_limit_without_cgroup_v1_or_of_no_size_is_refused_with_its_line() {
    let refused = |scenario: String, parts: &[&str]| {
        check_failure(&pageout(with_scenario(&scenario).path(), &["run", "scenario.toml"]), 2, parts);
    };
    let v2 = TWO.replace("cgroup_version = 1", "cgroup_version = 2");
    refused(v2, &["file of cgroup v1", "scenario.toml:14:", "kernel.memcg.cgroup_version = 1"]);
    refused(TWO.replace("\"16MiB\"", "\"much\""), &["scenario.toml:14:", "memory.soft_limit_in_bytes"]);
    let misspelt = TWO.replace("memory.soft_limit_in_bytes", "memory.soft_limit");
    refused(misspelt, &["scenario.toml:14:", "did you mean `memory.soft_limit_in_bytes`?"]);
    let file = "/sys/fs/cgroup/large/memory.soft_limit_in_bytes";
    let event = |value: &str| format!("{TWO}\n[[event]]\nat = \"1s\"\nwrite = \"{file}\"\nvalue = {value}\n");
    refused(
        event("\"16MiB\"").replace("version = 1", "version = 2").replacen("memory.soft", "#", 1),
        &["file of cgroup v1", "scenario.toml:4"],
    );
    let read = format!("{TWO}\n[[event]]\nat = \"100ms\"\nread = \"{file}\"\n");
    for (limit, shown) in [("\"16MiB\"", "16777216"), ("\"max\"", "9223372036854771712")] {
        let directory = with_scenario(&read.replace("\"16MiB\"", limit));
        let output = text(&pageout(directory.path(), &["run", "scenario.toml", "--json"]).stdout);
        assert!(output.contains(shown), "{output}");
    }
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn the_shipped_scenario_shows_what_soft_limits_are_for() {
    let output = pageout(&scenarios(), &["compare", "soft-limits.toml", "--json"]);
    let result: Value = serde_json::from_str(&check_success(&output)).unwrap();
    let expectations = result["expectations"].as_array().unwrap();
    assert_eq!(expectations.len(), 3);
    for expectation in expectations {
        assert_eq!(expectation["is_true"], true, "{expectation}");
    }
}
