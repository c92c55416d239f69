//! Figures of a run that is simulated several times, because something of it was not recorded, and judged like one that is simulated
//! once.
//!
//! It is the median simulation, by misses, that is judged. What lies between two repeats of the kernel passes in any case. Some sums
//! of counters are equal whatever the machine did. They are asked of every simulation, and exactly.

use super::super::class::Single;
use super::super::rig::Played;
use super::{Comparison, MISSED, Row, counter, group_of, misses, span};

/// Two sums of counters that are equal.
pub(super) struct Identity {
    /// What is left of the first where they are not.
    name: &'static str,
    left: &'static [&'static str],
    right: &'static [&'static str],
    /// Only if this counter is unchanged.
    unless: Option<&'static str>,
}

pub(super) const fn equal(
    name: &'static str,
    left: &'static [&'static str],
    right: &'static [&'static str],
) -> Identity {
    Identity { name, left, right, unless: None }
}

impl Identity {
    pub(super) const fn unless(self, counter: &'static str) -> Identity {
        Identity { unless: Some(counter), ..self }
    }

    fn difference(&self, count: &dyn Fn(&str) -> f64) -> f64 {
        if self.unless.is_some_and(|counter| count(counter) > 0.0) {
            return 0.0;
        }
        let sum = |names: &[&str]| names.iter().map(|name| count(name)).sum::<f64>();
        sum(self.left) - sum(self.right)
    }
}

impl Comparison<'_> {
    pub(super) fn median(&self, limits: &Single) -> anyhow::Result<Vec<Row>> {
        let mut by_misses: Vec<(f64, &Played)> =
            self.played.iter().map(|played| (misses(&self.comparable_misses(played)), played)).collect();
        by_misses.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut rows = self.single(limits, by_misses[by_misses.len() / 2].1)?;
        let missed = span(by_misses.iter().map(|&(missed, _)| missed));
        for row in &mut rows {
            let (envelope, repeats) = if row.name == MISSED {
                (missed, self.repeats(|_, map| map.map(misses))?)
            } else if group_of(row.name).is_some() {
                let simulated = span(self.played.iter().map(|played| counter(played, row.name)));
                (simulated, self.repeats(|answer, _| Some(self.real_counter(answer, row.name)))?)
            } else {
                continue;
            };
            row.envelope = (self.played.len() > 1).then_some(envelope);
            if let Some([least, most]) = row.limit {
                let limit = [least.min(repeats[0]), most.max(repeats[1])];
                row.limit = Some(limit);
                row.passes = Some((limit[0]..=limit[1]).contains(&row.simulated));
            }
        }
        Ok(rows)
    }

    pub(super) fn identities(&self, identities: &[Identity]) -> impl Iterator<Item = Row> {
        identities.iter().map(|equal| {
            let simulated = self.played.iter().map(|played| equal.difference(&|name| counter(played, name)));
            let real = equal.difference(&|name| self.real_counter(self.answer, name));
            identity(equal.name, simulated, real)
        })
    }
}

pub(super) fn middle(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The largest difference of all simulations, which must be none.
pub(super) fn identity(name: &'static str, simulated: impl Iterator<Item = f64>, real: f64) -> Row {
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
