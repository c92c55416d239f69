//! process_madvise(2), and madvise(2) of a task on its own mappings: advice that acts immediately. [access-aware 5.1, 5.2]
//!
//! ```text
//!   cold      pages in use are deactivated, and their use is forgotten
//!   pageout   pages are reclaimed now, used or not: no demotion, no pgscan, no memory.low
//!   free      contents of anonymous pages may be dropped, unless they are written again
//! ```
//! A page that several mappings show is left alone, and so is a part of a large folio that can't be split. Each step looks at a page table at most,
//! and takes a batch of folios.
//!
//! Difference: whether the caller may write a file that is advised is not asked.

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::memory::table::{Entry, LEAF_PAGES, Word};
use crate::units::{MmId, Pfn};
use std::ops::Range;

/// Folios that one step reclaims.
const FOLIOS_PER_STEP: usize = 32;

/// Advice on pages that acts immediately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageAdvice {
    /// `MADV_COLD`.
    Cold,
    /// `MADV_PAGEOUT`.
    Pageout,
    /// `MADV_FREE`.
    Free,
}

/// A mapping that is advised.
pub(crate) struct Advised {
    pub(crate) mm: MmId,
    pub(crate) vma: usize,
    /// Its pages in the address space.
    pub(crate) pages: Range<u64>,
}

/// A call in progress.
pub(crate) struct Madvise {
    advice: PageAdvice,
    /// The mappings that are left; the last one comes first.
    left: Vec<Advised>,
    /// The next page of that one.
    at: u64,
    reclaimed: u64,
}

impl Madvise {
    /// Advice on these pages of mappings.
    pub(crate) fn new(advice: PageAdvice, mut mappings: Vec<Advised>) -> Madvise {
        mappings.reverse();
        let at = mappings.last().map_or(0, |first| first.pages.start);
        Madvise { advice, left: mappings, at, reclaimed: 0 }
    }

    /// Pages that were freed so far.
    pub(crate) fn reclaimed(&self) -> u64 {
        self.reclaimed
    }
}

impl Core {
    /// One step of a call. Returns true if the call is done.
    pub(crate) fn madvise_step(&mut self, call: &mut Madvise) -> bool {
        let Some(Advised { mm, vma, pages }) = call.left.last() else { return true };
        let (mm, vma, pages) = (*mm, *vma, pages.clone());
        // The process may have unmapped it, or ended, since the last step.
        let is_mapped = self.mm.memory.mm(mm).vmas.get(vma).is_some_and(|vma| vma.mapped);
        let table_end = (call.at / LEAF_PAGES + 1) * LEAF_PAGES;
        let end = if is_mapped { table_end.min(pages.end) } else { call.at };
        let mut taken = Vec::new();
        if is_mapped && self.mm.memory.mm(mm).table.leaf_exists(call.at / LEAF_PAGES) {
            while call.at < end && taken.len() < FOLIOS_PER_STEP {
                let page = call.at;
                call.at += 1;
                self.out.count.ptes_walked(1);
                match call.advice {
                    PageAdvice::Free => self.madvise_free_at(mm, vma, page),
                    _ => call.at = self.madvise_page(call.advice, mm, page, &pages, &mut taken).max(call.at),
                }
            }
        } else {
            call.at = end;
        }
        let memcg = self.mm.memory.mm(mm).memcg;
        let ignores_use = !self.mm.config.policy.machine.damon.pageout_references;
        call.reclaimed += self.reclaim_pages(memcg, taken, ignores_use);
        if !is_mapped || call.at >= pages.end {
            call.left.pop();
            call.at = call.left.last().map_or(0, |next| next.pages.start);
        }
        call.left.is_empty()
    }

    /// `cold` or `pageout` of the folio that a page shows. Returns the page behind it.
    fn madvise_page(
        &mut self,
        advice: PageAdvice,
        mm: MmId,
        page: u64,
        range: &Range<u64>,
        taken: &mut Vec<Pfn>,
    ) -> u64 {
        let mut word = self.mm.memory.mm(mm).table.word(page);
        if !word.is_present() || word.is_zero_page() {
            return page + 1;
        }
        let folio = self.mm.memory.folios[word.pfn()];
        let first = word.head(page);
        let whole = first..first + folio.pages();
        if u64::from(folio.mapped) != folio.pages() {
            return page + 1;
        }
        if word.is_large() && !self.may_page_out_whole(word.pfn(), range) {
            let is_anon = folio.has(FolioFlags::ANON);
            if !is_anon || !self.split_anon_at(mm, page) {
                return whole.end;
            }
            word = self.mm.memory.mm(mm).table.word(page);
        }
        let (pfn, end) = (word.pfn(), if word.is_large() { whole.end } else { page + 1 });
        if advice == PageAdvice::Cold || self.mm.config.policy.machine.damon.pageout_references {
            (page..end).for_each(|page| self.mm.memory.mm_mut(mm).table.clear_entry_young(page));
        }
        self.damos_forget_use(pfn);
        match advice {
            PageAdvice::Cold => self.lru_deactivate(pfn),
            _ => taken.push(pfn),
        }
        end
    }

    /// `free` of a page: swapped contents are dropped, and those in memory may be.
    fn madvise_free_at(&mut self, mm: MmId, vma: usize, page: u64) {
        if let Entry::Swap(_) = self.mm.memory.mm(mm).table.word(page).decode() {
            // One that a thread is reading stays.
            let _ = self.zap_pages(mm, vma, page..page + 1);
            return;
        }
        if !self.split_anon_at(mm, page) {
            return;
        }
        let mut word = self.mm.memory.mm(mm).table.word(page);
        if word.is_present() && !word.is_zero_page() {
            self.madvise_free_folio(word.pfn(), &mut word);
            self.mm.memory.mm_mut(mm).table.replace(page, word);
        }
    }

    /// The contents of an anonymous folio of one page may be dropped, unless it is written again.
    pub(crate) fn madvise_free_folio(&mut self, pfn: Pfn, word: &mut Word) {
        if !self.mm.memory.folios[pfn].has(FolioFlags::ANON) {
            return;
        }
        if self.mm.memory.folios[pfn].has(FolioFlags::SWAPCACHE) {
            self.free_swap(pfn);
            if self.mm.memory.folios[pfn].has(FolioFlags::SWAPCACHE) {
                // The slot is being written and may end up with older contents than the page has: those are neither
                // forgotten nor kept.
                return;
            }
        }
        // From here on, a dirty bit means that it was written after this call.
        word.clear_dirty();
        word.clear_young();
        self.mm.memory.folios[pfn].clear(FolioFlags::DIRTY);
        self.lru_lazyfree(pfn);
    }
}
