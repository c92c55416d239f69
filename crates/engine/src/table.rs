//! Tables of page words: page tables and page-cache indexes are the same structure.
//!
//! ```text
//!   upper   [ young ]                    [ young ]                    ...    one non-leaf young bit for 512 pages
//!   leaves  [ word ][ word ] ... 512 ... [ word ][ word ] ...                one 64-bit word a page
//!
//!   word of a resident page      frame number | mark, counter, WORKINGSET ACTIVE REFERENCED | DIRTY YOUNG PRESENT
//!   word of an absent page       0 empty  |  shadow of the evicted page  |  swap entry
//! ```
//! A hit reads one word and writes the same word, which is why everything that a hit may set lives in it: a page table
//! uses YOUNG and DIRTY as hardware would set them, a page-cache index uses the heat bits (`folio.rs`).
//! An index also counts present pages and shadows by node of 64 slots, because the kernel frees shadow-only nodes of that
//! size (`workingset`).

use crate::folio::Heat;
use crate::order::References;
use crate::tlb::Tlb;
use crate::units::{MemcgId, NodeId, Pfn, SwapId};

/// Pages under one upper entry: what a page-table page maps.
pub(crate) const LEAF_PAGES: u64 = 512;
/// Slots of a kernel index node; shadow-only nodes are counted and freed in this unit.
pub(crate) const NODE_SLOTS: u64 = 64;

/// What the table knows of one page.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Word(u64);

/// A word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    Empty,
    Present(Pfn),
    Shadow(Shadow),
    Swap(SwapEntry),
}

/// What remains of an evicted page: who evicted it and when, on the evictor's own clock of evictions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shadow {
    /// The group whose limit caused the eviction; may have been removed since.
    pub(crate) memcg: MemcgId,
    pub(crate) node: NodeId,
    /// It was hot in the residency that ended.
    pub(crate) workingset: bool,
    /// How often it was accessed through file descriptors, as far as its policy counts: 0 to 4.
    pub(crate) refs: u8,
    /// The policy's eviction clock, modulo 2^[`Shadow::STAMP_BITS`].
    pub(crate) stamp: u64,
}

/// Where a swapped page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SwapEntry {
    pub(crate) swap: SwapId,
    pub(crate) slot: u32,
}

/// What a file access to a resident page asks of the folio's order; kept in the word so that a hit needn't look further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// Two-step use-once test: REFERENCED, then activation.
    Classic,
    /// The order is told of each access.
    EveryAccess,
    /// Each access sets REFERENCED but the one for which the page was brought in.
    Visited,
    /// Accesses are counted in the word, on one or the other ladder.
    Count(References),
}

impl Mark {
    /// Whether an access through a file descriptor counts that is the one for which the page was brought in, or that of the
    /// page read last.
    pub(crate) fn counts(self, is_first_use: bool, is_reread: bool) -> bool {
        match self {
            Mark::Visited => !is_first_use,
            // The first use is the first of two steps, and the rest of one request is no second one.
            Mark::Classic | Mark::EveryAccess | Mark::Count(_) => !is_reread,
        }
    }
}

impl Shadow {
    /// 35 bits of evictions: a clock that wraps after 128 TiB of pages, far beyond any distance that matters.
    pub(crate) const STAMP_BITS: u32 = 35;
    const TAG: u64 = 1 << 1;

    pub(crate) fn pack(self) -> Word {
        Word(
            Self::TAG
                | u64::from(self.workingset) << 3
                | u64::from(self.node.0) << 4
                | u64::from(self.memcg.0) << 10
                | u64::from(self.refs) << 26
                | self.stamp << (64 - Self::STAMP_BITS),
        )
    }

    fn unpack(word: u64) -> Shadow {
        Shadow {
            workingset: word >> 3 & 1 != 0,
            node: NodeId((word >> 4 & 0x3f) as u8),
            memcg: MemcgId((word >> 10) as u16),
            refs: (word >> 26 & 7) as u8,
            stamp: word >> (64 - Self::STAMP_BITS),
        }
    }

    /// Evictions between the stamp and `clock`, across a wrap of the stamp.
    pub(crate) fn distance(self, clock: u64) -> u64 {
        clock.wrapping_sub(self.stamp) & ((1 << Self::STAMP_BITS) - 1)
    }
}

impl Word {
    const PRESENT: u64 = 1 << 0;
    const YOUNG: u64 = 1 << 1;
    const DIRTY: u64 = 1 << 2;
    const HEAT_SHIFT: u32 = 3;
    const HEAT: u64 = (Heat::all().bits() as u64) << Word::HEAT_SHIFT;
    /// Three bits: none for [`Mark::Classic`], or one of those below; the middle one says that accesses are counted.
    const MARK: u64 = 7 << 8;
    const MARK_EVERY: u64 = 1 << 8;
    const MARK_COUNT_6_12: u64 = 2 << 8;
    const MARK_COUNT_6_16: u64 = 3 << 8;
    const MARK_VISITED: u64 = 4 << 8;
    /// A read into the frame is in flight.
    const BUSY: u64 = 1 << 11;
    /// Maps the shared page of zeroes, which a write must replace.
    const ZERO: u64 = 1 << 12;
    const PFN_SHIFT: u32 = 32;
    const SWAP_TAG: u64 = 1 << 2;

    pub(crate) const EMPTY: Word = Word(0);
    pub(crate) const ZERO_PAGE: Word = Word(Self::PRESENT | Self::ZERO | Self::YOUNG);

    /// As it is kept where memory that begins as zeroes must not be written to be made.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> Word {
        Word(bits)
    }

    pub(crate) fn mapping(pfn: Pfn, dirty: bool) -> Word {
        let dirty = if dirty { Self::DIRTY } else { 0 };
        Word(u64::from(pfn.0) << Self::PFN_SHIFT | Self::PRESENT | Self::YOUNG | dirty)
    }

    pub(crate) fn cached(pfn: Pfn, heat: Heat, mark: Mark) -> Word {
        Word(u64::from(pfn.0) << Self::PFN_SHIFT | Self::PRESENT).with_heat(heat).with_mark(mark)
    }

    pub(crate) fn with_mark(self, mark: Mark) -> Word {
        let bits = match mark {
            Mark::Classic => 0,
            Mark::EveryAccess => Self::MARK_EVERY,
            Mark::Visited => Self::MARK_VISITED,
            Mark::Count(References::Linux6_12) => Self::MARK_COUNT_6_12,
            Mark::Count(References::Linux6_16) => Self::MARK_COUNT_6_16,
        };
        Word(self.0 & !Self::MARK | bits)
    }

    pub(crate) fn swapped(entry: SwapEntry) -> Word {
        Word(Self::SWAP_TAG | u64::from(entry.swap.0) << 8 | u64::from(entry.slot) << Self::PFN_SHIFT)
    }

    pub(crate) fn decode(self) -> Entry {
        if self.is_present() {
            Entry::Present(self.pfn())
        } else if self.0 & Shadow::TAG != 0 {
            Entry::Shadow(Shadow::unpack(self.0))
        } else if self.0 & Self::SWAP_TAG != 0 {
            Entry::Swap(SwapEntry {
                swap: SwapId((self.0 >> 8) as u8),
                slot: (self.0 >> Self::PFN_SHIFT) as u32,
            })
        } else {
            Entry::Empty
        }
    }

    #[inline]
    pub(crate) fn is_present(self) -> bool {
        self.0 & Self::PRESENT != 0
    }

    #[inline]
    pub(crate) fn is_shadow(self) -> bool {
        self.0 & (Self::PRESENT | Shadow::TAG) == Shadow::TAG
    }

    #[inline]
    pub(crate) fn pfn(self) -> Pfn {
        Pfn((self.0 >> Self::PFN_SHIFT) as u32)
    }

    /// Present, and nothing stands in the way of using it at once.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & (Self::PRESENT | Self::BUSY) == Self::PRESENT
    }

    #[inline]
    pub(crate) fn is_zero_page(self) -> bool {
        self.0 & (Self::PRESENT | Self::ZERO) == Self::PRESENT | Self::ZERO
    }

    #[inline]
    pub(crate) fn is_young(self) -> bool {
        self.0 & (Self::PRESENT | Self::YOUNG) == Self::PRESENT | Self::YOUNG
    }

    #[inline]
    pub(crate) fn is_dirty(self) -> bool {
        self.0 & (Self::PRESENT | Self::DIRTY) == Self::PRESENT | Self::DIRTY
    }

    pub(crate) fn clear_dirty(&mut self) {
        self.0 &= !Self::DIRTY;
    }

    pub(crate) fn clear_young(&mut self) {
        self.0 &= !Self::YOUNG;
    }

    #[inline]
    pub(crate) fn heat(self) -> Heat {
        Heat::from_bits_truncate((self.0 >> Self::HEAT_SHIFT) as u8)
    }

    #[inline]
    pub(crate) fn with_heat(self, heat: Heat) -> Word {
        Word(self.0 & !Self::HEAT | u64::from(heat.bits()) << Self::HEAT_SHIFT)
    }

    pub(crate) fn set_busy(&mut self, busy: bool) {
        if busy { self.0 |= Self::BUSY } else { self.0 &= !Self::BUSY }
    }
}

/// Population of an index node of 64 slots: present pages, shadows.
type NodeCount = [u8; 2];

/// Holds nothing but shadows, so that it may be freed without losing a page.
fn is_shadow_only([present, shadows]: NodeCount) -> bool {
    present == 0 && shadows > 0
}

/// What replacing a word did to its index node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeChange {
    None,
    /// It now holds nothing but shadows.
    ShadowOnly,
    /// It held nothing but shadows before.
    Mixed,
}

/// What became of recording a file access in the page's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Marked {
    Done,
    /// The page is there, but more than its word has to change.
    Slow(Pfn),
    /// The page isn't there, or is being read.
    Absent,
}

/// A table of page words.
///
/// The words lie one after the other in memory that the system hands out zeroed when it is first touched, so a table costs
/// what is used of it, and a hit is one access to one array. The 512-page leaves show in the young bits above them.
pub(crate) struct Table {
    words: Vec<u64>,
    /// By leaf: some page below has been accessed through this table since the bit was last cleared.
    young: Vec<bool>,
    /// By leaf: some page below has been present at some time, so that the leaf exists.
    exists: Vec<bool>,
    nodes: Vec<NodeCount>,
}

/// What accesses to one mapping find on their way.
pub(crate) struct Walk<'a> {
    words: &'a mut [u64],
    young: &'a mut [bool],
}

impl Walk<'_> {
    /// What hardware does on an access: sets the accessed bit, for a store the dirty bit, and the young bit above. False,
    /// leaving a fault to take, where the page isn't mapped, or is the shared page of zeroes and would be written.
    #[inline]
    pub(crate) fn touch(&mut self, page: u64, write: bool) -> bool {
        let Some(word) = self.words.get_mut(page as usize) else { return false };
        let (bits, forbidden) =
            if write { (Word::YOUNG | Word::DIRTY, Word::ZERO) } else { (Word::YOUNG, 0) };
        if *word & (Word::PRESENT | forbidden) != Word::PRESENT {
            return false;
        }
        *word |= bits;
        let young = &mut self.young[(page / LEAF_PAGES) as usize];
        if !*young {
            *young = true;
        }
        true
    }
}

impl Walk<'_> {
    /// The same through a cache of translations, `start` being the page at which the mapping begins: where the translation is
    /// held, no bit is set, but for the first store to a page that its entry says is clean.
    pub(crate) fn touch_through(&mut self, tlb: &mut Tlb, start: u64, page: u64, write: bool) -> bool {
        let Some(&word) = self.words.get(page as usize) else { return false };
        let word = Word(word);
        let needs_walk = write && (word.is_zero_page() || !word.is_dirty());
        let is_held = word.is_present() && tlb.access(start + page);
        is_held && !needs_walk || self.touch(page, write)
    }
}

impl Table {
    pub(crate) fn new(pages: u64) -> Table {
        Table {
            words: vec![0; pages as usize],
            young: vec![false; pages.div_ceil(LEAF_PAGES) as usize],
            exists: vec![false; pages.div_ceil(LEAF_PAGES) as usize],
            nodes: vec![[0; 2]; pages.div_ceil(NODE_SLOTS) as usize],
        }
    }

    pub(crate) fn pages(&self) -> u64 {
        self.words.len() as u64
    }

    /// Adds so many pages at the end.
    pub(crate) fn grow(&mut self, pages: u64) {
        // Into fresh zeroed memory: growing in place would write, and so use, all of it.
        let mut grown = Table::new(self.pages() + pages);
        grown.words[..self.words.len()].copy_from_slice(&self.words);
        grown.young[..self.young.len()].copy_from_slice(&self.young);
        grown.exists[..self.exists.len()].copy_from_slice(&self.exists);
        grown.nodes[..self.nodes.len()].copy_from_slice(&self.nodes);
        *self = grown;
    }

    #[inline]
    pub(crate) fn word(&self, page: u64) -> Word {
        Word(self.words[page as usize])
    }

    /// Changes bits of a word, not what kind of entry it is.
    #[inline]
    pub(crate) fn update(&mut self, page: u64, change: impl FnOnce(&mut Word)) {
        let slot = &mut self.words[page as usize];
        let mut word = Word(*slot);
        change(&mut word);
        debug_assert_eq!(word.is_present(), Word(*slot).is_present());
        *slot = word.0;
    }

    /// The words of a mapping, which begins at a leaf, for a run of accesses to it.
    #[inline]
    pub(crate) fn walk(&mut self, start: u64, pages: u64) -> Walk<'_> {
        debug_assert_eq!(start % LEAF_PAGES, 0);
        Walk {
            words: &mut self.words[start as usize..(start + pages) as usize],
            young: &mut self.young[(start / LEAF_PAGES) as usize..],
        }
    }

    /// Records an access through a file descriptor, where the word alone says how: the first sets REFERENCED; a page that is
    /// active already, or has reached the top of the ladder on which accesses are counted, has nothing to gain.
    #[inline]
    pub(crate) fn mark(&mut self, page: u64) -> Marked {
        const COUNT_6_12: u64 = Word::PRESENT | Word::MARK_COUNT_6_12;
        const COUNT_6_16: u64 = Word::PRESENT | Word::MARK_COUNT_6_16;
        const VISITED: u64 = Word::PRESENT | Word::MARK_VISITED;
        const LADDER_6_12: [u8; 32] = References::Linux6_12.ladder();
        const LADDER_6_16: [u8; 32] = References::Linux6_16.ladder();
        const TOP: Heat = Heat::REFERENCED.union(Heat::WORKINGSET).union(Heat::COUNTER);
        const COUNTED: u64 = Word::PRESENT | Word::MARK_COUNT_6_12 | (TOP.bits() as u64) << Word::HEAT_SHIFT;
        const REFERENCED: u64 = (Heat::REFERENCED.bits() as u64) << Word::HEAT_SHIFT;
        const ACTIVE: u64 = (Heat::ACTIVE.bits() as u64) << Word::HEAT_SHIFT;
        const WHAT_MATTERS: u64 = Word::PRESENT | Word::BUSY | Word::MARK | REFERENCED | ACTIVE;
        let Some(word) = self.words.get_mut(page as usize) else { return Marked::Absent };
        let state = *word & WHAT_MATTERS;
        // First what a page in use settles into, on the one kind of lists and on the other.
        if state == Word::PRESENT | REFERENCED | ACTIVE || *word & (COUNTED | Word::BUSY) == COUNTED {
            return Marked::Done;
        }
        if state & !ACTIVE == Word::PRESENT {
            *word |= REFERENCED;
            return Marked::Done;
        }
        let ladder = match state & (Word::PRESENT | Word::BUSY | Word::MARK) {
            COUNT_6_12 => &LADDER_6_12,
            COUNT_6_16 => &LADDER_6_16,
            VISITED => {
                *word |= REFERENCED;
                return Marked::Done;
            }
            _ if state & (Word::PRESENT | Word::BUSY) == Word::PRESENT => {
                return Marked::Slow(Word(*word).pfn());
            }
            _ => return Marked::Absent,
        };
        let heat = (*word & Word::HEAT) >> Word::HEAT_SHIFT;
        let hotter = u64::from(ladder[heat as usize]);
        if hotter != heat {
            *word = *word & !Word::HEAT | hotter << Word::HEAT_SHIFT;
        }
        Marked::Done
    }

    /// As [`Table::mark`], for a read of the page that was read last. See [`Mark::counts`].
    #[inline]
    pub(crate) fn reread(&mut self, page: u64) -> Marked {
        let word = self.words.get(page as usize).map_or(Word::EMPTY, |&word| Word(word));
        match word.is_plain() {
            true if word.0 & Word::MARK == Word::MARK_VISITED => self.mark(page),
            true => Marked::Done,
            false => Marked::Absent,
        }
    }

    /// Replaces a word; returns the old one and what this means for its index node.
    pub(crate) fn replace(&mut self, page: u64, new: Word) -> (Word, NodeChange) {
        let old = Word(std::mem::replace(&mut self.words[page as usize], new.0));
        if new.is_present() {
            let leaf = (page / LEAF_PAGES) as usize;
            self.exists[leaf] = true;
            self.young[leaf] |= new.is_young();
        }
        let node = &mut self.nodes[(page / NODE_SLOTS) as usize];
        let before = is_shadow_only(*node);
        node[0] += u8::from(new.is_present());
        node[0] -= u8::from(old.is_present());
        node[1] += u8::from(new.is_shadow());
        node[1] -= u8::from(old.is_shadow());
        let change = match (before, is_shadow_only(*node)) {
            (false, true) => NodeChange::ShadowOnly,
            (true, false) => NodeChange::Mixed,
            _ => NodeChange::None,
        };
        (old, change)
    }

    /// Whether this leaf exists: an upper entry that leads to none is passed by.
    pub(crate) fn leaf_exists(&self, leaf: u64) -> bool {
        self.exists[leaf as usize]
    }

    /// The non-leaf young bit: some page of the leaf was accessed since it was last cleared.
    pub(crate) fn is_leaf_young(&self, leaf: u64) -> bool {
        self.young[leaf as usize]
    }

    pub(crate) fn clear_leaf_young(&mut self, leaf: u64) {
        self.young[leaf as usize] = false;
    }

    /// Pages that are present, in order.
    pub(crate) fn present(&self) -> Vec<u64> {
        let leaves = (0..).zip(&self.exists).filter(|(_, exists)| **exists).map(|(leaf, _)| leaf);
        let pages =
            leaves.flat_map(|leaf: u64| leaf * LEAF_PAGES..((leaf + 1) * LEAF_PAGES).min(self.pages()));
        pages.filter(|&page| self.word(page).is_present()).collect()
    }

    /// All words that are not empty, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Word)> {
        let words = self.words.iter().map(|&word| Word(word));
        (0..).zip(words).filter(|&(_, word)| word != Word::EMPTY)
    }

    /// Bytes it takes when all of it is used.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + 2 * size_of_val(&*self.young) + size_of_val(&*self.nodes)
    }

    /// Index nodes that hold nothing but shadows.
    pub(crate) fn shadow_only_nodes(&self) -> usize {
        self.nodes.iter().filter(|&&node| is_shadow_only(node)).count()
    }

    /// Panics unless the nodes' counts agree with the words.
    pub(crate) fn check_invariants(&self) {
        for (node, words) in self.words.chunks(NODE_SLOTS as usize).enumerate() {
            let present = words.iter().filter(|&&word| Word(word).is_present()).count() as u8;
            let shadows = words.iter().filter(|&&word| Word(word).is_shadow()).count() as u8;
            assert_eq!(
                self.nodes[node],
                [present, shadows],
                "present pages and shadows of index node {node}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_packing() {
        let shadow = Shadow {
            memcg: MemcgId(65_535),
            node: NodeId(63),
            workingset: true,
            refs: 4,
            stamp: (1 << 35) - 1,
        };
        assert_eq!(shadow.pack().decode(), Entry::Shadow(shadow));
        let entry = SwapEntry { swap: SwapId(255), slot: u32::MAX };
        assert_eq!(Word::swapped(entry).decode(), Entry::Swap(entry));
        let word = Word::cached(Pfn(u32::MAX - 1), Heat::REFERENCED | Heat::WORKINGSET, Mark::EveryAccess);
        assert_eq!(word.decode(), Entry::Present(Pfn(u32::MAX - 1)));
        assert_eq!(word.heat(), Heat::REFERENCED | Heat::WORKINGSET);
        assert_eq!(word.0 & Word::MARK, Word::MARK_EVERY);
        assert_eq!(Word::EMPTY.decode(), Entry::Empty);
    }

    #[test]
    fn a_distance_is_right_across_the_wrap_of_the_stamp() {
        let shadow =
            Shadow { memcg: MemcgId(1), node: NodeId(0), workingset: false, refs: 0, stamp: (1 << 35) - 2 };
        assert_eq!(shadow.distance(1 << 38 | 5), 7);
    }

    #[test]
    fn a_node_is_shadow_only_when_its_last_page_has_left_a_shadow() {
        let mut table = Table::new(1000);
        let shadow =
            Shadow { memcg: MemcgId(1), node: NodeId(0), workingset: false, refs: 0, stamp: 3 }.pack();
        let page = Word::cached(Pfn(1), Heat::empty(), Mark::Classic);
        table.replace(600, page);
        table.replace(601, shadow);
        assert_eq!(table.replace(600, shadow).1, NodeChange::ShadowOnly);
        assert_eq!(table.replace(601, page).1, NodeChange::Mixed);
        table.check_invariants();
    }

    #[test]
    fn the_word_records_a_first_read_and_leaves_a_second_to_the_order() {
        let mut table = Table::new(64);
        assert_eq!(table.mark(3), Marked::Absent);
        table.replace(3, Word::cached(Pfn(7), Heat::empty(), Mark::Classic));
        assert_eq!(table.mark(3), Marked::Done);
        assert_eq!(table.mark(3), Marked::Slow(Pfn(7)));
        table.update(3, |word| *word = word.with_heat(Heat::REFERENCED | Heat::ACTIVE));
        assert_eq!(table.mark(3), Marked::Done);
        table.update(3, |word| word.set_busy(true));
        assert_eq!(table.mark(3), Marked::Absent);
    }

    #[test]
    fn a_word_that_records_visits_does_so_at_each_access_rereads_included() {
        for access in [Table::mark, Table::reread] {
            let mut table = Table::new(64);
            let word = Word::cached(Pfn(7), Heat::WORKINGSET, Mark::Visited);
            table.replace(3, word);
            for _ in 0..2 {
                assert_eq!(access(&mut table, 3), Marked::Done);
                assert!(table.word(3) == word.with_heat(Heat::REFERENCED | Heat::WORKINGSET));
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
    fn an_access_sets_the_non_leaf_young_bit() {
        let mut table = Table::new(1024);
        table.replace(700, Word::mapping(Pfn(0), false));
        assert!(table.walk(512, 512).touch(188, true));
        assert_eq!(table.young, [false, true]);
        assert!(table.word(700).is_dirty());
        assert!(!table.walk(512, 512).touch(189, false), "nothing is mapped there");
    }
}
