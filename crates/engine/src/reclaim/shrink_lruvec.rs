//! A pass over one lruvec, round by round: reclaim asks the LRU for a batch, takes and judges it, and says what became of it.
//!
//! ```text
//!   the LRU (`lru/`)                                  reclaim
//!     which list, how much      ◄── asks ──
//!                               ── a batch ──►        isolated, judged, put back (`isolate.rs`, `shrink.rs`)
//!     what follows from that    ◄── told ──           pages reclaimed
//! ```
//! An LRU knows its lists and no reclaim: none of its calls leads here. A round is over when a batch of each list is; then the
//! machine may let time pass. [reclaim 2.4 to 2.7; reclaim-6.12 2.6, 2.7]

use crate::accessed::{Walk, Walked};
use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::two_lists::{self, Ask, Deactivation, TwoListsPass, Wanted};
use crate::lru::{GenerationsNext, GenerationsPass};
use crate::memory::folio::FolioFlags;
use crate::reclaim::{PRIORITY_DEFAULT, ScanControl};
use crate::stat::Stat;
use crate::state::State;
use crate::story::{ListsEvent, Tracepoint};
use crate::units::{LruType, Pfn};
use pageout_rules::balance::BalanceRule;
use pageout_rules::lru::Lru;

/// A pass over one lruvec, made in rounds of a batch or two.
pub(crate) enum Pass {
    TwoLists {
        /// What goes before: a walk of page tables, where it is time for one.
        walk: Option<Walk>,
        pass: TwoListsPass,
    },
    Generations(GenerationsPass),
    Guest {
        remaining: u64,
    },
    /// While the group is switched: one after the other, from the last.
    Several(Vec<Pass>),
}

impl Pass {
    /// Returns true if it ended because too little was old enough, so that it has aged the rest.
    pub(super) fn has_aged(&self) -> bool {
        matches!(self, Pass::Generations(pass) if pass.rotates())
    }
}

/// The position of a round in its pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Round {
    More,
    Last,
}

impl Core {
    pub(super) fn begin_pass(&mut self, lruvec: LruvecId, sc: &mut ScanControl) -> Pass {
        let pass = self.begin_pass_of(self.mm.lru_of(lruvec), lruvec, sc);
        match self.mm.lru_left_behind(lruvec) {
            None => pass,
            Some(lru) => Pass::Several(vec![pass, self.begin_pass_of(lru, lruvec, sc)]),
        }
    }

    fn begin_pass_of(&mut self, lru: Lru, lruvec: LruvecId, sc: &mut ScanControl) -> Pass {
        match lru {
            Lru::TwoLists => self.two_lists_begin(lruvec, sc),
            Lru::Generations => {
                sc.hands.has_walked = false;
                self.lru_add_drain();
                Pass::Generations(GenerationsPass::default())
            }
            Lru::Guest(_) => {
                self.lru_add_drain();
                // Anonymous memory alone, and no place to put it: no page that the guest would nominate could go.
                let has_any = self.mm.evictable(lruvec) > 0 || self.mm.can_demote_from(lruvec);
                let pages = if has_any { self.guest_pages(lruvec) } else { 0 };
                Pass::Guest { remaining: pages >> sc.priority }
            }
        }
    }

    #[doc(alias = "shrink_lruvec")]
    pub(super) fn pass_round(&mut self, lruvec: LruvecId, pass: &mut Pass, sc: &mut ScanControl) -> Round {
        match pass {
            Pass::TwoLists { walk, pass } => self.two_lists_round(lruvec, walk, pass, sc),
            Pass::Generations(pass) => self.generations_round(lruvec, pass, sc),
            Pass::Guest { remaining } => self.guest_round(lruvec, remaining, sc),
            Pass::Several(passes) => {
                let Some(pass) = passes.last_mut() else { return Round::Last };
                if self.pass_round(lruvec, pass, sc) == Round::Last {
                    passes.pop();
                }
                if passes.is_empty() { Round::Last } else { Round::More }
            }
        }
    }

    fn two_lists_begin(&mut self, lruvec: LruvecId, sc: &mut ScanControl) -> Pass {
        let balance = self.mm.scan_balance(lruvec, sc);
        let targets = self.mm.scan_count(lruvec, balance, sc);
        let priority = sc.priority;
        self.tell_lists(lruvec, |_| ListsEvent::PassBegun { balance, priority, targets });
        let walk = two_lists::wants_walk(self.mm.view(lruvec)).then(|| {
            self.mm.lruvecs[lruvec].walk.scanned_since = 0;
            self.mm.walk_begin(lruvec, sc.by.swappiness, false)
        });
        Pass::TwoLists { walk, pass: TwoListsPass::new(targets) }
    }

    /// One round over two lists: up to a batch of each.
    fn two_lists_round(
        &mut self,
        lruvec: LruvecId,
        walk: &mut Option<Walk>,
        pass: &mut TwoListsPass,
        sc: &mut ScanControl,
    ) -> Round {
        if let Some(under_way) = walk {
            if self.walk_step(lruvec, under_way) != Walked::More {
                *walk = None;
            }
            return Round::More;
        }
        if let Some(held) = sc.hands.held_blocks.take() {
            pass.judged(self.shrink_held_blocks(held, sc));
            return Round::More;
        }
        let wanted = Wanted {
            batch: self.mm.config.reclaim_batch,
            pages: sc.nr_to_reclaim,
            is_proportional: sc.by.is_global() && !sc.by.is_kswapd() && sc.priority == PRIORITY_DEFAULT,
            is_interrupted: sc.is_interrupted,
        };
        loop {
            match pass.ask(self.mm.view(lruvec), &mut sc.plan.aging, wanted) {
                Ask::Shrink { list, n } => {
                    pass.judged(self.shrink_inactive(lruvec, list, n, sc));
                    if sc.waits.must_wait {
                        pass.put_off(list, n);
                        return Round::More;
                    }
                    if sc.hands.held_blocks.is_some() {
                        pass.break_round();
                        return Round::More;
                    }
                }
                Ask::Age { list, n, why } => self.shrink_active(lruvec, list, n, why, sc),
                Ask::Rest => return Round::More,
                Ask::End => break,
            }
        }
        sc.nr_reclaimed += pass.reclaimed();
        // Even where anonymous pages are not reclaimed now they must age, or the first swap-out would meet a list in
        // order of allocation. Done after each pass, whatever the deactivation bits say.
        if self.mm.memory.swap.devices() > 0 || self.mm.can_demote_from(lruvec) {
            self.age_anon(lruvec, sc);
        }
        Round::Last
    }

    /// Ages a batch of a group's active anonymous pages, where it has too few inactive ones.
    pub(super) fn age_anon(&mut self, lruvec: LruvecId, sc: &mut ScanControl) {
        let why = Deactivation::of(self.mm.view(lruvec), LruType::Anon, false);
        if why.inactive_is_low() {
            self.shrink_active(lruvec, LruList::ActiveAnon, self.mm.config.reclaim_batch, Some(why), sc);
        }
    }

    /// Looks at up to `n` pages from the cold end of an inactive list and reclaims what it can.
    #[doc(alias = "shrink_inactive_list")]
    fn shrink_inactive(&mut self, lruvec: LruvecId, list: LruList, n: u64, sc: &mut ScanControl) -> u64 {
        let kind = list.kind();
        if self.too_many_isolated(self.mm.lruvecs[lruvec].node, kind, sc) {
            return 0;
        }
        self.lru_add_drain();
        if self.mm.is_lumpy(sc) {
            return self.shrink_blocks(lruvec, list, n, sc);
        }
        let mut folios = std::mem::take(&mut self.isolated);
        let taken = self.isolate_from(lruvec, list as usize, n, &mut folios, sc);
        if taken == 0 {
            self.isolated = folios;
            return 0;
        }
        self.mm.lruvecs[lruvec].walk.scanned_since += taken;
        let stat = self.shrink_batch(Lru::TwoLists, lruvec, kind, &mut folios, taken, sc);
        assert!(folios.is_empty(), "folios of a batch are neither freed nor on a list");
        self.isolated = folios;
        self.note_cost(lruvec, kind, stat.written, stat.taken - stat.reclaimed);
        stat.reclaimed
    }

    /// Takes up to `n` pages from the cold end of an active list. The LRU decides for each, by its references, to which list it goes back.
    #[doc(alias = "shrink_active_list")]
    fn shrink_active(
        &mut self,
        lruvec: LruvecId,
        list: LruList,
        n: u64,
        why: Option<Deactivation>,
        sc: &mut ScanControl,
    ) {
        let (kind, node) = (list.kind(), self.mm.lruvecs[lruvec].node);
        self.lru_add_drain();
        let begun = self.out.begin();
        let mut folios = std::mem::take(&mut self.isolated);
        let taken = self.isolate_from(lruvec, list as usize, n, &mut folios, sc);
        self.mm.note_isolated(node, kind, taken, sc);
        self.count_reclaim(lruvec, Stat::Pgrefill, taken, sc);
        let mut rotated = 0;
        for &pfn in &folios {
            if self.mm.memory.folios[pfn].has(FolioFlags::MLOCKED) {
                continue;
            }
            let referenced = self.folio_referenced(pfn, false);
            if two_lists::stays_active(&mut self.view_mut(lruvec), pfn, referenced, why) {
                rotated += self.mm.memory.folios[pfn].pages();
            }
        }
        // Kept and deactivated folios alike go to the head of their list in the order in which they were taken.
        self.put_back_all(&mut folios);
        self.isolated = folios;
        self.out.end_aging(begun);
        self.note_cost(lruvec, kind, 0, rotated);
        let priority = sc.priority;
        self.trace(node, |_| Tracepoint::LruShrinkActive {
            kind,
            nr_taken: taken,
            nr_active: rotated,
            nr_deactivated: taken - rotated,
            nr_referenced: rotated,
            priority,
        });
    }

    /// One round over generations: evicts a batch, or does a part of an aging.
    #[doc(alias = "try_to_shrink_lruvec")]
    fn generations_round(
        &mut self,
        lruvec: LruvecId,
        pass: &mut GenerationsPass,
        sc: &mut ScanControl,
    ) -> Round {
        let (swappiness, most, budget) = match self.generations_next(lruvec, pass, sc) {
            GenerationsNext::Evict { swappiness, most, budget } => (swappiness, most, budget),
            GenerationsNext::Rest => return Round::More,
            GenerationsNext::End => return Round::Last,
        };
        let (kind, scanned) = self.evict(lruvec, swappiness, most, sc);
        pass.took(kind);
        let is_over = pass.has_used_up(budget, scanned) || self.mm.ends_pass(lruvec, pass, sc);
        if is_over { Round::Last } else { Round::More }
    }

    /// Scans up to `most` pages and evicts a batch of them. Returns its type, and the number of pages scanned: 0 if a further call would
    /// gain nothing.
    #[doc(alias = "evict_folios")]
    pub(crate) fn evict(
        &mut self,
        lruvec: LruvecId,
        swappiness: u8,
        most: u64,
        sc: &mut ScanControl,
    ) -> (LruType, u64) {
        let mut batch = std::mem::take(&mut self.isolated);
        let (kind, scanned) = self.take_oldest(lruvec, swappiness, most, &mut batch, sc);
        let stat = self.shrink_batch(Lru::Generations, lruvec, kind, &mut batch, scanned, sc);
        assert!(batch.is_empty(), "folios of a batch are neither freed nor on a list");
        self.isolated = batch;
        sc.nr_reclaimed += stat.reclaimed;
        if self.mm.memcgs[self.mm.lruvecs[lruvec].memcg].policy.balance.rule == BalanceRule::Cost {
            self.note_cost(lruvec, kind, stat.written, stat.taken - stat.reclaimed);
        }
        (kind, scanned)
    }

    /// One round over what a guest keeps: up to a batch, and no more than is still wanted.
    fn guest_round(&mut self, lruvec: LruvecId, remaining: &mut u64, sc: &mut ScanControl) -> Round {
        let wanted = sc.nr_to_reclaim.saturating_sub(sc.nr_reclaimed);
        let n = (*remaining).min(self.mm.config.reclaim_batch).min(wanted);
        if n == 0 {
            return Round::Last;
        }
        *remaining -= n;
        self.lru_add_drain();
        let Some(mut nominated) = self.guest_nominate(lruvec, n) else { return Round::Last };
        let mut folios = std::mem::take(&mut self.isolated);
        self.isolate_nominated(lruvec, &mut nominated, n, &mut folios, sc);
        // Counted by type, though they stand in one order.
        let mut files = std::mem::take(&mut nominated.files);
        let is_file = |pfn: &mut Pfn| self.mm.memory.folios[*pfn].lru_type() == LruType::File;
        files.extend(folios.extract_if(.., is_file));
        let lru = self.mm.lru_of(lruvec);
        for (kind, batch) in [(LruType::Anon, &mut folios), (LruType::File, &mut files)] {
            let scanned = batch.len() as u64;
            sc.nr_reclaimed += self.shrink_batch(lru, lruvec, kind, batch, scanned, sc).reclaimed;
        }
        self.isolated = folios;
        nominated.files = files;
        self.mm.guest_judged(lruvec, nominated);
        if *remaining > 0 && sc.nr_reclaimed < sc.nr_to_reclaim { Round::More } else { Round::Last }
    }
}

impl State {
    /// Returns true if a group has too few inactive anonymous pages, by its statistics.
    pub(super) fn is_inactive_anon_low(&self, lruvec: LruvecId) -> bool {
        Deactivation::of(self.view(lruvec), LruType::Anon, false).inactive_is_low()
    }
}
