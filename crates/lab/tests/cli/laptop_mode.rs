//! `vm.laptop_mode`: what is dirty is written while the disk is awake.

use serde_json::Value;

use super::{check_failure, check_success, pageout, scenarios, text, with_scenario};

/// A page is written every tenth of a second, and one is read every ten seconds.
const LOG: &str = r#"
until = "60s"

[machine]
cpus = 3
memory = "64MiB"

[sysctl]
vm.laptop_mode = 2
vm.dirty_expire_centisecs = 60_000
vm.dirty_writeback_centisecs = 60_000

[[file]]
name = "log"
size = "8MiB"

[[task]]
name = "logger"
think_time = "100ms"

[[task.object]]
channel = "file"
file = "log"
workload = { pattern = "sequential", write_ratio = 1 }

[[task]]
name = "reader"
think_time = "10s"

[[task.object]]
channel = "file"
size = "8MiB"
workload = { pattern = "uniform", ops = 100 }
"#;

#[test]
fn in_laptop_mode_dirty_pages_are_written_two_seconds_after_each_read_which_traces_and_stories_tell() {
    let directory = with_scenario(LOG);
    let arguments = ["run", "scenario.toml", "--json", "--trace", "trace.txt"];
    let result: Value = serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
    assert!(result["vmstat"]["nr_written"].as_u64().unwrap() > 400);
    let trace = std::fs::read_to_string(directory.path().join("trace.txt")).unwrap();
    let of_timer = |line: &&str| line.contains("writeback_start") && line.contains("reason=laptop_timer");
    let starts: Vec<u64> = trace
        .lines()
        .filter(of_timer)
        .map(|line| {
            line.split(": ").next().unwrap().split_whitespace().last().unwrap().parse::<f64>().unwrap() as u64
        })
        .collect();
    assert!(starts.len() >= 5, "{starts:?}");
    assert!(starts.iter().all(|at| (2..=4).contains(&(at % 10))), "{starts:?}");
    let story = check_success(&pageout(directory.path(), &["explain", "scenario.toml", "--page", "log:10"]));
    let story = story.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(story.contains("its disk is awake, as something was read (laptop mode)"), "{story}");
}

#[test]
fn without_laptop_mode_nothing_is_written_for_a_read_and_it_can_be_turned_on_while_it_runs() {
    let written = |scenario: &str| -> u64 {
        let directory = with_scenario(scenario);
        let output = text(&pageout(directory.path(), &["run", "scenario.toml", "--json"]).stdout);
        let result: Value = serde_json::from_str(&output).unwrap();
        result["vmstat"]["nr_written"].as_u64().unwrap()
    };
    let off = LOG.replace("vm.laptop_mode = 2", "vm.laptop_mode = 0");
    assert_eq!(written(&off), 0);
    let event = "[[event]]\nat = \"25s\"\nwrite = \"/proc/sys/vm/laptop_mode\"\nvalue = 1\n";
    assert!(written(&format!("{off}\n{event}")) > 400);
}

#[test]
fn a_wrong_laptop_mode_is_refused_with_its_line() {
    for (to, parts) in [
        ("vm.laptop_mode = -1", &["scenario.toml:9:", "0 to 86400"][..]),
        ("vm.laptop_mod = 5", &["scenario.toml:9:", "did you mean `vm.laptop_mode`?"]),
    ] {
        let directory = with_scenario(&LOG.replace("vm.laptop_mode = 2", to));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml"]), 2, parts);
    }
}

#[test]
fn the_shipped_scenario_shows_what_laptop_mode_is_for() {
    let output = pageout(&scenarios(), &["compare", "laptop-mode.toml", "--json"]);
    let result: Value = serde_json::from_str(&check_success(&output)).unwrap();
    let expectations = result["expectations"].as_array().unwrap();
    assert_eq!(expectations.len(), 3);
    for expectation in expectations {
        assert_eq!(expectation["is_true"], true, "{expectation}");
    }
}
