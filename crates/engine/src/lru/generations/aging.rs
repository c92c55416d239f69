//! Aging: a walk moves recently used pages to the youngest generation, then opens a younger one.
//!
//! Eviction asks for it when old pages run low: by sizes in 6.12, from 6.16 on whenever the window is not full. No timer asks: the age of
//! pages matters only to a reclaimer that has to choose among them. The walk of page tables comes first (`accessed/walk.rs`). It runs in
//! steps, so that other tasks get their turn. The walker that completes it opens the generation. [reclaim 4.4; reclaim-6.12 4.4]

use crate::accessed::{Walk, Walked};
use crate::balance::keep_in_step;
use crate::core::Core;
use crate::lru::CountsUse;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::list::List;
use crate::reclaim::{PRIORITY_DEFAULT, ScanControl};
use crate::state::State;
use crate::story::{ListsEvent, PageEvent};
use crate::units::{LruType, Pfn};
use pageout_rules::lru::AgingRule;
use pageout_rules::lru::{AgeAtDefault, OfflineAging, References, ScanBudget};

/// An aging in progress.
pub(crate) struct Aging {
    walk: Walk,
    seq: u64,
    swappiness: u8,
}

/// Returns true if MGLRU ages, by pages of generations and of all of them: while the window is neither full nor used up.
fn aging_is_due(rule: AgingRule, youngest: u64, youngest_evictable: u64, total: u64) -> bool {
    match rule {
        AgingRule::V4_2021 => false,
        AgingRule::Linux6_12 => 2 * youngest > total || 4 * youngest_evictable < total,
        AgingRule::Linux6_16 => true,
    }
}

impl Core {
    /// Advances an aging by a batch; at its end returns whether it opened a generation.
    pub(crate) fn aging_step(&mut self, lruvec: LruvecId, aging: &mut Aging) -> Option<bool> {
        let begun = self.out.begin();
        let step = match self.walk_step(lruvec, &mut aging.walk) {
            Walked::More => None,
            Walked::Overtaken => Some(false),
            Walked::Complete => Some(self.open_generation(lruvec, aging.seq, aging.swappiness)),
        };
        self.out.end_aging(begun);
        step
    }

    /// Opens a new youngest generation after `seq`.
    #[doc(alias = "inc_max_seq")]
    pub(super) fn open_generation(&mut self, lruvec: LruvecId, seq: u64, swappiness: u8) -> bool {
        if self.mm.generations(lruvec).max_seq != seq {
            return false;
        }
        // Room for it: the oldest of a full window joins the next.
        for kind in [LruType::File, LruType::Anon] {
            if self.mm.generations(lruvec).is_full(kind) {
                let is_evictable = Core::evictable_types(swappiness).contains(&kind);
                self.close_generation(lruvec, kind, is_evictable);
            }
        }
        for kind in LruType::BOTH {
            assert!(
                !self.mm.generations(lruvec).is_full(kind),
                "a generation is opened beyond a full window of {kind:?}"
            );
        }
        let max_seq = seq + 1;
        let slot = self.mm.generations(lruvec).slot(max_seq);
        if !self.mm.generation_rules(lruvec).gauges_count() {
            self.shift_active(lruvec, seq);
        }
        self.mm.lruvecs[lruvec].feedback.clear(slot);
        self.mm.lruvecs[lruvec].walk.forget(max_seq);
        let now = self.by.now;
        let generations = self.mm.generations_mut(lruvec);
        generations.births[slot] = now;
        generations.max_seq = max_seq;
        LruType::BOTH.into_iter().for_each(|kind| self.mm.assert_generations_counted(lruvec, kind));
        self.tell_lists(lruvec, |_| ListsEvent::GenerationOpened { seq: max_seq });
        true
    }

    /// The two youngest count as active. The youngest so far is still one of them, the second youngest no longer.
    fn shift_active(&mut self, lruvec: LruvecId, max_seq: u64) {
        for kind in LruType::BOTH {
            let generations = self.mm.generations(lruvec);
            let of = |seq: u64| generations.pages(seq)[kind as usize] as i64;
            let leaving = of(max_seq - 1);
            // Anonymous memory that can't be swapped may still have pages in the slot that is reused.
            let arriving = of(max_seq + 1);
            self.update_size(lruvec, LruList::active(kind), arriving - leaving);
            self.update_size(lruvec, LruList::inactive(kind), leaving - arriving);
        }
    }

    /// Closes a type's oldest generation: its pages join the next one at the tail. Pages of a type that can't be evicted
    /// stay in their slot, which becomes the new generation's. So they turn young without being used. Eviction never asks for
    /// them, but readers of `lru_gen` have to know.
    #[doc(alias = "inc_min_seq")]
    fn close_generation(&mut self, lruvec: LruvecId, kind: LruType, is_evictable: bool) {
        let references = self.mm.generation_rules(lruvec).references;
        let generations = self.mm.generations(lruvec);
        let oldest = generations.oldest(kind);
        let to = generations.min_seq[kind as usize] + 1;
        let next = generations.slot(to);
        let coldest =
            |core: &Core| core.mm.generations(lruvec).lists_of(oldest, kind).iter().find_map(List::tail);
        while is_evictable && let Some(item) = coldest(self) {
            let pfn = Pfn(item);
            let own = usize::from(self.mm.memory.places[pfn].generation - 1);
            self.mm.generation_list_remove(lruvec, pfn);
            if own == oldest {
                if references != References::Linux6_12 {
                    self.mm.note_protected(lruvec, pfn);
                }
                self.tell(pfn, |_| PageEvent::MovedUp { to });
                self.generation_update(lruvec, pfn, next);
                let use_bits = self.mm.memory.use_bits(pfn);
                self.change_use_bits(lruvec, pfn, references.aged(use_bits));
                self.generation_list_add(lruvec, pfn, next, true);
            } else {
                self.generation_list_add(lruvec, pfn, own, true);
            }
        }
        self.advance_min_seq(lruvec, kind, 1);
    }

    /// A type's `by` oldest generations are over: the controller's counts of the first join the average of the past.
    fn advance_min_seq(&mut self, lruvec: LruvecId, kind: LruType, by: u64) {
        let oldest = self.mm.generations(lruvec).oldest(kind);
        let smoothing = self.mm.memcgs[self.mm.lruvecs[lruvec].memcg].policy.balance.smoothing;
        self.mm.lruvecs[lruvec].feedback.carry_over(oldest, kind, smoothing);
        let first = self.mm.generations(lruvec).min_seq[kind as usize];
        let last = self.mm.generations(lruvec).max_seq;
        assert!(first + by <= last, "generations up to {} of {last} are closed: none is left", first + by);
        self.mm.generations_mut(lruvec).min_seq[kind as usize] += by;
        self.tell_lists(lruvec, |_| ListsEvent::GenerationsClosed { kind, first, count: by });
    }

    /// Closes generations that are empty; true if there were any.
    #[doc(alias = "try_to_inc_min_seq")]
    pub(super) fn close_empty_generations(&mut self, lruvec: LruvecId, swappiness: u8) -> bool {
        let rules = self.mm.generation_rules(lruvec);
        let type_rule = self.mm.memcgs[self.mm.lruvecs[lruvec].memcg].policy.balance.type_rule;
        let generations = self.mm.generations(lruvec);
        let old = generations.min_seq;
        let mut new = old;
        for &kind in Core::evictable_types(swappiness) {
            let min = &mut new[kind as usize];
            while *min + rules.spared() <= generations.max_seq
                && generations.listed(generations.slot(*min), kind) == 0
            {
                *min += 1;
            }
        }
        if Core::evictable_types(swappiness).len() > 1 {
            new = keep_in_step(type_rule, old, new, generations.max_seq, rules.spared());
        }
        for kind in LruType::BOTH {
            let by = new[kind as usize] - old[kind as usize];
            if by > 0 {
                self.advance_min_seq(lruvec, kind, by);
            }
        }
        new != old
    }
}

impl State {
    /// How much a pass may scan at this priority.
    ///
    /// All remaining pages of a removed group may go: no task uses them. [reclaim-6.12 4.4; mglru-2026 2.1, 2.12]
    #[doc(alias = "get_nr_to_scan")]
    pub(super) fn generations_budget(&self, lruvec: LruvecId, swappiness: u8, sc: &mut ScanControl) -> u64 {
        let rules = self.generation_rules(lruvec);
        let memcg = self.lruvecs[lruvec].memcg;
        let generations = self.generations(lruvec);
        if self.wants_anon_strictly(memcg, sc) && !self.can_reclaim_anon(lruvec, sc) {
            return 0;
        }
        let types = Core::evictable_types(swappiness);
        let is_pinned = rules.pass.scan_budget == ScanBudget::Pinned;
        if !is_pinned && generations.counted(types) <= rules.spared() {
            return 0;
        }
        let total = types.iter().map(|&kind| generations.total(kind)).sum();
        if !self.memcgs[memcg].is_online {
            return total;
        }
        if !is_pinned {
            return total >> sc.priority;
        }
        let protection = self.protection_from(memcg, sc);
        self.unprotected(memcg, total, protection, sc) >> sc.priority
    }

    /// Returns true if it is time to age.
    ///
    /// At the first priority eviction takes what there is without aging, so that a little pressure costs little. In a small
    /// lruvec a 4096th is nothing: it waits for the second priority. [reclaim-6.12 4.4; mglru-2026 2.1]
    #[doc(alias = "should_run_aging")]
    pub(super) fn wants_aging(&self, lruvec: LruvecId, swappiness: u8, sc: &ScanControl) -> bool {
        let rules = self.generation_rules(lruvec);
        let generations = self.generations(lruvec);
        let types = Core::evictable_types(swappiness);
        let count = generations.counted(types);
        let is_gentle = sc.priority == PRIORITY_DEFAULT;
        if count <= rules.spared() {
            return !is_gentle || rules.pass.age_at_default == AgeAtDefault::WhenForced;
        }
        if is_gentle || count == u64::from(rules.count_max) {
            return false;
        }
        let total: u64 = types.iter().map(|&kind| generations.total(kind)).sum();
        // The remaining pages of a removed group need no aging: no task uses them.
        let is_online = self.memcgs[self.lruvecs[lruvec].memcg].is_online;
        if total > 0 && !is_online && rules.pass.offline_aging == OfflineAging::LastResort {
            return false;
        }
        let pages = |seq: u64| types.iter().map(|&kind| generations.pages(seq)[kind as usize]).sum::<u64>();
        let youngest = pages(generations.max_seq);
        let youngest_evictable = pages(generations.max_seq.saturating_sub(2));
        aging_is_due(rules.aging, youngest, youngest_evictable, total)
    }

    /// Begins to age.
    ///
    /// `is_forced`: look at everything, as a user asks who wants to know what is in use.
    pub(crate) fn aging_begin(&self, lruvec: LruvecId, swappiness: u8, is_forced: bool) -> Aging {
        let seq = self.generations(lruvec).max_seq;
        Aging { walk: self.walk_begin(lruvec, swappiness, is_forced), seq, swappiness }
    }
}
