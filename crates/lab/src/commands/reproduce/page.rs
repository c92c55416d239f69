//! The HTML page of `reproduce`: published and simulated changes as bars, above the tables that the terminal has.

use super::judge::{CRITERIA, Measured};
use super::{Found, change};
use crate::report::{Bar, Bars, Page, Part, Table, scenario};

pub(super) fn page(found: &Found, tables: &[Vec<Measured>]) -> Page {
    let chapter = found.chapter;
    let mut page = Page {
        title: format!("Reproduced: {}", chapter.title),
        of: format!("{}; {}", chapter.source, found.extent.seeds_from(found.seed)),
        story: (found.extent.warning().into_iter())
            .chain(found.not_run())
            .chain([found.tally(tables)])
            .chain(found.preface())
            .collect(),
        parts: Vec::new(),
    };
    for (reproduced, measured) in found.experiments.iter().zip(tables) {
        let experiment = reproduced.experiment;
        let bars: Vec<Bar> = measured.iter().flat_map(|row| bars(found, row)).collect();
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
            rows: found.rows(measured),
            words: 1,
            last_words: 1,
        }));
        let text: String =
            found.remarks(reproduced, measured).iter().map(|says| format!("{says}\n")).collect();
        if !text.is_empty() {
            page.parts.push(Part::Prose { title: format!("{}: remarks", experiment.name), text });
        }
    }
    page.parts.push(Part::Prose { title: "How to read it".to_string(), text: CRITERIA.to_string() });
    for reproduced in &found.experiments {
        page.parts.push(scenario(&reproduced.source, &found.args.options, &[]));
    }
    page
}

/// The published change, and below it that of each side.
fn bars(found: &Found, row: &Measured) -> Vec<Bar> {
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
    let sides = found.chapter.side.iter().zip(row.judge()).filter_map(|(side, judged)| {
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
