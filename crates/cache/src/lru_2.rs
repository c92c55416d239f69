//! LRU-2: the page whose second last use is longest ago goes first.
//!
//! *What.* The least recently used of the pages that were used once is evicted before all others. If there is none, the page with the oldest
//! second-last use is evicted. The time of the last use of evicted pages is remembered for `history` evictions: a page that returns in time has two
//! uses.
//!
//! *Why.* One use does not show how often a page is used; the time between two uses does.
//!
//! *How.* Pages used once are a list in order of use. The others are a heap by second-last use. A hit changes nothing in the heap: an entry that is
//! taken out and has been used since is inserted again. So a hit costs two writes.
//!
//! *When not to use it:* where uses come in bursts (one read in parts is two uses): the paper has a period in which uses count as one. Here there
//! is none.
//!
//! Source: E. J. O'Neil, P. E. O'Neil and G. Weikum, *The LRU-K Page Replacement Algorithm for Database Disk Buffering*, SIGMOD 1993,
//! <https://doi.org/10.1145/170035.170081>.

use crate::Simulation;
use crate::simulation::{Queues, places};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

places!(
    /// Position of a page that was used once or has left. One with two uses is in the heap.
    In { Once, Left }
);

/// Never.
const NEVER: u64 = 0;

#[derive(Clone, Copy, Default)]
struct Uses {
    last: u64,
    second_last: u64,
}

pub(crate) struct Lru2 {
    capacity: u32,
    remembered_max: u32,
    now: u64,
    queues: Queues<In, 2>,
    /// By page.
    uses: Vec<Uses>,
    /// Pages with two uses or more, with a second last use that may be out of date: an older one.
    twice: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Lru2 {
    pub(crate) fn new(capacity: u32, history: f64) -> Lru2 {
        let remembered_max = crate::simulation::part(history, capacity);
        let (queues, uses, twice) = (Queues::new(), Vec::new(), BinaryHeap::new());
        Lru2 { capacity, remembered_max, now: NEVER, queues, uses, twice }
    }

    fn evict(&mut self) {
        let victim = match self.queues.tail(In::Once) {
            Some(page) => {
                self.queues.remove(page);
                page
            }
            None => self.pop_oldest(),
        };
        self.uses[victim as usize].second_last = NEVER;
        self.queues.push(victim, In::Left);
        if self.queues.len(In::Left) > self.remembered_max {
            let forgotten = self.queues.tail(In::Left).expect("there is one more than may be");
            self.queues.remove(forgotten);
            self.uses[forgotten as usize] = Uses::default();
        }
    }

    fn pop_oldest(&mut self) -> u32 {
        loop {
            let mut oldest = self.twice.peek_mut().expect("memory is full");
            let Reverse((time, page)) = *oldest;
            let is = self.uses[page as usize].second_last;
            if is == time {
                std::collections::binary_heap::PeekMut::pop(oldest);
                return page;
            }
            *oldest = Reverse((is, page));
        }
    }
}

impl Simulation for Lru2 {
    fn reserve(&mut self, pages: u32) {
        self.queues.reserve(pages);
        if self.uses.len() < pages as usize {
            self.uses.resize(pages as usize, Uses::default());
        }
    }

    fn access(&mut self, page: u32) -> bool {
        self.now += 1;
        let place = self.queues.place(page);
        let is_there = place != In::Left && self.uses[page as usize].last != NEVER;
        if !is_there && self.queues.len(In::Once) + self.twice.len() as u32 == self.capacity {
            // A page that returns is not forgotten to make space for itself.
            if place == In::Left {
                self.queues.remove(page);
            }
            self.evict();
        }
        let uses = &mut self.uses[page as usize];
        let has_two = uses.second_last != NEVER;
        *uses = Uses { last: self.now, second_last: uses.last };
        let second_last = uses.second_last;
        if second_last == NEVER {
            self.queues.push(page, In::Once);
        } else if !has_two {
            if self.queues.place(page) != In::Nowhere {
                self.queues.remove(page);
            }
            self.twice.push(Reverse((second_last, page)));
        }
        is_there
    }

    fn remove(&mut self, page: u32) {
        let uses = std::mem::take(&mut self.uses[page as usize]);
        if self.queues.place(page) != In::Nowhere {
            self.queues.remove(page);
        } else if uses.last != NEVER {
            self.twice.retain(|Reverse((_, there))| *there != page);
        }
    }

    fn check(&self) -> Result<(), String> {
        let (once, twice, left) = (self.queues.len(In::Once), self.twice.len(), self.queues.len(In::Left));
        if once as usize + twice > self.capacity as usize || left > self.remembered_max {
            return Err(format!(
                "{once} pages used once, {twice} used twice and {left} evicted ones are too many"
            ));
        }
        if self.twice.iter().any(|Reverse((time, page))| self.uses[*page as usize].second_last < *time) {
            return Err("a page is in the heap with a later use than it has".to_owned());
        }
        self.queues.check()
    }
}
