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

mod error; // why there is no result

pub mod validate; // simulated counters beside recorded ones
pub mod input; // recorded inputs by name
pub mod judge; // simulated beside real, with a verdict
pub mod account; // what became of each input
pub mod difference; // the first access at which simulation and kernel part
pub mod story; // what happened to one page
pub mod outcomes; // recorded outcomes: killed, or not
pub mod folios; // folios that enter and leave the page cache
pub mod predict; // figures with their ranges, before a kernel is asked

mod recording; // what was asked of the kernel
mod files; // where a folder has what, and how it is read
mod object; // what was accessed, and how
mod inputs; // what a kernel was given besides accesses
mod kernel_trace; // events of a whole machine's kernel
mod start_state; // a machine before the first access, by a snapshot
mod script; // what the recording program did for each access
mod missing; // what the simulator can't do yet
mod rig; // a recording, played to the simulator
mod answers; // what the kernel did
mod class; // how close is close enough
mod reads; // what accesses brought into the page cache, and from where
mod complete; // whether inputs are all that there was

pub use error::Error;

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
