//! Recorded outcomes: killed or not, against the simulator.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::validate::{copy_folder, ground_truth, validate};
use super::{check_failure, check_success, text};

/// A copy of the recorded outcomes, with what is said of a run changed.
fn changed(id: &str, change: impl Fn(&mut Value)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(&recorded(), copy.path());
    let path = copy.path().join("outcomes.json");
    let mut outcomes: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(outcomes["runs"].as_array_mut().unwrap().iter_mut().find(|run| run["id"] == id).unwrap());
    fs::write(path, outcomes.to_string()).unwrap();
    copy
}

fn recorded() -> PathBuf {
    ground_truth().join("oom")
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_kill_of_a_real_kernel_is_a_kill_here_after_as_many_calls_that_look_at_nothing() {
    let output = validate(&recorded(), &["ou600.classic.1", "ou400t.classic.t", "ou400.mglru.1", "--json"]);
    let judged: Value = serde_json::from_str(&check_success(&output)).unwrap();
    let [killed, traced, survivor] = &judged.as_array().unwrap()[..] else { panic!("{judged}") };
    assert_eq!((&killed["killed"], &killed["simulated_kills"]), (&true.into(), &16.into()));
    assert_eq!(traced["blind_calls"], serde_json::json!([18, 18, 18]));
    assert_eq!((&survivor["killed"], &survivor["simulated_kills"]), (&false.into(), &0.into()));
    assert_eq!(survivor["major_faults"][0], 139_119);
}

#[test]
fn recordings_in_a_folder_within_are_named() {
    let output = validate(&ground_truth(), &["fr-loop.mglru.1"]);
    check_success(&output);
    let told = text(&output.stderr);
    assert!(told.contains("oom has more recordings: pageout validate "), "{told}");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn an_outcome_that_the_simulator_does_not_have_falls_short() {
    let survived = changed("ou600.classic.1", |run| run["killed"] = false.into());
    let output = validate(survived.path(), &["ou600.classic.1"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("FALLS SHORT"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("1 of 1 runs fail"), "{}", text(&output.stderr));
    check_success(&validate(survived.path(), &["ou600.classic.1", "--expect-short", "ou600.classic.1"]));
    let faults = changed("ou400.mglru.1", |run| run["majflt"] = 120_000.into());
    assert_eq!(validate(faults.path(), &["ou400.mglru.1"]).status.code(), Some(4));
    let passes = validate(&recorded(), &["ou600.classic.1", "--expect-short", "ou600.classic.1"]);
    assert_eq!(passes.status.code(), Some(4));
    assert!(text(&passes.stderr).contains("is expected to fail, but it passes"), "{}", text(&passes.stderr));
}

#[test]
fn the_simulated_outcome_knows_nothing_of_the_recorded_one() {
    let outcome = |dir: &std::path::Path| {
        let output = validate(dir, &["ou600.classic.1", "--json"]);
        let judged: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
        (judged[0]["simulated_kills"].clone(), judged[0]["killed_after_ns"].clone())
    };
    let survived = changed("ou600.classic.1", |run| run["killed"] = false.into());
    assert_eq!(outcome(survived.path()), outcome(&recorded()));
}

#[test]
fn an_outcome_that_can_not_be_played_is_refused_by_what_is_wrong_with_it() {
    let refused = |change: fn(&mut Value), parts: &[&str]| {
        let changed = changed("ou600.classic.1", change);
        check_failure(&validate(changed.path(), &["ou600.classic.1"]), 2, parts);
    };
    refused(
        |run| run["kernel"] = "5.15.1".into(),
        &["ou600.classic.1 cannot be simulated", "kernel `5.15.1`"],
    );
    refused(|run| run["policy"] = "lru".into(), &["policy `lru` is not modelled"]);
    refused(|run| run["swap"] = "none".into(), &["swap `none` is not modelled"]);
    refused(
        |run| run["stat_reader_s"] = 0.into(),
        &["`stat_reader_s`: found 0 ns, expected 1.000 ms or more"],
    );
    refused(|run| run["sequence"] = "u2k".into(), &["u2k.u32.zst"]);
    refused(|run| run["ftrace"] = "README.md".into(), &["README.md"]);
    check_failure(&validate(&recorded(), &["ou401.*"]), 2, &["no run `ou401.*`"]);
}

#[test]
fn a_trace_with_fewer_calls_than_the_group_was_at_its_limit_is_told_with_the_outcome() {
    let run = "ou400t.classic.t";
    let lost = "`ftrace` has 341 reclaim calls, but `max` of `memory.events` counts 342";
    for (max, is_told) in [(341, false), (342, true)] {
        let changed = changed(run, |run| run["memory.events"]["max"] = max.into());
        let of = |more: &str| text(&validate(changed.path(), &[run, "--simulations", "2", more]).stdout);
        assert_eq!(of("--quiet").contains(&format!("{run}: {lost}")), is_told, "{}", of("--quiet"));
        let judged: Value = serde_json::from_str(&of("--json")).unwrap();
        assert_eq!(judged[0]["doubts"].as_array().map(Vec::len), Some(usize::from(is_told)), "{judged}");
    }
}

#[test]
fn outcomes_of_another_version_are_refused() {
    let changed = changed("ou600.classic.1", |_| {});
    let path = changed.path().join("outcomes.json");
    let mut folder: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    folder["format"] = 4.into();
    std::fs::write(&path, folder.to_string()).unwrap();
    check_failure(&validate(changed.path(), &[]), 2, &["outcomes.json: found `format` 4", "expected 1 to 3"]);
}
