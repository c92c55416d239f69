//! Printing results: whole or not at all. A reader that has gone is told apart from a disk that is full.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::csv;
use super::form::{self, Form};
use super::options::OutputOptions;
use super::visible;
use crate::call;
use crate::failure::{Failure, Outcome};
use pageout_study::json::FORMAT_VERSION;
use pageout_study::scenario::nearest::nearest;

/// Prints `text` to standard output and makes sure that it has arrived: on a full disk the last buffer is what fails. With `--out` it goes to
/// that file instead, when all is there.
pub(crate) fn print(text: &str) -> Outcome {
    if call::is_call() {
        return print_json(&json!({ "text": text }));
    }
    print_own(&visible::lines(text))
}

/// Prints a text that quotes nothing: help, which may have colours.
pub(crate) fn print_own(text: &str) -> Outcome {
    if form::keep(text.as_bytes()) {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(Failure::writing)
}

/// Prints `text` as people read it: lines that are longer than the terminal is wide go on in the next, as far to the right. Tables fit already
/// ([`super::table`]).
pub(crate) fn print_text(text: &str) -> Outcome {
    match columns() {
        Some(columns) => print(&fitted(text, columns.max(LINE_MIN))),
        None => print(text),
    }
}

/// `text` with its lines broken at blanks where they are longer than `width`.
fn fitted(text: &str, width: usize) -> String {
    let lines = text.lines().map(|line| match line.chars().count() > width {
        true => {
            let indent: String = line.chars().take_while(|c| *c == ' ').take(width / 2).collect();
            wrap(line, width, &indent)
        }
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// Prints `value` as indented JSON, or as rows where those are asked for; of chosen figures in whatever form.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome {
    if call::is_call() {
        call::keep(&to_json(value));
        return Ok(());
    }
    let (form, wanted) = (form::form(), form::figures());
    if !form::has_rows() {
        return print(&to_json(value));
    }
    let value = serde_json::to_value(value).expect("results hold nothing that JSON can't");
    let cells = csv::cells(&value, wanted).map_err(|(unknown, known)| {
        let hint = nearest(&unknown, known.iter().map(String::as_str));
        let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or(".".to_string());
        Failure::Input(anyhow::anyhow!(
            "--figure {unknown}: no figure of this result is called so{hint} There are {}",
            known.join(", ")
        ))
    })?;
    #[cfg(feature = "parquet")]
    if form == Form::Parquet {
        let file = super::parquet::parquet(&cells).map_err(io::Error::other).map_err(Failure::Output)?;
        form::keep(&file);
        return Ok(());
    }
    print(&match form {
        // Without its feature nobody gets here with Parquet.
        Form::Csv | Form::Parquet => cells.csv(),
        Form::Json => to_json(&cells.json()),
        Form::Table | Form::Plain | Form::Markdown => cells.table(),
    })
}

/// Prints `value` likewise; where rows are what is asked for, these in its place, with more to a row than there is to an element of it.
pub(crate) fn print_json_or_rows(value: &Value, rows: impl FnOnce() -> Vec<Value>) -> Outcome {
    if form::has_rows() { print_json(&rows()) } else { print_json(value) }
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

/// Ends a command that has no result. With `--json` an object says so, for whoever reads only standard output. Figures up to the
/// failure are below a key of their own, where nobody takes them for a result.
pub(crate) fn no_result(options: &OutputOptions, failure: Failure, so_far: Value) -> Outcome {
    // Where nothing is there, there is nothing to choose from.
    if options.is_data() && (options.figure.is_empty() || so_far.is_object()) {
        print_json(&json!({ "complete": false, "error": failure.to_string(), "so_far": so_far }))?;
    }
    Err(failure)
}

/// Prints a remark to standard error. If that fails, the command goes on. Remarks quote their input, so control characters are
/// escaped before a terminal obeys them.
pub(crate) fn remark(text: &str) {
    let text = visible::lines(text);
    if !call::keep_remark(&text) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Characters a line of words has at most: longer ones are hard to read.
const LINE: usize = 100;

/// Characters a line of words has at least, however narrow the terminal says it is.
const LINE_MIN: usize = 40;

/// Characters a line of words may have: as many as the terminal has columns, at most 100.
pub(crate) fn width() -> usize {
    columns().map_or(LINE, |columns| columns.clamp(LINE_MIN, LINE))
}

/// Columns of the terminal that the result goes to; `COLUMNS` says otherwise, in a pipe as well. A pipe has none: a table of any width is one
/// table there.
pub(crate) fn columns() -> Option<usize> {
    if form::is_free() {
        return None;
    }
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    said.or_else(terminal).filter(|&columns| columns > 0)
}

/// `text` in lines of at most `width` characters, each behind `indent`.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let room = width.saturating_sub(indent.chars().count()).max(20);
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.iter().map(|line| format!("{indent}{line}").trim_end().to_string() + "\n").collect()
}

/// The first line of each failure under a heading; nothing where there are none.
pub(crate) fn failed(failures: impl Iterator<Item = String>) -> String {
    let lines: String =
        failures.map(|failure| wrap(failure.lines().next().unwrap_or_default(), width(), "  ")).collect();
    if lines.is_empty() { lines } else { format!("\nFailed\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_goes_on_below_as_far_to_the_right() {
        let text = "short\n\n  pgscan  1,000    pgsteal  900 and some more words\n";
        let fitted = fitted(text, 40);
        assert_eq!(fitted, "short\n\n  pgscan 1,000 pgsteal 900 and some more\n  words\n");
        assert_eq!(super::fitted(text, 80), text);
    }

    #[test]
    fn wrapped_text_keeps_its_words_and_the_width() {
        let text = wrap("one two three four five six seven eight nine ten", 24, "  ");
        assert!(text.lines().all(|line| line.chars().count() <= 24 && line.starts_with("  ")));
        assert_eq!(text.split_whitespace().count(), 10);
    }
}
