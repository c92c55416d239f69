//! Runs of the twin, and their figures beside the recorded ones.

use std::path::Path;

use pageout_sim::scenario::Scenario;

use super::machine::{BEFORE_TASK, GROUP, Machine, TASK};
use super::recording::Recording;
use crate::result::run_result::{RunResult, counter};
use crate::result::variants::{Extent, Plan};
use crate::scenario::load::{self, Changes};
use crate::scenario::source::Source;
use crate::{Error, Watcher};

/// What a run, or a recording, comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pages of files that came into memory.
    pub insertions: u64,
    /// Accesses that found their page missing.
    pub misses: u64,
    /// Pages that came back and were known.
    pub refaults: u64,
    /// Calls of reclaim at the limit.
    pub reclaim_calls: u64,
    /// Pages that these freed.
    pub reclaimed: u64,
    /// How long it took, in nanoseconds.
    pub runtime_ns: u64,
}

/// A figure by name, with how it is taken. Those that a recording may lack have no value there.
type Named = (&'static str, fn(&Figures) -> u64);

impl Figures {
    /// Figures that are compared, in the order in which they are told.
    pub const NAMED: [Named; 5] = [
        ("pages brought in", |of| of.insertions),
        ("accesses that missed", |of| of.misses),
        ("refaults", |of| of.refaults),
        ("calls of reclaim", |of| of.reclaim_calls),
        ("pages reclaimed", |of| of.reclaimed),
    ];

    /// The recorded ones, in the order of [`Figures::NAMED`]; what was not recorded is none.
    pub fn recorded(recording: &Recording) -> [Option<u64>; 5] {
        let sums = &recording.manifest.sums;
        let has = |event: &str| recording.manifest.source.events.iter().any(|name| name.ends_with(event));
        let events = has("mm_filemap_add_to_page_cache");
        let sample = recording.manifest.recording.sample;
        let reclaim = has("mm_vmscan_memcg_reclaim_begin");
        let has_reads = has("mm_filemap_get_pages") && events;
        [
            events.then_some(sums.insertions),
            // Which writes found their page in memory is not told.
            (has_reads && sums.pages_written == 0).then_some(
                sums.read_misses + sums.faults.min(sums.insertions.saturating_sub(sums.read_misses)),
            ),
            recording.rose("workingset_refault_file").map(|refaults| refaults / sample),
            reclaim.then_some(sums.reclaim_calls / sample),
            reclaim.then_some(sums.reclaimed / sample),
        ]
    }

    /// Those of a run of the twin. So many pages come in that are none of its load: `before` the recording, and `beside` its files.
    fn of(result: &RunResult, before: u64, beside: u64) -> Figures {
        let group = result.memcgs.iter().find(|group| group.path == GROUP);
        let of_group = |name: &str| group.map_or(0, |group| counter(&group.counters, name).max(0) as u64);
        let tasks = || result.tasks.iter().filter(|task| task.name.starts_with(TASK));
        let prior =
            result.tasks.iter().find(|task| task.name == BEFORE_TASK).map_or(0, |task| task.runtime_ns);
        let inserted = counter(&result.work, "inserted").max(0) as u64;
        Figures {
            insertions: inserted.saturating_sub(before + beside),
            misses: tasks().map(|task| task.major + task.read_misses).sum::<u64>().saturating_sub(beside),
            refaults: of_group("workingset_refault_file"),
            reclaim_calls: group.map_or(0, |group| group.reclaim.count),
            reclaimed: of_group("pgsteal"),
            runtime_ns: result.end_ns.saturating_sub(prior),
        }
    }
}

/// A figure with what it may be instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// By what is known, on the mean.
    pub value: u64,
    /// The least that it came to.
    pub least: u64,
    /// The most.
    pub most: u64,
}

/// What a machine came to.
#[derive(Clone, Debug)]
pub struct Played {
    /// With what else the group held on the mean; where chance decides, those of the run in the middle.
    pub figures: Figures,
    /// All runs: this one, and those that differ in what is not known.
    pub runs: Vec<Figures>,
    /// Why it has none, if it has none.
    pub failed: Option<String>,
    /// Share of misses that may be more, as accesses are missing, in percent.
    pub up_to: u32,
}

impl Played {
    /// A figure of it.
    pub fn interval(&self, of: fn(&Figures) -> u64) -> Interval {
        let all = || self.runs.iter().map(of);
        let most = all().max().unwrap_or(0);
        Interval {
            value: of(&self.figures),
            least: all().min().unwrap_or(0),
            most: most + most * u64::from(self.up_to) / 100,
        }
    }
}

/// The run in the middle, by pages brought in.
fn middle(runs: &[Figures]) -> Option<Figures> {
    let mut sorted: Vec<&Figures> = runs.iter().collect();
    sorted.sort_by_key(|figures| figures.insertions);
    sorted.get(sorted.len() / 2).map(|figures| **figures)
}

/// Runs these machines, each also with what is not known of it. `up_to` of each: see [`Played::up_to`]. Errors: a machine makes no sense.
pub fn play(
    recording: &Recording,
    machines: &[(Machine, u32)],
    jobs: usize,
    watcher: &dyn Watcher,
) -> Result<(Vec<Played>, Extent), Error> {
    let held = recording.held();
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut counts = Vec::new();
    for (machine, _) in machines {
        let mut spread = machine.spread(&held);
        spread.dedup();
        counts.push(spread.len());
        for machine in spread {
            scenarios.push(load(recording, &machine, watcher)?);
        }
    }
    let plan = Plan { name: "the twin".to_string(), repeat: 1, jobs, watcher };
    let made = plan.run(&scenarios)?;
    let mut variants = made.variants.into_iter();
    let before = recording.before;
    let played = machines.iter().zip(counts).map(|((machine, up_to), count)| {
        let beside = recording.moved() * u64::from(machine.readers);
        let runs: Vec<_> = variants.by_ref().take(count).collect();
        let figures: Vec<Figures> = runs
            .iter()
            .flat_map(|runs| &runs.results)
            .map(|result| Figures::of(result, before, beside))
            .collect();
        let failed =
            runs.iter().flat_map(|runs| &runs.failures).map(|failure| failure.message.clone()).next();
        let failed = failed.or_else(|| figures.is_empty().then(|| "not run".to_string()));
        let value = if held.is_chancy { middle(&figures) } else { figures.first().copied() };
        Played { figures: value.unwrap_or_default(), runs: figures, failed, up_to: *up_to }
    });
    let played = played.collect();
    Ok((played, made.extent))
}

/// The scenario of a machine, with the traces of the recording.
fn load(recording: &Recording, machine: &Machine, watcher: &dyn Watcher) -> Result<Scenario, Error> {
    let folder = std::path::absolute(&recording.folder).unwrap_or_else(|_| recording.folder.clone());
    let text = machine.scenario(recording, &folder);
    let source = Source::parse(Path::new("the twin"), text)?;
    load::load(&source, &Changes::default(), &[], watcher)
}
