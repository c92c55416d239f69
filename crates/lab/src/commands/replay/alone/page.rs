//! The HTML page of `replay`: how the miss ratio and the runtime fall as memory grows.

use pageout_study::replay::{Alone, Figures};

use super::{heading, readahead, rows};
use crate::print::figures;
use crate::print::progress::name_of;
use crate::report::{Axis, Chart, Colour, Line, Page, Part, Shape, Table, Unit};

pub(in crate::commands::replay) fn page(answer: &Alone) -> anyhow::Result<Page> {
    let Alone { ask, policy, points, extent, bounds, .. } = answer;
    let window = readahead::shown(ask, answer.has_neighbours);
    let mut measured: Vec<(u64, Figures)> =
        points.iter().filter_map(|point| Some((point.pages, point.figures()?))).collect();
    measured.sort_by_key(|(pages, _)| *pages);
    measured.dedup_by_key(|(pages, _)| *pages);
    let below = readahead::below(&answer.below(), answer.window_kb());
    let mut page = Page {
        title: format!("How much memory does {} want?", name_of(answer.trace())),
        of: heading(answer).trim_end().replace('\n', "; "),
        story: extent.warning().into_iter().chain(story(&measured, ask.untimed)).chain(below).collect(),
        parts: Vec::new(),
    };
    if measured.len() > 1 {
        let is_wide = measured[measured.len() - 1].0 / measured[0].0 > 10;
        let memory = if is_wide { Axis::logarithmic } else { Axis::linear };
        let chart = |title: &str, says: &str, y: Axis, of: fn(&Figures) -> f64| {
            let line = Line {
                name: format!("{policy}, readahead {window}"),
                colour: Colour::nth(1),
                ys: measured.iter().map(|(_, figures)| Some(of(figures))).collect(),
            };
            Part::Chart(Chart {
                title: title.to_string(),
                says: says.to_string(),
                x: memory("memory", Unit::Bytes),
                y,
                xs: measured.iter().map(|(pages, _)| (*pages * 4096) as f64).collect(),
                lines: vec![line],
                shape: Shape::Points,
            })
        };
        let by_size = |pages: u64| {
            let at = points.iter().position(|point| point.pages == pages)?;
            bounds.as_ref()?[at].as_ref().map(|bound| bound.miss_ratio)
        };
        let of_bound: Vec<Option<f64>> = measured.iter().map(|(pages, _)| by_size(*pages)).collect();
        page.parts = vec![chart(
            "Miss ratio over memory",
            "If the line is flat, more memory does not help.",
            Axis::linear("miss ratio", Unit::Number),
            |of| of.miss_ratio,
        )];
        if !ask.untimed {
            let runtime = Axis::linear("runtime", Unit::Nanoseconds);
            page.parts.push(chart("Runtime over memory", "", runtime, |of| of.end_ns as f64));
        }
        if let (Some(Part::Chart(chart)), true) =
            (page.parts.first_mut(), of_bound.iter().any(Option::is_some))
        {
            chart.lines.push(Line { name: "opt (bound)".to_string(), colour: Colour::nth(0), ys: of_bound });
        }
    }
    page.parts.push(Part::Table(Table {
        title: "Figures".to_string(),
        says: String::new(),
        rows: rows(answer),
        words: 0,
        last_words: 0,
    }));
    if !ask.untimed {
        page.parts.push(Part::Text {
            title: "The scenario, of the first size".to_string(),
            text: answer.toml()?,
            is_open: false,
        });
    }
    Ok(page)
}

/// What more memory earns, and where most of it is earned.
fn story(measured: &[(u64, Figures)], is_untimed: bool) -> Vec<String> {
    let ([(least, worst), .., (most, best)], true) = (measured, measured.len() > 1) else {
        return Vec::new();
    };
    let size = |pages: u64| figures::bytes(pages * 4096);
    let runtime = match is_untimed {
        true => String::new(),
        false => {
            let [from, to] = [worst, best].map(|of| figures::time(of.end_ns));
            format!(", and the runtime from {from} to {to}")
        }
    };
    let mut says = vec![format!(
        "From {} to {} of memory the miss ratio falls from {:.4} to {:.4}{runtime}.",
        size(*least),
        size(*most),
        worst.miss_ratio,
        best.miss_ratio,
    )];
    let all = worst.misses.saturating_sub(best.misses);
    let is_enough = |misses: u64| worst.misses.saturating_sub(misses) * 10 >= all * 9;
    if let Some((pages, of)) = measured.iter().find(|(_, of)| is_enough(of.misses)).filter(|_| all > 0) {
        says.push(format!(
            "{} already avoids {} of the misses that {} avoids.",
            size(*pages),
            figures::percent(figures::share(worst.misses.saturating_sub(of.misses), all)),
            size(*most)
        ));
    }
    says
}
