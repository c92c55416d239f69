//! A question in progress: in a separate thread, while Python's thread waits and checks for Ctrl-C.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pageout_lab::{Asked, Program, UserPolicyOptions, Watchdog, answer};
use pageout_study::Watcher;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::policy;
use crate::table::Table;

/// Between two looks at whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);
/// So long an answer may take to end after that; then it goes on alone.
const PATIENCE: Duration = Duration::from_millis(900);

/// Work that was left alone, and may call Python yet.
static LEFT: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// The result of a question: JSON, rows, remarks, and the exit code and text of a failure.
type Told = (Option<String>, Option<Table>, Vec<String>, Option<(u8, String)>);

/// How a piece of work ended.
enum Ended<T> {
    Done(T),
    /// A call of a policy has not returned in time: the message.
    Late(String),
    /// It has panicked.
    Panicked(String),
}

/// Does a piece of work in a separate thread. If it has a watchdog, it may call policies in Python: their errors and their end are its business, those of other
/// calls are not. Errors: Ctrl-C was pressed, or a policy in Python has raised something. The work is then asked to stop,
/// and is abandoned if it does not.
fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    stop: &AtomicBool,
    mut watchdog: Option<Watchdog>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<Ended<T>> {
    let has_own = watchdog.is_some();
    if has_own {
        policy::begin();
    }
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
                Ok(()) => watchdog.as_mut().and_then(Watchdog::late).map(Ok),
            };
            if let Some(why) = why {
                stop.store(true, Relaxed);
                if has_own {
                    policy::end(py)?;
                }
                gives_up = Some((Instant::now(), why));
            }
        }
        if gives_up.as_ref().is_some_and(|(at, _)| at.elapsed() > PATIENCE) {
            break None;
        }
    };
    if let Some((_, why)) = gives_up {
        if has_own {
            drop(policy::raised());
        }
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|worker| !worker.is_finished());
        left.push(worker);
        return why.map(Ended::Late);
    }
    if let Some(error) = has_own.then(policy::raised).flatten() {
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

/// Collects remarks, and ends the answer when Python asks for it.
struct Call {
    stop: Arc<AtomicBool>,
    remarks: Mutex<Vec<String>>,
}

impl Watcher for Call {
    fn remark(&self, text: &str) {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner).push(text.trim().to_owned());
    }

    fn stop(&self) -> Option<&'static str> {
        self.stop.load(Relaxed).then_some("SIGINT")
    }
}

/// Answers a question: the fields of a study's `Ask` as JSON, and the options of custom policies, if it can have any (`has_own`). `program` is the command
/// that starts the program in separate processes.
#[pyfunction]
pub(crate) fn ask(
    py: Python<'_>,
    name: String,
    question: &str,
    own: &str,
    program: Vec<OsString>,
    has_own: bool,
) -> PyResult<Told> {
    let no_json = |error: serde_json::Error| PyTypeError::new_err(format!("{name}: {error}"));
    let question = serde_json::from_str(question).map_err(no_json)?;
    let own = serde_json::from_str::<serde_json::Value>(own).map_err(no_json)?;
    let own = match UserPolicyOptions::deserialize(own) {
        Ok(own) => own,
        // Python has checked their types: of these, a text alone can be wrong.
        Err(error) => return Ok((None, None, Vec::new(), Some((2, format!("call_limit: {error}"))))),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let call = Arc::new(Call { stop: Arc::clone(&stop), remarks: Mutex::default() });
    let of_thread = Arc::clone(&call);
    let (watchdog, program) = (has_own.then(|| own.watchdog()), Program::started_by(program));
    match wait_for(py, &stop, watchdog, move || answer(&name, question, own, program, &*of_thread))? {
        Ended::Done(Asked { json, rows, failure }) => {
            let table = json.is_some().then(|| Table::of(rows)).transpose()?;
            let remarks = call.remarks.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Ok((json, table, remarks, failure))
        }
        Ended::Late(why) => Ok((None, None, Vec::new(), Some((2, why)))),
        Ended::Panicked(message) => {
            Err(PyRuntimeError::new_err(format!("pageout has panicked, which is a bug of it: {message}")))
        }
    }
}

/// Waits at most `seconds` for abandoned work: Python is about to exit, and would exit in the middle of a thread that calls it.
#[pyfunction]
pub(crate) fn wait_for_left(py: Python<'_>, seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let is_left =
        || LEFT.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|worker| !worker.is_finished());
    py.detach(|| {
        while is_left() && Instant::now() < end {
            thread::sleep(LOOK);
        }
    });
}

/// The program `pageout`, as a command of the package; returns its exit code. `program` is the command that starts it in separate processes.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>, program: Vec<OsString>) -> u8 {
    policy::be_program();
    py.detach(|| pageout_lab::run(&words, &[], Program::started_by(program)))
}
