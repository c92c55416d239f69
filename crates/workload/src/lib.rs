//! Access streams: what a workload touches, page by page, made by generators or replayed from recorded traces.
//!
//! ```text
//!   Pattern ──▶ generator ──┐
//!                           ├──▶ dyn AccessStream ──▶ the simulator pulls a chunk, replays it, pulls the next
//!   file ─────▶ trace ──────┘
//! ```
//!
//! Everything here is a pure function of its parameters, its seed and the bytes it reads: no clock, no threads, no
//! ambient randomness, no platform math library. Only the trace readers touch the file system.
#![forbid(unsafe_code)]

mod access; // one access packed in a word, and the stream that everything here produces
pub mod rng; // the one random-number generator, published with the ground truth

pub mod generator; // patterns as plain data, and the seeded generators they stand for
pub mod trace; // recorded traces: readers, format detection, and the project's own `.pgt`

#[doc(hidden)]
pub mod fuzz_entry; // one function a reader that drains arbitrary bytes; for fuzzers only

pub use access::{Access, AccessStream, InMemory};
pub use generator::{Pattern, PatternError};
pub use trace::{ReadOptions, TraceError, TraceHeader, TraceInfo};
