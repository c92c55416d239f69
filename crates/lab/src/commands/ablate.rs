//! `pageout ablate`: every mechanism of a policy turned alone, and what that changes.
//!
//! One factor at a time: the scenario as it is runs against the scenario with one switch at another value, for every switch and
//! every value, seed by seed. This tells what a mechanism is worth *among the others*. `crossover.rs` tells what it would be worth
//! with other lists or another balance, `ablate/over.rs` whether it is worth that in another scenario. Mechanisms of memory tiers are
//! parameters of the machine, and turned as well where it has tiers.

mod over;
mod page; // effects as bars

use std::fmt::Write;

use pageout_engine::{Config, Values};
use pageout_sim::scenario::Scenario;
use pageout_study::result::caveats;
use pageout_study::result::effect::{self, Figure, figures_of};
use pageout_study::result::run_result::RunResult;
use pageout_study::result::variants::{Extent, Made, Runs};
use pageout_study::scenario::grid::{self, Point};
use pageout_study::scenario::source::{OVER, Source};
use pageout_study::scenario::switches::{self, Knob, Turn, Wanted};
use pageout_study::{Error, Failed};
use serde_json::{Map, Value, json};

use crate::cli::{AblateArgs, one_way_to_vary_the_seed};
use crate::failure::{Failure, Outcome};
use crate::print::progress::Terminal;
use crate::print::summary::percentages;
use crate::print::{output, remarks, table};
use crate::report::check_name;

/// Runs the scenario as it is and with each switch turned, and prints the effects; all that at every point of a grid, if one
/// is asked for. Values that fail are shown as such, and the exit code says that not everything is there.
pub(crate) fn ablate(args: &AblateArgs) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path)?;
    }
    let source = Source::read(&args.scenario)?;
    let points = points(args, &source)?;
    let configs: Vec<Config> = points.iter().map(config_of).collect();
    let config = &configs[0];
    let turns = turns(config, &points[0].scenario, &args.switches)?;
    let is_same = |(other, point): (&Config, &Point)| -> Result<bool, Error> {
        Ok(other.policy == config.policy && self::turns(other, &point.scenario, &args.switches)? == turns)
    };
    for pair in configs.iter().zip(&points) {
        if !is_same(pair)? {
            let message =
                "--over changes what the switches are, but they are turned one by one; give them by --set";
            return Err(Failure::Input(anyhow::anyhow!(message)));
        }
    }
    let (turns, refused) = possible(turns, &points)?;
    let terminal = Terminal::new(&args.options.output);
    let plan = args.runs.plan(&args.scenario, &terminal);
    let scenarios: Vec<Scenario> = points
        .iter()
        .flat_map(|Point { scenario, .. }| {
            let turned = turns.iter().map(|turn| turn.applied(scenario.clone()));
            std::iter::once(scenario.clone()).chain(turned)
        })
        .collect();
    let Made { variants, extent } = plan.run(&scenarios)?;
    let mut results = variants.into_iter();
    let points: Vec<Ablation> = points
        .into_iter()
        .zip(configs)
        .map(|(point, config)| {
            let base = results.next().expect("the scenario as it is was run first");
            let rows = turns.iter().cloned().zip(results.by_ref());
            let rows = rows.map(|(turn, runs)| Row { turn, runs }).collect();
            Ablation { args, point, config, refused: &refused, extent: &extent, base, rows }
        })
        .collect();
    if !points.iter().any(|point| point.base.is_whole()) {
        let failures: Vec<Failed> = points.into_iter().flat_map(|ablation| ablation.base.failures).collect();
        let failure = extent.nothing("the scenario fails as it is", &failures);
        return output::no_result(&args.options.output, failure.into(), Value::Null);
    }
    let is_grid = !args.over.is_empty();
    if args.options.output.json {
        let json = if is_grid { over::to_json(&points) } else { points[0].to_json() };
        output::print_json(&json)?;
    } else {
        let text = if is_grid { over::to_text(&points) } else { points[0].to_text() };
        output::print_text(&text)?;
    }
    if let Some(path) = &args.page.report {
        page::page(&source, &points).write(path)?;
    }
    let failures: Vec<Failed> = points.iter().flat_map(Ablation::failures).collect();
    Ok(extent.verdict(&failures)?)
}

/// The scenario, or the variant that was asked for, at every point of the grid.
fn points(args: &AblateArgs, source: &Source) -> Result<Vec<Point>, Failure> {
    one_way_to_vary_the_seed(OVER, &args.over, args.runs.repeat)?;
    let terminal = Terminal::new(&args.options.output);
    let points = grid::points(source, &args.options.changes(), &args.over, OVER, &terminal)?;
    let varied = points.into_iter().map(|Point { settings, scenario }| {
        let scenario = args.variant.of(source, &args.options, scenario, &settings)?;
        Ok(Point { settings, scenario })
    });
    varied.collect()
}

fn config_of(point: &Point) -> Config {
    point.scenario.engine_config().expect("the scenario was checked")
}

fn turns(config: &Config, scenario: &Scenario, wanted: &[Wanted]) -> Result<Vec<Turn>, Error> {
    let has_tiers = scenario.machine.tiers().is_ok_and(|tiers| tiers.has_lower_tier());
    switches::turns(config, has_tiers, wanted)
}

/// A turn that makes no sense in the scenario, and why.
type Refused = (Turn, String);

/// Turns that every point can do with, and why it can't do with the others: some values make sense with others alone. Errors: none is left.
fn possible(turns: Vec<Turn>, points: &[Point]) -> Result<(Vec<Turn>, Vec<Refused>), Failure> {
    let problem = |turn: &Turn| -> Option<String> {
        let turned = points.iter().map(|point| turn.applied(point.scenario.clone()));
        turned.flat_map(|scenario| scenario.validate()).next().map(|problem| problem.message)
    };
    let (mut left, mut refused) = (Vec::new(), Vec::new());
    for turn in turns {
        match problem(&turn) {
            None => left.push(turn),
            Some(why) => refused.push((turn, why)),
        }
    }
    match refused.first().filter(|_| left.is_empty()) {
        Some((turn, why)) => Err(Failure::Input(anyhow::anyhow!("{turn} makes no sense here: {why}"))),
        None => Ok((left, refused)),
    }
}

/// All that was found out at one point.
struct Ablation<'a> {
    args: &'a AblateArgs,
    point: Point,
    config: Config,
    /// What can't be turned here.
    refused: &'a [Refused],
    extent: &'a Extent,
    base: Runs,
    rows: Vec<Row>,
}

/// One switch at one value.
struct Row {
    turn: Turn,
    runs: Runs,
}

impl Row {
    /// Whether no figure differs in any run.
    fn changes_nothing(&self, base: &Runs) -> bool {
        figures_of(base).all(|figure| figure.effect(base, &self.runs).is_some_and(|effect| effect.is_same))
    }
}

impl Ablation<'_> {
    /// The failures of all runs, saying whose they are.
    fn failures(&self) -> Vec<Failed> {
        let at = match self.point.settings.is_empty() {
            true => String::new(),
            false => format!(" at {}", grid::label(&self.point.settings)),
        };
        let base = self.base.failures_of(&format!("the scenario as it is{at}"));
        let turned = self.rows.iter().flat_map(|row| row.runs.failures_of(&format!("{}{at}", row.turn)));
        base.into_iter().chain(turned).collect()
    }

    /// All runs by what was turned.
    fn sides(&self) -> impl Iterator<Item = (String, &[RunResult])> {
        let base = (self.point.scenario.kernel.name(), &self.base.results[..]);
        let turned = self.rows.iter().map(|row| (row.turn.to_string(), &row.runs.results[..]));
        std::iter::once(base).chain(turned)
    }

    /// Whether all runs asked for are there.
    fn is_whole(&self) -> bool {
        !self.extent.is_interrupted() && self.failures().is_empty()
    }

    fn to_text(&self) -> String {
        let width = output::width();
        let mut text = String::new();
        if !self.point.scenario.question.is_empty() {
            text += &output::wrap(&self.point.scenario.question, width, "");
            text.push('\n');
        }
        let seeds = self.extent.seeds_from(self.point.scenario.seed);
        let _ = writeln!(
            text,
            "{}: {}, and what changes when one switch is turned; {seeds}",
            self.args.scenario.display(),
            self.point.scenario.kernel.name()
        );
        text += &remarks::warning(self.extent);
        text += &remarks::caveats(&caveats::of_rules(&self.sides().collect::<Vec<_>>()));
        text += &percentages(&self.point.scenario.percentages());
        text += &untouched(&self.point.scenario);
        for (title, is_outcome) in [("What comes of it", true), ("What reclaim does for it", false)] {
            let figures: Vec<&Figure> =
                figures_of(&self.base).filter(|figure| figure.is_outcome == is_outcome).collect();
            let _ = write!(text, "\n{title}\n{}", table::layout(&self.table(&figures), 1));
        }
        let idle: Vec<&Row> = self.rows.iter().filter(|row| row.changes_nothing(&self.base)).collect();
        if !idle.is_empty() {
            let names: Vec<String> = idle.iter().map(|row| row.turn.to_string()).collect();
            text += "\nWithout any effect on these figures, in any run\n";
            text += &output::wrap(&names.join(", "), width, "  ");
        }
        text += &not_run(self.rows.iter().filter(|row| !row.runs.was_made()).map(|row| &row.turn));
        text += &refusals(self.refused);
        let failed = self.rows.iter().filter(|row| !row.runs.failures.is_empty());
        text += &output::failed(failed.map(|row| format!("{}: {}", row.turn, row.runs.failures[0])));
        text.push('\n');
        text += &remarks::notes(&self.base.results[0].notes);
        text + &effect::legend(self.extent.seeds, true)
    }

    /// A line for every value of every switch that changes anything.
    fn table(&self, figures: &[&Figure]) -> Vec<Vec<String>> {
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(figures.iter().map(|figure| figure.heading.to_string()));
        let mut base = vec![self.point.scenario.kernel.name()];
        base.extend(figures.iter().map(|figure| figure.show(&self.base)));
        rows.push(base);
        let made = self.rows.iter().filter(|row| row.runs.was_made());
        let shown = made.filter(|row| !row.changes_nothing(&self.base));
        let lines = shown.map(|row| {
            let cells = if row.runs.is_whole() {
                let cell = |figure: &&Figure| {
                    figure
                        .effect(&self.base, &row.runs)
                        .map_or("-".to_string(), |effect| figure.show_effect(&effect))
                };
                figures.iter().map(cell).collect()
            } else {
                vec![row.runs.missing()]
            };
            (&row.turn, cells)
        });
        rows.extend(below_seams(&self.config, lines));
        rows
    }

    fn to_json(&self) -> Value {
        output::merged(self.head(), self.found())
    }

    /// What was asked, whatever the point.
    fn head(&self) -> Value {
        let policy = &self.config.policy;
        let switches = pageout_engine::SWITCHES.iter();
        let switches = switches.map(|switch| (switch.name.to_string(), switch.get(policy).into()));
        let mut switches: Map<String, Value> = switches.collect();
        for Row { turn, .. } in &self.rows {
            switches.insert(turn.knob.name().to_string(), turn.knob.get(&self.config).into());
        }
        let refused = self.refused.iter();
        let refused =
            refused.map(|(turn, why)| json!({ "switch": turn.knob.name(), "value": turn.value, "why": why }));
        let head = json!({
            "scenario": self.args.scenario.to_string_lossy(),
            "profile": self.point.scenario.kernel.name(),
            "switches": switches,
            "not_applied_to": switches::untouched(&self.point.scenario),
            "refused": refused.collect::<Vec<Value>>(),
            "seed": self.point.scenario.seed,
            "criterion": effect::CRITERION,
        });
        output::merged(head, self.extent.json())
    }

    /// What was found out at this point.
    fn found(&self) -> Value {
        let variants: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let knob = row.turn.knob;
                json!({
                    "switch": knob.name(),
                    "seam": knob.seam(),
                    "value": row.turn.value,
                    "own_value": knob.get(&self.config),
                    "meaning": knob.doc(),
                    "complete": row.runs.is_whole(),
                    "failures": row.runs.failures,
                    "changes_nothing": row.changes_nothing(&self.base),
                    "figures": effect::figures_json(&row.runs),
                    "effects": effect::effects_json(&self.base, &row.runs),
                    "runs": row.runs.results,
                })
            })
            .collect();
        json!({
            "complete": self.is_whole(),
            "caveats": caveats::of_rules(&self.sides().collect::<Vec<_>>()),
            "base": { "figures": effect::figures_json(&self.base), "runs": self.base.results },
            "variants": variants,
        })
    }
}

/// Lines of a table, one a turned switch, below its seam; those of a choice below its name.
fn below_seams<'a>(
    config: &Config,
    lines: impl Iterator<Item = (&'a Turn, Vec<String>)>,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut last: Option<Knob> = None;
    for (turn, cells) in lines {
        let knob = turn.knob;
        let short = knob.name().split_once('.').map_or(knob.name(), |(_, name)| name);
        if last.is_none_or(|last| last.seam() != knob.seam()) {
            rows.push(vec![knob.seam().to_string()]);
        }
        let is_bool = knob.values() == Values::Bool;
        if !is_bool && last.is_none_or(|last| last.name() != knob.name()) {
            rows.push(vec![format!("  {short} ({})", knob.get(config))]);
        }
        last = Some(knob);
        let label = if is_bool { format!("  {short}={}", turn.value) } else { format!("    {}", turn.value) };
        rows.push(std::iter::once(label).chain(cells).collect());
    }
    rows
}

/// Lines about values that make no sense here.
fn refusals(refused: &[Refused]) -> String {
    if refused.is_empty() {
        return String::new();
    }
    let lines =
        refused.iter().map(|(turn, why)| output::wrap(&format!("{turn}: {why}"), output::width(), "  "));
    format!("\nNot possible here\n{}", lines.collect::<String>())
}

/// Lines about switches that a signal came before.
fn not_run<'a>(turns: impl Iterator<Item = &'a Turn>) -> String {
    let names: Vec<String> = turns.map(ToString::to_string).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("\nNot run\n{}", output::wrap(&names.join(", "), output::width(), "  "))
}

/// A line about cgroups that the switches leave alone.
pub(crate) fn untouched(scenario: &Scenario) -> String {
    match switches::untouched(scenario).as_slice() {
        [] => String::new(),
        paths => format!("Not turned for {}: a policy of their own\n", paths.join(", ")),
    }
}
