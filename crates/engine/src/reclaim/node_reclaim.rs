//! Node reclaim (`vm.zone_reclaim_mode`): a near node is reclaimed from before an allocation goes to a far one.
//!
//! ```text
//!   a request, node by node in the order of its zonelist
//!     a zone above its low mark ─────────────────────────────────────────────────────────────────────────► a page
//!     none, but the node is near, and has enough that may go ─► reclaim of it, from priority 4 ─► once more ─► a page
//!     else: the next node; after the last one the slow path, as without
//! ```
//! Without it, an allocation uses memory of another node before anything is reclaimed. Reading from there costs a little each time, while
//! reading from a disk costs a thousand times as much.
//!
//! Node reclaim is for machines whose work is divided so that each part fits into its node. Elsewhere it is known for one complaint: a
//! server keeps only as much of its files in memory as one node holds, while another is half empty.
//!
//! Bits of the mode: 1 turns it on, 2 lets it write dirty pages, 4 lets it unmap and swap. With 1 alone only clean, unmapped file pages
//! are evicted, and only if there are more of them than `vm.min_unmapped_ratio` of the node. A task reads and writes the rest anyway, and
//! a task that took those pages from itself each time would never finish. The kernel's documentation of `/proc/sys/vm` has the knobs.
//! [machine 2.6, 4.2; reclaim 2.1, 7, 8.1]
//!
//! The sources specify how much it reclaims (2^order pages, a batch at least), the priority at which it begins, its counters and its
//! tracepoints. The following rules are a guess:
//!
//! - Near is up to a distance of 30 (`RECLAIM_DISTANCE`), from the node of the request.
//! - A node with processors is left to tasks that run there: other tasks would take the pages that those use.
//! - It continues to priority 0 if necessary, and gives up then. It waits only as any reclaimer waits.
//! - It has succeeded if it has freed as many pages as were requested, whether the request then gets them or not.
//! - Only requests that may reclaim for themselves do so, and not in the middle of reclaim.
//! - MGLRU frees nothing for a reclaimer that may not write or not unmap, as in all such passes [machine 3.3]; so with any mode except 7
//!   it always fails there.
//!
//! Left out: `vm.min_slab_ratio`, because no kernel cache is reclaimed alone here; the rule that one task at a time reclaims a node.

use std::collections::VecDeque;

use crate::core::Core;
use crate::machine::step::Wait;
use crate::page_alloc::request::{Gfp, Request};
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zonelist::distance;
use crate::reclaim::{Reclaim, ReclaimStep, Reclaimer, ScanControl, Why};
use crate::stat::Stat;
use crate::state::State;
use crate::story::ListsEvent;
use crate::units::{MemcgId, NodeId, Nodemask, Pfn};

/// The bits of `vm.zone_reclaim_mode`.
const RECLAIM: u8 = 1;
const WRITE: u8 = 2;
const UNMAP: u8 = 4;

/// How hard it begins: a call is for a batch, and the next node is not far.
const PRIORITY: u8 = 4;
/// A node farther away than this is not reclaimed: the next one is used instead.
const RECLAIM_DISTANCE: u8 = 30;

/// A request on its way from node to node.
pub(crate) struct NearFirst {
    nodes: VecDeque<NodeId>,
    call: Option<Box<Reclaim>>,
}

/// The outcome of one step of node reclaim for a request.
pub(crate) enum NearStep {
    Page(Pfn),
    /// A round of reclaim is over.
    Again,
    /// The call has to wait for others.
    Wait(Wait),
    /// No node has a page above its low watermark.
    Over,
}

impl NearFirst {
    pub(crate) fn in_reclaim(&self) -> bool {
        self.call.is_some()
    }

    /// The task that allocates is to die.
    pub(crate) fn cut_short(&mut self) {
        if let Some(call) = &mut self.call {
            call.cut_short();
        }
    }
}

impl Core {
    /// Takes a request on to a page, or up to the end of a round of reclaim that did something.
    #[doc(alias = "node_reclaim")]
    pub(crate) fn near_step(&mut self, near: &mut NearFirst, request: &Request, memcg: MemcgId) -> NearStep {
        while let Some(&node) = near.nodes.front() {
            let Some(call) = &mut near.call else {
                if let Some(pfn) = self.alloc_on(node, request, memcg) {
                    return NearStep::Page(pfn);
                }
                match self.is_to_reclaim(node, request) {
                    true => near.call = Some(self.node_reclaim_begin(node, request)),
                    false => _ = near.nodes.pop_front(),
                }
                continue;
            };
            let reclaimed = match self.reclaim_step(call) {
                ReclaimStep::Again => return NearStep::Again,
                ReclaimStep::Wait(wait) => return NearStep::Wait(wait),
                ReclaimStep::Done(reclaimed) => reclaimed,
            };
            near.call = None;
            let has_enough = reclaimed >= 1 << request.order;
            let counter = if has_enough { Stat::ZoneReclaimSuccess } else { Stat::ZoneReclaimFailed };
            self.mm.count_node(node, counter, 1);
            if let Some(pfn) = self.alloc_on(node, request, memcg) {
                return NearStep::Page(pfn);
            }
            near.nodes.pop_front();
        }
        NearStep::Over
    }

    /// Allocates a page of a node above its low watermark; a page that will be written, only if the node is below its dirty limit.
    fn alloc_on(&mut self, node: NodeId, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        let will_be_written = request.gfp.contains(Gfp::WRITE) && self.mm.keeps_node_limits();
        if will_be_written && self.mm.is_over_dirty_limit(node) {
            return None;
        }
        let only = Request { allowed: Nodemask::of([node]), ..*request };
        let rights = self.mm.memory.zones.first_rights(request);
        self.try_alloc(&only, Watermark::Low, rights, memcg)
    }

    fn is_to_reclaim(&self, node: NodeId, request: &Request) -> bool {
        let is_near = distance(&self.mm.config.layout.distances, request.node, node) <= RECLAIM_DISTANCE;
        let is_of_others = node != self.current_node()
            && !self.mm.config.layout.cpus_of_node(node, self.mm.config.cpus).is_empty();
        is_near && !is_of_others && self.mm.has_enough_unmapped(node)
    }

    fn node_reclaim_begin(&mut self, node: NodeId, request: &Request) -> Box<Reclaim> {
        let by = Reclaimer {
            node: Some(node),
            may_enter_fs: request.gfp.contains(Gfp::FS),
            may_do_io: request.gfp.contains(Gfp::IO),
            writes_file: request.gfp.contains(Gfp::WRITE),
            order: request.order,
            class: request.class,
            allowed: request.allowed,
            ..Reclaimer::new(MemcgId::ROOT, Why::Node, self.mm.config.swappiness)
        };
        let mode = self.mm.config.zone_reclaim_mode;
        if self.is_telling() {
            for memcg in self.mm.memcgs.ids() {
                let lruvec = self.mm.lruvecs.id(memcg, node);
                self.tell_lists(lruvec, |_| ListsEvent::NearNode { mode });
            }
        }
        let mut sc = ScanControl::new(by, self.mm.config.reclaim_batch.max(1 << request.order));
        sc.priority = PRIORITY;
        (sc.means.may_write, sc.means.may_unmap, sc.means.may_swap) =
            (mode & WRITE != 0, mode & UNMAP != 0, mode & UNMAP != 0);
        Reclaim::new(sc)
    }
}

impl State {
    /// Returns true if a request has near nodes reclaimed before it uses others.
    #[inline]
    pub(crate) fn reclaims_near(&self, request: &Request) -> bool {
        self.config.zone_reclaim_mode & RECLAIM != 0
            && request.gfp.contains(Gfp::DIRECT_RECLAIM)
            && !request.gfp.contains(Gfp::MEMALLOC)
    }

    pub(crate) fn near_first(&self, request: &Request) -> NearFirst {
        let allowed = match request.gfp.contains(Gfp::THISNODE) {
            true => request.allowed & Nodemask::of([request.node]),
            false => request.allowed,
        };
        let zones = self.memory.zones.zonelist(request.node, request.class, allowed);
        let mut nodes: Vec<NodeId> = zones.map(|zone| zone.node).collect();
        nodes.dedup();
        NearFirst { nodes: nodes.into(), call: None }
    }

    /// Returns true if a node has more pages that may go than are worth being left in peace.
    pub(crate) fn has_enough_unmapped(&self, node: NodeId) -> bool {
        let stat = |stat| self.node_stat(node, stat).max(0) as u64;
        let mode = self.config.zone_reclaim_mode;
        let mut pages = match mode & UNMAP != 0 {
            true => stat(Stat::NrFilePages),
            false => {
                let on_lists = stat(Stat::NrInactiveFile) + stat(Stat::NrActiveFile);
                on_lists.saturating_sub(stat(Stat::NrMapped))
            }
        };
        if mode & WRITE == 0 {
            pages = pages.saturating_sub(stat(Stat::NrDirty));
        }
        let managed: u64 = self.memory.zones.of_node(node).iter().map(|zone| zone.managed).sum();
        pages > managed * u64::from(self.config.min_unmapped_ratio) / 100
    }
}
