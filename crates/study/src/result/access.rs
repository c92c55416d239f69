//! Access times in a result: how long accesses took, and the causes to which they lost time.

use std::collections::BTreeMap;

use pageout_sim::latency::LatencySummary;
use pageout_sim::{AccessReport, AccessTimes, Cause, Slowest, TaskReport};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::figures;
use crate::result::run_result::Latency;

/// Durations of the accesses of a task, or of the tasks of a group. An access is a load, a store, or a call of read(2) or write(2), hits
/// included. It begins when its task is ready for it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AccessResult {
    /// Of all of it.
    #[serde(flatten)]
    pub all: Latency,
    /// The time that accesses lost to each cause, if any.
    pub by_cause: ByCause<Latency>,
    /// The rest of the sum.
    pub own_work_ns: u64,
    /// The causes of the slowest one in a hundred.
    pub slowest: SlowestResult,
    /// Calls of fsync(2), which stand between accesses.
    #[serde(skip_serializing_if = "is_none")]
    pub fsync: Latency,
}

/// The slowest one in a hundred accesses, and those that took about as long.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SlowestResult {
    /// The fastest of them took so long.
    pub from_ns: u64,
    /// The number of the slowest accesses.
    pub count: u64,
    /// Their total time.
    pub total_ns: u64,
    /// The part of that for each cause.
    pub by_cause_ns: ByCause<u64>,
}

/// Figures by cause, of those causes that there were.
#[derive(Debug, Clone)]
pub struct ByCause<T>(pub Vec<(Cause, T)>);

impl<T> Default for ByCause<T> {
    fn default() -> ByCause<T> {
        ByCause(Vec::new())
    }
}

impl<T> ByCause<T> {
    /// The figure of a cause, if there was any.
    pub fn get(&self, cause: Cause) -> Option<&T> {
        self.0.iter().find(|(of, _)| *of == cause).map(|(_, figure)| figure)
    }
}

impl<T: Serialize> Serialize for ByCause<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (cause, figure) in &self.0 {
            map.serialize_entry(cause.name(), figure)?;
        }
        map.end()
    }
}

fn is_none(latency: &Latency) -> bool {
    latency.count == 0
}

impl AccessResult {
    /// All that was lost.
    pub fn lost_ns(&self) -> u64 {
        self.all.total_ns - self.own_work_ns
    }

    /// Shares of the time of the slowest accesses, by the cause that took it.
    pub fn slowest_share(&self, cause: Cause) -> f64 {
        figures::share(self.slowest.by_cause_ns.get(cause).copied().unwrap_or(0), self.slowest.total_ns)
    }
}

impl From<AccessReport> for AccessResult {
    fn from(report: AccessReport) -> AccessResult {
        let AccessReport { all, by_cause, own_work, slowest, syncs } = report;
        let latency = |(cause, summary): (Cause, LatencySummary)| (cause, Latency::from(summary));
        AccessResult {
            all: all.into(),
            by_cause: ByCause(by_cause.into_iter().map(latency).collect()),
            own_work_ns: own_work.0,
            slowest: slowest.into(),
            fsync: syncs.into(),
        }
    }
}

impl From<Slowest> for SlowestResult {
    fn from(slowest: Slowest) -> SlowestResult {
        let Slowest { from, count, total, by_cause } = slowest;
        SlowestResult {
            from_ns: from.0,
            count,
            total_ns: total.0,
            by_cause_ns: ByCause(by_cause.into_iter().map(|(cause, lost)| (cause, lost.0)).collect()),
        }
    }
}

/// The name that a task shares with its copies: `reader` of `reader.0`.
pub fn shared_name(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((shared, copy)) if copy.bytes().all(|byte| byte.is_ascii_digit()) && !copy.is_empty() => shared,
        _ => name,
    }
}

/// The accesses of all copies of each task that has several.
pub fn of_copies(tasks: &[TaskReport]) -> BTreeMap<String, AccessResult> {
    let mut copies: BTreeMap<&str, AccessTimes> = BTreeMap::new();
    for task in tasks.iter().filter(|task| shared_name(&task.name) != task.name) {
        if let Some(access) = &task.access {
            copies.entry(shared_name(&task.name)).or_default().merge(access);
        }
    }
    copies.into_iter().map(|(name, times)| (name.to_string(), times.report().into())).collect()
}
