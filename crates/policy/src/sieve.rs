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
//! eviction; past the head it continues at the cold end. The access that brings a page in does not count as a use. So a page
//! read once goes when the hand first meets it, while the pages behind the hand wait for a whole round.
//!
//! *Why.* It is strong for what is read through descriptors, and a hit sets a bit and nothing else, ever: no list, no batch.
//!
//! *How.* The queue is cut at the hand into two. The hand is at the tail of one of them and takes from there. Pages that it passes move to the head
//! of the other. When the first is empty, the hand is past the head, and the two are exchanged.
//!
//! *When not to use it:* to predict a Linux machine. For mapped memory: the fault that brings a page in leaves an accessed
//! bit, which looks like another use, so every page survives the hand's first visit. For loops larger than memory: nothing is
//! used twice in time, and it keeps nothing, as FIFO does.
//!
//! Source: Y. Zhang and others, *SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm for Web Caches*, NSDI 2024,
//! <https://www.usenix.org/conference/nsdi24/presentation/zhang-yazhuo>. The hand skips a page that can't be evicted now (it is dirty, pinned or
//! locked) like a used one.

use crate::queue::{Links, Queue};
use crate::{Arrival, End, PageId, Policy, Slot, Uses};

/// What is known of a page.
#[derive(Clone, Copy, Default, Debug)]
struct Page {
    is_visited: bool,
    /// Which half of the queue it is in.
    half: bool,
}

/// One queue, cut at the hand.
#[derive(Default, Debug)]
pub struct Sieve {
    links: Links,
    halves: [Queue; 2],
    /// The half that the hand is in; the other one has what it has passed by.
    ahead: bool,
    pages: Vec<Page>,
}

impl Sieve {
    /// Moves the hand to the cold end if it is past the head.
    fn turn(&mut self) {
        self.ahead ^= self.halves[usize::from(self.ahead)].is_empty();
    }

    fn enter(&mut self, slot: Slot, half: bool) {
        self.halves[usize::from(half)].push_head(&mut self.links, slot);
        self.pages[slot.index()].half = half;
    }

    fn leave(&mut self, slot: Slot) {
        let half = self.pages[slot.index()].half;
        self.halves[usize::from(half)].remove(&mut self.links, slot);
    }

    /// The hand passes a page by, and forgets that it was used.
    fn pass_by(&mut self, slot: Slot) {
        self.pages[slot.index()].is_visited = false;
        self.leave(slot);
        self.enter(slot, !self.ahead);
    }
}

impl Policy for Sieve {
    fn uses(&self) -> Uses {
        Uses::Late
    }

    fn resized(&mut self, _capacity: u32) {}

    fn added(&mut self, arrival: &Arrival) {
        let slot = arrival.slot;
        if slot.index() >= self.pages.len() {
            self.pages.resize(slot.index() + 1, Page::default());
        }
        self.turn();
        self.pages[slot.index()].is_visited = false;
        self.enter(slot, self.ahead);
    }

    fn used(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.pages[slot.index()].is_visited = true;
        }
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        self.turn();
        let mut hand = self.halves[usize::from(self.ahead)].tail();
        while victims.len() < want as usize {
            let Some(slot) = hand else {
                // All were used up to the head: the hand goes round once more, and none is used now.
                if !victims.is_empty() || self.halves.iter().all(Queue::is_empty) {
                    break;
                }
                self.turn();
                hand = self.halves[usize::from(self.ahead)].tail();
                continue;
            };
            hand = self.links.towards_head(slot);
            if self.pages[slot.index()].is_visited {
                self.pass_by(slot);
            } else {
                victims.push(slot);
            }
        }
    }

    fn ended(&mut self, slot: Slot, _page: PageId, end: End) {
        match end {
            End::Spared => self.pass_by(slot),
            End::Evicted | End::Gone => self.leave(slot),
        }
    }

    /// It goes under the hand.
    fn cold(&mut self, slot: Slot) {
        self.leave(slot);
        self.turn();
        self.halves[usize::from(self.ahead)].push_tail(&mut self.links, slot);
        self.pages[slot.index()].half = self.ahead;
    }

    fn why(&self, slot: Slot) -> Option<String> {
        let page = self.pages.get(slot.index())?;
        let place = if page.half == self.ahead { "ahead of the hand" } else { "passed by the hand" };
        Some(if page.is_visited { format!("{place}, used since") } else { place.to_owned() })
    }

    fn check(&self) -> Result<(), String> {
        for half in [false, true] {
            let queue = self.halves[usize::from(half)];
            queue.check(&self.links)?;
            if let Some(slot) =
                queue.iter_from_tail(&self.links).find(|slot| self.pages[slot.index()].half != half)
            {
                return Err(format!("slot {} is in the other half", slot.0));
            }
        }
        Ok(())
    }
}
