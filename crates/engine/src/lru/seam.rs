//! Dispatch at the LRU seam: each question of [`crate::lru`] goes to the LRU that keeps the folio's, or the lruvec's, lists.

use crate::accessed::Referenced;
use crate::audit::Transition;
use crate::core::Core;
use crate::lru::CountsUse;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::two_lists;
use crate::lru::{Arrival, FolioReferences, PlaceRule};
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::list::{Links, List, NONE};
use crate::memory::table::Mark;
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{LruType, Pfn};
use pageout_rules::lru::{FaultIn, GenerationRules, Lru, References};

impl Core {
    /// Tells an LRU that asked for it of an access.
    pub(crate) fn lru_accessed(&mut self, pfn: Pfn) {
        match self.mm.lru_of(self.mm.lruvec_of(pfn)) {
            Lru::TwoLists | Lru::Generations => {}
            Lru::Guest(_) => self.guest_used(pfn),
        }
    }

    /// Notifies the LRU immediately that an entry mapping this folio was found young; `executable`: as a program's code. Returns whether it belongs
    /// to another generation now.
    pub(crate) fn lru_young(&mut self, pfn: Pfn, executable: bool) -> bool {
        let lruvec = self.mm.lruvec_of(pfn);
        match self.mm.lru_of(lruvec) {
            Lru::TwoLists => two_lists::found_young(&mut self.view_mut(lruvec), pfn),
            Lru::Generations => return self.generations_young(pfn, executable),
            Lru::Guest(_) => self.guest_young(pfn),
        }
        false
    }

    /// Tells the LRU that an entry mapping this folio was found young, where the list lock is held: a promotion has to go through a batch.
    pub(crate) fn lru_young_nearby(&mut self, pfn: Pfn, executable: bool) {
        match self.mm.lru_of(self.mm.lruvec_of(pfn)) {
            Lru::Generations => self.generations_young_nearby(pfn, executable),
            Lru::TwoLists | Lru::Guest(_) => {
                self.lru_young(pfn, executable);
            }
        }
    }

    /// A folio is in reclaim's hands, with the references found: asks the LRU what to do with it.
    pub(crate) fn lru_referenced(&mut self, pfn: Pfn, referenced: Referenced) -> FolioReferences {
        let policy = &self.mm.memcgs[self.mm.memory.folios[pfn].memcg].policy;
        match policy.lru {
            Lru::Generations if policy.generations.references != References::Linux6_12 => {
                self.mm.referenced_by_count(pfn, referenced)
            }
            Lru::TwoLists | Lru::Generations => {
                two_lists::referenced(&mut self.view_mut(self.mm.lruvec_of(pfn)), pfn, referenced)
            }
            Lru::Guest(_) => self.mm.guest_referenced(pfn, referenced),
        }
    }

    /// Puts a folio that is on no list where its state says it belongs, and makes it isolatable.
    pub(crate) fn lru_place(&mut self, pfn: Pfn, arrival: Arrival) {
        let books = self.open_audit(Transition::Place, [pfn]);
        self.place(pfn, arrival);
        self.close_audit(books);
        debug_assert!(
            self.mm.memory.folios[pfn].has(FolioFlags::LRU),
            "{pfn:?} was placed, but cannot be isolated"
        );
    }

    #[inline(always)]
    fn place(&mut self, pfn: Pfn, arrival: Arrival) {
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(!folio.has(FolioFlags::LRU), "{pfn:?} is on a list already");
        self.mm.assert_isolated(pfn);
        debug_assert_eq!(
            self.mm.memory.folios.free_order(pfn),
            None,
            "{pfn:?} is put on a list, but is free"
        );
        if folio.flags().intersects(FolioFlags::MLOCKED | FolioFlags::UNEVICTABLE)
            && self.place_unevictable(pfn, arrival)
        {
            return;
        }
        self.mm.memory.folios[pfn].set(FolioFlags::LRU);
        let lruvec = self.mm.lruvec_of_folio(&folio);
        let lru = self.mm.memcgs[folio.memcg].policy.lru;
        let rule = match lru {
            Lru::Generations => self.generations_place(lruvec, pfn, arrival),
            Lru::TwoLists => two_lists::place(&mut self.view_mut(lruvec), pfn, &folio, arrival),
            Lru::Guest(_) => self.guest_place(lruvec, pfn, &folio, arrival),
        };
        let is_at_tail = rule == PlaceRule::Rotated || lru == Lru::TwoLists && arrival == Arrival::Rotated;
        self.mm.assert_at_end(pfn, is_at_tail);
        self.tell(pfn, |_| PageEvent::Placed { arrival, rule });
    }

    /// A folio that is in a locked mapping is only counted: reclaim has no use for a list of what it can't take. False for one that was
    /// counted so and goes back to the lists.
    #[cold]
    fn place_unevictable(&mut self, pfn: Pfn, arrival: Arrival) -> bool {
        let folio = self.mm.memory.folios[pfn];
        let pages = folio.pages() as i64;
        if !folio.has(FolioFlags::MLOCKED) {
            self.mm.memory.folios[pfn].clear(FolioFlags::UNEVICTABLE);
            self.mm.count_node(folio.node, Stat::UnevictablePgsRescued, pages);
            return false;
        }
        assert!(folio.has(FolioFlags::MLOCKED), "{pfn:?} becomes unevictable, and is not locked into memory");
        self.mm.memory.remove_use(pfn, UseBits::ACTIVE);
        self.mm.memory.folios[pfn].set(FolioFlags::LRU | FolioFlags::UNEVICTABLE);
        self.update_size(self.mm.lruvec_of(pfn), LruList::Unevictable, pages);
        if !folio.has(FolioFlags::UNEVICTABLE) {
            self.mm.count_node(folio.node, Stat::UnevictablePgsCulled, pages);
        }
        self.tell(pfn, |_| PageEvent::Placed { arrival, rule: PlaceRule::Unevictable });
        true
    }

    /// Returns a folio that reclaim had isolated to the list that its state names. An active one advances the age of nonresident pages: it took a
    /// place that they might have had.
    #[doc(alias = "move_folios_to_lru")]
    #[inline]
    pub(crate) fn put_back(&mut self, pfn: Pfn) {
        let is_active = self.mm.memory.has_use(pfn, UseBits::ACTIVE);
        self.lru_place(pfn, Arrival::PutBack);
        if is_active && !self.mm.memory.folios[pfn].has(FolioFlags::UNEVICTABLE) {
            self.mm.workingset_age(self.mm.lruvec_of(pfn), self.mm.memory.folios[pfn].pages());
        }
    }

    /// Takes a folio off its list; the caller owns its place from now on.
    pub(crate) fn lru_unlink(&mut self, pfn: Pfn) {
        let books = self.open_audit(Transition::Unlink, [pfn]);
        self.unlink(pfn);
        self.close_audit(books);
    }

    #[inline(always)]
    fn unlink(&mut self, pfn: Pfn) {
        let lruvec = self.mm.lruvec_of(pfn);
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::LRU), "{pfn:?} is on no list");
        self.mm.memory.folios[pfn].clear(FolioFlags::LRU);
        if folio.has(FolioFlags::UNEVICTABLE) {
            self.update_size(lruvec, LruList::Unevictable, -(folio.pages() as i64));
            return;
        }
        if self.mm.memory.places.get(pfn).is_listed() {
            self.generations_unlink(lruvec, pfn);
            return;
        }
        if self.mm.lruvecs[lruvec].guest.is_some() {
            self.guest_unlink(lruvec, pfn, &folio);
            return;
        }
        two_lists::unlink(&mut self.view_mut(lruvec), pfn, &folio);
        self.mm.assert_isolated(pfn);
    }

    #[inline(always)]
    pub(crate) fn update_size(&mut self, lruvec: LruvecId, list: LruList, pages: i64) {
        self.count(lruvec, list.stat(), pages);
    }
}

impl State {
    #[inline]
    pub(crate) fn lru_of(&self, lruvec: LruvecId) -> Lru {
        self.memcgs[self.lruvecs[lruvec].memcg].policy.lru
    }

    /// What a folio's LRU must be notified of about accesses through file descriptors.
    #[inline]
    pub(crate) fn mark_of(&self, pfn: Pfn) -> Mark {
        let folio = &self.memory.folios[pfn];
        let policy = &self.memcgs[folio.memcg].policy;
        match policy.lru {
            Lru::TwoLists => Mark::Classic,
            Lru::Generations => Mark::Count(policy.generations.references),
            Lru::Guest(_) => self.guest_mark(folio.memcg),
        }
    }

    /// A fault is about to hand a folio to the lists. Some policies take that for a sign of use.
    pub(crate) fn lru_faulted_in(&mut self, pfn: Pfn) {
        let lruvec = self.lruvec_of(pfn);
        if self.lru_of(lruvec) != Lru::Generations {
            return;
        }
        let GenerationRules { fault_in, references, .. } = self.generation_rules(lruvec);
        let use_bits = self.memory.use_bits(pfn);
        let is_active = match fault_in {
            FaultIn::LikeRead => return,
            FaultIn::Youngest | FaultIn::SecondYoungest => true,
            FaultIn::Reference => use_bits.contains(UseBits::WORKINGSET),
        };
        if is_active {
            self.memory.add_use(pfn, UseBits::ACTIVE);
        } else if !use_bits.contains(UseBits::REFERENCED) {
            self.memory.set_use_bits(pfn, references.accessed(use_bits));
        }
    }

    /// A folio is isolated by the task that took it off its list, or that brought it in.
    #[inline(always)]
    pub(crate) fn assert_isolated(&self, pfn: Pfn) {
        if cfg!(debug_assertions) {
            let folio = &self.memory.folios[pfn];
            assert!(!folio.has(FolioFlags::LRU), "{pfn:?} is in somebody's hands, and on a list: {folio:?}");
            assert!(!self.memory.places.get(pfn).is_listed(), "{pfn:?} is isolated, but is in a generation");
            assert!(
                folio.has(FolioFlags::CHARGED),
                "{pfn:?} is isolated by reclaim, but no group pays for it: {folio:?}"
            );
            assert!(
                !folio.has(FolioFlags::KERNEL),
                "{pfn:?} is isolated by reclaim, but is the kernel's: {folio:?}"
            );
        }
    }

    /// A folio has been put on a list: it is at one end of it, where a guest does not keep it.
    #[inline(always)]
    fn assert_at_end(&self, pfn: Pfn, is_at_tail: bool) {
        if cfg!(debug_assertions) && self.lruvecs[self.lruvec_of(pfn)].guest.is_none() {
            let (before, behind) = self.memory.folios.links(pfn.0);
            let beyond = if is_at_tail { behind } else { before };
            assert_eq!(
                beyond, NONE,
                "{pfn:?} comes to its list at the wrong end: is at the tail: {is_at_tail}"
            );
        }
    }

    /// A list has changed together with the gauge that counts it: both are empty, or neither is.
    #[inline(always)]
    pub(crate) fn assert_counted(&self, lruvec: LruvecId, gauge: LruList) {
        if cfg!(debug_assertions) {
            let of = &self.lruvecs[lruvec];
            let (folios, pages) = (of.lists[gauge as usize].len(), of.size(gauge));
            if !of.is_switching && self.lru_of(lruvec) == Lru::TwoLists {
                let in_zones: u64 = of.by_zone.iter().map(|zone| zone[gauge as usize]).sum();
                assert!(
                    of.by_zone.is_empty() || in_zones == pages,
                    "{pages} pages are on {gauge:?}, but {in_zones} are in its zones"
                );
                assert!(folios <= pages, "{folios} folios are on {gauge:?}, and count as {pages} pages");
                assert_eq!(
                    folios == 0,
                    pages == 0,
                    "{folios} folios are on {gauge:?}, but count as {pages} pages"
                );
            }
        }
    }

    /// Position of a folio's zone among those of its node; 0 if there is only one.
    #[inline]
    pub(crate) fn rank_in(&self, lruvec: LruvecId, pfn: Pfn) -> usize {
        let of = &self.lruvecs[lruvec];
        if of.by_zone.is_empty() { 0 } else { self.memory.zones.rank_of(of.node, pfn) }
    }

    /// Pages come to a list, or leave it: counts them by zone, where a node has several.
    #[inline(always)]
    pub(crate) fn count_in_zone(&mut self, lruvec: LruvecId, list: LruList, pfn: Pfn, pages: i64) {
        if !self.lruvecs[lruvec].by_zone.is_empty() {
            self.count_in_one_of_several_zones(lruvec, list, pfn, pages);
        }
    }

    #[inline(never)]
    fn count_in_one_of_several_zones(&mut self, lruvec: LruvecId, list: LruList, pfn: Pfn, pages: i64) {
        let rank = self.rank_in(lruvec, pfn);
        let of = &mut self.lruvecs[lruvec];
        let count = &mut of.by_zone[rank][list as usize];
        *count = count.checked_add_signed(pages).expect("a zone has no fewer than no pages on a list");
        self.memory.zones.count_listed(of.node, rank, list.kind(), pages);
    }

    /// Which folio of a type is most likely to be isolated next.
    pub(crate) fn coldest(&self, lruvec: LruvecId, kind: LruType) -> Option<Pfn> {
        match self.lru_of(lruvec) {
            Lru::TwoLists => two_lists::coldest(self.view(lruvec), kind),
            Lru::Generations => {
                let generations = self.generations(lruvec);
                let mut lists = generations.lists_of(generations.oldest(kind), kind).iter();
                lists.find_map(List::tail).map(Pfn)
            }
            Lru::Guest(_) => None,
        }
    }

    /// The tails of the lists from which folios of a type may be isolated next, the coldest list first. If the inactive list or the oldest generations are
    /// short, one step evicts them, deactivates or ages others, and goes on with these.
    pub(crate) fn coldest_lists(&self, lruvec: LruvecId, kind: LruType) -> impl Iterator<Item = Pfn> {
        let (of_two, generations) = match self.lru_of(lruvec) {
            Lru::TwoLists => (two_lists::tails(self.view(lruvec), kind), None),
            Lru::Generations => ([None; 2], Some(self.generations(lruvec))),
            Lru::Guest(_) => ([None; 2], None),
        };
        let of_generations = generations.into_iter().flat_map(move |lists| lists.tails(kind));
        of_two.into_iter().flatten().chain(of_generations.map(Pfn))
    }
}
