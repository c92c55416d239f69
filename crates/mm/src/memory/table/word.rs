//! The page word: 64 bits in which a page table or a page-cache index says that a page is resident, or holds its shadow or swap entry.
//! [reclaim 1.1, 3.1]
//!
//! ```text
//!   resident   63..32 frame    | 23 SEEN_YOUNG 22 IDLE | 21..18 order | 17 HUGE 16 PROT_NONE 15 UNUSED 14 READAHEAD 13 SETTLED 12 ZERO 11 BUSY 10..8 mark | 7..6 counter 5 WORKINGSET 4 ACTIVE 3 REFERENCED | DIRTY YOUNG PRESENT
//!   shadow     63..29 stamp    | 28..26 refs | 25..10 memcg | 9..4 node | 3 WORKINGSET | 1 | 0
//!   swapped    63..32 slot     | 21..18 order | 15..8 device | 1 | 0 | 0
//! ```
//! The words of a large folio all have its order and name its first frame, which is its folio. The page's own frame lies as far behind that as the
//! page behind the folio's first one. Pages of tmpfs that went to swap together keep the order in their words, until they come back.
//!
//! A folio is aligned to its size in its file or mapping as well as in memory, so a word and its page lead to the
//! folio's first word. In an index only that one has the use bits and what accesses note there. DIRTY, BUSY and READAHEAD are the same in all of them,
//! UNUSED is each page's own. In a page table each word is an entry with bits of its own. If one entry maps the whole folio (HUGE), the accessed bit is
//! the young bit above the words (`table.rs`).

use crate::memory::folio::{HUGE_PAGE_ORDER, UseBits};
use crate::units::{MemcgId, NodeId, Pfn, SwapId};
use pageout_rules::lru::References;

/// The table's state of one page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Word(pub(super) u64);

/// A word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The page was never there, or nothing is known of it.
    Empty,
    /// The page is in this frame.
    Present(Pfn),
    /// The page was evicted.
    Shadow(Shadow),
    /// The page is in this slot.
    Swap(SwapEntry),
}

/// The remains of an evicted page: the evicting group and the time, on the evictor's own clock of evictions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shadow {
    /// The group whose clock `stamp` uses: under the classic LRU the one whose limit caused the eviction, under MGLRU the page's own.
    pub memcg: MemcgId,
    /// The node that the page was on.
    pub node: NodeId,
    /// The page was hot in the residency that ended.
    pub workingset: bool,
    /// The number of accesses, as far as its policy counts: 0 to 4 through descriptors, or 0 to 7 in any way.
    pub refs: u8,
    /// The policy's eviction clock, modulo 2^[`Shadow::STAMP_BITS`].
    pub stamp: u64,
}

/// Location of a swapped page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapEntry {
    /// The device.
    pub swap: SwapId,
    /// The slot's number on it.
    pub slot: u32,
}

/// Request of a file access to the folio's LRU; kept in the word so that a hit needs no other data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Two-step use-once test: REFERENCED, then activation.
    Classic,
    /// The LRU is notified of each access except the one for which the page was brought in.
    EveryAccess,
    /// Each access sets REFERENCED but the one for which the page was brought in.
    Visited,
    /// Accesses are counted in the word, on one or the other ladder.
    Count(References),
}

impl Mark {
    /// Returns whether an access through a file descriptor counts that is the one for which the page was brought in, or that of the
    /// page read last.
    pub fn counts(self, is_first_use: bool, is_reread: bool) -> bool {
        match self {
            Mark::EveryAccess | Mark::Visited => !is_first_use,
            // The first use is the first of two steps, and the rest of one request does not count as a second one.
            Mark::Classic | Mark::Count(_) => !is_reread,
        }
    }

    /// Returns whether write(2) to a regular file is an access that counts. To Linux it is not: what is written is not wanted for that.
    /// [reclaim-6.12 5] The textbook's lists know no difference.
    pub fn counts_writes(self) -> bool {
        match self {
            Mark::EveryAccess | Mark::Visited => true,
            Mark::Classic | Mark::Count(_) => false,
        }
    }
}

impl Shadow {
    /// 35 bits of evictions: a clock that wraps after 128 TiB of pages, far beyond any distance that matters.
    pub const STAMP_BITS: u32 = 35;
    pub(super) const TAG: u64 = 1 << 1;

    /// The shadow as a word.
    pub fn pack(self) -> Word {
        debug_assert!(
            self.stamp >> Self::STAMP_BITS == 0,
            "a stamp of {} bits: {}",
            Self::STAMP_BITS,
            self.stamp
        );
        debug_assert!(self.refs < 8 && self.node.0 < 64, "more than a shadow has room for: {self:?}");
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
    pub fn distance(self, clock: u64) -> u64 {
        clock.wrapping_sub(self.stamp) & ((1 << Self::STAMP_BITS) - 1)
    }
}

impl Word {
    pub(super) const PRESENT: u64 = 1 << 0;
    pub(super) const YOUNG: u64 = 1 << 1;
    pub(super) const DIRTY: u64 = 1 << 2;
    pub(super) const USE_SHIFT: u32 = 3;
    pub(super) const USE: u64 = (UseBits::all().bits() as u64) << Word::USE_SHIFT;
    /// Three bits: none for [`Mark::Classic`], or one of those below; the middle one says that accesses are counted.
    pub(super) const MARK: u64 = 7 << 8;
    pub(super) const MARK_CLASSIC: u64 = 0;
    pub(super) const MARK_EVERY: u64 = 1 << 8;
    pub(super) const MARK_COUNT_6_12: u64 = 2 << 8;
    pub(super) const MARK_COUNT_6_16: u64 = 3 << 8;
    pub(super) const MARK_VISITED: u64 = 4 << 8;
    pub(super) const MARK_FREQUENCY: u64 = 6 << 8;
    /// A read into the frame is in flight.
    pub(super) const BUSY: u64 = 1 << 11;
    /// A further access through a file descriptor changes nothing. In a page-table entry: a further load changes nothing, because the accessed bit and the
    /// young bit above it are set.
    pub(super) const SETTLED: u64 = 1 << 13;
    /// The bits that an access sets in a page-table entry, in addition to the young bit above it.
    pub(super) const ACCESSED: u64 = Word::YOUNG | Word::SETTLED;
    /// Maps the shared page of zeroes, which a write must replace.
    pub(super) const ZERO: u64 = 1 << 12;
    /// The mark of readahead (PG_readahead): where a reader meets the page, the next pages are to be read.
    pub(super) const READAHEAD: u64 = 1 << 14;
    /// The page was read ahead, and is unused.
    pub(super) const UNUSED: u64 = 1 << 15;
    /// A page-table entry that any access faults on, so that the kernel learns of it. To the kernel the page is as present as before.
    pub(super) const PROT_NONE: u64 = 1 << 16;
    /// One of the 512 words that a huge page has in place of an entry.
    pub(super) const HUGE: u64 = 1 << 17;
    /// The folio has 2 to the power of this many pages.
    const ORDER_SHIFT: u32 = 18;
    pub(super) const ORDER: u64 = 0xf << Word::ORDER_SHIFT;
    /// A monitor has made the folio idle, and its use has not been seen since (PG_idle).
    pub(super) const IDLE: u64 = 1 << 22;
    /// A monitor has cleared an accessed bit of the folio, which reclaim counts as well (PG_young).
    pub(super) const SEEN_YOUNG: u64 = 1 << 23;
    pub(super) const PFN_SHIFT: u32 = 32;
    pub(super) const SWAP_TAG: u64 = 1 << 2;

    /// The word of a page of which nothing is known.
    pub const EMPTY: Word = Word(0);
    /// The entry that maps the shared page of zeroes.
    pub const ZERO_PAGE: Word = Word(Self::PRESENT | Self::ZERO | Self::YOUNG | Self::SETTLED);

    /// A page-table entry that was just made by an access.
    pub fn mapping(pfn: Pfn, dirty: bool) -> Word {
        let dirty = if dirty { Self::DIRTY } else { 0 };
        Word(u64::from(pfn.0) << Self::PFN_SHIFT | Self::PRESENT | Self::YOUNG | Self::SETTLED | dirty)
    }

    /// A page of the huge page whose folio is `head`.
    pub fn mapping_huge(head: Pfn, dirty: bool) -> Word {
        Word(Self::mapping(head, dirty).0 | Self::HUGE).with_order(HUGE_PAGE_ORDER)
    }

    /// The index word of a page in the page cache.
    pub fn cached(pfn: Pfn, use_bits: UseBits, mark: Mark) -> Word {
        Word(u64::from(pfn.0) << Self::PFN_SHIFT | Self::use_field(use_bits) | Self::PRESENT).with_mark(mark)
    }

    /// The index word of a further page of a large folio, whose first word has all that accesses note.
    pub fn cached_tail(head: Pfn, order: u8) -> Word {
        Word(u64::from(head.0) << Self::PFN_SHIFT | Self::PRESENT).with_order(order)
    }

    /// The same word, of a page of a folio of this order.
    #[inline]
    pub fn with_order(self, order: u8) -> Word {
        debug_assert!(order < 16, "a folio of order {order}");
        Word(self.0 & !Self::ORDER | u64::from(order) << Self::ORDER_SHIFT)
    }

    /// The order of the folio of a present page. A page of tmpfs in swap has that of the pages that may come back together.
    #[inline]
    pub fn order(self) -> u8 {
        ((self.0 & Self::ORDER) >> Self::ORDER_SHIFT) as u8
    }

    /// Returns whether the page is one of a large folio.
    #[inline]
    pub fn is_large(self) -> bool {
        self.is_present() && self.0 & Self::ORDER != 0
    }

    /// The first page of the folio that page `page` belongs to, or of the pages that are in swap together with it.
    #[inline]
    pub fn head(self, page: u64) -> u64 {
        page & !((1 << self.order()) - 1)
    }

    /// The same word, with what accesses are to note.
    pub fn with_mark(self, mark: Mark) -> Word {
        let bits = match mark {
            Mark::Classic => 0,
            Mark::EveryAccess => Self::MARK_EVERY,
            Mark::Visited => Self::MARK_VISITED,
            Mark::Count(References::Linux6_12) => Self::MARK_COUNT_6_12,
            Mark::Count(References::Linux6_16) => Self::MARK_COUNT_6_16,
            Mark::Count(References::Frequency) => Self::MARK_FREQUENCY,
        };
        Word(self.0 & !Self::MARK | bits).settled()
    }

    /// By mark: the bits that are set if a further access through a file descriptor changes nothing. No word has all of them if the LRU is notified
    /// of each access, or if the result depends on more than the word.
    const TOPS: [u64; 8] = {
        let counted = UseBits::REFERENCED.union(UseBits::WORKINGSET).union(UseBits::COUNTER);
        let mut tops = [u64::MAX; 8];
        tops[Self::mark_number(Self::MARK_CLASSIC)] =
            Self::use_field(UseBits::REFERENCED.union(UseBits::ACTIVE));
        tops[Self::mark_number(Self::MARK_VISITED)] = Self::use_field(UseBits::REFERENCED);
        tops[Self::mark_number(Self::MARK_COUNT_6_12)] = Self::use_field(counted);
        tops[Self::mark_number(Self::MARK_COUNT_6_16)] = Self::use_field(counted);
        tops
    };

    const fn mark_number(word: u64) -> usize {
        ((word & Self::MARK) >> Self::MARK.trailing_zeros()) as usize
    }

    const fn use_field(use_bits: UseBits) -> u64 {
        (use_bits.bits() as u64) << Self::USE_SHIFT
    }

    /// Notes whether a further access through a file descriptor would change anything, so that a hit has one thing to test.
    #[inline]
    pub(super) fn settled(self) -> Word {
        let top = Self::TOPS[Self::mark_number(self.0)];
        // An access to a page that was read ahead is its first, and one to an idle page is to be seen.
        let is_settled = self.0 & (top | Self::UNUSED | Self::IDLE) == top;
        Word(self.0 & !Self::SETTLED | if is_settled { Self::SETTLED } else { 0 })
    }

    /// The word of a page that is in a slot.
    pub fn swapped(entry: SwapEntry) -> Word {
        Word(Self::SWAP_TAG | u64::from(entry.swap.0) << 8 | u64::from(entry.slot) << Self::PFN_SHIFT)
    }

    /// Decodes the word.
    pub fn decode(self) -> Entry {
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

    /// Returns whether the page is in memory.
    #[inline]
    pub fn is_present(self) -> bool {
        self.0 & Self::PRESENT != 0
    }

    /// Returns whether it is the shadow of an evicted page.
    #[inline]
    pub fn is_shadow(self) -> bool {
        self.0 & (Self::PRESENT | Shadow::TAG) == Shadow::TAG
    }

    /// The shadow that it is, if it is one.
    pub fn shadow(self) -> Option<Shadow> {
        self.is_shadow().then(|| Shadow::unpack(self.0))
    }

    /// A page, in memory or in swap.
    #[inline]
    pub fn is_page(self) -> bool {
        self.is_present() || self.0 & (Shadow::TAG | Self::SWAP_TAG) == Self::SWAP_TAG
    }

    /// The frame of a present page; of a huge page its first.
    #[inline]
    pub fn pfn(self) -> Pfn {
        Pfn((self.0 >> Self::PFN_SHIFT) as u32)
    }

    /// Returns whether the page is part of a huge page.
    #[inline]
    pub fn is_huge(self) -> bool {
        self.0 & (Self::PRESENT | Self::HUGE) == Self::PRESENT | Self::HUGE
    }

    /// The frame of the page, which is page `page` of its table.
    #[inline]
    pub fn frame(self, page: u64) -> Pfn {
        Pfn(self.pfn().0 + (page & ((1 << self.order()) - 1)) as u32)
    }

    /// The entry of a page once its huge page has 512 entries instead of one: as young as all of it was, and dirty, as its entry was. The folio stays.
    pub fn of_split_entry(self, is_young: bool) -> Word {
        debug_assert!(self.is_huge(), "an entry of a page is made of an entry that maps no huge page");
        let mut entry = Word(self.0 & !(Self::HUGE | Self::YOUNG | Self::SETTLED) | Self::DIRTY);
        if is_young {
            entry.set_young();
        }
        entry
    }

    /// The entry of page `page` once its folio is single pages.
    pub fn of_split(self, page: u64) -> Word {
        debug_assert!(self.is_large() && !self.is_huge(), "page {page} becomes single and has no entry");
        self.with_pfn(self.frame(page)).with_order(0)
    }

    /// The index word of a page whose folio was split, in the part that begins with frame `pfn`. The first word of a part has the use bits of `head`,
    /// the former first word.
    pub fn of_part(self, pfn: Pfn, order: u8, head: Option<Word>) -> Word {
        const OF_FOLIO: u64 = Word::USE | Word::MARK;
        let noted = head.map_or(0, |head| head.0 & OF_FOLIO);
        Word(self.0 & !OF_FOLIO | noted).with_pfn(pfn).with_order(order).settled()
    }

    /// The word of a page that has moved to another frame.
    pub fn with_pfn(self, pfn: Pfn) -> Word {
        debug_assert!(self.is_present(), "only what is in memory has a frame");
        debug_assert!(!self.is_zero_page(), "the page of zeroes is nobody's to move");
        Word(self.0 & ((1 << Self::PFN_SHIFT) - 1) | u64::from(pfn.0) << Self::PFN_SHIFT)
    }

    /// Present, and can be used immediately.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 & (Self::PRESENT | Self::BUSY) == Self::PRESENT
    }

    /// Returns whether it maps the shared page of zeroes.
    #[inline]
    pub fn is_zero_page(self) -> bool {
        self.0 & (Self::PRESENT | Self::ZERO) == Self::PRESENT | Self::ZERO
    }

    /// Returns whether the accessed bit is set.
    #[inline]
    pub fn is_young(self) -> bool {
        self.0 & (Self::PRESENT | Self::YOUNG) == Self::PRESENT | Self::YOUNG
    }

    /// Returns whether the dirty bit is set.
    #[inline]
    pub fn is_dirty(self) -> bool {
        self.0 & (Self::PRESENT | Self::DIRTY) == Self::PRESENT | Self::DIRTY
    }

    /// An access faults although the page is present.
    #[inline]
    pub fn is_prot_none(self) -> bool {
        self.0 & (Self::PRESENT | Self::PROT_NONE) == Self::PRESENT | Self::PROT_NONE
    }

    /// Marks the entry for a hint fault.
    pub fn set_prot_none(&mut self) {
        debug_assert!(self.is_present(), "an entry that is not there is marked for a hint fault");
        self.0 |= Self::PROT_NONE;
    }

    /// Takes the mark for a hint fault away.
    pub fn clear_prot_none(&mut self) {
        self.0 &= !Self::PROT_NONE;
    }

    /// Sets the dirty bit.
    pub fn set_dirty(&mut self) {
        self.0 |= Self::DIRTY;
    }

    /// Clears the dirty bit.
    pub fn clear_dirty(&mut self) {
        self.0 &= !Self::DIRTY;
    }

    /// Sets the accessed bit.
    pub fn set_young(&mut self) {
        self.0 |= Self::YOUNG;
    }

    /// Clears the accessed bit, so the next access has to set it.
    pub fn clear_young(&mut self) {
        self.0 &= !(Self::YOUNG | Self::SETTLED);
    }

    /// Returns whether a monitor has made the folio idle, and no use was seen since.
    pub fn is_idle(self) -> bool {
        self.0 & (Self::PRESENT | Self::IDLE) == Self::PRESENT | Self::IDLE
    }

    /// Makes the folio idle.
    pub fn set_idle(&mut self) {
        self.0 |= Self::IDLE;
    }

    /// The folio was used.
    pub fn clear_idle(&mut self) {
        self.0 &= !Self::IDLE;
    }

    /// Notes that a monitor has cleared an accessed bit.
    pub fn set_seen_young(&mut self) {
        self.0 |= Self::SEEN_YOUNG;
    }

    /// Takes that note away, and returns whether there was one.
    pub fn take_seen_young(&mut self) -> bool {
        let was_young = self.0 & (Self::PRESENT | Self::SEEN_YOUNG) == Self::PRESENT | Self::SEEN_YOUNG;
        self.0 &= !Self::SEEN_YOUNG;
        was_young
    }

    /// Clears the mark that a further access changes nothing.
    pub(super) fn clear_settled(&mut self) {
        self.0 &= !Self::SETTLED;
    }

    /// Returns the use bits of the page.
    #[inline]
    pub fn use_bits(self) -> UseBits {
        UseBits::from_bits_truncate((self.0 >> Self::USE_SHIFT) as u8)
    }

    /// The same word with these use bits.
    #[inline]
    pub fn with_use_bits(self, use_bits: UseBits) -> Word {
        Word(self.0 & !Self::USE | Self::use_field(use_bits)).settled()
    }

    /// A read(2) of it needs only the word: the page is present, and no mark has to be handled.
    #[inline]
    pub fn is_hit(self) -> bool {
        self.0 & (Self::PRESENT | Self::BUSY | Self::READAHEAD) == Self::PRESENT
    }

    /// A write(2) of it changes nothing but the page: the page is present, and already dirty, and the LRU is not notified of writes.
    #[inline]
    pub fn is_overwritten_freely(self) -> bool {
        let is_told = match self.0 & Self::MARK {
            Self::MARK_EVERY => true,
            Self::MARK_VISITED => !self.use_bits().contains(UseBits::REFERENCED),
            _ => false,
        };
        self.is_plain() && self.is_dirty() && !is_told
    }

    /// Returns whether a page-table entry names the frame of its page and no access faults: a load needs only the word.
    #[inline]
    pub fn is_mapped_plainly(self) -> bool {
        self.0 & (Self::PRESENT | Self::ZERO | Self::PROT_NONE | Self::HUGE | Self::ORDER) == Self::PRESENT
    }

    /// Returns whether a further read(2) changes nothing of the word, or a further load nothing of the entry.
    #[inline]
    pub fn is_settled(self) -> bool {
        self.0 & Self::SETTLED != 0
    }

    /// Referenced and active, or used and counted to the top: what Linux's own lists can know of reads.
    #[inline]
    pub fn is_in_use(self) -> bool {
        match self.0 & Self::MARK {
            Self::MARK_VISITED | Self::MARK_EVERY => false,
            // From three accesses on such a page is active.
            Self::MARK_FREQUENCY => {
                let use_bits = self.use_bits();
                use_bits.contains(UseBits::REFERENCED | UseBits::WORKINGSET) || use_bits.counter() > 0
            }
            _ => self.0 & Self::SETTLED != 0,
        }
    }

    /// Returns whether the mark of readahead is on the page.
    #[inline]
    pub fn is_readahead(self) -> bool {
        self.0 & (Self::PRESENT | Self::READAHEAD) == Self::PRESENT | Self::READAHEAD
    }

    /// Returns whether the page was read ahead and is unused.
    #[inline]
    pub fn is_unused(self) -> bool {
        self.0 & (Self::PRESENT | Self::UNUSED) == Self::PRESENT | Self::UNUSED
    }

    /// Sets or clears the mark of readahead.
    pub fn set_readahead(&mut self, marked: bool) {
        debug_assert!(self.is_present(), "a page that is not there gets or loses the mark of readahead");
        if marked { self.0 |= Self::READAHEAD } else { self.0 &= !Self::READAHEAD }
    }

    /// Notes whether a read into the frame is in flight.
    pub fn set_busy(&mut self, busy: bool) {
        debug_assert!(self.is_present(), "a page that is not there is being read, or not any more");
        if busy { self.0 |= Self::BUSY } else { self.0 &= !Self::BUSY }
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
        let word =
            Word::cached(Pfn(u32::MAX - 1), UseBits::REFERENCED | UseBits::WORKINGSET, Mark::EveryAccess);
        assert_eq!(word.decode(), Entry::Present(Pfn(u32::MAX - 1)));
        assert_eq!(word.use_bits(), UseBits::REFERENCED | UseBits::WORKINGSET);
        assert_eq!(word.0 & Word::MARK, Word::MARK_EVERY);
        assert_eq!(Word::EMPTY.decode(), Entry::Empty);
    }

    #[test]
    fn a_distance_is_right_across_the_wrap_of_the_stamp() {
        let shadow =
            Shadow { memcg: MemcgId(1), node: NodeId(0), workingset: false, refs: 0, stamp: (1 << 35) - 2 };
        assert_eq!(shadow.distance(1 << 38 | 5), 7);
    }
}
