//! The commands for programs: the words of a command line go in, and what it would print as JSON comes out. So both say the same.
//!
//! A call takes nothing of the process but a thread: no signal, no standard output. What there is to remark is handed back, and whoever calls says by a flag
//! that it is to end.

use std::cell::RefCell;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use clap::{CommandFactory, Parser};
use serde_json::Value;

use crate::cli::Cli;
use crate::own;
use crate::print::{csv, output};

/// What a command came to.
#[derive(Debug, Default)]
pub struct Called {
    /// What it would print with `--json`: there may be some of it where it has failed.
    pub result: Option<String>,
    /// What it would remark on standard error.
    pub remarks: Vec<String>,
    /// Why it has failed, with the exit code.
    pub failure: Option<(u8, String)>,
}

/// A call under way.
struct UnderWay {
    called: Called,
    stop: Arc<AtomicBool>,
}

thread_local! {
    /// The call that this thread is in.
    static HERE: RefCell<Option<UnderWay>> = const { RefCell::new(None) };
}

/// How the program is started, where it is not this process that is the program.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says how the program is started, for what runs in processes of its own.
pub fn set_program(words: Vec<OsString>) {
    let _ = PROGRAM.set(words);
}

/// How the program is started.
pub(crate) fn program() -> std::io::Result<Vec<OsString>> {
    match PROGRAM.get() {
        Some(words) => Ok(words.clone()),
        None => Ok(vec![std::env::current_exe()?.into()]),
    }
}

/// Does what the words of a command line ask for, of which the first is the program's name. It ends soon once `stop` is set.
pub fn call(words: &[OsString], stop: &Arc<AtomicBool>) -> Called {
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            let failure = Some((2, error.render().to_string().trim_end().to_string()));
            return Called { failure, ..Called::default() };
        }
    };
    HERE.set(Some(UnderWay { called: Called::default(), stop: Arc::clone(stop) }));
    own::look_after(&cli.own);
    let done = cli.command.run();
    own::fallbacks().iter().for_each(|told| output::remark(told));
    let under_way = HERE.take().expect("only this function takes it");
    let mut called = under_way.called;
    if let Err(failure) = done {
        let mut told = failure.to_string();
        own::refused().into_iter().filter(|why| !told.contains(why)).for_each(|why| called.remarks.push(why));
        told.truncate(told.trim_end().len());
        called.failure = Some((failure.code(), told));
    }
    called
}

/// Names of columns, and rows of as many values.
pub type Rows = (Vec<String>, Vec<Vec<Value>>);

/// A result that is JSON in rows, as `--format csv` has them.
pub fn rows(result: &Value) -> Rows {
    let mut result = result.clone();
    if let Value::Object(members) = &mut result {
        members.remove("format_version");
    }
    match csv::cells(&result, &[]) {
        Ok(cells) => (cells.columns, cells.rows),
        Err(_) => (Vec::new(), Vec::new()),
    }
}

/// Keeps a result for whoever has called, if this is a call.
pub(crate) fn keep(text: &str) -> bool {
    with(|call| call.called.result = Some(text.to_string())).is_some()
}

/// Keeps a remark likewise.
pub(crate) fn keep_remark(text: &str) -> bool {
    with(|call| call.called.remarks.push(text.trim().to_string())).is_some()
}

/// Whether this thread is in a call.
pub(crate) fn is_call() -> bool {
    with(|_| ()).is_some()
}

/// The flag that ends the call that this thread is in.
pub(crate) fn stop() -> Option<Arc<AtomicBool>> {
    with(|call| Arc::clone(&call.stop))
}

/// Whether the call that this thread is in is to end.
pub(crate) fn is_to_stop() -> bool {
    with(|call| call.stop.load(Relaxed)).unwrap_or(false)
}

fn with<T>(of: impl FnOnce(&mut UnderWay) -> T) -> Option<T> {
    HERE.with_borrow_mut(|here| here.as_mut().map(of))
}

/// The definition of the command line: names, options and help.
pub fn command_line() -> clap::Command {
    Cli::command()
}
