//! Holders of pages in place, and detection of waits that can't end.
//!
//! ```text
//!   a guard    in a place of its thread's line (`holds.rs`), or in `held` here, with its thread
//!   a wait     thread A waits for a page ─▶ a thread that holds it: A itself, or one that waits for a page that A holds ...     nobody goes on
//! ```
//! A thread that waits for its own guard would wait forever, and so would two that wait for each other's. The one that waits longest can't know this,
//! but the one that closes the circle can: it gets an error, drops its guards, and the others continue. A guard that is sent to another thread counts
//! for the thread that has taken it, so a circle counts only when it has lasted for a while. A leaked guard is never dropped: no wait is longer than
//! [`crate::Builder::guard_wait`].

use std::sync::PoisonError;
use std::time::Duration;

use pageout_engine::Pfn;

use crate::arena::Arena;
use crate::holds::ThreadNumber;
use crate::number::thread_number;
use crate::sync::{Instant, Mutex, MutexGuard};

/// A circle of waits that lasts so long has no guard in it that another thread drops: a look at a page takes less.
const CIRCLE_LASTS: Duration = Duration::from_millis(100);
/// Waits that are shorter are for threads that copy.
const IS_SHORT: Duration = Duration::from_millis(1);

/// Guards that no line of [`crate::holds::Holds`] has, and threads that wait for guards.
#[derive(Default)]
pub(crate) struct Guards(Mutex<State>);

#[derive(Default)]
struct State {
    /// Frames, and the thread that has taken each guard; the last one last, which mostly goes first.
    held: Vec<(ThreadNumber, u32)>,
    waits: Vec<(ThreadNumber, u32)>,
}

impl Guards {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This thread has taken a guard of a frame, and its line has no place left.
    #[cold]
    pub(crate) fn taken(&self, pfn: Pfn) {
        let thread = thread_number();
        self.state().held.push((thread, pfn.0));
    }

    /// A guard of a frame is gone: this thread's, if it has taken one, else another's that was sent here.
    pub(crate) fn let_go(&self, pfn: Pfn) {
        let thread = thread_number();
        let held = &mut self.state().held;
        let own = held.iter().rposition(|&of| of == (thread, pfn.0));
        if let Some(at) = own.or_else(|| held.iter().rposition(|&(_, of)| of == pfn.0)) {
            held.swap_remove(at);
        }
    }
}

impl State {
    /// Returns true if a thread that waits for a frame waits for itself.
    fn is_circle(&self, arena: &Arena, thread: ThreadNumber, pfn: u32) -> bool {
        let (mut frames, mut seen) = (vec![pfn], Vec::new());
        while let Some(pfn) = frames.pop() {
            let mut holders = arena.holds.holders(pfn);
            holders.extend(self.held.iter().filter(|&&(_, of)| of == pfn).map(|&(thread, _)| thread));
            for holder in holders {
                if holder == thread {
                    return true;
                }
                if !seen.contains(&holder) {
                    seen.push(holder);
                    frames.extend(self.waits.iter().filter(|&&(of, _)| of == holder).map(|&(_, pfn)| pfn));
                }
            }
        }
        false
    }
}

/// A wait of this thread for guards.
pub(crate) struct GuardWait<'a> {
    guards: &'a Guards,
    arena: &'a Arena,
    longest: Duration,
    /// None before the wait is one: most calls wait for no guard.
    began: Option<Instant>,
    /// For which frame others see it wait.
    pfn: Option<Pfn>,
    circle_since: Option<Instant>,
}

impl<'a> GuardWait<'a> {
    pub(crate) fn new(guards: &'a Guards, arena: &'a Arena, longest: Duration) -> GuardWait<'a> {
        GuardWait { guards, arena, longest, began: None, pfn: None, circle_since: None }
    }

    /// Returns true if the wait may go on, which is for a guard of this frame now.
    pub(crate) fn may_go_on(&mut self, pfn: Pfn) -> bool {
        let waited = self.began.get_or_insert_with(Instant::now).elapsed();
        if waited < IS_SHORT {
            return true;
        }
        if waited >= self.longest {
            return false;
        }
        let thread = thread_number();
        let mut state = self.guards.state();
        if self.pfn != Some(pfn) {
            forget_wait(&mut state, thread, self.pfn);
            state.waits.push((thread, pfn.0));
            self.pfn = Some(pfn);
        }
        if !state.is_circle(self.arena, thread, pfn.0) {
            self.circle_since = None;
            return true;
        }
        let now = Instant::now();
        let since = *self.circle_since.get_or_insert(now);
        if now.saturating_duration_since(since) < CIRCLE_LASTS {
            return true;
        }
        // Immediately, so that no other thread finds the same circle.
        forget_wait(&mut state, thread, self.pfn.take());
        false
    }
}

fn forget_wait(state: &mut State, thread: ThreadNumber, pfn: Option<Pfn>) {
    if let Some(at) = pfn.and_then(|pfn| state.waits.iter().position(|&wait| wait == (thread, pfn.0))) {
        state.waits.swap_remove(at);
    }
}

impl Drop for GuardWait<'_> {
    fn drop(&mut self) {
        if self.pfn.is_some() {
            forget_wait(&mut self.guards.state(), thread_number(), self.pfn);
        }
    }
}
