//! How long one request takes: constant or lognormal, with a rare long tail.
//!
//! A table of quantiles is made when the device is built. A lognormal draw is one look-up there, with linear interpolation. It
//! costs a few nanoseconds and needs no logarithm. The table ends at 1 in 4,096 on either side; rarer latencies come from
//! [`Tail`].

use pageout_engine::Nanos;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

/// Latency of a single request on an idle device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Latency {
    /// Every request takes this long.
    Constant(Nanos),
    /// Lognormal with this median and 99th percentile.
    Lognormal {
        /// The 50th percentile; greater than 0.
        median: Nanos,
        /// The 99th percentile, at least the median.
        p99: Nanos,
    },
}

impl Latency {
    /// With this median and 99th percentile; equal ones leave no spread.
    pub fn new(median: Nanos, p99: Nanos) -> Latency {
        if p99 == median { Latency::Constant(median) } else { Latency::Lognormal { median, p99 } }
    }

    /// The median latency.
    pub fn median(self) -> Nanos {
        match self {
            Latency::Constant(median) | Latency::Lognormal { median, .. } => median,
        }
    }
}

/// One request in `one_in` takes `times` the median, whatever its draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail {
    /// The rarity: one in this many requests; 1 means every request.
    pub one_in: u32,
    /// The duration, in medians.
    pub times: u32,
}

/// Steps in the table of quantiles; a power of two, so that the top bits of a draw are the step.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 10;
/// Probability at either end of the table.
const EDGE: f64 = 1.0 / 4096.0;
/// The 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874_040_841;

/// A seeded source of latencies.
#[derive(Debug)]
pub(super) struct Draw {
    generator: Pcg32,
    median: Nanos,
    /// Latencies at `STEPS + 1` evenly spaced probabilities; empty for a constant.
    quantiles: Vec<u64>,
    tail: Option<Tail>,
}

impl Draw {
    pub(super) fn new(latency: Latency, tail: Option<Tail>, seed: u64) -> Draw {
        let quantiles = match latency {
            Latency::Constant(_) => Vec::new(),
            Latency::Lognormal { median, p99 } => lognormal_quantiles(median, p99),
        };
        Draw { generator: generator(seed), median: latency.median(), quantiles, tail }
    }

    pub(super) fn draw(&mut self) -> Nanos {
        if let Some(tail) = self.tail
            && self.generator.next_u32().is_multiple_of(tail.one_in)
        {
            return Nanos(self.median.0 * u64::from(tail.times));
        }
        if self.quantiles.is_empty() {
            return self.median;
        }
        let draw = self.generator.next_u32();
        let step = (draw >> (32 - STEP_BITS)) as usize;
        let within = u64::from(draw << STEP_BITS);
        let (low, high) = (self.quantiles[step], self.quantiles[step + 1]);
        Nanos(low + (((high - low) as u128 * within as u128) >> 32) as u64)
    }
}

/// A generator whose sequence is independent of that of any other seed.
pub(super) fn generator(seed: u64) -> Pcg32 {
    // The stream number is part of what the seed decides: with one stream, two seeds would be two places in one sequence.
    Pcg32::new(seed, seed.rotate_left(32) | 1)
}

fn lognormal_quantiles(median: Nanos, p99: Nanos) -> Vec<u64> {
    let median = median.0 as f64;
    let sigma = libm::log(p99.0 as f64 / median) / Z99;
    (0..=STEPS)
        .map(|step| {
            let probability = (step as f64 / STEPS as f64).clamp(EDGE, 1.0 - EDGE);
            libm::round(median * libm::exp(sigma * normal_quantile(probability))) as u64
        })
        .collect()
}

/// The inverse of the standard normal distribution function, by bisection: 40 halvings of [-8, 8] leave 1e-11.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0f64, 8.0f64);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if libm::erfc(-middle * std::f64::consts::FRAC_1_SQRT_2) / 2.0 < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::LatencyHistogram;

    fn drawn(latency: Latency, tail: Option<Tail>) -> LatencyHistogram {
        let mut draw = Draw::new(latency, tail, 1);
        let mut histogram = LatencyHistogram::default();
        for _ in 0..200_000 {
            histogram.record(draw.draw());
        }
        histogram
    }

    #[test]
    fn a_lognormal_has_the_median_and_the_p99_it_was_given() {
        let latency = Latency::Lognormal { median: Nanos(30_000), p99: Nanos(75_000) };
        let summary = drawn(latency, None).summary();
        assert!((29_400..=30_600).contains(&summary.p50.0), "{summary}");
        assert!((73_000..=77_000).contains(&summary.p99.0), "{summary}");
        assert!(summary.max > Nanos(100_000), "{summary}");
    }

    #[test]
    fn a_lognormal_as_narrow_as_its_median_is_constant() {
        let latency = Latency::Lognormal { median: Nanos(500), p99: Nanos(500) };
        let summary = drawn(latency, None).summary();
        assert_eq!((summary.p50, summary.max), (Nanos(500), Nanos(500)));
    }

    #[test]
    fn a_tail_strikes_as_often_as_it_says() {
        let tail = Tail { one_in: 100, times: 10 };
        let histogram = drawn(Latency::Constant(Nanos(1_000)), Some(tail));
        assert_eq!(histogram.summary().max, Nanos(10_000));
        let struck = (histogram.total().0 - 200_000 * 1_000) / 9_000;
        assert!((1_800..=2_200).contains(&struck), "{struck}");
    }

    #[test]
    fn the_normal_quantile_is_that_of_the_tables() {
        assert!((normal_quantile(0.99) - Z99).abs() < 1e-9);
        assert!((normal_quantile(0.5)).abs() < 1e-9);
        assert!((normal_quantile(0.025) + 1.959_963_984_540_054).abs() < 1e-9);
    }
}
