//! Arrival times: when a frame's page came to the tier where it is, in two bytes a frame.
//!
//! ```text
//!   0 ─▶ came nowhere     2 .. 65,535 ─▶ when, on a clock of milliseconds that goes round in 65.5 s     1 ─▶ came long ago
//!                                         └ every 40 s: what came more than 10 s ago ───────────────────┘
//! ```
//! A machine that promotes a large file within seconds has tens of millions of arrivals to remember at the same time. A map of them would take twenty
//! times as much. Queries are about the last ten seconds, so older ones need no time.

use pageout_engine::{Nanos, Pfn};

/// Frames of a section.
const SECTION: usize = 1 << 15;
const NANOS_PER_MS: u64 = 1_000_000;
/// A page that goes back within this time need not have gone.
const RECENT_MS: u64 = 10_000;
/// How often older ones are marked as such: before the clock wraps.
const SWEEP_MS: u64 = 40_000;

/// No page came here from another tier.
const NONE: u16 = 0;
/// One did, and not in the last [`RECENT_MS`].
const LONG_AGO: u16 = 1;
/// The first time, and how many there are.
const FIRST: u16 = 2;
const TIMES: u64 = 1 + (u16::MAX - FIRST) as u64;

/// When pages arrived on their node, by frame.
#[derive(Default)]
pub(super) struct Arrivals {
    sections: Vec<Option<Box<[u16]>>>,
    /// The next sweep is not before this.
    sweep_at_ms: u64,
}

/// How long ago that was. Clocks of processors are not quite alike: what seems to come is now.
fn age_ms(word: u16, now_ms: u64) -> u64 {
    let age = (now_ms + TIMES - u64::from(word - FIRST)) % TIMES;
    if age > RECENT_MS + SWEEP_MS + RECENT_MS { 0 } else { age }
}

impl Arrivals {
    /// A page has come to a frame from another tier.
    pub(super) fn set(&mut self, pfn: Pfn, at: Nanos) {
        let ms = self.now_ms(at);
        *self.word_mut(pfn) = FIRST + (ms % TIMES) as u16;
    }

    /// A page has gone to another frame of its tier.
    pub(super) fn follow(&mut self, from: Pfn, to: Pfn) {
        let word = self.take_word(from);
        if word != NONE {
            *self.word_mut(to) = word;
        }
    }

    /// Returns true if the page in a frame came to its tier from another.
    pub(super) fn has(&self, pfn: Pfn) -> bool {
        let words = self.sections.get(pfn.0 as usize / SECTION).and_then(Option::as_ref);
        words.is_some_and(|words| words[pfn.0 as usize % SECTION] != NONE)
    }

    /// Forgets what is known of the page in a frame, which leaves it. Whether it came in the last ten seconds, in whole milliseconds.
    pub(super) fn take(&mut self, pfn: Pfn, at: Nanos) -> bool {
        let now_ms = self.now_ms(at);
        let word = self.take_word(pfn);
        word >= FIRST && age_ms(word, now_ms) <= RECENT_MS
    }

    fn now_ms(&mut self, at: Nanos) -> u64 {
        let ms = at.0 / NANOS_PER_MS;
        if ms >= self.sweep_at_ms {
            self.sweep(ms);
        }
        ms
    }

    fn word_mut(&mut self, pfn: Pfn) -> &mut u16 {
        let section = pfn.0 as usize / SECTION;
        if section >= self.sections.len() {
            self.sections.resize_with(section + 1, || None);
        }
        let words = self.sections[section].get_or_insert_with(|| vec![NONE; SECTION].into());
        &mut words[pfn.0 as usize % SECTION]
    }

    fn take_word(&mut self, pfn: Pfn) -> u16 {
        let words = self.sections.get_mut(pfn.0 as usize / SECTION).and_then(Option::as_mut);
        words.map_or(NONE, |words| std::mem::take(&mut words[pfn.0 as usize % SECTION]))
    }

    #[cold]
    fn sweep(&mut self, now_ms: u64) {
        // After too long a time, the clock may have wrapped, and all are old.
        let has_gone_round = now_ms >= self.sweep_at_ms + RECENT_MS;
        for word in self.sections.iter_mut().flatten().flat_map(|words| words.iter_mut()) {
            if *word >= FIRST && (has_gone_round || age_ms(*word, now_ms) > RECENT_MS) {
                *word = LONG_AGO;
            }
        }
        self.sweep_at_ms = now_ms + SWEEP_MS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const MS: u64 = NANOS_PER_MS;

    #[test]
    fn an_arrival_is_taken_once_and_says_whether_it_was_in_the_last_ten_seconds() {
        let mut arrivals = Arrivals::default();
        (70_000..70_003).for_each(|frame| arrivals.set(Pfn(frame), Nanos(5 * MS)));
        assert_eq!([Pfn(70_000), Pfn(70_003), Pfn(5)].map(|pfn| arrivals.has(pfn)), [true, false, false]);
        let ten_seconds = Nanos((5 + RECENT_MS) * MS);
        assert!(arrivals.take(Pfn(70_000), Nanos(4 * MS)), "by a clock that is behind");
        assert!(arrivals.take(Pfn(70_001), ten_seconds));
        assert!(!arrivals.take(Pfn(70_002), Nanos(ten_seconds.0 + MS)));
        for frame in [70_000, 70_001, 70_002, 70_003, 5].map(Pfn) {
            assert!(!arrivals.has(frame) && !arrivals.take(frame, ten_seconds));
        }
    }

    #[test]
    fn a_page_takes_its_arrival_along() {
        let mut arrivals = Arrivals::default();
        arrivals.set(Pfn(1), Nanos(0));
        arrivals.follow(Pfn(1), Pfn(2));
        arrivals.follow(Pfn(1), Pfn(3));
        assert_eq!([1, 2, 3].map(|frame| arrivals.has(Pfn(frame))), [false, true, false]);
    }

    /// However far apart calls are, and however often the clock has gone round.
    #[test]
    fn an_arrival_is_recent_for_ten_seconds_and_never_again() {
        let (mut arrivals, mut model) = (Arrivals::default(), BTreeMap::new());
        let mut at = 0;
        for step in 0..20_000u64 {
            let draw = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            at += if draw.is_multiple_of(97) { 100 * draw } else { draw % 3000 };
            let frame = (draw >> 8) % 64;
            if draw.is_multiple_of(3) {
                let expected = model.remove(&frame).is_some_and(|came| at - came <= RECENT_MS);
                assert_eq!(arrivals.take(Pfn(frame as u32), Nanos(at * MS)), expected, "{frame} at {at} ms");
            } else {
                arrivals.set(Pfn(frame as u32), Nanos(at * MS));
                model.insert(frame, at);
            }
            assert_eq!(arrivals.has(Pfn(frame as u32)), model.contains_key(&frame));
        }
    }

    #[test]
    fn there_are_words_only_where_pages_came_to() {
        let mut arrivals = Arrivals::default();
        arrivals.set(Pfn(200_000_000), Nanos::ZERO);
        assert_eq!(arrivals.sections.iter().flatten().count(), 1);
    }
}
