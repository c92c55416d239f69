//! Where the words of a table lie: in leaves of 512, each of which stays where it was made until it is given back.
//!
//! ```text
//!   writer    Leaves      [ leaf ][ none ][ leaf ] ...    the table's own, looked at without a lock
//!                            ▲                ▲
//!   others    WordReader  [ leaf ][ none ][ none ] ...    what it has met so far; where it finds nothing, it looks the leaf up under a lock
//!
//!   none: one leaf of empty words for all tables, which is never written, so that a look at a word needs no look whether its leaf is there
//! ```
//! A leaf is made for its first word. When its last word is gone, its memory goes, however large the file is. A table grows behind its
//! end, and nothing moves. All loads and stores are relaxed, and there is one writer: they are the instructions that plain memory would take.
//!
//! **Readers** are of a machine with threads of its own. A hit takes no lock and writes nothing that others read. A leaf that was given back is
//! of empty words for ever, so a reader that still knows it finds nothing in it, and looks the leaf up anew: it never sees a word that
//! belongs to another page. It keeps the memory of such a leaf until then. What a reader makes of a word is its own business: a word
//! says where a page is, and not that it still is there a moment later.

use super::word::Word;
use super::{LEAF_PAGES, Table};
use prefetch_index::prefetch_index;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// 512 words.
struct Leaf([AtomicU64; LEAF_PAGES as usize]);

/// Bytes that a leaf takes, with its two counters of users.
const LEAF_BYTES: usize = size_of::<Leaf>() + 2 * size_of::<usize>();

/// The leaf in place of those that are not there.
static NONE: LazyLock<Arc<Leaf>> = LazyLock::new(Leaf::new);

/// The leaves of a table in order.
type Directory = Vec<Arc<Leaf>>;

impl Leaf {
    fn new() -> Arc<Leaf> {
        Arc::new(Leaf([const { AtomicU64::new(0) }; LEAF_PAGES as usize]))
    }

    fn is_none(self: &Arc<Leaf>) -> bool {
        Arc::ptr_eq(self, &NONE)
    }
}

/// The place of a word in its leaf.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a>(&'a AtomicU64);

impl Slot<'_> {
    #[inline(always)]
    pub(super) fn get(self) -> Word {
        Word(self.0.load(Relaxed))
    }

    #[inline(always)]
    pub(super) fn set(self, word: Word) {
        self.0.store(word.0, Relaxed);
    }
}

/// Leaves that lie side by side.
#[derive(Clone, Copy)]
pub(super) struct Run<'a>(&'a [Arc<Leaf>]);

impl<'a> Run<'a> {
    /// The place of a page's word; none beyond the last leaf. It is written only where a word is already.
    #[inline(always)]
    pub(super) fn slot(self, page: u64) -> Option<Slot<'a>> {
        let leaf = self.0.get((page / LEAF_PAGES) as usize)?;
        Some(Slot(&leaf.0[(page % LEAF_PAGES) as usize]))
    }

    /// Asks the processor for a page's word.
    #[inline(always)]
    pub(super) fn prefetch(self, page: u64) {
        if let Some(leaf) = self.0.get((page / LEAF_PAGES) as usize) {
            prefetch_index(&leaf.0, (page % LEAF_PAGES) as usize);
        }
    }
}

/// The words of a table, for who writes them.
pub(super) struct Leaves {
    leaves: Directory,
    /// What readers look leaves up in, from when there is one.
    shared: Option<Arc<Mutex<Directory>>>,
}

impl Leaves {
    pub(super) fn new(pages: u64) -> Leaves {
        let mut leaves = Leaves { leaves: Vec::new(), shared: None };
        leaves.grow(pages);
        leaves
    }

    /// Makes room for so many pages.
    pub(super) fn grow(&mut self, pages: u64) {
        let count = pages.div_ceil(LEAF_PAGES) as usize;
        self.leaves.resize(count, Arc::clone(&NONE));
        self.in_shared(|shared, leaves| shared.extend_from_slice(&leaves[shared.len()..]));
    }

    /// All leaves.
    #[inline(always)]
    pub(super) fn all(&self) -> Run<'_> {
        Run(&self.leaves)
    }

    /// The leaves of pages in a row, of which the first one begins a leaf.
    #[inline]
    pub(super) fn run(&self, start: u64, pages: u64) -> Run<'_> {
        let (first, end) = (start / LEAF_PAGES, (start + pages).div_ceil(LEAF_PAGES));
        Run(&self.leaves[first as usize..end as usize])
    }

    /// A page's word, empty where its leaf is not there.
    #[inline(always)]
    pub(super) fn get(&self, page: u64) -> Word {
        self.all().slot(page).map_or(Word::EMPTY, Slot::get)
    }

    /// Puts a word where another was; returns that one.
    #[inline(always)]
    pub(super) fn replace(&mut self, page: u64, new: Word) -> Word {
        let old = self.get(page);
        if old != new {
            if old == Word::EMPTY && self.leaves[(page / LEAF_PAGES) as usize].is_none() {
                self.make(page);
            }
            self.all().slot(page).expect("it has a word").set(new);
        }
        old
    }

    #[cold]
    #[inline(never)]
    fn make(&mut self, page: u64) {
        self.set_leaf(page, Leaf::new());
    }

    /// Gives the memory of a page's leaf back, all of whose words are empty.
    pub(super) fn give_back(&mut self, page: u64) {
        debug_assert!(self.words_of(page / LEAF_PAGES).all(|word| word == Word::EMPTY));
        self.set_leaf(page, Arc::clone(&NONE));
    }

    fn set_leaf(&mut self, page: u64, leaf: Arc<Leaf>) {
        let at = (page / LEAF_PAGES) as usize;
        self.leaves[at] = leaf;
        self.in_shared(|shared, leaves| shared[at] = leaves[at].clone());
    }

    /// Tells readers, if there are any.
    fn in_shared(&self, change: impl FnOnce(&mut Directory, &Directory)) {
        if let Some(shared) = &self.shared {
            change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner), &self.leaves);
        }
    }

    /// The words of a leaf.
    pub(super) fn words_of(&self, leaf: u64) -> impl Iterator<Item = Word> {
        self.leaves[leaf as usize].0.iter().map(|word| Slot(word).get())
    }

    /// Leaves that there are, by number.
    pub(super) fn there(&self) -> impl Iterator<Item = u64> {
        (0..).zip(&self.leaves).filter(|(_, leaf)| !leaf.is_none()).map(|(number, _)| number)
    }

    /// Bytes of the directory, and of the leaves that are there.
    pub(super) fn bytes(&self) -> usize {
        self.there().count() * LEAF_BYTES + size_of_val(&*self.leaves)
    }

    /// The most bytes that so many pages take.
    pub(super) fn bytes_for(pages: u64) -> u64 {
        pages.div_ceil(LEAF_PAGES) * (LEAF_BYTES + size_of::<Arc<Leaf>>()) as u64
    }

    fn reader(&mut self, first: u64) -> WordReader {
        let shared = self.shared.get_or_insert_with(|| Arc::new(Mutex::new(self.leaves.clone())));
        WordReader { shared: Arc::clone(shared), first, known: Vec::new() }
    }
}

/// The words of a file or a mapping, for another thread than the one that writes them. Each thread has one of its own.
pub struct WordReader {
    shared: Arc<Mutex<Directory>>,
    /// The page of the table that is the reader's first one.
    first: u64,
    /// Leaves that have been looked up.
    known: Directory,
}

impl Clone for WordReader {
    fn clone(&self) -> WordReader {
        WordReader { shared: Arc::clone(&self.shared), first: self.first, known: Vec::new() }
    }
}

impl WordReader {
    /// The word of a page as it is now: empty beyond the end, and where nothing is known of the page.
    #[inline]
    pub fn get(&mut self, page: u64) -> Word {
        let page = self.first + page;
        match Run(&self.known).slot(page).map(Slot::get) {
            Some(word) if word != Word::EMPTY => word,
            _ => self.look_up(page),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, page: u64) -> Word {
        let at = (page / LEAF_PAGES) as usize;
        let found = self.shared.lock().unwrap_or_else(PoisonError::into_inner).get(at).cloned();
        let Some(leaf) = found else { return Word::EMPTY };
        if self.known.len() <= at {
            self.known.resize(at + 1, Arc::clone(&NONE));
        }
        self.known[at] = leaf;
        Run(&self.known).slot(page).map_or(Word::EMPTY, Slot::get)
    }
}

impl Table {
    /// A handle by which another thread reads the words, from a page on, while this one writes them.
    pub fn reader(&mut self, first: u64) -> WordReader {
        self.leaves.reader(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::folio::UseBits;
    use crate::memory::table::Mark;
    use crate::units::Pfn;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::{Acquire, Release};

    fn cached(pfn: u32) -> Word {
        Word::cached(Pfn(pfn), UseBits::empty(), Mark::Classic)
    }

    #[test]
    fn a_reader_in_another_thread_sees_words_while_they_are_written() {
        let mut table = Table::new(3 * LEAF_PAGES);
        let (reader, is_over) = (table.reader(0), AtomicBool::new(false));
        let pages = [0, 700, 701, 1535];
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (mut reader, is_over) = (reader.clone(), &is_over);
                scope.spawn(move || {
                    let mut last = [0; 4];
                    loop {
                        let is_last = is_over.load(Acquire);
                        for (page, last) in pages.into_iter().zip(&mut last) {
                            let word = reader.get(page);
                            // A page's frames are numbered in the order in which it got them, so what is seen never goes back.
                            if word.is_present() {
                                assert_eq!(u64::from(word.pfn().0) % 10_000, page, "a word of another page");
                                assert!(word.pfn().0 >= *last, "a word from before");
                                *last = word.pfn().0;
                            }
                        }
                        if is_last {
                            assert!(
                                last.iter().all(|&frame| frame >= 20_000_000),
                                "it has seen the last words"
                            );
                            return;
                        }
                    }
                });
            }
            for turn in 0..=2000 {
                for page in pages {
                    table.replace(page, cached(turn * 10_000 + page as u32));
                    if turn % 3 == 2 {
                        table.replace(page, Word::EMPTY);
                    }
                }
            }
            for page in pages {
                table.replace(page, cached(20_000_000 + page as u32));
            }
            is_over.store(true, Release);
        });
    }

    #[test]
    fn a_leaf_gives_its_memory_back_with_its_last_word_and_takes_it_again_with_the_next() {
        let mut table = Table::new(1000 * LEAF_PAGES);
        let empty = table.bytes();
        for page in 0..LEAF_PAGES {
            table.replace(5 * LEAF_PAGES + page, cached(page as u32));
        }
        assert_eq!(table.bytes(), empty + LEAF_BYTES);
        let made = Arc::downgrade(&table.leaves.leaves[5]);
        for page in 0..LEAF_PAGES {
            assert_eq!(table.bytes(), empty + LEAF_BYTES);
            table.replace(5 * LEAF_PAGES + page, Word::EMPTY);
        }
        assert_eq!(table.bytes(), empty);
        assert_eq!(made.strong_count(), 0, "nobody has the memory any more");
        table.replace(6 * LEAF_PAGES - 1, cached(1));
        assert_eq!(table.bytes(), empty + LEAF_BYTES);
        table.check_invariants();
    }

    #[test]
    fn a_reader_finds_nothing_in_a_leaf_that_was_given_back_and_then_what_is_there_now() {
        let mut table = Table::new(2 * LEAF_PAGES);
        let mut reader = table.reader(0);
        table.replace(600, cached(1));
        assert_eq!(reader.get(600), cached(1));
        table.replace(600, Word::EMPTY);
        table.replace(601, cached(2));
        assert_eq!(reader.get(600), Word::EMPTY);
        assert_eq!(reader.get(601), cached(2));
        assert!(Arc::ptr_eq(&reader.known[1], &table.leaves.leaves[1]));
    }

    #[test]
    fn a_table_grows_under_its_readers_and_no_word_moves() {
        let mut table = Table::new(600);
        let mut reader = table.reader(0);
        table.replace(599, cached(5));
        assert_eq!((reader.get(599), reader.get(1599)), (cached(5), Word::EMPTY));
        let leaf = Arc::as_ptr(&table.leaves.leaves[1]);
        table.grow(1000);
        table.replace(1599, cached(6));
        table.replace(1000, cached(7));
        assert_eq!(leaf, Arc::as_ptr(&table.leaves.leaves[1]));
        assert_eq!([599, 1000, 1599].map(|page| reader.get(page)), [5, 7, 6].map(cached));
        assert_eq!(reader.get(1_000_000), Word::EMPTY, "beyond the end there is nothing");
        table.check_invariants();
    }
}
