//! Trace text, as `/sys/kernel/tracing/trace`, `trace-cmd report` and `perf script` print it: from bytes to reclaim events in order of
//! time. Events of the scheduler, the page cache and the shrinkers are read as well, as they explain what a reclaim call waited for.
//!
//! ```text
//!   bytes ──reader──▶ lines ──line──▶ task, CPU, time, event name, fields ──event──▶ Event ──order──▶ events by time
//!              │                 │                                             │
//!              └─────────────────┴───────────── Skipped: how many, why ────────┘
//! ```
//! Two dialects are read, and mixes of them: that of 2010, when these events were new, and that of today. They differ in the flag
//! column of a line and in the fields of some events, so each event is read by the names of its fields.
//!
//! Memory is constant: only a window of events is kept, to sort them by time.

mod line; // one line: task, CPU, time, event name, fields
mod event; // reclaim events and their fields
mod order; // events in order of time, as CPUs are merged late
mod reader; // bytes to events, and lines that could not be read

pub use event::{
    CallKind, Dialect, Event, Isolated, KEPT, Lru, ORDERS, REASONS, Shrunk, Unreadable, WriteKind,
    parse as parse_event,
};
pub use line::{Form, Head, parse as parse_line};
pub use reader::{Reader, Record, Skipped, Task, Totals};
