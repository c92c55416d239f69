//! Sums over all tasks of a trace. Each figure is known only if the trace has the kinds of events that it is made from.

use super::coverage::{Coverage, EventKind, NotRecorded};
use super::durations::Durations;
use super::off_cpu::OffCpu;
use super::process::Process;
use super::refaults::Refaults;
use super::stall::Stall;
use super::timeline::Timeline;
use super::work::{Reclaimer, Work};
use crate::ftrace::CallKind;

/// Sums of a whole trace.
pub struct Sums {
    /// Tasks by name, then pid.
    pub processes: Vec<Process>,
    /// The longest reclaim calls, the longest first; at most 200.
    pub stalls: Vec<Stall>,
    /// The longest times that kswapd was awake; at most 200.
    pub awake: Vec<Stall>,
    pub(super) latencies: [Durations; Reclaimer::ALL.len()],
    /// Work and time of each reclaimer over time.
    pub timeline: Timeline,
    /// Time off the CPU in calls, by [`Reclaimer`], if the trace has the scheduler's events.
    pub(super) off_cpu: Option<[OffCpu; Reclaimer::ALL.len()]>,
    /// True if the trace has events of work (isolation, batches, writes, throttling), not only of calls.
    pub has_work_events: bool,
    /// Kinds of events that the trace has.
    pub coverage: Coverage,
    /// Pages of files that were reclaimed and came back.
    pub refaults: Refaults,
    /// Time of the last event, in nanoseconds of the trace's clock.
    pub end_ns: u64,
    /// Calls that [`Process::items`] does not list, as there were more than `Options::items_max`.
    pub items_left_out: u64,
}

/// Calls of one kind, of all tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllCalls {
    /// Pages freed, by the end events of calls whose begin is in the trace.
    pub reclaimed: u64,
    /// Pages freed, by the end events of calls whose begin is not in the trace.
    pub reclaimed_without_begin: u64,
    /// Time from begin to end of all calls that have both.
    pub stalled_ns: u64,
}

/// All kswapd threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllKswapds {
    /// Number of threads.
    pub threads: u64,
    /// Times that a thread was woken from sleep.
    pub wakes: u64,
    /// Times that a thread was asked for more while awake.
    pub rewakes: u64,
    /// Time awake of all threads together, from wake to sleep.
    pub awake_ns: u64,
}

impl Sums {
    /// Durations of calls by one reclaimer; for kswapd, times awake.
    pub fn latency(&self, reclaimer: Reclaimer) -> &Durations {
        &self.latencies[reclaimer as usize]
    }

    /// Time off the CPU in calls by one reclaimer; `None` without the scheduler's events.
    pub fn off_cpu(&self, reclaimer: Reclaimer) -> Option<OffCpu> {
        self.off_cpu.map(|off_cpu| off_cpu[reclaimer as usize])
    }

    /// Work of all tasks as one reclaimer.
    pub fn work(&self, reclaimer: Reclaimer) -> Work {
        let mut sum = Work::default();
        self.processes.iter().for_each(|process| sum.add(process.work_by(reclaimer)));
        sum
    }

    /// `value`, if the trace has events of all these kinds. Errors: the first kind that it lacks.
    fn if_recorded<const N: usize>(&self, kinds: [EventKind; N], value: u64) -> Result<u64, NotRecorded> {
        kinds.iter().try_for_each(|kind| self.coverage.count_of(kind).map(|_| ()))?;
        Ok(value)
    }

    /// Number of calls of one kind: begin events, or end events if no begin was recorded. Errors: neither was recorded.
    pub fn calls_made(&self, kind: CallKind) -> Result<u64, NotRecorded> {
        let made = |process: &Process| self.calls_of(process, kind);
        let need = match self.coverage.has_only_ends(kind) {
            true => EventKind::Ends(kind),
            false => EventKind::Begins(kind),
        };
        self.if_recorded([need], self.processes.iter().map(made).sum())
    }

    /// Calls of one kind that a task made, counted as by [`Sums::calls_made`].
    pub fn calls_of(&self, process: &Process, kind: CallKind) -> u64 {
        let calls = process.calls(kind);
        if self.coverage.has_only_ends(kind) { calls.without_begin } else { calls.begun.total() }
    }

    /// Pages scanned, of `work` done by `reclaimer`. Errors: the trace lacks isolations, or begins of such calls.
    pub fn scanned(&self, reclaimer: Reclaimer, work: &Work) -> Result<u64, NotRecorded> {
        self.by(reclaimer, EventKind::Scans, work.scanned.total())
    }

    /// `pages` written by `reclaimer`, if that is known. Errors: the trace lacks writes, or begins of such calls.
    pub fn written(&self, reclaimer: Reclaimer, pages: u64) -> Result<u64, NotRecorded> {
        self.by(reclaimer, EventKind::Writes, pages)
    }

    /// A count of one reclaimer: what was done in calls is known only where begin events were recorded.
    fn by(&self, reclaimer: Reclaimer, need: EventKind, count: u64) -> Result<u64, NotRecorded> {
        match CallKind::ALL.into_iter().find(|kind| Reclaimer::from(*kind) == reclaimer) {
            Some(kind) => self.if_recorded([EventKind::Begins(kind), need], count),
            None => self.if_recorded([need], count),
        }
    }

    /// Pages freed by `work`, from batch events. Errors: the trace has none.
    pub fn freed_in_batches(&self, work: &Work) -> Result<u64, NotRecorded> {
        self.if_recorded([EventKind::Batches], work.reclaimed.total())
    }

    /// Pages freed by all calls of one kind. Errors: neither batches nor ends of calls were recorded.
    pub fn freed(&self, kind: CallKind) -> Result<u64, NotRecorded> {
        let (work, calls) = (self.work(kind.into()), self.calls(kind));
        self.freed_by(kind, &work, calls.reclaimed, calls.reclaimed_without_begin)
    }

    /// Pages freed by a task's calls of one kind. Errors: as of [`Sums::freed`].
    pub fn freed_of(&self, process: &Process, kind: CallKind) -> Result<u64, NotRecorded> {
        let calls = process.calls(kind);
        self.freed_by(kind, process.work_by(kind.into()), calls.reclaimed, calls.reclaimed_without_begin)
    }

    /// Counted from batches, or from the ends of calls if there are no batches.
    fn freed_by(
        &self,
        kind: CallKind,
        work: &Work,
        reclaimed: u64,
        without_begin: u64,
    ) -> Result<u64, NotRecorded> {
        let by_batches = [EventKind::Begins(kind), EventKind::Batches];
        if work.batches > 0 {
            return self.if_recorded(by_batches, work.reclaimed.total());
        }
        let by_ends = if self.coverage.has_only_ends(kind) { without_begin } else { reclaimed };
        self.if_recorded([EventKind::Ends(kind)], by_ends).or_else(|_| self.if_recorded(by_batches, 0))
    }

    /// Time in calls of one kind, in nanoseconds. Errors: begins or ends were not recorded.
    pub fn stalled_ns(&self, kind: CallKind) -> Result<u64, NotRecorded> {
        self.if_recorded([EventKind::Begins(kind), EventKind::Ends(kind)], self.calls(kind).stalled_ns)
    }

    /// Calls of one kind, of all tasks.
    pub fn calls(&self, kind: CallKind) -> AllCalls {
        let mut all = AllCalls::default();
        for process in &self.processes {
            let calls = process.calls(kind);
            all.reclaimed += calls.reclaimed;
            all.reclaimed_without_begin += calls.reclaimed_without_begin;
            all.stalled_ns = all.stalled_ns.saturating_add(calls.latency.total_ns());
        }
        all
    }

    /// All kswapd threads together.
    pub fn kswapd(&self) -> AllKswapds {
        let mut all = AllKswapds::default();
        for kswapd in self.processes.iter().filter_map(|process| process.kswapd.as_deref()) {
            all.threads += 1;
            all.wakes += kswapd.wakes.total();
            all.rewakes += kswapd.rewakes.total();
            all.awake_ns = all.awake_ns.saturating_add(kswapd.awake.total_ns());
        }
        all
    }

    /// Times that tasks asked for kswapd.
    pub fn wake_requests(&self) -> u64 {
        self.processes.iter().map(|process| process.wake_requests.total()).sum()
    }
}
