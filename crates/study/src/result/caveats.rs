//! Caveats above the figures of several runs, for figures that are meaningless or misleading.

use super::notes::NO_ACCESS;
use super::run_result::{RunResult, counter};
use crate::figures;

/// Runs that are shown side by side, each variant's with its name.
pub type Sides<'a> = [(String, &'a [RunResult])];

/// Runs that are named; more than that are counted.
const NAMED: usize = 3;

/// Caveats of runs that differ in anything.
pub fn of(sides: &Sides) -> Vec<String> {
    [nothing_accessed(runs(sides)), killed(sides)].into_iter().flatten().collect()
}

/// Caveats of runs that differ in rules of reclaim.
pub fn of_rules(sides: &Sides) -> Vec<String> {
    let mut caveats = of(sides);
    if caveats.is_empty() {
        caveats.extend(nothing_reclaimed(sides));
    }
    caveats
}

fn runs<'a>(sides: &Sides<'a>) -> impl Iterator<Item = &'a RunResult> + use<'a> {
    sides.iter().map(|&(_, runs)| runs).collect::<Vec<_>>().into_iter().flatten()
}

/// That no task of any run made an access, and why none of the first did.
pub fn nothing_accessed<'a>(runs: impl Iterator<Item = &'a RunResult>) -> Option<String> {
    let mut runs = runs.peekable();
    let first = *runs.peek()?;
    let why = first.notes.iter().find(|note| note.about == NO_ACCESS);
    let why = why.map_or(String::new(), |note| format!(" {}", note.text));
    runs.all(|run| run.accesses == 0).then(|| format!("No access was made, so no figure is meaningful.{why}"))
}

/// A killed task does less work, so its rates do not show what it would have done.
fn killed(sides: &Sides) -> Option<String> {
    let of_side = |(label, runs): &(String, &[RunResult])| {
        let killed = runs.iter().filter(|run| !run.kills.is_empty()).count();
        (killed > 0).then(|| format!("{label} ({killed} of {})", figures::counted(runs.len() as u64, "run")))
    };
    let mut told: Vec<String> = sides.iter().filter_map(of_side).collect();
    let more = told.len().saturating_sub(NAMED);
    told.truncate(NAMED);
    told.extend((more > 0).then(|| format!("{more} more")));
    let told = told.join(", ");
    (!told.is_empty()).then(|| {
        format!(
            "The OOM killer ended tasks in: {told}. Rates and totals of these runs are not comparable with other runs."
        )
    })
}

/// If memory is never short, reclaim rules have nothing to decide.
fn nothing_reclaimed(sides: &Sides) -> Option<String> {
    let is_idle = |run: &RunResult| counter(&run.work, "scanned") == 0 && run.tiers.is_none();
    let (mut all, mut some) = (runs(sides), runs(sides));
    (some.next().is_some() && all.all(is_idle)).then(|| {
        "Memory was never short: no run scanned a page, so no reclaim rule made a decision.".to_string()
    })
}
