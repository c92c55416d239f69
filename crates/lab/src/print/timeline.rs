//! The timeline of a run: selected figures at a fixed interval, row by row in a file, for plotting.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use pageout_engine::Nanos;
use pageout_sim::{Machine, Observer};
use pageout_study::result::columns::Columns;

use crate::failure::{Failure, Outcome};
use crate::print::streamed::Streamed;

/// The form of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    JsonLines,
}

/// A file that grows by a row at a time.
pub(crate) struct Timeline {
    sink: Streamed,
    form: Form,
    columns: Columns,
    /// The first row that could not be written; none is tried after it.
    failed: Option<io::Error>,
}

impl Timeline {
    /// A timeline in a file whose name says its form, or on standard output (`-`); nothing is written yet.
    pub(crate) fn new(path: &Path, columns: &str, machine: &Machine) -> anyhow::Result<Timeline> {
        let form = form_of(path)?;
        let columns = Columns::parse(columns, machine).context("--timeline-columns")?;
        let sink = Streamed::new(path, "--timeline")?;
        Ok(Timeline { sink, form, columns, failed: None })
    }

    /// The heading of a table in columns; lines of JSON have none.
    pub(crate) fn begin(&mut self) {
        if self.form == Form::Csv {
            let names: Vec<String> = self.columns.names().map(quoted).collect();
            self.failed = writeln!(self.sink, "time_ms,{}", names.join(",")).err();
        }
    }

    fn row(&self, at: Nanos, machine: &Machine) -> String {
        let time = format!("{}.{:06}", at.0 / 1_000_000, at.0 % 1_000_000);
        let values = self.columns.values(at, machine);
        match self.form {
            Form::Csv => {
                let values: Vec<String> = values.map(|value| value.to_string()).collect();
                format!("{time},{}\n", values.join(","))
            }
            Form::JsonLines => {
                let named = self.columns.names().zip(values);
                let values: Vec<String> =
                    named.map(|(name, value)| format!("{}:{value}", serde_json::json!(name))).collect();
                format!("{{\"time_ms\":{time},{}}}\n", values.join(","))
            }
        }
    }

    /// The last row is written: the file has its name from now on.
    pub(crate) fn finish(self) -> Outcome {
        self.failed.map_or(Ok(()), Err).map_err(Failure::writing)?;
        self.sink.finish()
    }
}

impl Observer for Timeline {
    /// Adds a row.
    fn sample(&mut self, at: Nanos, machine: &Machine) {
        if self.failed.is_some() {
            return;
        }
        let row = self.row(at, machine);
        self.failed = self.sink.write_all(row.as_bytes()).err();
    }
}

fn form_of(path: &Path) -> anyhow::Result<Form> {
    if path == Path::new("-") {
        return Ok(Form::Csv);
    }
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("csv") => Ok(Form::Csv),
        Some("jsonl") => Ok(Form::JsonLines),
        _ => bail!(
            "--timeline: unknown suffix: found `{}`, expected .csv, .jsonl, or `-`\nhelp: the suffix selects the format; `-` prints a table on standard output",
            path.display()
        ),
    }
}

/// A name as a field of a table.
fn quoted(name: &str) -> String {
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_string() }
}
