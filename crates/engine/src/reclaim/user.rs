//! Reclaim that a user asks for: `memory.reclaim`, and limits set below what is in use.
//!
//! A single call with a large target would overshoot, because each of its passes aims at the whole of it. So a request is
//! served in parts, each a quarter of what is left but no less than a batch: large steps at first, small ones near the end.
//! Pages being written become free only later, so a part that frees nothing need not be the last.

use super::{Reclaim, ReclaimStep, Reclaimer, ScanControl};
use crate::core::Core;
use crate::machine::step::Wait;
use crate::memcg::charge::RETRIES;

/// A request under way.
pub(crate) struct UserReclaim {
    by: Reclaimer,
    left: u64,
    reclaimed: u64,
    part: Option<Box<Reclaim>>,
    /// How often nothing may be found.
    retries: u32,
}

/// What a step of a request came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UserReclaimStep {
    Again,
    /// Reclaim has to wait for others.
    Wait(Wait),
    /// There was nothing to free but what is being written; go on when a write has ended.
    WaitForWriteback,
    /// So many pages were reclaimed.
    Done(u64),
}

impl UserReclaim {
    pub(crate) fn new(by: Reclaimer, pages: u64) -> UserReclaim {
        UserReclaim { by, left: pages, reclaimed: 0, part: None, retries: RETRIES }
    }

    /// Its task is to die: the part under way is the last.
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
    pub(crate) fn user_reclaim_step(&mut self, request: &mut UserReclaim) -> UserReclaimStep {
        while request.left > 0 {
            let part = request.part.get_or_insert_with(|| {
                let pages = (request.left / 4).max(self.config.reclaim_batch);
                Reclaim::new(ScanControl::new(request.by, pages))
            });
            match self.reclaim_step(part) {
                ReclaimStep::Again => return UserReclaimStep::Again,
                ReclaimStep::Wait(wait) => return UserReclaimStep::Wait(wait),
                ReclaimStep::Done(reclaimed) => {
                    request.part = None;
                    request.left = request.left.saturating_sub(reclaimed);
                    request.reclaimed += reclaimed;
                    if reclaimed == 0 {
                        // It has tried at every priority and in every way: nothing changes until a write has ended.
                        if request.retries == 0 || !(self.io.has_writes() || self.is_flushing()) {
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
