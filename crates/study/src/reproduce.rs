//! A published table compared with pageout's figures, row by row, with the rows that are reproduced.
//!
//! ```text
//!   chapter ─▶ experiments × sides × seeds ─▶ runs side by side ─▶ claims judged ─▶ Answer
//! ```
//! The published figures, pageout's figures for them, and the workloads are data ([`chapter`]). A row that is not reproduced is shown like
//! any other, with the reason if one is known: a row is a finding, not a test.

pub mod chapter; // what was published, as data
pub mod judge; // whether a row holds
#[cfg(target_os = "linux")]
pub mod live; // the same on real memory
pub mod place; // chapters of the program, or of a file

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use self::chapter::{Chapter, Claim, Direction, Experiment, Published};
use self::judge::{CRITERIA, Measured};
use self::place::Place;
use crate::check::holds;
use crate::error::{Error, Failed};
use crate::json::merged;
use crate::result::metrics::{Metric, Unit, metrics};
use crate::result::spread::Paired;
use crate::result::variants::{Extent, Made, Plan, Runs};
use crate::scenario::load::{Changes, load};
use crate::scenario::nearest::nearest;
use crate::scenario::source::Source;
use crate::watch::Watcher;

/// The requested rows.
#[derive(Debug, Clone)]
pub struct Ask {
    /// A chapter of the program ([`place::CHAPTERS`]), or the path of a custom file, FILE.toml.
    pub chapter: String,
    /// Experiments of the chapter; none stands for all.
    pub experiments: Vec<String>,
    /// A smaller size that the experiments have; nothing stands for the full size.
    pub scale: Option<String>,
    /// The changes of every scenario, before those of a side.
    pub changes: Changes,
    /// Runs of each side, with seeds counted up from the scenario's. 1 or more.
    pub seeds: u32,
    /// Runs at the same time; 0 is one a CPU.
    pub jobs: usize,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            chapter: String::new(),
            experiments: Vec::new(),
            scale: None,
            changes: Changes::default(),
            seeds: 10,
            jobs: 0,
        }
    }
}

/// All that was found out.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The chapter.
    pub chapter: Chapter,
    /// The place of the chapter.
    pub place: Place,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    /// The first seed.
    pub seed: u64,
    /// Experiments of which every side was run.
    pub experiments: Vec<Reproduced>,
    /// Names of experiments that an interruption came before the end of: of some side there is no run, so no row can be judged.
    pub not_run: Vec<String>,
}

/// One experiment with its runs, a side each.
#[derive(Debug)]
pub struct Reproduced {
    /// The experiment.
    pub experiment: Experiment,
    /// Its scenario's file.
    pub source: Source,
    /// The runs of each side, the base first.
    pub sides: Vec<Runs>,
    /// The measurements of its claims; empty if every run of all experiments failed.
    pub rows: Vec<Measured>,
}

/// Runs a chapter's experiments at each of its sides, and judges its rows. Errors: there is no such chapter, experiment or size; a
/// scenario makes no sense; a claim names a figure that no run has. Runs that fail are part of the answer.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let place = Place::find(&ask.chapter)?;
    let chapter = place.chapter()?;
    let scale = ask.scale.as_deref();
    let (mut loaded, mut scenarios) = (Vec::new(), Vec::new());
    for experiment in chapter.choose(&ask.experiments)? {
        let source = place.scenario(experiment.scenario_at(scale)?)?;
        for side in &chapter.side {
            scenarios.push(load(&source, &ask.changes, &experiment.settings(side, scale), watcher)?);
        }
        loaded.push((experiment.clone(), source));
    }
    let plan = Plan { name: ask.chapter.clone(), repeat: ask.seeds, jobs: ask.jobs, watcher };
    let Made { variants, extent } = plan.run(&scenarios)?;
    let seed = scenarios[0].seed;
    let mut runs = variants.into_iter();
    let experiments = loaded.into_iter().map(|(experiment, source)| Reproduced {
        experiment,
        source,
        sides: runs.by_ref().take(chapter.side.len()).collect(),
        rows: Vec::new(),
    });
    let (mut experiments, not_run): (Vec<Reproduced>, Vec<Reproduced>) =
        experiments.partition(|reproduced| reproduced.sides.iter().all(Runs::was_made));
    let not_run = not_run.into_iter().map(|reproduced| reproduced.experiment.name).collect();
    if experiments.iter().flat_map(|of| &of.sides).any(|runs| !runs.results.is_empty()) {
        let names = names_of(&chapter);
        for reproduced in &mut experiments {
            reproduced.rows =
                measured(&reproduced.experiment, &reproduced.sides, &names, extent.seeds as usize)?;
        }
    }
    let answer = Answer { ask: ask.clone(), place, extent, seed, experiments, not_run, chapter };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

fn names_of(chapter: &Chapter) -> Vec<&str> {
    chapter.side.iter().map(|side| side.name.as_str()).collect()
}

/// Every claim's values at every side. Errors: a claim names a figure that no run has.
pub(crate) fn measured(
    experiment: &Experiment,
    sides: &[Runs],
    names: &[&str],
    seeds: usize,
) -> Result<Vec<Measured>, Error> {
    let sides: Vec<Option<Vec<Vec<Metric>>>> = sides
        .iter()
        .map(|runs| {
            runs.is_whole().then(|| runs.results.iter().map(|result| metrics(result, true)).collect())
        })
        .collect();
    experiment.claim.iter().map(|claim| measure(experiment, claim, &sides, names, seeds)).collect()
}

fn measure(
    experiment: &Experiment,
    claim: &Claim,
    sides: &[Option<Vec<Vec<Metric>>>],
    names: &[&str],
    seeds: usize,
) -> Result<Measured, Error> {
    let mut unit = Unit::Count;
    let mut measured = Vec::new();
    for runs in sides {
        let values = runs.as_ref().map(|runs| {
            let values = runs.iter().map(|metrics| match judge::figure(claim, metrics) {
                Ok((value, of)) => {
                    unit = of;
                    Ok(value)
                }
                Err(name) => Err(no_such_figure(experiment, claim, &name, metrics)),
            });
            values.collect::<Result<Vec<f64>, Error>>()
        });
        measured.push(values.transpose()?);
    }
    let relation = judge::relation(claim, names, &measured, seeds);
    Ok(Measured { claim: claim.clone(), unit, sides: measured, relation })
}

fn no_such_figure(experiment: &Experiment, claim: &Claim, name: &str, metrics: &[Metric]) -> Error {
    let names: Vec<String> = metrics.iter().map(Metric::full_name).collect();
    let hint = match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`pageout compare FILE --all --json` lists the names of all figures".to_string(),
    };
    Error::Asked(format!(
        "experiment `{}`, row `{}`: no figure `{name}` in the runs\nhelp: {hint}",
        experiment.name, claim.row
    ))
}

impl Answer {
    /// Names of the sides, the base first.
    pub fn side_names(&self) -> Vec<&str> {
        names_of(&self.chapter)
    }

    /// Returns true if there is nothing to be judged, as every run failed.
    pub fn is_nothing(&self) -> bool {
        self.experiments.iter().flat_map(|of| &of.sides).all(|runs| runs.results.is_empty())
    }

    /// The failures of all runs, saying whose they are.
    pub fn failures(&self) -> Vec<Failed> {
        let of = |reproduced: &Reproduced| -> Vec<Failed> {
            let sides = self.chapter.side.iter().zip(&reproduced.sides);
            sides
                .flat_map(|(side, runs)| {
                    runs.failures_of(&format!("{}, {}", reproduced.experiment.name, side.name))
                })
                .collect()
        };
        self.experiments.iter().flat_map(of).collect()
    }

    /// Rows that hold, and rows of which something was published, by side.
    pub fn tally(&self) -> Vec<(usize, usize)> {
        let judged = self.experiments.iter().flat_map(|of| &of.rows).map(Measured::judge);
        let mut tally = vec![(0, 0); self.chapter.side.len()];
        for (index, judged) in judged.flat_map(|sides| (0..).zip(sides)) {
            let (held, claimed): &mut (usize, usize) = &mut tally[index];
            *held += usize::from(judged.holds == Some(true));
            *claimed += usize::from(judged.holds.is_some());
        }
        tally
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let asked = match self.ask.experiments.len() {
            0 => self.chapter.experiment.len(),
            some => some,
        };
        let told = self.experiments.len() + self.not_run.len();
        holds!(told == asked, "found {told} experiments, expected {asked}");
        let sides = self.chapter.side.len();
        for Reproduced { experiment, rows, .. } in self.experiments.iter().filter(|of| !of.rows.is_empty()) {
            let (name, claims) = (&experiment.name, experiment.claim.len());
            holds!(
                rows.len() == claims,
                "experiment `{name}`: it has {claims} claims but {} rows",
                rows.len()
            );
            for row in rows {
                holds!(
                    row.sides.len() == sides,
                    "row `{}`: expected values of {sides} sides, found {}",
                    row.claim.row,
                    row.sides.len()
                );
                let seeds = self.extent.seeds as usize;
                let is_whole = row.sides.iter().flatten().all(|values| values.len() == seeds);
                holds!(
                    is_whole,
                    "row `{}`: a side does not have one value for each of {seeds} seeds",
                    row.claim.row
                );
            }
        }
        Ok(())
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let names = self.side_names();
        let scale = self.ask.scale.as_deref();
        let experiments = self.experiments.iter().map(|Reproduced { experiment, sides, rows, .. }| {
            let failures: Vec<&Failed> = sides.iter().flat_map(|runs| &runs.failures).collect();
            json!({
                "name": experiment.name,
                "title": experiment.title,
                "scenario": experiment.scenario_at(scale).ok(),
                "failures": failures,
                "rows": rows.iter().map(|row| row.json(&names)).collect::<Vec<_>>(),
            })
        });
        let json = json!({
            "complete": !self.extent.is_interrupted() && self.failures().is_empty(),
            "chapter": self.ask.chapter,
            "title": self.chapter.title,
            "source": self.chapter.source,
            "scale": scale.unwrap_or("full"),
            "seed": self.seed,
            "sides": names,
            "experiments": experiments.collect::<Vec<_>>(),
            "not_run": self.not_run,
            "criteria": CRITERIA,
        });
        let seeds = json!({ "seeds": self.extent.seeds });
        merged(merged(json, self.extent.json()), seeds)
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

/// A change in percent with its interval, as people read it.
pub fn change(change: &Paired) -> String {
    if change.is_same {
        return "=".to_string();
    }
    let Some(percent) = change.percent(change.difference) else { return "from nothing".to_string() };
    let half = change.half_width.and_then(|half| change.percent(half));
    format!("{percent:+.1}%{}", half.map_or(String::new(), |half| format!(" ± {half:.1}")))
}

/// Returns the published figure, formatted.
pub fn published_text(published: Published, unit: Unit) -> String {
    match published {
        Published::Change(change) => format!("{:+.0}%", change * 100.0),
        Published::Levels { before, after } => format!("{} to {}", unit.show(before), unit.show(after)),
        Published::Base(base) => unit.show(base),
        Published::Direction(Direction::Less) => "less".to_string(),
        Published::Direction(Direction::More) => "more".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        [machine]
        memory = "64MiB"
        [[memcg]]
        path = "/web"
        memory.max = "1MiB"
        [[task]]
        name = "reader"
        memcg = "/web"
        object = [{ channel = "file", size = "4MiB", workload = { pattern = "zipf", alpha = 0.9, ops = 2_000 } }]
    "#;

    const CHAPTER: &str = r#"
        title = "two policies"
        source = "nowhere"
        side = [{ name = "before" }, { name = "after", set = { kernel.profile = "mglru@6.12" } }]
        [[experiment]]
        name = "one"
        title = "a reader"
        scenario = "one.toml"
        claim = [
            { row = "refaults", figures = ["memcg /web: workingset_refault_file"], published = { direction = "less" } },
            { row = "some", figures = ["memcg /web: workingset_refault_file"], holds = "before > 0" },
        ]
    "#;

    /// The answer of a chapter that takes a moment.
    fn answer() -> Answer {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("one.toml"), SCENARIO).unwrap();
        let chapter = folder.path().join("chapter.toml");
        std::fs::write(&chapter, CHAPTER).unwrap();
        let asked = Ask { chapter: chapter.to_string_lossy().into_owned(), seeds: 2, ..Ask::default() };
        ask(&asked, &()).unwrap()
    }

    #[test]
    fn an_answer_is_checked_by_its_sums() {
        let whole = answer();
        assert_eq!(whole.check(), Ok(()));
        type Mutant = fn(&mut Answer);
        let mutants: [(Mutant, &str); 4] = [
            (|answer| drop(answer.experiments.pop()), "experiments, expected"),
            (|answer| drop(answer.experiments[0].rows.pop()), "claims but"),
            (|answer| drop(answer.experiments[0].rows[0].sides.pop()), "expected values of"),
            (
                |answer| {
                    let values = answer.experiments[0].rows[0].sides[0].as_mut().unwrap();
                    values.pop();
                },
                "does not have one value for each of 2 seeds",
            ),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let tally = whole.tally();
        assert!(tally.iter().all(|(held, claimed)| held <= claimed));
        assert_eq!(serde_json::to_value(&whole).unwrap(), whole.json());
    }
}
