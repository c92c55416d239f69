//! Several runs of one variant: mean, standard deviation, and whether a difference may be noise.

/// The values of one figure over repeated runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// How many.
    pub(crate) count: usize,
    /// Their mean.
    pub(crate) mean: f64,
    /// Their sample standard deviation; 0 for a single value.
    pub(crate) deviation: f64,
}

impl Spread {
    /// The spread of `values`, of which there is at least one.
    pub(crate) fn of(values: &[f64]) -> Spread {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Spread { count, mean, deviation }
    }

    /// Difference to `base` in percent of it; `None` when there is nothing to be a percentage of.
    pub(crate) fn percent_from(&self, base: &Spread) -> Option<f64> {
        if self.mean == base.mean {
            return Some(0.0);
        }
        (base.mean != 0.0).then(|| (self.mean - base.mean) / base.mean.abs() * 100.0)
    }

    /// Whether the difference to `base` is less than two standard errors of it, and so may be noise. Without a spread
    /// there is no noise: a simulated run repeats to the last digit.
    pub(crate) fn is_within_noise_of(&self, base: &Spread) -> bool {
        let error = |spread: &Spread| spread.deviation * spread.deviation / spread.count as f64;
        let difference = (self.mean - base.mean).abs();
        difference > 0.0 && difference < 2.0 * (error(self) + error(base)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_when_it_is_two_standard_errors() {
        let base = Spread::of(&[10.0, 12.0, 11.0]);
        assert_eq!((base.mean, base.deviation), (11.0, 1.0));
        assert!(Spread::of(&[11.5, 12.5, 10.5]).is_within_noise_of(&base));
        assert!(!Spread::of(&[21.5, 22.5, 20.5]).is_within_noise_of(&base));
        assert!(!Spread::of(&[11.1]).is_within_noise_of(&Spread::of(&[11.0])), "single runs have no noise");
    }

    #[test]
    fn differences_are_relative_to_the_base() {
        let base = Spread::of(&[50.0]);
        assert_eq!(Spread::of(&[60.0]).percent_from(&base), Some(20.0));
        assert_eq!(Spread::of(&[60.0]).percent_from(&Spread::of(&[0.0])), None);
        assert_eq!(Spread::of(&[0.0]).percent_from(&Spread::of(&[0.0])), Some(0.0));
    }
}
