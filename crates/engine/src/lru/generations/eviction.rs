//! Eviction: from the oldest generation of one type, coldest first, sorting as it goes.
//!
//! ```text
//!   tail of the oldest ──► found young meanwhile?  ─► to the list of the generation that it carries
//!                      ──► tier above the limit?   ─► protected: to the next generation
//!                      ──► else                    ─► isolated, judged, freed;  rejected ─► to a young generation
//! ```
//! The controller says which type, and up to which tier (`balance/controller.rs`). A round looks at up to 4096 pages (up to 64
//! since 7.2) and isolates up to 64. If it leaves the generation empty, the generation is closed. How rounds make a pass is
//! `lru/pass.rs` of the rules. [reclaim 4.9; reclaim-6.12 4.9; mglru-2026 2.1 to 2.5]

use super::{Aging, GenerationLists, Place};
use crate::accessed::Referenced;
use crate::balance::{CheaperType, RefTierLimit, TIERS, TypeReason};
use crate::core::Core;
use crate::lru::CountsUse;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::{Arrival, FolioReferences};
use crate::memory::folio::{Folio, FolioFlags, UseBits};
use crate::reclaim::ScanControl;
use crate::stat::{ACTIVATE, ByType, Stat};
use crate::state::State;
use crate::story::{Because, PageEvent};
use crate::units::{LruType, Pfn};
use pageout_rules::balance::{BalanceRule, TypeRule};
use pageout_rules::lru::{
    AfterAging, CloseEmpty, DirtyAtTail, GenerationRules, Lru, ProtectTo, References, RejectedUse, RoundSize,
    SWAPPINESS_ANON_ONLY, ScanBudget, ScanReturn, TypeFallback,
};
use pageout_rules::workingset::RefaultCounters;

/// Pages to isolate in a round: as many as a machine word has bits.
pub(crate) const MIN_LRU_BATCH: u64 = 64;
/// Pages to look at in a round: all of them up to 7.1, since then in one that a command asks for.
pub(super) const MAX_LRU_BATCH: u64 = 64 * MIN_LRU_BATCH;

/// A pass over the generations of one lruvec.
#[derive(Default)]
pub(crate) struct GenerationsPass {
    /// Pages that it may scan, where they are counted once.
    budget: Option<u64>,
    scanned: u64,
    aging: Option<Box<Aging>>,
    /// The pass has aged, or waited for someone who did.
    has_aged: bool,
    /// The group has nothing old any more, or may not give more: it comes last the next time.
    rotates: bool,
    /// The youngest generation as it began.
    began_at: Option<u64>,
    /// The pass has isolated anonymous pages.
    took_anon: bool,
}

impl GenerationsPass {
    /// Returns whether the group comes last the next time.
    pub(crate) fn rotates(&self) -> bool {
        self.rotates
    }

    /// Returns true if it has aged, or waited for someone who did.
    pub(crate) fn has_aged(&self) -> bool {
        self.has_aged
    }

    /// A batch of this type was isolated.
    pub(crate) fn took(&mut self, kind: LruType) {
        self.took_anon |= kind == LruType::Anon;
    }

    /// Returns true if it has isolated anonymous pages.
    pub(crate) fn took_anon(&self) -> bool {
        self.took_anon
    }

    /// Generations that were opened since it began, by whomever.
    pub(crate) fn opened(&self, youngest: u64) -> u64 {
        self.began_at.map_or(0, |began_at| youngest.saturating_sub(began_at))
    }

    /// A batch was judged, for which so many pages count as scanned: whether nothing is left to do.
    pub(crate) fn has_used_up(&mut self, budget: u64, scanned: u64) -> bool {
        self.scanned += scanned;
        scanned == 0 || self.scanned >= budget
    }
}

/// The next work of the core for a pass over generations.
pub(crate) enum GenerationsNext {
    /// Evict a batch by looking at up to `most` pages, of the `budget` that the pass may scan.
    Evict { swappiness: u8, most: u64, budget: u64 },
    /// The round is over: others may run before the next.
    Rest,
    /// The pass is over.
    End,
}

/// What there was of a type that gave nothing.
fn had_nothing(generations: &GenerationLists, kind: LruType) -> TypeReason {
    TypeReason::OtherHadNothing {
        generations: generations.count(kind),
        oldest: generations.listed(generations.oldest(kind), kind),
        youngest: generations.pages(generations.max_seq)[kind as usize],
        all: generations.total(kind),
    }
}

/// The outcome of isolating a batch from the oldest generation of a type. Unit: pages.
#[derive(Clone, Copy, Default)]
struct Isolation {
    looked_at: u64,
    isolated: u64,
    /// The isolation has looked at all that it may.
    is_exhausted: bool,
}

impl Core {
    /// What a round is for: a batch to evict, or a part of an aging, which is done here. Up to 7.1 a pass ages at most once, at its
    /// end; memory younger than that is left to the next priority.
    pub(crate) fn generations_next(
        &mut self,
        lruvec: LruvecId,
        pass: &mut GenerationsPass,
        sc: &mut ScanControl,
    ) -> GenerationsNext {
        let rules = self.mm.generation_rules(lruvec).pass;
        let swappiness = self.mm.effective_swappiness(lruvec, sc);
        pass.began_at.get_or_insert(self.mm.generations(lruvec).max_seq);
        if let Some(aging) = &mut pass.aging {
            let Some(has_opened) = self.aging_step(lruvec, aging) else { return GenerationsNext::Rest };
            pass.aging = None;
            pass.has_aged = true;
            // The walk's buffer stays to the end of the pass.
            sc.hands.has_walked = rules.after_aging == AfterAging::Continue;
            pass.rotates |= has_opened || rules.after_aging == AfterAging::Stop;
            if rules.after_aging == AfterAging::Stop {
                return GenerationsNext::End;
            }
        } else {
            if rules.scan_budget == ScanBudget::Pinned {
                if pass.budget.is_none() {
                    pass.budget = Some(self.mm.generations_budget(lruvec, swappiness, sc));
                }
                if pass.budget == Some(0) {
                    return GenerationsNext::End;
                }
                if self.mm.is_below_min(lruvec, sc) {
                    pass.rotates = true;
                    return GenerationsNext::End;
                }
            }
            if self.mm.wants_aging(lruvec, swappiness, sc) {
                pass.aging = Some(Box::new(self.mm.aging_begin(lruvec, swappiness, false)));
                return GenerationsNext::Rest;
            }
        }
        let budget = pass.budget.unwrap_or_else(|| self.mm.generations_budget(lruvec, swappiness, sc));
        if budget == 0 {
            return GenerationsNext::End;
        }
        let most = match rules.round {
            RoundSize::Most4096 => MAX_LRU_BATCH,
            RoundSize::Most64 => MIN_LRU_BATCH.min(budget.saturating_sub(pass.scanned).max(1)),
        };
        GenerationsNext::Evict { swappiness, most, budget }
    }

    /// Takes a batch by scanning up to `most` pages. Returns its type, and how many pages count as scanned: 0 if a further call would gain
    /// nothing.
    pub(crate) fn take_oldest(
        &mut self,
        lruvec: LruvecId,
        swappiness: u8,
        most: u64,
        batch: &mut Vec<Pfn>,
        sc: &mut ScanControl,
    ) -> (LruType, u64) {
        let rules = self.mm.generation_rules(lruvec).pass;
        let is_exact = rules.scan_return == ScanReturn::Exact;
        let mut has_closed = rules.close_empty == CloseEmpty::BeforeAndAfter
            && self.close_empty_generations(lruvec, swappiness);
        let (looked_at, kind) = self.isolate_oldest(lruvec, swappiness, most, batch, sc);
        let mut scanned = looked_at;
        if rules.close_empty == CloseEmpty::After || looked_at > 0 {
            has_closed |= self.close_empty_generations(lruvec, swappiness);
        }
        if !is_exact {
            scanned += u64::from(has_closed);
            let generations = self.mm.generations(lruvec);
            let types = Core::evictable_types(swappiness);
            let count = generations.max_seq - generations.deciding_min_seq(types) + 1;
            if count <= self.mm.generation_rules(lruvec).spared() {
                // Nothing evictable is left without aging.
                scanned = 0;
            }
        }
        (kind, scanned)
    }

    /// Isolates from the type whose turn it is. If that has nothing to give, from the other one.
    #[doc(alias = "isolate_folios")]
    fn isolate_oldest(
        &mut self,
        lruvec: LruvecId,
        swappiness: u8,
        most: u64,
        batch: &mut Vec<Pfn>,
        sc: &mut ScanControl,
    ) -> (u64, LruType) {
        let rules = self.mm.generation_rules(lruvec).pass;
        let CheaperType { mut kind, limit, reason } = self.mm.type_and_ref_tier(lruvec, swappiness, sc);
        self.tell_type(lruvec, kind, limit, reason);
        let first = self.isolate_type(lruvec, kind, limit, most, batch, sc);
        let is_exact = rules.scan_return == ScanReturn::Exact;
        let said = |found: Isolation| match is_exact || found.isolated > 0 || found.is_exhausted {
            true => found.looked_at,
            false => 0,
        };
        let has_given = first.isolated > 0 || !is_exact && said(first) > 0;
        if has_given || Core::evictable_types(swappiness).len() == 1 {
            return (said(first), kind);
        }
        let gave_nothing = kind;
        if rules.type_fallback == TypeFallback::NoIsolation || first.looked_at == 0 {
            kind = if kind == LruType::Anon { LruType::File } else { LruType::Anon };
        }
        let limit = self.mm.ref_tier_to_evict(lruvec, kind);
        if kind != gave_nothing {
            self.tell_type(lruvec, kind, limit, had_nothing(self.mm.generations(lruvec), gave_nothing));
        }
        let second = self.isolate_type(lruvec, kind, limit, most, batch, sc);
        (if is_exact { first.looked_at } else { 0 } + said(second), kind)
    }

    /// Looks at the oldest generation of a type from its tail.
    fn isolate_type(
        &mut self,
        lruvec: LruvecId,
        kind: LruType,
        limit: RefTierLimit,
        most: u64,
        batch: &mut Vec<Pfn>,
        sc: &mut ScanControl,
    ) -> Isolation {
        let rules = self.mm.generation_rules(lruvec);
        let generations = self.mm.generations(lruvec);
        if generations.count(kind) <= rules.spared() {
            return Isolation::default();
        }
        let group = generations.group_of(generations.oldest(kind), kind);
        let (mut looked_at, mut scanned, mut sorted, mut isolated, mut skipped) = (0, 0, 0, 0, 0);
        let checks_io = rules.pass.isolate_io_check && !sc.by.may_do_io;
        let zones = self.mm.lruvecs[lruvec].zones();
        let first_rank = self.mm.first_rank_in_reach(lruvec, sc);
        // The highest zone that is of use first, the others down from there, and last those above.
        for rank in (first_rank..zones).chain(0..first_rank) {
            let list = self.mm.generations(lruvec).list_of(group, rank);
            let (mut passed_by, mut skipped_here) = (Vec::new(), 0);
            while looked_at < most && isolated.max(skipped_here) < MIN_LRU_BATCH {
                let Some(item) = self.mm.generations(lruvec).lists[list].tail() else { break };
                let pfn = Pfn(item);
                let pages = self.mm.memory.folios[pfn].pages();
                scanned += pages;
                // Since 7.2 a large folio counts once against the scan limit.
                looked_at += if rules.pass.round == RoundSize::Most64 { 1 } else { pages };
                if self.sort_folio(lruvec, pfn, limit, rank < first_rank) || self.sort_dirty(lruvec, pfn, sc)
                {
                    sorted += pages;
                } else if checks_io && self.mm.memory.needs_io(pfn) {
                    self.mm.generation_list_remove(lruvec, pfn);
                    skipped_here += pages;
                    passed_by.push(pfn);
                } else {
                    self.isolate_from_generation(lruvec, pfn);
                    isolated += pages;
                    batch.push(pfn);
                    self.mm.prefetch_words(&self.mm.memory.folios[pfn]);
                }
            }
            for pfn in passed_by {
                let slot = usize::from(self.mm.memory.places[pfn].generation - 1);
                self.generation_list_add(lruvec, pfn, slot, false);
            }
            if skipped_here > 0 {
                self.mm.note_skipped(lruvec, rank, skipped_here);
                skipped += skipped_here;
            }
            if looked_at >= most || isolated >= MIN_LRU_BATCH {
                break;
            }
        }
        self.out.count.scanned(scanned);
        self.looked_at += scanned;
        self.out.count.list_moves(batch.len() as u64);
        self.count_reclaim(lruvec, Stat::Pgrefill, sorted, sc);
        self.trace_isolated(lruvec, LruList::inactive(kind), [most, scanned, skipped, isolated], sc);
        self.mm.note_taken(lruvec, kind, isolated);
        Isolation { looked_at: scanned, isolated, is_exhausted: looked_at >= most }
    }

    /// Moves a folio that isn't to be evicted now to where it belongs; false if it is to be isolated. `is_no_use`: its zone is none that the
    /// reclaimer needs a page of.
    fn sort_folio(&mut self, lruvec: LruvecId, pfn: Pfn, limit: RefTierLimit, is_no_use: bool) -> bool {
        let rules = self.mm.generation_rules(lruvec);
        let folio = self.mm.memory.folios[pfn];
        if folio.has(FolioFlags::MLOCKED) {
            // Let through, to be taken off the lists with the rest of the batch.
            return false;
        }
        let kind = folio.lru_type();
        let own = usize::from(self.mm.memory.places[pfn].generation - 1);
        let oldest = self.mm.generations(lruvec).oldest(kind);
        if own != oldest {
            self.tell(pfn, |_| PageEvent::Sorted);
            self.mm.generation_list_remove(lruvec, pfn);
            self.generation_list_add(lruvec, pfn, own, false);
            return true;
        }
        let use_bits = self.mm.memory.use_bits(pfn);
        let references = rules.references;
        let tier = references.tier(references.refs(use_bits), use_bits.contains(UseBits::WORKINGSET));
        let at_top = rules.full_count && references.is_full(use_bits);
        let to = self.mm.generations(lruvec).min_seq[kind as usize] + 1;
        if !rules.tiers || tier <= limit.highest && !at_top {
            if is_no_use {
                self.tell(pfn, |_| PageEvent::OutOfReach { to });
                self.move_to_next(lruvec, pfn, to, true);
            }
            return is_no_use;
        }
        self.tell(pfn, |engine| {
            let spared = engine.told_position((limit.highest + 1).min(TIERS - 1));
            PageEvent::Protected { tier: tier as u8, limit, spared, at_top, to }
        });
        self.mm.note_protected(lruvec, pfn);
        let counters = self.mm.memcgs[folio.memcg].policy.refault_counters;
        if counters == RefaultCounters::Protected && references == References::Linux6_12 {
            self.count(lruvec, ACTIVATE.of(kind), folio.pages() as i64);
        }
        self.move_to_next(lruvec, pfn, to, rules.protect_to == ProtectTo::Tail);
        true
    }

    /// A folio of the oldest generation belongs to the next from now on, as one does that is a generation older than it was used.
    fn move_to_next(&mut self, lruvec: LruvecId, pfn: Pfn, to: u64, at_tail: bool) {
        debug_assert!(
            to <= self.mm.generations(lruvec).max_seq,
            "{pfn:?} moves to a generation that is not open"
        );
        let references = self.mm.generation_rules(lruvec).references;
        let next = self.mm.generations(lruvec).slot(to);
        self.change_use_bits(lruvec, pfn, references.aged(self.mm.memory.use_bits(pfn)));
        self.mm.generation_list_remove(lruvec, pfn);
        self.generation_update(lruvec, pfn, next);
        self.generation_list_add(lruvec, pfn, next, at_tail);
    }

    /// Moves a folio that can't be freed before it is written to the next generation, where the rules say so; false if it is to
    /// be isolated.
    fn sort_dirty(&mut self, lruvec: LruvecId, pfn: Pfn, sc: &mut ScanControl) -> bool {
        let folio = self.mm.memory.folios[pfn];
        let is_file = folio.lru_type() == LruType::File && !folio.has(FolioFlags::ANON);
        let is_written = folio.has(FolioFlags::WRITEBACK);
        let is_dirty = is_written || is_file && folio.has(FolioFlags::DIRTY);
        if !is_dirty
            || folio.has(FolioFlags::MLOCKED)
            || self.mm.generation_rules(lruvec).dirty != DirtyAtTail::NextGeneration
        {
            return false;
        }
        if is_file && folio.has(FolioFlags::DIRTY) {
            sc.tally.file_taken += folio.pages();
            sc.tally.unqueued_dirty += if is_written { 0 } else { folio.pages() };
        }
        self.mm.memory.change_reclaim(pfn, true);
        let to = self.mm.generations(lruvec).min_seq[folio.lru_type() as usize] + 1;
        let next = self.mm.generations(lruvec).slot(to);
        self.tell(pfn, |_| PageEvent::PassedOn { to });
        self.mm.generation_list_remove(lruvec, pfn);
        self.generation_update(lruvec, pfn, next);
        self.generation_list_add(lruvec, pfn, next, false);
        true
    }

    fn isolate_from_generation(&mut self, lruvec: LruvecId, pfn: Pfn) {
        self.tell(pfn, |_| PageEvent::Isolated);
        let references = self.mm.generation_rules(lruvec).references;
        self.mm.memory.folios[pfn].clear(FolioFlags::LRU);
        self.generations_forget(lruvec, pfn);
        debug_assert!(self.mm.memory.places[pfn] == Place::default(), "{pfn:?} is isolated, and has a place");
        self.mm.assert_isolated(pfn);
        let use_bits = self.mm.memory.use_bits(pfn);
        self.mm.memory.set_use_bits(pfn, references.isolated(use_bits));
        if references != References::Linux6_12
            && self.mm.generation_rules(lruvec).dirty != DirtyAtTail::Reactivate
        {
            self.mm.memory.change_reclaim(pfn, false);
        }
    }

    /// Puts a folio back that could not be freed.
    pub(crate) fn generations_put_back(&mut self, lruvec: LruvecId, pfn: Pfn) {
        self.mm.reject(lruvec, pfn);
        self.put_back(pfn);
    }
}

impl State {
    /// Returns true if the group has come down to what is never taken from it.
    fn is_below_min(&self, lruvec: LruvecId, sc: &ScanControl) -> bool {
        let memcg = self.lruvecs[lruvec].memcg;
        let min = self.protection_from(memcg, sc).min;
        memcg != sc.by.target && min > 0 && min >= self.memcgs[memcg].usage
    }

    /// The type to take next and the highest of its tiers to take.
    fn type_and_ref_tier(&self, lruvec: LruvecId, swappiness: u8, sc: &ScanControl) -> CheaperType {
        let balance = self.memcgs[self.lruvecs[lruvec].memcg].policy.balance;
        let [anon, file] = self.generations(lruvec).min_seq;
        let fixed = match (balance.type_rule, swappiness) {
            (_, 0) => Some((LruType::File, TypeReason::NoSwap)),
            (_, SWAPPINESS_ANON_ONLY) => Some((LruType::Anon, TypeReason::Swappiness(SWAPPINESS_ANON_ONLY))),
            (TypeRule::Linux6_12, _) if anon < file => {
                Some((LruType::Anon, TypeReason::AnonIsOlder { oldest: [anon, file] }))
            }
            (_, 1) => Some((LruType::File, TypeReason::Swappiness(1))),
            (_, 200) => Some((LruType::Anon, TypeReason::Swappiness(200))),
            _ => None,
        };
        if fixed.is_none() && balance.rule == BalanceRule::Feedback && balance.controller {
            return self.cheaper_type(lruvec, swappiness);
        }
        let (kind, reason) = fixed.unwrap_or_else(|| {
            let [anon, file] = self.weights(lruvec, sc);
            let taken = self.generations(lruvec).taken;
            let anon_is_behind = taken[0] * file < taken[1] * anon || taken == [0; 2] && anon > file;
            let kind = if anon_is_behind { LruType::Anon } else { LruType::File };
            (kind, TypeReason::Shares { taken, weights: [anon, file] })
        });
        CheaperType { kind, limit: self.ref_tier_to_evict(lruvec, kind), reason }
    }

    /// Returns true if a look around from an earlier folio of the batch has found this one used. 6.12 clears REFERENCED at isolation, so
    /// nothing else can have set it since. In 6.16 the bit survives isolation and proves nothing. [reclaim-6.12 2.9]
    pub(crate) fn was_looked_at(&self, folio: &Folio) -> bool {
        let policy = &self.memcgs[folio.memcg].policy;
        policy.lru == Lru::Generations
            && policy.generations.references == References::Linux6_12
            && self.memory.use_bits_of(folio).contains(UseBits::REFERENCED)
    }

    /// Tells the controller that a page of the oldest generation is spared.
    pub(super) fn note_protected(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let folio = self.memory.folios[pfn];
        let (kind, use_bits) = (folio.lru_type(), self.memory.use_bits(pfn));
        let GenerationRules { references, full_count, .. } = self.generation_rules(lruvec);
        // 6.16: at the top of the ladder a page is spared whatever the controller says, so the controller learns nothing from it.
        if references == References::Linux6_16 && full_count && references.is_full(use_bits) {
            return;
        }
        let tier = references.tier(references.refs(use_bits), use_bits.contains(UseBits::WORKINGSET));
        if tier > 0 || references != References::Linux6_12 {
            let slot = self.generations(lruvec).oldest(kind);
            self.lruvecs[lruvec].feedback.note_protected(slot, kind, tier.min(TIERS - 1), folio.pages());
        }
    }

    /// Where shares choose the type: remembers what each has given. The past counts less and less.
    fn note_taken(&mut self, lruvec: LruvecId, kind: LruType, pages: u64) {
        let held = self.lruvecs[lruvec].evictable();
        let taken = &mut self.generations_mut(lruvec).taken;
        taken[kind as usize] += pages;
        if taken[0] + taken[1] > held / 4 {
            *taken = taken.map(|pages| pages / 2);
        }
    }

    /// Prepares a folio that could not be freed for going back.
    fn reject(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let folio = self.memory.folios[pfn];
        if folio.has(FolioFlags::MLOCKED) {
            return;
        }
        let GenerationRules { references, rejected_use, .. } = self.generation_rules(lruvec);
        if rejected_use != RejectedUse::Lost {
            return self.reject_by_place(lruvec, pfn, rejected_use);
        }
        let use_bits = self.memory.use_bits(pfn);
        let waits_for_write = folio.has(FolioFlags::RECLAIM)
            && folio.flags().intersects(FolioFlags::DIRTY | FolioFlags::WRITEBACK);
        let use_bits = match references {
            References::Linux6_12 if waits_for_write => {
                // It goes as soon as it is written; what was known of its use stays with it until then.
                let is_used = use_bits.contains(UseBits::WORKINGSET);
                if is_used { use_bits | UseBits::REFERENCED } else { use_bits }
            }
            // Only what would land in the oldest generation again is pushed up.
            References::Linux6_16 | References::Frequency
                if waits_for_write || use_bits.contains(UseBits::ACTIVE) =>
            {
                use_bits
            }
            References::Linux6_12 | References::Linux6_16 | References::Frequency => {
                references.aged(use_bits) | UseBits::ACTIVE
            }
        };
        self.memory.set_use_bits(pfn, use_bits);
    }

    /// Prepares a folio that could not be freed for going back, since 6.16: it is pushed up only where it would be in the oldest
    /// generation again.
    fn reject_by_place(&mut self, lruvec: LruvecId, pfn: Pfn, rule: RejectedUse) {
        let references = self.generation_rules(lruvec).references;
        let use_bits = self.memory.use_bits(pfn);
        if rule == RejectedUse::Clear {
            self.memory.set_use_bits(pfn, references.aged(use_bits));
        }
        if use_bits.contains(UseBits::ACTIVE) {
            return;
        }
        let (seq, _) = self.generation_for(lruvec, pfn, Arrival::PutBack);
        if seq == self.generations(lruvec).min_seq[self.memory.folios[pfn].lru_type() as usize] {
            self.memory.set_use_bits(pfn, references.aged(use_bits) | UseBits::ACTIVE);
        }
    }

    /// What 6.16 and later make of a folio's use. It takes the same two steps as the walk. File accesses are no reason to keep a page:
    /// its tier has been judged by them already.
    pub(in crate::lru) fn referenced_by_count(
        &mut self,
        pfn: Pfn,
        referenced: Referenced,
    ) -> FolioReferences {
        let Referenced { young, executable, .. } = referenced;
        if young == 0 {
            return FolioReferences::Reclaim;
        }
        let lruvec = self.lruvec_of(pfn);
        let GenerationRules { references, rmap_promote, .. } = self.generation_rules(lruvec);
        let use_bits = self.memory.use_bits(pfn);
        let was_referenced = use_bits.intersects(UseBits::REFERENCED | UseBits::WORKINGSET);
        let executable = executable && self.spares_code(lruvec, pfn);
        let (use_bits, is_used) = references.found_referenced(use_bits, rmap_promote, executable);
        self.memory.set_use_bits(pfn, use_bits);
        let because = Because::Used { young, was_referenced, executable };
        if is_used { FolioReferences::Activate(because) } else { FolioReferences::Keep(because) }
    }
}
