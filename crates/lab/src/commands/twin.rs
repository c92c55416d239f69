//! `pageout twin`: a recorded machine next to its simulation, and answers to "what if" ([`pageout_study::twin`]), as text, JSON and a page.

pub(crate) mod args; // what can be asked
mod against; // predicted next to recorded
mod page; // recorded and simulated as pictures
mod text; // the result as sentences

use std::path::Path;

use pageout_study::result::variants::Extent;
use pageout_study::twin::{self, Answer, Ask, Figures, Played, assumptions, value};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::{Layout, Terminal, figures};
use crate::report::{Picture, check_name};
use args::TwinArgs;

/// Simulates the twin and prints it.
pub(crate) fn run(args: &TwinArgs, cx: &Context) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let ask = Ask {
        recordings: args.recordings.clone(),
        questions: args.ask.clone(),
        against: args.against.clone(),
        allow_loss: args.allow_loss,
        curve: args.page.report.is_some(),
        jobs: args.parallel.jobs,
    };
    if let Some(path) = &args.scenario {
        return write_scenario(&ask, path, cx);
    }
    let found = twin::ask(&ask, &Terminal::telling(&cx.output))?;
    if let Some(path) = &args.page.report {
        page::page(&found).write(path, &cx.output)?;
    }
    match cx.output.is_data() {
        true => cx.output.print_json(&found)?,
        false => cx.output.print_text(&to_text(&found, cx.layout()))?,
    }
    match &found.extent {
        Some(extent) => Ok(extent.verdict(&found.failures())?),
        None => Ok(()),
    }
}

fn write_scenario(ask: &Ask, path: &Path, cx: &Context) -> Outcome {
    let is_stdout = path == Path::new("-");
    // Paths of traces start where the scenario is.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = absolute(&ask.recordings[0]);
    let from = match is_stdout {
        true => folder.clone(),
        false => absolute(path)
            .parent()
            .and_then(|beside| folder.strip_prefix(beside).ok())
            .unwrap_or(&folder)
            .to_path_buf(),
    };
    let text = twin::scenario(ask, &from)?;
    match is_stdout {
        true => cx.output.print(&text),
        false => std::fs::write(path, text).map_err(|error| {
            Failure::Output(std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        }),
    }
}

/// The explanation of the marks, below the answers.
fn mark(found: &Answer) -> Option<String> {
    let off: Vec<String> = found
        .off
        .iter()
        .map(|off| format!("{} by {}", off.figure.name, figures::percent(off.share)))
        .collect();
    (!off.is_empty()).then(|| {
        format!(
            "* Recorded figures outside of the twin's range: {}. An answer may be off as far.",
            off.join(", ")
        )
    })
}

/// `-0.8 %`.
fn difference(value: u64, of: u64) -> String {
    if of == 0 {
        return if value == 0 { "0.0%".to_string() } else { "-".to_string() };
    }
    format!("{:+.1}%", (value as f64 / of as f64 - 1.0) * 100.0)
}

fn rows(found: &Answer) -> Vec<Vec<String>> {
    let has_repeats = !found.repeats.is_empty();
    let mut heading = vec![String::new(), "recorded".to_string()];
    if has_repeats {
        heading.push("repeats".to_string());
    }
    heading.extend(["twin", "difference"].map(str::to_string));
    let mut rows = vec![heading];
    for (at, figure) in Figures::NAMED.iter().enumerate() {
        let recorded = found.recorded[at].as_ref().ok().copied();
        if recorded.is_none() && found.twin.is_none() {
            continue;
        }
        let is_time = at == Figures::TIME;
        let show = |of: u64| value(of, is_time);
        let mut row = vec![figure.name.to_string(), recorded.map_or_else(|| "-".to_string(), show)];
        let span = found.span(at);
        if has_repeats {
            row.push(span.map_or_else(
                || "-".to_string(),
                |(least, most)| format!("{} to {}", show(least), show(most)),
            ));
        }
        let Some(twin) = found.played() else {
            row.extend(["-".to_string(), "-".to_string()]);
            rows.push(row);
            continue;
        };
        let interval = twin.interval(figure.of);
        row.push(interval.shown(is_time));
        let mut verdict =
            recorded.map_or_else(|| "-".to_string(), |recorded| difference(interval.value, recorded));
        if let Some((least, most)) = span {
            let is_within = interval.most >= least && interval.least <= most;
            verdict += if is_within { ", within repeats" } else { ", beyond repeats" };
        }
        row.push(verdict);
        rows.push(row);
    }
    rows
}

/// Figures of the recording that it does not have, each with what they would need.
fn unknown(found: &Answer) -> Vec<String> {
    let figures = Figures::NAMED.iter().zip(&found.recorded);
    let unknown = figures.filter_map(|(figure, of)| Some(format!("{}: {}", figure.name, of.as_ref().err()?)));
    unknown.chain(assumptions(&found.recording)).collect()
}

/// One row per change, below the unchanged twin. A mark shows that the twin lacks a part of the recording.
fn asked_rows(found: &Answer) -> Vec<Vec<String>> {
    let Some(twin) = found.played() else { return Vec::new() };
    let heading = ["what if", "pages brought in", "", "accesses that missed", "calls of reclaim", "time"];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    let mark = if found.off.is_empty() { "" } else { " *" };
    let has_time = found.time_refusal().is_none();
    let row = |name: &str, played: &Played| {
        let figure = |at: usize| ends(played, Figures::NAMED[at].of, false);
        let change = match played.in_swap {
            Some(_) => String::new(),
            None => difference(played.interval(|of| of.insertions).value, twin.figures.insertions),
        };
        let time = if has_time { ends(played, |of| of.runtime_ns, true) } else { "-".to_string() };
        vec![format!("{name}{mark}"), figure(0), change, figure(1), figure(3), time]
    };
    rows.push(row("as recorded", twin));
    for (question, answer) in &found.asked {
        rows.push(match answer {
            Ok(played) if played.failed.is_none() => row(&question.text, played),
            Ok(_) => vec![question.text.clone(), "failed".to_string()],
            Err(_) => vec![question.text.clone(), "not known".to_string()],
        });
    }
    rows
}

/// A figure with its interval; if it depends on the amount of swap, both ends only.
fn ends(played: &Played, of: fn(&Figures) -> u64, is_time: bool) -> String {
    let interval = played.interval(of);
    let show = |of: u64| value(of, is_time);
    match played.in_swap {
        Some(_) => format!("{} to {}", show(interval.least), show(interval.most)),
        None => interval.shown(is_time),
    }
}

/// The notes below the answers.
fn notes(found: &Answer) -> Vec<String> {
    let mut notes = Vec::new();
    let answered =
        || found.asked.iter().filter_map(|(question, answer)| Some((question, answer.as_ref().ok()?)));
    if answered().next().is_some() {
        notes.extend(mark(found));
        notes.extend(found.time_refusal().map(|why| format!("Times are not answered, as {why}.")));
    }
    for (question, played) in answered() {
        let Some(in_swap) = played.in_swap else { continue };
        notes.push(format!(
            "{}: {} pages come in with none of programs' memory in swap, {} with all of it; in which part it is used is not recorded.",
            question.text,
            figures::count(played.figures.insertions),
            figures::count(in_swap.insertions),
        ));
    }
    if !found.errors.is_empty() && answered().next().is_some() {
        notes.extend(against::note(found));
    }
    for (question, answer) in &found.asked {
        if let Err(why) = answer {
            notes.push(format!("{}: not answered, as {why}.", question.text));
        }
    }
    notes
}

fn to_text(found: &Answer, layout: Layout) -> String {
    let mut text = text::heading(&found.recording);
    if let Some(warning) = found.extent.as_ref().and_then(Extent::warning) {
        text += &format!("{warning}\n");
    }
    text += "\n";
    text += &layout.table(&rows(found), 1);
    for line in unknown(found) {
        text += &format!("\n{line}");
    }
    for line in text::counters(&found.counted, &found.recording) {
        text += &format!("\n{line}");
    }
    text += &against::text(found, layout);
    if !found.asked.is_empty() {
        let rows = asked_rows(found);
        if !rows.is_empty() {
            text += "\n\n";
            text += &layout.table(&rows, 1);
        }
        for note in notes(found) {
            text += &format!("\n{note}");
        }
    }
    text.truncate(text.trim_end().len());
    text += "\n\nNot modelled, or not known\n";
    for line in twin::limits(&found.recording) {
        text += &format!("- {line}\n");
    }
    text
}
