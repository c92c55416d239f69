//! The answer as data: all in one object, or a row a counter.

use pageout_kerneltext::counters::{Pair, Unit};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::Answer;
use crate::json::merged;

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl Answer {
    /// A row a counter or gauge.
    pub fn rows(&self) -> Vec<Value> {
        let change = &self.change;
        let row = |kind: &str, pair: &Pair, more: Value| {
            let head = json!({ "kind": kind, "name": pair.name, "before": pair.before, "after": pair.after });
            merged(head, more)
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
            row(
                "gauge",
                gauge,
                json!({ "change": i64::try_from(gauge.signed_change()).ok(), "unit": unit.name() }),
            )
        });
        let back = change.fell.iter().map(|pair| row("went_back", pair, json!({})));
        let unknown = change.unknown.iter().map(|pair| row("unknown", pair, json!({})));
        known.chain(gauges).chain(back).chain(unknown).collect()
    }

    fn json(&self) -> Value {
        let change = &self.change;
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
            let lacking = meaning.says.as_ref().err().map(|unknown| unknown.lacking());
            json!({ "topic": meaning.topic, "says": meaning.says.as_ref().ok(), "unknown": lacking, "rests_on": rests_on })
        });
        json!({
            "complete": change.fell.is_empty(),
            "kind": change.kind.name(),
            "before": Some(&self.before.name).filter(|file| !file.is_empty()),
            "after": self.after.name,
            "seconds": self.seconds,
            "page_bytes": self.page_size,
            "means": means.collect::<Vec<_>>(),
            "counters": counters.collect::<Map<_, _>>(),
            "gauges": gauges.collect::<Map<_, _>>(),
            "gauges_below_zero": change.below_zero().map(|gauge| &gauge.name).collect::<Vec<_>>(),
            "went_back": pairs(&change.fell),
            "unknown": pairs(&change.unknown),
            "only_before": change.only_before,
            "only_after": change.only_after,
        })
    }
}

fn gauge_json(gauge: &Pair, unit: Unit) -> Value {
    let change = i64::try_from(gauge.signed_change()).ok();
    json!({ "before": gauge.before, "after": gauge.after, "change": change, "unit": unit.name() })
}
