//! Cacheus: LeCaR with better experts and no parameters: SR-LRU, which resists scans, CR-LFU, which resists churn, and a learning rate that adapts.
//!
//! ```text
//!   new ──► scan ──used──► reused             SR-LRU evicts the tail of `scan`; the tail of `reused` is demoted to the head of `scan`
//!            ▲ └─ tail: evicted   │           CR-LFU evicts the page with the fewest uses, of equals the most recently used one
//!            └──── demoted ◄──────┘
//! ```
//! *What.* SR-LRU divides memory. A page that returns from its history and was never used again before it left enlarges `scan`, by the ratio of
//! demoted pages to such names. A use of a demoted page enlarges `reused`, by the inverse ratio. The step is at least one. As in LeCaR each eviction
//! draws an expert by weight, and the names of evicted pages are kept: for each expert half as many as memory has pages. A page that returns divides the
//! weight of its expert by `e^rate`. If both experts name one page, it leaves without a name.
//!
//! *Learning rate.* Once per as many accesses as memory has pages, the rate continues in its direction if the hit ratio rose, and turns otherwise. If
//! the rate stood still during ten periods in which the hit ratio did not rise, another one is drawn.
//!
//! *Why.* LRU and LFU share weaknesses, which no weights can compensate: scans, and pages of equal popularity.
//!
//! *When not to use it:* where the order of misses must not depend on a seed.
//!
//! Source: L. V. Rodriguez and others, *Learning Cache Replacement with CACHEUS*, FAST 2021,
//! <https://www.usenix.org/conference/fast21/presentation/rodriguez>.
//!
//! *Choices of pageout.* `scan` begins with half of memory. A name keeps its number of uses. The first rate is drawn like later ones, from 0.001 to 1.
//! Weights do not fall below one in a billion.

use crate::Simulation;
use crate::heap::Heap;
use crate::lecar::reweigh;
use crate::simulation::{Queues, fraction, part, places};
use pageout_policy::check::Random;
use std::cmp::Reverse;

places!(
    /// Where a page is. The last two are names, by the expert that had the page evicted.
    In { Scan, Reused, LeftByRecency, LeftByUses }
);

/// The least learning rate; the largest is 1.
const RATE_MIN: f64 = 0.001;
/// Periods without success after which another rate is drawn.
const PATIENCE: u32 = 10;

#[derive(Clone, Copy, Default)]
struct Page {
    uses: u32,
    /// It was never used again since it came.
    is_new: bool,
    /// It is in `scan`, and was in `reused` before.
    is_demoted: bool,
}

pub(crate) struct Cacheus {
    capacity: u32,
    left_max: u32,
    scan_max: u32,
    /// Demoted pages in memory.
    demoted: u32,
    /// New pages among the names of SR-LRU.
    new_left: u32,
    now: u64,
    /// Weights of SR-LRU and CR-LFU.
    weights: [f64; 2],
    rate: Rate,
    queues: Queues<In, 4>,
    /// Pages in memory by uses, the most recently used first among equals.
    by_uses: Heap<(u32, Reverse<u64>)>,
    /// By page, in memory or known by name.
    pages: Vec<Page>,
    draws: Random,
}

/// The learning rate, and what decides where it goes.
struct Rate {
    now: f64,
    before: f64,
    hits: u64,
    hits_before: u64,
    in_vain: u32,
}

fn any_rate(draws: &mut Random) -> f64 {
    RATE_MIN + fraction(draws) * (1.0 - RATE_MIN)
}

impl Rate {
    /// A period has ended.
    fn adapt(&mut self, draws: &mut Random) {
        let (moved, rose) = (self.now - self.before, self.hits as i64 - self.hits_before as i64);
        let mut next = self.now;
        if moved != 0.0 {
            let step = (self.now * moved).abs();
            let is_right = rose > 0 && moved > 0.0 || rose < 0 && moved < 0.0;
            next = (self.now + if is_right { step } else { -step }).clamp(RATE_MIN, 1.0);
            self.in_vain = 0;
        } else {
            self.in_vain += u32::from(rose <= 0);
            if self.in_vain == PATIENCE {
                (self.in_vain, next) = (0, any_rate(draws));
            }
        }
        (self.before, self.now) = (self.now, next);
        (self.hits_before, self.hits) = (self.hits, 0);
    }
}

impl Cacheus {
    pub(crate) fn new(capacity: u32, seed: u64) -> Cacheus {
        let mut draws = Random::new(seed);
        let rate = any_rate(&mut draws);
        Cacheus {
            capacity,
            left_max: part(0.5, capacity),
            scan_max: part(0.5, capacity).max(1),
            demoted: 0,
            new_left: 0,
            now: 0,
            weights: [0.5; 2],
            rate: Rate { now: rate, before: rate, hits: 0, hits_before: 0, in_vain: 0 },
            queues: Queues::new(),
            by_uses: Heap::new(),
            pages: Vec::new(),
            draws,
        }
    }

    fn len(&self) -> u32 {
        self.queues.len(In::Scan) + self.queues.len(In::Reused)
    }

    /// Takes a page out of the queue that it is in, and out of what is counted of it.
    fn take(&mut self, page: u32) {
        let of = &mut self.pages[page as usize];
        self.demoted -= u32::from(std::mem::take(&mut of.is_demoted));
        self.new_left -= u32::from(self.queues.place(page) == In::LeftByRecency && of.is_new);
        self.queues.forget(page);
    }

    /// Puts a page that was used again at the head of `reused`, and demotes what that has too much.
    fn put_reused(&mut self, page: u32) {
        self.pages[page as usize].is_new = false;
        self.queues.push(page, In::Reused);
        while self.queues.len(In::Reused) > self.capacity - self.scan_max {
            let oldest = self.queues.tail(In::Reused).expect("it has too many");
            self.queues.move_to(oldest, In::Scan);
            self.pages[oldest as usize].is_demoted = true;
            self.demoted += 1;
        }
    }

    fn hit(&mut self, page: u32) {
        if self.pages[page as usize].is_demoted {
            let step = (self.new_left / self.demoted).max(1);
            self.scan_max = self.scan_max.saturating_sub(step).max(1);
        }
        self.take(page);
        self.put_reused(page);
    }

    /// A page is missing; takes what is known of it out of the histories, and learns from it. Returns whether something was known.
    fn learn(&mut self, page: u32) -> bool {
        let mistaken = match self.queues.place(page) {
            In::LeftByRecency => 0,
            In::LeftByUses => 1,
            _ => return false,
        };
        reweigh(&mut self.weights, mistaken, libm::exp(-self.rate.now));
        if mistaken == 0 && self.pages[page as usize].is_new {
            let step = (self.demoted / self.new_left).max(1);
            self.scan_max = (self.scan_max + step).min(self.capacity);
        }
        self.take(page);
        true
    }

    fn evict(&mut self) {
        let recent = self.queues.tail(In::Scan).or_else(|| self.queues.tail(In::Reused));
        let recent = recent.expect("memory is full");
        let (_, rare) = self.by_uses.first().expect("memory is full");
        if recent == rare {
            self.take(recent);
            self.by_uses.remove(recent);
            self.pages[recent as usize].uses = 0;
            return;
        }
        let is_recency = fraction(&mut self.draws) < self.weights[0];
        let (victim, to) = if is_recency { (recent, In::LeftByRecency) } else { (rare, In::LeftByUses) };
        self.take(victim);
        self.by_uses.remove(victim);
        self.queues.push(victim, to);
        self.new_left += u32::from(is_recency && self.pages[victim as usize].is_new);
        if self.queues.len(to) > self.left_max {
            let forgotten = self.queues.tail(to).expect("there is one more than may be");
            self.take(forgotten);
            self.pages[forgotten as usize].uses = 0;
        }
    }
}

impl Simulation for Cacheus {
    fn reserve(&mut self, pages: u32) {
        self.queues.reserve(pages);
        self.by_uses.reserve(pages);
        if self.pages.len() < pages as usize {
            self.pages.resize(pages as usize, Page::default());
        }
    }

    fn access(&mut self, page: u32) -> bool {
        self.now += 1;
        let is_there = matches!(self.queues.place(page), In::Scan | In::Reused);
        if is_there {
            self.rate.hits += 1;
            self.hit(page);
        } else {
            let is_known = self.learn(page);
            if self.len() == self.capacity {
                self.evict();
            }
            if is_known {
                self.put_reused(page);
            } else {
                self.pages[page as usize] = Page { uses: 0, is_new: true, is_demoted: false };
                self.queues.push(page, In::Scan);
            }
        }
        let uses = &mut self.pages[page as usize].uses;
        *uses = uses.saturating_add(1);
        self.by_uses.set(page, (*uses, Reverse(self.now)));
        if self.now.is_multiple_of(self.capacity.into()) {
            self.rate.adapt(&mut self.draws);
        }
        is_there
    }

    fn remove(&mut self, page: u32) {
        self.take(page);
        self.by_uses.remove(page);
        self.pages[page as usize].uses = 0;
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        tell("sr_lru_weight", self.weights[0]);
        tell("learning_rate", self.rate.now);
        tell("scan_target_pages", self.scan_max.into());
    }

    fn check(&self) -> Result<(), String> {
        let left = self.queues.len(In::LeftByRecency).max(self.queues.len(In::LeftByUses));
        if self.len() > self.capacity || left > self.left_max || self.len() != self.by_uses.len() {
            return Err(format!(
                "{} pages, {} by uses and {left} names: wrong",
                self.len(),
                self.by_uses.len()
            ));
        }
        let pages = || self.pages.iter().zip(0..);
        let is_in = |page, place| self.queues.place(page) == place;
        let demoted = pages().filter(|(of, _)| of.is_demoted).count();
        let demoted_in_scan = pages().filter(|(of, page)| of.is_demoted && is_in(*page, In::Scan)).count();
        let new_left = pages().filter(|(of, page)| of.is_new && is_in(*page, In::LeftByRecency)).count();
        if demoted != demoted_in_scan
            || [demoted, new_left] != [self.demoted as usize, self.new_left as usize]
        {
            return Err(format!(
                "{demoted} demoted pages and {new_left} new names, but {} and {} are counted",
                self.demoted, self.new_left
            ));
        }
        self.by_uses.check()?;
        self.queues.check()
    }
}
