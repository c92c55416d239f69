//! The buddy allocator of a zone: free blocks of 2^order pages, by order and migrate type. [machine 2.8]
//!
//! ```text
//!   order 10 ─▶ block ─▶ block ─▶ (blocks never used so far: only their number is known)
//!   order  9 ─▶
//!     ...         a request takes the smallest block that will do; upper halves go back, each to its own list
//!   order  0 ─▶ page ─▶ page
//! ```
//! A free block's record says so in its first frame; those of the largest order have records of their own (`memory/largest.rs`). A freed block joins its buddy, whose number differs in one bit, as long as that is free
//! and as large. A block that may soon be joined by its neighbour goes to the tail, where it is taken last.
//!
//! Each pageblock (512 pages) belongs to a migrate type, and so do its free pages. If a type has none, `fallback.rs` takes another's.
//!
//! Memory starts as blocks of order 10. Those never touched have no records, as a machine may be larger than what runs on it. They
//! follow the others in their list. The rest at the end of a zone, smaller than such a block, is used last.

use crate::memory::folio::FolioTable;
use crate::memory::largest::LargestBlocks;
use crate::memory::list::List;
use crate::page_alloc::request::{MigrateType, Rights};
use crate::units::{MAX_BLOCK_ORDER, MAX_BLOCK_PAGES, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

/// Orders 0 to 10.
pub(super) const ORDERS: usize = MAX_BLOCK_ORDER as usize + 1;

/// Free memory of a zone, except the pages that CPUs hold.
pub(super) struct Buddy {
    start: u32,
    end: u32,
    /// First frame never used: from here on there is nothing but free blocks of the largest order, and a rest.
    fresh: u32,
    /// Free blocks, by order and migrate type.
    lists: [[List; MigrateType::COUNT]; ORDERS],
    /// For each type a bit an order that has a block.
    orders: [u16; MigrateType::COUNT],
    /// Types of pageblocks up to the last that has changed; all others are movable.
    pub(super) types: Vec<MigrateType>,
    pub(super) free_pages: u64,
    /// Free pages in pageblocks kept for requests that can't wait, and how many such pageblocks there are.
    pub(super) highatomic_free: u64,
    pub(super) highatomic_blocks: u64,
    /// A type has tried to claim less than a pageblock since this was last looked at.
    pub(super) is_mixing: bool,
}

impl Buddy {
    pub(super) fn new(start: u32, pages: u32) -> Buddy {
        assert!(start.is_multiple_of(MAX_BLOCK_PAGES), "zones begin at the largest blocks");
        Buddy {
            start,
            end: start + pages,
            fresh: start,
            lists: Default::default(),
            orders: [0; MigrateType::COUNT],
            types: Vec::new(),
            free_pages: pages.into(),
            highatomic_free: 0,
            highatomic_blocks: 0,
            is_mixing: false,
        }
    }

    /// The smallest sufficient block of a type, cut to size.
    #[inline]
    pub(super) fn take_smallest(
        &mut self,
        folios: &mut FolioTable,
        order: u8,
        kind: MigrateType,
    ) -> Option<u32> {
        let from = self.smallest(folios, order, kind)?;
        let pfn = self.pop(folios, from, kind)?;
        self.expand(folios, pfn, from, order, kind);
        Some(pfn)
    }

    /// Takes up to the requested number of blocks of one order and this type, each the smallest in its turn. They go to the tail of
    /// `into` in the order in which they are taken. Returns how many.
    pub(super) fn take_smallest_of(
        &mut self,
        folios: &mut FolioTable,
        order: u8,
        kind: MigrateType,
        wanted: u32,
        into: &mut List,
    ) -> u32 {
        let mut taken = 0;
        while taken < wanted {
            let Some(from) = self.smallest(folios, order, kind) else { break };
            let Some(pfn) = self.pop(folios, from, kind) else { break };
            // Halves of a block are smaller than anything else there is, so all of it goes before the next is begun.
            debug_assert!(from >= order, "a block of order {from} is cut to one of order {order}");
            let size = 1 << (from - order);
            let used = size.min(wanted - taken);
            for at in 0..used {
                into.push_tail(folios, pfn + (at << order));
            }
            let mut rest = used;
            self.assert_type(pfn, kind);
            while rest < size {
                let half = rest.trailing_zeros();
                self.push_head(folios, pfn + (rest << order), order + half as u8, kind);
                rest += 1 << half;
            }
            taken += used;
        }
        debug_assert!(taken <= wanted, "{taken} blocks are taken of {wanted} that were wanted");
        self.assert_taken(u64::from(taken) << order);
        self.free_pages -= u64::from(taken) << order;
        self.assert_free_are_listed();
        taken
    }

    /// Frees a block, and merges it with free neighbours.
    pub(super) fn free(&mut self, folios: &mut FolioTable, pfn: u32, order: u8) {
        debug_assert!(order <= MAX_BLOCK_ORDER, "a block of order {order} is freed");
        debug_assert!(
            pfn.is_multiple_of(1 << order),
            "a block of order {order} that is freed begins with frame {pfn}"
        );
        debug_assert!(
            pfn >= self.start && pfn + (1 << order) <= self.fresh,
            "frame {pfn} was never handed out as one of order {order}"
        );
        debug_assert_eq!(folios.free_order(Pfn(pfn)), None, "frame {pfn} is freed twice");
        self.free_pages += 1 << order;
        debug_assert!(
            self.free_pages <= u64::from(self.end - self.start),
            "{} pages are free in a zone of {}",
            self.free_pages,
            self.end - self.start
        );
        let kind = self.type_of(pfn);
        let (mut pfn, mut order) = (pfn, order);
        while order < MAX_BLOCK_ORDER {
            let buddy = pfn ^ (1 << order);
            if folios.free_order(Pfn(buddy)) != Some(order) {
                break;
            }
            let other = self.type_of(buddy);
            if other != kind {
                // Pageblocks of two ordinary types become one; what is kept apart stays apart.
                if kind == MigrateType::HighAtomic || other == MigrateType::HighAtomic {
                    break;
                }
                self.unlink(folios, buddy, order, other);
                self.set_type(buddy, kind);
            } else {
                self.unlink(folios, buddy, order, other);
            }
            pfn &= buddy;
            order += 1;
            debug_assert!(
                pfn.is_multiple_of(1 << order),
                "buddies make a block that begins with frame {pfn}"
            );
        }
        self.assert_type(pfn, kind);
        if order < PAGEBLOCK_ORDER {
            let joined = pfn & !(1 << order);
            let next = joined ^ (2 << order);
            if folios.free_order(Pfn(next)) == Some(order + 1) {
                self.push_tail(folios, pfn, order, kind);
                return self.assert_free_are_listed();
            }
        }
        self.push_head(folios, pfn, order, kind);
        self.assert_free_are_listed();
    }

    /// Takes the free block that begins with a frame out of the lists, wherever it is.
    pub(super) fn isolate(&mut self, folios: &mut FolioTable, pfn: Pfn) -> Option<u8> {
        let order = folios.free_order(pfn)?;
        self.unlink(folios, pfn.0, order, self.type_of(pfn.0));
        self.assert_taken(1 << order);
        self.free_pages -= 1 << order;
        self.assert_free_are_listed();
        Some(order)
    }

    /// The order of the smallest sufficient block of a type.
    #[inline]
    fn smallest(&mut self, folios: &mut FolioTable, order: u8, kind: MigrateType) -> Option<u8> {
        let orders = self.orders_of(kind) >> order;
        if orders != 0 {
            return Some(order + orders.trailing_zeros() as u8);
        }
        let has_more = kind == MigrateType::Movable && self.open_rest(folios);
        if has_more { self.smallest(folios, order, kind) } else { None }
    }

    pub(super) fn start(&self) -> u32 {
        self.start
    }

    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// Gives each pageblock its type, from the first on. Nothing may be free.
    pub(super) fn set_types(&mut self, types: &[MigrateType]) {
        assert_eq!(self.free_pages, 0, "pageblocks change their types under what is free");
        self.types = types.to_vec();
        self.highatomic_blocks = types.iter().filter(|&&kind| kind == MigrateType::HighAtomic).count() as u64;
    }

    /// Puts a block that is on no list at the end of one; an error where its pageblock is of another type.
    pub(super) fn put_last(
        &mut self,
        folios: &mut FolioTable,
        pfn: Pfn,
        order: u8,
        kind: MigrateType,
    ) -> Result<(), String> {
        let other = self.type_of(pfn.0);
        if other != kind {
            return Err(format!(
                "the block of order {order} that begins with frame {} is on a list of {kind:?}, in a pageblock of {other:?}",
                pfn.0
            ));
        }
        self.push_tail(folios, pfn.0, order, kind);
        self.free_pages += 1 << order;
        Ok(())
    }

    /// First frame of what is smaller than the largest block, at the end.
    fn rest(&self) -> u32 {
        self.end & !(MAX_BLOCK_PAGES - 1)
    }

    /// Puts the rest at the end of the zone into the lists; false where it was there before.
    #[inline]
    pub(super) fn open_rest(&mut self, folios: &mut FolioTable) -> bool {
        self.has_rest() && self.list_rest(folios)
    }

    /// Returns true if there is nothing never used but that rest.
    #[inline]
    pub(super) fn has_rest(&self) -> bool {
        self.fresh < self.end && self.fresh >= self.rest()
    }

    #[cold]
    fn list_rest(&mut self, folios: &mut FolioTable) -> bool {
        assert_eq!(self.fresh, self.rest(), "the end of a zone is used before what lies before it");
        folios.populate(Pfn(self.end - 1));
        while self.fresh < self.end {
            let order = (self.end - self.fresh).ilog2();
            assert!(
                (order as u8) < MAX_BLOCK_ORDER,
                "the end of a zone is as large as a block of the largest order"
            );
            self.push_tail(folios, self.fresh, order as u8, MigrateType::Movable);
            self.fresh += 1 << order;
        }
        assert_eq!(self.fresh, self.end, "the end of a zone is cut into blocks that go beyond it");
        true
    }

    /// Puts all blocks that were never used into the lists, behind the others.
    pub(super) fn list_fresh(&mut self, folios: &mut FolioTable) {
        while self.fresh < self.rest() {
            let pfn = self.fresh;
            self.fresh += MAX_BLOCK_PAGES;
            folios.populate(Pfn(self.fresh - 1));
            self.push_tail(folios, pfn, MAX_BLOCK_ORDER, MigrateType::Movable);
        }
        self.open_rest(folios);
        self.assert_free_are_listed();
    }

    /// The orders of which a type has blocks, a bit each.
    #[inline]
    pub(super) fn orders_of(&self, kind: MigrateType) -> u16 {
        let has_fresh = kind == MigrateType::Movable && self.fresh < self.rest();
        self.orders[kind as usize] | u16::from(has_fresh) << MAX_BLOCK_ORDER
    }

    /// Returns true if a type has a block of exactly this order.
    #[inline]
    pub(super) fn has(&self, order: u8, kind: MigrateType) -> bool {
        self.orders_of(kind) & 1 << order != 0
    }

    /// The first block of a list.
    pub(super) fn first(&self, order: u8, kind: MigrateType) -> Option<u32> {
        let first = self.lists[order as usize][kind as usize].head()?;
        Some(if order == MAX_BLOCK_ORDER { LargestBlocks::first(first) } else { first })
    }

    /// Returns true if any block is of at least this order, of those that these rights lead to.
    #[inline]
    pub(super) fn has_block(&self, order: u8, rights: Rights) -> bool {
        let [unmovable, movable, reclaimable, _] = self.orders;
        let mut orders = unmovable | movable | reclaimable;
        if rights.intersects(Rights::HIGHATOMIC | Rights::OOM) {
            orders |= self.orders[MigrateType::HighAtomic as usize];
        }
        orders >> order != 0
            || self.fresh < self.rest()
            || self.fresh < self.end && (self.end - self.fresh) >> order != 0
    }

    /// Free blocks of each order.
    pub(super) fn free_blocks(&self) -> [u64; ORDERS] {
        let mut blocks = self.lists.map(|of_order| of_order.iter().map(List::len).sum());
        let unused = self.end - self.fresh;
        blocks[MAX_BLOCK_ORDER as usize] += u64::from(unused / MAX_BLOCK_PAGES);
        for (order, blocks) in blocks.iter_mut().enumerate().take(MAX_BLOCK_ORDER as usize) {
            *blocks += u64::from(unused >> order & 1);
        }
        blocks
    }

    /// The first block of a list, out of it.
    #[inline]
    pub(super) fn pop(&mut self, folios: &mut FolioTable, order: u8, kind: MigrateType) -> Option<u32> {
        if let Some(pfn) = self.first(order, kind) {
            self.unlink(folios, pfn, order, kind);
            return Some(pfn);
        }
        let is_fresh = order == MAX_BLOCK_ORDER && kind == MigrateType::Movable && self.fresh < self.rest();
        is_fresh.then(|| {
            let pfn = self.fresh;
            self.fresh += MAX_BLOCK_PAGES;
            assert!(self.fresh <= self.end, "a block is taken from beyond the end of its zone");
            folios.populate(Pfn(self.fresh - 1));
            pfn
        })
    }

    /// Gives back what a block has beyond the order wanted: its upper half, the upper half of the lower, and so on.
    #[inline]
    pub(super) fn expand(
        &mut self,
        folios: &mut FolioTable,
        pfn: u32,
        from: u8,
        order: u8,
        kind: MigrateType,
    ) {
        debug_assert!(from >= order, "a block of order {from} is cut to one of order {order}");
        debug_assert!(pfn.is_multiple_of(1 << from), "a block of order {from} begins with frame {pfn}");
        for half in (order..from).rev() {
            self.assert_type(pfn + (1 << half), kind);
            self.push_head(folios, pfn + (1 << half), half, kind);
        }
        self.assert_taken(1 << order);
        self.free_pages -= 1 << order;
        self.assert_free_are_listed();
    }

    /// Blocks have come or gone: free pages are those in the lists, and those never used.
    #[inline(always)]
    fn assert_free_are_listed(&self) {
        if cfg!(debug_assertions) {
            let listed: u64 = (0..).zip(self.free_blocks()).map(|(order, blocks)| blocks << order).sum();
            assert_eq!(self.free_pages, listed, "pages that are free, and those in lists and never used");
        }
    }

    /// What is kept for those who cannot wait has come or gone: it is counted as it is listed.
    fn assert_kept_are_listed(&self) {
        let of_order = |lists: &[List; MigrateType::COUNT]| lists[MigrateType::HighAtomic as usize].len();
        let listed: u64 = (0..).zip(&self.lists).map(|(order, lists)| of_order(lists) << order).sum();
        assert_eq!(self.highatomic_free, listed, "pages that are kept free, and those in their lists");
    }

    /// Pages that are about to leave.
    #[inline(always)]
    fn assert_taken(&self, pages: u64) {
        debug_assert!(
            self.free_pages >= pages,
            "{pages} pages are taken of {} that are free",
            self.free_pages
        );
    }

    /// A block of this type is about to be linked or unlinked: it is the one that its pageblock names.
    #[inline(always)]
    fn assert_type(&self, pfn: u32, kind: MigrateType) {
        debug_assert_eq!(self.type_of(pfn), kind, "the type of frame {pfn}, and of the list that it is on");
    }

    /// A block is about to be linked or unlinked: it is one of the zone's.
    #[inline(always)]
    fn assert_placed(&self, pfn: u32, order: u8) {
        debug_assert!(
            pfn >= self.start && pfn + (1 << order) <= self.end,
            "a block of order {order} that begins with frame {pfn} is not of its zone"
        );
    }

    #[inline]
    fn push_head(&mut self, folios: &mut FolioTable, pfn: u32, order: u8, kind: MigrateType) {
        self.assert_placed(pfn, order);
        folios.set_free(Pfn(pfn), order);
        let list = &mut self.lists[order as usize][kind as usize];
        match order {
            MAX_BLOCK_ORDER => list.push_head(&mut folios.largest, LargestBlocks::number(pfn)),
            _ => list.push_head(folios, pfn),
        }
        self.linked(order, kind);
    }

    fn push_tail(&mut self, folios: &mut FolioTable, pfn: u32, order: u8, kind: MigrateType) {
        self.assert_placed(pfn, order);
        folios.set_free(Pfn(pfn), order);
        let list = &mut self.lists[order as usize][kind as usize];
        match order {
            MAX_BLOCK_ORDER => list.push_tail(&mut folios.largest, LargestBlocks::number(pfn)),
            _ => list.push_tail(folios, pfn),
        }
        self.linked(order, kind);
    }

    #[inline]
    fn linked(&mut self, order: u8, kind: MigrateType) {
        self.orders[kind as usize] |= 1 << order;
        if kind == MigrateType::HighAtomic {
            self.highatomic_free += 1 << order;
            self.assert_kept_are_listed();
        }
    }

    #[inline]
    fn unlink(&mut self, folios: &mut FolioTable, pfn: u32, order: u8, kind: MigrateType) {
        self.assert_placed(pfn, order);
        self.assert_type(pfn, kind);
        debug_assert!(
            self.orders[kind as usize] & 1 << order != 0,
            "a block of order {order} is taken off an empty list of {kind:?}"
        );
        let list = &mut self.lists[order as usize][kind as usize];
        match order {
            MAX_BLOCK_ORDER => list.remove(&mut folios.largest, LargestBlocks::number(pfn)),
            _ => list.remove(folios, pfn),
        }
        if list.is_empty() {
            self.orders[kind as usize] &= !(1 << order);
        }
        folios.clear_free(Pfn(pfn), order);
        if kind == MigrateType::HighAtomic {
            self.highatomic_free -= 1 << order;
            self.assert_kept_are_listed();
        }
    }

    /// The type of the pageblock that a frame is in.
    #[inline]
    pub(super) fn type_of(&self, pfn: u32) -> MigrateType {
        let block = (pfn - self.start) >> PAGEBLOCK_ORDER;
        self.types.get(block as usize).copied().unwrap_or(MigrateType::Movable)
    }

    pub(super) fn set_type(&mut self, pfn: u32, kind: MigrateType) {
        debug_assert!(pfn >= self.start && pfn < self.end, "frame {pfn} gets a type, and is of another zone");
        let block = ((pfn - self.start) >> PAGEBLOCK_ORDER) as usize;
        if block >= self.types.len() {
            self.types.resize(block + 1, MigrateType::Movable);
        }
        self.types[block] = kind;
    }

    /// First frame of a pageblock; `None` where the zone does not have all of it, so that it changes its type never.
    pub(super) fn whole_pageblock(&self, pfn: u32) -> Option<u32> {
        let first = pfn & !(PAGEBLOCK_PAGES as u32 - 1);
        (first + PAGEBLOCK_PAGES as u32 <= self.end).then_some(first)
    }

    /// Gives a pageblock, and all of its free pages, to another type.
    pub(super) fn convert(&mut self, folios: &mut FolioTable, first: u32, kind: MigrateType) {
        assert_eq!(self.whole_pageblock(first), Some(first), "part of a pageblock changes its type");
        let old = self.type_of(first);
        assert_ne!(old, kind, "a pageblock changes to the type that it has");
        let (mut pfn, mut moved) = (first, 0);
        let listed = [old, kind].map(|kind| self.listed(kind));
        while pfn < first + PAGEBLOCK_PAGES as u32 {
            match folios.free_order(Pfn(pfn)) {
                Some(MAX_BLOCK_ORDER) => {
                    self.unlink(folios, pfn, MAX_BLOCK_ORDER, old);
                    self.push_head(folios, pfn + (1 << PAGEBLOCK_ORDER), PAGEBLOCK_ORDER, old);
                    self.push_tail(folios, pfn, PAGEBLOCK_ORDER, kind);
                    pfn += 1 << PAGEBLOCK_ORDER;
                    moved += PAGEBLOCK_PAGES;
                }
                Some(order) => {
                    assert!(
                        order <= PAGEBLOCK_ORDER,
                        "a free block reaches beyond the pageblock that changes its type"
                    );
                    self.unlink(folios, pfn, order, old);
                    self.push_tail(folios, pfn, order, kind);
                    pfn += 1 << order;
                    moved += 1 << order;
                }
                None => pfn += 1,
            }
        }
        self.set_type(first, kind);
        assert_eq!(
            [old, kind].map(|kind| self.listed(kind)),
            [listed[0] - moved, listed[1] + moved],
            "free pages of {old:?} and {kind:?} after a pageblock has changed its type"
        );
        self.assert_free_are_listed();
    }

    /// Free pages in the lists of a type.
    fn listed(&self, kind: MigrateType) -> u64 {
        (0..).zip(&self.lists).map(|(order, lists)| lists[kind as usize].len() << order).sum()
    }

    /// Frames that have been used since the start, whatever they are now.
    pub(super) fn used_so_far(&self) -> std::ops::Range<u32> {
        self.start..self.fresh
    }

    /// All blocks in the lists with their orders and the type of their list.
    pub(super) fn iter<'a>(
        &'a self,
        folios: &'a FolioTable,
    ) -> impl Iterator<Item = (u32, u8, MigrateType)> + 'a {
        (0..ORDERS as u8).flat_map(move |order| {
            MigrateType::ALL.into_iter().flat_map(move |kind| {
                let list = &self.lists[order as usize][kind as usize];
                let (largest, smaller) = match order {
                    MAX_BLOCK_ORDER => (Some(list.iter_from_tail(&folios.largest)), None),
                    _ => (None, Some(list.iter_from_tail(folios))),
                };
                let largest = largest.into_iter().flatten().map(LargestBlocks::first);
                largest.chain(smaller.into_iter().flatten()).map(move |pfn| (pfn, order, kind))
            })
        })
    }

    /// Panics with what is wrong unless lists, records and counts agree.
    pub(super) fn check_invariants(&self, folios: &FolioTable) {
        let (mut free, mut highatomic) = (u64::from(self.end - self.fresh), 0);
        for (pfn, order, kind) in self.iter(folios) {
            assert_eq!(folios.free_order(Pfn(pfn)), Some(order), "block {pfn} is on a list of order {order}");
            assert!(pfn.is_multiple_of(1 << order), "block {pfn} of order {order} is not aligned");
            assert!(pfn >= self.start && pfn + (1 << order) <= self.fresh, "block {pfn} is not of its zone");
            for at in (0..1 << order).step_by(PAGEBLOCK_PAGES as usize) {
                assert_eq!(self.type_of(pfn + at), kind, "block {pfn} is on a stranger's list");
            }
            let buddy = pfn ^ (1 << order);
            // A free pageblock that changes its type joins its neighbour only when either is freed the next time.
            let is_apart = order >= PAGEBLOCK_ORDER
                || buddy >= self.end
                || folios.free_order(Pfn(buddy)) != Some(order)
                || self.type_of(buddy) != kind;
            assert!(is_apart, "blocks {pfn} and {buddy} of order {order} are free and not one");
            free += 1 << order;
            highatomic += if kind == MigrateType::HighAtomic { 1 << order } else { 0 };
        }
        assert_eq!(
            (free, highatomic),
            (self.free_pages, self.highatomic_free),
            "free pages and those in lists"
        );
        for (order, lists) in self.lists.iter().enumerate() {
            for (list, orders) in lists.iter().zip(self.orders) {
                match order as u8 {
                    MAX_BLOCK_ORDER => list.check_invariants(&folios.largest),
                    _ => list.check_invariants(folios),
                }
                assert_eq!(list.is_empty(), orders & 1 << order == 0, "the bit of order {order}");
            }
        }
    }
}
