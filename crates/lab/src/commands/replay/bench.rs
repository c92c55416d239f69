//! `pageout replay` with textbook policies, or with several policies or traces: one table a trace, policies by sizes.

mod estimate; // what takes long is estimated first
mod print; // as text and JSON
mod picture; // as a page

use std::path::Path;

use pageout_cache::curve::sampling::SALTS;
use pageout_sim::scenario::Table;
use pageout_sim::scenario::keys::Limit;
use pageout_study::bench::{Cell, NotSampled, Policy, Question, SampledFrom, Trace};
use pageout_study::result::variants::Plan;
use pageout_study::{Error, Failed, Watcher};
use pageout_workload::trace::Interpretation;
use serde_json::Value;

use super::{Accesses, Figures, PAGES_MIN, Point, Setup, check, pages};
use crate::commands::replay::args::ReplayArgs;
use crate::commands::trace::remark_interpretation;
use crate::failure::{Failure, Outcome};
use crate::print::progress::{Terminal, name_of};
use crate::print::{figures, output, signals};

/// Everything that was found out.
struct Bench<'a> {
    args: &'a ReplayArgs,
    policies: &'a [Policy],
    traces: Vec<OfTrace>,
    /// How an interruption is told, if one came.
    interrupted: Option<String>,
}

/// What was found out of a trace.
struct OfTrace {
    interpretation: Interpretation,
    trace: Trace,
    /// Accesses at its start that were not counted.
    warm_up: u64,
    /// As they were asked for, in pages.
    sizes: Vec<(Limit, u64)>,
    /// By policy, by size.
    cells: Vec<Vec<Shown>>,
    /// What misses were estimated from, if any were.
    sampled: Option<SampledFrom>,
    /// Whether the numbers of its pages are places.
    has_neighbours: bool,
}

impl OfTrace {
    /// Figures of policies of the machine that are below a bound.
    fn below(&self, policies: &[Policy]) -> Vec<super::readahead::Below> {
        let bound = policies.iter().position(Policy::is_bound);
        let Some(bounds) = bound.map(|at| &self.cells[at]) else { return Vec::new() };
        let mut below = Vec::new();
        for (policy, cells) in policies.iter().zip(&self.cells).filter(|(policy, _)| !policy.is_bound()) {
            for ((size, cell), bound_cell) in self.sizes.iter().zip(cells).zip(bounds) {
                // The bound is of all accesses, and may be an estimate.
                let is_whole =
                    cell.is_whole() && bound_cell.is_whole() && self.warm_up == 0 && cell.spread.is_none();
                let Some((miss_ratio, bound)) =
                    cell.miss_ratio.zip(bound_cell.miss_ratio).filter(|_| is_whole)
                else {
                    continue;
                };
                let least = bound_cell.spread.map_or(bound, |(least, _)| least);
                if super::readahead::is_below(miss_ratio, least) {
                    let memory = figures::bytes(size.1 * 4096);
                    below.push(super::readahead::Below { policy: policy.name(), memory, miss_ratio, bound });
                }
            }
        }
        below
    }
}

/// A row for each textbook policy, and what estimates among them were made from.
type ByBook = (std::vec::IntoIter<Vec<Shown>>, Option<SampledFrom>);

/// A cell of the table.
#[derive(Default)]
struct Shown {
    miss_ratio: Option<f64>,
    misses: Option<u64>,
    /// The least and the largest miss ratio of the samples.
    spread: Option<(f64, f64)>,
    /// What only a machine can tell.
    machine: Option<Figures>,
    /// Why there is no figure, or of how much of the trace it is.
    missing: Option<String>,
    /// An interruption came before the end: it is of so many accesses.
    partial_accesses: Option<u64>,
    /// What the policy tells of itself.
    own: Vec<(String, f64)>,
}

impl Shown {
    /// A cell, where so many accesses count.
    fn of(cell: Cell, counted: u64) -> Shown {
        let missing = |why: &str| Shown { missing: Some(why.to_string()), ..Shown::default() };
        match cell {
            Cell::Misses(misses) => Shown {
                miss_ratio: Some(misses as f64 / counted as f64),
                misses: Some(misses),
                ..Shown::default()
            },
            Cell::Partial { misses, accesses } => Shown {
                miss_ratio: Some(misses as f64 / accesses as f64),
                misses: Some(misses),
                missing: Some(figures::percent(figures::share(accesses, counted))),
                partial_accesses: Some(accesses),
                ..Shown::default()
            },
            Cell::Estimate(of) => {
                Shown { miss_ratio: Some(of.mean), spread: Some((of.least, of.most)), ..Shown::default() }
            }
            Cell::NotRun => missing(pageout_study::result::variants::NOT_RUN),
            Cell::NoRoom => missing("no room"),
            Cell::Broken => missing("failed"),
        }
    }

    /// Whether it is of all accesses that it was to be of.
    fn is_whole(&self) -> bool {
        self.miss_ratio.is_some() && self.partial_accesses.is_none()
    }
}

/// Simulates all of it.
pub(super) fn bench(args: &ReplayArgs, read: &Table, policies: &[Policy], limits: &[Limit]) -> Outcome {
    check_options(args, policies)?;
    let terminal = Terminal::new(&args.output);
    // Between two traces as well: a signal leaves what the others came to.
    let _listening = signals::listen();
    let mut bench = Bench { args, policies, traces: Vec::new(), interrupted: None };
    let mut failures: Vec<Failed> = Vec::new();
    for path in &args.traces {
        match bench.trace(path, read, limits, &terminal, &mut failures) {
            Ok(of_trace) => bench.traces.extend(of_trace),
            // The other traces have their figures.
            Err(error) if args.traces.len() > 1 => {
                failures.push(Failed { is_input: true, message: format!("{error:#}") });
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(signal) = terminal.stop() {
            let (whole, all) = (bench.cells().filter(|cell| cell.is_whole()).count(), bench.asked(limits));
            if whole < all {
                bench.interrupted = Some(format!("interrupted by {signal} after {whole} of {all} cells"));
            }
            break;
        }
    }
    let failure = bench.failure(&failures);
    if bench.cells().all(|cell| cell.miss_ratio.is_none())
        && let Some(failure) = failure
    {
        return output::no_result(&args.output, failure, Value::Null);
    }
    if let Some(path) = &args.page.report {
        picture::page(&bench).write(path)?;
    }
    match failure {
        Some(failure) if args.output.is_data() => {
            output::no_result(&args.output, failure, print::json(&bench))
        }
        None if args.output.is_data() => output::print_json(&print::json(&bench)),
        failure => output::print_text(&print::text(&bench)).and(failure.map_or(Ok(()), Err)),
    }
}

/// Refuses options that make no sense with these policies, and says what those say nothing to that do.
pub(super) fn check_options(args: &ReplayArgs, policies: &[Policy]) -> anyhow::Result<()> {
    let of_machine = policies.iter().find(|policy| policy.textbook().is_none());
    if args.print_scenario {
        let name = policies
            .iter()
            .find(|policy| policy.textbook().is_some())
            .map_or("a policy".to_string(), Policy::name);
        anyhow::bail!(
            "--print-scenario: {name} needs no machine, so there is no scenario; give one trace and one policy of the machine, such as \
             classic@6.12 or lru@machine"
        );
    }
    if let Some(policy) = of_machine {
        let name = policy.name();
        anyhow::ensure!(
            args.sample.is_none(),
            "--sample estimates textbook policies, and {name} runs in the machine: leave one of them out"
        );
        anyhow::ensure!(
            args.warm_up.is_none(),
            "--warm-up is for textbook policies, and {name} runs in the machine, whose counters begin at its start: leave one of them out"
        );
        return Ok(());
    }
    let idle = args.of_machine();
    if !idle.is_empty() {
        let also =
            policies.iter().map(Policy::name).find(|name| pageout_policy::Listed::by_name(name).is_some());
        let before = match also {
            Some(name) => format!(
                "; `{name}` as a list of the machine, which replay called so before, is `{name}@machine`"
            ),
            None => String::new(),
        };
        output::remark(&format!(
            "note: {} says nothing to textbook policies, which know no device and no time{before}",
            idle.join(", ")
        ));
    }
    Ok(())
}

impl<'a> Bench<'a> {
    fn cells(&self) -> impl Iterator<Item = &Shown> {
        self.traces.iter().flat_map(|of| of.cells.iter().flatten())
    }

    fn asked(&self, limits: &[Limit]) -> usize {
        self.args.traces.len() * self.policies.len() * limits.len()
    }

    fn failure(&self, failures: &[Failed]) -> Option<Failure> {
        let heading = format!("{} failed", pageout_study::figures::counted(failures.len() as u64, "run"));
        let failed = || Error::Runs { heading, failures: failures.to_vec() };
        match &self.interrupted {
            Some(told) if failures.is_empty() => Some(Error::Interrupted(told.clone()).into()),
            Some(told) => Some(Error::Interrupted(format!("{told}; {}", failed())).into()),
            None if failures.is_empty() => None,
            None => Some(failed().into()),
        }
    }

    fn trace(
        &self,
        path: &'a Path,
        read: &'a Table,
        limits: &[Limit],
        terminal: &Terminal,
        failures: &mut Vec<Failed>,
    ) -> anyhow::Result<Option<OfTrace>> {
        let args = self.args;
        let has_neighbours = super::has_neighbours(path, read)?;
        let setup = |profile: &'a str| Setup { args, trace: path, profile, read, has_neighbours };
        let options = setup("").object(Some(1)).read_options().map_err(|error| anyhow::anyhow!("{error}"))?;
        let interpretation =
            remark_interpretation(path, &options).map_err(|error| anyhow::anyhow!("{error}"))?;
        let has_machine = self.policies.iter().any(|policy| policy.textbook().is_none());
        let mut loaded = None;
        if has_machine {
            loaded = super::accesses(args, path, usize::MAX, &options, terminal)?;
            if loaded.is_none() {
                return Ok(None);
            }
        }
        let of_loaded = match &loaded {
            Some(of) => Trace::of(path, &options, &of.loaded, args.trace_memory.0)?,
            None => None,
        };
        let trace = match of_loaded {
            Some(trace) => trace,
            None => match Trace::load(path, &options, args.trace_memory.0, terminal)? {
                Some(trace) => trace,
                None => return Ok(None),
            },
        };
        anyhow::ensure!(trace.accesses > 0, "{} has no accesses to replay", path.display());
        super::remark_later(path, &interpretation, trace.requests.as_ref());
        let warm_up = args.warm_up.map_or(0, |warm_up| warm_up.of(trace.accesses));
        anyhow::ensure!(
            warm_up < trace.accesses,
            "--warm-up {warm_up}: {} has {} accesses, so none is left to count",
            path.display(),
            trace.accesses
        );
        let least = if has_machine && self.policies.len() == 1 { PAGES_MIN } else { 1 };
        let pages_of = |limit: &Limit| Ok((*limit, pages(*limit, trace.distinct_pages.into(), least)?));
        let sizes = limits.iter().map(pages_of).collect::<anyhow::Result<Vec<(Limit, u64)>>>()?;
        let by_book = self.textbook(&trace, &sizes, warm_up, terminal, failures)?;
        let Some((mut by_book, sampled)) = by_book else {
            return Ok(None);
        };
        let mut cells = Vec::new();
        for policy in self.policies {
            cells.push(match policy {
                Policy::Textbook(_) => by_book.next().expect("each has a row"),
                Policy::Machine { profile, .. } => {
                    let loaded = loaded.as_ref().expect("it was loaded for the machine");
                    self.machine(policy, setup(profile), loaded, &sizes, terminal, failures)?
                }
            });
        }
        Ok(Some(OfTrace { interpretation, trace, warm_up, sizes, cells, sampled, has_neighbours }))
    }

    /// A row for each textbook policy, in their order.
    fn textbook(
        &self,
        trace: &Trace,
        sizes: &[(Limit, u64)],
        warm_up: u64,
        terminal: &Terminal,
        failures: &mut Vec<Failed>,
    ) -> anyhow::Result<Option<ByBook>> {
        let args = self.args;
        let choices: Vec<_> = self.policies.iter().filter_map(Policy::textbook).cloned().collect();
        if choices.is_empty() {
            return Ok(Some((Vec::new().into_iter(), None)));
        }
        // What is larger than all pages holds all of them, as what is as large does.
        let in_pages = |pages: u64| pages.min(trace.distinct_pages.into()) as u32;
        let mut rising: Vec<u32> = sizes.iter().map(|(_, pages)| in_pages(*pages)).collect();
        rising.sort_unstable();
        rising.dedup();
        let question = Question {
            name: name_of(&trace.path),
            policies: &choices,
            sizes: &rising,
            warm_up,
            seed: args.seed,
            jobs: args.parallel.jobs,
            watcher: terminal,
        };
        let (answer, sampled) = match args.sample {
            Some(rate) => {
                let refused =
                    |refused| anyhow::anyhow!("--sample {rate}: {}: {refused}", trace.path.display());
                match question.sampled(trace, rate) {
                    Ok((answer, sampled)) => (answer, Some(sampled)),
                    Err(NotSampled::Refused(why)) => return Err(refused(why)),
                    Err(NotSampled::Trace(error)) => return Err(error.into()),
                    Err(NotSampled::Stopped) => return Ok(None),
                }
            }
            None => {
                if !args.exact {
                    estimate::first(args, trace, &question)?;
                }
                let mut answer = question.exactly(trace)?;
                let sampled = question.sample_bounds(trace, args.trace_memory.0, &mut answer)?;
                (answer, sampled)
            }
        };
        failures.extend(answer.broken.iter().map(|broken| {
            let memory = figures::counted(rising[broken.size].into(), "page");
            let (path, policy) = (trace.path.display(), &choices[broken.policy]);
            Failed {
                is_input: true,
                message: format!("{path}: policy {policy} in {memory}: {}", broken.fault),
            }
        }));
        let counted = trace.accesses - warm_up;
        let at = |pages: u64| rising.binary_search(&in_pages(pages)).expect("each size is among them");
        let shown = |pages: u64, policy: usize| {
            let size = at(pages);
            let of_cell = answer.figures.iter().filter(|of| of.policy == policy && of.size == size);
            let own = of_cell.map(|of| (of.name.clone(), of.value)).collect();
            Shown { own, ..Shown::of(answer.cells[policy][size], counted) }
        };
        let rows =
            (0..choices.len()).map(|policy| sizes.iter().map(|(_, pages)| shown(*pages, policy)).collect());
        Ok(Some((rows.collect::<Vec<_>>().into_iter(), sampled)))
    }

    /// The row of a policy of the machine. What is smaller than the machine can be has no figures.
    fn machine(
        &self,
        policy: &Policy,
        setup: Setup,
        accesses: &Accesses,
        sizes: &[(Limit, u64)],
        terminal: &Terminal,
        failures: &mut Vec<Failed>,
    ) -> anyhow::Result<Vec<Shown>> {
        let mut runs = Vec::new();
        let possible: Vec<&(Limit, u64)> = sizes.iter().filter(|(_, pages)| *pages >= PAGES_MIN).collect();
        for (_, pages) in &possible {
            let run = setup.replaying(accesses, *pages)?;
            check(&run.validate())?;
            runs.push(run);
        }
        let name = format!("{}, {}", name_of(setup.trace), policy.name());
        let plan = Plan { name, repeat: 1, jobs: self.args.parallel.jobs, watcher: terminal };
        let made = if runs.is_empty() { Vec::new() } else { plan.run(&runs)?.variants };
        let mut points = possible.into_iter().zip(made).map(|((limit, pages), runs)| Point {
            pages: *pages,
            limit: *limit,
            runs,
        });
        let shown = sizes.iter().map(|(_, pages)| {
            if *pages < PAGES_MIN {
                return Shown { missing: Some("-".to_string()), ..Shown::default() };
            }
            let point = points.next().expect("each size that is possible has a point");
            let whose = format!("{}: {}", setup.trace.display(), policy.name());
            failures.extend(point.failures(self.args).iter().map(|failure| failure.of(&whose)));
            match point.figures() {
                Some(of) => Shown {
                    miss_ratio: Some(of.miss_ratio),
                    misses: Some(of.misses),
                    own: of.own.clone(),
                    machine: Some(of),
                    ..Shown::default()
                },
                None => Shown { missing: Some(point.runs.missing()), ..Shown::default() },
            }
        });
        Ok(shown.collect())
    }
}

/// What its estimates are made of, in words.
fn told(sampled: &SampledFrom) -> String {
    format!(
        "~ estimated from {SALTS} samples of {}% of the pages each, {} at least; ± is half of the spread over them, and no bound",
        (sampled.rate * 100_000.0).round() / 1_000.0,
        pageout_study::figures::count(sampled.pages.into())
    )
}

impl ReplayArgs {
    /// Options given that concern the machine alone.
    fn of_machine(&self) -> Vec<&'static str> {
        use crate::commands::replay::args::{ChannelArg, SwapArg};
        let given = [
            ("--channel", self.channel != ChannelArg::File),
            ("--writes", self.writes),
            ("--device", self.device != "nvme"),
            ("--read-ahead-kb", self.read_ahead_kb.is_some()),
            ("--swap", self.swap != SwapArg::None),
            ("--think-time", self.think_time != "0s"),
            ("--timed", self.timed.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect()
    }
}
