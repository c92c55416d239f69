//! How to read a trace, as the command line says it. The options become a `read` table, as a scenario has it.

use pageout_sim::scenario::{Table, TableError};
use pageout_study::scenario::nearest::nearest;
use pageout_study::scenario::source;
use pageout_workload::ReadOptions;
use toml_edit::{DocumentMut, value};

use crate::cli::ReadingOptions;

/// The `read` table that the options amount to.
pub(crate) fn read_table(reading: &ReadingOptions) -> anyhow::Result<Table> {
    Ok(toml_edit::de::from_document(read_document(reading)?)?)
}

/// The options as the table of a scenario or a plan.
pub(crate) fn read_document(reading: &ReadingOptions) -> anyhow::Result<DocumentMut> {
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
    Ok(document)
}

/// The options themselves.
pub(crate) fn read_options(reading: &ReadingOptions) -> anyhow::Result<ReadOptions> {
    read_table(reading)?.options().map_err(|error| describe(&error))
}

fn describe(error: &TableError) -> anyhow::Error {
    let given = error.message.split('`').rev().nth(1).unwrap_or_default();
    let nearest = nearest(given, error.candidates.iter().map(String::as_str));
    let hint = nearest.map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
    let help = match error.candidates.as_slice() {
        _ if error.message.contains("\nhelp: ") => String::new(),
        [] => "\nhelp: `pageout keys read.` describes the options of a reader".to_string(),
        names => format!("\nhelp: {hint}allowed: {}", names.join(", ")),
    };
    anyhow::anyhow!("--read: {}{help}", error.message)
}
