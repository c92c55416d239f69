//! `pageout sweep`: cells of a plan, run into a folder by as many as like to, and the folder as one table.

pub(crate) mod args; // what can be asked
mod guarded; // cells of own policies, in processes of their own
mod run; // from cells to rows

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use pageout_policy::FALLBACKS;
use pageout_study::Watcher;
use pageout_study::replay::is_below;
use pageout_study::sweep::{Cell, Parts, Plan, Row, rows};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::own;
use crate::print::progress::Terminal;
use crate::print::{figures, output, signals, table};
use args::SweepArgs;

/// What the folder says of the sweep that runs into it.
const PLAN: &str = "plan.json";

/// Which program runs a cell: another may have other rules.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("PAGEOUT_COMMIT"));

/// Does what is asked of a plan or of a folder.
pub(crate) fn run(args: &SweepArgs) -> Outcome {
    if let Some(directory) = &args.status {
        return status(args, directory);
    }
    if let Some(directory) = &args.collect {
        return collect(args, directory);
    }
    let path = args.plan.as_ref().expect("the command line has a plan where it has no folder to look at");
    own::start_from(path.parent().unwrap_or(Path::new("")));
    let plan = own::policies(Plan::read(path, BUILD, &matching))?;
    if args.own_cells {
        return own_cells(args, &plan);
    }
    let (shard, of) = args.shard;
    let (done, damaged) = match &args.into {
        Some(directory) if directory.is_dir() => found(directory)?,
        _ => Default::default(),
    };
    for part in &damaged {
        output::remark(&format!("note: {} is damaged: its cells are run again", part.display()));
    }
    let own: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.is_of(shard, of)).collect();
    let left: Vec<&Cell> = own.iter().copied().filter(|cell| !done.contains_key(&cell.key)).collect();
    if args.dry_run {
        return dry_run(args, &plan, &own, &left);
    }
    let directory = args.into.as_ref().expect("the command line has it where it runs something");
    let every = Duration::from_nanos(args.part_every.0);
    let cannot = |error| Failure::Output(named(directory, error));
    let mut parts = Parts::open(directory, every).map_err(cannot)?;
    let said = json!({ "plan": path.to_string_lossy(), "build": BUILD, "cells": plan.cells.len() });
    std::fs::write(directory.join(PLAN), output::to_json(&said)).map_err(cannot)?;
    let terminal = Terminal::new(&args.output);
    // Between two runs as well: a signal leaves what there is.
    let _listening = signals::listen();
    let mut made = Made::default();
    let mut take = |rows: Vec<Row>| {
        made.rows += rows.len();
        made.failed += rows.iter().filter(|row| is_failed(row)).count();
        made.helped += rows.iter().filter(|row| run::is_helped(row)).count();
        parts.add(rows)
    };
    let sweep = run::Sweep { args, plan: &plan, terminal: &terminal };
    run::cells(sweep, &left, &mut take).map_err(cannot)?;
    parts.write().map_err(cannot)?;
    remark_helped(made.helped);
    let told = format!(
        "{} of {} cells run, {} were there; {} failed; in {}",
        figures::count(made.rows as u64),
        figures::count(own.len() as u64),
        figures::count((own.len() - left.len()) as u64),
        figures::count(made.failed as u64),
        directory.display()
    );
    let interrupted = terminal.stop().filter(|_| made.rows < left.len());
    if args.output.is_data() {
        output::print_json(&json!({
            "complete": interrupted.is_none(),
            "cells": own.len(),
            "cells_run": made.rows,
            "cells_there_before": own.len() - left.len(),
            "cells_failed": made.failed,
            "cells_with_fallbacks": made.helped,
        }))?;
    } else {
        output::print_text(&format!("{told}\n"))?;
    }
    match interrupted {
        Some(by) => Err(pageout_study::Error::Interrupted(format!(
            "interrupted by {by} after {} of {} cells: the same command goes on",
            made.rows,
            left.len()
        ))
        .into()),
        None if made.failed > 0 => Err(Failure::Workload(anyhow::anyhow!(
            "{} failed, each a row with its error: pageout sweep --collect {}",
            figures::counted(made.failed as u64, "cell"),
            directory.display()
        ))),
        None => Ok(()),
    }
}

/// Runs the cells that are asked for by their keys, for another process.
fn own_cells(args: &SweepArgs, plan: &Plan) -> Outcome {
    let keys = guarded::keys(args)?;
    let terminal = Terminal::new(&args.output);
    let _listening = signals::listen();
    let cells: Vec<&Cell> = plan.cells.iter().filter(|cell| keys.contains(&cell.key)).collect();
    let sweep = run::Sweep { args, plan, terminal: &terminal };
    run::cells(sweep, &cells, &mut guarded::rows).map_err(Failure::Output)
}

#[derive(Default)]
struct Made {
    rows: usize,
    failed: usize,
    /// Rows whose policies were helped out.
    helped: usize,
}

/// Says that rows are of policies that were helped out, if some are.
fn remark_helped(rows: usize) {
    if rows > 0 {
        output::remark(&format!(
            "warning: in {} an own policy answered wrong, and the page that came first went in place of its answer (--fallback): column policy_{FALLBACKS} \
             says how often",
            figures::counted(rows as u64, "row")
        ));
    }
}

/// Rows of a folder by key, and its parts that are damaged.
type Found = (std::collections::BTreeMap<String, Row>, Vec<std::path::PathBuf>);

fn found(directory: &Path) -> anyhow::Result<Found> {
    rows(directory).with_context(|| format!("{} can't be read", directory.display()))
}

fn is_failed(row: &Row) -> bool {
    row.get("complete") == Some(&Value::Bool(false))
}

fn named(directory: &Path, error: std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
}

fn matching(pattern: &str) -> Result<Vec<std::path::PathBuf>, String> {
    let paths = glob::glob(pattern).map_err(|error| format!("`{pattern}` is no pattern: {error}"))?;
    paths.map(|path| path.map_err(|error| error.to_string())).collect()
}

/// What would be run, by input.
fn dry_run(args: &SweepArgs, plan: &Plan, own: &[&Cell], left: &[&Cell]) -> Outcome {
    let count = |cells: &[&Cell], input: usize| cells.iter().filter(|cell| cell.input == input).count();
    let inputs = plan.inputs.iter().enumerate();
    let counts = inputs.map(|(at, input)| (input, count(own, at), count(left, at)));
    if args.output.is_data() {
        let inputs = counts.map(|(input, cells, left)| {
            json!({ "input": input.name, "input_hash": input.hash, "cells": cells, "cells_left": left })
        });
        return output::print_json(
            &json!({ "cells": own.len(), "cells_left": left.len(), "inputs": inputs.collect::<Vec<_>>() }),
        );
    }
    let mut table = vec![["input", "cells", "left"].map(str::to_string).to_vec()];
    table.extend(counts.map(|(input, cells, left)| {
        let name = match input.hash {
            Some(_) => input.name.clone(),
            None => format!("{} (can't be read: its cells will fail)", input.name),
        };
        vec![name, figures::count(cells as u64), figures::count(left as u64)]
    }));
    table.push(vec!["all".to_string(), figures::count(own.len() as u64), figures::count(left.len() as u64)]);
    output::print_text(&table::layout(&table, 1))
}

fn status(args: &SweepArgs, directory: &Path) -> Outcome {
    let (rows, damaged) = found(directory)?;
    let said = std::fs::read_to_string(directory.join(PLAN)).ok();
    let said: Value = said.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let of_build = |row: &&Row| row.get("build") == said.get("build");
    let done = rows.values().filter(of_build).count();
    let failed = rows.values().filter(of_build).filter(|row| is_failed(row)).count();
    let cells = said["cells"].as_u64();
    if args.output.is_data() {
        return output::print_json(&json!({
            "complete": cells == Some(done as u64),
            "plan": said["plan"],
            "build": said["build"],
            "cells": cells,
            "cells_done": done,
            "cells_failed": failed,
            "rows_of_other_builds": rows.len() - done,
            "damaged_parts": damaged.len(),
        }));
    }
    let all = cells.map_or("an unknown number of".to_string(), figures::count);
    let mut text = format!(
        "{} of {all} cells done, {} failed\n",
        figures::count(done as u64),
        figures::count(failed as u64)
    );
    if rows.len() > done {
        text +=
            &format!("{} rows are of other builds of pageout\n", figures::count((rows.len() - done) as u64));
    }
    for part in damaged {
        text += &format!("{} is damaged: its cells will be run again\n", part.display());
    }
    output::print_text(&text)
}

/// Marks rows whose miss ratio is below that of the bound on the same trace in the same memory, and says why that is.
fn mark_below_bound(rows: &mut [Row]) {
    let about =
        |row: &Row| ["input", "input_hash", "memory"].map(|column| row.get(column).map(Value::to_string));
    let ratio = |row: &Row| row.get("miss_ratio").and_then(Value::as_f64);
    let is_bound = |row: &Row| row.get("policy").and_then(Value::as_str) == Some("opt");
    let bounds: BTreeMap<_, f64> =
        rows.iter().filter(|row| is_bound(row)).filter_map(|row| Some((about(row), ratio(row)?))).collect();
    let mut below = Vec::new();
    for row in rows.iter_mut().filter(|row| !is_bound(row)) {
        let Some((ratio, bound)) = ratio(row).zip(bounds.get(&about(row)).copied()) else { continue };
        let is_below = is_below(ratio, bound);
        row.insert("is_below_bound".to_string(), json!(is_below));
        if is_below {
            let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
            below.push(format!(
                "{} on {} at {}: {ratio:.4}, and opt has {bound:.4}",
                text("policy"),
                text("input"),
                text("memory")
            ));
        }
    }
    if let Some(first) = below.first() {
        let more = match below.len() {
            1 => String::new(),
            count => format!(", and {} more", figures::counted(count as u64 - 1, "row")),
        };
        output::remark(&format!(
            "note: {first}{more}: opt is a bound of policies that read only what is asked for, and these read ahead (column read_ahead_kb); \
             `read_ahead_kb = 0` in the plan compares like with like"
        ));
    }
}

/// All rows, sorted by what they are about.
fn collect(args: &SweepArgs, directory: &Path) -> Outcome {
    let (rows, damaged) = found(directory)?;
    for part in damaged {
        output::remark(&format!(
            "note: {} is damaged, and its rows are missing: run the sweep again",
            part.display()
        ));
    }
    if rows.is_empty() {
        return Err(Failure::Input(anyhow::anyhow!("{} has no rows of a sweep", directory.display())));
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    remark_helped(rows.iter().filter(|row| run::is_helped(row)).count());
    let text = |row: &Row, key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let number = |row: &Row, key: &str| row.get(key).and_then(Value::as_u64).unwrap_or_default();
    rows.sort_by_cached_key(|row| {
        (
            text(row, "input"),
            text(row, "policy"),
            number(row, "memory_pages"),
            text(row, "memory"),
            number(row, "seed"),
            text(row, "key"),
        )
    });
    mark_below_bound(&mut rows);
    if args.output.is_data() {
        return output::print_json(&rows);
    }
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
    output::print_text(&table::layout_by(&all, |column| (2..columns.len() - 1).contains(&column)))
}
