//! The result of `diff`: sentences, then counters and gauges that changed, then names that are not known.

use serde_json::{Map, Value, json};

use super::change::{Change, Pair, Unit};
use super::meaning::Meaning;
use super::snapshot::Snapshot;
use crate::print::{figures, output, table};

/// All that is to be printed.
pub(super) struct Report<'a> {
    pub(super) before: &'a Snapshot,
    pub(super) after: &'a Snapshot,
    pub(super) change: &'a Change,
    pub(super) means: &'a [Meaning],
    pub(super) seconds: Option<f64>,
    pub(super) page_size: u64,
    pub(super) all: bool,
}

impl Report<'_> {
    pub(super) fn to_text(&self) -> String {
        let between = match self.seconds {
            Some(seconds) => format!("{} apart", figures::time((seconds * 1e9) as u64)),
            None => "the time between them is not known (--interval), so there are no rates".to_string(),
        };
        let heading =
            format!("{} of {} and {}: {between}", self.change.kind.name(), self.before.file, self.after.file);
        let mut parts = vec![wrap(&heading)];
        if !self.change.went_back.is_empty() {
            let names: Vec<&str> =
                self.change.went_back.iter().map(|counter| counter.name.as_str()).collect();
            parts.push(wrap(&format!(
                "WARNING: counters went back, so what they counted is not known, nor what hangs on it: {}.",
                names.join(", ")
            )));
        }
        let means: String = self
            .means
            .iter()
            .map(|meaning| {
                let rests: Vec<String> = meaning
                    .rests_on
                    .iter()
                    .map(|(name, change)| format!("{name} +{}", figures::count(*change)))
                    .collect();
                wrap(&meaning.says)
                    + &output::wrap(&format!("[{}]", rests.join(", ")), output::width(), "    ")
            })
            .collect();
        parts.push(if means.is_empty() {
            "No counter that is understood here has changed.\n".to_string()
        } else {
            means
        });
        parts.extend(self.counters());
        parts.extend(self.gauges());
        parts.push(self.remarks().iter().map(|remark| wrap(remark)).collect());
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    fn counters(&self) -> Option<String> {
        let mut rows = vec![row(["counter", "happened"])];
        if self.seconds.is_some() {
            rows[0].push("a second".to_string());
        }
        for counter in self.change.counters.iter().filter(|counter| self.all || counter.change() != 0) {
            let grown = u64::try_from(counter.change()).unwrap_or(0);
            let mut cells = row([&counter.name, &figures::count(grown)]);
            cells.extend(self.seconds.map(|seconds| figures::rate(grown as f64 / seconds)));
            rows.push(cells);
        }
        (rows.len() > 1).then(|| table::layout(&rows, 1))
    }

    fn gauges(&self) -> Option<String> {
        let mut rows = vec![row(["gauge", "before", "after", "change"])];
        for (gauge, unit) in self.change.gauges.iter().filter(|(gauge, _)| self.all || gauge.change() != 0) {
            let shown = |value: u64| match unit.bytes(self.page_size) {
                Some(bytes) => figures::bytes(value.saturating_mul(bytes)),
                None => figures::count(value),
            };
            let sign = if gauge.change() < 0 { "-" } else { "+" };
            let change = u64::try_from(gauge.change().unsigned_abs()).unwrap_or(u64::MAX);
            let change = if change == 0 { "0".to_string() } else { format!("{sign}{}", shown(change)) };
            rows.push(row([&gauge.name, &shown(gauge.before), &shown(gauge.after), &change]));
        }
        (rows.len() > 1).then(|| table::layout(&rows, 1))
    }

    /// What is not in the figures.
    fn remarks(&self) -> Vec<String> {
        let change = self.change;
        let mut remarks = Vec::new();
        if !change.unknown.is_empty() {
            let told = |pair: &Pair| format!("{} ({} to {})", pair.name, pair.before, pair.after);
            let told: Vec<String> = change.unknown.iter().map(told).collect();
            remarks.push(format!(
                "Names that are not known here, as counters or as gauges: {}.",
                told.join(", ")
            ));
        }
        for (names, file) in [(&change.only_before, self.before), (&change.only_after, self.after)] {
            if !names.is_empty() {
                remarks.push(format!(
                    "Only in {}, so without a difference: {}.",
                    file.file,
                    names.join(", ")
                ));
            }
        }
        let unchanged = change.counters.iter().filter(|counter| counter.change() == 0).count()
            + change.gauges.iter().filter(|(gauge, _)| gauge.change() == 0).count();
        if unchanged > 0 && !self.all {
            remarks.push(format!("{} did not change (--all).", figures::counted(unchanged as u64, "other")));
        }
        remarks
    }

    /// A row a counter or gauge.
    pub(super) fn to_rows(&self) -> Vec<Value> {
        let change = self.change;
        let row = |kind: &str, pair: &Pair, more: Value| {
            let head = json!({ "kind": kind, "name": pair.name, "before": pair.before, "after": pair.after });
            output::merged(head, more)
        };
        let known = change.counters.iter().map(|counter| {
            let per_second = self.seconds.map(|seconds| counter.change() as f64 / seconds);
            row(
                "counter",
                counter,
                json!({ "change": i64::try_from(counter.change()).ok(), "per_second": per_second }),
            )
        });
        let gauges = change.gauges.iter().map(|(gauge, unit)| {
            row("gauge", gauge, json!({ "change": i64::try_from(gauge.change()).ok(), "unit": unit.name() }))
        });
        let back = change.went_back.iter().map(|pair| row("went_back", pair, json!({})));
        let unknown = change.unknown.iter().map(|pair| row("unknown", pair, json!({})));
        known.chain(gauges).chain(back).chain(unknown).collect()
    }

    pub(super) fn to_json(&self) -> Value {
        let change = self.change;
        let counters = change.counters.iter().map(|counter| {
            let per_second = self.seconds.map(|seconds| counter.change() as f64 / seconds);
            let value = json!({ "before": counter.before, "after": counter.after, "happened": counter.after - counter.before, "per_second": per_second });
            (counter.name.clone(), value)
        });
        let gauges = change.gauges.iter().map(|(gauge, unit)| (gauge.name.clone(), gauge_json(gauge, *unit)));
        let pairs = |pairs: &[Pair]| -> Map<String, Value> {
            let value = |pair: &Pair| json!({ "before": pair.before, "after": pair.after });
            pairs.iter().map(|pair| (pair.name.clone(), value(pair))).collect()
        };
        let means = self.means.iter().map(|meaning| {
            let rests_on: Map<String, Value> =
                meaning.rests_on.iter().map(|(name, grown)| (name.clone(), json!(grown))).collect();
            json!({ "topic": meaning.topic, "says": meaning.says, "rests_on": rests_on })
        });
        json!({
            "complete": change.went_back.is_empty(),
            "kind": change.kind.name(),
            "before": self.before.file,
            "after": self.after.file,
            "seconds": self.seconds,
            "page_bytes": self.page_size,
            "means": means.collect::<Vec<_>>(),
            "counters": counters.collect::<Map<_, _>>(),
            "gauges": gauges.collect::<Map<_, _>>(),
            "went_back": pairs(&change.went_back),
            "unknown": pairs(&change.unknown),
            "only_before": change.only_before,
            "only_after": change.only_after,
        })
    }
}

fn gauge_json(gauge: &Pair, unit: Unit) -> Value {
    let change = i64::try_from(gauge.change()).ok();
    json!({ "before": gauge.before, "after": gauge.after, "change": change, "unit": unit.name() })
}

fn wrap(text: &str) -> String {
    output::wrap(text, output::width(), "")
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_string).to_vec()
}
