//! MQ: several LRU lists by the number of uses. A page that is not used for a lifetime moves one list down.
//!
//! ```text
//!   list 7 ◄─ 128 uses or more          each access: the oldest page of a list that has expired
//!     ...                               moves to the list below
//!   list 1 ◄─ 2 or 3 uses
//!   list 0 ◄─ 1 use ── tail: evicted first ──► names and numbers of uses ──► forgotten
//! ```
//! *What.* A page with `n` uses is in the list of the whole part of log2(n). Each use moves it to the head of its list, and lets it expire `life`
//! accesses per page of memory later. The tail of the lowest list that has pages is evicted. A page that returns while its name is known
//! continues to count its uses.
//!
//! *Why.* Behind another cache, a page returns late: its number of uses shows its worth, and its last use does not.
//!
//! *When not to use it:* where popularity moves faster than pages expire: a page of the highest list has eight lifetimes.
//!
//! Source: Y. Zhou, J. F. Philbin and K. Li, *The Multi-Queue Replacement Algorithm for Second Level Buffer Caches*, USENIX ATC 2001; Y. Zhou, Z. Chen
//! and K. Li, *Second-Level Buffer Cache Management*, IEEE TPDS 15(6), 2004, <https://doi.org/10.1109/TPDS.2004.13>.
//!
//! *Choices of pageout.* The lifetime is a parameter; the paper can also estimate it from the trace. A page that returns is not forgotten to make space
//! for itself.

use crate::Simulation;
use crate::simulation::{Queues, part, places};

places!(
    /// Where a page is. One in `Left` is a name.
    In { L0, L1, L2, L3, L4, L5, L6, L7, Left }
);

/// The lists, the lowest one first.
const LISTS: [In; 8] = [In::L0, In::L1, In::L2, In::L3, In::L4, In::L5, In::L6, In::L7];

pub(crate) struct Mq {
    capacity: u32,
    lists: &'static [In],
    life: u64,
    left_max: u32,
    now: u64,
    len: u32,
    queues: Queues<In, 9>,
    /// By page, in memory or known by name.
    pages: Vec<Page>,
}

#[derive(Clone, Copy, Default)]
struct Page {
    uses: u32,
    expires: u64,
}

impl Mq {
    pub(crate) fn new(capacity: u32, lists: u32, life: f64, ghost: f64) -> Mq {
        let lists = &LISTS[..lists as usize];
        let life = u64::from(part(life, capacity));
        let (queues, pages) = (Queues::new(), Vec::new());
        Mq { capacity, lists, life, left_max: part(ghost, capacity), now: 0, len: 0, queues, pages }
    }

    fn evict(&mut self) {
        let victim = self.lists.iter().find_map(|&list| self.queues.tail(list)).expect("memory is full");
        self.len -= 1;
        self.queues.move_to(victim, In::Left);
        if self.queues.len(In::Left) > self.left_max {
            let forgotten = self.queues.tail(In::Left).expect("there is one more than may be");
            self.queues.remove(forgotten);
            self.pages[forgotten as usize].uses = 0;
        }
    }

    /// Moves the oldest page of each list one list down, if it has expired.
    fn adjust(&mut self) {
        self.now += 1;
        for lists in self.lists.windows(2) {
            let Some(oldest) = self.queues.tail(lists[1]) else { continue };
            let expires = &mut self.pages[oldest as usize].expires;
            if *expires < self.now {
                *expires = self.now + self.life;
                self.queues.move_to(oldest, lists[0]);
            }
        }
    }
}

impl Simulation for Mq {
    fn reserve(&mut self, pages: u32) {
        self.queues.reserve(pages);
        if self.pages.len() < pages as usize {
            self.pages.resize(pages as usize, Page::default());
        }
    }

    fn access(&mut self, page: u32) -> bool {
        let place = self.queues.place(page);
        let is_there = !matches!(place, In::Nowhere | In::Left);
        self.queues.forget(page);
        if !is_there {
            if self.len == self.capacity {
                self.evict();
            }
            self.len += 1;
        }
        let of = &mut self.pages[page as usize];
        of.uses = of.uses.saturating_add(1);
        of.expires = self.now + self.life;
        let list = (of.uses.ilog2() as usize).min(self.lists.len() - 1);
        self.queues.push(page, self.lists[list]);
        self.adjust();
        is_there
    }

    fn remove(&mut self, page: u32) {
        self.len -= u32::from(!matches!(self.queues.place(page), In::Nowhere | In::Left));
        self.queues.forget(page);
        self.pages[page as usize].uses = 0;
    }

    fn check(&self) -> Result<(), String> {
        let there: u32 = self.lists.iter().map(|&list| self.queues.len(list)).sum();
        let left = self.queues.len(In::Left);
        if there != self.len || there > self.capacity || left > self.left_max {
            return Err(format!("{there} pages in lists, {} counted, {left} names: too many", self.len));
        }
        self.queues.check()
    }
}
