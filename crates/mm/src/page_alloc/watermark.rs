//! How much of a zone stays free: its watermarks, and the test of a request against them. [machine 2.2, 2.3, 2.5]
//!
//! ```text
//!   managed ┌────────────────────────┐
//!           │                        │  everyone may take pages
//!   promo   ├── high + gap           │  with tiers: kswapd of a fast node goes on to here
//!   high    ├── low + gap            │  kswapd is content
//!   low     ├── min + gap            │  below: kswapd is woken
//!   min     ├── share of min_free    │  below: whoever allocates reclaims first
//!           │                        │  the reserve: for reclaim itself, for what can't wait, for an OOM victim
//!         0 └────────────────────────┘
//! ```
//! A request that could use a higher zone leaves some more pages in a lower one (`lowmem_reserve`). Memory that only few requests may use must not
//! fill with pages that may lie anywhere.

use crate::page_alloc::request::Rights;
use crate::page_alloc::zone::Zone;
use crate::units::PAGEBLOCK_PAGES;
use crate::units::ZoneType;

/// One of a zone's marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watermark {
    /// Below it only requests with rights get pages.
    Min,
    /// Below it kswapd is woken.
    Low,
    /// At it kswapd rests.
    High,
    /// At it kswapd rests where memory is tiered.
    Promo,
}

/// A zone's marks in pages, without boost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermarks {
    /// The minimum watermark. Below it only privileged requests get pages. Unit: pages.
    pub min: u64,
    /// Below it kswapd is woken. Unit: pages.
    pub low: u64,
    /// At it kswapd rests. Unit: pages.
    pub high: u64,
    /// At it kswapd rests where memory is tiered. Unit: pages.
    pub promo: u64,
}

impl Watermarks {
    /// The mark of this name.
    pub fn get(&self, mark: Watermark) -> u64 {
        match mark {
            Watermark::Min => self.min,
            Watermark::Low => self.low,
            Watermark::High => self.high,
            Watermark::Promo => self.promo,
        }
    }
}

/// Pages a kB of `min_free_kbytes` has, inverted.
const KB_PER_PAGE: u64 = crate::units::PAGE_SIZE >> 10;

/// Computes the marks of all zones from what all together keep free, and clears their boosts. `watermark_scale_factor` is the least
/// distance of the marks, in pages of 10,000.
#[doc(alias = "setup_per_zone_wmarks")]
pub fn set_marks(zones: &mut [Zone], min_free_kbytes: u64, watermark_scale_factor: u32) {
    let min_free = min_free_kbytes / KB_PER_PAGE;
    let lowmem: u64 =
        zones.iter().filter(|zone| zone.kind != ZoneType::Movable).map(|zone| zone.managed).sum();
    for zone in zones {
        // A machine of nothing but movable zones has no memory to share the reserve of.
        let share = (min_free * zone.managed).checked_div(lowmem).unwrap_or(0);
        let min = match zone.kind {
            ZoneType::Movable => (zone.managed / 1024).clamp(32, 128),
            _ => share,
        };
        let gap = (share / 4).max(zone.managed * u64::from(watermark_scale_factor) / 10_000);
        let (low, high) = (min + gap, min + 2 * gap);
        zone.marks = Watermarks { min, low, high, promo: high + gap };
        zone.boost = 0;
    }
}

/// Pages that all zones together keep free, by the root of their size: a large machine needs more, but not in proportion. Huge pages need
/// complete free pageblocks.
pub fn min_free_kbytes(zones: &[Zone], wants_huge_pages: bool) -> u64 {
    let below_movable = || zones.iter().filter(|zone| zone.kind != ZoneType::Movable);
    let buffer_pages: u64 = below_movable().map(|zone| zone.managed.saturating_sub(zone.marks.high)).sum();
    let computed = (16 * buffer_pages * KB_PER_PAGE).isqrt().clamp(128, 262_144);
    if !wants_huge_pages {
        return computed;
    }
    // Two pageblocks per zone that are always available, and one for each pair of migrate types that could mix.
    const PAGEBLOCKS: u64 = 2 + 3 * 3;
    let populated = below_movable().filter(|zone| zone.managed > 0).count() as u64;
    let recommended = (PAGEBLOCKS * PAGEBLOCK_PAGES * populated).min(buffer_pages / 20);
    computed.max(recommended * KB_PER_PAGE)
}

/// Sets the pages that each zone keeps from requests that could use higher zones, by class of the request: `lowmem_reserve_ratio`.
pub fn set_lowmem_reserves(zones: &mut [Zone], ratios: &[u32; ZoneType::COUNT]) {
    for at in 0..zones.len() {
        let Zone { node, kind, managed, .. } = &zones[at];
        let (node, kind, managed) = (*node, *kind, *managed);
        let ratio = u64::from(ratios[kind as usize]);
        zones[at].lowmem_reserve = ZoneType::ALL.map(|class| {
            if class <= kind || managed == 0 {
                return 0;
            }
            let above = |zone: &&Zone| zone.node == node && zone.kind > kind && zone.kind <= class;
            zones.iter().filter(above).map(|zone| zone.managed).sum::<u64>().checked_div(ratio).unwrap_or(0)
        });
    }
}

impl Zone {
    /// A mark as it stands now.
    #[inline]
    pub fn mark(&self, mark: Watermark) -> u64 {
        self.marks.get(mark) + self.boost
    }

    /// Returns whether a request of this order may take from here and leave `mark` pages: the test before every allocation, and the one that
    /// ends kswapd's work.
    #[doc(alias = "zone_watermark_ok")]
    #[inline]
    pub fn watermark_ok(&self, order: u8, mark: u64, class: ZoneType, rights: Rights) -> bool {
        self.watermark_ok_with(self.free_pages(), order, mark, class, rights)
    }

    /// [`Zone::watermark_ok`] if this many pages were free.
    #[inline]
    pub fn watermark_ok_with(
        &self,
        free: u64,
        order: u8,
        mark: u64,
        class: ZoneType,
        rights: Rights,
    ) -> bool {
        let mut unusable = (1 << order) - 1;
        if !rights.intersects(Rights::RESERVES) {
            unusable += self.highatomic_free_pages();
        }
        let reserve = self.lowmem_reserve[class as usize];
        if free.saturating_sub(unusable) <= lowered(mark, rights) + reserve {
            return false;
        }
        order == 0 || self.has_free_block(order, rights)
    }

    /// The test of the fast path against a mark by its name. What has the right to the reserve need not heed the boost there.
    #[inline]
    pub fn passes(&self, order: u8, mark: Watermark, class: ZoneType, rights: Rights) -> bool {
        self.watermark_ok(order, self.mark(mark), class, rights)
            || order == 0
                && mark == Watermark::Min
                && self.boost > 0
                && rights.contains(Rights::MIN_RESERVE)
                && self.watermark_ok(order, self.marks.min, class, rights)
    }

    /// `totalreserve_pages` of the zone: pages that page cache can't count on. Dirty limits are shares of the rest.
    pub fn total_reserve(&self) -> u64 {
        let reserve = self.lowmem_reserve.into_iter().max().unwrap_or(0);
        self.managed.min(reserve + self.marks.high)
    }
}

/// The mark, in pages, that a request with these rights has to pass.
#[inline]
fn lowered(mark: u64, rights: Rights) -> u64 {
    let mut mark = mark;
    if rights.contains(Rights::MIN_RESERVE) {
        mark -= mark / 2;
        if rights.contains(Rights::NON_BLOCK) {
            mark -= mark / 4;
        }
    }
    if rights.contains(Rights::OOM) {
        mark -= mark / 2;
    }
    mark
}
