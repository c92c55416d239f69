//! What is read ahead, in words and figures, and the bound beside a policy that reads ahead.
//!
//! OPT is a bound of policies that read what is asked for. One that reads ahead can miss less, and a figure below the bound looks like a
//! mistake or a feat. So the bound stands beside, and what is below it is told with the reason.

use std::fmt::Write;

use pageout_cache::Choice;
use pageout_sim::scenario::{Device, Table};
use pageout_study::Watcher;
use pageout_study::bench::{Cell, Policy, Question, Trace};
use pageout_workload::ReadOptions;
use pageout_workload::trace::Loaded;

use super::has_neighbours;
use super::setup::Setup;
use crate::commands::replay::args::{ChannelArg, ReplayArgs, SwapArg};
use crate::print::figures;
use crate::print::output;
use crate::print::progress::{Terminal, name_of};

/// The bound at a size.
pub(super) struct Bound {
    pub(super) miss_ratio: f64,
    /// It is from samples, and may be off by this.
    spread: Option<f64>,
}

impl Bound {
    /// Of a cell, where so many accesses count.
    fn of(cell: Cell, counted: u64) -> Option<Bound> {
        match cell {
            Cell::Misses(misses) => Some(Bound { miss_ratio: figures::share(misses, counted), spread: None }),
            Cell::Estimate(of) => {
                Some(Bound { miss_ratio: of.mean, spread: Some((of.most - of.least) / 2.0) })
            }
            _ => None,
        }
    }

    pub(super) fn shown(&self) -> String {
        match self.spread {
            None => format!("{:.4}", self.miss_ratio),
            Some(spread) => format!("~{:.4} ±{spread:.4}", self.miss_ratio),
        }
    }

    /// Whether a miss ratio is below it.
    pub(super) fn is_above(&self, miss_ratio: f64) -> bool {
        // An estimate may be off by its spread.
        is_below(miss_ratio, self.miss_ratio - self.spread.unwrap_or(0.0))
    }
}

/// Whether a miss ratio is below a bound's.
pub(in crate::commands) fn is_below(miss_ratio: f64, bound: f64) -> bool {
    miss_ratio < bound - 1e-12
}

/// A figure below the bound.
pub(super) struct Below {
    pub(super) policy: String,
    pub(super) memory: String,
    pub(super) miss_ratio: f64,
    pub(super) bound: f64,
}

/// Whether policies of the machine read ahead: files, or swap.
fn reads_ahead(args: &ReplayArgs, has_neighbours: bool) -> bool {
    let has_device = args.channel != ChannelArg::Anonymous || args.swap != SwapArg::None;
    has_device && args.window_kb(has_neighbours) > 0
}

/// What is read ahead, as a table has it.
pub(super) fn shown(args: &ReplayArgs, has_neighbours: bool) -> String {
    match args.window_kb(has_neighbours) {
        _ if args.channel == ChannelArg::Anonymous && args.swap == SwapArg::None => "-".to_string(),
        0 => "off".to_string(),
        _ if args.channel == ChannelArg::Anonymous => "8 pages".to_string(),
        kib => figures::bytes(u64::from(kib) << 10),
    }
}

/// A line on what is read ahead, and how to have it otherwise.
pub(super) fn line(args: &ReplayArgs, has_neighbours: bool) -> String {
    let is_anonymous = args.channel == ChannelArg::Anonymous;
    let why = match (args.read_ahead_kb, has_neighbours) {
        (None, false) => {
            "the trace is of opaque ids, which have no neighbours; --read-ahead-kb 128 reads ahead as Linux does"
        }
        _ => "--read-ahead-kb 0",
    };
    match args.window_kb(has_neighbours) {
        _ if is_anonymous && args.swap == SwapArg::None => String::new(),
        0 if is_anonymous => format!("swap is read a page at a time ({why})\n"),
        0 => format!("nothing is read ahead ({why})\n"),
        _ if is_anonymous => {
            "swap is read ahead as in a scenario (vm.page-cluster = 3); --read-ahead-kb 0: a page at a time\n"
                .to_string()
        }
        kib => format!(
            "files are read ahead up to {}{}{}; --read-ahead-kb 0: not at all\n",
            figures::bytes(u64::from(kib) << 10),
            if kib == Device::READ_AHEAD_KB { ", as in a scenario" } else { "" },
            if has_neighbours {
                ""
            } else {
                ", across opaque ids, whose neighbours are what is asked for next"
            },
        ),
    }
}

/// The policies, with the bound behind them where one of the machine reads ahead and no bound is among them.
pub(super) fn with_bound(
    args: &ReplayArgs,
    read: &Table,
    mut policies: Vec<Policy>,
) -> anyhow::Result<Vec<Policy>> {
    let has_machine = policies.iter().any(|policy| policy.textbook().is_none());
    let is_asked = args.print_scenario || args.sample.is_some() || args.warm_up.is_some();
    if !has_machine || is_asked || policies.iter().any(Policy::is_bound) {
        return Ok(policies);
    }
    for trace in &args.traces {
        // What can't be read is told where it is read.
        if reads_ahead(args, has_neighbours(trace, read).unwrap_or(false)) {
            policies.push(Policy::Textbook(bound()));
            break;
        }
    }
    Ok(policies)
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
    terminal: &Terminal,
) -> anyhow::Result<Option<Vec<Option<Bound>>>> {
    let Setup { args, trace: path, has_neighbours, .. } = setup;
    if !reads_ahead(args, has_neighbours) || terminal.stop().is_some() {
        return Ok(None);
    }
    let trace = match Trace::of(path, options, loaded, args.trace_memory.0)? {
        Some(trace) => Some(trace),
        None => Trace::load(path, options, args.trace_memory.0, terminal)?,
    };
    let Some(trace) = trace else { return Ok(None) };
    let in_pages = |pages: u64| pages.min(trace.distinct_pages.into()) as u32;
    let mut rising: Vec<u32> = sizes.iter().map(|pages| in_pages(*pages)).collect();
    rising.sort_unstable();
    rising.dedup();
    let question = Question {
        name: format!("{}, opt", name_of(path)),
        policies: &[bound()],
        sizes: &rising,
        warm_up: 0,
        seed: args.seed,
        jobs: args.parallel.jobs,
        watcher: terminal,
    };
    let mut answer = question.exactly(&trace)?;
    question.sample_bounds(&trace, args.trace_memory.0, &mut answer)?;
    let of = |pages: &u64| {
        let at = rising.binary_search(&in_pages(*pages)).expect("each size is among them");
        Bound::of(answer.cells[0][at], trace.accesses)
    };
    Ok(Some(sizes.iter().map(of).collect()))
}

/// What is below the bound, and why: in words, behind the table.
pub(super) fn below(below: &[Below], window_kb: u32) -> String {
    let Some(first) = below.first() else { return String::new() };
    let mut says = format!(
        "{} is below the bound at {}: {:.4}, and opt has {:.4}.",
        first.policy, first.memory, first.miss_ratio, first.bound
    );
    if below.len() > 1 {
        let more = figures::counted(below.len() as u64 - 1, "other figure");
        let _ = write!(says, " {more} {} below it, too.", if below.len() == 2 { "is" } else { "are" });
    }
    let _ = write!(
        says,
        " opt is a bound of policies that read only what is asked for, and {}. --read-ahead-kb 0 compares like with like.",
        match window_kb {
            0 => "this one reads more than that".to_string(),
            kib => format!("this one reads ahead, up to {}", figures::bytes(u64::from(kib) << 10)),
        }
    );
    format!("\n{}", output::wrap(&says, output::width(), ""))
}
