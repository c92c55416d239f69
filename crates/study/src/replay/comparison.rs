//! Textbook policies, or several policies or traces: one table per trace, policies by sizes.

pub(super) mod run; // from traces to cells

use pageout_sim::scenario::keys::Limit;
use pageout_workload::trace::Interpretation;
use serde_json::{Value, json};

use super::ask::Ask;
use super::bound::{Below, is_below};
use super::point::{Figures, own_json};
use super::reading::doubts;
use super::untimed::{self, LeftOut};
use crate::bench::{self, Policy, SampledFrom, Trace};
use crate::check::holds;
use crate::error::{Error, Failed};
use crate::figures;
use crate::result::requests;
use crate::result::variants::NOT_RUN;

/// Policies at sizes of memory over traces.
pub struct Comparison {
    /// The question.
    pub ask: Ask,
    /// The policies, in the order of the rows.
    pub policies: Vec<Policy>,
    /// The traces that could be read.
    pub traces: Vec<OfTrace>,
    /// The text of an interruption, if one came.
    pub interrupted: Option<String>,
    /// Runs that failed, and traces that can't be read.
    pub failures: Vec<Failed>,
}

/// A trace with its cells.
pub struct OfTrace {
    /// The interpretation of the trace.
    pub interpretation: Interpretation,
    /// Its accesses.
    pub trace: Trace,
    /// Accesses at its start that were not counted.
    pub warm_up: u64,
    /// Sizes of memory as they were asked for, and in pages.
    pub sizes: Vec<(Limit, u64)>,
    /// By policy, by size.
    pub cells: Vec<Vec<Cell>>,
    /// The sample that misses were estimated from, if any were.
    pub sampled: Option<SampledFrom>,
    /// True if page numbers are places, so that consecutive numbers are neighbours.
    pub has_neighbours: bool,
}

impl OfTrace {
    /// Figures of policies of the machine that are below a bound.
    pub fn below(&self, policies: &[Policy]) -> Vec<Below> {
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
                if is_below(miss_ratio, least) {
                    below.push(Below { policy: policy.name(), pages: size.1, miss_ratio, bound });
                }
            }
        }
        below
    }
}

/// A policy at a size.
#[derive(Debug, Default)]
pub struct Cell {
    /// Misses as a share of the accesses that count.
    pub miss_ratio: Option<f64>,
    /// Misses, where they were counted.
    pub misses: Option<u64>,
    /// The least and the largest miss ratio of the samples, where it is estimated.
    pub spread: Option<(f64, f64)>,
    /// Figures that only a machine has.
    pub machine: Option<Figures>,
    /// The reason why there is no miss ratio, or the part of the trace that it covers.
    pub missing: Option<String>,
    /// Accesses that were counted before an interruption, if one came before the end.
    pub partial_accesses: Option<u64>,
    /// Figures that the policy reports, by name.
    pub own: Vec<(String, f64)>,
}

/// What stands in place of the figures of a machine that is too small.
const TOO_SMALL: &str = "-";

impl Cell {
    /// A cell with N counted accesses.
    fn of(cell: bench::Cell, counted: u64) -> Cell {
        let missing = |why: &str| Cell { missing: Some(why.to_string()), ..Cell::default() };
        match cell {
            bench::Cell::Misses(misses) => Cell {
                miss_ratio: Some(misses as f64 / counted as f64),
                misses: Some(misses),
                ..Cell::default()
            },
            bench::Cell::Partial { misses, accesses } => Cell {
                miss_ratio: Some(misses as f64 / accesses as f64),
                misses: Some(misses),
                missing: Some(figures::percent(figures::share(accesses, counted))),
                partial_accesses: Some(accesses),
                ..Cell::default()
            },
            bench::Cell::Estimate(of) => {
                Cell { miss_ratio: Some(of.mean), spread: Some((of.least, of.most)), ..Cell::default() }
            }
            bench::Cell::NotRun => missing(NOT_RUN),
            bench::Cell::NoRoom => missing("no room"),
            bench::Cell::Broken => missing("failed"),
        }
    }

    /// Returns true if it is of all accesses that it was to be of.
    pub fn is_whole(&self) -> bool {
        self.miss_ratio.is_some() && self.partial_accesses.is_none()
    }
}

impl Comparison {
    /// Cells of all traces.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.traces.iter().flat_map(|of| of.cells.iter().flatten())
    }

    /// Returns true if something went wrong, and no cell has a figure.
    pub(super) fn is_nothing(&self) -> bool {
        self.failure().is_some() && self.cells().all(|cell| cell.miss_ratio.is_none())
    }

    /// Why the answer is incomplete: runs failed, or a signal came.
    pub(super) fn failure(&self) -> Option<Error> {
        let heading = format!("{} failed", figures::counted(self.failures.len() as u64, "run"));
        let failed = Error::Runs { heading, failures: self.failures.clone() };
        match &self.interrupted {
            Some(told) if self.failures.is_empty() => Some(Error::Interrupted(told.clone())),
            Some(told) => Some(Error::Interrupted(format!("{told}; {failed}"))),
            None => (!self.failures.is_empty()).then_some(failed),
        }
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let (asked, read) = (self.ask.traces.len(), self.traces.len());
        let is_all = read == asked || self.interrupted.is_some() || !self.failures.is_empty();
        holds!(is_all && read <= asked, "found {read} traces, expected {asked}");
        self.traces.iter().try_for_each(|of| of.check(&self.policies))
    }

    pub(super) fn json(&self) -> Value {
        let traces: Vec<Value> = self.traces.iter().map(|of| of.json(&self.ask, &self.policies)).collect();
        let is_whole = self.cells().all(|cell| cell.is_whole() || cell.missing.as_deref() == Some(TOO_SMALL));
        let is_all = self.traces.len() == self.ask.traces.len();
        json!({ "complete": self.interrupted.is_none() && is_whole && is_all, "traces": traces })
    }
}

impl OfTrace {
    fn check(&self, policies: &[Policy]) -> Result<(), String> {
        let path = self.trace.path.display();
        let counted = self.trace.accesses - self.warm_up;
        let (asked, rows) = (policies.len(), self.cells.len());
        holds!(rows == asked, "{path}: found {rows} policies, expected {asked}");
        for (policy, cells) in policies.iter().zip(&self.cells) {
            let policy = policy.name();
            let (asked, given) = (self.sizes.len(), cells.len());
            holds!(given == asked, "{path}, {policy}: found {given} sizes, expected {asked}");
            for (cell, (_, pages)) in cells.iter().zip(&self.sizes) {
                let of = format!("{path}, {policy} in {pages} pages");
                let is_told = cell.miss_ratio.is_some() || cell.missing.is_some();
                holds!(is_told, "{of}: neither a miss ratio nor a reason");
                let Some((misses, ratio)) = cell.misses.zip(cell.miss_ratio) else { continue };
                let accesses = cell.partial_accesses.unwrap_or(counted);
                holds!(misses <= accesses, "{of}: found {misses} misses, expected at most {accesses}");
                let hits = accesses - misses;
                let is_ratio = (ratio - misses as f64 / accesses as f64).abs() < 1e-12;
                holds!(is_ratio, "{of}: the miss ratio {ratio} differs from {hits} hits and {misses} misses");
            }
        }
        self.check_stack(policies)
    }

    /// A larger memory under LRU or OPT holds what a smaller one holds, so it misses no more.
    fn check_stack(&self, policies: &[Policy]) -> Result<(), String> {
        let is_stack = |policy: &&Policy| policy.is_bound() || policy.name() == "lru";
        for (policy, cells) in policies.iter().zip(&self.cells).filter(|(policy, _)| is_stack(policy)) {
            let whole = self.sizes.iter().zip(cells).filter(|(_, cell)| cell.is_whole());
            let mut counted: Vec<(u64, u64)> =
                whole.filter_map(|((_, pages), cell)| Some((*pages, cell.misses?))).collect();
            counted.sort_unstable();
            for pair in counted.windows(2) {
                let [(small, more), (large, fewer)] = pair else { continue };
                holds!(
                    fewer <= more,
                    "{}, {}: more misses with more memory: {more} with {small} pages, {fewer} with {large}",
                    self.trace.path.display(),
                    policy.name()
                );
            }
        }
        Ok(())
    }

    /// The parts of a timed run that its kernel policies leave out; nothing if they were timed, or there are none.
    pub fn left_out(&self, ask: &Ask) -> Vec<LeftOut> {
        let mut figures = self.cells.iter().flatten().filter_map(|cell| cell.machine.as_ref()).peekable();
        match figures.peek() {
            Some(_) => untimed::left_out(ask, self.has_neighbours, figures),
            None => Vec::new(),
        }
    }

    fn json(&self, ask: &Ask, policies: &[Policy]) -> Value {
        let cells = (0..policies.len())
            .flat_map(|row| (0..self.sizes.len()).map(move |at| self.cell_json(ask, policies, row, at)));
        let mut json = json!({
            "trace": self.trace.path.to_string_lossy(),
            "trace_in_memory": self.trace.pages.is_some(),
            "accesses": self.trace.accesses,
            "accesses_not_counted": self.warm_up,
            "distinct_pages": self.trace.distinct_pages,
            "doubts": doubts(&self.interpretation, self.trace.requests.as_ref()),
            "requests": self.trace.requests.as_ref().map(requests::json),
            "has_neighbours": self.has_neighbours,
            "sample_rate": self.sampled.map(|sampled| sampled.rate),
            "sample_pages": self.sampled.map(|sampled| sampled.pages),
            "cells": cells.collect::<Vec<_>>(),
        });
        let left_out = self.left_out(ask);
        if !left_out.is_empty() {
            json["untimed"] = json!(true);
            json["left_out"] = untimed::left_out_json(&left_out);
        }
        json
    }

    /// True if a cell's miss ratio is below the bound in the same memory; `None` if there is no bound.
    fn is_below_bound(&self, policies: &[Policy], row: usize, at: usize) -> Option<bool> {
        let bound = policies.iter().position(Policy::is_bound).filter(|_| self.warm_up == 0)?;
        let bound = &self.cells[bound][at];
        let (of, ratio) = self.cells[row][at].miss_ratio.zip(bound.miss_ratio)?;
        Some(is_below(of, bound.spread.map_or(ratio, |(least, _)| least)))
    }

    fn cell_json(&self, ask: &Ask, policies: &[Policy], row: usize, at: usize) -> Value {
        let (policy, pages, cell) = (&policies[row], self.sizes[at].1, &self.cells[row][at]);
        let is_textbook = policy.textbook().is_some();
        let mut json = json!({
            "policy": policy.name(),
            "is_textbook": is_textbook,
            "is_bound": policy.is_bound(),
            "memory_pages": pages,
            "memory_bytes": pages * 4096,
            "share_of_pages": figures::share(pages, self.trace.distinct_pages.into()),
            "complete": cell.is_whole(),
            "read_ahead_kb": if is_textbook { 0 } else { ask.window_kb(self.has_neighbours) },
            "miss_ratio": cell.miss_ratio,
            "misses": cell.misses,
        });
        if let Some(is_below) = self.is_below_bound(policies, row, at) {
            json["is_below_bound"] = json!(is_below);
        }
        if let Some(accesses) = cell.partial_accesses {
            json["accesses_seen"] = json!(accesses);
        }
        if let Some(hash) = policy.hash() {
            json["policy_hash"] = json!(hash);
        }
        if !cell.own.is_empty() {
            json["policy_figures"] = own_json(&cell.own);
        }
        if let Some((least, most)) = cell.spread {
            json["is_estimate"] = json!(true);
            json["miss_ratio_least"] = json!(least);
            json["miss_ratio_most"] = json!(most);
        }
        if let Some(machine) = &cell.machine {
            if !ask.untimed {
                json["runtime_ns"] = json!(machine.end_ns);
                json["reclaim_p99_ns"] = json!(machine.reclaim_p99_ns);
            }
            json["device_pages_read"] = json!(machine.device_pages_read);
            json["refaults"] = json!(machine.refaults);
            json["refault_distance_p50_pages"] = json!(machine.refault_distance(0.5));
            json["refault_distance_p90_pages"] = json!(machine.refault_distance(0.9));
            if let Some(open) = &machine.open_loop {
                json["open_loop"] = open.json();
            }
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Answer, ask};

    /// The answer of a trace under two policies in two sizes of memory, one of which is too small for the machine.
    fn answer() -> Comparison {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.u32");
        let pages = (0..3_000_u32).map(|at| at * at % 397);
        std::fs::write(&trace, pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        let asked = Ask {
            traces: vec![trace],
            policy: vec!["lru,classic@6.12".into()],
            memory: vec!["10 pages".into(), "100 pages".into()],
            read_ahead_kb: Some(0),
            ..Ask::default()
        };
        match ask(&asked, &()).unwrap() {
            Answer::Comparison(answer) => answer,
            _ => panic!("two policies are compared"),
        }
    }

    #[test]
    fn answer_with_a_wrong_sum_is_refused() {
        let whole = answer();
        assert_eq!(whole.check(), Ok(()));
        assert_eq!(whole.traces[0].cells[1][0].missing.as_deref(), Some(TOO_SMALL));
        assert!(whole.json()["complete"] == true && whole.failure().is_none());
        type Mutant = fn(&mut Comparison);
        let mutants: [(Mutant, &str); 7] = [
            (|answer| drop(answer.traces.pop()), "found 0 traces, expected 1"),
            (|answer| drop(answer.traces[0].cells.pop()), "found 1 policies, expected 2"),
            (|answer| drop(answer.traces[0].cells[0].pop()), "found 1 sizes, expected 2"),
            (|answer| answer.traces[0].cells[1][0].missing = None, "neither a miss ratio nor a reason"),
            (
                |answer| answer.traces[0].cells[0][0].misses = Some(3_001),
                "found 3001 misses, expected at most 3000",
            ),
            (|answer| answer.traces[0].cells[0][0].miss_ratio = Some(0.5), "the miss ratio 0.5 differs"),
            (|answer| answer.traces[0].cells[0].swap(0, 1), "more misses with more memory"),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
