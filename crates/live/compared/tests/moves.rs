//! A page that moves to another frame, in all orders in which threads may meet there, and engines with a step left out, which must be noticed.
//!
//! ```text
//!   before   page A in the slow frame, word W leads there
//!   mover    close the slow frame ─▶ W leads to the fast one ─▶ A's contents are copied there ─▶ open it ─▶ B's contents in the slow one ─▶ open that
//!   reader   wants A: sees A's contents, or has to ask the engine       guard   the same, and as long as it has its pin, they stay
//! ```
#![allow(clippy::unwrap_used, reason = "a test")]

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};

    /// Loom takes accesses that are in one order as if they were in none, but not fences.
    pub(crate) fn between_two() {
        fence(Ordering::SeqCst);
    }
}

#[allow(dead_code, reason = "an arena uses all of it")]
#[path = "../../src/gate.rs"]
mod gate;

use atomic::{AtomicU64, Ordering, fence};
use gate::Gate;
use loom::sync::Arc;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SLOW: u64 = 0;
const FAST: u64 = 1;
const A: u64 = 0xa;
const B: u64 = 0xb;

/// What an engine or a reader leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// The page moves while others may be looking at it: the old frame is not closed, or a pin on it is not asked for.
    NotClosed,
    /// The new frame is opened before its contents are there.
    OpenedEarly,
    /// The old frame is another page's before it was copied.
    FreedBeforeCopied,
    /// The reader doesn't look at the page's word again.
    NoSecondLook,
    /// The reader doesn't look at the gate again.
    NoSecondVersion,
    /// The guard doesn't look at the page's word after it has its pin.
    UncheckedPin,
}

/// A frame of two words. Contents are atomic words, as the copy's instruction is no race either.
struct Frame {
    gate: Gate,
    contents: [AtomicU64; 2],
}

impl Frame {
    fn fill(&self, with: [u64; 2]) {
        // What writes a frame comes after all that the thread did before it.
        fence(Ordering::SeqCst);
        self.contents.iter().zip(with).for_each(|(word, is)| word.store(is, Ordering::Relaxed));
    }

    fn copy(&self) -> [u64; 2] {
        [0, 1].map(|at| self.contents[at].load(Ordering::Relaxed))
    }
}

/// Two frames, and page A's word.
struct Model {
    frames: [Frame; 2],
    word: AtomicU64,
}

impl Model {
    fn new() -> Model {
        let frame =
            |gate, is| Frame { gate: Gate(AtomicU64::new(gate)), contents: [is; 2].map(AtomicU64::new) };
        // The slow one is open, at some version; the fast one is free.
        Model { frames: [frame(5 << 8 | 1, A), frame(8 << 8, 0)], word: AtomicU64::new(SLOW) }
    }

    /// Moves page A, if nobody holds it; false where somebody does.
    fn move_page(&self, from: u64, to: u64, bug: Bug) -> bool {
        let [old, new] = [from, to].map(|at| &self.frames[at as usize]);
        if bug != Bug::NotClosed && !old.gate.close() {
            return false;
        }
        self.word.store(to, Ordering::Relaxed);
        if bug == Bug::OpenedEarly {
            new.gate.open();
        }
        if bug == Bug::FreedBeforeCopied {
            old.fill([B; 2]);
        }
        new.fill(old.copy());
        if bug != Bug::OpenedEarly {
            new.gate.open();
        }
        true
    }

    /// Promotes page A, and fills the frame that it had with page B.
    fn promote(&self, bug: Bug) {
        if !self.move_page(SLOW, FAST, bug) {
            return;
        }
        let freed = &self.frames[SLOW as usize];
        freed.fill([B; 2]);
        if bug != Bug::NotClosed {
            freed.gate.open();
        }
    }

    /// The same, and page A is demoted to the frame that it had, from which page B has been evicted.
    fn promote_and_demote(&self, bug: Bug) {
        self.promote(bug);
        if self.word.load(Ordering::Relaxed) == FAST && self.frames[SLOW as usize].gate.close() {
            self.move_page(FAST, SLOW, bug);
        }
    }

    /// Reads page A without a pin, if that can be done without the engine.
    fn read(&self, bug: Bug) -> Option<[u64; 2]> {
        let at = self.word.load(Ordering::Relaxed);
        let frame = &self.frames[at as usize];
        let seen = frame.gate.begin()?;
        let copied = frame.copy();
        let is_there = self.word.load(Ordering::Relaxed) == at || bug == Bug::NoSecondLook;
        let is_still = frame.gate.is_still(seen) || bug == Bug::NoSecondVersion;
        (is_there && is_still).then_some(copied)
    }

    /// Looks at page A under a pin, twice.
    fn look(&self, bug: Bug) -> Option<[[u64; 2]; 2]> {
        let at = self.word.load(Ordering::Relaxed);
        let frame = &self.frames[at as usize];
        frame.gate.pin().ok()?;
        let is_there = self.word.load(Ordering::Relaxed) == at || bug == Bug::UncheckedPin;
        let seen = is_there.then(|| [frame.copy(), frame.copy()]);
        frame.gate.unpin();
        seen
    }
}

fn reads(model: &Model, bug: Bug) {
    if let Some(seen) = model.read(bug) {
        assert_eq!(seen, [A, A], "a page is read as another");
    }
}

fn looks(model: &Model, bug: Bug) {
    if let Some(seen) = model.look(bug) {
        assert_eq!(seen, [[A, A]; 2], "a page changes under a guard");
    }
}

type Act = fn(&Model, Bug);

/// A reader or a guard beside who moves the page, in all orders.
fn try_all(bug: Bug, act: Act, moves: Act) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let model = Arc::new(Model::new());
        let mover = {
            let model = Arc::clone(&model);
            thread::spawn(move || moves(&model, bug))
        };
        act(&model, bug);
        mover.join().unwrap();
    });
}

fn is_noticed(bug: Bug, act: Act, moves: Act) -> bool {
    let silent = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(|| try_all(bug, act, moves)));
    std::panic::set_hook(silent);
    outcome.is_err()
}

#[test]
fn a_read_beside_a_move_is_of_its_page_or_counts_for_nothing() {
    try_all(Bug::None, reads, Model::promote);
    try_all(Bug::None, reads, Model::promote_and_demote);
}

#[test]
fn a_page_under_a_guard_does_not_move() {
    try_all(Bug::None, looks, Model::promote);
    try_all(Bug::None, looks, Model::promote_and_demote);
}

#[test]
fn each_step_of_a_move_that_is_left_out_is_noticed() {
    let bugs: [(Bug, Act, Act); 8] = [
        (Bug::NotClosed, reads, Model::promote),
        (Bug::NotClosed, looks, Model::promote),
        (Bug::OpenedEarly, reads, Model::promote),
        (Bug::OpenedEarly, looks, Model::promote),
        (Bug::FreedBeforeCopied, reads, Model::promote),
        (Bug::NoSecondLook, reads, Model::promote),
        (Bug::NoSecondVersion, reads, Model::promote_and_demote),
        (Bug::UncheckedPin, looks, Model::promote),
    ];
    for (bug, act, moves) in bugs {
        assert!(is_noticed(bug, act, moves), "{bug:?} was not noticed");
    }
}
