//! Prints the result and the remarks of a command in the selected form. A result is printed completely or not at all. A closed pipe and a full disk
//! are different failures.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ArgMatches;
use serde::Serialize;
use serde_json::{Value, json};

use super::csv;
use super::form::{Asked, Form};
use super::layout::Layout;
use super::unfinished::Unfinished;
use super::visible;
use crate::failure::{Failure, Outcome};
use crate::signals;
use pageout_study::Watcher;
use pageout_study::json::FORMAT_VERSION;
use pageout_study::scenario::nearest::nearest;

/// The form and the target of a result.
#[derive(Debug)]
pub(crate) struct Output {
    layout: Layout,
    /// Names of the figures to print; empty for all.
    figures: Vec<String>,
    /// Progress is hidden.
    pub(super) is_quiet: bool,
    to: To,
}

/// The target of a result.
#[derive(Debug)]
enum To {
    Stdout,
    /// The file of --out, and its content so far. The file is written when the command has ended.
    File(PathBuf, Mutex<Vec<u8>>),
    /// A program that calls the command. It receives result and remarks, and sets the flag to end the command.
    Caller(Mutex<Kept>, Arc<AtomicBool>),
}

/// What a caller receives.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The output of `--json`.
    pub(crate) result: Option<String>,
    /// The lines of standard error.
    pub(crate) remarks: Vec<String>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Output {
    /// Prints text to standard output.
    fn default() -> Output {
        Output::new(Asked::default(), To::Stdout)
    }
}

impl Output {
    fn new(asked: Asked, to: To) -> Output {
        // Only a table on standard output has to fit a terminal.
        let is_free = asked.form != Form::Table || !matches!(to, To::Stdout);
        let columns = if is_free { None } else { columns() };
        let Asked { form, figures, is_quiet, .. } = asked;
        Output { layout: Layout { form, columns }, figures, is_quiet, to }
    }

    /// Reads the options of a command line. Errors: --out or --format can't be used as given.
    pub(crate) fn asked(matches: &ArgMatches) -> anyhow::Result<Output> {
        let mut asked = Asked::of(matches)?;
        let to = asked.file.take().map_or(To::Stdout, |path| To::File(path, Mutex::default()));
        Ok(Output::new(asked, to))
    }

    /// Keeps result and remarks for a caller, which sets `stop` to end the command.
    pub(crate) fn of_a_call(matches: &ArgMatches, stop: &Arc<AtomicBool>) -> Output {
        Output::new(Asked::by_a_caller(matches), To::Caller(Mutex::default(), Arc::clone(stop)))
    }

    /// The flag that a caller sets to end the command.
    pub(super) fn stop(&self) -> Option<&AtomicBool> {
        match &self.to {
            To::Caller(_, stop) => Some(stop),
            _ => None,
        }
    }

    /// Returns true if another program calls the command.
    pub(crate) fn is_of_a_call(&self) -> bool {
        self.stop().is_some()
    }

    /// The signal that asks the command to end; SIGINT if the flag of a caller does.
    #[cfg(target_os = "linux")]
    pub(crate) fn to_end(&self) -> Option<i32> {
        signals::came().or(self.stop().is_some_and(|stop| stop.load(Relaxed)).then_some(2))
    }

    /// Returns what was kept for a caller.
    pub(crate) fn take_kept(&self) -> Kept {
        match &self.to {
            To::Caller(kept, _) => std::mem::take(&mut *lock(kept)),
            _ => Kept::default(),
        }
    }

    /// The layout of texts.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns true if the result is made of data, and not of text.
    pub(crate) fn is_data(&self) -> bool {
        self.layout.form.is_data() || !self.figures.is_empty()
    }

    /// Returns true if the result is printed in rows, and not as the JSON that it is: as a CSV or Parquet, or with chosen figures in any form.
    fn has_rows(&self) -> bool {
        let are_asked = matches!(self.layout.form, Form::Csv | Form::Parquet) || !self.figures.is_empty();
        are_asked && !self.is_of_a_call()
    }

    /// Prints `text` to standard output and flushes it, because on a full disk the last buffer fails. With `--out` the text goes to that file when it
    /// is complete.
    pub(crate) fn print(&self, text: &str) -> Outcome {
        match self.is_of_a_call() {
            true => self.print_json(&json!({ "text": text })),
            false => self.write(visible::lines(text).as_bytes()),
        }
    }

    /// Prints bytes unchanged: those of a text without quoted input, which may contain colours, or of a binary file.
    pub(crate) fn write(&self, bytes: &[u8]) -> Outcome {
        match &self.to {
            To::Stdout => {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
                return written.map_err(Failure::writing);
            }
            To::File(_, kept) => lock(kept).extend_from_slice(bytes),
            To::Caller(kept, _) => lock(kept).result = Some(String::from_utf8_lossy(bytes).into_owned()),
        }
        Ok(())
    }

    /// Prints `text` as people read it: lines that are longer than the terminal is wide go on in the next, as far to the right. Tables fit already
    /// ([`Layout::table`]).
    pub(crate) fn print_text(&self, text: &str) -> Outcome {
        self.print(&self.layout.fitted(text))
    }

    /// Prints `value` as indented JSON, or as rows where those are asked for; of chosen figures in whatever form.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Outcome {
        if !self.has_rows() {
            return self.write(to_json(value).as_bytes());
        }
        let value = serde_json::to_value(value).expect("results hold nothing that JSON can't");
        let cells = csv::cells(&value, &self.figures).map_err(|(unknown, known)| {
            let hint = nearest(&unknown, known.iter().map(String::as_str));
            let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            Failure::Input(anyhow::anyhow!(
                "--figure: unknown figure `{unknown}`{hint}\nhelp: the figures of this result are {}",
                known.join(", ")
            ))
        })?;
        #[cfg(feature = "parquet")]
        if self.layout.form == Form::Parquet {
            let file = super::parquet::parquet(&cells).map_err(io::Error::other).map_err(Failure::Output)?;
            return self.write(&file);
        }
        self.print(&match self.layout.form {
            // Without its feature, Parquet is rejected earlier.
            Form::Csv | Form::Parquet => cells.csv(),
            Form::Json => to_json(&cells.json()),
            Form::Table | Form::Plain | Form::Markdown => cells.table(self.layout),
        })
    }

    /// Prints `value` likewise; in a form of rows, prints `rows` instead, which may have more columns.
    pub(crate) fn print_json_or_rows(&self, value: &Value, rows: impl FnOnce() -> Vec<Value>) -> Outcome {
        if self.has_rows() { self.print_json(&rows()) } else { self.print_json(value) }
    }

    /// Ends a command without a result. With `--json`, standard output gets an object with the error. Its key `so_far` has the figures before the
    /// failure.
    pub(crate) fn no_result(&self, failure: Failure, so_far: Value) -> Outcome {
        // Without figures, none can be selected.
        if self.is_data() && (self.figures.is_empty() || so_far.is_object()) {
            self.print_json(&json!({ "complete": false, "error": failure.to_string(), "so_far": so_far }))?;
        }
        Err(failure)
    }

    /// Prints a remark to standard error. If that fails, the command goes on. Remarks quote their input, so control characters are
    /// escaped before a terminal obeys them.
    pub(crate) fn remark(&self, text: &str) {
        let text = visible::lines(text);
        match &self.to {
            To::Caller(kept, _) => lock(kept).remarks.push(text.trim().to_string()),
            _ => _ = writeln!(io::stderr().lock(), "{text}"),
        }
    }

    /// Writes the file, if there is to be one and there is a result; a file of that name is replaced.
    pub(crate) fn finish(&self) -> Outcome {
        let To::File(path, kept) = &self.to else { return Ok(()) };
        let bytes = std::mem::take(&mut *lock(kept));
        if bytes.is_empty() {
            return Ok(());
        }
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_special = path.metadata().is_ok_and(|metadata| !metadata.is_file());
        let written = if is_special {
            std::fs::File::options().write(true).open(path).and_then(|mut file| file.write_all(&bytes))
        } else {
            Unfinished::new_in(directory).and_then(|mut file| {
                file.write_all(&bytes)?;
                file.finish(path)
            })
        };
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("--out {}: {error}", path.display()));
        written.map_err(named).map_err(Failure::Output)?;
        self.remark(&format!("result written to {}", path.display()));
        Ok(())
    }
}

/// Prints remarks, and shows no progress.
impl Watcher for Output {
    fn remark(&self, text: &str) {
        self.remark(text);
    }
}

/// Columns of the terminal that results go to; `COLUMNS` says otherwise, in a pipe as well. A pipe has none: a table of any width is one
/// table there.
fn columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    said.or_else(terminal).filter(|&columns| columns > 0)
}

/// `value` as indented JSON, with the version of its form as the first key: of the object, or of each object of a list.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    let mut value = serde_json::to_value(value).expect("results hold nothing that JSON can't");
    match &mut value {
        Value::Array(list) => list.iter_mut().for_each(say_version),
        value => say_version(value),
    }
    visible::json(serde_json::to_string_pretty(&value).expect("a value is JSON") + "\n")
}

fn say_version(value: &mut Value) {
    if let Value::Object(members) = value {
        members.shift_insert(0, "format_version".to_string(), json!(FORMAT_VERSION));
    }
}
