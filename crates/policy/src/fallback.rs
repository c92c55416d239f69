//! Evicts the oldest page in place of a policy's wrong answer, and counts it. So a run reaches its end with a policy that is not done yet.
//!
//! *What.* It keeps the valid part of an answer: pages in memory, once each, and no more than requested. If nothing is left, the oldest arrival is
//! nominated in its place, and the policy is notified that this page has gone. cache_ext's kernel does this with a policy that nominates nothing.
//!
//! *When not to use it:* for a result. A policy whose fallback was used is partly FIFO: [`Policy::figures`] reports the number of times, as
//! `fallbacks`.

use crate::queue::{Links, Queue};
use crate::{Arrival, End, PageId, Policy, Slot, Uses};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Name of the number of wrong answers in [`Policy::figures`].
pub const FALLBACKS: &str = "fallbacks";

/// A policy that is helped out.
pub struct Fallback {
    policy: Box<dyn Policy>,
    links: Links,
    /// All slots in order of arrival.
    arrivals: Queue,
    /// By slot: whether a page is in it, and whether it is in the answer that is checked.
    places: Vec<(bool, bool)>,
    answer: Vec<Slot>,
    /// Slot that was nominated in the policy's place.
    helped: Option<Slot>,
    times: u64,
    /// The times of this policy and its like.
    of_all: Option<&'static AtomicU64>,
}

impl Fallback {
    /// Helps a policy out that keeps no page yet.
    pub fn new(policy: Box<dyn Policy>) -> Fallback {
        Fallback {
            policy,
            links: Links::default(),
            arrivals: Queue::default(),
            places: Vec::new(),
            answer: Vec::new(),
            helped: None,
            times: 0,
            of_all: None,
        }
    }

    /// The same, counted in one number with others.
    pub(crate) fn counted(policy: Box<dyn Policy>, of_all: &'static AtomicU64) -> Fallback {
        Fallback { of_all: Some(of_all), ..Fallback::new(policy) }
    }

    /// Returns how many of its answers were wrong.
    pub fn times(&self) -> u64 {
        self.times
    }
}

impl Policy for Fallback {
    fn uses(&self) -> Uses {
        self.policy.uses()
    }

    fn resized(&mut self, capacity: u32) {
        self.policy.resized(capacity);
    }

    fn added(&mut self, arrival: &Arrival) {
        let at = arrival.slot.index();
        if at >= self.places.len() {
            self.places.resize(at + 1, (false, false));
        }
        self.places[at].0 = true;
        self.arrivals.push_head(&mut self.links, arrival.slot);
        self.policy.added(arrival);
    }

    fn used(&mut self, slots: &[Slot]) {
        self.policy.used(slots);
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        self.answer.clear();
        self.policy.nominate(want, &mut self.answer);
        for &slot in self.answer.iter().take(want as usize) {
            if let Some(place @ (true, false)) = self.places.get_mut(slot.index()) {
                place.1 = true;
                victims.push(slot);
            }
        }
        victims.iter().for_each(|slot| self.places[slot.index()].1 = false);
        if victims.is_empty() || victims.len() != self.answer.len() {
            self.times += 1;
            if let Some(of_all) = self.of_all {
                of_all.fetch_add(1, Relaxed);
            }
        }
        if victims.is_empty() {
            self.helped = self.arrivals.tail();
            victims.extend(self.helped);
        }
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        let is_helped = self.helped == Some(slot);
        if is_helped {
            self.helped = None;
        }
        if end == End::Spared {
            // The others come first next time.
            self.arrivals.move_head(&mut self.links, slot);
            if !is_helped {
                self.policy.ended(slot, page, end);
            }
            return;
        }
        self.arrivals.remove(&mut self.links, slot);
        self.places[slot.index()].0 = false;
        self.policy.ended(slot, page, if is_helped { End::Gone } else { end });
    }

    fn cold(&mut self, slot: Slot) {
        self.policy.cold(slot);
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        tell(FALLBACKS, self.times as f64);
        self.policy.figures(&mut |name, value| {
            // This figure is reported here and not by the policy.
            if name != FALLBACKS {
                tell(name, value);
            }
        });
    }

    fn why(&self, slot: Slot) -> Option<String> {
        self.policy.why(slot)
    }

    fn held(&self) -> Option<Box<dyn Any>> {
        self.policy.held()
    }

    fn check(&self) -> Result<(), String> {
        self.arrivals.check(&self.links)?;
        self.policy.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Random, check, least_misses};
    use crate::{Cache, Fifo, Sieve, Telling};

    /// Knows nothing, and answers what its function says.
    struct Liar(fn(&mut Vec<Slot>));

    impl Policy for Liar {
        fn resized(&mut self, _capacity: u32) {}
        fn added(&mut self, _arrival: &Arrival) {}
        fn used(&mut self, _slots: &[Slot]) {}
        fn nominate(&mut self, _want: u32, victims: &mut Vec<Slot>) {
            (self.0)(victims);
        }
        fn ended(&mut self, _slot: Slot, _page: PageId, _end: End) {}
    }

    fn misses(policy: Box<dyn Policy>, accesses: &[u32]) -> (usize, f64) {
        let mut cache = Cache::new(policy, 7, Telling::Batches(1));
        let misses = accesses.iter().filter(|&&page| !cache.access(page, false, 1).unwrap()).count();
        let mut fallbacks = f64::NAN;
        cache.table().policy().figures(&mut |name, value| {
            if name == FALLBACKS {
                fallbacks = value;
            }
        });
        (misses, fallbacks)
    }

    #[test]
    fn who_is_always_wrong_is_fifo_and_each_of_its_answers_is_counted() {
        let mut random = Random::new(3);
        let accesses: Vec<u32> = (0..2_000).map(|_| random.below(20) as u32).collect();
        let fifo = misses(Box::new(Fallback::new(Box::new(Fifo::default()))), &accesses);
        assert_eq!(fifo.1, 0.0, "nothing was wrong");
        let liars: [fn(&mut Vec<Slot>); 2] = [|_| (), |victims| victims.push(Slot(1_000))];
        for liar in liars {
            let helped = misses(Box::new(Fallback::new(Box::new(Liar(liar)))), &accesses);
            assert_eq!(helped, (fifo.0, (fifo.0 - 7) as f64));
        }
        assert!(fifo.0 >= least_misses(&accesses, 7));
        // What is there counts once.
        let twice =
            misses(Box::new(Fallback::new(Box::new(Liar(|all| all.extend([Slot(2), Slot(2)]))))), &accesses);
        assert_eq!(twice.1, (twice.0 - 7) as f64);
    }

    #[test]
    fn a_policy_that_keeps_the_contract_is_never_helped() {
        assert_eq!(check(&|_| Box::new(Fallback::new(Box::new(Sieve::default())))), Ok(()));
        assert_eq!(
            check(&|_| Box::new(Fallback::new(Box::new(Liar(|_| ()))))),
            Ok(()),
            "helped out, it keeps it"
        );
    }
}
