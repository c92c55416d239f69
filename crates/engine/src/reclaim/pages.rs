//! Reclaim of pages that their owner has chosen: `madvise(MADV_PAGEOUT)`.
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

impl Core {
    /// Evicts these folios, or begins to write them, on behalf of a group. Skips folios that are on no list or locked into memory.
    pub(crate) fn reclaim_pages(&mut self, memcg: MemcgId, mut folios: Vec<Pfn>) {
        if folios.is_empty() {
            return;
        }
        // Folios that wait in a batch are put on their lists first.
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
