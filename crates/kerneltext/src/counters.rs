//! Counters of the kernel: snapshots of `/proc/vmstat`, `memory.stat` and `/proc/pressure/*`, and what changed between two of them.
//!
//! ```text
//!   two texts ──Snapshot::parse──▶ names and values, of one kind of file ──Change::of──▶ counters and gauges ──sum──▶ sums over zones
//! ```
//! A counter only grows: the difference of two snapshots is the number of events between them. A gauge is a current value: its
//! difference may be negative. Its type and unit follow from its name. Unknown names are listed and are neither.

mod snapshot; // text to names and values
mod change; // counters and gauges apart, with their differences
mod sums; // sums of counters that kernels split by zone, reclaimer or type

pub use change::{Change, CounterState, Pair, Unit};
pub use snapshot::{FileKind, Snapshot, SnapshotError};
pub use sums::{Counters, MissingCounter, MissingCounters, Reclaimed, Sum};
