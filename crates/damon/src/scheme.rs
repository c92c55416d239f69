//! A scheme: an access pattern, an action on the regions that show it, its limits and statistics. [access-aware 2]

use crate::attrs::Attrs;
use crate::filter::{CoreFilter, Filter, OpsFilter};
use crate::priority::{HOTTEST, hot_score};
use crate::quota::{Quota, QuotaLimits, Resume};
use crate::watermark::Watermarks;
use std::ops::RangeInclusive;

/// What a scheme does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Action {
    /// Nothing: it counts.
    #[default]
    Stat,
    /// Reclaims.
    Pageout,
    /// Deactivates pages of a process.
    Cold,
    /// Moves to the hot end of a list.
    LruPrio,
    /// Moves to the cold end of a list.
    LruDeprio,
    /// Moves hot pages to this node.
    MigrateHot(u8),
    /// Moves cold pages to this node.
    MigrateCold(u8),
}

impl Action {
    /// The word of sysfs.
    pub fn name(self) -> &'static str {
        match self {
            Action::Stat => "stat",
            Action::Pageout => "pageout",
            Action::Cold => "cold",
            Action::LruPrio => "lru_prio",
            Action::LruDeprio => "lru_deprio",
            Action::MigrateHot(_) => "migrate_hot",
            Action::MigrateCold(_) => "migrate_cold",
        }
    }
}

/// Which regions a scheme is for. Both ends count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Bytes.
    pub size: RangeInclusive<u64>,
    /// Samples of a window with an access.
    pub nr_accesses: RangeInclusive<u32>,
    /// Windows without a change.
    pub age: RangeInclusive<u32>,
}

impl Pattern {
    /// Every region.
    pub const ANY: Pattern = Pattern { size: 0..=u64::MAX, nr_accesses: 0..=u32::MAX, age: 0..=u32::MAX };

    pub(crate) fn fits(&self, size: u64, nr_accesses: u32, age: u32) -> bool {
        self.size.contains(&size) && self.nr_accesses.contains(&nr_accesses) && self.age.contains(&age)
    }
}

/// What a user sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemeSpec {
    /// Which regions it is for.
    pub pattern: Pattern,
    /// What it does.
    pub action: Action,
    /// Microseconds between two applications; 0: a window.
    pub apply_interval_us: u64,
    /// How much it may do.
    pub quota: QuotaLimits,
    /// When it is active.
    pub watermarks: Watermarks,
    /// Filters by address.
    pub core_filters: Vec<Filter<CoreFilter>>,
    /// Filters by folio.
    pub ops_filters: Vec<Filter<OpsFilter>>,
    /// Applications after which it does nothing more; 0: it goes on.
    pub max_nr_snapshots: u64,
}

impl SchemeSpec {
    /// A scheme without limits that is always active.
    pub fn new(pattern: Pattern, action: Action) -> SchemeSpec {
        SchemeSpec {
            pattern,
            action,
            apply_interval_us: 0,
            quota: QuotaLimits::default(),
            watermarks: Watermarks::default(),
            core_filters: Vec::new(),
            ops_filters: Vec::new(),
            max_nr_snapshots: 0,
        }
    }
}

/// What a scheme has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchemeStats {
    /// Regions that it was tried on.
    pub nr_tried: u64,
    /// Their bytes.
    pub sz_tried: u64,
    /// Regions in which it had an effect.
    pub nr_applied: u64,
    /// Bytes that it had an effect on.
    pub sz_applied: u64,
    /// Windows in which its quota was full.
    pub qt_exceeds: u64,
    /// Bytes that the filters by folio have passed.
    pub sz_ops_filter_passed: u64,
    /// Applications.
    pub nr_snapshots: u64,
}

/// A scheme of a kdamond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheme {
    pub(crate) spec: SchemeSpec,
    /// Its quota, with what was charged.
    pub quota: Quota,
    /// What it has done.
    pub stats: SchemeStats,
    pub(crate) is_active: bool,
    /// The sample from which on it is due.
    pub(crate) next: u64,
    pub(crate) is_due: bool,
    /// The end of the addresses that the last window of its quota has handled.
    pub(crate) skip_to: Option<Resume>,
}

impl Scheme {
    pub(crate) fn new(spec: SchemeSpec) -> Scheme {
        let quota = Quota::new(spec.quota.clone());
        Scheme {
            spec,
            quota,
            stats: SchemeStats::default(),
            is_active: true,
            next: 0,
            is_due: false,
            skip_to: None,
        }
    }

    /// The settings of the user.
    pub fn spec(&self) -> &SchemeSpec {
        &self.spec
    }

    /// Samples between two applications.
    pub(crate) fn interval(&self, attrs: &Attrs) -> u64 {
        let us = match self.spec.apply_interval_us {
            0 => attrs.aggr_us,
            us => us,
        };
        (us / attrs.sample_us.max(1)).max(1)
    }

    /// The priority of a region.
    pub(crate) fn score(&self, attrs: &Attrs, nr_accesses: u32, age: u32) -> u32 {
        let hot = || hot_score(nr_accesses, attrs.samples(), age, attrs.aggr_us, &self.quota.limits.weights);
        match self.spec.action {
            Action::Pageout | Action::LruDeprio | Action::MigrateCold(_) => HOTTEST - hot(),
            Action::LruPrio | Action::MigrateHot(_) => hot(),
            Action::Stat | Action::Cold => HOTTEST,
        }
    }
}
