//! What telling costs: the whole program without it, with a trace to a file in each form, and with `explain` of a page, interleaved in one
//! run: `cargo bench -p pageout-lab --bench tracing`.
//!
//! Zipf 0.99 over 256 Ki pages in a group that holds 29 % of them, so that each seventh access misses and reclaim works all the time:
//! the more a machine reclaims, the more there is to tell. Times are medians of seven rounds with their spread. What is told is
//! written to the disk of the machine that measures, through the page cache of its kernel. The budget is 15 % more time than without.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark that can't be set up has nothing better to do")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;

const SCENARIO: &str = r#"
[[memcg]]
path = "/job"
memory.max = "300MiB"

[[task]]
name = "reader"
memcg = "/job"

[[task.object]]
channel = "file"
size = "1GiB"
workload = { pattern = "zipf", alpha = 0.99, ops = 8_000_000 }
"#;

/// A way of running it: what it is called, and the arguments.
const WAYS: [(&str, &[&str]); 5] = [
    ("nothing is told", &["run", "scenario.toml"]),
    ("--trace, words of 6.12", &["run", "scenario.toml", "--trace", "trace.txt"]),
    ("--trace, words of 2010", &["run", "scenario.toml", "--trace", "trace.txt", "--trace-dialect", "2010"]),
    ("--trace, for Perfetto", &["run", "scenario.toml", "--trace", "trace.json"]),
    ("explain --page", &["explain", "scenario.toml", "--page", "reader/0:5"]),
];

fn main() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("scenario.toml"), SCENARIO).unwrap();
    let mut times: [Vec<Duration>; WAYS.len()] = Default::default();
    for round in 0..=ROUNDS {
        for ((_, arguments), times) in WAYS.iter().zip(&mut times) {
            let time = timed(directory.path(), arguments);
            // The first round fills caches.
            if round > 0 {
                times.push(time);
            }
        }
    }
    times.iter_mut().for_each(|times| times.sort_unstable());
    let median = |times: &[Duration]| times[ROUNDS / 2].as_secs_f64();
    let off = median(&times[0]);
    println!("\nseconds, median of {ROUNDS} (least to largest), and time relative to telling nothing");
    for ((name, _), times) in WAYS.iter().zip(&times) {
        let (least, largest) = (times[0].as_secs_f64(), times[ROUNDS - 1].as_secs_f64());
        println!(
            "{name:<24} {:>6.3}  ({least:.3} to {largest:.3})  {:.3}x",
            median(times),
            median(times) / off
        );
    }
}

fn timed(directory: &Path, arguments: &[&str]) -> Duration {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pageout"));
    program.current_dir(directory).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    assert!(program.status().unwrap().success(), "pageout {}", arguments.join(" "));
    start.elapsed()
}
