//! `advise-tier --every-source`: all sources of hotness in one or more scenarios, as one table.

use std::path::PathBuf;

use pageout_study::Error;
use pageout_study::advise_tier::{self, Answer};
use serde_json::{Value, json};

use crate::commands::advise_tier::args::AdviseTierArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::print::{Layout, Terminal};
use crate::report::{Page, Part, Table, scenario};

/// Limits of every such table.
const LIMITS: &str = "Every source demotes by kswapd. DAMON also demotes idle regions, so that 4 % of fast memory are \
    free, and moves at most 200 MiB/s per direction. The CPU time is that to find pages: copies and promotions are part of the time only. Prices of \
    memory and of kernel work are averages; caches and lock contention are not modelled.";

/// Asks the same of each scenario, and prints one table.
pub(super) fn run(args: &AdviseTierArgs, scenarios: &[PathBuf], cx: &Context) -> Outcome {
    let mut answers = Vec::new();
    for scenario in scenarios {
        match advise_tier::ask(&args.ask(scenario), &Terminal::new(&cx.output)) {
            Err(error @ (Error::Failed(_) | Error::Interrupted(_) | Error::Runs { .. })) => {
                let so_far: Vec<Value> = answers.iter().map(Answer::json).collect();
                return cx.output.no_result(error.into(), json!({ "studies": so_far }));
            }
            answer => answers.push(answer?),
        }
    }
    let verdicts = answers.iter().map(|Answer { advice, .. }| advice.extent.verdict(&advice.failures()));
    let verdict = verdicts.collect::<Result<(), Error>>();
    if cx.output.is_data() {
        let studies: Vec<Value> = answers.iter().map(Answer::json).collect();
        cx.output.print_json(&json!({ "complete": verdict.is_ok(), "studies": studies }))?;
    } else {
        cx.output.print_text(&to_text(&answers, cx.layout()))?;
    }
    if let Some(path) = &args.page.report {
        page(&answers).write(path, &cx.output)?;
    }
    Ok(verdict?)
}

/// The name of a scenario: that of its file.
fn name(answer: &Answer) -> String {
    let path = &answer.ask.scenario;
    path.file_stem().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// One row per scenario, ratio, device and source.
fn rows(answers: &[Answer]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for answer in answers {
        for (at, row) in answer.advice.sources().into_iter().enumerate() {
            let first = match at {
                0 if rows.is_empty() => "scenario".to_string(),
                0 => continue,
                _ => name(answer),
            };
            rows.push(std::iter::once(first).chain(row).collect());
        }
    }
    rows
}

/// What a reader has to know, a scenario after the other.
fn story(answers: &[Answer]) -> Vec<String> {
    let mut story = Vec::new();
    for answer in answers {
        let advice = &answer.advice;
        let says = advice.extent.warning().into_iter().chain(advice.sources_story());
        story.push(format!("{}: {}", name(answer), says.collect::<Vec<_>>().join(" ")));
    }
    story.push(LIMITS.to_string());
    story
}

fn title(answers: &[Answer]) -> String {
    let Some(first) = answers.first() else { return String::new() };
    let seeds = first.advice.extent.seeds_from(first.advice.scenario.seed);
    format!("Sources of hotness, compared with fast memory only; {seeds}")
}

fn to_text(answers: &[Answer], layout: Layout) -> String {
    let mut text = format!("{}\n\n{}\n", title(answers), layout.table(&rows(answers), 4));
    for says in story(answers) {
        text += &layout.wrap(&says, "");
        text.push('\n');
    }
    let failures = answers.iter().flat_map(|answer| answer.advice.failures());
    text.trim_end().to_string() + "\n" + &layout.failed(failures.map(|failed| failed.to_string()))
}

fn page(answers: &[Answer]) -> Page {
    let table = Part::Table(Table {
        title: "All runs".to_string(),
        says: "Takes longer: than with fast memory alone, after the warm-up. Other figures are of complete runs. With several seeds each is a mean ± half of its 95 % interval.".to_string(),
        rows: rows(answers),
        words: 4,
        last_words: 0,
    });
    let scenarios = answers.iter().map(|answer| scenario(&answer.source, &answer.ask.changes, &[]));
    Page {
        title: "Sources of hotness".to_string(),
        of: title(answers),
        story: story(answers),
        parts: std::iter::once(table).chain(scenarios).collect(),
    }
}
