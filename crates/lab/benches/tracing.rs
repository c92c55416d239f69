//! What telling costs: the whole program without it, with a trace to a file in each form, and with `explain` of a page, interleaved in one
//! run: `cargo bench -p pageout-lab --bench tracing`.
//!
//! Zipf 0.99 over 256 Ki pages in a group that holds 29 % of them, so that each seventh access misses and reclaim works all the time:
//! the more a machine reclaims, the more there is to tell. Times are of the processor, the kernel's included, as Linux counts them in
//! hundredths of a second; medians of seven rounds with their spread. The program ends when its trace is on the disk, and that wait does not
//! count. The budget is 15 % more time than without.
#![allow(clippy::disallowed_methods, reason = "a benchmark writes its scenario, and reads what it took")]
#![allow(clippy::unwrap_used, reason = "a benchmark that can't be set up has nothing better to do")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// The processor's time for the program.
fn timed(directory: &Path, arguments: &[&str]) -> Duration {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pageout"));
    program.current_dir(directory).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let before = time_of_children();
    assert!(program.status().unwrap().success(), "pageout {}", arguments.join(" "));
    time_of_children() - before
}

/// What all programs that have ended took, in user space and in the kernel.
fn time_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, which may have anything in it, come the state and numbers; the 14th and 15th are of children.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = fields.split(' ').skip(13).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}
