//! Latency histograms: spans of time, kept with a bounded relative error.
//!
//! A quantile is the upper end of a bucket, and a bucket is at most 1/128 of its lower end wide. So a quantile is never below the true value and less
//! than 1 % above it. Below 256 ns it is exact; so are the maximum, the count and the sum, everywhere. The buckets are integers and a quantile is
//! read by integer comparison, so equal runs print equal digits on every machine.
//!
//! ```text
//!   0 .. 255   buckets of 1 ns        256 .. 511   of 2 ns        512 .. 1023   of 4 ns        ...        128 of them in each octave
//! ```
//! A histogram holds only the buckets between the minimum and the maximum that it has seen. One of a device that answers within a factor of ten takes
//! 4 KiB, and one of all possible spans 58 KiB.
//!
//! Source of the bucketing: HdrHistogram with two significant digits, <http://hdrhistogram.org>.

use std::fmt;
use std::ops::AddAssign;

use pageout_engine::Nanos;

/// Buckets in an octave, and the power of two that this is.
const BUCKETS: u64 = 128;
const BUCKETS_SHIFT: u32 = BUCKETS.ilog2();

/// The bucket of a span.
#[inline]
pub(crate) fn bucket_of(span: u64) -> usize {
    // The first octave that has buckets of its own begins at 128; all below are in one with it.
    let octave = (span | BUCKETS).ilog2() - BUCKETS_SHIFT;
    (u64::from(octave) * BUCKETS + (span >> octave)) as usize
}

/// The greatest span of a bucket.
pub(crate) fn greatest_in(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let octave = (bucket / BUCKETS).saturating_sub(1);
    let first = (bucket - octave * BUCKETS) << octave;
    first + ((1 << octave) - 1)
}

/// Cells by index, between the least and the greatest index that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Window<T> {
    first: usize,
    cells: Vec<T>,
}

impl<T> Default for Window<T> {
    fn default() -> Window<T> {
        Window { first: 0, cells: Vec::new() }
    }
}

impl<T: Copy + Default> Window<T> {
    /// The cell of this index.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> &mut T {
        let at = index.wrapping_sub(self.first);
        if at < self.cells.len() { &mut self.cells[at] } else { self.reach(index) }
    }

    #[cold]
    fn reach(&mut self, index: usize) -> &mut T {
        if self.cells.is_empty() {
            self.first = index;
        }
        let before = self.first.saturating_sub(index);
        self.cells.splice(0..0, (0..before).map(|_| T::default()));
        self.first -= before;
        let least = index - self.first + 1;
        self.cells.resize(self.cells.len().max(least), T::default());
        &mut self.cells[index - self.first]
    }

    /// All cells with their indices, in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, &T)> {
        let first = self.first;
        self.cells.iter().enumerate().map(move |(at, cell)| (first + at, cell))
    }
}

/// A histogram of spans of time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LatencyHistogram {
    buckets: Window<u64>,
    count: u64,
    max: Nanos,
    total: Nanos,
}

impl LatencyHistogram {
    /// Adds one span.
    #[inline]
    pub fn record(&mut self, span: Nanos) {
        self.record_many(span, 1);
    }

    /// Adds so many equal spans; at least one.
    #[inline]
    pub fn record_many(&mut self, span: Nanos, count: u64) {
        self.record_in(bucket_of(span.0), span, count);
    }

    /// Adds spans whose bucket is known.
    #[inline]
    pub(crate) fn record_in(&mut self, bucket: usize, span: Nanos, count: u64) {
        *self.buckets.at(bucket) += count;
        self.count += count;
        self.max = self.max.max(span);
        self.total += Nanos(span.0 * count);
    }

    /// How many spans there are in each bucket, in order.
    pub(crate) fn buckets(&self) -> impl DoubleEndedIterator<Item = (usize, &u64)> {
        self.buckets.iter()
    }

    /// Returns the number of recorded spans.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all spans, exact.
    pub fn total(&self) -> Nanos {
        self.total
    }

    /// The least span that at least a share `quantile` (0 to 1) of all spans do not exceed, or less than 1 % more; 0 when empty.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let wanted = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let reaches = |&(_, &count): &(usize, &u64)| {
            seen += count;
            seen >= wanted
        };
        let bucket = self.buckets.iter().find(reaches);
        // A bucket reports its upper end, which may lie beyond the greatest span in it.
        bucket.map_or(Nanos::ZERO, |(bucket, _)| Nanos(greatest_in(bucket)).min(self.max))
    }

    /// The figures a report prints.
    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.count(),
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: self.max,
            total: self.total,
        }
    }
}

impl AddAssign<&LatencyHistogram> for LatencyHistogram {
    fn add_assign(&mut self, other: &LatencyHistogram) {
        for (bucket, &count) in other.buckets.iter().filter(|(_, count)| **count > 0) {
            *self.buckets.at(bucket) += count;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
        self.total += other.total;
    }
}

/// Count, quantiles, maximum and sum of a set of spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LatencySummary {
    /// The number of spans.
    pub count: u64,
    /// The median, within 1 %.
    pub p50: Nanos,
    /// The 99th percentile, within 1 %.
    pub p99: Nanos,
    /// The span that one in a thousand exceeds, within 1 %.
    pub p999: Nanos,
    /// The longest span, exact.
    pub max: Nanos,
    /// The sum of all spans, exact.
    pub total: Nanos,
}

impl fmt::Display for LatencySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x, p50 {}, p99 {}, max {}", self.count, self.p50, self.p99, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent_and_extremes_exact() {
        let mut histogram = LatencyHistogram::default();
        for span in 1..=100_000 {
            histogram.record(Nanos(span));
        }
        let summary = histogram.summary();
        assert!((50_000..=50_500).contains(&summary.p50.0), "{summary}");
        assert!((99_000..=99_990).contains(&summary.p99.0), "{summary}");
        assert!((99_900..=100_000).contains(&summary.p999.0), "{summary}");
        assert_eq!(
            (summary.max, summary.total, summary.count),
            (Nanos(100_000), Nanos(5_000_050_000), 100_000)
        );
    }

    #[test]
    fn buckets_are_next_to_each_other_and_less_than_one_percent_wide() {
        let ends: Vec<u64> = (0..=bucket_of(u64::MAX)).map(greatest_in).collect();
        assert_eq!((ends[0], *ends.last().unwrap()), (0, u64::MAX));
        for (bucket, pair) in ends.windows(2).enumerate() {
            let (first, last) = (pair[0] + 1, pair[1]);
            assert_eq!((bucket_of(first), bucket_of(last)), (bucket + 1, bucket + 1));
            assert!((last - first) as u128 * 128 <= first as u128, "{first} to {last}");
        }
    }

    #[test]
    fn a_single_span_is_every_quantile() {
        let mut histogram = LatencyHistogram::default();
        histogram.record(Nanos(123_457));
        let summary = histogram.summary();
        assert_eq!(
            (summary.p50, summary.p99, summary.p999),
            (Nanos(123_457), Nanos(123_457), Nanos(123_457))
        );
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        assert_eq!(LatencyHistogram::default().summary(), LatencySummary::default());
    }

    #[test]
    fn two_histograms_together_are_one_of_all_their_spans() {
        let (mut low, mut high, mut all) =
            <(LatencyHistogram, LatencyHistogram, LatencyHistogram)>::default();
        for span in (0..20).map(|power| Nanos(3_u64.pow(power))) {
            (if span.0 % 2 == 0 { &mut low } else { &mut high }).record(span);
            all.record(span);
        }
        high += &low;
        assert_eq!(high.summary(), all.summary());
    }
}
