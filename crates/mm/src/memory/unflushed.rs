//! What a device has taken of a file and has not said to keep: pages that were written since its last flush. [machine 5.7]
//!
//! ```text
//!   written ─▶ taken ──(a flush begins)─▶ in flush ──(it goes well)─▶ kept: known no more
//!                │ leaves memory              │ leaves memory
//!                ▼                            ▼               (it fails)
//!              left ────(a flush begins)─▶ in flush ──────────────────▶ told: dirty again what is in memory, lost perhaps what has left it
//! ```
//! A device that reports a write as done may have it in a cache that loses it. After a failed flush, the data can be written again only from memory.
//! So pages that leave memory before they are stored are recorded: one that comes back holds the device's contents of that time, whatever they were.

use crate::memory::table_memory::TableMemory;
use crate::memory::tags::PageTags;
use std::ops::Range;

/// Pages of one file.
#[derive(Debug)]
pub struct Unflushed {
    since: Taken,
    /// Pages before the flush in progress, during one.
    in_flush: Taken,
    is_flushing: bool,
}

/// Pages that a device has taken.
#[derive(Debug)]
struct Taken {
    /// In memory ever since.
    there: PageTags,
    left: PageTags,
}

impl Unflushed {
    /// An empty record for a file of this size.
    pub fn new(pages: u64, memory: &TableMemory) -> Unflushed {
        let taken = || Taken { there: PageTags::new(pages, memory), left: PageTags::new(pages, memory) };
        Unflushed { since: taken(), in_flush: taken(), is_flushing: false }
    }

    fn taken_mut(&mut self) -> [&mut Taken; 2] {
        [&mut self.since, &mut self.in_flush]
    }

    /// Extends the file to this number of pages.
    pub fn grow(&mut self, pages: u64) {
        for taken in self.taken_mut() {
            taken.there.grow(pages);
            taken.left.grow(pages);
        }
    }

    /// The device has taken a page that is in memory.
    pub fn written(&mut self, page: u64) {
        self.since.there.add(page);
    }

    /// A page leaves memory.
    pub fn leaves(&mut self, page: u64) {
        for taken in self.taken_mut() {
            if taken.there.contains(page) {
                taken.there.clear(page);
                taken.left.add(page);
            }
        }
    }

    /// Pages do not belong to the file any more, or are zeroes.
    pub fn forget(&mut self, pages: Range<u64>) {
        for taken in self.taken_mut() {
            for tags in [&mut taken.there, &mut taken.left] {
                while let Some(page) = tags.next(pages.start).filter(|&page| page < pages.end) {
                    tags.clear(page);
                }
            }
        }
    }

    /// A flush begins, which is to save what was taken until now.
    pub fn begin(&mut self) {
        assert!(!self.is_flushing, "two flushes of a file at the same time");
        debug_assert!(self.in_flush.there.is_empty() && self.in_flush.left.is_empty());
        std::mem::swap(&mut self.since, &mut self.in_flush);
        self.is_flushing = true;
    }

    /// It has ended. Returns the pages that it was to save, those in memory ever since and those that have left it.
    pub fn end(&mut self) -> [Vec<u64>; 2] {
        assert!(self.is_flushing, "a flush ends that has not begun");
        self.is_flushing = false;
        [&mut self.in_flush.there, &mut self.in_flush.left].map(PageTags::take)
    }

    /// Returns whether a flush is in progress.
    pub fn is_flushing(&self) -> bool {
        self.is_flushing
    }

    /// The pages that have been in memory ever since they were taken.
    pub fn there(&self) -> impl Iterator<Item = u64> {
        [&self.since, &self.in_flush].into_iter().flat_map(|taken| taken.there.iter())
    }
}
