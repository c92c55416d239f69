//! `[[expect]]` of a scenario: relations between its variants, held against their results.
//!
//! With several seeds a relation is checked for each of them: a bug that shows with one seed and not with the next is not
//! understood.

use pageout_sim::scenario::{Expect, Problem, Relation, Term};
use serde::Serialize;

use super::metrics::{Metric, Unit, metrics};
use super::run_result::RunResult;
use super::variants::Runs;
use crate::error::Error;
use crate::scenario::diagnostic::Diagnostics;
use crate::scenario::nearest::nearest;
use crate::scenario::source::Source;

/// An expectation and its verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// The figure.
    pub figure: String,
    /// The relation that must hold.
    pub holds: String,
    /// The reason why it is expected.
    pub because: String,
    /// True if it is true for every seed; a variant that failed makes it false.
    pub is_true: bool,
    /// Seeds for which it is true, of `seeds`.
    pub true_for: usize,
    /// The number of seeds.
    pub seeds: usize,
    /// The two sides with their figures, for the first seed with which it is false, or else for the first.
    pub figures: String,
}

/// Checks each expectation; `sides` are the runs of each variant, one a seed. Errors: a figure that no run has.
pub fn check(
    source: &Source,
    expected: &[Expect],
    sides: &[(&str, Vec<&RunResult>)],
) -> Result<Vec<Checked>, Error> {
    let figures: Vec<(&str, Vec<Vec<Metric>>)> = sides
        .iter()
        .map(|(name, runs)| (*name, runs.iter().map(|result| metrics(result, true)).collect()))
        .collect();
    let checked = expected.iter().enumerate().map(|(index, expect)| {
        let known = figures.iter().flat_map(|(_, runs)| runs).flatten();
        let Some(unit) =
            known.clone().find(|metric| metric.full_name() == expect.figure).map(|metric| metric.unit)
        else {
            let names: Vec<String> = known.map(Metric::full_name).collect();
            return Err(no_such_figure(source, index, &expect.figure, &names));
        };
        Ok(check_one(expect, unit, &figures))
    });
    checked.collect()
}

/// Checks that a variant fails, with a text that holds `fails`, whatever the seed.
pub fn check_failure(variant: &str, fails: &str, runs: &Runs) -> Checked {
    let as_known = runs.failures.iter().filter(|failure| failure.to_string().contains(fails)).count();
    let seeds = runs.failures.len() + runs.results.len();
    Checked {
        figure: "end of the run".to_string(),
        holds: format!("{variant} fails"),
        because: format!("the scenario expects a failure with \"{fails}\""),
        is_true: as_known == seeds && seeds > 0,
        true_for: as_known,
        seeds,
        figures: format!("\"{fails}\""),
    }
}

fn check_one(expect: &Expect, unit: Unit, figures: &[(&str, Vec<Vec<Metric>>)]) -> Checked {
    let of = |variant: &str, seed: usize| {
        let (_, runs) = figures.iter().find(|(name, _)| *name == variant)?;
        runs.get(seed)?.iter().find(|metric| metric.full_name() == expect.figure).map(|metric| metric.value)
    };
    let is_true = |seed: usize| expect.holds.is_true(|variant| of(variant, seed)).unwrap_or(false);
    let seeds = figures.iter().map(|(_, runs)| runs.len()).max().unwrap_or(0);
    let shown = (0..seeds).find(|&seed| !is_true(seed)).unwrap_or(0);
    let true_for = (0..seeds).filter(|&seed| is_true(seed)).count();
    let term = |term: &Term| match &term.variant {
        None => unit.show(term.factor),
        Some(variant) => {
            let figure = of(variant, shown).map_or("-".to_string(), |value| unit.show(value));
            if term.factor == 1.0 { figure } else { format!("{} * {figure}", term.factor) }
        }
    };
    let Relation { left, sign, right } = &expect.holds;
    Checked {
        figure: expect.figure.clone(),
        holds: expect.holds.to_string(),
        because: expect.because.clone(),
        is_true: true_for == seeds,
        true_for,
        seeds,
        figures: format!("{} {} {}", term(left), sign.symbol(), term(right)),
    }
}

fn no_such_figure(source: &Source, index: usize, figure: &str, known: &[String]) -> Error {
    let hint = match nearest(figure, known.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "`pageout compare FILE --all --json` lists the names of all figures".to_string(),
    };
    let problem = Problem {
        key: format!("expect[{index}].figure"),
        message: format!("unknown figure `{figure}`"),
        given: None,
        candidates: Vec::new(),
        help: Some(hint),
    };
    Error::Scenario(Diagnostics(vec![source.locate(problem)]))
}
