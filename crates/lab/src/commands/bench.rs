//! `pageout bench`: the live page cache beside what else reads files, on a real file with equal memory.
//!
//! ```text
//!   this process   load, file, group ─▶ "warm", "round", "time" ─▶ a process for each that reads ─▶ figures, a line each
//!                                                                  └ those that use the kernel's page cache: in the group
//! ```
//! A process each, so that memory and CPU time are one's own: threads of the page cache that read ahead or reclaim count to it.

pub(crate) mod args; // what can be asked
#[cfg(target_os = "linux")]
mod load; // which pages are read
#[cfg(target_os = "linux")]
mod subject; // the file that is read
#[cfg(target_os = "linux")]
mod equal; // a group with no more memory than the budget
#[cfg(target_os = "linux")]
mod reader; // the process of one that reads
#[cfg(target_os = "linux")]
mod ways; // how each of them reads
#[cfg(target_os = "linux")]
mod rounds; // who reads when
#[cfg(target_os = "linux")]
mod told; // what came of it

use crate::failure::Outcome;
use args::BenchArgs;

/// Measures.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: &BenchArgs) -> Outcome {
    if args.reader { reader::run() } else { rounds::run(args) }
}

/// There is nothing to measure where there is no Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) fn bench(_: &BenchArgs) -> Outcome {
    Err(crate::failure::Failure::Input(anyhow::anyhow!("the live page cache is for Linux")))
}
