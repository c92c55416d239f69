//! `pageout predict`: a page with what a kernel will do, written before it does.
//!
//! ```text
//!   --vary A=1,2              columns: what is asked        (or the scenario's variants)
//!   --unknown B=x,y  seeds    runs of each column: what is not known    ──▶ their median, and the least and the most
//! ```
//! A figure is worth something as a prediction only if it was there first, says how far it may be off, and can be checked. So the page has its time
//! and the program's commit, ranges over what is not known, and the commands by which someone with a kernel finds out.

mod accesses; // what tasks access, for who checks
mod check; // the commands of who checks
mod clock; // what time it is

use std::collections::BTreeMap;
use std::fmt::Write;

use pageout_sim::scenario::Scenario;
use pageout_study::basis::{Evidence, verdict};
use pageout_study::result::metrics::{Metric, Unit, metrics};
use pageout_study::result::run_result::RunResult;
use pageout_study::result::variants::{Extent, Made, Runs};
use pageout_study::result::{caveats, notes};
use pageout_study::scenario::grid::{self, Point};
use pageout_study::scenario::load::Changes;
use pageout_study::scenario::own_variants::{self, Variant};
use pageout_study::scenario::source::{Setting, Source, UNKNOWN, VARY};
use serde_json::{Value, json};

use crate::cli::{PredictArgs, one_way_to_vary_the_seed};
use crate::commands::expectations::{self, Checked};
use crate::failure::{Failure, Outcome};
use crate::print::progress::Terminal;
use crate::print::{output, remarks};

/// The program that predicts: another one may have other rules.
const BUILD: &str = concat!("pageout ", env!("CARGO_PKG_VERSION"), ", commit ", env!("PAGEOUT_COMMIT"));

/// Runs everything, and writes the page. Nothing is predicted where a run fails or is interrupted.
pub(crate) fn run(args: &PredictArgs) -> Outcome {
    let source = Source::read(&args.scenario)?;
    one_way_to_vary_the_seed(VARY, &args.vary, args.runs.repeat)?;
    one_way_to_vary_the_seed(UNKNOWN, &args.unknown, args.runs.repeat)?;
    if let Some(twice) =
        args.vary.iter().find(|chosen| args.unknown.iter().any(|open| open.key == chosen.key))
    {
        let message =
            format!("{} is chosen by {VARY} and not known by {UNKNOWN}: give one of them", twice.key);
        return Err(Failure::Input(anyhow::anyhow!(message)));
    }
    let (changes, terminal) = (args.options.changes(), Terminal::new(&args.options.output));
    let worlds: Vec<World> = grid::points(&source, &changes, &args.unknown, UNKNOWN, &terminal)?
        .into_iter()
        .map(|point| World::of(args, &source, &changes, point, &terminal))
        .collect::<Result<_, Failure>>()?;
    let columns = &worlds[0].columns;
    if let Some(fails) = columns.iter().find(|column| column.fails.is_some()) {
        let message = format!("variant `{}` is known to fail, so it has no figures to predict", fails.label);
        return Err(Failure::Input(anyhow::anyhow!(message)));
    }
    let scenarios: Vec<Scenario> =
        worlds.iter().flat_map(|world| world.columns.iter().map(|column| column.scenario.clone())).collect();
    let Made { variants: runs, extent } = args.runs.plan(&args.scenario, &terminal).run(&scenarios)?;
    let names = worlds.iter().flat_map(|world| world.columns.iter().map(|column| &column.label));
    let failures: Vec<_> = names.zip(&runs).flat_map(|(name, runs)| runs.failures_of(name)).collect();
    if extent.is_interrupted() || !failures.is_empty() {
        let failure = match extent.verdict(&failures) {
            Err(failure) => failure,
            Ok(()) => extent.nothing("nothing is predicted", &failures),
        };
        return output::no_result(&args.options.output, failure.into(), Value::Null);
    }
    let runs: Vec<&[Runs]> = runs.chunks(columns.len()).collect();
    let expected = if args.vary.is_empty() { &columns[0].scenario.expect[..] } else { &[] };
    let mut claims: Vec<Claim> = Vec::new();
    for runs in &runs {
        let sides: Vec<(&str, Vec<&RunResult>)> = columns
            .iter()
            .zip(runs.iter())
            .map(|(column, runs)| (column.label.as_str(), runs.results.iter().collect()))
            .collect();
        let checked = expectations::check(&source, expected, &sides)?;
        match claims.is_empty() {
            true => claims = checked.into_iter().map(Claim::of).collect(),
            false => claims.iter_mut().zip(checked).for_each(|(claim, checked)| claim.add(&checked)),
        }
    }
    let written = match &args.accesses {
        Some(directory) => accesses::write(directory, &columns[0].scenario)?,
        None => Vec::new(),
    };
    let figures: Vec<Figures> = (0..columns.len())
        .map(|at| Figures::of(runs.iter().flat_map(|runs| &runs[at].results), args.all))
        .collect();
    let page =
        Page { args, extent: &extent, columns, figures: &figures, claims: &claims, at: clock::now_utc() };
    if args.options.output.is_data() {
        return output::print_json(&page.json());
    }
    let results =
        |at: usize| runs.iter().flat_map(move |runs| &runs[at].results).cloned().collect::<Vec<_>>();
    let sides: Vec<(String, Vec<RunResult>)> =
        columns.iter().enumerate().map(|(at, column)| (column.label.clone(), results(at))).collect();
    output::print(&page.text(&sides, &written))
}

/// One combination of what is not known, with the columns in it.
struct World {
    columns: Vec<Variant>,
}

impl World {
    fn of(
        args: &PredictArgs,
        source: &Source,
        changes: &Changes,
        point: Point,
        terminal: &Terminal,
    ) -> Result<World, Failure> {
        let settings: Vec<Setting> = changes.settings.iter().chain(&point.settings).cloned().collect();
        let changes = Changes { settings, seed: changes.seed };
        if !args.vary.is_empty() {
            let points = grid::points(source, &changes, &args.vary, VARY, terminal)?;
            let columns = points.into_iter().map(|Point { settings, scenario }| Variant {
                label: grid::label(&settings),
                settings,
                scenario,
                fails: None,
            });
            return Ok(World { columns: columns.collect() });
        }
        let mut columns = own_variants::all(source, &changes, &point.scenario, terminal)?;
        if columns.is_empty() {
            let label = "as written".to_string();
            columns.push(Variant { label, settings: Vec::new(), scenario: point.scenario, fails: None });
        }
        Ok(World { columns })
    }
}

/// What the scenario expects, and in how many runs it comes true.
struct Claim {
    what: Checked,
    true_for: usize,
    runs: usize,
}

impl Claim {
    fn of(checked: Checked) -> Claim {
        let (true_for, runs) = checked.count();
        Claim { what: checked, true_for, runs }
    }

    fn add(&mut self, checked: &Checked) {
        let (true_for, runs) = checked.count();
        self.true_for += true_for;
        self.runs += runs;
    }
}

/// Every figure of a column, in the order of the first run that has it: its values over all runs.
#[derive(Default)]
struct Figures {
    names: Vec<Metric>,
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
    fn range(&self, metric: &Metric) -> Option<[f64; 3]> {
        let values = self.values.get(&metric.place())?;
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        let median = if below == above { below } else { below / 2.0 + above / 2.0 };
        Some([values[0], median, values[values.len() - 1]])
    }

    fn show(&self, metric: &Metric) -> String {
        let Some(range) = self.range(metric) else { return "-".to_string() };
        let [least, median, most] = range.map(|value| metric.unit.show(value));
        if least == most { median } else { format!("{median} ({least} to {most})") }
    }
}

/// Seeds at least by which a range can be refuted: of fewer the least and the most lie too close together.
const SEEDS_MIN: u64 = 5;

/// How many seeds there were.
struct Seeds(u64);

impl Evidence for Seeds {
    type Need = u64;
    type Seen = u64;

    fn seen(&self, least: &u64) -> Result<u64, String> {
        if self.0 >= *least { Ok(self.0) } else { Err(format!("fewer than {least} seeds")) }
    }
}

/// All that the page says.
struct Page<'a> {
    args: &'a PredictArgs,
    extent: &'a Extent,
    columns: &'a [Variant],
    figures: &'a [Figures],
    claims: &'a [Claim],
    at: String,
}

impl Page<'_> {
    fn runs(&self) -> usize {
        let worlds: usize = self.args.unknown.iter().map(|unknown| unknown.values.len()).product();
        worlds * self.extent.seeds as usize
    }

    /// The figures that any column has and that are not nothing everywhere, without those that repeat another; and without times, which hang on prices
    /// that are typical rather than the checking machine's.
    fn told(&self) -> Vec<&Metric> {
        let mut told: Vec<&Metric> = Vec::new();
        for metric in self.figures.iter().flat_map(|figures| &figures.names) {
            let values = |metric: &Metric| -> Vec<_> {
                self.figures.iter().map(|figures| figures.values.get(&metric.place())).collect()
            };
            let is_nothing = values(metric).into_iter().flatten().flatten().all(|value| *value == 0.0);
            let is_repeat = metric.total().is_some_and(|total| values(&total) == values(metric));
            let is_of_time = matches!(metric.unit, Unit::Nanoseconds | Unit::PerSecond);
            if !is_nothing
                && !is_repeat
                && (self.args.all || !is_of_time)
                && told.iter().all(|known| known.place() != metric.place())
            {
                told.push(metric);
            }
        }
        told
    }

    fn text(&self, sides: &[(String, Vec<RunResult>)], written: &[String]) -> String {
        let first = &self.columns[0].scenario;
        let file = self.args.scenario.display();
        let title = match first.question.is_empty() {
            true => format!("What comes of {file}"),
            false => first.question.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        let mut text = format!("# {title}\n\n");
        let _ = writeln!(text, "- **Predicted at {}, before an answer was known**, by {BUILD}.", self.at);
        let rules: Vec<String> = self.columns.iter().map(|column| column.scenario.kernel.name()).collect();
        let _ = writeln!(text, "- Of the rules of {}, by {}.", listed(&rules), code(&file.to_string()));
        let _ = match self.runs() {
            1 => writeln!(text, "- One run: nothing is varied, and no figure says how far it may be off."),
            runs => writeln!(
                text,
                "- A figure is the median of {runs} runs, with the least and the most of them. {}",
                verdict(&Seeds(self.extent.seeds.into()), [SEEDS_MIN], |_| {
                    "A kernel that is outside of a range refutes it.".to_string()
                })
                .unwrap_or_else(|unknown| {
                    format!(
                        "Whether a kernel outside of a range refutes it is {unknown} (--repeat {SEEDS_MIN})."
                    )
                })
            ),
        };
        for said in
            caveats::of(&sides.iter().map(|(name, results)| (name.clone(), &results[..])).collect::<Vec<_>>())
        {
            let _ = writeln!(text, "- {said}");
        }
        let _ = write!(text, "\n## What is not known\n\n| what | varied over |\n|---|---|\n");
        let _ = writeln!(text, "| what a generator draws | {} |", self.extent.seeds_from(first.seed));
        for unknown in &self.args.unknown {
            let _ = writeln!(text, "| {} | {} |", code(&unknown.key), unknown.values.join(", "));
        }
        text += "\n## Figures\n\n";
        text += &self.table();
        if !self.claims.is_empty() {
            text += "\n## Claims\n\n| figure | claim | because | true in |\n|---|---|---|---|\n";
            for Claim { what, true_for, runs } in self.claims {
                let (figure, holds, because) = what.said();
                let _ =
                    writeln!(text, "| {figure} | {} | {because} | {true_for} of {runs} runs |", code(holds));
            }
        }
        let noted = sides
            .iter()
            .filter_map(|(name, results)| Some((name.as_str(), results.first()?.notes.as_slice())));
        let noted = remarks::notes(&notes::of_several(noted));
        if !noted.is_empty() {
            let _ = write!(text, "\n## To know of these figures\n\n{noted}");
        }
        text += "\n## How to check\n\n";
        text += &check::text(self.columns, self.args.accesses.as_deref(), written);
        text += "\n## What a kernel did\n\nNothing above this line is changed afterwards.\n\n| when | which kernel, on which machine | what it did | verdict |\n|---|---|---|---|\n| | | | |\n";
        text
    }

    fn table(&self) -> String {
        let mut text = String::from("| |");
        for column in self.columns {
            let _ = write!(text, " {} |", column.label);
        }
        let _ = writeln!(text, "\n|---|{}", "---:|".repeat(self.columns.len()));
        for metric in self.told() {
            let _ = write!(text, "| {}: {} |", metric.group, metric.name);
            for figures in self.figures {
                let _ = write!(text, " {} |", figures.show(metric));
            }
            text.push('\n');
        }
        text
    }

    fn json(&self) -> Value {
        let columns = self.columns.iter().zip(self.figures).map(|(column, figures)| {
            let of = |metric: &Metric| {
                let [least, median, most] = figures.range(metric).expect("it is one of this column's");
                (metric.full_name(), json!({ "least": least, "middle": median, "most": most }))
            };
            let figures: serde_json::Map<String, Value> = figures.names.iter().map(of).collect();
            json!({
                "label": column.label,
                "rules": column.scenario.kernel.name(),
                "settings": grid::settings_json(&column.settings),
                "figures": figures,
            })
        });
        let unknown = self.args.unknown.iter().map(|unknown| (unknown.key.clone(), json!(unknown.values)));
        let claims = self.claims.iter().map(|claim| {
            let (figure, holds, because) = claim.what.said();
            json!({ "figure": figure, "holds": holds, "because": because, "true_for": claim.true_for, "runs": claim.runs })
        });
        json!({
            "complete": true,
            "scenario": self.args.scenario.to_string_lossy(),
            "predicted_at": self.at,
            "build": BUILD,
            "runs": self.runs(),
            "seeds": self.extent.seeds_from(self.columns[0].scenario.seed),
            "unknown": unknown.collect::<serde_json::Map<String, Value>>(),
            "columns": columns.collect::<Vec<_>>(),
            "claims": claims.collect::<Vec<_>>(),
        })
    }
}

/// As something that a machine reads.
fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Each once, in order.
fn listed(texts: &[String]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for text in texts {
        if !once.contains(&text.as_str()) {
            once.push(text);
        }
    }
    once.join(", ")
}
