//! Differences with their intervals, as bars to both sides of nothing; and shares, as bars to one side. Drawn here, so that they are there without scripts and on paper.

use std::fmt::Write;

use super::escape::html;

/// Pixels of a row, of the bars to both sides, and of the figures.
const ROW: f64 = 22.0;
const BARS: f64 = 440.0;
const FIGURES: f64 = 170.0;

/// Pixels of the names at least, of one of their characters, and between them and the bars.
const NAMES_MIN: f64 = 250.0;
const CHARACTER: f64 = 6.8;
const GAP: f64 = 10.0;

/// Characters of a name that are shown.
const NAME_MAX: usize = 52;

/// One difference, or one share.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// In percent.
    pub(crate) percent: f64,
    /// Half of the 95 % interval, where several runs give one.
    pub(crate) half_width: Option<f64>,
    /// It may be noise.
    pub(crate) is_noise: bool,
    /// As the table has it.
    pub(crate) text: String,
}

/// Differences of one figure.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) says: String,
    pub(crate) bars: Vec<Bar>,
}

impl Bars {
    pub(super) fn to_html(&self) -> String {
        let reach = |bar: &Bar| bar.percent.abs() + bar.half_width.unwrap_or(0.0);
        let far = self.bars.iter().map(reach).fold(0.0, f64::max);
        let far = if far > 0.0 { round_up(far) } else { 1.0 };
        let height = ROW * (self.bars.len() as f64 + 1.5);
        let longest = self.bars.iter().map(|bar| bar.name.chars().count().min(NAME_MAX)).max().unwrap_or(0);
        let names = NAMES_MIN.max((longest as f64 * CHARACTER + GAP).ceil());
        let width = names + BARS + FIGURES;
        // Shares have no other side.
        let has_sides = self.bars.iter().any(|bar| bar.percent < 0.0 || bar.half_width.is_some());
        let (middle, side) = if has_sides { (names + BARS / 2.0, BARS / 2.0) } else { (names, BARS) };
        let at = |percent: f64| middle + percent.clamp(-far, far) / far * (side - 20.0);
        let mut svg = format!(
            "<svg class=\"bars\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
            html(&format!("{}: bars of the differences in the table", self.title))
        );
        let sides = if has_sides { -1.0 } else { 0.0 };
        for percent in [far * sides, far / 2.0 * sides, far / 2.0, far] {
            if percent == 0.0 {
                continue;
            }
            let sign = if has_sides && percent > 0.0 { "+" } else { "" };
            _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{1}\"/>\
                 <text class=\"tick\" x=\"{0:.1}\" y=\"{2}\">{sign}{percent}%</text>",
                at(percent),
                height - ROW,
                height - ROW * 0.3,
            );
        }
        for (row, bar) in self.bars.iter().enumerate() {
            let y = ROW * (row as f64 + 0.5);
            let (from, to) = (at(bar.percent.min(0.0)), at(bar.percent.max(0.0)));
            let class = match (bar.is_noise, bar.percent < 0.0) {
                (true, _) => "noise",
                (_, true) => "less",
                (_, false) => "more",
            };
            _ = write!(
                svg,
                "<text class=\"name\" x=\"{}\" y=\"{y}\">{}</text><rect class=\"{class}\" x=\"{from:.1}\" y=\"{:.1}\" \
                 width=\"{:.1}\" height=\"13\"/>",
                names - GAP,
                html(&shortened(&bar.name)),
                y - 6.5,
                to - from,
            );
            if let Some(half) = bar.half_width {
                let (low, high) = (at(bar.percent - half), at(bar.percent + half));
                _ = write!(
                    svg,
                    "<path class=\"interval\" d=\"M{low:.1} {y}H{high:.1}M{low:.1} {0}V{1}M{high:.1} {0}V{1}\"/>",
                    y - 4.0,
                    y + 4.0
                );
            }
            _ = write!(
                svg,
                "<text class=\"figure\" x=\"{}\" y=\"{y}\">{}</text>",
                names + BARS + 10.0,
                html(&bar.text)
            );
        }
        _ = write!(
            svg,
            "<line class=\"zero\" x1=\"{middle}\" x2=\"{middle}\" y1=\"0\" y2=\"{}\"/></svg>",
            height - ROW
        );
        svg
    }
}

/// A long name without its middle: which task it is stands at its beginning and before what is told of it.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME_MAX {
        return name.to_string();
    }
    let end = NAME_MAX * 2 / 3;
    let begin: String = name.chars().take(NAME_MAX - end - 1).collect();
    format!("{begin}\u{2026}{}", name.chars().skip(count - end).collect::<String>())
}

/// The next number of 1, 2 or 5 and zeros.
fn round_up(value: f64) -> f64 {
    let mut unit = 0.01;
    while unit * 10.0 < value {
        unit *= 10.0;
    }
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * unit)
        .find(|round| *round >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_length_is_in_the_picture() {
        let bar = |name: &str| Bar {
            name: name.to_string(),
            percent: 50.0,
            half_width: None,
            is_noise: false,
            text: String::new(),
        };
        let width = |name: &str| {
            let bars = Bars { title: String::new(), says: String::new(), bars: vec![bar(name)] };
            let html = bars.to_html();
            let view = html.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split(' ').next());
            (view.unwrap().parse::<f64>().unwrap(), html)
        };
        assert_eq!(width("reader, waiting").0, 860.0);
        let (long, html) = width(&format!("{}42, waiting for devices", "a-long-name-".repeat(30)));
        assert!(long > 900.0 && long < 1000.0, "{long}");
        assert!(
            html.contains("a-long-name-a-lon\u{2026}") && html.contains("-42, waiting for devices<"),
            "{html}"
        );
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, round) in
            [(0.004, 0.01), (0.7, 1.0), (1.0, 1.0), (14.4, 20.0), (27.3, 50.0), (999.0, 1000.0)]
        {
            assert!((round_up(value) - round).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }
}
