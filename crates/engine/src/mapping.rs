//! Page-table entries over folios: a fault makes them at its end, mlock locks them. (Reclaim takes them away: `accessed/rmap.rs`.)

use crate::accessed::mapped_stat;
use crate::audit::Transition;
use crate::core::Core;
use crate::lru::Arrival;
use crate::memory::folio::{FolioFlags, HUGE_PAGE_ORDER, HUGE_PAGE_PAGES, UseBits};
use crate::memory::open_file::OpenFile;
use crate::memory::table::{NODE_SLOTS, Word};
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{FileId, MmId, OpenFileId, Pfn};
use std::ops::Range;

/// Entries that map a folio, from which on faults map only their own page of it: records count them in 16 bits.
const ENTRIES_MAX: u64 = 1 << 15;

/// Entries that map a folio, at which the next fault takes them away first: fault-around may add as many as a folio has pages.
const ENTRIES_END: u16 = u16::MAX - 2 * HUGE_PAGE_PAGES as u16;

impl Core {
    /// Ends a fault on a page that is in memory as folio `pfn`, or reads as zeroes.
    #[inline]
    pub(crate) fn finish_fault(&mut self, mm: MmId, page: u64, write: bool, pfn: Option<Pfn>, major: bool) {
        self.out.count.faults(1);
        let space = self.mm.memory.mm(mm);
        let entry = space.table.word(page);
        let lruvec = self.mm.lruvecs.id(space.memcg, self.current_node());
        self.count(lruvec, Stat::Pgfault, 1);
        if major {
            self.count(lruvec, Stat::Pgmajfault, 1);
        }
        let Some(pfn) = pfn else {
            self.mm.memory.mm_mut(mm).table.replace(page, Word::ZERO_PAGE);
            return;
        };
        if entry.is_present() && !entry.is_zero_page() {
            // Mapped when it was filled; by another thread while this one waited; or write-protected, which the store has ended.
            if write && !entry.is_dirty() {
                self.mm.memory.access_again(mm, page, true);
            }
            return;
        }
        let in_swap_cache = self.mm.memory.folios[pfn].has(FolioFlags::SWAPCACHE);
        if in_swap_cache && write && !self.mm.memory.folios[pfn].has(FolioFlags::LRU) {
            // While the add batch has a reference, the page can't become exclusive to the task.
            self.lru_add_drain();
        }
        self.map(mm, page, pfn, write);
        let folio = &self.mm.memory.folios[pfn];
        if folio.order > 0 && folio.has(FolioFlags::ANON) {
            self.map_swapped_whole(mm, page, pfn, write);
        } else if folio.order > 0 && self.mm.is_mapped_whole(folio.order) && folio.has(FolioFlags::INDEXED) {
            let (file, at) = (FileId(folio.owner), folio.file_page_at(page));
            self.map_whole(mm, page - at, file, at, 0);
        }
        self.tell(pfn, |_| PageEvent::Mapped { write });
        // A page that is about to change doesn't need its copy in the slot, nor does one whose slot is needed.
        if in_swap_cache && (write || self.mm.is_swap_full(self.mm.memory.folios[pfn].memcg)) {
            self.free_swap(pfn);
        }
    }

    /// Maps the other pages of a large folio that a fault has found in the swap cache, if they all still lead there. [folios 2.5]
    #[cold]
    fn map_swapped_whole(&mut self, mm: MmId, page: u64, pfn: Pfn, write: bool) {
        let folio = self.mm.memory.folios[pfn];
        let others = || folio.file_pages().filter(|&other| other != page);
        let leads_there = |other: u64| {
            self.mm.memory.is_slot_of_page_referenced(&folio, (other - u64::from(folio.index)) as u32)
        };
        if folio.has(FolioFlags::SWAPCACHE) && others().all(leads_there) {
            others().for_each(|other| self.map_entry(mm, other, pfn, write));
        }
    }

    /// Maps the page that is accessed.
    #[inline]
    pub(crate) fn map(&mut self, mm: MmId, page: u64, pfn: Pfn, dirty: bool) {
        let folio = &self.mm.memory.folios[pfn];
        if folio.order > 0 && folio.mapped >= ENTRIES_END {
            // Its other users fault again.
            self.unmap_all(pfn);
        }
        if let Some(tlb) = &mut self.mm.memory.mm_mut(mm).tlb {
            // The access that has faulted is made again, and finds the entry.
            tlb.access(page);
        }
        self.map_entry(mm, page, pfn, dirty);
    }

    #[inline]
    pub(crate) fn map_entry(&mut self, mm: MmId, page: u64, pfn: Pfn, dirty: bool) {
        let books = self.open_audit(Transition::Map, [pfn]);
        let order = self.mm.memory.folios[pfn].order;
        let space = self.mm.memory.mm_mut(mm);
        let word = Word::mapping(pfn, dirty);
        let word = if order == 0 { word } else { word.with_order(order) };
        let (before, _) = space.table.replace(page, word);
        debug_assert!(!before.is_present() || before.is_zero_page(), "page {page} is mapped over another");
        let locked = space.vma_of(page).locked;
        let folio = &mut self.mm.memory.folios[pfn];
        debug_assert!(!folio.has(FolioFlags::LOCKED), "{pfn:?} is mapped while it is being read");
        debug_assert!(!folio.has(FolioFlags::KERNEL), "{pfn:?} is the kernel's, and is mapped");
        debug_assert!(
            !folio.has(FolioFlags::ANON) || u64::from(folio.mapped) < folio.pages(),
            "{pfn:?} is anonymous, and is mapped twice"
        );
        debug_assert!(
            folio.has(FolioFlags::ANON)
                || !dirty
                || folio.flags().intersects(FolioFlags::SWAPBACKED | FolioFlags::DIRTY),
            "{pfn:?} is mapped dirty, and its file does not know"
        );
        folio.mapped += 1;
        let folio = *folio;
        if folio.mapped == 1 || folio.order > 0 && self.mm.maps_page_alone(&folio, pfn, mm, page) {
            self.count(self.mm.lruvec_of(pfn), mapped_stat(&folio), 1);
        }
        self.close_audit(books);
        if folio.has(FolioFlags::INDEXED) {
            let at = if folio.order == 0 { folio.index.into() } else { folio.file_page_at(page) };
            self.mm.memory.file_mut(FileId(folio.owner)).index.note_use(at);
        }
        if locked {
            self.mlock_folio(pfn);
        }
    }

    /// Maps what is cached around a page of a file that is about to be loaded from: pages `around` of the mapping that begins at
    /// `start`. Entries made here are young, as the processor makes no difference. A page that is being read, or that carries the
    /// mark of readahead, is left for a fault of its own. What is found speaks for reading around, unless it was hot before: then
    /// it is here for that. [machine 1.7]
    #[doc(alias = "filemap_map_pages")]
    pub(crate) fn fault_around(
        &mut self,
        mm: MmId,
        start: u64,
        open: OpenFileId,
        page: u64,
        around: Range<u64>,
    ) {
        let OpenFile { file, mmap_miss, .. } = self.mm.memory.open_files[open.index()];
        // As long as nothing speaks against it, nothing need speak for it.
        if mmap_miss > 0 {
            let index = &self.mm.memory.file(file).index;
            let is_found = |&page: &u64| {
                index.word(page).is_hit() && !index.folio_word(page).use_bits().contains(UseBits::WORKINGSET)
            };
            let found = around.clone().filter(is_found).count();
            self.mm.memory.open_files[open.index()].mmap_miss = mmap_miss.saturating_sub(found as u32);
        }
        self.out.count.ptes_walked(around.end - around.start);
        // A mapped page is always cached, and both tables count their pages per node. The range lies within one node, unless it is
        // larger than a node. So mostly no words need be scanned: all cached pages are mapped, except the accessed page when its
        // read is over.
        let cached = self.mm.memory.file(file).index.pages_of_node(page);
        let unmapped = cached - self.mm.memory.mm(mm).table.pages_of_node(start + page);
        if self.mm.recorded.is_mapped(page).is_some() || around.end - around.start > NODE_SLOTS {
            self.map_unmapped(mm, start, file, page, around);
        } else if unmapped == 0 {
            debug_assert!(around.clone().all(|at| self.mm.unmapped(mm, start, file, at).is_none()));
        } else if unmapped == 1
            && let Some(pfn) = self.mm.unmapped(mm, start, file, page)
        {
            self.map(mm, start + page, pfn, false);
        } else {
            self.map_unmapped(mm, start, file, page, around);
        }
    }

    /// Looks at each of these pages, and maps those that are there and not mapped; where it was recorded which were, no others.
    #[inline(never)]
    fn map_unmapped(&mut self, mm: MmId, start: u64, file: FileId, page: u64, around: Range<u64>) {
        for at in around {
            match self.mm.unmapped(mm, start, file, at) {
                Some(pfn) if at == page => self.map(mm, start + at, pfn, false),
                Some(pfn) if self.mm.recorded.is_mapped(at) != Some(false) => {
                    self.map_entry(mm, start + at, pfn, false);
                }
                Some(_) | None => {}
            }
            let order = self.mm.memory.file(file).index.word(at).order();
            if order > 0 && self.mm.is_mapped_whole(order) {
                self.map_whole(mm, start, file, at, 1);
            }
        }
    }

    /// Maps the other pages of the large folio that a page of a mapping is mapped in, if `left` pages of the file lie behind its end at least. [folios
    /// 1.4]
    fn map_whole(&mut self, mm: MmId, start: u64, file: FileId, page: u64, left: u64) {
        let of = self.mm.memory.file(file);
        let word = of.index.word(page);
        if !word.is_large() {
            return;
        }
        let (pfn, folio) = (word.pfn(), self.mm.memory.folios[word.pfn()]);
        let pages = folio.file_pages();
        let mapping = self.mm.memory.mm(mm).vma_of(start + page).range();
        // Pages beyond the end of a file of tmpfs are zeroes.
        let is_within = (pages.end + left <= of.pages() || of.is_tmpfs())
            && start + pages.start >= mapping.start
            && start + pages.end <= mapping.end;
        if !is_within || u64::from(folio.mapped) + folio.pages() > ENTRIES_MAX {
            return;
        }
        let mut new = 0;
        for at in pages {
            if self.mm.unmapped(mm, start, file, at).is_some() {
                self.map_entry(mm, start + at, pfn, false);
                new += 1;
            }
        }
        // The page of the fault may be mapped already.
        if new + 1 >= HUGE_PAGE_PAGES {
            self.mm.count_node(folio.node, Stat::ThpFileMapped, 1);
        }
    }

    /// Makes a folio unevictable: immediately if it is on a list, else when it gets there.
    pub(crate) fn mlock_folio(&mut self, pfn: Pfn) {
        if !self.mm.memory.folios[pfn].has(FolioFlags::MLOCKED) {
            self.set_mlocked(pfn, true);
        }
    }

    /// Takes that back, unless another locked mapping shows the folio.
    pub(crate) fn munlock_folio(&mut self, pfn: Pfn) {
        if self.mm.memory.folios[pfn].has(FolioFlags::MLOCKED) && !self.mm.is_mapped_locked(pfn) {
            self.set_mlocked(pfn, false);
        }
    }

    fn set_mlocked(&mut self, pfn: Pfn, locked: bool) {
        let books = self.open_audit(Transition::Mlock, [pfn]);
        let folio = self.mm.memory.folios[pfn];
        let pages = folio.pages() as i64;
        let event = if locked { Stat::UnevictablePgsMlocked } else { Stat::UnevictablePgsMunlocked };
        self.mm.count_node(folio.node, Stat::NrMlock, if locked { pages } else { -pages });
        self.mm.count_node(folio.node, event, pages);
        let is_listed = folio.has(FolioFlags::LRU);
        assert_ne!(
            folio.has(FolioFlags::MLOCKED),
            locked,
            "{pfn:?} is locked into memory, or is not, already"
        );
        if is_listed {
            self.lru_unlink(pfn);
        }
        self.mm.memory.folios[pfn].change(FolioFlags::MLOCKED, locked);
        if is_listed {
            self.lru_place(pfn, Arrival::Added);
        }
        self.close_audit(books);
    }
}

impl State {
    /// Returns true if a fault maps all of a folio of this order. One entry maps a huge page; here it is one per page, made together.
    fn is_mapped_whole(&self, order: u8) -> bool {
        order == HUGE_PAGE_ORDER || self.config.policy.machine.fault_around_whole
    }

    /// A folio has lost an entry that maps it: what keeps it in memory still is a locked mapping.
    #[inline]
    pub(crate) fn assert_locked_by_mapping(&self, pfn: Pfn) {
        debug_assert!(
            !self.memory.folios[pfn].has(FolioFlags::MLOCKED) || self.is_mapped_locked(pfn),
            "{pfn:?} stays locked into memory, and no locked mapping shows it"
        );
    }

    /// A page of a regular file, whose changes have to be written back.
    #[inline]
    pub(crate) fn is_regular(&self, pfn: Pfn) -> bool {
        !self.memory.folios[pfn].flags().intersects(FolioFlags::ANON | FolioFlags::SWAPBACKED)
    }

    /// A page of a file that is ready to be used, but not mapped.
    #[inline]
    pub(crate) fn unmapped(&self, mm: MmId, start: u64, file: FileId, page: u64) -> Option<Pfn> {
        let word = self.memory.file(file).index.word(page);
        let is_mapped = self.memory.mm(mm).table.word(start + page).is_present();
        (word.is_hit() && !is_mapped).then(|| word.pfn())
    }
}
