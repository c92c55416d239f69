//! Variants of a scenario, each run with several seeds, all runs side by side.
//!
//! ```text
//!              seed 1   seed 2   seed 3        all variants run with the first seed, then all with the second, and so on:
//!   variant a  ■        ■        ▨             there is a result early, and an interruption (▨: the runs it ended) leaves whole columns
//!   variant b  ■        ■        ·             of pairs. The figures are of those seeds alone, here of two.
//!   variant c  ■        ■        ·
//! ```
//! Run number *n* of every variant has the same seed, so that figures can be compared run by run.

use std::fmt::Write;

use pageout_sim::scenario::{SEED_MAX, Scenario};
use serde_json::{Value, json};

use crate::error::{Error, Failed};
use crate::result::parallel;
use crate::result::run_result::RunResult;
use crate::result::simulate::{Stopped, accesses, simulate, simulate_untimed, simulate_with_trail};
use crate::scenario::traces::Traces;
use crate::{Stage, Watcher, figures};

/// The number of runs, how many run at a time, and the watcher.
pub struct Plan<'a> {
    /// The name for progress output.
    pub name: String,
    /// Seeds for each variant, counted up from the scenario's.
    pub repeat: u32,
    /// Runs at the same time; 0 is one a CPU.
    pub jobs: usize,
    /// The watcher, which can end the runs early.
    pub watcher: &'a dyn Watcher,
}

/// The results of a plan.
#[derive(Debug)]
pub struct Made {
    /// The runs of each variant, in their order.
    pub variants: Vec<Runs>,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
}

/// The results of one variant. A variant that was interrupted before its first run has neither results nor failures.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// The results of those that succeeded, in order of their seeds; all of them if `failures` is empty.
    pub results: Vec<RunResult>,
    /// The failures of the others, with their seeds if there are several.
    pub failures: Vec<Failed>,
}

impl Runs {
    /// Returns true if there are runs, and all of them succeeded: nothing else has a figure that can be compared.
    pub fn is_whole(&self) -> bool {
        self.failures.is_empty() && self.was_made()
    }

    /// Returns true if any run came to an end, good or bad.
    pub fn was_made(&self) -> bool {
        !(self.failures.is_empty() && self.results.is_empty())
    }

    /// How many came to an end.
    pub(crate) fn count(&self) -> usize {
        self.results.len() + self.failures.len()
    }

    /// Returns the text in place of missing figures.
    pub fn missing(&self) -> String {
        let all = self.failures.len() + self.results.len();
        match self.was_made() {
            true => format!("failed {} of {all}", self.failures.len()),
            false => NOT_RUN.to_string(),
        }
    }

    /// Its failures, saying whose they are.
    pub fn failures_of(&self, name: &str) -> Vec<Failed> {
        self.failures.iter().map(|failure| failure.of(name)).collect()
    }
}

/// The text in place of figures that an interruption prevented.
pub const NOT_RUN: &str = "not run";

/// The number of requested runs, and of those behind the figures: all, unless they were interrupted.
#[derive(Debug, Clone)]
pub struct Extent {
    /// Seeds that figures are over, the first ones.
    pub seeds: u32,
    /// Seeds asked for.
    pub repeat: u32,
    /// Runs asked for.
    runs: usize,
    interruption: Option<Interruption>,
}

#[derive(Debug, Clone)]
struct Interruption {
    by: &'static str,
    /// Runs that had come to their end.
    made: usize,
    /// True if every variant was run with the first seed.
    has_all: bool,
}

impl Extent {
    /// The extent of what was found out by two plans, one after the other.
    pub fn and(&self, next: &Extent) -> Extent {
        let both = [self, next];
        let first = both.iter().find_map(|extent| extent.interruption.as_ref());
        let interruption = first.map(|&Interruption { by, .. }| Interruption {
            by,
            made: both.iter().map(|extent| extent.made()).sum(),
            has_all: both.iter().all(|extent| extent.interruption.as_ref().is_none_or(|cut| cut.has_all)),
        });
        Extent {
            seeds: self.seeds.min(next.seeds),
            repeat: self.repeat,
            runs: self.runs + next.runs,
            interruption,
        }
    }

    /// Runs that came to their end.
    fn made(&self) -> usize {
        self.interruption.as_ref().map_or(self.runs, |interruption| interruption.made)
    }

    /// Returns true if so many runs are all that were asked for, unless it was interrupted.
    pub(crate) fn is_of(&self, runs: usize) -> bool {
        self.is_interrupted() || runs == self.runs
    }

    /// `seed 1`, or `seeds 1 to 5`, and how many it should have been.
    pub fn seeds_from(&self, first: u64) -> String {
        let mut text = match self.seeds {
            1 => format!("seed {first}"),
            seeds => format!("seeds {first} to {}", first + u64::from(seeds) - 1),
        };
        if self.seeds < self.repeat {
            let _ = write!(text, " of the {} asked for", figures::counted(self.repeat.into(), "seed"));
        }
        text
    }

    /// Returns true if it was interrupted before all was run.
    pub fn is_interrupted(&self) -> bool {
        self.interruption.is_some()
    }

    /// Returns the warning before the figures of an interrupted command; `None` if it was not interrupted.
    pub fn warning(&self) -> Option<String> {
        let Interruption { has_all, .. } = self.interruption.as_ref()?;
        let speaks_of = match (has_all, self.seeds) {
            (true, 1) => "the figures are of the one complete seed".to_string(),
            (true, seeds) => format!("the figures are of the {seeds} complete seeds"),
            (false, _) => "missing runs are marked, and no conclusion covers them".to_string(),
        };
        Some(format!("Not complete: {}; {speaks_of}.", self.interrupted()?))
    }

    /// `interrupted by SIGINT after 3 of 10 runs`; nothing where all was run.
    pub fn interrupted(&self) -> Option<String> {
        let Interruption { by, made, .. } = *self.interruption.as_ref()?;
        let [made, runs] = [made, self.runs].map(|runs| figures::count(runs as u64));
        Some(format!("interrupted by {by} after {made} of {runs} runs"))
    }

    /// Returns the JSON about seeds: their number, and of an interrupted command the number of runs.
    pub fn json(&self) -> Value {
        let mut json = json!({ "repeat": self.seeds });
        if let Some(Interruption { by, made, .. }) = self.interruption {
            json["interrupted"] = json!({
                "signal": by,
                "repeat_asked_for": self.repeat,
                "runs_made": made,
                "runs_asked_for": self.runs,
            });
        }
        json
    }

    /// Checks that all runs have results. Errors: the study was interrupted, or these runs failed.
    pub fn verdict(&self, failures: &[Failed]) -> Result<(), Error> {
        let heading = format!("{} of {} runs failed", failures.len(), self.made());
        let failed = Error::Runs { heading, failures: failures.to_vec() };
        match self.interrupted() {
            Some(told) if failures.is_empty() => Err(Error::Interrupted(told)),
            Some(told) => Err(Error::Interrupted(format!("{told}; {failed}"))),
            None if failures.is_empty() => Ok(()),
            None => Err(failed),
        }
    }

    /// Returns the reason why there is no result: an interruption, or `heading` with these failures.
    pub fn nothing(&self, heading: &str, failures: &[Failed]) -> Error {
        let failed = || Error::Runs { heading: heading.to_string(), failures: failures.to_vec() };
        match self.is_interrupted() {
            true => self.verdict(failures).err().unwrap_or_else(failed),
            false => failed(),
        }
    }
}

impl Plan<'_> {
    /// Runs all variants with the first seed, then with the second, and so on. The answer is in the order of the variants. Without an
    /// interruption it depends on nothing else. Errors: the seeds exceed the largest seed.
    pub fn run(&self, variants: &[Scenario]) -> Result<Made, Error> {
        self.run_each(variants, simulate)
    }

    /// Runs all variants likewise, without a clock if that is asked for. Errors: as [`Plan::run`].
    pub fn run_in(&self, variants: &[Scenario], is_untimed: bool) -> Result<Made, Error> {
        self.run_each(variants, if is_untimed { simulate_untimed } else { simulate })
    }

    /// Runs all variants likewise; each result has its trail.
    pub fn run_with_trails(&self, variants: &[Scenario]) -> Result<Made, Error> {
        self.run_each(variants, simulate_with_trail)
    }

    /// Runs as many scenarios with one seed each, and makes each where it is run, so that no more are in memory than run at the same time. Each
    /// makes so many accesses, if that is known. Errors: a scenario can't be made.
    pub fn run_made(
        &self,
        runs: usize,
        accesses: Option<u64>,
        make: &(dyn Fn(usize) -> Result<Scenario, Error> + Sync),
    ) -> Result<Made, Error> {
        let accesses = accesses.and_then(|each| each.checked_mul(runs as u64));
        self.watcher.begin(&Stage::Running { name: &self.name, runs, accesses });
        let results = parallel::map_while(runs, self.jobs, |run| {
            if self.watcher.stop().is_some() {
                return None;
            }
            match make(run) {
                Err(error) => Some(Err(error)),
                Ok(scenario) => match simulate(&scenario, self.watcher) {
                    Err(Stopped::Interrupted(..)) => None,
                    result => Some(Ok(result.map_err(|stopped| Failed::from(Error::from(stopped))))),
                },
            }
        });
        self.watcher.end();
        let made = results.len();
        let mut variants: Vec<Runs> = (0..runs).map(|_| Runs::default()).collect();
        for (run, result) in results {
            match result? {
                Ok(result) => variants[run].results.push(result),
                Err(failure) => variants[run].failures.push(failure),
            }
        }
        let by = self.watcher.stop().filter(|_| made < runs);
        let interruption = by.map(|by| Interruption { by, made, has_all: false });
        Ok(Made { variants, extent: Extent { seeds: 1, repeat: 1, runs, interruption } })
    }

    fn run_each(
        &self,
        variants: &[Scenario],
        simulate: fn(&Scenario, &dyn Watcher) -> Result<RunResult, Stopped>,
    ) -> Result<Made, Error> {
        if self.repeat == 0 {
            return Err(Error::asked("found 0 seeds, expected 1 or more"));
        }
        for &Scenario { seed, .. } in variants {
            if seed.saturating_add(u64::from(self.repeat) - 1) > SEED_MAX {
                return Err(Error::SeedsPastLargest { first: seed, repeat: self.repeat });
            }
        }
        // Equal scenarios run once, for example two kernels without a difference in switches.
        let mut firsts: Vec<usize> = Vec::new();
        let which: Vec<usize> = variants
            .iter()
            .enumerate()
            .map(|(index, variant)| {
                firsts.iter().position(|&first| variants[first] == *variant).unwrap_or_else(|| {
                    firsts.push(index);
                    firsts.len() - 1
                })
            })
            .collect();
        let mut distinct: Vec<Scenario> = firsts.iter().map(|&first| variants[first].clone()).collect();
        let mut shared_by = vec![0; distinct.len()];
        which.iter().for_each(|&index| shared_by[index] += 1);
        let runs = distinct.len() * self.repeat as usize;
        if runs > 1 {
            let traces = Traces::default();
            distinct.iter_mut().for_each(|scenario| traces.keep(scenario, self.watcher));
        }
        let accesses = || distinct.iter().map(accesses).sum::<Option<u64>>()?.checked_mul(self.repeat.into());
        let accesses = self.watcher.is_seen().then(accesses).flatten();
        self.watcher.begin(&Stage::Running { name: &self.name, runs, accesses });
        let mut results = parallel::map_while(runs, self.jobs, |run| {
            let scenario = with_seed(&distinct[run % distinct.len()], run / distinct.len());
            if self.watcher.stop().is_some() {
                return None;
            }
            match simulate(&scenario, self.watcher) {
                Err(Stopped::Interrupted(..)) => None,
                result => Some(result.map_err(|stopped| {
                    let failure = Failed::from(Error::from(stopped));
                    match self.repeat {
                        1 => failure,
                        _ => failure.of(&format!("seed {}", scenario.seed)),
                    }
                })),
            }
        });
        self.watcher.end();

        // With how many seeds everything was run. If with none, what was run with the first is all there is.
        let is_all = results.len() == runs;
        let made = results.iter().map(|(run, _)| shared_by[run % distinct.len()]).sum();
        let in_order = results.iter().enumerate().take_while(|(at, (run, _))| at == run).count();
        let whole = in_order / distinct.len().max(1);
        let seeds = if is_all { self.repeat } else { whole.max(1) as u32 };
        results.retain(|(run, _)| run / distinct.len() < seeds as usize);
        let mut by_variant: Vec<Runs> = distinct.iter().map(|_| Runs::default()).collect();
        for (run, result) in results {
            let runs = &mut by_variant[run % distinct.len()];
            match result {
                Ok(result) => runs.results.push(result),
                Err(failure) => runs.failures.push(failure),
            }
        }
        let interruption = self.watcher.stop().filter(|_| !is_all);
        let interruption = interruption.map(|by| Interruption { by, made, has_all: whole > 0 });
        let runs = variants.len() * self.repeat as usize;
        let variants = which.into_iter().map(|index| {
            shared_by[index] -= 1;
            // There may be very many results.
            if shared_by[index] == 0 {
                std::mem::take(&mut by_variant[index])
            } else {
                by_variant[index].clone()
            }
        });
        Ok(Made {
            variants: variants.collect(),
            extent: Extent { seeds, repeat: self.repeat, runs, interruption },
        })
    }
}

fn with_seed(scenario: &Scenario, repeat: usize) -> Scenario {
    Scenario { seed: scenario.seed + repeat as u64, ..scenario.clone() }
}
