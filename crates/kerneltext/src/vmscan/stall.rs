//! The longest reclaim calls, and where their time went as far as events show.

use std::cmp::Reverse;

use super::off_cpu::OffCpu;
use super::process::Call;
use super::work::{Reclaimer, Work};

/// Calls that are kept one by one.
const LONGEST: usize = 200;

/// A call in which a task was stalled, or a time that kswapd was awake.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// Index of the task in `Sums::processes`.
    pub process: usize,
    /// Kind of the call.
    pub reclaimer: Reclaimer,
    /// For an allocation of 2^order pages.
    pub order: u8,
    /// Begin of the call, in nanoseconds of the trace's clock.
    pub begin_ns: u64,
    /// Duration, in nanoseconds.
    pub lasted_ns: u64,
    /// True if the call ended within the trace.
    pub is_over: bool,
    /// Work of the call.
    pub work: Work,
    /// Pages freed, by batch events, or by the end event if there are no batches.
    pub reclaimed: u64,
    /// True if the trace has events of work, not only of calls.
    pub has_work_events: bool,
    /// Time in shrinkers, in nanoseconds.
    pub slab_ns: u64,
    /// Time off the CPU; `None` without the scheduler's events.
    pub off_cpu: Option<OffCpu>,
}

/// Time of a call off the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffCpuTime {
    /// By the scheduler's events.
    Measured(OffCpu),
    /// Nanoseconds that the work of the call does not explain.
    Inferred(u64),
}

/// Upper bound for scanning one page, in nanoseconds: ten times what it takes on a slow machine.
const PAGE_NS_MAX: u64 = 20_000;

impl Stall {
    /// A shorter time off the CPU is not reported: interrupts take as long.
    pub const OFF_CPU_NS_MIN: u64 = 2_000_000;

    pub(super) fn of(
        process: usize,
        reclaimer: Reclaimer,
        (begin_ns, end_ns): (u64, u64),
        is_over: bool,
        call: Call,
    ) -> Stall {
        let by_end = call.reclaimed.unwrap_or(0);
        Stall {
            process,
            reclaimer,
            order: call.order,
            begin_ns,
            lasted_ns: end_ns.saturating_sub(begin_ns),
            is_over,
            work: call.work,
            reclaimed: if call.work.batches > 0 { call.work.reclaimed.total() } else { by_end },
            has_work_events: true,
            slab_ns: call.slab_ns,
            off_cpu: None,
        }
    }

    /// A time that kswapd was awake.
    pub(super) fn awake(process: usize, order: u8, (begin_ns, end_ns): (u64, u64), is_over: bool) -> Stall {
        Stall {
            process,
            reclaimer: Reclaimer::Kswapd,
            order,
            begin_ns,
            lasted_ns: end_ns.saturating_sub(begin_ns),
            is_over,
            work: Work::default(),
            reclaimed: 0,
            has_work_events: true,
            slab_ns: 0,
            off_cpu: None,
        }
    }

    /// The longest first; then the earliest.
    fn rank(&self) -> impl Ord + use<> {
        (Reverse(self.lasted_ns), self.begin_ns, self.process)
    }

    /// Time off the CPU, if it is most of the call or at least 2 ms. Without the scheduler's events it is inferred: the work of the call
    /// can't have taken so long. It is not inferred for a call that wrote pages, which may have waited for a disk.
    pub fn off_cpu_time(&self) -> Option<OffCpuTime> {
        if let Some(off_cpu) = self.off_cpu {
            return (off_cpu.total_ns() >= Stall::OFF_CPU_NS_MIN.min(self.lasted_ns / 2).max(1))
                .then_some(OffCpuTime::Measured(off_cpu));
        }
        let is_complete = self.has_work_events
            && self.is_over
            && self.work.written() == 0
            && self.reclaimer != Reclaimer::Kswapd;
        let busy_ns = (self.work.scanned.total().max(self.reclaimed).saturating_mul(PAGE_NS_MAX))
            .saturating_add(self.work.throttled_us.saturating_mul(1000))
            .saturating_add(self.slab_ns);
        let idle_ns = self.lasted_ns.saturating_sub(busy_ns);
        (is_complete && idle_ns >= Stall::OFF_CPU_NS_MIN.max(self.lasted_ns / 2))
            .then_some(OffCpuTime::Inferred(idle_ns))
    }
}

/// The longest of all calls.
#[derive(Debug, Default)]
pub(super) struct Stalls(Vec<Stall>);

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

    /// The longest first.
    pub(super) fn longest(&mut self) -> Vec<Stall> {
        self.keep_longest();
        std::mem::take(&mut self.0)
    }
}
