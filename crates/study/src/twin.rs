//! The twin of a recorded machine: a scenario that does what was recorded, its counters beside the real ones, and answers to "what if".
//!
//! ```text
//!   recording/ ─▶ Recording ─▶ TwinMachine: what the group has for its files ─▶ text of a scenario ─▶ runs ─▶ figures
//!                     │          ▲
//!                     │          └── Question: memory=-25%, policy=mglru@6.12, ...
//!                     └─▶ counters alone: the floor of the curve, what is identified, what never is
//! ```
//! A recording of reads carries every question about files: accesses don't depend on what memory there is. Recordings of faults and insertions
//! are what is left over by the memory that there was, so they say nothing about less, and at more memory they are off by what was seen in
//! measurements ([`Knowledge`]). Memory of programs comes and goes as it did: which of it is used is not recorded.
//!
//! What is not known is varied: each answer is a run with what else the group held, and an interval over how far that may be off
//! and over the phase of the flushes of statistics; for several readers also over where and when they run.

mod recording; // a folder, checked
mod evidence; // what sentences about it can rest on
mod objects; // its files, and how its traces use them
mod unseen; // hits on mapped pages, as often as faults say
mod beside; // what the group holds beside files, as it comes and goes
mod woven; // both among the accesses of the trace
mod machine; // what differs between the twin and its variants, as the text of a scenario
mod question; // what is asked, and whether the recording can say
mod play; // runs, and their figures beside the recorded ones
mod counters; // what can be told without simulating anything
mod limits; // what it does not model, and what the recording does not tell
mod answer; // all of it, asked and answered

pub use answer::{Answer, Ask, Off, ask, scenario, value};
pub use counters::{By, Counted};
pub use evidence::Need;
pub use limits::limits;
pub use machine::TwinMachine;
pub(crate) use objects::{Recorded, expand};
pub use play::{Figure, Figures, Interval, Played, Prepared, play};
pub use question::{Carried, Question, answerable};
pub use recording::{Held, Knowledge, Recording};
