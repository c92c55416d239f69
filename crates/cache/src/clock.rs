//! CLOCK: in order of arrival, and a page that was used gets a second chance.
//!
//! ```text
//!           hand
//!            ▼
//!     [ 1 ][ 0 ][ 1 ][ 0 ]     used: the bit is taken, and the hand goes on
//!       ring of all pages      not used: the new page takes the place, and the hand goes on
//! ```
//! *What.* A hit counts a use, up to `2^bits - 1`. The hand takes one use from each page that it passes, and evicts the first that has none. The
//! access that brings a page in does not count as a use.
//!
//! *Why.* It is LRU at the price of one bit: the information that processors provide for mapped pages, and the ancestor of kernel policies.
//!
//! *When not to use it:* instead of SIEVE, if new pages that are used once should leave early: here they stay among the others for a round.
//!
//! Source: F. J. Corbató, *A Paging Experiment with the Multics System*, MIT Project MAC, 1968,
//! <https://apps.dtic.mil/sti/citations/AD0687552>.

use crate::Simulation;

pub(crate) struct Clock {
    capacity: usize,
    ring: Vec<u32>,
    hand: usize,
    /// By page: 0 is not in memory, others are one more than the uses that are counted.
    uses: Vec<u8>,
    most: u8,
}

impl Clock {
    pub(crate) fn new(capacity: u32, bits: u32) -> Clock {
        let most = 1 << bits;
        Clock { capacity: capacity as usize, ring: Vec::new(), hand: 0, uses: Vec::new(), most }
    }

    /// Where the new page goes: the place of the page that is evicted.
    fn evict(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = if at + 1 == self.capacity { 0 } else { at + 1 };
            let uses = &mut self.uses[self.ring[at] as usize];
            *uses -= 1;
            if *uses == 0 {
                return at;
            }
        }
    }
}

impl Simulation for Clock {
    fn reserve(&mut self, pages: u32) {
        if self.uses.len() < pages as usize {
            self.uses.resize(pages as usize, 0);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        let uses = &mut self.uses[page as usize];
        if *uses > 0 {
            *uses = (*uses + 1).min(self.most);
            return true;
        }
        *uses = 1;
        if self.ring.len() < self.capacity {
            // The newest page stands right behind the hand.
            match self.hand {
                0 => self.ring.push(page),
                hand => {
                    self.ring.insert(hand, page);
                    self.hand += 1;
                }
            }
        } else {
            let at = self.evict();
            self.ring[at] = page;
        }
        false
    }

    fn remove(&mut self, page: u32) {
        if std::mem::take(&mut self.uses[page as usize]) == 0 {
            return;
        }
        let at = self.ring.iter().position(|&there| there == page).expect("a page with uses is in the ring");
        self.ring.remove(at);
        self.hand -= usize::from(at < self.hand);
        if self.hand == self.ring.len() {
            self.hand = 0;
        }
    }

    fn check(&self) -> Result<(), String> {
        let there = self.uses.iter().filter(|uses| **uses > 0).count();
        let is_so = self.ring.iter().all(|&page| self.uses[page as usize] > 0);
        if !is_so || there != self.ring.len() || self.ring.len() > self.capacity {
            return Err(format!("{there} pages are present, but {} are in the ring", self.ring.len()));
        }
        Ok(())
    }
}
