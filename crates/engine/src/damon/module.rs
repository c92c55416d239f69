//! The modules of DAMON as kernel parameters configure them. [access-aware 3.3]

use crate::config::Config;
use pageout_damon::modules::{self, LruSort, Reclaim};
use pageout_damon::{Attrs, Between, FilterOrder, FirstWindow, OverHalf, Rules, SchemeSpec};
use pageout_damon::{WatermarkMetric, Watermarks};
use pageout_rules::damon::{
    self as rules, AccessCount, DamonRules, MinRegions, QuotaFull, SplitOverHalf, WindowEnd,
};

/// The kdamond of the enabled module: its intervals and schemes. `None`: no module is enabled.
pub(super) fn of(config: &Config) -> Option<(Attrs, Vec<SchemeSpec>)> {
    let attrs = Attrs {
        sample_us: config.damon_sample_interval.into(),
        aggr_us: config.damon_aggr_interval.into(),
        min_regions: config.damon_min_nr_regions.into(),
        max_regions: config.damon_max_nr_regions.into(),
        ..modules::ATTRS
    };
    if config.damon_reclaim {
        return Some((attrs, vec![reclaim(config).scheme(&attrs)]));
    }
    if config.damon_lru_sort {
        return Some((attrs, lru_sort(config).schemes(&attrs).into()));
    }
    config.damon_stat.then_some((modules::STAT_ATTRS, Vec::new()))
}

fn reclaim(config: &Config) -> Reclaim {
    Reclaim {
        min_age_us: config.damon_reclaim_min_age.into(),
        quota_ms: config.damon_reclaim_quota_ms.into(),
        quota_sz: config.damon_reclaim_quota_sz.into(),
        quota_reset_interval_ms: config.damon_reclaim_quota_reset_interval_ms.into(),
        skip_anon: config.damon_reclaim_skip_anon,
        watermarks: watermarks(
            config.damon_reclaim_wmarks_interval,
            [
                config.damon_reclaim_wmarks_high,
                config.damon_reclaim_wmarks_mid,
                config.damon_reclaim_wmarks_low,
            ],
        ),
        ..Reclaim::default()
    }
}

fn lru_sort(config: &Config) -> LruSort {
    LruSort {
        hot_thres_access_freq: config.damon_lru_sort_hot.into(),
        cold_min_age_us: config.damon_lru_sort_cold_min_age.into(),
        quota_ms: config.damon_lru_sort_quota_ms.into(),
        quota_reset_interval_ms: config.damon_lru_sort_quota_reset_interval_ms.into(),
        weighs_age: config.policy.machine.damon.lru_sort_age,
        watermarks: watermarks(
            config.damon_lru_sort_wmarks_interval,
            [
                config.damon_lru_sort_wmarks_high,
                config.damon_lru_sort_wmarks_mid,
                config.damon_lru_sort_wmarks_low,
            ],
        ),
        ..LruSort::default()
    }
}

fn watermarks(interval_us: u32, [high, mid, low]: [u32; 3]) -> Watermarks {
    let [high, mid, low] = [high, mid, low].map(u64::from);
    Watermarks { metric: WatermarkMetric::FreeMemRate, interval_us: interval_us.into(), high, mid, low }
}

/// The rules of a version, as a kdamond takes them.
pub(super) fn rules(rules: &DamonRules) -> Rules {
    Rules {
        window_by_clock: rules.window == WindowEnd::Time,
        apply_intervals: rules.window == WindowEnd::Samples,
        between: match rules.accesses {
            AccessCount::Finished => Between::Finished,
            AccessCount::MovingSum => Between::MovingSum,
            AccessCount::Weighted => Between::Weighted,
        },
        age_zero: rules.age_zero,
        over_half: match rules.split_over_half {
            SplitOverHalf::Nothing => OverHalf::Nothing,
            SplitOverHalf::Rotating => OverHalf::Rotating,
        },
        strict_min_regions: rules.min_regions == MinRegions::EachWindow,
        first_window: match rules.first_window {
            rules::FirstWindow::Computed => FirstWindow::Computed,
            rules::FirstWindow::Unlimited => FirstWindow::Unlimited,
        },
        // A size of 0 limits nothing later, either, if the first window is unlimited.
        zero_is_nothing: rules.first_window == rules::FirstWindow::Computed,
        full_below_region: rules.quota_full == QuotaFull::BelowRegion,
        joins_pieces: rules.join_pieces,
        filter_order: match rules.filter_order {
            rules::FilterOrder::AnyRejects => FilterOrder::AnyRejects,
            rules::FilterOrder::FirstFit => FilterOrder::FirstFit,
        },
        cut_copies_count: rules.cut_copies_count,
        rejected_fill_quota: rules.rejected_fill_quota,
        psi_since_boot: rules.psi_since_boot,
    }
}
