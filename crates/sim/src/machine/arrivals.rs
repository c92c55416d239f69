//! When pages came to the tier where they are: a word a frame, in sections of which there are as many as pages came to.
//!
//! A machine that promotes a large file within seconds has tens of millions of arrivals to remember at once. A map of them would take ten
//! times as much.

use pageout_engine::{Nanos, Pfn};

/// Frames of a section.
const SECTION: usize = 1 << 15;
const NANOS_PER_MS: u64 = 1_000_000;

/// A page came to the top tier, or went from it to another, so many milliseconds after the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrival {
    pub(super) to_top: bool,
    ms: u32,
}

impl Arrival {
    /// Times are kept for 24 days; what is later is as late as that.
    const MS_MAX: u64 = (1 << 31) - 2;

    pub(super) fn new(to_top: bool, at: Nanos) -> Arrival {
        Arrival { to_top, ms: (at.0 / NANOS_PER_MS).min(Arrival::MS_MAX) as u32 }
    }

    /// Whether no more than `span` has passed since, in whole milliseconds.
    pub(super) fn is_within(self, span: Nanos, at: Nanos) -> bool {
        (at.0 / NANOS_PER_MS).saturating_sub(self.ms.into()) <= span.0 / NANOS_PER_MS
    }

    /// Never 0, which is nothing.
    fn word(self) -> u32 {
        u32::from(self.to_top) << 31 | (self.ms + 1)
    }

    fn of(word: u32) -> Option<Arrival> {
        (word != 0).then(|| Arrival { to_top: word >> 31 == 1, ms: (word & u32::MAX >> 1) - 1 })
    }
}

/// By frame.
#[derive(Default)]
pub(super) struct Arrivals {
    sections: Vec<Option<Box<[u32]>>>,
}

impl Arrivals {
    pub(super) fn set(&mut self, pfn: Pfn, arrival: Arrival) {
        let section = pfn.0 as usize / SECTION;
        if section >= self.sections.len() {
            self.sections.resize_with(section + 1, || None);
        }
        let words = self.sections[section].get_or_insert_with(|| vec![0; SECTION].into());
        words[pfn.0 as usize % SECTION] = arrival.word();
    }

    /// Whether the page in a frame came to its tier from another.
    pub(super) fn has(&self, pfn: Pfn) -> bool {
        let words = self.sections.get(pfn.0 as usize / SECTION).and_then(Option::as_ref);
        words.is_some_and(|words| words[pfn.0 as usize % SECTION] != 0)
    }

    /// Takes what is known of the page in a frame, which leaves it.
    pub(super) fn take(&mut self, pfn: Pfn) -> Option<Arrival> {
        let words = self.sections.get_mut(pfn.0 as usize / SECTION)?.as_mut()?;
        Arrival::of(std::mem::take(&mut words[pfn.0 as usize % SECTION]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_is_taken_once_and_says_whither_and_when() {
        let mut arrivals = Arrivals::default();
        let second = Nanos(1_000_000_000);
        arrivals.set(Pfn(70_000), Arrival::new(true, Nanos::ZERO));
        arrivals.set(Pfn(70_001), Arrival::new(false, second));
        assert_eq!([Pfn(70_000), Pfn(70_002), Pfn(5)].map(|pfn| arrivals.has(pfn)), [true, false, false]);
        let first = arrivals.take(Pfn(70_000)).unwrap();
        assert!(first.to_top && first.is_within(second, second));
        assert!(!first.is_within(second, Nanos(second.0 + NANOS_PER_MS)));
        assert!(!arrivals.take(Pfn(70_001)).unwrap().to_top);
        assert_eq!([Pfn(70_000), Pfn(70_002), Pfn(5)].map(|pfn| arrivals.take(pfn)), [None; 3]);
    }

    #[test]
    fn there_are_words_only_where_pages_came_to() {
        let mut arrivals = Arrivals::default();
        arrivals.set(Pfn(200_000_000), Arrival::new(true, Nanos::ZERO));
        assert_eq!(arrivals.sections.iter().flatten().count(), 1);
    }
}
