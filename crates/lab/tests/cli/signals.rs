//! Signals while a simulation is under way.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::{GOOD, check_success, pageout, text, with_scenario};

const SIGINT: i32 = 2;

/// Starts `pageout` in `directory`.
fn start(directory: &Path, arguments: &[&str]) -> Child {
    // What a shell in the background has its children ignore is not what this is about.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,TERM", &super::binary()]).args(arguments);
    command.current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A run that would go on for hours, and has begun.
fn endless(more: &[&str]) -> (tempfile::TempDir, Child) {
    let directory = with_scenario(&GOOD.replace("ops = 5000", "ops = 100000000000"));
    let run = start(directory.path(), &[&["run", "scenario.toml", "--quiet"], more].concat());
    (directory, run)
}

fn send(signal: &str, to: &Child) {
    assert!(Command::new("kill").args(["-s", signal, &to.id().to_string()]).status().unwrap().success());
}

fn proc_file(of: &Child, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{}/{file}", of.id())).unwrap()
}

/// The CPU time that a process has used, in ticks of 10 ms, and the most memory that it had, in KiB.
fn used(by: &Child) -> (u64, u64) {
    let stat = proc_file(by, "stat");
    let after_name: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks = |at: usize| after_name[at].parse::<u64>().unwrap();
    let status = proc_file(by, "status");
    let memory = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    (ticks(11) + ticks(12), memory.trim().trim_end_matches(" kB").parse().unwrap())
}

/// Returns true if a process has a handler for SIGINT yet: without one it just ends. On a busy machine it may take long to begin.
fn catches_interrupts(child: &Child) -> bool {
    let status = proc_file(child, "status");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (SIGINT - 1) & 1 == 1
}

/// Interrupts a command once it has a handler and has used so much CPU time, in ticks; the most memory that it had by then comes with what
/// it printed. None: no run was under way yet. The handler is there from the first unfinished file on, as which `--report` tries its
/// directory. Until runs begin, a signal removes that file and ends the program, which has nothing to print.
fn interrupt(directory: &Path, arguments: &[&str], ticks: u64) -> Option<(Output, u64)> {
    let mut child = start(directory, arguments);
    while used(&child).0 < ticks || !catches_interrupts(&child) {
        assert!(child.try_wait().unwrap().is_none(), "{arguments:?} ended before it was interrupted");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let (_, memory) = used(&child);
    send("INT", &child);
    let output = child.wait_with_output().unwrap();
    let told = text(&output.stderr);
    if output.status.signal() == Some(SIGINT) {
        assert!(output.stdout.is_empty() && told.is_empty(), "runs were under way: {told}");
        return None;
    }
    assert_eq!(output.status.code(), Some(130), "{told}");
    Some((output, memory))
}

/// The same, and again with more time if it had come to nothing by then; by 20 s of CPU time it has come to something.
fn interrupt_with_a_result(directory: &Path, arguments: &[&str]) -> (String, u64) {
    for ticks in (2..12).map(|power| 1 << power) {
        let Some((output, memory)) = interrupt(directory, arguments, ticks) else {
            continue;
        };
        if !output.stdout.is_empty() && !text(&output.stdout).contains("\"so_far\"") {
            assert!(
                text(&output.stderr).contains("interrupted by SIGINT after "),
                "{}",
                text(&output.stderr)
            );
            return (text(&output.stdout), memory);
        }
    }
    panic!("{arguments:?} has nothing to print whenever it is interrupted")
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
        for said in ["interrupt again to end immediately", "until it was interrupted", "interrupted by SIG"] {
            assert!(told.contains(said), "{said}: {told}");
        }
    }
}

#[test]
fn a_signal_that_comes_twice_at_once_as_from_timeout_is_one() {
    let directory = with_scenario(&GOOD.replace("ops = 5000", "ops = 100000000000"));
    let mut timeout = Command::new("timeout");
    timeout.args(["2", &super::binary(), "run", "scenario.toml", "--quiet"]);
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

#[test]
fn an_interrupted_comparison_is_that_of_fewer_seeds() {
    let directory = with_scenario(GOOD);
    let compare = |seeds: &'static str| {
        let policies = ["--vary", "kernel.profile=classic@6.12,mglru@6.12"];
        [&["compare", "scenario.toml", "--quiet", "--json", "--repeat", seeds], &policies[..]].concat()
    };
    let (printed, _) = interrupt_with_a_result(directory.path(), &compare("1000"));
    let mut printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["complete"], false);
    let interrupted = printed["interrupted"].take();
    assert_eq!((&interrupted["signal"], &interrupted["runs_asked_for"]), (&"SIGINT".into(), &2000.into()));
    let seeds = printed["repeat"].as_u64().unwrap();
    assert!(2 * seeds <= interrupted["runs_made"].as_u64().unwrap());
    let whole = compare(seeds.to_string().leak());
    let whole: Value = serde_json::from_str(&check_success(&pageout(directory.path(), &whole))).unwrap();
    assert!(printed["variants"] == whole["variants"], "seeds 1 to {seeds}");
}

#[test]
fn a_variant_that_a_signal_came_before_is_not_run_and_nothing_is_expected_of_it() {
    let variants = r#"
[[variant]]
name = "short"
[[variant]]
name = "endless"
fails = "out of memory"
set = { task.reader.object.0.workload.ops = 100_000_000_000 }

[[expect]]
figure = "task reader: accesses"
holds = "short < endless"
because = "it has less to do"
"#;
    let directory = with_scenario(&format!("{GOOD}{variants}"));
    let arguments = ["compare", "scenario.toml", "--quiet", "--jobs", "1"];
    let (printed, _) = interrupt_with_a_result(directory.path(), &arguments);
    assert!(printed.contains("endless (not run)") && printed.contains("after 1 of 2 runs"), "{printed}");
    assert!(!printed.contains("FAILS") && !printed.contains("holds"), "{printed}");
}

#[test]
fn what_is_said_of_mechanisms_is_said_of_those_that_were_run_and_the_others_take_no_memory() {
    let directory = with_scenario(&GOOD.replace("ops = 5000", "ops = 200000"));
    let arguments =
        ["ablate", "scenario.toml", "--quiet", "--jobs", "1", "--repeat", "1000", "--report", "page.html"];
    let (printed, memory) = interrupt_with_a_result(directory.path(), &arguments);
    assert!(memory < 200 << 10, "{memory} KiB for a hundred thousand runs that wait");
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in
        ["seed 1 of the 1,000 seeds asked for", "Not complete: interrupted by SIGINT after", "Not run "]
    {
        assert!(words.contains(said), "{said}: {printed}");
    }
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("Not complete: interrupted by SIGINT"), "{page}");
    assert!(!page.contains("No switch changes"), "{page}");
}

#[test]
fn cells_that_a_signal_came_before_are_not_run() {
    let directory = with_scenario(GOOD);
    let pages = (0..300_000_u32).map(|at| at.wrapping_mul(2_654_435_761) >> 18);
    std::fs::write(directory.path().join("a.u32"), pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
        .unwrap();
    let arguments =
        ["replay", "a.u32", "--memory", "1%..100%/4000", "--policy", "lru,arc", "--quiet", "--jobs", "1"];
    let (printed, _) = interrupt_with_a_result(directory.path(), &arguments);
    assert!(printed.starts_with("Not complete: interrupted by SIGINT after "), "{printed}");
    assert!(printed.contains("  not run\n"), "{printed}");
}

#[test]
fn advice_speaks_of_the_ratios_that_were_run() {
    let directory = with_scenario(&GOOD.replace("ops = 5000", "ops = 400000"));
    let arguments =
        ["advise-tier", "scenario.toml", "--quiet", "--jobs", "1", "--loss", "0", "--memory", "32MiB"];
    let (printed, _) = interrupt_with_a_result(directory.path(), &arguments);
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Not complete: interrupted by SIGINT after"), "{printed}");
    assert!(
        words.contains("cxl-2.0-switch: unknown because no run completed") && words.contains("not run"),
        "{printed}"
    );
    assert!(words.contains("The effect of knobs is unknown: no knob was run"), "{printed}");
    assert!(!words.contains("each ratio takes") && !words.contains("No knob changes"), "{printed}");
}

#[test]
fn an_interrupted_letter_is_partial_and_has_the_rows_of_the_seeds_that_there_are() {
    let directory = with_scenario(GOOD);
    let short = GOOD.replace("ops = 5000", "ops = 4000");
    std::fs::write(directory.path().join("short.toml"), short).unwrap();
    let arguments = [
        "coverletter",
        "scenario.toml",
        "short.toml",
        "--quiet",
        "--repeat",
        "1000",
        "--switch",
        "memcg./web.memory.max=2MiB",
    ];
    let (printed, _) = interrupt_with_a_result(directory.path(), &arguments);
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("PARTIAL: interrupted by SIGINT after "), "{printed}");
    assert!(
        printed.lines().last().unwrap_or_default().contains("compared") || words.contains("interrupted."),
        "{printed}"
    );
}
