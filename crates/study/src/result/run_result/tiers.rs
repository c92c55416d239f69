//! Fast and slow memory: which accesses found their page where, and what moved.

use pageout_sim::{Residency, TierReport};
use serde::Serialize;

use super::{Counters, Latency, times};

/// Fast and slow memory.
#[derive(Debug, Clone, Serialize)]
pub struct TiersResult {
    /// Accesses to the top tier, of all.
    pub fast_hit_ratio: Option<f64>,
    /// Pages that went to the top tier.
    pub promoted: u64,
    /// Pages that went from the top tier.
    pub demoted: u64,
    /// Pages promoted or demoted that went back within ten seconds.
    pub ping_pong: u64,
    /// Bytes moved between nodes for each that was accessed.
    pub moved_per_useful_byte: f64,
    /// The time when the share of the top tier first reached nine tenths of its last value, unless it began there.
    pub converged_ns: Option<u64>,
    /// True if it was there from the start.
    pub converged_from_start: bool,
    /// The longest time below it: that of the slowest phase to converge.
    pub longest_below_ns: Option<u64>,
    /// The time of accesses.
    pub access: Latency,
    /// Accesses by node, in order.
    pub accesses_by_node: Vec<u64>,
    /// The memory of records of hot pages.
    pub hotness_bytes: u64,
    /// The same for each GiB of slow memory.
    pub hotness_bytes_per_slow_gib: u64,
    /// CPU time that it took to know which pages are in use.
    pub tracker_ns: u64,
    /// The same by who noticed.
    pub tracker_by_part_ns: Counters,
    /// The part of accesses that the top tier would have served at best, with as many promotions.
    pub offline_fast_hit_ratio: Option<f64>,
    /// For each node, true if it is in the top tier.
    pub top_tier: Vec<bool>,
    /// Pages by node and time, for a chart.
    #[serde(skip)]
    pub residency: Residency,
}

impl From<TierReport> for TiersResult {
    fn from(report: TierReport) -> TiersResult {
        let (promoted, demoted) = report.promoted_and_demoted();
        TiersResult {
            fast_hit_ratio: report.fast_share(),
            promoted,
            demoted,
            ping_pong: report.ping_pong,
            moved_per_useful_byte: report.moved_per_useful_byte(),
            converged_ns: report.converged.and_then(|converged| converged.by).map(|at| at.0),
            converged_from_start: report.converged.is_some_and(|converged| converged.by.is_none()),
            longest_below_ns: report.converged.map(|converged| converged.longest_below.0),
            access: report.latency.into(),
            hotness_bytes: report.hotness_bytes,
            hotness_bytes_per_slow_gib: (u128::from(report.hotness_bytes) << 30)
                .checked_div(report.slow_bytes.into())
                .unwrap_or(0) as u64,
            tracker_ns: report.tracker.total().0,
            tracker_by_part_ns: times(&report.tracker.parts()),
            offline_fast_hit_ratio: report.best_fast_share,
            top_tier: report.nodes.iter().map(|node| node.is_top_tier).collect(),
            accesses_by_node: report.nodes.iter().map(|node| node.accesses).collect(),
            residency: report.residency,
        }
    }
}

impl TiersResult {
    /// Pages that went back soon, of all that went.
    pub fn ping_pong_ratio(&self) -> f64 {
        crate::figures::share(self.ping_pong, self.promoted + self.demoted)
    }
}
