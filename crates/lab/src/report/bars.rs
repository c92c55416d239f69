//! Differences with their intervals, as bars to both sides of nothing; and shares, as bars to one side. Drawn here, so that they are there without scripts and on paper.

use std::fmt::Write;

use super::escape::html;

/// Pixels of a row, of the names, of the bars to both sides, and of the figures.
const ROW: f64 = 22.0;
const NAMES: f64 = 250.0;
const BARS: f64 = 440.0;
const FIGURES: f64 = 170.0;

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
        let width = NAMES + BARS + FIGURES;
        // Shares have no other side.
        let has_sides = self.bars.iter().any(|bar| bar.percent < 0.0 || bar.half_width.is_some());
        let (middle, side) = if has_sides { (NAMES + BARS / 2.0, BARS / 2.0) } else { (NAMES, BARS) };
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
                NAMES - 10.0,
                html(&bar.name),
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
                NAMES + BARS + 10.0,
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
    fn an_axis_ends_at_a_round_number() {
        for (value, round) in
            [(0.004, 0.01), (0.7, 1.0), (1.0, 1.0), (14.4, 20.0), (27.3, 50.0), (999.0, 1000.0)]
        {
            assert!((round_up(value) - round).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }
}
