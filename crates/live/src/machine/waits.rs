//! Waits: for a copy, for a writer, for a page that another reads, for a file that nobody is in.
//!
//! ```text
//!   with the lock      a copy into a frame: it is short, and begun    await_move
//!   without it         a copy, or a write, of a page                  awaits_move, await_gate
//!                      a page that another has asked for              wait          parked, until the engine wakes the task
//!                      a file that others are in                      wait_while    a condition of all of the cache
//! ```
//! Who would have woken others may have panicked: no wait is for ever, and each looks whether the cache is poisoned.

use std::time::Duration;

use pageout_engine::{FileId, Pfn, TaskId};

use super::moves::Move;
use super::{Inner, LOOK_AGAIN, Locked, Machine, OpenFile};
use crate::error::Error;
use crate::file::Inner as File;
use crate::sync::{Instant, thread, wait_at_most};

impl Machine {
    /// Who needs a frame under the lock has it copied first, if it is part of a move: those of this thread, which has not begun them, are made.
    pub(super) fn await_move(&self, own: &mut Vec<Move>, pfn: Pfn) {
        if own.iter().any(|one| one.names(pfn)) {
            own.drain(..).for_each(|one| one.make(&self.arena));
        }
        self.await_moves_of_others(pfn);
    }

    /// The same where this thread's own come before it in any case.
    pub(super) fn await_moves_of_others(&self, pfn: Pfn) {
        while self.moves.names(pfn) {
            assert!(!self.is_poisoned(), "who copies {pfn:?} has panicked");
            thread::yield_now();
        }
    }

    /// Who finds a frame closed waits, without the lock, if that is because its page is being copied there, or written to. Whether it was.
    #[cold]
    pub(crate) fn awaits_move(&self, pfn: Pfn) -> bool {
        let mut has_waited = false;
        while self.moves.names(pfn) && !self.is_poisoned() {
            has_waited = true;
            thread::yield_now();
        }
        if self.arena.gate(pfn).is_written() {
            has_waited = true;
            self.await_gate(|| !self.arena.gate(pfn).is_written());
        }
        has_waited
    }

    /// Waits for whoever has a page without the lock: mostly he copies and is done, but he may hold it for long.
    pub(crate) fn await_gate(&self, is_free: impl Fn() -> bool) {
        const YIELDS: u32 = 64;
        const LONGEST: Duration = Duration::from_millis(1);
        let (mut yields, mut span) = (0, Duration::from_micros(20));
        while !is_free() && !self.is_poisoned() {
            if yields < YIELDS {
                yields += 1;
                thread::yield_now();
            } else {
                thread::sleep(span);
                span = (2 * span).min(LONGEST);
            }
        }
    }

    /// Lets go of the lock until a task is woken, or for so long.
    pub(super) fn wait<'a>(
        &'a self,
        mut locked: Locked<'a>,
        task: TaskId,
        span: Option<Duration>,
    ) -> Result<Locked<'a>, Error> {
        let until = span.map(|span| Instant::now() + span);
        loop {
            let waiter = locked.waiter(task);
            if std::mem::take(&mut waiter.is_woken) || until.is_some_and(|until| until <= Instant::now()) {
                waiter.thread = None;
                return Ok(locked);
            }
            waiter.thread = Some(thread::current());
            drop(locked);
            let left = until.map_or(LOOK_AGAIN, |until| until.saturating_duration_since(Instant::now()));
            thread::park_timeout(left.min(LOOK_AGAIN));
            locked = self.lock()?;
        }
    }

    /// Lets nobody begin to access a file, and waits for all who have.
    pub(crate) fn close_off<'a>(&'a self, mut locked: Locked<'a>, file: FileId) -> Result<Locked<'a>, Error> {
        locked = self.wait_while(locked, |locked| {
            locked.files[file.0 as usize].as_ref().is_some_and(OpenFile::is_growing)
        })?;
        locked.set_going(file, true);
        self.wait_while(locked, |locked| locked.files[file.0 as usize].as_ref().is_some_and(|of| of.busy > 0))
    }

    /// Whether a file that is going is forgotten in the end is known when it is: guards may hold its pages.
    pub(crate) fn wait_if_going<'a>(&'a self, locked: Locked<'a>, file: &File) -> Result<Locked<'a>, Error> {
        self.wait_while(locked, |locked| {
            locked.files[file.id.0 as usize].as_ref().is_some_and(|of| of.is_going && of.has(file.serial))
        })
    }

    /// It is known of a file that was going.
    pub(crate) fn settled(&self) {
        self.idle.notify_all();
    }

    /// Those look again who wait for a file, or for room.
    pub(crate) fn wake_idle(&self) {
        self.idle.notify_all();
    }

    pub(super) fn wait_while<'a>(
        &'a self,
        mut locked: Locked<'a>,
        holds: impl Fn(&Inner) -> bool,
    ) -> Result<Locked<'a>, Error> {
        while holds(&locked) {
            let inner = locked.into_inner();
            wait_at_most(&self.idle, inner, LOOK_AGAIN);
            locked = self.lock()?;
        }
        Ok(locked)
    }
}
