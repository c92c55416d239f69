//! Results: the figures of a run, how they come about, and how those of two runs differ.

pub(crate) mod simulate; // a machine built, run, and turned into figures
pub(crate) mod run_result; // the figures, as plain data
pub(crate) mod access; // how long accesses took, and why
pub(crate) mod writeback; // who wrote pages
pub(crate) mod outdated; // decisions by statistics of the last flush
pub(crate) mod timeline; // the figures of a run over time, row by row
pub(crate) mod trail; // how far a run had come by when
pub(crate) mod samples; // the same for a picture
pub(crate) mod marks; // moments in it
pub(crate) mod notes; // what a run leaves out that its user would miss
pub(crate) mod parallel; // runs side by side
pub(crate) mod variants; // several scenarios with several seeds
pub(crate) mod metrics; // a result as a flat list of figures
pub(crate) mod better; // which way a figure is better
pub(crate) mod spread; // repeated runs: mean, deviation, noise
pub(crate) mod effect; // what turning a rule does, in figures
pub(crate) mod caveats; // what makes figures say nothing, or not what they seem to
pub(crate) mod sign; // which way, over a grid of scenarios
