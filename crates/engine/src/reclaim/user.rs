//! Reclaim that a user asks for: `memory.reclaim`, and limits set below what is in use.
//!
//! A single call with a large target would overshoot, because each of its passes aims at the whole of it. So a request is
//! served in parts, since 6.9 each a quarter of what is left but no less than a batch: large steps at first, small ones near the end.
//! Pages being written become free only later, so a part that frees nothing need not be the last.
//!
//! **Signals.** Who has asked may lose interest: its timer goes off, or it is stopped. Up to 7.0 the request went on all the same, for as
//! long as it took, with its task in the kernel. Since then it ends: the part under way is over after its batch, there is no other, and
//! what was reclaimed stays reclaimed. A wait that it is in comes to its end first. Limits that are set below what is in use
//! go on in all eras, as far as we know. [mglru-2026 2.5]

use super::{Reclaim, ReclaimStep, Reclaimer, ScanControl, Why};
use crate::core::Core;
use crate::machine::step::Wait;
use crate::memcg::charge::RETRIES;
use crate::state::State;
use pageout_rules::reclaim::{OnSignal, RequestPart};

/// A request under way.
pub(crate) struct UserReclaim {
    by: Reclaimer,
    left: u64,
    reclaimed: u64,
    part: Option<Box<Reclaim>>,
    /// How often nothing may be found.
    retries: u32,
    /// Whether a signal ends the request.
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
    /// So many pages were reclaimed.
    Done(u64),
    /// So many, and a signal has ended it before it had what it wanted.
    Interrupted(u64),
}

impl UserReclaim {
    pub(crate) fn new(by: Reclaimer, pages: u64) -> UserReclaim {
        UserReclaim { by, left: pages, reclaimed: 0, part: None, retries: RETRIES, is_interrupted: false }
    }

    /// The task that asked is to die: the part under way is the last.
    pub(crate) fn cut_short(&mut self) {
        self.left = self.left.min(1);
        self.retries = 0;
        if let Some(part) = &mut self.part {
            part.cut_short();
        }
    }
}

impl Core {
    /// Takes a request up to the end of a round that did something; at its end tells how many pages it has reclaimed.
    #[doc(alias = "memory_reclaim")]
    pub(crate) fn user_reclaim_step(&mut self, request: &mut UserReclaim) -> UserReclaimStep {
        while request.left > 0 {
            if request.is_interrupted && request.part.is_none() {
                return UserReclaimStep::Interrupted(request.reclaimed);
            }
            let part = request.part.get_or_insert_with(|| {
                let pages = match self.mm.memcgs[request.by.target].policy.reclaim.request {
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
                    request.left = request.left.saturating_sub(reclaimed);
                    request.reclaimed += reclaimed;
                    if reclaimed == 0 && !request.is_interrupted {
                        // It has tried at every priority and in every way: nothing changes until a write has ended.
                        if request.retries == 0
                            || self.io.are_held_up
                            || !(self.io.has_writes() || self.is_flushing())
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
        // What is under way goes on to its end.
        if let Some(part) = request.part.as_mut().filter(|_| rule == OnSignal::Ends) {
            part.interrupt();
        }
    }
}
