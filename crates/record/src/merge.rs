//! Events of all CPUs in the order of time.
//!
//! Buffers are emptied in rounds. Events that a round has not yet seen are later than all that the previous round had seen at its end,
//! except an event that was being written just then. Events up to [`HELD_BACK_NS`] before that moment are therefore passed on, and later
//! ones wait for the next round. Within a CPU the order is that of the buffer, whatever its clock shows; a clock that goes back is counted.

use crate::event::Event;

/// Longer than it takes to write an event.
const HELD_BACK_NS: u64 = 2_000_000;

/// Puts events in order.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    waiting: Vec<Event>,
    /// The latest time of each CPU.
    latest: Vec<u64>,
    /// The latest time when the last round ended.
    before: u64,
    /// All up to here was handed on.
    handed_on: u64,
    /// Events that a CPU's clock gave an earlier time than the one before.
    pub(crate) backwards: u64,
    /// Events that came after later ones of other CPUs had been handed on.
    pub(crate) late: u64,
}

impl Merge {
    pub(crate) fn new(cpus: usize) -> Merge {
        Merge { latest: vec![0; cpus], ..Merge::default() }
    }

    /// Takes an event of a CPU, in the order of its buffer.
    #[inline]
    pub(crate) fn take(&mut self, cpu: usize, mut event: Event) {
        let latest = &mut self.latest[cpu];
        if event.time_ns < *latest {
            self.backwards += 1;
            event.time_ns = *latest;
        }
        *latest = event.time_ns;
        if event.time_ns < self.handed_on {
            self.late += 1;
        }
        self.waiting.push(event);
    }

    /// All CPUs have been emptied: hands on what nothing earlier can follow.
    pub(crate) fn end_round(&mut self, give: impl FnMut(&Event)) {
        let until = self.before.saturating_sub(HELD_BACK_NS);
        self.before = self.latest.iter().copied().max().unwrap_or(0);
        self.hand_on(until, give);
    }

    /// There is nothing more.
    pub(crate) fn finish(&mut self, give: impl FnMut(&Event)) {
        self.hand_on(u64::MAX, give);
    }

    fn hand_on(&mut self, until: u64, give: impl FnMut(&Event)) {
        // Stable: events of one time stay as their CPU has them.
        self.waiting.sort_by_key(|event| event.time_ns);
        let count = self.waiting.partition_point(|event| event.time_ns <= until);
        self.handed_on =
            self.waiting[..count].last().map_or(self.handed_on, |event| event.time_ns.max(self.handed_on));
        self.waiting.drain(..count).as_slice().iter().for_each(give);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{FileKey, What};

    fn event(time_ns: u64, page: u64) -> Event {
        Event {
            time_ns,
            pid: 1,
            what: What::Read,
            file: FileKey::default(),
            first: page,
            last: page,
            bytes: [0; 2],
        }
    }

    fn order(rounds: &[&[(usize, u64)]]) -> (Vec<u64>, u64, u64) {
        let (mut merge, mut told, mut page) = (Merge::new(2), Vec::new(), 0);
        for round in rounds {
            for &(cpu, time) in *round {
                merge.take(cpu, event(time, page));
                page += 1;
            }
            merge.end_round(|event| told.push(event.first));
        }
        merge.finish(|event| told.push(event.first));
        (told, merge.backwards, merge.late)
    }

    #[test]
    fn cpus_are_put_in_order_over_rounds() {
        const S: u64 = 1_000_000_000;
        let rounds: &[&[(usize, u64)]] =
            &[&[(0, S), (0, 3 * S)], &[(1, 2 * S), (0, 5 * S)], &[(1, 4 * S), (1, 6 * S)]];
        assert_eq!(order(rounds), (vec![0, 2, 1, 4, 3, 5], 0, 0));
    }

    #[test]
    fn a_cpu_keeps_its_order_when_its_clock_goes_back() {
        assert_eq!(order(&[&[(0, 100), (0, 90), (1, 95)]]), (vec![2, 0, 1], 1, 0));
    }

    #[test]
    fn an_event_that_comes_too_late_is_counted_and_kept() {
        const S: u64 = 1_000_000_000;
        let (told, _, late) = order(&[&[(0, S), (0, 3 * S)], &[(0, 5 * S)], &[(1, S / 2)]]);
        assert_eq!((told.len(), late), (4, 1));
    }
}
