//! A folio's record: what reclaim knows of the pages it moves as one unit. [reclaim 1.1]
//!
//! A folio is an order and a head frame. The record of the head is the folio's; those of its other frames are not used. So all of its pages have one
//! place on a list, one set of flags and use bits, and one count of references. One count has the entries that map any of them.
//!
//! There is one record of 32 bytes per frame. Records are allocated a section (128 MiB of frames) at a time, when frames up to there are used. So a
//! 1 TB machine costs what it uses. Once a block of the largest order is free again, its records may be given back (`largest.rs`). While a folio is in a page cache, the flags that a hit sees or sets are not here but in its index word (`table/word.rs`). A hit
//! then writes only the word that it has read. [`crate::memory::Memory::use_bits`] finds them wherever they are.
//!
//! A large folio has 2^order pages. It is aligned to its size in memory and in its file:
//!
//! ```text
//!  index    [ word ][ word ][ word ][ word ]    each: first frame, order. The first one also: use bits, what accesses note
//!  table    [ entry ][ entry ] ...              each: first frame, order, its own young and dirty bit
//!  frames   [ head ][ tail ][ tail ][ tail ]    the record of the first frame is the folio's
//!  lists    [ head ]                            one place, counted as 4 pages
//! ```
//!
//! - **Head.** A word names the first frame, so code that looks a page up holds the folio. The page's own
//!   frame is as far behind it as the page behind the folio's first one (`Word::frame`).
//! - **Hits.** The order in a word and its page lead to the folio's first word. Its use bits are the
//!   folio's. A single page has order 0 and is its own first page: its hits do what they did before.
//! - **Shared state.** Flags, references, and the number of mapping entries are in the record. DIRTY,
//!   BUSY and the mark of readahead are the same in all words of an index, because a hit tests them.
//! - **Counts.** Every gauge, tally and limit adds `Folio::pages`. Tags of dirty pages and the node counts
//!   of an index are by page, so a folio sets as many as it has pages.
//! - **Shadows.** Eviction leaves the same shadow in each slot. So a smaller folio replaces a part of it,
//!   and a larger one takes the last of several.
//! - **Splits** give parts their records and words from the folio's (`Memory::index_split`). Folios of
//!   anonymous memory use the same words of a page table, a huge page with one entry for all (`Word::HUGE`).
//! - **Swap.** A folio in the swap cache has as many slots in a row as it has pages. `slot` is the first.

use crate::memory::largest::LargestBlocks;
use crate::memory::list::Links;
use crate::memory::per_frame::PerFrame;
use crate::units::{LruType, MAX_BLOCK_ORDER, MemcgId, NodeId, Pfn, SwapId};
use bytemuck::Zeroable;

bitflags::bitflags! {
    /// State bits of a folio that a hit doesn't touch.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Zeroable)]
    pub struct FolioFlags: u16 {
        /// On an LRU list, or counted as unevictable. Isolation takes it; the isolating task owns the folio's place.
        const LRU = 1 << 0;
        /// Anonymous: `owner` is an address space, `index` a page of it. Otherwise a file and a page of it.
        const ANON = 1 << 1;
        /// Swap is its backing store (anonymous and tmpfs); without it, it counts as file memory.
        const SWAPBACKED = 1 << 2;
        /// Has a swap slot, and is found under it.
        const SWAPCACHE = 1 << 3;
        /// Differs from its backing store.
        const DIRTY = 1 << 4;
        /// A write of it is in flight.
        const WRITEBACK = 1 << 5;
        /// Reclaim needs it at the tail of its list when the write ends. Without a write in flight, of a page of a regular file: the mark of
        /// readahead (PG_readahead, the same bit), which its index word shows too.
        const RECLAIM = 1 << 6;
        /// Counted as unevictable instead of being on a list.
        const UNEVICTABLE = 1 << 7;
        /// The folio is in a locked mapping.
        const MLOCKED = 1 << 8;
        /// A read into it is in flight: it may not be used, mapped or reclaimed.
        const LOCKED = 1 << 9;
        /// In a page-cache index, which holds its use bits.
        const INDEXED = 1 << 10;
        /// In use by a busy buffer or a device that cannot release it: reclaim may scan but not take it.
        const PINNED = 1 << 11;
        /// The folio's group pays for it. A frame that is allocated and not charged yet belongs to the task that asked.
        const CHARGED = 1 << 12;
        /// The kernel's own: it belongs to no folio, and a machine can't see its contents.
        const KERNEL = 1 << 13;
        /// The folio has left fast memory, and no use has been seen since.
        const DEPARTED = 1 << 14;
    }
}

bitflags::bitflags! {
    /// The use of a folio: the bits that an access may change.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Zeroable)]
    pub struct UseBits: u8 {
        /// Accessed once through a file descriptor, or found with an accessed bit once.
        const REFERENCED = 1 << 0;
        /// Belongs to the active list (classic).
        const ACTIVE = 1 << 1;
        /// Was hot in this residency; goes into its shadow when it is evicted.
        const WORKINGSET = 1 << 2;
        /// Two bits that count further accesses through file descriptors (generations).
        const COUNTER = 3 << UseBits::COUNTER_SHIFT;
    }
}

impl UseBits {
    const COUNTER_SHIFT: u32 = 3;
    /// The largest count of the two-bit counter.
    pub const COUNTER_MAX: u8 = 3;

    /// Returns the value of the counter.
    pub const fn counter(self) -> u8 {
        (self.bits() >> UseBits::COUNTER_SHIFT) & UseBits::COUNTER_MAX
    }

    /// The same bits with another count.
    pub const fn with_counter(self, count: u8) -> UseBits {
        let others = self.bits() & !(UseBits::COUNTER_MAX << UseBits::COUNTER_SHIFT);
        UseBits::from_bits_truncate(others | count << UseBits::COUNTER_SHIFT)
    }
}

/// A folio's record; 32 bytes with its links. A record of zeroes is unused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Zeroable)]
pub struct Folio {
    /// File or address space, by [`FolioFlags::ANON`].
    pub owner: u32,
    /// Page of the file or of the address space.
    pub index: u32,
    /// Slot of the swap device `swap`, with [`FolioFlags::SWAPCACHE`].
    pub slot: u32,
    /// Changed by `transitions.rs` only.
    pub(super) flags: FolioFlags,
    /// The group that it is charged to.
    pub memcg: MemcgId,
    /// References beyond those of its owner: per-CPU batches, tasks in the middle of an access, pins.
    pub refs: u16,
    /// Page-table entries that map it, or pages of it. The one entry of a huge page counts as 512.
    pub mapped: u16,
    /// It has 2 to the power of this many pages.
    pub order: u8,
    /// The node that its frames are of.
    pub node: NodeId,
    /// The device of its slot, while it is in the swap cache.
    pub swap: SwapId,
    /// While it is not in a page-cache index.
    pub use_bits: UseBits,
}

impl Folio {
    /// A folio of which nothing is known but where it is and how large.
    pub fn new(node: NodeId, order: u8) -> Folio {
        Folio { node, order, ..Folio::default() }
    }

    /// All its flags.
    #[inline]
    pub fn flags(&self) -> FolioFlags {
        self.flags
    }

    /// Returns whether all these flags are set.
    #[inline]
    pub fn has(&self, flags: FolioFlags) -> bool {
        self.flags.contains(flags)
    }

    /// Returns how many pages it has.
    #[inline]
    pub fn pages(&self) -> u64 {
        1 << self.order
    }

    /// The pages of its file, or of its address space, that it holds.
    #[inline]
    pub fn file_pages(&self) -> std::ops::Range<u64> {
        let first = u64::from(self.index);
        first..first + self.pages()
    }

    /// Its slots, while it is in the swap cache.
    #[inline]
    pub fn slots(&self) -> std::ops::Range<u32> {
        self.slot..self.slot + (1 << self.order)
    }

    /// The page of its file that an entry maps at a page of an address space. Mappings are aligned like the largest folio, so the page's place within
    /// the folio is the same.
    #[inline]
    pub fn file_page_at(&self, page: u64) -> u64 {
        u64::from(self.index) + (page & (self.pages() - 1))
    }

    /// A large folio of anonymous memory.
    #[inline]
    pub fn is_large_anon(&self) -> bool {
        self.order > 0 && self.has(FolioFlags::ANON)
    }

    /// Returns whether it is an anonymous folio of which some pages are mapped and others are not.
    #[inline]
    pub fn is_partly_mapped(&self) -> bool {
        self.is_large_anon() && self.mapped > 0 && u64::from(self.mapped) < self.pages()
    }

    /// The pages of a large folio from page `at` on, as a folio of its own of this order.
    pub fn part(self, at: u32, order: u8) -> Folio {
        assert!(
            u64::from(at) + (1 << order) <= self.pages() && at.is_multiple_of(1 << order),
            "a part of order {order} from page {at} on of a folio of order {}",
            self.order
        );
        let slot = if self.has(FolioFlags::SWAPCACHE) { self.slot + at } else { self.slot };
        Folio { order, index: self.index + at, slot, ..self }
    }

    /// tmpfs counts as anonymous: it needs swap to leave memory.
    #[inline]
    pub fn lru_type(&self) -> LruType {
        if self.has(FolioFlags::SWAPBACKED) { LruType::Anon } else { LruType::File }
    }
}

/// Order of a huge page: as much as one leaf of a page table maps.
pub const HUGE_PAGE_ORDER: u8 = 9;
/// Pages of a huge page.
pub const HUGE_PAGE_PAGES: u64 = 1 << HUGE_PAGE_ORDER;

/// Stands in the place of a count of mappings where a free block begins: what is free is mapped nowhere.
const FREE_BLOCK: u16 = u16::MAX;

/// The records of all frames.
#[derive(Default)]
pub struct FolioTable {
    records: PerFrame<Folio>,
    /// The list links of each record, in a separate array. A walk of a list can't know the next folio before it has read the links of this one, and
    /// in their own array they stay in the cache. The rest of the records is read in parallel.
    links: PerFrame<(u32, u32)>,
    /// Free blocks of the largest order.
    pub largest: LargestBlocks,
}

impl FolioTable {
    /// Makes the frame's record exist.
    #[inline]
    pub fn populate(&mut self, pfn: Pfn) {
        self.records.populate(pfn);
        self.links.populate(pfn);
        self.largest.populate(pfn);
    }

    /// Makes room for the records of so many frames, which keep it.
    pub(super) fn reserve(&mut self, frames: usize) {
        self.records.reserve(frames);
        self.links.reserve(frames);
        self.largest.keep_records();
    }

    /// Gives back the memory of unused records. Owners of other arrays by frame give back theirs before that.
    pub fn give_back(&mut self) {
        self.records.give_back(&self.largest);
        self.links.give_back(&self.largest);
        self.largest.note_given_back();
    }

    /// Bytes of metadata, as far as frames are used.
    pub fn bytes(&self) -> usize {
        self.records.bytes() + self.links.bytes()
    }

    /// The frame's record, or an empty one where there is none yet.
    pub fn get(&self, pfn: Pfn) -> Folio {
        self.records.get(pfn)
    }

    /// Asks the processor for the frame's record, which is needed soon.
    #[inline(always)]
    pub fn prefetch(&self, pfn: Pfn) {
        self.records.prefetch(pfn);
    }

    /// Asks the processor for the frame's list links, which are needed soon.
    #[inline(always)]
    pub fn prefetch_links(&self, pfn: Pfn) {
        self.links.prefetch(pfn);
    }

    /// The order of the free block that begins with this frame; `None` where none does.
    #[inline]
    pub fn free_order(&self, pfn: Pfn) -> Option<u8> {
        let folio = self.records.get_ref(pfn)?;
        if folio.mapped == FREE_BLOCK {
            return Some(folio.order);
        }
        self.largest.is_free(pfn).then_some(MAX_BLOCK_ORDER)
    }

    /// Says that a free block begins with this frame.
    #[inline]
    pub fn set_free(&mut self, pfn: Pfn, order: u8) {
        debug_assert!(pfn.0.is_multiple_of(1 << order), "a free block of order {order} begins with {pfn:?}");
        debug_assert_eq!(self.free_order(pfn), None, "{pfn:?} becomes free while it is");
        if order == MAX_BLOCK_ORDER {
            return self.largest.set_free(pfn, true);
        }
        let folio = &mut self[pfn];
        debug_assert_eq!((folio.mapped, folio.refs), (0, 0), "{pfn:?} becomes free while somebody has it");
        (folio.mapped, folio.order) = (FREE_BLOCK, order);
    }

    /// Says that none does any more.
    #[inline]
    pub fn clear_free(&mut self, pfn: Pfn, order: u8) {
        debug_assert_eq!(
            self.free_order(pfn),
            Some(order),
            "{pfn:?} is taken as a free block of order {order}"
        );
        if order == MAX_BLOCK_ORDER {
            return self.largest.set_free(pfn, false);
        }
        self[pfn].mapped = 0;
    }
}

impl std::ops::Index<Pfn> for FolioTable {
    type Output = Folio;
    #[inline]
    fn index(&self, pfn: Pfn) -> &Folio {
        &self.records[pfn]
    }
}

impl std::ops::IndexMut<Pfn> for FolioTable {
    #[inline]
    fn index_mut(&mut self, pfn: Pfn) -> &mut Folio {
        &mut self.records[pfn]
    }
}

impl Links for FolioTable {
    #[inline]
    fn links(&self, item: u32) -> (u32, u32) {
        self.links[Pfn(item)]
    }

    #[inline]
    fn links_mut(&mut self, item: u32) -> &mut (u32, u32) {
        &mut self.links[Pfn(item)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{MAX_BLOCK_PAGES, SECTION_FRAMES};

    #[test]
    fn a_record_is_at_most_32_bytes() {
        let bytes = size_of::<Folio>() + size_of::<(u32, u32)>();
        assert!(bytes <= 32, "{bytes} bytes");
    }

    #[test]
    fn records_are_where_they_were_after_the_array_has_grown() {
        let mut table = FolioTable::default();
        for frame in [0, 700, 5 * SECTION_FRAMES, 200 * SECTION_FRAMES + 9, 201 * SECTION_FRAMES] {
            table.populate(Pfn(frame));
            table[Pfn(frame)].index = frame + 1;
            *table.links_mut(frame) = (frame, 7);
        }
        for frame in [0, 700, 5 * SECTION_FRAMES, 200 * SECTION_FRAMES + 9, 201 * SECTION_FRAMES] {
            assert_eq!((table[Pfn(frame)].index, table.links(frame)), (frame + 1, (frame, 7)));
        }
        assert_eq!(table[Pfn(100 * SECTION_FRAMES)], Folio::default());
        assert_eq!(Folio::zeroed(), Folio::default(), "what the array is made of");
    }

    /// A table of which blocks of the largest order have been used, the last ones by a page each, and so many of the first are free again.
    fn with_free(used: u32, free: u32) -> FolioTable {
        let mut table = FolioTable::default();
        for block in 0..used {
            let first = Pfn(block * MAX_BLOCK_PAGES);
            table.populate(first);
            table[first].index = block + 1;
            *table.links_mut(first.0) = (block, 7);
        }
        (0..free).for_each(|block| table.set_free(Pfn(block * MAX_BLOCK_PAGES), MAX_BLOCK_ORDER));
        table
    }

    fn give_back_if_worth(table: &mut FolioTable) {
        if table.largest.is_worth_giving_back() {
            table.give_back();
        }
    }

    #[test]
    fn records_of_free_blocks_are_given_back_and_all_others_stay() {
        let (used, free) = (1024, 300);
        let mut table = with_free(used, free);
        give_back_if_worth(&mut table);
        for block in 0..used {
            let first = Pfn(block * MAX_BLOCK_PAGES);
            let is_free = block < free;
            let kept = if is_free { (0, (0, 0)) } else { (block + 1, (block, 7)) };
            assert_eq!((table[first].index, table.links(first.0)), kept, "block {block}");
            assert_eq!(table.free_order(first), is_free.then_some(MAX_BLOCK_ORDER));
        }
    }

    #[test]
    fn records_stay_where_too_few_blocks_are_free_to_pay_for_moving_the_others() {
        for (used, free) in [(300, 127), (4096, 240)] {
            let mut table = with_free(used, free);
            give_back_if_worth(&mut table);
            assert_eq!(table[Pfn(0)].index, 1, "{free} of {used}");
        }
        // What was given back is nothing to gain; what is free since then is.
        let mut table = with_free(2000, 300);
        give_back_if_worth(&mut table);
        assert_eq!(table[Pfn(0)].index, 0);
        let set_free =
            |table: &mut FolioTable, block| table.set_free(Pfn(block * MAX_BLOCK_PAGES), MAX_BLOCK_ORDER);
        (300..400).for_each(|block| set_free(&mut table, block));
        give_back_if_worth(&mut table);
        assert_eq!(table[Pfn(399 * MAX_BLOCK_PAGES)].index, 400);
        (400..460).for_each(|block| set_free(&mut table, block));
        give_back_if_worth(&mut table);
        assert_eq!(table[Pfn(399 * MAX_BLOCK_PAGES)].index, 0);
    }

    #[test]
    fn records_are_allocated_up_to_the_end_of_the_section() {
        let mut table = FolioTable::default();
        table.populate(Pfn(SECTION_FRAMES + 7));
        assert_eq!(table.bytes(), 2 * 32 * SECTION_FRAMES as usize);
        table[Pfn(SECTION_FRAMES + 7)].order = 3;
        table.populate(Pfn(2 * SECTION_FRAMES - 1));
        assert_eq!(table.bytes(), 2 * 32 * SECTION_FRAMES as usize);
        assert_eq!(table[Pfn(SECTION_FRAMES + 7)].pages(), 8);
    }
}
