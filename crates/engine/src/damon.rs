//! DAMON on physical memory: a thread that samples accesses by region, and the modules that reclaim or sort by what it finds.
//! [access-aware 1 to 4]
//!
//! ```text
//!   kdamond.0 ── step ──▶ pageout_damon::Kdamond     decides: which page is sampled, which region a scheme is applied to
//!      │  ▲                  │
//!      │  └── young? ◀───────┘ Paddr: frames, folios, accessed bits, idle and young flags (flags.rs)
//!      └──── action.rs: pageout, lru_prio, lru_deprio over the folios of a region, a batch per step
//! ```
//! The thread exists only if a module is enabled. Its work is priced like any other, so it competes for CPU time.
//!
//! *When not to use it:* a region has one answer for all its pages. A few hot pages in much cold memory are found late or never.
//!
//! Differences: merges and splits of regions take no time, the checks do. Regions of modules are all memory of the machine in all versions; up to
//! 7.1 they are the largest part of it only. The metric of memory pressure is not available to goals, as the host measures it.

mod action; // what schemes do to folios
mod flags; // idle and young
mod module; // DAMON_RECLAIM, DAMON_LRU_SORT, DAMON_STAT as configured
mod paddr; // physical memory as a kdamond sees it
mod thread; // kdamond.0

pub(crate) use thread::DamonThread;

use pageout_damon::modules::Stat;
use pageout_damon::{SchemeStats, SplitHistory};

/// What DAMON keeps between two steps of its threads.
#[derive(Default)]
pub(crate) struct Damon {
    /// Some folio was made idle: from then on idle and young flags mean something.
    pub(crate) has_flags: bool,
    /// State that all kdamonds share.
    pub(crate) history: SplitHistory,
    /// Regions now.
    pub(crate) regions: u64,
    /// Microseconds of an aggregation window, as tuned.
    pub(crate) aggr_us: u64,
    /// What each scheme of the module has done.
    pub(crate) schemes: Vec<SchemeStats>,
    /// What DAMON_STAT shows.
    pub(crate) stat: Option<Stat>,
}

#[cfg(test)]
mod tests;
