//! The free memory of the whole machine: zones of all nodes, the order in which a request tries them, and the fast path through them.
//!
//! ```text
//!   request ─▶ zonelist of its node ─┬─ zone above the request's class ── next
//!                                    ├─ below the mark ────────────────── next: remote memory is used before any is reclaimed
//!                                    └─ a block of its order ───────────▶ taken
//! ```
//! What no zone can give at the low mark is the slow path's business. It tries again with more rights, or makes room. [machine 2.6]

use crate::config::Config;
use crate::page_alloc::info::ZoneInfo;
use crate::page_alloc::request::{Gfp, Request, Rights};
use crate::page_alloc::watermark::{Watermark, min_free_kbytes, set_lowmem_reserves, set_marks};
use crate::page_alloc::zone::{Zone, ZoneType, next_node, zones_of};
use crate::page_alloc::zonelist::node_order;
use crate::units::{NodeId, Pfn, SECTION_FRAMES};
use std::ops::Range;

/// What belongs to a node.
struct Node {
    /// Its zones, by their places among all, from the highest down.
    zones: Range<usize>,
    /// The zones of all nodes in the order in which it uses them.
    zonelist: Vec<usize>,
}

/// All zones.
pub(crate) struct Zones {
    /// By node, and within one from the highest down: in the order of frame numbers.
    zones: Vec<Zone>,
    nodes: Vec<Node>,
    min_free_kbytes: u64,
}

impl Zones {
    pub(crate) fn new(config: &Config) -> Zones {
        let layout = &config.layout;
        let mut zones: Vec<Zone> = Vec::new();
        let mut ranges = Vec::new();
        let mut physical = 0;
        for (at, &pages) in config.node_pages.iter().enumerate() {
            let node = NodeId(at as u8);
            let of_node = zones_of(node, pages, physical, next_node(&zones), layout);
            let present: u64 = of_node.iter().map(|zone| zone.present).sum();
            physical = (physical + present).next_multiple_of(u64::from(SECTION_FRAMES));
            ranges.push(zones.len()..zones.len() + of_node.len());
            zones.extend(of_node);
        }
        let nodes = (0..ranges.len()).map(|at| {
            let order = node_order(&layout.distances, NodeId(at as u8), ranges.len());
            let zonelist = order.into_iter().flat_map(|node| ranges[node.index()].clone()).collect();
            Node { zones: ranges[at].clone(), zonelist }
        });
        let mut all = Zones { nodes: nodes.collect(), zones, min_free_kbytes: 0 };
        all.set_marks_at_boot(config);
        all
    }

    /// The memory of the kernel's own initialisation, in the lowest zone, is given back when marks are computed already.
    fn set_marks_at_boot(&mut self, config: &Config) {
        let of_init = config.layout.init_pages;
        let lowest = self.nodes[0].zones.end - 1;
        self.zones[lowest].managed -= of_init;
        set_lowmem_reserves(&mut self.zones, &config.layout.lowmem_reserve_ratio);
        self.min_free_kbytes = match config.min_free_kbytes {
            0 => min_free_kbytes(&self.zones, config.transparent_hugepage),
            given => given.into(),
        };
        set_marks(&mut self.zones, self.min_free_kbytes, config.watermark_scale_factor);
        self.zones[lowest].managed += of_init;
    }

    /// The same while it runs: what the administrator set has changed.
    pub(crate) fn set_marks(&mut self, config: &Config) {
        if config.min_free_kbytes > 0 {
            self.min_free_kbytes = config.min_free_kbytes.into();
        }
        set_marks(&mut self.zones, self.min_free_kbytes, config.watermark_scale_factor);
    }

    /// What all zones together keep free.
    pub(crate) fn min_free_kbytes(&self) -> u64 {
        self.min_free_kbytes
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(|node| NodeId(node as u8))
    }

    /// All zones as those outside see them, by node, from the lowest up.
    pub(crate) fn info(&self) -> impl Iterator<Item = ZoneInfo> {
        self.nodes().flat_map(|node| self.of_node(node).iter().rev().map(Zone::info))
    }

    /// A node's zones, from the highest down.
    pub(crate) fn of_node(&self, node: NodeId) -> &[Zone] {
        &self.zones[self.nodes[node.index()].zones.clone()]
    }

    /// The zones that a request may use, in the order in which it tries them.
    #[allow(dead_code)] // the slow path and kswapd ask
    pub(crate) fn zonelist(&self, node: NodeId, class: ZoneType) -> impl Iterator<Item = &Zone> {
        let zonelist = &self.nodes[node.index()].zonelist;
        zonelist.iter().map(|&at| &self.zones[at]).filter(move |zone| zone.kind <= class)
    }

    /// A block from the first zone that passes the mark. `None`: no zone does.
    #[inline]
    pub(crate) fn take(
        &mut self,
        request: &Request,
        mark: Watermark,
        rights: Rights,
    ) -> Option<(&Zone, Pfn)> {
        let &Request { order, class, gfp, node, .. } = request;
        let zonelist = &self.nodes[node.index()].zonelist;
        for &at in zonelist {
            let zone = &mut self.zones[at];
            if zone.kind > class || gfp.contains(Gfp::THISNODE) && zone.node != node {
                continue;
            }
            if !rights.contains(Rights::NO_WATERMARKS) && !zone.passes(order, mark, class, rights) {
                continue;
            }
            if let Some(pfn) = zone.frames.alloc(order) {
                return Some((&self.zones[at], pfn));
            }
        }
        None
    }

    /// Takes a block back.
    #[inline]
    pub(crate) fn give_back(&mut self, node: NodeId, pfn: Pfn, order: u8) {
        let at = self.place_of(node, pfn);
        self.zones[at].frames.free(pfn, order);
    }

    /// The zone of a frame.
    #[allow(dead_code)] // the slow path and kswapd ask
    pub(crate) fn zone_of(&self, node: NodeId, pfn: Pfn) -> &Zone {
        &self.zones[self.place_of(node, pfn)]
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
    pub(crate) fn free_pages(&self, node: NodeId) -> u64 {
        self.of_node(node).iter().map(Zone::free_pages).sum()
    }

    /// Whether one of a node's zones has enough free pages for requests of this order and class: when kswapd may rest.
    #[allow(dead_code)] // the slow path and kswapd ask
    pub(crate) fn is_balanced(&self, node: NodeId, order: u8, class: ZoneType) -> bool {
        let zones = || self.of_node(node).iter().filter(|zone| zone.kind <= class);
        zones().next().is_none()
            || zones()
                .any(|zone| zone.watermark_ok(order, zone.mark(Watermark::High), class, Rights::empty()))
    }

    /// Pages that reserves and high marks keep from the page cache.
    pub(crate) fn total_reserve(&self) -> u64 {
        self.zones.iter().map(Zone::total_reserve).sum()
    }

    /// Every frame in use or freed since, for checkers.
    pub(crate) fn handed_out(&self, node: NodeId) -> impl Iterator<Item = Pfn> {
        self.of_node(node).iter().flat_map(|zone| zone.frames.handed_out())
    }

    /// Free blocks, for checkers.
    pub(crate) fn free_blocks(&self, node: NodeId) -> impl Iterator<Item = (Pfn, u8)> {
        self.of_node(node).iter().flat_map(|zone| zone.frames.free_blocks())
    }
}
