//! A page's curves and bars as one SVG for a paper. It needs no script, font or network, and its background is white.
//!
//! ```text
//!   ┌ title ───────────────────────────┐    charts side by side, then bars one below the other
//!   │ chart        │ chart             │    lines differ by colour, dashes and marks, so also in grey
//!   │ bars: names ▐▐▐▌ |  figures      │    colours are those of Okabe and Ito ("Color Universal Design", https://jfly.uni-koeln.de/color/),
//!   └ legend: one for all charts ──────┘    which colour-blind readers can distinguish
//! ```
//! Each line is a `<g>` with the policy's name as `<title>` and its exact figures as `<desc>`, so the SVG can be checked against the CSV.

use std::fmt::Write;

use pageout_study::result::better::Verdict;

use super::bars::{Bar, Bars};
use super::chart::{Axis, Band, Chart, Scale, Shape, Unit};
use super::escape::html;
use super::{Page, Part};
use crate::print::figures;

/// Pixels of a chart with all that is around its frame, and of that.
const CHART: (f64, f64) = (440.0, 300.0);
const LEFT: f64 = 64.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 48.0;

/// Pixels of the title, of a row of bars, of their names, and of figures.
const TITLE: f64 = 34.0;
const BAR: f64 = 18.0;
const NAMES: f64 = 300.0;
const FIGURES: f64 = 130.0;

/// Pixels of a line of the legend, and of an entry.
const LEGEND: f64 = 20.0;
const ENTRY: f64 = 170.0;

/// Marks of a line are so many at most: more would hide it.
const MARKS: usize = 12;

/// What a band is.
const ESTIMATED: &str =
    "estimated from samples; a band is from the least to the largest of them, and no bound";

/// What a band of runs is.
const SPREAD: &str = "a band is from the least to the most of runs that differ in what is not known";

/// Ticks of an axis, about.
const TICKS: f64 = 6.0;

const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f"];
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

/// The dashes of a line: those of lines of the same colour differ.
fn dashes(style: usize) -> &'static str {
    DASHES[(style + style / COLOURS.len()) % DASHES.len()]
}

/// The curves and bars of a page.
pub(super) fn svg(page: &Page) -> String {
    let charts: Vec<(&Chart, &[Band])> = page.parts.iter().filter_map(of_lines).collect();
    let bars = page.parts.iter().filter_map(|part| match part {
        Part::Bars(bars) => Some(bars),
        _ => None,
    });
    let bars: Vec<&Bars> = bars.collect();
    let columns = charts.len().min(2);
    let width = (CHART.0 * columns as f64).max(if bars.is_empty() { CHART.0 } else { 2.0 * CHART.0 });
    let mut names: Vec<&str> = Vec::new();
    for line in charts.iter().flat_map(|(chart, _)| &chart.lines) {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
    }
    let mut body = String::new();
    let mut y = TITLE;
    for row in charts.chunks(2) {
        for (column, (chart, bands)) in row.iter().enumerate() {
            body += &drawn(chart, bands, &names, CHART.0 * column as f64, y);
        }
        y += CHART.1;
    }
    if !charts.is_empty() {
        body += &legend(&names, width, &mut y);
    }
    let is_estimated = |part: &Part| matches!(part, Part::Estimates { bands, .. } if !bands.is_empty());
    let is_spread = |part: &Part| matches!(part, Part::Spread { bands, .. } if !bands.is_empty());
    for (is, says) in
        [(page.parts.iter().any(is_estimated), ESTIMATED), (page.parts.iter().any(is_spread), SPREAD)]
    {
        if is {
            _ = writeln!(body, "<text x=\"10\" y=\"{:.1}\" font-size=\"11\">{says}</text>", y + 6.0);
            y += LEGEND;
        }
    }
    for bars in &bars {
        body += &drawn_bars(bars, width, &mut y);
    }
    if charts.is_empty() && bars.is_empty() {
        _ = write!(
            body,
            "<text x=\"{LEFT}\" y=\"{}\">There is no curve and no bar to draw.</text>",
            y + 14.0
        );
        y += 30.0;
    }
    let height = y + 10.0;
    let (title, of) = (html(&page.title), html(&page.of));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#000000\" role=\"img\">\n\
         <title>{title}</title>\n<desc>{of}; pageout {}</desc>\n\
         <defs><pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\"><rect width=\"5\" height=\"5\" fill=\"{}\"/>\
         <path d=\"M-1,1 l2,-2 M0,5 l5,-5 M4,6 l2,-2\" stroke=\"#ffffff\" stroke-width=\"1\"/></pattern></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{}\" y=\"22\" font-size=\"14\" font-weight=\"bold\" text-anchor=\"middle\">{}</text>\n{body}</svg>\n",
        env!("CARGO_PKG_VERSION"),
        COLOURS[1],
        width / 2.0,
        html(&within(&page.title, width, 14.0)),
    )
}

/// A part with lines over an axis that is not one run over time.
fn of_lines(part: &Part) -> Option<(&Chart, &[Band])> {
    match part {
        Part::Chart(chart) if chart.shape == Shape::Points => Some((chart, &[])),
        Part::Estimates { chart, bands } | Part::Spread { chart, bands } => Some((chart, bands)),
        _ => None,
    }
}

/// The part of a text that fits, in letters of this size.
fn within(text: &str, width: f64, size: f64) -> String {
    let room = (width / (size * 0.55)) as usize;
    match text.chars().count() > room {
        true => text.chars().take(room.saturating_sub(1)).chain(['\u{2026}']).collect(),
        false => text.to_string(),
    }
}

/// An axis with its ends, between two places.
struct Place<'a> {
    axis: &'a Axis,
    ends: (f64, f64),
    pixels: (f64, f64),
    ticks: Vec<f64>,
}

impl<'a> Place<'a> {
    fn of(axis: &'a Axis, values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Place<'a> {
        let (mut least, mut most) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        if least > most {
            (least, most) = (0.0, 1.0);
        }
        if axis.scale == Scale::Logarithmic && least > 0.0 {
            let ticks = powers(least, most, if axis.unit == Unit::Bytes { 2.0 } else { 10.0 });
            return Place { axis, ends: (least, most.max(least * 1.01)), pixels, ticks };
        }
        // A figure of less than half of the others is not far from nothing.
        if least > 0.0 && least < most / 2.0 {
            least = 0.0;
        }
        let step = step((most - least).max(most.abs() * 0.01).max(1e-9), axis.unit);
        let from = (least / step).floor();
        let to = (most / step).ceil().max(from + 1.0);
        let ticks = (0..=(to - from) as usize).map(|at| (from + at as f64) * step).collect();
        Place { axis, ends: (from * step, to * step), pixels, ticks }
    }

    fn at(&self, value: f64) -> f64 {
        let along = |value: f64| {
            if self.axis.scale == Scale::Logarithmic && self.ends.0 > 0.0 { value.ln() } else { value }
        };
        let part = (along(value) - along(self.ends.0)) / (along(self.ends.1) - along(self.ends.0));
        self.pixels.0 + (self.pixels.1 - self.pixels.0) * part
    }

    fn told(&self, value: f64) -> String {
        match self.axis.unit {
            Unit::Count | Unit::OneIn => figures::count(value as u64),
            Unit::Nanoseconds => figures::time(value as u64),
            Unit::Bytes => figures::bytes(value as u64),
            Unit::Seconds | Unit::Number => {
                let text = format!("{value:.4}");
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            }
        }
    }
}

/// A round distance between ticks: 1, 2 or 5 and zeros, or a power of two of bytes.
fn step(range: f64, unit: Unit) -> f64 {
    let wanted = range / TICKS;
    if unit == Unit::Bytes {
        return 2f64.powi(wanted.max(1.0).log2().ceil() as i32);
    }
    let unit = 10f64.powi(wanted.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * unit)
        .into_iter()
        .find(|step| *step >= wanted * 0.999)
        .unwrap_or(unit)
}

/// Powers of `base` between two numbers, few enough; at least one of them.
fn powers(least: f64, most: f64, base: f64) -> Vec<f64> {
    let (from, to) = ((least.ln() / base.ln()).ceil() as i32, (most.ln() / base.ln() + 1e-9).floor() as i32);
    if to < from {
        return vec![least];
    }
    let every = ((to - from) as f64 / TICKS).ceil().max(1.0) as usize;
    (from..=to).step_by(every).map(|power| base.powi(power)).collect()
}

/// A chart in its frame.
fn drawn(chart: &Chart, bands: &[Band], names: &[&str], left: f64, top: f64) -> String {
    let (x0, x1) = (left + LEFT, left + CHART.0 - RIGHT);
    let (y0, y1) = (top + CHART.1 - BOTTOM, top + TOP);
    let x = Place::of(&chart.x, chart.xs.iter().copied(), (x0, x1));
    let ends =
        bands.iter().flat_map(|band| band.ends.iter().flatten()).flat_map(|&(least, most)| [least, most]);
    let values = chart.lines.iter().flat_map(|line| line.ys.iter().flatten().copied()).chain(ends);
    let y = Place::of(&chart.y, values, (y0, y1));
    let middle = (x0 + x1) / 2.0;
    let mut body = format!(
        "<g>\n<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
        top + 20.0,
        html(&within(&chart.title, CHART.0 - 20.0, 12.0))
    );
    for tick in &x.ticks {
        let at = x.at(*tick);
        _ = writeln!(
            body,
            "<path d=\"M{at:.1},{y0:.1} V{y1:.1}\" stroke=\"#d0d0d0\" stroke-width=\"0.5\"/><text x=\"{at:.1}\" y=\"{:.1}\" font-size=\"10\" \
             text-anchor=\"middle\">{}</text>",
            y0 + 14.0,
            x.told(*tick)
        );
    }
    for tick in &y.ticks {
        let at = y.at(*tick);
        _ = writeln!(
            body,
            "<path d=\"M{x0:.1},{at:.1} H{x1:.1}\" stroke=\"#d0d0d0\" stroke-width=\"0.5\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" \
             text-anchor=\"end\">{}</text>",
            x0 - 6.0,
            at + 3.5,
            y.told(*tick)
        );
    }
    let (width, height) = (x1 - x0, y0 - y1);
    _ = writeln!(
        body,
        "<rect x=\"{x0:.1}\" y=\"{y1:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"none\" stroke=\"#000000\"/>"
    );
    let is_log = |axis: &Axis| if axis.scale == Scale::Logarithmic { ", logarithmic" } else { "" };
    _ = writeln!(
        body,
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}{}</text>",
        y0 + 34.0,
        html(&chart.x.label),
        is_log(&chart.x)
    );
    let (side, centre) = (left + 14.0, (y0 + y1) / 2.0);
    _ = writeln!(
        body,
        "<text transform=\"translate({side:.1},{centre:.1}) rotate(-90)\" text-anchor=\"middle\">{}{}</text>",
        html(&chart.y.label),
        is_log(&chart.y)
    );
    for (number, line) in chart.lines.iter().enumerate() {
        let style = names.iter().position(|name| *name == line.name).unwrap_or(0);
        let points: Vec<Option<(f64, f64)>> =
            chart.xs.iter().zip(&line.ys).map(|(x, y)| Some((*x, (*y)?))).collect();
        let band = bands.iter().find(|band| band.line == number);
        let end = |at: usize| band.and_then(|band| band.ends.get(at).copied().flatten());
        let exact: Vec<String> = (0..)
            .zip(&points)
            .filter_map(|(at, point)| {
                let (x, y) = (*point)?;
                let ends = end(at).map(|(least, most)| format!(" ({least} to {most})")).unwrap_or_default();
                Some(format!("{x} {y}{ends}"))
            })
            .collect();
        _ = writeln!(
            body,
            "<g stroke=\"{colour}\" fill=\"none\" stroke-width=\"1.5\">\n<title>{}</title>\n<desc>{}</desc>",
            html(&line.name),
            exact.join(", "),
            colour = COLOURS[style % COLOURS.len()]
        );
        let dashes = dashes(style);
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        let placed: Vec<Option<(f64, f64)>> = points
            .iter()
            .map(|point| point.map(|(x_value, y_value)| (x.at(x_value), y.at(y_value))))
            .collect();
        if let Some(band) = band {
            let placed = chart
                .xs
                .iter()
                .zip(&band.ends)
                .map(|(at, ends)| ends.map(|(least, most)| (x.at(*at), y.at(least), y.at(most))));
            let placed: Vec<Option<(f64, f64, f64)>> = placed.collect();
            for part in placed.split(Option::is_none).filter(|part| !part.is_empty()) {
                let below = part.iter().flatten().map(|(x, least, _)| format!("{x:.2},{least:.2}"));
                let above = part.iter().rev().flatten().map(|(x, _, most)| format!("{x:.2},{most:.2}"));
                let corners: Vec<String> = below.chain(above).collect();
                _ = writeln!(
                    body,
                    "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.2\" stroke=\"none\"/>",
                    corners.join(" "),
                    COLOURS[style % COLOURS.len()]
                );
            }
        }
        // Where a figure is missing there is no line.
        for part in placed.split(Option::is_none).filter(|part| !part.is_empty()) {
            let part: Vec<String> = part.iter().flatten().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
            _ = writeln!(body, "<polyline points=\"{}\"{dashes}/>", part.join(" "));
        }
        // A line of few points has all of them marked, wherever they are.
        let known: Vec<_> = placed.iter().flatten().collect();
        let every = known.len().div_ceil(MARKS).max(1);
        // Those of lines that are close to each other are not at the same places.
        for (x, y) in known.iter().skip(style % every).step_by(every) {
            body += &mark(style, *x, *y);
        }
        body += "</g>\n";
    }
    body + "</g>\n"
}

/// The mark of a line.
fn mark(style: usize, x: f64, y: f64) -> String {
    let path = match style % 8 {
        0 => "m-3,0 a3,3 0 1,0 6,0 a3,3 0 1,0 -6,0",
        1 => "m-3,-3 h6 v6 h-6 z",
        2 => "m0,-4 l4,7 h-8 z",
        3 => "m0,-4 l4,4 l-4,4 l-4,-4 z",
        4 => "m-3,-3 l6,6 m0,-6 l-6,6",
        5 => "m-4,0 h8 m-4,-4 v8",
        6 => "m0,4 l4,-7 h-8 z",
        _ => "m-4,0 h8",
    };
    format!("<path d=\"M{x:.2},{y:.2} {path}\" fill=\"#ffffff\" stroke-dasharray=\"none\"/>\n")
}

/// Names of lines with how each is drawn.
fn legend(names: &[&str], width: f64, y: &mut f64) -> String {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let entry = ENTRY.max(longest as f64 * 6.6 + 46.0).min(width - 20.0);
    let columns = ((width - 20.0) / entry).floor().max(1.0) as usize;
    let mut body = "<g>\n".to_string();
    for (at, name) in names.iter().enumerate() {
        let (x, line) = (10.0 + entry * (at % columns) as f64, *y + LEGEND * (at / columns) as f64 + 8.0);
        let dashes = dashes(at);
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        _ = write!(
            body,
            "<g stroke=\"{}\" fill=\"none\" stroke-width=\"1.5\"><path d=\"M{x:.1},{line:.1} h30\"{dashes}/>{}</g>",
            COLOURS[at % COLOURS.len()],
            mark(at, x + 15.0, line).trim_end()
        );
        _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 36.0,
            line + 4.0,
            html(&within(name, entry - 40.0, 12.0))
        );
    }
    *y += LEGEND * names.len().div_ceil(columns) as f64 + 10.0;
    body + "</g>\n"
}

/// Bars to both sides of nothing, with their intervals.
fn drawn_bars(bars: &Bars, width: f64, y: &mut f64) -> String {
    let percent = Axis::linear("change in percent", Unit::Number);
    let (x0, x1) = (NAMES, width - FIGURES);
    let reach = |bar: &Bar| {
        let half = bar.half_width.unwrap_or(0.0);
        [bar.percent - half, bar.percent + half, 0.0]
    };
    let axis = Place::of(&percent, bars.bars.iter().flat_map(reach), (x0, x1));
    let top = *y + 28.0;
    let bottom = top + BAR * bars.bars.len() as f64;
    let mut body = format!(
        "<g>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
        width / 2.0,
        *y + 18.0,
        html(&within(&bars.title, width - 20.0, 12.0))
    );
    for tick in &axis.ticks {
        let at = axis.at(*tick);
        _ = writeln!(
            body,
            "<path d=\"M{at:.1},{top:.1} V{bottom:.1}\" stroke=\"{}\" stroke-width=\"0.5\"/><text x=\"{at:.1}\" y=\"{:.1}\" font-size=\"10\" \
             text-anchor=\"middle\">{}</text>",
            if *tick == 0.0 { "#000000" } else { "#d0d0d0" },
            bottom + 13.0,
            axis.told(*tick)
        );
    }
    for (at, bar) in bars.bars.iter().enumerate() {
        let middle = top + BAR * (at as f64 + 0.5);
        let (from, to) = (axis.at(bar.percent.min(0.0)), axis.at(bar.percent.max(0.0)));
        // In grey, better is dark and full, worse has stripes.
        let (fill, stroke) = match (bar.is_noise, bar.verdict) {
            (true, _) => ("#ffffff", "#7f7f7f"),
            (_, Verdict::Better) => (COLOURS[0], COLOURS[0]),
            (_, Verdict::Worse) => ("url(#hatch)", COLOURS[1]),
            (_, Verdict::Neither) => (COLOURS[7], COLOURS[7]),
        };
        _ = writeln!(
            body,
            "<g><title>{}</title><desc>{}</desc><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect x=\"{from:.2}\" y=\"{:.1}\" \
             width=\"{:.2}\" height=\"{:.1}\" fill=\"{fill}\" stroke=\"{stroke}\"/>",
            html(&bar.name),
            bar.percent,
            NAMES - 8.0,
            middle + 4.0,
            html(&within(&bar.name, NAMES - 10.0, 12.0)),
            middle - BAR * 0.3,
            to - from,
            BAR * 0.6
        );
        if let Some(half) = bar.half_width {
            let (low, high) = (axis.at(bar.percent - half), axis.at(bar.percent + half));
            _ = writeln!(
                body,
                "<path d=\"M{low:.2},{:.1} v6 m0,-3 H{high:.2} m0,-3 v6\" fill=\"none\" stroke=\"#000000\"/>",
                middle - 3.0
            );
        }
        let figure = html(&within(&bar.text, FIGURES - 10.0, 12.0));
        _ = writeln!(body, "<text x=\"{:.1}\" y=\"{:.1}\">{figure}</text></g>", x1 + 8.0, middle + 4.0);
    }
    _ = writeln!(
        body,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (x0 + x1) / 2.0,
        bottom + 30.0,
        percent.label
    );
    let verdicts = [
        (COLOURS[0], "better", Verdict::Better, false),
        ("url(#hatch)", "worse", Verdict::Worse, false),
        (COLOURS[7], "neither better nor worse", Verdict::Neither, false),
        ("#ffffff", "may be noise", Verdict::Neither, true),
    ];
    let mut x = 10.0;
    for (fill, says, verdict, is_noise) in verdicts {
        let occurs = |bar: &Bar| bar.is_noise == is_noise && (is_noise || bar.verdict == verdict);
        if bars.bars.iter().any(occurs) {
            _ = writeln!(
                body,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"10\" fill=\"{fill}\" stroke=\"#7f7f7f\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 font-size=\"10\">{says}</text>",
                bottom + 21.0,
                x + 16.0,
                bottom + 30.0
            );
            x += 30.0 + says.len() as f64 * 5.6;
        }
    }
    *y = bottom + 44.0;
    body + "</g>\n"
}

#[cfg(test)]
mod tests {
    use super::super::chart::{Colour, Line};
    use super::*;

    fn chart(lines: &[(&str, [Option<f64>; 4])]) -> Page {
        let lines = lines.iter().map(|(name, ys)| Line {
            name: name.to_string(),
            colour: Colour::nth(0),
            ys: ys.to_vec(),
        });
        let chart = Chart {
            title: "Misses & <more>".to_string(),
            says: String::new(),
            x: Axis::logarithmic("memory", Unit::Bytes),
            y: Axis::linear("miss ratio", Unit::Number),
            xs: vec![4096.0, 65536.0, 1048576.0, 4194304.0],
            lines: lines.collect(),
            shape: Shape::Points,
        };
        Page { title: "a < b".to_string(), parts: vec![Part::Chart(chart)], ..Page::default() }
    }

    #[test]
    fn a_line_is_one_polyline_and_has_a_hole_where_a_figure_is_missing() {
        let all = [0.9, 0.5, 0.25, 0.1].map(Some);
        let drawn = svg(&chart(&[("lru", all), ("opt", [Some(0.8), None, Some(0.2), Some(0.1)])]));
        assert_eq!(drawn.matches("<polyline").count(), 3);
        assert!(drawn.contains("<desc>4096 0.9, 65536 0.5, 1048576 0.25, 4194304 0.1</desc>"), "{drawn}");
        assert!(
            drawn.contains("Misses &amp; &lt;more&gt;") && drawn.contains("memory, logarithmic"),
            "{drawn}"
        );
    }

    #[test]
    fn line_of_few_points_has_all_of_them_marked() {
        let page = chart(&[("lru", [None; 4])]);
        let Some(Part::Chart(mut chart)) = page.parts.into_iter().next() else { panic!("it has a chart") };
        chart.xs = (1..=40).map(|at| f64::from(at) * 4096.0).collect();
        for place in 0..39 {
            let is_known = |at: usize| at == place || at == 39;
            chart.lines[0].ys = (0..40).map(|at| is_known(at).then_some(0.5)).collect();
            let drawn = svg(&Page { parts: vec![Part::Chart(chart.clone())], ..Page::default() });
            assert_eq!(
                drawn.matches("stroke-dasharray=\"none\"").count(),
                3,
                "two points and the legend: {drawn}"
            );
        }
    }

    #[test]
    fn estimates_have_a_band_and_a_word() {
        let page = chart(&[("lru", [0.9, 0.5, 0.25, 0.1].map(Some))]);
        assert!(!svg(&page).contains("estimated"));
        let Some(Part::Chart(chart)) = page.parts.into_iter().next() else { panic!("it has a chart") };
        let ends = vec![Some((0.8, 0.95)), None, Some((0.2, 0.3)), Some((0.05, 0.2))];
        let parts = vec![Part::Estimates { chart, bands: vec![Band { line: 0, ends }] }];
        let drawn = svg(&Page { parts, ..Page::default() });
        assert!(drawn.contains("estimated from samples"), "{drawn}");
        assert_eq!(drawn.matches("<polygon").count(), 2, "{drawn}");
        assert!(drawn.contains("4096 0.9 (0.8 to 0.95), 65536 0.5,"), "{drawn}");
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(powers(3e6, 40e6, 2.0), [4194304.0, 8388608.0, 16777216.0, 33554432.0]);
        assert_eq!(powers(1.0, 1e12, 10.0).len(), 7);
        let steps = [0.6, 0.97, 7.0, 50.0].map(|range| step(range, Unit::Number));
        assert!(
            steps.iter().zip([0.1, 0.2, 2.0, 10.0]).all(|(one, other)| (one - other).abs() < 1e-9),
            "{steps:?}"
        );
        assert_eq!(step(10.0 * 1048576.0, Unit::Bytes), 2097152.0);
    }

    #[test]
    fn lines_of_one_colour_have_other_dashes() {
        let styles = (0..32).map(|at| (super::COLOURS[at % super::COLOURS.len()], super::dashes(at)));
        let styles: std::collections::BTreeSet<_> = styles.collect();
        assert_eq!(styles.len(), 32);
    }

    #[test]
    fn what_has_no_picture_says_so() {
        let empty = svg(&Page { title: "a".to_string(), ..Page::default() });
        assert!(empty.contains("no curve and no bar"), "{empty}");
    }
}
