//! Scans for hint faults: the engine marks words of regions whose pages are in slow memory. [live-3 5]
//!
//! ```text
//!   service  lock ─▶ a region's scan is due ─▶ words of pages in slow memory are marked ─▶ unlock
//!   access   W is marked: no plain mapping ─▶ lock ─▶ start: a hint fault, and the page is promoted if it is hot ─▶ unlock
//! ```
//! In the kernel a thread scans its own memory by its CPU time. The threads that access a region are not known, so a region is scanned at intervals of wall-clock time. The
//! engine decides when (`kernel.numa_balancing`, the files in `/sys/kernel/debug/sched/numa_balancing`), and how many pages a scan marks. Pages move like
//! those of files (`moves.rs`).

use std::time::Duration;

use pageout_engine::Nanos;

use super::locked::Locked;
use crate::sync::Instant;

/// How often the service thread asks whether a scan is due.
const LOOK: Nanos = Nanos(50_000_000);
/// The cost of a scan counts in whole timer ticks.
const TICK: Duration = Duration::from_millis(4);

impl Locked<'_> {
    /// Scans a region whose scan is due, if there is slow memory. Other regions have their turn in the next call.
    pub(super) fn scan_next_region(&mut self) {
        if !self.machine().arena.has_slow() || self.now < self.regions.scans_at {
            return;
        }
        let now = self.now;
        self.regions.scans_at = now + LOOK;
        let owners = self.regions.owners();
        for at in 0..owners.len() {
            let owner = owners[(at + self.regions.scanned_last + 1) % owners.len()];
            if self.engine.scan_due(owner).is_none_or(|due| now <= due) {
                continue;
            }
            let began = Instant::now();
            if self.engine.scan_tick(owner, now) {
                let ticks = began.elapsed().as_nanos() / TICK.as_nanos();
                self.engine.scan_took(owner, Nanos((ticks * TICK.as_nanos()) as u64));
                self.settle();
                self.regions.scanned_last = (at + self.regions.scanned_last + 1) % owners.len();
                self.regions.scans_at = now;
                return;
            }
        }
    }

    /// When the next look at regions is, if there are any in slow memory.
    pub(super) fn next_scan(&self) -> Option<Duration> {
        let has_scans = self.machine().arena.has_slow() && !self.regions.owners().is_empty();
        has_scans.then(|| Duration::from_nanos(self.regions.scans_at.0.saturating_sub(self.now.0)))
    }
}

#[cfg(test)]
mod tests; // beside the engine alone
