//! The simulated machine: virtual time, CPUs, devices and tasks around the engine, deterministic to the last byte.
//!
//! ```text
//!   scenario ──▶ machine ──▶ report          a machine pops events and calls the engine;
//!                 │    │                     it acts and decides nothing
//!            tasks     devices
//! ```
//! In reading order:
#![forbid(unsafe_code)]

/// The names of a table's rows, as a table of their own.
macro_rules! names_of {
    ($rows:expr) => {{
        let mut names = [""; $rows.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = $rows[at].name;
            at += 1;
        }
        names
    }};
}
use names_of;

pub mod scenario; // what is to be simulated, as plain data
pub mod device; // when a block transfer is done, and whether it fails
pub mod memory; // how fast the memory of a node is
pub mod hints; // hardware that tells of accesses to it
pub mod cost; // what each unit of the engine's work costs in CPU time
pub mod latency; // histograms of how long things took

mod account; // what the CPU time of the kernel's work went to
mod access_time; // how long accesses took, and why
mod event; // what happens next, and when
mod runner; // the clock of whatever calls the engine in steps, and where its time goes
mod reclaim_time; // how long a task is in reclaim
mod pace; // when an access starts: at once, by a timetable, or as it arrives
mod turns; // tasks that go through one sequence of accesses together
mod task; // what a task accesses, at what price
mod commits; // files that it syncs or truncates every so many accesses
mod calls; // how much a read(2) or write(2) asks for
mod sched; // who runs where
mod psi; // for want of what tasks make no headway

mod machine; // all of the above together: the event loop
mod observe; // what a caller may watch while it runs
mod report; // what a run was like
mod lone_reader; // one task alone where nothing takes time, for who compares

pub use access_time::{AccessReport, AccessTimes, Cause, Slowest};
pub use calls::Calls;
pub use lone_reader::{LoneReader, LoneReaderError};
pub use machine::{
    BuildError, Machine, MachineSpec, PRESSURE_FILES, Repeat, RunError, TimedAction, TimedEvent, TraceRecord,
    Value, When,
};
pub use observe::{Observer, PROGRESS_EVERY, Progress};
pub use pace::{Pace, PaceError};
pub use psi::Resource;
pub use report::{
    Convergence, CpuReport, Delays, Ended, FileRead, FileWrite, Kill, NodeReport, Pressure, RemovedGroup,
    Report, Residency, Spent, Stall, TaskReport, Thinned, ThreadReport, TierReport, TrackerTime, Watched,
};
pub use sched::SchedRules;
pub use task::{BlockCall, StreamSource, TaskSpec};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
