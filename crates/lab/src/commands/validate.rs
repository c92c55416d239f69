//! `pageout validate`: simulated counters beside those that a real kernel counted for the recorded accesses.
//!
//! ```text
//!   recording  (sequences, objects, limits, clock) ──▶ rig ──▶ simulated figures ──┐
//!   answers    (counters, misses, evictions)   read only after the simulation ─────┼──▶ judge ──▶ report
//!   tolerances.toml                            likewise ───────────────────────────┘
//! ```
//! The two readers are separate so that no simulated figure can depend on an answer: what `recording` deserialises has no
//! field for one. The format of the folder is described in docs/recordings.md.

mod account; // what became of each input
mod answers; // what the kernel did
mod class; // how close is close enough
mod complete; // whether inputs are all that there was
mod difference; // the first access at which simulation and kernel part
mod files; // where a folder has what, and how it is read
mod found; // a machine before the first access, by a snapshot
mod inputs; // what a kernel was given besides accesses
mod kernel_trace; // events of a whole machine's kernel
mod judge; // simulated beside real, with a verdict
mod missing; // what the simulator can't do yet
mod object; // what was accessed, and how
mod outcomes; // recorded outcomes: killed, or not
mod reads; // what accesses brought into the page cache, and from where
mod recording; // what was asked of the kernel
mod report; // the tables
mod rig; // a recording, played to the simulator
mod script; // what the recording program did for each access

use std::fs;
use std::path::{Path, PathBuf};

use pageout_study::result::parallel;

use crate::cli::ValidateArgs;
use crate::failure::{Failure, Outcome};
use crate::print::{output, progress};
use answers::Answers;
use class::{Class, Tolerances};
use difference::Difference;
use judge::{Judged, judge};
use recording::{Recording, Run};
use rig::{Playable, Played, Unplayable, Unrecorded};

/// Compares the recorded runs in a directory with simulated ones; fails if any falls short or can't be played.
pub(crate) fn run(args: &ValidateArgs) -> Outcome {
    if outcomes::are_in(&args.dir) {
        return outcomes::run(args);
    }
    tell_of_folders_within(&args.dir);
    let recording = Recording::open(&args.dir, &args.without)?;
    let runs = recording.select(&args.run)?;
    if let Some(stranger) = args.expect_short.iter().find(|id| !runs.iter().any(|run| run.id == **id)) {
        return Err(Failure::Input(anyhow::anyhow!(
            "--expect-short {stranger}: there is no such run among these"
        )));
    }
    let tolerances = args.tolerances.clone().unwrap_or_else(|| args.dir.join("tolerances.toml"));
    let tolerances = Tolerances::open(&tolerances)?;

    let mut plans: Vec<Result<Plan, Unplayable>> = Vec::new();
    for &run in &runs {
        plans.push(match Playable::new(&recording, run) {
            Ok(playable) => Plan::new(&recording, run, playable, &tolerances, args.simulations)?,
            Err(reason) => Err(reason),
        });
    }
    let jobs: Vec<(&Playable, Unrecorded)> = (plans.iter().flatten())
        .flat_map(|plan| {
            let simulations = plan.simulations;
            (0..simulations).map(move |simulation| (&plan.playable, Unrecorded { simulation, simulations }))
        })
        .collect();
    let bar = progress::bar(&args.output, Some(jobs.len() as u64), "simulating");
    let played = parallel::map(&jobs, args.parallel.jobs, |&(playable, unrecorded)| {
        let played = playable.play(unrecorded);
        bar.inc(1);
        played
    });
    bar.finish_and_clear();

    // From here on the answers are known.
    let answers = Answers::open(&args.dir)?;
    let mut played = played.into_iter();
    let mut judged: Vec<Judged> = Vec::new();
    for (&run, plan) in runs.iter().zip(plans) {
        let simulated = plan.and_then(|plan| {
            // All of them are taken even if the first is an error: the next run's come after them.
            let simulations: Vec<Result<Played, _>> = played.by_ref().take(plan.simulations).collect();
            Ok((plan, simulations.into_iter().collect::<Result<Vec<Played>, _>>()?))
        });
        judged.push(match simulated {
            Ok((plan, simulations)) => {
                let mut judged = judge(run, &plan.class, &tolerances, &simulations, &answers)?;
                judged.inputs = plan.playable.account().clone();
                if !run.is_of_balancing() {
                    let misses = answers.misses(answers.of(&run.id), &simulations[0])?;
                    let doubts = complete::doubts(&plan.playable, &answers, misses.as_ref())?;
                    judged.inputs.doubts.extend(doubts);
                }
                if args.first_difference {
                    judged.first_difference = first_difference(run, &plan.playable, &simulations, &answers)?;
                }
                judged
            }
            Err(reason) => Judged::not_played(run, &reason),
        });
    }
    for (run, field) in judged.iter().filter_map(|run| Some((&run.run, run.blank?))) {
        output::remark(&format!("{run}: its `{field}` is blank, so nothing of it can be compared"));
    }
    for run in judged.iter().filter(|run| !run.rows.is_empty() && !answers.of(&run.run).tells_of_accesses()) {
        let what = "neither `misses_file` nor `page_cache_stream`: only its counters are compared";
        output::remark(&format!("{}: {what}", run.run));
    }
    if args.output.is_data() {
        output::print_json(&judged)?;
    } else {
        output::print_text(&report::text(&judged, args.verbose))?;
    }
    let all = judged.len();
    let not_played = judged.iter().filter(|run| run.not_played.is_some()).count();
    if not_played > 0 {
        return Err(Failure::Input(anyhow::anyhow!("{not_played} of {all} runs can't be played")));
    }
    if judged.iter().all(|run| run.skipped.is_some()) {
        return Err(Failure::Input(anyhow::anyhow!("no run was played: each needs what is not modelled")));
    }
    let is_expected = |run: &Judged| args.expect_short.contains(&run.run);
    if let Some(run) = judged.iter().find(|run| run.skipped.is_some() && is_expected(run)) {
        return Err(Failure::Unexpected(anyhow::anyhow!("{} is not short: it is skipped", run.run)));
    }
    let short = judged.iter().filter(|run| run.falls_short() && !is_expected(run)).count();
    if short > 0 {
        return Err(Failure::Unexpected(anyhow::anyhow!("{short} of {all} runs fall short")));
    }
    if let Some(run) = judged.iter().find(|run| run.passes() && is_expected(run)) {
        return Err(Failure::Unexpected(anyhow::anyhow!("{} passes: it is not short any more", run.run)));
    }
    Ok(())
}

/// Where a run's median simulation and the kernel part, with the story of a page that it is about.
fn first_difference(
    run: &Run,
    playable: &Playable,
    played: &[Played],
    answers: &Answers,
) -> anyhow::Result<Option<Difference>> {
    if run.is_of_machine() {
        output::remark(&format!(
            "{}: --first-difference is of runs of a group; what a whole machine does is no single course of events",
            run.id
        ));
        return Ok(None);
    }
    let (simulation, median) = judge::median_of(played);
    let answer = answers.of(&run.id);
    let missed = answers.misses(answer, median)?;
    let missed = missed.map(|real| [judge::comparable_misses(median, Some(&real)), real]);
    let events = answers.reads(answer)?.filter(|_| !median.reads.is_empty());
    let of_stream = |stream: &[u32]| reads::of_stream(stream, &median.sequence);
    let both = match events {
        Some(real) => Some([median.reads.clone(), real]),
        None => answers.stream(answer)?.map(|real| [of_stream(&median.stream), of_stream(&real)]),
    };
    let reads = both.as_ref().map(|both| both.each_ref().map(Vec::as_slice));
    let Some(mut difference) = Difference::first(median, &run.objects, missed.as_ref(), reads) else {
        return Ok(None);
    };
    let unrecorded = Unrecorded { simulation, simulations: played.len() };
    let (object, page, access) = (difference.object, difference.explained, difference.access as u64);
    match playable.story(unrecorded, object, page, access) {
        Ok(story) => difference.story = story,
        Err(reason) => return Err(anyhow::anyhow!("{}: {reason}", run.id)),
    }
    Ok(Some(difference))
}

/// A folder within that has recordings of its own is a call of its own: other tolerances hold there.
fn tell_of_folders_within(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut within: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| outcomes::are_in(path) || Recording::is_in(path))
        .collect();
    within.sort();
    for path in within {
        let path = path.display();
        output::remark(&format!("{path} has recordings of its own: pageout validate {path}"));
    }
}

/// What is to be done with a run that can be played.
struct Plan<'a> {
    playable: Playable<'a>,
    class: Class,
    simulations: usize,
}

impl<'a> Plan<'a> {
    /// The class of a run that can't be played doesn't matter, so it is looked for last.
    fn new(
        recording: &Recording,
        run: &Run,
        playable: Playable<'a>,
        tolerances: &Tolerances,
        asked: Option<u16>,
    ) -> anyhow::Result<Result<Plan<'a>, Unplayable>> {
        let class = tolerances.class_of(recording, run)?;
        let simulations = match recording.simulations(run, &class) {
            1 => 1,
            simulations => asked.map_or(simulations, usize::from),
        };
        if run.is_of_balancing() {
            let reason = format!(
                "class `{}` has no limit on `promoted`, which memory tiering is judged by",
                class.name
            );
            let has_limits = class.limits.promoted.is_some() && class.limits.faults.is_some();
            return Ok(if has_limits {
                Ok(Plan { playable, class, simulations })
            } else {
                Err(Unplayable::Missing(vec![reason]))
            });
        }
        if run.is_of_machine() {
            // Without such limits there is nothing to judge a machine by.
            let reason = format!(
                "class `{}` has no limit on `shares`, which a whole machine is judged by",
                class.name
            );
            return Ok(class
                .limits
                .shares
                .map(|_| Plan { playable, class, simulations })
                .ok_or(Unplayable::Missing(vec![reason])));
        }
        // What comes into a cache that nothing is taken from doesn't depend on statistics.
        if class.limits.insertions.is_none() {
            recording.require_flushes(run, &class)?;
        }
        Ok(Ok(Plan { playable, class, simulations }))
    }
}
