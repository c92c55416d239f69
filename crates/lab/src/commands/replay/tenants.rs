//! `pageout replay` with `--by`: tenants of one memory. Each one's misses in the memory they share, its curve alone, and the split with the fewest misses.

mod print; // as text, JSON and a page

use std::path::Path;
use std::sync::Arc;

use pageout_sim::scenario::Table;
use pageout_sim::scenario::keys::Limit;
use pageout_sim::{Pace, scenario::Scenario};
use pageout_study::Watcher;
use pageout_study::bench::{NotShared, Policy, Question, Shares, Tenants, steps};
use pageout_study::result::run_result::TaskResult;
use pageout_study::result::variants::Plan;
use pageout_workload::trace::{Footprint, Interpretation, Loaded, Outlier, Part, Parted};
use serde_json::Value;

use super::bench::check_options;
use super::setup::{Accesses, Setup};
use super::{PAGES_MIN, check, pages};
use crate::commands::replay::args::ReplayArgs;
use crate::commands::trace::remark_interpretation;
use crate::failure::{Failure, Outcome};
use crate::print::progress::{Terminal, bar, name_of};
use crate::print::{figures, output, signals};

/// Parts of memory that tenants are given under a textbook policy, and under one of the machine, where each takes a run of it.
const PARTS: u32 = 100;
const MACHINE_PARTS: u32 = 16;

/// Everything that was found out.
struct Found<'a> {
    args: &'a ReplayArgs,
    /// The column, as it was asked for.
    by: &'a str,
    policies: &'a [Policy],
    traces: Vec<OfTrace>,
    /// How an interruption is told, if one came.
    interrupted: Option<String>,
}

/// What was found out of a trace.
struct OfTrace {
    interpretation: Interpretation,
    /// Whether the numbers of its pages are places.
    has_neighbours: bool,
    /// What its records say besides.
    requests: Option<pageout_workload::trace::Requests>,
    tenants: Tenants,
    names: Vec<String>,
    /// Accesses of each that don't count.
    warm_up: Vec<u64>,
    /// Whether different tenants access the same page.
    shares_pages: bool,
    /// By policy, by size.
    cells: Vec<Cell>,
}

/// A policy at a size.
struct Cell {
    policy: Policy,
    limit: Limit,
    pages: u64,
    /// Nothing if a signal came before.
    shares: Option<Shares>,
}

/// Simulates all of it.
pub(super) fn tenants(
    args: &ReplayArgs,
    by: &str,
    read: &Table,
    policies: &[Policy],
    limits: &[Limit],
) -> Outcome {
    let refused = [
        ("--sample", args.sample.is_some(), "tenants are told apart by each of their accesses"),
        (
            "--print-scenario",
            args.print_scenario,
            "a tenant is a part of a trace, and a scenario names whole ones",
        ),
    ];
    if let Some((option, _, why)) = refused.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Failure::Input(anyhow::anyhow!("{option} and --by: {why}; leave one of them out")));
    }
    check_options(args, policies)?;
    let terminal = Terminal::new(&args.output);
    let _listening = signals::listen();
    let mut found = Found { args, by, policies, traces: Vec::new(), interrupted: None };
    for trace in &args.traces {
        found.traces.extend(found.trace(trace, read, limits, &terminal)?);
        if let Some(signal) = terminal.stop() {
            let cells = found.traces.iter().flat_map(|of| &of.cells);
            let (made, all) = (
                cells.filter(|cell| cell.shares.is_some()).count(),
                args.traces.len() * policies.len() * limits.len(),
            );
            if made < all {
                found.interrupted = Some(format!("interrupted by {signal} after {made} of {all} cells"));
            }
            break;
        }
    }
    let failure =
        found.interrupted.clone().map(|told| Failure::from(pageout_study::Error::Interrupted(told)));
    let has_any = found.traces.iter().flat_map(|of| &of.cells).any(|cell| cell.shares.is_some());
    match failure {
        Some(failure) if !has_any => return output::no_result(&args.output, failure, Value::Null),
        Some(failure) if args.output.is_data() => {
            return output::no_result(&args.output, failure, print::json(&found));
        }
        _ => {}
    }
    if let Some(path) = &args.page.report {
        print::page(&found).write(path)?;
    }
    match args.output.is_data() {
        true => output::print_json(&print::json(&found)),
        false => output::print_text(&print::text(&found)).and(failure.map_or(Ok(()), Err)),
    }
}

impl<'a> Found<'a> {
    fn trace(
        &self,
        path: &'a Path,
        read: &'a Table,
        limits: &[Limit],
        terminal: &Terminal,
    ) -> anyhow::Result<Option<OfTrace>> {
        let args = self.args;
        let has_neighbours = super::has_neighbours(path, read)?;
        let setup = |profile: &'a str| Setup { args, trace: path, profile, read, has_neighbours };
        let options = setup("").object(Some(1)).read_options().map_err(|error| anyhow::anyhow!("{error}"))?;
        let interpretation =
            remark_interpretation(path, &options).map_err(|error| anyhow::anyhow!("{error}"))?;
        let Some(parted) = parted(args, path, &options, Some(self.by), terminal)? else { return Ok(None) };
        anyhow::ensure!(!parted.parts.is_empty(), "{} has no accesses to replay", path.display());
        let tenants = Tenants::of(path, &options, &parted)?;
        let all = tenants.all();
        let warm_up = args.warm_up.map_or(0, |warm_up| warm_up.of(all.accesses));
        anyhow::ensure!(
            warm_up < all.accesses,
            "--warm-up {warm_up}: {} has {} accesses, so none is left to count",
            path.display(),
            all.accesses
        );
        let mut of = OfTrace {
            interpretation,
            has_neighbours,
            requests: parted.requests.clone(),
            names: parted.parts.iter().map(|part| part.name.clone()).collect(),
            warm_up: tenants.of_first(warm_up),
            shares_pages: tenants.own().iter().map(|own| u64::from(own.distinct_pages)).sum::<u64>()
                > u64::from(all.distinct_pages),
            tenants,
            cells: Vec::new(),
        };
        for policy in self.policies {
            for limit in limits {
                let least = if policy.textbook().is_some() { 1 } else { PAGES_MIN };
                let pages = pages(*limit, of.tenants.all().distinct_pages.into(), least)?;
                let shares = match policy {
                    _ if terminal.stop().is_some() => None,
                    Policy::Textbook(choice) => {
                        let question = Question {
                            name: format!("{}, {choice}", name_of(path)),
                            policies: std::slice::from_ref(choice),
                            sizes: &[],
                            warm_up: 0,
                            seed: args.seed,
                            jobs: args.parallel.jobs,
                            watcher: terminal,
                        };
                        let sizes = steps(u32::try_from(pages).unwrap_or(u32::MAX), PARTS);
                        of.tenants.shares(choice, &sizes, warm_up, &question).map_err(
                            |error| match error {
                                NotShared::Broken(fault) => {
                                    anyhow::anyhow!("{}: policy {choice}: {fault}", path.display())
                                }
                                NotShared::Trace(error) => error.into(),
                            },
                        )?
                    }
                    Policy::Machine { profile, .. } => {
                        let machine =
                            OfMachine { setup: setup(profile), parted: &parted, tenants: &of.tenants };
                        machine.shares(pages, policy, terminal)?
                    }
                };
                of.cells.push(Cell { policy: policy.clone(), limit: *limit, pages, shares });
            }
        }
        Ok(Some(of))
    }
}

/// A trace by tenant, or as a whole with its times. Nothing if a signal came meanwhile.
pub(super) fn parted(
    args: &ReplayArgs,
    path: &Path,
    options: &pageout_workload::ReadOptions,
    by: Option<&str>,
    terminal: &Terminal,
) -> anyhow::Result<Option<Parted>> {
    let bar = bar(&args.output, None, &format!("reading {}", name_of(path)));
    let mut is_read = true;
    let parted = pageout_workload::trace::load_parted(
        path,
        options,
        by,
        args.timed.is_some(),
        args.trace_memory.0,
        &mut |accesses| {
            bar.set_position(accesses);
            is_read = terminal.stop().is_none();
            is_read
        },
    );
    bar.finish_and_clear();
    let parted = parted?;
    // Before it runs: the run waits for the gap, and what waits may be the reader.
    if let Some(Outlier { gap_ns, rest_ns, behind }) = parted.as_ref().and_then(Parted::outlier) {
        output::remark(&format!(
            "note: {}: a gap of {2} before the last {1} accesses is longer than all other gaps together ({3}); is a time damaged? \
             With --timed the run lasts as long",
            path.display(),
            figures::count(behind),
            figures::time(gap_ns),
            figures::time(rest_ns)
        ));
    }
    let option = if by.is_some() { "--by" } else { "--timed" };
    anyhow::ensure!(
        parted.is_some() || !is_read,
        "{option} keeps a trace in memory, and {} takes more than --trace-memory {}: give it more",
        path.display(),
        args.trace_memory
    );
    Ok(parted)
}

/// Tenants of a trace in the machine, each with a cgroup of its own.
struct OfMachine<'a> {
    setup: Setup<'a>,
    parted: &'a Parted,
    tenants: &'a Tenants,
}

impl OfMachine<'_> {
    /// Runs the shared memory, and each tenant alone at each size. Nothing if a signal came before the end.
    fn shares(&self, pages: u64, policy: &Policy, terminal: &Terminal) -> anyhow::Result<Option<Shares>> {
        let parts = (pages / PAGES_MIN).clamp(1, MACHINE_PARTS.into()) as u32;
        let sizes = steps(u32::try_from(pages).unwrap_or(u32::MAX), parts);
        let mut runs = vec![self.together(pages)?];
        for (number, part) in self.parted.parts.iter().enumerate() {
            for &size in &sizes[1..] {
                let accesses =
                    Accesses { loaded: Arc::clone(&part.loaded), pace: self.pace(number, part, true) };
                runs.push(self.setup.replaying(&accesses, size.into())?);
            }
        }
        for run in &runs {
            check(&run.validate())?;
        }
        let name = format!("{}, {}", name_of(self.setup.trace), policy.name());
        let plan = Plan { name, repeat: 1, jobs: self.setup.args.parallel.jobs, watcher: terminal };
        let made = plan.run(&runs)?.variants;
        if let Some(failure) = made.iter().flat_map(|runs| &runs.failures).next() {
            anyhow::bail!("{}: {}: {failure}", self.setup.trace.display(), policy.name());
        }
        let misses = |at: usize| -> Option<Vec<u64>> {
            Some(made[at].results.first()?.tasks.iter().map(TaskResult::misses).collect())
        };
        let Some(shared) = misses(0) else { return Ok(None) };
        let mut curves = Vec::new();
        for (number, own) in self.tenants.own().iter().enumerate() {
            // With no memory each access is a miss.
            let mut curve = vec![own.accesses];
            for at in 0..sizes.len() - 1 {
                let Some(misses) = misses(1 + number * (sizes.len() - 1) + at) else { return Ok(None) };
                curve.push(misses.iter().sum());
            }
            curves.push(curve);
        }
        Ok(Some(Shares { shared, sizes, curves }))
    }

    /// When a tenant's accesses start: at their own times, in an open loop; else in the order of the trace, or one after the other if it is alone.
    fn pace(&self, number: usize, part: &Part, is_alone: bool) -> Option<Pace> {
        match (&part.times, self.setup.args.timed) {
            (Some(times), Some(speed)) => Some(Pace::arrivals(times, speed)),
            _ if is_alone => None,
            _ => Some(Pace::Turns(number as u16, Arc::clone(&self.parted.order))),
        }
    }

    fn together(&self, pages: u64) -> anyhow::Result<Scenario> {
        let mut all = Footprint::default();
        for of in &self.parted.parts {
            let objects = &of.loaded.footprint.objects;
            all.objects.resize(all.objects.len().max(objects.len()), Default::default());
            for (all, own) in all.objects.iter_mut().zip(objects) {
                all.pages = all.pages.max(own.pages);
                all.distinct_pages += own.distinct_pages;
                all.writes += own.writes;
            }
            all.accesses += of.loaded.footprint.accesses;
        }
        // Files are shared, so each delete is made once.
        let in_turn =
            |part: &Part| Loaded { removals: Arc::clone(&part.removals_in_turn), ..(*part.loaded).clone() };
        let tenants = self.parted.parts.iter().enumerate().map(|(number, part)| Accesses {
            loaded: Arc::new(in_turn(part)),
            pace: self.pace(number, part, false),
        });
        self.setup.together(&all, &tenants.collect::<Vec<_>>(), pages)
    }
}
