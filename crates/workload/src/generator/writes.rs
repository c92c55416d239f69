//! Writes of a pattern: each access writes with the same probability, independent of its page.
//!
//! Writes draw from a generator of their own, seeded with the pattern's seed + 1, so that a pattern touches the same
//! pages whatever its write ratio. A ratio of whole percents compares `below(100)`, which is what the ground truth
//! was generated with; a finer one compares `unit()`.

use crate::Access;
use crate::rng::SplitMix64;

/// Turns some of the accesses of a stream into writes.
pub(super) struct Writes {
    rule: Rule,
    rng: SplitMix64,
}

enum Rule {
    Never,
    Always,
    Percent(u64),
    Ratio(f64),
}

impl Writes {
    /// `ratio` in `0..=1`, checked by the pattern; `seed` is the pattern's own.
    pub(super) fn new(ratio: f64, seed: u64) -> Writes {
        let percent = ratio * 100.0;
        let nearest = libm::round(percent);
        let rule = if ratio == 0.0 {
            Rule::Never
        } else if ratio == 1.0 {
            Rule::Always
        } else if libm::fabs(percent - nearest) < 1e-9 {
            Rule::Percent(nearest as u64)
        } else {
            Rule::Ratio(ratio)
        };
        Writes { rule, rng: SplitMix64::new(seed.wrapping_add(1)) }
    }

    /// Decides for each access in turn.
    pub(super) fn apply(&mut self, accesses: &mut [Access]) {
        let rng = &mut self.rng;
        match self.rule {
            Rule::Never => {}
            Rule::Always => write_where(accesses, || true),
            Rule::Percent(percent) => write_where(accesses, || rng.below(100) < percent),
            Rule::Ratio(ratio) => write_where(accesses, || rng.unit() < ratio),
        }
    }
}

/// Without a branch: the draws are coin tosses, which no processor predicts.
#[inline]
fn write_where(accesses: &mut [Access], mut is_write: impl FnMut() -> bool) {
    for access in accesses {
        *access = access.or_write(is_write());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of_writes(ratio: f64) -> f64 {
        let mut accesses = vec![Access::new(0, 0, false); 100_000];
        Writes::new(ratio, 3).apply(&mut accesses);
        accesses.iter().filter(|access| access.is_write()).count() as f64 / 100_000.0
    }

    #[test]
    fn the_share_of_writes_is_the_ratio_asked_for() {
        assert_eq!(share_of_writes(0.0), 0.0);
        assert_eq!(share_of_writes(1.0), 1.0);
        for ratio in [0.3, 0.005, 0.255, 0.29] {
            assert!((share_of_writes(ratio) - ratio).abs() < 0.01, "ratio {ratio}");
        }
    }
}
