//! Tables of page words: page tables and page-cache indexes are the same structure.
//!
//! ```text
//!   upper:  [ leaf? young ][ leaf? young ] ...      one entry for 512 pages, with the non-leaf young bit
//!              │
//!   leaf:   [ word; 512 ]                           one 64-bit word a page
//!
//!   word of a resident page      frame number | mark, counter, WORKINGSET ACTIVE REFERENCED | DIRTY YOUNG PRESENT
//!   word of an absent page       0 empty  |  shadow of the evicted page  |  swap entry
//! ```
//! A hit reads one word and writes the same word, which is why everything that a hit may set lives in it: a page table
//! uses YOUNG and DIRTY as hardware would set them, a page-cache index uses the heat bits (`folio.rs`).
//! An index also counts present pages and shadows by node of 64 slots, because the kernel frees shadow-only nodes of that
//! size (`workingset`).

use crate::folio::Heat;
use crate::units::{MemcgId, NodeId, Pfn, SwapId};

/// Pages under one upper entry: what a page-table page maps.
pub(crate) const LEAF_PAGES: u64 = 512;
/// Slots of a kernel index node; shadow-only nodes are counted and freed in this unit.
pub(crate) const NODE_SLOTS: u64 = 64;
const LEAF_NODES: usize = (LEAF_PAGES / NODE_SLOTS) as usize;

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
}

impl Shadow {
    /// 38 bits of evictions: a clock that wraps after a petabyte of pages, far beyond any distance that matters.
    pub(crate) const STAMP_BITS: u32 = 38;
    const TAG: u64 = 1 << 1;

    pub(crate) fn pack(self) -> Word {
        Word(
            Self::TAG
                | u64::from(self.workingset) << 3
                | u64::from(self.node.0) << 4
                | u64::from(self.memcg.0) << 10
                | self.stamp << (64 - Self::STAMP_BITS),
        )
    }

    fn unpack(word: u64) -> Shadow {
        Shadow {
            workingset: word >> 3 & 1 != 0,
            node: NodeId((word >> 4 & 0x3f) as u8),
            memcg: MemcgId((word >> 10) as u16),
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
    const MARK_EVERY: u64 = 1 << 8;
    /// A read into the frame is in flight.
    const BUSY: u64 = 1 << 10;
    /// Maps the shared page of zeroes, which a write must replace.
    const ZERO: u64 = 1 << 12;
    const PFN_SHIFT: u32 = 32;
    const SWAP_TAG: u64 = 1 << 2;

    pub(crate) const EMPTY: Word = Word(0);
    pub(crate) const ZERO_PAGE: Word = Word(Self::PRESENT | Self::ZERO | Self::YOUNG);

    pub(crate) fn mapping(pfn: Pfn, dirty: bool) -> Word {
        let dirty = if dirty { Self::DIRTY } else { 0 };
        Word(u64::from(pfn.0) << Self::PFN_SHIFT | Self::PRESENT | Self::YOUNG | dirty)
    }

    pub(crate) fn cached(pfn: Pfn, heat: Heat, mark: Mark) -> Word {
        let mark = if mark == Mark::EveryAccess { Self::MARK_EVERY } else { 0 };
        Word(u64::from(pfn.0) << Self::PFN_SHIFT | Self::PRESENT | mark).with_heat(heat)
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
            Entry::Swap(SwapEntry { swap: SwapId((self.0 >> 8) as u8), slot: (self.0 >> Self::PFN_SHIFT) as u32 })
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

    #[inline]
    pub(crate) fn touch(&mut self, write: bool) {
        self.0 |= if write { Self::YOUNG | Self::DIRTY } else { Self::YOUNG };
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
        let mask = u64::from(Heat::all().bits()) << Self::HEAT_SHIFT;
        Word(self.0 & !mask | u64::from(heat.bits()) << Self::HEAT_SHIFT)
    }

    #[inline]
    pub(crate) fn mark(self) -> Mark {
        if self.0 & Self::MARK_EVERY != 0 { Mark::EveryAccess } else { Mark::Classic }
    }

    pub(crate) fn set_busy(&mut self, busy: bool) {
        if busy { self.0 |= Self::BUSY } else { self.0 &= !Self::BUSY }
    }
}

/// 512 words and what is known of them together.
struct Leaf {
    words: [Word; LEAF_PAGES as usize],
    /// By index node: pages present, shadows.
    nodes: [NodeCount; LEAF_NODES],
}

/// Population of an index node of 64 slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct NodeCount {
    present: u8,
    shadows: u8,
}

impl NodeCount {
    /// Holds nothing but shadows, so that it may be freed without losing a page.
    fn is_shadow_only(self) -> bool {
        self.present == 0 && self.shadows > 0
    }
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

#[derive(Default)]
struct Upper {
    leaf: Option<Box<Leaf>>,
    /// Some page below has been accessed through this table since it was last cleared.
    young: bool,
}

/// A two-level table of page words.
pub(crate) struct Table {
    upper: Vec<Upper>,
    pages: u64,
}

impl Table {
    pub(crate) fn new(pages: u64) -> Table {
        let mut table = Table { upper: Vec::new(), pages: 0 };
        table.grow(pages);
        table
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Adds so many pages at the end.
    pub(crate) fn grow(&mut self, pages: u64) {
        self.pages += pages;
        self.upper.resize_with(self.pages.div_ceil(LEAF_PAGES) as usize, Upper::default);
    }

    #[inline]
    pub(crate) fn word(&self, page: u64) -> Word {
        match &self.upper[(page / LEAF_PAGES) as usize].leaf {
            Some(leaf) => leaf.words[(page % LEAF_PAGES) as usize],
            None => Word::EMPTY,
        }
    }

    /// The word, to change bits in; must not change what kind of entry it is. `None` where no leaf was ever needed.
    #[inline]
    pub(crate) fn word_mut(&mut self, page: u64) -> Option<&mut Word> {
        let leaf = self.upper[(page / LEAF_PAGES) as usize].leaf.as_mut()?;
        Some(&mut leaf.words[(page % LEAF_PAGES) as usize])
    }

    /// As [`Self::word_mut`], setting the non-leaf young bit as hardware does on its way down.
    #[inline]
    pub(crate) fn walk_mut(&mut self, page: u64) -> Option<&mut Word> {
        let upper = &mut self.upper[(page / LEAF_PAGES) as usize];
        if !upper.young {
            upper.young = true;
        }
        Some(&mut upper.leaf.as_mut()?.words[(page % LEAF_PAGES) as usize])
    }

    /// Replaces a word; returns the old one and what this means for its index node.
    pub(crate) fn replace(&mut self, page: u64, new: Word) -> (Word, NodeChange) {
        let upper = &mut self.upper[(page / LEAF_PAGES) as usize];
        let leaf = upper.leaf.get_or_insert_with(|| {
            Box::new(Leaf { words: [Word::EMPTY; LEAF_PAGES as usize], nodes: Default::default() })
        });
        let slot = (page % LEAF_PAGES) as usize;
        let old = std::mem::replace(&mut leaf.words[slot], new);
        let node = &mut leaf.nodes[slot / NODE_SLOTS as usize];
        let before = *node;
        node.present += u8::from(new.is_present());
        node.present -= u8::from(old.is_present());
        node.shadows += u8::from(new.is_shadow());
        node.shadows -= u8::from(old.is_shadow());
        let change = match (before.is_shadow_only(), node.is_shadow_only()) {
            (false, true) => NodeChange::ShadowOnly,
            (true, false) => NodeChange::Mixed,
            _ => NodeChange::None,
        };
        (old, change)
    }

    /// All words that are not empty, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Word)> {
        self.upper.iter().enumerate().flat_map(|(upper, entry)| {
            let first = upper as u64 * LEAF_PAGES;
            let words = entry.leaf.as_ref().map(|leaf| leaf.words.iter().enumerate());
            words.into_iter().flatten().map(move |(slot, &word)| (first + slot as u64, word))
        })
        .filter(|(_, word)| *word != Word::EMPTY)
    }

    /// Index nodes that hold nothing but shadows.
    pub(crate) fn shadow_only_nodes(&self) -> usize {
        let leaves = self.upper.iter().filter_map(|upper| upper.leaf.as_ref());
        leaves.flat_map(|leaf| leaf.nodes).filter(|node| node.is_shadow_only()).count()
    }

    /// Panics unless the nodes' counts agree with the words.
    pub(crate) fn check_invariants(&self) {
        for (upper, leaf) in self.upper.iter().enumerate().filter_map(|(i, upper)| Some((i, upper.leaf.as_ref()?))) {
            for (node, words) in leaf.words.chunks(NODE_SLOTS as usize).enumerate() {
                let present = words.iter().filter(|word| word.is_present()).count() as u8;
                let shadows = words.iter().filter(|word| word.is_shadow()).count() as u8;
                assert_eq!(leaf.nodes[node], NodeCount { present, shadows }, "index node {node} of leaf {upper}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_packing() {
        let shadow = Shadow { memcg: MemcgId(65_535), node: NodeId(63), workingset: true, stamp: (1 << 38) - 1 };
        assert_eq!(shadow.pack().decode(), Entry::Shadow(shadow));
        let entry = SwapEntry { swap: SwapId(255), slot: u32::MAX };
        assert_eq!(Word::swapped(entry).decode(), Entry::Swap(entry));
        let word = Word::cached(Pfn(u32::MAX - 1), Heat::REFERENCED | Heat::WORKINGSET, Mark::EveryAccess);
        assert_eq!(word.decode(), Entry::Present(Pfn(u32::MAX - 1)));
        assert_eq!(word.heat(), Heat::REFERENCED | Heat::WORKINGSET);
        assert_eq!(word.mark(), Mark::EveryAccess);
        assert_eq!(Word::EMPTY.decode(), Entry::Empty);
    }

    #[test]
    fn a_distance_is_right_across_the_wrap_of_the_stamp() {
        let shadow = Shadow { memcg: MemcgId(1), node: NodeId(0), workingset: false, stamp: (1 << 38) - 2 };
        assert_eq!(shadow.distance(1 << 38 | 5), 7);
    }

    #[test]
    fn a_node_is_shadow_only_when_its_last_page_has_left_a_shadow() {
        let mut table = Table::new(1000);
        let shadow = Shadow { memcg: MemcgId(1), node: NodeId(0), workingset: false, stamp: 3 }.pack();
        let page = Word::cached(Pfn(1), Heat::empty(), Mark::Classic);
        table.replace(600, page);
        table.replace(601, shadow);
        assert_eq!(table.replace(600, shadow).1, NodeChange::ShadowOnly);
        assert_eq!(table.replace(601, page).1, NodeChange::Mixed);
        table.check_invariants();
    }

    #[test]
    fn an_access_sets_the_non_leaf_young_bit() {
        let mut table = Table::new(1024);
        table.replace(700, Word::mapping(Pfn(0), false));
        table.walk_mut(700).unwrap().touch(true);
        assert!(table.upper[1].young && !table.upper[0].young);
        assert!(table.word(700).is_dirty());
    }
}
