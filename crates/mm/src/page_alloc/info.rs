//! The state of a zone as `/proc/zoneinfo` shows it, for callers outside the engine.

use crate::page_alloc::buddy::ORDERS;
use crate::page_alloc::pcp::{Pcp, PcpSizes};
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::Zone;
use crate::units::NodeId;
use crate::units::ZoneType;

/// The state of a zone, in pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneInfo {
    /// The zone's node.
    pub node: NodeId,
    /// The type of the zone.
    pub zone: ZoneType,
    /// First page by physical address.
    pub start_pfn: u64,
    /// Free pages of the buddy allocator; pages on lists of CPUs are not among them.
    pub free: u64,
    /// Pages that fallbacks have put on top of the marks (`watermark_boost`).
    pub boost: u64,
    /// The mark below which a task that allocates reclaims first, boost included, as in all marks.
    pub min: u64,
    /// The mark below which kswapd is woken.
    pub low: u64,
    /// The mark up to which kswapd goes on.
    pub high: u64,
    /// The mark up to which it goes on to make room for promotion.
    pub promo: u64,
    /// Pages in the zone's range of addresses.
    pub spanned: u64,
    /// Pages in the zone that are memory.
    pub present: u64,
    /// Pages in the zone that the allocator was given.
    pub managed: u64,
    /// Pages that requests of each class leave: `protection` of `/proc/zoneinfo`.
    pub lowmem_reserve: [u64; ZoneType::COUNT],
    /// Free blocks of each order, as `/proc/buddyinfo` tells.
    pub free_blocks: [u64; ORDERS],
    /// The pages that each CPU holds of the zone.
    pub pagesets: Vec<PagesetInfo>,
}

/// The free pages of a zone that a CPU holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PagesetInfo {
    /// Pages on all of its lists.
    pub count: u32,
    /// Pages that the CPU may hold now.
    pub high: u32,
    /// Pages that the CPU fetches at a time, at least.
    pub batch: u32,
    /// The minimum of the limit `high`.
    pub high_min: u32,
    /// The most that the limit of a CPU's list may grow to (`high_min` is the least).
    pub high_max: u32,
}

impl Zone {
    pub(super) fn info(&self) -> ZoneInfo {
        ZoneInfo {
            node: self.node,
            zone: self.kind,
            start_pfn: self.physical_start,
            free: self.free_pages(),
            boost: self.boost,
            min: self.mark(Watermark::Min),
            low: self.mark(Watermark::Low),
            high: self.mark(Watermark::High),
            promo: self.mark(Watermark::Promo),
            spanned: self.present,
            present: self.present,
            managed: self.managed,
            lowmem_reserve: self.lowmem_reserve,
            free_blocks: self.buddy.free_blocks(),
            pagesets: self.pcps.iter().map(|pcp| self.pageset(pcp.as_deref())).collect(),
        }
    }

    fn pageset(&self, pcp: Option<&Pcp>) -> PagesetInfo {
        let PcpSizes { batch, high_min, high_max } = self.pcp_sizes;
        let (count, high) = pcp.map_or((0, high_min), |pcp| (pcp.count, pcp.high));
        PagesetInfo { count, high, batch, high_min, high_max }
    }
}
