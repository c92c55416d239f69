//! Direct reclaim: a task whose allocation finds no zone above its min watermark reclaims for itself.
//!
//! ```text
//!   gate (`throttle.rs`) ─▶ stall counted ─▶ a reclaim call for the machine: 32 pages, from the nodes that it may allocate from
//! ```
//! The call is like one at a memcg's limit, but its target is the whole machine. [machine 2.9, 3.4; reclaim 2.13]

use crate::core::Core;
use crate::page_alloc::request::{Gfp, Request};
use crate::reclaim::{Reclaim, ReclaimStep, Reclaimer, ScanControl, Why};
use crate::stat::ALLOCSTALL;
use crate::state::State;
use crate::units::MemcgId;

/// Direct reclaim in progress.
pub(crate) enum DirectReclaim {
    /// The task is about to begin.
    AtGate,
    /// The task found the gate shut, and has waited.
    Waited,
    Reclaiming(Box<Reclaim>),
}

impl DirectReclaim {
    /// Returns whether a reclaim call is in progress.
    pub(crate) fn in_reclaim(&self) -> bool {
        matches!(self, DirectReclaim::Reclaiming(_))
    }
}

impl Core {
    /// Takes direct reclaim for a request up to the end of a round that did something.
    pub(crate) fn direct_reclaim_step(
        &mut self,
        request: &Request,
        direct: &mut DirectReclaim,
    ) -> ReclaimStep {
        if let DirectReclaim::AtGate = direct
            && let Some(wait) = self.throttle_direct_reclaim(request)
        {
            *direct = DirectReclaim::Waited;
            return ReclaimStep::Wait(wait);
        }
        if let DirectReclaim::Waited = direct {
            self.leave_gate(request);
        }
        let call = match direct {
            DirectReclaim::Reclaiming(call) => call,
            DirectReclaim::AtGate | DirectReclaim::Waited => {
                self.mm.count_node(request.node, ALLOCSTALL[request.class as usize], 1);
                let sc = self.mm.direct_reclaim_begin(request);
                *direct = DirectReclaim::Reclaiming(match self.spare_reclaim.take() {
                    Some(mut spare) => {
                        spare.begin_anew(sc);
                        spare
                    }
                    None => Reclaim::new(sc),
                });
                return self.direct_reclaim_step(request, direct);
            }
        };
        self.reclaim_step(call)
    }
}

impl State {
    fn direct_reclaim_begin(&self, request: &Request) -> ScanControl {
        let by = Reclaimer {
            may_enter_fs: request.gfp.contains(Gfp::FS),
            may_do_io: request.gfp.contains(Gfp::IO),
            writes_file: request.gfp.contains(Gfp::WRITE),
            order: request.order,
            class: request.class,
            from: Some(request.node),
            allowed: request.allowed,
            ..Reclaimer::new(MemcgId::ROOT, Why::Direct, self.config.swappiness)
        };
        ScanControl::new(by, self.config.reclaim_batch.max(1))
    }
}
