//! A folder as one table: its rows, sorted, and how many there are.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::parts::{Row, rows};
use super::plan::{EqualInput, Plan};
use super::{PLAN, is_failed, remark_helped, run};
use crate::check::holds;
use crate::error::{Error, told};
use crate::figures;
use crate::json::FORMAT_VERSION;
use crate::replay::is_below;
use crate::watch::Watcher;

/// Rows of a folder by key, and its parts that are damaged. Errors: the folder can't be read.
pub(super) fn found(folder: &Path) -> Result<(BTreeMap<String, Row>, Vec<PathBuf>), Error> {
    rows(folder).map_err(|error| Error::asked(format!("cannot read {}: {}", folder.display(), told(&error))))
}

/// Writes which plan runs into a folder.
pub(super) fn write_plan(folder: &Path, path: &Path, plan: &Plan) -> io::Result<()> {
    let said = json!({
        "format_version": FORMAT_VERSION,
        "plan": path.to_string_lossy(),
        "build": plan.build,
        "cells": plan.cells.len(),
        "equal_inputs": plan.equal_inputs(),
    });
    let text = serde_json::to_string_pretty(&said).expect("a value is JSON");
    std::fs::write(folder.join(PLAN), text + "\n")
}

/// The progress of a folder's sweep.
#[derive(Debug)]
pub struct Status {
    /// Cells of the plan that ran into the folder last; nothing if it is unknown.
    pub cells: Option<u64>,
    /// Rows of its build.
    pub cells_done: usize,
    /// Those of them that failed.
    pub cells_failed: usize,
    /// Rows of other builds.
    pub rows_of_other_builds: usize,
    /// Parts that can't be read.
    pub damaged: Vec<PathBuf>,
    /// Rows of the folder.
    rows: usize,
    /// The plan's path and the build, as the folder has them.
    said: Value,
}

/// What is known of the plan that ran into a folder last; null if nothing is.
pub(super) fn plan_of(folder: &Path) -> Value {
    let said = std::fs::read_to_string(folder.join(PLAN)).ok();
    said.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Names the inputs that have no rows of their own, because another one has the same bytes.
pub(super) fn remark_equal(folder: &Path, watcher: &dyn Watcher) {
    let said = plan_of(folder);
    for equal in said["equal_inputs"].as_array().into_iter().flatten() {
        let name = |key: &str| equal[key].as_str().unwrap_or_default().to_string();
        watcher.remark(&EqualInput { name: name("input"), first: name("equals") }.note());
    }
}

pub(super) fn status(folder: &Path) -> Result<Status, Error> {
    let (rows, damaged) = found(folder)?;
    let said = plan_of(folder);
    let of_build = |row: &&Row| row.get("build") == said.get("build");
    Ok(Status {
        cells: said["cells"].as_u64(),
        cells_done: rows.values().filter(of_build).count(),
        cells_failed: rows.values().filter(of_build).filter(|row| is_failed(row)).count(),
        rows_of_other_builds: rows.values().filter(|row| !of_build(row)).count(),
        damaged,
        rows: rows.len(),
        said,
    })
}

impl Status {
    pub(super) fn check(&self) -> Result<(), String> {
        let (rows, done) = (self.rows, self.cells_done);
        let told = done + self.rows_of_other_builds;
        holds!(told == rows, "found {rows} rows, but {told} by build");
        holds!(self.cells_failed <= done, "{done} cells are complete, but {} failed", self.cells_failed);
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "complete": self.cells == Some(self.cells_done as u64),
            "plan": self.said["plan"],
            "build": self.said["build"],
            "cells": self.cells,
            "cells_done": self.cells_done,
            "cells_failed": self.cells_failed,
            "rows_of_other_builds": self.rows_of_other_builds,
            "damaged_parts": self.damaged.len(),
        })
    }
}

/// All rows, sorted by what they are about.
pub(super) fn collect(folder: &Path, watcher: &dyn Watcher) -> Result<Vec<Row>, Error> {
    let (rows, damaged) = found(folder)?;
    for part in damaged {
        watcher.remark(&format!(
            "note: {} is damaged and its rows are missing; run the sweep again",
            part.display()
        ));
    }
    if rows.is_empty() {
        return Err(Error::asked(format!(
            "{}: found no rows, expected the folder of a sweep\nhelp: `pageout sweep PLAN.toml --into DIR` writes one",
            folder.display()
        )));
    }
    remark_equal(folder, watcher);
    let mut rows: Vec<Row> = rows.into_values().collect();
    remark_helped(rows.iter().filter(|row| run::is_helped(row)).count(), watcher);
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
    mark_below_bound(&mut rows, watcher);
    Ok(rows)
}

pub(super) fn text(row: &Row, key: &str) -> String {
    row.get(key).and_then(Value::as_str).unwrap_or_default().to_string()
}

/// Marks rows whose miss ratio is below that of the bound on the same trace in the same memory, and says why that is.
fn mark_below_bound(rows: &mut [Row], watcher: &dyn Watcher) {
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
            below.push(format!(
                "{} on {} at {} has {ratio:.4}, below opt with {bound:.4}",
                text(row, "policy"),
                text(row, "input"),
                text(row, "memory")
            ));
        }
    }
    if let Some(first) = below.first() {
        let more = match below.len() {
            1 => String::new(),
            count => format!(", and {} more", figures::counted(count as u64 - 1, "row")),
        };
        watcher.remark(&format!(
            "note: {first}{more}: opt is a lower bound without readahead, but these policies read ahead \
             (column read_ahead_kb); `read_ahead_kb = 0` in the plan makes them comparable"
        ));
    }
}
