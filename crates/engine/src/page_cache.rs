//! The page cache: a folio is added, found there by what it holds, removed, and freed when nothing refers to it.
//!
//! A folio of a file has 2 to the power of 0 to 9 pages. Its file system decides, and whether readahead (`readahead.rs`), a fault, or write(2)
//! (`access/write.rs`) brings it in. All of its index words lead to it, and all of it comes, goes and is counted together. Where a part has to go, it is split
//! (`truncate.rs`). [folios 1, 3.1, 3.7]
//!
//! Not modelled:
//!
//! - An index without leaf nodes below folios of 64 pages or more.
//! - Entries of 2 MiB for file folios: each page has one, made together.
//! - Dirty blocks of a folio: its device gets all pages.

pub(crate) mod readahead; // which pages to read before anyone asks for them
mod truncate; // what a file no longer holds
mod drop; // what goes because a user says so

use crate::audit::{Paid, Transition};
use crate::core::Core;
use crate::lru::AddedFor;
use crate::machine::op::Op;
use crate::memory::folio::{Folio, FolioFlags};
use crate::memory::table::{NODE_SLOTS, Word};
use crate::stat::Stat;
use crate::story::PageEvent;
use crate::units::{FileId, Pfn};
use std::ops::Range;

pub(crate) use drop::DropCaches;
pub(crate) use truncate::{TruncateStep, Truncation};

/// A folio entered or left a file's page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageCacheEvent {
    /// The file.
    pub file: FileId,
    /// First page of the folio in the file.
    pub page: u64,
    /// The folio has 2 to the power of this many pages.
    pub order: u8,
    /// The folio left; else it entered.
    pub removed: bool,
}

/// A page of each index node that a large folio lies in. It is the last one there: page 0 alone would need no node.
pub(crate) fn nodes_of(pages: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
    let step = NODE_SLOTS.min(pages.end - pages.start);
    pages.clone().step_by(step as usize).map(move |first| first + step - 1)
}

impl Core {
    /// Puts a new folio into a file's page cache and evaluates the shadow that it replaces.
    pub(crate) fn page_cache_add(&mut self, pfn: Pfn, file: FileId, page: u64, added_for: AddedFor) {
        let folio = &mut self.mm.memory.folios[pfn];
        folio.owner = file.0;
        folio.index = page as u32;
        let found = self.page_cache_insert(pfn);
        self.workingset_refault(pfn, found, added_for);
    }

    /// Puts a new folio into a file's page cache for write(2), which checks no shadow: a repeated write does not show that the page is in use.
    /// [reclaim-6.12 5]
    pub(crate) fn page_cache_add_for_write(&mut self, pfn: Pfn, file: FileId, page: u64) {
        let folio = &mut self.mm.memory.folios[pfn];
        folio.owner = file.0;
        folio.index = page as u32;
        self.page_cache_insert(pfn);
    }

    /// Puts a folio into the page cache of its file; returns what was in its slot.
    #[inline]
    pub(crate) fn page_cache_insert(&mut self, pfn: Pfn) -> Word {
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(
            folio.has(FolioFlags::CHARGED),
            "{pfn:?} enters the page cache, but no group pays for it"
        );
        debug_assert!(
            !folio.has(FolioFlags::SWAPCACHE),
            "{pfn:?} enters the page cache while it is in the swap cache"
        );
        if folio.order > 0 {
            return self.page_cache_insert_large(pfn);
        }
        let (file, page) = (FileId(folio.owner), u64::from(folio.index));
        let of = self.mm.memory.file(file);
        if of.index.is_node_empty(page) || of.nodes.has_head() {
            self.index_nodes_make(folio.memcg, file, page);
        }
        let books = self.open_audit(Transition::EnterPageCache, [pfn]);
        let (found, change) = self.mm.memory.index_insert(pfn, self.mm.mark_of(pfn));
        self.out.count.inserted(1);
        self.index_changed(pfn, change);
        self.page_cache_count(&folio, 1);
        self.close_audit(books);
        found
    }

    /// The same of a large folio. Returns the shadow in its range that counts.
    #[cold]
    fn page_cache_insert_large(&mut self, pfn: Pfn) -> Word {
        let folio = self.mm.memory.folios[pfn];
        let file = FileId(folio.owner);
        for page in nodes_of(&folio.file_pages()) {
            let of = self.mm.memory.file(file);
            if of.index.is_node_empty(page) || of.nodes.has_head() {
                self.index_nodes_make(folio.memcg, file, page);
            }
        }
        let books = self.open_audit(Transition::EnterPageCache, [pfn]);
        let (found, changes) = self.mm.memory.index_insert_large(pfn, self.mm.mark_of(pfn));
        self.out.count.inserted(1);
        self.out.count.inserted_tails(folio.pages() - 1);
        for (page, change) in changes {
            self.index_changed_at(pfn, page, change);
        }
        self.page_cache_count(&folio, 1);
        self.close_audit(books);
        found
    }

    /// Takes a folio out of the page cache of its file, leaving a shadow, a swap entry or nothing.
    #[inline]
    pub(crate) fn page_cache_remove(&mut self, pfn: Pfn, left: Word) {
        debug_assert_eq!(
            self.mm.memory.folios[pfn].mapped, 0,
            "{pfn:?} leaves the page cache while it is mapped"
        );
        debug_assert!(
            !self.mm.is_regular(pfn) || !self.mm.memory.folios[pfn].has(FolioFlags::DIRTY),
            "{pfn:?} leaves its file, but is not written"
        );
        debug_assert!(
            !self.mm.memory.folios[pfn].has(FolioFlags::WRITEBACK),
            "{pfn:?} leaves the page cache while it is being written"
        );
        if self.mm.memory.folios[pfn].order > 0 {
            return self.page_cache_remove_large(pfn, left);
        }
        let books = self.open_audit(Transition::LeavePageCache, [pfn]);
        let change = self.mm.memory.index_remove(pfn, left);
        self.index_changed(pfn, change);
        let folio = self.mm.memory.folios[pfn];
        self.page_cache_count(&folio, -1);
        self.close_audit(books);
        let (file, page) = (FileId(folio.owner), u64::from(folio.index));
        self.mm.note_unflushed_leaves(file, page);
        if self.mm.memory.file(file).index.is_node_empty(page) {
            self.index_nodes_free(file, page);
        }
    }

    #[cold]
    fn page_cache_remove_large(&mut self, pfn: Pfn, left: Word) {
        let books = self.open_audit(Transition::LeavePageCache, [pfn]);
        for (page, change) in self.mm.memory.index_remove_large(pfn, left) {
            self.index_changed_at(pfn, page, change);
        }
        let folio = self.mm.memory.folios[pfn];
        self.page_cache_count(&folio, -1);
        self.close_audit(books);
        let file = FileId(folio.owner);
        folio.file_pages().for_each(|page| self.mm.note_unflushed_leaves(file, page));
        for page in nodes_of(&folio.file_pages()) {
            if self.mm.memory.file(file).index.is_node_empty(page) {
                self.index_nodes_free(file, page);
            }
        }
    }

    #[inline(always)]
    fn page_cache_count(&mut self, folio: &Folio, sign: i64) {
        self.flush_stats_as_recorded();
        self.mm.recorded.changes += 1;
        let (lruvec, pages) = (self.mm.lruvec_of_folio(folio), sign * folio.pages() as i64);
        self.count(lruvec, Stat::NrFilePages, pages);
        if folio.has(FolioFlags::SWAPBACKED) {
            self.count(lruvec, Stat::NrShmem, pages);
        }
        if cfg!(debug_assertions) {
            let local = |stat: Stat| self.mm.lruvecs[lruvec].stat_local[stat as usize];
            let (file, shmem, dirty) = (local(Stat::NrFilePages), local(Stat::NrShmem), local(Stat::NrDirty));
            assert!(shmem <= file, "a group has {file} pages of files, {shmem} of tmpfs");
            assert!(dirty <= file, "a group has {file} pages of files, {dirty} are dirty");
        }
        let (file, page) = (FileId(folio.owner), folio.index.into());
        let cached = &mut self.mm.memory.file_mut(file).counts.cached;
        *cached = cached.checked_add_signed(pages).expect("a file has no fewer than no pages");
        let order = folio.order;
        self.out.page_cache_changed(|| PageCacheEvent { file, page, order, removed: sign < 0 });
    }

    /// Frees a folio that can't be found any more and that is not held; true if it did.
    #[inline(always)]
    pub(crate) fn release_if_unused(&mut self, pfn: Pfn) -> bool {
        let folio = &self.mm.memory.folios[pfn];
        let in_use = FolioFlags::INDEXED | FolioFlags::LOCKED | FolioFlags::WRITEBACK;
        let is_in_use = folio.refs > 0 || folio.mapped > 0 || folio.flags().intersects(in_use);
        !is_in_use && self.release_if_slot_unused(pfn)
    }

    /// Frees a folio that at most its swap slot is needed for; true if it did.
    #[inline(never)]
    fn release_if_slot_unused(&mut self, pfn: Pfn) -> bool {
        let folio = self.mm.memory.folios[pfn];
        if folio.has(FolioFlags::SWAPCACHE) && self.mm.memory.is_slot_referenced(pfn) {
            return false;
        }
        self.tell(pfn, |_| PageEvent::Released);
        if folio.has(FolioFlags::CHARGED) {
            self.note_updates(folio.memcg, 1);
        }
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
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(folio.refs == 0 && folio.mapped == 0, "{pfn:?} is freed while in use");
        let found = FolioFlags::LRU | FolioFlags::INDEXED | FolioFlags::SWAPCACHE;
        debug_assert!(!folio.flags().intersects(found), "{pfn:?} is freed, and can be found: {folio:?}");
        let busy = FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::MLOCKED | FolioFlags::PINNED;
        debug_assert!(!folio.flags().intersects(busy), "{pfn:?} is freed while it is busy: {folio:?}");
        debug_assert!(
            !folio.has(FolioFlags::KERNEL),
            "{pfn:?} is the kernel's, but is freed like a user page: {folio:?}"
        );
        debug_assert!(
            !self.mm.memory.places.get(pfn).is_listed(),
            "{pfn:?} is freed while it is in a generation"
        );
        if folio.has(FolioFlags::CHARGED) {
            let charges = self.open_charges(Transition::Uncharge, folio.memcg);
            self.mm.memcgs.uncharge(folio.memcg, folio.pages());
            self.close_charges(charges, Paid::pages(-(folio.pages() as i64)));
            self.mm.assert_lists_paid(folio.memcg);
            // An uncharged frame holds no data.
            self.out.push(Op::FreeFrame { pfn, pages: folio.pages() as u32 });
        }
        if folio.is_large_anon() {
            self.large_anon_gone(&folio, pfn);
        }
        self.mm.pghot_forget(pfn);
        self.mm.numa_balancing.forget_user(pfn);
        self.mm.guest_forget(pfn);
        self.mm.memory.free(self.by.cpu, pfn);
        mutant!(self, FreedTwice => self.mm.memory.free(self.by.cpu, pfn));
        self.mm.count_node(folio.node, Stat::Pgfree, folio.pages() as i64);
    }
}
