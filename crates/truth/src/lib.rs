//! Recordings of real kernels, simulated and compared with what the kernels counted; and predictions of what a kernel will do.
//!
//! [`validate`] replays the recorded runs of a folder and judges each of them by the folder's tolerances. The format of the folder is
//! described in `docs/reference/recordings.md`. [`predict`] writes down figures, with their ranges, before a kernel is asked.
//!
//! The crate has no command line and no terminal: a caller gets data, and progress and remarks go to a [`pageout_study::Watcher`].
#![forbid(unsafe_code)]
// The bans on clocks, threads and files keep the engine and the simulator deterministic. Here recordings are read, and runs are spread
// over threads; which of them ends first changes no result.
#![allow(clippy::disallowed_methods)]

mod error; // reasons for a missing result

pub mod validate; // simulated counters beside recorded ones
pub mod input; // recorded inputs by name
pub mod judge; // simulated beside real, with a verdict
pub mod account; // the use of each input
pub mod difference; // the first access at which simulation and kernel differ
pub mod story; // the events of one page
pub mod outcomes; // recorded outcomes: killed, or not
pub mod folios; // folios that enter and leave the page cache
pub mod predict; // figures with their ranges, before a kernel is asked

mod recording; // the inputs of the kernel
mod files; // the files of a folder
mod object; // accessed objects, and access methods
mod inputs; // inputs besides accesses
mod kernel_trace; // events of a whole machine's kernel
mod start_state; // a machine before the first access, by a snapshot
mod script; // the recording program's calls for each access
mod missing; // mechanisms that the simulator lacks
mod rig; // a recording, played to the simulator
mod answers; // the results of the kernel
mod class; // limits of differences
mod reads; // pages that accesses brought in, and their sources
mod complete; // completeness of the inputs

pub use error::Error;

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
