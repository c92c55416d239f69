//! A machine to watch: the simulator behind a few calls, for the page that `pageout play` writes.
//!
//! ```text
//!   page (JavaScript)                      this crate, as WebAssembly
//!   ask {"open": ..}, {"run": ..}  ──────▶ session   one scenario and its machine
//!   answer, JSON                   ◀──────   ├─ status   counters, groups, tasks, zones
//!   frame, an array of words       ◀──────   └─ frame    each folio of each list, in order
//!   copy of all memory             ◀─────▶ (nothing: a copy of the module's memory is a snapshot of the machine)
//! ```
//! A call does the work that its request names, and returns. There is no clock here: the page decides how much virtual time a call runs, and
//! measures how long that took. So the same requests give the same answers, and any moment of a run can be reached again.
#![deny(unsafe_code)]

mod session; // a scenario, its machine, and requests
mod frame; // where each page is
mod status; // counters and sizes

pub mod abi; // calls from outside, without pointers of the caller's

pub use session::{Ask, Session};
