//! What a kernel will do, written down before it does.
//!
//! ```text
//!   vary A=1,2              columns: what is asked        (or the scenario's variants)
//!   unknown B=x,y  seeds    runs of each column: what is not known    ──▶ their median, and the least and the most
//! ```
//! A figure is worth something as a prediction only if it was there first, says how far it may be off, and can be checked. So an answer has its
//! time and what predicted it, ranges over what is not known, and the commands by which someone with a kernel finds out.

mod accesses; // what tasks access, for who checks
mod check; // the commands of who checks
mod clock; // what time it is

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pageout_sim::scenario::Scenario;
use pageout_study::result::expectations::{self, Checked};
use pageout_study::result::metrics::{Metric, Unit, metrics};
use pageout_study::result::run_result::RunResult;
use pageout_study::result::variants::{Extent, Made, Plan, Runs};
use pageout_study::scenario::grid::{self, Point};
use pageout_study::scenario::load::Changes;
use pageout_study::scenario::own_variants::{self, Variant};
use pageout_study::scenario::source::{Setting, Source, UNKNOWN, VARY};
use pageout_study::scenario::variation::{Variation, one_way_to_vary_the_seed};
use pageout_study::{Failed, Watcher};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::error::Error;

/// The subject of the prediction.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The scenario file, or -, standard input.
    pub scenario: PathBuf,
    /// The name of its runs in progress messages.
    pub name: String,
    /// The changes of the scenario.
    pub changes: Changes,
    /// The compared values, one column each; none means the scenario's own variants, or the unchanged scenario.
    pub vary: Vec<Variation>,
    /// The unknown inputs: keys and their possible values, over which figures range.
    pub unknown: Vec<Variation>,
    /// Runs of each combination, with seeds counted up from the scenario's. 1 or more.
    pub seeds: u32,
    /// Runs at the same time; 0 is one a CPU.
    pub jobs: usize,
    /// Every counter, not only the main counters, and times.
    pub all: bool,
    /// The predicting program, with its version: another program may have other rules.
    pub build: String,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            scenario: PathBuf::new(),
            name: String::new(),
            changes: Changes::default(),
            vary: Vec::new(),
            unknown: Vec::new(),
            seeds: 5,
            jobs: 0,
            all: false,
            build: concat!("pageout ", env!("CARGO_PKG_VERSION")).to_string(),
        }
    }
}

/// A prediction.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    /// Failures of runs, saying whose they are.
    pub failures: Vec<Failed>,
    /// The chosen columns; there is at least one.
    pub columns: Vec<Column>,
    /// The expectations of the scenario. Empty if a run failed or is missing.
    pub claims: Vec<Claim>,
    /// The time when it was made, as `2026-11-27 17:44:03 UTC`.
    pub at: String,
}

/// One choice, with its runs.
#[derive(Debug)]
pub struct Column {
    /// The scenario with what was chosen; of what is not known, with the first values.
    pub variant: Variant,
    /// The results of all runs: for each combination of what is not known, in order of seeds.
    pub results: Vec<RunResult>,
    /// Their figures.
    pub figures: Figures,
}

/// Runs everything. Errors: the scenario or what is varied makes no sense; what is expected has no figure. Runs that fail are part of the
/// answer, which then predicts nothing ([`Answer::verdict`]).
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let source = Source::read(&ask.scenario)?;
    one_way_to_vary_the_seed(VARY, &ask.vary, ask.seeds)?;
    one_way_to_vary_the_seed(UNKNOWN, &ask.unknown, ask.seeds)?;
    if let Some(twice) = ask.vary.iter().find(|chosen| ask.unknown.iter().any(|open| open.key == chosen.key))
    {
        let message = format!("{}: found in both {VARY} and {UNKNOWN}, expected in one of them", twice.key);
        return Err(Error::asked(message));
    }
    let mut worlds: Vec<Vec<Variant>> = grid::points(&source, &ask.changes, &ask.unknown, UNKNOWN, watcher)?
        .into_iter()
        .map(|point| columns(ask, &source, point, watcher))
        .collect::<Result<_, Error>>()?;
    if let Some(fails) = worlds[0].iter().find(|column| column.fails.is_some()) {
        let message =
            format!("variant `{}` is expected to fail, so it has no figures to predict", fails.label);
        return Err(Error::asked(message));
    }
    let scenarios: Vec<Scenario> = worlds.iter().flatten().map(|column| column.scenario.clone()).collect();
    let plan = Plan { name: ask.name.clone(), repeat: ask.seeds, jobs: ask.jobs, watcher };
    let Made { variants: runs, extent } = plan.run(&scenarios)?;
    let names = worlds.iter().flatten().map(|column| &column.label);
    let failures: Vec<Failed> = names.zip(&runs).flat_map(|(name, runs)| runs.failures_of(name)).collect();
    let variants = worlds.swap_remove(0);
    let is_whole = !extent.is_interrupted() && failures.is_empty();
    let claims = if is_whole { claims(ask, &source, &variants, &runs)? } else { Vec::new() };
    let mut columns: Vec<Column> = variants
        .into_iter()
        .map(|variant| Column { variant, results: Vec::new(), figures: Figures::default() })
        .collect();
    let count = columns.len();
    for (at, runs) in runs.into_iter().enumerate() {
        columns[at % count].results.extend(runs.results);
    }
    for column in &mut columns {
        column.figures = Figures::of(column.results.iter(), ask.all);
    }
    let at = clock::now_utc();
    let answer = Answer { ask: ask.clone(), extent, failures, columns, claims, at };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// The columns with one combination of what is not known.
fn columns(ask: &Ask, source: &Source, point: Point, watcher: &dyn Watcher) -> Result<Vec<Variant>, Error> {
    let settings: Vec<Setting> = ask.changes.settings.iter().chain(&point.settings).cloned().collect();
    let changes = Changes { settings, seed: ask.changes.seed };
    if !ask.vary.is_empty() {
        let points = grid::points(source, &changes, &ask.vary, VARY, watcher)?;
        let columns = points.into_iter().map(|Point { settings, scenario }| Variant {
            label: grid::label(&settings),
            settings,
            scenario,
            fails: None,
        });
        return Ok(columns.collect());
    }
    let mut columns = own_variants::all(source, &changes, &point.scenario, watcher)?;
    if columns.is_empty() {
        let label = "as written".to_string();
        columns.push(Variant { label, settings: Vec::new(), scenario: point.scenario, fails: None });
    }
    Ok(columns)
}

/// What the scenario expects of its variants, over all that is not known.
fn claims(ask: &Ask, source: &Source, columns: &[Variant], runs: &[Runs]) -> Result<Vec<Claim>, Error> {
    let expected = if ask.vary.is_empty() { &columns[0].scenario.expect[..] } else { &[] };
    let mut claims: Vec<Claim> = Vec::new();
    for runs in runs.chunks(columns.len()) {
        let sides: Vec<(&str, Vec<&RunResult>)> = columns
            .iter()
            .zip(runs)
            .map(|(column, runs)| (column.label.as_str(), runs.results.iter().collect()))
            .collect();
        let checked = expectations::check(source, expected, &sides)?;
        match claims.is_empty() {
            true => claims = checked.into_iter().map(Claim::of).collect(),
            false => claims.iter_mut().zip(checked).for_each(|(claim, checked)| claim.add(&checked)),
        }
    }
    Ok(claims)
}

/// An expectation of the scenario, and the number of runs in which it is true.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The figure.
    pub figure: String,
    /// The relation that must hold.
    pub holds: String,
    /// The reason why it is expected.
    pub because: String,
    /// In how many runs it holds.
    pub true_for: usize,
    /// The number of runs.
    pub runs: usize,
}

impl Claim {
    fn of(checked: Checked) -> Claim {
        let Checked { figure, holds, because, true_for, seeds, .. } = checked;
        Claim { figure, holds, because, true_for, runs: seeds }
    }

    fn add(&mut self, checked: &Checked) {
        self.true_for += checked.true_for;
        self.runs += checked.seeds;
    }
}

/// Every figure of a column, in the order of the first run that has it: its values over all runs.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Each figure, as the first run that has it has it.
    pub names: Vec<Metric>,
    values: BTreeMap<(String, String), Vec<f64>>,
}

impl Figures {
    fn of<'a>(runs: impl Iterator<Item = &'a RunResult>, all: bool) -> Figures {
        let mut figures = Figures::default();
        for metric in runs.flat_map(|result| metrics(result, all)) {
            let values = figures.values.entry(metric.place()).or_default();
            if values.is_empty() {
                figures.names.push(metric.clone());
            }
            values.push(metric.value);
        }
        figures.values.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
        figures
    }

    /// The least, the median and the most.
    pub fn range(&self, metric: &Metric) -> Option<[f64; 3]> {
        let values = self.values.get(&metric.place())?;
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        let median = if below == above { below } else { below / 2.0 + above / 2.0 };
        Some([values[0], median, values[values.len() - 1]])
    }

    /// The median, with the least and the most where they differ.
    pub fn show(&self, metric: &Metric) -> String {
        let Some(range) = self.range(metric) else { return "-".to_string() };
        let [least, median, most] = range.map(|value| metric.unit.show(value));
        if least == most { median } else { format!("{median} ({least} to {most})") }
    }
}

impl Answer {
    /// Checks that there is a prediction. Errors: runs failed, or were interrupted, and nothing is predicted.
    pub fn verdict(&self) -> Result<(), Error> {
        if !self.extent.is_interrupted() && self.failures.is_empty() {
            return Ok(());
        }
        self.extent.verdict(&self.failures)?;
        Err(self.extent.nothing("nothing is predicted", &self.failures).into())
    }

    /// Runs of each column: combinations of what is not known, with each seed.
    pub fn runs(&self) -> usize {
        let worlds: usize = self.ask.unknown.iter().map(|unknown| unknown.values.len()).product();
        worlds * self.extent.seeds as usize
    }

    /// Figures that are not zero in every column, without those that repeat another. Times are excluded: they depend on typical costs, not
    /// on those of the machine that checks the prediction.
    pub fn told(&self) -> Vec<&Metric> {
        let mut told: Vec<&Metric> = Vec::new();
        for metric in self.columns.iter().flat_map(|column| &column.figures.names) {
            let values = |metric: &Metric| -> Vec<_> {
                self.columns.iter().map(|column| column.figures.values.get(&metric.place())).collect()
            };
            let is_nothing = values(metric).into_iter().flatten().flatten().all(|value| *value == 0.0);
            let is_repeat = metric.total().is_some_and(|total| values(&total) == values(metric));
            let is_of_time = matches!(metric.unit, Unit::Nanoseconds | Unit::PerSecond);
            if !is_nothing
                && !is_repeat
                && (self.ask.all || !is_of_time)
                && told.iter().all(|known| known.place() != metric.place())
            {
                told.push(metric);
            }
        }
        told
    }

    /// Commands by which someone with a kernel finds out, as Markdown. `accesses` is the folder that they name, and `written` what has been written
    /// into it ([`Answer::write_accesses`]).
    pub fn how_to_check(&self, accesses: Option<&Path>, written: &[String]) -> String {
        check::text(&self.columns, accesses, written)
    }

    /// Writes what each task of the first column accesses into a folder: the names of the files, in the order of tasks. Errors: an access
    /// can't be made, a file can't be written ([`Error::Write`]).
    pub fn write_accesses(&self, directory: &Path) -> Result<Vec<String>, Error> {
        accesses::write(directory, &self.columns[0].variant.scenario)
    }

    /// Checks the sums of the answer. Errors: the first sum that is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.columns.is_empty() {
            return Err("no column".to_string());
        }
        if self.verdict().is_err() {
            return match self.claims.is_empty() {
                true => Ok(()),
                false => Err("claims have verdicts although runs are missing".to_string()),
            };
        }
        let runs = self.runs();
        if let Some(column) = self.columns.iter().find(|column| column.results.len() != runs) {
            let (label, results) = (&column.variant.label, column.results.len());
            return Err(format!("column `{label}`: found {results} results, expected {runs}"));
        }
        match self.claims.iter().find(|claim| claim.runs != runs || claim.true_for > runs) {
            None => Ok(()),
            Some(claim) => Err(format!("`{}`: the verdict uses {} of {runs} runs", claim.holds, claim.runs)),
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let columns = self.columns.iter().map(|Column { variant, figures, .. }| {
            let of = |metric: &Metric| {
                let [least, median, most] = figures.range(metric).expect("it is one of this column's");
                (metric.full_name(), json!({ "least": least, "middle": median, "most": most }))
            };
            let figures: serde_json::Map<String, Value> = figures.names.iter().map(of).collect();
            json!({
                "label": variant.label,
                "rules": variant.scenario.kernel.name(),
                "settings": grid::settings_json(&variant.settings),
                "figures": figures,
            })
        });
        let unknown = self.ask.unknown.iter().map(|unknown| (unknown.key.clone(), json!(unknown.values)));
        let claims = self.claims.iter().map(|Claim { figure, holds, because, true_for, runs }| {
            json!({ "figure": figure, "holds": holds, "because": because, "true_for": true_for, "runs": runs })
        });
        json!({
            "complete": self.verdict().is_ok(),
            "scenario": self.ask.scenario.to_string_lossy(),
            "predicted_at": self.at,
            "build": self.ask.build,
            "runs": self.runs(),
            "seeds": self.extent.seeds_from(self.columns[0].variant.scenario.seed),
            "unknown": unknown.collect::<serde_json::Map<String, Value>>(),
            "columns": columns.collect::<Vec<_>>(),
            "claims": claims.collect::<Vec<_>>(),
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
    fn key_that_is_chosen_and_not_known_is_refused() {
        let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/predictions/02-loop-limit.toml");
        let of = |text: &str| vec![text.parse::<Variation>().unwrap()];
        let refused = |vary: &str, unknown: &str| {
            let ask =
                Ask { scenario: scenario.into(), vary: of(vary), unknown: of(unknown), ..Ask::default() };
            super::ask(&ask, &()).unwrap_err().to_string()
        };
        let limits = "memcg./g.memory.max=4MiB,8MiB";
        assert_eq!(
            refused(limits, limits),
            "memcg./g.memory.max: found in both --vary and --unknown, expected in one of them"
        );
        // Five seeds, and seeds beside them.
        let both =
            "--unknown seed and --repeat: found both, expected one source of seeds\nhelp: remove one of them";
        assert_eq!(refused(limits, "seed=1,2"), both);
    }
}
