//! Pages of files that a user drops from the cache while no task uses them: `drop_caches`, and fadvise(`POSIX_FADV_DONTNEED`).
//!
//! A page is dropped if it is clean, in no mapping and not isolated. It leaves no shadow, as it was not evicted: when it is read again,
//! that does not show how much memory is missing. Other pages are sent to the cold end. Dirty pages stay: a user who wants to drop them
//! too syncs first.
//!
//! `drop_caches` drops all regular files, or slab objects, or both. The slab objects include index nodes of the page cache that hold nothing
//! but shadows. Their shrinker frees those that are too many for the lists. [machine 6]
//!
//! What others reclaim from the whole machine, as a recording tells, goes in the same way and leaves its shadow.
//!
//! Not modelled: dentries and inodes, whose eviction drops the pages of their file.

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::memory::table::{Entry, Word};
use crate::units::{CpuId, FileId, MemcgId, Pfn};
use std::ops::Range;

/// A write to `drop_caches` in progress.
pub(crate) struct DropCaches {
    /// The start of the next step, a page of a file, if pages are dropped.
    pages_from: Option<(FileId, u64)>,
    /// Slab objects are dropped.
    objects: bool,
    has_begun: bool,
}

impl DropCaches {
    /// The request that this number stands for: 1 is pages, 2 slab objects, 3 both.
    pub(crate) fn new(number: u8) -> Option<DropCaches> {
        matches!(number, 1..=3).then(|| DropCaches {
            pages_from: (number & 1 != 0).then_some((FileId(0), 0)),
            objects: number & 2 != 0,
            has_begun: false,
        })
    }
}

impl Core {
    /// Takes a request one step further; false when all is done.
    #[doc(alias = "drop_caches_sysctl_handler")]
    pub(crate) fn drop_caches_step(&mut self, request: &mut DropCaches) -> bool {
        if !std::mem::replace(&mut request.has_begun, true) && request.pages_from.is_some() {
            self.lru_add_drain_all();
        }
        if let Some(from) = request.pages_from {
            request.pages_from = self.drop_pagecache(from);
        } else if std::mem::take(&mut request.objects) {
            self.drop_slab();
        }
        request.pages_from.is_some() || request.objects
    }

    /// Drops pages of files from this one on, until a step is full. Returns the page to go on with, if there are more.
    #[doc(alias = "drop_pagecache_sb")]
    fn drop_pagecache(&mut self, (mut file, mut page): (FileId, u64)) -> Option<(FileId, u64)> {
        let mut met = 0;
        while file.index() < self.mm.memory.files.len() {
            let of = self.mm.memory.file(file);
            let pages = if of.is_tmpfs() { 0 } else { of.index.pages() };
            while let Some(next) = self.mm.next_in_index(file, page..pages) {
                if met == self.mm.config.step_pages {
                    return Some((file, next));
                }
                page = next + 1;
                match self.mm.memory.file(file).index.word(next).decode() {
                    Entry::Present(pfn) => {
                        page = self.mm.memory.folios[pfn].file_pages().end;
                        self.invalidate_folio(pfn);
                    }
                    Entry::Shadow(_) => self.index_forget(file, next),
                    Entry::Empty | Entry::Swap(_) => {}
                }
                met += 1;
            }
            (file, page) = (FileId(file.0 + 1), 0);
        }
        None
    }

    /// A page in a CPU's batch is in use by the batch.
    fn lru_add_drain_all(&mut self) {
        (0..self.mm.config.cpus).for_each(|cpu| self.lru_add_drain_cpu(CpuId(cpu)));
    }

    /// Drops pages of a file, and shadows among them. If pages stay, batches of other CPUs may hold them, and the pages have a second chance.
    /// [machine 6]
    pub(crate) fn invalidate_pages(&mut self, file: FileId, pages: Range<u64>) {
        self.lru_add_drain();
        if !self.invalidate(file, pages.clone()) {
            self.lru_add_drain_all();
            self.invalidate(file, pages);
        }
    }

    /// Drops what it can of pages of a file; true if no folio that lies in the range completely is left. [folios 1.11]
    #[doc(alias = "invalidate_mapping_pages")]
    fn invalidate(&mut self, file: FileId, pages: Range<u64>) -> bool {
        let mut are_all_gone = true;
        let mut page = pages.start;
        let end = pages.end.min(self.mm.memory.file(file).index.pages());
        while let Some(next) = self.mm.next_in_index(file, page..end) {
            page = next + 1;
            match self.mm.memory.file(file).index.word(next).decode() {
                Entry::Present(pfn) => {
                    let of_folio = self.mm.memory.folios[pfn].file_pages();
                    page = of_folio.end;
                    if pages.start <= of_folio.start && of_folio.end <= pages.end {
                        are_all_gone &= self.invalidate_folio(pfn);
                    }
                }
                Entry::Shadow(_) => self.index_forget(file, next),
                Entry::Empty | Entry::Swap(_) => {}
            }
        }
        are_all_gone
    }

    /// Drops a page of a file if it is clean and not in use, else sends it to the cold end. True if it is gone.
    #[doc(alias = "mapping_evict_folio")]
    fn invalidate_folio(&mut self, pfn: Pfn) -> bool {
        let folio = self.mm.memory.folios[pfn];
        let busy = FolioFlags::DIRTY | FolioFlags::WRITEBACK | FolioFlags::LOCKED | FolioFlags::PINNED;
        let goes = folio.mapped == 0 && !folio.flags().intersects(busy) && self.folio_freeze(pfn);
        if goes {
            self.page_cache_remove(pfn, Word::EMPTY);
            self.release_if_unused(pfn);
        } else {
            self.lru_deactivate_file(pfn);
        }
        goes
    }

    /// Evicts a page of a file that reclaim for all of memory has chosen, at any position of its list, if it is clean and not busy.
    pub(crate) fn evict_folio(&mut self, pfn: Pfn) {
        let busy = FolioFlags::DIRTY
            | FolioFlags::WRITEBACK
            | FolioFlags::LOCKED
            | FolioFlags::PINNED
            | FolioFlags::MLOCKED
            | FolioFlags::SWAPBACKED;
        if self.mm.memory.folios[pfn].flags().intersects(busy) {
            return;
        }
        // A mapped page may be dirty in its page-table entry.
        self.unmap_all(pfn);
        if !self.mm.memory.folios[pfn].has(FolioFlags::DIRTY) && self.folio_freeze(pfn) {
            self.leave_shadow(pfn, MemcgId::ROOT);
            self.release_if_unused(pfn);
        }
    }

    /// Runs the shrinkers of slabs, of all groups on all nodes, until a round frees little. The number of freed objects is halved once for
    /// each round before it. [machine 6]
    fn drop_slab(&mut self) {
        for round in 0..u64::BITS {
            let mut freed = 0;
            for node in self.mm.memory.nodes().collect::<Vec<_>>() {
                for memcg in self.mm.memcgs.ids() {
                    freed += self.shrink_shadow_nodes(self.mm.lruvecs.id(memcg, node), 0);
                }
            }
            if freed >> round <= 1 {
                break;
            }
        }
    }
}
