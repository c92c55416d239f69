//! Errors of the simulator: a machine that can't be built, and a run that ends before its time.

use pageout_engine::{AccessError, FileError, GuestFault, Nanos};
use pageout_workload::TraceError;

use crate::device::DeviceError;
use crate::pace::PaceError;

/// The reason why a machine cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A device's parameters make no sense.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A file or swap area is put on a missing device.
    #[error("{what} is on device {device}, but there are {devices}")]
    NoSuchDevice {
        /// The file or swap area.
        what: String,
        /// Position of the device.
        device: usize,
        /// The number of devices of the machine.
        devices: usize,
    },
    /// A task's memcg does not exist.
    #[error("task `{task}`: there is no memcg {path}")]
    NoSuchMemcg {
        /// The name of the task.
        task: String,
        /// The path it names.
        path: String,
    },
    /// A task's timetable makes no sense.
    #[error("task `{task}`: {source}")]
    Pace {
        /// The name of the task.
        task: String,
        /// What is wrong with the pace.
        source: PaceError,
    },
    /// The condition of an event is about a figure that its file does not have.
    #[error(transparent)]
    Condition(#[from] pageout_engine::FileError),
    /// A recurring event that would never let time pass.
    #[error("an event on {path} recurs every 0 ns")]
    ZeroPeriod {
        /// The path of the file.
        path: String,
    },
}

/// The reason why a run ended early. The figures up to then are in [`super::Machine::report`].
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An access failed; the source describes the failure.
    #[error("task `{task}` at access {index}, {at} into the run: {source}")]
    Access {
        /// The name of the task.
        task: String,
        /// Number of the access within the task.
        index: u64,
        /// When it happened, in virtual time.
        at: Nanos,
        /// What is wrong with the access.
        source: AccessError,
    },
    /// The device has failed to save what a task wanted to be sure of.
    #[error("task `{task}`, {at} into the run: fsync: a write of the file has failed")]
    Sync {
        /// The name of the task.
        task: String,
        /// When it happened, in virtual time.
        at: Nanos,
    },
    /// A task's stream of accesses failed.
    #[error("task `{task}` at access {index}: {source}")]
    Stream {
        /// The name of the task.
        task: String,
        /// Number of the first access that could not be made.
        index: u64,
        /// What is wrong with the trace.
        source: TraceError,
    },
    /// A kernel file could not be read or written.
    #[error("{at} into the run: {source}")]
    File {
        /// When it happened, in virtual time.
        at: Nanos,
        /// Why the kernel file refused.
        source: FileError,
    },
    /// A kernel file is gone with its cgroup.
    #[error("{at} into the run: {path}: its cgroup was removed before (an event with `every` ends with it)")]
    Removed {
        /// When it happened, in virtual time.
        at: Nanos,
        /// The path of the file.
        path: String,
    },
    /// A policy that keeps a group's pages has broken its contract.
    #[error("{at} into the run: {source}")]
    Guest {
        /// When it was found out, in virtual time.
        at: Nanos,
        /// Which policy, and how.
        source: GuestFault,
    },
    /// A run without a clock has met what only a timed run has a meaning for.
    #[error("found {found}, expected {expected}: without a clock they have no meaning")]
    NeedsClock {
        /// What it has met.
        found: String,
        /// What a run without a clock can have.
        expected: &'static str,
    },
    /// Tasks sleep and nothing is left that could wake them: a bug in the engine or the machine.
    #[error("at {at} no event is left, but {} not ended", tasks.join(", "))]
    Stalled {
        /// When it happened, in virtual time.
        at: Nanos,
        /// The tasks that have not ended.
        tasks: Vec<String>,
    },
}
