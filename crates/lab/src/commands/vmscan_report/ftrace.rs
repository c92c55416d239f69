//! Trace text of a kernel, as `/sys/kernel/tracing/trace`, `trace-cmd report` and `perf script` print it: from bytes to events of
//! reclaim in the order of time, and to those of others that say why reclaim was needed and what a call waited for.
//!
//! ```text
//!   bytes ──reader──▶ lines ──line──▶ task, CPU, time, event name, fields ──event──▶ Event ──order──▶ events by time
//!              │                 │                                             │
//!              └─────────────────┴───────────── Skipped: how many, why ────────┘
//! ```
//! Two dialects are read, and mixes of them: that of 2010, when these events were new, and that of today. They differ in the flag
//! column of a line and in the fields of some events, so each event is read by the names of its fields.
//!
//! Nothing is kept of a line once it is read, but for a window of events that may still have to change places.

mod line; // one line: who, where, when, what
mod event; // what an event of reclaim says
mod order; // CPUs are merged late: events take their places by time
mod reader; // bytes to events, and what could not be read

pub use event::{
    CallKind, Dialect, Event, Isolated, KEPT, Lru, ORDERS, REASONS, Shrunk, Unreadable, WriteKind,
    parse as parse_event,
};
pub use line::{Form, Head, parse as parse_line};
pub use reader::{Reader, Record, Skipped, Task, Totals};
