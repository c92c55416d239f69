//! Reasons of a gain: why a run with slower memory may be the shorter one.
//!
//! An access to slow memory never costs less than one to idle fast memory. A gain therefore has one of three causes: less of other work,
//! more accesses to fast memory, or a higher bandwidth of two kinds of memory. The first two are figures of the runs. If neither differs,
//! the text says so.

use crate::result::run_result::{RunResult, counter};
use crate::result::variants::Runs;

use super::{Advice, Cell, Ratio, SOURCES, is_any};
use crate::figures;

/// What a figure counts, and the figure of a run.
type Counted = (&'static str, fn(&RunResult) -> i64);

/// The figures that can be a reason; each takes time.
const TAKES_TIME: &[Counted] = &[
    ("promotions", |run| counter(&run.vmstat, "pgpromote_success")),
    ("demotions", |run| {
        let by = ["kswapd", "direct", "khugepaged", "proactive"];
        by.iter().map(|by| counter(&run.vmstat, &format!("pgdemote_{by}"))).sum()
    }),
    ("hint faults", |run| counter(&run.vmstat, "numa_hint_faults")),
    ("pages read from devices", |run| {
        run.devices.iter().map(|device| device.pages_read).sum::<u64>().try_into().unwrap_or(i64::MAX)
    }),
    ("pages scanned by direct reclaim", |run| counter(&run.vmstat, "pgscan_direct")),
];

/// A figure of the first run of some, and of others, if the others have less of it.
fn fewer(before: &Runs, after: &Runs) -> Vec<String> {
    let (Some(before), Some(after)) = (before.results.first(), after.results.first()) else {
        return Vec::new();
    };
    let less = |(what, of): &Counted| {
        let less = u64::try_from(of(before) - of(after)).ok().filter(|&less| less > 0)?;
        Some(format!("{} fewer {what}", figures::count(less)))
    };
    TAKES_TIME.iter().filter_map(less).collect()
}

/// How many more of a hundred accesses fast memory served.
fn more_hits(before: &Runs, after: &Runs) -> Option<String> {
    let hits = |runs: &Runs| runs.results.first()?.tiers.as_ref()?.fast_hit_ratio;
    let points = (hits(after)? - hits(before)?) * 100.0;
    (points >= 0.005)
        .then(|| format!("fast memory served {points:.2} percentage points more of the accesses"))
}

impl Advice {
    /// Sentences on every ratio of a device that takes less time than all memory fast, or than a ratio with more fast memory.
    pub(super) fn gains(&self, device: &str) -> Vec<String> {
        let mut ratios: Vec<Ratio> = self.ratios();
        ratios.sort_by(|one, other| other.share().total_cmp(&one.share()));
        let mut before: Option<&Cell> = None;
        let mut told = Vec::new();
        for ratio in ratios {
            let Some((at, _)) = self.best(ratio, device) else { continue };
            let cell = &self.cells[at];
            let others = before.map_or(&self.all_fast, |before| &before.runs);
            let with = before.map_or("fast memory only".to_string(), |before| {
                format!("{} ({})", before.ratio, SOURCES[before.source].name)
            });
            told.extend(self.gain(cell, others, &with));
            before = Some(cell);
        }
        told
    }

    /// What a ratio gains over runs with more fast memory, beyond noise, and why.
    fn gain(&self, cell: &Cell, others: &Runs, with: &str) -> Option<String> {
        let loss = self.between(others, &cell.runs)?;
        if loss.percent >= 0.0 || !is_any(loss.percent) || -loss.percent <= loss.noise() {
            return None;
        }
        let reasons: Vec<String> =
            more_hits(others, &cell.runs).into_iter().chain(fewer(others, &cell.runs)).collect();
        let why = match reasons.is_empty() {
            true => "No counter of either run shows why: two kinds of memory can have more bandwidth than \
                one, and the noise of one seed is larger than this (--repeat)"
                .to_string(),
            false => format!("Differences: {}", reasons.join(", ")),
        };
        Some(format!(
            "{}: less fast memory takes {:.1} % less time than {with}. {why}.",
            cell.name(),
            -loss.percent
        ))
    }
}
