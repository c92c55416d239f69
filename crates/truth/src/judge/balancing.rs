//! Figures of memory tiering compared with the recorded ones.
//!
//! Two runs of the same machine differ by how hot a page had to be when they began, and by when in their periods that was. Simulations
//! span both. The recorded figure must lie in what they span, widened by the class's fraction, and their median in what the recorded
//! repeats span, widened likewise. Identities hold in each of them.

use super::super::class::Tiering;
use super::super::rig::Played;
use super::{Comparison, Row, counter, span};

/// Pages or faults, and which limit of the class is theirs.
const PROMOTED: &[&str] = &["pgpromote_success", "pgpromote_candidate"];
const FAULTS: &[&str] = &["numa_hint_faults"];
const SHOWN: &[&str] = &["numa_pte_updates", "pgmigrate_fail", "numa_hint_faults_local"];

/// What must be the same in each simulation: the name of their difference, and both.
type Identity = (&'static str, fn(&Played) -> f64, fn(&Played) -> f64);

const IDENTITIES: &[Identity] = &[
    (
        "faults without a hint",
        |played| counter(played, "pgfault"),
        |played| counter(played, "numa_hint_faults"),
    ),
    (
        "promoted, not migrated",
        |played| counter(played, "pgpromote_success"),
        |played| counter(played, "numa_pages_migrated"),
    ),
    (
        "migrated, not promoted",
        |played| counter(played, "pgmigrate_success"),
        |played| counter(played, "numa_pages_migrated"),
    ),
    (
        "promoted, not on the fast node",
        |played| counter(played, "pgpromote_success"),
        |played| played.moved_to_fast_node.unwrap_or(0) as f64,
    ),
    ("local hint faults", |played| counter(played, "numa_hint_faults_local"), |_| 0.0),
    ("scanned by reclaim", |played| counter(played, "pgscan_anon"), |_| 0.0),
];

impl Comparison<'_> {
    /// The median simulation of each figure compared with the recorded one.
    pub(super) fn balancing(&self, limits: &Tiering) -> Vec<Row> {
        let mut rows = Vec::new();
        for (names, fraction) in
            [(PROMOTED, Some(limits.promoted)), (FAULTS, Some(limits.faults)), (SHOWN, None)]
        {
            for &name in names {
                rows.push(self.balanced(name, fraction));
            }
        }
        for &(name, left, right) in IDENTITIES {
            let worst = self
                .played
                .iter()
                .map(|played| left(played) - right(played))
                .max_by(|a, b| a.abs().total_cmp(&b.abs()));
            let simulated = worst.expect("there is a simulation");
            rows.push(Row {
                name,
                simulated,
                envelope: None,
                real: 0.0,
                limit: Some([0.0, 0.0]),
                passes: Some(simulated == 0.0),
                is_share: false,
            });
        }
        rows
    }

    fn balanced(&self, name: &'static str, fraction: Option<f64>) -> Row {
        let mut simulated: Vec<f64> = self.played.iter().map(|played| counter(played, name)).collect();
        simulated.sort_by(f64::total_cmp);
        let median = simulated[simulated.len() / 2];
        let envelope = span(simulated.iter().copied());
        let real = self.real_counter(self.answer, name);
        let others = self.answers.repeats(self.answer).into_iter();
        let repeats = span(others.map(|answer| self.real_counter(answer, name)).chain([real]));
        let widened = |[least, most]: [f64; 2], by: f64| [least * (1.0 - by), most * (1.0 + by)];
        let limit = fraction.map(|by| widened(envelope, by));
        let passes = fraction.zip(limit).map(|(by, [least, most])| {
            let [low, high] = widened(repeats, by);
            (least..=most).contains(&real) && (low..=high).contains(&median)
        });
        Row { name, simulated: median, envelope: Some(envelope), real, limit, passes, is_share: false }
    }
}
