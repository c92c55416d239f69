//! Refaults of a trace: which pages that reclaim removed came back, by the events of the page cache.
//!
//! A page that leaves the page cache within a call, or through kswapd, was reclaimed. If it enters again, it was needed: a refault. Memory
//! for that grows with the pages that are out, up to so many; of more, those that left first are forgotten.

use std::collections::{BTreeMap, VecDeque};

use pageout_sim::latency::LatencyHistogram;

use super::process::record;

/// Pages that are remembered: 2 GiB of pages of 4 KiB.
const PAGES_MAX: usize = 1 << 19;

/// Pages of files that reclaim removed, and those of them that came back.
#[derive(Debug, Default)]
pub(in crate::commands::vmscan_report) struct Refaults {
    /// Pages that entered the page cache.
    pub(in crate::commands::vmscan_report) added: u64,
    /// Pages that reclaim removed.
    pub(in crate::commands::vmscan_report) reclaimed: u64,
    /// Pages that others removed: files were truncated or deleted, or someone asked for it.
    pub(in crate::commands::vmscan_report) removed: u64,
    /// Pages that reclaim removed and that entered again.
    pub(in crate::commands::vmscan_report) refaulted: u64,
    /// How long after they had left.
    pub(in crate::commands::vmscan_report) away: LatencyHistogram,
    /// Pages whose leaving is forgotten: they may have come back as well.
    pub(in crate::commands::vmscan_report) forgotten: u64,
    /// Refaults that events of that name tell.
    pub(in crate::commands::vmscan_report) told: u64,
    /// When pages left, by file and page.
    out: BTreeMap<(u64, u64), u64>,
    order: VecDeque<((u64, u64), u64)>,
}

impl Refaults {
    pub(super) fn added(&mut self, page: (u64, u64), time_ns: u64) {
        self.added += 1;
        if let Some(left_ns) = self.out.remove(&page) {
            self.refaulted += 1;
            record(&mut self.away, time_ns.saturating_sub(left_ns));
        }
    }

    pub(super) fn removed(&mut self, page: (u64, u64), time_ns: u64, by_reclaim: bool) {
        if !by_reclaim {
            self.removed += 1;
            return;
        }
        self.reclaimed += 1;
        self.out.insert(page, time_ns);
        self.order.push_back((page, time_ns));
        if self.order.len() > PAGES_MAX
            && let Some((oldest, left_ns)) = self.order.pop_front()
            && self.out.get(&oldest) == Some(&left_ns)
        {
            self.out.remove(&oldest);
            self.forgotten += 1;
        }
    }

    /// Whether leaving and entering were both seen, so that the share that came back means something.
    pub(in crate::commands::vmscan_report) fn is_told(&self) -> bool {
        self.reclaimed > 0 && self.added > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_reclaim_removed_and_that_comes_back_is_a_refault() {
        let mut refaults = Refaults::default();
        refaults.added((1, 0), 1);
        refaults.removed((1, 0), 2, true);
        refaults.removed((1, 1), 2, false);
        assert!(refaults.is_told());
        refaults.added((1, 1), 3);
        refaults.added((2, 0), 3);
        assert_eq!(refaults.refaulted, 0);
        refaults.added((1, 0), 9);
        refaults.added((1, 0), 10);
        assert_eq!((refaults.refaulted, refaults.away.summary().max.0), (1, 7));
        assert_eq!((refaults.added, refaults.reclaimed, refaults.removed), (5, 1, 1));
    }

    #[test]
    fn so_many_pages_are_remembered_and_the_rest_is_told() {
        let mut refaults = Refaults::default();
        (0..PAGES_MAX as u64 + 3).for_each(|page| refaults.removed((0, page), page, true));
        assert_eq!((refaults.forgotten, refaults.out.len()), (3, PAGES_MAX));
        refaults.added((0, 2), 0);
        refaults.added((0, 3), 0);
        assert_eq!(refaults.refaulted, 1);
    }
}
