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
use crate::sampled::Sampled;

#[derive(Clone, Copy, Default)]
struct Page {
    uses: u32,
    /// When it came.
    since: u64,
}

pub(crate) struct Hyperbolic {
    sample: u32,
    now: u64,
    pages: Sampled<Page>,
}

impl Hyperbolic {
    pub(crate) fn new(capacity: u32, sample: u32, seed: u64) -> Hyperbolic {
        Hyperbolic { sample, now: 0, pages: Sampled::new(capacity, seed) }
    }

    fn victim(&mut self) -> u32 {
        let now = self.now;
        let uses_and_age = |page: &Page| (u128::from(page.uses), u128::from(now - page.since));
        // a / b < c / d as a * d < c * b, which is exact.
        self.pages.lowest(self.sample, uses_and_age, |one, other| one.0 * other.1 < other.0 * one.1)
    }
}

impl Simulation for Hyperbolic {
    fn reserve(&mut self, pages: u32) {
        self.pages.reserve(pages);
    }

    fn access(&mut self, page: u32) -> bool {
        self.now += 1;
        if let Some(of) = self.pages.get_mut(page) {
            of.uses = of.uses.saturating_add(1);
            return true;
        }
        let of = Page { uses: 1, since: self.now };
        if self.pages.is_full() {
            let victim = self.victim();
            self.pages.replace(victim, page, of);
        } else {
            self.pages.add(page, of);
        }
        false
    }

    fn remove(&mut self, page: u32) {
        self.pages.remove(page);
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check()
    }
}
