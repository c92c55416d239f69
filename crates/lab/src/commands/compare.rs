//! `pageout compare`: variants of a scenario side by side, as kernel cover letters print them.
//!
//! ```text
//!   --vary A=1,2 --vary B=x,y      columns  A=1 B=x   A=1 B=y   A=2 B=x   A=2 B=y      the first is the base
//!   --repeat 3                     each column is three runs, seeds s, s+1, s+2; all runs share the CPUs
//!   no --vary                      the scenario's own variants, and below them what it expects
//! ```

use std::fmt::Write;

use pageout_sim::scenario::Scenario;
use serde_json::{Value, json};

use crate::cli::CompareArgs;
use crate::commands::expectations;
use crate::failure::{Failure, Outcome};
use crate::print::progress::name_of;
use crate::print::{output, table};
use crate::result::metrics::{Metric, Unit, metrics};
use crate::result::run_result::RunResult;
use crate::result::spread::Spread;
use crate::result::variants::{Plan, Runs, verdict};
use crate::scenario::grid::{self, Point};
use crate::scenario::own_variants;
use crate::scenario::own_variants::Variant;
use crate::scenario::source::{Source, VARY};

/// Runs all variants and prints the comparison. A variant whose workload fails has no figures; the others are printed, the
/// failures are told on standard error, and the exit code says that not everything is there.
pub(crate) fn compare(args: &CompareArgs) -> Outcome {
    let source = Source::read(&args.scenario)?;
    let mut variants: Vec<Variant> = grid::points(&source, &args.options, &args.vary, VARY, args.repeat)?
        .into_iter()
        .map(|Point { settings, scenario }| Variant { label: grid::label(&settings), settings, scenario })
        .collect();
    let own = args.vary.is_empty();
    if own {
        variants = own_variants::all(&source, &args.options, &variants[0].scenario)?;
        if variants.is_empty() {
            let path = args.scenario.display();
            let message = format!("nothing to compare: give a --vary; {path} has no [[variant]] of its own");
            return Err(Failure::Input(anyhow::anyhow!(message)));
        }
    }
    let plan = Plan {
        name: name_of(&args.scenario),
        repeat: args.repeat,
        jobs: args.jobs,
        output: &args.options.output,
    };
    let scenarios: Vec<Scenario> = variants.iter().map(|variant| variant.scenario.clone()).collect();
    let results = plan.run(&scenarios)?;
    let columns: Vec<Column> =
        variants.iter().zip(&results).map(|(variant, runs)| Column { variant, runs }).collect();
    let failures: Vec<Failure> =
        columns.iter().flat_map(|column| column.runs.failures_of(&column.variant.label)).collect();
    let runs = variants.len() * args.repeat as usize;
    if failures.len() == runs {
        let failure = Failure::several("every variant failed", &failures);
        return output::no_result(&args.options.output, failure, Value::Null);
    }
    let sides: Vec<(&str, Vec<&RunResult>)> = columns
        .iter()
        .map(|column| (column.variant.label.as_str(), column.runs.results.iter().collect()))
        .collect();
    // Where a run has failed there is nothing to compare its seed's other runs with, and the failure is the verdict.
    let expected = if own && failures.is_empty() { &variants[0].scenario.expect[..] } else { &[] };
    let checked = expectations::check(&source, expected, &sides)?;
    if args.options.output.json {
        let mut json = to_json(args, &columns);
        if own {
            json["expectations"] = json!(checked);
        }
        output::print_json(&json)?;
    } else {
        let text = to_text(args, &plan, &variants[0].scenario, &columns);
        output::print(&(text + &expectations::to_text(&checked)))?;
    }
    verdict(&failures, runs)?;
    expectations::outcome(&checked)
}

/// What came of one column.
struct Column<'a> {
    variant: &'a Variant,
    runs: &'a Runs,
}

impl Column<'_> {
    /// The spread of every figure; nothing when any run failed, since a mean of the survivors would be a wrong one.
    fn figures(&self, all: bool) -> Vec<(Metric, Spread)> {
        if !self.runs.failures.is_empty() {
            return Vec::new();
        }
        let runs: Vec<Vec<Metric>> = self.runs.results.iter().map(|result| metrics(result, all)).collect();
        let Some(first) = runs.first() else { return Vec::new() };
        first
            .iter()
            .map(|metric| {
                let is_same = |other: &&Metric| other.group == metric.group && other.name == metric.name;
                let values: Vec<f64> = runs
                    .iter()
                    .filter_map(|run| run.iter().find(is_same))
                    .map(|metric| metric.value)
                    .collect();
                (metric.clone(), Spread::of(&values))
            })
            .collect()
    }
}

fn to_text(args: &CompareArgs, plan: &Plan, base: &Scenario, columns: &[Column]) -> String {
    let mut text = String::new();
    if !base.question.is_empty() {
        text += &output::wrap(&base.question, output::width(), "");
        text.push('\n');
    }
    let keys: Vec<&str> = args.vary.iter().map(|variation| variation.key.as_str()).collect();
    let _ = match &keys[..] {
        [] => write!(text, "{}, its variants", args.scenario.display()),
        keys => write!(text, "{} by {}", args.scenario.display(), keys.join(", ")),
    };
    let seeds = plan.seeds(base.seed);
    let _ = match args.repeat {
        1 if keys.contains(&"seed") => writeln!(text, "\n"),
        1 => writeln!(text, ", {seeds}\n"),
        n => writeln!(text, ", mean ± standard deviation of {n} runs, {seeds}\n"),
    };
    let figures: Vec<Vec<(Metric, Spread)>> = columns.iter().map(|column| column.figures(args.all)).collect();
    let mut heading = vec![String::new()];
    for (index, column) in columns.iter().enumerate() {
        heading.push(if column.runs.failures.is_empty() {
            column.variant.label.clone()
        } else {
            format!("{} (failed)", column.variant.label)
        });
        if index > 0 {
            heading.push("diff".to_string());
        }
    }
    let mut rows = vec![heading];
    let mut group = String::new();
    let cells_of =
        |metric: &Metric| figures.iter().map(|column| find(column, metric)).collect::<Vec<Option<Spread>>>();
    let metrics = ordered(&figures);
    for metric in &metrics {
        let cells = cells_of(metric);
        let is_repeat = metrics.iter().any(|total| metric.may_repeat(total) && cells_of(total) == cells);
        if is_repeat || cells.iter().flatten().all(|spread| spread.mean == 0.0) {
            continue;
        }
        if metric.group != group {
            group.clone_from(&metric.group);
            rows.push(vec![group.clone()]);
        }
        rows.push(row(metric, &cells));
    }
    text += &table::layout(&rows, 1);
    if columns.iter().any(|column| column.variant.scenario.task.iter().any(|task| task.copies > 1)) {
        text +=
            "\nof a task's copies: accesses, misses and throughput of all together, mean of their times\n";
    }
    if args.repeat > 1 {
        text += "\n~ less than two standard errors apart: may be noise\n";
    }
    text
}

/// All figures that any column has, in the order of the first that has them.
fn ordered(figures: &[Vec<(Metric, Spread)>]) -> Vec<&Metric> {
    let mut known: Vec<&Metric> = Vec::new();
    for (metric, _) in figures.iter().flatten() {
        if !known.iter().any(|other| other.group == metric.group && other.name == metric.name) {
            known.push(metric);
        }
    }
    known
}

fn find(column: &[(Metric, Spread)], metric: &Metric) -> Option<Spread> {
    column
        .iter()
        .find(|(other, _)| other.group == metric.group && other.name == metric.name)
        .map(|(_, spread)| *spread)
}

fn row(metric: &Metric, cells: &[Option<Spread>]) -> Vec<String> {
    let base = cells[0];
    let mut row = vec![format!("  {}", metric.name)];
    for (index, cell) in cells.iter().enumerate() {
        row.push(match cell {
            None => "-".to_string(),
            Some(spread) if spread.count > 1 => {
                format!("{} ± {}", metric.unit.show(spread.mean), metric.unit.show(spread.deviation))
            }
            Some(spread) => metric.unit.show(spread.mean),
        });
        if index > 0 {
            row.push(match (base, cell) {
                (Some(base), Some(spread)) => difference(metric.unit, &base, spread),
                _ => "-".to_string(),
            });
        }
    }
    row
}

/// A percentage's change is told in points: percent of a percentage are taken for them anyway.
fn difference(unit: Unit, base: &Spread, spread: &Spread) -> String {
    let mark = if spread.is_within_noise_of(base) { "~" } else { "" };
    if unit == Unit::Share {
        return format!("{mark}{:+.2} pp", points(base, spread));
    }
    match spread.percent_from(base) {
        None => "n/a".to_string(),
        Some(0.0) => "0.0%".to_string(),
        // Beyond that a factor says more.
        Some(percent) if percent >= 1000.0 => format!("{mark}x{:.0}", percent / 100.0 + 1.0),
        Some(percent) => format!("{mark}{percent:+.1}%"),
    }
}

fn points(base: &Spread, spread: &Spread) -> f64 {
    (spread.mean - base.mean) * 100.0
}

fn to_json(args: &CompareArgs, columns: &[Column]) -> Value {
    let base = columns[0].figures(args.all);
    let variants = columns.iter().map(|column| {
        let metrics: serde_json::Map<String, Value> = column
            .figures(args.all)
            .iter()
            .map(|(metric, spread)| {
                let name = format!("{}: {}{}", metric.group, metric.name, metric.unit.suffix());
                let base = find(&base, metric);
                let (of_difference, difference) = match metric.unit {
                    Unit::Share => ("difference_points", base.as_ref().map(|base| points(base, spread))),
                    _ => ("difference_percent", base.as_ref().and_then(|base| spread.percent_from(base))),
                };
                let values = json!({
                    "mean": spread.mean,
                    "deviation": spread.deviation,
                    of_difference: difference,
                    "within_noise": base.as_ref().is_some_and(|base| spread.is_within_noise_of(base)),
                });
                (name, values)
            })
            .collect();
        let settings = grid::settings_json(&column.variant.settings);
        json!({
            "label": column.variant.label,
            "settings": settings,
            "complete": column.runs.failures.is_empty(),
            "failures": column.runs.failures,
            "metrics": metrics,
            "runs": column.runs.results,
        })
    });
    json!({
        "complete": columns.iter().all(|column| column.runs.failures.is_empty()),
        "scenario": args.scenario.to_string_lossy(),
        "repeat": args.repeat,
        "variants": variants.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_from_nothing_has_no_percentage() {
        let spread = |value: f64| Spread::of(&[value]);
        assert_eq!(difference(Unit::Count, &spread(0.0), &spread(5.0)), "n/a");
        assert_eq!(difference(Unit::Count, &spread(4.0), &spread(5.0)), "+25.0%");
        assert_eq!(difference(Unit::Count, &spread(4.0), &spread(3.0)), "-25.0%");
        assert_eq!(difference(Unit::Count, &spread(4.0), &spread(4.0)), "0.0%");
        assert_eq!(difference(Unit::Count, &spread(4.0), &spread(400.0)), "x100");
    }

    #[test]
    fn a_percentage_changes_in_points() {
        let spread = |value: f64| Spread::of(&[value]);
        assert_eq!(difference(Unit::Share, &spread(0.9123), &spread(0.8648)), "-4.75 pp");
        assert_eq!(difference(Unit::Share, &spread(0.0), &spread(0.5)), "+50.00 pp");
        assert_eq!(difference(Unit::Share, &spread(0.5), &spread(0.5)), "+0.00 pp");
    }
}
