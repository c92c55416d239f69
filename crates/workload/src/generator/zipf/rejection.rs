//! Zipf ranks by rejection-inversion: the exact distribution in constant memory, for ranges too large for a table.
//!
//! The sum over ranks is bounded by an integral that can be inverted in closed form. A sample of the integral is rounded to a rank. It is accepted
//! unless it fell in the sliver by which the integral exceeds the rank's weight. About 1.1 tries per sample for common exponents.
//!
//! Source: Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions" (1996). Their sequence differs
//! from the table's for the same seed.

use crate::rng::SplitMix64;

/// Zipf ranks without a table.
pub struct RejectionInversion {
    ranks: u64,
    alpha: f64,
    integral_at_first: f64,
    integral_at_last: f64,
    /// A sample this close below its rank is accepted without a further look.
    sure_distance: f64,
}

impl RejectionInversion {
    /// Creates a sampler of `ranks` ranks. `alpha` is finite and not negative.
    pub fn new(ranks: u64, alpha: f64) -> RejectionInversion {
        RejectionInversion {
            ranks,
            alpha,
            integral_at_first: integral(1.5, alpha) - 1.0,
            integral_at_last: integral(ranks as f64 + 0.5, alpha),
            sure_distance: 2.0 - inverse_integral(integral(2.5, alpha) - weight(2.0, alpha), alpha),
        }
    }

    /// The next rank, from 0.
    pub fn rank(&self, rng: &mut SplitMix64) -> u64 {
        loop {
            let area = self.integral_at_last + rng.unit() * (self.integral_at_first - self.integral_at_last);
            let x = inverse_integral(area, self.alpha);
            let rank = (libm::floor(x + 0.5) as u64).clamp(1, self.ranks);
            let rank_x = rank as f64;
            if rank_x - x <= self.sure_distance
                || area >= integral(rank_x + 0.5, self.alpha) - weight(rank_x, self.alpha)
            {
                return rank - 1;
            }
        }
    }
}

/// x^-alpha.
fn weight(x: f64, alpha: f64) -> f64 {
    libm::exp(-alpha * libm::log(x))
}

/// The integral of the weight from 1 to x: (x^(1-alpha) - 1) / (1 - alpha), and log x where alpha is 1.
fn integral(x: f64, alpha: f64) -> f64 {
    let log_x = libm::log(x);
    expm1_over((1.0 - alpha) * log_x) * log_x
}

fn inverse_integral(area: f64, alpha: f64) -> f64 {
    // Rounding can push the product below -1, where the logarithm ends.
    let t = (area * (1.0 - alpha)).max(-1.0);
    libm::exp(log1p_over(t) * area)
}

/// (e^x - 1) / x, continued at 0.
fn expm1_over(x: f64) -> f64 {
    if libm::fabs(x) > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0) }
}

/// log(1 + x) / x, continued at 0.
fn log1p_over(x: f64) -> f64 {
    if libm::fabs(x) > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_first_ranks_are_those_of_the_distribution() {
        for alpha in [0.0, 0.5, 0.99, 1.0, 1.5, 3.0] {
            let ranks = 50u64;
            let sampler = RejectionInversion::new(ranks, alpha);
            let mut rng = SplitMix64::new(11);
            let mut counts = vec![0u64; ranks as usize];
            for _ in 0..200_000 {
                counts[sampler.rank(&mut rng) as usize] += 1;
            }
            let total: f64 = (1..=ranks).map(|rank| libm::pow(rank as f64, -alpha)).sum();
            for (rank, &count) in counts.iter().enumerate() {
                let expected = libm::pow(rank as f64 + 1.0, -alpha) / total * 200_000.0;
                let slack = 5.0 * libm::sqrt(expected) + 5.0;
                assert!(
                    (count as f64 - expected).abs() < slack,
                    "alpha {alpha} rank {rank}: {count}, {expected}"
                );
            }
        }
    }

    #[test]
    fn the_largest_range_and_exponent_stay_in_range() {
        for alpha in [0.0, 0.99, 100.0] {
            let sampler = RejectionInversion::new(1 << 40, alpha);
            let mut rng = SplitMix64::new(1);
            assert!((0..10_000).all(|_| sampler.rank(&mut rng) < 1 << 40));
        }
    }
}
