//! The longest calls, and what the trace says about why they took long.

use std::cmp::Reverse;

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
    /// It ended; otherwise the trace did.
    pub(in crate::commands::vmscan_report) is_over: bool,
    pub(in crate::commands::vmscan_report) work: Work,
    /// Pages freed, by the batches, or by the call's end where no batches are told.
    pub(in crate::commands::vmscan_report) reclaimed: u64,
}

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
        }
    }

    /// The longest first; then the earliest.
    fn rank(&self) -> impl Ord + use<> {
        (Reverse(self.lasted_ns), self.begin_ns, self.process)
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
        let scanned = work.scanned.total();
        if scanned == 0 && parts.is_empty() {
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
