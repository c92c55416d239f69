//! Kdamonds in a result: how each has sampled, and what its schemes did.

use pageout_engine::{Engine, KdamondFigures, SchemeFigures};
use serde::Serialize;

/// A kdamond, of a module or of `[[damon]]`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KdamondResult {
    /// The name of its thread.
    pub name: String,
    /// Windows that are over.
    pub windows: u64,
    /// Regions at the end.
    pub regions: u64,
    /// The sample interval at the end.
    pub sample_us: u64,
    /// The aggregation interval at the end.
    pub aggr_us: u64,
    /// Its schemes, in order.
    pub schemes: Vec<SchemeResult>,
}

/// What a scheme did, by the names of its files in sysfs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SchemeResult {
    /// Its action.
    pub action: &'static str,
    /// Regions that it was tried on.
    pub nr_tried: u64,
    /// Their bytes.
    pub sz_tried: u64,
    /// Regions in which it had an effect.
    pub nr_applied: u64,
    /// Bytes that it had an effect on.
    pub sz_applied: u64,
    /// Bytes that its filters by page let through.
    pub sz_ops_filter_passed: u64,
    /// Intervals in which its quota was used up.
    pub qt_exceeds: u64,
    /// Applications.
    pub nr_snapshots: u64,
    /// The size of its quota at the end; 0 without one.
    pub effective_bytes: u64,
}

impl KdamondResult {
    /// The kdamonds of a machine, in the order of their numbers.
    pub fn all(engine: &Engine) -> Vec<KdamondResult> {
        engine.kdamonds().iter().enumerate().map(|(number, of)| KdamondResult::of(number, of)).collect()
    }

    fn of(number: usize, kdamond: &KdamondFigures) -> KdamondResult {
        KdamondResult {
            name: format!("kdamond.{number}"),
            windows: kdamond.windows,
            regions: kdamond.regions,
            sample_us: kdamond.attrs.sample_us,
            aggr_us: kdamond.attrs.aggr_us,
            schemes: kdamond.schemes.iter().map(SchemeResult::of).collect(),
        }
    }
}

impl SchemeResult {
    fn of(scheme: &SchemeFigures) -> SchemeResult {
        let stats = &scheme.stats;
        SchemeResult {
            action: scheme.spec.action.name(),
            nr_tried: stats.nr_tried,
            sz_tried: stats.sz_tried,
            nr_applied: stats.nr_applied,
            sz_applied: stats.sz_applied,
            sz_ops_filter_passed: stats.sz_ops_filter_passed,
            qt_exceeds: stats.qt_exceeds,
            nr_snapshots: stats.nr_snapshots,
            effective_bytes: scheme.effective_bytes,
        }
    }
}
