//! From the cells of one trace, or of one scenario, to their rows.

use std::io;
use std::path::Path;
use std::sync::Arc;

use pageout_cache::Choice;
use pageout_policy::FALLBACKS;
use pageout_sim::scenario::Scenario;
use pageout_workload::ReadOptions;
use pageout_workload::trace::{self, Loaded, Requests};
use serde_json::{Value, json};

use super::parts::Row;
use super::plan::{Cell, Input, InputKind, Plan};
use crate::bench::{self, Policy, Question, Trace};
use crate::error::Error;
use crate::replay::{self, Ask, Figures, PAGES_MIN, Setup};
use crate::result::variants::{Plan as Runs, Runs as Made};
use crate::scenario::load::{self, Changes};
use crate::scenario::source::{Setting, Source};
use crate::scenario::traces::TRACE_MEMORY;
use crate::watch::Watcher;

/// Runs of the machine that are handed out at a time for each that goes on: what a signal or a kill may cost.
const AHEAD: usize = 4;

/// How a column begins that is a figure of a policy's own.
const OF_POLICY: &str = "policy_";

/// Takes rows as they come.
pub type Take<'a> = &'a mut dyn FnMut(Vec<Row>) -> io::Result<()>;

/// Runs cells in other processes, a given number at a time. Errors: rows could not be written.
pub type Elsewhere<'a> = dyn Fn(&Plan, &[&Cell], usize, Take) -> io::Result<()> + 'a;

/// The place where cells of custom policies run. Such a policy can end its process.
#[derive(Clone, Copy)]
pub enum Own<'a> {
    /// In this process, as all others.
    Here,
    /// In processes of their own.
    Elsewhere {
        /// True if there are such policies, which a scenario may name anywhere.
        are_there: bool,
        /// What runs them.
        run: &'a Elsewhere<'a>,
    },
    /// This is such a process: it is notified of each cell before the cell begins, and runs each cell separately.
    Alone(&'a dyn Fn(&Cell)),
}

/// The options of running cells.
#[derive(Clone, Copy)]
pub struct Sweep<'a> {
    /// The plan that they are of.
    pub plan: &'a Plan,
    /// Runs at the same time; 0 is one for each CPU.
    pub jobs: usize,
    /// The place where custom policies run.
    pub own: Own<'a>,
    /// The watcher, which may end the sweep early.
    pub watcher: &'a dyn Watcher,
}

/// Runs cells, those of an input together. Errors: rows could not be written.
pub fn cells(sweep: Sweep, cells: &[&Cell], take: Take) -> io::Result<()> {
    for cells in cells.chunk_by(|one, next| one.input == next.input) {
        if sweep.watcher.stop().is_some() {
            break;
        }
        of_input(sweep, cells, take)?;
    }
    Ok(())
}

fn of_input(sweep: Sweep, cells: &[&Cell], take: Take) -> io::Result<()> {
    let Sweep { plan, own, .. } = sweep;
    let jobs = match sweep.jobs {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        jobs => jobs,
    };
    let input = &plan.inputs[cells[0].input];
    let group = Group { sweep, input, jobs };
    let mut cells = cells.to_vec();
    if let Own::Elsewhere { are_there, run } = own {
        // A scenario may name an own policy anywhere.
        let may_name_own = input.kind == InputKind::Scenario && are_there;
        let is_own = |cell: &&Cell| may_name_own || cell.policy.as_ref().is_some_and(Policy::is_own);
        let (of_own, others) = cells.into_iter().partition(is_own);
        cells = others;
        if !Vec::is_empty(&of_own) {
            run(plan, &of_own, jobs, take)?;
        }
    }
    if cells.is_empty() {
        return Ok(());
    }
    let done = match input.kind {
        InputKind::Trace => group.trace(&cells, take),
        InputKind::Scenario => group.scenario(&cells, take),
    };
    match done {
        Ok(()) => Ok(()),
        Err(Stopped::Output(error)) => Err(error),
        Err(Stopped::Input(why)) => take(cells.iter().map(|cell| failed(plan, cell, &why)).collect()),
    }
}

/// Makes the scenario of a cell, and says how many pages of memory it has. Errors: the cell fails.
type MakeScenario<'a> = dyn Fn(&Cell) -> Result<(Scenario, u64), Error> + 'a;

/// The common part of all cells of an input.
struct Group<'a> {
    sweep: Sweep<'a>,
    input: &'a Input,
    /// Runs at the same time.
    jobs: usize,
}

/// Why an input has no rows of its own.
enum Stopped {
    /// The input is invalid: each of its cells reports that.
    Input(String),
    Output(io::Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Input(error.in_full())
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Output(error)
    }
}

impl Group<'_> {
    fn trace(&self, cells: &[&Cell], take: Take) -> Result<(), Stopped> {
        let Sweep { plan, watcher, .. } = self.sweep;
        let options = plan.read.options();
        let options = options.map_err(|error| Error::asked(format!("read: {}", error.message)))?;
        let of_book = |cell: &&&Cell| cell.policy.as_ref().is_some_and(|policy| policy.textbook().is_some());
        let by_book: Vec<&Cell> = cells.iter().filter(of_book).copied().collect();
        let by_machine: Vec<&Cell> = cells.iter().filter(|cell| !of_book(cell)).copied().collect();
        if !by_book.is_empty() {
            let trace =
                Trace::load(&self.input.path, &options, TRACE_MEMORY.0, watcher).map_err(Error::from)?;
            // A signal came before its end.
            let Some(trace) = trace else { return Ok(()) };
            self.textbook(&trace, &by_book, take)?;
        }
        if !by_machine.is_empty() && watcher.stop().is_none() {
            self.machine(&options, &by_machine, take)?;
        }
        Ok(())
    }

    /// A policy after the other, each at all sizes.
    fn textbook(&self, trace: &Trace, cells: &[&Cell], take: Take) -> Result<(), Stopped> {
        let is_same = |one: &&Cell, next: &&Cell| one.policy == next.policy && !self.is_alone();
        for of_policy in cells.chunk_by(is_same) {
            let Some(Policy::Textbook(choice)) = &of_policy[0].policy else { continue };
            let mut seeds: Vec<u64> = of_policy.iter().map(|cell| cell.seed).collect();
            seeds.sort_unstable();
            seeds.dedup();
            for seed in seeds {
                let of_seed: Vec<&Cell> =
                    of_policy.iter().filter(|cell| cell.seed == seed).copied().collect();
                self.begin(&of_seed);
                take(self.curve(trace, choice, seed, &of_seed)?)?;
            }
        }
        Ok(())
    }

    fn curve(&self, trace: &Trace, choice: &Choice, seed: u64, cells: &[&Cell]) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        let mut sized: Vec<(&Cell, u64)> = Vec::new();
        for cell in cells {
            match self.pages(cell, trace.distinct_pages.into(), 1) {
                Ok(pages) => sized.push((cell, pages)),
                Err(why) => rows.push(self.failed(cell, &why.in_full())),
            }
        }
        let rising = trace.rising(sized.iter().map(|(_, pages)| *pages));
        if rising.is_empty() {
            return Ok(rows);
        }
        let question = Question {
            name: format!("{}, {choice}", self.input.name),
            policies: std::slice::from_ref(choice),
            sizes: &rising,
            warm_up: 0,
            seed,
            jobs: self.sweep.jobs,
            watcher: self.sweep.watcher,
        };
        let answer = question.exactly(trace)?;
        for (cell, pages) in sized {
            let at = trace.place(pages, &rising);
            let mut row = self.row(cell, Some(pages));
            match answer.cells[0][at] {
                bench::Cell::Misses(misses) => {
                    row["accesses"] = json!(trace.accesses);
                    row["read_ahead_kb"] = json!(0);
                    tell_requests(&mut row, trace.requests.as_ref());
                    row["misses"] = json!(misses);
                    row["miss_ratio"] = json!(misses as f64 / trace.accesses.max(1) as f64);
                    for of in answer.figures.iter().filter(|of| of.size == at) {
                        tell(&mut row, &of.name, of.value);
                    }
                    rows.push(row);
                }
                bench::Cell::NoRoom => rows.push(self.failed(
                    cell,
                    &format!("opt needs all accesses in memory, but they do not fit in {TRACE_MEMORY}"),
                )),
                bench::Cell::Broken => {
                    let broken = answer.broken.iter().find(|broken| broken.size == at);
                    let fault = broken.map(|broken| broken.fault.to_string()).unwrap_or_default();
                    rows.push(self.failed(cell, &format!("policy {choice}: {fault}")));
                }
                // It is run next time.
                bench::Cell::NotRun | bench::Cell::Partial { .. } | bench::Cell::Estimate(_) => {}
            }
        }
        Ok(rows)
    }

    /// Replays in the machine.
    fn machine(&self, options: &ReadOptions, cells: &[&Cell], take: Take) -> Result<(), Stopped> {
        let loaded = trace::load(&self.input.path, options, TRACE_MEMORY.0, &mut |_| {});
        let loaded = Arc::new(loaded.map_err(Error::from)?);
        let ask = Ask {
            traces: vec![self.input.path.clone()],
            read_ahead_kb: self.sweep.plan.read_ahead_kb,
            read: self.sweep.plan.read.clone(),
            untimed: self.sweep.plan.untimed,
            ..Ask::default()
        };
        let replayed = |cell: &Cell| self.replayed(&ask, &loaded, cell);
        let requests = loaded.requests.clone();
        let mut tell = |mut rows: Vec<Row>| {
            rows.iter_mut().for_each(|row| tell_requests(row, requests.as_ref()));
            take(rows)
        };
        self.simulate(cells, &replayed, &mut tell)
    }

    fn replayed(&self, ask: &Ask, loaded: &Arc<Loaded>, cell: &Cell) -> Result<(Scenario, u64), Error> {
        let Some(Policy::Machine { profile, .. }) = &cell.policy else {
            return Err(Error::asked("the cell has no policy of the full simulator"));
        };
        let has_neighbours = loaded.has_neighbours;
        let setup = Setup { ask, trace: &self.input.path, profile, has_neighbours };
        let pages = self.pages(cell, loaded.footprint.distinct_pages(), PAGES_MIN)?;
        let mut scenario = setup.scenario(&loaded.footprint, pages)?;
        scenario.seed = cell.seed;
        if !cell.settings.is_empty() {
            // The policy was found already, so its path is not resolved again.
            let name = self.input.path.file_name().unwrap_or_default();
            let text = toml_edit::ser::to_string_pretty(&scenario);
            let text = text.map_err(|error| Error::asked(error.to_string()))?;
            let source = Source::parse(Path::new(name), text)?;
            scenario = source.scenario(&cell.settings)?;
        }
        if !has_neighbours && scenario.device.iter().any(|device| device.window_kb() > 0) {
            // An explicit window enables readahead of opaque ids too.
            scenario.task[0].object.iter_mut().for_each(|object| object.read_ahead = Some(true));
        }
        let trace = scenario.task[0].object[0].trace.as_mut().expect("the first object has the trace");
        trace.loaded = Some(Arc::clone(loaded));
        replay::check(&scenario)?;
        Ok((scenario, pages))
    }

    fn scenario(&self, cells: &[&Cell], take: Take) -> Result<(), Stopped> {
        let source = Source::read(&self.input.path)?;
        let changed = |cell: &Cell| -> Result<(Scenario, u64), Error> {
            let mut settings: Vec<Setting> = Vec::new();
            if let Some(Policy::Machine { profile, .. }) = &cell.policy {
                settings.push(format!("kernel.profile={profile}").parse().map_err(Error::Asked)?);
            }
            settings.extend(cell.settings.iter().cloned());
            let changes = Changes { settings, seed: Some(cell.seed) };
            Ok((load::load(&source, &changes, &[], &())?, 0))
        };
        self.simulate(cells, &changed, take)
    }

    /// Runs scenarios, some at a time.
    fn simulate(&self, cells: &[&Cell], scenario: &MakeScenario, take: Take) -> Result<(), Stopped> {
        let at_a_time = if self.is_alone() { 1 } else { AHEAD * self.jobs };
        for some in cells.chunks(at_a_time) {
            if self.sweep.watcher.stop().is_some() {
                break;
            }
            self.begin(some);
            let (mut rows, mut runs, mut whose) = (Vec::new(), Vec::new(), Vec::new());
            for cell in some {
                match scenario(cell) {
                    Ok((run, pages)) => {
                        runs.push(run);
                        whose.push((*cell, pages));
                    }
                    Err(why) => rows.push(self.failed(cell, &why.in_full())),
                }
            }
            let plan = Runs {
                name: self.input.name.clone(),
                repeat: 1,
                jobs: self.sweep.jobs,
                watcher: self.sweep.watcher,
            };
            let made = if runs.is_empty() {
                Vec::new()
            } else {
                plan.run_in(&runs, self.sweep.plan.untimed)?.variants
            };
            rows.extend(
                whose
                    .into_iter()
                    .zip(made)
                    .filter_map(|((cell, pages), made)| self.simulated(cell, pages, made)),
            );
            take(rows)?;
        }
        Ok(())
    }

    /// The row of a run; none if a signal came before its end.
    fn simulated(&self, cell: &Cell, pages: u64, runs: Made) -> Option<Row> {
        if let Some(failure) = runs.failures.first() {
            return Some(self.failed(cell, &failure.to_string()));
        }
        let result = runs.results.first()?;
        let of = Figures::of(result);
        let mut row = self.row(cell, cell.memory.map(|_| pages));
        row["accesses"] = json!(result.accesses);
        row["read_ahead_kb"] = json!(result.readahead.read_ahead_kb.values().max());
        row["misses"] = json!(of.misses);
        row["miss_ratio"] = json!(of.miss_ratio);
        row["device_pages_read"] = json!(of.device_pages_read);
        row["refaults"] = json!(of.refaults);
        row["refault_distance_p50_pages"] = json!(of.refault_distance(0.5));
        row["refault_distance_p90_pages"] = json!(of.refault_distance(0.9));
        if !self.sweep.plan.untimed {
            row["runtime_ns"] = json!(of.end_ns);
            row["reclaim_p99_ns"] = json!(of.reclaim_p99_ns);
        }
        of.own.iter().for_each(|(name, value)| tell(&mut row, name, *value));
        Some(row)
    }

    fn pages(&self, cell: &Cell, distinct_pages: u64, least: u64) -> Result<u64, Error> {
        replay::pages(cell.memory.expect("a trace's cell has a memory"), distinct_pages, least)
    }

    /// Returns true if this is a process of own policies.
    fn is_alone(&self) -> bool {
        matches!(self.sweep.own, Own::Alone(_))
    }

    /// Cells begin. A process of custom policies has one at a time, and reports it.
    fn begin(&self, cells: &[&Cell]) {
        if let ([cell], Own::Alone(begin)) = (cells, self.sweep.own) {
            begin(cell);
        }
    }

    fn row(&self, cell: &Cell, pages: Option<u64>) -> Row {
        row(self.sweep.plan, cell, pages)
    }

    fn failed(&self, cell: &Cell, why: &str) -> Row {
        failed(self.sweep.plan, cell, why)
    }
}

/// The columns of a row that are known before the result.
fn row(plan: &Plan, cell: &Cell, pages: Option<u64>) -> Row {
    let input = &plan.inputs[cell.input];
    let mut row = json!({
        "key": cell.key,
        "build": plan.build,
        "input": input.name,
        "input_hash": input.hash,
        "policy": cell.policy.as_ref().map(Policy::name),
        "memory": cell.memory(),
        "memory_pages": pages,
        "memory_bytes": pages.map(|pages| pages * 4096),
        "seed": cell.seed,
    });
    for setting in &cell.settings {
        row[setting.key.as_str()] = json!(setting.value);
    }
    let rest = [
        "read_ahead_kb",
        "requests",
        "request_bytes",
        "deletes",
        "accesses",
        "misses",
        "miss_ratio",
        "runtime_ns",
        "device_pages_read",
        "refaults",
        "refault_distance_p50_pages",
        "refault_distance_p90_pages",
        "reclaim_p99_ns",
        "error",
    ];
    if let Some(hash) = cell.policy.as_ref().and_then(Policy::hash) {
        row["policy_hash"] = json!(hash);
    }
    if plan.untimed && cell.policy.as_ref().is_some_and(|policy| policy.textbook().is_none()) {
        row["untimed"] = json!(true);
    }
    row["complete"] = json!(true);
    rest.iter().for_each(|column| row[*column] = Value::Null);
    match row {
        Value::Object(row) => row,
        _ => unreachable!("it was made as an object"),
    }
}

/// Records of a trace that are not accesses.
fn tell_requests(row: &mut Row, requests: Option<&Requests>) {
    let Some(of) = requests else { return };
    row.insert("requests".to_string(), json!(of.requests));
    row.insert("request_bytes".to_string(), json!((of.bytes > 0).then_some(of.bytes)));
    row.insert("deletes".to_string(), json!(of.deletes));
}

/// A figure that a policy reports has a column.
fn tell(row: &mut Row, name: &str, value: f64) {
    row.insert(format!("{OF_POLICY}{name}"), json!(value));
}

/// Returns true if its policy was helped out.
pub(super) fn is_helped(row: &Row) -> bool {
    let mut of_policy =
        row.iter().filter_map(|(column, value)| Some((column.strip_prefix(OF_POLICY)?, value)));
    of_policy
        .any(|(name, value)| name.starts_with(FALLBACKS) && value.as_f64().is_some_and(|times| times > 0.0))
}

/// The row of a cell that has no result.
pub fn failed(plan: &Plan, cell: &Cell, why: &str) -> Row {
    let mut row = row(plan, cell, None);
    row["complete"] = json!(false);
    row["error"] = json!(why);
    row
}
