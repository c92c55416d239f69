//! The twin of a recorded machine: a scenario that repeats the recording, its counters compared with the real ones, and answers to "what
//! if".
//!
//! ```text
//!   recording/ ─▶ Recording ─▶ TwinMachine: what the group has for its files ─▶ text of a scenario ─▶ runs ─▶ figures
//!                     │          ▲
//!                     │          └── Question: memory=-25%, policy=mglru@6.12, ...
//!                     └─▶ counters alone: the floor of the curve, what is identified, what never is
//! ```
//! A recording of reads can answer every question about files, because accesses do not depend on memory. Recordings of faults and
//! insertions have only the accesses that missed at the recorded memory. They do not cover less memory, and with more memory they are off
//! by the measured error ([`Knowledge`]). Memory of programs changes as recorded: its accesses are not recorded.
//!
//! Unknown data are varied: each answer has a run with the mean of the group's other memory, and an interval. The interval covers the error
//! of this mean and the phase of statistics flushes; for several readers also the places and times of the readers.

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
mod against; // predictions checked by other recordings
mod answer; // all of it, asked and answered

pub use against::{Against, Error as PredictionError, Kind};
pub use answer::{Answer, Ask, Off, ask, scenario, value};
pub use counters::{By, Counted};
pub use evidence::Need;
pub use limits::limits;
pub use machine::{TwinMachine, assumptions};
pub(crate) use objects::{Recorded, expand};
pub use play::{Figure, Figures, Interval, Played, Prepared, play};
pub use question::{Carried, Question, answerable};
pub use recording::{Held, Knowledge, Recording};
