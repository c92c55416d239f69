//! Quotas: how much a scheme may do in an interval. Limits of time, bytes and goals become one size. [access-aware 2.3]
//!
//! The size is charged with each region that the action was applied to, done or not. Once it is used up, the scheme waits for the next window and
//! goes on behind the last region, so that it goes round through all addresses.

use crate::feed::REACHED;
use crate::goal::{Goal, Tuner};

/// Bytes per millisecond that are expected of a scheme that was charged for no time yet.
const FIRST_THROUGHPUT: u64 = 4 << 20;

/// The limit of a quota in its first window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstWindow {
    /// What its limits say.
    Computed,
    /// Everything: the limits count from the second window on.
    Unlimited,
}

/// How much priority the parts of an access pattern have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weights {
    /// Of the size. It has no effect.
    pub size: u32,
    /// Of the accesses.
    pub nr_accesses: u32,
    /// Of the age.
    pub age: u32,
}

/// The share of a region without effect that is charged: `num / denom`; a denominator of 0 charges all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FailCharge {
    /// Numerator.
    pub num: u64,
    /// Denominator.
    pub denom: u64,
}

/// What a user sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QuotaLimits {
    /// Milliseconds of an interval that the scheme may use; 0: any.
    pub ms: u64,
    /// Bytes of an interval that it may be applied to; 0: any.
    pub bytes: u64,
    /// Milliseconds of an interval.
    pub reset_interval_ms: u64,
    /// What it is to reach.
    pub goals: Vec<Goal>,
    /// How its size follows the goals.
    pub tuner: Tuner,
    /// What counts for its priorities.
    pub weights: Weights,
    /// What is charged for a region without effect.
    pub fail_charge: FailCharge,
}

impl QuotaLimits {
    /// Returns whether there is any limit.
    pub fn is_set(&self) -> bool {
        self.ms > 0 || self.bytes > 0 || !self.goals.is_empty()
    }
}

/// What a quota goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotaRules {
    pub(crate) first_window: FirstWindow,
    pub(crate) zero_is_nothing: bool,
    pub(crate) full_below_region: bool,
    pub(crate) psi_since_boot: bool,
    pub(crate) min_region_size: u64,
}

/// Where the next window goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resume {
    pub(crate) target: usize,
    pub(crate) address: u64,
}

/// Limits with what was charged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quota {
    /// The settings of the user.
    pub limits: QuotaLimits,
    effective_bytes: u64,
    charged_bytes: u64,
    total_bytes: u64,
    total_ns: u64,
    size_bp: u64,
    window_began_ns: Option<u64>,
    pub(crate) resume: Option<Resume>,
    /// Regions with a lower priority are skipped.
    pub(crate) min_score: u32,
}

impl Quota {
    /// A quota that was charged with nothing.
    pub fn new(limits: QuotaLimits) -> Quota {
        Quota { limits, ..Quota::default() }
    }

    /// The size that its limits have become.
    pub fn effective_bytes(&self) -> u64 {
        self.effective_bytes
    }

    /// Bytes that this window was charged with.
    pub fn charged_bytes(&self) -> u64 {
        self.charged_bytes
    }

    /// Returns whether it limits anything now.
    pub(crate) fn limits_now(&self, rules: &QuotaRules) -> bool {
        self.limits.is_set() && (rules.zero_is_nothing || self.effective_bytes > 0)
    }

    /// Bytes that are left; `None`: any number.
    pub(crate) fn left(&self, rules: &QuotaRules) -> Option<u64> {
        self.limits_now(rules).then(|| self.effective_bytes.saturating_sub(self.charged_bytes))
    }

    pub(crate) fn is_full(&self, rules: &QuotaRules) -> bool {
        let least = if rules.full_below_region { rules.min_region_size } else { 1 };
        self.left(rules).is_some_and(|left| left < least)
    }

    /// Begins a window if one is due. `measure`: the present value of a goal. Returns whether the last window was full.
    pub(crate) fn adjust(
        &mut self,
        rules: &QuotaRules,
        now_ns: u64,
        measure: impl FnMut(&Goal) -> u64,
    ) -> bool {
        if !self.limits.is_set() {
            return false;
        }
        let Some(began) = self.window_began_ns else {
            self.window_began_ns = Some(now_ns);
            if rules.first_window == FirstWindow::Computed {
                self.set_effective_bytes(rules, measure);
            }
            return false;
        };
        if now_ns - began < self.limits.reset_interval_ms.saturating_mul(1_000_000) {
            return false;
        }
        let was_full = self.left(rules) == Some(0);
        self.window_began_ns = Some(now_ns);
        self.charged_bytes = 0;
        self.set_effective_bytes(rules, measure);
        was_full
    }

    fn set_effective_bytes(&mut self, rules: &QuotaRules, mut measure: impl FnMut(&Goal) -> u64) {
        let limits = &mut self.limits;
        let mut size = u64::MAX;
        if !limits.goals.is_empty() {
            for goal in &mut limits.goals {
                let value = measure(goal);
                goal.measure(value, rules.psi_since_boot);
            }
            let score = limits.goals.iter().map(Goal::score).max().unwrap_or(REACHED);
            self.size_bp = limits.tuner.next(self.size_bp, score, limits.bytes);
            // The largest size is none.
            size = if self.size_bp == u64::MAX { u64::MAX } else { self.size_bp / REACHED };
        }
        if limits.ms > 0 {
            let throughput = match self.total_ns {
                0 => FIRST_THROUGHPUT,
                ns => (u128::from(self.total_bytes) * 1_000_000 / u128::from(ns)) as u64,
            };
            size = size.min(throughput.saturating_mul(limits.ms).max(rules.min_region_size));
        }
        if limits.bytes > 0 {
            size = size.min(limits.bytes);
        }
        self.effective_bytes = size;
    }

    /// A region of so many bytes was handled in so much time, and so many bytes of it were affected.
    pub(crate) fn charge(&mut self, size: u64, applied: u64, ns: u64) {
        let FailCharge { num, denom } = self.limits.fail_charge;
        let charged = match denom {
            0 => size,
            _ => {
                let applied = applied.min(size);
                applied + (u128::from(size - applied) * u128::from(num) / u128::from(denom)) as u64
            }
        };
        self.charged_bytes = self.charged_bytes.saturating_add(charged);
        self.total_bytes = self.total_bytes.saturating_add(charged);
        self.total_ns = self.total_ns.saturating_add(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Metric;

    const RULES: QuotaRules = QuotaRules {
        first_window: FirstWindow::Computed,
        zero_is_nothing: true,
        full_below_region: true,
        psi_since_boot: false,
        min_region_size: 4096,
    };
    const OLD: QuotaRules = QuotaRules {
        first_window: FirstWindow::Unlimited,
        zero_is_nothing: false,
        full_below_region: false,
        ..RULES
    };

    fn quota(ms: u64, bytes: u64) -> Quota {
        Quota::new(QuotaLimits { ms, bytes, reset_interval_ms: 1000, ..QuotaLimits::default() })
    }

    fn no_goals(_: &Goal) -> u64 {
        unreachable!("there is none")
    }

    #[test]
    fn first_window_of_time_and_bytes_is_40_mib() {
        let mut of = quota(10, 128 << 20);
        assert!(!of.adjust(&RULES, 0, no_goals));
        assert_eq!(of.effective_bytes(), 40 << 20);
    }

    #[test]
    fn first_window_without_limit_begins_the_clock() {
        let mut of = quota(10, 128 << 20);
        of.adjust(&OLD, 0, no_goals);
        of.charge(1 << 40, 1 << 40, 1000);
        assert!(!of.is_full(&OLD) && !of.limits_now(&OLD));
        assert!(!of.adjust(&OLD, 999_999_999, no_goals) && !of.limits_now(&OLD));
        assert!(!of.adjust(&OLD, 1_000_000_000, no_goals), "what had no limit was not full");
        assert!(of.limits_now(&OLD));
    }

    #[test]
    fn time_limit_follows_the_measured_throughput() {
        let mut of = quota(10, 0);
        of.adjust(&RULES, 0, no_goals);
        of.charge(1 << 20, 0, 4_000_000);
        of.adjust(&RULES, 1_000_000_000, no_goals);
        assert_eq!(of.effective_bytes(), (1 << 18) * 10, "256 KiB per ms, for 10 ms");
    }

    #[test]
    fn full_quota_counts_as_exceeded_in_the_next_window() {
        let mut of = quota(0, 10_000);
        of.adjust(&RULES, 0, no_goals);
        of.charge(8192, 8192, 0);
        assert!(of.is_full(&RULES), "less than a page is left");
        assert!(!of.is_full(&OLD));
        assert!(!of.clone().adjust(&RULES, 1_000_000_000, no_goals));
        of.charge(4096, 0, 0);
        assert!(of.adjust(&RULES, 1_000_000_000, no_goals));
        assert_eq!(of.charged_bytes(), 0);
    }

    #[test]
    fn highest_score_of_all_goals_counts() {
        let goals = vec![Goal::new(Metric::NodeMemFreeBp(0), 100), Goal::new(Metric::ActiveMemBp, 100)];
        let mut of = Quota::new(QuotaLimits { goals, reset_interval_ms: 1, ..QuotaLimits::default() });
        of.size_bp = 1_000_000;
        let value = |goal: &Goal| if goal.metric == Metric::ActiveMemBp { 150 } else { 0 };
        of.adjust(&RULES, 0, value);
        assert_eq!(of.effective_bytes(), 50, "a score of 15,000 halves it");
    }

    #[test]
    fn failed_bytes_are_charged_by_their_share() {
        let mut of = quota(0, 1 << 30);
        of.limits.fail_charge = FailCharge { num: 1, denom: 1024 };
        of.charge(1 << 20, 1 << 19, 0);
        assert_eq!(of.charged_bytes(), (1 << 19) + (1 << 9));
        of.charge(4096, 8192, 0);
        assert_eq!(of.charged_bytes(), (1 << 19) + (1 << 9) + 4096, "no more than its size");
    }

    #[test]
    fn reached_goal_allows_nothing_by_rule() {
        let goals = vec![Goal::new(Metric::ActiveMemBp, 100)];
        let mut of = Quota::new(QuotaLimits { goals, tuner: Tuner::Temporal, ..QuotaLimits::default() });
        of.adjust(&RULES, 0, |_| 100);
        assert!(of.is_full(&RULES) && !of.is_full(&OLD));
    }
}
