//! Recorded outcomes: was the group killed, or did its program run to its end?
//!
//! A folder with `outcomes.json` instead of `ground-truth.json` has runs without counters: after a kill no process reads them. Several
//! simulations make different assumptions about unrecorded conditions (`play`). The outcome must be the recorded one in all of them. If the
//! program ran to its end, the major faults are compared as well. If it was killed and traced, the last reclaim calls before the kill that
//! scanned nothing are compared.
//!
//! As with the other recordings, inputs and answers are read apart. `README.md` of the folder describes the runs.

mod play; // a recorded run, played
mod trace; // the recorded calls of reclaim

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use pageout_engine::Nanos;
use pageout_study::result::parallel;
use pageout_study::{Stage, Watcher};
use pageout_workload::Access;
use serde::{Deserialize, Serialize};

use super::files::{read_compressed, read_json, read_runs, read_words};
use super::recording::select;
use super::validate::Ask;
use crate::error::Error;
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
    /// Another process reads the group's `memory.stat` with this period in seconds.
    stat_reader_s: Option<f64>,
    /// The time from the first access to the last, for a run that recorded it.
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

/// A run compared with its simulations.
#[derive(Debug, Serialize)]
pub struct Judged {
    /// The run, by its id.
    pub run: String,
    /// True if it was killed.
    pub killed: bool,
    /// In how many of the simulations it is.
    pub simulated_kills: usize,
    /// Simulations made of it.
    pub simulations: usize,
    /// Simulated time of the kills, the first and the last.
    pub killed_after_ns: Option<[u64; 2]>,
    /// Major faults of programs that ran to their end: recorded, and median of the simulations.
    pub major_faults: Option<[u64; 2]>,
    /// The last reclaim calls before a traced kill that scanned nothing: recorded, and simulated minimum and maximum.
    pub blind_calls: Option<[u64; 3]>,
    /// True if the outcome is the recorded one in all simulations, and the figures are near enough.
    pub passes: bool,
    /// Inputs that cannot be complete.
    pub doubts: Vec<String>,
}

impl Judged {
    /// Checks the sums that an outcome satisfies. Errors: the first one that is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Judged { run, killed, simulated_kills, simulations, .. } = self;
        if simulated_kills > simulations {
            return Err(format!(
                "{run}: found {simulated_kills} killed simulations, expected at most {simulations}"
            ));
        }
        if (*simulated_kills > 0) != self.killed_after_ns.is_some() {
            return Err(format!(
                "{run}: killed simulations without times, or times without killed simulations"
            ));
        }
        let as_recorded = if *killed { *simulations } else { 0 };
        match self.passes && *simulated_kills != as_recorded {
            true => {
                Err(format!("{run}: a passed run has {simulated_kills} kills in {simulations} simulations"))
            }
            false => Ok(()),
        }
    }
}

/// Returns true if a folder holds outcomes.
pub(crate) fn are_in(dir: &Path) -> bool {
    dir.join(FILE).exists()
}

/// Compares the outcomes recorded in a directory with simulated ones.
pub(crate) fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Vec<Judged>, Error> {
    let folder: Folder<Run> = read_runs(&ask.dir.join(FILE))?;
    let runs = select(&ask.dir, &folder.runs, |run| &run.id, &ask.runs)?;
    ask.check_expected(runs.iter().map(|run| run.id.as_str()))?;
    let mut plays = Vec::new();
    for &run in &runs {
        let play =
            play_of(&ask.dir, &folder, run).with_context(|| format!("{} cannot be simulated", run.id))?;
        plays.push(play);
    }
    let simulations = ask.simulations.map_or(SIMULATIONS, u64::from);
    let jobs: Vec<(&play::Play, u64)> =
        plays.iter().flat_map(|play| (0..simulations).map(move |simulation| (play, simulation))).collect();
    watcher.begin(&Stage::Playing { simulations: jobs.len() });
    let played = parallel::map(&jobs, ask.jobs, |&(play, simulation)| {
        let played = play.perform(simulation, simulations);
        watcher.advance(1);
        played
    });
    watcher.end();
    let played = played.into_iter().collect::<anyhow::Result<Vec<Played>>>()?;

    // From here on the answers are known.
    let answers: Folder<Answer> = read_json(&ask.dir.join(FILE))?;
    let mut judged = Vec::new();
    for (run, simulations) in runs.iter().zip(played.chunks(simulations as usize)) {
        let answer = answers.runs.iter().find(|answer| answer.id == run.id);
        judged.push(judge(&ask.dir, answer.expect("the same file has both"), simulations)?);
    }
    Ok(judged)
}

fn play_of(dir: &Path, folder: &Folder<Run>, run: &Run) -> anyhow::Result<play::Play> {
    let sequence: Vec<Access> = read_words(dir, &run.sequence)?;
    let clock = match (run.runtime_s, &run.ftrace) {
        (Some(seconds), _) => Clock::PerAccess(Nanos((seconds * 1e9 / sequence.len() as f64) as u64)),
        (None, Some(path)) => Clock::PerMiss(open_trace(dir, path)?.time_per_page()),
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
    let text =
        String::from_utf8(read_compressed(&path)?).with_context(|| format!("{}: damaged", path.display()))?;
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
        format!(
            "`ftrace` has {calls} reclaim calls, but `max` of `memory.events` counts {at_limit}: its \
            clock and its last calls cover a part of the run"
        )
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
