//! Refaults among generations: was the page evicted from the generation that is still the oldest?
//!
//! A shadow holds the oldest generation at the eviction. If a page comes back while that generation is still the oldest, it was
//! evicted too early: eviction is taking similar pages right now. The controller gets this as feedback (`balance/feedback.rs`)
//! and will protect its tier, or spare its type. Later eras count all generations that could still exist.
//!
//! In 6.12 a page that comes back by a fault, or was read often before, gets a full count: the evictor will protect it when it
//! meets it next. Before 6.7 it only counted as in use ([`Restore`]). [reclaim 3.4; reclaim-6.12 3.4]
//!
//! *When it misleads:* where generations last long (pages read through descriptors under little pressure), every refault is
//! recent; where they are short, none is.

use crate::core::Core;
use crate::lru::AddedFor;
use crate::lru::lruvec::LruvecId;
use crate::lru::with_frequency;
use crate::memory::folio::UseBits;
use crate::memory::table::Shadow;
use crate::stat::{ACTIVATE, ByType, RESTORE};
use crate::state::State;
use crate::units::{LruType, Pfn};
use pageout_rules::balance::BalanceRule;
use pageout_rules::lru::References;
use pageout_rules::workingset::Workingset;
use pageout_rules::workingset::{RefaultActivate, RefaultCounters, Restore};

impl Core {
    #[doc(alias = "lru_gen_refault")]
    #[inline(never)]
    pub(super) fn generation_refault(&mut self, pfn: Pfn, shadow: Shadow, added_for: AddedFor) {
        let in_fault = added_for == AddedFor::Fault;
        let folio = self.mm.memory.folios[pfn];
        let (kind, pages) = (folio.lru_type(), folio.pages() as i64);
        let lruvec = self.mm.lruvec_of(pfn);
        let policy = self.mm.memcgs[folio.memcg].policy;
        if shadow.workingset && policy.balance.rule == BalanceRule::Cost {
            // Not MGLRU's own, which has no costs: what classic charges for a page that was in use.
            self.mm.note_refault_cost(lruvec, kind, folio.pages());
        }
        let references = policy.generations.references;
        match references {
            References::Linux6_12 => {
                if policy.refault_counters == RefaultCounters::Refaults {
                    self.count(lruvec, ACTIVATE.of(kind), pages);
                }
                let restore = policy.generations.restore;
                if in_fault || shadow.refs >= restore.least_refs() {
                    let use_bits = self.mm.memory.use_bits(pfn) | UseBits::WORKINGSET;
                    let count = match restore {
                        Restore::Full => use_bits.counter(),
                        Restore::NearlyFull => UseBits::COUNTER_MAX,
                    };
                    self.mm.memory.set_use_bits(pfn, use_bits.with_counter(count));
                    self.count(lruvec, RESTORE.of(kind), pages);
                }
            }
            References::Frequency if shadow.refs > 0 => {
                let use_bits = self.mm.memory.use_bits(pfn);
                let mut restored = with_frequency(use_bits, shadow.refs.min(3));
                if in_fault {
                    restored |= UseBits::ACTIVE;
                    self.count(lruvec, ACTIVATE.of(kind), pages);
                }
                self.mm.memory.set_use_bits(pfn, restored);
                if shadow.refs >= 2 {
                    self.count(lruvec, RESTORE.of(kind), pages);
                }
            }
            References::Frequency => {}
            References::Linux6_16 => {
                let any = policy.generations.refault_activate == RefaultActivate::Fault;
                if in_fault && (any || shadow.workingset) {
                    self.count(lruvec, ACTIVATE.of(kind), pages);
                }
                let use_bits = self.mm.memory.use_bits(pfn);
                if shadow.workingset {
                    self.mm.memory.set_use_bits(pfn, use_bits | UseBits::WORKINGSET);
                    self.count(lruvec, RESTORE.of(kind), pages);
                } else {
                    // Lost again unless the page is accessed before it is isolated: REFERENCED isn't set here.
                    self.mm.memory.set_use_bits(pfn, use_bits.with_counter(shadow.refs.saturating_sub(1)));
                }
            }
        }
    }
}

impl State {
    pub(super) fn generation_stamp(&self, lruvec: LruvecId, kind: LruType) -> u64 {
        // The classic LRU has no generations: it has only the clock of evictions.
        self.kept_generations(lruvec)
            .map_or(self.lruvecs[lruvec].nonresident_age, |generations| generations.min_seq[kind as usize])
    }

    #[doc(alias = "lru_gen_test_recent")]
    #[inline(never)]
    pub(super) fn is_recent_generation(&self, lruvec: LruvecId, shadow: Shadow, kind: LruType) -> bool {
        let Some(generations) = self.kept_generations(lruvec) else { return false };
        match self.memcgs[self.lruvecs[lruvec].memcg].policy.workingset {
            Workingset::OldestGeneration => shadow.distance(generations.min_seq[kind as usize]) == 0,
            _ => shadow.distance(generations.max_seq) < u64::from(self.generation_rules(lruvec).count_max),
        }
    }
}
