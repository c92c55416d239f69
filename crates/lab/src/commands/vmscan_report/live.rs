//! The sums of `vmscan-report` of a run while it runs: its tracepoints, without a text in between.

use pageout_engine::{LruType, ThrottleReason, Tracepoint};
use pageout_kerneltext::ftrace::{CallKind, Event, Isolated, Lru, Record, Shrunk, Task, Totals, WriteKind};
use pageout_kerneltext::vmscan::{Options, Tally};
use pageout_sim::{Machine, Observer, TraceRecord};

use pageout_study::vmscan_report::story::story;
use pageout_study::vmscan_report::{Reading, Times};

use super::page::pictures;
use crate::report::Part;
use crate::tracing::Tasks;

/// An observer of a run.
pub(in crate::commands) struct Listener {
    tally: Tally,
    tasks: Tasks,
}

/// What it has heard.
pub(in crate::commands) struct Heard(Reading);

impl Listener {
    pub(in crate::commands) fn new() -> Listener {
        Listener {
            tally: Tally::new(Options { has_all_events: true, ..Options::default() }),
            tasks: Tasks::default(),
        }
    }

    /// The run has ended.
    pub(in crate::commands) fn finish(self, end_ns: u64) -> Heard {
        let totals = Totals { span_ns: Some((0, end_ns)), ..Totals::default() };
        let sums = self.tally.finish(&totals);
        let outside = "on request (memory.reclaim)";
        Heard(Reading {
            name: "run".to_string(),
            totals,
            sums,
            times: Times::default(),
            faults: Vec::new(),
            outside,
            is_recorded: false,
        })
    }
}

impl Observer for Listener {
    fn tracepoint(&mut self, record: &TraceRecord, machine: &Machine) {
        let Some(event) = event(&record.event) else { return };
        let task = self.tasks.get(record.task, machine);
        let is_call = matches!(event, Event::Begin { .. } | Event::End { .. });
        // A call that only returns pages does not wait, so it is not a stall.
        if is_call && record.task.is_some_and(|task| machine.is_control_task(task)) {
            return;
        }
        let task = Task::new(task.comm.as_bytes(), task.pid);
        self.tally.add(Record { time_ns: record.at.0, task, event });
    }
}

impl Heard {
    /// Returns true if no task reclaimed.
    pub(in crate::commands) fn is_silent(&self) -> bool {
        self.0.sums.processes.is_empty()
    }

    /// Returns sentences about the stalled tasks, with times and reasons.
    pub(in crate::commands) fn story(&self) -> Vec<String> {
        story(&self.0)
    }

    /// Returns charts of waits, of reclaim over time by task, and of the duration of calls.
    pub(in crate::commands) fn pictures(&self) -> Vec<Part> {
        pictures(&self.0, "")
    }
}

/// The event as a reader of the text would get it, if it is about reclaim.
fn event(told: &Tracepoint) -> Option<Event> {
    let lru = |kind: LruType| match kind {
        LruType::Anon => Lru::Anon,
        LruType::File => Lru::File,
    };
    Some(match *told {
        Tracepoint::KswapdSleep => Event::KswapdSleep,
        Tracepoint::KswapdWake { order } => Event::KswapdWake { order },
        Tracepoint::WakeupKswapd { order, .. } => Event::WakeupKswapd { order },
        Tracepoint::DirectReclaimBegin { order, .. } => Event::Begin { kind: CallKind::Direct, order },
        Tracepoint::DirectReclaimEnd { nr_reclaimed } => {
            Event::End { kind: CallKind::Direct, reclaimed: nr_reclaimed }
        }
        Tracepoint::MemcgReclaimBegin { order, .. } => Event::Begin { kind: CallKind::Memcg, order },
        Tracepoint::MemcgReclaimEnd { nr_reclaimed } => {
            Event::End { kind: CallKind::Memcg, reclaimed: nr_reclaimed }
        }
        Tracepoint::NodeReclaimBegin { order, .. } => Event::Begin { kind: CallKind::Node, order },
        Tracepoint::NodeReclaimEnd { nr_reclaimed } => {
            Event::End { kind: CallKind::Node, reclaimed: nr_reclaimed }
        }
        Tracepoint::SoftLimitReclaimBegin { order, .. } => Event::Begin { kind: CallKind::SoftLimit, order },
        Tracepoint::SoftLimitReclaimEnd { nr_reclaimed } => {
            Event::End { kind: CallKind::SoftLimit, reclaimed: nr_reclaimed }
        }
        Tracepoint::LruIsolate { nr_scanned, nr_taken, kind, is_active, .. } => Event::Isolate(Isolated {
            scanned: nr_scanned,
            taken: Some(nr_taken),
            is_active,
            lru: Some(lru(kind)),
            contig_dirty: 0,
        }),
        Tracepoint::LruShrinkInactive { kind, nr_scanned, nr_reclaimed, kept, priority, .. } => {
            Event::ShrinkInactive(Shrunk {
                scanned: nr_scanned,
                reclaimed: nr_reclaimed,
                lru: Some(lru(kind)),
                dirty: kept.nr_dirty,
                writeback: kept.nr_writeback,
                immediate: kept.nr_immediate,
                activated: kept.nr_activate.iter().sum(),
                referenced: kept.nr_ref_keep,
                unmap_failed: kept.nr_unmap_fail,
                known: u8::MAX,
                priority: Some(priority),
            })
        }
        Tracepoint::LruShrinkActive { .. } => Event::Uncounted,
        Tracepoint::WriteFolio { kind, .. } => {
            Event::Write(WriteKind { is_sync: false, lru: Some(lru(kind)) })
        }
        Tracepoint::Throttled { delayed, reason, .. } => {
            let reason = match reason {
                ThrottleReason::Writeback => 0,
                ThrottleReason::Isolated => 1,
                ThrottleReason::NoProgress => 2,
                ThrottleReason::Congested => 3,
            };
            Event::Throttled { delayed_us: delayed.0 / 1000, reasons: 1 << reason }
        }
        _ => return None,
    })
}
