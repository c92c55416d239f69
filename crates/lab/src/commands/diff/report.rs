//! What happened between two snapshots: sentences, then counters and gauges that changed, then names that are not known.

use pageout_kerneltext::counters::{Pair, Unit};
use pageout_study::diff::Answer;

use crate::print::{Layout, figures};

/// All that is to be printed.
pub(super) struct Report<'a> {
    pub(super) answer: &'a Answer,
    pub(super) all: bool,
    pub(super) layout: Layout,
}

impl Report<'_> {
    pub(super) fn to_text(&self) -> String {
        let between = match self.answer.seconds {
            Some(seconds) => format!("{} apart", figures::time((seconds * 1e9) as u64)),
            None => "the time between them is not known (--interval), so there are no rates".to_string(),
        };
        let kind = self.answer.change.kind.name();
        let heading = match self.answer.before.name.is_empty() {
            true => format!(
                "{kind} of {}, since the boot of the machine or the making of the cgroup: {between}",
                self.answer.after.name
            ),
            false => {
                format!("{kind} of {} and {}: {between}", self.answer.before.name, self.answer.after.name)
            }
        };
        let mut parts = vec![self.layout.wrap(&heading, "")];
        if !self.answer.change.fell.is_empty() {
            let names: Vec<&str> =
                self.answer.change.fell.iter().map(|counter| counter.name.as_str()).collect();
            parts.push(self.layout.wrap(&format!(
                "WARNING: counters went back, so what they counted is unknown, and all that depends on it: {}.",
                names.join(", ")
            ), ""));
        }
        let means: String = self
            .answer
            .means
            .iter()
            .map(|meaning| {
                let says = match &meaning.says {
                    Ok(says) => says,
                    Err(unknown) => {
                        return self.layout.wrap(&format!("{}: {unknown}.", capitalized(meaning.topic)), "");
                    }
                };
                let rests: Vec<String> = meaning
                    .rests_on
                    .iter()
                    .map(|(name, change)| format!("{name} +{}", figures::count(*change)))
                    .collect();
                self.layout.wrap(says, "") + &self.layout.wrap(&format!("[{}]", rests.join(", ")), "    ")
            })
            .collect();
        parts.push(if means.is_empty() {
            "No counter that is understood here has changed.\n".to_string()
        } else {
            means
        });
        parts.extend(self.counters());
        parts.extend(self.gauges());
        parts.push(self.remarks().iter().map(|remark| self.layout.wrap(remark, "")).collect());
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    fn counters(&self) -> Option<String> {
        let mut rows = vec![row(["counter", "happened"])];
        if self.answer.seconds.is_some() {
            rows[0].push("a second".to_string());
        }
        for counter in self.answer.change.counters.iter().filter(|counter| self.all || counter.change() != 0)
        {
            let grown = u64::try_from(counter.change()).unwrap_or(0);
            let mut cells = row([&counter.name, &figures::count(grown)]);
            cells.extend(self.answer.seconds.map(|seconds| figures::rate(grown as f64 / seconds)));
            rows.push(cells);
        }
        (rows.len() > 1).then(|| self.layout.table(&rows, 1))
    }

    fn gauges(&self) -> Option<String> {
        let mut rows = vec![row(["gauge", "before", "after", "change"])];
        let is_shown = |(gauge, unit): &&(Pair, Unit)| {
            self.all || gauge.change() != 0 || *unit == Unit::HundredthsOfPercent
        };
        for (gauge, unit) in self.answer.change.gauges.iter().filter(is_shown) {
            let shown = |value: u64| match unit.bytes(self.answer.page_size) {
                Some(bytes) => figures::bytes(value.saturating_mul(bytes)),
                None if *unit == Unit::HundredthsOfPercent => format!("{:.2} %", value as f64 / 100.0),
                None => figures::count(value),
            };
            let signed = |value: i64| match value {
                0.. => shown(value.unsigned_abs()),
                _ => format!("-{}", shown(value.unsigned_abs())),
            };
            let change = gauge.signed_change();
            let sign = if change < 0 { "-" } else { "+" };
            let change = u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX);
            let change = if change == 0 { "0".to_string() } else { format!("{sign}{}", shown(change)) };
            let [before, after] = [gauge.before, gauge.after].map(|value| signed(value.cast_signed()));
            rows.push(row([&gauge.name, &before, &after, &change]));
        }
        (rows.len() > 1).then(|| self.layout.table(&rows, 1))
    }

    /// What is not in the figures.
    fn remarks(&self) -> Vec<String> {
        let change = &self.answer.change;
        let mut remarks = Vec::new();
        let below: Vec<&str> = change.below_zero().map(|gauge| gauge.name.as_str()).collect();
        if !below.is_empty() {
            remarks.push(format!(
                "Gauges below zero, which the file has as a number close to 2^64: {}. The kernel adds such a gauge up from its CPUs while \
                 they change it.",
                below.join(", ")
            ));
        }
        if !change.unknown.is_empty() {
            let told = |pair: &Pair| format!("{} ({} to {})", pair.name, pair.before, pair.after);
            let told: Vec<String> = change.unknown.iter().map(told).collect();
            remarks.push(format!(
                "Names that are not known here, as counters or as gauges: {}.",
                told.join(", ")
            ));
        }
        for (names, file) in
            [(&change.only_before, &self.answer.before), (&change.only_after, &self.answer.after)]
        {
            if !names.is_empty() {
                remarks.push(format!(
                    "Only in {}, so without a difference: {}.",
                    file.name,
                    names.join(", ")
                ));
            }
        }
        let unchanged = change.counters.iter().filter(|counter| counter.change() == 0).count()
            + change
                .gauges
                .iter()
                .filter(|(gauge, unit)| gauge.change() == 0 && *unit != Unit::HundredthsOfPercent)
                .count();
        if unchanged > 0 && !self.all {
            remarks.push(format!("{} did not change (--all).", figures::counted(unchanged as u64, "other")));
        }
        remarks
    }
}

fn capitalized(topic: &str) -> String {
    let mut letters = topic.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_string).to_vec()
}
