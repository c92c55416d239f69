//! The page cache and the swap cache: a folio is added, found there by what it holds, and removed.

pub(crate) mod readahead; // which pages to read before anyone asks for them
mod truncate; // what a file no longer holds
mod drop; // what goes because a user says so

use crate::core::Core;
use crate::machine::op::Op;
use crate::memory::folio::{Folio, FolioFlags};
use crate::memory::table::{Entry, NodeChange, Shadow, SwapEntry, Word};
use crate::stat::Stat;
use crate::story::PageEvent;
use crate::units::{FileId, MemcgId, MmId, Pfn};
use crate::workingset::IndexNode;

pub(crate) use drop::DropCaches;
pub(crate) use truncate::{TruncateStep, Truncation};

/// A page entered or left a file's page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageCacheEvent {
    /// The file.
    pub file: FileId,
    /// Page of the file.
    pub page: u64,
    /// The page left; else it entered.
    pub removed: bool,
}

impl Core {
    /// Puts a new folio into a file's page cache and evaluates the shadow that it replaces.
    pub(crate) fn page_cache_add(&mut self, pfn: Pfn, file: FileId, page: u64) {
        let folio = &mut self.memory.folios[pfn];
        folio.owner = file.0;
        folio.index = page as u32;
        let found = self.page_cache_insert(pfn);
        self.workingset_refault(pfn, found);
    }

    /// Puts a new folio into a file's page cache for write(2), which looks at no shadow: that a page is written again says nothing of its
    /// use. [reclaim-6.12 5]
    pub(crate) fn page_cache_add_for_write(&mut self, pfn: Pfn, file: FileId, page: u64) {
        let folio = &mut self.memory.folios[pfn];
        folio.owner = file.0;
        folio.index = page as u32;
        self.page_cache_insert(pfn);
    }

    /// Puts a folio into the page cache of its file; returns what was in its slot.
    #[inline]
    pub(crate) fn page_cache_insert(&mut self, pfn: Pfn) -> Word {
        let folio = self.memory.folios[pfn];
        debug_assert!(
            folio.has(FolioFlags::CHARGED),
            "{pfn:?} enters the page cache, and no group pays for it"
        );
        debug_assert!(
            !folio.has(FolioFlags::SWAPCACHE),
            "{pfn:?} is in the swap cache and enters the page cache"
        );
        let (file, page) = (FileId(folio.owner), u64::from(folio.index));
        if self.memory.file(file).index.is_node_empty(page) {
            self.index_nodes_make(folio.memcg, file, page);
        }
        let (found, change) = self.memory.index_insert(pfn, self.mark_of_group(folio.memcg));
        self.out.count.inserted(1);
        self.index_changed(pfn, change);
        self.page_cache_count(&folio, 1);
        found
    }

    /// Takes a folio out of the page cache of its file, leaving a shadow, a swap entry or nothing.
    #[inline]
    pub(crate) fn page_cache_remove(&mut self, pfn: Pfn, left: Word) {
        debug_assert_eq!(
            self.memory.folios[pfn].mapped, 0,
            "{pfn:?} leaves the page cache while it is mapped"
        );
        debug_assert!(
            !self.is_regular(pfn) || !self.memory.folios[pfn].has(FolioFlags::DIRTY),
            "{pfn:?} leaves its file, and is not written"
        );
        debug_assert!(
            !self.memory.folios[pfn].has(FolioFlags::WRITEBACK),
            "{pfn:?} leaves the page cache while it is being written"
        );
        let change = self.memory.index_remove(pfn, left);
        self.index_changed(pfn, change);
        let folio = self.memory.folios[pfn];
        self.page_cache_count(&folio, -1);
        let (file, page) = (FileId(folio.owner), u64::from(folio.index));
        if self.memory.file(file).index.is_node_empty(page) {
            self.index_nodes_free(file, page);
        }
    }

    #[inline(always)]
    fn page_cache_count(&mut self, folio: &Folio, sign: i64) {
        let (lruvec, pages) = (self.lruvec_of_folio(folio), sign * folio.pages() as i64);
        self.count(lruvec, Stat::NrFilePages, pages);
        if folio.has(FolioFlags::SWAPBACKED) {
            self.count(lruvec, Stat::NrShmem, pages);
        }
        if cfg!(debug_assertions) {
            let local = |stat: Stat| self.lruvecs[lruvec].stat_local[stat as usize];
            let (file, shmem, dirty) = (local(Stat::NrFilePages), local(Stat::NrShmem), local(Stat::NrDirty));
            assert!(shmem <= file, "a group has {file} pages of files, {shmem} of tmpfs");
            assert!(dirty <= file, "a group has {file} pages of files, {dirty} are dirty");
        }
        let (file, page) = (FileId(folio.owner), folio.index.into());
        self.out.page_cache_changed(|| PageCacheEvent { file, page, removed: sign < 0 });
    }

    pub(crate) fn swap_cache_insert(&mut self, pfn: Pfn, entry: SwapEntry) {
        let change = self.memory.swap.cache_insert(entry, pfn);
        self.swap_index_changed(pfn, entry, change);
        let folio = &mut self.memory.folios[pfn];
        assert!(!folio.has(FolioFlags::SWAPCACHE), "{pfn:?} is put into the swap cache twice");
        folio.set(FolioFlags::SWAPCACHE);
        folio.swap = entry.swap;
        folio.slot = entry.slot;
        self.out.count.inserted(1);
        self.swap_cache_count(pfn, 1);
    }

    /// Takes a folio out of the swap cache; the slot keeps the data.
    pub(crate) fn swap_cache_remove(&mut self, pfn: Pfn, shadow: Option<Shadow>) {
        let entry = self.memory.swap_entry(pfn);
        assert_eq!(self.memory.swap.cached(entry), Some(pfn), "slot {} leads to another folio", entry.slot);
        let change = self.memory.swap.cache_remove(entry, shadow);
        self.swap_index_changed(pfn, entry, change);
        self.memory.folios[pfn].clear(FolioFlags::SWAPCACHE);
        self.swap_cache_count(pfn, -1);
    }

    fn swap_cache_count(&mut self, pfn: Pfn, sign: i64) {
        let pages = sign * self.memory.folios[pfn].pages() as i64;
        let lruvec = self.lruvec_of(pfn);
        self.count(lruvec, Stat::NrSwapcached, pages);
        // The machine counts the swap cache among its file pages; a group's `file` doesn't.
        self.count_node(self.memory.folios[pfn].node, Stat::NrFilePages, pages);
    }

    /// Gives up a folio's slot; its only copy is in memory then. Not while a write to the slot is in flight, nor while a
    /// page table still leads to the slot.
    #[doc(alias = "folio_free_swap")]
    pub(crate) fn free_swap(&mut self, pfn: Pfn) {
        let busy = match mutant!(self, SlotFreedBeforeWritten) {
            true => FolioFlags::LOCKED,
            false => FolioFlags::WRITEBACK | FolioFlags::LOCKED,
        };
        if self.memory.folios[pfn].flags().intersects(busy) || self.is_slot_referenced(pfn) {
            return;
        }
        self.swap_cache_give_up(pfn);
        self.memory.folios[pfn].set(FolioFlags::DIRTY);
        assert!(
            !self.memory.folios[pfn].has(FolioFlags::SWAPCACHE),
            "{pfn:?} has given its slot up, and is found by it"
        );
    }

    /// Takes a folio out of the swap cache, and gives its slot back, which nothing leads to.
    pub(crate) fn swap_cache_give_up(&mut self, pfn: Pfn) {
        let entry = self.memory.swap_entry(pfn);
        debug_assert!(
            !self.is_slot_referenced(pfn),
            "slot {} is given up, and its owner leads there",
            entry.slot
        );
        self.swap_cache_remove(pfn, None);
        self.free_slot(entry);
    }

    /// Nothing leads to a page in swap any more: its slot goes, at once or with the folio that reads or writes it.
    pub(crate) fn give_up_swapped(&mut self, entry: SwapEntry) {
        match self.memory.swap.cached(entry) {
            Some(pfn) => {
                self.release_if_unused(pfn);
            }
            None => self.free_slot(entry),
        }
    }

    pub(crate) fn free_slot(&mut self, entry: SwapEntry) {
        if self.memory.swap.forget_shadow(entry) == NodeChange::Mixed {
            self.forget_shadow_node(IndexNode::of_slot(entry));
        }
        self.zswap_invalidate(entry);
        self.zram_free(entry);
        let memcg = self.memory.swap.free(entry, self.cpu);
        self.memcgs.uncharge_swap(memcg);
        self.assert_slots_charged();
        self.out.push(Op::FreeSlot { swap: entry.swap, slot: entry.slot });
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

    /// Whether the page table or index of the folio's owner leads to its slot rather than to the folio.
    pub(crate) fn is_slot_referenced(&self, pfn: Pfn) -> bool {
        let folio = &self.memory.folios[pfn];
        let word = if folio.has(FolioFlags::ANON) {
            self.memory.mm(MmId(folio.owner)).table.word_if_any(folio.index.into())
        } else {
            self.memory.file(FileId(folio.owner)).index.word(folio.index.into())
        };
        word.decode() == Entry::Swap(self.memory.swap_entry(pfn))
    }

    /// Swap is so full that pages in memory should not hold slots.
    pub(crate) fn is_swap_full(&self, memcg: MemcgId) -> bool {
        self.memcgs.is_swap_half_full(memcg) || self.memory.swap.is_half_full()
    }

    /// Frees a folio that can't be found any more and that nobody holds; true if it did.
    #[inline(always)]
    pub(crate) fn release_if_unused(&mut self, pfn: Pfn) -> bool {
        let folio = &self.memory.folios[pfn];
        let in_use = FolioFlags::INDEXED | FolioFlags::LOCKED | FolioFlags::WRITEBACK;
        let is_in_use = folio.refs > 0 || folio.mapped > 0 || folio.flags().intersects(in_use);
        !is_in_use && self.release_if_slot_unused(pfn)
    }

    /// Frees a folio that at most its swap slot is needed for; true if it did.
    #[inline(never)]
    fn release_if_slot_unused(&mut self, pfn: Pfn) -> bool {
        let folio = self.memory.folios[pfn];
        if folio.has(FolioFlags::SWAPCACHE) && self.is_slot_referenced(pfn) {
            return false;
        }
        self.tell(pfn, |_| PageEvent::Released);
        if folio.has(FolioFlags::SWAPCACHE) {
            self.swap_cache_give_up(pfn);
        }
        if folio.has(FolioFlags::LRU) {
            self.lru_unlink(pfn);
        }
        self.free_folio(pfn);
        true
    }

    /// Gives back the frame of a folio that nothing refers to.
    #[inline]
    pub(crate) fn free_folio(&mut self, pfn: Pfn) {
        let folio = self.memory.folios[pfn];
        debug_assert!(folio.refs == 0 && folio.mapped == 0, "{pfn:?} is freed while in use");
        let found = FolioFlags::LRU | FolioFlags::INDEXED | FolioFlags::SWAPCACHE;
        debug_assert!(!folio.flags().intersects(found), "{pfn:?} is freed, and can be found: {folio:?}");
        let busy = FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::MLOCKED | FolioFlags::PINNED;
        debug_assert!(!folio.flags().intersects(busy), "{pfn:?} is freed while it is busy: {folio:?}");
        debug_assert!(
            !folio.has(FolioFlags::KERNEL),
            "{pfn:?} is the kernel's, and is freed as somebody's: {folio:?}"
        );
        debug_assert!(!self.memory.places.get(pfn).is_listed(), "{pfn:?} is freed, and is in a generation");
        if folio.has(FolioFlags::CHARGED) {
            self.memcgs.uncharge(folio.memcg, folio.pages());
            self.assert_lists_paid(folio.memcg);
            // An uncharged frame holds no data.
            self.out.push(Op::FreeFrame { pfn, pages: folio.pages() as u32 });
        }
        self.pghot_forget(pfn);
        self.guest_forget(pfn);
        self.memory.free(self.cpu, pfn);
        mutant!(self, FreedTwice => self.memory.free(self.cpu, pfn));
        self.count_node(folio.node, Stat::Pgfree, folio.pages() as i64);
    }
}
