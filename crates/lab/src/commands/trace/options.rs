//! How to read a trace, as the command line says it. The options are those of a scenario's `read` table, so they become one.

use std::path::Path;

use pageout_engine::PAGE_SIZE;
use pageout_sim::scenario::{Table, TableError};
use pageout_workload::{ReadOptions, TraceError, trace};
use toml_edit::{DocumentMut, value};

use crate::cli::ReadingOptions;
use crate::print::figures;
use crate::print::output;
use crate::scenario::nearest::nearest;
use crate::scenario::source;

/// The `read` table that the options amount to.
pub(crate) fn read_table(reading: &ReadingOptions) -> anyhow::Result<Table> {
    let mut document = DocumentMut::new();
    if let Some(format) = &reading.format {
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

/// A remark on a trace whose pages are not those of the machine that is to replay it.
pub(crate) fn remark_page_size(trace: &Path, options: &ReadOptions) -> Result<(), TraceError> {
    let page_size = u64::from(trace::page_size(trace, options)?);
    if page_size != PAGE_SIZE {
        output::remark(&format!(
            "note: {}: pages of {} are replayed as pages of {}; all sizes are in the latter",
            trace.display(),
            figures::bytes(page_size),
            figures::bytes(PAGE_SIZE)
        ));
    }
    Ok(())
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
