//! Decisions by outdated memcg statistics: how often live counters would have led to another, and how far apart the two were. [reclaim 2.15]
//!
//! ```text
//!   reclaim, a refault, a writer ─▶ the decision, by what a reader sees     what is done
//!                              └──▶ the same by live numbers                only counted here
//! ```
//! A reader of a group's statistics sees the values of the last flush ([`super::flush`]). That is the kernel's rule, and mostly does no harm. If it
//! does harm, no counter shows it, because the counters have been flushed when a user reads them. So the engine makes the decisions that are based on
//! such numbers a second time with live ones, if requested. Live numbers exist for the machine, for a group without child groups, and for a group
//! with few. The check changes nothing.
//!
//! Not checked:
//!
//! - the list sizes of the last flush by which the costs of reclaim are halved
//! - limits of zswap
//! - the limit on index nodes of page caches that hold nothing but shadows

use crate::StatFlush;
use crate::core::Core;
use crate::lru::lruvec::{Lruvec, LruvecId};
use crate::stat::{Counters, Stat};
use crate::units::{MemcgId, Nanos, NodeId};

/// A kind of decision that is based on statistics of the last flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StaleDecision {
    /// A writer sleeps because its group has too many dirty pages, or continues.
    DirtyThrottle,
    /// Reclaim ages an active list because the inactive one is too short or its pages come back, or does not.
    Aging,
    /// Reclaim skips anonymous memory because there is enough inactive page cache, or does not.
    CacheTrim,
    /// A page that comes back is activated because its refault distance is within what is resident, or is not.
    Refault,
}

impl StaleDecision {
    /// All of them.
    pub const ALL: [StaleDecision; 4] = [
        StaleDecision::DirtyThrottle,
        StaleDecision::Aging,
        StaleDecision::CacheTrim,
        StaleDecision::Refault,
    ];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            StaleDecision::DirtyThrottle => "dirty_throttle",
            StaleDecision::Aging => "aging",
            StaleDecision::CacheTrim => "cache_trim",
            StaleDecision::Refault => "refault",
        }
    }
}

/// The number of decisions of one kind that live numbers change.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StaleDecisions {
    /// Decisions that were repeated with live numbers.
    pub compared: u64,
    /// Decisions that live numbers turn from yes to no: a writer would not have slept, a list not have been aged.
    pub yes_for_no: Turned,
    /// Decisions that live numbers turn from no to yes.
    pub no_for_yes: Turned,
    /// For how long writers slept that would not have slept.
    pub slept: Nanos,
}

/// Decisions that live numbers turn.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Turned {
    /// The number.
    pub count: u64,
    /// The age of the oldest statistics among them.
    pub oldest: Nanos,
    /// The counter whose stale value was furthest from its live one.
    pub furthest: Option<StaleNumber>,
}

/// A counter that a decision went by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaleNumber {
    /// The time of the decision.
    pub at: Nanos,
    /// The group.
    pub memcg: MemcgId,
    /// The counter.
    pub stat: Stat,
    /// The counter's value as of the last flush, by which it was decided.
    pub stale: u64,
    /// The counter's live value.
    pub live: u64,
    /// The age of the flush.
    pub age: Nanos,
}

/// Groups in a subtree that are summed up for a live number.
const GROUPS_MAX: usize = 64;

/// The place of a group's live counters, descendants included.
pub(crate) enum LiveStats<'a> {
    /// In one place: of a group without groups below it, or of a whole node.
    One(&'a Counters),
    /// In these lruvecs, of the group and of all below it.
    Sum(&'a Core, Vec<LruvecId>),
}

impl LiveStats<'_> {
    /// The live value of a counter, never negative.
    #[inline]
    pub(crate) fn get(&self, stat: Stat) -> u64 {
        let now = match self {
            LiveStats::One(counters) => counters[stat as usize],
            LiveStats::Sum(core, ids) => {
                ids.iter().map(|&id| core.mm.lruvecs[id].stat_local[stat as usize]).sum()
            }
        };
        now.max(0) as u64
    }
}

impl Core {
    /// Returns true if decisions are made a second time by live numbers: some numbers are old, and the caller has
    /// requested it.
    #[inline]
    pub(crate) fn compares_with_live(&self) -> bool {
        self.compares_live && self.mm.config.stat_flush == StatFlush::Periodic
    }

    /// The live counters of an lruvec's group, descendants included. `None` if the subtree has too many groups, no number is ever old, or
    /// the comparison was not requested.
    #[inline]
    pub(crate) fn live_stats(&self, lruvec: LruvecId) -> Option<LiveStats<'_>> {
        if !self.compares_with_live() {
            return None;
        }
        let Lruvec { memcg, node, ref stat_local, .. } = self.mm.lruvecs[lruvec];
        if self.mm.memcgs[memcg].children.is_empty() {
            Some(LiveStats::One(stat_local))
        } else if memcg == MemcgId::ROOT {
            Some(LiveStats::One(&self.mm.vmstat[node.index()]))
        } else {
            self.sum_of_few(memcg, node)
        }
    }

    #[cold]
    fn sum_of_few(&self, memcg: MemcgId, node: NodeId) -> Option<LiveStats<'_>> {
        let (mut found, mut left) = (Vec::new(), vec![memcg]);
        while let Some(id) = left.pop() {
            found.push(self.mm.lruvecs.id(id, node));
            if found.len() + left.len() > GROUPS_MAX {
                return None;
            }
            left.extend(&self.mm.memcgs[id].children);
        }
        Some(LiveStats::Sum(self, found))
    }

    /// A group's live counter, over all nodes.
    pub(crate) fn memcg_live(&self, memcg: MemcgId, stat: Stat) -> Option<i64> {
        let mut nodes = self.mm.lruvecs.nodes();
        nodes.try_fold(0, |sum, node| {
            Some(sum + self.live_stats(self.mm.lruvecs.id(memcg, node))?.get(stat) as i64)
        })
    }

    /// Something was decided by numbers of a group as they were at its last flush; live ones would have decided `by_live`. The counters that
    /// it went by: what each seemed to be, and is.
    #[inline]
    pub(crate) fn note_decision(
        &mut self,
        decision: StaleDecision,
        memcg: MemcgId,
        by_stale: bool,
        by_live: bool,
        numbers: &[(Stat, u64, u64)],
    ) {
        self.outdated[decision as usize].compared += 1;
        if by_stale != by_live {
            self.note_turned(decision, memcg, by_stale, numbers);
        }
    }

    #[cold]
    fn note_turned(
        &mut self,
        decision: StaleDecision,
        memcg: MemcgId,
        by_stale: bool,
        numbers: &[(Stat, u64, u64)],
    ) {
        let age = Nanos(self.by.now.0 - self.mm.memcgs[memcg].stat_flushed_at.0);
        let turned = self.turned(decision, by_stale);
        turned.count += 1;
        turned.oldest = turned.oldest.max(age);
        let apart = |&&(_, stale, live): &&(Stat, u64, u64)| stale.abs_diff(live);
        let Some(&(stat, stale, live)) = numbers.iter().max_by_key(apart) else { return };
        let before = turned.furthest.as_ref().map(|number| number.stale.abs_diff(number.live));
        if before.is_none_or(|before| stale.abs_diff(live) > before) {
            let number = StaleNumber { at: self.by.now, memcg, stat, stale, live, age };
            self.turned(decision, by_stale).furthest = Some(number);
        }
    }

    fn turned(&mut self, decision: StaleDecision, by_stale: bool) -> &mut Turned {
        let of = &mut self.outdated[decision as usize];
        if by_stale { &mut of.yes_for_no } else { &mut of.no_for_yes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;

    #[test]
    fn the_decision_whose_numbers_were_furthest_apart_is_told() {
        let mut engine = Engine::new(crate::Config::default()).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "a").unwrap();
        engine.set_now(Nanos(500));
        engine.core.flush_stats();
        engine.set_now(Nanos(700));
        let mut note = |by_stale, by_live, stale, live| {
            let numbers = [(Stat::NrDirty, stale, live), (Stat::NrInactiveFile, 3, 3)];
            engine.core.note_decision(StaleDecision::DirtyThrottle, memcg, by_stale, by_live, &numbers);
        };
        note(true, true, 900, 0);
        note(true, false, 10, 4);
        note(true, false, 2, 9);
        note(false, true, 4, 5);
        let told = &engine.figures().stale_decisions(StaleDecision::DirtyThrottle);
        assert_eq!((told.compared, told.yes_for_no.count, told.no_for_yes.count), (4, 2, 1));
        let number =
            StaleNumber { at: Nanos(700), memcg, stat: Stat::NrDirty, stale: 2, live: 9, age: Nanos(200) };
        assert_eq!(told.yes_for_no.furthest.as_ref(), Some(&number));
    }

    #[test]
    fn a_live_number_is_that_of_a_group_and_all_below_it() {
        let mut engine = Engine::new(crate::Config::default()).unwrap();
        engine.compare_with_live(true);
        let parent = engine.memcg_create(MemcgId::ROOT, "a").unwrap();
        let child = engine.memcg_create(parent, "b").unwrap();
        for (group, pages) in [(parent, 2), (child, 5)] {
            let lruvec = engine.core.mm.lruvecs.id(group, crate::units::NodeId(0));
            engine.core.count(lruvec, Stat::NrDirty, pages);
        }
        let live = |engine: &Engine, group| engine.core.memcg_live(group, Stat::NrDirty);
        assert_eq!(
            [MemcgId::ROOT, parent, child].map(|group| live(&engine, group)),
            [Some(7), Some(7), Some(5)]
        );
        for index in 0..GROUPS_MAX {
            engine.memcg_create(parent, &format!("c{index}")).unwrap();
        }
        assert_eq!(live(&engine, parent), None, "that would take long, again and again");
    }
}
