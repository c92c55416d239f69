//! The tables of runs of which each folio is known: how many are exact by kind, and where the others part.

use pageout_truth::folios::{ANON, Change, Judged, by_kind};

use crate::print::Layout;

/// Runs that differ, one a line, or all of them; then the share of exact ones by kind.
pub(super) fn text(judged: &[Judged], is_verbose: bool, layout: Layout) -> String {
    let heading = ["run", "changes", "equal", "operation", "recorded", "simulated", ""];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for run in judged.iter().filter(|run| run.skipped.is_none() && (is_verbose || !run.passes())) {
        let [equal, operation, real, ours] = match &run.first_difference {
            None => [run.recorded.to_string(), String::new(), String::new(), String::new()],
            Some(parting) => [
                parting.equal.to_string(),
                parting.operation.clone(),
                change(parting.recorded.as_ref()),
                change(parting.simulated.as_ref()),
            ],
        };
        let [equal, operation, real, ours] = match run.figures.first() {
            Some(figure) if run.first_difference.is_none() => {
                let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_string());
                [equal, figure.name.clone(), text(&figure.recorded), text(&figure.simulated)]
            }
            _ => [equal, operation, real, ours],
        };
        let verdict = if run.passes() { "ok" } else { "FALLS SHORT" };
        let changes = run.recorded.to_string();
        rows.push(vec![run.run.clone(), changes, equal, operation, real, ours, verdict.to_string()]);
    }
    let mut kinds = vec![["kind", "runs", "exact", "share"].map(str::to_string).to_vec()];
    for (kind, (exact, all)) in by_kind(judged) {
        let share = format!("{:.1} %", 100.0 * exact as f64 / all as f64);
        kinds.push(vec![kind.to_string(), all.to_string(), exact.to_string(), share]);
    }
    let others = others_text(judged, is_verbose, layout) + &calls_text(judged, is_verbose, layout);
    let skipped = judged.iter().filter(|run| run.skipped.is_some()).count();
    let skipped = if skipped > 0 { format!("{skipped} runs skipped\n") } else { String::new() };
    let runs = if rows.len() > 1 { format!("{}\n", layout.table(&rows, 1)) } else { String::new() };
    format!("{runs}{}\n{others}{skipped}", layout.table(&kinds, 1))
}

/// Figures of swap that differ and decide nothing: the first of each run, or all of them.
fn others_text(judged: &[Judged], is_verbose: bool, layout: Layout) -> String {
    let compared: Vec<&Judged> =
        judged.iter().filter(|run| run.skipped.is_none() && run.kind() == ANON).collect();
    if compared.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![["swap figures that differ", "figure", "recorded", "simulated"].map(str::to_string).to_vec()];
    for run in &compared {
        let shown = if is_verbose { run.others.len() } else { 1 };
        for figure in run.others.iter().take(shown) {
            let text = |side: &Option<String>| side.as_deref().map_or("nothing".to_string(), shortened);
            rows.push(vec![
                run.run.clone(),
                figure.name.clone(),
                text(&figure.recorded),
                text(&figure.simulated),
            ]);
        }
    }
    let equal = compared.iter().filter(|run| run.others.is_empty()).count();
    let table = if rows.len() > 1 { format!("\n{}\n", layout.table(&rows, 2)) } else { String::new() };
    let all = compared.len();
    format!(
        "{table}\nswap: all figures are equal in {equal} of {all} runs of {ANON}; these decide no verdict\n"
    )
}

/// Calls of reclaim, which decide nothing: those that are off by more than 10 %, or all of them.
fn calls_text(judged: &[Judged], is_verbose: bool, layout: Layout) -> String {
    const FAR: f64 = 0.1;
    let compared: Vec<(&Judged, [u64; 3], f64)> = judged
        .iter()
        .filter_map(|run| {
            let [least, most, ours] = run.reclaim_calls?;
            let off = ours as f64 / ours.clamp(least, most).max(1) as f64 - 1.0;
            Some((run, [least, most, ours], off))
        })
        .collect();
    if compared.is_empty() {
        return String::new();
    }
    let mut rows = vec![["calls of reclaim", "recorded", "simulated", ""].map(str::to_string).to_vec()];
    for (run, [least, most, ours], off) in &compared {
        if is_verbose || off.abs() > FAR {
            let recorded = if least == most { least.to_string() } else { format!("{least} to {most}") };
            rows.push(vec![run.run.clone(), recorded, ours.to_string(), format!("{:+.1} %", 100.0 * off)]);
        }
    }
    let near = compared.iter().filter(|(.., off)| off.abs() <= FAR).count();
    let table = if rows.len() > 1 { format!("\n{}\n", layout.table(&rows, 1)) } else { String::new() };
    format!(
        "{table}\ncalls of reclaim: {near} of {} runs with a limit are within 10 %; these decide no verdict\n",
        compared.len()
    )
}

/// A list of folios may be long.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// What happened to a folio: the number of the operation, the direction, the first page and the order.
fn change(change: Option<&Change>) -> String {
    change.map_or_else(
        || "nothing".to_string(),
        |change| {
            let verb = if change.removed { "deletes" } else { "adds" };
            format!("#{} {verb} {}, order {}", change.operation, change.index, change.order)
        },
    )
}
