//! The HTML page of `compare`: the difference of each variant from the first, as bars with intervals next to the table.

use pageout_study::compare::{Answer, Column};
use pageout_study::result::better::Better;
use pageout_study::result::effect;

use super::{difference, rows};
use crate::report::{Bar, Bars, Page, Part, Table, scenario};

/// Bars of one variant.
const BARS: usize = 16;

/// The figures that decide whether a change is worth its cost, the most important first.
const OUTCOMES: [&str; 6] =
    ["runtime", "accesses/s", "misses", "in direct reclaim", "waiting for I/O", "pages read"];

pub(super) fn page(answer: &Answer) -> Page {
    let Answer { ask, source, extent, columns, .. } = answer;
    let base = answer.base();
    let labels: Vec<&str> = columns.iter().map(|column| column.variant.label.as_str()).collect();
    let title = if base.question.is_empty() { labels.join(" against ") } else { base.question.clone() };
    let mut page = Page {
        title,
        of: format!("{}: {}; {}", ask.scenario.display(), labels.join(", "), extent.seeds_from(base.seed)),
        story: extent.warning().into_iter().chain(answer.caveats()).collect(),
        parts: Vec::new(),
    };
    for (at, of) in columns.iter().enumerate().filter(|(at, of)| of.base != *at) {
        let (label, base) = (labels[at], labels[of.base]);
        let bars = bars(answer, of);
        let certain = bars.iter().filter(|bar| !bar.is_noise);
        let of_task = certain.filter(|bar| bar.name.ends_with(": runtime") && bar.name.starts_with("task "));
        page.story.extend(of_task.map(|bar| {
            let task = bar.name.trim_end_matches(": runtime");
            format!("With {label} instead of {base}, the runtime of {task} changes by {}.", bar.text)
        }));
        let left_out = bars.len().saturating_sub(BARS);
        let mut says =
            "Change in percent; lines are 95 % intervals over the seeds, hollow bars may be noise."
                .to_string();
        if left_out > 0 {
            says += &format!(" {left_out} more are in the table.");
        }
        if !bars.is_empty() {
            let bars = bars.into_iter().take(BARS).collect();
            page.parts.push(Part::Bars(Bars { title: format!("{label} against {base}"), says, bars }));
        }
    }
    page.parts.push(Part::Table(Table {
        title: "Side by side".to_string(),
        says: String::new(),
        rows: rows(answer),
        words: 1,
        last_words: 0,
    }));
    if extent.seeds > 1 {
        let text = effect::noise_legend(extent.seeds, false);
        page.parts.push(Part::Prose { title: "How to read it".to_string(), text });
    }
    page.parts.push(scenario(source, &ask.changes, &[]));
    page
}

/// Differences of outcomes first, then of everything else, each in the order of the table.
fn bars(answer: &Answer, of: &Column) -> Vec<Bar> {
    let base = &answer.columns[of.base].figures;
    let place = |name: &str| OUTCOMES.iter().position(|known| *known == name).unwrap_or(OUTCOMES.len());
    let mut bars: Vec<(usize, Bar)> = answer
        .told()
        .into_iter()
        .filter(|metric| metric.group != "run")
        .filter_map(|metric| {
            let paired = of.figures.find(metric)?.difference(base.find(metric)?)?;
            let percent = paired.percent_of_base().filter(|_| !paired.is_same)?;
            Some((
                place(&metric.name),
                Bar {
                    name: format!("{}: {}", metric.group, metric.name),
                    percent: percent.clamp(-1000.0, 1000.0),
                    half_width: paired.half_width.and_then(|width| paired.percent(width)),
                    is_noise: paired.is_within_noise(),
                    verdict: Better::of(&metric.full_name()).verdict(percent),
                    text: difference(metric.unit, &paired),
                },
            ))
        })
        .collect();
    bars.sort_by_key(|(place, _)| *place);
    bars.into_iter().map(|(_, bar)| bar).collect()
}
