//! The page cache `pageout` for C: the functions of `include/pageout.h`, which says what each does.
//!
//! ```text
//!   C ──► boundary.rs: pointers ──► crate pageout_live ──► Result ──► failure.rs: an errno value, negated, and a text for this thread
//! ```
//! A handle is a `Box` that C has the address of. No function panics into C: each runs under `catch_unwind`, which needs a profile that unwinds
//! (`--profile wheel`).
#![deny(clippy::undocumented_unsafe_blocks)]
#![allow(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "waiting for a batch with a timeout needs a clock")]

mod boundary; // the functions of the header: what C hands in is made into Rust
mod held; // a page that outlives the borrow of its file
mod batch; // reads whose buffers are C's
mod setup; // a cache out of JSON
mod failure; // errors as numbers and texts
