//! The differential tester: random operations on the page cache, compared with a plain model in which a file is a vector of bytes.
//!
//! ```text
//!   one_thread    a sequence of operations of every kind ─▶ each result equals the model's ─▶ a failure is shrunken to a short program
//!   duels         two to four operations at the same time ─▶ results and contents equal those of one order of the operations
//!   region_duels  the same on a region, over a swap file, compressed or not, that is full now and then
//!   many_threads  slots with versions as registers ─▶ a reader sees a version that was there during its read, and never a torn one
//! ```
//! With one thread and with many, the device is full now and then (`full.rs`).
//!
//! Environment:
//! - `PAGEOUT_SEED`: run this seed alone, again and again. A failure prints its seed.
//! - `PAGEOUT_DIFFERENTIAL_SECONDS`: duration of each of the two parts, one thread and many (default: 5).
//! - `PAGEOUT_AVOID`: known defects to step around, as `mixed,near_max`, or `all`, or `none` (default: `settings::AVOIDED`).
//! - `PAGEOUT_DIFFERENTIAL_LONGEST`: seconds after which an operation counts as hanging (default: 20).
//! - `PAGEOUT_DIFFERENTIAL_FOLDER`: where the files are (default: the temporary folder).
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, which make files and threads and look at the clock"
)]

mod settings; // environment, and defects to step around
mod draw; // random numbers
mod folder; // files of a run, and how they are opened
mod full; // devices that are full
mod memory; // the caches to test
mod watch; // who does what, how long it takes, and where the library panics
mod model; // a file as a vector of bytes
mod operations; // operations, as data
mod one_thread; // sequences of operations
mod shrink; // a failing sequence becomes a short one
mod duels; // few operations at the same time
mod many_threads; // slots as registers
mod region_duels; // few operations on a region at the same time

use std::sync::{Mutex, PoisonError};

/// One of the tests at a time: each panic of the library belongs to the test that runs.
static ONE_TEST: Mutex<()> = Mutex::new(());

fn alone(run: impl FnOnce()) {
    let _alone = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    watch::take_panics();
    run();
}

#[test]
fn one_thread_equals_the_model() {
    alone(one_thread::run);
}

#[test]
fn operations_at_once_equal_one_order() {
    alone(duels::run);
}

#[test]
fn operations_on_a_region_at_once_equal_one_order() {
    alone(region_duels::run);
}

#[test]
fn slots_of_many_threads_are_registers() {
    alone(many_threads::run);
}
