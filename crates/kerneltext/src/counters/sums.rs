//! Sums of counters: kernels have split some of them by zone, by reclaimer or by type, and each split has changed.
//!
//! A sum is known only if all its parts are: none fell, and none is in one of the snapshots alone.

use std::fmt;

use super::change::{Change, CounterState};
use super::snapshot::FileKind;

/// A sum of counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The sum of their differences.
    pub total: u64,
    /// The counters by name, with their differences.
    pub of: Vec<(String, u64)>,
}

impl Sum {
    /// One sum of all `parts`.
    pub fn joined(parts: &[Sum]) -> Sum {
        Sum {
            total: parts.iter().fold(0, |total, sum| total.saturating_add(sum.total)),
            of: parts.iter().flat_map(|sum| sum.of.iter().cloned()).collect(),
        }
    }
}

/// Counters to add up.
#[derive(Clone, Copy, Debug)]
pub enum Counters<'a> {
    /// The first of these names that a snapshot has: kernels have renamed the counter.
    FirstOf(&'a [&'a str]),
    /// All of these.
    AllOf(&'a [&'a str]),
    /// As many of these as the kernel has, at least one.
    AnyOf(&'a [&'a str]),
    /// This counter, or its parts for all zones on a kernel that has one per zone.
    AllZones(&'a str),
    /// The parts of this counter for all reclaimers (`_kswapd`, `_direct` and so on), each over all zones.
    AllReclaimers(&'a str),
}

/// A counter whose difference is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingCounter {
    /// It is lower in the later snapshot.
    #[error("{0} went back")]
    Fell(String),
    /// Only one of the snapshots has it.
    #[error("{0} is in one file only")]
    InOneFile(String),
    /// No snapshot has it.
    #[error("no {0}")]
    Absent(String),
}

/// Counters that a sum lacks; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCounters(pub Vec<MissingCounter>);

impl fmt::Display for MissingCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, counter) in self.0.iter().enumerate() {
            write!(f, "{}{counter}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for MissingCounters {}

/// Pages that reclaim scanned or freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclaimed {
    /// All that the counters have.
    pub all: Sum,
    /// The part of it at cgroups' limits. Kernels before 7.1 leave it out of the counters by reclaimer, and have it in those by type.
    /// Errors: counters by type or by reclaimer are missing, so the part is unknown. On such a kernel `all` lacks it.
    pub at_limits: Result<u64, MissingCounters>,
}

/// Zones of all kernels, as counters' names end.
const ZONES: [&str; 6] = ["_dma", "_dma32", "_normal", "_high", "_movable", "_device"];

/// Counters that have one part per zone, on some kernels or on all.
const BY_ZONE: [&str; 8] = [
    "pgalloc",
    "pgskip",
    "allocstall",
    "pgrefill",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
];

/// Reclaimers, as counters' names end.
const RECLAIMERS: [&str; 4] = ["kswapd", "direct", "khugepaged", "proactive"];

impl Change {
    /// The sum of these counters. Errors: all counters that are missing.
    pub fn sum(&self, counters: &Counters<'_>) -> Result<Sum, MissingCounters> {
        match *counters {
            Counters::FirstOf(names) => {
                let found = names.iter().find(|name| self.state(name) != CounterState::Absent);
                self.one(found.or(names.first()).copied().unwrap_or_default())
            }
            Counters::AllOf(names) => joined_all(names.iter().map(|name| self.one(name))),
            Counters::AllZones(begin) => self.zones(begin),
            Counters::AllReclaimers(what) => {
                let is_there = |who: &&str| {
                    let has = |what: &str| self.has_zones(&format!("{what}_{who}"));
                    // Each reclaimer scans and frees: one of the two counters alone is incomplete.
                    ["kswapd", "direct"].contains(who) || has("pgscan") || has("pgsteal")
                };
                let parts = RECLAIMERS.into_iter().filter(is_there);
                joined_all(parts.map(|who| self.zones(&format!("{what}_{who}"))))
            }
            Counters::AnyOf(names) => {
                let there: Vec<&str> =
                    names.iter().copied().filter(|name| self.state(name) != CounterState::Absent).collect();
                let looked_for = if there.is_empty() { names.get(..1).unwrap_or_default() } else { &there };
                joined_all(looked_for.iter().map(|name| self.one(name)))
            }
        }
    }

    /// Returns true if this counter has one part per zone in these snapshots.
    pub fn is_by_zone(&self, begin: &str) -> bool {
        self.state(begin) == CounterState::Absent && self.has_zones(begin)
    }

    /// Pages that reclaim scanned. Errors: the counters that are missing.
    pub fn scanned(&self) -> Result<Reclaimed, MissingCounters> {
        self.reclaimed("pgscan", &Counters::AllOf(&["pgscan_anon", "pgscan_file"]))
    }

    /// Pages that reclaim freed. Errors: the counters that are missing.
    pub fn freed(&self) -> Result<Reclaimed, MissingCounters> {
        self.reclaimed("pgsteal", &Counters::AllOf(&["pgsteal_anon", "pgsteal_file"]))
    }

    /// The sum over all types and reclaimers.
    fn reclaimed(&self, name: &str, by_type: &Counters<'_>) -> Result<Reclaimed, MissingCounters> {
        // A cgroup's own file has the sum itself.
        if self.state(name) != CounterState::Absent {
            return Ok(Reclaimed { all: self.one(name)?, at_limits: Ok(0) });
        }
        let has_reclaimers = RECLAIMERS.iter().any(|who| self.has_zones(&format!("{name}_{who}")));
        let by_type = self.sum(by_type);
        let by_reclaimer = self.sum(&Counters::AllReclaimers(name));
        if !has_reclaimers && let Ok(by_type) = by_type {
            return Ok(Reclaimed { all: by_type, at_limits: by_reclaimer.map(|_| 0) });
        }
        let by_reclaimer = by_reclaimer?;
        if self.kind != FileKind::Vmstat {
            return Ok(Reclaimed { all: by_reclaimer, at_limits: Ok(0) });
        }
        Ok(match by_type {
            // The kernel adds to the two one after the other, so they may differ by a few.
            Ok(by_type) => {
                let total = by_reclaimer.total.max(by_type.total);
                let at_limits = by_type.total.saturating_sub(by_reclaimer.total);
                let of = Sum::joined(&[by_reclaimer, by_type]).of;
                Reclaimed { all: Sum { total, of }, at_limits: Ok(at_limits) }
            }
            Err(missing) => Reclaimed { all: by_reclaimer, at_limits: Err(missing) },
        })
    }

    fn one(&self, name: &str) -> Result<Sum, MissingCounters> {
        let missing = match self.state(name) {
            CounterState::Grew(change) => {
                return Ok(Sum { total: change, of: vec![(name.to_string(), change)] });
            }
            CounterState::Fell => MissingCounter::Fell(name.to_string()),
            CounterState::InOneFile => MissingCounter::InOneFile(name.to_string()),
            CounterState::Absent => MissingCounter::Absent(name.to_string()),
        };
        Err(MissingCounters(vec![missing]))
    }

    fn has_zones(&self, begin: &str) -> bool {
        self.state(begin) != CounterState::Absent
            || ZONES.iter().any(|zone| self.state(&format!("{begin}{zone}")) != CounterState::Absent)
    }

    /// The sum over all zones that any of the counters by zone has.
    fn zones(&self, begin: &str) -> Result<Sum, MissingCounters> {
        if !self.is_by_zone(begin) {
            return self.one(begin);
        }
        let is_there = |zone: &&str| {
            BY_ZONE.iter().any(|family| self.state(&format!("{family}{zone}")) != CounterState::Absent)
        };
        joined_all(ZONES.into_iter().filter(is_there).map(|zone| self.one(&format!("{begin}{zone}"))))
    }
}

/// One sum of all. Errors: every part that is missing.
fn joined_all(parts: impl Iterator<Item = Result<Sum, MissingCounters>>) -> Result<Sum, MissingCounters> {
    let (mut sums, mut missing) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Ok(sum) => sums.push(sum),
            Err(MissingCounters(more)) => missing.extend(more),
        }
    }
    if missing.is_empty() { Ok(Sum::joined(&sums)) } else { Err(MissingCounters(missing)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Snapshot;

    fn change(before: &str, after: &str) -> Change {
        let (before, after) = (Snapshot::parse(before).unwrap(), Snapshot::parse(after).unwrap());
        Change::of(FileKind::of_both(&before, &after).unwrap(), &before, &after)
    }

    #[test]
    fn sum_over_zones_lacks_the_zone_that_fell() {
        let before = "nr_free_pages 1\npgsteal_kswapd_dma 1\npgsteal_kswapd_normal 10\n";
        let grown = change(before, "nr_free_pages 1\npgsteal_kswapd_dma 2\npgsteal_kswapd_normal 15\n");
        assert!(grown.is_by_zone("pgsteal_kswapd"));
        assert_eq!(grown.sum(&Counters::AllZones("pgsteal_kswapd")).unwrap().total, 6);
        let fallen = change(before, "nr_free_pages 1\npgsteal_kswapd_dma 2\npgsteal_kswapd_normal 9\n");
        let missing = fallen.sum(&Counters::AllZones("pgsteal_kswapd")).unwrap_err();
        assert_eq!(missing.to_string(), "pgsteal_kswapd_normal went back");
    }

    #[test]
    fn pages_freed_at_limits_are_by_type_only() {
        let text = |kswapd: u64, anon: u64, file: u64| {
            format!(
                "nr_free_pages 1\npgsteal_kswapd {kswapd}\npgsteal_direct 0\npgsteal_anon {anon}\npgsteal_file {file}\n"
            )
        };
        let freed = change(&text(0, 0, 0), &text(10, 5, 9)).freed().unwrap();
        assert_eq!((freed.all.total, freed.at_limits), (14, Ok(4)));
    }

    #[test]
    fn sum_of_any_lacks_the_first_name_if_none_is_there() {
        let change = change("nr_free_pages 1\n", "nr_free_pages 2\n");
        let missing = change.sum(&Counters::AnyOf(&["pgdemote_kswapd", "pgdemote_direct"])).unwrap_err();
        assert_eq!(missing.to_string(), "no pgdemote_kswapd");
    }
}
