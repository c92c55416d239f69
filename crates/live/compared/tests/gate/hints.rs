//! A page in slow memory that the engine marks and moves, with a guard and a writer at the same time, in all orders. [live-3 5, 12]
//!
//! ```text
//!   engine   W marked ─▶ an access: W plain again, and the page is hot ─▶ close ─ no: it stays ─▶ ...
//!                                                                        └ yes ─▶ W names the new frame ─▶ the copy ─▶ open
//!   guard    W plain ─▶ the frame is held ─▶ the gate is open ─▶ W plain, and the same frame ─▶ reads twice
//!   writer   W plain and dirty ─▶ the gate, and the frame is not held ─▶ W unchanged ─▶ the bytes ─▶ the gate
//! ```
//! Nothing changes under the guard, and what was written is in the frame that W names in the end.

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::gate::Gate;
use crate::orders::{ANOTHERS, BEFORE, Frame, WRITTEN, assert_noticed, in_all_orders, open_gate};
use loom::sync::Arc;
use loom::thread;

/// Frames, and the words that name them: plain, or marked.
const SLOW: u32 = 9;
const FAST: u32 = 5;
const MARKED: u64 = 1 << 16;

/// A step that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// The guard or the writer does not read the word again.
    NoSecondLook,
    /// The engine moves the page without closing its frame.
    NotClosed,
    /// The engine closes the gate, and does not check whether the frame is held.
    HoldNotSeen,
}

struct Page {
    word: AtomicU64,
    slow: Frame,
    fast: Frame,
}

impl Page {
    fn new() -> Page {
        let (slow, fast) = (Frame::new(open_gate(), BEFORE), Frame::new(Gate(AtomicU64::new(7 << 8)), 0));
        Page { word: AtomicU64::new(SLOW.into()), slow, fast }
    }

    fn frame(&self, word: u64) -> &Frame {
        if word == SLOW.into() { &self.slow } else { &self.fast }
    }

    /// Marks the page, and moves it as the access does that meets the mark. Another page then has its old frame.
    fn scan_and_promote(&self, bug: Bug) {
        self.word.store(MARKED | u64::from(SLOW), Ordering::Relaxed);
        let slow = &self.slow;
        let is_closed = bug == Bug::NotClosed
            || slow.gate.close()
                && (bug == Bug::HoldNotSeen || !slow.hold.names(SLOW) || {
                    slow.gate.open();
                    false
                });
        if !is_closed {
            return self.word.store(SLOW.into(), Ordering::Relaxed);
        }
        self.word.store(FAST.into(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.fast.set(slow.get());
        self.fast.gate.open();
        slow.set(ANOTHERS);
        if bug != Bug::NotClosed {
            slow.gate.open();
        }
    }

    fn is_still(&self, word: u64, bug: Bug) -> bool {
        bug == Bug::NoSecondLook || self.word.load(Ordering::Relaxed) == word
    }

    /// Writes to the page without the engine, if possible. Returns whether the page was written.
    fn write(&self, bug: Bug) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        if word & MARKED != 0 || self.frame(word).gate.begin_write().is_err() {
            return false;
        }
        let frame = self.frame(word);
        let is_ours = !frame.hold.names(word as u32) && self.is_still(word, bug);
        if is_ours {
            frame.set(WRITTEN);
        }
        frame.gate.end_write();
        is_ours
    }

    /// Reads the page twice, if it can be held.
    fn look(&self, bug: Bug) {
        let word = self.word.load(Ordering::Relaxed);
        if word & MARKED != 0 || !self.frame(word).hold.try_name(word as u32) {
            return;
        }
        let frame = self.frame(word);
        if frame.gate.is_open_after_hold() && self.is_still(word, bug) {
            frame.look();
        }
        frame.hold.let_go();
    }
}

fn try_all(bug: Bug) {
    in_all_orders(2, move || {
        let page = Arc::new(Page::new());
        let engine = {
            let page = Arc::clone(&page);
            thread::spawn(move || page.scan_and_promote(bug))
        };
        let guard = {
            let page = Arc::clone(&page);
            thread::spawn(move || page.look(bug))
        };
        let has_written = page.write(bug);
        engine.join().unwrap();
        guard.join().unwrap();
        let left = page.frame(page.word.load(Ordering::Relaxed)).get();
        assert_eq!(left, if has_written { WRITTEN } else { BEFORE }, "a write is lost by a move");
    });
}

#[test]
fn marked_page_that_moves_keeps_its_bytes_and_its_guard() {
    try_all(Bug::None);
}

#[test]
fn step_of_a_marked_page_that_is_left_out_is_noticed() {
    assert_noticed(&[Bug::NoSecondLook, Bug::NotClosed, Bug::HoldNotSeen], try_all);
}
