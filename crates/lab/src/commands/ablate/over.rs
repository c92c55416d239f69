//! An ablation at every point of a grid: which effects keep their sign, and which are one point's.
//!
//! First come the signs of all figures, a letter a point. Then the sizes of the outcomes, a column a point. Then, by figure, the
//! values with more at one point and less at another.

use std::fmt::Write;

use pageout_study::ablate::{Ablation, Answer, Turned};
use pageout_study::result::effect::{self, Figure, figures_of};
use pageout_study::result::sign;
use pageout_study::scenario::grid;

use super::{below_seams, not_run, refusals, untouched};
use crate::commands::ablate::args::AblateArgs;
use crate::print::{Layout, remarks};

/// Figures whose sizes are shown at each point.
const SIZES: [&str; 3] = ["refaults_anon", "refaults_file", "pages_read"];

pub(super) fn to_text(args: &AblateArgs, found: &Answer, layout: Layout) -> String {
    let Answer { points, extent, refused, .. } = found;
    let Ablation { point, config, base, .. } = &points[0];
    let mut text = String::new();
    if !point.scenario.question.is_empty() {
        text += &layout.wrap(&point.scenario.question, "");
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{}: {}, and what changes when one switch is turned, at {} points; {}",
        args.scenario.display(),
        point.scenario.kernel.name(),
        points.len(),
        extent.seeds_from(point.scenario.seed)
    );
    text += &layout.warning(extent);
    text += &layout.caveats(&found.caveats());
    text += &untouched(&point.scenario);
    text += &remarks::points(points.iter().map(|point| &point.point));
    let all = found.turned();
    let (made, missing): (Vec<&Turned>, Vec<&Turned>) = all.iter().partition(|turned| turned.was_made());
    let (idle, shown): (Vec<&Turned>, Vec<&Turned>) =
        made.into_iter().partition(|turned| turned.changes_nothing());
    let titles = [("Results: signs", true), ("Work of reclaim: signs", false)];
    for (title, is_outcome) in titles.into_iter().filter(|_| !shown.is_empty()) {
        let figures: Vec<&Figure> =
            figures_of(base).filter(|figure| figure.is_outcome == is_outcome).collect();
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(figures.iter().map(|figure| figure.heading.to_string()));
        let cells = |turned: &Turned| figures.iter().map(|figure| turned.signs(figure).to_string()).collect();
        rows.extend(below_seams(config, shown.iter().map(|turned| (turned.turn, cells(turned)))));
        let _ = write!(text, "\n{title}\n{}", layout.table(&rows, 1));
    }
    for figure in figures_of(base).filter(|figure| SIZES.contains(&figure.name)) {
        let is_idle = shown.iter().all(|turned| turned.signs(figure).is_same());
        if !is_idle {
            let _ = write!(
                text,
                "\n{}\n{}",
                effect::capitalised(figure.title),
                sizes(figure, points, &shown, layout)
            );
        }
    }
    text += "\nMore at one point and less at another\n";
    for figure in figures_of(base).filter(|figure| figure.is_outcome) {
        let turning = shown.iter().filter(|turned| turned.signs(figure).turns());
        let names: Vec<String> = turning.map(|turned| turned.turn.to_string()).collect();
        let names = if names.is_empty() { "nothing".to_string() } else { names.join(", ") };
        text += &layout.wrap(&format!("{}: {names}", figure.title), "  ");
    }
    if !idle.is_empty() {
        let names: Vec<String> = idle.iter().map(|turned| turned.turn.to_string()).collect();
        text += "\nWithout any effect on these figures, in any run at any point\n";
        text += &layout.wrap(&names.join(", "), "  ");
    }
    text += &not_run(missing.into_iter().map(|turned| turned.turn), layout);
    text += &refusals(refused, layout);
    text += &layout.failed(found.failures().iter().map(ToString::to_string));
    text.push('\n');
    text + &sign::legend(extent.seeds)
}

/// The base's figure and each effect's size, a column a point.
fn sizes(figure: &Figure, points: &[Ablation], shown: &[&Turned], layout: Layout) -> String {
    let mut rows = vec![vec![String::new()], vec![points[0].point.scenario.kernel.name()]];
    for point in points {
        rows[0].push(grid::label(&point.point.settings).replace(", ", "\n"));
        let is_whole = point.base.is_whole();
        rows[1].push(if is_whole { figure.show_alone(&point.base) } else { point.base.missing() });
    }
    let cells = |turned: &Turned| {
        let effects = turned.effects(figure);
        effects
            .iter()
            .map(|effect| effect.as_ref().map_or("x".to_string(), |effect| figure.show_effect_alone(effect)))
            .collect()
    };
    let lines = shown.iter().filter(|turned| !turned.signs(figure).is_same());
    rows.extend(below_seams(&points[0].config, lines.map(|turned| (turned.turn, cells(turned)))));
    layout.table(&rows, 1)
}
