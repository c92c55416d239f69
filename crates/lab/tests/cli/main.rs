//! The built binary as a user meets it: good input gives a result and exit code 0, bad input a message that names what is
//! wrong and an exit code that says whose fault it is, and never a panic or half a result.

// Tests write the files they need, and a test that can't is a failed test.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod ablate; // mechanisms turned and exchanged
mod advise_tier; // how much memory may be slower
mod bad_scenario; // scenario files and settings
mod bad_trace; // traces
mod basis; // what a figure is made from, beside it
mod bench; // textbook policies over traces
mod bisect; // which rule did it, and versions as values
mod causes; // how long accesses took, and why
mod coverletter; // what a change helps and hurts over many scenarios
mod compressibility; // what pages compress to
mod dropped_caches; // what a user has dropped
mod docs; // pages that say the same
mod diff; // two snapshots of a kernel's counters
mod exactness; // the textbook LRU against others
mod errors; // each wrong input, with its help
mod effects; // what each value of a key changes
mod explain; // why a page is where it is
mod forms; // results as CSV, Markdown, in files
mod foreign; // what others have recorded
mod huge_pages; // blocks of pages, and who makes them
mod live; // real files through the live page cache
mod machine; // CPUs, and what tasks lack
mod madvise; // advice on memory at a time
mod import; // what other tools recorded
mod keys; // the reference of keys against what is accepted
mod oom; // who is killed, and what no kill can relieve
mod laptop_mode; // writes while a disk is awake
mod node_reclaim; // a near node before a far one
mod notes; // what a result says of itself
mod open_loop; // accesses that start at the trace's own times
mod outcomes; // killed or not, as recorded
mod output; // full disks, closed pipes, JSON, completions
mod pages; // results as pages to look at
mod plugins; // policies that are shared libraries
mod parquet; // results as files of typed columns
mod real_time; // tasks that run before others
mod python; // functions of the Python package
mod readahead; // what is read before it is asked for
mod predict; // a page with what a kernel will do
mod record; // this machine, recorded
mod regressions; // the bank of known bugs
mod prices; // what an access costs, whatever else there is
mod reproduce; // published tables beside ours
mod removal; // cgroups removed while it runs
mod results; // what good runs print
mod signals; // what a signal leaves of a simulation
mod soft_limits; // groups that give first
mod scale; // what is too large, and what is only large
mod sync; // file systems that are synced at a time
mod sweep; // many cells in a folder
mod structure; // files that import each other
mod switches; // what shows each switch
mod tenants; // several that share a memory
mod tiers; // fast and slow memory
mod tour; // five publications beside ours
mod twin; // a recorded machine, simulated
mod timeline; // figures over time
mod traces; // what a trace is taken for
mod tracing; // tracepoints of a run
mod untimed; // replays without a clock
mod validate; // recorded runs
mod vmscan_report; // traces of a real kernel
mod working_set; // dumps of lru_gen
mod writers; // who gets how much of a device
mod zram; // compressed swap

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program under test: the one built with the tests, or the release that `ci/gate/test.sh` and `ci/slow/tests.sh` name.
fn binary() -> String {
    std::env::var("PAGEOUT_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_pageout").to_string())
}

/// Runs `pageout` in `directory`.
fn pageout(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command
        .env_remove("COLUMNS")
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The project's example scenarios.
fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// Expects exit code `code`, every one of `parts` on standard error, and nothing on standard output.
#[track_caller]
fn check_failure(output: &Output, code: i32, parts: &[&str]) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "stderr:\n{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(stdout, "", "a failure prints no result; stderr:\n{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "expected {part:?} in:\n{stderr}");
    }
}

/// Expects success and returns what was printed.
#[track_caller]
fn check_success(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "stderr:\n{}", text(&output.stderr));
    text(&output.stdout)
}

/// A small scenario that runs in milliseconds.
const GOOD: &str = r#"question = "Does it run?"

[[memcg]]
path = "/web"
memory.max = "1MiB"

[[task]]
name = "reader"
memcg = "/web"

[[task.object]]
channel = "file"
size = "4MiB"
workload = { pattern = "zipf", ops = 5000 }
"#;

/// A directory with `scenario.toml` in it.
fn with_scenario(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("there is room for a temporary directory");
    std::fs::write(directory.path().join("scenario.toml"), text).expect("there is room for a small file");
    directory
}

/// Runs the good scenario with `from` replaced by `to`.
#[track_caller]
fn run_with(from: &str, to: &str, more: &[&str]) -> Output {
    assert!(GOOD.contains(from), "{from:?} is not in the scenario");
    let directory = with_scenario(&GOOD.replacen(from, to, 1));
    let arguments: Vec<&str> = ["run", "scenario.toml"].iter().chain(more).copied().collect();
    pageout(directory.path(), &arguments)
}
