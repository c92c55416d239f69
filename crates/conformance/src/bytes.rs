//! The engine inside a machine that does everything a machine may do, in any order.
//!
//! ```text
//!   bytes ─▶ Setup, Action ... ─▶ ByteMachine: calls the engine ─▶ Store: carries its operations out on real contents
//!                                    │ after most actions: the engine's invariants
//!                                    ▼
//!                                 Contents: what each page must hold
//! ```
//! Everything goes through the engine's public interface, as for any machine. The machine obeys its rules. It resumes only tasks that can go
//! on, keeps operations on the same frame or slot in order, and starts nothing for a task that is busy. Within these rules it is as adversarial
//! as it can be:
//!
//! - Copies are made late, and transfers end in any order or fail.
//! - A write leaves on the device the frame's contents at its begin or at its end.
//! - Freed frames and slots hold garbage immediately.
//! - Knobs change while tasks are in the middle of reclaim.
//!
//! With `PAGEOUT_FUZZ_SHOW` set, the setup and each action are printed: the readable form of an input.

pub(crate) mod contents; // what each page must hold
pub(crate) mod gate; // who looks at frames
mod files; // kernel files, and what is written to them
mod input; // from bytes to a machine and what happens on it
mod machine; // tasks and what they do
mod pool; // the bytes of compressed pages
pub(crate) mod store; // where the bytes are

use gate::Gate;
use input::{Action, Bytes, Setup};
use machine::ByteMachine;

/// More would only be slow: what goes wrong goes wrong within a few dozen actions.
const ACTIONS_MAX: usize = 400;

/// Runs what the bytes say. Every sequence of bytes is a run, and so is each beginning of it.
pub fn run(bytes: &[u8]) {
    run_behind(bytes, |setup| Gate::new(setup.refused));
}

fn run_behind(bytes: &[u8], gate: impl FnOnce(&Setup) -> Gate) {
    let show = std::env::var_os("PAGEOUT_FUZZ_SHOW").is_some();
    let mut bytes = Bytes::new(bytes);
    let setup = Setup::decode(&mut bytes);
    if show {
        eprintln!("{setup:#?}");
    }
    let mut machine = ByteMachine::new(&setup, gate(&setup), show);
    for _ in 0..ACTIONS_MAX {
        if bytes.is_empty() {
            break;
        }
        machine.perform(Action::decode(&mut bytes));
    }
    machine.finish();
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// How a run of random bytes fails behind a gate that always says yes, if it does.
    fn failure(seed: u64) -> Option<String> {
        let mut state = seed;
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        });
        let bytes: Vec<u8> = bytes.take(1600).collect();
        let ended = catch_unwind(AssertUnwindSafe(|| run_behind(&bytes, |_| Gate::deaf())));
        ended.err().map(|said| said.downcast_ref::<String>().cloned().unwrap_or_default())
    }

    #[test]
    fn a_gate_that_closes_before_whoever_looks_is_noticed() {
        let said = (0..500).find_map(failure).unwrap_or_default();
        assert!(said.contains("look"), "{said:?}");
    }
}
