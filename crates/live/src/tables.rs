//! Memory of the engine's tables of files and regions, as far as it is not known when the cache is built.
//!
//! ```text
//!   words      ┃leaf┃none            ┃leaf┃none          addresses for all pages; 4 KiB for each 2 MiB of a file in which the engine knows a page
//!   budget     ┃ reserved for tables ┃ frames of the balloon ┃ frames in use ...
//!               ◀──── bytes that are counted ────▶ ◀ slack ▶      less slack: the balloon takes frames before tables grow; more: it gives some
//! ```
//! The slack is for accesses in progress: each adds few leaves, and looks at the count when it begins.

use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageout_engine::{PAGE_SIZE, TableHost, WordArray};

use crate::mmap::Map;

/// Pages of a leaf: those whose words share 4 KiB.
const LEAF_PAGES: u64 = PAGE_SIZE / size_of::<AtomicU64>() as u64;
/// Up to this number of pages, the engine has all words of a file in its own memory.
const SMALL_PAGES: u64 = 8 * LEAF_PAGES;
/// Bytes for each leaf, with words or without.
const LEAF_BYTES: u64 = 2;
/// Bytes for each GiB, of each of the arrays by page, with an entry or without.
const GIB_BYTES: u64 = 8 * 8;
/// The file itself, its devices' lists, and the rest that is the same for all files.
const FILE_BYTES: u64 = 4096;

/// How many bytes tables take.
#[derive(Default)]
pub(crate) struct Tables {
    words: AtomicU64,
    /// Bytes of the allocator, and the most that these were: it may not give any to the system, but has them for the next ones.
    allocated: AtomicU64,
    allocated_most: AtomicU64,
}

impl Tables {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_with(0)
    }

    /// The same once the allocator has this many bytes more for them.
    pub(crate) fn bytes_with(&self, more: u64) -> u64 {
        let allocated = self.allocated.load(Relaxed).saturating_add(more);
        self.words.load(Relaxed).saturating_add(allocated.max(self.allocated_most.load(Relaxed)))
    }

    /// Bytes that the tables of a file or region of this size take before a page of it is known, at most.
    pub(crate) fn of_empty(bytes: u64) -> u64 {
        let pages = bytes.div_ceil(PAGE_SIZE);
        let words = if pages <= SMALL_PAGES { pages * size_of::<AtomicU64>() as u64 } else { 0 };
        words + pages / LEAF_PAGES * LEAF_BYTES + (bytes >> 30) * GIB_BYTES + FILE_BYTES
    }
}

impl TableHost for Tables {
    fn reserve(&self, words: usize) -> Option<Arc<dyn WordArray>> {
        let map = WordMap::new(words).ok()?;
        Some(Arc::new(map))
    }

    fn count_words(&self, bytes: i64) {
        self.words.fetch_add(bytes as u64, Relaxed);
    }

    fn count_allocated(&self, bytes: i64) {
        let before = self.allocated.fetch_add(bytes as u64, Relaxed);
        self.allocated_most.fetch_max(before.wrapping_add(bytes as u64), Relaxed);
    }
}

/// Words that take memory page by page.
struct WordMap {
    map: Map,
    words: usize,
}

impl WordMap {
    fn new(words: usize) -> io::Result<WordMap> {
        let map = Map::of_small_pages(words * size_of::<AtomicU64>())?;
        Ok(WordMap { map, words })
    }
}

impl WordArray for WordMap {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is large enough for so many words, is aligned to a page, lives as long as `self`, and is only ever used as words. A word
        // is atomic, and any bits are valid for it, zeroes included; all change it through shared references.
        unsafe { std::slice::from_raw_parts(self.map.start().cast::<AtomicU64>(), self.words) }
    }

    fn give_back(&self, words: Range<usize>) {
        const WORD: usize = size_of::<AtomicU64>();
        // Others read zeroes there meanwhile, and no thread writes. If the system refuses it, a page more than the budget has memory.
        let _ = self.map.give_back(words.start * WORD..words.end * WORD);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn words_are_zero_again_once_their_memory_is_given_back() {
        let tables = Tables::default();
        // 4 GiB of addresses: a file of 2 TiB.
        let words = tables.reserve(1 << 29).unwrap();
        for at in [0, 511, 512, (1 << 29) - 1] {
            assert_eq!(words.words()[at].load(Relaxed), 0);
            words.words()[at].store(at as u64 + 1, Relaxed);
        }
        words.words()[0].store(0, Relaxed);
        words.words()[511].store(0, Relaxed);
        words.give_back(0..512);
        let read = [0, 511, 512, (1 << 29) - 1].map(|at| words.words()[at].load(Relaxed));
        assert_eq!(read, [0, 0, 513, 1 << 29]);
    }

    #[test]
    fn memory_that_the_allocator_has_back_serves_the_next_tables() {
        let tables = Tables::default();
        tables.count_words(4096);
        tables.count_allocated(1000);
        tables.count_allocated(-400);
        assert_eq!([0, 300, 400, 500].map(|more| tables.bytes_with(more) - 4096), [1000, 1000, 1000, 1100]);
        tables.count_words(-4096);
        assert_eq!(tables.bytes(), 1000);
    }

    #[test]
    fn empty_tables_take_little_of_a_large_file() {
        assert!(Tables::of_empty(1 << 40) < 2 << 20, "{}", Tables::of_empty(1 << 40));
        assert!(Tables::of_empty(1 << 20) < 8 << 10);
    }
}
