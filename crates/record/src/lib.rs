//! Recordings of a real machine: what a group of processes does with its files, from the kernel's tracepoints, and all that its twin depends on.
//!
//! ```text
//!   tracefs instance ─▶ raw pages of each CPU ─▶ events in order of time ─▶ accesses.pgt    what was accessed
//!   (filters, pids)     ring, format, event       merge                  ├▶ before.pgt      what was in memory already
//!                                                                        ├▶ file_calls.csv  fsync, truncation, deletion, what others took
//!                                                                        ├▶ evictions.csv   since when faulted pages were missed
//!                                                                        ├▶ rooms.csv       how much files had when the group was full
//!                                                                        └▶ sums  ─┐
//!   /proc, /sys, cgroup files, again and again ─────────────────────────────────────┴▶ recording.toml, samples.csv
//! ```
//!
//! No engine is in it: a recording is read on another machine. Formats of events and pages are what the kernel's own `format` files say;
//! [tracepoints](https://docs.kernel.org/trace/events.html) and [the file system of ftrace](https://docs.kernel.org/trace/ftrace.html) are
//! documented by the kernel.
#![forbid(unsafe_code)]
// It records a real machine: files, clocks and waiting are its business.
#![allow(clippy::disallowed_methods)]

#[cfg(target_os = "linux")]
mod root; // the places of /proc and /sys
pub mod regular; // files of folders that others wrote
mod error; // reasons for a failure

#[cfg(target_os = "linux")]
mod format; // the kernel's description of events and pages
#[cfg(target_os = "linux")]
mod ring; // events out of a raw page
#[cfg(target_os = "linux")]
mod event; // known tracepoints and their fields
#[cfg(target_os = "linux")]
mod tracefs; // an instance of one's own, that goes again
#[cfg(target_os = "linux")]
mod cost; // the cost of an event on this machine
#[cfg(target_os = "linux")]
mod merge; // events of all CPUs in order of time

#[cfg(target_os = "linux")]
mod seen; // sets of pages
#[cfg(target_os = "linux")]
mod collect; // from events to accesses and sums

#[cfg(target_os = "linux")]
mod cgroup; // files of a group, of both versions of cgroups
#[cfg(target_os = "linux")]
mod host; // kernel, settings, devices
#[cfg(target_os = "linux")]
mod processes; // tasks, their open and mapped files
mod manifest; // a recording's description of itself

#[cfg(target_os = "linux")]
mod usage; // reads and memory of processes
#[cfg(target_os = "linux")]
mod damon; // use of address ranges, by DAMON
#[cfg(target_os = "linux")]
mod watch; // figures of a recording without events

#[cfg(target_os = "linux")]
mod ways; // ways to record, best first
#[cfg(target_os = "linux")]
mod cold; // files that leave the page cache before a recording
#[cfg(target_os = "linux")]
mod limited; // a cgroup whose limit is set for each recording
#[cfg(target_os = "linux")]
mod check; // the sources that are open
#[cfg(target_os = "linux")]
mod started; // the command that a recording is of
#[cfg(target_os = "linux")]
mod folder; // files of its folder beside the accesses
#[cfg(target_os = "linux")]
mod cut; // accesses behind the ends of files
#[cfg(target_os = "linux")]
mod recorder; // a recording, from begin to end
#[cfg(target_os = "linux")]
mod import; // the same events, written by another tool

#[cfg(target_os = "linux")]
pub use check::{Availability, check};
#[cfg(target_os = "linux")]
pub use cold::forget;
pub use error::Error;
#[cfg(target_os = "linux")]
pub use event::Kinds;
#[cfg(target_os = "linux")]
pub use import::Importer;
#[cfg(target_os = "linux")]
pub use limited::Limited;
pub use manifest::{
    ACCESSES, BEFORE, BEGIN_GENERATIONS, Channel, CostRecord, DeviceRecord, END_GENERATIONS, EVENT_NS,
    EVICTIONS, FILE_CALLS, FORMAT_VERSION, FileRecord, GroupRecord, KernelRecord, MANIFEST, Manifest,
    MappedAdvice, PROCESSES, ProcessRecord, REGIONS, RESIDENT, ROOM_STEP, ROOMS, Recorded, SAMPLES, Sample,
    SourceRecord, Sums,
};
#[cfg(target_os = "linux")]
pub use recorder::{Options, Progress, Target, record};
#[cfg(target_os = "linux")]
pub use root::Root;
#[cfg(target_os = "linux")]
pub use watch::Resident;
#[cfg(target_os = "linux")]
pub use ways::{Way, events, ways};
