//! Durations of reclaim calls as a histogram: count, sum and maximum are exact, quantiles less than 1 % too high.
//!
//! A bucket is at most 1/128 of its lower end wide, and a quantile is the upper end of its bucket. Below 256 ns it is exact.

use hdrhistogram::Histogram;

/// Two significant digits: 128 buckets for each power of two.
const SIGNIFICANT_DIGITS: u8 = 2;

/// A histogram of durations in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// Most tasks make no call of most kinds: the buckets are allocated by the first duration.
    histogram: Option<Box<Histogram<u64>>>,
    count: u64,
    total_ns: u64,
    max_ns: u64,
}

/// Figures of a [`Durations`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationSummary {
    /// Number of durations.
    pub count: u64,
    /// Sum of all durations, exact.
    pub total_ns: u64,
    /// Median, less than 1 % too high.
    pub p50_ns: u64,
    /// 99th percentile, less than 1 % too high.
    pub p99_ns: u64,
    /// Longest duration, exact.
    pub max_ns: u64,
}

impl Durations {
    /// Adds one duration. A damaged trace can have durations whose sum exceeds 2^64 ns (584 years): such a duration is not added.
    pub fn record(&mut self, ns: u64) {
        let Some(total_ns) = self.total_ns.checked_add(ns) else { return };
        let new = || {
            let mut histogram = Histogram::new(SIGNIFICANT_DIGITS).expect("0 to 5 digits are allowed");
            histogram.auto(true);
            Box::new(histogram)
        };
        let histogram = self.histogram.get_or_insert_with(new);
        histogram.record(ns).expect("7,424 buckets hold every u64");
        self.count += 1;
        self.total_ns = total_ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all durations in nanoseconds, exact.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The duration in nanoseconds that a share `quantile` (0 to 1) of all durations does not exceed; 0 without durations.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        // The upper end of a bucket may lie above the longest duration in it. A quantile of 0 is the shortest duration, not the lower end.
        let quantile = quantile.max(f64::MIN_POSITIVE);
        self.histogram.as_ref().map_or(0, |histogram| histogram.value_at_quantile(quantile).min(self.max_ns))
    }

    /// Count, sum, median, 99th percentile and maximum.
    pub fn summary(&self) -> DurationSummary {
        DurationSummary {
            count: self.count,
            total_ns: self.total_ns,
            p50_ns: self.quantile_ns(0.5),
            p99_ns: self.quantile_ns(0.99),
            max_ns: self.max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The last nanosecond of the bucket of `ns`: 128 buckets for each power of two, of 1 ns below 256.
    fn bucket_end(ns: u64) -> u64 {
        let shift = (ns | 128).ilog2() - 7;
        ns | ((1 << shift) - 1)
    }

    proptest! {
        #[test]
        fn quantile_is_bucket_end_of_the_sorted_duration(
            durations in prop::collection::vec((1..64u32, any::<u64>()).prop_map(|(shift, ns)| ns >> shift), 1..200),
            quantile in 0.0..=1.0f64,
        ) {
            let mut histogram = Durations::default();
            let mut kept: Vec<u64> = Vec::new();
            for ns in durations {
                if kept.iter().try_fold(ns, |sum, &other| sum.checked_add(other)).is_some() {
                    kept.push(ns);
                }
                histogram.record(ns);
            }
            kept.sort_unstable();
            let rank = ((quantile * kept.len() as f64).ceil() as usize).clamp(1, kept.len());
            let max_ns = kept[kept.len() - 1];
            prop_assert_eq!(histogram.quantile_ns(quantile), bucket_end(kept[rank - 1]).min(max_ns));
            let summary = histogram.summary();
            let exact = (summary.count, summary.total_ns, summary.max_ns);
            prop_assert_eq!(exact, (kept.len() as u64, kept.iter().sum::<u64>(), max_ns));
        }
    }

    #[test]
    fn durations_without_entries_are_zero() {
        assert_eq!(Durations::default().summary(), DurationSummary::default());
    }

    #[test]
    fn duration_that_overflows_the_sum_is_not_added() {
        let mut histogram = Durations::default();
        histogram.record(u64::MAX);
        histogram.record(1);
        assert_eq!((histogram.count(), histogram.total_ns()), (1, u64::MAX));
    }
}
