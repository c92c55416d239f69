//! Readings of kernel files by timed events: all are kept while they are few, then every second, every fourth, and so on.
//!
//! A file read every 100 us produces more text than is useful, and would fill the memory. So the texts of a run have a budget. Beyond it, the event
//! with the most text loses every second of its readings. From then on only every second (fourth, eighth, ...) reading of it is kept. Those left are
//! evenly spaced and depend on nothing but the run. The first and the last reading always stay.

use std::collections::BTreeMap;

use pageout_engine::Nanos;

use crate::report::{FileRead, Thinned};

/// Bytes that the readings of a run may take: ten thousand times `memory.stat`.
const BUDGET: usize = 16 << 20;

/// What a reading takes besides its text.
const RECORD: usize = size_of::<Reading>();

/// All readings of a run.
#[derive(Debug, Default)]
pub(super) struct Readings {
    by_event: BTreeMap<usize, Series>,
    bytes: usize,
    taken: u64,
}

/// The readings of one event.
#[derive(Debug)]
struct Series {
    path: String,
    kept: Vec<Reading>,
    /// The last one, where it is not one of those to keep.
    last: Option<Reading>,
    taken: u64,
    /// The first of so many readings is kept.
    every: u64,
}

#[derive(Clone, Debug)]
struct Reading {
    /// Number among all readings of the run.
    number: u64,
    at: Nanos,
    text: Box<str>,
}

impl Reading {
    fn bytes(&self) -> usize {
        RECORD + self.text.len()
    }
}

impl Series {
    fn bytes(&self) -> usize {
        self.kept.iter().map(Reading::bytes).sum()
    }

    /// Keeps half; returns how many bytes that sets free.
    fn thin(&mut self) -> usize {
        let before = self.bytes();
        let mut position = 0;
        self.kept.retain(|_| {
            position += 1;
            position % 2 == 1
        });
        self.every *= 2;
        before - self.bytes()
    }
}

impl Readings {
    /// An event has read this of the file at `path`.
    pub(super) fn add(&mut self, event: usize, path: String, at: Nanos, text: String) {
        let reading = Reading { number: self.taken, at, text: text.into_boxed_str() };
        self.taken += 1;
        self.bytes += reading.bytes();
        let series = self.by_event.entry(event).or_insert_with(|| Series {
            path,
            kept: Vec::new(),
            last: None,
            taken: 0,
            every: 1,
        });
        self.bytes -= series.last.take().map_or(0, |last| last.bytes());
        if series.taken.is_multiple_of(series.every) {
            series.kept.push(reading);
        } else {
            series.last = Some(reading);
        }
        series.taken += 1;
        while self.bytes > BUDGET && self.thin() {}
    }

    /// Thins the event that takes the most; false where no event has two readings.
    fn thin(&mut self) -> bool {
        let several = self.by_event.values_mut().filter(|series| series.kept.len() > 1);
        let Some(largest) = several.max_by_key(|series| series.bytes()) else { return false };
        self.bytes -= largest.thin();
        true
    }

    /// The readings that were kept, in order of time.
    pub(super) fn kept(&self) -> Vec<FileRead> {
        let of_series = |series: &Series| {
            let readings = series.kept.iter().chain(&series.last);
            let path = series.path.clone();
            let read = move |reading: &Reading| {
                let read = FileRead { at: reading.at, path: path.clone(), text: reading.text.to_string() };
                (reading.number, read)
            };
            readings.map(read).collect::<Vec<_>>()
        };
        let mut kept: Vec<(u64, FileRead)> = self.by_event.values().flat_map(of_series).collect();
        kept.sort_by_key(|&(number, _)| number);
        kept.into_iter().map(|(_, read)| read).collect()
    }

    /// The events that lost some.
    pub(super) fn thinned(&self) -> Vec<Thinned> {
        let thinned = self.by_event.values().filter(|series| series.every > 1);
        let told = thinned.map(|series| Thinned {
            path: series.path.clone(),
            taken: series.taken,
            kept: series.kept.len() as u64 + u64::from(series.last.is_some()),
            every: series.every,
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: usize, bytes: usize) -> String {
        format!("{number}\n{}", " ".repeat(bytes))
    }

    #[test]
    fn readings_within_the_budget_are_all_kept_in_order_of_time() {
        let mut readings = Readings::default();
        for number in 0..300 {
            let event = number % 2;
            readings.add(event, format!("/{event}"), Nanos(number as u64 / 2), text(number, 1000));
        }
        let kept = readings.kept();
        assert!(kept.iter().zip(0..).all(|(read, number)| read.text == text(number, 1000)));
        assert_eq!((kept.len(), readings.thinned()), (300, Vec::new()));
    }

    #[test]
    fn beyond_the_budget_the_largest_event_keeps_an_even_part_with_its_first_and_last() {
        let mut readings = Readings::default();
        let often = 100_000;
        for number in 0..often {
            readings.add(0, "/often".into(), Nanos(number as u64), text(number, 1000));
            assert!(readings.bytes <= BUDGET);
            if number % 1000 == 0 {
                readings.add(1, "/seldom".into(), Nanos(number as u64), text(number, 1000));
            }
        }
        let [thinned] = &readings.thinned()[..] else { panic!("{:?}", readings.thinned()) };
        assert_eq!((thinned.path.as_str(), thinned.taken, thinned.every), ("/often", often as u64, 8));
        let of = |path: &str| -> Vec<u64> {
            readings.kept().iter().filter(|read| read.path == path).map(|read| read.at.0).collect()
        };
        assert_eq!(of("/seldom").len(), 100);
        let mut expected: Vec<u64> = (0..often as u64).step_by(8).collect();
        expected.push(often as u64 - 1);
        assert_eq!((of("/often"), thinned.kept), (expected.clone(), expected.len() as u64));
    }
}
