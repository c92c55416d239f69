//! The reclaim call, for a memcg or for the whole machine, priority by priority. It knows no LRU: each LRU brings its own pass.
//!
//! ```text
//!   Reclaim (call)          target: a group and a number of pages
//!     priority 12 .. 0      scan lists >> priority: gently first, everything at last
//!       node                `node.rs`: costs, what the LRU makes of the target's state, which groups
//!         memcg             protection; skip, or a pass over its lruvec
//!           round           one batch of each list: the LRU's code; then the machine may let time pass
//! ```
//! A call is a state machine only at the level of rounds: [`Core::reclaim_step`] runs one and returns. Device completions and
//! other tasks come in between, as on a real machine. A round itself is plain code. kswapd makes passes over its node by rules of
//! its own (`kswapd.rs`).
//!
//! [reclaim 2.1, 2.2, 2.13; machine 3]

mod reclaimer; // who reclaims, why, where, and what it may do
mod scan_control; // what a call wants and has done so far
mod node; // one pass over a node: which groups, one after the other
mod soft_limit; // groups that give before that
mod direct; // a task that needs a page frees some itself
mod node_reclaim; // it frees some of a near node before it uses a far one
mod kswapd; // one thread a node frees some in advance
mod throttle; // reclaimers that wait for others
mod tally; // what they have met of dirty pages, and what they do about it
mod prepare; // what the target's state allows
mod shrink_lruvec; // a pass over one group's lists, batch by batch
mod isolate; // a batch leaves its list
mod next_batch; // while one is judged, the next comes out of memory
mod shrink; // what happens to every batch
mod shrink_list; // the verdict on a folio
mod large; // large folios on their way to swap
mod lumpy; // whole blocks of pages at once, as before there was compaction
mod demote; // what goes to slower memory instead
mod pageout; // who writes dirty pages, and what becomes of the others
mod user; // reclaim that a user asks for
mod pages; // pages that their owner swaps out
mod madvise; // advice on pages that acts immediately
mod shrinker; // how much is asked of what the kernel caches

use crate::core::Core;
use crate::machine::step::Wait;
use crate::page_alloc::zone::Zone;
use crate::state::State;
use crate::story::Tracepoint;
use crate::units::NodeId;
pub(crate) use direct::DirectReclaim;
pub use kswapd::KswapdActivity;
pub(crate) use kswapd::{Kswapd, KswapdThread};
pub(crate) use lumpy::{HeldBlocks, Lumpy};
pub use madvise::PageAdvice;
pub(crate) use madvise::{Advised, Madvise};
pub(crate) use node::{NodePass, NodeStep};
pub(crate) use node_reclaim::{NearFirst, NearStep};
pub use pageout::Pageouts;
pub(crate) use reclaimer::{Reclaimer, Why};
pub(crate) use scan_control::{PRIORITY_DEFAULT, ScanControl};
pub(crate) use shrinker::ShrinkerCall;
pub(crate) use tally::{NodeWrites, Tally};
pub use throttle::ThrottleReason;
pub(crate) use throttle::Throttled;
pub(crate) use user::{UserReclaim, UserReclaimStep};

/// A reclaim call in progress.
pub(crate) struct Reclaim {
    sc: ScanControl,
    /// The nodes still to shrink at this priority, in reverse order.
    nodes: Vec<NodeId>,
    /// The pass in progress.
    node: Option<NodePass>,
    has_begun: bool,
}

/// The outcome of one step of a reclaim call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReclaimStep {
    /// A round is over; there is more to do.
    Again,
    /// The reclaimer has to wait for others.
    Wait(Wait),
    /// The call is over; this many pages were reclaimed.
    Done(u64),
}

impl Reclaim {
    pub(crate) fn new(sc: ScanControl) -> Box<Reclaim> {
        Box::new(Reclaim { sc, nodes: Vec::new(), node: None, has_begun: false })
    }

    /// Makes a call that is over another one. It keeps its list.
    fn begin_anew(&mut self, sc: ScanControl) {
        self.nodes.clear();
        (self.sc, self.node, self.has_begun) = (sc, None, false);
    }

    /// Makes the call end as soon as it may: whatever it has reclaimed is enough.
    pub(crate) fn cut_short(&mut self) {
        self.sc.nr_to_reclaim = 0;
    }

    /// Ends the call at once: not even its pass goes on.
    fn interrupt(&mut self) {
        self.cut_short();
        self.sc.is_interrupted = true;
    }
}

impl Core {
    /// Runs a reclaim call up to the end of a round that did something.
    #[doc(alias = "do_try_to_free_pages")]
    pub(crate) fn reclaim_step(&mut self, call: &mut Reclaim) -> ReclaimStep {
        self.mm.release_isolated(&mut call.sc);
        if !std::mem::replace(&mut call.has_begun, true) {
            self.mm.spare_disk(&mut call.sc);
            let node = call.sc.by.node.unwrap_or(NodeId(0));
            self.trace(node, |_| Tracepoint::reclaim_begin(&call.sc));
        }
        self.leave_throttle(&mut call.sc);
        self.leave_stall(&mut call.sc);
        loop {
            if let Some(node) = &mut call.node {
                match self.node_step(node, &mut call.sc) {
                    NodeStep::Again => return ReclaimStep::Again,
                    NodeStep::Wait(wait) => return ReclaimStep::Wait(wait),
                    NodeStep::Over => {
                        call.node = None;
                        if call.nodes.is_empty()
                            && let Some(step) = self.next_priority(call)
                        {
                            return step;
                        }
                    }
                }
            } else {
                if call.nodes.is_empty() {
                    self.mm.list_nodes(&mut call.sc, &mut call.nodes);
                }
                match call.nodes.pop() {
                    Some(node) => call.node = Some(self.node_pass(node, &mut call.sc)),
                    // Compaction can go on everywhere.
                    None => {
                        if let Some(step) = self.next_priority(call) {
                            return step;
                        }
                    }
                }
            }
        }
    }

    /// All nodes have been shrunk at this priority. Goes on with more pressure, or another way, or ends the call.
    fn next_priority(&mut self, call: &mut Reclaim) -> Option<ReclaimStep> {
        let sc = &mut call.sc;
        self.mm.stop_sparing_disk(sc);
        let wait = self.note_progress(sc.by.from.or(sc.by.node).unwrap_or(NodeId(0)), sc);
        if !sc.is_satisfied() && !sc.compaction_ready && sc.priority > 0 {
            let wait = self.stall_of_2010(sc).or(wait);
            assert!(sc.nr_reclaimed < sc.nr_to_reclaim, "a call goes on that has what it wants");
            sc.priority -= 1;
            return wait.map(ReclaimStep::Wait);
        }
        if sc.by.why == Why::Node {
            // Others have memory: what was held back is not worth it.
            return Some(self.end_call(sc));
        }
        for node in self.mm.lruvecs.nodes() {
            let target = self.mm.lruvecs.id(sc.by.target, node);
            self.workingset_end_cycle(target);
            self.mm.lruvecs[target].is_group_congested = false;
        }
        if sc.nr_reclaimed == 0 && !sc.compaction_ready {
            let rules = self.mm.memcgs[sc.by.target].policy.reclaim;
            if rules.drain_before_giving_up
                && !sc.is_interrupted
                && !sc.effort.has_drained
                && self.lru_add_pending()
            {
                self.lru_add_drain();
                sc.effort.has_drained = true;
                sc.priority = PRIORITY_DEFAULT;
                return None;
            }
            if sc.try_harder(rules.tree_walk) {
                return None;
            }
            if rules.flush_after_failure {
                self.flush_memcg_stats(sc.by.target);
            }
        }
        Some(self.end_call(sc))
    }

    fn end_call(&mut self, sc: &mut ScanControl) -> ReclaimStep {
        self.mm.release_isolated(sc);
        assert!(sc.hands.split.is_empty(), "a call ends with single pages of a huge one in hand");
        assert!(sc.hands.held_blocks.is_none() || sc.is_interrupted, "a call ends with isolated blocks");
        self.out.count.reclaim_calls(1);
        self.trace(sc.by.node.unwrap_or(NodeId(0)), |_| Tracepoint::reclaim_end(sc));
        // That compaction can go on is progress, too.
        ReclaimStep::Done(sc.nr_reclaimed.max(sc.compaction_ready.into()))
    }
}

impl State {
    /// Lists the nodes that a reclaimer shrinks, last first: those that it may allocate from, in the order in which it tries them. Zones in which
    /// compaction can make the large block that it wants are left alone.
    fn list_nodes(&self, sc: &mut ScanControl, nodes: &mut Vec<NodeId>) {
        if let Some(from) = sc.by.from {
            let ready = sc.by.costly_block().filter(|_| !self.makes_blocks_by_reclaim());
            let is_ready = |zone: &&Zone| ready.is_some_and(|wanted| zone.is_ready_to_compact(&wanted));
            let zones = || self.memory.zones.zonelist(from, sc.by.class, sc.by.allowed);
            sc.compaction_ready = zones().any(|zone| is_ready(&zone));
            nodes.extend(zones().filter(|zone| !is_ready(zone)).map(|zone| zone.node));
            nodes.dedup();
        } else {
            match sc.by.node {
                Some(node) => nodes.push(node),
                None => nodes.extend(self.lruvecs.nodes()),
            }
        }
        nodes.reverse();
    }
}
