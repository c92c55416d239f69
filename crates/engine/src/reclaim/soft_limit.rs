//! Soft limits of cgroup v1 (`memory.soft_limit_in_bytes`): memcgs above theirs are reclaimed from before any other.
//!
//! ```text
//!   a pass over a node, for the machine (kswapd, direct reclaim)
//!     while it wants more: the group that is farthest above its soft limit ─► a call of its own: a batch, from all that it has
//!     then the walk of groups, as without soft limits
//! ```
//! Limits by which each group gets what it is promised leave memory idle while some groups don't use theirs. A soft limit lets a group
//! have all free memory, and takes it back if memory is short. It does not promise anything to the other groups: at other times reclaim
//! ignores it.
//!
//! The sources specify that soft-limit reclaim comes before the walk, its tracepoints, and that it writes nothing in the series of 2010
//! [machine 9.3, 9.4; reclaim 8.1]. The documentation of cgroup v1 states that groups are pushed back to their soft limits under
//! contention. The following rules are a guess from that purpose:
//!
//! - The group farthest above its soft limit goes first, by pages, descendants included. So the excess is evened out rather than taken
//!   from the first group.
//! - A call takes a batch, and no more than the group is above. Then the next group is chosen, which may be the same. A call that
//!   takes nothing is the last for its group in this pass.
//! - It looks at lists as a whole (priority 0). A 4096th of a small group is nothing, and it shall give however small it is. As it
//!   ends with the batch, a large one does not give more.
//! - It goes on until the reclaimer has what its pass is for. So while groups are above their soft limits, others give only what the walk that
//!   follows takes gently from everyone.
//! - It is reclaim of a group: `memory.low` and the other rules of reclaim at a limit apply. The counters attribute its pages to the
//!   caller.
//! - MGLRU is left out: it visits groups by their age.

use crate::core::Core;
use crate::reclaim::{NodePass, NodeStep, Reclaimer, ScanControl};
use crate::state::State;
use crate::story::{ListsEvent, Tracepoint};
use crate::units::{MemcgId, NodeId};
use pageout_rules::reclaim::FileWriteback;

/// Reclaim of groups above their soft limits, as a part of a pass over a node.
#[derive(Default)]
pub(super) struct SoftLimits {
    /// Groups that have given nothing.
    spent: Vec<MemcgId>,
    call: Option<Box<(ScanControl, NodePass)>>,
}

impl Core {
    /// Takes this part of a pass up to the end of a round that did something; `None` when it is over.
    #[doc(alias = "mem_cgroup_soft_limit_reclaim")]
    pub(super) fn soft_limit_step(
        &mut self,
        soft: &mut SoftLimits,
        node: NodeId,
        sc: &mut ScanControl,
    ) -> Option<NodeStep> {
        loop {
            let Some(call) = &mut soft.call else {
                if sc.is_satisfied() || sc.is_interrupted {
                    return None;
                }
                let (memcg, excess) = self.mm.farthest_above_soft_limit(&soft.spent)?;
                soft.call = Some(Box::new(self.soft_limit_call(memcg, excess, node, sc)));
                continue;
            };
            let (own, pass) = &mut **call;
            self.mm.release_isolated(own);
            self.leave_throttle(own);
            self.leave_stall(own);
            if sc.is_satisfied() {
                // Its task is to die: whatever it has is enough.
                own.nr_to_reclaim = 0;
            }
            own.is_interrupted |= sc.is_interrupted;
            match self.node_step(pass, own) {
                NodeStep::Over => {}
                step => return Some(step),
            }
            let (mut own, _) = *soft.call.take().expect("it was under way");
            self.mm.release_isolated(&mut own);
            self.trace(node, |_| Tracepoint::reclaim_end(&own));
            if own.nr_reclaimed == 0 {
                soft.spent.push(own.by.target);
            }
            sc.nr_reclaimed += own.nr_reclaimed;
            sc.nr_scanned += own.nr_scanned;
        }
    }

    fn soft_limit_call(
        &mut self,
        memcg: MemcgId,
        excess: u64,
        node: NodeId,
        sc: &ScanControl,
    ) -> (ScanControl, NodePass) {
        let lruvec = self.mm.lruvecs.id(memcg, node);
        let node = self.mm.lruvecs[lruvec].node;
        let by = Reclaimer { target: memcg, node: Some(node), from: None, ..sc.by };
        let mut own = ScanControl::new(by, excess.min(self.mm.config.reclaim_batch));
        own.priority = 0;
        (own.means.may_swap, own.means.spares_disk) = (sc.means.may_swap, sc.means.spares_disk);
        let rule = self.mm.memcgs[sc.by.target].policy.reclaim.file_writeback;
        own.means.may_write = sc.means.may_write && rule != FileWriteback::NotDirect;
        self.trace(node, |_| Tracepoint::reclaim_begin(&own));
        let group = &self.mm.memcgs[memcg];
        let (usage, limit) = (group.usage, group.soft_limit);
        self.tell_lists(lruvec, |_| ListsEvent::AboveSoftLimit { usage, limit });
        let pass = self.node_pass(node, &mut own);
        (own, pass)
    }
}

impl State {
    /// The groups above their soft limits with which a pass begins, if it does.
    pub(super) fn soft_limits(&self, sc: &ScanControl) -> Option<SoftLimits> {
        let is_for_soft_limits = self.config.cgroup_version == 1
            && self.memcgs.has_soft_limits
            && sc.by.is_for_machine()
            && !self.keeps_generations(sc);
        is_for_soft_limits.then(SoftLimits::default)
    }

    /// The group that is above its soft limit by most pages, and by how many. Of two the older one.
    fn farthest_above_soft_limit(&self, spent: &[MemcgId]) -> Option<(MemcgId, u64)> {
        let above = self.memcgs.ids().filter(|id| self.memcgs[*id].is_online && !spent.contains(id));
        let above = above.map(|id| (id, self.memcgs[id].usage.saturating_sub(self.memcgs[id].soft_limit)));
        above.filter(|&(_, excess)| excess > 0).max_by_key(|&(id, excess)| (excess, std::cmp::Reverse(id)))
    }
}
