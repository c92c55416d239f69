//! Real-time tasks: they run before others, dirty more before they are held up, and use half of the reserve.

use serde_json::Value;

use super::{check_failure, check_success, pageout, scenarios, with_scenario};

/// Two tasks that want the same processor all the time.
const SHARED: &str = r#"
[machine]
cpus = 1
memory = "64MiB"

[[task]]
name = "first"
TASK

[[task.object]]
channel = "anonymous"
size = "1MiB"
workload = { pattern = "uniform", ops = 300_000 }

[[task]]
name = "other"

[[task.object]]
channel = "anonymous"
size = "1MiB"
workload = { pattern = "uniform", ops = 300_000 }
"#;

fn run(scenario: &str) -> Value {
    let directory = with_scenario(scenario);
    serde_json::from_str(&check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"])))
        .unwrap()
}

#[test]
fn a_real_time_task_runs_as_if_it_were_alone_and_others_when_it_is_done() {
    let runtime = |result: &Value, task: usize| result["tasks"][task]["runtime_ns"].as_u64().unwrap() as f64;
    let fair = run(&SHARED.replace("TASK", ""));
    let (both, first) = (runtime(&fair, 1), runtime(&fair, 0));
    assert!((0.9..1.1).contains(&(first / both)), "who shares a processor is done at about the same time");
    for start in ["", "start = \"1ms\""] {
        let result = run(&SHARED.replace("TASK", &format!("rt_priority = 1\n{start}")));
        assert!(
            (0.45..0.55).contains(&(runtime(&result, 0) / both)),
            "{start}: {}",
            runtime(&result, 0) / both
        );
        assert!(
            (0.95..1.05).contains(&(runtime(&result, 1) / both)),
            "{start}: {}",
            runtime(&result, 1) / both
        );
    }
}

#[test]
fn of_two_real_time_tasks_the_higher_priority_runs_first() {
    let of = |first: u8, other: u8| {
        let scenario = SHARED.replace("TASK", &format!("rt_priority = {first}"));
        let scenario =
            scenario.replace("name = \"other\"", &format!("name = \"other\"\nrt_priority = {other}"));
        let result = run(&scenario);
        let runtime = |task: usize| result["tasks"][task]["runtime_ns"].as_u64().unwrap();
        runtime(0) < runtime(1)
    };
    assert!(of(2, 1) && !of(1, 2));
    assert!(of(1, 1), "among equals who came first");
}

#[test]
fn a_priority_that_there_is_not_is_refused_with_its_line() {
    for (to, parts) in [
        ("rt_priority = 100", &["scenario.toml:8:", "0 to 99"][..]),
        ("rt_prio = 1", &["scenario.toml:8:", "did you mean `rt_priority`?"]),
    ] {
        let directory = with_scenario(&SHARED.replace("TASK", to));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml"]), 2, parts);
    }
}

#[test]
fn the_shipped_scenario_shows_what_real_time_saves() {
    let output = pageout(&scenarios(), &["compare", "real-time.toml", "--json"]);
    let result: Value = serde_json::from_str(&check_success(&output)).unwrap();
    let expectations = result["expectations"].as_array().unwrap();
    assert_eq!(expectations.len(), 2);
    for expectation in expectations {
        assert_eq!(expectation["is_true"], true, "{expectation}");
    }
}
