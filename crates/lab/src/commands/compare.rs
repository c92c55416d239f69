//! `pageout compare`: variants of a scenario side by side, as kernel cover letters print them.
//!
//! ```text
//!   --vary A=1,2 --vary B=x,y      columns  A=1 B=x   A=1 B=y   A=2 B=x   A=2 B=y      the first is the base
//!   --repeat 3                     each column is three runs, seeds s, s+1, s+2; all runs share the CPUs
//!   no --vary                      the scenario's own variants, and below them what it expects
//! ```

pub(crate) mod args; // what can be asked
mod page; // differences as bars

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use pageout_sim::scenario::{Channel, Percentage, Scenario};
use pageout_study::Failed;
use pageout_study::result::effect;
use pageout_study::result::expectations::{self, Checked};
use pageout_study::result::metrics::{Metric, Unit, metrics};
use pageout_study::result::run_result::RunResult;
use pageout_study::result::spread::{Paired, Spread};
use pageout_study::result::variants::{Extent, Made, NOT_RUN, Runs};
use pageout_study::result::{caveats, notes};
use pageout_study::scenario::grid::{self, Point};
use pageout_study::scenario::own_variants;
use pageout_study::scenario::own_variants::Variant;
use pageout_study::scenario::source::{Source, VARY};
use pageout_study::scenario::variation::one_way_to_vary_the_seed;
use serde_json::{Value, json};

use crate::commands::expectations::{outcome, to_text as expected_text};
use crate::failure::{Failure, Outcome};
use crate::print::progress::Terminal;
use crate::print::summary::TRUNCATED;
use crate::print::summary::percentages;
use crate::print::{figures, output, remarks, table};
use crate::report::{Picture, check_name};
use args::CompareArgs;

/// Runs all variants and prints the comparison. A variant whose workload fails has no figures; the others are printed, the
/// failures are told on standard error, and the exit code says that not everything is there. One that fails as the scenario says
/// is as expected.
pub(crate) fn run(args: &CompareArgs) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let source = Source::read(&args.scenario)?;
    one_way_to_vary_the_seed(VARY, &args.vary, args.runs.repeat)?;
    let (changes, terminal) = (args.options.changes(), Terminal::new(&args.options.output));
    let mut variants: Vec<Variant> = grid::points(&source, &changes, &args.vary, VARY, &terminal)?
        .into_iter()
        .map(|Point { settings, scenario }| Variant {
            label: grid::label(&settings),
            settings,
            scenario,
            fails: None,
        })
        .collect();
    let own = args.vary.is_empty();
    if own {
        variants = own_variants::all(&source, &changes, &variants[0].scenario, &terminal)?;
        if variants.is_empty() {
            let path = args.scenario.display();
            let message = format!("nothing to compare: give a --vary; {path} has no [[variant]] of its own");
            return Err(Failure::Input(anyhow::anyhow!(message)));
        }
    }
    let plan = args.runs.plan(&args.scenario, &terminal);
    let scenarios: Vec<Scenario> = variants.iter().map(|variant| variant.scenario.clone()).collect();
    let Made { variants: results, extent } = plan.run(&scenarios)?;
    let columns: Vec<Column> =
        variants.iter().zip(&results).map(|(variant, runs)| Column { variant, runs }).collect();
    let unexpected = columns.iter().filter(|column| !column.fails_as_known());
    let failures: Vec<Failed> =
        unexpected.flat_map(|column| column.runs.failures_of(&column.variant.label)).collect();
    if columns.iter().all(|column| column.runs.results.is_empty() && !column.fails_as_known()) {
        let failure = extent.nothing("every variant failed", &failures);
        return output::no_result(&args.options.output, failure.into(), Value::Null);
    }
    let sides: Vec<(&str, Vec<&RunResult>)> = columns
        .iter()
        .map(|column| (column.variant.label.as_str(), column.runs.results.iter().collect()))
        .collect();
    // Where a run has failed, or was not made, there is nothing to compare its seed's other runs with, and that is the verdict.
    let is_whole = failures.is_empty() && columns.iter().all(|column| column.runs.was_made());
    let expected = if own && is_whole { &variants[0].scenario.expect[..] } else { &[] };
    let mut checked: Vec<Checked> = columns.iter().filter_map(Column::known_failure).collect();
    checked.extend(expectations::check(&source, expected, &sides)?);
    if args.options.output.is_data() {
        let mut json = to_json(args, &extent, &columns);
        if own {
            json["expectations"] = json!(checked);
        }
        output::print_json_or_rows(&json, || to_rows(args, &columns))?;
    } else {
        let text = to_text(args, &extent, &variants[0].scenario, &columns);
        output::print_text(&(text + &expected_text(&checked)))?;
    }
    if let Some(path) = &args.page.report {
        page::page(&source, args, &extent, &variants[0].scenario, &columns).write(path)?;
    }
    extent.verdict(&failures)?;
    outcome(&checked)
}

/// What came of one column.
struct Column<'a> {
    variant: &'a Variant,
    runs: &'a Runs,
}

impl Column<'_> {
    /// Whether every run failed, as the scenario says.
    fn fails_as_known(&self) -> bool {
        self.known_failure().is_some_and(|checked| checked.is_true)
    }

    /// What came of it where the scenario says that it fails; nothing if a signal came before it.
    fn known_failure(&self) -> Option<Checked> {
        let fails = self.variant.fails.as_deref().filter(|_| self.runs.was_made())?;
        Some(expectations::check_failure(&self.variant.label, fails, self.runs))
    }

    /// Every figure; nothing when any run failed, since a mean of the survivors would be a wrong one.
    fn figures(&self, all: bool) -> Figures {
        let mut figures = Figures::default();
        if !self.runs.is_whole() {
            return figures;
        }
        for result in &self.runs.results {
            for metric in metrics(result, all) {
                let at = figures.cells.len();
                match figures.places.entry(metric.place()) {
                    Entry::Occupied(place) => figures.cells[*place.get()].add(&metric),
                    Entry::Vacant(place) => {
                        place.insert(at);
                        figures.cells.push(Cell::new(metric));
                    }
                }
            }
        }
        figures
    }
}

/// The figures of a column, and where each is.
#[derive(Default)]
struct Figures {
    cells: Vec<Cell>,
    places: BTreeMap<(String, String), usize>,
}

impl Figures {
    fn find(&self, metric: &Metric) -> Option<&Cell> {
        self.places.get(&metric.place()).map(|&at| &self.cells[at])
    }

    fn values(&self, metric: &Metric) -> Option<&[f64]> {
        self.find(metric).map(|cell| cell.values.as_slice())
    }
}

/// One figure of a column, by seed.
#[derive(Clone, PartialEq)]
struct Cell {
    metric: Metric,
    values: Vec<f64>,
    /// In some run what it measures had not ended.
    is_truncated: bool,
}

impl Cell {
    fn new(metric: Metric) -> Cell {
        Cell { values: vec![metric.value], is_truncated: metric.is_truncated, metric }
    }

    fn add(&mut self, metric: &Metric) {
        self.values.push(metric.value);
        self.is_truncated |= metric.is_truncated;
    }

    fn spread(&self) -> Spread {
        Spread::of(&self.values)
    }

    fn show(&self) -> String {
        let (unit, spread) = (self.metric.unit, self.spread());
        let mut text = unit.show(spread.mean);
        if spread.count > 1 {
            let _ = write!(text, " ± {}", unit.show(spread.deviation));
        }
        if self.is_truncated { format!("({text})") } else { text }
    }

    /// The difference to a base, seed by seed. None where not every run has the figure, nor where it was cut off: the end that
    /// a scenario gives its runs is the same for all.
    fn difference(&self, base: &Cell) -> Option<Paired> {
        let is_whole = !self.is_truncated && !base.is_truncated;
        (is_whole && self.values.len() == base.values.len()).then(|| Paired::of(&base.values, &self.values))
    }
}

fn to_text(args: &CompareArgs, extent: &Extent, base: &Scenario, columns: &[Column]) -> String {
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
    let seeds = extent.seeds_from(base.seed);
    let _ = match extent.seeds {
        1 if keys.contains(&"seed") => writeln!(text),
        1 => writeln!(text, ", {seeds}"),
        n => writeln!(text, ", mean ± standard deviation of {n} runs, {seeds}"),
    };
    let _ = writeln!(text, "{}", remarks::warning(extent));
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
    let says = remarks::caveats(&caveats::of(&sides(columns)));
    if !says.is_empty() {
        let _ = writeln!(text, "{says}");
    }
    text += &readahead(columns);
    let figures: Vec<Figures> = columns.iter().map(|column| column.figures(args.all)).collect();
    // Names, the base, and of each other variant its figures and how they differ.
    text += &table::layout_joined(&rows(columns, &figures), |column| column > 2 && column % 2 == 1);
    if let Some(says) = same_as_first(columns, &figures) {
        let _ = write!(text, "\n{}", output::wrap(&says, output::width(), ""));
    }
    if figures.iter().all(|column| column.cells.is_empty()) {
        text += "\nNo variant ended well with every seed, so there is no figure to compare.\n";
    }
    if columns.iter().any(|column| column.variant.scenario.task.iter().any(|task| task.copies > 1)) {
        text +=
            "\nof a task's copies: accesses, misses and throughput of all together, mean of their times\n";
    }
    if figures.iter().flat_map(|column| &column.cells).any(|cell| cell.is_truncated) {
        let _ = write!(text, "\n{TRUNCATED}");
    }
    let noted = columns.iter().filter_map(|column| {
        Some((column.variant.label.as_str(), column.runs.results.first()?.notes.as_slice()))
    });
    let noted = remarks::notes(&notes::of_several(noted));
    if !noted.is_empty() {
        let _ = write!(text, "\n{noted}");
    }
    if extent.seeds > 1 {
        let _ = write!(text, "\n{}", effect::noise_legend(extent.seeds, false));
    }
    text
}

/// A line on how far files are read ahead, of all variants or of each; none where no file is on a device.
fn readahead(columns: &[Column]) -> String {
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
    output::wrap(&format!("readahead: {}", each.collect::<Vec<_>>().join("; ")), output::width(), "") + "\n"
}

/// A line for each figure that any column has and that says something of its own.
fn rows(columns: &[Column], figures: &[Figures]) -> Vec<Vec<String>> {
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
        if index > 0 {
            heading.push("diff".to_string());
        }
    }
    let mut rows = vec![heading];
    let mut group = String::new();
    for metric in told(figures) {
        let cells: Vec<Option<&Cell>> = figures.iter().map(|column| column.find(metric)).collect();
        if metric.group != group {
            group.clone_from(&metric.group);
            rows.push(vec![group.clone()]);
        }
        rows.push(row(metric, &cells));
    }
    rows
}

/// The figures that any column has, in the order of the first that has them, without those that are nothing everywhere or repeat
/// another in every column.
fn told(figures: &[Figures]) -> Vec<&Metric> {
    let mut known = BTreeSet::new();
    let cells = figures.iter().flat_map(|column| &column.cells);
    let metrics: Vec<&Metric> =
        cells.map(|cell| &cell.metric).filter(|metric| known.insert(metric.place())).collect();
    let says_something = |metric: &&Metric| {
        let repeats =
            |total: &Metric| figures.iter().all(|column| column.values(total) == column.values(metric));
        let is_repeat = match metric.total() {
            Some(total) => repeats(&total),
            // The few of the run as a whole repeat those of its task, if there is one.
            None if metric.group == "run" => {
                metrics.iter().any(|total| metric.may_be_that_of(total) && repeats(total))
            }
            None => false,
        };
        let mut cells = figures.iter().filter_map(|column| column.find(metric));
        !is_repeat && !cells.all(|cell| cell.spread().mean == 0.0)
    };
    metrics.iter().copied().filter(says_something).collect()
}

fn row(metric: &Metric, cells: &[Option<&Cell>]) -> Vec<String> {
    let base = cells[0];
    let mut row = vec![format!("  {}", metric.name)];
    for (index, cell) in cells.iter().enumerate() {
        row.push(cell.map_or("-".to_string(), Cell::show));
        if index > 0 {
            let paired = base.zip(*cell).and_then(|(base, cell)| cell.difference(base));
            row.push(paired.map_or("-".to_string(), |paired| difference(metric.unit, &paired)));
        }
    }
    row
}

/// A percentage's change is told in points: percent of a percentage are taken for them anyway.
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

/// All runs by the name of their variant.
fn sides<'a>(columns: &[Column<'a>]) -> Vec<(String, &'a [RunResult])> {
    columns.iter().map(|column| (column.variant.label.clone(), &column.runs.results[..])).collect()
}

/// Variants that do not differ from the first in any figure that is shown.
fn same_as_first(columns: &[Column], figures: &[Figures]) -> Option<String> {
    let (first, others) = figures.split_first()?;
    let is_same = |of: &Figures| {
        let mut cells = of.cells.iter();
        !of.cells.is_empty()
            && of.cells.len() == first.cells.len()
            && cells.all(|cell| first.values(&cell.metric) == Some(&cell.values[..]))
    };
    let same = columns[1..].iter().zip(others).filter(|(_, of)| is_same(of));
    let labels: Vec<&str> = same.map(|(column, _)| column.variant.label.as_str()).collect();
    let told = format!(
        "No figure shown differs from {} in any run: {}.",
        columns[0].variant.label,
        labels.join(", ")
    );
    (!labels.is_empty()).then_some(told)
}

fn to_json(args: &CompareArgs, extent: &Extent, columns: &[Column]) -> Value {
    let base = columns[0].figures(args.all);
    let variants = columns.iter().map(|column| {
        let metrics: serde_json::Map<String, Value> = column
            .figures(args.all)
            .cells
            .iter()
            .map(|cell| (cell.metric.full_name(), cell_json(cell, base.find(&cell.metric))))
            .collect();
        let settings = grid::settings_json(&column.variant.settings);
        json!({
            "label": column.variant.label,
            "settings": settings,
            "complete": column.runs.is_whole(),
            "failures": column.runs.failures,
            "metrics": metrics,
            "runs": column.runs.results,
        })
    });
    let is_whole = columns.iter().all(|column| column.runs.is_whole() || column.fails_as_known());
    let json = json!({
        "complete": is_whole && !extent.is_interrupted(),
        "caveats": caveats::of(&sides(columns)),
        "scenario": args.scenario.to_string_lossy(),
        "variants": variants.collect::<Vec<_>>(),
    });
    output::merged(json, extent.json())
}

/// A row a figure of a variant.
fn to_rows(args: &CompareArgs, columns: &[Column]) -> Vec<Value> {
    let base = columns[0].figures(args.all);
    let rows = columns.iter().flat_map(|column| {
        let figures = column.figures(args.all);
        let head = json!({
            "scenario": args.scenario.to_string_lossy(),
            "variant": column.variant.label,
            "complete": column.runs.is_whole(),
            "runs": column.runs.results.len(),
        });
        // A variant without figures is a row, too.
        let whole = figures.cells.is_empty().then(|| head.clone());
        let of_cell = |cell: &Cell| {
            let metric = &cell.metric;
            let name = json!({ "group": metric.group, "figure": format!("{}{}", metric.name, metric.unit.suffix()) });
            output::merged(output::merged(head.clone(), name), cell_json(cell, base.find(metric)))
        };
        whole.into_iter().chain(figures.cells.iter().map(of_cell)).collect::<Vec<Value>>()
    });
    rows.collect()
}

fn cell_json(cell: &Cell, base: Option<&Cell>) -> Value {
    let (spread, paired) = (cell.spread(), base.and_then(|base| cell.difference(base)));
    let (of_difference, difference) = match cell.metric.unit {
        Unit::Share => ("difference_points", paired.map(|paired| paired.difference * 100.0)),
        _ => ("difference_percent", paired.and_then(|paired| paired.percent_of_base())),
    };
    let mut json = json!({
        "mean": spread.mean,
        "deviation": spread.deviation,
        of_difference: difference,
        "within_noise": paired.is_some_and(|paired| paired.is_within_noise()),
    });
    if cell.is_truncated {
        json["truncated"] = true.into();
    }
    json
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
