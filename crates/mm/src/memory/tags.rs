//! Page-cache tags: the set of a file's pages, in index order, that are dirty, or that are under writeback. [machine 5.7]
//!
//! ```text
//!   level 1   [ 1 0 1 ... ]                       a bit a word below that is not empty
//!   level 0   [ 64 pages ][ none ][ 64 pages ]    a bit a page
//! ```
//! Setting and clearing a page touches a word a level. So does finding the next one, however many lie in between. The words
//! are allocated when the first page is set: most files are never written.

use crate::memory::sparse::Sparse;
use crate::memory::table_memory::TableMemory;

/// Pages of one file, as a set.
#[derive(Clone, Debug)]
pub struct PageTags {
    pages: u64,
    /// From pages upwards; the last level is a single word.
    levels: Vec<Sparse<u64>>,
    count: u64,
    memory: TableMemory,
}

impl PageTags {
    /// An empty set for a file of this size.
    pub fn new(pages: u64, memory: &TableMemory) -> PageTags {
        PageTags { pages, levels: Vec::new(), count: 0, memory: memory.clone() }
    }

    /// Grows with a file to this number of pages.
    pub fn grow(&mut self, pages: u64) {
        debug_assert!(pages >= self.pages, "a file of {} pages grows to {pages}", self.pages);
        self.pages = pages;
        let (mut bits, mut level) = (pages, 0);
        while !self.levels.is_empty() && (level < self.levels.len() || bits > 1) {
            let words = bits.div_ceil(64) as usize;
            if level == self.levels.len() {
                // The former last level has one word, whose bit is the only one that this level can have.
                let has_any = self.levels[level - 1].get(0) != 0;
                let mut above = Sparse::new(words, &self.memory);
                above.set(0, u64::from(has_any));
                self.levels.push(above);
            }
            self.levels[level].resize(words);
            (bits, level) = (words as u64, level + 1);
        }
    }

    /// Returns how many pages are in it.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether no page is tagged.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a page that is not in it.
    pub fn set(&mut self, page: u64) {
        if self.levels.is_empty() {
            self.allocate();
        }
        debug_assert!(page < self.pages, "page {page} of a file of {} is tagged", self.pages);
        self.count += 1;
        debug_assert!(self.count <= self.pages, "a file of {} pages has more that are tagged", self.pages);
        let mut at = page;
        for (level, words) in self.levels.iter_mut().enumerate() {
            let word = words.get((at / 64) as usize);
            debug_assert!(level > 0 || word >> (at % 64) & 1 == 0, "page {page} is tagged already");
            words.set((at / 64) as usize, word | 1 << (at % 64));
            if word != 0 {
                break;
            }
            at /= 64;
        }
        self.assert_way_up(page);
    }

    /// Adds a page, if it is not in it.
    pub fn add(&mut self, page: u64) {
        if !self.contains(page) {
            self.set(page);
        }
    }

    /// Removes a page that is in it.
    pub fn clear(&mut self, page: u64) {
        debug_assert!(self.contains(page), "page {page} is not tagged");
        debug_assert!(self.count > 0, "page {page} is tagged in a set without pages");
        self.count -= 1;
        let mut at = page;
        for words in &mut self.levels {
            let word = words.get((at / 64) as usize) & !(1 << (at % 64));
            words.set((at / 64) as usize, word);
            if word != 0 {
                break;
            }
            at /= 64;
        }
        self.assert_way_up(page);
    }

    /// The way up from a page's word has changed: a bit above it says whether there is anything in the word.
    fn assert_way_up(&self, page: u64) {
        if cfg!(debug_assertions) {
            let mut at = page / 64;
            for pair in self.levels.windows(2) {
                let is_above = pair[1].get((at / 64) as usize) >> (at % 64) & 1 == 1;
                assert_eq!(
                    is_above,
                    pair[0].get(at as usize) != 0,
                    "word {at} of tags, and the bit that leads to it"
                );
                at /= 64;
            }
        }
    }

    /// Returns whether a page is tagged.
    pub fn contains(&self, page: u64) -> bool {
        let words = self.levels.first();
        words.is_some_and(|words| words.get((page / 64) as usize) >> (page % 64) & 1 == 1)
    }

    /// The first page of it from `page` on.
    pub fn next(&self, page: u64) -> Option<u64> {
        if self.is_empty() { None } else { self.next_at(0, page) }
    }

    /// All of its pages, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        std::iter::successors(self.next(0), |last| self.next(last + 1))
    }

    /// Removes all pages, and returns them.
    pub fn take(&mut self) -> Vec<u64> {
        let pages: Vec<u64> = self.iter().collect();
        pages.iter().for_each(|&page| self.clear(page));
        pages
    }

    /// The first bit of a level from `at` on.
    fn next_at(&self, level: usize, at: u64) -> Option<u64> {
        let words = self.levels.get(level)?;
        if at / 64 >= words.len() as u64 {
            return None;
        }
        let word = words.get((at / 64) as usize) & (!0 << (at % 64));
        if word != 0 {
            return Some(at / 64 * 64 + u64::from(word.trailing_zeros()));
        }
        let next = self.next_at(level + 1, at / 64 + 1)?;
        Some(next * 64 + u64::from(words.get(next as usize).trailing_zeros()))
    }

    fn allocate(&mut self) {
        let mut bits = self.pages;
        loop {
            let words = bits.div_ceil(64).max(1);
            self.levels.push(Sparse::new(words as usize, &self.memory));
            if words == 1 {
                return;
            }
            bits = words;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_file_that_grows_keeps_its_tags(sizes in prop::collection::vec(1..300_000u64, 2..6), picks in prop::collection::vec(0..300_000u64, 1..50)) {
            let mut sizes = sizes;
            sizes.sort_unstable();
            let (mut tags, mut set) = (PageTags::new(sizes[0], &TableMemory::default()), BTreeSet::new());
            for pages in sizes {
                tags.grow(pages);
                for page in picks.iter().map(|pick| pick % pages) {
                    if set.insert(page) {
                        tags.set(page);
                    }
                }
                let mut all = BTreeSet::new();
                while let Some(page) = tags.next(all.last().map_or(0, |last| last + 1)) {
                    all.insert(page);
                }
                prop_assert_eq!(&all, &set);
            }
        }

        #[test]
        fn tags_are_a_set_in_order(flips in prop::collection::vec(0..300_000u64, 1..200), from in 0..300_000u64) {
            let (mut tags, mut set) = (PageTags::new(300_000, &TableMemory::default()), BTreeSet::new());
            for page in flips.into_iter().flat_map(|page| [page, page / 4096, page]) {
                if set.remove(&page) {
                    tags.clear(page);
                } else {
                    set.insert(page);
                    tags.set(page);
                }
                prop_assert_eq!(tags.contains(page), set.contains(&page));
            }
            prop_assert_eq!(tags.count(), set.len() as u64);
            prop_assert_eq!(tags.next(from), set.range(from..).next().copied());
            let mut all = Vec::new();
            while let Some(page) = tags.next(all.last().map_or(0, |last| last + 1)) {
                all.push(page);
            }
            prop_assert_eq!(&all, &set.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(tags.take(), all);
            prop_assert!(tags.is_empty() && tags.next(0).is_none());
        }
    }

    #[test]
    fn a_file_that_is_never_written_has_no_words() {
        let tags = PageTags::new(1 << 30, &TableMemory::default());
        assert!(tags.levels.is_empty() && tags.next(0).is_none());
    }
}
