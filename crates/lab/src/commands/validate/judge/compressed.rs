//! Figures of a run whose pages are compressed on their way to swap.
//!
//! How long its disk takes for a write was not recorded, so it is simulated several times. The median simulation is judged like a
//! single one, but what lies between two repeats of the kernel passes in any case: they scan up to 1.8 % more or less than each
//! other. Some sums of counters are equal whatever the machine did. They are asked of every simulation, and exactly.
//! [tiering-zswap 1.7, 4]

use super::super::rig::Played;
use super::{COUNTERS, Comparison, Row, counter, misses, span};

/// Two sums of counters that are equal.
struct Identity {
    /// What is left of the first where they are not.
    name: &'static str,
    left: &'static [&'static str],
    right: &'static [&'static str],
    /// Only where no compressed page was written back.
    without_writeback: bool,
}

const fn equal(
    name: &'static str,
    left: &'static [&'static str],
    right: &'static [&'static str],
) -> Identity {
    Identity { name, left, right, without_writeback: false }
}

const IDENTITIES: &[Identity] = &[
    equal("swapped in, not missed", &["zswpin", "pswpin"], &["pgmajfault"]),
    equal("refaults without a cause", &["workingset_refault_anon"], &["pgmajfault", "zswpwb"]),
    equal("written, not from zswap", &["pswpout"], &["zswpwb"]),
    equal("stores without a write", &["zswpout"], &["nr_vmscan_write"]),
    // A page that came from the pool is dirty, so that it is stored again.
    Identity { without_writeback: true, ..equal("stolen, not stored", &["pgsteal_anon"], &["zswpout"]) },
];

const WRITTEN_BACK: &str = "zswpwb";

impl Identity {
    fn difference(&self, count: &dyn Fn(&str) -> f64) -> f64 {
        if self.without_writeback && count(WRITTEN_BACK) > 0.0 {
            return 0.0;
        }
        let sum = |names: &[&str]| names.iter().map(|name| count(name)).sum::<f64>();
        sum(self.left) - sum(self.right)
    }
}

impl Comparison<'_> {
    pub(super) fn compressed(&self) -> anyhow::Result<Vec<Row>> {
        let mut by_misses: Vec<(f64, &Played)> =
            self.played.iter().map(|played| (misses(&self.comparable_misses(played)), played)).collect();
        by_misses.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut rows = self.single(by_misses[by_misses.len() / 2].1)?;
        for row in &mut rows {
            let Some(&(name, _)) = COUNTERS.iter().find(|(name, _)| *name == row.name) else { continue };
            if self.played.len() > 1 {
                row.envelope = Some(span(self.played.iter().map(|played| counter(played, name))));
            }
            if let Some([least, most]) = row.limit {
                let repeats = self.repeats(|answer, _| Some(self.real_counter(answer, name)))?;
                let limit = [least.min(repeats[0]), most.max(repeats[1])];
                row.limit = Some(limit);
                row.passes = Some((limit[0]..=limit[1]).contains(&row.simulated));
            }
        }
        let missed_and_not = self.played.iter().map(|played| {
            let missed = played.missed.iter().filter(|&&missed| missed).count() as f64;
            missed - counter(played, "pgmajfault")
        });
        let real = self.real_map.as_ref().map_or(f64::NAN, misses);
        let real = real - self.real_counter(self.answer, "pgmajfault");
        rows.push(identity("missed, not a major fault", missed_and_not, real));
        rows.extend(IDENTITIES.iter().map(|equal| {
            let simulated = self.played.iter().map(|played| equal.difference(&|name| counter(played, name)));
            let real = equal.difference(&|name| self.real_counter(self.answer, name));
            identity(equal.name, simulated, real)
        }));
        Ok(rows)
    }
}

/// The largest difference of all simulations, which must be none.
fn identity(name: &'static str, simulated: impl Iterator<Item = f64>, real: f64) -> Row {
    let worst = simulated.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
    Row {
        name,
        simulated: worst,
        envelope: None,
        real,
        limit: Some([0.0, 0.0]),
        passes: Some(worst == 0.0),
        is_share: false,
    }
}
