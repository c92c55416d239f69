//! The bound next to a policy that reads ahead.
//!
//! OPT is a lower bound for policies that read only requested pages. A policy that reads ahead can miss less, and its figure below the
//! bound looks like a mistake. The table therefore shows the bound next to it, and a figure below the bound is reported with the reason.

use pageout_cache::Choice;
use pageout_workload::ReadOptions;
use pageout_workload::trace::Loaded;

use super::ask::Ask;
use super::reading::has_neighbours;
use super::setup::Setup;
use crate::bench::{Cell, Policy, Question, Trace};
use crate::error::Error;
use crate::figures;
use crate::watch::{Watcher, name_of};

/// The bound at a size.
#[derive(Debug, Clone)]
pub struct Bound {
    /// Misses of OPT as a share of the accesses.
    pub miss_ratio: f64,
    /// Half of the spread over samples, if the ratio is estimated.
    pub spread: Option<f64>,
}

impl Bound {
    /// The text of a cell with N counted accesses.
    fn of(cell: Cell, counted: u64) -> Option<Bound> {
        match cell {
            Cell::Misses(misses) => Some(Bound { miss_ratio: figures::share(misses, counted), spread: None }),
            Cell::Estimate(of) => {
                Some(Bound { miss_ratio: of.mean, spread: Some((of.most - of.least) / 2.0) })
            }
            _ => None,
        }
    }

    /// Returns true if a miss ratio is below it.
    pub(super) fn is_above(&self, miss_ratio: f64) -> bool {
        // An estimate may be off by its spread.
        is_below(miss_ratio, self.miss_ratio - self.spread.unwrap_or(0.0))
    }
}

/// Returns true if a miss ratio is below a bound's.
pub(crate) fn is_below(miss_ratio: f64, bound: f64) -> bool {
    miss_ratio < bound - 1e-12
}

/// A figure below the bound.
#[derive(Debug)]
pub struct Below {
    /// The policy, as it was asked for.
    pub policy: String,
    /// The memory, in pages.
    pub pages: u64,
    /// Its miss ratio.
    pub miss_ratio: f64,
    /// That of OPT.
    pub bound: f64,
}

/// The policies, with the bound behind them where one of the machine reads ahead and no bound is among them.
pub(super) fn with_bound(ask: &Ask, mut policies: Vec<Policy>) -> Vec<Policy> {
    let has_machine = policies.iter().any(|policy| policy.textbook().is_none());
    let is_asked = ask.print_scenario || ask.sample.is_some() || ask.warm_up.is_some();
    if !has_machine || is_asked || policies.iter().any(Policy::is_bound) {
        return policies;
    }
    // The reader of the trace reports its errors.
    let reads_ahead = |trace| ask.reads_ahead(has_neighbours(ask, trace).unwrap_or(false));
    if ask.traces.iter().any(|trace| reads_ahead(trace)) {
        policies.push(Policy::Textbook(bound()));
    }
    policies
}

fn bound() -> Choice {
    "opt".parse().expect("it is a policy")
}

/// The bound at each size, where the policy of the machine reads ahead.
pub(super) fn bounds(
    setup: Setup,
    loaded: &Loaded,
    options: &ReadOptions,
    sizes: &[u64],
    watcher: &dyn Watcher,
) -> Result<Option<Vec<Option<Bound>>>, Error> {
    let Setup { ask, trace: path, has_neighbours, .. } = setup;
    if !ask.reads_ahead(has_neighbours) || watcher.stop().is_some() {
        return Ok(None);
    }
    let trace = match Trace::of(path, options, loaded, ask.trace_memory.0)? {
        Some(trace) => Some(trace),
        None => Trace::load(path, options, ask.trace_memory.0, watcher)?,
    };
    let Some(trace) = trace else { return Ok(None) };
    let rising = trace.rising(sizes.iter().copied());
    let question = Question {
        name: format!("{}, opt", name_of(path)),
        policies: &[bound()],
        sizes: &rising,
        warm_up: 0,
        seed: ask.seed,
        jobs: ask.jobs,
        watcher,
    };
    let mut answer = question.exactly(&trace)?;
    question.sample_bounds(&trace, ask.trace_memory.0, &mut answer)?;
    let of = |pages: &u64| Bound::of(answer.cells[0][trace.place(*pages, &rising)], trace.accesses);
    Ok(Some(sizes.iter().map(of).collect()))
}
