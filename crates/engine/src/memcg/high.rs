//! `memory.high`: a group above it is slowed down rather than stopped.
//!
//! A task that charged pages while an ancestor was above its `memory.high` pays before it returns to user space. It reclaims as
//! many pages from each such ancestor. If that is not enough, it sleeps. The delay grows with the square of the overage: a group
//! a little above hardly notices, and one far above all but stands still. [reclaim 2.10]
//!
//! `memory.swap.high` is paid for in the same way. There is nothing to reclaim for it, so it only throttles tasks that
//! allocate, in the hope that a user notices before the swap is full. The delays for both are added.

use crate::core::Core;
use crate::machine::step::Wait;
use crate::memcg::{Memcg, MemcgEvent, SwapEvent};
use crate::reclaim::{Reclaim, ReclaimStep, Reclaimer, ScanControl, Why};
use crate::state::State;
use crate::units::{MemcgId, Nanos};

/// Rounds of reclaim that make no progress before the task sleeps.
const RETRIES: u32 = 16;
/// Fraction bits of the overage.
const PRECISION_SHIFT: u32 = 20;
/// Fraction bits taken off the squared overage: a group of any size 1 % above sleeps about as long.
const SCALING_SHIFT: u32 = 14;

/// A debt being paid.
pub(crate) struct HighReclaim {
    debt: u64,
    /// Pages to reclaim from each group of this round.
    target: u64,
    /// Groups of this round still to reclaim from.
    groups: Vec<MemcgId>,
    call: Option<Box<Reclaim>>,
    reclaimed: u64,
    retries: u32,
    stage: HighStage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HighStage {
    Begin,
    Reclaim,
    /// The task is to die, and this call comes to its end before.
    LastCall,
    Slept,
}

impl HighReclaim {
    pub(crate) fn new(debt: u64) -> HighReclaim {
        HighReclaim {
            debt,
            target: debt,
            groups: Vec::new(),
            call: None,
            reclaimed: 0,
            retries: RETRIES,
            stage: HighStage::Begin,
        }
    }

    pub(crate) fn in_reclaim(&self) -> bool {
        self.call.is_some()
    }

    /// The call's task is about to die: the current call is its last.
    pub(crate) fn cut_short(&mut self) {
        self.groups.clear();
        self.stage = HighStage::Slept;
        if let Some(call) = &mut self.call {
            call.cut_short();
            self.stage = HighStage::LastCall;
        }
    }
}

/// Outcome of a step of reclaim or sleep for `memory.high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HighStep {
    /// A batch of reclaim is over; call again.
    Again,
    /// Reclaim was not enough: the task sleeps so long.
    Sleep(Nanos),
    /// Reclaim has to wait for others.
    Wait(Wait),
    Done,
}

impl Core {
    /// Advances the payment of a debt that a task of group `memcg` has run into.
    #[doc(alias = "mem_cgroup_handle_over_high")]
    pub(crate) fn high_step(&mut self, memcg: MemcgId, high: &mut HighReclaim) -> HighStep {
        loop {
            match high.stage {
                HighStage::Slept => return HighStep::Done,
                HighStage::LastCall => {
                    let call = high.call.as_mut().expect("it is under way");
                    match self.reclaim_step(call) {
                        ReclaimStep::Again => return HighStep::Again,
                        ReclaimStep::Wait(wait) => return HighStep::Wait(wait),
                        ReclaimStep::Done(_) => return HighStep::Done,
                    }
                }
                HighStage::Begin => {
                    if self.mm.config.pays_on_request {
                        // A group of a few pages may have all of them in a batch, where the classic LRU finds none and the task would sleep for each.
                        self.lru_add_drain();
                    }
                    let is_over = |&id: &MemcgId| self.mm.memcgs[id].usage > self.mm.memcgs[id].high;
                    high.groups = self.mm.memcgs.ancestors(memcg).filter(is_over).collect();
                    high.groups.reverse();
                    high.reclaimed = 0;
                    high.stage = HighStage::Reclaim;
                }
                HighStage::Reclaim => {
                    if let Some(call) = &mut high.call {
                        match self.reclaim_step(call) {
                            ReclaimStep::Again => return HighStep::Again,
                            ReclaimStep::Wait(wait) => return HighStep::Wait(wait),
                            ReclaimStep::Done(reclaimed) => {
                                high.reclaimed += reclaimed;
                                high.call = None;
                            }
                        }
                    } else if let Some(id) = high.groups.pop() {
                        self.mm.memcgs.event(id, MemcgEvent::High);
                        let target = high.target.max(self.mm.config.reclaim_batch);
                        let by = Reclaimer::new(id, Why::High, self.mm.config.swappiness);
                        high.call = Some(Reclaim::new(ScanControl::new(by, target)));
                    } else {
                        self.mm.note_swap_high(memcg);
                        let delay = self.mm.high_delay(memcg, high.debt);
                        // Too short to be worth a sleep.
                        if delay <= Nanos::from_ticks(u64::from(self.mm.config.hz) / 100, self.mm.config.hz) {
                            return HighStep::Done;
                        }
                        if high.reclaimed > 0 || high.retries > 0 {
                            high.retries -= u32::from(high.reclaimed == 0);
                            high.target = self.mm.config.reclaim_batch;
                            high.stage = HighStage::Begin;
                            continue;
                        }
                        high.stage = HighStage::Slept;
                        return HighStep::Sleep(delay);
                    }
                }
            }
        }
    }
}

impl State {
    /// How long a task sleeps for a debt of `debt` pages; two seconds at most.
    #[doc(alias = "calculate_high_delay")]
    fn high_delay(&self, memcg: MemcgId, debt: u64) -> Nanos {
        let memory = self.penalty(memcg, debt, |group| (group.usage, group.high));
        let swap = self.penalty(memcg, debt, |group| (group.swap_usage, group.swap_high));
        let ticks = memory.saturating_add(swap).min(2 * u128::from(self.config.hz));
        Nanos::from_ticks(ticks as u64, self.config.hz)
    }

    /// Ticks for being above a limit: of the group and its ancestors the one counts that is furthest above, in proportion.
    fn penalty(&self, memcg: MemcgId, debt: u64, used_of: impl Fn(&Memcg) -> (u64, u64)) -> u128 {
        let overage = |id: MemcgId| {
            let (used, limit) = used_of(&self.memcgs[id]);
            (u128::from(used.saturating_sub(limit)) << PRECISION_SHIFT) / u128::from(limit.max(1))
        };
        let overage = self.memcgs.ancestors(memcg).map(overage).max().unwrap_or(0);
        let hz = u128::from(self.config.hz);
        let penalty =
            (overage.saturating_mul(overage).saturating_mul(hz)) >> (PRECISION_SHIFT + SCALING_SHIFT);
        // The formula is per stock of 64 pages.
        penalty.saturating_mul(u128::from(debt)) / 64
    }

    /// Groups above their `memory.swap.high` count that a task is throttled for it.
    fn note_swap_high(&mut self, memcg: MemcgId) {
        let is_over = |&id: &MemcgId| self.memcgs[id].swap_usage > self.memcgs[id].swap_high;
        let over: Vec<MemcgId> = self.memcgs.ancestors(memcg).filter(is_over).collect();
        for id in over {
            self.memcgs.swap_event(id, SwapEvent::High);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Engine, MemcgId};

    /// The examples of [reclaim 2.10]: high = 100 MB and a debt of one stock, at 1000 ticks a second.
    #[test]
    fn delays_grow_with_the_square_of_the_overage() {
        let mut engine = Engine::new(Config { hz: 1000, ..Config::default() }).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "group").unwrap();
        engine.core.mm.memcgs[memcg].high = 25_600;
        let mut delay_ms = |mb: u64| {
            engine.core.mm.memcgs[memcg].usage = mb * 256;
            engine.core.mm.high_delay(memcg, 64).0 / 1_000_000
        };
        assert_eq!([101, 105, 110, 118].map(&mut delay_ms), [6, 159, 639, 2000]);
        // The same overage of swap costs as much again, and alone just that.
        engine.core.mm.memcgs[memcg].swap_high = 25_600;
        engine.core.mm.memcgs[memcg].swap_usage = 105 * 256;
        let mut delay_ms = |mb: u64| {
            engine.core.mm.memcgs[memcg].usage = mb * 256;
            engine.core.mm.high_delay(memcg, 64).0 / 1_000_000
        };
        assert_eq!([99, 105, 110, 118].map(&mut delay_ms), [159, 318, 798, 2000]);
    }
}
