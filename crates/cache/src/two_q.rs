//! 2Q: a queue for new pages, a list for those that came back after they had left it.
//!
//! ```text
//!   new ──► in, a quarter ──── tail: evicted ──► out: names, as many as half of memory ──► forgotten
//!            (a use changes nothing)               └── comes back ──► main, in order of use ── tail: evicted
//! ```
//! *What.* A page enters `in`, a queue in order of arrival. When it leaves that, its name is kept in `out`. Only a page that returns while its name
//! is known enters `main`, an LRU. If `in` is larger than its share, it is evicted from; otherwise `main` is.
//!
//! *Why.* Uses soon after the first one count as one use. A page that is used again later is worth keeping.
//!
//! *When not to use it:* where every miss is expensive: each page of the hot set is read twice before it stays.
//!
//! Source: T. Johnson and D. Shasha, *2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm*, VLDB 1994,
//! <https://www.vldb.org/conf/1994/P439.PDF> (the full version).

use crate::Simulation;
use crate::simulation::{Queues, part, places};

places!(
    /// Where a page is. One in `Out` is not in memory.
    At { In, Out, Main }
);

pub(crate) struct TwoQ {
    capacity: u32,
    in_max: u32,
    out_max: u32,
    queues: Queues<At, 3>,
}

impl TwoQ {
    pub(crate) fn new(capacity: u32, share_in: f64, share_out: f64) -> TwoQ {
        let (in_max, out_max) = (part(share_in, capacity), part(share_out, capacity));
        TwoQ { capacity, in_max, out_max, queues: Queues::new() }
    }

    fn make_room(&mut self) {
        let (newer, main) = (self.queues.len(At::In), self.queues.len(At::Main));
        if newer + main < self.capacity {
            return;
        }
        if newer > self.in_max || main == 0 {
            let page = self.queues.tail(At::In).expect("it has more than its share");
            self.queues.move_to(page, At::Out);
            if self.queues.len(At::Out) > self.out_max {
                self.queues.remove(self.queues.tail(At::Out).expect("there is one more than may be"));
            }
        } else {
            self.queues.remove(self.queues.tail(At::Main).expect("memory is full"));
        }
    }
}

impl Simulation for TwoQ {
    fn reserve(&mut self, pages: u32) {
        self.queues.reserve(pages);
    }

    fn access(&mut self, page: u32) -> bool {
        match self.queues.place(page) {
            At::In => true,
            At::Main => {
                self.queues.move_to(page, At::Main);
                true
            }
            At::Out => {
                self.queues.remove(page);
                self.make_room();
                self.queues.push(page, At::Main);
                false
            }
            At::Nowhere => {
                self.make_room();
                self.queues.push(page, At::In);
                false
            }
        }
    }

    fn remove(&mut self, page: u32) {
        self.queues.forget(page);
    }

    fn check(&self) -> Result<(), String> {
        let (newer, main, out) =
            (self.queues.len(At::In), self.queues.len(At::Main), self.queues.len(At::Out));
        if newer + main > self.capacity || out > self.out_max {
            return Err(format!("{newer} new pages, {main} in the main list and {out} names are too many"));
        }
        self.queues.check()
    }
}
