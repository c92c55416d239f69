//! The cost model of the classic LRU: what reclaiming each type has cost lately.
//!
//! Reclaiming a page costs I/O when it is written out and again when it comes back. Each type carries a running cost of the I/O and
//! rotations that it caused. The type with the higher cost is scanned less; `vm.swappiness` is the prior. Before swappiness is applied,
//! neither type gets less than a third of the pressure, so that reclaim notices when an expensive type has become cheap. [reclaim 2.3;
//! reclaim-6.12 2.3; mglru-2026 4.2]

use crate::core::Core;
use crate::lru::lruvec::{LruList, Lruvec, LruvecId};
use crate::reclaim::ScanControl;
use crate::stat::{ByType, PGROTATE, RESTORE, Stat};
use crate::state::State;
use crate::units::{LruType, MemcgId};
use pageout_rules::balance::{BalanceRule, CostRule, SwappinessZero};
use pageout_rules::lru::SWAPPINESS_ANON_ONLY;
use pageout_rules::reclaim::{AnonOnly, NoioAnon};

/// Cost of one page of I/O, in rotated pages.
const IO_COST: u64 = 32;

/// The shares of the two types in a pass over their lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanBalance {
    /// File memory only: no swap is available.
    NoSwap,
    /// File memory only, as a swappiness of 0 says.
    SwappinessZero,
    /// Anonymous memory only, as was asked for.
    AnonOnly,
    /// Nothing: the request was for anonymous memory only, and no swap is available.
    Nothing,
    /// Both in full: close to OOM cleverness has failed.
    Equal,
    /// Anonymous memory only: the machine has hardly any file memory left.
    FileIsTiny,
    /// File memory only: there are enough file pages without a second access.
    CacheTrim,
    /// Each list gives a share of its pages, by the weights of the types.
    Fraction {
        /// The weights of anonymous and of file memory.
        weights: [u64; 2],
        /// What reclaiming each type has cost lately.
        cost: [u64; 2],
    },
}

impl Core {
    /// Records what reclaiming a type has cost: pages written, and pages scanned in vain.
    #[doc(alias = "lru_note_cost")]
    pub(crate) fn note_cost(&mut self, lruvec: LruvecId, kind: LruType, written: u64, rotated: u64) {
        match self.mm.cost_rule(lruvec) {
            CostRule::Counters => {
                if rotated > 0 {
                    self.count_memcg(lruvec, PGROTATE.of(kind), rotated as i64);
                }
                if written > 0 && kind == LruType::Anon {
                    // Reclaim no longer writes pages of files in these versions.
                    self.count_memcg(lruvec, Stat::NrVmscanWrite, written as i64);
                }
            }
            CostRule::Events => self.mm.add_cost(lruvec, kind, written * IO_COST + rotated),
            CostRule::Io => self.mm.add_cost(lruvec, kind, written),
        }
    }
}

impl State {
    /// How the types share a pass.
    pub(crate) fn scan_balance(&self, lruvec: LruvecId, sc: &ScanControl) -> ScanBalance {
        let memcg = self.lruvecs[lruvec].memcg;
        // A slower memory tier can hold anonymous pages, too.
        let has_room = self.has_slots(lruvec) || self.can_demote_from(lruvec);
        let can_swap = sc.means.may_swap && has_room && !self.spares_anon_without_io(lruvec, sc);
        if !can_swap && self.wants_anon_strictly(memcg, sc) {
            ScanBalance::Nothing
        } else if !can_swap {
            ScanBalance::NoSwap
        } else if sc.by.swappiness == SWAPPINESS_ANON_ONLY {
            ScanBalance::AnonOnly
        } else if sc.by.swappiness == 0
            && !sc.by.is_for_machine()
            && self.memcgs[memcg].policy.balance.swappiness_zero == SwappinessZero::Never
        {
            // A user who said that the group must not swap for its own limit.
            ScanBalance::SwappinessZero
        } else if sc.priority == 0 && sc.by.swappiness > 0 {
            // Close to OOM, where cleverness has failed: whatever can be freed.
            ScanBalance::Equal
        } else if sc.plan.file_is_tiny {
            // Taking the last of them would only have programs read their own code again and again.
            ScanBalance::FileIsTiny
        } else if sc.plan.cache_trim_mode {
            // There are enough file pages without a second access: no need to touch anonymous memory at all.
            ScanBalance::CacheTrim
        } else {
            ScanBalance::Fraction { weights: self.weights(lruvec, sc), cost: sc.plan.cost }
        }
    }

    /// Returns true if anonymous memory is skipped because this reclaimer may not write it and too little of it was written before. For the
    /// machine the check reads a node's gauges directly, for a group their values at its last flush. [mglru-2026 2.16]
    fn spares_anon_without_io(&self, lruvec: LruvecId, sc: &ScanControl) -> bool {
        let Lruvec { memcg, node, .. } = self.lruvecs[lruvec];
        if sc.by.may_do_io || self.memcgs[memcg].policy.reclaim.noio_anon == NoioAnon::Scan {
            return false;
        }
        let pages = |stat: Stat| match sc.by.is_for_machine() {
            true => self.node_stat(node, stat).max(0) as u64,
            false => self.stale(lruvec, stat),
        };
        pages(Stat::NrSwapcached) < (pages(Stat::NrInactiveAnon) + pages(Stat::NrActiveAnon)) >> 6
    }

    /// Returns true if reclaim must not take file memory in place of anonymous memory that is not reclaimable.
    pub(crate) fn wants_anon_strictly(&self, memcg: MemcgId, sc: &ScanControl) -> bool {
        sc.by.swappiness == SWAPPINESS_ANON_ONLY
            && self.memcgs[memcg].policy.reclaim.anon_only == AnonOnly::Strict
    }

    /// Pages to scan of each of the four lists in a pass at the present priority.
    #[doc(alias = "get_scan_count")]
    pub(crate) fn scan_count(
        &self,
        lruvec: LruvecId,
        balance: ScanBalance,
        sc: &mut ScanControl,
    ) -> [u64; 4] {
        let memcg = self.lruvecs[lruvec].memcg;
        let protection = self.memcgs.protection(sc.by.target, memcg);
        let first_rank = self.first_rank_in_reach(lruvec, sc);
        LruList::EVICTABLE.map(|list| {
            // Pages of zones that are no use are none of what there is.
            let size = self.lruvecs[lruvec].size_from(list, first_rank);
            let reach = self.unprotected(memcg, size, protection, sc);
            let mut scan = reach >> sc.priority;
            // No task needs the pages of a removed group: they are evicted even at the lowest pressure.
            let is_offline = !self.memcgs[memcg].is_online;
            if scan == 0 && is_offline {
                scan = reach.min(self.config.reclaim_batch);
            }
            match balance {
                ScanBalance::NoSwap | ScanBalance::SwappinessZero | ScanBalance::CacheTrim => {
                    scan * u64::from(list.kind() == LruType::File)
                }
                ScanBalance::FileIsTiny | ScanBalance::AnonOnly => {
                    scan * u64::from(list.kind() == LruType::Anon)
                }
                ScanBalance::Nothing => 0,
                ScanBalance::Equal => scan,
                ScanBalance::Fraction { weights: [anon, file], .. } => {
                    let share = scan * [anon, file][list.kind() as usize];
                    if is_offline { share.div_ceil(anon + file) } else { share / (anon + file) }
                }
            }
        })
    }

    /// The shares of anonymous and file memory in what is to be taken.
    pub(crate) fn weights(&self, lruvec: LruvecId, sc: &ScanControl) -> [u64; 2] {
        let balance = self.memcgs[self.lruvecs[lruvec].memcg].policy.balance;
        let swappiness = u64::from(sc.by.swappiness);
        match balance.rule {
            BalanceRule::Feedback if balance.controller => {
                match self.cheaper_type(lruvec, sc.by.swappiness).kind {
                    LruType::Anon => [1, 0],
                    LruType::File => [0, 1],
                }
            }
            BalanceRule::Feedback | BalanceRule::Swappiness => [swappiness, 200 - swappiness],
            BalanceRule::Cost => {
                let total = sc.plan.cost[0] + sc.plan.cost[1];
                let [anon, file] = sc.plan.cost.map(|cost| total + cost);
                let total = anon + file;
                let least = u64::from(balance.swappiness_zero == SwappinessZero::OnePart);
                let [of_anon, of_file] = [swappiness + least, 200 - swappiness + least];
                [of_anon * (total + 1) / (anon + 1), of_file * (total + 1) / (file + 1)]
            }
        }
    }

    /// The part of a list that protection leaves in reach: pressure falls in proportion as usage comes down to what is
    /// protected, rather than stopping dead there.
    pub(crate) fn unprotected(
        &self,
        memcg: crate::MemcgId,
        size: u64,
        protection: crate::memcg::Protection,
        sc: &mut ScanControl,
    ) -> u64 {
        let protected = if !sc.effort.low_reclaim && protection.low > protection.min {
            sc.effort.low_skipped = true;
            protection.low
        } else {
            protection.min
        };
        if protected == 0 {
            return size;
        }
        in_reach(size, protected, self.memcgs[memcg].usage).max(self.config.reclaim_batch)
    }

    /// Records what a refault has cost: pages that were in use and are read back. Among counters it is `workingset_restore`.
    pub(crate) fn note_refault_cost(&mut self, lruvec: LruvecId, kind: LruType, pages: u64) {
        match self.cost_rule(lruvec) {
            CostRule::Counters => {}
            CostRule::Events => self.add_cost(lruvec, kind, pages * IO_COST),
            CostRule::Io => self.add_cost(lruvec, kind, pages),
        }
    }

    fn cost_rule(&self, lruvec: LruvecId) -> CostRule {
        self.memcgs[self.lruvecs[lruvec].memcg].policy.balance.cost
    }

    /// What each type has cost lately, as a pass on behalf of this lruvec's group begins.
    pub(crate) fn running_cost(&mut self, target: LruvecId) -> [u64; 2] {
        if self.cost_rule(target) == CostRule::Counters {
            let size: u64 = LruList::EVICTABLE.iter().map(|list| self.stale(target, list.stat())).sum();
            let counted = LruType::BOTH.map(|kind| {
                let written = match kind {
                    LruType::Anon => self.stale(target, Stat::NrVmscanWrite),
                    LruType::File => 0,
                };
                IO_COST * (self.stale(target, RESTORE.of(kind)) + written)
                    + self.stale(target, PGROTATE.of(kind))
            });
            let lruvec = &mut self.lruvecs[target];
            lruvec.cost = updated(lruvec.cost, counted, lruvec.cost_counted, size);
            lruvec.cost_counted = counted;
        }
        self.lruvecs[target].cost
    }

    /// Costs decay by half whenever they outgrow a quarter of the lists (as of the last statistics flush), so that they
    /// speak of the recent past at whatever size.
    fn add_cost(&mut self, lruvec: LruvecId, kind: LruType, cost: u64) {
        if cost == 0 {
            return;
        }
        let node = self.lruvecs[lruvec].node;
        let mut level = Some(self.lruvecs[lruvec].memcg);
        while let Some(memcg) = level {
            let id = self.lruvecs.id(memcg, node);
            let size: u64 = LruList::EVICTABLE.iter().map(|list| self.stale(id, list.stat())).sum();
            let costs = &mut self.lruvecs[id].cost;
            costs[kind as usize] += cost;
            if costs[0] + costs[1] > size / 4 {
                costs[0] /= 2;
                costs[1] /= 2;
            }
            level = self.memcgs[memcg].parent;
        }
    }
}

/// Costs with what has been counted since they were last brought up to date, halved until they are no more than a quarter of the lists.
fn updated(cost: [u64; 2], counted: [u64; 2], before: [u64; 2], size: u64) -> [u64; 2] {
    // A removed group's counters join its parent's, never the other way.
    let since = |at: usize| counted[at].saturating_sub(before[at]);
    let mut cost = [cost[0] + since(0), cost[1] + since(1)];
    while cost[0] + cost[1] > size / 4 {
        cost = cost.map(|cost| cost / 2);
    }
    cost
}

/// The pages of a list that a protection of `protected` pages leaves reclaimable. A protection of `max` overflows any
/// product of page counts.
fn in_reach(size: u64, protected: u64, usage: u64) -> u64 {
    let [list, protected, usage] = [size, protected, usage].map(u128::from);
    size - (list * protected / (usage.max(protected) + 1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_falls_in_proportion_to_what_is_protected_and_protection_may_be_max() {
        assert_eq!(in_reach(100, 0, 199), 100);
        assert_eq!(in_reach(100, 100, 199), 50);
        assert_eq!(in_reach(100, 400, 199), 1, "all is protected, but for the page that rounding leaves");
        assert_eq!(in_reach(100, u64::MAX, 199), 1);
        assert_eq!(in_reach(0, u64::MAX, 0), 0);
    }

    #[test]
    fn costs_from_counters_are_what_was_counted_since_halved_to_a_quarter_of_the_lists() {
        assert_eq!(updated([10, 0], [100, 40], [70, 40], 4000), [40, 0]);
        // 1600 and 800 are halved twice before they fit into 1000.
        assert_eq!(updated([0, 0], [1600, 800], [0, 0], 4000), [400, 200]);
        assert_eq!(updated([8, 8], [0, 0], [0, 0], 0), [0, 0]);
    }

    /// Anonymous pages cost much first and files a little afterwards. Event by event the first has been halved away by the others; read
    /// together it is still there.
    #[test]
    fn the_order_of_events_between_two_passes_does_not_matter_to_counters() {
        let (size, events) = (400, [(0, 96), (1, 40), (1, 40), (1, 40), (1, 40)]);
        let mut by_event = [0; 2];
        let mut counted = [0; 2];
        for (kind, cost) in events {
            by_event[kind] += cost;
            counted[kind] += cost;
            if by_event[0] + by_event[1] > size / 4 {
                by_event = by_event.map(|cost| cost / 2);
            }
        }
        let at_once = updated([0; 2], counted, [0; 2], size);
        assert!(at_once[0] * by_event[1] > by_event[0] * at_once[1], "{at_once:?}, {by_event:?}");
    }
}
