//! The modules with fixed schemes: DAMON_RECLAIM, DAMON_LRU_SORT, DAMON_STAT. [access-aware 3.3]
//!
//! Each runs its kdamond alone: no other one may run at the same time.

use crate::attrs::{Attrs, IntervalsGoal};
use crate::filter::{Filter, OpsFilter};
use crate::goal::{Goal, Metric};
use crate::quota::{QuotaLimits, Weights};
use crate::scheme::{Action, Pattern, SchemeSpec};
use crate::target::Target;
use crate::watermark::{WatermarkMetric, Watermarks};

/// The intervals of DAMON_RECLAIM and DAMON_LRU_SORT: their ranges are never looked up again.
pub const ATTRS: Attrs = Attrs {
    sample_us: 5_000,
    aggr_us: 100_000,
    update_us: 0,
    min_regions: 10,
    max_regions: 1_000,
    min_region_size: 4_096,
    intervals_goal: IntervalsGoal { access_bp: 0, aggrs: 0, min_sample_us: 0, max_sample_us: 0 },
};

/// A goal for intervals of at least 5 ms and at most 10 s.
const fn intervals_goal(access_bp: u64) -> IntervalsGoal {
    IntervalsGoal { access_bp, aggrs: 3, min_sample_us: 5_000, max_sample_us: 10_000_000 }
}

/// The attributes of a module whose intervals are tuned or not.
pub const fn attrs(autotune_monitoring_intervals: bool) -> Attrs {
    match autotune_monitoring_intervals {
        true => Attrs { intervals_goal: intervals_goal(40), ..ATTRS },
        false => ATTRS,
    }
}

/// The attributes of DAMON_STAT, which has no schemes.
pub const STAT_ATTRS: Attrs = Attrs { update_us: 60_000_000, intervals_goal: intervals_goal(400), ..ATTRS };

/// Parameters of DAMON_RECLAIM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reclaim {
    /// Microseconds without an access after which a region is reclaimed.
    pub min_age_us: u64,
    /// Milliseconds of each interval that it may use.
    pub quota_ms: u64,
    /// Bytes of each interval that it may reclaim.
    pub quota_sz: u64,
    /// Milliseconds of an interval.
    pub quota_reset_interval_ms: u64,
    /// The wanted stall of an interval, in microseconds; 0: no goal.
    pub quota_mem_pressure_us: u64,
    /// The score that a user has written; 0: no goal.
    pub quota_autotune_feedback: u64,
    /// Anonymous pages stay.
    pub skip_anon: bool,
    /// Free memory within which it runs.
    pub watermarks: Watermarks,
}

impl Default for Reclaim {
    fn default() -> Reclaim {
        Reclaim {
            min_age_us: 120_000_000,
            quota_ms: 10,
            quota_sz: 128 << 20,
            quota_reset_interval_ms: 1_000,
            quota_mem_pressure_us: 0,
            quota_autotune_feedback: 0,
            skip_anon: false,
            watermarks: watermarks(500, 400, 200),
        }
    }
}

impl Reclaim {
    /// Its scheme, for a kdamond with these intervals.
    pub fn scheme(&self, attrs: &Attrs) -> SchemeSpec {
        let mut goals = Vec::new();
        if self.quota_mem_pressure_us > 0 {
            goals.push(Goal::new(Metric::SomeMemPsiUs, self.quota_mem_pressure_us));
        }
        if self.quota_autotune_feedback > 0 {
            let current_value = self.quota_autotune_feedback;
            goals.push(Goal { current_value, ..Goal::new(Metric::UserInput, 10_000) });
        }
        let quota = QuotaLimits {
            ms: self.quota_ms,
            bytes: self.quota_sz,
            reset_interval_ms: self.quota_reset_interval_ms,
            goals,
            weights: Weights { size: 0, nr_accesses: 0, age: 1 },
            ..QuotaLimits::default()
        };
        let skip = Filter { kind: OpsFilter::Anon, matching: true, allow: false };
        SchemeSpec {
            quota,
            watermarks: self.watermarks,
            ops_filters: if self.skip_anon { vec![skip] } else { Vec::new() },
            ..SchemeSpec::new(idle(self.min_age_us, attrs), Action::Pageout)
        }
    }
}

/// Parameters of DAMON_LRU_SORT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruSort {
    /// Share of samples with an access from which on a region is hot, in 1/1,000.
    pub hot_thres_access_freq: u64,
    /// Microseconds without an access after which a region is cold.
    pub cold_min_age_us: u64,
    /// Milliseconds of each interval that both schemes may use.
    pub quota_ms: u64,
    /// Milliseconds of an interval.
    pub quota_reset_interval_ms: u64,
    /// The wanted share of active lists, in 1/10,000; 0: no goals.
    pub active_mem_bp: u64,
    /// Ages count for priorities.
    pub weighs_age: bool,
    /// Pages are sorted only if they were, or were not, accessed since the last look.
    pub filter_young_pages: bool,
    /// Free memory within which it runs.
    pub watermarks: Watermarks,
}

impl Default for LruSort {
    fn default() -> LruSort {
        LruSort {
            hot_thres_access_freq: 500,
            cold_min_age_us: 120_000_000,
            quota_ms: 10,
            quota_reset_interval_ms: 1_000,
            active_mem_bp: 0,
            weighs_age: false,
            filter_young_pages: false,
            watermarks: watermarks(200, 150, 50),
        }
    }
}

impl LruSort {
    /// Its schemes for hot and for cold regions, for a kdamond with these intervals.
    pub fn schemes(&self, attrs: &Attrs) -> [SchemeSpec; 2] {
        let hot_from = u64::from(attrs.samples()) * self.hot_thres_access_freq / 1_000;
        let hot = Pattern {
            size: attrs.min_region_size..=u64::MAX,
            nr_accesses: u32::try_from(hot_from).unwrap_or(u32::MAX)..=u32::MAX,
            age: 0..=u32::MAX,
        };
        let scheme = |pattern, action, goal: Goal, allows_young: bool| SchemeSpec {
            quota: QuotaLimits {
                ms: self.quota_ms / 2,
                reset_interval_ms: self.quota_reset_interval_ms,
                goals: if self.active_mem_bp > 0 { vec![goal] } else { Vec::new() },
                weights: Weights { size: 0, nr_accesses: 1, age: u32::from(self.weighs_age) },
                ..QuotaLimits::default()
            },
            watermarks: self.watermarks,
            ops_filters: match self.filter_young_pages {
                true => vec![Filter { kind: OpsFilter::Young, matching: true, allow: allows_young }],
                false => Vec::new(),
            },
            ..SchemeSpec::new(pattern, action)
        };
        let active = Goal::new(Metric::ActiveMemBp, self.active_mem_bp);
        let inactive = Goal::new(Metric::InactiveMemBp, (10_000 + 2u64).saturating_sub(self.active_mem_bp));
        let cold = idle(self.cold_min_age_us, attrs);
        [scheme(hot, Action::LruPrio, active, true), scheme(cold, Action::LruDeprio, inactive, false)]
    }
}

/// Regions without an access for so long.
fn idle(min_age_us: u64, attrs: &Attrs) -> Pattern {
    let windows = u32::try_from(min_age_us / attrs.aggr_us.max(1)).unwrap_or(u32::MAX);
    Pattern { size: attrs.min_region_size..=u64::MAX, nr_accesses: 0..=0, age: windows..=u32::MAX }
}

fn watermarks(high: u64, mid: u64, low: u64) -> Watermarks {
    Watermarks { metric: WatermarkMetric::FreeMemRate, interval_us: 5_000_000, high, mid, low }
}

/// What DAMON_STAT shows of a finished window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Bytes per second that were accessed at least.
    pub estimated_memory_bandwidth: u64,
    /// Milliseconds without an access: of each percent of the bytes, from the least on. Memory in use counts as 0, or as less.
    pub memory_idle_ms_percentiles: Vec<i64>,
}

/// What DAMON_STAT shows of these targets. `is_signed`: the time in use is negative.
pub fn stat(targets: &[Target], attrs: &Attrs, is_signed: bool) -> Stat {
    let regions = || targets.iter().flat_map(Target::regions);
    let accessed: u128 =
        regions().map(|region| u128::from(region.size()) * u128::from(region.nr_accesses)).sum();
    let idle_us = |region: &crate::Region| -> i128 {
        let us = (i128::from(region.age) + 1) * i128::from(attrs.aggr_us);
        match region.nr_accesses {
            0 => us,
            _ if is_signed => -us,
            _ => 0,
        }
    };
    let mut sorted: Vec<(i128, u64)> = regions().map(|region| (idle_us(region), region.size())).collect();
    sorted.sort_by_key(|&(idle, _)| idle);
    let total: u128 = sorted.iter().map(|&(_, size)| u128::from(size)).sum();
    let (mut percentiles, mut sum) = (Vec::with_capacity(101), 0u128);
    for (idle, size) in sorted {
        sum += u128::from(size);
        while percentiles.len() <= 100 && percentiles.len() as u128 * total <= sum * 100 {
            percentiles.push((idle / 1_000) as i64);
        }
    }
    let bandwidth = accessed * 1_000_000 / u128::from(attrs.aggr_us.max(1));
    Stat {
        estimated_memory_bandwidth: u64::try_from(bandwidth).unwrap_or(u64::MAX),
        memory_idle_ms_percentiles: percentiles,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    #[test]
    fn reclaim_defaults_are_those_of_the_module() {
        let scheme = Reclaim::default().scheme(&attrs(false));
        assert_eq!(scheme.pattern.age, 1200..=u32::MAX, "120 s in windows of 100 ms");
        assert_eq!(scheme.pattern.nr_accesses, 0..=0);
        assert_eq!((scheme.quota.ms, scheme.quota.bytes), (10, 128 << 20));
        assert!(scheme.ops_filters.is_empty() && scheme.quota.goals.is_empty());
    }

    #[test]
    fn lru_sort_goals_overlap_by_two() {
        let [hot, cold] = LruSort { active_mem_bp: 6_000, ..LruSort::default() }.schemes(&attrs(false));
        assert_eq!(hot.pattern.nr_accesses, 10..=u32::MAX);
        assert_eq!((hot.quota.ms, cold.quota.ms), (5, 5));
        assert_eq!((hot.quota.goals[0].target_value, cold.quota.goals[0].target_value), (6_000, 4_002));
    }

    #[test]
    fn stat_counts_bandwidth_and_idle_time_by_bytes() {
        let region = |start, end, nr_accesses, age| Region { nr_accesses, age, ..Region::new(start, end) };
        let targets = [Target { regions: vec![region(0, 900, 0, 9), region(900, 1000, 5, 1)] }];
        let of = stat(&targets, &ATTRS, true);
        assert_eq!(of.estimated_memory_bandwidth, 100 * 5 * 10);
        assert_eq!(of.memory_idle_ms_percentiles.len(), 101);
        assert_eq!(of.memory_idle_ms_percentiles[..=10], [-200; 11]);
        assert_eq!(of.memory_idle_ms_percentiles[11..], [1_000; 90]);
        assert_eq!(stat(&targets, &ATTRS, false).memory_idle_ms_percentiles[0], 0);
        assert!(stat(&[], &ATTRS, true).memory_idle_ms_percentiles.is_empty());
    }
}
