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

/// The same behind a gate that closes frames under their readers, which a run has to notice: it panics.
pub fn run_behind_deaf_gate(bytes: &[u8]) {
    run_behind(bytes, |_| Gate::deaf());
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
