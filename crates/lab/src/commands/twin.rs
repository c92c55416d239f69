//! `pageout twin`: a recorded machine beside its simulation, and answers to "what if".

mod page; // recorded and simulated as pictures
mod told; // what the recording can say and what not, in sentences

use std::path::Path;

use pageout_study::basis::Verdict;
use pageout_study::result::variants::Extent;
use pageout_study::twin::{
    Carried, Counted, Figure, Figures, Interval, Machine, Played, Prepared, Question, Recording, answerable,
    play,
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
    repeats: Vec<[Verdict<u64>; 6]>,
    recorded: [Verdict<u64>; 6],
    counted: Verdict<Counted>,
    /// The twin of the recording; none of one without accesses.
    twin: Option<Played>,
    /// Rows of the recording that its twin misses.
    off: Vec<Off>,
    asked: Vec<(Question, Result<Played, String>)>,
    curve: Vec<(u64, Played)>,
    extent: Option<Extent>,
}

/// A figure that the twin misses: what was recorded is outside of what it came to.
#[derive(Clone, Debug)]
struct Off {
    figure: Figure,
    /// The least and the most that was recorded.
    recorded: (u64, u64),
    twin: Interval,
    /// How far, as a share of what was recorded.
    share: f64,
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
    let mut found = Twin {
        recorded: Figures::recorded(&recording),
        repeats: repeats.iter().map(Figures::recorded).collect(),
        counted: Counted::of(&recording),
        recording: &recording,
        twin: None,
        off: Vec::new(),
        asked: Vec::new(),
        curve: Vec::new(),
        extent: None,
    };
    let terminal = Terminal::telling(&args.output);
    let jobs = args.parallel.jobs;
    let has_twin = recording.header.is_some() && !recording.is_unsteady();
    let prepared = has_twin.then(|| Prepared::of(&recording)).transpose()?;
    if let Some(prepared) = &prepared {
        let (played, extent) = play(&recording, prepared, &[(base.clone(), 0)], jobs, &terminal)?;
        found.twin = played.into_iter().next();
        found.extent = Some(extent);
        found.off = found.off();
    }
    // A twin that is no model of its machine is not asked: what it came to would be printed as an answer.
    let refusal = found.refusal();
    let mut machines = Vec::new();
    if prepared.is_some() && refusal.is_none() {
        machines.extend(questions.iter().zip(&carried).filter_map(|(question, carried)| match carried {
            Carried::Whole => Some((question.machine.clone(), 0)),
            Carried::UpTo(percent) => Some((question.machine.clone(), *percent)),
            Carried::Not(_) => None,
        }));
        if args.page.report.is_some() {
            machines.extend(curve(&recording, &base));
        }
    }
    let mut played = Vec::new().into_iter();
    if let Some(prepared) = prepared.as_ref().filter(|_| !machines.is_empty()) {
        let (of, extent) = play(&recording, prepared, &machines, jobs, &terminal)?;
        played = of.into_iter();
        found.extent = found.extent.map(|first| first.and(&extent));
    }
    let asked = questions.into_iter().zip(carried).map(|(question, carried)| {
        let answer = match (carried, &refusal) {
            (Carried::Not(why), _) => Err(why),
            (_, Some(why)) => Err(why.clone()),
            _ => played.next().ok_or_else(|| "it was not run".to_string()),
        };
        (question, answer)
    });
    found.asked = asked.collect();
    found.curve =
        curve(&recording, &base).into_iter().map(|(machine, _)| machine.limit).zip(played).collect();
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
        let all = std::iter::once(&self.recorded).chain(&self.repeats);
        let all: Vec<u64> = all.filter_map(|figures| figures[at].as_ref().ok().copied()).collect();
        all.iter().min().copied().zip(all.iter().max().copied()).filter(|_| all.len() > 1)
    }

    /// The twin, if it ran to its end.
    fn played(&self) -> Option<&Played> {
        self.twin.as_ref().filter(|twin| twin.failed.is_none())
    }

    fn off(&self) -> Vec<Off> {
        let Some(twin) = self.played() else { return Vec::new() };
        let off = Figures::NAMED.iter().enumerate().filter_map(|(at, figure)| {
            let one = *self.recorded[at].as_ref().ok()?;
            let recorded = self.span(at).unwrap_or((one, one));
            let twin = twin.interval(figure.of);
            Some(Off { figure: *figure, recorded, twin, share: twin.off(recorded)? })
        });
        off.collect()
    }

    /// Why the twin is not asked: a row other than time is off too far.
    fn refusal(&self) -> Option<String> {
        let far = self.off.iter().filter(|off| off.is_far() && off.figure.key != TIME.key);
        let far: Vec<String> = far.map(Off::told).collect();
        (!far.is_empty())
            .then(|| format!("the twin is no model of its machine at this memory: {}", far.join("; ")))
    }

    /// Why times of answers are not shown.
    fn time_refusal(&self) -> Option<String> {
        self.off.iter().find(|off| off.is_far() && off.figure.key == TIME.key).map(Off::told)
    }

    /// What stands below answers that carry a mark.
    fn mark(&self) -> Option<String> {
        let off: Vec<String> = self
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
}

/// The row of time.
const TIME: Figure = Figures::NAMED[Figures::TIME];

impl Off {
    /// Whether it is too far for any answer.
    fn is_far(&self) -> bool {
        let (least, most) = self.recorded;
        let far = least.saturating_sub(self.twin.most).max(self.twin.least.saturating_sub(most));
        self.share > UNLIKE && far > self.figure.few
    }

    /// `refaults: the twin has 153,919, recorded 67,694, off by 122 %`.
    fn told(&self) -> String {
        let is_time = self.figure.key == TIME.key;
        let show = |value: u64| if is_time { figures::time(value) } else { figures::count(value) };
        let (least, most) = self.recorded;
        let recorded = if least == most { show(least) } else { format!("{} to {}", show(least), show(most)) };
        format!(
            "{}: twin {}, recorded {recorded}, off by {}, and {} is the most",
            self.figure.name,
            shown(self.twin, is_time),
            figures::percent(self.share),
            figures::percent(UNLIKE),
        )
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
    for (at, figure) in Figures::NAMED.iter().enumerate() {
        let recorded = found.recorded[at].as_ref().ok().copied();
        if recorded.is_none() && found.twin.is_none() {
            continue;
        }
        let is_time = at == Figures::TIME;
        let show = |value: u64| if is_time { figures::time(value) } else { figures::count(value) };
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
        row.push(shown(interval, is_time));
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
fn unknown(found: &Twin<'_>) -> Vec<String> {
    let figures = Figures::NAMED.iter().zip(&found.recorded);
    figures.filter_map(|(figure, of)| Some(format!("{}: {}", figure.name, of.as_ref().err()?))).collect()
}

/// What was asked, one row each, below the twin as it is. A mark says that the twin misses something of what was recorded.
fn asked_rows(found: &Twin<'_>) -> Vec<Vec<String>> {
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

/// A figure with its interval; if it hangs on how much is in swap, both ends and nothing between.
fn ends(played: &Played, of: fn(&Figures) -> u64, is_time: bool) -> String {
    let interval = played.interval(of);
    let show = |value: u64| if is_time { figures::time(value) } else { figures::count(value) };
    match played.in_swap {
        Some(_) => format!("{} to {}", show(interval.least), show(interval.most)),
        None => shown(interval, is_time),
    }
}

/// What is said below the answers.
fn notes(found: &Twin<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let answered =
        || found.asked.iter().filter_map(|(question, answer)| Some((question, answer.as_ref().ok()?)));
    if answered().next().is_some() {
        notes.extend(found.mark());
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
    for (question, answer) in &found.asked {
        if let Err(why) = answer {
            notes.push(format!("{}: not answered, as {why}.", question.text));
        }
    }
    notes
}

fn to_text(found: &Twin<'_>) -> String {
    let mut text = told::heading(found.recording);
    if let Some(warning) = found.extent.as_ref().and_then(Extent::warning) {
        text += &format!("{warning}\n");
    }
    text += "\n";
    text += &table::layout(&rows(found), 1);
    for line in unknown(found) {
        text += &format!("\n{line}");
    }
    for line in told::counters(&found.counted, found.recording) {
        text += &format!("\n{line}");
    }
    if !found.asked.is_empty() {
        let rows = asked_rows(found);
        if !rows.is_empty() {
            text += "\n\n";
            text += &table::layout(&rows, 1);
        }
        for note in notes(found) {
            text += &format!("\n{note}");
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
    let of_interval =
        |Interval { value, least, most }: Interval| json!({ "value": value, "least": least, "most": most });
    let figures = |played: &Played| {
        let mut json = json!({ "error": played.failed });
        for figure in Figures::NAMED {
            json[figure.key] = of_interval(played.interval(figure.of));
            if let Some(in_swap) = &played.in_swap {
                json[figure.key]["none_in_swap"] = (figure.of)(&played.figures).into();
                json[figure.key]["all_in_swap"] = (figure.of)(in_swap).into();
            }
        }
        json
    };
    let recorded = |of: &[Verdict<u64>; 6]| {
        let figures = Figures::NAMED.iter().zip(of);
        Value::Object(figures.map(|(figure, of)| (figure.key.to_string(), json!(of.as_ref().ok()))).collect())
    };
    let unknown = Figures::NAMED.iter().zip(&found.recorded);
    let unknown = unknown
        .filter_map(|(figure, of)| Some((figure.key.to_string(), json!(of.as_ref().err()?.lacking()))));
    let has_time = found.time_refusal();
    let asked = found.asked.iter().map(|(question, answer)| match answer {
        Ok(played) => {
            let mut answer = figures(played);
            if let Some(why) = &has_time {
                answer[TIME.key] = json!({ "not_answered": why });
            }
            json!({ "ask": question.text, "answer": answer, "marked": !found.off.is_empty() })
        }
        Err(why) => json!({ "ask": question.text, "not_answered": why }),
    });
    let off = found.off.iter().map(|off| {
        json!({
            "row": off.figure.name,
            "recorded": { "least": off.recorded.0, "most": off.recorded.1 },
            "twin": of_interval(off.twin),
            "off_percent": off.share.is_finite().then_some(off.share * 100.0),
        })
    });
    let counted = found.counted.as_ref().ok();
    json!({
        "recording": found.recording.folder.to_string_lossy(),
        "recorded": recorded(&found.recorded),
        "unknown": Value::Object(unknown.collect()),
        "repeats": found.repeats.iter().map(recorded).collect::<Vec<_>>(),
        "twin": found.twin.as_ref().map(figures),
        "off": off.collect::<Vec<_>>(),
        "distinct_pages": counted.filter(|counted| counted.is_floor()).map(|counted| counted.distinct()),
        "distinct_pages_at_most": counted.map(|counted| counted.distinct()),
        "asked": asked.collect::<Vec<_>>(),
        "limits": told::limits(found.recording),
    })
}
