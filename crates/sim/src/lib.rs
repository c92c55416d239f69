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

pub mod scenario; // the simulated machine and its tasks, as data
pub mod device; // the end of a block transfer, and failures
pub mod memory; // the speed of the memory of a node
pub mod hints; // hardware that tells of accesses to it
pub mod cost; // CPU time per unit of engine work
pub mod latency; // histograms of durations

mod account; // uses of the CPU time of kernel work
mod access_time; // durations of accesses, and their causes
mod event; // the next event and its time
mod runner; // the clock and time of a caller of the engine
mod reclaim_time; // the time of a task in reclaim
mod pace; // when an access starts: at once, by a timetable, or as it arrives
mod turns; // tasks that go through one sequence of accesses together
mod task; // accesses of a task, and their costs
mod commits; // files that it syncs or truncates every so many accesses
mod calls; // sizes of read(2) and write(2) calls
mod sched; // the assignment of tasks to CPUs
mod psi; // time without progress, by resource

mod machine; // all of the above together: the event loop
mod observe; // callbacks during a run
mod report; // the figures of a run
mod lone_reader; // one task without time, for comparisons

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
    Convergence, CpuReport, DamonMap, DamonWindow, Delays, Ended, FileRead, FileWrite, Kill, NodeReport,
    Pressure, RemovedGroup, Report, Residency, Spent, Stall, TaskReport, Thinned, ThreadReport, TierReport,
    TrackerTime, Watched,
};
pub use sched::SchedRules;
pub use task::{BlockCall, StreamSource, TaskSpec};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
