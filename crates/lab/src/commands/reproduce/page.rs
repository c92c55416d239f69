//! The HTML page of `reproduce`: published and simulated changes as bars, above the tables that the terminal has.

use pageout_study::reproduce::judge::{CRITERIA, Measured};
use pageout_study::reproduce::{Answer, Reproduced, change};

use super::{not_run, preface, remarks, rows, tally};
use crate::report::{Bar, Bars, Page, Part, Table, scenario};

pub(super) fn page(answer: &Answer) -> Page {
    let chapter = &answer.chapter;
    let mut page = Page {
        title: format!("Reproduced: {}", chapter.title),
        of: format!("{}; {}", chapter.source, answer.extent.seeds_from(answer.seed)),
        story: (answer.extent.warning().into_iter())
            .chain(not_run(answer))
            .chain([tally(answer)])
            .chain(preface(answer))
            .collect(),
        parts: Vec::new(),
    };
    for reproduced in &answer.experiments {
        let Reproduced { experiment, rows: measured, .. } = reproduced;
        let bars: Vec<Bar> = measured.iter().flat_map(|row| bars(answer, row)).collect();
        if !bars.is_empty() {
            page.parts.push(Part::Bars(Bars {
                title: format!("{}: {}", experiment.name, experiment.title),
                says:
                    "Changes as published and as found; lines are 95 % intervals, hollow bars may be noise."
                        .to_string(),
                bars,
            }));
        }
        page.parts.push(Part::Table(Table {
            title: format!("{}: row by row", experiment.name),
            says: String::new(),
            rows: rows(answer, measured),
            words: 1,
            last_words: 1,
        }));
        let text: String = remarks(reproduced).iter().map(|says| format!("{says}\n")).collect();
        if !text.is_empty() {
            page.parts.push(Part::Prose { title: format!("{}: remarks", experiment.name), text });
        }
    }
    page.parts.push(Part::Prose { title: "How to read it".to_string(), text: CRITERIA.to_string() });
    for reproduced in &answer.experiments {
        page.parts.push(scenario(&reproduced.source, &answer.ask.changes, &[]));
    }
    page
}

/// The published change, and below it that of each side.
fn bars(answer: &Answer, row: &Measured) -> Vec<Bar> {
    let Some(published) = row.claim.published.and_then(|published| published.change()) else {
        return Vec::new();
    };
    let verdict = |change: f64| row.claim.better().verdict(change);
    let first = Bar {
        name: format!("{}: published", row.claim.row),
        percent: published * 100.0,
        half_width: None,
        is_noise: false,
        verdict: verdict(published),
        text: format!("{:+.0}%", published * 100.0),
    };
    let sides = answer.chapter.side.iter().zip(row.judge()).filter_map(|(side, judged)| {
        let paired = judged.change?;
        Some(Bar {
            name: format!("  {}", side.name),
            percent: paired.percent(paired.difference)?.clamp(-1000.0, 1000.0),
            half_width: paired.half_width.and_then(|half| paired.percent(half)),
            is_noise: paired.is_within_noise(),
            verdict: verdict(paired.difference),
            text: change(&paired),
        })
    });
    std::iter::once(first).chain(sides).collect()
}
