//! Tenants of one memory: each one's misses in the memory they share, its curve alone, and the split with the fewest misses.

use std::path::Path;
use std::sync::Arc;

use pageout_cache::Choice;
use pageout_cache::curve::split::Split;
use pageout_sim::scenario::keys::Limit;
use pageout_sim::{Pace, scenario::Scenario};
use pageout_workload::trace::{Footprint, Interpretation, Loaded, Part, Parted, Requests};
use serde_json::{Value, json};

use super::ask::Ask;
use super::comparison::run::check_options;
use super::reading::{self, doubts};
use super::setup::{Accesses, PAGES_MIN, Setup, check, pages};
use crate::bench::{self, NotShared, Policy, Question, Shares, steps};
use crate::check::holds;
use crate::error::Error;
use crate::figures;
use crate::result::requests;
use crate::result::run_result::TaskResult;
use crate::result::variants::Plan;
use crate::watch::{Watcher, name_of};

/// Parts of memory that tenants are given under a textbook policy, and under one of the machine, where each takes a run of it.
const PARTS: u32 = 100;
const MACHINE_PARTS: u32 = 16;

/// Tenants of traces, under policies at sizes of memory.
pub struct Tenants {
    /// The question.
    pub ask: Ask,
    /// The column, as it was asked for.
    pub by: String,
    /// The policies.
    pub policies: Vec<Policy>,
    /// The traces that were read before a signal came.
    pub traces: Vec<OfTrace>,
    /// The text of an interruption, if one came.
    pub interrupted: Option<String>,
}

/// The tenants of a trace.
pub struct OfTrace {
    /// The interpretation of the trace.
    pub interpretation: Interpretation,
    /// True if page numbers are places, so that consecutive numbers are neighbours.
    pub has_neighbours: bool,
    /// The records that are not accesses.
    pub requests: Option<Requests>,
    /// The accesses of all, and of each tenant.
    pub tenants: bench::Tenants,
    /// The values of the column.
    pub names: Vec<String>,
    /// Accesses of each that don't count.
    pub warm_up: Vec<u64>,
    /// True if different tenants access the same page.
    pub shares_pages: bool,
    /// By policy, by size.
    pub cells: Vec<Cell>,
}

/// A policy at a size.
pub struct Cell {
    /// The policy.
    pub policy: Policy,
    /// The memory, as it was asked for.
    pub limit: Limit,
    /// The memory, in pages.
    pub pages: u64,
    /// Misses of each tenant, shared and alone; nothing if a signal came before.
    pub shares: Option<Shares>,
}

/// Simulates all of it. Errors: options exclude each other, a trace can't be read, a run fails.
pub(super) fn tenants(
    ask: &Ask,
    by: &str,
    policies: Vec<Policy>,
    limits: &[Limit],
    watcher: &dyn Watcher,
) -> Result<Tenants, Error> {
    let refused = [
        ("--sample", ask.sample.is_some(), "tenants need all of their accesses"),
        (
            "--print-scenario",
            ask.print_scenario,
            "a tenant is a part of a trace, but a scenario replays complete traces",
        ),
    ];
    if let Some((option, _, why)) = refused.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Error::asked(format!("{option} excludes --by: {why}")));
    }
    check_options(ask, &policies, watcher)?;
    watcher.heed_stop();
    let mut traces = Vec::new();
    let mut interrupted = None;
    for trace in &ask.traces {
        traces.extend(Study { ask, by, policies: &policies, watcher }.trace(trace, limits)?);
        if let Some(signal) = watcher.stop() {
            let cells = traces.iter().flat_map(|of: &OfTrace| &of.cells);
            let made = cells.filter(|cell| cell.shares.is_some()).count();
            let all = ask.traces.len() * policies.len() * limits.len();
            if made < all {
                interrupted = Some(format!("interrupted by {signal} after {made} of {all} cells"));
            }
            break;
        }
    }
    let answer = Tenants { ask: ask.clone(), by: by.to_string(), policies, traces, interrupted };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// How each trace is replayed.
#[derive(Clone, Copy)]
struct Study<'a> {
    ask: &'a Ask,
    by: &'a str,
    policies: &'a [Policy],
    watcher: &'a dyn Watcher,
}

impl<'a> Study<'a> {
    /// All cells of a trace. Nothing if a signal came while it was read.
    fn trace(self, path: &'a Path, limits: &[Limit]) -> Result<Option<OfTrace>, Error> {
        let Study { ask, watcher, .. } = self;
        let has_neighbours = reading::has_neighbours(ask, path)?;
        let setup = |profile: &'a str| Setup { ask, trace: path, profile, has_neighbours };
        let options = setup("").read_options()?;
        let interpretation = reading::interpreted(path, &options, watcher)?;
        let Some(parted) = reading::parted(ask, path, &options, Some(self.by), watcher)? else {
            return Ok(None);
        };
        if parted.parts.is_empty() {
            return Err(Error::asked(format!("{}: the trace has no accesses", path.display())));
        }
        let tenants = bench::Tenants::of(path, &options, &parted)?;
        let all = tenants.all();
        let warm_up = reading::warm_up(ask, path, all.accesses)?;
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
                    _ if watcher.stop().is_some() => None,
                    Policy::Textbook(choice) => self.by_book(choice, path, pages, warm_up, &of.tenants)?,
                    Policy::Machine { profile, .. } => {
                        let machine =
                            OfMachine { setup: setup(profile), parted: &parted, tenants: &of.tenants };
                        machine.shares(pages, policy, watcher)?
                    }
                };
                of.cells.push(Cell { policy: policy.clone(), limit: *limit, pages, shares });
            }
        }
        Ok(Some(of))
    }

    /// Runs a textbook policy over the shared memory, and over each tenant alone at each size.
    fn by_book(
        self,
        choice: &Choice,
        path: &Path,
        pages: u64,
        warm_up: u64,
        tenants: &bench::Tenants,
    ) -> Result<Option<Shares>, Error> {
        let question = Question {
            name: format!("{}, {choice}", name_of(path)),
            policies: std::slice::from_ref(choice),
            sizes: &[],
            warm_up: 0,
            seed: self.ask.seed,
            jobs: self.ask.jobs,
            watcher: self.watcher,
        };
        let sizes = steps(u32::try_from(pages).unwrap_or(u32::MAX), PARTS);
        tenants.shares(choice, &sizes, warm_up, &question).map_err(|error| match error {
            NotShared::Broken(fault) => Error::asked(format!("{}: policy {choice}: {fault}", path.display())),
            NotShared::Trace(error) => error.into(),
        })
    }
}

/// Tenants of a trace in the machine, each with a cgroup of its own.
struct OfMachine<'a> {
    setup: Setup<'a>,
    parted: &'a Parted,
    tenants: &'a bench::Tenants,
}

impl OfMachine<'_> {
    /// Runs the shared memory, and each tenant alone at each size. Nothing if a signal came before the end.
    fn shares(&self, pages: u64, policy: &Policy, watcher: &dyn Watcher) -> Result<Option<Shares>, Error> {
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
        runs.iter().try_for_each(check)?;
        let name = format!("{}, {}", name_of(self.setup.trace), policy.name());
        let plan = Plan { name, repeat: 1, jobs: self.setup.ask.jobs, watcher };
        let made = plan.run(&runs)?.variants;
        if let Some(failure) = made.iter().flat_map(|runs| &runs.failures).next() {
            let path = self.setup.trace.display();
            return Err(Error::asked(format!("{path}: {}: {failure}", policy.name())));
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
        match (&part.times, self.setup.ask.timed) {
            (Some(times), Some(speed)) => Some(Pace::arrivals(times, speed)),
            _ if is_alone => None,
            _ => Some(Pace::Turns(number as u16, Arc::clone(&self.parted.order))),
        }
    }

    fn together(&self, pages: u64) -> Result<Scenario, Error> {
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

/// Sums over all tenants of a cell.
pub struct Sums {
    /// Misses in the shared memory.
    pub shared: u64,
    /// Misses in the split memory.
    pub split: u64,
    /// Pages of the memory that the split gives to tenants.
    pub split_pages: u64,
    /// Pages that no tenant has a use for.
    pub unused_pages: u64,
}

impl Sums {
    /// The sums of what tenants share.
    pub fn of(shares: &Shares) -> Sums {
        let Split { parts, misses } = shares.split();
        Sums {
            shared: shares.shared.iter().sum(),
            split: misses,
            split_pages: parts.iter().map(|&part| u64::from(shares.sizes[part])).sum(),
            unused_pages: shares.sizes[shares.sizes.len() - 1 - parts.iter().sum::<usize>()].into(),
        }
    }
}

impl Tenants {
    /// Returns true if a signal came before the first cell.
    pub(super) fn is_nothing(&self) -> bool {
        let mut cells = self.traces.iter().flat_map(|of| &of.cells);
        self.interrupted.is_some() && !cells.any(|cell| cell.shares.is_some())
    }

    /// Why the answer is incomplete: a signal came.
    pub(super) fn failure(&self) -> Option<Error> {
        self.interrupted.clone().map(Error::Interrupted)
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let (asked, read) = (self.ask.traces.len(), self.traces.len());
        let is_all = read == asked || self.interrupted.is_some();
        holds!(is_all && read <= asked, "found {read} traces, expected {asked}");
        self.traces.iter().try_for_each(OfTrace::check)
    }

    pub(super) fn json(&self) -> Value {
        let traces: Vec<Value> = self.traces.iter().map(|of| of.json(&self.ask, &self.by)).collect();
        json!({ "complete": self.interrupted.is_none(), "traces": traces })
    }
}

impl OfTrace {
    /// Accesses of a tenant that count.
    pub fn counted(&self, tenant: usize) -> u64 {
        self.tenants.own()[tenant].accesses - self.warm_up[tenant]
    }

    /// Accesses of all tenants that count.
    pub fn all_counted(&self) -> u64 {
        (0..self.names.len()).map(|tenant| self.counted(tenant)).sum()
    }

    fn check(&self) -> Result<(), String> {
        let (path, all) = (self.tenants.all().path.display(), self.tenants.all().accesses);
        let own: u64 = self.tenants.own().iter().map(|of| of.accesses).sum();
        holds!(own == all, "{path}: tenants have {own} accesses, but the trace has {all}");
        for cell in &self.cells {
            let Some(shares) = &cell.shares else { continue };
            let of = format!("{path}, {} in {} pages", cell.policy.name(), cell.pages);
            let (told, names) = (shares.shared.len().min(shares.curves.len()), self.names.len());
            holds!(told == names, "{of}: found figures of {told} tenants, expected {names}");
            for (tenant, curve) in shares.curves.iter().enumerate() {
                let (name, counted) = (&self.names[tenant], self.counted(tenant));
                let (sizes, points) = (shares.sizes.len(), curve.len());
                holds!(points == sizes, "{of}: found {points} points of {name}, expected {sizes}");
                holds!(
                    curve[0] == counted,
                    "{of}: without memory {name} has {} misses, expected {counted}",
                    curve[0]
                );
                let most = shares.shared[tenant].max(curve.iter().copied().max().unwrap_or(0));
                holds!(most <= counted, "{of}: {name} has {most} misses, expected at most {counted}");
            }
            let Sums { split_pages, unused_pages, .. } = Sums::of(shares);
            let memory = u64::from(shares.sizes[shares.sizes.len() - 1]);
            let given = split_pages + unused_pages;
            // Steps are in full pages: each part of the split may lose one.
            let is_split = given <= memory && memory - given <= names as u64;
            holds!(
                is_split,
                "{of}: {split_pages} split and {unused_pages} unused pages, expected a sum of {memory}"
            );
        }
        Ok(())
    }

    fn json(&self, ask: &Ask, by: &str) -> Value {
        let window_kb = ask.window_kb(self.has_neighbours);
        let cells = self.cells.iter().map(|cell| {
            let mut json = self.cell_json(cell);
            json["read_ahead_kb"] = json!(if cell.policy.textbook().is_some() { 0 } else { window_kb });
            json
        });
        let all = self.tenants.all();
        json!({
            "trace": all.path.to_string_lossy(),
            "by": by,
            "accesses": all.accesses,
            "accesses_not_counted": self.warm_up.iter().sum::<u64>(),
            "distinct_pages": all.distinct_pages,
            "tenants_share_pages": self.shares_pages,
            "doubts": doubts(&self.interpretation, self.requests.as_ref()),
            "requests": self.requests.as_ref().map(requests::json),
            "has_neighbours": self.has_neighbours,
            "cells": cells.collect::<Vec<_>>(),
        })
    }

    fn cell_json(&self, cell: &Cell) -> Value {
        let mut json = json!({
            "policy": cell.policy.name(),
            "is_textbook": cell.policy.textbook().is_some(),
            "is_bound": cell.policy.is_bound(),
            "memory_pages": cell.pages,
            "memory_bytes": cell.pages * 4096,
            "complete": cell.shares.is_some(),
        });
        let Some(shares) = &cell.shares else { return json };
        let (Split { parts, .. }, Sums { shared, split, unused_pages, .. }) =
            (shares.split(), Sums::of(shares));
        json["shared_misses"] = json!(shared);
        json["shared_miss_ratio"] = json!(figures::share(shared, self.all_counted()));
        json["split_misses"] = json!(split);
        json["split_miss_ratio"] = json!(figures::share(split, self.all_counted()));
        json["split_unused_pages"] = json!(unused_pages);
        let tenants = self.names.iter().enumerate().map(|(tenant, name)| {
            let (counted, curve) = (self.counted(tenant), &shares.curves[tenant]);
            let (alone, own) = (curve[curve.len() - 1], curve[parts[tenant]]);
            json!({
                "tenant": name,
                "tenant_accesses": counted,
                "tenant_pages": self.tenants.own()[tenant].distinct_pages,
                "misses": shares.shared[tenant],
                "miss_ratio": figures::share(shares.shared[tenant], counted),
                "misses_alone": alone,
                "miss_ratio_alone": figures::share(alone, counted),
                "own_pages": shares.sizes[parts[tenant]],
                "own_bytes": u64::from(shares.sizes[parts[tenant]]) * 4096,
                "misses_split": own,
                "miss_ratio_split": figures::share(own, counted),
                "curve_pages": shares.sizes,
                "curve_misses": curve,
            })
        });
        json["tenants"] = tenants.collect();
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Answer, ask};

    /// The answer of two tenants under a policy in one size of memory.
    fn answer() -> Tenants {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.csv");
        // One tenant reads 30 pages in a circle, and the other more than the memory holds.
        let line = |at: u64| match at % 3 {
            0 => format!("v,{}\n", at / 3 % 30 * 4096),
            _ => format!("w,{}\n", at % 130 * 4096),
        };
        let lines: String = (0..2_000).map(line).collect();
        std::fs::write(&trace, format!("volume,offset\n{lines}")).unwrap();
        let asked = Ask {
            traces: vec![trace],
            policy: vec!["lru".into()],
            memory: vec!["100 pages".into()],
            by: Some("volume".into()),
            ..Ask::default()
        };
        match ask(&asked, &()).unwrap() {
            Answer::Tenants(answer) => answer,
            _ => panic!("tenants were asked for"),
        }
    }

    fn shares(answer: &mut Tenants) -> &mut Shares {
        answer.traces[0].cells[0].shares.as_mut().unwrap()
    }

    #[test]
    fn answer_with_a_wrong_sum_is_refused() {
        assert_eq!(answer().check(), Ok(()));
        type Mutant = fn(&mut Tenants);
        let mutants: [(Mutant, &str); 7] = [
            (|answer| drop(answer.traces.pop()), "found 0 traces, expected 1"),
            (|answer| drop(answer.traces[0].names.pop()), "found figures of 2 tenants, expected 1"),
            (|answer| shares(answer).shared.truncate(1), "found figures of 1 tenants, expected 2"),
            (|answer| shares(answer).curves[1].truncate(100), "found 100 points of"),
            (|answer| shares(answer).curves[0][0] -= 1, "without memory"),
            (|answer| shares(answer).shared[1] = 5_000, "has 5000 misses, expected at most"),
            (
                |answer| shares(answer).sizes.iter_mut().take(100).for_each(|size| *size /= 2),
                "15 split and 35 unused pages, expected a sum of 100",
            ),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
