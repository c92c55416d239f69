//! Variants of a scenario side by side, as kernel cover letters print them.
//!
//! ```text
//!   vary A=1,2  vary B=x,y         columns  A=1 B=x   A=1 B=y   A=2 B=x   A=2 B=y      the first is the base
//!   repeat 3                       each column is three runs, seeds s, s+1, s+2; all runs share the CPUs
//!   within A        each column is compared with the first one of its A: A=1 B=y with A=1 B=x, A=2 B=y with A=2 B=x
//!   nothing to vary                the scenario's own variants, and what it expects of them
//! ```

mod figures; // figures of a variant over its seeds

use std::collections::BTreeSet;
use std::path::PathBuf;

use pageout_sim::scenario::Scenario;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

pub use self::figures::{Cell, Figures};
use crate::check::holds;
use crate::error::{Error, Failed};
use crate::json::merged;
use crate::result::caveats;
use crate::result::expectations::{self, Checked};
use crate::result::metrics::Metric;
use crate::result::run_result::RunResult;
use crate::result::variants::{Extent, Made, Plan, Runs};
use crate::scenario::grid::{self, Point};
use crate::scenario::load::Changes;
use crate::scenario::own_variants::{self, Variant};
use crate::scenario::source::{Source, VARY};
use crate::scenario::variation::{Variation, one_way_to_vary_the_seed};
use crate::watch::{Watcher, name_of};

/// The variants to compare.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The scenario's file; `-` is standard input. Default: none, which is an error.
    pub scenario: PathBuf,
    /// Changes in every variant. Default: none.
    pub changes: Changes,
    /// Keys with several values each, all combinations of which are variants. Default: none, and the scenario's own variants are compared.
    #[serde(deserialize_with = "crate::json::one_or_more")]
    pub vary: Vec<Variation>,
    /// A key of `vary`: each variant is compared with the first one that has its value of this key. Default: none, and all variants are compared
    /// with the first.
    pub within: Option<String>,
    /// Runs of each variant, with seeds counted up from the scenario's. 1 or more. Default: 1.
    pub repeat: u32,
    /// Runs at the same time; 0 is one for each CPU. Default: 0.
    pub jobs: usize,
    /// True if all figures are compared, and not only those that a summary has. Default: no.
    pub all: bool,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            scenario: PathBuf::new(),
            changes: Changes::default(),
            vary: Vec::new(),
            within: None,
            repeat: 1,
            jobs: 0,
            all: false,
        }
    }
}

/// Variants with their figures.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The scenario's file.
    pub source: Source,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    /// The variants, the base first.
    pub columns: Vec<Column>,
    /// Expectations of the scenario's own variants with their outcome; nothing where keys are varied.
    pub checked: Vec<Checked>,
}

/// A variant with its runs.
#[derive(Debug)]
pub struct Column {
    /// The variant.
    pub variant: Variant,
    /// Its runs.
    pub runs: Runs,
    /// Figures over its seeds; none if a run failed, as a mean of the survivors would be a wrong one.
    pub figures: Figures,
    /// The number of the column that it is compared with; its own if it is a base.
    pub base: usize,
}

/// Runs all variants and compares them. Errors: the scenario or a change makes no sense, there is nothing to compare, an expectation names a
/// figure that no run has. A variant whose runs fail is part of the answer, without figures.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let source = Source::read(&ask.scenario)?;
    one_way_to_vary_the_seed(VARY, &ask.vary, ask.repeat)?;
    let mut points = grid::points(&source, &ask.changes, &ask.vary, VARY, watcher)?;
    let groups = match &ask.within {
        Some(key) => grouped(key, &ask.vary, &mut points)?,
        None => vec![0; points.len()],
    };
    let varied = points.into_iter().map(|Point { settings, scenario }| Variant {
        label: grid::label(&settings),
        settings,
        scenario,
        fails: None,
    });
    let mut variants: Vec<Variant> = varied.collect();
    if ask.is_of_own() {
        variants = own_variants::all(&source, &ask.changes, &variants[0].scenario, watcher)?;
        if variants.is_empty() {
            let path = ask.scenario.display();
            let message = format!("nothing to compare: {path} has no [[variant]]\nhelp: give a --vary");
            return Err(Error::Asked(message));
        }
    }
    let plan = Plan { name: name_of(&ask.scenario), repeat: ask.repeat, jobs: ask.jobs, watcher };
    let scenarios: Vec<Scenario> = variants.iter().map(|variant| variant.scenario.clone()).collect();
    let Made { variants: results, extent } = plan.run(&scenarios)?;
    let columns = variants.into_iter().zip(results).enumerate().map(|(at, (variant, runs))| Column {
        figures: Figures::of(&runs, ask.all),
        variant,
        runs,
        base: groups.get(at).copied().unwrap_or(0),
    });
    let mut answer =
        Answer { ask: ask.clone(), source, extent, columns: columns.collect(), checked: Vec::new() };
    answer.checked = answer.expectations()?;
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// Sorts points by their value of a key, and returns the number of the first point of each one's value.
fn grouped(key: &str, vary: &[Variation], points: &mut [Point]) -> Result<Vec<usize>, Error> {
    let keys = || vary.iter().map(|variation| variation.key.as_str());
    if !keys().any(|known| known == key) || keys().count() < 2 {
        return Err(Error::asked(format!(
            "--within {key}: found {}, expected {VARY} of this key and of another one",
            if vary.is_empty() { format!("no {VARY}") } else { keys().collect::<Vec<_>>().join(", ") }
        )));
    }
    let value = |point: &Point| {
        let setting = point.settings.iter().find(|setting| setting.key == key);
        setting.map(|setting| setting.value.clone()).unwrap_or_default()
    };
    let mut values: Vec<String> = Vec::new();
    for point in points.iter() {
        if !values.contains(&value(point)) {
            values.push(value(point));
        }
    }
    points.sort_by_key(|point| values.iter().position(|known| *known == value(point)));
    let all: Vec<String> = points.iter().map(value).collect();
    Ok(all.iter().filter_map(|one| all.iter().position(|known| known == one)).collect())
}

impl Ask {
    /// Returns true if the scenario's own variants are compared.
    fn is_of_own(&self) -> bool {
        self.vary.is_empty()
    }
}

impl Column {
    /// Returns true if every run failed, as the scenario says.
    pub fn fails_as_known(&self) -> bool {
        self.known_failure().is_some_and(|checked| checked.is_true)
    }

    /// The verdict on a scenario that is expected to fail; nothing if a signal came before it.
    fn known_failure(&self) -> Option<Checked> {
        let fails = self.variant.fails.as_deref().filter(|_| self.runs.was_made())?;
        Some(expectations::check_failure(&self.variant.label, fails, &self.runs))
    }
}

impl Answer {
    /// The scenario of the first variant.
    pub fn base(&self) -> &Scenario {
        &self.columns[0].variant.scenario
    }

    /// Failures that the scenario does not say, with their variants.
    pub fn failures(&self) -> Vec<Failed> {
        let unexpected = self.columns.iter().filter(|column| !column.fails_as_known());
        unexpected.flat_map(|column| column.runs.failures_of(&column.variant.label)).collect()
    }

    /// Returns true if no variant has a result, and that is no one's expectation.
    pub fn is_nothing(&self) -> bool {
        self.columns.iter().all(|column| column.runs.results.is_empty() && !column.fails_as_known())
    }

    fn expectations(&self) -> Result<Vec<Checked>, Error> {
        let sides: Vec<(&str, Vec<&RunResult>)> = self
            .columns
            .iter()
            .map(|column| (column.variant.label.as_str(), column.runs.results.iter().collect()))
            .collect();
        // Where a run has failed, or was not made, there is nothing to compare its seed's other runs with, and that is the verdict.
        let is_whole = self.failures().is_empty() && self.columns.iter().all(|column| column.runs.was_made());
        let expected = if self.ask.is_of_own() && is_whole { &self.base().expect[..] } else { &[] };
        let mut checked: Vec<Checked> = self.columns.iter().filter_map(Column::known_failure).collect();
        checked.extend(expectations::check(&self.source, expected, &sides)?);
        Ok(checked)
    }

    /// All runs by the name of their variant.
    fn sides(&self) -> Vec<(String, &[RunResult])> {
        self.columns.iter().map(|column| (column.variant.label.clone(), &column.runs.results[..])).collect()
    }

    /// Reasons why figures are meaningless or misleading.
    pub fn caveats(&self) -> Vec<String> {
        caveats::of(&self.sides())
    }

    /// The figures that any variant has, in the order of the first that has them, without those that are nothing everywhere or repeat
    /// another in every variant.
    pub fn told(&self) -> Vec<&Metric> {
        let mut known = BTreeSet::new();
        let cells = self.columns.iter().flat_map(|column| &column.figures.cells);
        let metrics: Vec<&Metric> =
            cells.map(|cell| &cell.metric).filter(|metric| known.insert(metric.place())).collect();
        let says_something = |metric: &&Metric| {
            let repeats = |total: &Metric| {
                self.columns.iter().all(|of| of.figures.values(total) == of.figures.values(metric))
            };
            let is_repeat = match metric.total() {
                Some(total) => repeats(&total),
                // The few of the run as a whole repeat those of its task, if there is one.
                None if metric.group == "run" => {
                    metrics.iter().any(|total| metric.may_be_that_of(total) && repeats(total))
                }
                None => false,
            };
            let mut cells = self.columns.iter().filter_map(|column| column.figures.find(metric));
            !is_repeat && !cells.all(|cell| cell.spread().mean == 0.0)
        };
        metrics.iter().copied().filter(says_something).collect()
    }

    /// Variants that do not differ from the first in any figure that is shown.
    pub fn same_as_first(&self) -> Vec<&str> {
        if self.ask.within.is_some() {
            return Vec::new();
        }
        let Some((first, others)) = self.columns.split_first() else { return Vec::new() };
        let is_same = |of: &&Column| {
            let mut cells = of.figures.cells.iter();
            !of.figures.cells.is_empty()
                && of.figures.cells.len() == first.figures.cells.len()
                && cells.all(|cell| first.figures.values(&cell.metric) == Some(&cell.values[..]))
        };
        others.iter().filter(is_same).map(|column| column.variant.label.as_str()).collect()
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        for Column { variant, runs, figures, base } in &self.columns {
            let (label, seeds) = (&variant.label, self.extent.seeds as usize);
            let is_base = self.columns.get(*base).is_some_and(|of| of.base == *base);
            holds!(is_base, "{label}: column {base}, which it is compared with, is not a base");
            let made = runs.results.len() + runs.failures.len();
            holds!(made == seeds || made == 0, "{label}: found {made} runs, expected {seeds}, one per seed");
            holds!(runs.is_whole() || figures.cells.is_empty(), "{label}: found figures of failed runs");
            for cell in &figures.cells {
                let (name, values) = (cell.metric.full_name(), &cell.values);
                let is_some = (1..=seeds).contains(&values.len());
                holds!(is_some, "{label}, {name}: found {} values, expected 1 to {seeds}", values.len());
                let mean = cell.spread().mean;
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let room = 1e-9 * least.abs().max(most.abs());
                let is_between = mean >= least - room && mean <= most + room;
                holds!(
                    is_between,
                    "{label}, {name}: the mean {mean} is outside of its values ({least} to {most})"
                );
            }
        }
        for one in &self.checked {
            let Checked { figure, holds, true_for, seeds, is_true, .. } = one;
            let is_so = *is_true == (true_for == seeds) && true_for <= seeds;
            holds!(
                is_so,
                "{figure}, {holds}: the verdict is {is_true}, but {true_for} of {seeds} seeds pass"
            );
        }
        Ok(())
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let variants = self.columns.iter().map(|Column { variant, runs, figures, base }| {
            let base = &self.columns[*base];
            let metrics: Map<String, Value> = figures
                .cells
                .iter()
                .map(|cell| (cell.metric.full_name(), cell.json(base.figures.find(&cell.metric))))
                .collect();
            json!({
                "label": variant.label,
                "base": base.variant.label,
                "settings": grid::settings_json(&variant.settings),
                "complete": runs.is_whole(),
                "failures": runs.failures,
                "metrics": metrics,
                "runs": runs.results,
            })
        });
        let is_whole = self.columns.iter().all(|column| column.runs.is_whole() || column.fails_as_known());
        let json = json!({
            "complete": is_whole && !self.extent.is_interrupted(),
            "caveats": self.caveats(),
            "scenario": self.ask.scenario.to_string_lossy(),
            "variants": variants.collect::<Vec<_>>(),
        });
        let mut json = merged(json, self.extent.json());
        if self.ask.is_of_own() {
            json["expectations"] = json!(self.checked);
        }
        json
    }

    /// As rows, one for each figure of a variant.
    pub fn rows(&self) -> Vec<Value> {
        let rows = self.columns.iter().flat_map(|Column { variant, runs, figures, base }| {
            let base = &self.columns[*base];
            let head = json!({
                "scenario": self.ask.scenario.to_string_lossy(),
                "variant": variant.label,
                "base": base.variant.label,
                "complete": runs.is_whole(),
                "runs": runs.results.len(),
            });
            // A variant without figures is a row, too.
            let whole = figures.cells.is_empty().then(|| head.clone());
            let of_cell = |cell: &Cell| {
                let metric = &cell.metric;
                let figure = format!("{}{}", metric.name, metric.unit.suffix());
                let name = json!({ "group": metric.group, "figure": figure });
                merged(merged(head.clone(), name), cell.json(base.figures.find(metric)))
            };
            whole.into_iter().chain(figures.cells.iter().map(of_cell)).collect::<Vec<Value>>()
        });
        rows.collect()
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
        [[variant]]
        name = "small"
        [[variant]]
        name = "large"
        set = { "memcg./web.memory.max" = "2MiB" }
        [[expect]]
        figure = "task reader: misses"
        holds = "large < small"
        because = "more of the file fits"
    "#;

    /// The answer of two variants with two seeds.
    fn answer() -> Answer {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("two.toml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        ask(&Ask { scenario, repeat: 2, ..Ask::default() }, &()).unwrap()
    }

    #[test]
    fn variants_are_compared_within_a_second_key() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("two.toml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        let vary = |text: &str| text.parse::<Variation>().unwrap();
        let keys = vec![vary("kernel.profile=classic@6.12,lru"), vary("memcg./web.memory.max=1MiB,2MiB")];
        let within = |key: &str| Ask {
            scenario: scenario.clone(),
            vary: keys.clone(),
            within: Some(key.to_string()),
            repeat: 3,
            ..Ask::default()
        };
        let answer = ask(&within("memcg./web.memory.max"), &()).unwrap();
        let bases: Vec<usize> = answer.columns.iter().map(|column| column.base).collect();
        assert_eq!(bases, [0, 0, 2, 2]);
        let json = answer.json();
        let of = |at: usize| &json["variants"][at];
        assert_eq!(of(3)["base"], of(2)["label"]);
        // Its own memory, so the difference is that of its misses to the other policy's.
        let misses = |at: usize| &of(at)["metrics"]["task reader: misses"];
        let mean = |at: usize| misses(at)["mean"].as_f64().unwrap();
        let percent = (mean(3) - mean(2)) / mean(2) * 100.0;
        assert!((misses(3)["difference_percent"].as_f64().unwrap() - percent).abs() < 1e-9);
        assert_eq!(misses(2)["difference_percent"], 0.0);
        let (low, high) = (misses(3)["difference_low"].as_f64(), misses(3)["difference_high"].as_f64());
        assert!(low.unwrap() <= percent && percent <= high.unwrap(), "{}", misses(3));
        assert_eq!(misses(3)["values"].as_array().map(Vec::len), Some(3));
        assert!(misses(3)["p"].as_f64().is_some_and(|p| (0.0..=1.0).contains(&p)), "{}", misses(3));
        let error = ask(&within("sysctl.vm.swappiness"), &()).unwrap_err().to_string();
        assert!(error.starts_with("--within sysctl.vm.swappiness: found kernel.profile, memcg."), "{error}");
    }

    #[test]
    fn answer_with_a_wrong_sum_is_refused() {
        let whole = answer();
        assert_eq!(whole.check(), Ok(()));
        assert!(whole.json()["expectations"][0]["is_true"] == true && whole.failures().is_empty());
        type Mutant = fn(&mut Answer);
        let mutants: [(Mutant, &str); 6] = [
            (|answer| drop(answer.columns[0].runs.results.pop()), "small: found 1 runs, expected 2"),
            (
                |answer| {
                    answer.columns[1].runs.results.clear();
                    answer.columns[1].runs.failures.clear();
                },
                "large: found figures of failed runs",
            ),
            (|answer| answer.columns[1].figures.cells[0].values.clear(), "found 0 values, expected 1 to 2"),
            (|answer| answer.columns[0].figures.cells[0].values[0] = f64::NAN, "the mean NaN"),
            (
                |answer| answer.columns[0].base = 1,
                "small: column 1, which it is compared with, is not a base",
            ),
            (|answer| answer.checked[0].true_for = 1, "the verdict is true, but 1 of 2 seeds pass"),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
