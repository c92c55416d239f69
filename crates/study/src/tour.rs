//! A tour: five publications, an experiment of each at a size that fits, and what holds.
//!
//! ```text
//!   stops (data) ─▶ a chapter's experiment at some of its sides ─▶ runs ─▶ claims judged ─▶ lines ─▶ Answer
//! ```
//! The tour runs and judges nothing beyond [`reproduce`](crate::reproduce): a stop is a choice. It adds two things. A row may be too close
//! to its bound for a few seeds ([`mod@lines`]), and a stop is printed as soon as it is complete.

pub mod lines; // a line a figure, and whether it is decided
pub mod stops; // what is chosen, as data

use std::path::PathBuf;

use pageout_sim::scenario::Scenario;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use self::lines::{Figures, Line, Verdict, lines};
use self::stops::{Stop, Tour};
use crate::error::{Error, Failed};
use crate::json::merged;
use crate::reproduce::chapter::Chapter;
use crate::reproduce::judge::CRITERIA;
use crate::reproduce::measured;
use crate::result::better::Better;
use crate::result::metrics::Unit;
use crate::result::variants::{Extent, Made, Plan, Runs};
use crate::scenario::load::{Changes, load};
use crate::watch::Watcher;

/// The requested stops.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// A custom tour; nothing means the program's tour.
    pub file: Option<PathBuf>,
    /// Names of stops; none stands for all.
    pub only: Vec<String>,
    /// Runs at the same time; 0 is one a CPU.
    pub jobs: usize,
}

/// The meaning of a missing verdict.
pub const UNDECIDED: &str = "A row is not decided at this size if the 95 % interval over the seeds contains \
    the row's bound. It is also not decided if the mean is within the bound but some seed is not.";

/// The meaning of the word after a verdict.
pub const COMPARED: &str = "The word after a verdict names the comparison: \"sign\" is the sign of the \
    change, \"size\" the size of the change or of a level, and \"< side\" or \"= number\" a relation.";

/// A stop that can be run.
struct Ready {
    stop: Stop,
    chapter: Chapter,
    /// The scenario's path, for people.
    path: String,
    scenarios: Vec<Scenario>,
}

/// The results of a stop, as printed.
#[derive(Debug)]
pub struct Done {
    /// The stop.
    pub stop: Stop,
    /// The cover letter, as a link.
    pub address: String,
    /// Its scenario, for people.
    pub scenario: String,
    /// Seeds that its figures are over.
    pub seeds: u32,
    /// Which they are, in words.
    told_seeds: String,
    /// Its lines.
    pub told: Vec<Told>,
    /// Every row of the experiment, as `reproduce --json` has them.
    rows: Value,
    /// Runs that failed.
    pub failures: Vec<Failed>,
}

/// What running a stop came to.
enum Came {
    Stop(Box<Done>),
    /// No table: why, or nothing where a signal came first.
    Nothing(Vec<Failed>),
}

/// All that was found out.
#[derive(Debug)]
pub struct Answer {
    /// Stops of which every side was run.
    pub stops: Vec<Done>,
    /// Names of stops that an interruption came before the end of.
    pub not_run: Vec<String>,
    /// The warning of an interrupted tour.
    pub warning: Option<String>,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    /// Runs that failed.
    pub failures: Vec<Failed>,
}

/// A line of a stop's table.
#[derive(Debug)]
pub struct Told {
    /// The claim, in a few words.
    pub name: String,
    side: String,
    against: Option<String>,
    /// The published figure, formatted.
    pub published: String,
    ours: String,
    /// The verdict on the row.
    pub verdict: Verdict,
    is_way_only: bool,
    compared: String,
    /// As figures, for charts.
    pub figures: Option<Figures>,
    /// Unit of the figures.
    pub unit: Unit,
    /// The better direction of the figure.
    pub better: Better,
    /// What was asked where rows do not hold, why it is not so where that is known, and the commands that show it.
    asked: Vec<String>,
    because: Vec<String>,
    shown_by: Vec<String>,
}

/// The number of lines that hold, do not hold, and are undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Lines that hold.
    pub held: usize,
    /// Lines that do not.
    pub not_held: usize,
    /// Lines of which the runs are too few to say.
    pub not_decided: usize,
}

/// Runs the stops one after the other, and calls `told` with each that is done: its number from 1, and how many there are. Errors: a stop chooses what
/// there is not, a scenario makes no sense, or `told` has one. Runs that fail are part of the answer.
pub fn ask<E: From<Error>>(
    ask: &Ask,
    watcher: &dyn Watcher,
    mut told: impl FnMut(usize, usize, &Done) -> Result<(), E>,
) -> Result<Answer, E> {
    let tour = Tour::read(ask.file.as_deref())?;
    let chosen = tour.choose(&ask.only)?;
    let all =
        chosen.into_iter().map(|stop| ready(stop, ask, watcher)).collect::<Result<Vec<Ready>, Error>>()?;
    let count = all.len();
    let (mut stops, mut not_run, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let mut extent: Option<Extent> = None;
    for (number, ready) in (1..).zip(all) {
        let name = ready.stop.name.clone();
        let (of, its_extent) = ready.run(&format!("stop {number} of {count}: {name}"), ask, watcher)?;
        extent = Some(extent.map_or_else(|| its_extent.clone(), |extent| extent.and(&its_extent)));
        match of {
            Came::Stop(of) => {
                told(number, count, &of)?;
                failures.extend(of.failures.iter().cloned());
                stops.push(*of);
            }
            Came::Nothing(of) if of.is_empty() => not_run.push(name),
            Came::Nothing(of) => failures.extend(of),
        }
    }
    let extent = extent.expect("a tour has a stop");
    let warning = extent.interrupted().map(|told| match not_run.is_empty() {
        true => format!("Not complete: {told}."),
        false => format!("Not complete: {told}. Not run: {}.", not_run.join(", ")),
    });
    let answer = Answer { stops, not_run, warning, extent, failures };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

fn ready(stop: &Stop, ask: &Ask, watcher: &dyn Watcher) -> Result<Ready, Error> {
    let (place, chapter) = stop.chapter(ask.file.as_deref())?;
    let scale = stop.scale.as_deref();
    let experiment = chapter.choose(std::slice::from_ref(&stop.experiment))?[0];
    let scenario = experiment.scenario_at(scale)?;
    let source = place.scenario(scenario)?;
    let scenarios = chapter
        .side
        .iter()
        .map(|side| load(&source, &Changes::default(), &experiment.settings(side, scale), watcher));
    let scenarios = scenarios.collect::<Result<Vec<Scenario>, Error>>()?;
    let path = place.path_of(scenario).display().to_string();
    Ok(Ready { stop: stop.clone(), chapter, path, scenarios })
}

impl Ready {
    fn run(self, name: &str, ask: &Ask, watcher: &dyn Watcher) -> Result<(Came, Extent), Error> {
        let Ready { stop, chapter, path, scenarios } = self;
        let plan = Plan { name: name.to_string(), repeat: stop.seeds, jobs: ask.jobs, watcher };
        let Made { variants, extent } = plan.run(&scenarios)?;
        let failures = variants.iter().zip(&chapter.side);
        let failures: Vec<Failed> = failures
            .flat_map(|(runs, side)| runs.failures_of(&format!("{}, {}", stop.name, side.name)))
            .collect();
        // A table needs all of its sides.
        let is_told = variants.iter().all(Runs::was_made) && variants.iter().any(Runs::is_whole);
        if !is_told {
            return Ok((Came::Nothing(failures), extent));
        }
        let experiment = chapter.choose(std::slice::from_ref(&stop.experiment))?[0];
        let names: Vec<&str> = chapter.side.iter().map(|side| side.name.as_str()).collect();
        let measured = measured(experiment, &variants, &names, extent.seeds as usize)?;
        let done = Done {
            address: chapter.source.clone(),
            scenario: path,
            seeds: extent.seeds,
            told_seeds: extent.seeds_from(scenarios[0].seed),
            told: lines(&names, &measured).into_iter().map(Told::of).collect(),
            rows: measured.iter().map(|row| row.json(&names)).collect(),
            failures,
            stop,
        };
        Ok((Came::Stop(Box::new(done)), extent))
    }
}

impl Told {
    fn of(line: Line) -> Told {
        let not_held = || line.rows.iter().filter(|(_, of)| *of == Verdict::NotHeld).map(|(claim, _)| *claim);
        let asked = not_held().filter_map(|claim| {
            let note = if claim.note.is_empty() { String::new() } else { format!(" ({})", claim.note) };
            claim.holds.as_ref().map(|relation| format!("{relation}{note}"))
        });
        let because = || not_held().filter(|claim| !claim.because.is_empty());
        Told {
            asked: asked.collect(),
            because: because().map(|claim| claim.because.clone()).collect(),
            shown_by: because().flat_map(|claim| claim.shown_by.clone()).collect(),
            better: line.rows.first().map_or(Better::Neither, |(claim, _)| claim.better()),
            name: line.name,
            side: line.side.to_string(),
            against: line.against.map(str::to_string),
            published: line.published,
            ours: line.ours,
            verdict: line.verdict,
            is_way_only: line.is_way_only,
            compared: line.compared,
            figures: line.figures,
            unit: line.unit,
        }
    }

    /// The form in tables.
    pub fn cells(&self) -> [String; 4] {
        let verdict = format!("{}: {}", self.verdict.told(), self.compared);
        [self.name.clone(), self.published.clone(), self.ours.clone(), verdict]
    }

    fn json(&self) -> Value {
        let figures = match self.figures {
            Some(Figures::Changes(published, ours)) => json!({
                "published_change_percent": published * 100.0,
                "change_percent": ours.percent(ours.difference),
                "change_half_width_percent": ours.half_width.and_then(|half| ours.percent(half)),
            }),
            Some(Figures::Levels(published, ours)) => json!({ "published_level": published, "level": ours }),
            None => json!({}),
        };
        let line = json!({
            "row": self.name,
            "side": self.side,
            "against": self.against,
            "published": self.published,
            "ours": self.ours,
            "verdict": match self.verdict {
                Verdict::Held => "held",
                Verdict::NotHeld => "not_held",
                Verdict::NotDecided => "not_decided",
            },
            "which_way_alone": self.is_way_only,
            "compared": self.compared,
            "asked": self.asked,
            "because": self.because,
            "shown_by": self.shown_by,
        });
        merged(line, figures)
    }
}

impl Done {
    /// The subject of pageout's figures.
    pub fn ours_on(&self) -> String {
        let of = if self.seeds == 1 { "Of" } else { "Means of" };
        format!("{} {of} {}.", self.stop.ours_on, self.told_seeds)
    }

    /// Returns the number of its lines that hold.
    pub fn tally(&self) -> Tally {
        let of = |verdict| self.told.iter().filter(|line| line.verdict == verdict).count();
        Tally {
            held: of(Verdict::Held),
            not_held: of(Verdict::NotHeld),
            not_decided: of(Verdict::NotDecided),
        }
    }

    /// Returns sentences about lines that do not hold: the relation; and the reason if it is known, once for all lines of the same reason.
    pub fn reasons(&self) -> Vec<String> {
        let not_held = || self.told.iter().filter(|line| line.verdict == Verdict::NotHeld);
        let mut reasons: Vec<String> = not_held()
            .flat_map(|line| {
                line.asked.iter().map(|asked| format!("Not reproduced, {}: expected {asked}.", line.name))
            })
            .collect();
        let mut known: Vec<&String> = Vec::new();
        for line in not_held() {
            for because in &line.because {
                if known.contains(&because) {
                    continue;
                }
                known.push(because);
                let of = not_held().filter(|line| line.because.contains(because));
                let names: Vec<&str> = of.map(|line| line.name.as_str()).collect();
                reasons.push(format!("Why, {}: {because}", names.join("; ")));
                reasons.extend(line.shown_by.iter().map(|command| format!("  {command}")));
            }
        }
        reasons
    }

    fn json(&self) -> Value {
        let stop = &self.stop;
        let json = json!({
            "name": stop.name,
            "title": stop.title,
            "author": stop.author,
            "source": self.address,
            "claim": stop.claim,
            "machine": { "published": stop.published_on, "ours": stop.ours_on },
            "chapter": stop.chapter,
            "experiment": stop.experiment,
            "scale": stop.scale.as_deref().unwrap_or("full"),
            "scenario": self.scenario,
            "seeds": self.seeds,
            "failures": self.failures,
            "lines": self.told.iter().map(Told::json).collect::<Vec<_>>(),
            "rows": self.rows,
            "more": stop.more,
        });
        merged(json, self.tally().json())
    }
}

impl Tally {
    fn of_all(done: &[Done]) -> Tally {
        done.iter().map(Done::tally).fold(Tally::default(), |sum, of| Tally {
            held: sum.held + of.held,
            not_held: sum.not_held + of.not_held,
            not_decided: sum.not_decided + of.not_decided,
        })
    }

    /// `22 of 27 hold, 4 do not, 1 is not decided at this size`.
    pub fn says(self) -> String {
        let Tally { held, not_held, not_decided } = self;
        let verb = |count: usize, one: &'static str, many: &'static str| if count == 1 { one } else { many };
        let mut says = format!("{held} of {} {}", held + not_held + not_decided, verb(held, "holds", "hold"));
        if not_held > 0 {
            says += &format!(", {not_held} {}", verb(not_held, "does not", "do not"));
        }
        if not_decided > 0 {
            says += &format!(", {not_decided} {} not decided at this size", verb(not_decided, "is", "are"));
        }
        says
    }

    fn json(self) -> Value {
        json!({ "held": self.held, "not_held": self.not_held, "not_decided": self.not_decided })
    }
}

impl Answer {
    /// Returns the number of lines that hold, of all stops.
    pub fn tally(&self) -> Tally {
        Tally::of_all(&self.stops)
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        for stop in &self.stops {
            let Tally { held, not_held, not_decided } = stop.tally();
            let (sum, lines) = (held + not_held + not_decided, stop.told.len());
            if sum != lines {
                return Err(format!("stop `{}`: it has {lines} lines but {sum} verdicts", stop.stop.name));
            }
            let failed = stop
                .failures
                .iter()
                .filter(|failed| !self.failures.iter().any(|of| of.message == failed.message));
            if failed.count() > 0 {
                return Err(format!("stop `{}`: the tour does not list all of its failures", stop.stop.name));
            }
        }
        match self.not_run.is_empty() || self.warning.is_some() {
            true => Ok(()),
            false => Err(format!("{} were not run, but the answer has no warning", self.not_run.join(", "))),
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let mut json = json!({
            "complete": !self.extent.is_interrupted() && self.failures.is_empty(),
            "stops": self.stops.iter().map(Done::json).collect::<Vec<_>>(),
            "not_run": self.not_run,
            "failures": self.failures,
            "criteria": format!("{CRITERIA} {UNDECIDED}"),
        });
        if let Some(warning) = &self.warning {
            json["warning"] = json!(warning);
        }
        merged(json, self.tally().json())
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}
