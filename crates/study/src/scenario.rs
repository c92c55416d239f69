//! Scenario files: a file is read, changed by settings and checked, and every error is reported with its place.

pub mod source; // a file with the place of each key and value; settings
pub mod diagnostic; // a message with its place in the file
pub mod nearest; // "did you mean"
pub mod load; // with all changes made
pub mod traces; // traces that are read once
pub mod interpretation; // how a trace is understood, in words
mod prepare; // what only a look into other files can tell
pub mod variation; // a key and several values of it
pub mod grid; // at all combinations of some keys' values
pub mod own_variants; // the variants that a scenario brings along
pub mod switches; // the engine's switches in a scenario
