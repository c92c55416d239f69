//! SIEVE: one queue in order of arrival, and a hand that goes round it and evicts what was not used since it last came by.
//!
//! ```text
//!     head [ new ... ahead of the hand ] tail        head [ passed by the hand ] tail
//!            arrivals              ▲                        ▲
//!                                 hand ── used: stays ──────┘         the whole queue, cut at the hand
//!                                   └──── not used: evicted
//! ```
//! *What.* A page enters at the head. To evict, the hand goes from the cold end towards the head. A page used since the hand
//! last came by stays where it is, and its use is forgotten. The first page not used goes. The hand stays there until the next
//! eviction; past the head it begins again at the cold end. The access that brings a page in does not count as a use. So a page
//! read once goes when the hand first meets it, while the pages behind the hand wait for a whole round.
//!
//! *Why.* A policy that is not a kernel's shows what the four seams carry, and this one is strong for what is read through
//! descriptors. A hit sets REFERENCED in its page's word and nothing else, ever: no list, no batch.
//!
//! *How.* The queue is cut at the hand into two lists. The hand stands at the tail of one of them and takes from there, as any
//! LRU takes from a list. What it spares goes to the head of the other. Rounds of the hand are odd and even by turns: a page
//! waits on the list of the round in which the hand will come to it. When that list is empty, the next round begins. A batch is
//! judged together, so only with batches of one page does it miss exactly where the algorithm does.
//!
//! *When not to use it:* to predict a Linux machine. For mapped memory: the fault that brings a page in leaves an accessed
//! bit, which looks like another use, so every page survives the hand's first visit. For loops larger than memory: nothing is
//! used twice in time, and it keeps nothing, as FIFO does. To weigh anonymous against file memory: both stand in one queue, and
//! neither swappiness nor `memory.low` changes who is next in it.
//!
//! Source: Y. Zhang and others, *SIEVE is Simpler than LRU*, NSDI 2024. Differs where a page can't go at once (it is
//! being written, pinned or locked): it is spared like a used one, and goes under the hand when its write has ended.

use super::{Arrival, PlaceRule, Round};
use crate::core::Core;
use crate::harvest::Referenced;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::{Folio, FolioFlags, UseBits};
use crate::memory::list::List;
use crate::reclaim::{FolioReferences, ScanControl};
use crate::story::{Because, Verdict};
use crate::units::Pfn;
use pageout_rules::lru::Lru;

/// The lists of even and of odd rounds. Both types stand on them, and the gauges call all of it inactive.
const LISTS: [usize; 2] = [LruList::InactiveAnon as usize, LruList::InactiveFile as usize];

/// The list that a folio of the queue is on.
pub(super) fn sieve_list(folio: &Folio) -> usize {
    LISTS[usize::from(folio.has(FolioFlags::ODD_ROUND))]
}

impl Core {
    /// Whether the hand's round is an odd one. Begins the next where this one has no page left.
    fn sieve_turn(&mut self, lruvec: LruvecId) -> bool {
        let lruvec = &mut self.lruvecs[lruvec];
        lruvec.is_odd_round ^= lruvec.lists[LISTS[usize::from(lruvec.is_odd_round)]].is_empty();
        lruvec.is_odd_round
    }

    /// Puts a folio that is on no list into the queue: at its head, under the hand if it is to go next, or just behind the
    /// hand if reclaim had it in its hands and spared it.
    #[inline(never)]
    pub(super) fn sieve_place(&mut self, lruvec: LruvecId, pfn: Pfn, arrival: Arrival) -> PlaceRule {
        let is_odd = match arrival {
            Arrival::Added | Arrival::Rotated => self.sieve_turn(lruvec),
            Arrival::PutBack => !self.lruvecs[lruvec].is_odd_round,
        };
        let folio = &mut self.memory.folios[pfn];
        folio.change(FolioFlags::ODD_ROUND, is_odd);
        let folio = *folio;
        self.list_place(lruvec, Lru::Sieve, pfn, &folio, arrival)
    }

    pub(super) fn sieve_begin(&mut self, lruvec: LruvecId, sc: &ScanControl) -> u64 {
        self.lru_add_drain();
        LISTS.map(|list| List::len(&self.lruvecs[lruvec].lists[list])).iter().sum::<u64>() >> sc.priority
    }

    /// One round of a pass: the hand goes over a batch.
    pub(super) fn sieve_round(
        &mut self,
        lruvec: LruvecId,
        remaining: &mut u64,
        sc: &mut ScanControl,
    ) -> Round {
        let is_odd = self.sieve_turn(lruvec);
        self.untyped_round(lruvec, LISTS[usize::from(is_odd)], remaining, sc)
    }

    /// An entry that maps the folio was found young: it was used.
    pub(super) fn sieve_young(&mut self, pfn: Pfn) {
        self.memory.add_use(pfn, UseBits::REFERENCED);
    }

    /// The hand is at a folio: spares it if it was used, through whatever channel, and forgets that it was.
    pub(super) fn sieve_referenced(&mut self, pfn: Pfn, referenced: Referenced) -> FolioReferences {
        let was_used = self.memory.has_use(pfn, UseBits::REFERENCED) || referenced.young > 0;
        self.memory.remove_use(pfn, UseBits::REFERENCED);
        if was_used {
            self.verdict(pfn, Verdict::Keep, Because::Visited { young: referenced.young });
        }
        if was_used { FolioReferences::Keep } else { FolioReferences::Reclaim }
    }
}
