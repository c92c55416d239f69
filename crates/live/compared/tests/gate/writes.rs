//! A writer of a page beside the flusher, a reader and a guard, in all orders in which they may meet at its gate, and those with a step left out, which must be
//! noticed.
//!
//! ```text
//!   before    page A in the frame, and dirty      after   B's contents are in the frame; the page is dirty, or its device has them
//!   writer    W dirty? ─▶ the gate ─▶ W dirty still? ─▶ B's contents ─▶ the gate          else the engine: W dirty, the gate, both under its lock
//!   flusher   the engine: W is not dirty any more ─▶ passes the gate ─▶ the device reads the frame
//! ```

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::gate::Gate;
use crate::holds::Hold;
use crate::orders::{failure_of, in_all_orders, open_gate};
use loom::sync::{Arc, Mutex};
use loom::thread;

const PFN: u32 = 9;
const CLEAN: u64 = 1;
const DIRTY: u64 = 3;
const A: u64 = 0xa;
const B: u64 = 0xb;

/// What is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// The page is clean only when its device has read it.
    DirtyClearedLate,
    /// The device reads the frame whoever is writing to it.
    NotPassed,
    /// The writer doesn't look at the page's word again.
    NoSecondLook,
    /// The writer writes without the gate.
    NotClosed,
    /// The guard names the frame, and doesn't look whether the gate is open still.
    GateNotSeen,
    /// The writer doesn't look whether the frame is held.
    HoldNotSeen,
}

/// Page A, its frame of two words, the gate, where a thread says that it holds it, the page's word, and what its device has.
struct Page {
    gate: Gate,
    hold: Hold,
    word: AtomicU64,
    contents: [AtomicU64; 2],
    device: [AtomicU64; 2],
    /// Whoever has it is the engine.
    engine: Mutex<()>,
}

impl Page {
    fn new() -> Page {
        let words = |with| [(); 2].map(|()| AtomicU64::new(with));
        let (gate, hold, word) = (open_gate(), Hold::default(), AtomicU64::new(DIRTY));
        Page { gate, hold, word, contents: words(A), device: words(0), engine: Mutex::new(()) }
    }

    fn copy(&self) -> [u64; 2] {
        [0, 1].map(|at| self.contents[at].load(Ordering::Relaxed))
    }

    /// The frame is to be written to by nobody else, if nobody has it.
    fn begin_write(&self, bug: Bug) -> bool {
        let Page { gate, hold, .. } = self;
        if gate.begin_write().is_err() {
            return false;
        }
        let is_held = bug != Bug::HoldNotSeen && hold.names(PFN);
        if is_held {
            gate.end_write();
        }
        !is_held
    }

    /// Writes page B's contents to page A.
    fn write(&self, bug: Bug) {
        let Page { gate, word, contents, .. } = self;
        let fill = || contents.iter().for_each(|word| word.store(B, Ordering::Relaxed));
        if bug == Bug::NotClosed {
            return fill();
        }
        if word.load(Ordering::Relaxed) == DIRTY && self.begin_write(bug) {
            if bug == Bug::NoSecondLook || word.load(Ordering::Relaxed) == DIRTY {
                fill();
                return gate.end_write();
            }
            gate.end_write();
        }
        loop {
            let engine = self.engine.lock().unwrap();
            word.store(DIRTY, Ordering::Relaxed);
            let is_begun = self.begin_write(bug);
            drop(engine);
            if is_begun {
                fill();
                return gate.end_write();
            }
            thread::yield_now();
        }
    }

    /// Has the device read the page, if it is dirty.
    fn flush(&self, bug: Bug) {
        let Page { gate, word, .. } = self;
        let engine = self.engine.lock().unwrap();
        if word.load(Ordering::Relaxed) != DIRTY {
            return;
        }
        if bug != Bug::DirtyClearedLate {
            word.store(CLEAN, Ordering::Relaxed);
        }
        drop(engine);
        // A few times, as loom would try for ever.
        let passes = || {
            (0..3).any(|_| {
                gate.pass() || {
                    thread::yield_now();
                    false
                }
            })
        };
        if bug != Bug::NotPassed && !passes() {
            let _engine = self.engine.lock().unwrap();
            return word.store(DIRTY, Ordering::Relaxed);
        }
        // The kernel's read of the frame comes after all that the thread did before it.
        fence(Ordering::SeqCst);
        let read = self.copy();
        self.device.iter().zip(read).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        if bug == Bug::DirtyClearedLate {
            let _engine = self.engine.lock().unwrap();
            word.store(CLEAN, Ordering::Relaxed);
        }
    }

    /// Nothing is lost: the page is dirty, or the device has it.
    fn check(&self) {
        let device = [0, 1].map(|at| self.device[at].load(Ordering::Relaxed));
        let is_dirty = self.word.load(Ordering::Relaxed) == DIRTY;
        assert_eq!(self.copy(), [B; 2], "what was written");
        assert!(is_dirty || device == [B; 2], "the page is clean, and its device has {device:?}");
    }
}

/// A writer beside somebody else, in all orders.
fn try_writer(bug: Bug, act: impl Fn(&Page, Bug) + Send + Sync + Copy + 'static) {
    in_all_orders(3, move || {
        let page = Arc::new(Page::new());
        let other = {
            let page = Arc::clone(&page);
            thread::spawn(move || act(&page, bug))
        };
        page.write(bug);
        other.join().unwrap();
        page.check();
    });
}

fn flushes(page: &Page, bug: Bug) {
    page.flush(bug);
}

fn reads_one(page: &Page, _: Bug) {
    let Page { gate, .. } = page;
    if let Some(seen) = gate.begin() {
        let copied = page.copy();
        if gate.is_still(seen) {
            assert!(copied == [A; 2] || copied == [B; 2], "half a write: {copied:?}");
        }
    }
}

fn looks_at_one(page: &Page, bug: Bug) {
    let Page { gate, hold, .. } = page;
    if hold.try_name(PFN) {
        if gate.is_open_after_hold() || bug == Bug::GateNotSeen {
            let seen = [page.copy(), page.copy()];
            assert!(
                seen[0] == seen[1] && seen[0][0] == seen[0][1],
                "a page changes while it is held: {seen:?}"
            );
        }
        hold.let_go();
    }
}

#[test]
fn what_is_written_beside_the_flusher_is_on_the_device_or_dirty() {
    try_writer(Bug::None, flushes);
}

#[test]
fn half_a_write_is_seen_by_nobody() {
    try_writer(Bug::None, reads_one);
    try_writer(Bug::None, looks_at_one);
}

#[test]
fn each_step_of_a_write_that_is_left_out_is_noticed() {
    type Act = fn(&Page, Bug);
    let bugs: [(Bug, Act); 7] = [
        (Bug::DirtyClearedLate, flushes),
        (Bug::NotPassed, flushes),
        (Bug::NoSecondLook, flushes),
        (Bug::NotClosed, flushes),
        (Bug::NotClosed, reads_one),
        (Bug::HoldNotSeen, looks_at_one),
        (Bug::GateNotSeen, looks_at_one),
    ];
    for (bug, act) in bugs {
        let Some(why) = failure_of(|| try_writer(bug, act)) else { panic!("{bug:?} was not noticed") };
        assert!(
            why.contains("its device has")
                || why.contains("half a write")
                || why.contains("while it is held"),
            "{bug:?}: {why}"
        );
    }
}
