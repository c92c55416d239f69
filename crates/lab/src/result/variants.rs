//! Variants of a scenario, each run with several seeds, all runs side by side: what `compare`, `ablate` and `crossover` share.
//!
//! Run number *n* of every variant has the same seed, so that figures can be compared run by run.

use anyhow::ensure;
use pageout_sim::scenario::{SEED_MAX, Scenario};

use crate::cli::OutputOptions;
use crate::failure::{Failure, Outcome};
use crate::print::progress;
use crate::result::parallel;
use crate::result::run_result::RunResult;
use crate::result::simulate::{accesses, simulate};
use crate::scenario::traces::Traces;

/// How often to run, how many at a time, and who watches.
pub(crate) struct Plan<'a> {
    /// What the bar is called.
    pub(crate) name: String,
    /// Seeds for each variant, counted up from the scenario's.
    pub(crate) repeat: u32,
    /// Runs at the same time; 0 is one a CPU.
    pub(crate) jobs: usize,
    pub(crate) output: &'a OutputOptions,
}

/// What came of one variant.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// The results of those that ended well, in order of their seeds; all of them if `failures` is empty.
    pub(crate) results: Vec<RunResult>,
    /// Why the others didn't, with their seeds.
    pub(crate) failures: Vec<Failure>,
}

impl Runs {
    /// The same, of a variant that is the same.
    fn again(&self) -> Runs {
        let failures = self.failures.iter().map(|failure| failure.told_as(failure.to_string()));
        Runs { results: self.results.clone(), failures: failures.collect() }
    }

    /// Its failures, saying whose they are.
    pub(crate) fn failures_of(&self, name: &str) -> Vec<Failure> {
        self.failures.iter().map(|failure| failure.told_as(format!("{name}: {failure}"))).collect()
    }
}

impl Plan<'_> {
    /// Runs all variants; the answer is in their order and depends on nothing else. Errors: there are not so many seeds.
    pub(crate) fn run(&self, variants: &[Scenario]) -> anyhow::Result<Vec<Runs>> {
        for &Scenario { seed, .. } in variants {
            ensure!(
                self.last_seed(seed) <= SEED_MAX,
                "--repeat {}: from seed {seed} it counts up past the largest, {SEED_MAX}; start with a smaller seed",
                self.repeat
            );
        }
        // What is the same is run once, such as two kernels whose difference no switch makes.
        let mut distinct: Vec<&Scenario> = Vec::new();
        let which: Vec<usize> = variants
            .iter()
            .map(|variant| {
                distinct.iter().position(|&other| other == variant).unwrap_or_else(|| {
                    distinct.push(variant);
                    distinct.len() - 1
                })
            })
            .collect();
        let mut runs: Vec<Scenario> = distinct
            .iter()
            .flat_map(|variant| (0..self.repeat).map(move |repeat| with_seed(variant, repeat)))
            .collect();
        if runs.len() > 1 {
            let traces = Traces::default();
            runs.iter_mut().for_each(|run| traces.keep(run, self.output));
        }
        let length = progress::is_seen(self.output).then(|| runs.iter().map(accesses).sum()).flatten();
        let bar = progress::bar(self.output, length, &format!("{}, {} runs", self.name, runs.len()));
        let results = parallel::map(&runs, self.jobs, |scenario| {
            simulate(scenario, &bar).map_err(|stopped| {
                let failure = Failure::from(stopped);
                failure.told_as(format!("seed {}: {failure}", scenario.seed))
            })
        });
        bar.finish_and_clear();
        let mut results = results.into_iter();
        let by_variant = distinct.iter().map(|_| {
            let mut runs = Runs::default();
            for result in results.by_ref().take(self.repeat as usize) {
                match result {
                    Ok(result) => runs.results.push(result),
                    Err(failure) => runs.failures.push(failure),
                }
            }
            runs
        });
        let by_variant: Vec<Runs> = by_variant.collect();
        Ok(which.into_iter().map(|index| by_variant[index].again()).collect())
    }

    /// The last of the seeds counted up from `first`. Two numbers of half the range have no sum beyond it.
    fn last_seed(&self, first: u64) -> u64 {
        first + u64::from(self.repeat) - 1
    }

    /// `seed 1`, or `seeds 1 to 5`.
    pub(crate) fn seeds(&self, first: u64) -> String {
        match self.repeat {
            1 => format!("seed {first}"),
            _ => format!("seeds {first} to {}", self.last_seed(first)),
        }
    }
}

fn with_seed(scenario: &Scenario, repeat: u32) -> Scenario {
    Scenario { seed: scenario.seed + u64::from(repeat), ..scenario.clone() }
}

/// Whether everything is there, after what there is was printed: of runs that failed standard error and the exit code tell.
pub(crate) fn verdict(failures: &[Failure], runs: usize) -> Outcome {
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::several(&format!("{} of {runs} runs failed", failures.len()), failures))
}
