//! A file that gets shorter beside a writer, a reader, a guard and a call that makes it longer again, in all orders in which they may meet; and those with a
//! step left out, which must be noticed.
//!
//! ```text
//!   before   two bytes of the file: one on its last page behind the new end, and both A           after a cut   one byte; the other is zero when the file grows again
//!   cut      the gate ─▶ `reach` narrows ─▶ nobody holds the page behind? ─▶ zeroes ─▶ `bytes` narrows ─▶ the gate
//!   others   the gate, or the hold ─▶ `reach` ─▶ the byte
//! ```

use crate::atomic::{AtomicU64, Ordering};
use crate::gate::Gate;
use crate::holds::Hold;
use crate::length::Length;
use crate::orders::{failure_of, in_all_orders, open_gate};
use loom::sync::Arc;
use loom::thread;

const PFN: u32 = 9;
const A: u64 = 0xa;
const B: u64 = 0xb;
const LONG: u64 = 2;
const SHORT: u64 = 1;

/// What is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// Writer and reader look at the length before they have the gate.
    LookedAtEarly,
    /// The rest of the page is zeroed when the file is shorter already.
    ZeroedLate,
    /// The rest of the page is zeroed, and the gate opened, before the file gets shorter.
    ZeroedEarly,
    /// The guard does not look at the length once it holds the page.
    NotLookedAt,
    /// The cut looks for guards before `reach` is narrowed, and not afterwards.
    HoldersSeenEarly,
}

/// The last page of a file, with its one byte behind the new end, and the length.
struct Model {
    gate: Gate,
    hold: Hold,
    length: Length,
    byte: AtomicU64,
    /// The file has been cut, and nobody has made it longer again.
    is_short: AtomicU64,
}

impl Model {
    fn new() -> Model {
        let [byte, is_short] = [A, 0].map(AtomicU64::new);
        Model { gate: open_gate(), hold: Hold::default(), length: Length::new(LONG), byte, is_short }
    }

    fn is_held(&self) -> bool {
        self.gate.is_taken() || self.hold.names(PFN)
    }

    /// Takes the byte away from the last page. Whether nobody was in the way.
    fn cut_within(&self, bug: Bug) -> bool {
        let Model { gate, hold, length, byte, .. } = self;
        if gate.begin_write().is_err() {
            return false;
        }
        if hold.names(PFN) {
            gate.end_write();
            return false;
        }
        let zero = || byte.store(0, Ordering::Relaxed);
        match bug {
            Bug::ZeroedEarly => {
                zero();
                gate.end_write();
                length.narrow(SHORT);
                length.settle(SHORT);
            }
            Bug::ZeroedLate => {
                length.narrow(SHORT);
                length.settle(SHORT);
                gate.end_write();
                zero();
            }
            _ => {
                length.narrow(SHORT);
                zero();
                length.settle(SHORT);
                gate.end_write();
            }
        }
        true
    }

    /// Takes the page away, which is wholly behind the new end. Whether nobody holds it.
    fn cut_before(&self, bug: Bug) -> bool {
        let is_held_early = bug == Bug::HoldersSeenEarly && self.is_held();
        self.length.narrow(SHORT);
        let is_held = if bug == Bug::HoldersSeenEarly { is_held_early } else { self.is_held() };
        if is_held {
            self.length.widen();
            return false;
        }
        self.length.settle(SHORT);
        self.is_short.store(1, Ordering::SeqCst);
        true
    }

    /// Overwrites the byte, if the file has it.
    fn overwrite(&self, bug: Bug) {
        let Model { gate, hold, length, byte, .. } = self;
        let is_early = bug == Bug::LookedAtEarly && length.reaches(LONG);
        if gate.begin_write().is_err() {
            return;
        }
        let reaches = if bug == Bug::LookedAtEarly { is_early } else { length.reaches(LONG) };
        if !hold.names(PFN) && reaches {
            byte.store(B, Ordering::Relaxed);
        }
        gate.end_write();
    }

    /// Reads the byte, if the file has it and nobody is in the way.
    fn read(&self, bug: Bug) -> Option<u64> {
        let Model { gate, length, byte, .. } = self;
        let is_early = bug == Bug::LookedAtEarly && length.reaches(LONG);
        let seen = gate.begin()?;
        let reaches = if bug == Bug::LookedAtEarly { is_early } else { length.reaches(LONG) };
        if !reaches {
            return None;
        }
        let read = byte.load(Ordering::Relaxed);
        gate.is_still(seen).then_some(read)
    }

    /// Holds the page, if the file has it, and looks whether the file is shorter meanwhile.
    fn look(&self, bug: Bug) {
        let Model { gate, hold, length, is_short, .. } = self;
        assert!(hold.try_name(PFN));
        if gate.is_open_after_hold() && (bug == Bug::NotLookedAt || length.reaches(LONG)) {
            assert_eq!(is_short.load(Ordering::SeqCst), 0, "a guard reaches behind the end");
        }
        hold.let_go();
    }

    /// The same by a pin of the gate.
    fn look_by_pin(&self, bug: Bug) {
        let Model { gate, length, is_short, .. } = self;
        if gate.pin().is_err() {
            return;
        }
        if bug == Bug::NotLookedAt || length.reaches(LONG) {
            assert_eq!(is_short.load(Ordering::SeqCst), 0, "a pin reaches behind the end");
        }
        gate.unpin();
    }

    /// Makes the file longer again, if it is short, and reads what is new.
    fn grow(&self) {
        if self.length.bytes() == SHORT {
            self.length.grow_to(LONG);
            assert_eq!(self.byte.load(Ordering::Relaxed), 0, "what is new is not zero");
        }
    }
}

type Act = fn(&Model, Bug);

/// Tries a cut beside another call in all orders, and what is left after both.
fn try_all(bug: Bug, cut: fn(&Model, Bug) -> bool, act: Act, check: fn(&Model, bool)) {
    in_all_orders(3, move || {
        let model = Arc::new(Model::new());
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || act(&model, bug))
        };
        let is_cut = cut(&model, bug);
        other.join().unwrap();
        check(&model, is_cut);
    });
}

fn is_noticed(bug: Bug, cut: fn(&Model, Bug) -> bool, act: Act, check: fn(&Model, bool)) -> bool {
    let why = failure_of(|| try_all(bug, cut, act, check)).unwrap_or_default();
    ["behind the end", "of before the cut", "not zero"].iter().any(|said| why.contains(said))
}

const NOTHING: fn(&Model, bool) = |_, _| {};
/// What is behind the end does not come back.
const NO_BYTE: fn(&Model, bool) = |model, is_cut| {
    if is_cut {
        model.grow();
    }
};
const READS: Act = |model, bug| {
    if let Some(read) = model.read(bug) {
        assert_eq!(read, A, "a read is of before the cut, or goes beyond the end");
    }
};

#[test]
fn write_beside_cut_leaves_zeroes_behind_the_end() {
    try_all(Bug::None, Model::cut_within, Model::overwrite, NO_BYTE);
}

#[test]
fn read_beside_cut_sees_no_zeroes() {
    try_all(Bug::None, Model::cut_within, READS, NOTHING);
}

#[test]
fn growth_after_cut_sees_zeroes() {
    try_all(Bug::None, Model::cut_within, |model, _| model.grow(), NOTHING);
}

#[test]
fn guard_beside_cut_never_reaches_behind_the_end() {
    for act in [Model::look, Model::look_by_pin] {
        try_all(Bug::None, Model::cut_before, act, NOTHING);
    }
}

#[test]
fn each_step_of_a_cut_that_is_left_out_is_noticed() {
    assert!(is_noticed(Bug::LookedAtEarly, Model::cut_within, Model::overwrite, NO_BYTE));
    assert!(is_noticed(Bug::LookedAtEarly, Model::cut_within, READS, NOTHING));
    assert!(is_noticed(Bug::ZeroedLate, Model::cut_within, |model, _| model.grow(), NOTHING));
    assert!(is_noticed(Bug::ZeroedEarly, Model::cut_within, Model::overwrite, NO_BYTE));
    for act in [Model::look, Model::look_by_pin] {
        assert!(is_noticed(Bug::NotLookedAt, Model::cut_before, act, NOTHING));
        assert!(is_noticed(Bug::HoldersSeenEarly, Model::cut_before, act, NOTHING));
    }
}
