//! Goals of a quota: what a scheme is to reach, and how its size follows. [access-aware 2.4]

use crate::feed::{LEAST, REACHED, feed};

/// What a goal measures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Metric {
    /// A value that the user writes.
    UserInput,
    /// Microseconds of memory `some` stall since the last window.
    SomeMemPsiUs,
    /// Used pages of a node over all of it, in 1/10,000.
    NodeMemUsedBp(u8),
    /// Free pages of a node over all of it, in 1/10,000.
    NodeMemFreeBp(u8),
    /// Pages of a cgroup on a node over all of the node, in 1/10,000.
    NodeMemcgUsedBp(u8, u16),
    /// Used pages of a node less those of a cgroup over all of the node, in 1/10,000.
    NodeMemcgFreeBp(u8, u16),
    /// Pages of active lists over those of all lists, in 1/10,000.
    ActiveMemBp,
    /// Pages of inactive lists over those of all lists, in 1/10,000.
    InactiveMemBp,
}

/// A goal of a quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Goal {
    /// What it measures.
    pub metric: Metric,
    /// The wanted value.
    pub target_value: u64,
    /// The value of the last measurement.
    pub current_value: u64,
    /// The stall at the last measurement, of [`Metric::SomeMemPsiUs`].
    pub(crate) last_stall: Option<u64>,
}

/// How a size follows a score.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tuner {
    /// It changes by a share of itself.
    #[default]
    Consist,
    /// Nothing once the goal is reached, all that is allowed before.
    Temporal,
}

impl Goal {
    /// A goal that has not been measured yet.
    pub fn new(metric: Metric, target_value: u64) -> Goal {
        Goal { metric, target_value, current_value: 0, last_stall: None }
    }

    /// Takes a measured value. A stall is a sum since boot.
    pub(crate) fn measure(&mut self, value: u64, psi_since_boot: bool) {
        self.current_value = match self.metric {
            Metric::UserInput => self.current_value,
            Metric::SomeMemPsiUs => match self.last_stall.replace(value) {
                Some(last) => value.saturating_sub(last),
                None if psi_since_boot => value,
                None => self.target_value,
            },
            _ => value,
        };
    }

    /// 10,000 if it is reached, more above it.
    pub(crate) fn score(&self) -> u64 {
        let score =
            u128::from(self.current_value) * u128::from(REACHED) / u128::from(self.target_value.max(1));
        u64::try_from(score).unwrap_or(u64::MAX)
    }
}

impl Tuner {
    /// The next size in 1/10,000 bytes. `bytes`: the limit of the quota, 0 if there is none.
    pub(crate) fn next(self, size_bp: u64, score: u64, bytes: u64) -> u64 {
        match self {
            Tuner::Consist => feed(size_bp.max(LEAST), score),
            Tuner::Temporal if score >= REACHED => 0,
            Tuner::Temporal if bytes == 0 => u64::MAX,
            Tuner::Temporal => bytes.saturating_mul(REACHED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows until a scheme may do so many bytes, if every window has this score.
    fn windows(score: u64, bytes: u64) -> u32 {
        let (mut size, mut windows) = (0, 0);
        while size / 10_000 < bytes {
            size = Tuner::Consist.next(size, score, 0);
            windows += 1;
        }
        windows
    }

    #[test]
    fn windows_to_a_size_equal_the_published_vectors() {
        let mib = 1 << 20;
        assert_eq!([windows(0, 4096), windows(0, 200 * mib)], [12, 28]);
        assert_eq!([windows(5000, 4096), windows(5000, 200 * mib)], [21, 48]);
        assert_eq!([windows(9000, 4096), windows(9000, 200 * mib)], [88, 202]);
    }

    #[test]
    fn temporal_tuner_does_all_or_nothing() {
        let next = |score, bytes| Tuner::Temporal.next(123, score, bytes);
        assert_eq!([next(10_000, 5), next(9_999, 5), next(9_999, 0)], [0, 50_000, u64::MAX]);
    }

    #[test]
    fn first_stall_is_all_since_boot_or_neutral() {
        for (since_boot, first) in [(true, 700), (false, 50)] {
            let mut goal = Goal::new(Metric::SomeMemPsiUs, 50);
            goal.measure(700, since_boot);
            assert_eq!(goal.current_value, first);
            goal.measure(725, since_boot);
            assert_eq!((goal.current_value, goal.score()), (25, 5_000));
        }
    }
}
