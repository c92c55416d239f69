//! LFU: the page with the fewest uses goes first; of several, the one that was not used for longest.
//!
//! ```text
//!   1 use            2 uses           7 uses
//!   [newest..oldest] [newest..oldest] [newest..oldest]      a list for each number of uses that a page has
//!            └─ goes first
//! ```
//! *What.* A hit moves a page to the list of one use more, which is its neighbour or is made there. Uses are forgotten with the page.
//!
//! *Why.* It keeps the popular pages, if their popularity is stable.
//!
//! *When not to use it:* where popularity moves. What was popular stays, and what is new has no time to become so.
//!
//! Source: A. V. Aho, P. J. Denning and J. D. Ullman, *Principles of Optimal Page Replacement*, J. ACM 18(1), 1971,
//! <https://doi.org/10.1145/321623.321632>; in constant time by lists: K. Shah, A. Mitra and D. Matani, *An O(1) Algorithm for Implementing
//! the LFU Cache Eviction Scheme*, 2010, <https://arxiv.org/abs/2110.11602>.

use crate::Simulation;
use pageout_policy::Slot;
use pageout_policy::queue::{Links, Queue};

/// No list.
const NONE: u32 = u32::MAX;

/// The pages with one number of uses.
struct List {
    uses: u64,
    pages: Queue,
    fewer: u32,
    more: u32,
}

pub(crate) struct Lfu {
    capacity: u32,
    len: u32,
    links: Links,
    /// By page: its list.
    of: Vec<u32>,
    lists: Vec<List>,
    /// Lists without pages, to be used again.
    free: Vec<u32>,
    fewest: u32,
}

impl Lfu {
    pub(crate) fn new(capacity: u32) -> Lfu {
        let (of, lists, free) = (Vec::new(), Vec::new(), Vec::new());
        Lfu { capacity, len: 0, links: Links::default(), of, lists, free, fewest: NONE }
    }

    fn list(&mut self, number: u32) -> &mut List {
        &mut self.lists[number as usize]
    }

    /// The list of so many uses that stands behind `fewer`, or a new one there.
    fn behind(&mut self, fewer: u32, uses: u64) -> u32 {
        let more = if fewer == NONE { self.fewest } else { self.list(fewer).more };
        if more != NONE && self.list(more).uses == uses {
            return more;
        }
        let list = List { uses, pages: Queue::default(), fewer, more };
        let number = match self.free.pop() {
            Some(number) => {
                *self.list(number) = list;
                number
            }
            None => {
                self.lists.push(list);
                self.lists.len() as u32 - 1
            }
        };
        match fewer {
            NONE => self.fewest = number,
            fewer => self.list(fewer).more = number,
        }
        if more != NONE {
            self.list(more).fewer = number;
        }
        number
    }

    fn push(&mut self, page: u32, number: u32) {
        self.of[page as usize] = number;
        self.lists[number as usize].pages.push_head(&mut self.links, Slot(page));
    }

    /// Takes a page out of its list, and the list away if it was the last.
    fn take(&mut self, page: u32) {
        let number = std::mem::replace(&mut self.of[page as usize], NONE);
        let list = &mut self.lists[number as usize];
        list.pages.remove(&mut self.links, Slot(page));
        if !list.pages.is_empty() {
            return;
        }
        let (fewer, more) = (list.fewer, list.more);
        match fewer {
            NONE => self.fewest = more,
            fewer => self.list(fewer).more = more,
        }
        if more != NONE {
            self.list(more).fewer = fewer;
        }
        self.free.push(number);
    }
}

impl Simulation for Lfu {
    fn reserve(&mut self, pages: u32) {
        if self.of.len() < pages as usize {
            self.of.resize(pages as usize, NONE);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        let number = self.of[page as usize];
        if number != NONE {
            let uses = self.list(number).uses + 1;
            let next = self.behind(number, uses);
            self.take(page);
            self.push(page, next);
            return true;
        }
        if self.len == self.capacity {
            let victim = self.lists[self.fewest as usize].pages.tail().expect("no list is empty");
            self.take(victim.0);
        } else {
            self.len += 1;
        }
        let first = self.behind(NONE, 1);
        self.push(page, first);
        false
    }

    fn remove(&mut self, page: u32) {
        if self.of[page as usize] != NONE {
            self.take(page);
            self.len -= 1;
        }
    }

    fn check(&self) -> Result<(), String> {
        let (mut at, mut fewer, mut uses, mut pages) = (self.fewest, NONE, 0, 0);
        while at != NONE {
            let list = &self.lists[at as usize];
            list.pages.check(&self.links)?;
            if list.uses <= uses || list.fewer != fewer || list.pages.is_empty() {
                return Err(format!("the list of {} uses follows that of {uses}", list.uses));
            }
            if list.pages.iter_from_tail(&self.links).any(|slot| self.of[slot.index()] != at) {
                return Err(format!("a page is not in the list of {} uses that it records", list.uses));
            }
            (fewer, uses, pages, at) = (at, list.uses, pages + list.pages.len(), list.more);
        }
        if pages != self.len || self.len > self.capacity {
            return Err(format!("{pages} pages are in lists, but {} are counted", self.len));
        }
        Ok(())
    }
}
