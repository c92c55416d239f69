//! `pageout validate`: the simulator against what a real kernel did.
//!
//! ```text
//!   recording  (sequences, objects, limits, clock) ──▶ rig ──▶ simulated figures ──┐
//!   answers    (counters, misses, evictions)   read only after the simulation ─────┼──▶ judge ──▶ report
//!   tolerances.toml                            likewise ───────────────────────────┘
//! ```
//! The two readers are separate so that no simulated figure can depend on an answer: what `recording` deserialises has no
//! field for one. The format of the folder is described in its README.

mod answers; // what the kernel did
mod class; // how close is close enough
mod judge; // simulated beside real, with a verdict
mod recording; // what was asked of the kernel
mod report; // the tables
mod rig; // a recording, played to the simulator
mod script; // what the recording program did for each access

use crate::cli::ValidateArgs;
use crate::failure::{Failure, Outcome};
use crate::print::{output, progress};
use crate::result::parallel;
use answers::Answers;
use class::{Class, Tolerances};
use judge::{Judged, judge};
use recording::{Recording, Run};
use rig::Played;

/// Compares the recorded runs in a directory with simulated ones; fails if any falls short or can't be played.
pub(crate) fn run(args: &ValidateArgs) -> Outcome {
    let recording = Recording::open(&args.dir)?;
    let runs = recording.select(&args.run)?;
    if let Some(stranger) = args.expect_short.iter().find(|id| !runs.iter().any(|run| run.id == **id)) {
        return Err(Failure::Input(anyhow::anyhow!(
            "--expect-short {stranger}: there is no such run among these"
        )));
    }
    let tolerances = Tolerances::open(&args.dir)?;

    let classes: Vec<Class> = runs.iter().map(|run| tolerances.class_of(run)).collect::<Result<_, _>>()?;
    let jobs: Vec<(&Run, usize, usize)> = (runs.iter().zip(&classes))
        .flat_map(|(&run, class)| {
            let simulations = class.simulations();
            (0..simulations).map(move |simulation| (run, simulation, simulations))
        })
        .collect();
    let bar = progress::bar(&args.output, Some(jobs.len() as u64), "simulating");
    for (run, class) in runs.iter().zip(&classes) {
        recording.require_flushes(run, class)?;
    }
    let played = parallel::map(&jobs, args.jobs, |&(run, simulation, simulations)| {
        let unrecorded = rig::Unrecorded { simulation, simulations };
        let played = rig::play(&recording, run, unrecorded);
        bar.inc(1);
        played
    });
    bar.finish_and_clear();

    // From here on the answers are known.
    let answers = Answers::open(&args.dir)?;
    let mut played = played.into_iter();
    let mut judged: Vec<Judged> = Vec::new();
    for (&run, class) in runs.iter().zip(&classes) {
        // All of them are taken even if the first is an error: the next run's come after them.
        let simulations: Vec<Result<Played, _>> = played.by_ref().take(class.simulations()).collect();
        judged.push(match simulations.into_iter().collect::<Result<Vec<Played>, _>>() {
            Ok(simulations) => judge(run, class, &tolerances, &simulations, &answers)?,
            Err(reason) => Judged::not_played(run, &reason),
        });
    }
    for (run, field) in judged.iter().filter_map(|run| Some((&run.run, run.blank?))) {
        output::remark(&format!("{run}: its `{field}` is blank, so that nothing of it can be compared"));
    }
    if args.output.json {
        output::print_json(&judged)?;
    } else {
        output::print(&report::text(&judged, args.verbose))?;
    }
    // A run that can't be played says nothing about how close it comes.
    let is_expected = |run: &Judged| args.expect_short.contains(&run.run) && run.not_played.is_none();
    let all = judged.len();
    let not_played = judged.iter().filter(|run| run.not_played.is_some()).count();
    if not_played > 0 {
        return Err(Failure::Input(anyhow::anyhow!("{not_played} of {all} runs can't be played")));
    }
    let short = judged.iter().filter(|run| !run.passes() && !is_expected(run)).count();
    if short > 0 {
        return Err(Failure::Unexpected(anyhow::anyhow!("{short} of {all} runs fall short")));
    }
    if let Some(run) = judged.iter().find(|run| run.passes() && is_expected(run)) {
        return Err(Failure::Unexpected(anyhow::anyhow!("{} passes: it is not short any more", run.run)));
    }
    Ok(())
}
