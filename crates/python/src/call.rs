//! A command under way: in a thread of its own, while Python's waits for it and looks whether Ctrl-C was pressed.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

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

/// Does what the words of a command line ask for.
#[pyfunction]
pub(crate) fn call(py: Python<'_>, words: Vec<OsString>) -> PyResult<Told> {
    policy::begin();
    let stop = Arc::new(AtomicBool::new(false));
    let (send, done) = channel();
    let done = Mutex::new(done);
    let of_thread = Arc::clone(&stop);
    let worker = thread::Builder::new().name("pageout".to_owned()).spawn(move || {
        let _ = send.send(call_lab(&words, &of_thread));
    })?;
    let mut pressed: Option<(Instant, PyErr)> = None;
    let called = loop {
        let waited = py.detach(|| done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK));
        match waited {
            Ok(called) => break Some(called),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if pressed.is_none()
            && let Err(error) = py.check_signals()
        {
            stop.store(true, Relaxed);
            policy::end();
            pressed = Some((Instant::now(), error));
        }
        if pressed.as_ref().is_some_and(|(at, _)| at.elapsed() > PATIENCE) {
            break None;
        }
    };
    if let Some((_, error)) = pressed {
        return Err(error);
    }
    if let Some(error) = policy::raised() {
        return Err(error);
    }
    let Some(Called { result, remarks, failure }) = called else {
        let panic = py.detach(|| worker.join()).err();
        let message = panic.as_ref().and_then(|panic| {
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied())
        });
        let message = message.unwrap_or("without a message");
        return Err(PyRuntimeError::new_err(format!(
            "pageout has panicked, which is a bug of it: {message}"
        )));
    };
    let table = result.as_ref().map(|text| Table::of(py, text)).transpose()?;
    Ok((result, table, remarks, failure))
}

/// The program `pageout`, as a command of the package; returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| pageout_lab::run(&words, &[]))
}

/// Says how the program is started, for what runs in processes of its own.
#[pyfunction]
pub(crate) fn set_program(words: Vec<OsString>) {
    pageout_lab::api::set_program(words);
}
