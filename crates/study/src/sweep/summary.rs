//! The table of a paper: how much each policy reduces the miss ratio of a base policy, over many traces.
//!
//! ```text
//!   rows of a folder ─▶ by memory and policy ─▶ one miss ratio per trace, the mean of its seeds
//!                                               reduction = 1 - miss ratio / miss ratio of the base, same trace and memory
//!                                            ─▶ mean with interval, percentiles, wins
//! ```
//! A trace counts where both policies have a complete row. The interval and the p value treat traces as independent samples.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::collect::{collect, plan_of, text};
use super::parts::Row;
use crate::check::holds;
use crate::error::Error;
use crate::figures;
use crate::result::spread::{Spread, chance};
use crate::watch::Watcher;

/// The table, a line for each policy in each memory.
#[derive(Debug)]
pub struct Summary {
    /// The policy that the others are compared with.
    pub base: String,
    /// Lines by memory, then by mean reduction, the largest first.
    pub lines: Vec<Line>,
}

/// A policy in a memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The memory, as the plan has it.
    pub memory: String,
    /// The policy, with the keys that were set.
    pub policy: String,
    /// Traces that it and the base have.
    pub traces: usize,
    /// Traces of the base that it does not have.
    pub traces_missing: usize,
    /// Mean of its miss ratios.
    pub miss_ratio_mean: f64,
    /// Mean reduction of the miss ratio, as a share of that of the base.
    pub reduction_mean: f64,
    /// Lower bound of the 95 % confidence interval of the mean reduction.
    pub reduction_low: Option<f64>,
    /// Upper bound of it.
    pub reduction_high: Option<f64>,
    /// Percentiles of the reduction over the traces: 10, 25, 50, 75, 90.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// Traces on which it misses less often than the base.
    pub wins: usize,
    /// Traces on which it misses equally often.
    pub ties: usize,
    /// Traces on which it misses more often.
    pub losses: usize,
    /// Traces on which no policy but a bound misses less often.
    pub best: usize,
    /// The probability of a mean reduction as far from 0 if there is no difference, by Student's t.
    pub p: Option<f64>,
}

/// Percentiles of the reduction, interpolated between traces.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// A tenth of the traces has less.
    pub reduction_p10: f64,
    /// A quarter has less.
    pub reduction_p25: f64,
    /// The median.
    pub reduction_p50: f64,
    /// A quarter has more.
    pub reduction_p75: f64,
    /// A tenth has more.
    pub reduction_p90: f64,
}

/// Miss ratios of a memory by policy, then by trace: one a seed.
type Ratios = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

pub(super) fn summary(folder: &Path, base: &str, watcher: &dyn Watcher) -> Result<Summary, Error> {
    let rows = collect(folder, watcher)?;
    let build = plan_of(folder)["build"].clone();
    let is_current = |row: &&Row| build.is_null() || row.get("build") == Some(&build);
    let mut by_memory: Vec<(String, Ratios)> = Vec::new();
    let mut failed = 0;
    for row in rows.iter().filter(is_current) {
        let Some(ratio) = row.get("miss_ratio").and_then(Value::as_f64) else {
            failed += 1;
            continue;
        };
        let memory = text(row, "memory");
        let at = by_memory.iter().position(|(known, _)| *known == memory).unwrap_or_else(|| {
            by_memory.push((memory.clone(), Ratios::new()));
            by_memory.len() - 1
        });
        let of_policy = by_memory[at].1.entry(name(row)).or_default();
        of_policy.entry(text(row, "input")).or_default().push(ratio);
    }
    if failed > 0 {
        watcher.remark(&format!(
            "warning: {} without a miss ratio left out; `pageout sweep --collect {}` shows them",
            figures::counted(failed, "row"),
            folder.display()
        ));
    }
    by_memory.sort_by(|(one, _), (other, _)| order(one).total_cmp(&order(other)).then(one.cmp(other)));
    let mut lines = Vec::new();
    for (memory, ratios) in &by_memory {
        let Some(of_base) = ratios.get(base) else {
            let there: BTreeSet<&str> =
                by_memory.iter().flat_map(|(_, ratios)| ratios.keys().map(String::as_str)).collect();
            return Err(Error::asked(format!(
                "--summary {base}: found no rows of `{base}` with memory {memory} in {}\nhelp: its policies are {}",
                folder.display(),
                there.into_iter().collect::<Vec<_>>().join(", ")
            )));
        };
        lines.extend(of_memory(memory, ratios, of_base, base));
    }
    Ok(Summary { base: base.to_string(), lines })
}

/// Sorts memories by their number, percentages before sizes.
fn order(memory: &str) -> f64 {
    match memory.strip_suffix('%') {
        Some(percent) => percent.parse().unwrap_or(0.0),
        None => memory.parse::<pageout_sim::scenario::Size>().map_or(f64::MAX, |size| 1e6 + size.0 as f64),
    }
}

/// A policy with the keys of the machine that were set, which are the columns with a dot.
fn name(row: &Row) -> String {
    let keys = row.iter().filter(|(column, _)| column.contains('.'));
    let keys = keys.map(|(column, value)| {
        format!(" {column}={}", value.as_str().map_or(value.to_string(), str::to_string))
    });
    text(row, "policy") + &keys.collect::<String>()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn of_memory(memory: &str, ratios: &Ratios, of_base: &BTreeMap<String, Vec<f64>>, base: &str) -> Vec<Line> {
    // The least miss ratio of each trace.
    let mut least: BTreeMap<&str, f64> = BTreeMap::new();
    for of in ratios.iter().filter(|(policy, _)| *policy != "opt").map(|(_, of)| of) {
        for (trace, values) in of {
            let known = least.entry(trace).or_insert(f64::INFINITY);
            *known = known.min(mean(values));
        }
    }
    let others = ratios.iter().filter(|(policy, _)| *policy != base);
    let mut lines: Vec<Line> = others
        .filter_map(|(policy, of)| {
            let both: Vec<(&str, f64, f64)> = of_base
                .iter()
                .filter_map(|(trace, base)| Some((trace.as_str(), mean(base), mean(of.get(trace)?))))
                .collect();
            (!both.is_empty()).then(|| line(memory, policy, &both, of_base.len() - both.len(), &least))
        })
        .collect();
    lines.sort_by(|one, other| other.reduction_mean.total_cmp(&one.reduction_mean));
    lines
}

/// A line of traces with the miss ratios of the base and of the policy.
fn line(
    memory: &str,
    policy: &str,
    both: &[(&str, f64, f64)],
    traces_missing: usize,
    least: &BTreeMap<&str, f64>,
) -> Line {
    // A trace that the base does not miss at all has nothing to reduce.
    let reduction = |&(_, base, of): &(&str, f64, f64)| if base > 0.0 { 1.0 - of / base } else { 0.0 };
    let mut reductions: Vec<f64> = both.iter().map(reduction).collect();
    reductions.sort_by(f64::total_cmp);
    let spread = Spread::of(&reductions);
    let half = spread.half_width();
    let error = spread.deviation / (reductions.len() as f64).sqrt();
    let count = |is: fn(f64, f64) -> bool| both.iter().filter(|(_, base, of)| is(*of, *base)).count();
    let at = |share: f64| percentile(&reductions, share);
    Line {
        memory: memory.to_string(),
        policy: policy.to_string(),
        traces: both.len(),
        traces_missing,
        miss_ratio_mean: mean(&both.iter().map(|(_, _, of)| *of).collect::<Vec<_>>()),
        reduction_mean: spread.mean,
        reduction_low: half.map(|half| spread.mean - half),
        reduction_high: half.map(|half| spread.mean + half),
        percentiles: Percentiles {
            reduction_p10: at(0.1),
            reduction_p25: at(0.25),
            reduction_p50: at(0.5),
            reduction_p75: at(0.75),
            reduction_p90: at(0.9),
        },
        wins: count(|of, base| of < base),
        ties: count(|of, base| of == base),
        losses: count(|of, base| of > base),
        best: both.iter().filter(|(trace, _, of)| least.get(trace) == Some(of)).count(),
        p: (error > 0.0).then(|| chance(spread.mean / error, reductions.len() - 1)),
    }
}

/// The value below which this share of sorted values is, interpolated between neighbours.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

impl Summary {
    pub(super) fn check(&self) -> Result<(), String> {
        for of in &self.lines {
            let (memory, policy) = (&of.memory, &of.policy);
            let sum = of.wins + of.ties + of.losses;
            holds!(sum == of.traces, "{policy} at {memory}: {} traces, but {sum} by outcome", of.traces);
            holds!(of.best <= of.traces, "{policy} at {memory}: best on {} of {}", of.best, of.traces);
            let is_within = of.reduction_low.is_none_or(|low| low <= of.reduction_mean)
                && of.reduction_high.is_none_or(|high| of.reduction_mean <= high);
            holds!(is_within, "{policy} at {memory}: the mean is outside of its interval");
            let Percentiles { reduction_p10, reduction_p50, reduction_p90, .. } = of.percentiles;
            let is_rising = reduction_p10 <= reduction_p50 && reduction_p50 <= reduction_p90;
            holds!(is_rising, "{policy} at {memory}: percentiles do not rise");
        }
        Ok(())
    }

    /// The lines as JSON objects, each with the base.
    pub(super) fn json(&self) -> Value {
        let with_base = |line: &Line| {
            let mut row = Map::new();
            row.insert("base".to_string(), json!(self.base));
            if let Value::Object(figures) = json!(line) {
                row.extend(figures);
            }
            Value::Object(row)
        };
        Value::Array(self.lines.iter().map(with_base).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Traces, each with a miss ratio a seed.
    type Traces<'a> = &'a [(&'a str, &'a [f64])];

    fn ratios(of: &[(&str, Traces)]) -> Ratios {
        let traces = |traces: &[(&str, &[f64])]| {
            traces.iter().map(|(trace, values)| (trace.to_string(), values.to_vec())).collect()
        };
        of.iter().map(|(policy, of)| (policy.to_string(), traces(of))).collect()
    }

    #[test]
    fn reduction_is_the_mean_over_traces_of_seed_means() {
        let of = ratios(&[
            ("fifo", &[("a", &[0.5]), ("b", &[0.4]), ("c", &[0.2])]),
            ("mine", &[("a", &[0.2, 0.3]), ("b", &[0.4]), ("c", &[0.3])]),
            ("other", &[("a", &[0.25])]),
            ("opt", &[("a", &[0.1]), ("b", &[0.1]), ("c", &[0.1])]),
        ]);
        let lines = of_memory("10%", &of, &of["fifo"], "fifo");
        let mine = lines.iter().find(|line| line.policy == "mine").unwrap();
        // 50 %, 0 and -50 %.
        assert!(mine.reduction_mean.abs() < 1e-12 && mine.percentiles.reduction_p50 == 0.0);
        assert!((mine.percentiles.reduction_p75 - 0.25).abs() < 1e-12);
        assert_eq!((mine.wins, mine.ties, mine.losses, mine.best), (1, 1, 1, 2));
        // A deviation of 0.5 with three traces: 4.303 * 0.5 / 3^0.5.
        assert!((mine.reduction_high.unwrap() - 1.2421).abs() < 1e-3);
        assert!((mine.p.unwrap() - 1.0).abs() < 1e-12);
        let other = lines.iter().find(|line| line.policy == "other").unwrap();
        assert_eq!((other.traces, other.traces_missing, other.reduction_low), (1, 2, None));
        assert_eq!(lines[0].policy, "opt", "the largest reduction is first");
    }

    #[test]
    fn memories_are_in_the_order_of_their_numbers() {
        let mut memories = vec!["10%", "1GiB", "2%", "64 MiB", "100%"];
        memories.sort_by(|one, other| order(one).total_cmp(&order(other)));
        assert_eq!(memories, ["2%", "10%", "100%", "64 MiB", "1GiB"]);
    }
}
