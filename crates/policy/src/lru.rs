//! The textbook LRU: the page that was not used for longest goes first.
//!
//! *What.* One list in exact order of use: each use moves its page to the head, and the tail goes.
//!
//! *Why.* The reference that others are measured against. No kernel keeps it: it would move a page at each access.
//!
//! *When not to use it:* to predict a Linux machine. If a loop is larger than memory: no page is used twice in time, and none stays. Behind page
//! tables, which do not report uses in order: there it is CLOCK.
//!
//! Source: R. L. Mattson and others, *Evaluation Techniques for Storage Hierarchies*, IBM Systems Journal 9(2), 1970,
//! <https://doi.org/10.1147/sj.92.0078>. A page that can't go when its turn comes (it is dirty, pinned or locked) goes to the head, as if it
//! had been used.

use crate::queue::{Links, Queue};
use crate::{Arrival, End, PageId, Policy, Slot};

/// One list in order of use.
#[derive(Default, Debug)]
pub struct Lru {
    links: Links,
    list: Queue,
}

impl Policy for Lru {
    fn resized(&mut self, _capacity: u32) {}

    fn added(&mut self, arrival: &Arrival) {
        self.list.push_head(&mut self.links, arrival.slot);
    }

    fn used(&mut self, slots: &[Slot]) {
        for &slot in slots {
            self.list.move_head(&mut self.links, slot);
        }
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        victims.extend(self.list.iter_from_tail(&self.links).take(want as usize));
    }

    fn ended(&mut self, slot: Slot, _page: PageId, end: End) {
        self.list.remove(&mut self.links, slot);
        if end == End::Spared {
            self.list.push_head(&mut self.links, slot);
        }
    }

    fn cold(&mut self, slot: Slot) {
        self.list.remove(&mut self.links, slot);
        self.list.push_tail(&mut self.links, slot);
    }

    fn check(&self) -> Result<(), String> {
        self.list.check(&self.links)
    }
}
