//! Eviction of a region's page to swap, with a writer and a guard at the same time, in all orders. Here the page's word changes before the gate is closed, and
//! not after it: a page that stays in memory is in the swap cache, and is mapped again from there. [live-3 12]
//!
//! ```text
//!   evictor   W empty, its dirty bit noted ─▶ close ─ no: it stays, dirty ─▶ ...
//!                                              └ yes ─▶ open ─▶ pass the gate ─▶ the slot gets the contents of the frame ─▶ close ─▶ another page's contents ─▶ open
//!   writer    W dirty ─▶ the gate, and the frame is not held ─▶ W still dirty ─▶ the bytes ─▶ the gate
//!   guard     W ─▶ the frame is held ─▶ the gate is open ─▶ W unchanged ─▶ reads twice
//! ```
//! The writer's bytes are in the slot or in the frame, and nothing changes under the guard.

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::gate::Gate;
use crate::holds::Hold;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};

const PFN: u32 = 9;
const GONE: u64 = 0;
const DIRTY: u64 = 3;
const BEFORE: u64 = 0xa;
const WRITTEN: u64 = 0xb;
const ANOTHERS: u64 = 0xc;

/// A step that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// The writer does not read the word again.
    NoSecondLook,
    /// The evictor does not check for a writer.
    NotClosedAndNotPassed,
    /// The writer does not check whether the frame is held.
    HoldNotSeen,
}

struct Frame {
    gate: Gate,
    hold: Hold,
    word: AtomicU64,
    contents: UnsafeCell<u64>,
}

/// The place of the page when the evictor has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    InSlot(u64),
    InFrame,
}

impl Frame {
    fn new() -> Frame {
        let (gate, hold) = (Gate(AtomicU64::new(5 << 8 | 1)), Hold::default());
        Frame { gate, hold, word: AtomicU64::new(DIRTY), contents: UnsafeCell::new(BEFORE) }
    }

    fn get(&self) -> u64 {
        // SAFETY: loom fails the test if another thread may write to it.
        self.contents.with(|contents| unsafe { *contents })
    }

    fn set(&self, value: u64) {
        // SAFETY: loom fails the test if another thread may access it.
        self.contents.with_mut(|contents| unsafe { *contents = value });
    }

    /// Closes the gate unless the frame is held.
    fn close(&self) -> bool {
        if !self.gate.close() {
            return false;
        }
        let is_held = self.hold.names(PFN);
        if is_held {
            self.gate.open();
        }
        !is_held
    }

    /// Swaps the page out, and reuses its frame for another page.
    fn evict(&self, bug: Bug) -> Left {
        self.word.store(GONE, Ordering::Relaxed);
        if bug != Bug::NotClosedAndNotPassed {
            if !self.close() {
                return Left::InFrame;
            }
            self.gate.open();
            if !self.gate.pass() {
                return Left::InFrame;
            }
        }
        fence(Ordering::SeqCst);
        let slot = self.get();
        if self.close() {
            fence(Ordering::SeqCst);
            self.set(ANOTHERS);
            self.gate.open();
        }
        Left::InSlot(slot)
    }

    /// Writes to the page without the engine, if possible. Returns whether the page was written.
    fn write(&self, bug: Bug) -> bool {
        if self.word.load(Ordering::Relaxed) != DIRTY || self.gate.begin_write().is_err() {
            return false;
        }
        let is_held = self.hold.names(PFN) && bug != Bug::HoldNotSeen;
        let is_there = self.word.load(Ordering::Relaxed) == DIRTY || bug == Bug::NoSecondLook;
        if !is_held && is_there {
            self.set(WRITTEN);
        }
        self.gate.end_write();
        !is_held && is_there
    }

    /// Reads the page twice, if it can be held.
    fn look(&self) {
        if self.word.load(Ordering::Relaxed) == GONE || !self.hold.try_name(PFN) {
            return;
        }
        if self.gate.is_open_after_hold() && self.word.load(Ordering::Relaxed) == DIRTY {
            let seen = [self.get(), self.get()];
            assert!(seen[0] == seen[1] && seen[0] != ANOTHERS, "a page changes under a guard: {seen:x?}");
        }
        self.hold.let_go();
    }
}

fn try_all(bug: Bug) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let frame = Arc::new(Frame::new());
        let evictor = {
            let frame = Arc::clone(&frame);
            thread::spawn(move || frame.evict(bug))
        };
        let guard = {
            let frame = Arc::clone(&frame);
            thread::spawn(move || frame.look())
        };
        let has_written = frame.write(bug);
        let left = evictor.join().unwrap();
        guard.join().unwrap();
        let wanted = if has_written { WRITTEN } else { BEFORE };
        match left {
            Left::InSlot(found) => assert_eq!(found, wanted, "a write is lost on its way to swap"),
            Left::InFrame => assert_eq!(frame.get(), wanted, "a write is lost in memory"),
        }
    });
}

fn is_noticed(bug: Bug) -> bool {
    let silent = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(|| try_all(bug)));
    std::panic::set_hook(silent);
    outcome.is_err()
}

#[test]
fn write_beside_an_eviction_to_swap_is_not_lost() {
    try_all(Bug::None);
}

#[test]
fn swap_step_that_is_left_out_is_noticed() {
    for bug in [Bug::NoSecondLook, Bug::NotClosedAndNotPassed, Bug::HoldNotSeen] {
        assert!(is_noticed(bug), "{bug:?} was not noticed");
    }
}
