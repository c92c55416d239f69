//! A cross-over at every point of a grid: which of the 32 differences keep their sign, and which are one point's.

use std::fmt::Write;

use pageout_study::ablate::crossover::{Answer, CLASSIC, Combination, Crossover, mglru, signs, steps};
use pageout_study::result::caveats;
use pageout_study::result::effect::{self, FIGURES, Figure};
use pageout_study::result::sign;
use pageout_study::result::spread::Paired;
use pageout_study::scenario::grid;

use super::{Report, lay_out};
use crate::commands::ablate::untouched;
use crate::print::remarks;

impl Report<'_> {
    pub(super) fn over(&self) -> String {
        let Answer { ask, extent, points } = self.answer;
        let point = &points[0].point;
        let mut text = String::new();
        if !point.scenario.question.is_empty() {
            text += &self.layout.wrap(&point.scenario.question, "");
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "{}: classic's and MGLRU's choices at the four seams in all combinations, at {} points, {};\nall else as in {}. A \
         cell: signs of the difference to classic / to MGLRU.",
            ask.scenario.display(),
            points.len(),
            extent.seeds_from(point.scenario.seed),
            point.scenario.kernel.name()
        );
        text += &self.layout.warning(extent);
        text += &self
            .layout
            .caveats(&caveats::of_rules(&points.iter().flat_map(Crossover::sides).collect::<Vec<_>>()));
        text += &untouched(&point.scenario);
        text += &remarks::points(points.iter().map(|point| &point.point));
        for figure in FIGURES.iter().filter(|figure| self.is_shown(figure)) {
            let _ = writeln!(text, "\n{}\n", effect::capitalised(figure.title));
            text += &self.layout.table(&corners(points, figure), 1);
            text.push('\n');
            let against = |corner: Combination, name: &str, cell: Combination| {
                if cell == corner {
                    name.to_string()
                } else {
                    signs(points, figure, corner, cell).to_string()
                }
            };
            let matrix = lay_out(|cell| {
                format!("{} / {}", against(CLASSIC, "CLASSIC", cell), against(mglru(), "MGLRU", cell))
            });
            text += &self.layout.table(&matrix, 2);
            text.push('\n');
            text += &self.layout.table(&step_table(points, figure), 1);
        }
        text += &self.layout.failed(self.answer.failures().iter().map(ToString::to_string));
        text.push('\n');
        text + &sign::legend(extent.seeds)
    }
}

/// Both corners, a column a point, and how far MGLRU is from classic.
fn corners(points: &[Crossover], figure: &Figure) -> Vec<Vec<String>> {
    let mut rows =
        vec![vec![String::new()], vec!["classic".into()], vec!["MGLRU".into()], vec!["  difference".into()]];
    for point in points {
        rows[0].push(grid::label(&point.point.settings).replace(", ", "\n"));
        for (row, corner) in [(1, CLASSIC), (2, mglru())] {
            let runs = point.runs(corner);
            rows[row].push(if runs.is_whole() { figure.show_alone(runs) } else { runs.missing() });
        }
        let effect = figure.effect(point.runs(CLASSIC), point.runs(mglru()));
        rows[3].push(effect.map_or("x".to_string(), |effect| figure.show_effect_alone(&effect)));
    }
    rows
}

/// The step at each seam, a column a point.
fn step_table(points: &[Crossover], figure: &Figure) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["one step, in parts of classic's figure".to_string()]];
    rows[0].extend(points.iter().map(|point| grid::label(&point.point.settings).replace(", ", "\n")));
    for step in steps(points, figure) {
        rows.push(vec![format!("  {}", step.name)]);
        for (way, effects) in [("from classic", step.from_classic), ("to MGLRU", step.to_mglru)] {
            let cell = |effect: Option<Paired>| {
                effect.map_or("x".to_string(), |effect| figure.show_effect_alone(&effect))
            };
            let cells = effects.into_iter().map(cell);
            rows.push(std::iter::once(format!("    {way}")).chain(cells).collect());
        }
    }
    rows
}
