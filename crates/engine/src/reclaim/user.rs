//! Reclaim that a user asks for: `memory.reclaim`, and limits set below what is in use.
//!
//! A single call with a large target would overshoot, because each of its passes has the complete target. So a request is served in parts.
//! Since 6.9 each part is a quarter of the rest but no less than a batch: large steps at first, small ones near the end. Pages under
//! writeback become free only later, so a part that frees nothing need not be the last. A limit of cgroup v1 is lowered a batch at a time, until the use of
//! the group is below it: pages that splits of folios have freed count, too.
//!
//! **Signals.** A task may lose interest in its request: its timer goes off, or it is stopped. Up to 7.0 the request continued all the
//! same, for as long as it took, with its task in the kernel. Since then it ends. The part in progress is over after its batch, there is
//! no other, and the reclaimed pages stay reclaimed. If it is in a wait, the wait comes to its end first. Limits that are set below the
//! present use continue in all eras, as far as we know. [mglru-2026 2.5]

use super::{Reclaim, ReclaimStep, Reclaimer, ScanControl, Why};
use crate::core::Core;
use crate::machine::step::Wait;
use crate::memcg::charge::RETRIES;
use crate::state::State;
use crate::units::NodeId;
use pageout_rules::reclaim::{OnSignal, RequestPart};

/// A request in progress.
pub(crate) struct UserReclaim {
    by: Reclaimer,
    left: u64,
    /// The limit of a group of cgroup v1 that its use has to fall to. It is checked after each part.
    limit: Option<u64>,
    reclaimed: u64,
    part: Option<Box<Reclaim>>,
    /// How often nothing may be found.
    retries: u32,
    /// True if a signal ends the request.
    is_interrupted: bool,
}

/// The outcome of one step of reclaim that a user asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UserReclaimStep {
    Again,
    /// Reclaim has to wait for others.
    Wait(Wait),
    /// There was nothing to free but what is being written; go on when a write has ended.
    WaitForWriteback,
    /// The number of pages reclaimed.
    Done(u64),
    /// The number of pages reclaimed before a signal ended the request, short of its target.
    Interrupted(u64),
}

impl UserReclaim {
    pub(crate) fn new(by: Reclaimer, pages: u64) -> UserReclaim {
        UserReclaim {
            by,
            left: pages,
            limit: None,
            reclaimed: 0,
            part: None,
            retries: RETRIES,
            is_interrupted: false,
        }
    }

    /// A request to get a group of cgroup v1 below its new limit.
    pub(crate) fn down_to(by: Reclaimer, limit: u64, excess: u64) -> UserReclaim {
        UserReclaim { limit: Some(limit), ..UserReclaim::new(by, excess) }
    }

    /// The only node that is reclaimed.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.by.node
    }

    /// The task that asked is killed: the part in progress is the last.
    pub(crate) fn cut_short(&mut self) {
        self.left = self.left.min(1);
        self.retries = 0;
        if let Some(part) = &mut self.part {
            part.cut_short();
        }
    }
}

impl Core {
    /// Advances a request to the end of a round that did something; at its end returns how many pages it has reclaimed.
    #[doc(alias = "memory_reclaim")]
    pub(crate) fn user_reclaim_step(&mut self, request: &mut UserReclaim) -> UserReclaimStep {
        while request.left > 0 {
            if request.is_interrupted && request.part.is_none() {
                return UserReclaimStep::Interrupted(request.reclaimed);
            }
            let part = request.part.get_or_insert_with(|| {
                let pages = match self.mm.memcgs[request.by.target].policy.reclaim.request {
                    _ if request.limit.is_some() => self.mm.config.reclaim_batch,
                    RequestPart::Whole => request.left,
                    RequestPart::Quarter => (request.left / 4).max(self.mm.config.reclaim_batch),
                };
                Reclaim::new(ScanControl::new(request.by, pages))
            });
            match self.reclaim_step(part) {
                ReclaimStep::Again => return UserReclaimStep::Again,
                ReclaimStep::Wait(wait) => return UserReclaimStep::Wait(wait),
                ReclaimStep::Done(reclaimed) => {
                    request.part = None;
                    request.left = match request.limit {
                        Some(limit) => self.mm.memcgs[request.by.target].usage.saturating_sub(limit),
                        None => request.left.saturating_sub(reclaimed),
                    };
                    request.reclaimed += reclaimed;
                    if reclaimed == 0 && !request.is_interrupted {
                        // It has tried at every priority and in every way: nothing changes until a write has ended.
                        if request.retries == 0
                            || self.io.are_held_up
                            || !(self.io.has_hopeful_writes() || self.is_flushing())
                        {
                            break;
                        }
                        request.retries -= 1;
                        return UserReclaimStep::WaitForWriteback;
                    }
                }
            }
        }
        UserReclaimStep::Done(request.reclaimed)
    }
}

impl State {
    /// A signal comes for the task whose request this is.
    pub(crate) fn user_reclaim_signal(&self, request: &mut UserReclaim) {
        let rule = self.memcgs[request.by.target].policy.reclaim.on_signal;
        if request.by.why != Why::Requested || rule == OnSignal::GoesOn {
            return;
        }
        request.is_interrupted = true;
        // The part in progress continues to its end.
        if let Some(part) = request.part.as_mut().filter(|_| rule == OnSignal::Ends) {
            part.interrupt();
        }
    }
}
