//! Counting memory: a memory device counts accesses to each unit of itself, as far as it has counters. [tiering 5.4, 5.6]
//!
//! There are always fewer counters than units. Here a unit has one place where it may be counted. If another unit has that place, an access to one
//! takes back an access of the other. The unit with the majority stays, and its count is too low.

use pageout_engine::{Nanos, Pfn};
use pageout_workload::rng::SplitMix64;

use super::CountSpec;

/// A unit that was hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hot {
    /// The first page of the unit that is counted.
    pub(crate) first: Pfn,
    pub(crate) accesses: u32,
}

/// The counters of one node's memory.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) spec: CountSpec,
    /// A unit and how often it was accessed. Nothing before the first access.
    counters: Vec<(u32, u32)>,
    epoch_ends: Nanos,
    ring: Vec<Hot>,
    /// Hot units that did not fit since the last read.
    lost: u64,
}

impl Counters {
    pub(crate) fn new(spec: CountSpec) -> Counters {
        Counters { spec, counters: Vec::new(), epoch_ends: Nanos::ZERO, ring: Vec::new(), lost: 0 }
    }

    /// A page was accessed so often.
    pub(crate) fn count(&mut self, at: Nanos, pfn: Pfn, accesses: u32) {
        if self.counters.is_empty() {
            self.counters = vec![(0, 0); self.spec.counters as usize];
            self.epoch_ends = at + self.spec.epoch;
        }
        if self.spec.epoch > Nanos::ZERO && at >= self.epoch_ends {
            self.end_epoch(at);
        }
        let unit = pfn.0 / self.spec.unit_pages;
        let place = SplitMix64::new(unit.into()).below(self.counters.len() as u64) as usize;
        let (owner, count) = &mut self.counters[place];
        if *count == 0 {
            *owner = unit;
        }
        if *owner != unit {
            *count = count.saturating_sub(accesses);
            return;
        }
        *count = count.saturating_add(accesses);
        if self.spec.epoch == Nanos::ZERO && *count >= self.spec.threshold {
            let accesses = std::mem::take(count);
            self.report(unit, accesses);
        }
    }

    fn end_epoch(&mut self, at: Nanos) {
        let passed = (at.0 - self.epoch_ends.0) / self.spec.epoch.0 + 1;
        self.epoch_ends += Nanos(passed * self.spec.epoch.0);
        for place in 0..self.counters.len() {
            let (unit, accesses) = std::mem::take(&mut self.counters[place]);
            if accesses >= self.spec.threshold {
                self.report(unit, accesses);
            }
        }
    }

    fn report(&mut self, unit: u32, accesses: u32) {
        if self.ring.len() < self.spec.ring as usize {
            self.ring.push(Hot { first: Pfn(unit * self.spec.unit_pages), accesses });
        } else {
            self.lost += 1;
        }
    }

    /// Returns true if the entries should be read.
    pub(crate) fn has_hot(&self) -> bool {
        !self.ring.is_empty()
    }

    /// Takes what is hot, and how much of it was lost.
    pub(crate) fn take(&mut self) -> (Vec<Hot>, u64) {
        (std::mem::take(&mut self.ring), std::mem::take(&mut self.lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: CountSpec = CountSpec {
        unit_pages: 4,
        counters: 1024,
        threshold: 3,
        epoch: Nanos(1000),
        ring: 2,
        drain: Nanos(10),
    };

    fn hot(first: u32, accesses: u32) -> Hot {
        Hot { first: Pfn(first), accesses }
    }

    #[test]
    fn units_with_enough_accesses_are_reported_at_the_end_of_their_epoch() {
        let mut counters = Counters::new(SPEC);
        for (at, page) in [(0, 4), (10, 7), (20, 5), (30, 8), (40, 9)] {
            counters.count(Nanos(at), Pfn(page), 1);
        }
        assert!(!counters.has_hot());
        counters.count(Nanos(1000), Pfn(8), 1);
        assert_eq!(counters.take(), (vec![hot(4, 3)], 0));
        counters.count(Nanos(2500), Pfn(8), 1);
        assert_eq!(counters.take(), (vec![], 0), "what was counted in one epoch is no part of the next");
    }

    #[test]
    fn without_epochs_a_unit_is_reported_when_it_is_hot_and_counted_anew() {
        let mut counters = Counters::new(CountSpec { epoch: Nanos::ZERO, ..SPEC });
        (0..7).for_each(|at| counters.count(Nanos(at), Pfn(5), 1));
        assert_eq!(counters.take(), (vec![hot(4, 3), hot(4, 3)], 0));
    }

    #[test]
    fn what_finds_no_room_is_lost_and_counted() {
        let mut counters = Counters::new(CountSpec { epoch: Nanos::ZERO, ..SPEC });
        (0..5).for_each(|page| counters.count(Nanos(page), Pfn(page as u32 * 4), 3));
        let (hot, lost) = counters.take();
        assert_eq!((hot.len(), lost), (2, 3));
        assert_eq!(counters.take(), (vec![], 0));
    }

    #[test]
    fn of_two_units_that_share_a_counter_the_one_used_more_is_seen() {
        let mut counters = Counters::new(CountSpec { counters: 1, ..SPEC });
        for at in 0..30 {
            counters.count(Nanos(at), Pfn(if at % 3 == 0 { 0 } else { 4 }), 1);
        }
        counters.count(Nanos(5000), Pfn(0), 1);
        let (hot, _) = counters.take();
        assert_eq!(hot, [Hot { first: Pfn(4), accesses: 10 }]);
    }
}
