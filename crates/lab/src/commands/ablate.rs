//! `pageout ablate`: every mechanism of a policy turned alone ([`pageout_study::ablate`]), as tables, JSON and a page.
//!
//! `crossover.rs` shows the effect of a mechanism with other lists or another balance, `ablate/over.rs` its effect in other scenarios.

pub(crate) mod args; // what can be asked
mod over;
mod page; // effects as bars

use std::fmt::Write;

use pageout_engine::{Config, Values};
use pageout_sim::scenario::Scenario;
use pageout_study::Answered;
use pageout_study::ablate::{self, Ablation, Answer, Ask, Refused, Row};
use pageout_study::result::effect::{self, Figure, figures_of};
use pageout_study::scenario::grid::Point;
use pageout_study::scenario::switches::{self, Knob, Turn};
use serde_json::Value;

use crate::context::Context;
use crate::failure::Outcome;
use crate::print::summary::percentages;
use crate::print::{Layout, Terminal};
use crate::report::{Picture, check_name};
use args::AblateArgs;

/// Runs the scenario unchanged and with each switch turned, and prints the effects; with `--over` at each point of a grid. Values that fail are
/// shown, and the exit code is 1.
pub(crate) fn run(args: &AblateArgs, cx: &Context) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let ask = Ask {
        scenario: args.scenario.clone(),
        changes: args.options.changes(),
        variant: args.variant.name.clone(),
        over: args.over.clone(),
        switches: args.switches.clone(),
        repeat: args.runs.repeat,
        jobs: args.runs.parallel.jobs,
    };
    let mut found = ablate::ask(&ask, &Terminal::new(&cx.output))?;
    let failure = match found.failure() {
        Some(failure) if found.is_nothing() => return cx.output.no_result(failure.into(), Value::Null),
        failure => failure,
    };
    if cx.output.is_data() {
        cx.output.print_json(&found)?;
    } else {
        let is_grid = !args.over.is_empty();
        let text = if is_grid {
            over::to_text(args, &found, cx.layout())
        } else {
            to_text(args, &found, cx.layout())
        };
        cx.output.print_text(&text)?;
    }
    if let Some(path) = &args.page.report {
        page::page(args, &found).write(path, &cx.output)?;
    }
    Ok(failure.map_or(Ok(()), Err)?)
}

/// What was found out at the only point.
fn to_text(args: &AblateArgs, found: &Answer, layout: Layout) -> String {
    let mut text = String::new();
    let Ablation { point: Point { scenario, .. }, base, rows, .. } = &found.points[0];
    if !scenario.question.is_empty() {
        text += &layout.wrap(&scenario.question, "");
        text.push('\n');
    }
    let seeds = found.extent.seeds_from(scenario.seed);
    let _ = writeln!(
        text,
        "{}: {}, and what changes when one switch is turned; {seeds}",
        args.scenario.display(),
        scenario.kernel.name()
    );
    text += &layout.warning(&found.extent);
    text += &layout.caveats(&found.caveats());
    text += &percentages(&scenario.percentages());
    text += &untouched(scenario);
    for (title, is_outcome) in [("Results", true), ("Work of reclaim", false)] {
        let figures: Vec<&Figure> =
            figures_of(base).filter(|figure| figure.is_outcome == is_outcome).collect();
        let rows = effects(&found.points[0], &figures);
        let _ = write!(text, "\n{title}\n{}", layout.table(&rows, 1));
    }
    let idle: Vec<&Row> = rows.iter().filter(|row| row.changes_nothing(base)).collect();
    if !idle.is_empty() {
        let names: Vec<String> = idle.iter().map(|row| row.turn.to_string()).collect();
        text += "\nWithout any effect on these figures, in any run\n";
        text += &layout.wrap(&names.join(", "), "  ");
    }
    text += &not_run(rows.iter().filter(|row| !row.runs.was_made()).map(|row| &row.turn), layout);
    text += &refusals(&found.refused, layout);
    let failed = rows.iter().filter(|row| !row.runs.failures.is_empty());
    text += &layout.failed(failed.map(|row| format!("{}: {}", row.turn, row.runs.failures[0])));
    text.push('\n');
    text += &layout.notes(&base.results[0].notes);
    text + &effect::legend(found.extent.seeds, true)
}

/// A line for every value of every switch that changes anything.
fn effects(of: &Ablation, figures: &[&Figure]) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(figures.iter().map(|figure| figure.heading.to_string()));
    let mut base = vec![of.point.scenario.kernel.name()];
    base.extend(figures.iter().map(|figure| figure.show(&of.base)));
    rows.push(base);
    let made = of.rows.iter().filter(|row| row.runs.was_made());
    let shown = made.filter(|row| !row.changes_nothing(&of.base));
    let lines = shown.map(|row| {
        let cells = if row.runs.is_whole() {
            let cell = |figure: &&Figure| {
                figure
                    .effect(&of.base, &row.runs)
                    .map_or("-".to_string(), |effect| figure.show_effect(&effect))
            };
            figures.iter().map(cell).collect()
        } else {
            vec![row.runs.missing()]
        };
        (&row.turn, cells)
    });
    rows.extend(below_seams(&of.config, lines));
    rows
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
fn refusals(refused: &[Refused], layout: Layout) -> String {
    if refused.is_empty() {
        return String::new();
    }
    let lines = refused.iter().map(|(turn, why)| layout.wrap(&format!("{turn}: {why}"), "  "));
    format!("\nNot possible here\n{}", lines.collect::<String>())
}

/// Lines about switches that a signal came before.
fn not_run<'a>(turns: impl Iterator<Item = &'a Turn>, layout: Layout) -> String {
    let names: Vec<String> = turns.map(ToString::to_string).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("\nNot run\n{}", layout.wrap(&names.join(", "), "  "))
}

/// A line about cgroups that the switches leave alone.
pub(crate) fn untouched(scenario: &Scenario) -> String {
    match switches::untouched(scenario).as_slice() {
        [] => String::new(),
        paths => format!("Not turned for {}: a policy of their own\n", paths.join(", ")),
    }
}
