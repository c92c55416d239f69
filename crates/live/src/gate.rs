//! Gates: one a frame, by which readers that take no lock and the engine that takes frames away keep clear of each other.
//!
//! ```text
//!   gate    version (56) | 0 closed, 1 open, 2..254 open with 1..253 pins, 255 being written
//!
//!   read    word W of the page ─▶ gate open? ─▶ copy ─▶ W names the same frame? ─▶ fence ─▶ gate has the same version? else again
//!   guard   W ─▶ the frame is held ([`crate::holds`]), or has one more pin, by compare and swap ─▶ W names it still? else let go, and again
//!   engine  close, where no pin and no hold is (version + 1) ─▶ W changes ─▶ the frame is another's ─▶ its contents are there ─▶ open (version + 1)
//!   write   W says dirty ─▶ written from now on, where no pin and no hold is (version + 1) ─▶ W says so still? ─▶ the bytes ─▶ open (version + 1)
//!   flusher W is not dirty any more ─▶ pass the gate: whoever writes has ended ─▶ the device reads the frame
//! ```
//! The gate alone is not enough: a reader may have an old W, and find a gate that is open for another page. W alone is not enough: the page may
//! leave, and come back to the same frame, while a reader copies. Both together are, if the gate is checked last: then W named the frame while the
//! frame was open for one page all the time. No code waits for readers: a late one discards its copy. A frame that was never used, and each gate in
//! the child of a fork, is zero, which is closed.
//!
//! A writer and a flusher both change the gate, one after the other. If the writer is first, the flusher waits until it has opened the gate, and writes
//! what it has left there. If the flusher is first, the writer finds that the page is not dirty any more, and asks the engine, which notes that it is to be
//! written once more. So a page that is being written may be written to, and nothing is lost.
//!
//! `compared/tests/gate/` tries all orders of a reader, a guard and an evictor, and engines that leave out one of the steps.

use crate::atomic::{AtomicU64, Ordering, between_two, fence};

const COUNT: u64 = 0xff;
const CLOSED: u64 = 0;
const OPEN: u64 = 1;
const PINS_MAX: u64 = 253;
const WRITTEN: u64 = 255;

/// State of a gate that a reader has seen before it began to copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen(u64);

/// Why a frame can't be pinned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unpinned {
    /// Its page is on its way out, or on its way in.
    Closed,
    /// Its page has a writer.
    Written,
    /// The gate has the maximum number of pins.
    Full,
    /// It should be written to, but has a holder.
    Held,
}

/// Returns true if a count is one of an open gate: one test, as each hit makes it.
#[inline(always)]
fn is_open(seen: u64) -> bool {
    (seen as u8).wrapping_sub(OPEN as u8) < WRITTEN as u8 - OPEN as u8
}

/// One gate.
pub(crate) struct Gate(pub(crate) AtomicU64);

impl Gate {
    /// Begins a read; `None` where the gate is closed.
    #[inline(always)]
    pub(crate) fn begin(&self) -> Option<Seen> {
        // Acquire: a thread that sees it open also sees everything written before it was opened, including the page's word.
        let seen = self.0.load(Ordering::Acquire);
        is_open(seen).then_some(Seen(seen >> 8))
    }

    /// Ends a read, after a second look at the page's word: whether the frame was open all the while.
    #[inline(always)]
    pub(crate) fn is_still(&self, seen: Seen) -> bool {
        // The copy and the look at the word come before this one.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) >> 8 == seen.0
    }

    /// One more pin. The caller looks at the page's word again afterwards.
    #[inline]
    pub(crate) fn pin(&self) -> Result<(), Unpinned> {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            match seen & COUNT {
                CLOSED => return Err(Unpinned::Closed),
                WRITTEN => return Err(Unpinned::Written),
                count if count > PINS_MAX => return Err(Unpinned::Full),
                _ => {}
            }
            match self.0.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// Takes one pin back.
    #[inline]
    pub(crate) fn unpin(&self) {
        // Release: what was read under the pin was read before it goes.
        let before = self.0.fetch_sub(1, Ordering::Release);
        debug_assert!(before == 0 || before & COUNT > OPEN, "a frame is unpinned that nobody has pinned");
        if before == 0 {
            // A guard that was taken before a fork, in the child.
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Closes the gate for new readers; false if it is pinned, or already closed.
    pub(crate) fn close(&self) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        let closed = ((seen >> 8) + 1) << 8 | CLOSED;
        // SeqCst: in the order of all such accesses it comes before a look at what is held.
        let is_closed = seen & COUNT == OPEN
            && self.0.compare_exchange(seen, closed, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        between_two();
        // Later changes of the page's word and of the frame are invisible to a reader that still saw the gate open.
        fence(Ordering::Release);
        is_closed
    }

    /// The frame holds what it should. Only who closed it, or fills it, opens it.
    pub(crate) fn open(&self) {
        let seen = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(seen & COUNT, CLOSED, "a gate is opened that is open");
        self.0.store(((seen >> 8) + 1) << 8 | OPEN, Ordering::Release);
    }

    /// Returns true if it is open. The caller has just named its frame in a [`crate::holds::Hold`].
    #[inline(always)]
    pub(crate) fn is_open_after_hold(&self) -> bool {
        // SeqCst: in the order of all such accesses it comes after the frame was named. Acquire is part of it, as for `begin`.
        is_open(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn is_open(&self) -> bool {
        is_open(self.0.load(Ordering::Relaxed))
    }

    /// Returns true if the gate is closed and has no writer: one load, as a writer may end between two.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) & COUNT == CLOSED
    }

    /// Returns true if the gate was closed since a read has begun, and nothing else has happened: the page is what the read has seen. The caller has
    /// the engine's lock, so no other thread opens or closes the gate.
    pub(crate) fn is_closed_since(&self, seen: Seen) -> bool {
        // Acquire: a writer that has ended before the gate was closed is seen.
        self.0.load(Ordering::Acquire) == (seen.0 + 1) << 8 | CLOSED
    }

    /// The state that a read would have seen if it had begun before the gate was closed.
    pub(crate) fn seen_before_closed(&self) -> Option<Seen> {
        let seen = self.0.load(Ordering::Relaxed);
        (seen & COUNT == CLOSED).then(|| Seen((seen >> 8).wrapping_sub(1)))
    }

    pub(crate) fn is_written(&self) -> bool {
        self.0.load(Ordering::Relaxed) & COUNT == WRITTEN
    }

    /// Returns true if it has a pin, or a writer. Later users see what the caller has done before.
    pub(crate) fn is_taken(&self) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            // Nothing changes, but the load has its place among all changes of the gate: earlier users are seen, and later ones see what was done
            // before.
            match self.0.compare_exchange_weak(seen, seen, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return seen & COUNT > OPEN,
                Err(now) => seen = now,
            }
        }
    }

    /// Keeps other users out as long as the caller writes to the page; fails if there is one already. The caller checks afterwards whether the frame
    /// is held, and the page's word again.
    pub(crate) fn begin_write(&self) -> Result<(), Unpinned> {
        let seen = self.0.load(Ordering::Relaxed);
        match seen & COUNT {
            OPEN => {}
            CLOSED => return Err(Unpinned::Closed),
            WRITTEN => return Err(Unpinned::Written),
            _ => return Err(Unpinned::Held),
        }
        let written = ((seen >> 8) + 1) << 8 | WRITTEN;
        // SeqCst: in the order of all such accesses it comes before the check of the holds. Acquire is part of it: an earlier user of the gate has
        // cleared the page's dirty bit before that.
        let outcome = self.0.compare_exchange(seen, written, Ordering::SeqCst, Ordering::Relaxed);
        between_two();
        // Later writes are invisible to a reader that still saw the gate open.
        fence(Ordering::Release);
        outcome.map(drop).map_err(|_| Unpinned::Held)
    }

    /// Marks a closed frame as being filled by its writer. Only the owner that got it from the engine does this.
    pub(crate) fn take_over(&self) {
        let seen = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(seen & COUNT, CLOSED, "a frame is filled that others may look at");
        self.0.store(seen | WRITTEN, Ordering::Relaxed);
    }

    /// The write is complete. No effect in the child of a fork, where the gate is closed.
    pub(crate) fn end_write(&self) {
        let seen = self.0.load(Ordering::Relaxed);
        if seen & COUNT == WRITTEN {
            self.0.store(((seen >> 8) + 1) << 8 | OPEN, Ordering::Release);
        }
    }

    /// Passes the gate, after the page's dirty bit was cleared and before the device reads the frame: returns whether it has no writer at the moment.
    /// A later writer finds the page clean.
    pub(crate) fn pass(&self) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen & COUNT != WRITTEN {
            // Nothing changes, but it has its place among all changes of the gate. Acquire: the device reads everything written before it was opened.
            // Release: a later user sees the dirty bit cleared.
            match self.0.compare_exchange_weak(seen, seen, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }
}
