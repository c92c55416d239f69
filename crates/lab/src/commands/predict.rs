//! `pageout predict`: a page with what a kernel will do, written before it does ([`pageout_truth::predict`]).
//!
//! A figure is worth something as a prediction only if it was there first, says how far it may be off, and can be checked. So the page has its time
//! and the program's commit, ranges over what is not known, and the commands by which someone with a kernel finds out.

pub(crate) mod args; // what can be asked
use std::fmt::Write;
use std::path::Path;

use pageout_study::basis::{Evidence, verdict};
use pageout_study::result::{caveats, notes};
use pageout_truth::predict::{self, Answer, Ask, Claim};
use serde_json::Value;

use crate::context::Context;
use crate::failure::Outcome;
use crate::print::progress::name_of;
use crate::print::{Layout, Terminal};
use args::PredictArgs;

/// The program that predicts: another one may have other rules.
const BUILD: &str = concat!("pageout ", env!("CARGO_PKG_VERSION"), ", commit ", env!("PAGEOUT_COMMIT"));

/// Runs everything, and writes the page. Nothing is predicted where a run fails or is interrupted.
pub(crate) fn run(args: &PredictArgs, cx: &Context) -> Outcome {
    let ask = Ask {
        scenario: args.scenario.clone(),
        name: name_of(&args.scenario),
        changes: args.options.changes(),
        vary: args.vary.clone(),
        unknown: args.unknown.clone(),
        seeds: args.runs.repeat,
        jobs: args.runs.parallel.jobs,
        all: args.all,
        build: BUILD.to_string(),
    };
    let answer = predict::ask(&ask, &Terminal::new(&cx.output))?;
    if let Err(error) = answer.verdict() {
        return cx.output.no_result(error.into(), Value::Null);
    }
    let written = match &args.accesses {
        Some(directory) => answer.write_accesses(directory)?,
        None => Vec::new(),
    };
    if cx.output.is_data() {
        return cx.output.print_json(&answer);
    }
    cx.output.print(&text(&answer, args.accesses.as_deref(), &written, cx.layout()))
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

/// The page, as Markdown.
fn text(answer: &Answer, directory: Option<&Path>, written: &[String], layout: Layout) -> String {
    let first = &answer.columns[0].variant.scenario;
    let file = answer.ask.scenario.display();
    let title = match first.question.is_empty() {
        true => format!("Prediction for {file}"),
        false => first.question.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let mut text = format!("# {title}\n\n");
    let _ = writeln!(text, "- **Predicted at {}, before an answer was known**, by {BUILD}.", answer.at);
    let rules: Vec<String> =
        answer.columns.iter().map(|column| column.variant.scenario.kernel.name()).collect();
    let _ = writeln!(text, "- Of the rules of {}, by {}.", listed(&rules), code(&file.to_string()));
    let _ = match answer.runs() {
        1 => writeln!(text, "- One run: nothing is varied, and no figure says how far it may be off."),
        runs => writeln!(
            text,
            "- A figure is the median of {runs} runs, with the least and the most of them. {}",
            verdict(&Seeds(answer.extent.seeds.into()), [SEEDS_MIN], |_| {
                "A kernel that is outside of a range refutes it.".to_string()
            })
            .unwrap_or_else(|unknown| {
                format!("Whether a kernel outside of a range refutes it is {unknown} (--repeat {SEEDS_MIN}).")
            })
        ),
    };
    for said in caveats::of(
        &answer
            .columns
            .iter()
            .map(|column| (column.variant.label.clone(), &column.results[..]))
            .collect::<Vec<_>>(),
    ) {
        let _ = writeln!(text, "- {said}");
    }
    let _ = write!(text, "\n## What is not known\n\n| what | varied over |\n|---|---|\n");
    let _ = writeln!(text, "| what a generator draws | {} |", answer.extent.seeds_from(first.seed));
    for unknown in &answer.ask.unknown {
        let _ = writeln!(text, "| {} | {} |", code(&unknown.key), unknown.values.join(", "));
    }
    text += "\n## Figures\n\n";
    text += &table(answer);
    if !answer.claims.is_empty() {
        text += "\n## Claims\n\n| figure | claim | because | true in |\n|---|---|---|---|\n";
        for Claim { figure, holds, because, true_for, runs } in &answer.claims {
            let _ = writeln!(text, "| {figure} | {} | {because} | {true_for} of {runs} runs |", code(holds));
        }
    }
    let noted = answer
        .columns
        .iter()
        .filter_map(|column| Some((column.variant.label.as_str(), column.results.first()?.notes.as_slice())));
    let noted = layout.notes(&notes::of_several(noted));
    if !noted.is_empty() {
        let _ = write!(text, "\n## To know of these figures\n\n{noted}");
    }
    text += "\n## How to check\n\n";
    text += &answer.how_to_check(directory, written);
    text += "\n## What a kernel did\n\nNothing above this line is changed afterwards.\n\n| when | which kernel, on which machine | what it did | verdict |\n|---|---|---|---|\n| | | | |\n";
    text
}

/// A line for each figure, a column for each choice.
fn table(answer: &Answer) -> String {
    let mut text = String::from("| |");
    for column in &answer.columns {
        let _ = write!(text, " {} |", column.variant.label);
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(answer.columns.len()));
    for metric in answer.told() {
        let _ = write!(text, "| {}: {} |", metric.group, metric.name);
        for column in &answer.columns {
            let _ = write!(text, " {} |", column.figures.show(metric));
        }
        text.push('\n');
    }
    text
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
