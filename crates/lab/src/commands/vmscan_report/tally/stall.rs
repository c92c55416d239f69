//! The longest calls of direct reclaim, and what the trace says about why they took long.

use std::cmp::Reverse;

use super::off_cpu::OffCpu;
use super::process::Call;
use super::work::{Class, Work};
use crate::commands::vmscan_report::ftrace::REASONS;
use crate::print::figures;

/// Calls that are remembered one by one.
const LONGEST: usize = 200;

/// A call in which a task was stalled, or a time that kswapd was awake.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands::vmscan_report) struct Stall {
    /// Which of the processes.
    pub(in crate::commands::vmscan_report) process: usize,
    pub(in crate::commands::vmscan_report) class: Class,
    pub(in crate::commands::vmscan_report) order: u8,
    pub(in crate::commands::vmscan_report) begin_ns: u64,
    pub(in crate::commands::vmscan_report) lasted_ns: u64,
    /// Whether the stall ended; otherwise the trace did.
    pub(in crate::commands::vmscan_report) is_over: bool,
    pub(in crate::commands::vmscan_report) work: Work,
    /// Pages freed, by the batches, or by the call's end where no batches are told.
    pub(in crate::commands::vmscan_report) reclaimed: u64,
    /// Whether the trace tells what calls did.
    pub(in crate::commands::vmscan_report) tells_work: bool,
    /// Time in shrinkers.
    pub(in crate::commands::vmscan_report) slab_ns: u64,
    /// Time off the CPU, where the scheduler's events tell it.
    pub(in crate::commands::vmscan_report) off_cpu: Option<OffCpu>,
}

/// Whether a call was on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands::vmscan_report) enum Absence {
    /// So long it surely was not.
    Surely(OffCpu),
    /// For so long nothing that it did accounts.
    Probably(u64),
}

/// What a page that reclaim looks at takes at most, in nanoseconds: ten times what it takes on a slow machine.
const PAGE_NS_MAX: u64 = 20_000;

/// Less than this is no absence: interrupts take as much.
const ABSENCE_NS_MIN: u64 = 2_000_000;

impl Stall {
    pub(super) fn of(
        process: usize,
        class: Class,
        (begin_ns, end_ns): (u64, u64),
        is_over: bool,
        call: Call,
    ) -> Stall {
        let told = call.reclaimed.unwrap_or(0);
        Stall {
            process,
            class,
            order: call.order,
            begin_ns,
            lasted_ns: end_ns.saturating_sub(begin_ns),
            is_over,
            work: call.work,
            reclaimed: if call.work.batches > 0 { call.work.reclaimed.total() } else { told },
            tells_work: true,
            slab_ns: call.slab_ns,
            off_cpu: None,
        }
    }

    /// A time that kswapd was awake.
    pub(super) fn awake(process: usize, order: u8, (begin_ns, end_ns): (u64, u64), is_over: bool) -> Stall {
        Stall {
            process,
            class: Class::Kswapd,
            order,
            begin_ns,
            lasted_ns: end_ns.saturating_sub(begin_ns),
            is_over,
            work: Work::default(),
            reclaimed: 0,
            tells_work: true,
            slab_ns: 0,
            off_cpu: None,
        }
    }

    /// The longest first; then the earliest.
    fn rank(&self) -> impl Ord + use<> {
        (Reverse(self.lasted_ns), self.begin_ns, self.process)
    }

    /// How long it was off the CPU, if that is most of it or more than a moment: by the scheduler's events, or else because nothing
    /// that it did can have taken so long. Of a call that wrote pages only the scheduler tells, since it may have waited for a disk.
    pub(in crate::commands::vmscan_report) fn absence(&self) -> Option<Absence> {
        if let Some(off_cpu) = self.off_cpu {
            return (off_cpu.total_ns() >= ABSENCE_NS_MIN.min(self.lasted_ns / 2).max(1))
                .then_some(Absence::Surely(off_cpu));
        }
        let is_told =
            self.tells_work && self.is_over && self.work.written() == 0 && self.class != Class::Kswapd;
        let busy_ns = (self.work.scanned.total().max(self.reclaimed).saturating_mul(PAGE_NS_MAX))
            .saturating_add(self.work.throttled_us.saturating_mul(1000))
            .saturating_add(self.slab_ns);
        let idle_ns = self.lasted_ns.saturating_sub(busy_ns);
        (is_told && idle_ns >= ABSENCE_NS_MIN.max(self.lasted_ns / 2)).then_some(Absence::Probably(idle_ns))
    }

    /// What took the time, as far as the events say.
    pub(in crate::commands::vmscan_report) fn why(&self) -> String {
        let work = &self.work;
        let mut parts = Vec::new();
        if work.throttled_us > 0 {
            let mut reasons: Vec<&str> = Vec::new();
            for (name, time) in REASONS.iter().zip(work.throttled_for_us) {
                if time > 0 {
                    reasons.push(name);
                }
            }
            if reasons.is_empty() {
                reasons.push("for a reason that is not known here");
            }
            parts.push(format!(
                "throttled {} ({})",
                figures::time(work.throttled_us.saturating_mul(1000)),
                reasons.join(", ")
            ));
        }
        if work.written_sync.total() > 0 {
            parts.push(format!("wrote {} and waited", pages(work.written_sync.total())));
        }
        if work.written_async.total() > 0 {
            parts.push(format!("wrote {}", pages(work.written_async.total())));
        }
        match self.absence() {
            Some(Absence::Surely(OffCpu { asleep_ns, waiting_ns })) => {
                let told = [(asleep_ns, "asleep"), (waiting_ns, "waiting for a CPU")];
                let told = told.into_iter().filter(|(ns, _)| *ns > 0);
                let told: Vec<String> =
                    told.map(|(ns, what)| format!("{} {what}", figures::time(ns))).collect();
                parts.push(format!("off the CPU: {}", told.join(", ")));
            }
            Some(Absence::Probably(ns)) => parts.push(format!("{} probably off the CPU", figures::time(ns))),
            None => {}
        }
        if self.slab_ns >= ABSENCE_NS_MIN.min(self.lasted_ns / 2).max(1) {
            parts.push(format!("{} in shrinkers", figures::time(self.slab_ns)));
        }
        let scanned = work.scanned.total();
        if scanned == 0 && self.reclaimed > 0 {
            parts.push(format!("freed {}", pages(self.reclaimed)));
        }
        if scanned == 0 && (parts.is_empty() || !self.tells_work) {
            parts.push("no event tells what it did".to_string());
        }
        if scanned > 0 {
            let kept = [
                (work.activated, "activated"),
                (work.referenced, "in use"),
                (work.dirty, "dirty"),
                (work.writeback, "under writeback"),
                (work.unmap_failed, "still mapped"),
            ];
            let mut kept: Vec<(u64, &str)> = kept.into_iter().filter(|(pages, _)| *pages > 0).collect();
            kept.sort_by_key(|(pages, _)| Reverse(*pages));
            let mut text = format!("freed {} of {}", figures::count(self.reclaimed), figures::count(scanned));
            if let Some(priority) = work.priority.filter(|&priority| priority < 12) {
                text += &format!(", priority {priority}");
            }
            for (pages, what) in kept.iter().take(2) {
                text += &format!(", {} {what}", figures::count(*pages));
            }
            parts.push(text);
        }
        parts.join("; ")
    }
}

fn pages(count: u64) -> String {
    if count == 1 { "1 page".to_string() } else { format!("{} pages", figures::count(count)) }
}

/// The longest of all calls.
#[derive(Debug, Default)]
pub(in crate::commands::vmscan_report) struct Stalls(Vec<Stall>);

impl Stalls {
    pub(super) fn add(&mut self, stall: Stall) {
        self.0.push(stall);
        if self.0.len() >= 2 * LONGEST {
            self.keep_longest();
        }
    }

    fn keep_longest(&mut self) {
        self.0.sort_by_key(Stall::rank);
        self.0.truncate(LONGEST);
    }

    /// The longest, in order.
    pub(super) fn longest(&mut self) -> Vec<Stall> {
        self.keep_longest();
        std::mem::take(&mut self.0)
    }
}
