//! Priorities under a quota: 0 to 99, so that what matters most is done first. [access-aware 2.5]

use crate::quota::Weights;

/// The largest score.
pub const HOTTEST: u32 = 99;

/// The binary logarithm of a time in seconds, plus one; 0 for no time.
fn magnitude(seconds: u64) -> i64 {
    seconds.checked_ilog2().map_or(0, |log| i64::from(log + 1).min(32))
}

/// How hot a region is. `nr_max`: the samples of a window, `aggr_us`: its length, in which ages count.
pub fn hot_score(nr: u32, nr_max: u32, age: u32, aggr_us: u64, weights: &Weights) -> u32 {
    let frequency = u64::from(nr) * 100 / u64::from(nr_max.max(1));
    let seconds = (u128::from(age) * u128::from(aggr_us) / 1_000_000) as u64;
    let signed = if frequency == 0 { -magnitude(seconds) } else { magnitude(seconds) };
    let age = (signed + 32) as u64 * 100 / 32 / 2;
    let (by_access, by_age) = (u64::from(weights.nr_accesses), u64::from(weights.age));
    let hot = (by_access * frequency + by_age * age) / (by_access + by_age).max(1);
    (hot * u64::from(HOTTEST) / 100).min(HOTTEST.into()) as u32
}

/// Bytes of the regions of each score.
#[derive(Clone, Debug)]
pub(crate) struct Histogram([u64; HOTTEST as usize + 1]);

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram([0; HOTTEST as usize + 1])
    }

    pub(crate) fn add(&mut self, score: u32, bytes: u64) {
        let sum = &mut self.0[score.min(HOTTEST) as usize];
        *sum = sum.saturating_add(bytes);
    }

    /// The highest score at which the bytes from the top reach a size; 0: all of them do not.
    pub(crate) fn min_score(&self, size: u64) -> u32 {
        let mut sum = 0u64;
        let reaches = |bytes: &u64| {
            sum = sum.saturating_add(*bytes);
            sum >= size
        };
        self.0.iter().rev().position(reaches).map_or(0, |from_top| HOTTEST - from_top as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_equal_the_published_vectors() {
        let by_age = Weights { age: 1, ..Weights::default() };
        let cold = |nr, age| HOTTEST - hot_score(nr, 20, age, 100_000, &by_age);
        assert_eq!([cold(0, 0), cold(0, 100), cold(0, 1200)], [50, 57, 61]);
        let by_access = Weights { nr_accesses: 1, ..Weights::default() };
        assert_eq!(hot_score(20, 20, 0, 100_000, &by_access), 99);
        assert_eq!(hot_score(20, 20, 9, 100_000, &Weights::default()), 0, "no weight");
    }

    #[test]
    fn age_of_an_accessed_region_makes_it_hotter() {
        let weights = Weights { age: 1, ..Weights::default() };
        let hot = |age| hot_score(20, 20, age, 1_000_000, &weights);
        assert!(hot(100) > hot(1) && hot(1) > hot(0));
        assert_eq!(hot(u32::MAX), 99, "the age has an end");
    }

    #[test]
    fn min_score_is_where_bytes_from_the_top_reach_the_quota() {
        let mut histogram = Histogram::new();
        for (score, bytes) in [(90, 10), (50, 20), (7, 100)] {
            histogram.add(score, bytes);
        }
        let of = |size| histogram.min_score(size);
        assert_eq!([of(10), of(11), of(30), of(31), of(1000)], [90, 50, 50, 7, 0]);
    }
}
