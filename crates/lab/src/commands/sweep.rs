//! `pageout sweep`: cells of a plan, run into a folder by as many as like to, and the folder as one table ([`pageout_study::sweep`]).

pub(crate) mod args; // what can be asked
mod guarded; // cells of own policies, in processes of their own

use std::path::Path;
use std::sync::Arc;

use pageout_study::Watcher;
use pageout_study::sweep::{self, Answer, Cell, Counted, Own, Plan, Ran, Row, Status, Sweep, Task};
use serde_json::Value;

pub(crate) use pageout_study::sweep::Ask;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::{Layout, Terminal, figures};
use crate::signals;
use args::SweepArgs;
use guarded::{AtWork, Work};

/// Which program runs a cell: another may have other rules.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("PAGEOUT_COMMIT"));

/// Does what is asked of a plan or of a folder.
pub(crate) fn run(args: &SweepArgs, cx: &Context) -> Outcome {
    if let Some(plan) = args.plan.as_ref().filter(|_| args.own_cells) {
        return own_cells(args, plan, cx);
    }
    let (task, folder) = match (&args.status, &args.collect, args.dry_run) {
        (Some(folder), ..) => (Task::Status, Some(folder)),
        (None, Some(folder), _) => (Task::Collect, Some(folder)),
        (None, None, true) => (Task::Count, args.into.as_ref()),
        (None, None, false) => (Task::Run, args.into.as_ref()),
    };
    let ask = Ask {
        task,
        plan: args.plan.clone().unwrap_or_default(),
        folder: folder.cloned(),
        shard: args.shard,
        part_every: args.part_every,
        jobs: args.parallel.jobs,
        policy_time: args.policy_time,
        policy_memory: args.policy_memory,
        ..Ask::default()
    };
    let answer = self::ask(&ask, cx, &Terminal::new(&cx.output))?;
    match cx.output.is_data() {
        true => cx.output.print_json(&answer)?,
        false => cx.output.print_text(&text(&answer, cx.layout()))?,
    }
    answer.failure().map_or(Ok(()), |failure| Err(failure.into()))
}

/// Does the task of a sweep, with cells of own policies in processes of their own.
pub(crate) fn ask(ask: &Ask, cx: &Context, watcher: &dyn Watcher) -> Result<Answer, Failure> {
    cx.user_policies.start_from(ask.plan.parent().unwrap_or(Path::new("")));
    let ask = &Ask { build: BUILD.to_string(), ..ask.clone() };
    let elsewhere: &sweep::Elsewhere =
        &|plan, cells, jobs, take| guarded::cells(Work { cx, ask, plan, watcher }, cells, jobs, take);
    let own = Own::Elsewhere { are_there: cx.user_policies.are_there(), run: elsewhere };
    match sweep::ask(ask, own, watcher) {
        Err(error) if error.is_input() => Ok(cx.user_policies.policies(Err(error))?),
        answer => Ok(answer?),
    }
}

/// Runs the cells that are asked for by their keys, for another process.
fn own_cells(args: &SweepArgs, path: &Path, cx: &Context) -> Outcome {
    cx.user_policies.start_from(path.parent().unwrap_or(Path::new("")));
    let plan = cx.user_policies.policies(Plan::read(path, BUILD))?;
    let at_work = Arc::new(AtWork::default());
    let keys = guarded::keys(args.policy_time, args.policy_memory, &at_work, &cx.output)?;
    let terminal = Terminal::new(&cx.output);
    let _listening = signals::listen();
    let cells: Vec<&Cell> = plan.cells.iter().filter(|cell| keys.contains(&cell.key)).collect();
    let begin = |cell: &Cell| at_work.begin(cell);
    let own = Own::Alone(&begin);
    let sweep = Sweep { plan: &plan, jobs: args.parallel.jobs, own, watcher: &terminal };
    sweep::cells(sweep, &cells, &mut |rows| at_work.rows(rows)).map_err(Failure::Output)
}

fn text(answer: &Answer, layout: Layout) -> String {
    match answer {
        Answer::Run(ran) => ran_text(ran),
        Answer::Count(counted) => counted_text(counted, layout),
        Answer::Status(status) => status_text(status),
        Answer::Collect(rows) => rows_text(rows, layout),
    }
}

fn count(number: usize) -> String {
    figures::count(number as u64)
}

fn ran_text(ran: &Ran) -> String {
    format!(
        "{} of {} cells run, {} found, {} failed; in {}\n",
        count(ran.cells_run),
        count(ran.cells),
        count(ran.cells_there_before),
        count(ran.cells_failed),
        ran.folder.display()
    )
}

/// What would be run, by input.
fn counted_text(counted: &Counted, layout: Layout) -> String {
    let mut table = vec![["input", "cells", "left"].map(str::to_string).to_vec()];
    table.extend(counted.inputs.iter().map(|input| {
        let name = match input.hash {
            Some(_) => input.name.clone(),
            None => format!("{} (cannot be read: its cells will fail)", input.name),
        };
        vec![name, count(input.cells), count(input.cells_left)]
    }));
    table.push(vec!["all".to_string(), count(counted.cells), count(counted.cells_left)]);
    layout.table(&table, 1)
}

fn status_text(status: &Status) -> String {
    let all = status.cells.map_or("an unknown number of".to_string(), figures::count);
    let mut text =
        format!("{} of {all} cells done, {} failed\n", count(status.cells_done), count(status.cells_failed));
    if status.rows_of_other_builds > 0 {
        text += &format!("{} rows are of other builds of pageout\n", count(status.rows_of_other_builds));
    }
    for part in &status.damaged {
        text += &format!("{} is damaged: its cells will be run again\n", part.display());
    }
    text
}

fn rows_text(rows: &[Row], layout: Layout) -> String {
    let columns =
        ["input", "policy", "memory", "seed", "read_ahead_kb", "miss_ratio", "misses", "runtime_ns", "error"];
    let shown = |row: &Row| {
        let cell = |column: &&str| match row.get(*column) {
            None | Some(Value::Null) => "-".to_string(),
            Some(Value::String(text)) => text.lines().next().unwrap_or_default().to_string(),
            Some(Value::Number(ratio)) if *column == "miss_ratio" => {
                format!("{:.4}", ratio.as_f64().unwrap_or_default())
            }
            Some(value) => value.to_string(),
        };
        columns.iter().map(cell).collect()
    };
    let heading = columns.map(str::to_string).to_vec();
    let all: Vec<Vec<String>> = std::iter::once(heading).chain(rows.iter().map(shown)).collect();
    layout.table_by(&all, |column| (2..columns.len() - 1).contains(&column))
}
