//! Where the time of one call went, in words.

use std::cmp::Reverse;

use pageout_kerneltext::ftrace::REASONS;
use pageout_kerneltext::vmscan::{OffCpu, OffCpuTime, Stall};

use crate::figures;

/// Returns the causes of the time of a call, as far as the events show them.
pub fn why(stall: &Stall) -> String {
    let work = &stall.work;
    let mut parts = Vec::new();
    if work.throttled_us > 0 {
        let mut reasons: Vec<&str> = Vec::new();
        for (name, time) in REASONS.iter().zip(work.throttled_for_us) {
            if time > 0 {
                reasons.push(name);
            }
        }
        if reasons.is_empty() {
            reasons.push("for an unknown reason");
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
    match stall.off_cpu_time() {
        Some(OffCpuTime::Measured(OffCpu { asleep_ns, waiting_ns })) => {
            let told = [(asleep_ns, "asleep"), (waiting_ns, "waiting for a CPU")];
            let told = told.into_iter().filter(|(ns, _)| *ns > 0);
            let told: Vec<String> = told.map(|(ns, what)| format!("{} {what}", figures::time(ns))).collect();
            parts.push(format!("off the CPU: {}", told.join(", ")));
        }
        Some(OffCpuTime::Inferred(ns)) => parts.push(format!("{} probably off the CPU", figures::time(ns))),
        None => {}
    }
    if stall.slab_ns >= Stall::OFF_CPU_NS_MIN.min(stall.lasted_ns / 2).max(1) {
        parts.push(format!("{} in shrinkers", figures::time(stall.slab_ns)));
    }
    let scanned = work.scanned.total();
    if scanned == 0 && stall.reclaimed > 0 {
        parts.push(format!("freed {}", pages(stall.reclaimed)));
    }
    if scanned == 0 && (parts.is_empty() || !stall.has_work_events) {
        parts.push("no event shows its work".to_string());
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
        let mut text = format!("freed {} of {}", figures::count(stall.reclaimed), figures::count(scanned));
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

fn pages(count: u64) -> String {
    if count == 1 { "1 page".to_string() } else { format!("{} pages", figures::count(count)) }
}
