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

mod error; // why there is no result
mod check; // the first sum of an answer that is wrong
mod answered; // what all answers have in common
mod watch; // who watches, and may have it end early

pub mod scenario; // from a file to a scenario that can be built
pub mod result; // runs, their figures, and how those differ
pub mod run; // one scenario, run once
pub mod compare; // variants of a scenario side by side
pub mod ablate; // what each mechanism is worth
pub mod cover_letter; // what a change helps and hurts over many scenarios
pub mod advise_tier; // how much memory may be slower
pub mod bench; // textbook policies over traces, without a machine
pub mod replay; // traces under policies at sizes of memory
pub mod live_bench; // the live page cache next to other readers of files
pub mod sweep; // more runs than fit one sitting, in a folder
pub mod bisect; // which rule changed a figure between two versions
pub mod twin; // a recorded machine, simulated: its counters, and what if
#[cfg(target_os = "linux")]
mod live_run; // a scenario on real memory
pub mod reproduce; // a published table beside ours, and which rows hold
pub mod explain; // why a page is where it is, or was evicted
pub mod tour; // an experiment of each of several chapters
pub mod compressibility; // what pages compress to
pub mod import; // what other tools wrote, as a trace
pub mod diff; // what happened between two snapshots of a kernel's counters
pub mod vmscan_report; // who reclaimed on a real kernel, and how long tasks were stalled
pub mod working_set; // what machines have in use, and where a job would fit
pub mod shipped; // scenarios that are compiled in
pub mod basis; // verdicts that name what they need, or are unknown
pub mod known; // what each rule was in a version, and how that is known
pub mod figures; // numbers as people read them
mod page_size; // that of a real machine
pub mod json; // JSON objects put together

pub use answered::Answered;
pub use error::{Error, Failed, told};
pub use watch::{Estimate, Stage, Watcher};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
