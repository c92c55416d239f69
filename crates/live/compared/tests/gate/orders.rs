//! What the models share: all orders of their threads, whether one of them fails, and a frame whose contents loom watches.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::cell::UnsafeCell;

use crate::atomic::AtomicU64;
use crate::gate::Gate;
use crate::holds::Hold;

/// Contents of a frame: before a write, after it, and of another page.
pub(crate) const BEFORE: u64 = 0xa;
pub(crate) const WRITTEN: u64 = 0xb;
pub(crate) const ANOTHERS: u64 = 0xc;

/// Runs a model in all orders in which a thread is interrupted this often.
pub(crate) fn in_all_orders(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Why one of the orders fails, if one does. Prints nothing.
pub(crate) fn failure_of(run: impl FnOnce()) -> Option<String> {
    let silent = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    std::panic::set_hook(silent);
    outcome.err().map(|why| why.downcast_ref::<String>().cloned().unwrap_or_default())
}

/// Panics unless a model fails with each of these steps left out.
#[track_caller]
pub(crate) fn assert_noticed<B: Copy + Debug>(bugs: &[B], run: impl Fn(B)) {
    for &bug in bugs {
        assert!(failure_of(|| run(bug)).is_some(), "{bug:?} was not noticed");
    }
}

/// A gate that is open, at some version.
pub(crate) fn open_gate() -> Gate {
    Gate(AtomicU64::new(5 << 8 | 1))
}

/// A frame.
pub(crate) struct Frame {
    pub(crate) gate: Gate,
    pub(crate) hold: Hold,
    contents: UnsafeCell<u64>,
}

impl Frame {
    pub(crate) fn new(gate: Gate, contents: u64) -> Frame {
        Frame { gate, hold: Hold::default(), contents: UnsafeCell::new(contents) }
    }

    pub(crate) fn get(&self) -> u64 {
        // SAFETY: loom fails the test if another thread may write to it.
        self.contents.with(|contents| unsafe { *contents })
    }

    pub(crate) fn set(&self, value: u64) {
        // SAFETY: loom fails the test if another thread may access it.
        self.contents.with_mut(|contents| unsafe { *contents = value });
    }

    /// Reads the contents twice under a guard, which nothing may change.
    pub(crate) fn look(&self) {
        let seen = [self.get(), self.get()];
        assert!(seen[0] == seen[1] && seen[0] != ANOTHERS, "a page changes under a guard: {seen:x?}");
    }
}
