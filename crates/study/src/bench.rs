//! The bench: textbook policies over traces, at any sizes of memory, without a machine. Pages go in, misses come out.
//!
//! ```text
//!   trace ─decoded once─▶ dense page numbers ─▶ one simulation a policy and size, spread over CPUs ─▶ cells
//!                                            └▶ LRU: all sizes in one reading of them
//! ```
//! A trace past the budget of memory is not kept: its numbers go through all simulations block by block, as they are read.

mod policies; // what is to be compared, from text
mod sizes; // sizes of memory, from text
mod memory; // traces that a program has in its memory
mod trace; // a trace as the simulations want it
mod run; // from a trace to its cells
mod expected; // how long that takes, and how much memory
mod tenants; // a memory that several share

pub use expected::Expected;
pub use memory::{InMemory, forget, keep, kept};
pub use policies::{Policy, parse_policies};
pub use run::{Answer, Broken, Cell, Figure, NotSampled, Question, Sampled, SampledFrom};
pub use sizes::parse_sizes;
pub use tenants::{NotShared, Shares, Tenants, steps};
pub use trace::{Pages, Trace, WarmUp};
