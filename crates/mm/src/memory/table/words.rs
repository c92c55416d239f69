//! Where the words of a table lie: side by side in one array. A leaf of 512 takes memory from its first word on.
//!
//! ```text
//!   words    ┃used ┃empty┃never used ...                    ┃used ┃empty┃    in leaves
//!   memory   ┃taken┃taken┃zeroes that nobody has written    ┃taken┃taken┃
//!                     └ half of what is taken is empty: the used words move to fresh memory, and all of this is given back
//!
//!   others   WordReader: the array as it was found last; where it finds nothing, it looks the array up anew, under a lock
//! ```
//! So a hit is one access to one array. A table takes at most twice the memory of its words, however large its file is and however much of that was
//! read once. Each move is paid for by as many leaves that were emptied. A table that grows moves as well. Arrays by frame do the same, and explain
//! why (`per_frame.rs`).
//!
//! **A table of slots** of a swap device stays where it is, however many are empty: other pages get them soon.
//!
//! **A host that counts memory** has the words of long tables, and takes the memory of empty leaves back where they are ([`WordArray`]). No word moves
//! for that, and at most 32 leaves take memory for nothing. If such a table grows, it moves leaf by leaf, and gives each back.
//!
//! **Readers** belong to a machine with its own threads. All loads and stores are relaxed, and there is one writer: the instructions are those of
//! plain memory. A hit takes no lock and writes nothing that others read. A retired array contains only empty words, which it gets before the first
//! word changes elsewhere. So a reader that still has it finds nothing in it and looks the words up again. The reader keeps its memory until then.
//! Relaxed loads promise no order between words, so a reader may see a slightly old state: a word shows where a page was, and not that it is still in
//! memory.

use super::word::Word;
use super::{LEAF_PAGES, Table};
use crate::memory::table_memory::{Counted, TableMemory, WordArray};
use bytemuck::allocation::zeroed_slice_box;
use prefetch_index::prefetch_index;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use yoke::Yoke;

/// Words in memory that is allocated when it is first written. Writer and readers hold it together, and each knows its position directly.
type Array = Yoke<&'static [AtomicU64], Arc<dyn WordArray>>;

/// Words from the allocator.
struct Zeroes(Box<[AtomicU64]>);

impl WordArray for Zeroes {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }

    fn give_back(&self, _: Range<usize>) {}
}

/// Empty words for this number of pages. True: they are the host's, and it takes back the memory of parts of them.
fn empty_words(pages: u64, memory: &TableMemory) -> (Array, bool) {
    let of_host = if pages > SMALL_PAGES { memory.reserve(pages as usize) } else { None };
    let is_hosts = of_host.is_some();
    let words = of_host.unwrap_or_else(|| Arc::new(Zeroes(zeroed_slice_box(pages as usize))));
    (Yoke::attach_to_cart(words, |words| words.words()), is_hosts)
}

/// Fewer empty leaves are not worth a move.
const EMPTY_MIN: u64 = 8;
/// Empty leaves whose memory a host takes back together: calls of some microseconds each.
const GIVEN_TOGETHER: usize = 32;
/// A table of so few pages is in the allocator's memory even if there is a host: it is not worth a mapping.
const SMALL_PAGES: u64 = 8 * LEAF_PAGES;
const LEAF_BYTES: usize = LEAF_PAGES as usize * size_of::<AtomicU64>();

/// The place of a word.
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

/// Words that lie side by side.
#[derive(Clone, Copy)]
pub(super) struct Run<'a>(&'a [AtomicU64]);

impl<'a> Run<'a> {
    /// The place of a page's word; none beyond the end.
    #[inline(always)]
    pub(super) fn slot(self, page: u64) -> Option<Slot<'a>> {
        self.0.get(page as usize).map(Slot)
    }

    /// A page's word, empty beyond the end.
    #[inline(always)]
    pub(super) fn get(self, page: u64) -> Word {
        self.slot(page).map_or(Word::EMPTY, Slot::get)
    }

    /// All of them, in order.
    pub(super) fn iter(self) -> impl Iterator<Item = Word> + use<'a> {
        self.0.iter().map(|word| Slot(word).get())
    }

    /// Asks the processor for a page's word.
    #[inline(always)]
    pub(super) fn prefetch(self, page: u64) {
        prefetch_index(self.0, page as usize);
    }
}

/// The words of a table, for their writer.
pub(super) struct Words {
    array: Array,
    /// By leaf: whether it uses memory, and how many do.
    is_taken: Vec<bool>,
    taken: u64,
    /// Leaves that take memory and have no word.
    empty: u64,
    /// The array for readers, once there is one.
    shared: Option<Arc<Mutex<Array>>>,
    /// The host has the array, and takes back the memory of leaves.
    is_hosts: bool,
    /// Empty leaves keep their memory.
    stays: bool,
    /// Leaves that have lost their last word since it last did.
    emptied: Vec<u64>,
    /// Bytes of words of the host, and of all else.
    counted: Counted,
    allocated: Counted,
}

impl Words {
    pub(super) fn new(pages: u64, memory: &TableMemory) -> Words {
        let (array, is_hosts) = empty_words(pages, memory);
        let mut words = Words {
            array,
            is_taken: vec![false; pages.div_ceil(LEAF_PAGES) as usize],
            taken: 0,
            empty: 0,
            shared: None,
            is_hosts,
            stays: false,
            emptied: Vec::new(),
            counted: Counted::words(memory),
            allocated: Counted::allocated(memory, 0),
        };
        words.count();
        words
    }

    /// Words that never move, from the allocator.
    pub(super) fn that_stay(pages: u64) -> Words {
        Words { stays: true, ..Words::new(pages, &TableMemory::default()) }
    }

    /// Notes what the words take: leaves, or all of a small array.
    fn count(&mut self) {
        let (of_host, rest) = match self.is_hosts {
            true => (self.taken as usize * LEAF_BYTES, 0),
            false => (0, size_of_val(*self.array.get())),
        };
        self.counted.set(of_host as u64);
        self.allocated.set((rest + size_of_val(&*self.is_taken)) as u64);
    }

    /// Returns whether a leaf takes memory. If not, its words are empty.
    #[inline]
    pub(super) fn is_leaf_taken(&self, leaf: u64) -> bool {
        self.is_taken[leaf as usize]
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u64 {
        self.array.get().len() as u64
    }

    /// All words.
    #[inline(always)]
    pub(super) fn all(&self) -> Run<'_> {
        Run(self.array.get())
    }

    /// The words of pages in a row.
    #[inline]
    pub(super) fn run(&self, pages: Range<u64>) -> Run<'_> {
        Run(&self.array.get()[pages.start as usize..pages.end as usize])
    }

    /// The place of a page's word, which there is.
    #[inline(always)]
    pub(super) fn slot(&self, page: u64) -> Slot<'_> {
        Slot(&self.array.get()[page as usize])
    }

    /// A leaf without a word has got one.
    pub(super) fn leaf_filled(&mut self, leaf: u64) {
        let is_taken = &mut self.is_taken[leaf as usize];
        if std::mem::replace(is_taken, true) {
            self.empty -= 1;
        } else {
            self.taken += 1;
            self.count();
        }
    }

    /// A leaf has lost its last word. Its memory goes, with that of others, when as much is empty as is used.
    pub(super) fn leaf_emptied(&mut self, leaf: u64) {
        debug_assert!(self.words_of(leaf).all(|(_, word)| word == Word::EMPTY), "leaf {leaf} has a word");
        self.empty += 1;
        if self.is_hosts {
            self.emptied.push(leaf);
            if self.emptied.len() >= GIVEN_TOGETHER {
                self.give_back_emptied();
            }
            return;
        }
        if !self.stays && self.empty >= EMPTY_MIN && 2 * self.empty >= self.taken {
            self.move_to(self.len());
        }
    }

    /// Gives the memory of empty leaves back where they are.
    #[inline(never)]
    fn give_back_emptied(&mut self) {
        let mut emptied = std::mem::take(&mut self.emptied);
        for leaf in emptied.drain(..) {
            // A leaf may have words again, or be named twice.
            if !self.is_taken[leaf as usize] || self.words_of(leaf).any(|(_, word)| word != Word::EMPTY) {
                continue;
            }
            let first = leaf * LEAF_PAGES;
            let words = first as usize..(first + LEAF_PAGES).min(self.len()) as usize;
            self.array.backing_cart().give_back(words);
            self.is_taken[leaf as usize] = false;
            (self.taken, self.empty) = (self.taken - 1, self.empty - 1);
        }
        // Its memory serves the next ones.
        self.emptied = emptied;
        self.count();
    }

    /// Grows to this number of pages.
    pub(super) fn grow(&mut self, pages: u64) {
        self.is_taken = super::grown(&self.is_taken, pages.div_ceil(LEAF_PAGES) as usize);
        self.move_to(pages);
    }

    /// Drops all words from a page on. The page begins a leaf, and the words are empty.
    pub(super) fn shrink(&mut self, pages: u64) {
        let leaves = (pages / LEAF_PAGES) as usize;
        let taken = self.is_taken[leaves..].iter().filter(|&&is_taken| is_taken).count() as u64;
        (self.taken, self.empty) = (self.taken - taken, self.empty - taken);
        self.is_taken.truncate(leaves);
        self.is_taken.shrink_to_fit();
        self.move_to(pages);
    }

    /// Returns whether other threads read the words.
    #[inline]
    pub(super) fn has_readers(&self) -> bool {
        self.shared.is_some()
    }

    /// Makes the next access to each page of a leaf of a page table set its bits there.
    #[inline(never)]
    pub(super) fn unsettle(&self, leaf: u64) {
        let pages = leaf * LEAF_PAGES..((leaf + 1) * LEAF_PAGES).min(self.len());
        for slot in pages.map(|page| self.slot(page)) {
            let mut word = slot.get();
            if word.is_settled() && word.is_present() {
                word.clear_settled();
                slot.set(word);
            }
        }
    }

    /// Moves all words to fresh memory, for this number of pages.
    #[inline(never)]
    fn move_to(&mut self, pages: u64) {
        let (to, is_hosts) = empty_words(pages, self.counted.memory());
        let from = std::mem::replace(&mut self.array, to);
        let was_hosts = std::mem::replace(&mut self.is_hosts, is_hosts);
        if let Some(shared) = &self.shared {
            // A reader that looks here before a word has moved finds nothing, and asks the writer.
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = self.array.clone();
        }
        // Readers of the old array must find nothing in it. So must the host, before it takes the memory.
        let empties = self.shared.is_some() || was_hosts;
        (self.taken, self.empty) = (0, 0);
        self.emptied.clear();
        for leaf in self.taken_leaves().collect::<Vec<_>>() {
            let first = (leaf * LEAF_PAGES) as usize;
            let words = first..(first + LEAF_PAGES as usize).min(from.get().len());
            let mut is_used = false;
            for page in words.clone() {
                let (slot, word) = (Slot(&from.get()[page]), Slot(&from.get()[page]).get());
                if word == Word::EMPTY {
                    continue;
                }
                Slot(&self.array.get()[page]).set(word);
                if empties {
                    slot.set(Word::EMPTY);
                }
                is_used = true;
            }
            self.is_taken[leaf as usize] = is_used;
            self.taken += u64::from(is_used);
            if was_hosts {
                from.backing_cart().give_back(words);
            }
        }
        if was_hosts {
            // Leaves behind the new end, which are empty. Readers may hold the array for longer.
            from.backing_cart().give_back(0..from.get().len());
        }
        self.count();
    }

    fn taken_leaves(&self) -> impl Iterator<Item = u64> {
        (0..).zip(&self.is_taken).filter(|&(_, &is_taken)| is_taken).map(|(leaf, _)| leaf)
    }

    /// The words of a leaf, with their pages.
    fn words_of(&self, leaf: u64) -> impl Iterator<Item = (u64, Word)> {
        let first = leaf * LEAF_PAGES;
        (first..).zip(self.run(first..(first + LEAF_PAGES).min(self.len())).iter())
    }

    /// All words that are not empty, with their pages, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Word)> {
        self.taken_leaves().flat_map(|leaf| self.words_of(leaf)).filter(|&(_, word)| word != Word::EMPTY)
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        match self.counted.memory().is_counted() {
            true => (self.counted.bytes() + self.allocated.bytes()) as usize,
            false => self.taken as usize * LEAF_BYTES + size_of_val(&*self.is_taken),
        }
    }

    /// Bytes of address space for this number of pages.
    pub(super) fn bytes_for(pages: u64) -> u64 {
        pages * size_of::<AtomicU64>() as u64 + pages.div_ceil(LEAF_PAGES) * size_of::<bool>() as u64
    }

    /// Panics unless what is known of leaves is as their words are.
    pub(super) fn check_invariants(&self) {
        let leaves = 0..self.len().div_ceil(LEAF_PAGES);
        let is_used = |leaf: u64| self.words_of(leaf).any(|(_, word)| word != Word::EMPTY);
        let (mut taken, mut empty) = (0, 0);
        for leaf in leaves {
            let is_taken = self.is_taken[leaf as usize];
            assert!(is_taken || !is_used(leaf), "leaf {leaf} has words and is not known to take memory");
            taken += u64::from(is_taken);
            empty += u64::from(is_taken && !is_used(leaf));
        }
        assert_eq!(
            (self.taken, self.empty),
            (taken, empty),
            "leaves that take memory, and those without a word"
        );
        let is_due = match self.is_hosts {
            true => empty > GIVEN_TOGETHER as u64,
            false => !self.stays && empty >= EMPTY_MIN && 2 * empty >= taken,
        };
        assert!(!is_due, "{empty} of {taken} leaves take memory for nothing");
    }

    fn reader(&mut self, first: u64) -> WordReader {
        let shared = self.shared.get_or_insert_with(|| Arc::new(Mutex::new(self.array.clone())));
        WordReader { shared: Arc::clone(shared), known: self.array.clone(), first }
    }
}

/// The words of a file or a mapping, for another thread than the one that writes them. Each thread has one of its own.
#[derive(Clone)]
pub struct WordReader {
    shared: Arc<Mutex<Array>>,
    /// The array as it was found last.
    known: Array,
    /// The page of the table that is the reader's first one.
    first: u64,
}

impl WordReader {
    /// The word of a page as it is now: empty beyond the end, and where nothing is known of the page.
    #[inline]
    pub fn get(&mut self, page: u64) -> Word {
        let page = self.first + page;
        match Run(self.known.get()).get(page) {
            Word::EMPTY => self.look_up(page),
            word => word,
        }
    }

    /// Checks for another array. Never waits: in the child of a fork, the thread that has the lock may not exist. The caller then asks the engine, as
    /// for any unknown page.
    #[cold]
    #[inline(never)]
    fn look_up(&mut self, page: u64) -> Word {
        self.known = match self.shared.try_lock() {
            Ok(array) => array.clone(),
            Err(TryLockError::Poisoned(array)) => array.into_inner().clone(),
            Err(TryLockError::WouldBlock) => return Word::EMPTY,
        };
        Run(self.known.get()).get(page)
    }
}

impl Table {
    /// A handle by which another thread reads the words, from a page on, while this one writes them.
    pub fn reader(&mut self, first: u64) -> WordReader {
        self.words.reader(first)
    }

    /// The same for page-table entries: each shows whether an access has to set a bit ([`Word::is_settled`]).
    pub fn entry_reader(&mut self, first: u64) -> WordReader {
        if !self.words.has_readers() {
            // A young bit above may have been cleared without a note in the words.
            self.words.taken_leaves().for_each(|leaf| self.words.unsettle(leaf));
        }
        self.words.reader(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::folio::UseBits;
    use crate::memory::table::Mark;
    use crate::memory::table_memory::TableHost;
    use crate::units::Pfn;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::Ordering::{Acquire, Release};
    use std::sync::atomic::{AtomicBool, AtomicI64};

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
    fn reader_whose_lock_is_never_let_go_finds_nothing() {
        let mut table = Table::new(LEAF_PAGES);
        let (mut reader, other) = (table.reader(0), table.reader(0));
        // A reader that waited for it would wait for ever.
        let held = other.shared.lock().expect("nobody panics there");
        assert_eq!(reader.get(7), Word::EMPTY);
        drop(held);
        table.replace(7, cached(1));
        assert_eq!(reader.get(7), cached(1));
    }

    #[test]
    fn leaves_give_their_memory_back_when_as_many_are_empty_as_are_used() {
        let mut table = Table::new(1000 * LEAF_PAGES);
        let none = table.bytes();
        let put = |table: &mut Table, leaves: Range<u64>, word: Word| {
            for page in leaves.start * LEAF_PAGES..leaves.end * LEAF_PAGES {
                table.replace(page, word);
            }
            table.check_invariants();
            (table.bytes() - none) / LEAF_BYTES
        };
        assert_eq!(put(&mut table, 5..25, cached(1)), 20);
        assert_eq!(put(&mut table, 5..14, Word::EMPTY), 20, "more are used than are empty");
        assert_eq!(put(&mut table, 5..8, cached(2)), 20, "what is empty is used again");
        assert_eq!(put(&mut table, 20..24, Word::EMPTY), 10, "half of them was empty");
        assert_eq!(put(&mut table, 0..1000, Word::EMPTY), 2, "a few are not worth a move");
        assert_eq!(put(&mut table, 990..1000, cached(3)), 12);
    }

    #[test]
    fn who_reads_keeps_the_memory_of_words_that_have_moved_until_it_finds_nothing_there() {
        let mut table = Table::new(100 * LEAF_PAGES);
        for leaf in 0..10 {
            table.replace(leaf * LEAF_PAGES, cached(leaf as u32 + 1));
        }
        let mut reader = table.reader(0);
        assert_eq!(reader.get(9 * LEAF_PAGES), cached(10));
        let before = Arc::downgrade(table.words.array.backing_cart());
        for leaf in 0..8 {
            table.replace(leaf * LEAF_PAGES, Word::EMPTY);
        }
        assert!(
            before.strong_count() == 1
                && before
                    .upgrade()
                    .is_some_and(|before| { before.words().iter().all(|word| word.load(Relaxed) == 0) })
        );
        table.replace(9 * LEAF_PAGES, cached(11));
        assert_eq!(reader.get(9 * LEAF_PAGES), cached(11), "it looks where the words are now");
        assert_eq!(before.strong_count(), 0, "nobody has the memory any more");
        table.check_invariants();
    }

    #[test]
    fn entry_is_settled_until_a_young_bit_goes() {
        let mut table = Table::new(2 * LEAF_PAGES);
        let pages = [3, LEAF_PAGES + 3];
        pages.iter().for_each(|&page| _ = table.replace(page, Word::mapping(Pfn(page as u32), false)));
        table.replace(4, Word::ZERO_PAGE);
        table.clear_leaf_young(0);
        let mut reader = table.entry_reader(0);
        let settled =
            |reader: &mut WordReader| [3, 4, LEAF_PAGES + 3].map(|page| reader.get(page).is_settled());
        assert_eq!(
            settled(&mut reader),
            [false; 3],
            "what was cleared before there was a reader is not known"
        );
        for page in [3, 4, LEAF_PAGES + 3] {
            assert!(table.mapped_words(0, 2 * LEAF_PAGES).touch(page, false));
        }
        assert_eq!(settled(&mut reader), [true; 3]);
        assert!(table.is_leaf_young(0));
        table.clear_leaf_young(0);
        assert_eq!(settled(&mut reader), [false, false, true], "the next access sets the bit above");
        assert!(reader.get(3).is_young());
        table.clear_entry_young(LEAF_PAGES + 3);
        assert!(!reader.get(LEAF_PAGES + 3).is_settled());
        assert!(table.mapped_words(0, 2 * LEAF_PAGES).touch(LEAF_PAGES + 3, true));
        assert!(reader.get(LEAF_PAGES + 3).is_settled() && reader.get(LEAF_PAGES + 3).is_dirty());
        table.check_invariants();
    }

    #[test]
    fn table_shrinks_under_its_readers_and_grows_again() {
        let mut table = Table::new(100 * LEAF_PAGES);
        let mut reader = table.reader(0);
        (0..100).for_each(|leaf| _ = table.replace(leaf * LEAF_PAGES + 9, cached(leaf as u32)));
        let full = table.bytes();
        (1..100).for_each(|leaf| _ = table.replace(leaf * LEAF_PAGES + 9, Word::EMPTY));
        table.shrink(LEAF_PAGES);
        table.check_invariants();
        assert!(table.pages() == LEAF_PAGES && 50 * table.bytes() < full);
        assert_eq!([9, LEAF_PAGES + 9].map(|page| reader.get(page)), [cached(0), Word::EMPTY]);
        table.grow(LEAF_PAGES);
        table.replace(LEAF_PAGES + 9, cached(7));
        assert_eq!(reader.get(LEAF_PAGES + 9), cached(7));
        table.check_invariants();
    }

    #[test]
    #[should_panic(expected = "has words behind")]
    fn table_with_words_at_its_end_does_not_shrink() {
        let mut table = Table::new(2 * LEAF_PAGES);
        table.replace(LEAF_PAGES, cached(1));
        table.shrink(LEAF_PAGES);
    }

    #[test]
    fn a_table_grows_under_its_readers() {
        let mut table = Table::new(600);
        let mut reader = table.reader(0);
        table.replace(599, cached(5));
        assert_eq!((reader.get(599), reader.get(1599)), (cached(5), Word::EMPTY));
        table.grow(1000);
        table.replace(1599, cached(6));
        table.replace(1000, cached(7));
        assert_eq!([599, 1000, 1599].map(|page| reader.get(page)), [5, 7, 6].map(cached));
        assert_eq!(reader.get(1_000_000), Word::EMPTY, "beyond the end there is nothing");
        table.check_invariants();
    }

    /// A host with memory of its own: it checks that what it gets back is zero, and counts.
    #[derive(Default)]
    struct Host {
        bytes: AtomicI64,
        given_back: Arc<AtomicU64>,
    }

    struct OfHost(Box<[AtomicU64]>, Arc<AtomicU64>);

    impl WordArray for OfHost {
        fn words(&self) -> &[AtomicU64] {
            &self.0
        }

        fn give_back(&self, words: Range<usize>) {
            assert!(
                words.start.is_multiple_of(LEAF_PAGES as usize),
                "{words:?} is in a page with other words"
            );
            self.1.fetch_add(words.len().div_ceil(LEAF_PAGES as usize) as u64, Relaxed);
            assert!(self.0[words].iter().all(|word| word.load(Relaxed) == 0), "a word is lost");
        }
    }

    impl TableHost for Host {
        fn reserve(&self, words: usize) -> Option<Arc<dyn WordArray>> {
            Some(Arc::new(OfHost(zeroed_slice_box(words), Arc::clone(&self.given_back))))
        }

        fn count_words(&self, bytes: i64) {
            self.bytes.fetch_add(bytes, Relaxed);
        }

        fn count_allocated(&self, bytes: i64) {
            self.bytes.fetch_add(bytes, Relaxed);
        }
    }

    proptest! {
        #[test]
        fn words_of_a_host_are_those_that_were_put_there(
            sizes in prop::collection::vec(1..60u64, 1..4),
            changes in prop::collection::vec((0..60 * LEAF_PAGES, 0..3u32), 1..400),
        ) {
            let host = Arc::new(Host::default());
            let mut table = Table::new_in(0, &TableMemory::of(host.clone()));
            let (mut reader, mut model) = (table.reader(0), BTreeMap::new());
            for leaves in sizes {
                match leaves * LEAF_PAGES {
                    pages if pages >= table.pages() => table.grow(pages - table.pages()),
                    pages => {
                        let rest: Vec<u64> = model.range(pages..).map(|(&page, _)| page).collect();
                        rest.iter().for_each(|&page| _ = table.replace(page, Word::EMPTY));
                        model.retain(|&page, _| page < pages);
                        table.shrink(pages);
                    }
                }
                for &(page, number) in &changes {
                    let page = page % table.pages();
                    let word = if number == 0 { Word::EMPTY } else { cached(number) };
                    table.replace(page, word);
                    model.insert(page, word);
                    prop_assert_eq!(reader.get(page), word);
                }
                model.retain(|_, word| *word != Word::EMPTY);
                prop_assert_eq!(table.iter().collect::<BTreeMap<_, _>>(), model.clone());
                prop_assert_eq!(host.bytes.load(Relaxed), table.bytes() as i64);
                table.check_invariants();
            }
            drop(table);
            prop_assert_eq!(host.bytes.load(Relaxed), 0);
        }
    }

    #[test]
    fn words_far_apart_are_given_back_32_leaves_at_a_time() {
        let host = Arc::new(Host::default());
        let mut table = Table::new_in(1000 * LEAF_PAGES, &TableMemory::of(host.clone()));
        let none = table.bytes();
        for leaf in 0..1000 {
            table.replace(leaf * LEAF_PAGES, cached(leaf as u32));
            if leaf >= 10 {
                table.replace((leaf - 10) * LEAF_PAGES, Word::EMPTY);
            }
            assert!(table.bytes() < none + 45 * LEAF_BYTES, "{} bytes at leaf {leaf}", table.bytes());
        }
        assert_eq!(host.given_back.load(Relaxed), 990 / 32 * 32);
    }
}
