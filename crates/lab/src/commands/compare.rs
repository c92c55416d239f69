//! `pageout compare`: variants of a scenario side by side ([`pageout_study::compare`]), as kernel cover letters print them.

pub(crate) mod args; // what can be asked
mod page; // differences as bars

use std::fmt::Write;

use pageout_sim::scenario::{Channel, Percentage};
use pageout_study::Answered;
use pageout_study::compare::{self, Answer, Ask, Cell, Column};
use pageout_study::result::effect;
use pageout_study::result::metrics::{Metric, Unit};
use pageout_study::result::notes;
use pageout_study::result::spread::Paired;
use pageout_study::result::variants::NOT_RUN;
use serde_json::Value;

use crate::commands::expectations::{outcome, to_text as expected_text};
use crate::context::Context;
use crate::failure::Outcome;
use crate::print::summary::TRUNCATED;
use crate::print::summary::percentages;
use crate::print::{Layout, Terminal, figures};
use crate::report::{Picture, check_name};
use args::CompareArgs;

/// Runs all variants and prints the comparison. A variant whose workload fails has no figures. The others are printed, the failures are reported on
/// standard error, and the exit code is 1. A failure that the scenario expects is not an error.
pub(crate) fn run(args: &CompareArgs, cx: &Context) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let ask = Ask {
        scenario: args.scenario.clone(),
        changes: args.options.changes(),
        vary: args.vary.clone(),
        within: args.within.clone(),
        repeat: args.runs.repeat,
        jobs: args.runs.parallel.jobs,
        all: args.all,
    };
    let mut answer = compare::ask(&ask, &Terminal::new(&cx.output))?;
    let failure = match answer.failure() {
        Some(failure) if answer.is_nothing() => return cx.output.no_result(failure.into(), Value::Null),
        failure => failure,
    };
    if cx.output.is_data() {
        cx.output.print_json_or_rows(&answer.json(), || answer.rows())?;
    } else {
        cx.output.print_text(&(text(&answer, cx.layout()) + &expected_text(&answer.checked, cx.layout())))?;
    }
    if let Some(path) = &args.page.report {
        page::page(&answer).write(path, &cx.output)?;
    }
    failure.map_or(Ok(()), Err)?;
    outcome(&answer.checked)
}

fn show(cell: &Cell) -> String {
    let (unit, spread) = (cell.metric.unit, cell.spread());
    let mut text = unit.show(spread.mean);
    if spread.count > 1 {
        let _ = write!(text, " ± {}", unit.show(spread.deviation));
    }
    if cell.is_truncated { format!("({text})") } else { text }
}

fn text(answer: &Answer, layout: Layout) -> String {
    let Answer { ask, extent, columns, .. } = answer;
    let base = answer.base();
    let mut text = String::new();
    if !base.question.is_empty() {
        text += &layout.wrap(&base.question, "");
        text.push('\n');
    }
    let keys: Vec<&str> = ask.vary.iter().map(|variation| variation.key.as_str()).collect();
    let _ = match &keys[..] {
        [] => write!(text, "{}, its variants", ask.scenario.display()),
        keys => write!(text, "{} by {}", ask.scenario.display(), keys.join(", ")),
    };
    let seeds = extent.seeds_from(base.seed);
    let _ = match extent.seeds {
        1 if keys.contains(&"seed") => writeln!(text),
        1 => writeln!(text, ", {seeds}"),
        n => writeln!(text, ", mean ± standard deviation of {n} runs, {seeds}"),
    };
    let _ = writeln!(text, "{}", layout.warning(extent));
    let mut shares: Vec<Percentage> = Vec::new();
    for share in columns.iter().flat_map(|column| column.variant.scenario.percentages()) {
        if !shares.contains(&share) {
            shares.push(share);
        }
    }
    if !shares.is_empty() {
        text += &percentages(&shares);
        text.push('\n');
    }
    let says = layout.caveats(&answer.caveats());
    if !says.is_empty() {
        let _ = writeln!(text, "{says}");
    }
    text += &readahead(columns, layout);
    // Names, the base, and of each other variant its figures and how they differ.
    let table = rows(answer);
    let is_difference = |column: usize| table[0].get(column).is_some_and(|heading| heading == DIFFERENCE);
    text += &layout.table_joined(&table, is_difference);
    if let Some(key) = &ask.within {
        let _ = writeln!(text, "\n{DIFFERENCE}: to the first variant of the same {key}");
    }
    let same = answer.same_as_first();
    if !same.is_empty() {
        let first = &columns[0].variant.label;
        let says = format!("No figure shown differs from {first} in any run: {}.", same.join(", "));
        let _ = write!(text, "\n{}", layout.wrap(&says, ""));
    }
    let mut cells = columns.iter().flat_map(|column| &column.figures.cells).peekable();
    if cells.peek().is_none() {
        text += "\nNo variant ended well with every seed, so there is no figure to compare.\n";
    }
    if columns.iter().any(|column| column.variant.scenario.task.iter().any(|task| task.copies > 1)) {
        text +=
            "\nof a task's copies: accesses, misses and throughput of all together, mean of their times\n";
    }
    if cells.any(|cell| cell.is_truncated) {
        let _ = write!(text, "\n{TRUNCATED}");
    }
    let noted = columns.iter().filter_map(|column| {
        Some((column.variant.label.as_str(), column.runs.results.first()?.notes.as_slice()))
    });
    let noted = layout.notes(&notes::of_several(noted));
    if !noted.is_empty() {
        let _ = write!(text, "\n{noted}");
    }
    if extent.seeds > 1 {
        let _ = write!(text, "\n{}", effect::noise_legend(extent.seeds, false));
    }
    text
}

/// A line on how far files are read ahead, of all variants or of each; none where no file is on a device.
fn readahead(columns: &[Column], layout: Layout) -> String {
    let window = |column: &Column| {
        let scenario = &column.variant.scenario;
        let mut objects = scenario.task.iter().flat_map(|task| &task.object);
        let has_file = objects.any(|object| matches!(object.channel, Channel::File | Channel::Mapped));
        let widest = scenario.readahead().into_iter().map(|(_, kib)| kib).max();
        widest.filter(|_| has_file).map(|kib| match kib {
            0 => "off".to_string(),
            kib => format!("up to {}", figures::bytes(u64::from(kib) << 10)),
        })
    };
    let windows: Vec<Option<String>> = columns.iter().map(window).collect();
    let Some(first) = windows.iter().flatten().next() else { return String::new() };
    if windows.iter().flatten().all(|window| window == first) {
        return format!("readahead: {first}\n\n");
    }
    let each = columns.iter().zip(&windows);
    let each =
        each.filter_map(|(column, window)| Some(format!("{} {}", column.variant.label, window.as_ref()?)));
    layout.wrap(&format!("readahead: {}", each.collect::<Vec<_>>().join("; ")), "") + "\n"
}

/// The heading of a column of differences.
const DIFFERENCE: &str = "diff";

/// A line for each figure that any column has and that says something of its own.
fn rows(answer: &Answer) -> Vec<Vec<String>> {
    let columns = &answer.columns;
    let mut heading = vec![String::new()];
    for (index, column) in columns.iter().enumerate() {
        heading.push(if column.runs.is_whole() {
            column.variant.label.clone()
        } else if !column.runs.was_made() {
            format!("{} ({NOT_RUN})", column.variant.label)
        } else if column.fails_as_known() {
            format!("{} (fails)", column.variant.label)
        } else {
            format!("{} (failed)", column.variant.label)
        });
        if column.base != index {
            heading.push(DIFFERENCE.to_string());
        }
    }
    let mut rows = vec![heading];
    let mut group = String::new();
    for metric in answer.told() {
        let cells: Vec<Option<&Cell>> = columns.iter().map(|column| column.figures.find(metric)).collect();
        if metric.group != group {
            group.clone_from(&metric.group);
            rows.push(vec![group.clone()]);
        }
        rows.push(row(metric, &cells, columns));
    }
    rows
}

fn row(metric: &Metric, cells: &[Option<&Cell>], columns: &[Column]) -> Vec<String> {
    let mut row = vec![format!("  {}", metric.name)];
    for (index, cell) in cells.iter().enumerate() {
        row.push(cell.map_or("-".to_string(), show));
        let base = columns[index].base;
        if base != index {
            let paired = cells[base].zip(*cell).and_then(|(base, cell)| cell.difference(base));
            row.push(paired.map_or("-".to_string(), |paired| difference(metric.unit, &paired)));
        }
    }
    row
}

/// The change of a percentage is in percentage points, because a percentage of a percentage is often misread.
fn difference(unit: Unit, paired: &Paired) -> String {
    let mark = if paired.is_within_noise() { "~" } else { "" };
    if unit == Unit::Share {
        return format!("{mark}{:+.2} pp", paired.difference * 100.0);
    }
    match paired.percent_of_base() {
        None => "n/a".to_string(),
        Some(0.0) => "0.0%".to_string(),
        // Beyond that a factor says more.
        Some(percent) if percent >= 1000.0 => format!("{mark}x{:.0}", percent / 100.0 + 1.0),
        Some(percent) => format!("{mark}{percent:+.1}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_from_nothing_has_no_percentage() {
        let told = |base: f64, value: f64| difference(Unit::Count, &Paired::of(&[base], &[value]));
        assert_eq!(told(0.0, 5.0), "n/a");
        assert_eq!(told(4.0, 5.0), "+25.0%");
        assert_eq!(told(4.0, 3.0), "-25.0%");
        assert_eq!((told(4.0, 4.0), told(0.0, 0.0)), ("0.0%".to_string(), "0.0%".to_string()));
        assert_eq!(told(4.0, 400.0), "x100");
    }

    #[test]
    fn a_percentage_changes_in_points() {
        let told = |base: f64, value: f64| difference(Unit::Share, &Paired::of(&[base], &[value]));
        assert_eq!(told(0.9123, 0.8648), "-4.75 pp");
        assert_eq!(told(0.0, 0.5), "+50.00 pp");
        assert_eq!(told(0.5, 0.5), "+0.00 pp");
    }

    #[test]
    fn a_difference_is_marked_by_its_pairs_and_one_seed_has_none() {
        let told = |base: &[f64], values: &[f64]| difference(Unit::Count, &Paired::of(base, values));
        // Far apart beside the spread of the seeds, but every pair agrees, and the other way round.
        assert_eq!(told(&[100.0, 200.0, 300.0], &[110.0, 210.0, 310.0]), "+5.0%");
        assert_eq!(told(&[100.0, 101.0], &[103.0, 102.0]), "~+2.0%");
        assert_eq!(told(&[100.0], &[102.0]), "+2.0%");
    }
}
