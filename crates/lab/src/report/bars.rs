//! Bars on a page: differences with their intervals, to both sides of zero; or shares, to one side. They are HTML boxes, so they work without scripts
//! and on paper. On a narrow screen a bar is below its name.

use std::fmt::Write;

use pageout_study::result::better::Verdict;

use super::escape::html;

/// Characters of a name that are shown.
const NAME_MAX: usize = 52;

/// The share of the width that the longest bar uses: its figure must fit on the axis.
const REACH: f64 = 0.92;

/// One difference, or one share.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// The difference in percent.
    pub(crate) percent: f64,
    /// Half of the 95 % interval, where several runs give one.
    pub(crate) half_width: Option<f64>,
    /// True if the difference may be noise.
    pub(crate) is_noise: bool,
    /// Good or bad for users: the colour.
    pub(crate) verdict: Verdict,
    /// As the table has it.
    pub(crate) text: String,
}

impl Bar {
    /// The class in page.css, which has the colour.
    fn class(&self) -> &'static str {
        match (self.is_noise, self.verdict) {
            (true, _) => "noise",
            (_, Verdict::Better) => "better",
            (_, Verdict::Worse) => "worse",
            (_, Verdict::Neither) => "neither",
        }
    }
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
        let axis = Axis::of(&self.bars);
        let mut body = format!("{}<ul class=\"bars\" style=\"--zero:{:.2}%\">", self.legend(), axis.at(0.0));
        for bar in &self.bars {
            let (from, to) = (axis.at(bar.percent.min(0.0)), axis.at(bar.percent.max(0.0)));
            _ = write!(
                body,
                "<li><span class=\"name\">{}</span><span class=\"track\"><i class=\"{}\" style=\"left:{from:.2}%;width:{:.2}%\"></i>",
                html(&shortened(&bar.name)),
                bar.class(),
                to - from,
            );
            if let Some(half) = bar.half_width {
                let (low, high) = (axis.at(bar.percent - half), axis.at(bar.percent + half));
                _ = write!(
                    body,
                    "<b class=\"interval\" style=\"left:{low:.2}%;width:{:.2}%\"></b>",
                    high - low
                );
            }
            _ = write!(body, "</span><span class=\"figure\">{}</span></li>", html(&bar.text));
        }
        body += "</ul><div class=\"ticks\" aria-hidden=\"true\"><span class=\"track\">";
        for percent in axis.ticks() {
            let sign = if axis.has_sides && percent > 0.0 { "+" } else { "" };
            _ = write!(body, "<span style=\"left:{:.2}%\">{sign}{percent}%</span>", axis.at(percent));
        }
        body + "</span></div>"
    }

    /// What each colour says, of those that occur.
    fn legend(&self) -> String {
        let classes = [
            ("better", "better"),
            ("worse", "worse"),
            ("neither", "neither better nor worse"),
            ("noise", "may be noise"),
        ];
        let occurs = |class: &str| self.bars.iter().any(|bar| bar.class() == class);
        let entries = classes.iter().filter(|(class, _)| occurs(class));
        let entries: String =
            entries.map(|(class, says)| format!("<span><i class=\"{class}\"></i>{says}</span>")).collect();
        format!("<p class=\"legend\">{entries}</p>")
    }
}

/// The position of a percentage, in percent of the width.
struct Axis {
    /// The largest percentage that has a place: a round number.
    far: f64,
    /// Shares have no other side.
    has_sides: bool,
}

impl Axis {
    fn of(bars: &[Bar]) -> Axis {
        let reach = |bar: &Bar| bar.percent.abs() + bar.half_width.unwrap_or(0.0);
        let far = bars.iter().map(reach).fold(0.0, f64::max);
        Axis {
            far: if far > 0.0 { round_up(far) } else { 1.0 },
            has_sides: bars.iter().any(|bar| bar.percent < 0.0 || bar.half_width.is_some()),
        }
    }

    /// In percent of the width.
    fn at(&self, percent: f64) -> f64 {
        let part = percent.clamp(-self.far, self.far) / self.far * REACH;
        if self.has_sides { 50.0 + part * 50.0 } else { part * 100.0 }
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let (far, has_sides) = (self.far, self.has_sides);
        [-far, -far / 2.0, far / 2.0, far].into_iter().filter(move |tick| has_sides || *tick > 0.0)
    }
}

/// A long name without its middle: beginning and end identify the task.
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

    fn bar(name: &str, percent: f64, verdict: Verdict) -> Bar {
        Bar {
            name: name.to_string(),
            percent,
            half_width: None,
            is_noise: false,
            verdict,
            text: String::new(),
        }
    }

    fn drawn(bars: Vec<Bar>) -> String {
        Bars { title: String::new(), says: String::new(), bars }.to_html()
    }

    #[test]
    fn a_long_name_keeps_its_beginning_and_its_end() {
        let name = format!("{}42, waiting for devices", "a-long-name-".repeat(30));
        let html = drawn(vec![bar(&name, 50.0, Verdict::Worse)]);
        assert!(
            html.contains("a-long-name-a-lon\u{2026}") && html.contains("-42, waiting for devices<"),
            "{html}"
        );
    }

    #[test]
    fn a_colour_is_a_verdict_and_the_legend_names_those_that_occur() {
        let html = drawn(vec![
            bar("hit ratio", 3.0, Verdict::Better),
            Bar { is_noise: true, ..bar("runtime", 1.0, Verdict::Worse) },
        ]);
        assert!(html.contains("<i class=\"better\"></i>better"), "{html}");
        assert!(html.contains("<i class=\"noise\"></i>may be noise"), "{html}");
        assert!(!html.contains("class=\"worse\"") && !html.contains("class=\"neither\""), "{html}");
    }

    #[test]
    fn no_bar_leaves_its_room() {
        let bars = [-80.0, 12.0, 100.0]
            .map(|percent| Bar { half_width: Some(30.0), ..bar("a", percent, Verdict::Neither) });
        let axis = Axis::of(&bars);
        for bar in &bars {
            let half = bar.half_width.unwrap();
            assert!(axis.at(bar.percent - half) >= 0.0 && axis.at(bar.percent + half) <= 100.0);
        }
        assert_eq!(axis.at(0.0), 50.0);
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
