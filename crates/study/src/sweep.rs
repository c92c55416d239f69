//! A sweep: the product of traces or scenarios, policies, sizes and seeds, too much for one sitting or one machine.
//!
//! ```text
//!   plan.toml ─▶ cells, each with a key ─┬─ key is in a part of the folder: done
//!                                        └─ run, with all others of the same trace ─▶ rows ─▶ a part, whole or not there
//! ```
//! A cell's key is a hash of everything that its result depends on. The order of the plan therefore does not matter, and a repeated command
//! continues. Several machines can share a folder without communication: each runs the cells of its shard and writes its own parts.

mod plan; // from a file to cells
mod parts; // rows on disk
mod run; // from cells to rows
mod collect; // a folder as one table
mod summary; // the same over traces, next to a base policy

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pageout_policy::FALLBACKS;
use pageout_sim::scenario::{Size, TimeSpan};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::check::holds;
use crate::error::{Error, Failed};
use crate::figures;
use crate::replay;
use crate::watch::Watcher;
pub use collect::Status;
pub use parts::{Parts, Row, rows};
pub use plan::{Cell, EqualInput, Input, InputKind, Plan, content_hash, matching};
pub use run::{Elsewhere, Own, Sweep, Take, cells, failed};
pub use summary::{Line, Percentiles, Summary};

/// The file that describes the sweep of a folder.
const PLAN: &str = "plan.json";

/// The task for a plan, or for a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The task. Default: `run`.
    pub task: Task,
    /// The plan, a TOML file, of `run` and `count`. Default: none, which is an error there.
    pub plan: PathBuf,
    /// The folder that rows are in. Default: none, with which `count` has all cells left.
    pub folder: Option<PathBuf>,
    /// The number of this shard, from 0 on, and how many there are. Default: 0 of 1, all cells.
    pub shard: (u32, u32),
    /// Time after which finished rows are written, if there are fewer than 1,000. Default: 60 s.
    pub part_every: TimeSpan,
    /// Runs at the same time; 0 is one for each CPU. Default: 0.
    pub jobs: usize,
    /// Time that a cell of an own policy may take, in a process of its own. Default: 10 min.
    pub policy_time: TimeSpan,
    /// Memory that the process of an own policy may take, with the trace. Default: 4 GiB.
    pub policy_memory: Size,
    /// The policy that others are compared with, of `summary`. Default: `fifo`.
    pub base: String,
    /// Version and commit of the program: another one may have other rules, so its cells have other keys. Default: empty.
    #[serde(skip)]
    pub build: String,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            task: Task::Run,
            plan: PathBuf::new(),
            folder: None,
            shard: (0, 1),
            part_every: TimeSpan(60_000_000_000),
            jobs: 0,
            policy_time: TimeSpan(600_000_000_000),
            policy_memory: Size(4 << 30),
            base: "fifo".to_string(),
            build: String::new(),
        }
    }
}

/// A task for a plan, or for a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Cells that have no row in the folder are run.
    Run,
    /// The same cells are counted, and nothing is run.
    Count,
    /// Rows of the folder are counted.
    Status,
    /// Rows of the folder are read.
    Collect,
    /// Miss ratios of the folder are compared with those of a base policy, over all traces.
    Summary,
}

/// The result, by the task.
#[derive(Debug)]
pub enum Answer {
    /// Cells were run.
    Run(Ran),
    /// Cells were counted.
    Count(Counted),
    /// Rows were counted.
    Status(Status),
    /// All rows, sorted by what they are about.
    Collect(Vec<Row>),
    /// Policies next to a base, over all traces.
    Summary(Summary),
}

/// Cells that were run.
#[derive(Debug)]
pub struct Ran {
    /// The folder that the rows are in.
    pub folder: PathBuf,
    /// Cells of the shard.
    pub cells: usize,
    /// Cells that were run now.
    pub cells_run: usize,
    /// Cells that had a row before.
    pub cells_there_before: usize,
    /// Cells that were run now and failed.
    pub cells_failed: usize,
    /// Cells that were run now, in which an own policy's wrong answer was replaced.
    pub cells_with_fallbacks: usize,
    /// Inputs of equal bytes, which have common rows.
    pub equal_inputs: Vec<EqualInput>,
    /// The reason why it ended before all cells were run, if it did.
    pub interrupted: Option<&'static str>,
}

/// Cells of a plan, by input.
#[derive(Debug)]
pub struct Counted {
    /// Cells of the shard.
    pub cells: usize,
    /// Those of them that have no row in the folder.
    pub cells_left: usize,
    /// The inputs, in the order of their names.
    pub inputs: Vec<InputCounted>,
    /// Inputs of equal bytes, which have common cells.
    pub equal_inputs: Vec<EqualInput>,
}

/// Cells of one input.
#[derive(Debug, Serialize)]
pub struct InputCounted {
    /// The input, as the plan has it.
    #[serde(rename = "input")]
    pub name: String,
    /// The hash of its bytes; nothing if it can't be read.
    #[serde(rename = "input_hash")]
    pub hash: Option<String>,
    /// Cells of the shard.
    pub cells: usize,
    /// Those of them that have no row in the folder.
    pub cells_left: usize,
}

/// Does the task. `own` says where own policies run. Errors: the plan makes no sense, the folder can't be read or written. Cells that fail
/// are rows.
pub fn ask(ask: &Ask, own: Own, watcher: &dyn Watcher) -> Result<Answer, Error> {
    if ask.shard.0 >= ask.shard.1 {
        let (shard, of) = ask.shard;
        return Err(Error::asked(format!(
            "shard: found {shard} of {of}, expected a number from 0 to below {of}"
        )));
    }
    let answer = match ask.task {
        Task::Run => Answer::Run(run_cells(ask, own, watcher)?),
        Task::Count => Answer::Count(count(ask, watcher)?),
        Task::Status => Answer::Status(collect::status(folder(ask)?)?),
        Task::Collect => Answer::Collect(collect::collect(folder(ask)?, watcher)?),
        Task::Summary => Answer::Summary(summary::summary(folder(ask)?, &ask.base, watcher)?),
    };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

fn folder(ask: &Ask) -> Result<&Path, Error> {
    ask.folder.as_deref().ok_or_else(|| Error::asked("folder: missing"))
}

/// Reads the plan. Calls `then` with it, the cells of the shard, and those of them that are left.
fn with_plan<T>(
    ask: &Ask,
    watcher: &dyn Watcher,
    then: impl FnOnce(&Plan, &[&Cell], &[&Cell]) -> Result<T, Error>,
) -> Result<T, Error> {
    let plan = Plan::read(&ask.plan, &ask.build)?;
    let (shard, of) = ask.shard;
    let (done, damaged) = match &ask.folder {
        Some(folder) if folder.is_dir() => collect::found(folder)?,
        _ => Default::default(),
    };
    for part in &damaged {
        watcher.remark(&format!("note: {} is damaged: sweep runs its cells again", part.display()));
    }
    let own: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.is_of(shard, of)).collect();
    let left: Vec<&Cell> = own.iter().copied().filter(|cell| !done.contains_key(&cell.key)).collect();
    then(&plan, &own, &left)
}

fn count(ask: &Ask, watcher: &dyn Watcher) -> Result<Counted, Error> {
    with_plan(ask, watcher, |plan, own, left| {
        let count = |cells: &[&Cell], input: usize| cells.iter().filter(|cell| cell.input == input).count();
        let inputs = plan.inputs.iter().enumerate().map(|(at, input)| InputCounted {
            name: input.name.clone(),
            hash: input.hash.clone(),
            cells: count(own, at),
            cells_left: count(left, at),
        });
        Ok(Counted {
            cells: own.len(),
            cells_left: left.len(),
            inputs: inputs.collect(),
            equal_inputs: plan.equal_inputs(),
        })
    })
}

fn run_cells(ask: &Ask, own: Own, watcher: &dyn Watcher) -> Result<Ran, Error> {
    let folder = folder(ask)?;
    let cannot = |error: io::Error| {
        Error::Write(io::Error::new(error.kind(), format!("{}: {error}", folder.display())))
    };
    with_plan(ask, watcher, |plan, of_shard, left| {
        let mut parts = Parts::open(folder, Duration::from_nanos(ask.part_every.0)).map_err(cannot)?;
        collect::write_plan(folder, &ask.plan, plan).map_err(cannot)?;
        if plan.untimed {
            watcher.remark(&replay::untimed_remark());
        }
        watcher.heed_stop();
        let mut ran = Ran {
            folder: folder.to_path_buf(),
            cells: of_shard.len(),
            cells_run: 0,
            cells_there_before: of_shard.len() - left.len(),
            cells_failed: 0,
            cells_with_fallbacks: 0,
            equal_inputs: plan.equal_inputs(),
            interrupted: None,
        };
        let mut take = |rows: Vec<Row>| {
            ran.cells_run += rows.len();
            ran.cells_failed += rows.iter().filter(|row| is_failed(row)).count();
            ran.cells_with_fallbacks += rows.iter().filter(|row| run::is_helped(row)).count();
            parts.add(rows)
        };
        cells(Sweep { plan, jobs: ask.jobs, own, watcher }, left, &mut take).map_err(cannot)?;
        parts.write().map_err(cannot)?;
        remark_helped(ran.cells_with_fallbacks, watcher);
        ran.interrupted = watcher.stop().filter(|_| ran.cells_run < left.len());
        Ok(ran)
    })
}

fn is_failed(row: &Row) -> bool {
    row.get("complete") == Some(&Value::Bool(false))
}

/// Says that rows are of policies that were helped out, if some are.
fn remark_helped(rows: usize, watcher: &dyn Watcher) {
    if rows > 0 {
        watcher.remark(&format!(
            "warning: in {} a custom policy gave an invalid answer, and the oldest page was evicted instead \
             (--fallback); column policy_{FALLBACKS} has the number",
            figures::counted(rows as u64, "row")
        ));
    }
}

impl Answer {
    /// Returns the reason why the answer is incomplete: cells failed, or a signal came.
    pub fn failure(&self) -> Option<Error> {
        let Answer::Run(ran) = self else { return None };
        let left = ran.cells - ran.cells_there_before;
        match ran.interrupted {
            Some(by) => Some(Error::Interrupted(format!(
                "interrupted by {by} after {} of {left} cells\nhelp: run the same command again to continue",
                ran.cells_run
            ))),
            None if ran.cells_failed > 0 => Some(Error::Failed(Failed {
                is_input: false,
                message: format!(
                    "{} failed; each has a row with its error\nhelp: show the rows by `pageout sweep --collect {}`",
                    figures::counted(ran.cells_failed as u64, "cell"),
                    ran.folder.display()
                ),
            })),
            None => None,
        }
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Answer::Run(ran) => {
                let Ran { cells, cells_run, cells_there_before, cells_failed, cells_with_fallbacks, .. } =
                    ran;
                let done = cells_run + cells_there_before;
                let is_all = done == *cells || ran.interrupted.is_some();
                holds!(is_all && done <= *cells, "found {done} cells with rows, expected {cells}");
                let of_run = cells_failed.max(cells_with_fallbacks);
                holds!(
                    of_run <= cells_run,
                    "{cells_run} cells were run, but {of_run} failed or used the fallback"
                );
            }
            Answer::Count(Counted { cells, cells_left, inputs, .. }) => {
                let sum: usize = inputs.iter().map(|input| input.cells).sum();
                holds!(sum == *cells, "the sweep has {cells} cells, but its inputs have {sum}");
                let sum: usize = inputs.iter().map(|input| input.cells_left).sum();
                holds!(sum == *cells_left, "{cells_left} cells are left, but {sum} by input");
                let is_part = inputs.iter().all(|input| input.cells_left <= input.cells);
                holds!(is_part, "an input has more cells left than it has cells");
            }
            Answer::Status(status) => status.check()?,
            Answer::Summary(summary) => summary.check()?,
            Answer::Collect(rows) => {
                let mut keys: Vec<Option<&str>> =
                    rows.iter().map(|row| row.get("key").and_then(Value::as_str)).collect();
                holds!(!keys.contains(&None), "a row without a key");
                keys.sort_unstable();
                holds!(keys.windows(2).all(|pair| pair[0] != pair[1]), "two rows have the same key");
            }
        }
        Ok(())
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        match self {
            Answer::Run(ran) => json!({
                "complete": ran.interrupted.is_none(),
                "cells": ran.cells,
                "cells_run": ran.cells_run,
                "cells_there_before": ran.cells_there_before,
                "cells_failed": ran.cells_failed,
                "cells_with_fallbacks": ran.cells_with_fallbacks,
                "equal_inputs": ran.equal_inputs,
            }),
            Answer::Count(Counted { cells, cells_left, inputs, equal_inputs }) => {
                json!({ "cells": cells, "cells_left": cells_left, "inputs": inputs, "equal_inputs": equal_inputs })
            }
            Answer::Status(status) => status.json(),
            Answer::Summary(summary) => summary.json(),
            Answer::Collect(rows) => json!(rows),
        }
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN_TEXT: &str =
        "traces = ['a.u32', 'none.u32']\npolicy = ['lru', 'sieve@machine']\nmemory = ['64 pages', '50%']\n";

    /// The answers of a plan: its cells, what running them came to, and its folder afterwards.
    fn answers() -> [Answer; 4] {
        let folder = tempfile::tempdir().unwrap();
        let pages = (0..2_000_u32).map(|at| at * at % 397);
        std::fs::write(folder.path().join("a.u32"), pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
            .unwrap();
        std::fs::write(folder.path().join("plan.toml"), PLAN_TEXT).unwrap();
        [Task::Count, Task::Run, Task::Status, Task::Collect].map(|task| {
            let plan = folder.path().join("plan.toml");
            let asked = Ask { task, plan, folder: Some(folder.path().join("rows")), ..Ask::default() };
            ask(&asked, Own::Here, &()).unwrap()
        })
    }

    fn refused(at: usize, mutate: impl Fn(&mut Answer), told: &str) {
        let mut mutant = answers().into_iter().nth(at).unwrap();
        mutate(&mut mutant);
        let error = mutant.check().unwrap_err();
        assert!(error.contains(told), "{error}");
    }

    #[test]
    fn cells_that_are_run_are_those_that_were_counted() {
        let [counted, ran, status, collected] = answers();
        let (Answer::Count(counted), Answer::Run(ran), Answer::Status(status), Answer::Collect(rows)) =
            (&counted, &ran, &status, &collected)
        else {
            panic!("each task has its answer")
        };
        // The bound is added for the trace that can be read.
        assert_eq!((counted.cells, counted.cells_left), (10, 10));
        assert_eq!((ran.cells_run, ran.cells_failed), (10, 4));
        assert_eq!((status.cells, status.cells_done, status.cells_failed), (Some(10), 10, 4));
        assert_eq!(rows.len(), 10);
    }

    #[test]
    fn answer_with_a_wrong_sum_is_refused() {
        answers().iter().for_each(|answer| assert_eq!(answer.check(), Ok(())));
        let counted = |answer: &mut Answer, with: fn(&mut Counted)| {
            let Answer::Count(of) = answer else { panic!("cells were counted") };
            with(of);
        };
        refused(
            0,
            |answer| counted(answer, |of| of.cells += 1),
            "the sweep has 11 cells, but its inputs have 10",
        );
        refused(0, |answer| counted(answer, |of| of.cells_left -= 1), "9 cells are left, but 10 by input");
        let move_one = |of: &mut Counted| {
            (of.inputs[0].cells_left, of.inputs[1].cells_left) = (9, 1);
        };
        refused(0, |answer| counted(answer, move_one), "more cells left than it has cells");
        let ran = |answer: &mut Answer, with: fn(&mut Ran)| {
            let Answer::Run(of) = answer else { panic!("cells were run") };
            with(of);
        };
        refused(
            1,
            |answer| ran(answer, |of| of.cells_there_before = 1),
            "found 11 cells with rows, expected 10",
        );
        refused(1, |answer| ran(answer, |of| of.cells_failed = 11), "10 cells were run, but 11 failed");
        let status = |answer: &mut Answer, with: fn(&mut Status)| {
            let Answer::Status(of) = answer else { panic!("rows were counted") };
            with(of);
        };
        refused(2, |answer| status(answer, |of| of.cells_done -= 1), "found 10 rows, but 9 by build");
        refused(
            2,
            |answer| status(answer, |of| of.cells_failed = 11),
            "10 cells are complete, but 11 failed",
        );
        let rows = |answer: &mut Answer, with: fn(&mut Vec<Row>)| {
            let Answer::Collect(of) = answer else { panic!("rows were read") };
            with(of);
        };
        refused(3, |answer| rows(answer, |of| drop(of[0].remove("key"))), "a row without a key");
        refused(3, |answer| rows(answer, |of| of.push(of[0].clone())), "two rows have the same key");
    }

    #[test]
    fn ask_as_json_comes_back_and_lacks_nothing() {
        let asked = Ask { task: Task::Count, shard: (2, 3), ..Ask::default() };
        let json = serde_json::to_string(&asked).unwrap();
        assert_eq!(serde_json::from_str::<Ask>(&json).unwrap(), asked);
        let few = r#"{ "task": "count", "shard": [2, 3] }"#;
        assert_eq!(serde_json::from_str::<Ask>(few).unwrap(), asked);
        let error = ask(&Ask { shard: (3, 3), ..asked }, Own::Here, &()).unwrap_err().to_string();
        assert!(error.contains("shard: found 3 of 3"), "{error}");
    }
}
