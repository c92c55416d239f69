//! Moves: copies of pages that the engine has decided on, which are made without its lock.
//!
//! ```text
//!   lock ─▶ a page has moved: its old frame is closed, its new one is not open yet ─▶ unlock ─▶ copy ─▶ open
//!                              └ what needs one of the two waits until then: a read into the old frame, a look into the new one
//! ```
//! A copy costs little. But the first access to a frame makes the system clear a huge page, which takes a quarter of a millisecond, and under the
//! lock all threads would wait for that. The former lock holder copies as soon as the lock is free. Until then the pages are unreachable: the engine
//! finds both frames closed, and so moves and evicts neither.

use std::sync::PoisonError;

use pageout_engine::Pfn;

use crate::arena::Arena;
use crate::atomic::{AtomicUsize, Ordering};
use crate::sync::Mutex;

/// A page that goes to another frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Move {
    pub(super) from: Pfn,
    pub(super) to: Pfn,
}

impl Move {
    /// Copies the page, which can be read from then on.
    pub(super) fn make(self, arena: &Arena) {
        arena.copy(self.from, self.to);
        arena.gate(self.to).open();
    }

    pub(super) fn names(self, pfn: Pfn) -> bool {
        self.from == pfn || self.to == pfn
    }
}

/// Moves that threads are making which have no lock.
#[derive(Default)]
pub(super) struct Moves {
    /// How many there are: mostly none.
    count: AtomicUsize,
    moves: Mutex<Vec<Move>>,
}

impl Moves {
    /// These are being made from now on. Must be called under the engine's lock, so that its next holder knows of them.
    pub(super) fn begin(&self, moves: &[Move]) {
        let mut all = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(moves);
        self.count.store(all.len(), Ordering::Relaxed);
    }

    /// One of them was made.
    pub(super) fn end(&self, made: Move) {
        let mut all = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|&other| other != made);
        // Release: who sees fewer sees the copy.
        self.count.store(all.len(), Ordering::Release);
    }

    /// Returns true if a frame is copied from or to at the moment.
    pub(super) fn names(&self, pfn: Pfn) -> bool {
        self.count.load(Ordering::Acquire) > 0
            && self.moves.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|of| of.names(pfn))
    }
}
