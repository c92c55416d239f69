//! The HTML page of `ablate`: each effect as a bar with its interval, the largest first.

use pageout_study::ablate::{Ablation, Answer, Row};
use pageout_study::result::effect::{self, FIGURES, Figure, capitalised, figures_of};
use pageout_study::scenario::grid;

use super::effects;
use crate::commands::ablate::args::AblateArgs;
use crate::report::{Bar, Bars, Page, Part, Table};

/// Bars of one figure.
const BARS: usize = 20;

pub(super) fn page(args: &AblateArgs, found: &Answer) -> Page {
    let Answer { points, extent, .. } = found;
    let scenario = &points[0].point.scenario;
    let name = args.scenario.display();
    let mut page = Page {
        title: format!("Effects of the mechanisms of {}", scenario.kernel.name()),
        of: format!("{name}, {}. {}", extent.seeds_from(scenario.seed), scenario.question),
        story: extent.warning().into_iter().chain(found.caveats()).collect(),
        parts: Vec::new(),
    };
    for point in points.iter().filter(|point| point.base.is_whole()) {
        let at = match point.point.settings.is_empty() {
            true => String::new(),
            false => format!("{}: ", grid::label(&point.point.settings)),
        };
        page.story.extend(strongest(point).map(|says| format!("{at}{says}")));
        let outcomes = figures_of(&point.base).filter(|figure| figure.is_outcome);
        page.parts.extend(outcomes.filter_map(|figure| bars(point, figure, &at)).map(Part::Bars));
        for (title, is_outcome) in [("Results", true), ("Work of reclaim", false)] {
            let figures: Vec<&Figure> =
                figures_of(&point.base).filter(|figure| figure.is_outcome == is_outcome).collect();
            page.parts.push(Part::Table(Table {
                title: format!("{at}{title}"),
                says: String::new(),
                rows: effects(point, &figures),
                words: 1,
                last_words: 0,
            }));
        }
    }
    let legend = effect::legend(extent.seeds, true);
    page.parts.push(Part::Prose { title: "How to read it".to_string(), text: legend });
    page.parts.push(crate::report::scenario(&found.source, &args.options.changes(), &[]));
    page
}

/// An effect in percent that is more than noise.
fn certain(point: &Ablation, row: &Row, figure: &Figure) -> Option<f64> {
    let effect = figure.effect(&point.base, &row.runs)?;
    let percent = effect.percent(effect.difference)?;
    (!effect.is_same && !effect.is_within_noise()).then_some(percent)
}

/// The switch that moves the throughput most, of those that were run.
fn strongest(point: &Ablation) -> Option<String> {
    let figure = FIGURES.iter().find(|figure| figure.name == "throughput")?;
    let effects = point.rows.iter().filter_map(|row| Some((row, certain(point, row, figure)?)));
    let strongest = effects.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()));
    let (whole, all) = (point.rows.iter().filter(|row| row.runs.is_whole()).count(), point.rows.len());
    let of =
        if whole == all { String::new() } else { format!(" of the values with figures ({whole} of {all})") };
    Some(match strongest {
        _ if whole == 0 => return None,
        Some((row, percent)) => {
            format!("{} changes the speed most{of}: {percent:+.1}% accesses a second.", row.turn)
        }
        None => format!("No switch{of} changes the speed by more than noise."),
    })
}

/// The effects on one figure; those that may be noise are drawn hollow.
fn bars(point: &Ablation, figure: &Figure, at: &str) -> Option<Bars> {
    let mut bars: Vec<Bar> = point
        .rows
        .iter()
        .filter_map(|row| {
            let effect = figure.effect(&point.base, &row.runs).filter(|effect| !effect.is_same)?;
            Some(Bar {
                name: row.turn.to_string(),
                percent: effect.percent(effect.difference)?,
                half_width: effect.half_width.and_then(|width| effect.percent(width)),
                is_noise: effect.is_within_noise(),
                verdict: figure.better.verdict(effect.difference),
                text: figure.show_effect(&effect),
            })
        })
        .collect();
    bars.sort_by(|one, other| other.percent.abs().total_cmp(&one.percent.abs()));
    let left_out = bars.len().saturating_sub(BARS);
    bars.truncate(BARS);
    let mut says =
        "Change when one switch is turned; lines are 95 % intervals, hollow bars may be noise.".to_string();
    if left_out > 0 {
        says += &format!(" {left_out} smaller ones are in the table.");
    }
    (!bars.is_empty()).then(|| Bars { title: format!("{at}{}", capitalised(figure.title)), says, bars })
}
