//! `pageout crossover`: the mechanisms of the two families of Linux exchanged ([`pageout_study::ablate::crossover`]), as tables and JSON.

pub(crate) mod args; // what can be asked
mod over; // at every point of a grid

use std::fmt::Write;

use pageout_study::Answered;
use pageout_study::ablate::crossover::{
    self, Answer, Ask, CLASSIC, Combination, Crossover, SEAMS, Step, combinations, mglru, names,
};
use pageout_study::result::caveats;
use pageout_study::result::effect::{self, FIGURES, Figure};
use pageout_study::result::spread::Paired;
use serde_json::Value;

use crate::commands::ablate::untouched;
use crate::context::Context;
use crate::failure::Outcome;
use crate::print::summary::percentages;
use crate::print::{Layout, Terminal};
use args::CrossoverArgs;

/// Runs all combinations and prints how they compare with both corners; all that at every point of a grid, if one is asked for.
pub(crate) fn run(args: &CrossoverArgs, cx: &Context) -> Outcome {
    let ask = Ask {
        scenario: args.scenario.clone(),
        changes: args.options.changes(),
        over: args.over.clone(),
        repeat: args.runs.repeat,
        jobs: args.runs.parallel.jobs,
    };
    let mut answer = crossover::ask(&ask, &Terminal::new(&cx.output))?;
    let failure = match answer.failure() {
        Some(failure) if answer.is_nothing() => return cx.output.no_result(failure.into(), Value::Null),
        failure => failure,
    };
    if cx.output.is_data() {
        cx.output.print_json(&answer)?;
    } else {
        let report = Report { answer: &answer, all: args.all, layout: cx.layout() };
        cx.output.print_text(&if args.over.is_empty() { report.to_text() } else { report.over() })?;
    }
    Ok(failure.map_or(Ok(()), Err)?)
}

/// All that is to be printed.
struct Report<'a> {
    answer: &'a Answer,
    /// All figures, not only the main ones.
    all: bool,
    layout: Layout,
}

impl Report<'_> {
    /// Returns true if a figure is shown, of which some point tells something.
    fn is_shown(&self, figure: &Figure) -> bool {
        (self.all || DEFAULT_FIGURES.contains(&figure.name))
            && self.answer.points.iter().any(|point| !point.is_idle(figure))
    }

    fn to_text(&self) -> String {
        let Answer { ask, extent, points } = self.answer;
        let (crossover, scenario) = (&points[0], &points[0].point.scenario);
        let mut text = String::new();
        if !scenario.question.is_empty() {
            text += &self.layout.wrap(&scenario.question, "");
            text.push('\n');
        }
        let seeds = extent.seeds_from(scenario.seed);
        let _ = writeln!(
            text,
            "{}: classic's and MGLRU's choices at the four seams in all combinations, {seeds};\nall else as in {}. A cell: \
             difference to classic / to MGLRU.",
            ask.scenario.display(),
            scenario.kernel.name()
        );
        text += &self.layout.warning(extent);
        text += &self.layout.caveats(&caveats::of_rules(&crossover.sides().collect::<Vec<_>>()));
        text += &percentages(&scenario.percentages());
        text += &untouched(scenario);
        for figure in FIGURES.iter().filter(|figure| self.is_shown(figure)) {
            let corner = |combination| {
                let runs = crossover.runs(combination);
                if runs.is_whole() { figure.show(runs) } else { runs.missing() }
            };
            let _ = writeln!(
                text,
                "\n{}: classic {}, MGLRU {}\n",
                effect::capitalised(figure.title),
                corner(CLASSIC),
                corner(mglru())
            );
            text += &self.layout.table(&matrix(crossover, figure), 2);
            text.push('\n');
            text += &self.layout.table(&step_table(crossover, figure), 1);
        }
        let failed = crossover.cells.iter().filter(|(_, runs)| !runs.failures.is_empty());
        text += &self
            .layout
            .failed(failed.map(|(cell, runs)| format!("{}: {}", names(*cell).join(", "), runs.failures[0])));
        text.push('\n');
        let noted = crossover.cells.iter().find_map(|(_, runs)| runs.results.first());
        text += &noted.map_or(String::new(), |run| self.layout.notes(&run.notes));
        text + &effect::legend(extent.seeds, false)
    }
}

fn matrix(crossover: &Crossover, figure: &Figure) -> Vec<Vec<String>> {
    let mglru = mglru();
    lay_out(|combination| {
        let runs = crossover.runs(combination);
        let against = |corner: Combination, name: &str| {
            if combination == corner {
                return name.to_string();
            }
            let effect = figure.effect(crossover.runs(corner), runs);
            effect.map_or("-".to_string(), |effect| figure.show_effect_alone(&effect))
        };
        if runs.is_whole() {
            format!("{} / {}", against(CLASSIC, "CLASSIC"), against(mglru, "MGLRU"))
        } else {
            runs.missing()
        }
    })
}

fn step_table(crossover: &Crossover, figure: &Figure) -> Vec<Vec<String>> {
    let show = |effect: &Paired| figure.show_effect(effect);
    let mut rows = vec![
        ["one step, in parts of classic's figure", "from classic", "to MGLRU", "anywhere"]
            .map(str::to_string)
            .to_vec(),
    ];
    for step in crossover.steps(figure) {
        let show = |effect: &Option<Paired>| effect.as_ref().map_or("-".to_string(), show);
        rows.push(vec![
            format!("  {}", step.name),
            show(&step.in_classic),
            show(&step.in_mglru),
            range(&step, figure),
        ]);
    }
    let sums = crossover.sums(figure);
    let lines = ["the four from classic, added up", "the four together", "  interaction: the difference"];
    for (at, line) in lines.into_iter().enumerate() {
        rows.push(vec![line.to_string(), sums.as_ref().map_or("-".to_string(), |sums| show(&sums[at]))]);
    }
    rows
}

/// The least and the greatest effect anywhere, and in how many places that is if some have no figures.
fn range(step: &Step, figure: &Figure) -> String {
    let by_size = |a: &&Paired, b: &&Paired| a.difference.total_cmp(&b.difference);
    let effects = step.everywhere.iter();
    let (Some(least), Some(most)) = (effects.clone().min_by(by_size), effects.max_by(by_size)) else {
        return "-".to_string();
    };
    let range = format!("{} to {}", figure.show_effect_alone(least), figure.show_effect_alone(most));
    match step.everywhere.len() {
        known if known == step.places => range,
        known => format!("{range} ({known} of {})", step.places),
    }
}

/// Lists and harvest downwards, workingset and balance to the right.
fn lay_out(cell: impl Fn(Combination) -> String) -> Vec<Vec<String>> {
    let mut heading = vec![String::new(); 2];
    for workingset in SEAMS[2].choices {
        heading
            .extend(SEAMS[3].choices.iter().map(|balance| format!("{}\n{}", workingset.name, balance.name)));
    }
    let mut rows = vec![heading];
    for combination in combinations() {
        let [lists, harvest, ..] = names(combination);
        if combination[2..] == [0, 0] {
            let is_first = combination[1] == 0;
            rows.push(vec![if is_first { lists.to_string() } else { String::new() }, harvest.to_string()]);
        }
        rows.last_mut().expect("the heading is there").push(cell(combination));
    }
    rows
}

/// Figures that are printed without `--all`.
const DEFAULT_FIGURES: [&str; 4] = ["pages_read", "throughput", "scanned_per_reclaimed", "reclaim_p99"];
