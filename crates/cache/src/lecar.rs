//! LeCaR: two experts, LRU and LFU. Each eviction draws which one decides, by weights that are learned from their mistakes.
//!
//! ```text
//!   in memory ──┬── LRU decided ──► its history ──┐ a page that returns was a mistake of that expert:
//!               └── LFU decided ──► its history ──┘ the other one gains weight, less for an older mistake
//! ```
//! *What.* Each history has as many names as memory has pages. If a page returns from the history of one expert after `t` accesses, the weight of
//! the other one is multiplied by `e^(rate * d^t)`, with `d = discount^(1/capacity)`. Then both are divided by their sum.
//!
//! *Why.* Some workloads suit LRU and others LFU, and one workload can have phases of both.
//!
//! *When not to use it:* for loops and scans: neither expert is any good there.
//!
//! Source: G. Vietri and others, *Driving Cache Replacement with ML-based LeCaR*, HotStorage 2018,
//! <https://www.usenix.org/conference/hotstorage18/presentation/vietri>.
//!
//! *Choices of pageout.* Among equals, LFU evicts the least recently used page. A name keeps its number of uses. A draw below the weight of LRU means LRU.
//! Weights do not fall below one in a billion.

use crate::Simulation;
use crate::heap::Heap;
use crate::simulation::{Queues, fraction, places};
use pageout_policy::check::Random;

places!(
    /// Where a page is. The last two are names, by the expert that had the page evicted.
    In { There, LeftByLru, LeftByLfu }
);

/// The least weight, so that rounding makes none 0.
pub(crate) const WEIGHT_MIN: f64 = 1e-9;

/// Multiplies one of two weights, and divides both by their sum.
pub(crate) fn reweigh(weights: &mut [f64; 2], which: usize, by: f64) {
    weights[which] *= by;
    let sum = weights[0] + weights[1];
    weights.iter_mut().for_each(|weight| *weight = (*weight / sum).max(WEIGHT_MIN));
}

pub(crate) struct LeCar {
    capacity: u32,
    rate: f64,
    /// Logarithm of the discount per access.
    discount: f64,
    now: u64,
    /// Of LRU and of LFU.
    weights: [f64; 2],
    queues: Queues<In, 3>,
    /// Pages in memory by uses, then by the time of the last use.
    by_uses: Heap<(u32, u64)>,
    /// By page, in memory or known by name: its uses, and when it left.
    pages: Vec<(u32, u64)>,
    draws: Random,
}

impl LeCar {
    pub(crate) fn new(capacity: u32, rate: f64, discount: f64, seed: u64) -> LeCar {
        LeCar {
            capacity,
            rate,
            discount: libm::log(discount) / f64::from(capacity),
            now: 0,
            weights: [0.5; 2],
            queues: Queues::new(),
            by_uses: Heap::new(),
            pages: Vec::new(),
            draws: Random::new(seed),
        }
    }

    /// A page returns that the expert of this number had evicted.
    fn learn(&mut self, mistaken: usize, page: u32) {
        let away = self.now - self.pages[page as usize].1;
        let regret = libm::exp(self.discount * away as f64);
        reweigh(&mut self.weights, 1 - mistaken, libm::exp(self.rate * regret));
    }

    fn evict(&mut self) {
        let is_lru = fraction(&mut self.draws) < self.weights[0];
        let (victim, to) = match is_lru {
            true => (self.queues.tail(In::There), In::LeftByLru),
            false => (self.by_uses.first().map(|(_, page)| page), In::LeftByLfu),
        };
        let victim = victim.expect("memory is full");
        self.by_uses.remove(victim);
        self.pages[victim as usize].1 = self.now;
        self.queues.move_to(victim, to);
        if self.queues.len(to) > self.capacity {
            let forgotten = self.queues.tail(to).expect("there is one more than may be");
            self.queues.remove(forgotten);
            self.pages[forgotten as usize].0 = 0;
        }
    }
}

impl Simulation for LeCar {
    fn reserve(&mut self, pages: u32) {
        self.queues.reserve(pages);
        self.by_uses.reserve(pages);
        if self.pages.len() < pages as usize {
            self.pages.resize(pages as usize, (0, 0));
        }
    }

    fn access(&mut self, page: u32) -> bool {
        self.now += 1;
        let place = self.queues.place(page);
        match place {
            In::LeftByLru => self.learn(0, page),
            In::LeftByLfu => self.learn(1, page),
            In::There | In::Nowhere => {}
        }
        self.queues.forget(page);
        if place != In::There && self.queues.len(In::There) == self.capacity {
            self.evict();
        }
        self.queues.push(page, In::There);
        let uses = &mut self.pages[page as usize].0;
        *uses = uses.saturating_add(1);
        self.by_uses.set(page, (*uses, self.now));
        place == In::There
    }

    fn remove(&mut self, page: u32) {
        self.queues.forget(page);
        self.by_uses.remove(page);
        self.pages[page as usize].0 = 0;
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        tell("lru_weight", self.weights[0]);
    }

    fn check(&self) -> Result<(), String> {
        let len = |of| self.queues.len(of);
        let (there, left) = (len(In::There), len(In::LeftByLru).max(len(In::LeftByLfu)));
        if there > self.capacity || left > self.capacity || there != self.by_uses.len() {
            return Err(format!("{there} pages, {} by uses and {left} names do not fit", self.by_uses.len()));
        }
        let sum = self.weights[0] + self.weights[1];
        if (sum - 1.0).abs() > 1e-6 {
            return Err(format!("the weights have the sum {sum}"));
        }
        self.by_uses.check()?;
        self.queues.check()
    }
}
