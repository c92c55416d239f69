//! A command under way: in a thread of its own, while Python's waits for it and looks whether Ctrl-C was pressed.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pageout_lab::Watchdog;
use pageout_lab::api::{Called, call as call_lab};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::policy;
use crate::table::Table;

/// Between two looks at whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);
/// So long a command may take to end after that; then it goes on alone.
const PATIENCE: Duration = Duration::from_millis(900);

/// What came of a command: its JSON, its rows, remarks, and why it failed with which exit code.
type Told = (Option<String>, Option<Table>, Vec<String>, Option<(u8, String)>);

/// How a piece of work ended.
enum Ended<T> {
    Done(T),
    /// A policy's call has not returned in its time, as is told here.
    Late(String),
    /// It has panicked.
    Panicked(String),
}

/// Does a piece of work in a thread of its own. Errors: Ctrl-C was pressed, or a policy in Python has raised something. What is under way then is told to
/// stop, and is left alone where it does not.
fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<Ended<T>> {
    policy::begin();
    let mut watchdog = Watchdog::new();
    let (send, done) = channel();
    let done = Mutex::new(done);
    let worker = thread::Builder::new().name("pageout".to_owned()).spawn(move || {
        let _ = send.send(work());
    })?;
    let mut gives_up: Option<(Instant, Result<String, PyErr>)> = None;
    let done = loop {
        let waited = py.detach(|| done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK));
        match waited {
            Ok(done) => break Some(done),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if gives_up.is_none() {
            let why = match py.check_signals() {
                Err(error) => Some(Err(error)),
                Ok(()) => watchdog.late().map(Ok),
            };
            if let Some(why) = why {
                stop.store(true, Relaxed);
                policy::end(py)?;
                gives_up = Some((Instant::now(), why));
            }
        }
        if gives_up.as_ref().is_some_and(|(at, _)| at.elapsed() > PATIENCE) {
            break None;
        }
    };
    if let Some((_, why)) = gives_up {
        drop(policy::raised());
        return why.map(Ended::Late);
    }
    if let Some(error) = policy::raised() {
        return Err(error);
    }
    Ok(done.map_or_else(
        || {
            let panic = py.detach(|| worker.join()).err();
            let message = panic.as_ref().and_then(|panic| {
                panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied())
            });
            Ended::Panicked(message.unwrap_or("without a message").to_owned())
        },
        Ended::Done,
    ))
}

/// Does what the words of a command line ask for.
#[pyfunction]
pub(crate) fn call(py: Python<'_>, words: Vec<OsString>) -> PyResult<Told> {
    let stop = Arc::new(AtomicBool::new(false));
    let of_thread = Arc::clone(&stop);
    match wait_for(py, &stop, move || call_lab(&words, &of_thread))? {
        Ended::Done(Called { result, remarks, failure }) => {
            let table = result.as_ref().map(|text| Table::of(py, text)).transpose()?;
            Ok((result, table, remarks, failure))
        }
        Ended::Late(why) => Ok((None, None, Vec::new(), Some((2, why)))),
        Ended::Panicked(message) => {
            Err(PyRuntimeError::new_err(format!("pageout has panicked, which is a bug of it: {message}")))
        }
    }
}

/// The program `pageout`, as a command of the package; returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    policy::be_program();
    py.detach(|| {
        let code = pageout_lab::run(&words, &[]);
        pageout_lab::before_the_end();
        code
    })
}

/// Says how the program is started, for what runs in processes of its own.
#[pyfunction]
pub(crate) fn set_program(words: Vec<OsString>) {
    pageout_lab::api::set_program(words);
}
