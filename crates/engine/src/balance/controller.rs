//! Decisions of the MGLRU controller: which type of page, anonymous or file, is cheaper to evict, and up to which tier. Its counts of
//! refaults are `feedback.rs`. [reclaim 4.9]

use crate::balance::{CheaperType, Position, RefTierLimit, TIERS, TypeReason};
use crate::lru::lruvec::{LruList, LruvecId};
use crate::state::State;
use crate::units::LruType;
use pageout_rules::balance::{BalanceRule, TypeRule};
use pageout_rules::lru::Lru;

impl State {
    /// Returns true if anyone reads what the controller of this lruvec counts.
    fn has_feedback(&self, lruvec: LruvecId) -> bool {
        let policy = &self.memcgs[self.lruvecs[lruvec].memcg].policy;
        policy.lru == Lru::Generations || policy.balance.rule == BalanceRule::Feedback
    }

    /// Where the controller counts what happens to a type now.
    fn feedback_slot(&self, lruvec: LruvecId, kind: LruType) -> usize {
        self.kept_generations(lruvec).map_or(0, |generations| generations.oldest(kind))
    }

    pub(crate) fn feedback_evicted(&mut self, lruvec: LruvecId, kind: LruType, tier: usize, pages: u64) {
        if !self.has_feedback(lruvec) {
            return;
        }
        let slot = self.feedback_slot(lruvec, kind);
        let smoothing = self.memcgs[self.lruvecs[lruvec].memcg].policy.balance.smoothing;
        let has_generations = self.kept_generations(lruvec).is_some();
        let lruvec = &mut self.lruvecs[lruvec];
        lruvec.feedback.tallies[slot][kind as usize][tier].evicted += pages;
        if !has_generations {
            // The classic LRU has no generations: one counts as passed when as many pages were evicted as the
            // lists hold.
            lruvec.feedback.evicted_since[kind as usize] += pages;
            let held = lruvec.size(LruList::inactive(kind)) + lruvec.size(LruList::active(kind));
            if lruvec.feedback.evicted_since[kind as usize] > held {
                lruvec.feedback.evicted_since[kind as usize] = 0;
                lruvec.feedback.carry_over(slot, kind, smoothing);
                lruvec.feedback.tallies[slot][kind as usize] = Default::default();
            }
        }
    }

    #[inline(never)]
    pub(crate) fn feedback_refaulted(&mut self, lruvec: LruvecId, kind: LruType, tier: usize, pages: u64) {
        if self.has_feedback(lruvec) {
            let slot = self.feedback_slot(lruvec, kind);
            self.lruvecs[lruvec].feedback.tallies[slot][kind as usize][tier].refaulted += pages;
        }
    }

    fn feedback_position(
        &self,
        lruvec: LruvecId,
        kind: LruType,
        tiers: std::ops::Range<usize>,
        gain: u64,
    ) -> Position {
        let slot = self.feedback_slot(lruvec, kind);
        self.lruvecs[lruvec].feedback.position(slot, kind, tiers, gain)
    }

    /// The type that is cheaper to take, going by refaults, and how far it may be taken.
    #[doc(alias = "get_type_to_scan")]
    pub(crate) fn cheaper_type(&self, lruvec: LruvecId, swappiness: u8) -> CheaperType {
        let balance = self.memcgs[self.lruvecs[lruvec].memcg].policy.balance;
        let gains = [u64::from(swappiness), 200 - u64::from(swappiness)];
        let tiers = match balance.type_rule {
            TypeRule::Linux6_12 => 0..1,
            TypeRule::Linux6_16 => 0..TIERS,
        };
        let [anon, file] = LruType::BOTH
            .map(|kind| self.feedback_position(lruvec, kind, tiers.clone(), gains[kind as usize]));
        let kind = if file.is_cheaper_than(anon) { LruType::File } else { LruType::Anon };
        let limit = match balance.type_rule {
            TypeRule::Linux6_12 => {
                let other = if kind == LruType::Anon { file } else { anon };
                let limit = self.last_unprotected_ref_tier(lruvec, kind, gains[kind as usize], |_| other);
                RefTierLimit { is_other_type: true, ..limit }
            }
            TypeRule::Linux6_16 => self.ref_tier_to_evict(lruvec, kind),
        };
        CheaperType { kind, limit, reason: TypeReason::Refaults { anon, file } }
    }

    /// Refaults of each tier of a type.
    pub(crate) fn ref_tier_positions(&self, lruvec: LruvecId, kind: LruType, gain: u64) -> [Position; TIERS] {
        std::array::from_fn(|tier| self.feedback_position(lruvec, kind, tier..tier + 1, gain))
    }

    /// Up to the highest tier of a type that fares no worse than its tier 0, or than those below it.
    #[doc(alias = "get_tier_idx")]
    pub(crate) fn ref_tier_to_evict(&self, lruvec: LruvecId, kind: LruType) -> RefTierLimit {
        let balance = self.memcgs[self.lruvecs[lruvec].memcg].policy.balance;
        if !balance.controller {
            return RefTierLimit { highest: TIERS - 1, reference: None, is_other_type: false, gain: 1 };
        }
        let (first, others) = balance.ref_tier_gains.pair();
        let reference =
            |tier: usize| self.feedback_position(lruvec, kind, balance.tier_reference.tiers(tier), first);
        self.last_unprotected_ref_tier(lruvec, kind, others, reference)
    }

    /// Up to the tier before the first that fares worse than its reference.
    fn last_unprotected_ref_tier(
        &self,
        lruvec: LruvecId,
        kind: LruType,
        gain: u64,
        reference: impl Fn(usize) -> Position,
    ) -> RefTierLimit {
        let fares_worse = |&tier: &usize| {
            !self.feedback_position(lruvec, kind, tier..tier + 1, gain).is_cheaper_than(reference(tier))
        };
        let first_spared = (1..TIERS).find(fares_worse);
        let highest = first_spared.map_or(TIERS - 1, |tier| tier - 1);
        let reference = Some(reference(first_spared.unwrap_or(TIERS - 1)));
        RefTierLimit { highest, reference, is_other_type: false, gain }
    }
}
