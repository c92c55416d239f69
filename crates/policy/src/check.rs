//! The contract as a test: it reports an error of a policy with the call and the slot, and how to reproduce it.
//!
//! A policy runs over random steps: accesses, pages that disappear, that are pinned and spared, that are cold, and memory that is resized. At sizes
//! of one page, of two, of a few, and of all pages, it must
//! - nominate only pages in memory, once, not more than requested, and an evictable one;
//! - do the same in two runs, with uses reported one by one or in batches of 256, and as late as it permits ([`Uses`]);
//! - find no error in itself after any step;
//! - not panic;
//! - miss at least as often as the optimum: otherwise the host has an error.
//!
//! ```
//! use pageout_policy::{Sieve, check::check};
//!
//! check(&|_seed| Box::new(Sieve::default())).unwrap();
//! ```

mod best; // the least misses that are possible
#[cfg(test)]
mod mutants; // policies that are wrong, each in its own way
mod steps; // random steps

pub use best::least_misses;
pub use steps::{Random, Step, Trace};

use crate::{Cache, Fault, Policy, Telling, Uses, Wrong};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Traces of random steps, by number: a shorter one first.
const TRACES: u64 = 24;

/// A violation of the contract by a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The number of the trace, which [`Trace::new`] makes again.
    pub trace: u64,
    /// Initial capacity, in pages.
    pub capacity: u32,
    /// Its error.
    pub how: How,
}

/// An error of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// At this step of the trace, in this call.
    Fault {
        /// When it was notified of uses.
        telling: Telling,
        /// The number of the step, from 0.
        step: usize,
        /// The step.
        at: Step,
        /// The error.
        fault: Fault,
    },
    /// Two runs that must be equal differ.
    Differs {
        /// The only difference between the runs.
        by: Difference,
        /// Number of the first step after which other pages are in memory.
        step: usize,
    },
    /// It missed less often than the optimum.
    BeatsBest {
        /// Its misses.
        misses: usize,
        /// Minimum number of misses.
        least: usize,
    },
}

/// The difference between two runs that must be equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Difference {
    /// None: it is the second run.
    SecondRun,
    /// Uses are reported in batches of 256 instead of one by one.
    Batches,
    /// Uses are reported when the page is nominated, as [`Uses::Late`] allows.
    Late,
    /// Uses are not reported, as [`Uses::Never`] allows.
    Never,
}

/// Checks a policy that is made with a seed.
pub fn check(make: &dyn Fn(u64) -> Box<dyn Policy>) -> Result<(), Broken> {
    for number in 0..TRACES {
        let trace = Trace::new(number);
        for capacity in [1, 2, 7, trace.pages] {
            let broken = |how| Broken { trace: number, capacity, how };
            check_trace(make, &trace, number, capacity).map_err(broken)?;
        }
    }
    Ok(())
}

fn check_trace(
    make: &dyn Fn(u64) -> Box<dyn Policy>,
    trace: &Trace,
    seed: u64,
    capacity: u32,
) -> Result<(), How> {
    let one_by_one = Telling::Batches(1);
    let run = |telling| run(make(seed), trace, capacity, telling);
    let first = run(one_by_one)?;
    let uses = make(seed).uses();
    let others = [
        Some((Difference::SecondRun, one_by_one)),
        Some((Difference::Batches, Telling::Batches(256))),
        (uses == Uses::Late && trace.is_plain).then_some((Difference::Late, Telling::Late)),
        (uses == Uses::Never).then_some((Difference::Never, Telling::Never)),
    ];
    for (by, telling) in others.into_iter().flatten() {
        let other = run(telling)?;
        if let Some(step) = first.iter().zip(&other).position(|(one, other)| one != other) {
            return Err(How::Differs { by, step });
        }
    }
    if trace.is_plain {
        let misses = first.iter().filter(|after| !after.was_there).count();
        let accesses: Vec<u32> = trace.steps.iter().filter_map(Step::accessed).collect();
        let least = least_misses(&accesses, capacity as usize);
        if misses < least {
            return Err(How::BeatsBest { misses, least });
        }
    }
    Ok(())
}

/// The visible result of a step.
#[derive(PartialEq, Eq)]
struct After {
    was_there: bool,
    pages: Vec<u32>,
}

/// Runs a policy over a trace; returns which pages were in memory after each step.
fn run(policy: Box<dyn Policy>, trace: &Trace, capacity: u32, telling: Telling) -> Result<Vec<After>, How> {
    let mut cache = Cache::new(policy, capacity, telling);
    let mut seen = Vec::with_capacity(trace.steps.len());
    for (number, &step) in trace.steps.iter().enumerate() {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let was_there = take(&mut cache, step)?;
            cache.table().check()?;
            cache.table().policy().figures(&mut |_, _| ());
            Ok(was_there)
        }));
        let outcome = outcome.unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            Err(cache.table().fault(Wrong::Panicked(message.to_owned())))
        });
        match outcome {
            Ok(was_there) => seen.push(After { was_there, pages: cache.pages().collect() }),
            Err(fault) => return Err(How::Fault { telling, step: number, at: step, fault }),
        }
    }
    Ok(seen)
}

fn take(cache: &mut Cache, step: Step) -> Result<bool, Fault> {
    match step {
        Step::Access { page, write, want } => return cache.access(page, write, want),
        Step::Remove(page) => cache.remove(page),
        Step::Resize(capacity) => cache.resize(capacity)?,
        Step::Pin(page) => cache.pin(page),
        Step::Unpin(page) => cache.unpin(page),
        Step::Cold(page) => cache.cold(page),
    }
    Ok(true)
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace {}, room for {}: ", self.trace, self.capacity)?;
        match &self.how {
            How::Fault { telling, step, at, fault } => {
                write!(f, "step {step} ({at:?}; uses reported by {telling:?}): {fault}")
            }
            How::Differs { by, step } => {
                let by = match by {
                    Difference::SecondRun => "in a second run",
                    Difference::Batches => "if uses are reported in batches of 256 instead of one by one",
                    Difference::Late => "if uses are reported when their page is nominated, which it allows",
                    Difference::Never => "if no uses are reported, which it allows",
                };
                write!(f, "{by}, other pages are in memory from step {step} on")
            }
            How::BeatsBest { misses, least } => {
                write!(f, "{misses} misses, but the minimum of any policy is {least}: the host is wrong")
            }
        }
    }
}

impl std::error::Error for Broken {}
