//! Reclaim of pages that their owner has chosen: `madvise(MADV_PAGEOUT)`.
//!
//! With this hint the owner declares that it won't use the pages soon, so their accessed bits don't count. All else is as for any page
//! that reclaim takes off a list: swap must have a slot, and pages in use by another holder stay. The pages are not demoted, because the
//! owner has asked for them to leave memory. The remaining pages go back to the lists by way of a batch. [reclaim 2.8]

use crate::core::Core;
use crate::lru::AddedFor;
use crate::memory::folio::FolioFlags;
use crate::reclaim::shrink::ReclaimStat;
use crate::reclaim::{Reclaimer, ScanControl, Why};
use crate::units::{MemcgId, Pfn};

impl Core {
    /// Evicts these folios, or begins to write them, on behalf of a group. Those that are on no list, or locked into memory, stay
    /// unchanged.
    pub(crate) fn reclaim_pages(&mut self, memcg: MemcgId, mut folios: Vec<Pfn>) {
        if folios.is_empty() {
            return;
        }
        // What waits for a list shall be found on one.
        self.lru_add_drain();
        let (flags, unfit) = (FolioFlags::LRU, FolioFlags::UNEVICTABLE);
        folios.retain(|&pfn| {
            let folio = &self.mm.memory.folios[pfn];
            let is_taken = folio.has(flags) && !folio.has(unfit) && folio.order == 0;
            if is_taken {
                self.lru_unlink(pfn);
            }
            is_taken
        });
        let by = Reclaimer::new(memcg, Why::Requested, self.mm.config.swappiness);
        let mut sc = ScanControl::new(by, folios.len() as u64);
        sc.means.ignores_use = true;
        let mut stat = ReclaimStat::default();
        folios.retain(|&pfn| {
            let lruvec = self.mm.lruvec_of(pfn);
            !self.shrink_folio(lruvec, pfn, &mut sc, &mut stat)
        });
        self.unplug(&mut sc.hands.plug);
        if stat.reclaimed > 0 {
            self.note_updates(memcg, stat.reclaimed);
        }
        folios.into_iter().for_each(|pfn| self.lru_add(pfn, AddedFor::Other));
    }
}
