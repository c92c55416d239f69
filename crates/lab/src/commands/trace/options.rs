//! How to read a trace, as the command line says it. The options become a `read` table, as a scenario has it.

use std::path::Path;

use pageout_engine::PAGE_SIZE;
use pageout_sim::scenario::{Table, TableError};
use pageout_study::scenario::nearest::nearest;
use pageout_study::scenario::source;
use pageout_workload::trace::{self, Column, Interpretation};
use pageout_workload::{ReadOptions, TraceError};
use toml_edit::{DocumentMut, value};

use crate::cli::ReadingOptions;
use crate::print::figures;
use crate::print::output;

/// The `read` table that the options amount to.
pub(crate) fn read_table(reading: &ReadingOptions) -> anyhow::Result<Table> {
    let mut document = DocumentMut::new();
    if let Some(format) = &reading.trace_format {
        document["format"] = value(format);
    }
    if reading.ignore_size {
        document["ignore_size"] = value(true);
    }
    for setting in &reading.read {
        source::apply(document.as_table_mut(), setting)
            .map_err(|fault| anyhow::anyhow!("--read {setting}: {}", fault.message))?;
    }
    Ok(toml_edit::de::from_document(document)?)
}

/// The options themselves.
pub(crate) fn read_options(reading: &ReadingOptions) -> anyhow::Result<ReadOptions> {
    read_table(reading)?.options().map_err(|error| describe(&error))
}

/// Remarks on how a trace that is to be replayed is understood: its columns, what may have been meant otherwise, and pages
/// that are not those of the machine.
pub(crate) fn remark_interpretation(
    trace: &Path,
    options: &ReadOptions,
) -> Result<Interpretation, TraceError> {
    if pageout_study::bench::kept(trace).is_some() {
        // Pages of a program's memory: there is nothing to interpret.
        let format = trace::Format::Words;
        let (columns, doubts) = (Vec::new(), Vec::new());
        return Ok(Interpretation {
            format,
            page_size: 4096,
            tells_writes: false,
            has_neighbours: true,
            columns,
            doubts,
        });
    }
    let interpretation = remark_columns(trace, options)?;
    let page_size = u64::from(interpretation.page_size);
    if page_size != PAGE_SIZE {
        let (theirs, ours) = (figures::bytes(page_size), figures::bytes(PAGE_SIZE));
        let text = format!("pages of {theirs} are replayed as pages of {ours}; all sizes are in the latter");
        remark(trace, &text);
    }
    Ok(interpretation)
}

/// Remarks on how a trace is understood, without what concerns a machine.
pub(super) fn remark_columns(trace: &Path, options: &ReadOptions) -> Result<Interpretation, TraceError> {
    let interpretation = trace::interpretation(trace, options)?;
    if !interpretation.columns.is_empty() {
        remark(trace, &format!("columns: {}", columns(&interpretation)));
    } else if !interpretation.tells_writes {
        remark(trace, "it does not say which accesses write: all are taken for reads");
    }
    for doubt in &interpretation.doubts {
        remark(trace, doubt);
    }
    Ok(interpretation)
}

fn remark(trace: &Path, text: &str) {
    output::remark(&format!("note: {}: {text}", trace.display()));
}

/// What each column is, in the order in which a reader asks: where, how much, how, when, and what is left out. What no column holds
/// is told, too.
pub(super) fn columns(interpretation: &Interpretation) -> String {
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
        parts.push("no size, so one page each".to_string());
    }
    if !interpretation.tells_writes {
        parts.push("no op, so all are taken for reads".to_string());
    }
    parts.join("; ")
}

fn describe(error: &TableError) -> anyhow::Error {
    let given = error.message.split('`').rev().nth(1).unwrap_or_default();
    let nearest = nearest(given, error.candidates.iter().map(String::as_str));
    let hint = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    let allowed = match error.candidates.as_slice() {
        [] => String::new(),
        names => format!(" (allowed: {})", names.join(", ")),
    };
    anyhow::anyhow!("options of the trace reader: {}{hint}{allowed}", error.message)
}
