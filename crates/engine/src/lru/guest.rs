//! A guest: a policy of crate `pageout_policy`, or a custom one, that keeps the pages of an lruvec in its own way.
//!
//! ```text
//!   the seam's question                the call of the guest (its contract: `pageout_policy`)
//!   a folio comes to the lists         added
//!   an access through a descriptor     used, if the guest needs each; else a bit of the page's word
//!   a round of a pass                  nominate, up to a batch of what is still wanted; the batch goes the way of all (`reclaim/shrink.rs`)
//!   one of it was used                 used, and it is spared: whichever channel it was found by
//!   put back                           ended: spared
//!   freed, or moved to another node    ended: evicted
//!   leaves its list otherwise          ended: gone
//!   its write has ended, or nobody     cold
//!   wants it (fadvise)
//! ```
//! *What a guest sees.* Slots of one lruvec, files and anonymous memory alike; nothing of the machine. A folio's list links hold its slot,
//! because the folio is on no list. A guest shares nothing with other groups, and none of its calls leads back here.
//!
//! *What it does not decide.* Whether a page can be evicted: dirty, locked, pinned, in use. How many pages reclaim frees, and from which
//! group. Swappiness: both types are in one order. If a guest nominates pages of a zone that the reclaimer can't use, they are spared.
//!
//! *When not to use one:* to predict a Linux machine. Behind page tables each guest knows only whether a page was used since it was last
//! nominated, and the fault that brings a page in looks like another use.
//!
//! *When it is wrong.* If a guest nominates nothing, or a page that it does not have, reclaim does not ask it again. Reclaim finds
//! nothing, and the machine ends the run with the fault ([`Engine::guest_fault`](crate::Engine::guest_fault)), which names call and slot.

use super::{Arrival, FolioReferences, PlaceRule};
use crate::accessed::Referenced;
use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::{Folio, FolioFlags, UseBits};
use crate::memory::list::{Links, NONE, UNLISTED};
use crate::memory::table::{Mark, Shadow};
use crate::state::State;
use crate::story::{Because, PageEvent};
use crate::units::{FileId, MemcgId, Pfn};
use pageout_mm::lru::guest::Guest;
use pageout_policy::{Cause, End, Fault, Newcomer, PageId, Slot, Uses};
use pageout_rules::lru::Lru;
use std::fmt;

/// An error of a guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestFault {
    /// The policy.
    pub policy: &'static str,
    /// The path of the group whose pages it keeps.
    pub group: String,
    /// The call and the slot.
    pub fault: Fault,
}

impl fmt::Display for GuestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {} of cgroup {}: {}", self.policy, self.group, self.fault)
    }
}

impl std::error::Error for GuestFault {}

/// Pages that a guest has nominated, while they are judged.
pub(crate) struct Nominated {
    pub(crate) slots: Vec<Slot>,
    /// The name of the page in each slot.
    pub(crate) names: Vec<PageId>,
    /// Buffer for those of files.
    pub(crate) files: Vec<Pfn>,
}

/// The name of the page that a folio holds; of a large one, its first.
pub(crate) fn page_of(folio: &Folio) -> PageId {
    let is_anon = u64::from(folio.has(FolioFlags::ANON));
    PageId(is_anon << 63 | u64::from(folio.owner) << 32 | u64::from(folio.index))
}

impl Core {
    /// Gives a folio that is on no list to the guest, or gives it back.
    pub(super) fn guest_place(
        &mut self,
        lruvec: LruvecId,
        pfn: Pfn,
        folio: &Folio,
        arrival: Arrival,
    ) -> PlaceRule {
        match self.mm.slot_of(lruvec, pfn) {
            Some(slot) if arrival == Arrival::PutBack => {
                self.mm.guest(lruvec).slots.end(slot, page_of(folio), End::Spared);
            }
            _ => self.guest_add(lruvec, pfn, folio),
        }
        let (gauge, pages) = (LruList::inactive(folio.lru_type()), folio.pages() as i64);
        self.out.count.list_moves(1);
        self.update_size(lruvec, gauge, pages);
        self.mm.count_in_zone(lruvec, gauge, pfn, pages);
        PlaceRule::ByState
    }

    fn guest_add(&mut self, lruvec: LruvecId, pfn: Pfn, folio: &Folio) {
        let page = page_of(folio);
        let is_unused = folio.has(FolioFlags::INDEXED)
            && self.mm.memory.file(FileId(folio.owner)).index.word(folio.index.into()).is_unused();
        let write = folio.has(FolioFlags::DIRTY) || self.mm.is_mapped_dirty(pfn);
        let at_ns = self.by.now.0;
        let guest = self.mm.guest(lruvec);
        let cause = match guest.take_refault(page) {
            _ if is_unused => Cause::Readahead,
            Some(distance) => Cause::Refault { distance },
            None => Cause::Demand,
        };
        let slot = guest.slots.add(pfn.0, Newcomer { page, cause, write, at_ns });
        *self.mm.memory.folios.links_mut(pfn.0) = (slot.0, NONE);
    }

    /// A folio leaves the lists: for good, or to come back as another arrival.
    pub(super) fn guest_unlink(&mut self, lruvec: LruvecId, pfn: Pfn, folio: &Folio) {
        let slot = self.mm.slot_of(lruvec, pfn).expect("a guest knows what is on its lists");
        self.mm.guest(lruvec).slots.end(slot, page_of(folio), End::Gone);
        *self.mm.memory.folios.links_mut(pfn.0) = UNLISTED;
        let (gauge, pages) = (LruList::inactive(folio.lru_type()), folio.pages() as i64);
        self.update_size(lruvec, gauge, -pages);
        self.mm.count_in_zone(lruvec, gauge, pfn, -pages);
    }

    /// A folio that the guest knows may go next.
    pub(super) fn guest_cold(&mut self, pfn: Pfn) {
        let lruvec = self.mm.lruvec_of(pfn);
        let slot = self.mm.slot_of(lruvec, pfn).expect("a guest knows what is on its lists");
        self.mm.guest(lruvec).slots.cold(slot);
        self.out.count.list_moves(1);
        self.tell(pfn, |_| PageEvent::Placed { arrival: Arrival::Rotated, rule: PlaceRule::Rotated });
    }

    /// Notifies the guest immediately that a page was used. This costs as much as moving a folio on a list, unless the same page was used
    /// last time, too.
    pub(super) fn guest_used(&mut self, pfn: Pfn) {
        let folio = &self.mm.memory.folios[pfn];
        if folio.has(FolioFlags::LRU) && !folio.has(FolioFlags::UNEVICTABLE) {
            let (lruvec, slot) = (self.mm.lruvec_of_folio(folio), Slot(self.mm.memory.folios.links(pfn.0).0));
            let is_another = self.mm.guest(lruvec).used(slot);
            self.out.count.list_moves(u64::from(is_another));
            self.tell(pfn, |_| PageEvent::UseTold);
        }
    }

    /// An entry that maps the folio was found young: it was used.
    pub(super) fn guest_young(&mut self, pfn: Pfn) {
        match self.mm.guest_mark(self.mm.memory.folios[pfn].memcg) {
            Mark::EveryAccess => self.guest_used(pfn),
            _ => self.mm.memory.add_use(pfn, UseBits::REFERENCED),
        }
    }

    /// As many as there are: mapped pages may all have been used, and one has to go round them to find that out.
    pub(crate) fn guest_pages(&mut self, lruvec: LruvecId) -> u64 {
        match self.guest_fault {
            Some(_) => 0,
            None => u64::from(self.mm.guest(lruvec).slots.len()),
        }
    }

    /// Has a guest nominate up to `n` pages; none where it has none, or does wrong.
    pub(crate) fn guest_nominate(&mut self, lruvec: LruvecId, n: u64) -> Option<Nominated> {
        let guest = self.mm.guest(lruvec);
        if guest.slots.is_empty() {
            return None;
        }
        let mut slots = std::mem::take(&mut guest.nominated);
        slots.clear();
        if let Err(fault) = guest.slots.nominate(n as u32, &mut slots) {
            self.note_guest_fault(lruvec, fault);
            return None;
        }
        let guest = self.mm.guest(lruvec);
        let (names, files) = (std::mem::take(&mut guest.names), std::mem::take(&mut guest.files));
        Some(Nominated { slots, names, files })
    }

    /// A nominated page is of no use to the reclaimer.
    pub(crate) fn guest_spare(&mut self, lruvec: LruvecId, slot: Slot, page: PageId) {
        self.mm.guest(lruvec).slots.end(slot, page, End::Spared);
        self.out.count.list_moves(1);
    }

    /// Takes all folios from a guest, in the order in which it would have them go as far as it says one.
    pub(super) fn guest_leave_all(&mut self, lruvec: LruvecId, folios: &mut Vec<Pfn>) {
        loop {
            let guest = self.mm.guest(lruvec);
            let mut nominated = Vec::new();
            if guest.slots.is_empty() {
                return;
            }
            if let Err(fault) = guest.slots.nominate(1, &mut nominated) {
                self.note_guest_fault(lruvec, fault);
                nominated = self.mm.guest(lruvec).slots.iter().map(|(slot, _)| slot).collect();
            }
            for slot in nominated {
                let holder = self.mm.guest(lruvec).slots.holder(slot).expect("its slots has checked that");
                self.lru_unlink(Pfn(holder));
                folios.push(Pfn(holder));
            }
        }
    }

    /// Only the first fault is reported: the others follow from it.
    #[cold]
    fn note_guest_fault(&mut self, lruvec: LruvecId, fault: Fault) {
        let Lru::Guest(listed) = self.mm.lru_of(lruvec) else { unreachable!("a guest was asked") };
        let group = self.mm.memcgs.path(self.mm.lruvecs[lruvec].memcg);
        let fault = GuestFault { policy: listed.name, group, fault };
        self.guest_fault.get_or_insert_with(|| Box::new(fault));
    }
}

impl State {
    pub(crate) fn guest(&mut self, lruvec: LruvecId) -> &mut Guest {
        self.lruvecs[lruvec].guest.as_mut().expect("the LRU is a guest")
    }

    /// The slot of a folio that a guest knows.
    fn slot_of(&self, lruvec: LruvecId, pfn: Pfn) -> Option<Slot> {
        let slot = Slot(self.memory.folios.links(pfn.0).0);
        let guest = self.lruvecs[lruvec].guest.as_ref()?;
        (guest.slots.holder(slot) == Some(pfn.0)).then_some(slot)
    }

    /// Returns which accesses through descriptors the guests of a group have to be notified of.
    pub(super) fn guest_mark(&self, memcg: MemcgId) -> Mark {
        let mut lruvecs = self.lruvecs.nodes().map(|node| &self.lruvecs[self.lruvecs.id(memcg, node)]);
        match lruvecs.find_map(|lruvec| lruvec.guest.as_ref()).map(|guest| guest.slots.uses()) {
            Some(Uses::Each) => Mark::EveryAccess,
            Some(Uses::Late | Uses::Never) | None => Mark::Visited,
        }
    }

    /// Notifies the guests of a group and of its descendants of the number of pages that the groups' limits allow.
    pub(crate) fn resize_guests(&mut self, memcg: MemcgId) {
        for memcg in self.memcgs.subtree(memcg) {
            let limits = self.memcgs.ancestors(memcg).map(|id| self.memcgs[id].max.min(self.memcgs[id].high));
            let limit = limits.min().unwrap_or(u64::MAX);
            for node in self.lruvecs.nodes() {
                let lruvec = self.lruvecs.id(memcg, node);
                if let Some(guest) = &mut self.lruvecs[lruvec].guest {
                    guest.resize(limit);
                }
            }
        }
    }

    /// A page has come back that was evicted: remembered until it comes to the lists.
    pub(crate) fn note_guest_refault(&mut self, lruvec: LruvecId, pfn: Pfn, shadow: Shadow) {
        if self.lruvecs[lruvec].guest.is_none() {
            return;
        }
        let of = self.lruvecs.id(shadow.memcg, self.lruvecs[lruvec].node);
        let distance = shadow.distance(self.lruvecs[of].nonresident_age);
        let page = page_of(&self.memory.folios[pfn]);
        self.guest(lruvec).note_refault(page, distance);
    }

    /// A folio leaves memory, whose links still hold the slot by which its guest knew it.
    #[inline]
    pub(crate) fn guest_forget(&mut self, pfn: Pfn) {
        if cfg!(debug_assertions) && self.lruvecs[self.lruvec_of(pfn)].guest.is_some() {
            *self.memory.folios.links_mut(pfn.0) = UNLISTED;
        }
    }

    /// Reclaim has isolated a nominated folio. A folio that was used stays, and the guest is notified of it, unless the guest ignores
    /// uses.
    pub(super) fn guest_referenced(&mut self, pfn: Pfn, referenced: Referenced) -> FolioReferences {
        let was_used = self.memory.has_use(pfn, UseBits::REFERENCED) || referenced.young > 0;
        self.memory.remove_use(pfn, UseBits::REFERENCED);
        let lruvec = self.lruvec_of(pfn);
        if !was_used || self.guest(lruvec).slots.uses() == Uses::Never {
            return FolioReferences::Reclaim;
        }
        // Single pages that a nominated huge one has become have no slot yet.
        if let Some(slot) = self.slot_of(lruvec, pfn) {
            self.guest(lruvec).slots.used(slot);
        }
        FolioReferences::Keep(Because::Visited { young: referenced.young })
    }

    /// Nominated pages were judged: what was not put back has left.
    pub(crate) fn guest_judged(&mut self, lruvec: LruvecId, nominated: Nominated) {
        let Nominated { slots, mut names, files } = nominated;
        let guest = self.guest(lruvec);
        for (slot, page) in slots.iter().zip(names.drain(..)) {
            if guest.slots.is_nominated(*slot) {
                guest.slots.end(*slot, page, End::Evicted);
            }
        }
        (guest.nominated, guest.names, guest.files) = (slots, names, files);
    }

    /// Panics if a folio that a guest holds does not name its slot, if a slot is still nominated, or if the guest's own check fails.
    pub(crate) fn check_guest(&self, lruvec: LruvecId) {
        let Some(guest) = &self.lruvecs[lruvec].guest else { return };
        for (slot, holder) in guest.slots.iter() {
            assert_eq!(self.slot_of(lruvec, Pfn(holder)), Some(slot), "the slot of {holder}");
            assert!(!guest.slots.is_nominated(slot), "{slot:?} is nominated, and nobody has it in hand");
        }
        if let Err(found) = guest.slots.policy().check() {
            panic!("the guest of {}: {found}", self.memcgs.path(self.lruvecs[lruvec].memcg));
        }
    }
}
