//! Refaults of a trace: which pages that reclaim removed came back, by the events of the page cache.
//!
//! A page that leaves the page cache within a call, or through kswapd, was reclaimed. If it enters again, it was needed: a refault. Memory
//! grows with the pages that are out, up to 524,288 pages: beyond that, those that left first are forgotten.

use std::collections::{BTreeMap, VecDeque};

use super::durations::Durations;

/// Pages that are remembered: 2 GiB of pages of 4 KiB.
const PAGES_MAX: usize = 1 << 19;

/// Pages of files that reclaim removed, and those of them that came back.
#[derive(Debug, Default)]
pub struct Refaults {
    /// Pages that entered the page cache.
    pub added: u64,
    /// Pages that reclaim removed.
    pub reclaimed: u64,
    /// Pages removed otherwise: by truncation, deletion or on request.
    pub removed: u64,
    /// Pages that reclaim removed and that entered again.
    pub refaulted: u64,
    /// Time from removal to return of those pages.
    pub away: Durations,
    /// Removed pages that are no longer remembered (the limit is 524,288): more of them may have come back.
    pub forgotten: u64,
    /// Events whose name contains `workingset_refault`, from kernels patched to have one.
    pub refault_events: u64,
    /// When pages left, by file and page.
    out: BTreeMap<(u64, u64), u64>,
    order: VecDeque<((u64, u64), u64)>,
}

impl Refaults {
    pub(super) fn added(&mut self, page: (u64, u64), time_ns: u64) {
        self.added += 1;
        if let Some(left_ns) = self.out.remove(&page) {
            self.refaulted += 1;
            self.away.record(time_ns.saturating_sub(left_ns));
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

    /// Returns true if the trace has removals by reclaim and additions, so that the share of refaults is meaningful.
    pub fn is_known(&self) -> bool {
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
        assert!(refaults.is_known());
        refaults.added((1, 1), 3);
        refaults.added((2, 0), 3);
        assert_eq!(refaults.refaulted, 0);
        refaults.added((1, 0), 9);
        refaults.added((1, 0), 10);
        assert_eq!((refaults.refaulted, refaults.away.summary().max_ns), (1, 7));
        assert_eq!((refaults.added, refaults.reclaimed, refaults.removed), (5, 1, 1));
    }

    #[test]
    fn pages_beyond_the_limit_are_forgotten_and_counted() {
        let mut refaults = Refaults::default();
        (0..PAGES_MAX as u64 + 3).for_each(|page| refaults.removed((0, page), page, true));
        assert_eq!((refaults.forgotten, refaults.out.len()), (3, PAGES_MAX));
        refaults.added((0, 2), 0);
        refaults.added((0, 3), 0);
        assert_eq!(refaults.refaulted, 1);
    }
}
