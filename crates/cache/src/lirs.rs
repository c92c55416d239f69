//! LIRS: who stays is decided by how many other pages came between a page's last two uses.
//!
//! ```text
//!   stack, by last use                              queue, first to go in front
//!   ┌───────────────┐                               ┌────────────────────────────┐
//!   │ newest        │   L  low: always in memory    │ pages in memory with a     │
//!   │  h  L  x  L … │   h  high, in memory ────────►│ high distance, 1 in 100    │──► evicted: x
//!   │ bottom: an L  │   x  high, has left           └────────────────────────────┘
//!   └───────────────┘
//! ```
//! *What.* Pages with a *low* distance hold nearly all of memory. A page with a *high* distance that is used while it is in the stack has a shorter
//! distance than the low page at the bottom: the two are exchanged. Pages below the last low page are removed from the stack. The stack keeps the
//! `ghost` most recently evicted pages.
//!
//! *Why.* LRU uses the time since the last use of a page; the distance between two uses predicts the time to the next. Most pages of a loop that is
//! larger than memory stay.
//!
//! *When not to use it:* where the hot set moves: what is low stays so until something else is used twice within the stack.
//!
//! Source: S. Jiang and X. Zhang, *LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy to Improve Buffer Cache
//! Performance*, SIGMETRICS 2002, <https://doi.org/10.1145/511334.511340>. The limit of pages that have left is a parameter here; the paper
//! names the need of one and gives none.

use crate::Simulation;
use crate::simulation::{Queues, part, places};

places!(
    /// A page's place in the stack, or none.
    InStack { Stack }
);
places!(
    /// The place of a page with a high distance. `Nowhere` are pages with a low distance and pages of which nothing is known.
    High { There, Left }
);

pub(crate) struct Lirs {
    low_max: u32,
    high_max: u32,
    left_max: u32,
    low_len: u32,
    /// By page.
    is_low: Vec<bool>,
    stack: Queues<InStack, 1>,
    high: Queues<High, 2>,
}

impl Lirs {
    pub(crate) fn new(capacity: u32, high: f64, ghost: f64) -> Lirs {
        let high_max = part(high, capacity).clamp(1, capacity);
        let left_max = (ghost * f64::from(capacity)).min(f64::from(u32::MAX)) as u32;
        let (low_max, low_len, is_low) = (capacity - high_max, 0, Vec::new());
        Lirs { low_max, high_max, left_max, low_len, is_low, stack: Queues::new(), high: Queues::new() }
    }

    fn move_up(&mut self, page: u32) {
        if self.stack.place(page) == InStack::Stack {
            self.stack.move_to(page, InStack::Stack);
        } else {
            self.stack.push(page, InStack::Stack);
        }
    }

    /// Takes from the bottom of the stack what is not low.
    fn prune(&mut self) {
        while let Some(page) = self.stack.tail(InStack::Stack).filter(|&page| !self.is_low[page as usize]) {
            self.stack.remove(page);
            if self.high.place(page) == High::Left {
                self.high.remove(page);
            }
        }
    }

    /// A page at the top of the stack becomes low; if there are too many then, the one at the bottom becomes high.
    fn make_low(&mut self, page: u32) {
        if self.high.place(page) != High::Nowhere {
            self.high.remove(page);
        }
        self.is_low[page as usize] = true;
        self.low_len += 1;
        self.prune();
        if self.low_len > self.low_max {
            let bottom = self.stack.tail(InStack::Stack).expect("a low page is in the stack");
            self.stack.remove(bottom);
            self.is_low[bottom as usize] = false;
            self.low_len -= 1;
            self.high.push(bottom, High::There);
            self.prune();
        }
    }

    fn evict(&mut self) {
        let victim = self.high.tail(High::There).expect("low pages do not fill memory");
        if self.stack.place(victim) != InStack::Stack {
            self.high.remove(victim);
            return;
        }
        self.high.move_to(victim, High::Left);
        if self.high.len(High::Left) > self.left_max {
            let forgotten = self.high.tail(High::Left).expect("there is one more than may be");
            self.high.remove(forgotten);
            self.stack.remove(forgotten);
        }
    }
}

impl Simulation for Lirs {
    fn reserve(&mut self, pages: u32) {
        self.stack.reserve(pages);
        self.high.reserve(pages);
        if self.is_low.len() < pages as usize {
            self.is_low.resize(pages as usize, false);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        if self.is_low[page as usize] {
            self.move_up(page);
            self.prune();
            return true;
        }
        let was_there = self.high.place(page) == High::There;
        if !was_there && self.low_len + self.high.len(High::There) == self.low_max + self.high_max {
            // A page that returns is not forgotten to make space for itself.
            if self.high.place(page) == High::Left {
                self.high.remove(page);
            }
            self.evict();
        }
        let was_in_stack = self.stack.place(page) == InStack::Stack;
        self.move_up(page);
        if was_in_stack || !was_there && self.low_len < self.low_max {
            self.make_low(page);
        } else if was_there {
            self.high.move_to(page, High::There);
        } else {
            self.high.push(page, High::There);
        }
        self.prune();
        was_there
    }

    fn remove(&mut self, page: u32) {
        self.low_len -= u32::from(std::mem::take(&mut self.is_low[page as usize]));
        self.stack.forget(page);
        self.high.forget(page);
        self.prune();
    }

    fn check(&self) -> Result<(), String> {
        let (high, left) = (self.high.len(High::There), self.high.len(High::Left));
        if self.low_len > self.low_max || self.low_len + high > self.low_max + self.high_max {
            return Err(format!("{} low pages and {high} high ones are too many", self.low_len));
        }
        if left > self.left_max {
            return Err(format!("the stack has {left} evicted pages"));
        }
        let is_low = |page: u32| self.is_low[page as usize];
        let low = (0..self.is_low.len() as u32).filter(|&page| is_low(page));
        let is_apart =
            |page| self.stack.place(page) == InStack::Stack && self.high.place(page) == High::Nowhere;
        if !low.clone().all(is_apart) || low.count() != self.low_len as usize {
            return Err("a low page is not in the stack, or among the high ones".to_owned());
        }
        if self.stack.tail(InStack::Stack).is_some_and(|page| !is_low(page)) {
            return Err("the page at the bottom of the stack is not low".to_owned());
        }
        self.stack.check()?;
        self.high.check()
    }
}
