//! A view into the engine for the byte machine and the tests: where a page is, and how much reclaim could still take.

use crate::access::engine::Engine;
use crate::memory::folio::FolioFlags;
use crate::units::{MemcgId, Pfn};
use pageout_rules::lru::Lru;

impl Engine {
    /// Folios that are not free, by their first frames.
    pub(crate) fn used_folios(&self) -> Vec<Pfn> {
        let nodes = self.core.mm.memory.nodes();
        let used = nodes.flat_map(|node| self.core.mm.folios_in_use(node));
        used.filter(|&pfn| !self.core.mm.memory.folios[pfn].has(FolioFlags::KERNEL)).collect()
    }

    /// Pages of a group and its descendants that nothing keeps in memory: a group out of memory has none to speak of.
    pub(crate) fn reclaimable_pages(&self, memcg: MemcgId) -> u64 {
        let kept = FolioFlags::LOCKED | FolioFlags::MLOCKED | FolioFlags::PINNED | FolioFlags::WRITEBACK;
        let free_swap = self.core.mm.memcgs.free_swap(memcg, self.core.mm.memory.swap.free_pages());
        // Without a free slot the kernel doesn't look at anonymous memory, not even at pages that have their slot.
        // Generations are not swapped out into less than a batch of slots.
        let slots_needed = if self.core.mm.memcgs[memcg].policy.lru == Lru::Generations { 64 } else { 1 };
        // A compressed device that has refused a page may do so again.
        let refuses = self.core.mm.memory.swap.zrams().any(|zram| zram.stat.failed_writes > 0);
        let may_swap = self.core.mm.config.swappiness > 0 && free_swap >= slots_needed && !refuses;
        let (mut ready, mut in_need_of_a_slot) = (0, 0);
        for pfn in self.used_folios() {
            let folio = &self.core.mm.memory.folios[pfn];
            let is_of_group = self.core.mm.memcgs.ancestors(folio.memcg).any(|id| id == memcg);
            if !is_of_group || folio.refs > 0 || folio.flags().intersects(kept) {
                continue;
            }
            if !folio.has(FolioFlags::SWAPBACKED) || may_swap && folio.has(FolioFlags::SWAPCACHE) {
                ready += folio.pages();
            } else if may_swap {
                in_need_of_a_slot += folio.pages();
            }
        }
        ready + in_need_of_a_slot.min(free_swap)
    }

    /// Swap slots in use.
    pub(crate) fn used_slots(&self) -> usize {
        self.core.mm.memory.swap.taken().count()
    }
}
