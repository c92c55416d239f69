//! Regions next to what else keeps pages beyond memory [live-3 11]: `cargo run --release -p pageout-bench --features rivals --bin rivals -- [FOLDER [ACCESSES]]`.
//!
//! - everything resident: a copy out of a region, of `moka` and of `quick_cache`, next to memcpy;
//! - half of the memory: a region, next to the kernel's own swap at equal memory, on zram and on a file;
//! - a quarter of the memory: a region, next to the hybrid cache of `foyer`, which has a disk for all.
//!
//! Each has five interleaved rounds, and each contender of a round beyond memory is a process of its own. The kernel's rows need root, a memory cgroup and
//! `swapon`; without these they are left out, and the program says why. The folder's default is the system's for temporary files; /dev/shm is its tmpfs.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a program that measures, and ends on an error"
)]

#[path = "../../../../live/examples/measured/head.rs"]
mod measured; // draws, CPU time, medians

mod contents; // pages that shrink
mod kernel; // swap and a cgroup
mod contenders; // the processes
mod resident; // caches that have everything

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use measured::{MIB, middle};

const ROUNDS: usize = 5;
/// Bytes of the pages that do not fit in memory.
const PAGES: usize = 256 * MIB;

/// Figures of a process, by name.
type Figures = BTreeMap<String, f64>;

/// Has a contender measured by a process of its own, in a cgroup if one is given.
fn measure(name: &str, folder: &Path, accesses: usize, cgroup: Option<&Path>) -> Figures {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--one").arg(name).arg(folder).arg(accesses.to_string()).args(cgroup);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}: {told}", output.status);
    let figures = String::from_utf8(output.stdout).unwrap();
    let figure =
        |line: &str| line.split_once(' ').map(|(key, value)| (key.to_owned(), value.parse().unwrap()));
    figures.lines().filter_map(figure).collect()
}

/// A row: median, minimum and maximum, with the limit that the median must keep.
fn row(name: &str, unit: &str, figures: &[f64], limit: Option<(f64, bool)>) {
    let (median, least, most) = middle(figures);
    let verdict = limit.map_or_else(String::new, |(limit, is_least)| {
        let (word, holds) = if is_least { ("least", median >= limit) } else { ("most", median <= limit) };
        format!("at {word} {limit}: {}", if holds { "holds" } else { "does not hold" })
    });
    println!("  {name:44} {median:10.2} ({least:.2}-{most:.2}) {unit:14} {verdict}");
}

/// The figures of a contender, one for each round.
fn of(rounds: &[Figures], key: &str) -> Vec<f64> {
    rounds.iter().map(|figures| figures[key]).collect()
}

/// The ratio of two contenders, round by round.
fn ratio(of: &[Figures], to: &[Figures], key: &str) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of[key] / to[key]).collect()
}

fn half(folder: &Path, accesses: usize) {
    for (title, region, swap, bytes_at_most) in [
        ("zram (lz4), and a swap file on a tmpfs", "region-tmpfs", kernel::SwapOn::Zram, None),
        ("a swap file in the folder", "region", kernel::SwapOn::File, Some(1.1)),
    ] {
        println!("half of the memory, {} MiB of pages, uniform, a write each 8: {title}", PAGES / MIB);
        let room = match kernel::Room::new(swap, folder, (PAGES / 2) as u64) {
            Ok(room) => room,
            Err(why) => {
                println!("  LEFT OUT: {why}");
                continue;
            }
        };
        let mut rounds = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            rounds.0.push(measure(region, folder, accesses, None));
            rounds.1.push(measure("kernel", folder, accesses, Some(&room.cgroup)));
        }
        for (name, rounds) in [("region", &rounds.0), ("kernel", &rounds.1)] {
            row(&format!("{name}: misses per access"), "", &of(rounds, "misses"), None);
            row(&format!("{name}: CPU time per miss"), "us", &of(rounds, "cpu"), None);
            row(&format!("{name}: wall-clock time per access"), "us", &of(rounds, "time"), None);
            row(&format!("{name}: device bytes per access"), "", &of(rounds, "bytes"), None);
        }
        for (key, what, limit) in [
            // Misses of a region include first writes to clean pages.
            ("cpu", "CPU time per miss", None),
            ("cpu-of-access", "CPU time per access", Some((0.8, false))),
            ("time", "wall-clock time", None),
            ("bytes", "device bytes", bytes_at_most.map(|limit| (limit, false))),
        ] {
            row(&format!("region / kernel: {what}"), "", &ratio(&rounds.0, &rounds.1, key), limit);
        }
    }
}

fn quarter(folder: &Path, accesses: usize) {
    println!("a quarter of the memory, {} MiB of pages, Zipf 0.8, reads:", PAGES / MIB);
    let names = ["region-quarter", "foyer", "region-as-foyer"];
    let mut rounds = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (name, rounds) in names.into_iter().zip(&mut rounds) {
            rounds.push(measure(name, folder, accesses, None));
        }
    }
    let [region, foyer, as_foyer] = &rounds;
    for (name, rounds) in [("region", region), ("foyer", foyer), ("region with 160 MiB", as_foyer)] {
        row(&format!("{name}: reads"), "a second", &of(rounds, "rate"), None);
        row(&format!("{name}: CPU time per read"), "us", &of(rounds, "cpu"), None);
        row(&format!("{name}: peak of the resident set"), "MiB", &of(rounds, "resident"), None);
        row(&format!("{name}: reads without the value"), "", &of(rounds, "absent"), None);
    }
    row("region / foyer: reads a second", "", &ratio(region, foyer, "rate"), Some((1.2, true)));
    // Its index and its queue of writes are not part of the memory that it is given.
    row("region / foyer, the same resident set", "", &ratio(as_foyer, foyer, "rate"), None);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, folder, accesses, cgroup @ ..] = args.as_slice()
        && first == "--one"
    {
        contenders::run(name, Path::new(folder), accesses.parse().unwrap(), cgroup.first().map(Path::new));
        return;
    }
    let folder = args.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let accesses = args.get(1).map_or(200_000, |count| count.parse().expect("a number of accesses"));
    resident::run(accesses);
    half(&folder, accesses);
    quarter(&folder, accesses);
}
