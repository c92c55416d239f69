//! The HTML page of `twin`: recorded and simulated on one axis, the curve over memory with where the machine is, and bars of what was asked.

use pageout_study::result::better::Better;
use pageout_study::twin::{Figures, Interval, Machine};

use super::{Twin, asked_rows, difference, rows, told};
use crate::report::{Axis, Bar, Bars, Chart, Colour, Line, Page, Part, Shape, Table, Unit};

pub(super) fn page(found: &Twin<'_>) -> Page {
    let mut story = told::counters(found.counted, found.recording);
    story.extend(found.asked.iter().filter_map(|(question, answer)| {
        Some(format!("{}: not answered, as {}.", question.text, answer.as_ref().err()?))
    }));
    let mut page = Page {
        title: "A machine and its twin".to_string(),
        of: told::heading(found.recording).trim_end().to_string(),
        story,
        parts: Vec::new(),
    };
    page.parts.extend(beside(found).map(Part::Bars));
    page.parts.extend(curve(found).map(Part::Chart));
    page.parts.extend(asked(found).map(Part::Bars));
    let table = |title: &str, rows| {
        Part::Table(Table { title: title.to_string(), says: String::new(), rows, words: 1, last_words: 0 })
    };
    page.parts.push(table("Recorded and simulated", rows(found)));
    if !found.asked.is_empty() {
        page.parts.push(table("What if, in figures", asked_rows(found)));
    }
    page.parts.push(Part::Prose {
        title: "Not modelled, or not known".to_string(),
        text: told::limits(found.recording).join("\n"),
    });
    if found.recording.header.is_some() {
        let text = Machine::of(found.recording).scenario(found.recording, &found.recording.folder);
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
fn beside(found: &Twin<'_>) -> Option<Bars> {
    let twin = found.twin.as_ref().filter(|twin| twin.failed.is_none())?;
    let bars = Figures::NAMED.iter().enumerate().filter_map(|(at, (name, of))| {
        let recorded = found.recorded[at].filter(|&recorded| recorded > 0)?;
        Some(bar(name, twin.interval(*of), recorded, Better::Neither))
    });
    let bars: Vec<Bar> = bars.collect();
    let says =
        "How far each of the twin's counters is from the recorded one; lines are over what is not known.";
    let title = "The twin beside the machine".to_string();
    (!bars.is_empty()).then(|| Bars { title, says: says.to_string(), bars })
}

/// Pages brought in over memory.
fn curve(found: &Twin<'_>) -> Option<Chart> {
    let points: Vec<_> = found.curve.iter().filter(|(_, played)| played.failed.is_none()).collect();
    if points.len() < 2 {
        return None;
    }
    let here = found.recording.limit();
    let line =
        |name: &str, nth, ys: Vec<Option<f64>>| Line { name: name.to_string(), colour: Colour::nth(nth), ys };
    let simulated = points.iter().map(|(_, played)| Some(played.figures.insertions as f64)).collect();
    let recorded = |limit: u64| found.recorded[0].filter(|_| limit.abs_diff(here) <= here / 100);
    let here = points.iter().map(|(limit, _)| recorded(*limit).map(|count| count as f64)).collect();
    let mut lines = vec![line("simulated", 1, simulated), line("you are here (recorded)", 3, here)];
    if let Some(counted) = found.counted {
        let floor = points.iter().map(|_| Some(counted.distinct() as f64)).collect();
        lines.push(line("floor: distinct pages, by counters", 2, floor));
    }
    Some(Chart {
        title: "Pages brought in over memory".to_string(),
        says: "What no memory can save is the floor.".to_string(),
        x: Axis::linear("limit of the group", Unit::Bytes),
        y: Axis::linear("pages brought in", Unit::Count),
        xs: points.iter().map(|(limit, _)| *limit as f64).collect(),
        lines,
        shape: Shape::Points,
    })
}

/// What was asked, as differences of what comes in.
fn asked(found: &Twin<'_>) -> Option<Bars> {
    let twin = found.twin.as_ref().filter(|twin| twin.failed.is_none() && twin.figures.insertions > 0)?;
    let bars = found.asked.iter().filter_map(|(question, answer)| {
        let played = answer.as_ref().ok().filter(|played| played.failed.is_none())?;
        let interval = played.interval(|of| of.insertions);
        Some(bar(&question.text, interval, twin.figures.insertions, Better::Less))
    });
    let bars: Vec<Bar> = bars.collect();
    let says = "Pages brought in, beside the twin as it was recorded.".to_string();
    (!bars.is_empty()).then(|| Bars { title: "What if".to_string(), says, bars })
}
