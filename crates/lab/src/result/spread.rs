//! Several runs of one variant: mean, standard deviation, and whether a difference may be noise.
//!
//! [`Spread`] stands alone; [`Paired`] compares run by run where the runs of two variants share their seeds, which sees
//! smaller effects.

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

/// How a figure differs between two variants, run by run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Paired {
    /// Mean of what percentages are of.
    pub(crate) base: f64,
    /// Mean difference.
    pub(crate) difference: f64,
    /// Half the width of its 95 % confidence interval; `None` of a single pair, which has no spread.
    pub(crate) half_width: Option<f64>,
    /// Whether no pair differs at all.
    pub(crate) is_same: bool,
}

impl Paired {
    /// The differences of `values` to `base`, of which there are as many and at least one.
    pub(crate) fn of(base: &[f64], values: &[f64]) -> Paired {
        assert_eq!(base.len(), values.len(), "every run has its partner");
        let differences: Vec<f64> = values.iter().zip(base).map(|(value, base)| value - base).collect();
        Paired::of_differences(&differences, base)
    }

    /// Differences that were computed already, one a seed; percentages are of the mean of `base`.
    pub(crate) fn of_differences(differences: &[f64], base: &[f64]) -> Paired {
        let spread = Spread::of(differences);
        let error = spread.deviation / (spread.count as f64).sqrt();
        Paired {
            base: Spread::of(base).mean,
            difference: spread.mean,
            half_width: (spread.count > 1).then(|| student_t(spread.count - 1) * error),
            is_same: differences.iter().all(|difference| *difference == 0.0),
        }
    }

    /// A difference of this figure in percent; `None` when there is nothing to be a percentage of.
    pub(crate) fn percent(&self, difference: f64) -> Option<f64> {
        (self.base != 0.0).then(|| difference / self.base.abs() * 100.0)
    }

    /// Whether the confidence interval contains 0.
    pub(crate) fn is_within_noise(&self) -> bool {
        !self.is_same && self.half_width.is_some_and(|width| self.difference.abs() <= width)
    }
}

/// Student's t for a two-sided 95 % interval, by degrees of freedom; beyond 30 that of 30, on the side of noise.
fn student_t(degrees: usize) -> f64 {
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    T[degrees.clamp(1, T.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_seeds_have_in_common_is_no_noise_in_pairs() {
        let (base, values) = ([100.0, 200.0, 300.0], [101.0, 201.5, 300.5]);
        let pairs = Paired::of(&base, &values);
        assert_eq!(pairs.difference, 1.0);
        assert!(
            pairs.is_within_noise(),
            "an interval of 1 ± 4.303 * 0.5 / 3^0.5 = 1.24 contains 0: {pairs:?}"
        );
        let pairs = Paired::of(&base, &[101.0, 201.0, 301.1]);
        assert!(!pairs.is_within_noise(), "{pairs:?}");
        assert!(Spread::of(&[101.0, 201.0, 301.1]).is_within_noise_of(&Spread::of(&base)));
    }

    #[test]
    fn a_single_pair_has_no_noise_and_equal_ones_no_difference() {
        assert!(!Paired::of(&[1.0], &[2.0]).is_within_noise());
        assert_eq!(Paired::of(&[1.0], &[2.0]).half_width, None);
        let same = Paired::of(&[1.0, 2.0], &[1.0, 2.0]);
        assert!(same.is_same && !same.is_within_noise());
        assert_eq!(Paired::of(&[0.0], &[5.0]).percent(5.0), None);
    }

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
