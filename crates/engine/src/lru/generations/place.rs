//! Which generation a folio belongs to, and its moves from one to another. [reclaim 4.1, 4.3]

use crate::audit::Transition;
use crate::core::Core;
use crate::lru::CountsUse;
use crate::lru::generations::{AccessBy, GenerationLists, Place};
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::{Arrival, PlaceRule};
use crate::memory::folio::{FolioFlags, UseBits};
use crate::reclaim::ScanControl;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{LruType, Pfn};
use pageout_rules::lru::{
    ActiveUse, FaultIn, GenerationRules, Lru, NewAnon, NewFile, References, Rejected, RejectedUse,
    SWAPPINESS_ANON_ONLY,
};

impl Core {
    /// Puts a folio that is on no list into its generation.
    #[inline(never)]
    pub(in crate::lru) fn generations_place(
        &mut self,
        lruvec: LruvecId,
        pfn: Pfn,
        arrival: Arrival,
    ) -> PlaceRule {
        let (seq, rule) = self.mm.generation_for(lruvec, pfn, arrival);
        self.mm.memory.places.populate(pfn);
        debug_assert!(
            !self.mm.memory.places[pfn].is_listed(),
            "{pfn:?} joins a generation while it is in one"
        );
        let slot = self.mm.generations(lruvec).slot(seq);
        self.generation_list_add(lruvec, pfn, slot, rule == PlaceRule::Rotated);
        self.generation_count(lruvec, pfn, slot, 1);
        rule
    }

    /// Puts a folio that is on no list at the head of a generation, whatever its bits say.
    pub(in crate::lru) fn generations_place_in(&mut self, lruvec: LruvecId, pfn: Pfn, seq: u64) {
        let books = self.open_audit(Transition::Place, [pfn]);
        self.mm.memory.folios[pfn].set(FolioFlags::LRU);
        self.mm.memory.places.populate(pfn);
        let slot = self.mm.generations(lruvec).slot(seq);
        self.generation_list_add(lruvec, pfn, slot, false);
        self.generation_count(lruvec, pfn, slot, 1);
        self.close_audit(books);
    }

    /// Links a folio into the list of a generation, and notes the generation in its record.
    pub(super) fn generation_list_add(&mut self, lruvec: LruvecId, pfn: Pfn, slot: usize, to_tail: bool) {
        let kind = self.mm.memory.folios[pfn].lru_type();
        let rank = self.mm.rank_in(lruvec, pfn);
        let generations = self.mm.lruvecs[lruvec].generations.as_mut().expect("only generations place here");
        let group = generations.group_of(slot, kind);
        let list = generations.list_of(group, rank);
        let place = &mut self.mm.memory.places[pfn];
        debug_assert!(
            !place.is_listed() || usize::from(place.generation - 1) == slot,
            "{pfn:?} joins the list of generation {slot}, and is counted in {}",
            place.generation - 1
        );
        place.generation = slot as u8 + 1;
        place.set_list(group);
        let links = &mut self.mm.memory.folios;
        if to_tail {
            generations.lists[list].push_tail(links, pfn.0);
        } else {
            generations.lists[list].push_head(links, pfn.0);
        }
        self.out.count.list_moves(1);
    }

    /// Counts a folio in or out of a generation and of the gauges.
    pub(super) fn generation_count(&mut self, lruvec: LruvecId, pfn: Pfn, slot: usize, sign: i64) {
        let folio = self.mm.memory.folios[pfn];
        let (kind, pages) = (folio.lru_type(), sign * folio.pages() as i64);
        let count = &mut self.mm.generations_mut(lruvec).pages[slot][kind as usize];
        *count = count.checked_add_signed(pages).expect("a generation holds no fewer than no pages");
        if sign > 0 && self.mm.generation_rules(lruvec).gauges_count() {
            let is_active = self.mm.is_used_enough(pfn);
            self.mm.memory.places[pfn].set_counted_active(is_active);
        }
        let is_active = self.mm.counts_as_active(lruvec, pfn, slot);
        self.update_size(lruvec, LruList::new(kind, is_active), pages);
        self.mm.count_in_zone(lruvec, LruList::inactive(kind), pfn, pages);
        self.mm.assert_generations_counted(lruvec, kind);
    }

    /// Takes a folio out of its generation. Not for reclaim: a caller that takes a young page away on the page's behalf needs to find it
    /// young again.
    pub(in crate::lru) fn generations_unlink(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let slot = usize::from(self.mm.memory.places[pfn].generation - 1);
        if self.mm.generations(lruvec).is_active(slot) {
            self.mm.memory.add_use(pfn, UseBits::ACTIVE);
        }
        self.generations_forget(lruvec, pfn);
    }

    /// Takes a folio out of its generation.
    pub(super) fn generations_forget(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let slot = usize::from(self.mm.memory.places[pfn].generation - 1);
        debug_assert!(
            slot < self.mm.generations(lruvec).births.len(),
            "{pfn:?} is in generation {slot}, which is none"
        );
        self.mm.generation_list_remove(lruvec, pfn);
        self.generation_count(lruvec, pfn, slot, -1);
        self.mm.memory.places[pfn] = Place::default();
    }

    /// Makes a folio belong to a generation, wherever it is listed; false if it does already.
    pub(super) fn generation_update(&mut self, lruvec: LruvecId, pfn: Pfn, slot: usize) -> bool {
        let old = usize::from(self.mm.memory.places[pfn].generation - 1);
        if old == slot {
            return false;
        }
        let books = self.open_audit(Transition::ChangeGeneration, [pfn]);
        self.generation_count(lruvec, pfn, old, -1);
        self.mm.memory.places[pfn].generation = slot as u8 + 1;
        self.generation_count(lruvec, pfn, slot, 1);
        self.close_audit(books);
        true
    }

    /// A page-table entry that maps this folio was found young, in a walk or with a walk's buffer available. Returns whether the folio has
    /// moved to another generation.
    pub(in crate::lru) fn generations_young(&mut self, pfn: Pfn, executable: bool) -> bool {
        let lruvec = self.mm.lruvec_of(pfn);
        let references = self.mm.generation_rules(lruvec).references;
        if references == References::Frequency {
            return self.frequency_found_young(lruvec, pfn, executable);
        }
        let use_bits = self.mm.memory.use_bits(pfn);
        if !self.mm.memory.places.get(pfn).is_listed() {
            // In someone's hands, or not there yet: who places it will see that it was used.
            self.mm.memory.set_use_bits(pfn, use_bits | UseBits::REFERENCED);
            return false;
        }
        let (use_bits, is_youngest) =
            references.found_young(use_bits, executable && self.mm.spares_code(lruvec, pfn));
        self.mm.memory.set_use_bits(pfn, use_bits);
        if !is_youngest {
            return false;
        }
        let seq = self.mm.generations(lruvec).max_seq;
        self.tell(pfn, |_| PageEvent::MadeYoungest { seq });
        self.generation_update(lruvec, pfn, self.mm.generations(lruvec).slot(seq))
    }

    /// A look around found an entry that maps this folio young. Without a walk's buffer the folio is promoted through the activation batch.
    pub(in crate::lru) fn generations_young_nearby(&mut self, pfn: Pfn, executable: bool) {
        let lruvec = self.mm.lruvec_of(pfn);
        let references = self.mm.generation_rules(lruvec).references;
        if references == References::Frequency {
            // It only changes its generation, for which no list is needed.
            self.frequency_found_young(lruvec, pfn, executable);
            return;
        }
        let place = self.mm.memory.places.get(pfn);
        let use_bits = self.mm.memory.use_bits(pfn);
        if !place.is_listed() {
            self.mm.memory.set_use_bits(pfn, use_bits | UseBits::REFERENCED);
            return;
        }
        if self.mm.is_in_youngest(lruvec, pfn) {
            return;
        }
        let rule = self.mm.generation_rules(lruvec).rmap_promote;
        let is_code = executable && self.mm.spares_code(lruvec, pfn);
        let (use_bits, is_used) = references.found_referenced(use_bits, rule, is_code);
        self.mm.memory.set_use_bits(pfn, use_bits);
        if is_used {
            self.lru_activate(pfn);
        }
    }

    fn frequency_found_young(&mut self, lruvec: LruvecId, pfn: Pfn, executable: bool) -> bool {
        let is_code = executable && self.mm.spares_code(lruvec, pfn);
        self.frequency_accessed(pfn, if is_code { AccessBy::Code } else { AccessBy::Mapping })
    }

    /// Types that may be evicted: without swap, or with a swappiness of 0, file memory only.
    pub(in crate::lru) fn evictable_types(swappiness: u8) -> &'static [LruType] {
        match swappiness {
            0 => &[LruType::File],
            SWAPPINESS_ANON_ONLY => &[LruType::Anon],
            _ => &LruType::BOTH,
        }
    }
}

impl State {
    /// The generations of an lruvec. Panics where it has none; those that it is being switched away from are still there.
    pub(crate) fn generations(&self, lruvec: LruvecId) -> &GenerationLists {
        self.lruvecs[lruvec].generations.as_ref().expect("the LRU is generations")
    }

    /// The generations of an lruvec, or `None` unless generations are what its group keeps now.
    pub(crate) fn kept_generations(&self, lruvec: LruvecId) -> Option<&GenerationLists> {
        let is_kept = self.lru_of(lruvec) == Lru::Generations;
        self.lruvecs[lruvec].generations.as_deref().filter(|_| is_kept)
    }

    pub(super) fn generations_mut(&mut self, lruvec: LruvecId) -> &mut GenerationLists {
        self.lruvecs[lruvec].generations.as_mut().expect("the LRU is generations")
    }

    pub(crate) fn generation_rules(&self, lruvec: LruvecId) -> GenerationRules {
        self.memcgs[self.lruvecs[lruvec].memcg].policy.generations
    }

    /// A folio on no list: which generation it goes to, and by which rule. Its bits are adjusted for the stay there.
    #[doc(alias = "lru_gen_add_folio")]
    pub(super) fn generation_for(
        &mut self,
        lruvec: LruvecId,
        pfn: Pfn,
        arrival: Arrival,
    ) -> (u64, PlaceRule) {
        let rules = self.generation_rules(lruvec);
        let folio = self.memory.folios[pfn];
        let kind = folio.lru_type();
        let generations = self.generations(lruvec);
        let (min, max) = (generations.min_seq[kind as usize], generations.max_seq);
        let below_max = |distance: u64| max.saturating_sub(distance).max(min);
        let use_bits = self.memory.use_bits(pfn);
        let is_counted = rules.references == References::Frequency;
        let refs = rules.references.refs(use_bits);
        if is_counted && use_bits.contains(UseBits::ACTIVE) {
            self.memory.remove_use(pfn, UseBits::ACTIVE);
            return (if refs >= 2 { max } else { below_max(1) }, PlaceRule::InUse);
        }
        if use_bits.contains(UseBits::ACTIVE) {
            // What reclaim could not free may keep its count.
            let keeps_count = rules.active_use == ActiveUse::Keep
                || arrival == Arrival::PutBack && rules.rejected_use != RejectedUse::Lost;
            let count = UseBits::REFERENCED | UseBits::COUNTER;
            let lost = if keeps_count { UseBits::ACTIVE } else { UseBits::ACTIVE | count };
            self.memory.set_use_bits(pfn, use_bits - lost);
            let is_youngest = match arrival {
                Arrival::PutBack => rules.rejected == Rejected::Youngest,
                Arrival::Added | Arrival::Rotated => {
                    matches!(rules.fault_in, FaultIn::Youngest | FaultIn::LikeRead)
                }
            };
            let was_in_use = use_bits.contains(UseBits::WORKINGSET);
            return (if is_youngest || was_in_use { max } else { below_max(1) }, PlaceRule::InUse);
        }
        if is_counted && arrival == Arrival::Rotated {
            return (min, PlaceRule::Rotated);
        }
        // It needs a write before it can go. At the old end it would only be in the way.
        let is_unwritten_anon = kind == LruType::Anon && !folio.has(FolioFlags::SWAPCACHE);
        let is_being_written = folio.has(FolioFlags::RECLAIM)
            && folio.flags().intersects(FolioFlags::DIRTY | FolioFlags::WRITEBACK);
        if is_unwritten_anon || is_being_written {
            let seq = match rules.new_anon {
                NewAnon::SecondOldest => (min + 1).min(max),
                NewAnon::SecondYoungest => below_max(1),
            };
            return (seq, PlaceRule::NeedsWrite);
        }
        if arrival == Arrival::Rotated {
            return (min, PlaceRule::Rotated);
        }
        let rule = match rules.new_file {
            NewFile::SecondOldest if generations.is_full(kind) => PlaceRule::WindowFull,
            NewFile::ByWorkingset | NewFile::ByUse if use_bits.contains(UseBits::WORKINGSET) => {
                PlaceRule::WasInUse
            }
            NewFile::ByUse if use_bits.contains(UseBits::REFERENCED) => PlaceRule::Accessed,
            NewFile::ByCount if refs >= 2 => PlaceRule::Accessed,
            NewFile::Oldest
            | NewFile::SecondOldest
            | NewFile::ByWorkingset
            | NewFile::ByUse
            | NewFile::ByCount => PlaceRule::Oldest,
        };
        // Short of the generations that eviction spares.
        let last_evictable = max.saturating_sub(rules.spared()).max(min);
        (if rule == PlaceRule::Oldest { min } else { (min + 1).min(last_evictable) }, rule)
    }

    /// Returns true if a folio that is listed belongs to the youngest generation.
    pub(crate) fn is_in_youngest(&self, lruvec: LruvecId, pfn: Pfn) -> bool {
        let generations = self.generations(lruvec);
        usize::from(self.memory.places[pfn].generation - 1) == generations.slot(generations.max_seq)
    }

    /// Unlinks a folio from the list that it is on, which need not be that of its generation.
    pub(super) fn generation_list_remove(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let place = self.memory.places[pfn];
        debug_assert!(place.is_listed(), "{pfn:?} leaves a generation, and is in none");
        let rank = self.rank_in(lruvec, pfn);
        let generations =
            self.lruvecs[lruvec].generations.as_mut().expect("a folio on a list of generations has one");
        let list = generations.list_of(place.list(), rank);
        generations.lists[list].remove(&mut self.memory.folios, pfn.0);
    }

    /// A folio has joined a generation, or left one: the generations and the gauges count the same.
    #[inline(always)]
    pub(super) fn assert_generations_counted(&self, lruvec: LruvecId, kind: LruType) {
        let is_settled = !self.lruvecs[lruvec].is_switching && self.lru_of(lruvec) == Lru::Generations;
        if cfg!(debug_assertions) && is_settled {
            let of = &self.lruvecs[lruvec];
            let gauges = of.size(LruList::inactive(kind)) + of.size(LruList::active(kind));
            let pages: u64 = self.generations(lruvec).pages.iter().map(|pages| pages[kind as usize]).sum();
            assert_eq!(pages, gauges, "pages of {kind:?} in generations, and those that the gauges count");
            if !self.generation_rules(lruvec).gauges_count() {
                let slots = self.generations(lruvec).pages.iter().enumerate();
                let active = slots.filter(|&(slot, _)| self.generations(lruvec).is_active(slot));
                let active: u64 = active.map(|(_, pages)| pages[kind as usize]).sum();
                let counted = of.size(LruList::active(kind));
                assert_eq!(active, counted, "pages of {kind:?} in young generations, and on the active list");
            }
        }
    }

    /// Returns true if one use is enough for a page that is mapped as code.
    pub(super) fn spares_code(&self, lruvec: LruvecId, pfn: Pfn) -> bool {
        self.memcgs[self.lruvecs[lruvec].memcg].policy.executable_protection
            && self.memory.folios[pfn].lru_type() == LruType::File
    }

    /// Swappiness, or 0 while anonymous memory can't be reclaimed, if file memory may stand in for it.
    pub(crate) fn effective_swappiness(&self, lruvec: LruvecId, sc: &ScanControl) -> u8 {
        let is_strict = self.wants_anon_strictly(self.lruvecs[lruvec].memcg, sc);
        if is_strict || self.can_reclaim_anon(lruvec, sc) { sc.by.swappiness } else { 0 }
    }

    /// Returns whether swap has space for a batch, or there is slower memory.
    pub(super) fn can_reclaim_anon(&self, lruvec: LruvecId, sc: &ScanControl) -> bool {
        let has_room = || self.has_swap_for_a_batch(lruvec) || self.can_demote_from(lruvec);
        sc.means.may_swap && has_room()
    }
}
