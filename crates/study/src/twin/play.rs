//! Runs of the twin, with their figures compared with the recorded ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pageout_sim::scenario::Scenario;

use super::evidence::{INSERTIONS, Need};
use super::machine::{BEFORE_TASK, GROUP, TASK, TwinMachine};
use super::objects::Recorded;
use super::recording::Recording;
use crate::basis::{Verdict, verdict};
use crate::result::run_result::{RunResult, counter};
use crate::result::simulate;
use crate::result::variants::{Extent, Plan, Runs};
use crate::scenario::load::{self, Changes};
use crate::scenario::source::Source;
use crate::{Error, Watcher};

/// Pages that a CPU charges in one batch.
const FEW_PAGES: u64 = 64;
/// Number of reclaim calls for this number of pages.
const FEW_CALLS: u64 = 2;

/// The figures of a run or a recording.
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
    /// The duration. Unit: nanoseconds.
    pub runtime_ns: u64,
}

/// A figure that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name.
    pub name: &'static str,
    /// The name in JSON.
    pub key: &'static str,
    /// Reads the figure.
    pub of: fn(&Figures) -> u64,
    /// Sets the figure.
    pub set: fn(&mut Figures, u64),
    /// Smaller differences need no cause: a CPU charges in batches, and a call can begin a page earlier.
    pub few: u64,
}

impl Figures {
    /// The compared figures in the order of output; the last one is time.
    pub const NAMED: [Figure; 6] = [
        Figure {
            name: "pages brought in",
            key: "insertions",
            of: |of| of.insertions,
            set: |of, to| of.insertions = to,
            few: FEW_PAGES,
        },
        Figure {
            name: "accesses that missed",
            key: "misses",
            of: |of| of.misses,
            set: |of, to| of.misses = to,
            few: FEW_PAGES,
        },
        Figure {
            name: "refaults",
            key: "refaults",
            of: |of| of.refaults,
            set: |of, to| of.refaults = to,
            few: FEW_PAGES,
        },
        Figure {
            name: "calls of reclaim",
            key: "reclaim_calls",
            of: |of| of.reclaim_calls,
            set: |of, to| of.reclaim_calls = to,
            few: FEW_CALLS,
        },
        Figure {
            name: "pages reclaimed",
            key: "reclaimed",
            of: |of| of.reclaimed,
            set: |of, to| of.reclaimed = to,
            few: FEW_PAGES,
        },
        Figure {
            name: "time",
            key: "runtime_ns",
            of: |of| of.runtime_ns,
            set: |of, to| of.runtime_ns = to,
            few: 0,
        },
    ];

    /// The place of time among them.
    pub const TIME: usize = 5;

    /// The recorded figures in the order of [`Figures::NAMED`], with the missing needs of each missing figure.
    pub fn recorded(recording: &Recording) -> [Verdict<u64>; 6] {
        let sample = recording.manifest.recording.sample.max(1);
        let misses = |[insertions, read_misses, faults, ..]: [u64; 5]| {
            read_misses + faults.min(insertions.saturating_sub(read_misses))
        };
        let reads = Need::Events("mm_filemap_get_pages", |sums| sums.read_misses);
        let faults = Need::Events("mm_filemap_add_to_page_cache", |sums| sums.faults);
        let begins = Need::Events("mm_vmscan_memcg_reclaim_begin", |sums| sums.reclaim_calls);
        let ends = Need::Events("mm_vmscan_memcg_reclaim_end", |sums| sums.reclaimed);
        let refaults = Need::Counter("workingset_refault_file");
        [
            verdict(recording, [INSERTIONS], |[insertions]| insertions),
            verdict(recording, [INSERTIONS, reads, faults, Need::NoWrites, Need::ReadsOfOnePage], misses),
            verdict(recording, [refaults], |[refaults]| refaults / sample),
            verdict(recording, [begins], |[calls]| calls / sample),
            verdict(recording, [ends], |[reclaimed]| reclaimed / sample),
            verdict(recording, [Need::Duration], |[duration]| duration),
        ]
    }

    /// Those of a run of the twin. So many pages come in that are none of its load: `before` the recording, and `beside` its files.
    fn of(result: &RunResult, before: u64, beside: u64) -> Figures {
        let group = result.memcgs.iter().find(|group| group.path == GROUP);
        let of_group = |name: &str| group.map_or(0, |group| counter(&group.counters, name).max(0) as u64);
        let tasks = || result.tasks.iter().filter(|task| task.name.starts_with(TASK));
        let prior =
            result.tasks.iter().find(|task| task.name == BEFORE_TASK).map_or(0, |task| task.runtime_ns);
        let inserted = ["inserted", "inserted_tails"].map(|unit| counter(&result.work, unit).max(0) as u64);
        let inserted = inserted.iter().sum::<u64>();
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
    /// The minimum over the runs.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Interval {
    /// Returns the distance of a figure from `least` to `most`, as a share of that figure; `None` if they overlap.
    pub fn off(self, (least, most): (u64, u64)) -> Option<f64> {
        let (far, of) = match (least.checked_sub(self.most), self.least.checked_sub(most)) {
            (Some(below), _) if below > 0 => (below, least),
            (_, Some(above)) if above > 0 => (above, most),
            _ => return None,
        };
        Some(if of == 0 { f64::INFINITY } else { far as f64 / of as f64 })
    }
}

/// The result of a simulated machine.
#[derive(Clone, Debug)]
pub struct Played {
    /// With what else the group held on the mean; where chance decides, those of the run in the middle.
    pub figures: Figures,
    /// All runs: this one, and those that differ in what is not known.
    pub runs: Vec<Figures>,
    /// The run with all of programs' memory in swap, if it may be there: one end of what is not known, with `figures` the other.
    pub in_swap: Option<Figures>,
    /// The reason why it has none, if it has none.
    pub failed: Option<String>,
    /// Share of misses that may be more, as accesses are missing, in percent.
    pub up_to: u32,
    /// The least and the most by the error that other recordings have shown, if they have shown one for this kind of change.
    pub checked: Option<(Figures, Figures)>,
}

impl Played {
    /// A figure of it.
    pub fn interval(&self, of: fn(&Figures) -> u64) -> Interval {
        let all = || self.runs.iter().map(of);
        let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        let most = most + most * u64::from(self.up_to) / 100;
        let (checked_least, checked_most) =
            self.checked.as_ref().map_or((least, most), |(least, most)| (of(least), of(most)));
        Interval { value: of(&self.figures), least: least.min(checked_least), most: most.max(checked_most) }
    }
}

/// The run in the middle, by pages brought in.
fn middle(runs: &[Figures]) -> Option<Figures> {
    let mut sorted: Vec<&Figures> = runs.iter().collect();
    sorted.sort_by_key(|figures| figures.insertions);
    sorted.get(sorted.len() / 2).map(|figures| **figures)
}

/// A recording's traces and files in memory, for any number of runs.
#[derive(Debug)]
pub struct Prepared {
    folder: PathBuf,
    recorded: Arc<Recorded>,
}

impl Prepared {
    /// That of a recording. Errors: its traces can't be read.
    pub fn of(recording: &Recording) -> Result<Prepared, Error> {
        let folder = std::path::absolute(&recording.folder).unwrap_or_else(|_| recording.folder.clone());
        let recorded = Arc::new(Recorded::of(recording, &folder)?);
        Ok(Prepared { folder, recorded })
    }
}

/// Runs these machines, each also with what is not known of it. `up_to` of each: see [`Played::up_to`]. Errors: a machine makes no sense.
pub fn play(
    recording: &Recording,
    Prepared { folder, recorded }: &Prepared,
    machines: &[(TwinMachine, u32)],
    jobs: usize,
    watcher: &dyn Watcher,
) -> Result<(Vec<Played>, Extent), Error> {
    let held = recording.held();
    let scenario = |text: &str| -> Result<Scenario, Error> {
        let source = Source::parse(Path::new("the twin"), text.to_string())?;
        load::load(&source.with_recorded(Arc::clone(recorded)), &Changes::default(), &[], &())
    };
    // Equal scenarios run once.
    let mut texts: Vec<String> = Vec::new();
    let mut which: Vec<Vec<usize>> = Vec::new();
    for (machine, _) in machines {
        let of_machine = machine.spread(&held).into_iter().map(|machine| {
            let text = machine.scenario(recording, folder);
            texts.iter().position(|known| *known == text).unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            })
        });
        which.push(of_machine.collect());
    }
    // The first run reports errors that all runs have, and the number of accesses of each.
    let accesses = texts.first().map(|text| scenario(text)).transpose()?;
    let accesses = accesses.as_ref().and_then(simulate::accesses);
    let plan = Plan { name: "the twin".to_string(), repeat: 1, jobs, watcher };
    let made = plan.run_made(texts.len(), accesses, &|run| scenario(&texts[run]))?;
    let before = recording.before;
    let played = machines.iter().zip(which).map(|((machine, up_to), which)| {
        let beside = recording.moved() * u64::from(machine.readers);
        let runs = || which.iter().map(|&run| &made.variants[run]);
        let figures_of = |runs: &Runs| Some(Figures::of(runs.results.first()?, before, beside));
        let figures: Vec<Figures> = runs().filter_map(figures_of).collect();
        let failed = runs().flat_map(|runs| &runs.failures).map(|failure| failure.message.clone()).next();
        let failed = failed.or_else(|| figures.is_empty().then(|| "not run".to_string()));
        let value = if held.is_chancy { middle(&figures) } else { figures.first().copied() };
        let in_swap =
            (machine.swappable > 0 && figures.len() == which.len()).then(|| figures.last().copied());
        Played {
            figures: value.unwrap_or_default(),
            runs: figures,
            in_swap: in_swap.flatten(),
            failed,
            up_to: *up_to,
            checked: None,
        }
    });
    let played = played.collect();
    Ok((played, made.extent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_outside_an_interval_is_off_by_the_distance_to_it() {
        let interval = Interval { value: 100, least: 90, most: 110 };
        assert_eq!(interval.off((95, 95)), None);
        assert_eq!(interval.off((80, 90)), None);
        assert_eq!(interval.off((220, 230)), Some(0.5));
        assert_eq!(interval.off((40, 60)), Some(0.5));
        assert_eq!(interval.off((0, 0)), Some(f64::INFINITY));
    }
}
