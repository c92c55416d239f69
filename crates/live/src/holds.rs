//! Holds: frames that threads say they look at, each in a place of its own, so that a guard writes nothing that others write.
//!
//! ```text
//!   guard    its place names the frame ─▶ gate open? ─▶ W names the frame still? else the place is empty again
//!   engine   close the gate ─▶ a place names the frame? then open it again: somebody has it
//! ```
//! Both announce their action before they check the other. So at least one of them sees the other: the guard finds the gate closed, or the engine
//! finds the frame held. A thread without a free place pins the gate itself, and so does code that has no thread here.

use std::sync::atomic::AtomicU64;

use crate::atomic::{AtomicU32, Ordering, between_two};

/// A thread, by a number that no other has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ThreadNumber(pub(crate) u64);

/// A place in which one thread puts a frame at a time, and any thread takes it out.
#[derive(Default)]
pub(crate) struct Hold(pub(crate) AtomicU32);

impl Hold {
    /// Names a frame, if nothing is named. Only one thread does. It looks at the gate afterwards ([`crate::gate::Gate::is_open_after_hold`]).
    #[inline(always)]
    pub(crate) fn try_name(&self, pfn: u32) -> bool {
        if self.is_taken() {
            return false;
        }
        // SeqCst: in the order of all such accesses it comes before the look at the gate.
        self.0.swap(pfn + 1, Ordering::SeqCst);
        between_two();
        true
    }

    #[inline(always)]
    fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Names nothing any more.
    #[inline(always)]
    pub(crate) fn let_go(&self) {
        // Release: what was read was read before that.
        self.0.store(0, Ordering::Release);
    }

    /// Returns true if it names a frame, whose gate the caller has closed.
    pub(crate) fn names(&self, pfn: u32) -> bool {
        // SeqCst: in the order of all such accesses it comes after the gate was closed.
        self.0.load(Ordering::SeqCst) == pfn + 1
    }
}

/// Places of a thread: a line of the processor's caches, which others only read.
#[derive(Default)]
#[repr(align(64))]
struct Line([Hold; 16]);

/// Threads that have a line. Others pin.
const LINES: usize = 64;

/// All places.
pub(crate) struct Holds {
    lines: Box<[Line]>,
    /// A bit for each line that a thread has.
    taken: AtomicU64,
    /// One for each that a thread has ever had.
    used: AtomicU64,
    /// The thread that has a line, or had it last.
    owners: [AtomicU64; LINES],
}

impl Holds {
    pub(crate) fn new() -> Holds {
        let lines = (0..LINES).map(|_| Line::default()).collect();
        let owners = std::array::from_fn(|_| AtomicU64::new(0));
        Holds { lines, taken: AtomicU64::new(0), used: AtomicU64::new(0), owners }
    }

    /// A line for a thread, if one is left.
    pub(crate) fn take_line(&self, thread: ThreadNumber) -> Option<usize> {
        let first_free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, first_free).ok()?;
        let line = before.trailing_ones();
        self.owners[line as usize].store(thread.0, Ordering::Relaxed);
        self.used.fetch_or(1 << line, Ordering::SeqCst);
        Some(line as usize)
    }

    /// A thread has ended. What its guards hold that others have got stays held.
    pub(crate) fn give_back(&self, line: usize) {
        self.taken.fetch_and(!(1 << line), Ordering::AcqRel);
    }

    /// Names a frame in a line, if there is a place. Only the thread that has the line does.
    #[inline(always)]
    pub(crate) fn try_name(&self, line: usize, pfn: u32) -> Option<&Hold> {
        self.lines[line].0.iter().find(|hold| hold.try_name(pfn))
    }

    /// Counts the held frames, each as often as it is held.
    pub(crate) fn count(&self) -> u64 {
        self.lines.iter().flat_map(|line| &line.0).filter(|hold| hold.is_taken()).count() as u64
    }

    /// Returns true if a frame is held, whose gate the caller has closed.
    pub(crate) fn names(&self, pfn: u32) -> bool {
        self.lines_that_name(pfn).next().is_some()
    }

    /// Threads in whose lines a frame is held.
    pub(crate) fn holders(&self, pfn: u32) -> Vec<ThreadNumber> {
        self.lines_that_name(pfn)
            .map(|line| ThreadNumber(self.owners[line].load(Ordering::Relaxed)))
            .collect()
    }

    fn lines_that_name(&self, pfn: u32) -> impl Iterator<Item = usize> {
        let mut used = self.used.load(Ordering::SeqCst);
        std::iter::from_fn(move || {
            while used != 0 {
                let line = used.trailing_zeros() as usize;
                used &= used - 1;
                if self.lines[line].0.iter().any(|hold| hold.names(pfn)) {
                    return Some(line);
                }
            }
            None
        })
    }
}
