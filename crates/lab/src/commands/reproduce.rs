//! `pageout reproduce`: a published table beside ours, row by row, and which rows hold.
//!
//! ```text
//!   chapter ─▶ experiments × sides × seeds ─▶ runs side by side ─▶ claims judged ─▶ table, JSON, page
//! ```
//! What was published, which figures of ours are it, and the workloads are data ([`chapter`]). A row that does not hold is shown
//! like any other, with the reason where one is known: a row is a finding, not a test. So the exit code tells whether all runs
//! ended, and nothing of the rows.

mod chapter; // what was published, as data
mod judge; // whether a row holds
mod page; // the table as a page
mod shipped; // chapters of the program, or of a file
mod tour; // one experiment of each of five chapters

use std::fmt::Write;

use pageout_sim::scenario::Scenario;
use pageout_study::Failed;
use pageout_study::result::metrics::{Metric, Unit, metrics};
use pageout_study::result::notes;
use pageout_study::result::spread::{Paired, Spread};
use pageout_study::result::variants::{Extent, Made, Plan, Runs};
use pageout_study::scenario::nearest::nearest;
use pageout_study::scenario::source::Source;
use serde_json::{Value, json};

use crate::cli::ReproduceArgs;
use crate::cli::load;
use crate::failure::{Failure, Outcome};
use crate::print::progress::Terminal;
use crate::print::{output, remarks, table};
use crate::report::{Picture, check_name};
use chapter::{Chapter, Claim, Direction, Experiment, Published};
use judge::{CRITERIA, Judged, Measured};
use shipped::{CHAPTERS, Place};
pub(crate) use tour::tour;

/// Runs a chapter's experiments at each of its sides, and prints the table.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Outcome {
    if args.list {
        return list(args);
    }
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let name = args.name.as_deref().expect("the command line asks for it unless there is --list");
    let place = Place::find(name)?;
    let chapter = place.chapter()?;
    let mut loaded: Vec<(&Experiment, Source)> = Vec::new();
    let mut scenarios: Vec<Scenario> = Vec::new();
    for experiment in chapter.choose(&args.experiments)? {
        let source = place.scenario(experiment.scenario_at(args.scale.as_deref())?)?;
        for side in &chapter.side {
            scenarios.push(load(&source, &args.options, &experiment.settings(side, args.scale.as_deref()))?);
        }
        loaded.push((experiment, source));
    }
    let terminal = Terminal::new(&args.options.output);
    let plan =
        Plan { name: name.to_string(), repeat: args.seeds, jobs: args.parallel.jobs, watcher: &terminal };
    let Made { variants, extent } = plan.run(&scenarios)?;
    let mut runs = variants.into_iter();
    let experiments = loaded.into_iter().map(|(experiment, source)| Reproduced {
        experiment,
        source,
        sides: runs.by_ref().take(chapter.side.len()).collect(),
    });
    let (experiments, not_run): (Vec<Reproduced>, Vec<Reproduced>) =
        experiments.partition(|reproduced| reproduced.sides.iter().all(Runs::was_made));
    let found = Found {
        args,
        name,
        chapter: &chapter,
        place: &place,
        extent: &extent,
        seed: scenarios[0].seed,
        experiments,
        not_run: not_run.into_iter().map(|reproduced| reproduced.experiment).collect(),
    };
    let failures = found.failures();
    if found.experiments.iter().flat_map(|of| &of.sides).all(|runs| runs.results.is_empty()) {
        let failure = extent.nothing("every run failed", &failures);
        return output::no_result(&args.options.output, failure.into(), Value::Null);
    }
    let tables = found.tables()?;
    if args.options.output.is_data() {
        output::print_json(&found.json(&tables))?;
    } else {
        output::print_text(&found.text(&tables))?;
    }
    if let Some(path) = &args.page.report {
        page::page(&found, &tables).write(path)?;
    }
    Ok(extent.verdict(&failures)?)
}

/// The chapters that there are.
fn list(args: &ReproduceArgs) -> Outcome {
    let mut rows = vec![["chapter", "experiment", "sizes", ""].map(str::to_string).to_vec()];
    let mut chapters: Vec<Value> = Vec::new();
    for (name, _) in CHAPTERS {
        let chapter = Place::find(name)?.chapter()?;
        rows.push([name, "", "", chapter.title.as_str()].map(str::to_string).to_vec());
        for experiment in &chapter.experiment {
            let sizes: Vec<&str> = experiment.scales().map(|scale| scale.unwrap_or("full")).collect();
            rows.push(
                ["", &experiment.name, &sizes.join(", "), &experiment.title].map(str::to_string).to_vec(),
            );
        }
        let experiments = chapter.experiment.iter().map(|experiment| {
            json!({
                "name": experiment.name,
                "title": experiment.title,
                "scaled": experiment.scaled.keys().collect::<Vec<_>>(),
                "rows": experiment.claim.len(),
            })
        });
        let experiments: Vec<Value> = experiments.collect();
        chapters.push(json!({ "name": name, "title": chapter.title, "source": chapter.source, "experiments": experiments }));
    }
    match args.options.output.is_data() {
        true => output::print_json(&chapters),
        false => output::print_text(&table::layout(&rows, 4)),
    }
}

/// One experiment with its runs, a side each.
struct Reproduced<'a> {
    experiment: &'a Experiment,
    source: Source,
    sides: Vec<Runs>,
}

/// All that was found out.
struct Found<'a> {
    args: &'a ReproduceArgs,
    name: &'a str,
    chapter: &'a Chapter,
    place: &'a Place,
    extent: &'a Extent,
    seed: u64,
    experiments: Vec<Reproduced<'a>>,
    /// Experiments that a signal came before the end of: of some side there is no run, so no row can be judged.
    not_run: Vec<&'a Experiment>,
}

impl Reproduced<'_> {
    /// Every claim's values at every side. Errors: a claim names a figure that no run has.
    fn measured(&self, names: &[&str], seeds: usize) -> Result<Vec<Measured<'_>>, Failure> {
        let sides: Vec<Option<Vec<Vec<Metric>>>> = self
            .sides
            .iter()
            .map(|runs| {
                runs.is_whole().then(|| runs.results.iter().map(|result| metrics(result, true)).collect())
            })
            .collect();
        self.experiment.claim.iter().map(|claim| self.measure(claim, &sides, names, seeds)).collect()
    }

    fn measure<'a>(
        &self,
        claim: &'a Claim,
        sides: &[Option<Vec<Vec<Metric>>>],
        names: &[&str],
        seeds: usize,
    ) -> Result<Measured<'a>, Failure> {
        let mut unit = Unit::Count;
        let mut measured = Vec::new();
        for runs in sides {
            let values = runs.as_ref().map(|runs| {
                let values = runs.iter().map(|metrics| match judge::figure(claim, metrics) {
                    Ok((value, of)) => {
                        unit = of;
                        Ok(value)
                    }
                    Err(name) => Err(self.no_such_figure(claim, &name, metrics)),
                });
                values.collect::<Result<Vec<f64>, Failure>>()
            });
            measured.push(values.transpose()?);
        }
        let relation = judge::relation(claim, names, &measured, seeds);
        Ok(Measured { claim, unit, sides: measured, relation })
    }

    fn no_such_figure(&self, claim: &Claim, name: &str, metrics: &[Metric]) -> Failure {
        let names: Vec<String> = metrics.iter().map(Metric::full_name).collect();
        let hint = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`pageout compare FILE --all --json` has the names of all figures".to_string(),
        };
        Failure::Input(anyhow::anyhow!(
            "experiment `{}`, row `{}`: no run has a figure called `{name}`; {hint}",
            self.experiment.name,
            claim.row
        ))
    }
}

impl Found<'_> {
    /// The failures of all runs, saying whose they are.
    fn failures(&self) -> Vec<Failed> {
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

    fn tables(&self) -> Result<Vec<Vec<Measured<'_>>>, Failure> {
        let (names, seeds) = (self.side_names(), self.extent.seeds as usize);
        self.experiments.iter().map(|reproduced| reproduced.measured(&names, seeds)).collect()
    }

    fn side_names(&self) -> Vec<&str> {
        self.chapter.side.iter().map(|side| side.name.as_str()).collect()
    }

    fn text(&self, tables: &[Vec<Measured>]) -> String {
        let width = output::width();
        let mut text = output::wrap(&self.chapter.title, width, "");
        _ = writeln!(text, "{}; {}", self.chapter.source, self.extent.seeds_from(self.seed));
        text += &remarks::warning(self.extent);
        if let Some(says) = self.not_run() {
            text += &output::wrap(&says, width, "");
        }
        for says in self.preface() {
            text += &output::wrap(&says, width, "");
        }
        for (reproduced, measured) in self.experiments.iter().zip(tables) {
            _ = write!(text, "\n{}", self.heading(reproduced));
            text += &table::layout_by(&self.rows(measured), |column| (1..=5).contains(&column));
            for says in self.remarks(reproduced, measured) {
                text += &output::wrap(&says, width, "  ");
            }
        }
        text += &output::failed(self.failures().iter().map(ToString::to_string));
        _ = write!(text, "\n{}", output::wrap(&self.tally(tables), width, ""));
        text.push_str(&output::wrap(CRITERIA, width, ""));
        let notes: Vec<(&str, &[notes::Note])> = self
            .experiments
            .iter()
            .filter_map(|reproduced| {
                let result = reproduced.sides.iter().find_map(|runs| runs.results.first())?;
                Some((reproduced.experiment.name.as_str(), result.notes.as_slice()))
            })
            .collect();
        let noted = remarks::notes(&notes::of_several(notes.into_iter()));
        if noted.is_empty() { text } else { format!("{text}\n{noted}") }
    }

    /// A sentence about the experiments that can't be judged, if there are any.
    fn not_run(&self) -> Option<String> {
        let names: Vec<&str> = self.not_run.iter().map(|experiment| experiment.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("Not run, or not with every side: {}.", names.join(", ")))
    }

    /// What a reader has to know before the tables.
    fn preface(&self) -> Vec<String> {
        let noted = self.chapter.side.iter().filter(|side| !side.note.is_empty());
        let sides = noted.map(|side| format!("{}: {}", side.name, side.note));
        std::iter::once(self.chapter.note.clone()).filter(|note| !note.is_empty()).chain(sides).collect()
    }

    fn heading(&self, reproduced: &Reproduced) -> String {
        let Reproduced { experiment, .. } = reproduced;
        let scenario = experiment.scenario_at(self.args.scale.as_deref()).unwrap_or(&experiment.scenario);
        let path = self.place.path_of(scenario);
        output::wrap(
            &format!("{}: {} ({})", experiment.name, experiment.title, path.display()),
            output::width(),
            "",
        )
    }

    /// A claim with the base's figure, and below it a line for each other side. A claim that is a relation between sides leaves out those
    /// that it says nothing of: with a dozen sides, the two in question would be hard to find.
    fn rows(&self, measured: &[Measured]) -> Vec<Vec<String>> {
        let heading = ["", "published", "ours", "change", "sign right", "size", ""];
        let mut rows = vec![heading.map(str::to_string).to_vec()];
        for row in measured {
            let judged = row.judge();
            let published = row.claim.published.map_or(String::new(), |published| told(published, row.unit));
            for (index, ((side, values), judged)) in
                self.chapter.side.iter().zip(&row.sides).zip(&judged).enumerate()
            {
                let name = if index == 0 { row.claim.row.clone() } else { format!("  {}", side.name) };
                let level = row.claim.levels.of(index, &side.name).map(|level| row.unit.show(level));
                if index > 0 && level.is_none() && !row.claim.speaks_of(&side.name) {
                    continue;
                }
                let of_base = if index == 0 { published.clone() } else { String::new() };
                let published = level.unwrap_or(of_base);
                rows.push(cells(name, published, row.unit, values.as_deref(), judged));
            }
        }
        rows
    }

    /// What is to be said of the rows of an experiment: definitions, and reasons where a row does not hold.
    fn remarks(&self, reproduced: &Reproduced, measured: &[Measured]) -> Vec<String> {
        let mut remarks: Vec<String> =
            Some(reproduced.experiment.note.clone()).filter(|note| !note.is_empty()).into_iter().collect();
        for row in measured {
            let Claim { row: name, note, because, shown_by, .. } = row.claim;
            if !note.is_empty() {
                remarks.push(format!("{name}: {note}"));
            }
            if let Some(relation) = &row.claim.holds {
                remarks.push(format!("{name}: to hold is {relation}"));
            }
            if row.judge().iter().any(|judged| judged.holds == Some(false)) && !because.is_empty() {
                remarks.push(format!("{name}, where it is not held: {because}"));
                remarks.extend(shown_by.iter().map(|command| format!("  {command}")));
            }
        }
        remarks
    }

    /// How many rows hold, by side.
    fn tally(&self, tables: &[Vec<Measured>]) -> String {
        let judged: Vec<Vec<Judged>> = tables.iter().flatten().map(Measured::judge).collect();
        let of = |index: usize| {
            let rows: Vec<bool> = judged.iter().filter_map(|sides| sides[index].holds).collect();
            let held = rows.iter().filter(|&&holds| holds).count();
            (!rows.is_empty())
                .then(|| format!("{}: {held} of {} rows held", self.chapter.side[index].name, rows.len()))
        };
        let sides: Vec<String> = (0..self.chapter.side.len()).filter_map(of).collect();
        sides.join("; ") + "."
    }

    fn json(&self, tables: &[Vec<Measured>]) -> Value {
        let names = self.side_names();
        let experiments = self.experiments.iter().zip(tables).map(|(reproduced, measured)| {
            let Reproduced { experiment, sides, .. } = reproduced;
            let failures: Vec<&Failed> = sides.iter().flat_map(|runs| &runs.failures).collect();
            json!({
                "name": experiment.name,
                "title": experiment.title,
                "scenario": experiment.scenario_at(self.args.scale.as_deref()).ok(),
                "failures": failures,
                "rows": measured.iter().map(|row| row.json(&names)).collect::<Vec<_>>(),
            })
        });
        let json = json!({
            "complete": !self.extent.is_interrupted() && self.failures().is_empty(),
            "chapter": self.name,
            "title": self.chapter.title,
            "source": self.chapter.source,
            "scale": self.args.scale.as_deref().unwrap_or("full"),
            "seed": self.seed,
            "sides": names,
            "experiments": experiments.collect::<Vec<_>>(),
            "not_run": self.not_run.iter().map(|experiment| &experiment.name).collect::<Vec<_>>(),
            "criteria": CRITERIA,
        });
        let seeds = json!({ "seeds": self.extent.seeds });
        output::merged(output::merged(json, self.extent.json()), seeds)
    }
}

fn cells(
    name: String,
    published: String,
    unit: Unit,
    values: Option<&[f64]>,
    judged: &Judged,
) -> Vec<String> {
    let Some(values) = values else {
        return vec![
            name,
            published,
            "failed".into(),
            String::new(),
            String::new(),
            String::new(),
            judged.verdict(),
        ];
    };
    let spread = Spread::of(values);
    let value = match spread.count {
        1 => unit.show(spread.mean),
        _ => format!("{} ± {}", unit.show(spread.mean), unit.show(spread.deviation)),
    };
    let change = judged.change.as_ref().map_or(String::new(), change);
    let sign = judged.sign.map_or(String::new(), |(right, _)| format!("{right} of {}", values.len()));
    let size = match judged.size {
        None => String::new(),
        Some(size) if size.is_nan() => "-".to_string(),
        Some(size) => format!("{size:.2}x"),
    };
    vec![name, published, value, change, sign, size, judged.verdict()]
}

/// A change in percent with its interval.
fn change(change: &Paired) -> String {
    if change.is_same {
        return "=".to_string();
    }
    let Some(percent) = change.percent(change.difference) else { return "from nothing".to_string() };
    let half = change.half_width.and_then(|half| change.percent(half));
    format!("{percent:+.1}%{}", half.map_or(String::new(), |half| format!(" ± {half:.1}")))
}

/// What was published, in a cell.
fn told(published: Published, unit: Unit) -> String {
    match published {
        Published::Change(change) => format!("{:+.0}%", change * 100.0),
        Published::Levels { before, after } => format!("{} to {}", unit.show(before), unit.show(after)),
        Published::Base(base) => unit.show(base),
        Published::Direction(Direction::Less) => "less".to_string(),
        Published::Direction(Direction::More) => "more".to_string(),
    }
}
