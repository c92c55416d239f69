//! The free memory of the whole machine: zones of all nodes, the order in which a request tries them, and the fast path through them.
//!
//! ```text
//!   request ─▶ zonelist of its node ─┬─ zone above the request's class ── next
//!                                    ├─ below the mark ────────────────── next: remote memory is used before any is reclaimed
//!                                    └─ the CPU's list, else the buddy ─▶ taken
//! ```
//! Since 6.18 the first try skips nodes whose kswapd is awake, as long as another node has free memory. A task that is bound to one node keeps its
//! kswapd awake, and others would have their pages reclaimed there while the next node is empty ([`Zones::pass_by`]).
//!
//! If no zone can serve a request at the low watermark, the slow path does. It tries again with more rights, or frees memory. [machine 2.6]

use crate::config::{Config, TransparentHugepage};
use crate::memory::folio::FolioTable;
use crate::page_alloc::free_memory::FreeMemory;
use crate::page_alloc::info::ZoneInfo;
use crate::page_alloc::pcp::PcpSizes;
use crate::page_alloc::request::{Gfp, Request, Rights};
use crate::page_alloc::watermark::{Watermark, Watermarks, min_free_kbytes, set_lowmem_reserves, set_marks};
use crate::page_alloc::zone::{Zone, next_node, zones_of};
use crate::page_alloc::zonelist::node_order;
use crate::units::ZoneType;
use crate::units::{CpuId, LruType, NodeId, Nodemask, PAGEBLOCK_PAGES, Pfn, SECTION_FRAMES};
use std::ops::Range;

/// A node: its zones, and the order in which requests that want it try zones.
struct Node {
    /// The node's zones, by their places among all, from the highest down.
    zones: Range<usize>,
    /// The zones of all nodes in the order in which it uses them.
    zonelist: Vec<usize>,
    /// The first of its own, by class of request: where there is one, and the node is not passed by.
    first: [Option<usize>; ZoneType::COUNT],
    is_online: bool,
}

/// The zones of all nodes.
pub struct Zones {
    /// By node, and within one from the highest down: in the order of frame numbers.
    zones: Vec<Zone>,
    nodes: Vec<Node>,
    /// Nodes that the first try of a request passes by.
    passed_by: Nodemask,
    min_free_kbytes: u64,
    /// `vm.min_free_kbytes` if it is not set: without huge pages, and with them.
    min_free_by_default: [u64; 2],
    boost_factor: u32,
    /// The mark at which kswapd may rest.
    rest_mark: Watermark,
    /// The zone last boosted by who may wake kswapd, until someone asks.
    boosted: Option<usize>,
}

impl Zones {
    /// All frames are free.
    pub fn new(config: &Config) -> Zones {
        let layout = &config.layout;
        let mut zones: Vec<Zone> = Vec::new();
        let mut ranges = Vec::new();
        let mut physical = 0;
        for (at, &pages) in config.node_pages.iter().enumerate() {
            let node = NodeId(at as u8);
            let of_node = zones_of(node, pages, physical, next_node(&zones), config);
            let present: u64 = of_node.iter().map(|zone| zone.present).sum();
            physical = (physical + present).next_multiple_of(u64::from(SECTION_FRAMES));
            ranges.push(zones.len()..zones.len() + of_node.len());
            zones.extend(of_node);
        }
        let nodes = (0..ranges.len()).map(|at| {
            let order = node_order(&layout.distances, NodeId(at as u8), ranges.len());
            let zonelist: Vec<usize> =
                order.into_iter().flat_map(|node| ranges[node.index()].clone()).collect();
            let first = |class| ranges[at].clone().find(|&zone| zones[zone].kind <= class);
            Node { zones: ranges[at].clone(), first: ZoneType::ALL.map(first), zonelist, is_online: true }
        });
        let mut all = Zones {
            nodes: nodes.collect(),
            zones,
            passed_by: Nodemask::default(),
            min_free_kbytes: 0,
            min_free_by_default: [0; 2],
            boost_factor: 0,
            rest_mark: Watermark::High,
            boosted: None,
        };
        all.set_marks_at_boot(config);
        all
    }

    /// Puts memory of a node that was never used into the lists of its zones.
    pub fn list_fresh(&mut self, folios: &mut FolioTable, node: NodeId) {
        self.of_node_mut(node).iter_mut().for_each(|zone| zone.list_fresh(folios));
    }

    /// Takes all free pages of a node within a block of one zone out of the lists: [`Zone::isolate_free`].
    pub fn isolate_free(
        &mut self,
        folios: &mut FolioTable,
        node: NodeId,
        block: Range<u32>,
        into: &mut Vec<Pfn>,
    ) {
        let at = self.place_of(node, Pfn(block.start));
        self.zones[at].isolate_free(folios, block, into);
    }

    /// Frames of a zone leave the allocator (less than zero), or come back. [`Zones::managed_changed`] computes what depends on that.
    #[doc(alias = "adjust_managed_page_count")]
    pub fn adjust_managed(&mut self, node: NodeId, pfn: Pfn, pages: i64) {
        let at = self.place_of(node, pfn);
        let zone = &mut self.zones[at];
        zone.managed = zone.managed.checked_add_signed(pages).expect("no more frames leave than a zone has");
        assert!(zone.managed <= zone.present, "a zone manages more frames than it has");
    }

    /// Computes marks and reserves as a machine does that boots with the memory that zones manage now.
    pub fn managed_changed(&mut self, config: &Config) {
        for zone in &mut self.zones {
            zone.marks = Watermarks::default();
        }
        self.set_marks_at_boot(config);
        for zone in &mut self.zones {
            let most = zone.pcp_sizes.high_max;
            zone.pcps.iter_mut().flatten().for_each(|pcp| pcp.high = pcp.high.min(most));
        }
    }

    /// The memory of the kernel's own initialisation, in the lowest zone, is given back when marks are computed already.
    fn set_marks_at_boot(&mut self, config: &Config) {
        let lowest = self.nodes[0].zones.end - 1;
        let of_init = config.layout.init_pages.min(self.zones[lowest].managed);
        self.zones[lowest].managed -= of_init;
        set_lowmem_reserves(&mut self.zones, &config.layout.lowmem_reserve_ratio);
        self.min_free_by_default = [false, true].map(|has_huge| min_free_kbytes(&self.zones, has_huge));
        self.set_marks(config);
        self.zones[lowest].managed += of_init;
    }

    /// Computes marks from what the administrator set, at boot and whenever that has changed.
    pub fn set_marks(&mut self, config: &Config) {
        let has_huge = config.transparent_hugepage != TransparentHugepage::Never;
        self.min_free_kbytes = match config.min_free_kbytes {
            0 => self.min_free_by_default[usize::from(has_huge)],
            given => given.into(),
        };
        set_marks(&mut self.zones, self.min_free_kbytes, config.watermark_scale_factor);
        self.boost_factor = config.watermark_boost_factor;
        // Pages will be promoted to a node whose tasks fill it to its high watermark.
        self.rest_mark = if config.is_memory_tiering() { Watermark::Promo } else { Watermark::High };
        for zone in &mut self.zones {
            let fraction = config.percpu_pagelist_high_fraction.into();
            // Those of other nodes seldom allocate here. All share a node that has none of its own.
            let cpus = config.cpus_of(Some(zone.node));
            let cpus = u64::from(cpus.end.0 - cpus.start.0);
            zone.pcp_sizes = PcpSizes::of_zone(zone.managed, zone.marks.low, cpus, fraction);
        }
    }

    /// `vm.min_free_kbytes`: memory that all zones together keep free, in kB.
    pub fn min_free_kbytes(&self) -> u64 {
        self.min_free_kbytes
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(|node| NodeId(node as u8))
    }

    /// All zones as those outside see them, by node, from the lowest up.
    pub fn info(&self) -> impl Iterator<Item = ZoneInfo> {
        self.nodes().flat_map(|node| self.of_node(node).iter().rev().map(Zone::info))
    }

    /// A node's zones, from the highest down.
    pub fn of_node(&self, node: NodeId) -> &[Zone] {
        &self.zones[self.nodes[node.index()].zones.clone()]
    }

    fn of_node_mut(&mut self, node: NodeId) -> &mut [Zone] {
        &mut self.zones[self.nodes[node.index()].zones.clone()]
    }

    /// A zone that exists.
    pub fn zone(&self, node: NodeId, kind: ZoneType) -> &Zone {
        self.of_node(node).iter().find(|zone| zone.kind == kind).expect("who names a zone has seen it")
    }

    /// A zone of a node, which has it.
    pub fn zone_mut(&mut self, node: NodeId, kind: ZoneType) -> &mut Zone {
        self.of_node_mut(node)
            .iter_mut()
            .find(|zone| zone.kind == kind)
            .expect("who names a zone has seen it")
    }

    /// The zones that a request may use, in the order in which it tries them.
    pub fn zonelist(&self, node: NodeId, class: ZoneType, allowed: Nodemask) -> impl Iterator<Item = &Zone> {
        let zonelist = &self.nodes[node.index()].zonelist;
        let zones = zonelist.iter().map(|&at| &self.zones[at]);
        zones.filter(move |zone| zone.kind <= class && allowed.contains(zone.node))
    }

    /// The allowed node that is nearest to one.
    pub fn nearest(&self, node: NodeId, allowed: Nodemask) -> Option<NodeId> {
        self.zonelist(node, ZoneType::Movable, allowed).next().map(|zone| zone.node)
    }

    /// Returns whether a node's memory is in use.
    pub fn is_online(&self, node: NodeId) -> bool {
        self.nodes[node.index()].is_online
    }

    /// A node's memory comes into use or leaves it: from then on nothing is allocated from it. The caller handles the part in use.
    pub fn set_online(&mut self, node: NodeId, is_online: bool, config: &Config) {
        self.nodes[node.index()].is_online = is_online;
        for at in 0..self.nodes.len() {
            let order = node_order(&config.layout.distances, NodeId(at as u8), self.nodes.len());
            let online = order.into_iter().filter(|&node| self.is_online(node));
            self.nodes[at].zonelist =
                online.flat_map(|node| self.nodes[node.index()].zones.clone()).collect();
            self.set_first(NodeId(at as u8));
        }
    }

    /// Sets the zone at which a request that wants a node looks first.
    fn set_first(&mut self, node: NodeId) {
        let Node { zones, is_online, .. } = &self.nodes[node.index()];
        let is_used = *is_online && !self.passed_by.contains(node);
        let first = |class| zones.clone().find(|&zone| is_used && self.zones[zone].kind <= class);
        self.nodes[node.index()].first = ZoneType::ALL.map(first);
    }

    /// The first try of a request passes a node by from now on, or no more. On a machine with one node there is nothing else to try.
    pub fn pass_by(&mut self, node: NodeId, is_passed_by: bool) {
        if self.nodes.len() > 1 {
            self.passed_by.set(node, is_passed_by);
            self.set_first(node);
        }
    }

    /// Nodes that the first try of a request passes by.
    pub fn passed_by(&self) -> Nodemask {
        self.passed_by
    }

    /// A page that the CPU holds of the first zone of its node with any for the request, if that zone admits it at its low watermark. Otherwise
    /// nothing has changed.
    #[inline(always)]
    pub fn take_listed(
        &mut self,
        folios: &mut FolioTable,
        cpu: CpuId,
        request: &Request,
    ) -> Option<(&Zone, Pfn)> {
        let first = self.nodes[request.node.index()].first[request.class as usize]?;
        match self.zones[first].take_listed(folios, cpu, request) {
            Some(pfn) => Some((&self.zones[first], pfn)),
            None => self.take_listed_below(folios, cpu, request, first),
        }
    }

    /// A listed page of the second zone, as long as the first is left with bits of pageblocks of other types, or with too little.
    #[inline(never)]
    fn take_listed_below(
        &mut self,
        folios: &mut FolioTable,
        cpu: CpuId,
        request: &Request,
        first: usize,
    ) -> Option<(&Zone, Pfn)> {
        let second = first + 1;
        if !self.nodes[request.node.index()].zones.contains(&second)
            || !self.first_rights(request).contains(Rights::NOFRAGMENT)
        {
            return None;
        }
        let refusal = self.zones[first].refusal(cpu, request)?;
        let pfn = self.zones[second].take_listed(folios, cpu, request)?;
        self.zones[first].note_refusal(cpu, refusal);
        Some((&self.zones[second], pfn))
    }

    /// A block from the first zone that passes the mark. `None`: no zone does.
    #[inline]
    pub fn take(
        &mut self,
        folios: &mut FolioTable,
        cpu: CpuId,
        request: &Request,
        mark: Watermark,
        rights: Rights,
    ) -> Option<(&Zone, Pfn)> {
        let (at, pfn) = match self.walk(folios, cpu, request, mark, rights) {
            Some(found) => found,
            // Mixing types in near memory is better than far memory, and than none.
            None if rights.contains(Rights::NOFRAGMENT) => {
                self.walk(folios, cpu, request, mark, rights - Rights::NOFRAGMENT)?
            }
            None => return None,
        };
        Some((&self.zones[at], pfn))
    }

    /// One walk along the zonelist; returns which zone had a block. A request that may not mix types stays on its own node.
    #[doc(alias = "get_page_from_freelist")]
    #[inline]
    fn walk(
        &mut self,
        folios: &mut FolioTable,
        cpu: CpuId,
        request: &Request,
        mark: Watermark,
        rights: Rights,
    ) -> Option<(usize, Pfn)> {
        let is_near = request.gfp.contains(Gfp::THISNODE) || rights.contains(Rights::NOFRAGMENT);
        for &at in &self.nodes[request.node.index()].zonelist {
            let zone = &mut self.zones[at];
            if is_near && zone.node != request.node {
                return None;
            }
            if zone.kind > request.class
                || !request.allowed.contains(zone.node)
                || !zone.admits(request, mark, rights)
            {
                continue;
            }
            let taken = zone.take(folios, cpu, request.order, request.migrate_type, rights);
            if zone.buddy.is_mixing && zone.note_mixing(self.boost_factor) && rights.contains(Rights::KSWAPD)
            {
                self.boosted = Some(at);
            }
            if let Some(pfn) = taken {
                return Some((at, pfn));
            }
        }
        None
    }

    /// The rights of a request's first try. On a machine with memory below Normal, or with one node only, it leaves the pageblocks of other
    /// types alone as long as it can.
    #[inline]
    pub fn first_rights(&self, request: &Request) -> Rights {
        let mut rights = Rights::empty();
        rights.set(Rights::KSWAPD, request.gfp.contains(Gfp::KSWAPD_RECLAIM));
        let mut zonelist = self.nodes[request.node.index()].zonelist.iter().map(|&at| &self.zones[at]);
        let Some(preferred) = zonelist.find(|zone| zone.kind <= request.class) else { return rights };
        let has_lower =
            zonelist.next().is_some_and(|next| next.node == preferred.node && next.kind == ZoneType::Dma32);
        let keeps_apart = preferred.kind == ZoneType::Normal && (self.nodes.len() == 1 || has_lower);
        rights.set(Rights::NOFRAGMENT, keeps_apart);
        rights
    }

    /// A zone whose marks were raised by an allocation that may wake kswapd: once for each.
    pub fn take_boosted(&mut self) -> Option<(NodeId, ZoneType)> {
        self.boosted.take().map(|at| (self.zones[at].node, self.zones[at].kind))
    }

    /// Lowers boosts by the amount that a balance run has worked off.
    pub fn lower_boost(&mut self, node: NodeId, kind: ZoneType, pages: u64) {
        if let Some(zone) = self.of_node_mut(node).iter_mut().find(|zone| zone.kind == kind) {
            zone.boost = zone.boost.saturating_sub(pages);
        }
    }

    /// Says that the zones of a node up to a class are being balanced, or no more.
    pub fn set_reclaim_active(&mut self, node: NodeId, class: ZoneType, is_active: bool) {
        for zone in self.of_node_mut(node).iter_mut().filter(|zone| zone.kind <= class) {
            zone.reclaim_active = is_active;
        }
    }

    /// Takes back what CPUs hold of all zones.
    pub fn drain_all(&mut self, folios: &mut FolioTable) {
        self.zones.iter_mut().for_each(|zone| zone.drain(folios, None));
    }

    /// A CPU's housekeeping, once a second.
    pub fn refresh(&mut self, folios: &mut FolioTable, cpu: CpuId) {
        self.zones.iter_mut().for_each(|zone| zone.refresh(folios, cpu));
    }

    /// Gives pageblocks kept for requests that can't wait to a request that fails: one of each zone; false where there is none.
    pub fn release_highatomic(
        &mut self,
        folios: &mut FolioTable,
        request: &Request,
        even_last: bool,
    ) -> bool {
        let mut is_released = false;
        for &at in &self.nodes[request.node.index()].zonelist {
            let zone = &mut self.zones[at];
            if zone.kind <= request.class && request.allowed.contains(zone.node) {
                is_released |= zone.buddy.release_highatomic(folios, request.migrate_type, even_last);
            }
        }
        is_released
    }

    /// Takes back a freed block.
    #[inline]
    pub fn give_back(&mut self, folios: &mut FolioTable, cpu: CpuId, node: NodeId, pfn: Pfn, order: u8) {
        let at = self.place_of(node, pfn);
        self.zones[at].give_back(folios, cpu, pfn, order);
    }

    /// The zone that a frame of a node is in.
    pub fn zone_of(&self, node: NodeId, pfn: Pfn) -> &Zone {
        &self.zones[self.place_of(node, pfn)]
    }

    /// The position of a frame's zone among those of its node, which are numbered from the highest down.
    #[inline]
    pub fn rank_of(&self, node: NodeId, pfn: Pfn) -> usize {
        self.place_of(node, pfn) - self.nodes[node.index()].zones.start
    }

    /// The first rank among a node's zones that requests of a class may use: all from there on do. `None`: none does.
    pub fn first_rank(&self, node: NodeId, class: ZoneType) -> Option<usize> {
        self.of_node(node).iter().position(|zone| zone.kind <= class)
    }

    /// Pages of a zone come to lists that reclaim scans, or leave them.
    pub fn count_listed(&mut self, node: NodeId, rank: usize, kind: LruType, pages: i64) {
        let zone = &mut self.of_node_mut(node)[rank];
        zone.listed[kind as usize] += pages;
        let listed = zone.listed[kind as usize];
        debug_assert!(listed >= 0, "{listed} pages of {:?} of {node:?} are on lists", zone.kind);
        debug_assert!(
            listed <= zone.managed as i64,
            "{listed} pages of {:?} of {node:?} are on lists",
            zone.kind
        );
    }

    /// The node that a frame is on.
    #[inline]
    pub fn node_of(&self, pfn: Pfn) -> NodeId {
        let begins_by = |node: &Node| self.zones[node.zones.start].start <= pfn.0;
        let node =
            self.nodes.iter().rposition(begins_by).expect("the first node begins with the first frame");
        NodeId(node as u8)
    }

    #[inline]
    fn place_of(&self, node: NodeId, pfn: Pfn) -> usize {
        let Range { start, end } = self.nodes[node.index()].zones;
        (start..end)
            .rev()
            .find(|&at| self.zones[at].start <= pfn.0)
            .expect("a frame of a node is in one of its zones")
    }

    /// Free pages of a node.
    pub fn free_pages(&self, node: NodeId) -> u64 {
        self.of_node(node).iter().map(Zone::free_pages).sum()
    }

    /// Pages of a node that are free or on CPUs' lists; for assertions.
    #[inline(always)]
    pub fn all_free(&self, node: NodeId) -> u64 {
        if cfg!(debug_assertions) { self.of_node(node).iter().map(Zone::all_free).sum() } else { 0 }
    }

    /// Returns whether one of a node's zones has enough free pages for requests of this order and class: when kswapd may rest.
    pub fn is_balanced(&self, node: NodeId, order: u8, class: ZoneType) -> bool {
        let zones = || self.of_node(node).iter().filter(|zone| zone.kind <= class);
        zones().next().is_none()
            || zones().any(|zone| zone.watermark_ok(order, zone.mark(self.rest_mark), class, Rights::empty()))
    }

    /// Returns how far a node's free pages lie apart: the share of them, in percent, that are in no free pageblock. Zones count by their size.
    /// [machine 2.11]
    pub fn fragmentation_score(&self, node: NodeId) -> u64 {
        let zones = self.of_node(node);
        let present: u64 = zones.iter().map(|zone| zone.present).sum();
        zones.iter().map(|zone| zone.present * zone.scattered_percent()).sum::<u64>() / present.max(1)
    }

    /// Returns whether all of a node's zones up to a class have this many pages free above a watermark.
    pub fn is_beyond(&self, node: NodeId, class: ZoneType, mark: Watermark, pages: u64) -> bool {
        let mut zones = self.of_node(node).iter().filter(|zone| zone.kind <= class && zone.managed > 0);
        zones.all(|zone| zone.free_pages() > zone.mark(mark) + pages)
    }

    /// Pages that reserves and high watermarks keep from the page cache.
    pub fn total_reserve(&self) -> u64 {
        self.nodes().map(|node| self.node_reserve(node)).sum()
    }

    /// Pages that reserves and high marks of a node keep from the page cache.
    pub fn node_reserve(&self, node: NodeId) -> u64 {
        self.of_node(node).iter().map(Zone::total_reserve).sum()
    }

    /// Makes this the free memory of a zone. What was free there and is on none of its lists is the caller's from now on.
    pub fn set_free(
        &mut self,
        folios: &mut FolioTable,
        node: NodeId,
        kind: ZoneType,
        free: &FreeMemory,
        config: &Config,
    ) -> Result<Vec<Pfn>, String> {
        let zone = self.zone_mut(node, kind);
        zone.managed = u64::from(zone.end() - zone.start).saturating_sub(free.reserved);
        self.set_marks(config);
        self.zone_mut(node, kind).set_free(folios, free)
    }

    /// Takes a page of each of this many of a node's pageblocks permanently, evenly spread over all zones that the kernel may use for itself.
    pub fn take_scattered(&mut self, folios: &mut FolioTable, node: NodeId, count: u64) -> Vec<Pfn> {
        let blocks = |zone: &Zone| match zone.kind {
            ZoneType::Movable => 0,
            _ => zone.managed / PAGEBLOCK_PAGES,
        };
        let all: u64 = self.of_node(node).iter().map(blocks).sum();
        let share = |blocks: u64| (blocks * count).checked_div(all).unwrap_or(0);
        let (mut before, mut taken) = (0, Vec::new());
        for zone in self.of_node_mut(node) {
            let upto = before + blocks(zone);
            taken.append(&mut zone.take_scattered(folios, share(upto) - share(before)));
            before = upto;
        }
        taken
    }

    /// Every frame used since the start, for checkers.
    pub fn used_so_far(&self, node: NodeId) -> impl Iterator<Item = Pfn> {
        self.of_node(node).iter().flat_map(|zone| zone.buddy.used_so_far()).map(Pfn)
    }

    /// Free blocks among them with their orders: those of the zones and those that CPUs hold.
    pub fn free_blocks<'a>(
        &'a self,
        folios: &'a FolioTable,
        node: NodeId,
    ) -> impl Iterator<Item = (Pfn, u8)> + 'a {
        self.of_node(node)
            .iter()
            .flat_map(|zone| {
                let held = zone.pcps.iter().flatten().flat_map(|pcp| pcp.iter(folios));
                zone.buddy.iter(folios).map(|(pfn, order, _)| (pfn, order)).chain(held)
            })
            .map(|(pfn, order)| (Pfn(pfn), order))
    }

    /// Panics with what is wrong unless lists, records and counts of all zones agree.
    pub fn check_invariants(&self, folios: &FolioTable) {
        for zone in &self.zones {
            zone.buddy.check_invariants(folios);
            for pcp in zone.pcps.iter().flatten() {
                pcp.check_invariants(folios, &zone.pcp_sizes);
            }
        }
    }
}
