//! A page that a thread compresses ahead, without the lock, with a writer and an evictor at the same time, in all orders. [live-3 12]
//!
//! ```text
//!   ahead    the gate's version ─▶ copies ─▶ lock ─▶ ready: the version, the bytes ─▶ unlock
//!   writer   W dirty ─▶ the gate ─▶ W still dirty ─▶ the bytes ─▶ the gate
//!   evictor  lock ─▶ W empty ─▶ close ─ no: it stays ─▶ ...
//!                                └ yes ─▶ ready, and closed since that version? these bytes ─ no: those of the frame ─▶ the pool ─▶ unlock
//! ```
//! The pool has what was written last. The copy may be of a page that is being written to: its bytes are then used by nobody.

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::gate::{Gate, Seen};
use crate::orders::{BEFORE, WRITTEN, assert_noticed, in_all_orders, open_gate};
use loom::sync::{Arc, Mutex};
use loom::thread;

const GONE: u64 = 0;
const DIRTY: u64 = 3;

/// A step that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// The evictor takes what is ready, and does not compare the version.
    VersionNotSeen,
    /// The writer does not read the word again.
    NoSecondLook,
    /// The evictor asks before it has closed the gate.
    NotClosed,
}

struct Frame {
    gate: Gate,
    word: AtomicU64,
    /// Two halves, which are written and copied one after the other.
    contents: [AtomicU64; 2],
    /// What was compressed ahead, under the engine's lock.
    ready: Mutex<Option<(Seen, [u64; 2])>>,
}

impl Frame {
    fn new() -> Frame {
        let contents = [(); 2].map(|()| AtomicU64::new(BEFORE));
        let (gate, word) = (open_gate(), AtomicU64::new(DIRTY));
        Frame { gate, word, contents, ready: Mutex::new(None) }
    }

    fn copy(&self) -> [u64; 2] {
        [0, 1].map(|half| self.contents[half].load(Ordering::Relaxed))
    }

    fn compress_ahead(&self) {
        let Some(seen) = self.gate.begin() else { return };
        let copied = self.copy();
        if self.gate.is_still(seen) {
            assert_eq!(copied[0], copied[1], "half a write is compressed");
            *self.ready.lock().unwrap() = Some((seen, copied));
        }
    }

    /// Writes to the page without the engine, if possible. Returns whether the page was written.
    fn write(&self, bug: Bug) -> bool {
        if self.word.load(Ordering::Relaxed) != DIRTY || self.gate.begin_write().is_err() {
            return false;
        }
        let is_there = self.word.load(Ordering::Relaxed) == DIRTY || bug == Bug::NoSecondLook;
        if is_there {
            self.contents.iter().for_each(|half| half.store(WRITTEN, Ordering::Relaxed));
        }
        self.gate.end_write();
        is_there
    }

    /// Stores the page, as the lock's holder. `None`: it stays in memory.
    fn evict(&self, bug: Bug) -> Option<[u64; 2]> {
        let ready = self.ready.lock().unwrap();
        self.word.store(GONE, Ordering::Relaxed);
        if bug != Bug::NotClosed && !self.gate.close() {
            return None;
        }
        fence(Ordering::SeqCst);
        let is_current = |seen: Seen| match bug {
            Bug::VersionNotSeen | Bug::NotClosed => true,
            Bug::None | Bug::NoSecondLook => self.gate.is_closed_since(seen),
        };
        let stored = match *ready {
            Some((seen, bytes)) if is_current(seen) => bytes,
            _ => self.copy(),
        };
        // The gate is open until the frame is free, which the caller sees to: a late writer finds the word.
        if bug != Bug::NotClosed {
            self.gate.open();
        }
        Some(stored)
    }
}

fn try_all(bug: Bug) {
    in_all_orders(3, move || {
        let frame = Arc::new(Frame::new());
        let ahead = {
            let frame = Arc::clone(&frame);
            thread::spawn(move || frame.compress_ahead())
        };
        let writer = {
            let frame = Arc::clone(&frame);
            thread::spawn(move || frame.write(bug))
        };
        let stored = frame.evict(bug);
        let has_written = writer.join().unwrap();
        ahead.join().unwrap();
        let wanted = if has_written { [WRITTEN; 2] } else { [BEFORE; 2] };
        assert_eq!(stored.unwrap_or_else(|| frame.copy()), wanted, "a write is lost on its way to the pool");
    });
}

#[test]
fn page_written_after_it_was_compressed_is_stored_as_written() {
    try_all(Bug::None);
}

#[test]
fn compression_step_that_is_left_out_is_noticed() {
    assert_noticed(&[Bug::VersionNotSeen, Bug::NoSecondLook, Bug::NotClosed], try_all);
}
