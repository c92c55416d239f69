//! Signals while a simulation is under way.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{GOOD, with_scenario};

/// A run that would go on for hours, and has begun.
fn endless(more: &[&str]) -> (tempfile::TempDir, Child) {
    let directory = with_scenario(&GOOD.replace("ops = 5000", "ops = 100000000000"));
    // What a shell in the background has its children ignore is not what this is about.
    let mut run = Command::new("env");
    run.args([
        "--default-signal=HUP,INT,TERM",
        env!("CARGO_BIN_EXE_pageout"),
        "run",
        "scenario.toml",
        "--quiet",
    ]);
    run.args(more).current_dir(&directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    (directory, run.spawn().unwrap())
}

fn send(signal: &str, to: &Child) {
    assert!(Command::new("kill").args(["-s", signal, &to.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_run_that_is_interrupted_prints_what_it_has_so_far() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let (_directory, mut run) = endless(&["--timeline", "-", "--timeline-every", "1ms"]);
        let mut rows = BufReader::new(run.stdout.take().unwrap()).lines();
        let begun = rows.by_ref().take(2).count();
        assert_eq!(begun, 2, "a head and a row");
        send(signal, &run);
        let more = std::thread::spawn(move || rows.count());
        let mut told = String::new();
        run.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(code), "{told}");
        more.join().unwrap();
        for said in ["once more to end at once", "until it was interrupted", "interrupted by SIG"] {
            assert!(told.contains(said), "{said}: {told}");
        }
    }
}

#[test]
fn a_signal_that_comes_twice_at_once_as_from_timeout_is_one() {
    let directory = with_scenario(&GOOD.replace("ops = 5000", "ops = 100000000000"));
    let mut timeout = Command::new("timeout");
    timeout.args(["2", env!("CARGO_BIN_EXE_pageout"), "run", "scenario.toml", "--quiet"]);
    let output = timeout.current_dir(&directory).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("interrupted by SIGTERM"), "{told}");
}

#[test]
fn an_interrupted_run_leaves_its_timeline_and_json_that_says_so() {
    let (directory, mut run) = endless(&["--timeline", "rows.csv", "--timeline-every", "1ms", "--json"]);
    // It simulates when its file has rows.
    let has_rows = |entry: std::fs::DirEntry| {
        entry.file_name() != "scenario.toml" && entry.metadata().is_ok_and(|file| file.len() > 0)
    };
    while !std::fs::read_dir(&directory).unwrap().any(|entry| has_rows(entry.unwrap())) {
        assert!(run.try_wait().unwrap().is_none(), "it has begun");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    send("INT", &run);
    let mut printed = String::new();
    run.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["complete"], false);
    assert_eq!(printed["error"], "interrupted by SIGINT");
    assert!(printed["so_far"]["accesses"].as_u64().unwrap() > 0);
    let rows = std::fs::read_to_string(directory.path().join("rows.csv")).unwrap();
    assert!(rows.lines().count() > 1, "{rows}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2, "and nothing else");
}

#[test]
fn a_signal_that_no_run_answers_ends_the_program() {
    let (_directory, mut run) = endless(&["--timeline", "-", "--timeline-every", "1ms"]);
    let mut rows = BufReader::new(run.stdout.take().unwrap()).lines();
    assert_eq!(rows.by_ref().take(2).count(), 2);
    send("HUP", &run);
    let more = std::thread::spawn(move || rows.count());
    assert_eq!(run.wait().unwrap().signal(), Some(1));
    more.join().unwrap();
}
