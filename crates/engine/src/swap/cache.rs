//! The swap cache: a folio has a slot as long as the copy there may be of use, and gives it up when it is not.

use crate::audit::{Paid, Transition};
use crate::core::Core;
use crate::machine::op::Op;
use crate::memory::folio::FolioFlags;
use crate::memory::table::{NodeChange, Shadow, SwapEntry};
use crate::stat::Stat;
use crate::state::State;
use crate::units::{MemcgId, NodeId, Pfn};
use crate::workingset::IndexNode;

impl Core {
    /// Puts a folio into the swap cache: it has this slot from now on, and a large one those behind it.
    pub(crate) fn swap_cache_insert(&mut self, pfn: Pfn, entry: SwapEntry) {
        let books = self.open_audit(Transition::EnterSwapCache, [pfn]);
        let order = self.mm.memory.folios[pfn].order;
        for slot in entry.slot..entry.slot + (1 << order) {
            let entry = SwapEntry { slot, ..entry };
            let change = self.mm.memory.swap.cache_insert(entry, pfn, order);
            self.swap_index_changed(pfn, entry, change);
        }
        let folio = &mut self.mm.memory.folios[pfn];
        assert!(!folio.has(FolioFlags::SWAPCACHE), "{pfn:?} is put into the swap cache twice");
        folio.set(FolioFlags::SWAPCACHE);
        folio.swap = entry.swap;
        folio.slot = entry.slot;
        self.out.count.inserted(1);
        self.swap_cache_count(pfn, 1);
        self.close_audit(books);
    }

    /// Takes a folio out of the swap cache; the slot keeps the data.
    pub(crate) fn swap_cache_remove(&mut self, pfn: Pfn, shadow: Option<Shadow>) {
        let entry = self.mm.memory.swap_entry(pfn);
        let books = self.open_audit(Transition::LeaveSwapCache, [pfn]);
        for slot in self.mm.memory.folios[pfn].slots() {
            let entry = SwapEntry { slot, ..entry };
            let cached = self.mm.memory.swap.cached(entry);
            assert_eq!(cached, Some(pfn), "slot {slot} leads to another folio");
            let change = self.mm.memory.swap.cache_remove(entry, shadow);
            self.swap_index_changed(pfn, entry, change);
        }
        self.mm.memory.folios[pfn].clear(FolioFlags::SWAPCACHE);
        self.swap_cache_count(pfn, -1);
        self.close_audit(books);
    }

    /// Frees those slots of a large folio that has left the swap cache to which nothing leads any more.
    #[cold]
    pub(crate) fn free_unreferenced_slots(&mut self, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        for at in 0..folio.pages() as u32 {
            if !self.mm.memory.is_slot_of_page_referenced(&folio, at) {
                self.free_slot(SwapEntry { swap: folio.swap, slot: folio.slot + at });
            }
        }
    }

    fn swap_cache_count(&mut self, pfn: Pfn, sign: i64) {
        let pages = sign * self.mm.memory.folios[pfn].pages() as i64;
        let lruvec = self.mm.lruvec_of(pfn);
        self.count(lruvec, Stat::NrSwapcached, pages);
        // The machine counts the swap cache among its file pages; a group's `file` doesn't.
        self.mm.count_node(self.mm.memory.folios[pfn].node, Stat::NrFilePages, pages);
        self.mm.assert_file_pages_counted(self.mm.memory.folios[pfn].node);
    }

    /// Gives up a folio's slot; its only copy is in memory then. Not while a write to the slot is in flight, nor while a
    /// page table still leads to the slot.
    #[doc(alias = "folio_free_swap")]
    pub(crate) fn free_swap(&mut self, pfn: Pfn) {
        let busy = match mutant!(self, SlotFreedBeforeWritten) {
            true => FolioFlags::LOCKED,
            false => FolioFlags::WRITEBACK | FolioFlags::LOCKED,
        };
        if self.mm.memory.folios[pfn].flags().intersects(busy) || self.mm.memory.is_slot_referenced(pfn) {
            return;
        }
        let books = self.open_audit(Transition::GiveSlotUp, [pfn]);
        self.swap_cache_give_up(pfn);
        self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
        self.close_audit(books);
        assert!(
            !self.mm.memory.folios[pfn].has(FolioFlags::SWAPCACHE),
            "{pfn:?} has given its slot up, and is found by it"
        );
    }

    /// Takes a folio out of the swap cache, and gives its slot back, which nothing leads to.
    pub(crate) fn swap_cache_give_up(&mut self, pfn: Pfn) {
        let entry = self.mm.memory.swap_entry(pfn);
        debug_assert!(
            !self.mm.memory.is_slot_referenced(pfn),
            "slot {} is given up, and its owner leads there",
            entry.slot
        );
        let pages = self.mm.memory.folios[pfn].pages() as u32;
        self.swap_cache_remove(pfn, None);
        for slot in entry.slot..entry.slot + pages {
            self.free_slot(SwapEntry { slot, ..entry });
        }
    }

    /// Nothing refers to a page in swap any more: its slot is freed, immediately or with the folio that reads or
    /// writes it.
    pub(crate) fn give_up_swapped(&mut self, entry: SwapEntry) {
        match self.mm.memory.swap.cached(entry) {
            Some(pfn) => {
                self.release_if_unused(pfn);
            }
            None => self.free_slot(entry),
        }
    }

    /// Gives back a slot that nothing leads to, and what is known of it.
    pub(crate) fn free_slot(&mut self, entry: SwapEntry) {
        if self.mm.memory.swap.forget_shadow(entry) == NodeChange::Mixed {
            self.forget_shadow_node(IndexNode::of_slot(entry));
        }
        self.zswap_invalidate(entry);
        self.zram_free(entry);
        let charges = self.open_charges(Transition::FreeSlot, self.mm.memory.swap.memcg(entry));
        let memcg = self.mm.memory.swap.free(entry, self.by.cpu);
        self.mm.memcgs.uncharge_swap(memcg);
        self.note_updates(memcg, 1);
        self.close_charges(charges, Paid::slots(-1));
        self.mm.assert_slots_charged();
        self.out.push(Op::FreeSlot { swap: entry.swap, slot: entry.slot });
    }
}

impl State {
    /// The swap cache has changed: a node's file pages are those of its groups and what is in the swap cache.
    fn assert_file_pages_counted(&self, node: NodeId) {
        if cfg!(debug_assertions) {
            let of_node = self.lruvecs.iter().filter(|lruvec| lruvec.node == node);
            let of_groups: i64 = of_node
                .map(|of| {
                    of.stat_local[Stat::NrFilePages as usize] + of.stat_local[Stat::NrSwapcached as usize]
                })
                .sum();
            assert_eq!(
                self.node_stat(node, Stat::NrFilePages),
                of_groups,
                "file pages of a node, and of its groups"
            );
        }
    }

    /// A slot was taken or freed: the groups pay for as many as hold a page.
    #[inline]
    pub(crate) fn assert_slots_charged(&self) {
        if cfg!(debug_assertions) {
            let swap = &self.memory.swap;
            let (used, charged) =
                (swap.total_pages() - swap.free_pages(), self.memcgs[MemcgId::ROOT].swap_usage);
            assert_eq!(used, charged, "slots that hold a page, and those that groups pay for");
        }
    }

    /// Swap is so full that pages in memory should not hold slots.
    pub(crate) fn is_swap_full(&self, memcg: MemcgId) -> bool {
        self.memcgs.is_swap_half_full(memcg) || self.memory.swap.is_half_full()
    }
}
