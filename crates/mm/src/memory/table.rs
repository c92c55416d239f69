//! Tables of page words: page tables and page-cache indexes are the same structure.
//!
//! ```text
//!   upper   [ young ]                    [ young ]                    ...    one non-leaf young bit for 512 pages
//!   leaves  [ word ][ word ] ... 512 ... [ word ][ word ] ...                one 64-bit word a page
//!
//!   word of a resident page      frame number | mark, counter, WORKINGSET ACTIVE REFERENCED | DIRTY YOUNG PRESENT
//!   word of an absent page       0 empty  |  shadow of the evicted page  |  swap entry
//! ```
//! A hit reads one word and writes the same word, so everything that a hit may set lives in it. A page table uses YOUNG and DIRTY, as hardware sets
//! them. A page-cache index uses the use bits (`memory/folio.rs`), and DIRTY for a page of a regular file that has to be written. A huge page fills a
//! leaf: the processor has one entry for it there, and the words are as many copies.
//!
//! The use bits of a large folio are in the word of its first page, which each of its words leads to. A hit writes that word, and the page's own at its
//! first use after readahead. An index also counts present pages and shadows by node of 64 slots. The kernel frees nodes of that size that hold only shadows (`workingset/shadow_nodes.rs`).

mod access;
mod word;
mod words;

use crate::memory::folio::UseBits;
use crate::memory::sparse::Sparse;
use crate::memory::table_memory::{Counted, TableMemory};
use crate::units::Pfn;
pub use access::{MappedWords, ReadWords};
use bitflags::bitflags;
use pageout_rules::lru::References;
use std::ops::Range;
pub use word::{Entry, Mark, Shadow, SwapEntry, Word};
pub use words::WordReader;
use words::Words;

/// Pages under one upper entry: what a page-table page maps.
pub const LEAF_PAGES: u64 = 512;
/// Slots of a kernel index node; shadow-only nodes are counted and freed in this unit.
pub const NODE_SLOTS: u64 = 64;

/// Population of an index node of 64 slots: pages, present or in swap, in the lower byte, and shadows in the upper one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct NodeCount(u16);

impl NodeCount {
    const SHADOW: u16 = 1 << 8;

    /// What a word adds.
    #[inline(always)]
    fn of(word: Word) -> NodeCount {
        NodeCount(u16::from(word.is_page()) + NodeCount::SHADOW * u16::from(word.is_shadow()))
    }

    fn pages(self) -> u8 {
        self.0 as u8
    }

    fn shadows(self) -> u8 {
        (self.0 / NodeCount::SHADOW) as u8
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Holds nothing but shadows, so that it may be freed without losing a page.
    fn is_shadow_only(self) -> bool {
        self.pages() == 0 && !self.is_empty()
    }

    #[must_use]
    fn plus(self, other: NodeCount) -> NodeCount {
        NodeCount(self.0 + other.0)
    }

    #[must_use]
    fn minus(self, other: NodeCount) -> NodeCount {
        debug_assert!(self.pages() >= other.pages(), "a page leaves an index node without pages");
        debug_assert!(self.shadows() >= other.shadows(), "a shadow leaves an index node without shadows");
        NodeCount(self.0 - other.0)
    }
}

bitflags! {
    /// What is known of a leaf as a whole.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    struct Leaf: u8 {
        /// Some page below has been accessed through this table since the bit was last cleared.
        const YOUNG = 1 << 0;
        /// Some page below has been present at some time, so that the leaf exists.
        const EXISTS = 1 << 1;
    }
}

/// Pages that readahead brought in without anyone having asked for them. (Linux counts none of them.)
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadaheadStats {
    /// Pages read ahead since the beginning.
    pub pages: u64,
    /// Pages that were read ahead, are in memory, and are unused. Uses of a mapped page can't be seen: it counts as used.
    pub unused: u64,
    /// Pages read ahead that left memory before anyone used them.
    pub dropped: u64,
}

/// A longer copy: zeroes behind what there was, which take memory where they are first written.
fn grown<T: Copy + Default>(from: &[T], len: usize) -> Vec<T> {
    let mut to = vec![T::default(); len];
    to[..from.len()].copy_from_slice(from);
    to
}

/// Effect on its index node of replacing a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeChange {
    /// Nothing that matters to its memory.
    None,
    /// The node now holds nothing but shadows.
    ShadowOnly,
    /// The node held nothing but shadows before.
    Mixed,
}

/// Outcome of recording a file access in the page's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marked {
    /// The word says it.
    Done,
    /// The page is present, but more than its word has to change.
    Slow(Pfn),
    /// The page isn't there, or is being read.
    Absent,
}

/// A table of page words.
///
/// The words lie one after the other, in memory that the system hands out zeroed when it is first touched. So a table costs what is used of
/// it, and a hit is one access to one array. The 512-page leaves show in the young bits above them.
pub struct Table {
    words: Words,
    leaves: Vec<Leaf>,
    nodes: Sparse<NodeCount>,
    readahead: ReadaheadStats,
    /// Of the leaves.
    counted: Counted,
}

impl Table {
    /// A table of empty words.
    pub fn new(pages: u64) -> Table {
        Table::new_in(pages, &TableMemory::default())
    }

    /// A table of empty words in this memory.
    pub fn new_in(pages: u64, memory: &TableMemory) -> Table {
        Table::of(Words::new(pages, memory), memory)
    }

    /// A table of empty words by slot of a swap device.
    pub fn by_slot(slots: u64) -> Table {
        Table::of(Words::that_stay(slots), &TableMemory::default())
    }

    fn of(words: Words, memory: &TableMemory) -> Table {
        let leaves = words.len().div_ceil(LEAF_PAGES);
        Table {
            leaves: vec![Leaf::empty(); leaves as usize],
            nodes: Sparse::new(words.len().div_ceil(NODE_SLOTS) as usize, memory),
            words,
            readahead: ReadaheadStats::default(),
            counted: Counted::allocated(memory, leaves * size_of::<Leaf>() as u64),
        }
    }

    /// Bytes of address space of a table of this size.
    pub fn bytes_for(pages: u64) -> u64 {
        let (leaf, node) = (size_of::<Leaf>(), size_of::<NodeCount>());
        Words::bytes_for(pages)
            + pages.div_ceil(LEAF_PAGES) * leaf as u64
            + pages.div_ceil(NODE_SLOTS) * node as u64
    }

    /// Returns how many pages it has words of.
    pub fn pages(&self) -> u64 {
        self.words.len()
    }

    /// Adds this many pages at the end.
    pub fn grow(&mut self, pages: u64) {
        let pages = self.pages() + pages;
        self.words.grow(pages);
        self.leaves = grown(&self.leaves, pages.div_ceil(LEAF_PAGES) as usize);
        self.nodes.resize(pages.div_ceil(NODE_SLOTS) as usize);
        self.counted.set(size_of_val(&*self.leaves) as u64);
    }

    /// Removes empty words at the end, until this many are left.
    ///
    /// # Panics
    /// Panics if one of them is not empty, or the rest does not end with a leaf.
    pub fn shrink(&mut self, pages: u64) {
        assert!(
            pages <= self.pages() && pages.is_multiple_of(LEAF_PAGES),
            "a table of {} pages shrinks to {pages}",
            self.pages()
        );
        let nodes = (pages / NODE_SLOTS) as usize;
        assert!(self.nodes.iter().all(|(at, _)| at < nodes), "a table shrinks that has words behind {pages}");
        self.words.shrink(pages);
        self.leaves.truncate((pages / LEAF_PAGES) as usize);
        self.leaves.shrink_to_fit();
        self.nodes.resize(nodes);
        self.counted.set(size_of_val(&*self.leaves) as u64);
    }

    /// Prefetches a page's word. Does nothing if there is no such page.
    #[inline(always)]
    pub fn prefetch(&self, page: u64) {
        self.words.all().prefetch(page);
    }

    /// The word of a page.
    #[inline]
    pub fn word(&self, page: u64) -> Word {
        self.words.slot(page).get()
    }

    /// The words of pages in a row.
    #[inline]
    pub fn words(&self, pages: Range<u64>) -> impl Iterator<Item = Word> {
        self.words.run(pages).iter()
    }

    /// The word of a page, empty beyond the end: a folio may be held for longer than its address space exists.
    pub fn word_if_any(&self, page: u64) -> Word {
        self.words.all().get(page)
    }

    /// Changes bits of a word, not what kind of entry it is.
    #[inline]
    pub fn update(&mut self, page: u64, change: impl FnOnce(&mut Word)) {
        let slot = self.words.slot(page);
        let mut word = slot.get();
        debug_assert!(word != Word::EMPTY, "page {page} has no word to change");
        change(&mut word);
        debug_assert_eq!(
            word.is_present(),
            slot.get().is_present(),
            "an update of its word makes page {page} appear or disappear"
        );
        debug_assert_eq!(
            word.is_unused(),
            slot.get().is_unused(),
            "the use of page {page} was recorded without its count"
        );
        slot.set(word);
    }

    /// A page of those that are in swap together comes back alone. The others stay together in parts, as index nodes have them. Pages that take several
    /// slots of a node are parted slot by slot. Pages of one slot are parted in two halves, in a node below. [folios 2.6]
    pub fn split_swapped(&mut self, page: u64) {
        let mut order = self.word(page).order();
        while order > 0 {
            let slot = u32::from(order) / NODE_SLOTS.ilog2() * NODE_SLOTS.ilog2();
            let part = if slot < u32::from(order) { slot as u8 } else { order - 1 };
            let first = page >> order << order;
            for at in first..first + (1 << order) {
                self.update(at, |word| *word = word.with_order(part));
            }
            order = part;
        }
    }

    /// The words of a mapping, which begins at a leaf, for a run of accesses to it.
    #[inline]
    pub fn mapped_words(&mut self, start: u64, pages: u64) -> MappedWords<'_> {
        debug_assert_eq!(start % LEAF_PAGES, 0, "a mapping begins in the middle of a leaf");
        MappedWords::new(
            self.words.run(start..start + pages),
            &mut self.leaves[(start / LEAF_PAGES) as usize..],
        )
    }

    /// Records an access through a file descriptor, if the word alone is enough. The first access sets REFERENCED. A page that is already active, or
    /// has reached the highest access count, does not change.
    #[inline(always)]
    pub fn mark(&mut self, page: u64) -> Marked {
        if self.read_words().is_settled(page) { Marked::Done } else { self.mark_unsettled(page) }
    }

    /// The words as reads find them that have nothing to note.
    #[inline(always)]
    pub fn read_words(&self) -> ReadWords<'_> {
        ReadWords::new(self.words.all())
    }

    /// The rest of it: most hits are on pages with nothing to gain, and are no more than a look at their word.
    #[inline(never)]
    fn mark_unsettled(&mut self, page: u64) -> Marked {
        const LADDER_6_12: [u8; 32] = crate::lru::ladder(References::Linux6_12);
        const LADDER_6_16: [u8; 32] = crate::lru::ladder(References::Linux6_16);
        let Some(slot) = self.words.all().slot(page) else { return Marked::Absent };
        if !slot.get().is_hit() {
            return Marked::Absent;
        }
        if slot.get().0 & (Word::UNUSED | Word::IDLE) != 0 {
            let was_idle = slot.get().is_idle();
            self.note_use(page);
            if was_idle && self.clear_idle(page).is_settled() {
                return Marked::Done;
            }
        }
        // The use of a page is one of its folio.
        let slot = self.words.slot(page);
        let slot = self.words.slot(slot.get().head(page));
        let marked = slot.get();
        let use_bits = marked.use_bits();
        let hotter = match marked.0 & Word::MARK {
            Word::MARK_CLASSIC if !use_bits.contains(UseBits::REFERENCED) => use_bits | UseBits::REFERENCED,
            Word::MARK_VISITED => use_bits | UseBits::REFERENCED,
            // The first access moves no page; a further one may, by the generation that it is in.
            Word::MARK_FREQUENCY if (use_bits - UseBits::ACTIVE).is_empty() => use_bits | UseBits::REFERENCED,
            Word::MARK_COUNT_6_12 => UseBits::from_bits_truncate(LADDER_6_12[usize::from(use_bits.bits())]),
            Word::MARK_COUNT_6_16 => UseBits::from_bits_truncate(LADDER_6_16[usize::from(use_bits.bits())]),
            _ => return Marked::Slow(marked.pfn()),
        };
        slot.set(marked.with_use_bits(hotter));
        Marked::Done
    }

    /// The frame of a page that a read(2) finds immediately, and whether the page is so much in use that the classic LRU has nothing left to record.
    #[inline]
    pub fn frame_of_hit(&self, page: u64) -> Option<(Pfn, bool)> {
        let word = self.words.all().slot(page)?.get();
        word.is_hit().then(|| (word.pfn(), self.folio_word(page).is_in_use()))
    }

    /// The word of the first page of the folio that a page belongs to: the one with the folio's use bits. An absent page has its own.
    #[inline]
    pub fn folio_word(&self, page: u64) -> Word {
        let word = self.word(page);
        if word.is_large() { self.word(word.head(page)) } else { word }
    }

    /// Returns whether two pages are one, or lie in one folio, which is the first one's.
    #[inline]
    pub fn is_same_folio(&self, page: u64, other: u64) -> bool {
        page == other || self.is_same_large_folio(page, other)
    }

    /// Returns whether a page is one of a large folio, and not its first.
    #[inline]
    pub fn is_tail(&self, page: u64) -> bool {
        let word = self.words.all().get(page);
        word.is_large() && word.head(page) != page
    }

    #[inline]
    fn is_same_large_folio(&self, page: u64, other: u64) -> bool {
        let word = self.words.all().get(page);
        word.is_large() && word.head(page) == word.head(other)
    }

    /// The same as [`Table::mark`], for a read of the page that was read last. See [`Mark::counts`].
    #[inline]
    pub fn reread(&mut self, page: u64) -> Marked {
        let word = self.words.all().get(page);
        match word.is_hit() {
            true if matches!(self.folio_word(page).0 & Word::MARK, Word::MARK_VISITED | Word::MARK_EVERY) => {
                self.mark(page)
            }
            true => {
                self.note_use(page);
                Marked::Done
            }
            false => Marked::Absent,
        }
    }

    /// Records that a page has been read ahead, and is unused.
    pub fn set_unused(&mut self, page: u64) {
        let slot = self.words.slot(page);
        let word = slot.get();
        debug_assert!(word.is_present(), "page {page} is said to have been read ahead and is absent");
        debug_assert!(!word.is_unused(), "page {page} is said to have been read ahead twice");
        slot.set(Word((word.0 | Word::UNUSED) & !Word::SETTLED));
        self.readahead.pages += 1;
        self.readahead.unused += 1;
    }

    /// Notes that a page is used, where that is not known already.
    #[inline]
    pub fn note_use(&mut self, page: u64) {
        let slot = self.words.slot(page);
        if slot.get().is_unused() {
            debug_assert!(self.readahead.unused > 0, "page {page} was read ahead and is not counted");
            slot.set(Word(slot.get().0 & !Word::UNUSED).settled());
            self.readahead.unused -= 1;
        }
    }

    /// Makes the folio of a page of an index idle: the next access through a file descriptor clears this, whichever of its pages it is to.
    pub fn set_idle(&mut self, page: u64) {
        let word = self.word(page);
        let first = word.head(page);
        for at in first..first + (1 << word.order()) {
            let slot = self.words.slot(at);
            slot.set(Word((slot.get().0 | Word::IDLE) & !Word::SETTLED));
        }
    }

    /// The folio of a page of an index was used. Returns the word of its first page.
    pub fn clear_idle(&mut self, page: u64) -> Word {
        let head = self.word(page).head(page);
        for at in [page, head] {
            let slot = self.words.slot(at);
            if slot.get().is_idle() {
                slot.set(Word(slot.get().0 & !Word::IDLE).settled());
            }
        }
        self.word(head)
    }

    /// Counts of the pages that were read ahead, by their fate.
    pub fn readahead(&self) -> ReadaheadStats {
        self.readahead
    }

    /// A write through a file descriptor to a page of a regular file: whether the page is already dirty, so that nothing has to be counted.
    /// [`Mark::counts_writes`] defines which marks also count writes.
    #[inline]
    pub fn overwrite(&mut self, page: u64) -> Marked {
        const DIRTY: u64 = Word::PRESENT | Word::DIRTY;
        let Some(slot) = self.words.all().slot(page) else { return Marked::Absent };
        let word = slot.get();
        if word.0 & (DIRTY | Word::BUSY | Word::IDLE) != DIRTY {
            if word.0 & (DIRTY | Word::BUSY) != DIRTY {
                return Marked::Absent;
            }
            self.clear_idle(page);
        }
        let slot = self.words.slot(word.head(page));
        let word = slot.get();
        match word.0 & Word::MARK {
            Word::MARK_EVERY => Marked::Slow(word.pfn()),
            Word::MARK_VISITED => {
                slot.set(word.with_use_bits(word.use_bits() | UseBits::REFERENCED));
                Marked::Done
            }
            _ => Marked::Done,
        }
    }

    /// Replaces a word; returns the old one and what this means for its index node.
    #[inline(always)]
    pub fn replace(&mut self, page: u64, new: Word) -> (Word, NodeChange) {
        let slot = self.words.slot(page);
        let old = slot.get();
        slot.set(new);
        if new.is_present() {
            let leaf = &mut self.leaves[(page / LEAF_PAGES) as usize];
            leaf.insert(Leaf::EXISTS);
            if new.is_young() {
                leaf.insert(Leaf::YOUNG);
            }
        }
        if old.is_unused() {
            self.readahead.unused -= 1;
            self.readahead.dropped += 1;
        }
        let at = (page / NODE_SLOTS) as usize;
        let before = self.nodes.get(at);
        let after = before.plus(NodeCount::of(new)).minus(NodeCount::of(old));
        self.nodes.set(at, after);
        debug_assert!(
            u64::from(after.pages()) + u64::from(after.shadows()) <= NODE_SLOTS,
            "the index node of page {page} holds more than it has slots"
        );
        self.assert_recounted(page);
        let change = match (before.is_shadow_only(), after.is_shadow_only()) {
            (false, true) => NodeChange::ShadowOnly,
            (true, false) => NodeChange::Mixed,
            _ => NodeChange::None,
        };
        if before.is_empty() != after.is_empty() {
            self.node_changed(page, after.is_empty());
        }
        (old, change)
    }

    /// A word was replaced: the counts of its node are those of the words in it, and of a short table so is what was read ahead. One
    /// page in four of a short table has it recounted, and one in 64 of a long one.
    #[inline]
    fn assert_recounted(&self, page: u64) {
        let one_in = if self.pages() <= NODE_SLOTS { 4 } else { 64 };
        if cfg!(debug_assertions) && page.is_multiple_of(one_in) {
            let first = page / NODE_SLOTS * NODE_SLOTS;
            let (mut counted, mut unused) = (NodeCount::default(), 0);
            for word in (first..(first + NODE_SLOTS).min(self.pages())).map(|page| self.word_if_any(page)) {
                counted = counted.plus(NodeCount::of(word));
                unused += u64::from(word.is_unused());
            }
            assert_eq!(
                self.nodes.get((page / NODE_SLOTS) as usize),
                counted,
                "pages and shadows of an index node"
            );
            assert!(
                self.pages() > NODE_SLOTS || self.readahead.unused == unused,
                "pages read ahead and not used"
            );
        }
    }

    /// The index node of a page has got its first word, or lost its last one. So has its leaf, if the other nodes have none.
    #[inline(never)]
    fn node_changed(&mut self, page: u64, is_empty: bool) {
        const NODES: usize = (LEAF_PAGES / NODE_SLOTS) as usize;
        let (leaf, at) = (page / LEAF_PAGES, (page / NODE_SLOTS) as usize);
        let first = leaf as usize * NODES;
        let mut others = (first..self.nodes.len().min(first + NODES)).filter(|&node| node != at);
        if others.any(|node| !self.nodes.get(node).is_empty()) {
            return;
        }
        match is_empty {
            true => self.words.leaf_emptied(leaf),
            false => self.words.leaf_filled(leaf),
        }
    }

    /// Returns whether there is nothing in the index node of this page.
    #[inline]
    pub fn is_node_empty(&self, page: u64) -> bool {
        self.nodes.get((page / NODE_SLOTS) as usize).is_empty()
    }

    /// Returns how many pages there are, in memory or in swap, in the index node of this page.
    #[inline]
    pub fn pages_of_node(&self, page: u64) -> u8 {
        self.nodes.get((page / NODE_SLOTS) as usize).pages()
    }

    /// Returns whether a leaf may have a word that is not empty.
    pub fn may_have_words(&self, leaf: u64) -> bool {
        self.words.is_leaf_taken(leaf)
    }

    /// Returns whether this leaf exists: an upper entry that leads to none is passed by.
    pub fn leaf_exists(&self, leaf: u64) -> bool {
        self.leaves[leaf as usize].contains(Leaf::EXISTS)
    }

    /// The leaf of an empty page is freed: its upper entry leads to none.
    pub fn leaf_freed(&mut self, page: u64) {
        self.leaves[(page / LEAF_PAGES) as usize].remove(Leaf::EXISTS | Leaf::YOUNG);
    }

    /// The non-leaf young bit: some page of the leaf was accessed since it was last cleared.
    pub fn is_leaf_young(&self, leaf: u64) -> bool {
        self.leaves[leaf as usize].contains(Leaf::YOUNG)
    }

    /// Models the hardware on an access that faults: it has set the young bit above before it found the entry missing. So a walk during the
    /// reclaim of that fault looks at the table.
    #[inline]
    pub fn pass_through(&mut self, page: u64) {
        let leaf = &mut self.leaves[(page / LEAF_PAGES) as usize];
        leaf.set(Leaf::YOUNG, leaf.intersects(Leaf::YOUNG | Leaf::EXISTS));
    }

    /// Clears the young bit above a leaf. The words show this to readers without the engine: the next access to each page has to set that bit.
    pub fn clear_leaf_young(&mut self, leaf: u64) {
        self.leaves[leaf as usize].remove(Leaf::YOUNG);
        if self.words.has_readers() {
            self.words.unsettle(leaf);
        }
    }

    /// Returns whether the entry that maps a page has its accessed bit set. That of a huge page is the young bit of its leaf.
    #[inline]
    pub fn is_entry_young(&self, page: u64) -> bool {
        let word = self.word(page);
        if word.is_huge() { self.is_leaf_young(page / LEAF_PAGES) } else { word.is_young() }
    }

    /// Clears the young bit of a page-table entry.
    #[inline]
    pub fn clear_entry_young(&mut self, page: u64) {
        if self.word(page).is_huge() {
            self.clear_leaf_young(page / LEAF_PAGES);
        } else {
            self.update(page, Word::clear_young);
        }
    }

    /// Returns whether one entry maps all pages of a leaf.
    pub fn is_leaf_huge(&self, leaf: u64) -> bool {
        self.words.all().get(leaf * LEAF_PAGES).is_huge()
    }

    /// Returns how many pages are present.
    pub fn resident(&self) -> u64 {
        self.iter().filter(|(_, word)| word.is_present()).count() as u64
    }

    /// Pages that are present, in order.
    pub fn present(&self) -> Vec<u64> {
        self.iter().filter(|(_, word)| word.is_present()).map(|(page, _)| page).collect()
    }

    /// All words that are not empty, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Word)> {
        self.words.iter()
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.words.bytes() + size_of_val(&*self.leaves) + self.nodes.bytes()
    }

    /// Index nodes that hold nothing but shadows.
    pub fn shadow_only_nodes(&self) -> usize {
        self.nodes.iter().filter(|(_, node)| node.is_shadow_only()).count()
    }

    /// Panics unless the nodes' counts agree with the words.
    pub fn check_invariants(&self) {
        let unused = self.iter().filter(|(_, word)| word.is_unused()).count() as u64;
        assert_eq!(self.readahead.unused, unused, "pages that were read ahead and not used");
        let mut counted = vec![NodeCount::default(); self.nodes.len()];
        for (page, word) in self.iter() {
            let node = &mut counted[(page / NODE_SLOTS) as usize];
            *node = node.plus(NodeCount::of(word));
        }
        let nodes: Vec<_> = (0..self.nodes.len()).map(|at| self.nodes.get(at)).collect();
        assert_eq!(nodes, counted, "pages and shadows of index nodes");
        self.words.check_invariants();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tlb::Tlb;
    use crate::units::{MemcgId, NodeId, SwapId};

    #[test]
    fn a_node_is_shadow_only_when_its_last_page_has_left_a_shadow() {
        let mut table = Table::new(1000);
        let shadow =
            Shadow { memcg: MemcgId(1), node: NodeId(0), workingset: false, refs: 0, stamp: 3 }.pack();
        let page = Word::cached(Pfn(1), UseBits::empty(), Mark::Classic);
        table.replace(600, page);
        table.replace(601, shadow);
        assert_eq!(table.replace(600, shadow).1, NodeChange::ShadowOnly);
        assert_eq!(table.replace(601, page).1, NodeChange::Mixed);
        table.check_invariants();
    }

    #[test]
    fn pages_swapped_together_are_parted_as_nodes_have_them() {
        let mut table = Table::new(1024);
        for page in 512..1024 {
            let entry = SwapEntry { swap: SwapId(0), slot: page as u32 };
            table.replace(page, Word::swapped(entry).with_order(9));
        }
        table.split_swapped(512 + 100);
        let order = |page: u64| table.word(512 + page).order();
        assert_eq!([0, 64, 95, 96, 100, 127, 128, 511].map(order), [6, 5, 5, 0, 0, 0, 6, 6]);
        let slots = (512..1024).map(|page| table.word(page).decode());
        assert!(slots.zip(512..).all(|(of, slot)| of == Entry::Swap(SwapEntry { swap: SwapId(0), slot })));
    }

    #[test]
    fn the_word_records_a_first_read_and_leaves_a_second_to_the_order() {
        let mut table = Table::new(64);
        assert_eq!(table.mark(3), Marked::Absent);
        table.replace(3, Word::cached(Pfn(7), UseBits::empty(), Mark::Classic));
        assert_eq!(table.mark(3), Marked::Done);
        assert_eq!(table.mark(3), Marked::Slow(Pfn(7)));
        table.update(3, |word| *word = word.with_use_bits(UseBits::REFERENCED | UseBits::ACTIVE));
        assert_eq!(table.mark(3), Marked::Done);
        table.update(3, |word| word.set_busy(true));
        assert_eq!(table.mark(3), Marked::Absent);
    }

    #[test]
    fn a_word_that_records_visits_does_so_at_each_access_rereads_included() {
        for access in [Table::mark, Table::reread] {
            let mut table = Table::new(64);
            let word = Word::cached(Pfn(7), UseBits::WORKINGSET, Mark::Visited);
            table.replace(3, word);
            for _ in 0..2 {
                assert_eq!(access(&mut table, 3), Marked::Done);
                assert!(table.word(3) == word.with_use_bits(UseBits::REFERENCED | UseBits::WORKINGSET));
            }
            table.update(3, |word| word.set_busy(true));
            assert_eq!(access(&mut table, 3), Marked::Absent);
        }
    }

    #[test]
    fn a_table_keeps_its_words_when_it_grows() {
        let mut table = Table::new(600);
        let word = Word::mapping(Pfn(5), true);
        table.replace(599, word);
        table.grow(1000);
        assert!(table.word(599) == word && table.word(1599) == Word::EMPTY);
        table.check_invariants();
    }

    #[test]
    fn a_page_that_was_made_active_before_anyone_used_it_has_nothing_to_gain_from_its_second_use() {
        let mut table = Table::new(64);
        let in_use = UseBits::REFERENCED | UseBits::ACTIVE;
        table.replace(3, Word::cached(Pfn(7), in_use, Mark::Classic));
        table.set_unused(3);
        let first = table.mark(3);
        assert!(matches!(first, Marked::Slow(Pfn(7))), "its first use is noted");
        assert!(table.word(3) == table.word(3).with_mark(Mark::Classic));
        assert!(matches!(table.mark(3), Marked::Done));
    }

    #[test]
    fn an_access_to_a_marked_entry_faults_and_changes_nothing() {
        let mut table = Table::new(64);
        table.replace(3, Word::mapping(Pfn(7), false));
        table.update(3, |word| {
            word.clear_young();
            word.set_prot_none();
        });
        let marked = table.word(3);
        assert!(marked.is_present() && marked.is_prot_none() && table.resident() == 1);
        let mut tlb = Tlb::new(4);
        for write in [false, true] {
            assert!(!table.mapped_words(0, 64).touch(3, write));
            assert!(!table.mapped_words(0, 64).touch_shared(3, write));
            for _ in 0..2 {
                assert!(!table.mapped_words(0, 64).touch_through(&mut tlb, 0, 3, write, false));
            }
        }
        assert!(table.word(3) == marked);
        table.update(3, Word::clear_prot_none);
        assert!(table.mapped_words(0, 64).touch(3, true) && table.word(3).is_dirty());
    }

    #[test]
    fn an_access_sets_the_non_leaf_young_bit() {
        let mut table = Table::new(1024);
        table.replace(700, Word::mapping(Pfn(0), false));
        assert!(table.mapped_words(512, 512).touch(188, true));
        assert_eq!([0, 1].map(|leaf| table.is_leaf_young(leaf)), [false, true]);
        assert!(table.word(700).is_dirty());
        assert!(!table.mapped_words(512, 512).touch(189, false), "nothing is mapped there");
    }

    #[test]
    fn an_access_that_faults_sets_the_bit_above_where_there_is_a_table() {
        let mut table = Table::new(1024);
        table.replace(700, Word::mapping(Pfn(0), false));
        table.clear_leaf_young(1);
        table.pass_through(701);
        table.pass_through(3);
        assert_eq!([0, 1].map(|leaf| table.is_leaf_young(leaf)), [false, true]);
    }
}
