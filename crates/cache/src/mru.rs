//! MRU: the page that was used last goes first.
//!
//! *What.* When a slot is needed, the page of the previous access is evicted. All others stay forever, so there is no list.
//!
//! *Why.* In a loop that is larger than memory it keeps a part of the loop, as the best that is possible would: there LRU keeps nothing.
//!
//! *When not to use it:* for anything but loops. What it has kept so far it never gives up, used or not.
//!
//! Source: H.-T. Chou and D. J. DeWitt, *An Evaluation of Buffer Management Strategies for Relational Database Systems*, VLDB 1985,
//! <https://www.vldb.org/conf/1985/P127.PDF>.

use crate::Simulation;

pub(crate) struct Mru {
    capacity: u32,
    len: u32,
    last: u32,
    /// By page.
    is_there: Vec<bool>,
}

impl Mru {
    pub(crate) fn new(capacity: u32) -> Mru {
        Mru { capacity, len: 0, last: 0, is_there: Vec::new() }
    }
}

impl Simulation for Mru {
    fn reserve(&mut self, pages: u32) {
        if self.is_there.len() < pages as usize {
            self.is_there.resize(pages as usize, false);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        let was_there = std::mem::replace(&mut self.is_there[page as usize], true);
        if !was_there {
            if self.len == self.capacity {
                self.is_there[self.last as usize] = false;
            } else {
                self.len += 1;
            }
        }
        self.last = page;
        was_there
    }

    fn remove(&mut self, page: u32) {
        // The page that fills the place is then the one that was used last.
        self.len -= u32::from(std::mem::take(&mut self.is_there[page as usize]));
    }

    fn check(&self) -> Result<(), String> {
        let there = self.is_there.iter().filter(|is_there| **is_there).count();
        if there != self.len as usize || self.len > self.capacity {
            return Err(format!(
                "{there} pages are present, {} are counted, and the capacity is {}",
                self.len, self.capacity
            ));
        }
        Ok(())
    }
}
