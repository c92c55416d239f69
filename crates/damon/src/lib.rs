//! DAMON: which addresses are accessed, found by samples, and what schemes do about them. [access-aware 1, 2]
//!
//! ```text
//!                   ┌─ prepare a page of each region, sleep, test it ─┐      every sample interval
//!   Kdamond::step ──┤                                                 ├─▶ Step: what the host does next
//!                   └─ merge, schemes, tune, reset, split ────────────┘      every aggregation interval
//! ```
//! The crate decides and acts on nothing. A host has memory ([`Memory`]), a clock and a thread. It calls [`Kdamond::step`], does what the
//! [`Step`] names, and calls again. All randomness of a kdamond is one stream, which its seed begins.
//!
//! Versions of Linux differ in some rules. Each is a field of [`Rules`].
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::single_range_in_vec_init))] // a list of one range is meant

mod rules; // what differs by version
mod draws; // one random stream
mod region; // address ranges with a count and an age
mod target; // regions of one process, or of memory
mod attrs; // intervals and limits
mod merge; // ages and unions of regions
mod split; // cuts of regions
mod tune; // intervals by a goal
mod feed; // a size by a score
mod filter; // which pages a scheme spares
mod goal; // when a scheme is aggressive enough
mod watermark; // when a scheme is active
mod quota; // how much a scheme may do
mod priority; // what a scheme does first
mod scheme; // a pattern, an action, their limits and statistics
mod kdamond; // the loop
pub mod modules; // kdamonds with fixed schemes

pub use attrs::{Attrs, AttrsError, IntervalsGoal};
pub use draws::Draws;
pub use feed::feed;
pub use filter::{CoreFilter, CoreVerdict, Filter, FilterOrder, OpsFilter, core_verdict, ops_passes};
pub use goal::{Goal, Metric, Tuner};
pub use kdamond::{Applied, Apply, Kdamond, Memory, Step};
pub use priority::{HOTTEST, hot_score};
pub use quota::{FailCharge, FirstWindow, Quota, QuotaLimits, Weights};
pub use region::{Between, Region};
pub use rules::Rules;
pub use scheme::{Action, Pattern, Scheme, SchemeSpec, SchemeStats};
pub use split::{OverHalf, SplitHistory};
pub use target::{Range, Target, three_ranges};
pub use watermark::{WatermarkMetric, Watermarks};

#[cfg(test)]
mod model; // the same, written a second time
