//! The table of recorded outcomes: killed, or not.

use pageout_truth::outcomes::Judged;

use crate::print::{Layout, figures};

/// A line a run, and how many are as recorded.
pub(super) fn text(judged: &[Judged], layout: Layout) -> String {
    let heading = ["run", "real", "simulated", "major faults", "simulated", "blind calls", "simulated", ""];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for run in judged {
        let ended = if run.killed { "killed" } else { "ran to its end" };
        let (kills, all) = (run.simulated_kills, run.simulations);
        let simulated = match run.killed_after_ns {
            None => format!("ran to its end in {all} of {all}"),
            Some([first, last]) => {
                format!(
                    "killed in {kills} of {all}, after {} to {}",
                    figures::time(first),
                    figures::time(last)
                )
            }
        };
        let pair = |pair: Option<[u64; 2]>| {
            pair.map_or([String::new(), String::new()], |pair| pair.map(figures::count))
        };
        let [real_faults, faults] = pair(run.major_faults);
        let [real_blind, blind] = match run.blind_calls {
            Some([real, least, most]) if least == most => [real.to_string(), least.to_string()],
            Some([real, least, most]) => [real.to_string(), format!("{least} to {most}")],
            None => pair(None),
        };
        let verdict = if run.passes { "ok" } else { "FALLS SHORT" };
        rows.push(vec![
            run.run.clone(),
            ended.to_string(),
            simulated,
            real_faults,
            faults,
            real_blind,
            blind,
            verdict.to_string(),
        ]);
    }
    let passed = judged.iter().filter(|run| run.passes).count();
    let doubts =
        judged.iter().flat_map(|run| run.doubts.iter().map(move |doubt| format!("{}: {doubt}\n", run.run)));
    let doubts = doubts.collect::<String>();
    format!("{}{doubts}\n{passed} of {} outcomes as recorded\n", layout.table(&rows, 3), judged.len())
}
