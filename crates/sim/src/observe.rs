//! The observer of a run: accesses, page-cache events, stories, tracepoints and samples that a caller may watch.

use std::ops::{ControlFlow, Range};

use pageout_engine::{Nanos, PageCacheEvent, Served, StoryEvent};

use crate::machine::{Machine, TraceRecord};

/// Watches a run. Tasks are named by their position in the order they were added; accesses by their number within the task,
/// from 0 and across loops.
pub trait Observer {
    /// Accesses `range` of `task` were plain hits.
    fn hits(&mut self, task: usize, range: Range<u64>) {
        let _ = (task, range);
    }

    /// Access `index` of `task` was not served by a run of plain hits (but may be a hit by the time it was tried alone).
    fn access(&mut self, task: usize, index: u64, served: &Served) {
        let _ = (task, index, served);
    }

    /// A mark before access `index` of `task` was reached: statistics were flushed, or a kernel file was read, as it asks for.
    fn marked(&mut self, task: usize, index: u64, machine: &Machine) {
        let _ = (task, index, machine);
    }

    /// A page entered or left a page cache; after [`crate::Machine::record_page_cache_events`] only. The effects of an access are reported before the
    /// access itself.
    fn page_cache(&mut self, now: Nanos, event: PageCacheEvent) {
        let _ = (now, event);
    }

    /// The engine has decided something; after [`crate::Machine::tell_story`] only, and for its subjects. The effects of an access are reported
    /// before the access itself.
    fn story(&mut self, event: &StoryEvent) {
        let _ = event;
    }

    /// A tracepoint, in the order of time; after [`crate::Machine::tell_tracepoints`] only.
    fn tracepoint(&mut self, record: &TraceRecord, machine: &Machine) {
        let _ = (record, machine);
    }

    /// A sample is due; after [`crate::Machine::sample_every`] only. The machine is in its state after the last event before `at`: reading it changes
    /// nothing in the run.
    fn sample(&mut self, at: Nanos, machine: &Machine) {
        let _ = (at, machine);
    }

    /// Called every [`PROGRESS_EVERY`] accesses or so, and every 65,536 events where there are none; `Break` ends the run at the next step.
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }
}

/// Accesses between two calls of [`Observer::progress`]: some milliseconds of hits, well under a second of misses.
pub const PROGRESS_EVERY: u64 = 1 << 18;

/// Events between two calls of [`Observer::progress`], at most.
pub(crate) const PROGRESS_EVERY_EVENTS: u64 = 1 << 16;

/// The progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Accesses completed, all tasks together.
    pub accesses: u64,
    /// The virtual time by now.
    pub now: Nanos,
}

/// Watches nothing.
impl Observer for () {}
