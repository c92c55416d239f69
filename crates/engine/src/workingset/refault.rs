//! Shadows at eviction and at refault: reclaim leaves a shadow in an evicted page's slot, and the refault reads it and is counted.
//! The rule of its memcg decides whether the page is activated (`distance.rs`, `generation.rs`). [reclaim 3]

use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::lru::{AddedFor, CountsUse};
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::table::{Entry, Shadow, Word};
use crate::stat::{ACTIVATE, ByType, REFAULT};
use crate::state::State;
use crate::story::{PageEvent, RefaultRule};
use crate::units::{FileId, LruType, Pfn};
use pageout_rules::workingset::{RefaultCounters, ShadowCount, Workingset};

impl Core {
    /// A reclaim cycle is over. The next one will compare the activations that refaults have caused with these, which are as
    /// old as a reader's copy is.
    pub(crate) fn workingset_end_cycle(&mut self, target: LruvecId) {
        for kind in LruType::BOTH {
            self.mm.lruvecs[target].refaults[kind as usize] = self.mm.stale(target, ACTIVATE.of(kind));
            if let Some(live) = self.live_stats(target).map(|live| live.get(ACTIVATE.of(kind))) {
                self.mm.lruvecs[target].refaults_live[kind as usize] = live;
            }
        }
    }

    /// Evaluates the shadow found in the slot of a folio that has just been read in again, before it goes to the lists.
    #[inline]
    pub(crate) fn workingset_refault(&mut self, pfn: Pfn, found: Word, added_for: AddedFor) {
        let Entry::Shadow(shadow) = found.decode() else { return };
        let folio = &self.mm.memory.folios[pfn];
        let (memcg, node, kind, pages) = (folio.memcg, folio.node, folio.lru_type(), folio.pages());
        let lruvec = self.mm.lruvec_of(pfn);
        let workingset = self.mm.memcgs[memcg].policy.workingset;
        let by_generation = matches!(workingset, Workingset::OldestGeneration | Workingset::AnyGeneration);
        if by_generation && (shadow.memcg, shadow.node) != (memcg, node) {
            // Another group's generations can't be compared with this one's.
            self.tell_refault(pfn, shadow, RefaultRule::OtherGroup, false);
            return;
        }
        if !by_generation {
            self.flush_stats_for_refault(memcg);
        }
        self.mm.note_guest_refault(lruvec, pfn, shadow);
        let is_recent = match workingset {
            Workingset::Distance => self.is_within_distance(shadow, memcg, kind),
            Workingset::OldestGeneration | Workingset::AnyGeneration => {
                self.mm.is_recent_generation(lruvec, shadow, kind)
            }
            Workingset::CountOnly => false,
        };
        let counters = self.mm.memcgs[memcg].policy.refault_counters;
        if !by_generation && self.mm.memcgs[shadow.memcg].is_online {
            let clock = self.mm.lruvecs[self.mm.lruvecs.id(shadow.memcg, shadow.node)].nonresident_age;
            self.refault_distances.add(shadow.distance(clock), pages);
        }
        if is_recent || !by_generation || counters == RefaultCounters::Refaults {
            self.count(lruvec, REFAULT.of(kind), pages as i64);
            let folio = self.mm.memory.folios[pfn];
            if !folio.has(FolioFlags::ANON) {
                self.mm.memory.file_mut(FileId(folio.owner)).counts.refaulted += pages;
            }
        }
        if self.is_telling() && self.may_follow(pfn) {
            self.tell_refault(pfn, shadow, self.mm.refault_rule(lruvec, shadow, kind), is_recent);
        }
        if is_recent {
            let references = self.mm.memcgs[memcg].policy.generations.references;
            let tier = references.tier(shadow.refs, shadow.workingset);
            self.mm.feedback_refaulted(lruvec, kind, tier, pages);
            if by_generation {
                self.generation_refault(pfn, shadow, added_for);
            } else {
                self.distance_refault(pfn, shadow);
            }
        }
    }

    #[cold]
    pub(super) fn tell_refault(&mut self, pfn: Pfn, shadow: Shadow, rule: RefaultRule, recent: bool) {
        self.tell(pfn, |engine| {
            let references =
                engine.mm.memcgs[engine.mm.memory.folios[pfn].memcg].policy.generations.references;
            let tier = references.tier(shadow.refs, shadow.workingset) as u8;
            let (workingset, refs) = (shadow.workingset, shadow.refs);
            PageEvent::Refaulted { rule, recent, workingset, refs, tier }
        });
    }
}

impl State {
    /// The shadow to leave for a folio that reclaim on behalf of `target` evicts.
    ///
    /// By distance, it is stamped on the clock of the group whose limit caused the eviction: that is the memory whose size the
    /// distance will be compared with. By generations, on the folio's own group's, whose generations they are.
    pub(crate) fn workingset_eviction(&mut self, pfn: Pfn, target: LruvecId) -> Shadow {
        let folio = self.memory.folios[pfn];
        let own = self.lruvec_of(pfn);
        let policy = self.memcgs[folio.memcg].policy;
        let (kind, pages, use_bits) = (folio.lru_type(), folio.pages(), self.memory.use_bits_of(&folio));
        let references = policy.generations.references;
        let is_in_use = use_bits.contains(UseBits::WORKINGSET);
        let refs = references.refs(use_bits);
        let tier = references.tier(refs, is_in_use);
        let refs = match policy.generations.shadow_count {
            ShadowCount::Full => refs,
            ShadowCount::Four => refs.min(4),
        };
        self.feedback_evicted(own, kind, tier, pages);
        let (lruvec, stamp) = match policy.workingset {
            Workingset::Distance | Workingset::CountOnly => (target, self.distance_stamp(target, pages)),
            Workingset::OldestGeneration | Workingset::AnyGeneration => {
                (own, self.generation_stamp(own, kind))
            }
        };
        let stamp = stamp & ((1 << Shadow::STAMP_BITS) - 1);
        Shadow { memcg: self.lruvecs[lruvec].memcg, node: folio.node, workingset: is_in_use, refs, stamp }
    }

    /// The numbers that a refault is judged by.
    #[cold]
    pub(super) fn refault_rule(&self, lruvec: LruvecId, shadow: Shadow, kind: LruType) -> RefaultRule {
        let generations = self.kept_generations(lruvec);
        match (self.memcgs[self.lruvecs[lruvec].memcg].policy.workingset, generations) {
            (Workingset::Distance, _) if !self.memcgs[shadow.memcg].is_online => RefaultRule::RemovedGroup,
            (Workingset::Distance, _) => {
                let (distance, room) = self.distance_and_room(shadow, self.lruvecs[lruvec].memcg, kind);
                RefaultRule::Distance { distance, room }
            }
            (Workingset::OldestGeneration, Some(lists)) => RefaultRule::OldestGeneration {
                evicted_from: shadow.stamp,
                oldest: lists.min_seq[kind as usize],
                restored_from: self.generation_rules(lruvec).restore.least_refs(),
            },
            (Workingset::AnyGeneration, Some(lists)) => RefaultRule::AnyGeneration {
                evicted_from: shadow.stamp,
                youngest: lists.max_seq,
                count: self.generation_rules(lruvec).count_max.into(),
            },
            (Workingset::OldestGeneration | Workingset::AnyGeneration, None) => RefaultRule::NoGenerations,
            (Workingset::CountOnly, _) => RefaultRule::CountOnly,
        }
    }
}
