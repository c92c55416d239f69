//! Scenario files: one is read, changed by options and checked, and every fault is told at its place.

pub mod source; // a file with the place of each key and value; `--set`
pub mod diagnostic; // a message with its place in the file
pub(crate) mod nearest; // "did you mean"
pub(crate) mod load; // with all options applied
pub(crate) mod traces; // traces that are read once
pub(crate) mod prepare; // what only a look into other files can tell
pub(crate) mod grid; // at all combinations of some keys' values
pub(crate) mod own_variants; // the variants that a scenario brings along
pub(crate) mod switches; // the engine's switches in a scenario
