//! What takes a folio's record together with the words that lead to it: the index of its file, the page table, the swap cache.

use crate::memory::Memory;
use crate::memory::folio::{Folio, FolioFlags};
use crate::memory::table::{Entry, ReadaheadStats, SwapEntry, Word};
use crate::units::{FileId, MmId, Pfn};

impl Memory {
    /// A young entry's dirty bit is passed on to the folio, so that its write can begin earlier; the entry keeps it. A page
    /// without a slot has none to write to.
    pub fn take_over_dirty(&mut self, word: Word) {
        let pfn: Pfn = word.pfn();
        let folio = &mut self.folios[pfn];
        let has_no_slot =
            folio.has(FolioFlags::ANON | FolioFlags::SWAPBACKED) && !folio.has(FolioFlags::SWAPCACHE);
        if word.is_dirty() && !has_no_slot {
            folio.set(FolioFlags::DIRTY);
        }
    }

    /// Sets or clears RECLAIM. In a regular file's index the word shows it, so that a reader who meets the mark takes the slow way. On a page that is
    /// dirty or being written, RECLAIM is not a readahead mark, but a request of reclaim.
    pub fn change_reclaim(&mut self, pfn: Pfn, is_set: bool) {
        self.folios[pfn].change(FolioFlags::RECLAIM, is_set);
        let folio = self.folios[pfn];
        if folio.has(FolioFlags::INDEXED) && !folio.has(FolioFlags::SWAPBACKED) {
            let index = &mut self.file_mut(FileId(folio.owner)).index;
            let is_wish = folio.flags().intersects(FolioFlags::DIRTY | FolioFlags::WRITEBACK);
            for page in folio.file_pages() {
                index.update(page, |word| word.set_readahead(is_set && !is_wish));
            }
            debug_assert_eq!(
                index.word(folio.index.into()).is_readahead(),
                folio.has(FolioFlags::RECLAIM) && !is_wish,
                "{pfn:?}: the mark of readahead in its word, and its flag"
            );
        }
    }

    /// Returns whether a page is in the page cache, be it only on its way there.
    pub fn is_cached(&self, file: FileId, page: u64) -> bool {
        let index = &self.file(file).index;
        page < index.pages() && index.word(page).is_present()
    }

    /// Returns counts of the pages that were read ahead, by their fate.
    pub fn readahead_stats(&self) -> ReadaheadStats {
        let mut sum = ReadaheadStats::default();
        for stats in self.files.iter().map(|file| file.index.readahead()) {
            sum.pages += stats.pages;
            sum.unused += stats.unused;
            sum.dropped += stats.dropped;
        }
        sum
    }

    /// Makes the index of its file, or the swap cache, lead to the new frame.
    pub fn move_in_caches(&mut self, folio: &Folio, to: Pfn) {
        if folio.has(FolioFlags::INDEXED) {
            let index = &mut self.file_mut(FileId(folio.owner)).index;
            for page in folio.file_pages() {
                index.update(page, |word| *word = word.with_pfn(to));
            }
        }
        if folio.has(FolioFlags::SWAPCACHE) {
            let index = self.swap.cache_mut(folio.swap);
            for slot in folio.slots() {
                index.update(slot.into(), |word| *word = word.with_pfn(to));
            }
        }
    }

    /// Returns whether the page table or index of the folio's owner leads to its slot, or to one of its slots, rather than to the folio.
    #[inline]
    pub fn is_slot_referenced(&self, pfn: Pfn) -> bool {
        let folio = &self.folios[pfn];
        if folio.order > 0 {
            return (0..folio.pages() as u32).any(|at| self.is_slot_of_page_referenced(folio, at));
        }
        self.is_slot_of_page_referenced(folio, 0)
    }

    /// The same of the slot of one of its pages.
    pub fn is_slot_of_page_referenced(&self, folio: &Folio, at: u32) -> bool {
        let page = u64::from(folio.index + at);
        let word = if folio.has(FolioFlags::ANON) {
            self.mm(MmId(folio.owner)).table.word_if_any(page)
        } else {
            self.file(FileId(folio.owner)).index.word(page)
        };
        word.decode() == Entry::Swap(SwapEntry { swap: folio.swap, slot: folio.slot + at })
    }

    /// Names a folio after the page that the slot holds.
    pub fn name_after_slot(&mut self, pfn: Pfn, entry: SwapEntry) {
        let owner = self.swap.owner(entry);
        let folio = &mut self.folios[pfn];
        assert_eq!(folio.mapped, 0, "{pfn:?} becomes another's page while it is mapped");
        (folio.owner, folio.index) = (owner.owner, owner.index);
        folio.change(FolioFlags::ANON, owner.is_anon);
        folio.set(FolioFlags::SWAPBACKED);
    }

    /// Returns how many places the reverse map has to look at. A file's mappings stand for all its pages, so most of them may
    /// turn out not to map this one. A large folio has as many in each mapping as it has pages, unless one entry maps all of it.
    #[inline]
    pub fn rmap_len(&self, folio: &Folio) -> usize {
        if !folio.has(FolioFlags::ANON) {
            self.file(FileId(folio.owner)).mappings.len() << folio.order
        } else if folio.order > 0 && !self.is_mapped_by_one(folio) {
            1 << folio.order
        } else {
            1
        }
    }

    /// Returns whether one entry maps all of a large anonymous folio.
    #[cold]
    pub fn is_mapped_by_one(&self, folio: &Folio) -> bool {
        folio.is_large_anon()
            && folio.mapped > 0
            && self.mm(MmId(folio.owner)).table.word_if_any(folio.index.into()).is_huge()
    }

    /// Repeats an access that has faulted on a present entry, and lets it through: a store to a clean entry of a regular file, or an access to a
    /// marked one.
    pub fn access_again(&mut self, mm: MmId, page: u64, dirties: bool) {
        let space = self.mm_mut(mm);
        let mut word = space.table.word(page);
        word.set_young();
        if dirties {
            word.set_dirty();
        }
        space.table.replace(page, word);
        if let Some(tlb) = &mut space.tlb {
            tlb.access(page);
        }
    }

    /// Returns whether an anonymous folio can't be freed without I/O, as isolation asks. Isolation treats folios whose contents may be forgotten the same
    /// way. [mglru-2026 2.8]
    pub fn needs_io(&self, pfn: Pfn) -> bool {
        let folio = &self.folios[pfn];
        folio.has(FolioFlags::SWAPBACKED | FolioFlags::DIRTY)
            || folio.has(FolioFlags::ANON) && !folio.has(FolioFlags::SWAPCACHE)
    }

    /// The folio of a page that is in the page cache.
    pub fn cached_folio(&self, file: FileId, page: u64) -> Pfn {
        let Entry::Present(pfn) = self.file(file).index.word(page).decode() else {
            unreachable!("the page is in the page cache")
        };
        pfn
    }
}
