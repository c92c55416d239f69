//! The gate of a frame, over atomics of loom, which tries all orders in which threads may meet there.
#![allow(clippy::unwrap_used, reason = "a test")]

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    /// Loom takes accesses that are in one order as if they were in none, but not fences.
    pub(crate) fn between_two() {
        fence(Ordering::SeqCst);
    }
}

#[allow(dead_code, reason = "an arena uses all of it")]
#[path = "../../../src/gate.rs"]
mod gate;

#[allow(dead_code, reason = "an arena uses all of it")]
#[path = "../../../src/holds.rs"]
mod holds;

#[allow(dead_code, reason = "a file uses all of it")]
#[path = "../../../src/length.rs"]
mod length;

mod orders; // all orders, and what the models share

mod compressed; // a page compressed ahead, with a writer and an evictor
mod cuts; // a file that gets shorter beside those
mod hints; // a page that is marked and moves, with a guard and a writer
mod reads; // a reader and a guard beside an evictor
mod swaps; // a writer and a guard during an eviction to swap
mod writes; // a writer beside the flusher, a reader and a guard
