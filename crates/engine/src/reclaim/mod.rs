//! The core of reclaim, which knows no LRU: a call on behalf of a group, walked down its subtree, priority by priority.
//!
//! ```text
//!   Reclaim (call)          target: a group and a number of pages
//!     priority 12 .. 0      scan lists >> priority: gently first, everything at last
//!       pool                `prepare_pool`: costs, and what the LRU makes of the target's state
//!         memcg             protection; skip, or a pass over its lruvec
//!           round           one batch of each list: the LRU's code; then the machine may let time pass
//! ```
//! A call is a state machine only at the level of rounds: [`Core::reclaim_step`] runs one and returns. Device completions and
//! other tasks come in between, as on a real machine. A round itself is plain code.
//!
//! This module covers reclaim for a group's own limit and `memory.reclaim`. [reclaim 2.1, 2.2, 2.13 and their 6.12 form]
//! Throttling on congestion needs dirty file pages and comes with writeback.

mod reclaimer; // who reclaims, why, where, and what it may do
mod scan_control; // what a call wants and has done so far
mod isolate; // a batch leaves its list
mod shrink; // what happens to every batch
mod shrink_list; // the verdict on a folio
mod user; // reclaim that a user asks for
pub(crate) mod rules; // eras and remedies, as data

use crate::core::Core;
use crate::lru::lruvec::PoolId;
use crate::lru::{Pass, Round};
use crate::memcg::MemcgEvent;
use crate::units::{MemcgId, NodeId};
pub(crate) use reclaimer::{Reclaimer, Why};
pub use rules::{FlushRule, ReclaimRules};
pub(crate) use scan_control::{PRIORITY_DEFAULT, ScanControl};
pub(crate) use shrink_list::FolioReferences;
pub(crate) use user::{UserReclaim, UserReclaimStep};

/// A reclaim call under way.
pub(crate) struct Reclaim {
    sc: ScanControl,
    /// The pool being shrunk and the groups still to visit in it, in reverse order.
    pool: PoolId,
    groups: Vec<MemcgId>,
    /// The pass under way.
    pass: Option<(MemcgId, Pass)>,
    stage: ReclaimStage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReclaimStage {
    /// Start scanning at the present priority from the first pool.
    Priority,
    /// Visit the groups left.
    Groups,
}

/// What a step of reclaim came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReclaimStep {
    /// A round is over; there is more to do.
    Again,
    /// The call is over; so many pages were reclaimed.
    Done(u64),
}

impl Reclaim {
    pub(crate) fn new(sc: ScanControl) -> Box<Reclaim> {
        Box::new(Reclaim {
            sc,
            pool: PoolId::of_node(NodeId(0)),
            groups: Vec::new(),
            pass: None,
            stage: ReclaimStage::Priority,
        })
    }
}

impl Core {
    /// Runs a reclaim call up to the end of a round that did something.
    pub(crate) fn reclaim_step(&mut self, call: &mut Reclaim) -> ReclaimStep {
        loop {
            if let Some((memcg, pass)) = &mut call.pass {
                let lruvec = self.lruvecs.id(*memcg, call.pool);
                let looked_at_before = self.looked_at;
                if self.pass_round(lruvec, pass, &mut call.sc) == Round::Last {
                    self.unplug(&mut call.sc.plug);
                    self.shrink_shadow_nodes(lruvec);
                    self.memcgs[call.sc.by.target].visited_last[call.pool.index()] = Some(*memcg);
                    call.pass = None;
                    if call.sc.is_satisfied() && !call.sc.all_groups {
                        // Reclaimers share the walk and stop when they have what they need: visiting every group of a
                        // large tree for a few pages would cost more than the unfairness that this leaves to the next.
                        call.groups.clear();
                    }
                }
                if self.looked_at > looked_at_before {
                    return ReclaimStep::Again;
                }
                continue;
            }
            match call.stage {
                ReclaimStage::Priority => {
                    call.pool = self.first_pool(&call.sc);
                    self.prepare_pool(call);
                    call.stage = ReclaimStage::Groups;
                }
                ReclaimStage::Groups => {
                    if let Some(memcg) = call.groups.pop() {
                        self.begin_group(call, memcg);
                    } else if let Some(next) = self.lruvecs.next_pool(Some(call.pool), call.sc.by.node) {
                        call.pool = next;
                        self.prepare_pool(call);
                    } else if let Some(step) = self.next_priority(call) {
                        return step;
                    }
                }
            }
        }
    }

    fn first_pool(&self, sc: &ScanControl) -> PoolId {
        self.lruvecs.next_pool(None, sc.by.node).expect("a reclaimer's node is one of the machine's")
    }

    /// Decides for a pool, by the target's lruvec of it, what the passes below may do.
    fn prepare_pool(&mut self, call: &mut Reclaim) {
        let sc = &mut call.sc;
        // Only if the worker is late; see `stat/flush.rs`.
        self.flush_stats_ratelimited();
        let target = self.lruvecs.id(sc.by.target, call.pool);
        sc.cost = self.lruvecs[target].cost;
        self.lru_prepare(target, sc);
        call.groups = self.memcgs.shared_group_walk(sc.by.target, call.pool);
        call.groups.reverse();
    }

    /// Starts a pass over a group's lruvec unless the group is protected.
    fn begin_group(&mut self, call: &mut Reclaim, memcg: MemcgId) {
        let sc = &mut call.sc;
        let protection = self.memcgs.protection(sc.by.target, memcg);
        let usage = self.memcgs[memcg].usage;
        if memcg != sc.by.target && protection.min > 0 && protection.min >= usage {
            return;
        }
        if memcg != sc.by.target && protection.low > 0 && protection.low >= usage {
            if !sc.low_reclaim {
                sc.low_skipped = true;
                return;
            }
            self.memcgs.event(memcg, MemcgEvent::Low);
        }
        let lruvec = self.lruvecs.id(memcg, call.pool);
        let pass = self.begin_pass(lruvec, sc);
        call.pass = Some((memcg, pass));
    }

    /// All pools have been shrunk at this priority. Goes on with more pressure, or another way, or ends the call.
    fn next_priority(&mut self, call: &mut Reclaim) -> Option<ReclaimStep> {
        let sc = &mut call.sc;
        call.stage = ReclaimStage::Priority;
        if !sc.is_satisfied() && sc.priority > 0 {
            sc.priority -= 1;
            return None;
        }
        for pool in self.lruvecs.pools() {
            self.workingset_end_cycle(self.lruvecs.id(sc.by.target, pool));
        }
        if sc.nr_reclaimed == 0 {
            let rules = self.memcgs[sc.by.target].policy.reclaim;
            if rules.drain_before_giving_up && !sc.has_drained && self.lru_add_pending() {
                self.lru_add_drain();
                sc.has_drained = true;
                sc.priority = PRIORITY_DEFAULT;
                return None;
            }
            if sc.try_harder() {
                return None;
            }
            if rules.flush_after_failure {
                self.flush_memcg_stats(sc.by.target);
            }
        }
        self.work.reclaim_calls += 1;
        Some(ReclaimStep::Done(sc.nr_reclaimed))
    }
}
