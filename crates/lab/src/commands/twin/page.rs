//! The HTML page of `twin`: recorded and simulated on one axis, the curve over memory with where the machine is, and bars of what was asked.

use std::collections::{BTreeMap, BTreeSet};

use pageout_study::result::better::Better;
use pageout_study::twin::{Against, Answer, Figures, Interval, Kind, Played, TwinMachine, limits};

use super::{against, asked_rows, difference, notes, rows, text, unknown};
use crate::report::{Axis, Band, Bar, Bars, Chart, Colour, Line, Page, Part, Shape, Table, Unit};

pub(super) fn page(found: &Answer) -> Page {
    let mut story = text::counters(&found.counted, &found.recording);
    story.extend(unknown(found));
    story.extend(notes(found));
    let mut page = Page {
        title: "A machine and its twin".to_string(),
        of: text::heading(&found.recording).trim_end().to_string(),
        story,
        parts: Vec::new(),
    };
    page.parts.extend(beside(found).map(Part::Bars));
    page.parts.extend(curve(found));
    page.parts.extend(asked(found).map(Part::Bars));
    for of in found.against.iter().filter(|of| of.played().is_some()) {
        let title = format!("Predicted and recorded: {}", against::title(of, found));
        let rows = against::rows(of, found);
        page.parts.push(Part::Table(Table { title, says: String::new(), rows, words: 1, last_words: 0 }));
    }
    if !found.errors.is_empty() {
        page.parts.push(Part::Table(Table {
            title: "Largest error of predictions".to_string(),
            says: "By counter and kind of change. Ranges of answers of that kind are at least as wide."
                .to_string(),
            rows: against::error_rows(&found.errors),
            words: 1,
            last_words: 0,
        }));
    }
    let table = |title: &str, rows| {
        Part::Table(Table { title: title.to_string(), says: String::new(), rows, words: 1, last_words: 0 })
    };
    page.parts.push(table("Recorded and simulated", rows(found)));
    if !found.asked.is_empty() {
        page.parts.push(table("What if, in figures", asked_rows(found)));
    }
    page.parts.push(Part::Prose {
        title: "Not modelled, or not known".to_string(),
        text: limits(&found.recording).join("\n"),
    });
    if found.recording.header.is_some() {
        let text = TwinMachine::of(&found.recording).scenario(&found.recording, &found.recording.folder);
        page.parts.push(Part::Text { title: "The scenario".to_string(), text, is_open: false });
    }
    page
}

/// A difference from `of`, with its interval.
fn bar(name: &str, interval: Interval, of: u64, better: Better) -> Bar {
    let percent = |value: u64| (value as f64 / of as f64 - 1.0) * 100.0;
    let half = (percent(interval.most) - percent(interval.least)) / 2.0;
    Bar {
        name: name.to_string(),
        percent: percent(interval.value),
        half_width: Some(half),
        is_noise: half >= percent(interval.value).abs(),
        verdict: better.verdict(percent(interval.value)),
        text: difference(interval.value, of),
    }
}

/// Each counter's difference from the recorded one.
fn beside(found: &Answer) -> Option<Bars> {
    let twin = found.played()?;
    let bars = Figures::NAMED.iter().enumerate().filter_map(|(at, figure)| {
        let recorded = found.recorded[at].as_ref().ok().copied().filter(|&recorded| recorded > 0)?;
        Some(bar(figure.name, twin.interval(figure.of), recorded, Better::Neither))
    });
    let bars: Vec<Bar> = bars.collect();
    let says =
        "How far each of the twin's counters is from the recorded one; lines are over what is not known.";
    let title = "The twin compared with the machine".to_string();
    (!bars.is_empty()).then(|| Bars { title, says: says.to_string(), bars })
}

/// Pages brought in over memory: the curve, and what was asked of other memory alone, each with what it may be instead.
fn curve(found: &Answer) -> Option<Part> {
    let curve = || found.curve.iter().filter(|(_, played)| played.failed.is_none());
    if curve().count() < 2 {
        return None;
    }
    let base = TwinMachine::of(&found.recording);
    let here = base.limit;
    let asked: Vec<(u64, &Played)> = found
        .asked
        .iter()
        .filter_map(|(question, answer)| {
            let limit = question.machine.limit;
            let is_memory_alone = question.machine == TwinMachine { limit, ..base.clone() };
            let played = answer.as_ref().ok().filter(|played| played.failed.is_none())?;
            is_memory_alone.then_some((limit, played))
        })
        .collect();
    let simulated: BTreeMap<u64, &Played> = curve().map(|(limit, played)| (*limit, played)).collect();
    let mut points: BTreeSet<u64> = simulated.keys().copied().collect();
    points.extend(asked.iter().map(|(limit, _)| *limit));
    points.insert(here);
    let checks: BTreeMap<u64, f64> = found
        .against
        .iter()
        .filter(|of| matches!(of.kind, Kind::LessMemory | Kind::MoreMemory))
        .filter_map(|of| Some((of.recording.limit(), *of.recorded[0].as_ref().ok()? as f64)))
        .collect();
    points.extend(checks.keys());
    let line = |name: &str, nth, of: &dyn Fn(u64) -> Option<f64>| Line {
        name: name.to_string(),
        colour: Colour::nth(nth),
        ys: points.iter().map(|&limit| of(limit)).collect(),
    };
    let asked_at = |limit: u64| asked.iter().find(|(of, _)| *of == limit).map(|(_, played)| *played);
    let of_played = |played: &Played| played.figures.insertions as f64;
    // A line goes on through points that were asked: they are of the same twin.
    let predicted = |limit: u64| {
        let of = found.against.iter().find(|of| checks.contains_key(&limit) && of.recording.limit() == limit);
        of.and_then(Against::played)
    };
    let at = |limit: u64| {
        simulated
            .get(&limit)
            .copied()
            .or_else(|| asked_at(limit))
            .or_else(|| predicted(limit))
            .or_else(|| found.played().filter(|_| limit == here))
    };
    let recorded = found.recorded[0].as_ref().ok().map(|&count| count as f64);
    let mut lines = vec![
        line("simulated", 1, &|limit| at(limit).map(of_played)),
        line("you are here (recorded)", 3, &|limit| recorded.filter(|_| limit == here)),
    ];
    if !checks.is_empty() {
        lines.push(line("recorded at other limits", 0, &|limit| checks.get(&limit).copied()));
    }
    let mut bands = vec![Band { line: 0, ends: points.iter().map(|&limit| at(limit).map(span)).collect() }];
    if !asked.is_empty() {
        bands.push(Band {
            line: lines.len(),
            ends: points.iter().map(|&limit| asked_at(limit).map(span)).collect(),
        });
        lines.push(line("asked", 4, &|limit| asked_at(limit).map(of_played)));
    }
    if let Ok(counted) = found.counted.as_ref()
        && counted.is_floor()
    {
        lines.push(line("floor: distinct pages", 2, &|_| Some(counted.distinct() as f64)));
    }
    let chart = Chart {
        title: "Pages brought in over memory".to_string(),
        says: "The floor is what no amount of memory avoids. Bands are min to max over unknown conditions."
            .to_string(),
        x: Axis::linear("limit of the group", Unit::Bytes),
        y: Axis::linear("pages brought in", Unit::Count),
        xs: points.iter().map(|&limit| limit as f64).collect(),
        lines,
        shape: Shape::Points,
    };
    Some(Part::Spread { chart, bands })
}

/// The least and the most pages that came in.
fn span(played: &Played) -> (f64, f64) {
    let interval = played.interval(|of| of.insertions);
    (interval.least as f64, interval.most as f64)
}

/// What was asked, as differences of what comes in.
fn asked(found: &Answer) -> Option<Bars> {
    let twin = found.played().filter(|twin| twin.figures.insertions > 0)?;
    let bars = found.asked.iter().filter_map(|(question, answer)| {
        let played = answer.as_ref().ok().filter(|played| played.failed.is_none())?;
        let interval = played.interval(|of| of.insertions);
        Some(bar(&question.text, interval, twin.figures.insertions, Better::Less))
    });
    let bars: Vec<Bar> = bars.collect();
    let says = "Pages brought in, compared with the unchanged twin.".to_string();
    (!bars.is_empty()).then(|| Bars { title: "What if".to_string(), says, bars })
}
