//! Charts as data: lines over an axis, and spans of time in lanes. `assets/page.js` draws them.

use serde_json::{Value, json};

/// How figures of an axis are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// As counts are.
    Count,
    /// Seconds of a clock.
    Seconds,
    /// A length of time, in nanoseconds.
    Nanoseconds,
    /// Bytes, in binary units.
    Bytes,
    /// A number without a unit.
    Number,
    /// The slowest one in so many.
    OneIn,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::Seconds => "s",
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "bytes",
            Unit::Number => "number",
            Unit::OneIn => "one in",
        }
    }
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Evenly.
    Linear,
    /// By factors.
    Logarithmic,
}

/// One axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) scale: Scale,
}

impl Axis {
    pub(crate) fn linear(label: &str, unit: Unit) -> Axis {
        Axis { label: label.to_string(), unit, scale: Scale::Linear }
    }

    pub(crate) fn logarithmic(label: &str, unit: Unit) -> Axis {
        Axis { label: label.to_string(), unit, scale: Scale::Logarithmic }
    }

    fn json(&self) -> Value {
        json!({ "label": self.label, "unit": self.unit.name(), "log": self.scale == Scale::Logarithmic })
    }
}

/// A colour that means the same on every page, by its number in page.css, which has each for light and dark. Orange is harm and blue is good,
/// everywhere; what is neither has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(usize);

impl Colour {
    /// Harm: tasks that wait for the machine's memory, the limit that must not be reached.
    pub(crate) const HARM: Colour = Colour(0);
    /// Tasks that wait for their cgroup's memory, and other second limits.
    pub(crate) const MEMCG: Colour = Colour(6);
    /// kswapd, which does not delay tasks.
    pub(crate) const KSWAPD: Colour = Colour(2);

    /// The n-th of what is neither good nor bad. Eight differ; the next eight are these again, with other dashes (page.js).
    pub(crate) fn nth(at: usize) -> Colour {
        const NEUTRAL: [usize; 8] = [2, 3, 6, 4, 5, 7, 8, 9];
        Colour(NEUTRAL[at % NEUTRAL.len()])
    }
}

/// How lines are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// From point to point, with the points marked.
    Points,
    /// A level that holds until the next point, filled below, each on top of the one before.
    Stacked,
    /// Levels side by side, as lines; where steps are joined, their mean.
    Levels,
    /// Levels side by side, as lines; where steps are joined, the lowest.
    Lowest,
}

/// Lines over a common axis.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What to see in it.
    pub(crate) says: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) xs: Vec<f64>,
    pub(crate) lines: Vec<Line>,
    pub(crate) shape: Shape,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: Colour,
    /// One for each x; nothing where there is none.
    pub(crate) ys: Vec<Option<f64>>,
}

/// Between which figures those of a line lie, by samples: a shape behind it.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    /// The number of the line.
    pub(crate) line: usize,
    /// The least and the largest figure at each x; nothing where there is none.
    pub(crate) ends: Vec<Option<(f64, f64)>>,
}

/// Spans of time, one lane per task.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    pub(crate) title: String,
    pub(crate) says: String,
    /// From and to, in seconds.
    pub(crate) x: (f64, f64),
    pub(crate) names: Vec<String>,
    pub(crate) spans: Vec<Span>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) lane: usize,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) colour: Colour,
    /// The text of a span.
    pub(crate) says: String,
}

impl Chart {
    pub(super) fn json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            let ys: Vec<Value> = line.ys.iter().map(|y| y.map_or(Value::Null, number)).collect();
            json!({ "name": line.name, "colour": line.colour.0, "ys": ys })
        });
        let shape = match self.shape {
            Shape::Points => "points",
            Shape::Stacked => "stacked",
            Shape::Levels => "levels",
            Shape::Lowest => "lowest",
        };
        json!({
            "kind": "lines",
            "title": self.title,
            "x": self.x.json(),
            "y": self.y.json(),
            "shape": shape,
            "xs": self.xs.iter().copied().map(number).collect::<Vec<_>>(),
            "lines": lines.collect::<Vec<_>>(),
        })
    }

    /// Likewise, with bands behind its lines.
    pub(super) fn json_with(&self, bands: &[Band]) -> Value {
        let of_band = |band: &Band| {
            let end = |of: fn((f64, f64)) -> f64| -> Vec<Value> {
                band.ends.iter().map(|ends| ends.map_or(Value::Null, |ends| number(of(ends)))).collect()
            };
            json!({ "line": band.line, "least": end(|(least, _)| least), "most": end(|(_, most)| most) })
        };
        let mut json = self.json();
        json["bands"] = bands.iter().map(of_band).collect();
        json
    }
}

impl Lanes {
    pub(super) fn json(&self) -> Value {
        let spans = self
            .spans
            .iter()
            .map(|span| json!([span.lane, number(span.from), number(span.to), span.colour.0, span.says]));
        json!({
            "kind": "lanes",
            "title": self.title,
            "x": Axis::linear("time (s)", Unit::Seconds).json(),
            "range": [number(self.x.0), number(self.x.1)],
            "names": self.names,
            "spans": spans.collect::<Vec<_>>(),
        })
    }
}

/// Whole numbers without a point, which halves the page.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use super::Colour;

    #[test]
    fn first_eight_colours_differ() {
        let mut colours: Vec<usize> = (0..8).map(|at| Colour::nth(at).0).collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), 8);
    }
}
