//! Refault distance: would the page have fit into memory without its eviction?
//!
//! An lruvec's *nonresident age* counts evictions and activations: each of them pushes every inactive page one step towards
//! the tail. A page's shadow holds the age at its eviction. The age at its refault is higher, and the difference says how many
//! steps longer the inactive list should have been to keep the page:
//!
//! ```text
//!        evicted at age E                 refault at age R
//!   ───────────┼──────────────────────────────┼────────►      distance = R - E
//! ```
//! If there are at least as many active pages as that distance, evicting some of them instead would have kept this page. So it
//! is worth a try: the page comes back active and has to prove itself against them. Pages of the other type count too, as far as
//! they can be reclaimed at all. [reclaim 3.1, 3.2; reclaim-6.12 3.2]
//!
//! Sizes are those of the last statistics flush (`stat/flush.rs`); the age is live.
//!
//! *When it misleads:* in a loop a little larger than memory every distance is the same and every page is evicted again
//! before its turn.

use crate::core::Core;
use crate::lru::lruvec::{LruList, Lruvec, LruvecId};
use crate::memory::folio::UseBits;
use crate::memory::table::Shadow;
use crate::stat::{ACTIVATE, ByType, RESTORE, StaleDecision};
use crate::state::State;
use crate::units::{LruType, MemcgId, Pfn};
use pageout_rules::workingset::SwapRoom;
use std::ops::RangeInclusive;

/// Refaulted pages by their distance, in steps by a factor of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefaultDistances {
    /// By the number of bits of the distance: 0, 1, 2 to 3, 4 to 7, ...
    by_bits: [u64; 65],
}

impl Default for RefaultDistances {
    fn default() -> RefaultDistances {
        RefaultDistances { by_bits: [0; 65] }
    }
}

impl RefaultDistances {
    /// Adds refaulted pages of one distance.
    pub fn add(&mut self, distance: u64, pages: u64) {
        self.by_bits[(u64::BITS - distance.leading_zeros()) as usize] += pages;
    }

    /// Returns the range of distances of each step that has refaults, and their pages.
    pub fn iter(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        let range = |bits: usize| match bits {
            0 => 0..=0,
            bits => 1 << (bits - 1)..=u64::MAX >> (64 - bits),
        };
        let steps = self.by_bits.iter().enumerate().filter(|(_, pages)| **pages > 0);
        steps.map(move |(bits, pages)| (range(bits), *pages))
    }
}

impl Core {
    pub(super) fn distance_refault(&mut self, pfn: Pfn, shadow: Shadow) {
        let folio = self.mm.memory.folios[pfn];
        let (kind, pages) = (folio.lru_type(), folio.pages());
        let lruvec = self.mm.lruvec_of(pfn);
        self.mm.memory.add_use(pfn, UseBits::ACTIVE);
        self.mm.workingset_age(lruvec, pages);
        self.count(lruvec, ACTIVATE.of(kind), pages as i64);
        if shadow.workingset {
            // It was in use when it was evicted: this refault is thrashing, and reclaiming this type has just shown its
            // price.
            self.mm.memory.add_use(pfn, UseBits::WORKINGSET);
            self.mm.note_refault_cost(lruvec, kind, pages);
            self.count(lruvec, RESTORE.of(kind), pages as i64);
        }
    }

    /// Returns true if a page that has come back would have stayed on a somewhat longer list. Never true if the group whose clock the shadow holds
    /// was removed. Notes whether live list sizes would change the answer.
    #[doc(alias = "workingset_test_recent")]
    pub(super) fn is_within_distance(&mut self, shadow: Shadow, reader: MemcgId, kind: LruType) -> bool {
        if !self.mm.memcgs[shadow.memcg].is_online {
            return false;
        }
        let (distance, room) = self.mm.distance_and_room(shadow, reader, kind);
        let is_within = distance <= room;
        if self.compares_with_live() {
            self.compare_distance(shadow, reader, kind, distance, is_within);
        }
        is_within
    }

    /// Notes whether live list sizes would change the answer.
    fn compare_distance(
        &mut self,
        shadow: Shadow,
        reader: MemcgId,
        kind: LruType,
        distance: u64,
        is_within: bool,
    ) {
        let evictor = self.mm.lruvecs.id(shadow.memcg, shadow.node);
        let Some(live) = self.live_stats(evictor) else { return };
        let by_live = distance <= self.mm.room(shadow, reader, kind, |list| live.get(list.stat()));
        let decision = StaleDecision::Refault;
        if by_live == is_within {
            self.note_decision(decision, shadow.memcg, is_within, by_live, &[]);
        } else {
            let numbers = LruList::EVICTABLE
                .map(|list| (list.stat(), self.mm.stale(evictor, list.stat()), live.get(list.stat())));
            self.note_decision(decision, shadow.memcg, is_within, by_live, &numbers);
        }
    }
}

impl State {
    /// Advances the age of an lruvec and of its ancestors', for their reclaim evicts its pages too.
    #[doc(alias = "workingset_age_nonresident")]
    pub(crate) fn workingset_age(&mut self, lruvec: LruvecId, pages: u64) {
        let node = self.lruvecs[lruvec].node;
        let (levels, before) = self.ages_upwards(lruvec);
        let mut level = Some(self.lruvecs[lruvec].memcg);
        while let Some(memcg) = level {
            let id = self.lruvecs.id(memcg, node);
            self.lruvecs[id].nonresident_age += pages;
            level = self.memcgs[memcg].parent;
        }
        debug_assert_eq!(
            self.ages_upwards(lruvec).1,
            before + levels * pages,
            "ages of an lruvec and of those above it, after {pages} pages"
        );
    }

    /// An lruvec and those above it: how many they are, and their ages together; for assertions.
    #[inline(always)]
    fn ages_upwards(&self, lruvec: LruvecId) -> (u64, u64) {
        if !cfg!(debug_assertions) {
            return (0, 0);
        }
        let Lruvec { memcg, node, .. } = self.lruvecs[lruvec];
        let ages =
            self.memcgs.ancestors(memcg).map(|id| self.lruvecs[self.lruvecs.id(id, node)].nonresident_age);
        ages.fold((0, 0), |(levels, sum), age| (levels + 1, sum + age))
    }

    /// The stamp is taken on the clock of the group whose limit caused the eviction: that is the memory whose size the
    /// distance will be compared with.
    pub(super) fn distance_stamp(&mut self, target: LruvecId, pages: u64) -> u64 {
        let stamp = self.lruvecs[target].nonresident_age;
        self.workingset_age(target, pages);
        stamp
    }

    /// How much longer the inactive list would have had to be, and how much there was that might have made room.
    pub(super) fn distance_and_room(&self, shadow: Shadow, reader: MemcgId, kind: LruType) -> (u64, u64) {
        let evictor = self.lruvecs.id(shadow.memcg, shadow.node);
        let room = self.room(shadow, reader, kind, |list| self.stale(evictor, list.stat()));
        (shadow.distance(self.lruvecs[evictor].nonresident_age), room)
    }

    /// What might have made room, by sizes of lists.
    #[inline(always)]
    fn room(
        &self,
        shadow: Shadow,
        reader: MemcgId,
        kind: LruType,
        mut size: impl FnMut(LruList) -> u64,
    ) -> u64 {
        let mut room = size(LruList::ActiveFile);
        if kind == LruType::Anon {
            room += size(LruList::InactiveFile);
        }
        let swaps = match self.memcgs[reader].policy.swap_room {
            SwapRoom::Reader => reader,
            SwapRoom::Evictor => shadow.memcg,
        };
        if self.memcgs.free_swap(swaps, self.memory.swap.free_pages()) > 0 {
            room += size(LruList::ActiveAnon);
            if kind == LruType::File {
                room += size(LruList::InactiveAnon);
            }
        }
        room
    }
}
