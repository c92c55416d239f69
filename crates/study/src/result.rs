//! Results: the figures of a run, how they come about, and how those of two runs differ.

pub mod simulate; // a machine built, run, and turned into figures
pub mod run_result; // the figures, as plain data
pub mod events; // what events read, wrote and waited for
pub mod access; // how long accesses took, and why
pub mod writeback; // who wrote pages
pub mod damon; // what schemes did
pub mod user_policies; // what policies of the user's own tell of themselves
pub mod outdated; // decisions by statistics of the last flush
pub mod columns; // figures of a machine by their names, at any time
pub mod trail; // how far a run had come by when
pub mod samples; // a run over time, for a picture
pub mod marks; // moments in it
pub mod requests; // what traces say that is no access
pub mod notes; // what a run leaves out that its user would miss
pub mod parallel; // runs side by side
pub mod variants; // several scenarios with several seeds
pub mod metrics; // a result as a flat list of figures
pub mod better; // which way a figure is better
pub mod expectations; // what a scenario expects, held against results
pub mod spread; // repeated runs: mean, deviation, noise
pub mod effect; // what turning a rule does, in figures
pub mod caveats; // what makes figures say nothing, or not what they seem to
pub mod sign; // which way, over a grid of scenarios
