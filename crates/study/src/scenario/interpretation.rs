//! A description of how a trace is interpreted, for the watcher: its columns, and possible other meanings.

use std::path::Path;

use pageout_engine::PAGE_SIZE;
use pageout_workload::trace::{self, Column, Format, Interpretation};
use pageout_workload::{ReadOptions, TraceError};

use crate::watch::Watcher;
use crate::{bench, figures};

/// Remarks on how a trace that is to be replayed is understood: its columns, what may have been meant otherwise, and pages
/// that are not those of the machine.
pub fn remark(
    trace: &Path,
    options: &ReadOptions,
    watcher: &dyn Watcher,
) -> Result<Interpretation, TraceError> {
    if bench::kept(trace).is_some() {
        // Pages of a program's memory: there is nothing to interpret.
        return Ok(Interpretation {
            format: Format::Words,
            page_size: 4096,
            tells_writes: false,
            has_neighbours: true,
            columns: Vec::new(),
            doubts: Vec::new(),
        });
    }
    let interpretation = remark_columns(trace, options, watcher)?;
    let page_size = u64::from(interpretation.page_size);
    if page_size != PAGE_SIZE {
        let (theirs, ours) = (figures::bytes(page_size), figures::bytes(PAGE_SIZE));
        let text =
            format!("pages of {theirs} are replayed as pages of {ours}; all sizes count pages of {ours}");
        remark_on(trace, &text, watcher);
    }
    Ok(interpretation)
}

/// Remarks on how a trace is understood, without what concerns a machine.
pub fn remark_columns(
    trace: &Path,
    options: &ReadOptions,
    watcher: &dyn Watcher,
) -> Result<Interpretation, TraceError> {
    let interpretation = trace::interpretation(trace, options)?;
    if !interpretation.columns.is_empty() {
        remark_on(trace, &format!("columns: {}", columns(&interpretation)), watcher);
    } else if !interpretation.tells_writes {
        remark_on(trace, "the trace does not mark writes: all accesses are treated as reads", watcher);
    }
    for doubt in &interpretation.doubts {
        remark_on(trace, doubt, watcher);
    }
    Ok(interpretation)
}

/// A remark on a trace.
pub(crate) fn remark_on(trace: &Path, text: &str, watcher: &dyn Watcher) {
    watcher.remark(&format!("note: {}: {text}", trace.display()));
}

/// The meaning of each column, in the order in which a reader asks: place, size, operation, time, and ignored columns. Missing columns are
/// also listed.
pub fn columns(interpretation: &Interpretation) -> String {
    let columns = &interpretation.columns;
    let name = |column: &Column| match column.name.as_str() {
        "" => format!("#{}", column.place),
        name => format!("`{name}`"),
    };
    let of = |role: &str| columns.iter().filter(|column| column.holds.name() == role).collect::<Vec<_>>();
    let mut parts = Vec::new();
    for role in ["object", "id", "page", "offset", "size", "op", "count", "time", "ttl", "ignored"] {
        let of = of(role);
        let Some(first) = of.first() else { continue };
        let names = of.iter().map(|column| name(column)).collect::<Vec<_>>().join(", ");
        let unit = match first.holds.unit() {
            Some(1) => " in bytes".to_string(),
            Some(unit) => format!(" in units of {unit} bytes"),
            None => String::new(),
        };
        parts.push(format!("{role} {names}{unit}"));
    }
    if of("object").is_empty() {
        parts.insert(0, "all one object".to_string());
    }
    if of("size").is_empty() {
        parts.push("no size, so one page per access".to_string());
    }
    if !interpretation.tells_writes {
        parts.push("no op, so all accesses are treated as reads".to_string());
    }
    parts.join("; ")
}
