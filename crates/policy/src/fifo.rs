//! FIFO: the page that came first goes first, used or not.
//!
//! *What.* One queue in order of arrival. A hit changes nothing and is not even told.
//!
//! *Why.* It is the minimal policy: the savings of another one over it are the value of that one's knowledge of uses.
//!
//! *When not to use it:* for anything but to compare with. A page that is used all the time goes when its turn comes.
//!
//! Source: L. A. Belady, *A Study of Replacement Algorithms for a Virtual-Storage Computer*, IBM Systems Journal 5(2), 1966,
//! <https://doi.org/10.1147/sj.52.0078>. A page that can't go when its turn comes (it is dirty, pinned or locked) waits for its next turn.

use crate::queue::{Links, Queue};
use crate::{Arrival, End, PageId, Policy, Slot, Uses};

/// One queue in order of arrival.
#[derive(Default, Debug)]
pub struct Fifo {
    links: Links,
    queue: Queue,
}

impl Policy for Fifo {
    fn uses(&self) -> Uses {
        Uses::Never
    }

    fn resized(&mut self, _capacity: u32) {}

    fn added(&mut self, arrival: &Arrival) {
        self.queue.push_head(&mut self.links, arrival.slot);
    }

    fn used(&mut self, _slots: &[Slot]) {}

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        victims.extend(self.queue.iter_from_tail(&self.links).take(want as usize));
    }

    fn ended(&mut self, slot: Slot, _page: PageId, end: End) {
        self.queue.remove(&mut self.links, slot);
        if end == End::Spared {
            self.queue.push_head(&mut self.links, slot);
        }
    }

    fn cold(&mut self, slot: Slot) {
        self.queue.remove(&mut self.links, slot);
        self.queue.push_tail(&mut self.links, slot);
    }

    fn check(&self) -> Result<(), String> {
        self.queue.check(&self.links)
    }
}
