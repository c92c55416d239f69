//! `pageout sweep`: cells of a plan, run into a folder by as many as like to, and the folder as one table ([`pageout_study::sweep`]).

pub(crate) mod args; // what can be asked
mod guarded; // cells of own policies, in processes of their own

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pageout_study::Watcher;
use pageout_study::sweep::{
    self, Answer, Cell, Counted, EqualInput, Own, Plan, Ran, Row, Status, Summary, Sweep, Task,
};
use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item};

pub(crate) use pageout_study::sweep::Ask;

use crate::commands::trace::read_document;
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
    let written;
    let plan = match (&args.plan, &args.into) {
        (None, Some(into)) if !args.traces.is_empty() => {
            check_traces(args)?;
            written = written_plan(args, into)?;
            Some(&written)
        }
        (plan, _) => plan.as_ref(),
    };
    let (task, folder) = match (&args.status, &args.collect, args.dry_run) {
        (Some(folder), ..) => (Task::Status, Some(folder)),
        (None, Some(folder), _) => (Task::Collect, Some(folder)),
        (None, None, true) => (Task::Count, args.into.as_ref()),
        (None, None, false) => (Task::Run, args.into.as_ref()),
    };
    let ask = Ask {
        task,
        plan: plan.cloned().unwrap_or_default(),
        folder: folder.cloned(),
        shard: args.shard,
        part_every: args.part_every,
        jobs: args.parallel.jobs,
        policy_time: args.policy_time,
        policy_memory: args.policy_memory,
        ..Ask::default()
    };
    let terminal = Terminal::new(&cx.output);
    let (mut failure, mut answer) = (None, None);
    if args.summary.is_none() || task == Task::Run {
        let ran = self::ask(&ask, cx, &terminal)?;
        failure = ran.failure();
        answer = Some(ran);
    }
    if let Some(base) = &args.summary
        && answer.as_ref().is_none_or(|ran| !matches!(ran, Answer::Run(ran) if ran.interrupted.is_some()))
    {
        answer = Some(self::ask(&Ask { task: Task::Summary, base: base.clone(), ..ask }, cx, &terminal)?);
    }
    let answer = answer.expect("there is a task");
    match cx.output.is_data() {
        true => cx.output.print_json(&answer)?,
        false => cx.output.print_text(&text(&answer, cx.layout()))?,
    }
    failure.map_or(Ok(()), |failure| Err(failure.into()))
}

/// Refuses what is known to fail before anything runs or is written.
fn check_traces(args: &SweepArgs) -> Outcome {
    let input = |message: String| Err(Failure::Input(anyhow::anyhow!(message)));
    for pattern in args.traces.iter().filter(|pattern| pattern.contains(['*', '?', '['])) {
        let found =
            sweep::matching(pattern).map_err(|error| Failure::Input(anyhow::anyhow!("--traces: {error}")))?;
        if found.is_empty() {
            return input(format!(
                "--traces: found no file that matches `{pattern}`\nhelp: a relative pattern starts at the current folder"
            ));
        }
    }
    match &args.summary {
        Some(base) if !args.policy.iter().flat_map(|list| list.split(',')).any(|policy| policy == base) => {
            input(format!(
                "--summary {base}: found no `{base}` in --policy {}\nhelp: add it: --policy {base},{}",
                args.policy.join(","),
                args.policy.join(",")
            ))
        }
        _ => Ok(()),
    }
}

/// Writes the plan of --traces into the folder, so that the same command or `pageout sweep` of that plan resumes it.
fn written_plan(args: &SweepArgs, into: &Path) -> Result<PathBuf, Failure> {
    let place = |pattern: &String| {
        // Paths of a plan start from its folder.
        let path = std::path::absolute(pattern).unwrap_or_else(|_| pattern.into());
        path.to_string_lossy().into_owned()
    };
    let list = |texts: &mut dyn Iterator<Item = String>| toml_edit::value(texts.collect::<Array>());
    let mut plan = DocumentMut::new();
    plan["traces"] = list(&mut args.traces.iter().map(place));
    plan["policy"] = list(&mut args.policy.iter().cloned());
    plan["memory"] = list(&mut args.memory.iter().cloned());
    plan["seeds"] = toml_edit::value(i64::from(args.seeds));
    let read = read_document(&args.reading)?;
    if !read.is_empty() {
        plan["read"] = Item::Table(read.into_table());
    }
    let text = plan.to_string();
    let path = into.join("plan.toml");
    let written = std::fs::create_dir_all(into).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| {
        Failure::Output(std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    })?;
    Ok(path)
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
        Answer::Summary(summary) => summary_text(summary, layout),
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
    ) + &equal_text(&ran.equal_inputs)
}

/// Inputs that have no rows of their own.
fn equal_text(inputs: &[EqualInput]) -> String {
    inputs.iter().map(|input| input.note() + "\n").collect()
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
    layout.table(&table, 1) + &equal_text(&counted.equal_inputs)
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

/// A line per memory and policy, in percent of the base's miss ratio.
fn summary_text(summary: &Summary, layout: Layout) -> String {
    let heading =
        ["memory", "policy", "traces", "mean", "95 % interval", "p10", "median", "p90", "wins", "best"];
    let mut table = vec![heading.map(str::to_string).to_vec()];
    let percent = |share: f64| format!("{:+.2}%", share * 100.0);
    let mut missing = 0;
    for line in &summary.lines {
        let interval = line.reduction_low.zip(line.reduction_high);
        let interval = interval.map(|(low, high)| format!("{} to {}", percent(low), percent(high)));
        missing += line.traces_missing;
        table.push(vec![
            line.memory.clone(),
            line.policy.clone(),
            count(line.traces),
            percent(line.reduction_mean),
            interval.unwrap_or_else(|| "-".to_string()),
            percent(line.percentiles.reduction_p10),
            percent(line.percentiles.reduction_p50),
            percent(line.percentiles.reduction_p90),
            count(line.wins),
            count(line.best),
        ]);
    }
    let base = &summary.base;
    let mut text =
        format!("reduction of the miss ratio against {base}: 1 - ratio / ratio of {base}, over traces\n\n");
    text += &layout.table_by(&table, |column| column > 1);
    text += &format!(
        "\nwins: traces with fewer misses than {base}; best: traces on which no other policy misses less\n"
    );
    if missing > 0 {
        text += &format!("{} of a policy and a trace are missing\n", figures::counted(missing as u64, "row"));
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
