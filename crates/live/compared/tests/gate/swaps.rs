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
use crate::orders::{ANOTHERS, BEFORE, Frame, WRITTEN, assert_noticed, in_all_orders, open_gate};
use loom::sync::Arc;
use loom::thread;

const PFN: u32 = 9;
const GONE: u64 = 0;
const DIRTY: u64 = 3;

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

struct Page {
    frame: Frame,
    word: AtomicU64,
}

/// The place of the page when the evictor has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    InSlot(u64),
    InFrame,
}

impl Page {
    fn new() -> Page {
        Page { frame: Frame::new(open_gate(), BEFORE), word: AtomicU64::new(DIRTY) }
    }

    /// Closes the gate unless the frame is held.
    fn close(&self) -> bool {
        if !self.frame.gate.close() {
            return false;
        }
        let is_held = self.frame.hold.names(PFN);
        if is_held {
            self.frame.gate.open();
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
            self.frame.gate.open();
            if !self.frame.gate.pass() {
                return Left::InFrame;
            }
        }
        fence(Ordering::SeqCst);
        let slot = self.frame.get();
        if self.close() {
            fence(Ordering::SeqCst);
            self.frame.set(ANOTHERS);
            self.frame.gate.open();
        }
        Left::InSlot(slot)
    }

    /// Writes to the page without the engine, if possible. Returns whether the page was written.
    fn write(&self, bug: Bug) -> bool {
        if self.word.load(Ordering::Relaxed) != DIRTY || self.frame.gate.begin_write().is_err() {
            return false;
        }
        let is_held = self.frame.hold.names(PFN) && bug != Bug::HoldNotSeen;
        let is_there = self.word.load(Ordering::Relaxed) == DIRTY || bug == Bug::NoSecondLook;
        if !is_held && is_there {
            self.frame.set(WRITTEN);
        }
        self.frame.gate.end_write();
        !is_held && is_there
    }

    /// Reads the page twice, if it can be held.
    fn look(&self) {
        if self.word.load(Ordering::Relaxed) == GONE || !self.frame.hold.try_name(PFN) {
            return;
        }
        if self.frame.gate.is_open_after_hold() && self.word.load(Ordering::Relaxed) == DIRTY {
            self.frame.look();
        }
        self.frame.hold.let_go();
    }
}

fn try_all(bug: Bug) {
    in_all_orders(2, move || {
        let page = Arc::new(Page::new());
        let evictor = {
            let page = Arc::clone(&page);
            thread::spawn(move || page.evict(bug))
        };
        let guard = {
            let page = Arc::clone(&page);
            thread::spawn(move || page.look())
        };
        let has_written = page.write(bug);
        let left = evictor.join().unwrap();
        guard.join().unwrap();
        let wanted = if has_written { WRITTEN } else { BEFORE };
        match left {
            Left::InSlot(found) => assert_eq!(found, wanted, "a write is lost on its way to swap"),
            Left::InFrame => assert_eq!(page.frame.get(), wanted, "a write is lost in memory"),
        }
    });
}

#[test]
fn write_beside_an_eviction_to_swap_is_not_lost() {
    try_all(Bug::None);
}

#[test]
fn swap_step_that_is_left_out_is_noticed() {
    assert_noticed(&[Bug::NoSecondLook, Bug::NotClosedAndNotPassed, Bug::HoldNotSeen], try_all);
}
