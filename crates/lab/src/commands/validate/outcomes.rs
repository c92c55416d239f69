//! Recorded outcomes: was the group killed, or did its program run to its end?
//!
//! A folder with `outcomes.json` instead of `ground-truth.json` holds runs without counters: when a run is killed, nobody is left
//! to read them. Several simulations make different assumptions about what was not recorded (`play`). The outcome must be the
//! recorded one in all of them. If the program ran to its end, the major faults are compared as well. If it was killed and
//! traced, the calls of reclaim before the kill that looked at nothing.
//!
//! As with the other recordings, inputs and answers are read apart. `README.md` of the folder describes the runs.

mod play; // a recorded run, played
mod trace; // the recorded calls of reclaim

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use pageout_engine::Nanos;
use pageout_study::result::parallel;
use pageout_workload::Access;
use serde::{Deserialize, Serialize};

use super::files::{read_compressed, read_json, read_runs, read_words};
use super::recording::select;
use crate::cli::ValidateArgs;
use crate::failure::{Failure, Outcome};
use crate::print::{figures, output, progress, table};
use play::{Clock, Ending, Played};
use trace::Trace;

const FILE: &str = "outcomes.json";

/// Simulations of a run, unless another number is asked for: phases of the statistics worker, spread evenly.
const SIMULATIONS: u64 = 16;

/// How far the median of the simulated major faults may be off, as a fraction: twice as far as the farthest of the first
/// recordings is.
const MAJOR_FAULTS: f64 = 0.005;

/// What was asked of the kernel.
#[derive(Debug, Deserialize)]
struct Run {
    id: String,
    /// The release, where it is not the folder's.
    kernel: Option<String>,
    policy: String,
    limit_pages: u64,
    swap: String,
    sequence: String,
    /// Somebody reads the group's `memory.stat` every so many seconds.
    stat_reader_s: Option<f64>,
    /// How long it took from the first access to the last: the clock of a run that tells.
    runtime_s: Option<f64>,
    /// The trace, which slowed the run: its clock.
    ftrace: Option<String>,
}

/// What it did.
#[derive(Debug, Deserialize)]
struct Answer {
    id: String,
    killed: bool,
    majflt: Option<u64>,
    ftrace: Option<String>,
    /// How often the group was at its limit (`max`), and other events of it.
    #[serde(rename = "memory.events", default)]
    events: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Folder<T> {
    kernel: String,
    objects: Vec<String>,
    runs: Vec<T>,
}

/// A run beside its simulations.
#[derive(Serialize)]
struct Judged {
    run: String,
    killed: bool,
    /// In how many of the simulations.
    simulated_kills: usize,
    simulations: usize,
    /// Simulated time of the kills, the first and the last.
    killed_after_ns: Option<[u64; 2]>,
    /// Major faults of programs that ran to their end: recorded, and median of the simulations.
    major_faults: Option<[u64; 2]>,
    /// The last calls of reclaim before a traced kill that looked at nothing: recorded, least and most simulated.
    blind_calls: Option<[u64; 3]>,
    passes: bool,
    /// What was recorded and can't be all that there was.
    doubts: Vec<String>,
}

/// Whether a folder holds outcomes.
pub(super) fn are_in(dir: &Path) -> bool {
    dir.join(FILE).exists()
}

/// Compares the outcomes recorded in a directory with simulated ones; fails if any differs.
pub(super) fn run(args: &ValidateArgs) -> Outcome {
    let folder: Folder<Run> = read_runs(&args.dir.join(FILE))?;
    let runs = select(&args.dir, &folder.runs, |run| &run.id, &args.run)?;
    if let Some(stranger) = args.expect_short.iter().find(|id| !runs.iter().any(|run| run.id == **id)) {
        let message = format!("--expect-short {stranger}: there is no such run among these");
        return Err(Failure::Input(anyhow::anyhow!(message)));
    }
    let mut plays = Vec::new();
    for &run in &runs {
        let play = play_of(args, &folder, run).with_context(|| format!("{} can't be played", run.id))?;
        plays.push(play);
    }
    let simulations = args.simulations.map_or(SIMULATIONS, u64::from);
    let jobs: Vec<(&play::Play, u64)> =
        plays.iter().flat_map(|play| (0..simulations).map(move |simulation| (play, simulation))).collect();
    let bar = progress::bar(&args.output, Some(jobs.len() as u64), "simulating");
    let played = parallel::map(&jobs, args.parallel.jobs, |&(play, simulation)| {
        let played = play.perform(simulation, simulations);
        bar.inc(1);
        played
    });
    bar.finish_and_clear();
    let played = played.into_iter().collect::<anyhow::Result<Vec<Played>>>()?;

    // From here on the answers are known.
    let answers: Folder<Answer> = read_json(&args.dir.join(FILE))?;
    let mut judged = Vec::new();
    for (run, simulations) in runs.iter().zip(played.chunks(simulations as usize)) {
        let answer = answers.runs.iter().find(|answer| answer.id == run.id);
        judged.push(judge(&args.dir, answer.expect("the same file has both"), simulations)?);
    }
    if args.output.is_data() {
        output::print_json(&judged)?;
    } else {
        output::print_text(&text(&judged))?;
    }
    let is_expected = |run: &Judged| args.expect_short.contains(&run.run);
    let short = judged.iter().filter(|run| !run.passes && !is_expected(run)).count();
    if short > 0 {
        return Err(Failure::Unexpected(anyhow::anyhow!("{short} of {} runs fall short", judged.len())));
    }
    match judged.iter().find(|run| run.passes && is_expected(run)) {
        Some(run) => {
            Err(Failure::Unexpected(anyhow::anyhow!("{} passes: it is not short any more", run.run)))
        }
        None => Ok(()),
    }
}

fn play_of(args: &ValidateArgs, folder: &Folder<Run>, run: &Run) -> anyhow::Result<play::Play> {
    let sequence: Vec<Access> = read_words(&args.dir, &run.sequence)?;
    let clock = match (run.runtime_s, &run.ftrace) {
        (Some(seconds), _) => Clock::PerAccess(Nanos((seconds * 1e9 / sequence.len() as f64) as u64)),
        (None, Some(path)) => Clock::PerMiss(open_trace(&args.dir, path)?.time_per_page()),
        (None, None) => Clock::PerMiss(play::MISS),
    };
    play::Play::new(play::Setting {
        kernel: run.kernel.as_deref().unwrap_or(&folder.kernel),
        policy: &run.policy,
        objects: &folder.objects,
        limit_pages: run.limit_pages,
        swap: &run.swap,
        stat_reader: run.stat_reader_s.map(|seconds| Nanos((seconds * 1e9) as u64)),
        clock,
        sequence,
    })
}

fn open_trace(dir: &Path, path: &str) -> anyhow::Result<Trace> {
    let path = dir.join(path);
    let text = String::from_utf8(read_compressed(&path)?)
        .with_context(|| format!("{} is damaged", path.display()))?;
    Trace::read(&text).with_context(|| format!("{} is malformed", path.display()))
}

fn judge(dir: &Path, answer: &Answer, simulations: &[Played]) -> anyhow::Result<Judged> {
    let mut kills: Vec<(Nanos, u64)> = Vec::new();
    let mut faults: Vec<u64> = Vec::new();
    for played in simulations {
        match played.ending {
            Ending::Killed { after, blind_calls } => kills.push((after, blind_calls)),
            Ending::Done => faults.push(played.major_faults),
        }
    }
    kills.sort_unstable();
    faults.sort_unstable();
    let blind = |of: fn(u64, u64) -> u64| kills.iter().map(|&(_, blind)| blind).reduce(of);
    let trace = answer.ftrace.as_ref().map(|path| open_trace(dir, path)).transpose()?;
    let blind_calls = match (&trace, blind(u64::min), blind(u64::max)) {
        (Some(trace), Some(least), Some(most)) => Some([trace.blind_calls(), least, most]),
        _ => None,
    };
    // Each time that the group is at its limit it is reclaimed from once.
    let at_limit = answer.events.get("max").copied();
    let calls = trace.map(|trace| trace.calls()).zip(at_limit).filter(|(calls, at_limit)| calls < at_limit);
    let lost = calls.map(|(calls, at_limit)| {
        format!("`ftrace` has {calls} calls of reclaim, and by `max` of `memory.events` there were {at_limit}: its clock and its last calls are of a part")
    });
    let major_faults = answer.majflt.zip(faults.get(faults.len() / 2)).map(|(real, &median)| [real, median]);
    let is_near = |[real, median]: [u64; 2]| real.abs_diff(median) as f64 <= MAJOR_FAULTS * real as f64;
    let agrees = if answer.killed { faults.is_empty() } else { kills.is_empty() };
    Ok(Judged {
        run: answer.id.clone(),
        killed: answer.killed,
        simulated_kills: kills.len(),
        simulations: simulations.len(),
        killed_after_ns: kills.first().zip(kills.last()).map(|(first, last)| [first.0.0, last.0.0]),
        major_faults,
        blind_calls,
        passes: agrees
            && major_faults.is_none_or(is_near)
            && blind_calls.is_none_or(|[real, least, most]| real == least && real == most),
        doubts: lost.into_iter().collect(),
    })
}

fn text(judged: &[Judged]) -> String {
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
    format!("{}{doubts}\n{passed} of {} outcomes as recorded\n", table::layout(&rows, 3), judged.len())
}
