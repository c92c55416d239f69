//! The fast path of the page allocator: the tries of a request before the slow path, and the counters that a page taken moves.
//! [machine 2.6, 2.7]

use crate::core::Core;
use crate::page_alloc::request::{Gfp, Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::stat::{PGALLOC, Stat};
use crate::state::State;
use crate::story::GfpFlags;
use crate::units::ZoneType;
use crate::units::{CpuId, MemcgId, Nanos, NodeId, Nodemask, Pfn};

impl Core {
    /// Pages for a request, if a zone can give them and stay above its low watermark. If not, the slow path
    /// goes on ([`Core::allocation`]).
    #[inline]
    pub(crate) fn alloc_pages(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        if self.mm.reclaims_near(request) {
            return self.alloc_near(request, memcg);
        }
        self.alloc_anywhere(request, memcg)
    }

    /// Pages from the node that is wanted. Before others are tried it would be reclaimed, which takes time ([`Core::near_step`]).
    #[cold]
    fn alloc_near(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        let near = Nodemask::of([request.node]);
        self.alloc_anywhere(&Request { allowed: request.allowed & near, ..*request }, memcg)
    }

    /// Pages for a request that can't wait: from any node, before one is reclaimed.
    #[inline]
    pub(crate) fn alloc_anywhere(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        if request.gfp.contains(Gfp::WRITE) && self.mm.keeps_node_limits() {
            return self.alloc_to_write(request, memcg);
        }
        match self.alloc_listed(request, memcg) {
            Some(pfn) => Some(pfn),
            None => self.alloc_from_zones(request, memcg),
        }
    }

    /// The usual end of a request: a page off the CPU's list of the first zone, which has plenty, or of the second zone where the first is
    /// used up. `None`, with nothing changed, where a look at the zones has to decide.
    #[inline(always)]
    pub(crate) fn alloc_listed(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        self.refresh_lists();
        let (zone, pfn) = self.mm.memory.alloc_listed(self.by.cpu, request, memcg)?;
        let node = self.mm.memory.folios[pfn].node;
        self.count_allocated(request, node, zone, 1);
        Some(pfn)
    }

    /// Counts a request by what it got, and by the node that it wanted it of.
    #[inline(always)]
    fn count_allocated(&mut self, request: &Request, got: NodeId, zone: ZoneType, pages: i64) {
        let is_local = got == self.current_node();
        let counters = &mut self.mm.vmstat[got.index()];
        counters[PGALLOC[zone as usize] as usize] += pages;
        counters[if is_local { Stat::NumaLocal } else { Stat::NumaOther } as usize] += 1;
        if got == request.node {
            counters[Stat::NumaHit as usize] += 1;
            counters[Stat::NumaInterleave as usize] += i64::from(request.is_interleaved);
        } else {
            counters[Stat::NumaMiss as usize] += 1;
            self.mm.vmstat[request.node.index()][Stat::NumaForeign as usize] += 1;
        }
    }

    /// A page that will be written, from a node below its dirty limit. The limit of all nodes together is for the
    /// writers to observe, and the slow path doesn't check it. [machine 2.6]
    #[cold]
    #[inline(never)]
    fn alloc_to_write(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        let is_near_over = self.mm.is_over_dirty_limit(request.node);
        if !is_near_over && let Some(pfn) = self.alloc_listed(request, memcg) {
            return Some(pfn);
        }
        let below = self.mm.memory.nodes().filter(|&node| !self.mm.is_over_dirty_limit(node));
        let allowed = request.allowed & Nodemask::of(below);
        self.alloc_from_zones(&Request { allowed, ..*request }, memcg)
    }

    #[inline(never)]
    fn alloc_from_zones(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        let first = self.mm.memory.zones.first_rights(request);
        let passed_by = self.mm.memory.zones.passed_by();
        if !passed_by.is_empty() {
            let others = Request { allowed: request.allowed & !passed_by, ..*request };
            if let Some(pfn) = self.try_alloc(&others, Watermark::Low, first, memcg) {
                return Some(pfn);
            }
        }
        self.try_alloc(request, Watermark::Low, first, memcg)
    }

    /// A CPU looks after the pages that it holds every second, as long as it has something to do.
    #[inline(always)]
    pub(crate) fn refresh_lists(&mut self) {
        if self.by.now >= self.mm.cpus[self.by.cpu.index()].refresh_at {
            self.refresh_lists_now();
        }
    }

    // Out of the way of a miss, each of which asks.
    #[cold]
    #[inline(never)]
    fn refresh_lists_now(&mut self) {
        self.mm.cpus[self.by.cpu.index()].refresh_at = self.by.now + Nanos::SECOND;
        self.mm.memory.refresh_lists(self.by.cpu);
        self.mm.give_back_records();
    }

    /// One walk over the zones of a request's list. `None`: none of them passes the mark.
    #[inline]
    pub(crate) fn try_alloc(
        &mut self,
        request: &Request,
        mark: Watermark,
        rights: Rights,
        memcg: MemcgId,
    ) -> Option<Pfn> {
        let allocated = self.mm.memory.alloc(self.by.cpu, request, mark, rights, memcg);
        if let Some((node, class)) = self.mm.memory.zones.take_boosted() {
            self.wake_kswapd(node, 0, class, GfpFlags::None);
        }
        let (zone, pfn) = allocated?;
        let node = self.mm.memory.folios[pfn].node;
        self.count_allocated(request, node, zone, 1 << request.order);
        Some(pfn)
    }

    /// The block that a request has just made in a zone by compaction.
    pub(crate) fn capture(
        &mut self,
        node: NodeId,
        zone: ZoneType,
        request: &Request,
        memcg: MemcgId,
    ) -> Option<Pfn> {
        let pfn = self.mm.memory.capture(node, zone, request, memcg)?;
        self.count_allocated(request, node, zone, 1 << request.order);
        Some(pfn)
    }
}

impl State {
    /// Gives back what arrays by frame hold of blocks that are free, where that is worth moving the rest.
    fn give_back_records(&mut self) {
        if self.memory.folios.largest.is_worth_giving_back() {
            self.give_back_records_now();
        }
    }

    #[cold]
    pub(crate) fn give_back_records_now(&mut self) {
        self.numa_balancing.give_back(&self.memory.folios.largest);
        self.memory.give_back();
    }

    /// All CPUs do that now, because someone wants to see figures that are up to date.
    pub(crate) fn refresh_all_lists(&mut self) {
        for cpu in 0..self.config.cpus {
            self.memory.refresh_lists(CpuId(cpu));
        }
        self.give_back_records();
    }
}
