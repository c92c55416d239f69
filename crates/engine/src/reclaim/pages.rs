//! Reclaim of pages that their owner has chosen: `madvise(MADV_PAGEOUT)`, and the action `pageout` of DAMON.
//!
//! The owner does not need them soon, so their accessed bits don't count. Otherwise they are like pages that reclaim isolates from a list: swap must have a
//! slot, and held pages stay. They are not demoted, as the owner has asked to free the memory. The remaining pages go back to the lists through a batch.
//! [reclaim 2.8]

use crate::core::Core;
use crate::lru::AddedFor;
use crate::memory::folio::FolioFlags;
use crate::reclaim::shrink::ReclaimStat;
use crate::reclaim::{Reclaimer, ScanControl, Why};
use crate::units::{MemcgId, Pfn};
use std::ops::Range;

impl Core {
    /// Returns true if an owner's request to page a range out takes a large folio as a whole: if it lies in the range with all of its pages.
    #[cold]
    pub(crate) fn may_page_out_whole(&self, pfn: Pfn, range: &Range<u64>) -> bool {
        let folio = &self.mm.memory.folios[pfn];
        let pages = folio.file_pages();
        let is_contained = range.start <= pages.start && pages.end <= range.end;
        self.mm.config.policy.machine.pageout_large
            && is_contained
            && u64::from(folio.mapped) == folio.pages()
    }

    /// Evicts these folios, or begins to write them, on behalf of a group. Skips folios that are on no list or locked into memory. `ignores_use`:
    /// without a look at accessed bits. Returns the number of freed pages.
    pub(crate) fn reclaim_pages(&mut self, memcg: MemcgId, mut folios: Vec<Pfn>, ignores_use: bool) -> u64 {
        if folios.is_empty() {
            return 0;
        }
        // Folios that wait in a batch are put on their lists first.
        self.lru_add_drain();
        let (flags, unfit) = (FolioFlags::LRU, FolioFlags::UNEVICTABLE);
        folios.retain(|&pfn| {
            let folio = &self.mm.memory.folios[pfn];
            let is_taken = folio.has(flags) && !folio.has(unfit);
            if is_taken {
                self.lru_unlink(pfn);
            }
            is_taken
        });
        let by = Reclaimer::new(memcg, Why::Requested, self.mm.config.swappiness);
        let mut sc = ScanControl::new(by, folios.len() as u64);
        sc.means.ignores_use = ignores_use;
        let mut stat = ReclaimStat::default();
        folios.retain(|&pfn| {
            let lruvec = self.mm.lruvec_of(pfn);
            !self.shrink_folio(lruvec, pfn, &mut sc, &mut stat)
        });
        let mut split = std::mem::take(&mut sc.hands.split);
        split.retain(|&pfn| {
            let lruvec = self.mm.lruvec_of(pfn);
            !self.shrink_folio(lruvec, pfn, &mut sc, &mut stat)
        });
        folios.append(&mut split);
        self.unplug(&mut sc.hands.plug);
        if stat.reclaimed > 0 {
            self.note_updates(memcg, stat.reclaimed);
        }
        folios.into_iter().for_each(|pfn| self.lru_add(pfn, AddedFor::Other));
        stat.reclaimed
    }
}
