//! What holds on every machine that the engine decides for.
//!
//! ```text
//!   promises/*.rs: texts ─▶ check ─▶ trait TestMachine ─▶ ByHand       the engine alone: what is under way goes on when a text says so
//!   an input of bytes ────▶ run ─▶ bytes/                          contents of all pages, and all that a machine may do, in any order
//! ```
//! A text is a command a line with what it must answer; [`check`] names them all. A machine of another kind, with threads and real files,
//! runs the same texts as far as they don't say in which order things go on.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // for tests: failing is what it is for

mod bytes; // a machine that holds the contents of all pages
mod machine; // the operations that a text can request
mod by_hand; // the machine that does one thing after the other
mod text; // the commands of a text

pub use by_hand::ByHand;
pub use bytes::{run, run_behind_deaf_gate};
pub use machine::{Came, Device, Rested, Stepped, TestMachine};
pub use text::check;
