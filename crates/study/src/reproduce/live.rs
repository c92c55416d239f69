//! A published table next to figures of two machines: the simulated one, and the live one on real memory.
//!
//! ```text
//!   live chapter ─▶ experiments × sides × rounds ─┬─▶ simulated, one seed a round ─▶ every seed has to hold
//!                                                 └─▶ live, sides in turn ─────────▶ a sign test over the rounds
//! ```
//! A row with a relation (`holds`) must hold on both machines. The relation stands in the chapter since before the first
//! live run. Other rows are printed: times of a real machine differ from host to host.
//!
//! **Sign test.** The sides of a round follow each other, in every other round backwards. So a round's relation compares figures
//! of the same minute. If a relation were a matter of chance, each round would have it with probability 1/2. It is held if at most
//! 5 % of chance outcomes have as many rounds with it: 5 of 5, 9 of 10, 15 of 20. It is not held if as many rounds lack it.
//! Otherwise it is undecided, as it always is with fewer than five rounds: more rounds, or a quieter machine, decide.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::chapter::{Chapter, Claim, Experiment};
use super::judge::Measured;
use super::place::Place;
use super::{measure, measured, names_of};
use crate::check::holds;
use crate::error::{Error, Failed};
use crate::live_run;
use crate::result::metrics::Metric;
use crate::result::variants::{Made, Plan};
use crate::scenario::load::{Changes, load};
use crate::scenario::source::Source;
use crate::watch::{Stage, Watcher};

/// The requested rows.
#[derive(Debug, Clone)]
pub struct Ask {
    /// A chapter of the program ([`super::place::LIVE_CHAPTERS`]), or the path of a custom file, FILE.toml.
    pub chapter: String,
    /// Experiments of the chapter; none stands for all.
    pub experiments: Vec<String>,
    /// The folder of files and swap; nothing stands for the system's folder of temporary files.
    pub folder: Option<PathBuf>,
    /// Rounds: runs of each side on both machines, with seeds counted up from the scenario's. 1 or more.
    pub rounds: u32,
    /// Simulations at the same time; 0 is one a CPU. Live runs follow each other.
    pub jobs: usize,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask { chapter: String::new(), experiments: Vec::new(), folder: None, rounds: 5, jobs: 0 }
    }
}

/// The results of both machines.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The chapter.
    pub chapter: Chapter,
    /// The place of the chapter.
    pub place: Place,
    /// Its experiments.
    pub experiments: Vec<Compared>,
}

/// An experiment on both machines.
#[derive(Debug)]
pub struct Compared {
    /// The experiment.
    pub experiment: Experiment,
    /// Its scenario's file.
    pub source: Source,
    /// The first seed, that of the scenario.
    pub seed: u64,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row of a live chapter.
#[derive(Debug)]
pub struct Row {
    /// The figures of the simulated machine.
    pub simulated: Measured,
    /// The figures of the live machine.
    pub live: Measured,
}

/// Runs a live chapter's experiments on both machines. Errors: there is no such chapter or experiment. A
/// scenario is wrong, or has a key that the live machine lacks. A run failed. A claim names a figure that a machine lacks. A signal came.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let place = Place::find_live(&ask.chapter)?;
    let chapter = place.chapter()?;
    let folder = ask.folder.clone().unwrap_or_else(std::env::temp_dir);
    // A signal never ends the program where files would stay.
    watcher.heed_stop();
    let mut answer = Answer { ask: ask.clone(), place, chapter, experiments: Vec::new() };
    for experiment in answer.chapter.choose(&ask.experiments)? {
        let compared = compare(experiment, &answer, &folder, watcher)?;
        answer.experiments.push(compared);
    }
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

fn compare(
    experiment: &Experiment,
    answer: &Answer,
    folder: &Path,
    watcher: &dyn Watcher,
) -> Result<Compared, Error> {
    let Answer { ask, chapter, place, .. } = answer;
    let source = place.scenario(&experiment.scenario)?;
    let sides = chapter.side.iter();
    let scenarios = sides
        .map(|side| load(&source, &Changes::default(), &experiment.settings(side, None), watcher))
        .collect::<Result<Vec<_>, Error>>()?;
    let seed = scenarios[0].seed;
    let plan = Plan { name: experiment.name.clone(), repeat: ask.rounds, jobs: ask.jobs, watcher };
    let Made { variants, extent } = plan.run(&scenarios)?;
    if extent.is_interrupted() {
        return Err(interrupted(watcher));
    }
    if let Some(failure) = variants.iter().flat_map(|runs| &runs.failures).next() {
        return Err(Error::Failed(failure.of(&format!("{}, simulated", experiment.name))));
    }
    let mut live: Vec<Vec<Vec<Metric>>> = scenarios.iter().map(|_| Vec::new()).collect();
    let runs = scenarios.len() * ask.rounds as usize;
    watcher.begin(&Stage::Running { name: &format!("{}, live", experiment.name), runs, accesses: None });
    for round in 0..u64::from(ask.rounds) {
        let mut order: Vec<usize> = (0..scenarios.len()).collect();
        if round % 2 == 1 {
            // Otherwise a side that always follows another one would always find what that leaves.
            order.reverse();
        }
        for side in order {
            let mut scenario = scenarios[side].clone();
            scenario.seed += round;
            let whose = format!("{}, {}, live", experiment.name, chapter.side[side].name);
            let metrics = live_run::run(&scenario, folder, watcher);
            let metrics = metrics.map_err(|error| Error::Failed(Failed::from(error).of(&whose)))?;
            live[side].push(metrics.ok_or_else(|| interrupted(watcher))?);
            watcher.advance(1);
        }
    }
    watcher.end();
    let names = names_of(chapter);
    let simulated = measured(experiment, &variants, &names, extent.seeds as usize)?;
    let live: Vec<Option<Vec<Vec<Metric>>>> = live.into_iter().map(Some).collect();
    let rows = experiment.claim.iter().zip(simulated).map(|(claim, simulated)| {
        let figures = if claim.live.is_empty() { &claim.figures } else { &claim.live };
        let claim = Claim { figures: figures.clone(), ..claim.clone() };
        let live = measure(experiment, &claim, &live, &names, ask.rounds as usize)?;
        Ok(Row { simulated, live })
    });
    let rows = rows.collect::<Result<Vec<Row>, Error>>()?;
    Ok(Compared { experiment: experiment.clone(), source, seed, rows })
}

fn interrupted(watcher: &dyn Watcher) -> Error {
    let by = watcher.stop().unwrap_or("SIGINT");
    Error::Interrupted(format!("{by} before the end: an incomplete comparison has no verdict"))
}

/// The middle value, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Rounds of the live machine that have a relation, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// Rounds whose figures have it.
    pub with: u32,
    /// All rounds.
    pub all: u32,
}

impl Rounds {
    /// The rounds that a relation needs, of `all`; nothing if no number is enough.
    pub fn needed(all: u32) -> Option<u32> {
        // Outcomes of a coin with `with` heads or more, of all outcomes: from all heads down.
        let (mut share, mut chance, mut needed) = (0.0, 0.5_f64.powi(all as i32), None);
        for with in (0..=all).rev() {
            share += chance;
            if share > CHANCE_MAX {
                break;
            }
            needed = Some(with);
            chance *= f64::from(with) / f64::from(all - with + 1);
        }
        needed
    }

    /// True if chance does not explain that this many rounds have the relation (it is held), false if chance does not explain that this few have it
    /// (it is not). `None` if chance explains the number.
    pub fn holds(self) -> Option<bool> {
        let needed = Rounds::needed(self.all)?;
        match (self.with >= needed, self.all - self.with >= needed) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

/// The part of chance outcomes that may look like a relation.
const CHANCE_MAX: f64 = 0.05;

impl Row {
    /// Rounds of the live machine that have its relation; nothing for a row without one.
    pub fn rounds_live(&self, names: &[&str]) -> Option<Rounds> {
        let relation = self.live.claim.holds.as_ref()?;
        let all = self.live.sides.iter().flatten().map(Vec::len).min().unwrap_or(0);
        let of = |name: &str, round: usize| {
            let at = names.iter().position(|side| *side == name)?;
            self.live.sides[at].as_ref()?.get(round).copied()
        };
        let has_it = |round: &usize| relation.is_true(|name| of(name, *round)) == Some(true);
        Some(Rounds { with: (0..all).filter(has_it).count() as u32, all: all as u32 })
    }

    /// True if its relation is true of each seed of the simulated machine; `None` for a row without one.
    pub fn holds_simulated(&self) -> Option<bool> {
        self.simulated.relation.map(|(_, holds)| holds)
    }
}

impl Answer {
    /// Names of the sides, the base first.
    pub fn side_names(&self) -> Vec<&str> {
        names_of(&self.chapter)
    }

    /// Rows whose relation is not true on one of the machines, each with its experiment and the machine.
    pub fn not_held(&self) -> Vec<String> {
        let names = self.side_names();
        let mut all = Vec::new();
        for compared in &self.experiments {
            for row in &compared.rows {
                let name = format!("{}, {}", compared.experiment.name, row.live.claim.row);
                if row.holds_simulated() == Some(false) {
                    all.push(format!("{name}, simulated"));
                }
                if let Some(rounds) = row.rounds_live(&names).filter(|rounds| rounds.holds() == Some(false)) {
                    let Rounds { with, all: rounds } = rounds;
                    all.push(format!("{name}, live ({with} of {rounds} rounds)"));
                }
            }
        }
        all
    }

    /// Rows whose relation the rounds of the live machine do not decide, each with its experiment.
    pub fn undecided(&self) -> Vec<String> {
        let names = self.side_names();
        let of_experiment = |compared: &Compared| {
            let rows = compared.rows.iter().filter_map(|row| {
                let Rounds { with, all } =
                    row.rounds_live(&names).filter(|rounds| rounds.holds().is_none())?;
                Some(format!("{}, {} ({with} of {all} rounds)", compared.experiment.name, row.live.claim.row))
            });
            rows.collect::<Vec<String>>()
        };
        self.experiments.iter().flat_map(of_experiment).collect()
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let rounds = self.ask.rounds as usize;
        for Compared { experiment, rows, .. } in &self.experiments {
            let (name, claims) = (&experiment.name, experiment.claim.len());
            holds!(
                rows.len() == claims,
                "experiment `{name}`: it has {claims} claims but {} rows",
                rows.len()
            );
            for row in rows {
                let machines = [("simulated", &row.simulated), ("live", &row.live)];
                for (machine, measured) in machines {
                    let is_whole = measured
                        .sides
                        .iter()
                        .all(|side| side.as_ref().is_some_and(|values| values.len() == rounds));
                    holds!(
                        is_whole && measured.sides.len() == self.chapter.side.len(),
                        "row `{}`, {machine}: expected one value for each side and round",
                        measured.claim.row
                    );
                }
            }
        }
        Ok(())
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let names = self.side_names();
        let experiments = self.experiments.iter().map(|compared| {
            let rows = compared.rows.iter().map(|row| {
                json!({
                    "row": row.live.claim.row,
                    "holds_simulated": row.holds_simulated(),
                    "holds_live": row.rounds_live(&names).and_then(Rounds::holds),
                    "rounds_live": row.rounds_live(&names).map(|rounds| rounds.with),
                    "simulated": row.simulated.json(&names),
                    "live": row.live.json(&names),
                })
            });
            json!({
                "name": compared.experiment.name,
                "title": compared.experiment.title,
                "scenario": compared.experiment.scenario,
                "seed": compared.seed,
                "rows": rows.collect::<Vec<_>>(),
            })
        });
        json!({
            "chapter": self.ask.chapter,
            "title": self.chapter.title,
            "source": self.chapter.source,
            "rounds": self.ask.rounds,
            "sides": names,
            "experiments": experiments.collect::<Vec<_>>(),
            "not_held": self.not_held(),
            "undecided": self.undecided(),
        })
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relation_needs_more_rounds_than_chance_gives() {
        let needed = |all| Rounds::needed(all);
        assert_eq!([0, 1, 4].map(needed), [None; 3]);
        assert_eq!([5, 6, 8, 10, 20, 100].map(needed), [5, 6, 7, 9, 15, 59].map(Some));
    }

    #[test]
    fn rounds_decide_for_or_against_a_relation_or_not_at_all() {
        let holds = |with, all| Rounds { with, all }.holds();
        assert_eq!([0, 2, 4].map(|with| holds(with, 4)), [None; 3]);
        assert_eq!([5, 4, 1, 0].map(|with| holds(with, 5)), [Some(true), None, None, Some(false)]);
        assert_eq!([9, 8, 2, 1].map(|with| holds(with, 10)), [Some(true), None, None, Some(false)]);
    }
}
