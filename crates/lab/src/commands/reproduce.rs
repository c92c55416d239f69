//! `pageout reproduce`: a published table compared with simulated figures ([`pageout_study::reproduce`]), as tables, JSON and a page.
//!
//! A row that is not held is a finding, so the exit code depends on the runs only.

pub(crate) mod args; // what can be asked
#[cfg(target_os = "linux")]
pub(crate) mod live; // next to real memory
mod page; // the table as a page

use std::fmt::Write;

use pageout_study::reproduce::chapter::Claim;
use pageout_study::reproduce::judge::{CRITERIA, Judged, Measured};
use pageout_study::reproduce::place::{CHAPTERS, LIVE_CHAPTERS, Place};
use pageout_study::reproduce::{self, Answer, Ask, Reproduced, change, published_text};
use pageout_study::result::metrics::Unit;
use pageout_study::result::notes;
use pageout_study::result::spread::Spread;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Outcome;
use crate::print::{Layout, Terminal};
use crate::report::{Picture, check_name};
use args::ReproduceArgs;

/// Runs a chapter's experiments at each of its sides, and prints the table.
pub(crate) fn run(args: &ReproduceArgs, cx: &Context) -> Outcome {
    if args.list {
        return list(cx);
    }
    let chapter = args.name.clone().expect("the command line asks for it unless there is --list");
    if args.live {
        return on_real_memory(&[&chapter], &args.experiments, &args.live_options, args.parallel.jobs, cx);
    }
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let ask = Ask {
        chapter,
        experiments: args.experiments.clone(),
        scale: args.scale.clone(),
        changes: args.options.changes(),
        seeds: args.seeds,
        jobs: args.parallel.jobs,
    };
    let answer = reproduce::ask(&ask, &Terminal::new(&cx.output))?;
    let failures = answer.failures();
    if answer.is_nothing() {
        let failure = answer.extent.nothing("every run failed", &failures);
        return cx.output.no_result(failure.into(), Value::Null);
    }
    if cx.output.is_data() {
        cx.output.print_json(&answer)?;
    } else {
        cx.output.print_text(&text(&answer, cx.layout()))?;
    }
    if let Some(path) = &args.page.report {
        page::page(&answer).write(path, &cx.output)?;
    }
    Ok(answer.extent.verdict(&failures)?)
}

/// Compares chapters on real memory.
#[cfg(target_os = "linux")]
pub(crate) use live::run as on_real_memory;

/// Refuses to.
#[cfg(not(target_os = "linux"))]
pub(crate) fn on_real_memory(
    _: &[&str],
    _: &[String],
    _: &args::LiveOptions,
    _: usize,
    _: &Context,
) -> Outcome {
    Err(crate::failure::Failure::Input(anyhow::anyhow!("--live: the live machine runs on Linux only")))
}

/// The chapters that there are.
fn list(cx: &Context) -> Outcome {
    let mut rows = vec![["chapter", "experiment", "sizes", ""].map(str::to_string).to_vec()];
    let mut chapters: Vec<Value> = Vec::new();
    let simulated = CHAPTERS.iter().map(|(name, _)| (*name, false));
    for (name, is_live) in simulated.chain(LIVE_CHAPTERS.iter().map(|(name, _)| (*name, true))) {
        let chapter = if is_live { Place::find_live(name)? } else { Place::find(name)? }.chapter()?;
        let shown = if is_live { format!("{name} --live") } else { name.to_string() };
        rows.push([shown.as_str(), "", "", chapter.title.as_str()].map(str::to_string).to_vec());
        for experiment in &chapter.experiment {
            let sizes: Vec<&str> = experiment.scales().map(|scale| scale.unwrap_or("full")).collect();
            rows.push(
                ["", &experiment.name, &sizes.join(", "), &experiment.title].map(str::to_string).to_vec(),
            );
        }
        let experiments = chapter.experiment.iter().map(|experiment| {
            json!({
                "name": experiment.name,
                "title": experiment.title,
                "scaled": experiment.scaled.keys().collect::<Vec<_>>(),
                "rows": experiment.claim.len(),
            })
        });
        let experiments: Vec<Value> = experiments.collect();
        chapters.push(json!({ "name": name, "live": is_live, "title": chapter.title, "source": chapter.source, "experiments": experiments }));
    }
    match cx.output.is_data() {
        true => cx.output.print_json(&chapters),
        false => cx.output.print_text(&cx.layout().table(&rows, 4)),
    }
}

fn text(answer: &Answer, layout: Layout) -> String {
    let mut text = layout.wrap(&answer.chapter.title, "");
    _ = writeln!(text, "{}; {}", answer.chapter.source, answer.extent.seeds_from(answer.seed));
    text += &layout.warning(&answer.extent);
    if let Some(says) = not_run(answer) {
        text += &layout.wrap(&says, "");
    }
    for says in preface(answer) {
        text += &layout.wrap(&says, "");
    }
    for reproduced in &answer.experiments {
        _ = write!(text, "\n{}", heading(answer, reproduced, layout));
        text += &layout.table_by(&rows(answer, &reproduced.rows), |column| (1..=5).contains(&column));
        for says in remarks(reproduced) {
            text += &layout.wrap(&says, "  ");
        }
    }
    text += &layout.failed(answer.failures().iter().map(ToString::to_string));
    _ = write!(text, "\n{}", layout.wrap(&tally(answer), ""));
    text.push_str(&layout.wrap(CRITERIA, ""));
    let notes: Vec<(&str, &[notes::Note])> = answer
        .experiments
        .iter()
        .filter_map(|reproduced| {
            let result = reproduced.sides.iter().find_map(|runs| runs.results.first())?;
            Some((reproduced.experiment.name.as_str(), result.notes.as_slice()))
        })
        .collect();
    let noted = layout.notes(&notes::of_several(notes.into_iter()));
    if noted.is_empty() { text } else { format!("{text}\n{noted}") }
}

/// A sentence about the experiments that can't be judged, if there are any.
fn not_run(answer: &Answer) -> Option<String> {
    let names = &answer.not_run;
    (!names.is_empty()).then(|| format!("Not run, or not with every side: {}.", names.join(", ")))
}

/// What a reader has to know before the tables.
fn preface(answer: &Answer) -> Vec<String> {
    let noted = answer.chapter.side.iter().filter(|side| !side.note.is_empty());
    let sides = noted.map(|side| format!("{}: {}", side.name, side.note));
    std::iter::once(answer.chapter.note.clone()).filter(|note| !note.is_empty()).chain(sides).collect()
}

fn heading(answer: &Answer, reproduced: &Reproduced, layout: Layout) -> String {
    let Reproduced { experiment, .. } = reproduced;
    let scenario = experiment.scenario_at(answer.ask.scale.as_deref()).unwrap_or(&experiment.scenario);
    let path = answer.place.path_of(scenario);
    layout.wrap(&format!("{}: {} ({})", experiment.name, experiment.title, path.display()), "")
}

/// A claim with the base's figure, and a line per other side below it. A claim about some sides omits the others, because it would be hard to find
/// among a dozen.
fn rows(answer: &Answer, measured: &[Measured]) -> Vec<Vec<String>> {
    let heading = ["", "published", "ours", "change", "sign right", "size", ""];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for row in measured {
        let judged = row.judge();
        let published =
            row.claim.published.map_or(String::new(), |published| published_text(published, row.unit));
        for (index, ((side, values), judged)) in
            answer.chapter.side.iter().zip(&row.sides).zip(&judged).enumerate()
        {
            let name = if index == 0 { row.claim.row.clone() } else { format!("  {}", side.name) };
            let level = row.claim.levels.of(index, &side.name).map(|level| row.unit.show(level));
            if index > 0 && level.is_none() && !row.claim.speaks_of(&side.name) {
                continue;
            }
            let of_base = if index == 0 { published.clone() } else { String::new() };
            let published = level.unwrap_or(of_base);
            rows.push(cells(name, published, row.unit, values.as_deref(), judged));
        }
    }
    rows
}

/// What is to be said of the rows of an experiment: definitions, and reasons where a row does not hold.
fn remarks(reproduced: &Reproduced) -> Vec<String> {
    let mut remarks: Vec<String> =
        Some(reproduced.experiment.note.clone()).filter(|note| !note.is_empty()).into_iter().collect();
    for row in &reproduced.rows {
        let Claim { row: name, note, because, shown_by, .. } = &row.claim;
        if !note.is_empty() {
            remarks.push(format!("{name}: {note}"));
        }
        if let Some(relation) = &row.claim.holds {
            remarks.push(format!("{name}: to hold is {relation}"));
        }
        if row.judge().iter().any(|judged| judged.holds == Some(false)) && !because.is_empty() {
            remarks.push(format!("{name}, where it is not held: {because}"));
            remarks.extend(shown_by.iter().map(|command| format!("  {command}")));
        }
    }
    remarks
}

/// How many rows hold, by side.
fn tally(answer: &Answer) -> String {
    let sides = answer.chapter.side.iter().zip(answer.tally());
    let sides = sides.filter(|(_, (_, claimed))| *claimed > 0);
    let sides: Vec<String> = sides
        .map(|(side, (held, claimed))| format!("{}: {held} of {claimed} rows held", side.name))
        .collect();
    sides.join("; ") + "."
}

fn cells(
    name: String,
    published: String,
    unit: Unit,
    values: Option<&[f64]>,
    judged: &Judged,
) -> Vec<String> {
    let Some(values) = values else {
        return vec![
            name,
            published,
            "failed".into(),
            String::new(),
            String::new(),
            String::new(),
            judged.verdict(),
        ];
    };
    let spread = Spread::of(values);
    let value = match spread.count {
        1 => unit.show(spread.mean),
        _ => format!("{} ± {}", unit.show(spread.mean), unit.show(spread.deviation)),
    };
    let change = judged.change.as_ref().map_or(String::new(), change);
    let sign = judged.sign.map_or(String::new(), |(right, _)| format!("{right} of {}", values.len()));
    let size = match judged.size {
        None => String::new(),
        Some(size) if size.is_nan() => "-".to_string(),
        Some(size) => format!("{size:.2}x"),
    };
    vec![name, published, value, change, sign, size, judged.verdict()]
}
