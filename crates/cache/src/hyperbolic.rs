//! Hyperbolic caching: the page with the fewest uses per time in memory goes first, of a random sample.
//!
//! ```text
//!   priority = uses since it came / accesses since it came         the lowest of 64 random pages is evicted
//! ```
//! *What.* The access that brings a page in is its first use. Priorities fall with time by themselves, so no order is kept: an eviction draws
//! `sample` pages, each of all in memory, and compares them at that time.
//!
//! *Why.* LFU favours old pages, which had time to be used. A rate of uses treats a new page like an old one.
//!
//! *When not to use it:* where popularity moves: the uses of long ago count as much as those of late.
//!
//! Source: A. Blankstein, S. Sen and M. J. Freedman, *Hyperbolic Caching: Flexible Caching for Web Applications*, USENIX ATC 2017,
//! <https://www.usenix.org/conference/atc17/technical-sessions/presentation/blankstein>.
//!
//! *Choices of pageout.* Time is counted in accesses. A page may be drawn twice in one sample. Among equals, the page drawn first is evicted.

use crate::Simulation;
use pageout_policy::check::Random;

/// The page is not in memory.
const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Page {
    /// Its place among those in memory.
    at: u32,
    uses: u32,
    /// When it came.
    since: u64,
}

pub(crate) struct Hyperbolic {
    capacity: usize,
    sample: u32,
    now: u64,
    there: Vec<u32>,
    /// By page.
    pages: Vec<Page>,
    draws: Random,
}

impl Hyperbolic {
    pub(crate) fn new(capacity: u32, sample: u32, seed: u64) -> Hyperbolic {
        let (there, pages, draws) = (Vec::new(), Vec::new(), Random::new(seed));
        Hyperbolic { capacity: capacity as usize, sample, now: 0, there, pages, draws }
    }

    /// Returns the place of the victim.
    fn victim(&mut self) -> usize {
        let mut lowest = None;
        for _ in 0..self.sample {
            let at = self.draws.below(self.there.len() as u64) as usize;
            let Page { uses, since, .. } = self.pages[self.there[at] as usize];
            let (uses, age) = (u128::from(uses), u128::from(self.now - since));
            // a / b < c / d as a * d < c * b, which is exact.
            if lowest.is_none_or(|(_, lowest_uses, lowest_age)| uses * lowest_age < lowest_uses * age) {
                lowest = Some((at, uses, age));
            }
        }
        lowest.expect("a sample has a page").0
    }
}

impl Simulation for Hyperbolic {
    fn reserve(&mut self, pages: u32) {
        if self.pages.len() < pages as usize {
            self.pages.resize(pages as usize, Page { at: ABSENT, uses: 0, since: 0 });
        }
    }

    fn access(&mut self, page: u32) -> bool {
        self.now += 1;
        let of = &mut self.pages[page as usize];
        if of.at != ABSENT {
            of.uses = of.uses.saturating_add(1);
            return true;
        }
        let at = if self.there.len() < self.capacity {
            self.there.push(page);
            self.there.len() - 1
        } else {
            let at = self.victim();
            let victim = std::mem::replace(&mut self.there[at], page);
            self.pages[victim as usize].at = ABSENT;
            at
        };
        self.pages[page as usize] = Page { at: at as u32, uses: 1, since: self.now };
        false
    }

    fn remove(&mut self, page: u32) {
        let at = std::mem::replace(&mut self.pages[page as usize].at, ABSENT);
        if at != ABSENT {
            self.there.swap_remove(at as usize);
            if let Some(&moved) = self.there.get(at as usize) {
                self.pages[moved as usize].at = at;
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let there = self.pages.iter().filter(|page| page.at != ABSENT).count();
        let is_so = (0..).zip(&self.there).all(|(at, &page)| self.pages[page as usize].at == at);
        if !is_so || there != self.there.len() || there > self.capacity {
            return Err(format!("{there} pages are present, but {} are in the array", self.there.len()));
        }
        Ok(())
    }
}
