//! The gate in all orders in which threads may meet there, and engines with a step left out, which must be noticed.
//!
//! ```text
//!   before   page A in the frame, word W leads there          evictor   close ─▶ W empty ─▶ B's contents ─▶ open ─▶ B's word leads there
//!   reader   wants A: sees A's contents, or that it is gone    guard     the same, and as long as it has its pin, they stay
//! ```

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::gate::Gate;
use crate::holds::Hold;
use crate::orders::{assert_noticed, in_all_orders, open_gate};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

const PFN: u32 = 9;
const GONE: u64 = 0;
const PRESENT: u64 = 1;
const A: u64 = 0xa;
const B: u64 = 0xb;

/// One frame of two words, its gate, where a thread says that it holds it, and page A's word. Contents are atomic words, as the copy's instruction is no race either.
struct Frame {
    gate: Gate,
    hold: Hold,
    word: AtomicU64,
    contents: [AtomicU64; 2],
    /// The same again as who has a pin reads it, by loads that may race with nothing: whatever is not in order with them is told by loom.
    plain: UnsafeCell<u64>,
}

/// What an engine or a reader leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// The reader doesn't look at the page's word again.
    NoSecondLook,
    /// The reader doesn't look at the gate again.
    NoSecondVersion,
    /// The reader looks at the gate again before it looks at the word: between the two the page may come back.
    VersionBeforeWord,
    /// The evictor writes the frame without having closed it.
    NotClosed,
    /// The frame is opened before its contents are there.
    OpenedEarly,
    /// The guard doesn't look at the page's word after it has its pin.
    UncheckedPin,
    /// The guard names the frame, and doesn't look whether the gate is open still.
    GateNotSeen,
    /// The evictor closes the gate, and doesn't look whether the frame is held.
    HoldNotSeen,
    /// The pin doesn't see what was written before the gate was opened.
    RelaxedPin,
    /// The pin goes before what was read under it.
    RelaxedUnpin,
    /// The place is empty again before what was read.
    RelaxedLetGo,
}

impl Frame {
    fn new() -> Frame {
        let contents = [(); 2].map(|()| AtomicU64::new(A));
        let (gate, hold) = (open_gate(), Hold::default());
        Frame { gate, hold, word: AtomicU64::new(PRESENT), contents, plain: UnsafeCell::new(A) }
    }

    /// What the kernel does to a frame that is read into.
    fn fill(&self, with: u64) {
        self.contents.iter().for_each(|word| word.store(with, Ordering::Relaxed));
        // SAFETY: loom ends the test where anybody else may be at it.
        self.plain.with_mut(|plain| unsafe { *plain = with });
    }

    /// Closes the gate, if nobody holds the frame.
    fn close(&self, bug: Bug) -> bool {
        if !self.gate.close() {
            return false;
        }
        let is_held = bug != Bug::HoldNotSeen && self.hold.names(PFN);
        if is_held {
            self.gate.open();
        }
        !is_held
    }

    /// Evicts page A and fills the frame with page B, if nobody holds it.
    fn evict(&self, bug: Bug) {
        if bug != Bug::NotClosed && !self.close(bug) {
            return;
        }
        self.word.store(GONE, Ordering::Relaxed);
        if bug == Bug::OpenedEarly {
            self.gate.open();
        }
        // The kernel's write into the frame comes after all that the thread did before it.
        fence(Ordering::SeqCst);
        self.fill(B);
        if bug != Bug::OpenedEarly && bug != Bug::NotClosed {
            self.gate.open();
        }
    }

    /// The same, and page A comes back to the frame that it had.
    fn evict_and_return(&self, bug: Bug) {
        self.evict(bug);
        if self.word.load(Ordering::Relaxed) == PRESENT || !self.close(bug) {
            return;
        }
        // When the word leads there does not matter, as the gate says when the contents are there.
        self.word.store(PRESENT, Ordering::Relaxed);
        if bug == Bug::OpenedEarly {
            self.gate.open();
        }
        fence(Ordering::SeqCst);
        self.fill(A);
        if bug != Bug::OpenedEarly {
            self.gate.open();
        }
    }

    fn copy(&self) -> [u64; 2] {
        [0, 1].map(|at| self.contents[at].load(Ordering::Relaxed))
    }

    /// The same as a guard's bytes are read.
    fn look_at(&self) -> [u64; 2] {
        // SAFETY: as above.
        let plain = self.plain.with(|plain| unsafe { *plain });
        let copied = self.copy();
        [copied[0], if plain == copied[0] { copied[1] } else { plain }]
    }

    /// Reads page A, if it is there, without a pin.
    fn read(&self, bug: Bug) -> Option<[u64; 2]> {
        if self.word.load(Ordering::Relaxed) != PRESENT {
            return None;
        }
        let seen = self.gate.begin()?;
        let copied = self.copy();
        let is_still = bug == Bug::VersionBeforeWord && self.gate.is_still(seen);
        let is_there = self.word.load(Ordering::Relaxed) == PRESENT || bug == Bug::NoSecondLook;
        let is_still = is_still || self.gate.is_still(seen) || bug == Bug::NoSecondVersion;
        (is_still && is_there).then_some(copied)
    }

    /// Looks at page A, which it holds, twice.
    fn look_held(&self, bug: Bug) -> Option<[[u64; 2]; 2]> {
        if self.word.load(Ordering::Relaxed) != PRESENT || !self.hold.try_name(PFN) {
            return None;
        }
        let is_open = self.gate.is_open_after_hold() || bug == Bug::GateNotSeen;
        let is_there = self.word.load(Ordering::Relaxed) == PRESENT || bug == Bug::UncheckedPin;
        let seen = (is_open && is_there).then(|| [self.look_at(), self.look_at()]);
        match bug {
            Bug::RelaxedLetGo => self.hold.0.store(0, Ordering::Relaxed),
            _ => self.hold.let_go(),
        }
        seen
    }

    fn pin_relaxed(&self) -> Option<()> {
        let add = |gate: u64| (gate & 0xff != 0).then_some(gate + 1);
        self.gate.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(drop)
    }

    /// Looks at page A under a pin, twice.
    fn look(&self, bug: Bug) -> Option<[[u64; 2]; 2]> {
        if self.word.load(Ordering::Relaxed) != PRESENT {
            return None;
        }
        match bug {
            Bug::RelaxedPin => self.pin_relaxed()?,
            _ => self.gate.pin().ok()?,
        }
        let is_there = self.word.load(Ordering::Relaxed) == PRESENT || bug == Bug::UncheckedPin;
        let seen = is_there.then(|| [self.look_at(), self.look_at()]);
        match bug {
            Bug::RelaxedUnpin => _ = self.gate.0.fetch_sub(1, Ordering::Relaxed),
            _ => self.gate.unpin(),
        }
        seen
    }
}

/// A reader and a guard beside an evictor, in all orders.
fn try_all(bug: Bug, act: impl Fn(&Frame, Bug) + Send + Sync + Copy + 'static) {
    in_all_orders(3, move || {
        let frame = Arc::new(Frame::new());
        let evictor = {
            let frame = Arc::clone(&frame);
            thread::spawn(move || frame.evict_and_return(bug))
        };
        act(&frame, bug);
        evictor.join().unwrap();
    });
}

fn reads(frame: &Frame, bug: Bug) {
    if let Some(seen) = frame.read(bug) {
        assert_eq!(seen, [A, A], "a page is read as another");
    }
}

fn looks(frame: &Frame, bug: Bug) {
    if let Some(seen) = frame.look(bug) {
        assert_eq!(seen, [[A, A]; 2], "a page changes under a guard");
    }
}

fn looks_held(frame: &Frame, bug: Bug) {
    if let Some(seen) = frame.look_held(bug) {
        assert_eq!(seen, [[A, A]; 2], "a page changes while it is held");
    }
}

#[test]
fn a_read_is_of_its_page_or_counts_for_nothing() {
    try_all(Bug::None, reads);
}

#[test]
fn a_page_does_not_change_under_a_guard() {
    try_all(Bug::None, looks);
}

#[test]
fn a_page_does_not_change_while_it_is_held() {
    try_all(Bug::None, looks_held);
}

#[test]
fn a_guard_and_a_reader_beside_an_evictor_see_their_page() {
    in_all_orders(2, || {
        let frame = Arc::new(Frame::new());
        let others = [
            {
                let frame = Arc::clone(&frame);
                thread::spawn(move || frame.evict(Bug::None))
            },
            {
                let frame = Arc::clone(&frame);
                thread::spawn(move || looks(&frame, Bug::None))
            },
        ];
        reads(&frame, Bug::None);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn each_step_that_is_left_out_is_noticed() {
    type Act = fn(&Frame, Bug);
    let bugs: [(Bug, Act); 14] = [
        (Bug::VersionBeforeWord, reads),
        (Bug::NoSecondLook, reads),
        (Bug::NoSecondVersion, reads),
        (Bug::NotClosed, reads),
        (Bug::OpenedEarly, reads),
        (Bug::NotClosed, looks),
        (Bug::UncheckedPin, looks),
        (Bug::UncheckedPin, looks_held),
        (Bug::GateNotSeen, looks_held),
        (Bug::HoldNotSeen, looks_held),
        (Bug::OpenedEarly, looks_held),
        (Bug::RelaxedPin, looks),
        (Bug::RelaxedUnpin, looks),
        (Bug::RelaxedLetGo, looks_held),
    ];
    for (bug, act) in bugs {
        assert_noticed(&[bug], |bug| try_all(bug, act));
    }
}
