//! The cover letter as JSON: a list of rows, each a figure with its runs, a geometric mean, the ends of runs, or the reason without runs.

use serde_json::{Value, json};

use super::gather::Left;
use super::judge::{self, GeometricMean, Judged, Row, Says};
use super::{Answer, Repeat, groups};
use crate::result::variants::NOT_RUN;

impl Answer {
    /// As JSON.
    pub fn json(&self) -> Value {
        json(self)
    }
}

fn json(letter: &Answer) -> Value {
    let cases = &letter.found.cases;
    let mut rows: Vec<Value> = Vec::new();
    for (group, cases) in groups(cases) {
        for case in &cases {
            rows.extend(case.rows.iter().map(|row| of_row(case, row)));
            rows.extend(of_ends(case));
        }
        rows.extend(judge::geometric_means(&cases).iter().map(|mean| of_mean(group, mean)));
    }
    rows.extend(letter.left.iter().map(of_left));
    let drawn = judge::drawn(cases);
    let failures = letter.failures();
    json!({
        "complete": letter.found.interruption.is_none() && failures.is_empty(),
        "interrupted": letter.interrupted(),
        "failures": failures,
        "change": letter.ask.switches.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "base_build": letter.base_build,
        "criterion": judge::CRITERION,
        "seeds_at_most": letter.ask.repeat.most(),
        "seeds_are_fixed": matches!(letter.ask.repeat, Repeat::Fixed(_)),
        "runs": letter.found.made,
        "rows_drawn": drawn,
        "rows_by_chance": judge::by_chance(drawn),
        "rows": rows,
    })
}

fn of_row(case: &Judged, row: &Row) -> Value {
    let [base, patched] = row.means();
    let change = row.percent();
    json!({
        "kind": "figure",
        "group": case.group,
        "scenario": case.name,
        "figure": row.figure.name,
        "says": row.says().word(),
        "base": base,
        "patched": patched,
        "difference_percent": change.map(|(percent, _)| percent),
        "half_width_percent": change.and_then(|(_, width)| width),
        "per_thousand_accesses": row.is_per_thousand,
        "chance": row.chance,
        "holds_for_all_rows_together": row.holds,
        "first_seed": case.first_seed,
        "seeds": case.seeds,
        "base_values": row.values[0],
        "patched_values": row.values[1],
    })
}

fn of_mean(group: &str, mean: &GeometricMean) -> Value {
    json!({
        "kind": "geometric_mean",
        "group": group,
        "figure": mean.figure.name,
        "difference_percent": mean.percent,
        "half_width_percent": mean.half_width,
        "scenarios": mean.cases,
    })
}

/// Runs that failed and processes that were killed, of all seeds together.
fn of_ends(case: &Judged) -> Vec<Value> {
    let failed = [case.failed[0].len(), case.failed[1].len()];
    let ends = ["runs_that_fail", "processes_killed"].into_iter().zip([failed, case.killed]).zip(case.ends());
    let ends = ends.filter(|((_, sides), _)| *sides != [0, 0]);
    if case.seeds == 0 {
        return vec![
            json!({ "kind": "not_run", "group": case.group, "scenario": case.name, "why": NOT_RUN }),
        ];
    }
    let told = ends.map(|((figure, [base, patched]), says)| {
        json!({
            "kind": "ending",
            "group": case.group,
            "scenario": case.name,
            "figure": figure,
            "says": says.unwrap_or(Says::Same).word(),
            "base": base,
            "patched": patched,
            "first_seed": case.first_seed,
            "seeds": case.seeds,
            "why": case.failed.iter().flatten().next(),
        })
    });
    told.collect()
}

fn of_left(left: &Left) -> Value {
    json!({ "kind": "not_run", "group": left.group, "scenario": left.name, "why": left.why.told() })
}
