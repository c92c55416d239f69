//! LHD: the page with the lowest hit density goes first, of a random sample: expected hits per access that it stays in memory.
//!
//! ```text
//!               hits expected from this age on               learned for each class of pages, by age:
//!   density = -------------------------------------          how many were hit, and how many evicted
//!              time expected to the hit or eviction
//! ```
//! *What.* The age of a page is the time since its last use. Hits and evictions are counted by class and age, and old counts lose a tenth at
//! each update. Every `period` accesses the densities are computed again. An eviction draws `sample` pages and evicts the one with the lowest
//! density. A few arrivals, by `explore`, are kept up to their next hit, so that hits at high ages are learned at all.
//!
//! *Why.* Memory is space times time. A page is worth its place by the hits that it brings for the time that it takes.
//!
//! *When not to use it:* for short traces: it begins as LRU of a sample, and learns within some periods.
//!
//! Source: N. Beckmann, H. Chen and A. Cidon, *LHD: Improving Cache Hit Rate by Maximizing Hit Density*, NSDI 2018,
//! <https://www.usenix.org/conference/nsdi18/presentation/beckmann>.
//!
//! *Choices of pageout.* There are 1,024 ages of a 32nd of the capacity each; the paper adapts their length. Pages without a hit are one class; others
//! have the logarithm of the sum of their last two ages at a hit. Counts are integers. Until the first update the order is that of LRU. A page may be
//! drawn twice in one sample. All pages have one size and belong to one application.

use crate::Simulation;
use crate::sampled::Sampled;
use crate::simulation::fraction;

/// Ages that are distinguished. The last one is for all higher ones.
const AGES: usize = 1024;
/// Ages in the time of as many accesses as memory has pages.
const AGES_PER_TURN: u64 = 32;
/// Classes: one for pages without a hit, and one for each logarithm of the sum of two ages.
const CLASSES: usize = 2 + (2 * AGES).ilog2() as usize;
/// An event, as a count. Counts lose a tenth at each update, rounded down.
const EVENT: u64 = 1 << 16;

#[derive(Clone, Copy, Default)]
struct Page {
    /// Hits since it came, up to two.
    hits: u8,
    is_explorer: bool,
    /// The ages at its last two hits.
    ages: [u16; 2],
    last: u64,
}

/// What can be chosen.
pub(crate) struct Shape {
    pub(crate) sample: u32,
    pub(crate) period: u64,
    pub(crate) explore: f64,
}

pub(crate) struct Lhd {
    sample: u32,
    explore: f64,
    period: u64,
    pages: Sampled<Page>,
    clock: Clock,
    /// By class and age.
    hits: Vec<u64>,
    evictions: Vec<u64>,
    densities: Vec<f64>,
}

/// The time, and the ages that it gives pages.
#[derive(Clone, Copy)]
struct Clock {
    now: u64,
    /// Accesses per age.
    unit: u64,
}

impl Clock {
    fn age(self, page: &Page) -> usize {
        ((self.now - page.last) / self.unit).min(AGES as u64 - 1) as usize
    }

    /// Where the counts and the density of a page are.
    fn entry(self, page: &Page) -> usize {
        let class = match page.hits {
            0 => 0,
            _ => 1 + (1 + u32::from(page.ages[0]) + u32::from(page.ages[1])).ilog2() as usize,
        };
        class * AGES + self.age(page)
    }
}

impl Lhd {
    pub(crate) fn new(capacity: u32, shape: &Shape, seed: u64) -> Lhd {
        Lhd {
            sample: shape.sample,
            explore: shape.explore,
            period: shape.period.max(capacity.into()),
            pages: Sampled::new(capacity, seed),
            clock: Clock { now: 0, unit: u64::from(capacity).div_ceil(AGES_PER_TURN) },
            hits: vec![0; CLASSES * AGES],
            evictions: vec![0; CLASSES * AGES],
            densities: (0..CLASSES * AGES).map(|at| 1.0 / (at % AGES + 1) as f64).collect(),
        }
    }

    fn victim(&mut self) -> u32 {
        let Lhd { clock, densities, pages, sample, .. } = self;
        let density = |page: &Page| {
            let is_kept = page.is_explorer && clock.age(page) < AGES - 1;
            // No density is above 1.
            densities[clock.entry(page)] + if is_kept { 1.0 } else { 0.0 }
        };
        pages.lowest(*sample, density, |one, other| one < other)
    }

    fn bring_in(&mut self, page: u32) {
        let victim = self.pages.is_full().then(|| self.victim());
        let is_explorer = fraction(&mut self.pages.draws) < self.explore;
        let of = Page { hits: 0, is_explorer, ages: [0; 2], last: self.clock.now };
        match victim {
            Some(victim) => {
                let evicted = self.pages.get_mut(victim).expect("a victim is in memory");
                self.evictions[self.clock.entry(evicted)] += EVENT;
                self.pages.replace(victim, page, of);
            }
            None => self.pages.add(page, of),
        }
    }

    /// Computes the densities from the counts, from the highest age down, and lets the counts fade.
    fn update(&mut self) {
        for class in 0..CLASSES {
            let (mut hits, mut events, mut time) = (0, 0, 0);
            for at in (class * AGES..(class + 1) * AGES).rev() {
                hits += self.hits[at];
                events += self.hits[at] + self.evictions[at];
                time += events;
                if time > 0 {
                    self.densities[at] = hits as f64 / time as f64;
                }
            }
        }
        for count in self.hits.iter_mut().chain(&mut self.evictions) {
            *count = *count / 10 * 9 + *count % 10 * 9 / 10;
        }
    }
}

impl Simulation for Lhd {
    fn reserve(&mut self, pages: u32) {
        self.pages.reserve(pages);
    }

    fn access(&mut self, page: u32) -> bool {
        self.clock.now += 1;
        let clock = self.clock;
        let is_there = match self.pages.get_mut(page) {
            Some(of) => {
                self.hits[clock.entry(of)] += EVENT;
                let age = clock.age(of);
                of.hits = (of.hits + 1).min(2);
                of.ages = [age as u16, of.ages[0]];
                (of.is_explorer, of.last) = (false, clock.now);
                true
            }
            None => {
                self.bring_in(page);
                false
            }
        };
        if clock.now.is_multiple_of(self.period) {
            self.update();
        }
        is_there
    }

    fn remove(&mut self, page: u32) {
        self.pages.remove(page);
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check()?;
        if let Some(density) = self.densities.iter().find(|density| !(0.0..=1.0).contains(*density)) {
            return Err(format!("a hit density is {density}, expected 0 to 1"));
        }
        Ok(())
    }
}
