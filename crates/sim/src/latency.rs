//! How long things took: a histogram of spans with bounded relative error.
//!
//! Quantiles are within 1 % of the true value, the greatest value and the sum are exact. The buckets are integers and a
//! quantile is read by integer comparison, so equal runs print equal digits on every machine.
//!
//! Source of the bucketing: HdrHistogram, <http://hdrhistogram.org>.

use std::fmt;

use hdrhistogram::Histogram;
use pageout_engine::Nanos;

/// Two significant digits: 1 % in a quantile, and a few KiB a histogram.
const SIGNIFICANT_DIGITS: u8 = 2;

/// A histogram of spans of time.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    buckets: Histogram<u64>,
    max: Nanos,
    total: Nanos,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        let buckets = Histogram::new(SIGNIFICANT_DIGITS).expect("two digits are within the library's 0 to 5");
        LatencyHistogram { buckets, max: Nanos::ZERO, total: Nanos::ZERO }
    }
}

impl LatencyHistogram {
    /// Adds one span.
    pub fn record(&mut self, span: Nanos) {
        // The histogram grows with the greatest span seen; u64 nanoseconds always have a bucket.
        self.buckets.record(span.0).expect("an auto-resizing histogram takes every u64");
        self.max = self.max.max(span);
        self.total += span;
    }

    /// Adds so many equal spans.
    pub fn record_many(&mut self, span: Nanos, count: u64) {
        self.buckets.record_n(span.0, count).expect("an auto-resizing histogram takes every u64");
        self.max = self.max.max(span);
        self.total += Nanos(span.0 * count);
    }

    /// How many spans were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The sum of all spans, exact.
    pub fn total(&self) -> Nanos {
        self.total
    }

    /// The least span that at least a share `quantile` (0 to 1) of all spans do not exceed, within 1 %; 0 when empty.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        // A bucket reports its upper end, which may lie beyond the greatest span in it.
        Nanos(self.buckets.value_at_quantile(quantile)).min(self.max)
    }

    /// The figures a report prints.
    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.count(),
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            max: self.max,
            total: self.total,
        }
    }
}

/// Count, median, 99th percentile, maximum and sum of a set of spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LatencySummary {
    /// The number of spans.
    pub count: u64,
    /// The median, within 1 %.
    pub p50: Nanos,
    /// The 99th percentile, within 1 %.
    pub p99: Nanos,
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
        assert!((49_500..=50_500).contains(&summary.p50.0), "{summary}");
        assert!((98_010..=99_990).contains(&summary.p99.0), "{summary}");
        assert_eq!(
            (summary.max, summary.total, summary.count),
            (Nanos(100_000), Nanos(5_000_050_000), 100_000)
        );
    }

    #[test]
    fn a_single_span_is_every_quantile() {
        let mut histogram = LatencyHistogram::default();
        histogram.record(Nanos(123_457));
        let summary = histogram.summary();
        assert_eq!((summary.p50, summary.p99), (Nanos(123_457), Nanos(123_457)));
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        assert_eq!(LatencyHistogram::default().summary(), LatencySummary::default());
    }
}
