//! Snapshots of the engine's counters, and how they changed since one.

use pageout_engine::{Engine, MemcgId, Stat};

/// Counters at a moment.
pub(super) struct Snapshot {
    pub(super) vmstat: Vec<i64>,
    pub(super) memcg: Vec<i64>,
}

impl Snapshot {
    pub(super) fn take(engine: &Engine, group: MemcgId) -> Snapshot {
        Snapshot {
            vmstat: Stat::ALL.iter().map(|&stat| engine.figures().vmstat(stat)).collect(),
            memcg: Stat::ALL.iter().map(|&stat| engine.figures().memcg_stat_now(group, stat)).collect(),
        }
    }

    pub(super) fn to(
        &self,
        after: &Snapshot,
        of: impl Fn(&Snapshot) -> &Vec<i64>,
    ) -> Vec<(&'static str, i64)> {
        let names = Stat::ALL.iter().map(|stat| stat.name());
        names
            .zip(of(self).iter().zip(of(after)))
            .map(|(name, (before, after))| (name, after - before))
            .collect()
    }
}
