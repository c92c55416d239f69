//! Studies: scenario files, runs of them with several seeds, their figures, and how those of two scenarios differ beyond noise.
//!
//! The library behind the command `pageout`, without a command line and without a terminal, for programs that need more than one run. A
//! scenario is read, changed, and run side by side with its variants; the results are data.
//!
//! ```
//! use std::path::Path;
//!
//! use pageout_study::result::effect::Figure;
//! use pageout_study::result::variants::Plan;
//! use pageout_study::scenario::source::Source;
//!
//! # fn main() -> Result<(), pageout_study::Error> {
//! let file = r#"
//!     [[memcg]]
//!     path = "/web"
//!     memory.max = "4MiB"
//!     [[task]]
//!     name = "reader"
//!     memcg = "/web"
//!     object = [{ channel = "file", size = "8MiB", workload = { pattern = "zipf", alpha = 0.9, ops = 20_000 } }]
//! "#;
//! let scenario = Source::parse(Path::new("web.toml"), file.to_string())?.scenario(&[])?;
//! let plan = Plan { name: "web".to_string(), repeat: 3, jobs: 0, watcher: &() };
//! let made = plan.run(&[scenario])?;
//! let refaults = Figure::called("refaults_file").expect("every run has it");
//! let spread = refaults.spread(&made.variants[0]).expect("no run failed");
//! println!("refaults: {:.0} ± {:.0}", spread.mean, spread.half_width().expect("there are three seeds"));
//! # assert!(spread.mean > 0.0 && spread.count == 3);
//! # Ok(())
//! # }
//! ```
//!
//! Read it in this order:
#![forbid(unsafe_code)]
// The bans on clocks, threads and files keep the engine and the simulator deterministic. Here scenarios and traces are read, and runs are
// spread over threads; which of them ends first changes no result.
#![allow(clippy::disallowed_methods)]

mod error; // reasons for a missing result
mod check; // sums that each answer must satisfy
mod answered; // the trait of all answers
mod watch; // progress, and interruption

pub mod scenario; // scenario files, checked and changed
pub mod result; // runs, their figures and differences
pub mod run; // one scenario, run once
pub mod compare; // variants of a scenario side by side
pub mod ablate; // the effect of each mechanism
pub mod cover_letter; // the effect of a change on many scenarios
pub mod advise_tier; // the share of memory that may be slower
pub mod bench; // textbook policies over traces, without a machine
pub mod replay; // traces under policies at sizes of memory
pub mod live_bench; // the live page cache next to other readers of files
pub mod sweep; // many runs, resumable, in a folder
pub mod bisect; // the rule that changed a figure between versions
pub mod twin; // a recorded machine, simulated and changed
#[cfg(target_os = "linux")]
mod live_run; // a scenario on real memory
pub mod reproduce; // published tables next to simulated ones
pub mod explain; // the decisions about a page
pub mod tour; // one experiment each of several chapters
#[cfg(not(target_family = "wasm"))] // zstd is C
pub mod compressibility; // compressed sizes of pages
pub mod import; // output of other tools, as a trace
pub mod diff; // two snapshots of a kernel's counters, compared
pub mod vmscan_report; // reclaim and stalled tasks of a real kernel
pub mod working_set; // memory in use, and where a job fits
pub mod shipped; // scenarios that are compiled in
pub mod basis; // verdicts with their inputs, or unknown
pub mod known; // values of rules by version, with sources
pub mod figures; // numbers, formatted for people
mod page_size; // the page size of a real machine
pub mod json; // JSON objects, assembled

pub use answered::Answered;
pub use error::{Error, Failed, told};
pub use watch::{Estimate, Stage, Watcher};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
