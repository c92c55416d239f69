//! Reclaim of a near node before a far one is used: `vm.zone_reclaim_mode`.

use serde_json::Value;

use super::{check_failure, check_success, pageout, scenarios, text, with_scenario};

/// A reader on one of two sockets, whose file is larger than that socket.
const TWO_SOCKETS: &str = r#"
[machine]
cpus = 2

[[machine.node]]
memory = "32MiB"
cpus = 1

[[machine.node]]
memory = "32MiB"
cpus = 1

[sysctl]
vm.zone_reclaim_mode = 1

[[file]]
name = "data"
size = "48MiB"

[[task]]
name = "reader"
cpu = 0

[[task.object]]
channel = "file"
file = "data"
workload = { pattern = "sequential" }
"#;

#[test]
fn node_reclaim_keeps_a_reader_on_its_node_and_is_counted_and_told() {
    let directory = with_scenario(TWO_SOCKETS);
    let run = |more: &[&str]| -> (Value, String) {
        let arguments = ["run", "scenario.toml", "--json", "--trace", "trace.txt"];
        let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
        let result = serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
        (result, std::fs::read_to_string(directory.path().join("trace.txt")).unwrap())
    };
    let calls = |result: &Value| result["vmstat"]["zone_reclaim_success"].as_u64().unwrap() as usize;
    for dialect in ["modern", "2010"] {
        let (result, trace) = run(&["--trace-dialect", dialect]);
        let count = |part: &str| trace.lines().filter(|line| line.contains(part)).count();
        assert!(calls(&result) > 50, "{}", calls(&result));
        let begins = count("mm_vmscan_node_reclaim_begin: nid=0 order=0 gfp_flags=GFP_");
        assert_eq!([begins, count("mm_vmscan_node_reclaim_end: nr_reclaimed=")], [calls(&result); 2]);
        assert_eq!(count("mm_vmscan_direct_reclaim_begin"), 0);
        let report = check_success(&pageout(directory.path(), &["vmscan-report", "trace.txt"]));
        assert!(report.contains("node"), "{report}");
    }
    let (off, trace) = run(&["--set", "sysctl.vm.zone_reclaim_mode=0"]);
    assert_eq!(calls(&off), 0);
    assert!(!trace.contains("node_reclaim"));
}

#[test]
fn a_page_that_went_for_a_near_node_says_so() {
    let directory = with_scenario(TWO_SOCKETS);
    let story =
        check_success(&pageout(directory.path(), &["explain", "scenario.toml", "--page", "data:100"]));
    let story = story.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(story.contains("of node reclaim") && story.contains("vm.zone_reclaim_mode = 1"), "{story}");
}

#[test]
fn a_mode_that_has_no_such_bits_is_refused_with_its_line_and_the_mode_can_change_while_it_runs() {
    let refused = |from: &str, to: &str, parts: &[&str]| {
        let scenario = TWO_SOCKETS.replace(from, to);
        check_failure(&pageout(with_scenario(&scenario).path(), &["run", "scenario.toml"]), 2, parts);
    };
    refused("mode = 1", "mode = 8", &["scenario.toml:14:", "0 to 7"]);
    refused(
        "zone_reclaim_mode",
        "zone_reclam_mode",
        &["scenario.toml:14:", "did you mean `vm.zone_reclaim_mode`?"],
    );
    refused("mode = 1", "mode = 1\nvm.min_unmapped_ratio = 101", &["scenario.toml:15:", "0 to 100"]);
    let event = |verb: &str| format!("{TWO_SOCKETS}\n[[event]]\nat = \"1ms\"\n{verb}\n");
    let file = "/proc/sys/vm/zone_reclaim_mode";
    let directory = with_scenario(&event(&format!("write = \"{file}\"\nvalue = 0")));
    let output = text(&pageout(directory.path(), &["run", "scenario.toml", "--json"]).stdout);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(result["vmstat"]["zone_reclaim_success"], 0, "it was turned off before memory was full");
}

#[test]
fn the_shipped_scenario_shows_the_complaint_about_node_reclaim() {
    let output = pageout(&scenarios(), &["compare", "node-reclaim.toml", "--json"]);
    let result: Value = serde_json::from_str(&check_success(&output)).unwrap();
    let expectations = result["expectations"].as_array().unwrap();
    assert_eq!(expectations.len(), 3);
    for expectation in expectations {
        assert_eq!(expectation["is_true"], true, "{expectation}");
    }
}
