//! Zapping page-table entries: munmap, and the end of an address space.
//!
//! An anonymous page goes with its entry, and so does the slot of one that was swapped out. A page of a file is only unmapped and
//! stays in the page cache. If its entry is young, that is the last chance to learn that it was in use. A page that another user
//! holds (a CPU's batch, a write to swap, a reclaimer) is freed when that user releases it. Tables that never held a page are
//! skipped, so the cost of a large mapping depends on the part that was used. [machine 6]

use crate::core::Core;
use crate::memory::file::FileMapping;
use crate::memory::folio::FolioFlags;
use crate::memory::mm::{Backing, Vma};
use crate::memory::table::{Entry, LEAF_PAGES, Word};
use crate::state::State;
use crate::units::{MmId, Pfn};
use pageout_rules::accessed::Recency;
use std::ops::Range;

/// Large folios of which some entries are taken away: whether a part of one stays mapped is asked when all entries of a range are gone.
struct UnmappedParts {
    range: Range<u64>,
    current: Option<Pfn>,
}

impl UnmappedParts {
    fn new(range: Range<u64>) -> UnmappedParts {
        UnmappedParts { range, current: None }
    }

    /// The entry of a page is about to be taken away.
    #[inline]
    fn next(&mut self, core: &mut Core, mm: MmId, page: u64) {
        let word = core.mm.memory.mm(mm).table.word(page);
        if word.is_large() || self.current.is_some() {
            self.note(core, word, page);
        }
    }

    #[cold]
    fn note(&mut self, core: &mut Core, word: Word, page: u64) {
        let pages = word.head(page)..word.head(page) + (1 << word.order());
        let is_part = pages.start < self.range.start || pages.end > self.range.end;
        let next = (word.is_large() && is_part && !word.is_huge()).then(|| word.pfn());
        if self.current != next {
            self.end(core);
            self.current = next;
        }
    }

    /// All entries of the range are gone.
    fn end(&mut self, core: &mut Core) {
        if let Some(pfn) = self.current.take()
            && core.mm.memory.folios[pfn].is_large_anon()
        {
            core.note_unmapped_part(pfn);
        }
    }
}

/// How far the entries of an address space have been taken away.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Zap {
    /// Position of the mapping to go on with.
    vma: usize,
    /// Page of the address space to go on at, if that is within the mapping.
    page: u64,
}

impl Core {
    /// Takes a mapping's entries away, and the mapping.
    pub(crate) fn munmap(&mut self, mm: MmId, vma: usize) {
        let pages = self.mm.memory.mm(mm).vmas[vma].range();
        let mut page = pages.start;
        while let Some(table) = self.mm.next_table(mm, page..pages.end) {
            page = table.end;
            self.zap_table(mm, vma, table);
        }
        self.remove_vma(mm, vma);
    }

    fn remove_vma(&mut self, mm: MmId, vma: usize) {
        self.mm.memory.mm_mut(mm).vmas[vma].mapped = false;
        self.page_tables_free(mm, self.mm.memory.mm(mm).vmas[vma].range(), usize::MAX);
        if let Backing::File(file) = self.mm.memory.mm(mm).vmas[vma].backing {
            let is_other = |mapping: &FileMapping| (mapping.mm, mapping.vma) != (mm, vma);
            let mappings = &mut self.mm.memory.file_mut(file).mappings;
            let before = mappings.len();
            mappings.retain(is_other);
            debug_assert_eq!(
                mappings.len() + 1,
                before,
                "mappings of a file before and after one of them goes"
            );
        }
    }

    /// Removes the rest of an address space that has no task any more, a page-table page a step. False when nothing is left:
    /// then the address space has ended.
    pub(crate) fn exit_mmap(&mut self, mm: MmId, zap: &mut Zap) -> bool {
        while let Some(vma) = self.mm.memory.mm(mm).vmas.get(zap.vma) {
            let pages = vma.range();
            let from = zap.page.max(pages.start);
            let is_mapped = vma.mapped;
            if let Some(table) = self.mm.next_table(mm, from..pages.end).filter(|_| is_mapped) {
                zap.page = table.end;
                self.zap_table(mm, zap.vma, table);
                return true;
            }
            if is_mapped {
                self.remove_vma(mm, zap.vma);
            }
            zap.vma += 1;
        }
        self.mm.lru_gen_del_mm(mm);
        self.mm.memory.mm_mut(mm).end();
        // Freed pages leave the batches as they leave the lists.
        self.lru_add_drain();
        false
    }

    /// Frees pages of an anonymous mapping, up to the first that a thread is reading ([`crate::FrameGate`]), which is returned. Pages in flight are
    /// freed when their read or write has ended.
    pub(crate) fn zap_pages(&mut self, mm: MmId, vma: usize, pages: Range<u64>) -> Option<u64> {
        let space = self.mm.memory.mm(mm);
        let (vma, recency) = (space.vmas[vma].clone(), self.mm.memcgs[space.memcg].policy.harvest.recency);
        let mut next = pages.start;
        while let Some(table) = self.mm.next_table(mm, next..pages.end) {
            next = table.end;
            let mut parts = UnmappedParts::new(table.clone());
            for page in table {
                if !self.zap_freeze(mm, page, &pages) {
                    parts.end(self);
                    return Some(page);
                }
                parts.next(self, mm, page);
                let word = self.mm.memory.mm(mm).table.word(page);
                self.zap_entry(mm, &vma, recency, page);
                if word.is_large() && self.mm.memory.folios[word.pfn()].mapped > 0 {
                    // The frame stays with its folio.
                    self.open_all(word.frame(page), 1);
                }
            }
            parts.end(self);
        }
        None
    }

    /// Closes the gate of a page before it is zapped. Returns false if a thread is reading the page. A huge page that is not wholly in the zapped pages
    /// gets entries of single pages first.
    fn zap_freeze(&mut self, mm: MmId, page: u64, pages: &Range<u64>) -> bool {
        let word = self.mm.memory.mm(mm).table.word(page);
        if word.is_huge() {
            let leaf = word.head(page)..word.head(page) + LEAF_PAGES;
            if pages.start <= leaf.start && leaf.end <= pages.end {
                return self.gate_close(word.pfn());
            }
            self.split_huge_entry(word.pfn());
        }
        match word.decode() {
            Entry::Present(_) if word.is_large() => self.gate_close_page(word.frame(page)),
            Entry::Present(pfn) if !word.is_zero_page() => self.gate_close(pfn),
            // A page that is still being read from swap has no readers.
            Entry::Swap(entry) => match self.mm.memory.swap.cached(entry) {
                Some(pfn) if self.mm.memory.folios[pfn].order > 0 => true,
                Some(pfn) if !self.mm.memory.folios[pfn].has(FolioFlags::LOCKED) => self.gate_close(pfn),
                _ => true,
            },
            _ => true,
        }
    }

    /// Returns true if all of these pages are empty.
    pub(crate) fn are_empty(&self, mm: MmId, pages: Range<u64>) -> bool {
        let mut next = pages.start;
        while let Some(table) = self.mm.next_table(mm, next..pages.end) {
            next = table.end;
            let words = &self.mm.memory.mm(mm).table;
            let may_have_words = words.may_have_words(table.start / LEAF_PAGES);
            if may_have_words && words.words(table).any(|word| word != Word::EMPTY) {
                return false;
            }
        }
        true
    }

    #[doc(alias = "zap_pte_range")]
    fn zap_table(&mut self, mm: MmId, vma: usize, pages: Range<u64>) {
        let space = self.mm.memory.mm(mm);
        let (vma, recency) = (space.vmas[vma].clone(), self.mm.memcgs[space.memcg].policy.harvest.recency);
        let mut parts = UnmappedParts::new(pages.clone());
        for page in pages {
            parts.next(self, mm, page);
            self.zap_entry(mm, &vma, recency, page);
        }
        parts.end(self);
    }

    fn zap_entry(&mut self, mm: MmId, vma: &Vma, recency: Recency, page: u64) {
        let word = self.mm.memory.mm(mm).table.word(page);
        match word.decode() {
            Entry::Empty | Entry::Shadow(_) => {}
            Entry::Present(_) if word.is_zero_page() => {
                self.mm.memory.mm_mut(mm).table.replace(page, Word::EMPTY);
                self.out.count.zapped(1);
            }
            Entry::Present(pfn) if word.is_huge() => {
                self.out.count.zapped(1);
                self.unmap_huge(mm, page);
                if vma.locked {
                    self.munlock_folio(pfn);
                }
                self.mm.assert_locked_by_mapping(pfn);
                self.release_if_unused(pfn);
            }
            Entry::Present(pfn) => {
                if word.is_young()
                    && vma.counts_use(&self.mm.memory.open_files, recency)
                    && vma.backing != Backing::Anon
                {
                    self.mark_accessed(pfn);
                }
                self.out.count.zapped(1);
                self.unmap_one(mm, page, Word::EMPTY);
                if vma.locked {
                    self.munlock_folio(pfn);
                }
                self.mm.assert_locked_by_mapping(pfn);
                self.release_if_unused(pfn);
            }
            Entry::Swap(entry) => {
                self.mm.memory.mm_mut(mm).table.replace(page, Word::EMPTY);
                self.out.count.zapped(1);
                self.give_up_swapped(entry);
            }
        }
    }
}

impl State {
    /// The pages under the first table that exists among those of `pages`.
    pub(crate) fn next_table(&self, mm: MmId, pages: Range<u64>) -> Option<Range<u64>> {
        let table = &self.memory.mm(mm).table;
        let leaves = pages.start / LEAF_PAGES..pages.end.div_ceil(LEAF_PAGES);
        let leaf = leaves.into_iter().find(|&leaf| pages.start < pages.end && table.leaf_exists(leaf))?;
        Some((leaf * LEAF_PAGES).max(pages.start)..((leaf + 1) * LEAF_PAGES).min(pages.end))
    }
}
