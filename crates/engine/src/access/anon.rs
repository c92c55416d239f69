//! Changes of anonymous mappings by their owner: another length, and pages that are discarded, swapped out or read on request.
//!
//! ```text
//!   resize_anon        the last mapping of its address space gets longer, or shorter by empty pages
//!   free_page_tables   those of empty pages at its end are freed
//!   madvise_dontneed   pages and slots are freed, and read as zeroes; not pages that a thread is reading
//!   madvise_pageout    pages are swapped out now, used or not
//!   madvise_willneed   swapped pages are read, and no task waits for them
//! ```
//! A host with regions calls these for ranges of a few hundred pages, and lets other tasks run in between. So no call takes long, however large a
//! mapping is. [machine 6]

use crate::access::engine::{Engine, TABLE_PAGES_MAX};
use crate::access::hits::Object;
use crate::config::{ConfigError, check_range};
use crate::machine::step::Step;
use crate::memory::folio::FolioFlags;
use crate::memory::mm::{Backing, Mm};
use crate::memory::nodes::NodeKind;
use crate::memory::room::check_table;
use crate::memory::table::{Entry, LEAF_PAGES, Word};
use crate::swap::readahead::SwapReadahead;
use crate::units::{MmId, ObjectId, Pfn, TaskId};
use std::ops::Range;

impl Engine {
    /// Changes the length of an anonymous mapping: mremap(2). It must be the last one of its address space, and the pages that it loses must be
    /// empty ([`Engine::madvise_dontneed`]). No access to it may be in progress.
    ///
    /// # Errors
    /// [`ConfigError`]: the object is not such a mapping, or can't have this many pages. The mapping is then unchanged.
    pub fn resize_anon(&mut self, task: TaskId, object: ObjectId, pages: u64) -> Result<(), ConfigError> {
        self.enter(task);
        let (mm_id, vma_at) = self.anon_mapping(task, object)?;
        check_range("pages of a mapping", pages, 1, TABLE_PAGES_MAX)?;
        let mm = self.core.mm.memory.mm(mm_id);
        if vma_at + 1 < mm.vmas.len() {
            return Err(ConfigError::Unknown(format!(
                "mapping {} at the end of its address space",
                object.0
            )));
        }
        let (old, end) = (mm.vmas[vma_at].range(), mm.vmas[vma_at].start + pages);
        check_range("pages of an address space", end, 1, TABLE_PAGES_MAX)?;
        if end < old.end && !self.core.are_empty(mm_id, end..old.end) {
            return Err(ConfigError::Unknown(format!("empty pages from {pages} on in mapping {}", object.0)));
        }
        let grown = end.saturating_sub(mm.table.pages());
        if end < old.end {
            // Those that the caller has not freed a few at a time.
            self.core.page_tables_free(mm_id, end.next_multiple_of(LEAF_PAGES)..old.end, usize::MAX);
        }
        if grown > 0 {
            check_table("an address space", NodeKind::PageTable, end, &self.core.mm.memory.tables)?;
        }
        let Mm { table, nodes, vmas, .. } = self.core.mm.memory.mm_mut(mm_id);
        if grown > 0 {
            table.grow(grown);
            nodes.grow(end);
        } else if end.next_multiple_of(LEAF_PAGES) < table.pages() {
            table.shrink(end.next_multiple_of(LEAF_PAGES));
        }
        vmas[vma_at].pages = pages;
        for object in self.tasks.iter_mut().flat_map(|task| &mut task.objects) {
            if let Object::Mapping { mm, vma, pages: of, .. } = object
                && (*mm, *vma) == (mm_id, vma_at)
                && *of > 0
            {
                *of = pages;
            }
        }
        Ok(())
    }

    /// Returns the first of these pages of an anonymous mapping that has a page table, or their end. Those before it are empty.
    ///
    /// # Errors
    /// [`ConfigError`]: the mapping has no such pages.
    pub fn skip_empty(
        &mut self,
        task: TaskId,
        object: ObjectId,
        pages: Range<u64>,
    ) -> Result<u64, ConfigError> {
        let count = pages.end - pages.start;
        let (mm, _, at) = self.anon_pages(task, object, pages.clone())?;
        let start = at.start;
        Ok(pages.start + self.core.mm.next_table(mm, at).map_or(count, |table| table.start - start))
    }

    /// Frees page tables of an anonymous mapping behind its first pages, `most` at a time, as munmap(2) frees those that lead to nothing else. The pages must be
    /// empty ([`Engine::madvise_dontneed`]), and no access to the mapping may be in progress. Returns true if there are more of them.
    ///
    /// # Errors
    /// [`ConfigError`]: the object is not such a mapping.
    pub fn free_page_tables(
        &mut self,
        task: TaskId,
        object: ObjectId,
        kept: u64,
        most: usize,
    ) -> Result<bool, ConfigError> {
        self.enter(task);
        let (mm, vma) = self.anon_mapping(task, object)?;
        let pages = self.core.mm.memory.mm(mm).vmas[vma].range();
        // Mappings share no page table.
        let pages = (pages.start + kept).next_multiple_of(LEAF_PAGES)..pages.end;
        Ok(self.core.page_tables_free(mm, pages, most).is_some())
    }

    /// `madvise(MADV_DONTNEED)` on pages of an anonymous mapping: frees them and their slots. They then read as zeroes. Ends at the first page that a
    /// thread is reading without the engine ([`crate::FrameGate`]), and returns it: the pages before it are free.
    ///
    /// # Errors
    /// [`ConfigError`]: the mapping has no such pages.
    pub fn madvise_dontneed(
        &mut self,
        task: TaskId,
        object: ObjectId,
        pages: Range<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        let (mm, vma, at) = self.anon_pages(task, object, pages)?;
        let start = self.core.mm.memory.mm(mm).vmas[vma].start;
        // A page that waits in a batch for its list could not be freed.
        self.core.lru_add_drain();
        Ok(self.core.zap_pages(mm, vma, at).map(|page| page - start))
    }

    /// `madvise(MADV_PAGEOUT)` on pages of an anonymous mapping: reclaims them like unused pages. Pages that have to be written are freed when they are
    /// reclaimed after the write.
    ///
    /// # Errors
    /// [`ConfigError`]: the mapping has no such pages.
    pub fn madvise_pageout(
        &mut self,
        task: TaskId,
        object: ObjectId,
        pages: Range<u64>,
    ) -> Result<(), ConfigError> {
        let (mm, _, at) = self.anon_pages(task, object, pages)?;
        let mut folios: Vec<Pfn> = Vec::new();
        for page in at.clone() {
            if !self.core.mm.memory.mm(mm).table.leaf_exists(page / LEAF_PAGES) {
                continue;
            }
            let mut word = self.core.mm.memory.mm(mm).table.word(page);
            if word.is_large() && !self.core.may_page_out_whole(word.pfn(), &at) {
                if !self.core.split_anon_at(mm, page) {
                    continue;
                }
                word = self.core.mm.memory.mm(mm).table.word(page);
            }
            match word.decode() {
                Entry::Present(pfn) if !word.is_zero_page() && folios.last() != Some(&pfn) => {
                    folios.push(pfn)
                }
                _ => {}
            }
        }
        let memcg = self.core.mm.memory.mm(mm).memcg;
        let _ = self.core.reclaim_pages(memcg, folios, true);
        Ok(())
    }

    /// `madvise(MADV_WILLNEED)` on pages of an anonymous mapping: reads swapped pages into the swap cache. The task does not wait for these reads, but it
    /// may wait for memory. The first [`Step::Done`] is [`crate::Served::Advised`].
    ///
    /// # Errors
    /// [`ConfigError`]: the mapping has no such pages.
    pub fn madvise_willneed(
        &mut self,
        task: TaskId,
        object: ObjectId,
        pages: Range<u64>,
    ) -> Result<Step, ConfigError> {
        self.assert_idle(task);
        let (mm, _, at) = self.anon_pages(task, object, pages)?;
        self.tasks[task.index()].attempt.begin_swap_advice(object, SwapReadahead::of_pages(mm, at));
        Ok(self.current(task).attempt())
    }

    /// Returns whether a page of an anonymous mapping has no contents of its own: it was never written, or was discarded.
    ///
    /// # Errors
    /// [`ConfigError`]: the mapping has no such page.
    pub fn is_anon_empty(&mut self, task: TaskId, object: ObjectId, page: u64) -> Result<bool, ConfigError> {
        let (mm, _, at) = self.anon_pages(task, object, page..page + 1)?;
        let word = self.core.mm.memory.mm(mm).table.word(at.start);
        Ok(word == Word::EMPTY || word.is_zero_page())
    }

    /// Returns the page of anonymous memory that a frame belongs to: the address space, and the page in it.
    pub fn anon_page_of(&self, pfn: Pfn) -> Option<(MmId, u64)> {
        let folio = &self.core.mm.memory.folios[pfn];
        folio.has(FolioFlags::ANON).then(|| (MmId(folio.owner), folio.index.into()))
    }

    /// Returns the pages of an anonymous mapping that are in memory, mapped or in the swap cache, with their frames.
    ///
    /// # Errors
    /// [`ConfigError`]: the mapping has no such pages.
    pub fn anon_frames(
        &mut self,
        task: TaskId,
        object: ObjectId,
        pages: Range<u64>,
    ) -> Result<Vec<(u64, Pfn)>, ConfigError> {
        let (mm, vma, at) = self.anon_pages(task, object, pages)?;
        let memory = &self.core.mm.memory;
        let (space, start) = (memory.mm(mm), memory.mm(mm).vmas[vma].start);
        let there = at.filter(|page| space.table.leaf_exists(page / LEAF_PAGES)).filter_map(|page| {
            let word = space.table.word(page);
            let pfn = match word.decode() {
                Entry::Present(_) if !word.is_zero_page() => word.frame(page),
                Entry::Swap(entry) => memory.swap.cached(entry)?,
                _ => return None,
            };
            Some((page - start, pfn))
        });
        Ok(there.collect())
    }

    /// The place of pages of an anonymous mapping in its address space.
    fn anon_pages(
        &mut self,
        task: TaskId,
        object: ObjectId,
        pages: Range<u64>,
    ) -> Result<(MmId, usize, Range<u64>), ConfigError> {
        self.enter(task);
        let (mm, vma) = self.anon_mapping(task, object)?;
        let of = &self.core.mm.memory.mm(mm).vmas[vma];
        if pages.is_empty() || pages.end > of.pages {
            return Err(ConfigError::Unknown(format!("pages {pages:?} in a mapping of {} pages", of.pages)));
        }
        Ok((mm, vma, of.start + pages.start..of.start + pages.end))
    }

    fn anon_mapping(&self, task: TaskId, object: ObjectId) -> Result<(MmId, usize), ConfigError> {
        let (mm, vma) = self.mapping(task, object)?;
        match self.core.mm.memory.mm(mm).vmas[vma].backing {
            Backing::Anon => Ok((mm, vma)),
            Backing::File(_) => {
                Err(ConfigError::Unknown(format!("anonymous mapping {} of task {}", object.0, task.0)))
            }
        }
    }
}
