//! How to read a trace, as the command line says it. The options become a `read` table, as a scenario has it.

use std::path::Path;

use pageout_sim::scenario::{Table, TableError};
use pageout_study::Watcher;
use pageout_study::scenario::nearest::nearest;
use pageout_study::scenario::{interpretation, source};
use pageout_workload::trace::Interpretation;
use pageout_workload::{ReadOptions, TraceError};
use toml_edit::{DocumentMut, value};

use crate::cli::ReadingOptions;
use crate::print::Output;

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

/// A watcher that prints remarks, and shows no progress.
struct Remarks<'a>(&'a Output);

impl Watcher for Remarks<'_> {
    fn remark(&self, text: &str) {
        self.0.remark(text);
    }
}

/// Prints remarks on how a trace that is to be replayed is understood.
pub(crate) fn remark_interpretation(
    trace: &Path,
    options: &ReadOptions,
    output: &Output,
) -> Result<Interpretation, TraceError> {
    interpretation::remark(trace, options, &Remarks(output))
}

/// Prints remarks on how a trace is understood, without what concerns a machine.
pub(super) fn remark_columns(
    trace: &Path,
    options: &ReadOptions,
    output: &Output,
) -> Result<Interpretation, TraceError> {
    interpretation::remark_columns(trace, options, &Remarks(output))
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
