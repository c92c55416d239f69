//! LRU-K: the page whose K-th last use is longest ago goes first. LRU-2 is the one with K = 2.
//!
//! *What.* A page with fewer than K uses is evicted before all others, the least recently used one first. If there is none, the page with the oldest
//! K-th last use is evicted. The times of uses of evicted pages are remembered for `history` evictions, and count again when the page returns.
//!
//! *Why.* One use does not show how often a page is used; the time between K uses does.
//!
//! *How.* Pages with fewer uses are a list in order of use. The others are a heap by K-th last use. A hit changes nothing in the heap: an entry that
//! is taken out and has been used since is inserted again. So a hit costs K writes.
//!
//! *When not to use it:* where uses come in bursts: one read in parts is several uses.
//!
//! Source: E. J. O'Neil, P. E. O'Neil and G. Weikum, *The LRU-K Page Replacement Algorithm for Database Disk Buffering*, SIGMOD 1993,
//! <https://doi.org/10.1145/170035.170081>.
//!
//! *Choices of pageout.* History is a number of pages, where the paper has a period of time. There is no period in which several uses count as one.
//! Among pages with fewer uses the paper leaves the order open; LRU is its own example.

use crate::Simulation;
use crate::simulation::{Queues, places};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

places!(
    /// Position of a page with fewer than K uses, or of one that has left. One with K uses is in the heap.
    In { Few, Left }
);

/// Never.
const NEVER: u64 = 0;
/// The largest K.
pub(crate) const K_MAX: u32 = 8;

pub(crate) struct LruK {
    k: usize,
    capacity: u32,
    remembered_max: u32,
    now: u64,
    queues: Queues<In, 2>,
    /// By page, K each: the times of its last uses, the newest first.
    uses: Vec<u64>,
    /// Pages with K uses or more, with a K-th last use that may be out of date: an older one.
    many: BinaryHeap<Reverse<(u64, u32)>>,
}

impl LruK {
    pub(crate) fn new(capacity: u32, k: u32, history: f64) -> LruK {
        let remembered_max = crate::simulation::part(history, capacity);
        let (queues, uses, many) = (Queues::new(), Vec::new(), BinaryHeap::new());
        LruK { k: k as usize, capacity, remembered_max, now: NEVER, queues, uses, many }
    }

    fn uses(&mut self, page: u32) -> &mut [u64] {
        &mut self.uses[page as usize * self.k..][..self.k]
    }

    fn kth(&self, page: u32) -> u64 {
        self.uses[(page as usize + 1) * self.k - 1]
    }

    fn evict(&mut self) {
        let victim = match self.queues.tail(In::Few) {
            Some(page) => {
                self.queues.remove(page);
                page
            }
            None => self.pop_oldest(),
        };
        // The next use makes this one the K-th last but one.
        *self.uses(victim).last_mut().expect("K is at least 1") = NEVER;
        self.queues.push(victim, In::Left);
        if self.queues.len(In::Left) > self.remembered_max {
            let forgotten = self.queues.tail(In::Left).expect("there is one more than may be");
            self.queues.remove(forgotten);
            self.uses(forgotten).fill(NEVER);
        }
    }

    fn pop_oldest(&mut self) -> u32 {
        loop {
            let Reverse((time, page)) = *self.many.peek().expect("memory is full");
            let is = self.kth(page);
            let mut oldest = self.many.peek_mut().expect("it was looked at");
            if is == time {
                std::collections::binary_heap::PeekMut::pop(oldest);
                return page;
            }
            *oldest = Reverse((is, page));
        }
    }

    fn is_there(&self, page: u32) -> bool {
        self.queues.place(page) == In::Few || self.kth(page) != NEVER
    }
}

impl Simulation for LruK {
    fn reserve(&mut self, pages: u32) {
        self.queues.reserve(pages);
        if self.uses.len() < pages as usize * self.k {
            self.uses.resize(pages as usize * self.k, NEVER);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        self.now += 1;
        let is_there = self.is_there(page);
        if !is_there && self.queues.len(In::Few) + self.many.len() as u32 == self.capacity {
            // A page that returns is not forgotten to make space for itself.
            self.queues.forget(page);
            self.evict();
        }
        let had_k = self.kth(page) != NEVER;
        let (now, last) = (self.now, self.k - 1);
        let uses = self.uses(page);
        uses.copy_within(..last, 1);
        uses[0] = now;
        let kth = uses[last];
        if had_k {
            return is_there;
        }
        self.queues.forget(page);
        match kth {
            NEVER => self.queues.push(page, In::Few),
            kth => self.many.push(Reverse((kth, page))),
        }
        is_there
    }

    fn remove(&mut self, page: u32) {
        if self.kth(page) != NEVER {
            self.many.retain(|Reverse((_, there))| *there != page);
        }
        self.queues.forget(page);
        self.uses(page).fill(NEVER);
    }

    fn check(&self) -> Result<(), String> {
        let (few, many, left) = (self.queues.len(In::Few), self.many.len(), self.queues.len(In::Left));
        if few as usize + many > self.capacity as usize || left > self.remembered_max {
            return Err(format!(
                "{few} pages with few uses, {many} with K and {left} evicted ones: too many"
            ));
        }
        if self.many.iter().any(|Reverse((time, page))| self.kth(*page) < *time) {
            return Err("a page is in the heap with a later use than it has".to_owned());
        }
        self.queues.check()
    }
}
