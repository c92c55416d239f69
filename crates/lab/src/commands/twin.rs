//! `pageout twin`: a recorded machine beside its simulation, and answers to "what if".

mod page; // recorded and simulated as pictures
mod told; // what the recording can say and what not, in sentences

use std::path::Path;

use pageout_study::result::variants::Extent;
use pageout_study::twin::{
    Carried, Counted, Figures, Interval, Machine, Played, Question, Recording, answerable, play,
};
use serde_json::{Value, json};

use crate::cli::TwinArgs;
use crate::failure::{Failure, Outcome};
use crate::print::progress::Terminal;
use crate::print::{figures, output, table};
use crate::report::{Picture, check_name};

/// Memory of the curve on a page, in percent of what was recorded.
const CURVE: [u64; 7] = [40, 55, 70, 85, 100, 130, 170];

/// A twin that is off by more than this share, with all that is not known, answers nothing.
const UNLIKE: f64 = 0.1;

/// All that was found out.
struct Twin<'a> {
    recording: &'a Recording,
    repeats: Vec<[Option<u64>; 5]>,
    recorded: [Option<u64>; 5],
    counted: Option<Counted>,
    /// The twin of the recording; none of one without accesses.
    twin: Option<Played>,
    asked: Vec<(Question, Result<Played, String>)>,
    curve: Vec<(u64, Played)>,
    extent: Option<Extent>,
}

/// Plays the twin and prints it.
pub(crate) fn twin(args: &TwinArgs) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let read = |folder: &Path| Recording::read(folder, args.allow_loss);
    let recording = read(&args.recordings[0])?;
    let repeats = args.recordings[1..].iter().map(|folder| read(folder)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &args.scenario {
        return write_scenario(&recording, path);
    }
    let questions =
        args.ask.iter().map(|text| Question::parse(text, &recording)).collect::<Result<Vec<_>, _>>()?;
    let carried: Vec<Carried> = questions.iter().map(|question| answerable(&recording, question)).collect();

    let base = Machine::of(&recording);
    let mut machines = Vec::new();
    if recording.header.is_some() && !recording.is_unsteady() {
        machines.push((base.clone(), 0));
        machines.extend(questions.iter().zip(&carried).filter_map(|(question, carried)| match carried {
            Carried::Whole => Some((question.machine.clone(), 0)),
            Carried::UpTo(percent) => Some((question.machine.clone(), *percent)),
            Carried::Not(_) => None,
        }));
        if args.page.report.is_some() {
            machines.extend(curve(&recording, &base));
        }
    }
    let terminal = Terminal::new(&args.output);
    let (mut played, extent) = match machines.is_empty() {
        true => (Vec::new().into_iter(), None),
        false => {
            let (played, extent) = play(&recording, &machines, args.parallel.jobs, &terminal)?;
            (played.into_iter(), Some(extent))
        }
    };
    let twin = played.next();
    let recorded = Figures::recorded(&recording);
    let is_unlike = twin.as_ref().and_then(|twin| unlike(twin, recorded[0]));
    let asked = questions
        .into_iter()
        .zip(carried)
        .map(|(question, carried)| {
            let answer = match carried {
                Carried::Not(why) => Err(why),
                _ => {
                    let answer = played.next().ok_or_else(|| "not run".to_string());
                    is_unlike.clone().map_or(answer, Err)
                }
            };
            (question, answer)
        })
        .collect();
    let curve = curve(&recording, &base).into_iter().map(|(machine, _)| machine.limit).zip(played).collect();
    let found = Twin {
        recorded,
        repeats: repeats.iter().map(Figures::recorded).collect(),
        counted: Counted::of(&recording),
        recording: &recording,
        twin,
        asked,
        curve,
        extent,
    };
    if let Some(path) = &args.page.report {
        page::page(&found).write(path)?;
    }
    let failed = found.failures();
    match args.output.is_data() {
        true => output::print_json(&to_json(&found))?,
        false => output::print_text(&to_text(&found))?,
    }
    match &found.extent {
        Some(extent) => Ok(extent.verdict(&failed)?),
        None => Ok(()),
    }
}

/// Why nothing can be asked of a twin that is not like its machine.
fn unlike(twin: &Played, recorded: Option<u64>) -> Option<String> {
    let (recorded, brought_in) =
        (recorded.filter(|_| twin.failed.is_none())? as f64, twin.interval(|of| of.insertions));
    let is_like = brought_in.least as f64 <= recorded * (1.0 + UNLIKE)
        && brought_in.most as f64 >= recorded * (1.0 - UNLIKE);
    (!is_like).then(|| {
        format!(
            "the twin brings in {} pages and the machine {}: it is no model of it at this memory",
            figures::count(brought_in.value),
            figures::count(recorded as u64)
        )
    })
}

/// Machines with other limits that the recording can tell of.
fn curve(recording: &Recording, base: &Machine) -> Vec<(Machine, u32)> {
    let machine = |percent: u64| {
        let question = Question::parse(&format!("memory={percent}%"), recording).ok()?;
        match answerable(recording, &question) {
            Carried::Whole => Some((question.machine, 0)),
            Carried::UpTo(more) => Some((question.machine, more)),
            Carried::Not(_) => None,
        }
    };
    CURVE
        .iter()
        .filter_map(|&percent| machine(percent))
        .filter(|(machine, _)| machine.limit > base.held)
        .collect()
}

fn write_scenario(recording: &Recording, path: &Path) -> Outcome {
    let is_stdout = path == Path::new("-");
    // Paths of traces start where the scenario is.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = absolute(&recording.folder);
    let from = match is_stdout {
        true => folder.clone(),
        false => absolute(path)
            .parent()
            .and_then(|beside| folder.strip_prefix(beside).ok())
            .unwrap_or(&folder)
            .to_path_buf(),
    };
    if recording.header.is_none() {
        return Err(Failure::Input(anyhow::anyhow!("counters alone make no scenario: no access is known")));
    }
    let text = Machine::of(recording).scenario(recording, &from);
    match is_stdout {
        true => output::print(&text),
        false => std::fs::write(path, text).map_err(|error| {
            Failure::Output(std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        }),
    }
}

impl Twin<'_> {
    fn failures(&self) -> Vec<pageout_study::Failed> {
        let asked = self
            .asked
            .iter()
            .filter_map(|(question, played)| Some((question.text.as_str(), played.as_ref().ok()?)));
        let all = self.twin.iter().map(|played| ("the twin", played)).chain(asked);
        all.filter_map(|(name, played)| {
            let message = format!("{name}: {}", played.failed.as_ref()?);
            Some(pageout_study::Failed { is_input: false, message })
        })
        .collect()
    }

    /// The least and the most that recordings came to, of a figure by its place.
    fn span(&self, at: usize) -> Option<(u64, u64)> {
        let all: Vec<u64> =
            std::iter::once(&self.recorded).chain(&self.repeats).filter_map(|figures| figures[at]).collect();
        (all.len() > 1)
            .then(|| (*all.iter().min().expect("there are two"), *all.iter().max().expect("there are two")))
    }
}

/// `-0.8 %`.
fn difference(value: u64, of: u64) -> String {
    if of == 0 {
        return if value == 0 { "0.0%".to_string() } else { "-".to_string() };
    }
    format!("{:+.1}%", (value as f64 / of as f64 - 1.0) * 100.0)
}

/// A figure with what it may be instead, if that is another.
fn shown(interval: Interval, time: bool) -> String {
    let show = |value: u64| if time { figures::time(value) } else { figures::count(value) };
    match interval.least == interval.most {
        true => show(interval.value),
        false => format!("{} ({} to {})", show(interval.value), show(interval.least), show(interval.most)),
    }
}

fn rows(found: &Twin<'_>) -> Vec<Vec<String>> {
    let has_repeats = !found.repeats.is_empty();
    let mut heading = vec![String::new(), "recorded".to_string()];
    if has_repeats {
        heading.push("repeats".to_string());
    }
    heading.extend(["twin", "difference"].map(str::to_string));
    let mut rows = vec![heading];
    for (at, (name, of)) in Figures::NAMED.iter().enumerate() {
        let recorded = found.recorded[at];
        if recorded.is_none() && found.twin.is_none() {
            continue;
        }
        let mut row = vec![(*name).to_string(), recorded.map_or_else(|| "-".to_string(), figures::count)];
        let span = found.span(at);
        if has_repeats {
            row.push(span.map_or_else(
                || "-".to_string(),
                |(least, most)| format!("{} to {}", figures::count(least), figures::count(most)),
            ));
        }
        let Some(twin) = found.twin.as_ref().filter(|twin| twin.failed.is_none()) else {
            row.extend(["-".to_string(), "-".to_string()]);
            rows.push(row);
            continue;
        };
        let interval = twin.interval(*of);
        row.push(shown(interval, false));
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

/// What was asked, one row each, below the twin as it is.
fn asked_rows(found: &Twin<'_>) -> Vec<Vec<String>> {
    let Some(twin) = found.twin.as_ref().filter(|twin| twin.failed.is_none()) else { return Vec::new() };
    let heading = ["what if", "pages brought in", "", "accesses that missed", "calls of reclaim", "time"];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    let row = |name: &str, played: &Played| {
        let of = |at: usize| played.interval(Figures::NAMED[at].1);
        vec![
            name.to_string(),
            shown(of(0), false),
            difference(of(0).value, twin.figures.insertions),
            shown(of(1), false),
            shown(of(3), false),
            shown(played.interval(|of| of.runtime_ns), true),
        ]
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

fn to_text(found: &Twin<'_>) -> String {
    let mut text = told::heading(found.recording);
    if let Some(warning) = found.extent.as_ref().and_then(Extent::warning) {
        text += &format!("{warning}\n");
    }
    text += "\n";
    text += &table::layout(&rows(found), 1);
    for line in told::counters(found.counted, found.recording) {
        text += &format!("\n{line}");
    }
    if !found.asked.is_empty() {
        let rows = asked_rows(found);
        if !rows.is_empty() {
            text += "\n\n";
            text += &table::layout(&rows, 1);
        }
        for (question, answer) in &found.asked {
            if let Err(why) = answer {
                text += &format!("\n{}: not answered, as {why}.", question.text);
            }
        }
    }
    text.truncate(text.trim_end().len());
    text += "\n\nNot modelled, or not known\n";
    for line in told::limits(found.recording) {
        text += &format!("- {line}\n");
    }
    text
}

fn to_json(found: &Twin<'_>) -> Value {
    let figures = |played: &Played| {
        let interval = |of: fn(&Figures) -> u64| {
            let Interval { value, least, most } = played.interval(of);
            json!({ "value": value, "least": least, "most": most })
        };
        json!({
            "insertions": interval(|of| of.insertions),
            "misses": interval(|of| of.misses),
            "refaults": interval(|of| of.refaults),
            "reclaim_calls": interval(|of| of.reclaim_calls),
            "reclaimed": interval(|of| of.reclaimed),
            "runtime_ns": interval(|of| of.runtime_ns),
            "error": played.failed,
        })
    };
    let recorded = |[insertions, misses, refaults, reclaim_calls, reclaimed]: &[Option<u64>; 5]| json!({ "insertions": insertions, "misses": misses, "refaults": refaults, "reclaim_calls": reclaim_calls, "reclaimed": reclaimed });
    let asked = found.asked.iter().map(|(question, answer)| match answer {
        Ok(played) => json!({ "ask": question.text, "answer": figures(played) }),
        Err(why) => json!({ "ask": question.text, "not_answered": why }),
    });
    json!({
        "recording": found.recording.folder.to_string_lossy(),
        "recorded": recorded(&found.recorded),
        "repeats": found.repeats.iter().map(recorded).collect::<Vec<_>>(),
        "twin": found.twin.as_ref().map(figures),
        "distinct_pages": found.counted.map(|counted| counted.distinct()),
        "asked": asked.collect::<Vec<_>>(),
        "limits": told::limits(found.recording),
    })
}
