//! Per-CPU page lists: pages that a CPU keeps so that it need not ask the zone for each. [machine 2.7]
//!
//! ```text
//!   allocate ◀── head ┌───────────────┐ tail ──▶ drain: what was freed longest ago
//!   free     ──▶      │ count         │ ◀────── refill: batch << alloc_factor pages
//!                     └───────────────┘
//!   0 ───── high_min ──── high ──── high_max      how many it may hold: more while the CPU allocates or frees in bursts,
//!                                                 less while memory is short
//! ```
//! There is a list for each small order and type, and for huge pages, but one count and one limit. Pages on these lists are not free by any
//! watermark test. So free memory falls in steps of a refill, and what a reclaimer frees may be out of sight of everyone else.

use crate::memory::folio::FolioTable;
use crate::memory::list::List;
use crate::page_alloc::buddy::Buddy;
use crate::page_alloc::fallback::Want;
use crate::page_alloc::request::MigrateType;
use crate::units::{PAGEBLOCK_ORDER, Pfn};

/// Types that have lists; pages of others are as good as movable ones.
const TYPES: usize = 3;
/// Largest order with its own lists, except huge pages.
const ORDER_MAX: u8 = 3;
const LISTS: usize = TYPES * (ORDER_MAX as usize + 1) + 2;

/// How far a refill may grow beyond a batch, and how much a burst of frees counts: 2^5 batches.
const SCALE_MAX: u32 = 5;

/// Parameters that are equal for all CPUs of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PcpSizes {
    pub(super) batch: u32,
    pub(super) high_min: u32,
    pub(super) high_max: u32,
}

impl PcpSizes {
    /// By the zone's size and its low watermark. `high_fraction`: the administrator's share for all CPUs, or 0.
    pub(super) fn of_zone(managed: u64, low: u64, cpus: u64, high_fraction: u64) -> PcpSizes {
        let quarter = ((managed >> 10).min(256) / 4).max(1);
        // A power of two less one, so that refills do not all meet the same cache lines.
        let batch = ((1 << (quarter + quarter / 2).ilog2()) - 1).max(1);
        let at_least = |high: u64| high.max(4 * batch).min(u64::from(u32::MAX >> 1)) as u32;
        let (high_min, high_max) = match high_fraction {
            0 => (low / cpus, managed / 8 / cpus),
            fraction => (managed / fraction / cpus, managed / fraction / cpus),
        };
        let high_min = at_least(high_min);
        PcpSizes { batch: batch as u32, high_min, high_max: at_least(high_max).max(high_min) }
    }

    fn is_fixed(&self) -> bool {
        self.high_min == self.high_max
    }
}

/// The states of a zone that lower the limit of its per-CPU lists.
#[derive(Clone, Copy)]
pub(super) struct Shortage {
    /// kswapd or another balances the zone.
    pub(super) reclaim_active: bool,
    /// The zone was found below its high watermark.
    pub(super) below_high: bool,
}

/// The pages that a CPU holds of a zone.
#[derive(Clone, Default)]
pub(super) struct Pcp {
    lists: [List; LISTS],
    /// Pages on all lists.
    pub(super) count: u32,
    pub(super) high: u32,
    /// A refill takes batch << alloc_factor pages.
    alloc_factor: u32,
    /// Pages freed lately, without as many allocated.
    free_count: u32,
}

/// Returns true if blocks of this order go through the lists.
pub(super) fn is_listed(order: u8) -> bool {
    order <= ORDER_MAX || order == PAGEBLOCK_ORDER
}

fn list_of(order: u8, kind: MigrateType) -> usize {
    match order {
        0..=ORDER_MAX => order as usize * TYPES + kind as usize,
        _ => LISTS - 2 + usize::from(kind == MigrateType::Movable),
    }
}

fn order_of(list: usize) -> u8 {
    if list < LISTS - 2 { (list / TYPES) as u8 } else { PAGEBLOCK_ORDER }
}

impl Pcp {
    /// The block freed last, after a refill where there is none.
    #[inline]
    pub(super) fn take(
        &mut self,
        folios: &mut FolioTable,
        buddy: &mut Buddy,
        want: Want,
        sizes: &PcpSizes,
        shortage: Shortage,
    ) -> Option<u32> {
        self.free_count >>= 1;
        let list = list_of(want.order, want.kind);
        if self.lists[list].is_empty() {
            let number = self.refill(want.order, sizes, shortage);
            let taken = buddy.take_bulk(folios, want, number, &mut self.lists[list]);
            debug_assert_eq!(
                u64::from(taken),
                self.lists[list].len(),
                "blocks fetched for a CPU, and those on its list"
            );
            self.count += taken << want.order;
        }
        let pfn = self.lists[list].pop_head(folios)?;
        self.assert_held(want.order, pfn);
        self.count -= 1 << want.order;
        self.assert_counted();
        Some(pfn)
    }

    /// Blocks have come or gone: the count is what the lists hold.
    #[inline]
    fn assert_counted(&self) {
        if cfg!(debug_assertions) {
            let lists = self.lists.iter().enumerate();
            let held: u64 = lists.map(|(list, blocks)| blocks.len() << order_of(list)).sum();
            assert_eq!(u64::from(self.count), held, "pages that a CPU counts, and those on its lists");
        }
    }

    /// Returns true if it holds no single page of a type.
    #[inline]
    pub(super) fn is_empty(&self, kind: MigrateType) -> bool {
        self.lists[list_of(0, kind)].is_empty()
    }

    /// A request for a page has found none here, nor any in the zone.
    pub(super) fn asked_in_vain(&mut self, sizes: &PcpSizes, shortage: Shortage) {
        self.free_count >>= 1;
        self.refill(0, sizes, shortage);
    }

    /// The page freed last, if there is one.
    #[inline(always)]
    pub(super) fn take_listed(&mut self, folios: &mut FolioTable, kind: MigrateType) -> Option<u32> {
        let pfn = self.lists[list_of(0, kind)].pop_head(folios)?;
        self.assert_held(0, pfn);
        self.free_count >>= 1;
        self.count -= 1;
        self.assert_counted();
        Some(pfn)
    }

    /// A block has left a list, and is about to leave the count.
    #[inline(always)]
    fn assert_held(&self, order: u8, pfn: u32) {
        debug_assert!(
            self.count >= 1 << order,
            "a CPU counts {} pages and has one of order {order}",
            self.count
        );
        debug_assert!(
            pfn.is_multiple_of(1 << order),
            "a CPU has a block of order {order} that begins with frame {pfn}"
        );
    }

    /// How many blocks to fetch.
    #[doc(alias = "nr_pcp_alloc")]
    fn refill(&mut self, order: u8, sizes: &PcpSizes, shortage: Shortage) -> u32 {
        let batch = sizes.batch;
        self.high = self.high.clamp(sizes.high_min, sizes.high_max);
        let wish = batch << self.alloc_factor;
        if !sizes.is_fixed() && !shortage.below_high {
            self.high = (self.high + wish).min(sizes.high_max);
        }
        if order > 0 {
            return if batch > 1 { (batch >> order).max(2) } else { 1 };
        }
        let room = self.high.saturating_sub(self.count + batch).max(batch);
        if wish <= room && self.alloc_factor < SCALE_MAX {
            self.alloc_factor += 1;
        }
        if wish > 1 { wish.min(room).max(2) } else { 1 }
    }

    /// Keeps a block, and says how many pages are too many now.
    #[inline]
    pub(super) fn give_back(
        &mut self,
        folios: &mut FolioTable,
        pfn: u32,
        order: u8,
        kind: MigrateType,
        sizes: &PcpSizes,
        shortage: Shortage,
    ) -> u32 {
        debug_assert!(is_listed(order), "a block of order {order} is given to a CPU");
        debug_assert!(
            pfn.is_multiple_of(1 << order),
            "a block of order {order} that a CPU gets begins with frame {pfn}"
        );
        debug_assert_eq!(
            folios.free_order(Pfn(pfn)),
            None,
            "a CPU gets frame {pfn}, which is free in its zone"
        );
        self.alloc_factor >>= 1;
        self.lists[list_of(order, kind)].push_head(folios, pfn);
        self.count += 1 << order;
        self.assert_counted();
        if self.free_count < sizes.batch << SCALE_MAX {
            self.free_count += 1 << order;
        }
        let limit = self.limit(sizes, shortage);
        if self.count < limit {
            return 0;
        }
        self.free_count.clamp(sizes.batch, (limit - sizes.batch).max(sizes.batch)).min(self.count)
    }

    /// From how many pages on some go back.
    #[doc(alias = "nr_pcp_high")]
    #[inline]
    fn limit(&mut self, sizes: &PcpSizes, shortage: Shortage) -> u32 {
        let PcpSizes { batch, high_min, high_max } = *sizes;
        let high = self.high.clamp(high_min, high_max);
        self.high = high;
        let lowered = || high.saturating_sub(self.free_count.max(batch)).max(high_min);
        if shortage.reclaim_active {
            self.high = lowered();
            return self.high.min(4 * batch);
        }
        if sizes.is_fixed() {
            return high;
        }
        if shortage.below_high {
            self.high = lowered();
            return self.count.max(high_min);
        }
        if self.count >= high && high < self.free_count + batch {
            self.high = (self.free_count + batch).clamp(high_min, high_max);
        }
        high
    }

    /// Holds a block that it will hand out after all others of its list.
    pub(super) fn put_last(&mut self, folios: &mut FolioTable, pfn: Pfn, order: u8, kind: MigrateType) {
        self.lists[list_of(order, kind)].push_tail(folios, pfn.0);
        self.count += 1 << order;
        self.assert_counted();
    }

    /// How much it may hold and fetch, as bursts have left it.
    pub(super) fn set_limits(&mut self, high: u32, alloc_factor: u32, free_count: u32, sizes: &PcpSizes) {
        self.high = high.clamp(sizes.high_min, sizes.high_max);
        self.alloc_factor = alloc_factor.min(SCALE_MAX);
        self.free_count = free_count.min(sizes.batch << SCALE_MAX);
    }

    /// Gives pages back to the zone: from the list of `order` and `kind` on around, from each what was freed longest ago.
    pub(super) fn drain(
        &mut self,
        folios: &mut FolioTable,
        buddy: &mut Buddy,
        pages: u32,
        order: u8,
        kind: MigrateType,
    ) {
        let mut left = pages.min(self.count);
        let mut list = list_of(order, kind);
        let mut looked_at = 0;
        while left > 0 {
            // A block freed twice tears the list.
            assert!(looked_at < LISTS, "{left} pages are on no list of the CPU that holds them");
            looked_at += 1;
            let order = order_of(list);
            while left > 0
                && let Some(pfn) = self.lists[list].pop_tail(folios)
            {
                self.assert_held(order, pfn);
                buddy.free(folios, pfn, order);
                self.count -= 1 << order;
                left = left.saturating_sub(1 << order);
            }
            list = (list + 1) % LISTS;
        }
        self.assert_counted();
    }

    /// Shrinks a list that has grown: every second a CPU's housekeeping removes an eighth of its limit.
    pub(super) fn decay(&mut self, folios: &mut FolioTable, buddy: &mut Buddy, sizes: &PcpSizes) {
        if self.high <= sizes.high_min {
            return;
        }
        let after_burst = self.count.saturating_sub(sizes.batch << SCALE_MAX);
        self.high = after_burst.max(self.high - (self.high >> 3)).max(sizes.high_min);
        let excess = self.count.saturating_sub(self.high);
        self.drain(folios, buddy, excess, 0, MigrateType::Unmovable);
    }

    /// Blocks on the lists with their orders, for checkers.
    pub(super) fn iter<'a>(&'a self, folios: &'a FolioTable) -> impl Iterator<Item = (u32, u8)> + 'a {
        let of_list =
            |(at, list): (usize, &'a List)| list.iter_from_tail(folios).map(move |pfn| (pfn, order_of(at)));
        self.lists.iter().enumerate().flat_map(of_list)
    }

    /// Panics unless the count is what the lists hold, and its limit in its range.
    pub(super) fn check_invariants(&self, folios: &FolioTable, sizes: &PcpSizes) {
        let held: u32 = self.iter(folios).map(|(_, order)| 1 << order).sum();
        assert_eq!(held, self.count, "pages on a CPU's lists");
        assert!(
            self.high <= sizes.high_max,
            "a CPU may hold {} pages, {} at most",
            self.high,
            sizes.high_max
        );
        assert!(self.alloc_factor <= SCALE_MAX, "a refill grows to 2^{}", self.alloc_factor);
        for list in &self.lists {
            list.check_invariants(folios);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_recorded_machine() {
        let sizes = PcpSizes::of_zone(27_500, 413, 2, 0);
        assert_eq!(sizes, PcpSizes { batch: 7, high_min: 206, high_max: 1718 });
        let large = PcpSizes::of_zone(1 << 20, 5000, 4, 0);
        assert_eq!(large, PcpSizes { batch: 63, high_min: 1250, high_max: (1 << 20) / 32 });
        let fixed = PcpSizes::of_zone(1 << 20, 5000, 4, 8);
        assert_eq!((fixed.high_min, fixed.high_max), ((1 << 20) / 32, (1 << 20) / 32));
        assert_eq!(PcpSizes::of_zone(10, 1, 1, 0), PcpSizes { batch: 1, high_min: 4, high_max: 4 });
    }
}
