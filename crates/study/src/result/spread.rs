//! The spread of a figure over several runs of a variant: mean, standard deviation, and whether a difference may be noise.
//!
//! [`Spread`] stands alone. [`Paired`] compares run by run where the runs of two variants share their seeds, and so sees smaller
//! effects.

/// The values of one figure over repeated runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The number of values.
    pub count: usize,
    /// The mean of the values.
    pub mean: f64,
    /// The sample standard deviation of the values; 0 for a single value.
    pub deviation: f64,
}

impl Spread {
    /// The spread of `values`: one or more.
    pub fn of(values: &[f64]) -> Spread {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Spread { count, mean, deviation }
    }

    /// Half the width of the mean's 95 % confidence interval; nothing of a single value.
    pub fn half_width(&self) -> Option<f64> {
        let error = self.deviation / (self.count as f64).sqrt();
        (self.count > 1).then(|| student_t(self.count - 1) * error)
    }
}

/// The fewest values with which the half width of the mean's interval would come to `wanted`, if they scatter as `count` of them do, which have
/// this `half_width`. At least twice as many, since the deviation of a few is a guess itself.
pub fn values_for(wanted: f64, half_width: f64, count: u32) -> u32 {
    let width = |count: u32| student_t(count as usize - 1) / f64::from(count).sqrt();
    let deviation = half_width / width(count);
    (2 * count..VALUES_MAX).find(|&more| deviation * width(more) <= wanted).unwrap_or(VALUES_MAX)
}

/// The maximum number of repetitions of a run.
const VALUES_MAX: u32 = 1000;

/// The difference of a figure between two variants, run by run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// Mean of what percentages are of.
    pub base: f64,
    /// Mean difference.
    pub difference: f64,
    /// Half the width of its 95 % confidence interval; `None` of a single pair, which has no spread.
    pub half_width: Option<f64>,
    /// True if no pair differs at all.
    pub is_same: bool,
    /// The probability of a mean difference as far from 0 if there is none, by Student's t. `None` if the differences do not scatter.
    pub p: Option<f64>,
}

impl Paired {
    /// The differences of `values` to `base`: as many of both, one or more.
    pub fn of(base: &[f64], values: &[f64]) -> Paired {
        assert_eq!(base.len(), values.len(), "every run has its partner");
        let differences: Vec<f64> = values.iter().zip(base).map(|(value, base)| value - base).collect();
        Paired::of_differences(&differences, base)
    }

    /// Differences that were computed already, one a seed; percentages are of the mean of `base`.
    pub fn of_differences(differences: &[f64], base: &[f64]) -> Paired {
        let spread = Spread::of(differences);
        let error = spread.deviation / (spread.count as f64).sqrt();
        Paired {
            p: (error > 0.0).then(|| chance(spread.mean / error, spread.count - 1)),
            base: Spread::of(base).mean,
            difference: spread.mean,
            half_width: spread.half_width(),
            is_same: differences.iter().all(|difference| *difference == 0.0),
        }
    }

    /// A difference of this figure in percent; `None` when there is nothing to be a percentage of.
    pub fn percent(&self, difference: f64) -> Option<f64> {
        (self.base != 0.0).then(|| difference / self.base.abs() * 100.0)
    }

    /// The difference in percent; of a difference from nothing to something there is none.
    pub fn percent_of_base(&self) -> Option<f64> {
        if self.difference == 0.0 { Some(0.0) } else { self.percent(self.difference) }
    }

    /// Returns true if the confidence interval contains 0.
    pub fn is_within_noise(&self) -> bool {
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

/// Returns the probability of a value of Student's t as far from 0 as `t`, to either side: 5 % at the bounds of a 95 % interval. The sums are those of Abramowitz and
/// Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
pub fn chance(t: f64, degrees: usize) -> f64 {
    let angle = (t.abs() / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // For odd degrees 1, 2/3, 2*4/(3*5) ..., for even ones 1, 1/2, 1*3/(2*4) ...
    let is_odd = degrees % 2 == 1;
    let (mut sum, mut term) = (0.0, if is_odd { cosine } else { 1.0 });
    let first = if is_odd { 3 } else { 2 };
    for below in (first..=degrees).step_by(2) {
        sum += term;
        term *= cosine * cosine * (below - 1) as f64 / below as f64;
    }
    let within = match is_odd {
        true => (angle + sine * sum) * std::f64::consts::FRAC_2_PI,
        false => sine * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use pageout_workload::rng::SplitMix64;

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
    }

    #[test]
    fn pairs_are_within_noise_where_p_is_above_five_percent() {
        let of = |values: &[f64]| Paired::of(&[100.0, 200.0, 300.0], values);
        let (noise, certain) = (of(&[101.0, 201.5, 300.5]), of(&[101.0, 201.0, 301.1]));
        assert!(noise.p.unwrap() > 0.05 && certain.p.unwrap() < 0.05, "{noise:?} {certain:?}");
        assert_eq!((of(&[101.0, 201.0, 301.0]).p, Paired::of(&[1.0], &[2.0]).p), (None, None));
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
    fn a_spread_is_mean_and_sample_deviation() {
        assert_eq!(Spread::of(&[10.0, 12.0, 11.0]), Spread { count: 3, mean: 11.0, deviation: 1.0 });
        assert_eq!(Spread::of(&[10.0]).deviation, 0.0);
    }

    #[test]
    fn an_interval_is_as_narrow_as_wanted_with_so_many_values_and_not_with_fewer() {
        // A deviation of 0.5 makes 1.242 of three values, and 0.358 of ten.
        assert_eq!(values_for(0.36, 1.242, 3), 10);
        assert_eq!(values_for(1.2, 1.242, 3), 6, "twice as many at least");
        assert_eq!(values_for(1e-9, 1.242, 3), 1000);
    }

    #[test]
    fn the_bounds_of_an_interval_are_passed_by_chance_one_time_in_twenty() {
        for degrees in 1..=30 {
            let chance = chance(-student_t(degrees), degrees);
            assert!((chance - 0.05).abs() < 2e-4, "{degrees} degrees: {chance}");
        }
        assert_eq!(chance(0.0, 4), 1.0);
        // Tables of 99.9 % have 8.610 for 4 degrees, and 12.924 for 3.
        assert!((chance(8.610, 4) - 0.001).abs() < 1e-5 && (chance(12.924, 3) - 0.001).abs() < 1e-5);
    }

    #[test]
    fn differences_are_relative_to_the_base() {
        let percent = |base: f64, value: f64| Paired::of(&[base], &[value]).percent_of_base();
        assert_eq!(percent(50.0, 60.0), Some(20.0));
        assert_eq!(percent(0.0, 60.0), None);
        assert_eq!(percent(0.0, 0.0), Some(0.0));
    }

    /// Close to a normal distribution of deviation 1: the sum of twelve uniform ones.
    fn normal(generator: &mut SplitMix64) -> f64 {
        (0..12).map(|_| generator.below(1 << 32) as f64 / (1u64 << 32) as f64).sum::<f64>() - 6.0
    }

    /// Two variants that differ in nothing but noise, with as much again that the seeds have in common.
    #[test]
    fn of_differences_that_are_nothing_one_in_twenty_is_left_unmarked_with_any_number_of_seeds() {
        const DRAWS: usize = 10_000;
        let mut generator = SplitMix64::new(1);
        for seeds in [2, 3, 5, 10, 30] {
            let unmarked = (0..DRAWS).filter(|_| {
                let (base, values): (Vec<f64>, Vec<f64>) = (0..seeds)
                    .map(|_| {
                        let common = 100.0 + normal(&mut generator);
                        (common + normal(&mut generator), common + normal(&mut generator))
                    })
                    .unzip();
                !Paired::of(&base, &values).is_within_noise()
            });
            let share = unmarked.count() as f64 / DRAWS as f64;
            assert!((0.043..0.057).contains(&share), "{seeds} seeds: {share}");
        }
    }
}
