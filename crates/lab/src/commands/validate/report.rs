//! The tables of `validate`: each run's figures, then a summary of a line a run.

use std::collections::BTreeMap;

use pageout_truth::judge::{Judged, Row};

use crate::print::Layout;

/// All of it. Runs that pass show their figures only if asked.
pub(crate) fn text(judged: &[Judged], verbose: bool, layout: Layout) -> String {
    let mut text = String::new();
    for run in judged.iter().filter(|run| !run.rows.is_empty() && (verbose || !run.passes())) {
        text += &figures(run, layout);
        text += "\n";
    }
    for (run, difference) in judged.iter().filter_map(|run| Some((run, run.first_difference.as_ref()?))) {
        text += &difference.text(&run.run);
        text += "\n";
    }
    text += &summary(judged, layout);
    text += &inputs(judged);
    let passed = judged.iter().filter(|run| run.passes()).count();
    let not_played = judged.iter().filter(|run| run.not_played.is_some()).count();
    let skipped = judged.iter().filter(|run| run.skipped.is_some()).count();
    let short = judged.iter().filter(|run| run.falls_short()).count();
    let all = judged.len();
    text += &format!("\n{passed} of {all} runs passed, {short} failed, {not_played} not simulated");
    text += &if skipped > 0 { format!(", {skipped} skipped\n") } else { "\n".to_string() };
    text
}

fn figures(run: &Judged, layout: Layout) -> String {
    let several = if run.simulations > 1 {
        format!(", median of {} simulations", run.simulations)
    } else {
        String::new()
    };
    let class = run.class.as_deref().unwrap_or("none");
    let mut rows =
        vec![["", "simulated", "real", "ratio", "envelope", "limit", ""].map(str::to_string).to_vec()];
    for row in &run.rows {
        let number = |value: f64| number(row, value);
        let range = |range: Option<[f64; 2]>| {
            range
                .map_or(String::new(), |[least, largest]| format!("{} to {}", number(least), number(largest)))
        };
        let ratio = if row.real > 0.0 { format!("{:.4}", row.simulated / row.real) } else { String::new() };
        let verdict = match row.passes {
            Some(true) => "ok",
            Some(false) => "FALLS SHORT",
            None => "not judged",
        };
        rows.push(vec![
            row.name.to_string(),
            number(row.simulated),
            number(row.real),
            ratio,
            range(row.envelope),
            range(row.limit),
            verdict.to_string(),
        ]);
    }
    let inputs = run.inputs.text().map_or(String::new(), |inputs| format!("inputs: {inputs}\n"));
    format!("{} (class {class}{several})\n{}{inputs}", run.run, layout.table(&rows, 1))
}

/// The inputs that may be incomplete, by run; and the number of runs in which each was not recorded, so that a default replaces it.
fn inputs(judged: &[Judged]) -> String {
    let mut text = String::new();
    for run in judged {
        run.inputs.doubts.iter().for_each(|doubt| text += &format!("{}: {doubt}\n", run.run));
    }
    let mut runs: BTreeMap<&String, u64> = BTreeMap::new();
    judged
        .iter()
        .flat_map(|run| &run.inputs.not_recorded)
        .for_each(|input| *runs.entry(input).or_default() += 1);
    if !runs.is_empty() {
        let each: Vec<String> = runs.iter().map(|(input, count)| format!("{input} of {count}")).collect();
        text += &format!("not recorded, by runs: {}\n", each.join(", "));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn number(row: &Row, value: f64) -> String {
    match (value.is_nan(), row.is_share) {
        (true, _) => "-".to_string(),
        (false, true) => format!("{:.3} %", value * 100.0),
        (false, false) => format!("{value:.0}"),
    }
}

fn summary(judged: &[Judged], layout: Layout) -> String {
    let mut rows = vec![["run", "class", "verdict", ""].map(str::to_string).to_vec()];
    for run in judged {
        let (verdict, detail) = match run.not_played.as_ref().or(run.skipped.as_ref()) {
            Some(reason) if run.skipped.is_some() => ("skipped", reason.clone()),
            Some(reason) => ("NOT PLAYED", reason.clone()),
            None if run.passes() => ("ok", String::new()),
            None => {
                let short = run.rows.iter().filter(|row| row.passes == Some(false)).map(|row| row.name);
                ("FALLS SHORT", short.collect::<Vec<_>>().join(", "))
            }
        };
        let class = run.class.clone().unwrap_or_default();
        rows.push(vec![run.run.clone(), class, verdict.to_string(), detail]);
    }
    layout.table(&rows, 4)
}
