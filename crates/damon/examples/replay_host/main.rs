//! Replays a recording of `ci/figures/damon-host/record.py`, and prints what this crate's kdamond finds, as ftrace prints it of the kernel's.
//!
//! ```text
//!   cargo run --release -p pageout-damon --example replay_host FOLDER [SEED] > FOLDER/replay.txt
//! ```
#![allow(clippy::disallowed_methods, reason = "a program that reads recordings")]

mod files; // texts and settings
mod host; // the kdamond and its memory
mod recording; // windows and accesses

use pageout_damon::{FilterOrder, Rules};
use recording::{Recording, Seen};
use std::io::Write;
use std::path::Path;

const PAGE: u64 = 4096;

/// Why a recording cannot be replayed.
type Failure = Box<dyn std::error::Error>;

/// The rules of 6.18, as the reference of rules has them.
const RULES: Rules = Rules { age_zero: true, filter_order: FilterOrder::FirstFit, ..Rules::V6_12 };

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("found no folder, expected FOLDER [SEED]")?;
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let recording = Recording::read(Path::new(&folder))?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for window in host::replay(&recording, RULES, seed)? {
        let head = format!("  kdamond.0-1 [000] ..... {}:", seconds(window.end_ns));
        let count = window.regions.len();
        for Seen { start, end, nr_accesses, age } in window.applied {
            let place = format!("ctx_idx=0 scheme_idx=0 target_idx=0 nr_regions={count}");
            writeln!(out, "{head} damos_before_apply: {place} {start}-{end}: {nr_accesses} {age}")?;
        }
        for Seen { start, end, nr_accesses, age } in window.regions {
            let place = format!("target_id=0 nr_regions={count}");
            writeln!(out, "{head} damon_aggregated: {place} {start}-{end}: {nr_accesses} {age}")?;
        }
    }
    out.flush()?;
    Ok(())
}

/// A time as ftrace prints it.
fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1_000 % 1_000_000)
}
