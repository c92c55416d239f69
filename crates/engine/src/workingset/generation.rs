//! Refaults among generations: was the page evicted from the generation that is still the oldest?
//!
//! A shadow holds the oldest generation at the eviction. If a page comes back while that generation is still the oldest, it was
//! evicted too early: eviction is taking its like right now. The controller is told (`balance/feedback.rs`) and will protect its
//! tier, or spare its type. Later eras count all generations that could still exist.
//!
//! In 6.12 a page that comes back by a fault, or was read often before, gets a full count: the evictor will protect it when it
//! meets it next. Before 6.7 it only counted as in use ([`Restore`]). [reclaim 3.4; reclaim-6.12 3.4]
//!
//! *When it misleads:* where generations last long (pages read through descriptors under little pressure), every refault is
//! recent; where they are short, none is.

use super::Workingset;
use crate::balance::BalanceRule;
use crate::core::Core;
use crate::lru::References;
use crate::lru::lruvec::LruvecId;
use crate::memory::folio::UseBits;
use crate::memory::table::Shadow;
use crate::stat::{ACTIVATE, ByType, RESTORE};
use crate::switch::choice;
use crate::units::{LruType, Pfn};

choice! {
    /// Which pages that come back soon are given back what was known of their use, by the references of 6.12. Those of 6.16 give
    /// back what the shadow holds.
    Restore {
        /// Before 6.7: those that come back by a fault or had a full count. They have been in use; their count begins anew.
        Full = "full",
        /// 6.7 to 6.12: also those one use short of it. Their count comes back full, so that they are spared when eviction
        /// meets them next.
        NearlyFull = "nearly_full",
    }
}

choice! {
    /// How much of a page's count of accesses its shadow holds, by the references of MGLRU-FG.
    ShadowCount {
        /// All of it: 0 to 7.
        Full = "full",
        /// 4 at most, as the counts before had no more: the uppermost tier looks like the one below.
        Four = "four",
    }
}

choice! {
    /// Which pages that come back by a fault count as activated, by the references of 6.16.
    RefaultActivate {
        /// All that come back soon. 6.16 to 7.1, where a fault activates all that it brings in.
        Fault = "fault",
        /// Refaults by faults of pages that were in use when they were evicted. Since 7.2.
        FaultOfWorkingset = "fault_of_workingset",
    }
}

impl Restore {
    /// Uses after which a page that was only read is restored: one or two may be a single use in parts, and to protect those
    /// would spare pages that a scan has passed by. [reclaim-6.12 3.4]
    pub(super) fn least_refs(self) -> u8 {
        match self {
            Restore::Full => 4,
            Restore::NearlyFull => 3,
        }
    }
}

impl Core {
    pub(super) fn generation_stamp(&self, lruvec: LruvecId, kind: LruType) -> u64 {
        // Two lists have no generations: the clock of evictions is all there is.
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

    #[doc(alias = "lru_gen_refault")]
    #[inline(never)]
    pub(super) fn generation_refault(&mut self, pfn: Pfn, shadow: Shadow) {
        let folio = self.memory.folios[pfn];
        let (kind, pages) = (folio.lru_type(), folio.pages() as i64);
        let lruvec = self.lruvec_of(pfn);
        let policy = self.memcgs[folio.memcg].policy;
        if shadow.workingset && policy.balance.rule == BalanceRule::Cost {
            // Not MGLRU's own, which has no costs: what classic charges for a page that was in use.
            self.note_refault_cost(lruvec, kind, folio.pages());
        }
        let references = policy.generations.references;
        match references {
            References::Linux6_12 => {
                self.count(lruvec, ACTIVATE.of(kind), pages);
                let restore = policy.generations.restore;
                if self.in_lru_fault || shadow.refs >= restore.least_refs() {
                    let use_bits = self.memory.use_bits(pfn) | UseBits::WORKINGSET;
                    let count = match restore {
                        Restore::Full => use_bits.counter(),
                        Restore::NearlyFull => UseBits::COUNTER_MAX,
                    };
                    self.memory.set_use_bits(pfn, use_bits.with_counter(count));
                    self.count(lruvec, RESTORE.of(kind), pages);
                }
            }
            References::Frequency if shadow.refs > 0 => {
                let use_bits = self.memory.use_bits(pfn);
                let mut restored = References::with_frequency(use_bits, shadow.refs.min(3));
                if self.in_lru_fault {
                    restored |= UseBits::ACTIVE;
                    self.count(lruvec, ACTIVATE.of(kind), pages);
                }
                self.memory.set_use_bits(pfn, restored);
                if shadow.refs >= 2 {
                    self.count(lruvec, RESTORE.of(kind), pages);
                }
            }
            References::Frequency => {}
            References::Linux6_16 => {
                let any = policy.generations.refault_activate == RefaultActivate::Fault;
                if self.in_lru_fault && (any || shadow.workingset) {
                    self.count(lruvec, ACTIVATE.of(kind), pages);
                }
                let use_bits = self.memory.use_bits(pfn);
                if shadow.workingset {
                    self.memory.set_use_bits(pfn, use_bits | UseBits::WORKINGSET);
                    self.count(lruvec, RESTORE.of(kind), pages);
                } else {
                    // Lost again unless the page is accessed before it is isolated: REFERENCED isn't set here.
                    self.memory.set_use_bits(pfn, use_bits.with_counter(shadow.refs.saturating_sub(1)));
                }
            }
        }
    }
}
