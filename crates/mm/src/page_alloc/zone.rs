//! Zones: parts of a node's memory by who can reach them, each with marks and free pages of its own. [machine 2.1]
//!
//! ```text
//!   physical   0    16 MiB            4 GiB                          end of the node
//!              │ DMA  │     DMA32       │        Normal        │  Movable  │
//!   Pfn              3│                2│                     1│           0          where they begin in the order of frame numbers
//! ```
//! A machine of up to 4 GiB has no Normal zone, and nodes other than the first usually have nothing else. A zone exists if it has
//! pages. Movable exists where the machine's description asks for it.
//!
//! Frames are numbered in the order in which zones are used, from the highest down, and not by their physical address. So records exist
//! only for frames in use, although a large machine leaves its lowest 4 GiB for last.

use crate::config::Config;
use crate::memory::folio::{Folio, FolioTable};
use crate::page_alloc::buddy::Buddy;
use crate::page_alloc::compact::{Deferral, Wanted};
use crate::page_alloc::fallback::Want;
use crate::page_alloc::pcp::{self, Pcp, PcpSizes, Shortage};
use crate::page_alloc::request::{MigrateType, Request, Rights};
use crate::page_alloc::watermark::{Watermark, Watermarks};
use crate::units::{
    CpuId, MAX_BLOCK_PAGES, NodeId, PAGE_SIZE, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, SECTION_FRAMES,
    ZoneType,
};
use std::ops::Range;

/// First page beyond zone DMA.
const DMA_END: u64 = (16 << 20) / PAGE_SIZE;
/// First page beyond zone DMA32.
const DMA32_END: u64 = (4 << 30) / PAGE_SIZE;

/// A zone of a node.
pub struct Zone {
    /// The node that it is part of.
    pub node: NodeId,
    /// The requests that can reach it.
    pub kind: ZoneType,
    /// First frame in our numbering.
    pub start: u32,
    /// First page by physical address.
    pub physical_start: u64,
    /// Pages of memory in its range.
    pub present: u64,
    /// Pages that the allocator was given: present, less what was reserved at boot. All formulas count these.
    pub managed: u64,
    /// The watermarks of the zone.
    pub marks: Watermarks,
    /// `watermark_boost` in pages: added to all marks by fallbacks into pageblocks of other types, until kswapd has answered.
    pub boost: u64,
    /// Pages kept from requests of a higher class, by class.
    pub lowmem_reserve: [u64; ZoneType::COUNT],
    /// The zone's pages on lists that reclaim scans, anonymous and of files, where its node has others; else they are the node's.
    pub listed: [i64; 2],
    /// kswapd balances this zone: what is freed goes back soon.
    pub reclaim_active: bool,
    /// The zone was found below its high watermark, and no CPU has given pages back and seen it above since.
    pub below_high: bool,
    /// Deferral of its compaction.
    pub compact_deferral: Deferral,
    pub(super) buddy: Buddy,
    /// Pages that each CPU holds; nothing before its first visit.
    pub(super) pcps: Vec<Option<Box<Pcp>>>,
    pub(super) pcp_sizes: PcpSizes,
}

/// Why a request gets no page of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// Too little is free: the mark refuses.
    BelowMark,
    /// The free pages are in pageblocks of other types.
    OtherTypes,
}

impl Zone {
    /// Pages that are free by any test.
    #[inline]
    pub fn free_pages(&self) -> u64 {
        self.buddy.free_pages
    }

    /// Free pages that CPUs hold: no test of a watermark counts them.
    pub fn listed_pages(&self) -> u64 {
        self.pcps.iter().flatten().map(|pcp| u64::from(pcp.count)).sum()
    }

    /// Free pages in pageblocks kept for requests that can't wait.
    #[inline]
    pub fn highatomic_free_pages(&self) -> u64 {
        self.buddy.highatomic_free
    }

    /// Returns whether a block of at least this order is free for a request with these rights.
    #[inline]
    pub fn has_free_block(&self, order: u8, rights: Rights) -> bool {
        self.buddy.has_block(order, rights)
    }

    fn shortage(&self) -> Shortage {
        Shortage { reclaim_active: self.reclaim_active, below_high: self.below_high }
    }

    /// A block, from the CPU's list where there is one for its order.
    #[inline]
    pub(super) fn take(
        &mut self,
        folios: &mut FolioTable,
        cpu: CpuId,
        order: u8,
        kind: MigrateType,
        rights: Rights,
    ) -> Option<Pfn> {
        let want = Want { order, kind, rights };
        let shortage = self.shortage();
        let all = self.all_free();
        let pfn = if pcp::is_listed(order) {
            let pcp = self.pcps[cpu.index()].get_or_insert_default();
            let listed = pcp.take(folios, &mut self.buddy, want, &self.pcp_sizes, shortage);
            // If a list can't be refilled, the zone has no free page outside its reserve.
            listed.or_else(|| self.buddy.take_reserved(folios, want))?
        } else {
            self.buddy.take(folios, want)?
        };
        if rights.contains(Rights::HIGHATOMIC) && order > 0 {
            self.buddy.reserve_highatomic(folios, pfn, self.managed);
        }
        debug_assert_eq!(
            self.all_free() + (1 << order),
            all,
            "pages that are free, and one block less of {order}"
        );
        Some(Pfn(pfn))
    }

    /// A page of the CPU's list for a first try, which has no rights to the reserves. `None`, with nothing changed, if the list is empty, or if the
    /// zone is below its high watermark and this was not noticed yet.
    #[inline(always)]
    pub(super) fn take_listed(
        &mut self,
        folios: &mut FolioTable,
        cpu: CpuId,
        request: &Request,
    ) -> Option<Pfn> {
        if request.order > 0 || !self.admits_listed(request) {
            return None;
        }
        let pcp = self.pcps[cpu.index()].as_mut()?;
        pcp.take_listed(folios, request.migrate_type).map(Pfn)
    }

    /// Returns true if it is above the mark that a first try heeds, as far as is known.
    #[inline(always)]
    fn admits_listed(&self, request: &Request) -> bool {
        let mark = self.mark(if self.below_high { Watermark::Low } else { Watermark::High });
        self.watermark_ok(0, mark, request.class, Rights::empty())
    }

    /// Why a first try for one page that leaves other types' pageblocks alone would get none here; `None` where it may get one.
    #[inline]
    pub(super) fn refusal(&self, cpu: CpuId, request: &Request) -> Option<Refusal> {
        if !self.admits_listed(request) {
            return self.below_high.then_some(Refusal::BelowMark);
        }
        let kind = request.migrate_type;
        let is_empty = self.pcps[cpu.index()].as_ref()?.is_empty(kind);
        let nothing_left = self.buddy.keeps_nothing_for(Want { order: 0, kind, rights: Rights::NOFRAGMENT });
        (is_empty && nothing_left).then_some(Refusal::OtherTypes)
    }

    /// A request has been refused: a list that was asked in vain has tried to refill.
    #[inline]
    pub(super) fn note_refusal(&mut self, cpu: CpuId, refusal: Refusal) {
        let shortage = self.shortage();
        if refusal == Refusal::OtherTypes
            && let Some(pcp) = &mut self.pcps[cpu.index()]
        {
            pcp.asked_in_vain(&self.pcp_sizes, shortage);
        }
    }

    /// Takes a block back, to the CPU's list where there is one for its order.
    #[inline]
    pub(super) fn give_back(&mut self, folios: &mut FolioTable, cpu: CpuId, pfn: Pfn, order: u8) {
        let all = self.all_free();
        if pcp::is_listed(order) {
            self.give_to_cpu(folios, cpu, pfn, order);
        } else {
            self.buddy.free(folios, pfn.0, order);
        }
        debug_assert_eq!(
            self.all_free(),
            all + (1 << order),
            "pages that are free, and a block of order {order}"
        );
    }

    /// Pages that are free in the zone or on CPUs' lists; for assertions.
    #[inline(always)]
    pub(super) fn all_free(&self) -> u64 {
        if cfg!(debug_assertions) { self.free_pages() + self.listed_pages() } else { 0 }
    }

    #[inline]
    fn give_to_cpu(&mut self, folios: &mut FolioTable, cpu: CpuId, pfn: Pfn, order: u8) {
        debug_assert!(
            pfn.0 >= self.start && pfn.0 + (1 << order) <= self.buddy.end(),
            "{pfn:?} of order {order} is given back to a zone that it is not of"
        );
        let kind = match self.buddy.type_of(pfn.0) {
            MigrateType::HighAtomic => MigrateType::Movable,
            kind => kind,
        };
        let shortage = self.shortage();
        let pcp = self.pcps[cpu.index()].get_or_insert_default();
        let excess = pcp.give_back(folios, pfn.0, order, kind, &self.pcp_sizes, shortage);
        if excess > 0 {
            pcp.drain(folios, &mut self.buddy, excess, order, kind);
            if self.below_high && self.free_pages() > self.mark(Watermark::High) {
                self.below_high = false;
            }
        }
    }

    /// Takes back what CPUs hold: one CPU, or all.
    pub fn drain(&mut self, folios: &mut FolioTable, cpu: Option<CpuId>) {
        let pcps = match cpu {
            Some(cpu) => &mut self.pcps[cpu.index()..=cpu.index()],
            None => &mut self.pcps[..],
        };
        for pcp in pcps.iter_mut().flatten() {
            pcp.drain(folios, &mut self.buddy, u32::MAX, 0, MigrateType::Unmovable);
            debug_assert_eq!(pcp.count, 0, "a CPU is drained, and holds pages");
        }
    }

    /// A CPU's housekeeping, once a second.
    pub(super) fn refresh(&mut self, folios: &mut FolioTable, cpu: CpuId) {
        if let Some(pcp) = &mut self.pcps[cpu.index()] {
            pcp.decay(folios, &mut self.buddy, &self.pcp_sizes);
        }
    }

    /// Raises the watermarks after a fallback that mixes types, up to a share of the high watermark, so that kswapd frees complete pageblocks. False
    /// if nothing is raised.
    #[doc(alias = "boost_watermark")]
    pub(super) fn note_mixing(&mut self, boost_factor: u32) -> bool {
        assert!(self.buddy.is_mixing, "a fallback is noted that did not mix types");
        self.buddy.is_mixing = false;
        if boost_factor == 0 || self.managed < 4 * PAGEBLOCK_PAGES {
            return false;
        }
        let most = (self.marks.high * u64::from(boost_factor) / 10_000).max(PAGEBLOCK_PAGES);
        self.boost = (self.boost + PAGEBLOCK_PAGES).min(most);
        assert!(self.boost > 0, "a mark is raised by nothing");
        true
    }

    /// Returns true if a request may take from here at this watermark. Above the high watermark any may, and CPUs' lists grow; the first request that finds
    /// less records it for all.
    #[inline]
    pub(super) fn admits(&mut self, request: &Request, mark: Watermark, rights: Rights) -> bool {
        if rights.contains(Rights::NO_WATERMARKS) {
            return true;
        }
        let Request { order, class, .. } = *request;
        if !self.below_high {
            if self.watermark_ok(order, self.mark(Watermark::High), class, rights) {
                return true;
            }
            self.below_high = true;
        }
        self.passes(order, mark, class, rights)
    }

    /// Returns whether a block for such a request is free, in its own pageblocks or in others that it may claim.
    pub fn gives(&self, wanted: &Wanted) -> bool {
        self.buddy.gives(wanted.order, wanted.migrate_type)
    }

    /// The type of the pageblock that a frame is in.
    pub fn type_of(&self, pfn: Pfn) -> MigrateType {
        self.buddy.type_of(pfn.0)
    }

    /// Frames that have been used since the start, whatever they are now.
    pub fn used_so_far(&self) -> Range<u32> {
        self.buddy.used_so_far()
    }

    /// The first frame beyond the zone.
    pub fn end(&self) -> u32 {
        self.buddy.end()
    }

    /// Puts memory that was never used into the lists, where [`Zone::isolate_free`] finds it.
    pub fn list_fresh(&mut self, folios: &mut FolioTable) {
        self.buddy.list_fresh(folios);
    }

    /// Takes all free pages within a pageblock out of the lists. Each is referred to by who has it now.
    pub fn isolate_free(&mut self, folios: &mut FolioTable, within: Range<u32>, into: &mut Vec<Pfn>) {
        assert!(
            within.start >= self.start && within.end <= self.buddy.end(),
            "pages of another zone are isolated"
        );
        let first = into.len();
        let (mut pfn, free) = (within.start, self.free_pages());
        while pfn < within.end {
            match self.buddy.isolate(folios, Pfn(pfn)) {
                Some(order) => {
                    into.extend((pfn..pfn + (1 << order)).map(Pfn));
                    pfn += 1 << order;
                }
                None => pfn += 1,
            }
        }
        let isolated = (into.len() - first) as u64;
        assert_eq!(free - self.free_pages(), isolated, "pages isolated, and those that are free no more");
        for &pfn in &into[first..] {
            folios[pfn] = Folio::new(self.node, 0);
            folios[pfn].refs = 1;
        }
    }

    /// Takes a page of each of this many pageblocks permanently, evenly spread over the free ones. Those pageblocks are unmovable from then on.
    pub(super) fn take_scattered(&mut self, folios: &mut FolioTable, count: u64) -> Vec<Pfn> {
        if count == 0 {
            // Most of a large machine is never touched, and has no records.
            return Vec::new();
        }
        folios.populate(Pfn(self.buddy.end() - 1));
        let mut blocks = Vec::new();
        while let Some(first) = self.buddy.take_smallest(folios, PAGEBLOCK_ORDER, MigrateType::Movable) {
            blocks.push(first);
        }
        blocks.sort_unstable();
        let all = blocks.len() as u64;
        let mut held = Vec::new();
        // The block freed last is used first: the lowest.
        for (at, first) in blocks.into_iter().enumerate().rev() {
            let at = at as u64;
            if at * count / all == (at + 1) * count / all {
                self.buddy.free(folios, first, PAGEBLOCK_ORDER);
                continue;
            }
            assert_eq!(folios.free_order(Pfn(first)), None, "frame {first} is taken for good, and is free");
            self.buddy.set_type(first, MigrateType::Unmovable);
            folios[Pfn(first)] = Folio::new(self.node, 0);
            held.push(Pfn(first));
            (first + 1..first + PAGEBLOCK_PAGES as u32).for_each(|page| self.buddy.free(folios, page, 0));
        }
        assert_eq!(held.len() as u64, count.min(all), "pages taken for good, and those that were wanted");
        held
    }

    /// Puts isolated pages back.
    pub fn release_free(&mut self, folios: &mut FolioTable, pages: &mut Vec<Pfn>) {
        for pfn in pages.drain(..) {
            assert_eq!(folios[pfn].refs, 1, "{pfn:?} is put back, and is not isolated");
            assert_eq!(folios[pfn].mapped, 0, "{pfn:?} is put back, and is mapped");
            folios[pfn].refs = 0;
            self.buddy.free(folios, pfn.0, 0);
        }
    }

    /// Returns how far a request of this order fails because there are no large blocks: 0 for lack of memory to 1000 for its fragmentation, and -1000 if it
    /// does not fail. [machine 2.11]
    pub fn fragmentation_index(&self, order: u8) -> i64 {
        let blocks = self.buddy.free_blocks();
        if blocks[order as usize..].iter().any(|&blocks| blocks > 0) {
            return -1000;
        }
        let free_blocks: u64 = blocks.iter().sum();
        if free_blocks == 0 {
            return 0;
        }
        let wanted = 1 << order;
        1000 - ((1000 + self.free_pages() * 1000 / wanted) / free_blocks) as i64
    }

    /// The share of its free pages, in percent, that are in no free pageblock.
    pub(super) fn scattered_percent(&self) -> u64 {
        let blocks = self.buddy.free_blocks();
        let large = blocks.iter().enumerate().skip(PAGEBLOCK_ORDER.into());
        let together: u64 = large.map(|(order, blocks)| blocks << order).sum();
        let free = self.free_pages();
        ((free - together) * 100).checked_div(free).unwrap_or(0)
    }

    /// A free block of the requested type and order, without regard to watermarks: for a task that has just made it.
    pub fn capture(&mut self, folios: &mut FolioTable, wanted: &Wanted) -> Option<Pfn> {
        self.buddy.take_smallest(folios, wanted.order, wanted.migrate_type).map(Pfn)
    }
}

/// The zones of a node, in the order in which they are used: from the highest down.
pub(super) fn zones_of(node: NodeId, pages: u64, physical: u64, first: u32, config: &Config) -> Vec<Zone> {
    let layout = &config.layout;
    let of_node = |list: &[u64]| list.get(node.index()).copied().unwrap_or(0);
    let (reserved, movable) = (of_node(&layout.reserved_pages), of_node(&layout.movable_pages));
    let present_of_node = pages + reserved;
    let end = physical + present_of_node;
    let movable_start = match movable {
        0 => end,
        all if all >= pages => physical,
        some => (end - some).next_multiple_of(u64::from(MAX_BLOCK_PAGES)).min(end),
    };
    let dma_end = if layout.zone_dma { DMA_END } else { 0 };
    let ends = [dma_end, DMA32_END.max(dma_end), u64::MAX].map(|end| end.min(movable_start));
    let mut zones = Vec::new();
    let (mut start, mut reserved_left) = (physical, reserved);
    for (kind, zone_end) in ZoneType::ALL.into_iter().zip([ends[0], ends[1], ends[2], end]) {
        let present = zone_end.saturating_sub(start);
        if present == 0 {
            continue;
        }
        // The page structures are most of what is reserved, and a zone needs them by its size.
        let is_last = zone_end == end;
        let share = (u128::from(reserved) * u128::from(present) / u128::from(present_of_node)) as u64;
        let reserved_here = if is_last { reserved_left } else { share };
        reserved_left -= reserved_here;
        zones.push((kind, start, present, present - reserved_here));
        start = zone_end;
    }
    let mut next = first;
    let in_order_of_use = zones.into_iter().rev().filter(|&(_, _, _, managed)| managed > 0);
    in_order_of_use
        .map(|(kind, physical_start, present, managed)| {
            let pages = u32::try_from(managed).expect("Config::check bounds the frames");
            let start = next;
            next = (start + pages).next_multiple_of(MAX_BLOCK_PAGES);
            Zone {
                node,
                kind,
                start,
                physical_start,
                present,
                managed,
                marks: Watermarks::default(),
                boost: 0,
                lowmem_reserve: [0; ZoneType::COUNT],
                listed: [0; 2],
                reclaim_active: false,
                below_high: false,
                compact_deferral: Deferral::default(),
                buddy: Buddy::new(start, pages),
                pcps: vec![None; config.cpus.into()],
                pcp_sizes: PcpSizes::default(),
            }
        })
        .collect()
}

/// First frame of the node after these zones.
pub(super) fn next_node(zones: &[Zone]) -> u32 {
    zones.last().map_or(0, |zone| (zone.start + zone.managed as u32).next_multiple_of(SECTION_FRAMES))
}
