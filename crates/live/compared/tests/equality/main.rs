//! One sequence of accesses, live and simulated: the same decisions and counters, for every profile.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests that make files and threads")]

#[path = "../../../tests/made/mod.rs"]
mod made; // files with known contents
#[path = "../../../tests/made/pages.rs"]
mod pages; // pages of which some shrink

mod sequence; // accesses of one thread
mod told; // decisions and counters as text

mod files;
mod regions; // regions, mapped or not, and files
mod zswap;
