//! The textbook LRU: one list for all memory of an lruvec, in order of access, evicted from the cold end.
//!
//! A reference to measure against, not a kernel's policy: each file access moves its folio to the head, and Linux avoids that
//! cost. With all batch sizes at 1 it misses exactly where a naive LRU of the same capacity does. An access through a mapping
//! can't be seen when it happens. Such a page gets another round when its accessed bit is found.
//!
//! *When not to use it:* to predict a Linux machine; for mapped memory, where it is CLOCK rather than LRU.

use super::Round;
use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::FolioFlags;
use crate::reclaim::ScanControl;
use crate::story::PageEvent;
use crate::units::{LruType, Pfn};
use pageout_rules::lru::Lru;

/// The only list in use.
pub(super) const SINGLE: usize = LruList::InactiveAnon as usize;

impl Core {
    pub(super) fn single_list_accessed(&mut self, pfn: Pfn) {
        let folio = &self.memory.folios[pfn];
        if folio.has(FolioFlags::LRU) && !folio.has(FolioFlags::UNEVICTABLE) {
            let lruvec = self.lruvec_of(pfn);
            self.lruvecs[lruvec].lists[SINGLE].move_head(&mut self.memory.folios, pfn.0);
            self.work.list_moves += 1;
            self.tell(pfn, |_| PageEvent::MovedToHead);
        }
    }

    /// Not just as many as are wanted: mapped pages may all have been used, and one has to go round them to find that out.
    pub(super) fn single_list_begin(&mut self, lruvec: LruvecId, sc: &ScanControl) -> u64 {
        self.lruvecs[lruvec].lists[SINGLE].len() >> sc.priority
    }

    /// One round over a list on which both types stand: up to a batch from its cold end, and no more than is still wanted.
    pub(super) fn untyped_round(
        &mut self,
        lruvec: LruvecId,
        list: usize,
        remaining: &mut u64,
        sc: &mut ScanControl,
    ) -> Round {
        let wanted = sc.nr_to_reclaim.saturating_sub(sc.nr_reclaimed);
        let n = (*remaining).min(self.config.reclaim_batch).min(wanted);
        if n == 0 {
            return Round::Last;
        }
        *remaining -= n;
        self.lru_add_drain();
        let mut folios = std::mem::take(&mut self.isolated);
        self.isolate_from(lruvec, list, n, &mut folios, sc);
        // Counted by type, though they stand on one list.
        let is_file = |pfn: &mut Pfn| self.memory.folios[*pfn].lru_type() == LruType::File;
        let mut files: Vec<Pfn> = folios.extract_if(.., is_file).collect();
        for (kind, batch) in [(LruType::Anon, &mut folios), (LruType::File, &mut files)] {
            sc.nr_reclaimed += {
                let scanned = batch.len() as u64;
                self.shrink_batch(Lru::SingleList, lruvec, kind, batch, scanned, sc)
            }
            .reclaimed;
        }
        self.isolated = folios;
        if *remaining > 0 && sc.nr_reclaimed < sc.nr_to_reclaim { Round::More } else { Round::Last }
    }
}
