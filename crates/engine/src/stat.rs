//! Statistics: who counts, and how old the numbers are that a reader gets. The counters are state (`pageout_mm::stat`). [reclaim 7]

mod flush; // statistics as of their last flush, and who flushes them
mod outdated; // decisions by them that live ones would have turned

pub use outdated::{StaleDecision, StaleDecisions, StaleNumber, Turned};
pub(crate) use pageout_mm::stat::*;
