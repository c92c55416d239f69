//! Random: any page goes, each as likely as the others.
//!
//! *What.* The pages in memory are an array in no order. A draw says which of them the new page takes the place of.
//!
//! *Why.* It knows nothing, not even who came first, and so it has no worst case: in a loop it beats LRU.
//!
//! *When not to use it:* where pages differ in how often they are used, and something else knows it. One run is one draw: look at several
//! seeds.
//!
//! Source: L. A. Belady, *A Study of Replacement Algorithms for a Virtual-Storage Computer*, IBM Systems Journal 5(2), 1966,
//! <https://doi.org/10.1147/sj.52.0078>.

use crate::Simulation;
use pageout_policy::check::Random as Draws;

pub(crate) struct Random {
    capacity: usize,
    pages: Vec<u32>,
    /// By page.
    is_there: Vec<bool>,
    draws: Draws,
}

impl Random {
    pub(crate) fn new(capacity: u32, seed: u64) -> Random {
        let draws = Draws::new(seed);
        Random { capacity: capacity as usize, pages: Vec::new(), is_there: Vec::new(), draws }
    }
}

impl Simulation for Random {
    fn reserve(&mut self, pages: u32) {
        if self.is_there.len() < pages as usize {
            self.is_there.resize(pages as usize, false);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        if std::mem::replace(&mut self.is_there[page as usize], true) {
            return true;
        }
        if self.pages.len() < self.capacity {
            self.pages.push(page);
        } else {
            let at = self.draws.below(self.capacity as u64) as usize;
            let victim = std::mem::replace(&mut self.pages[at], page);
            self.is_there[victim as usize] = false;
        }
        false
    }

    fn remove(&mut self, page: u32) {
        if std::mem::take(&mut self.is_there[page as usize]) {
            let at = self.pages.iter().position(|&there| there == page);
            self.pages.swap_remove(at.expect("a page that is there is in the array"));
        }
    }

    fn check(&self) -> Result<(), String> {
        let there = self.is_there.iter().filter(|is_there| **is_there).count();
        let is_so = self.pages.iter().all(|&page| self.is_there[page as usize]);
        if !is_so || there != self.pages.len() || self.pages.len() > self.capacity {
            return Err(format!("{there} pages are present, but {} are in the array", self.pages.len()));
        }
        Ok(())
    }
}
