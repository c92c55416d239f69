//! DAMON: threads that sample accesses by region, and schemes that reclaim, sort or migrate by what they find. [access-aware 1 to 4]
//!
//! ```text
//!   kdamond.N ── step ──▶ pageout_damon::Kdamond     decides: which page is sampled, which region a scheme is applied to
//!      │  ▲                  │
//!      │  └── young? ◀───────┘ watched.rs: frames (paddr.rs) or pages of a process (vaddr.rs); idle and young flags (flags.rs)
//!      └──── action.rs: pageout, lru_prio, lru_deprio, migrate_hot, migrate_cold over the folios of a region, a batch per step
//! ```
//! A thread exists only if a module is enabled, or a host has added a kdamond. Its work is priced like any other, so it competes for CPU time.
//!
//! *When not to use it:* a region has one answer for all its pages. A few hot pages in much cold memory are found late or never.
//!
//! Differences: merges and splits of regions take no time, the checks do. Regions of physical memory are all memory of the machine in all versions,
//! unless they are given; up to 7.1 they are the largest part of it only. Statistics are always up to date, where Linux updates them on command.

mod action; // what schemes do to folios
mod flags; // idle and young
mod module; // DAMON_RECLAIM, DAMON_LRU_SORT, DAMON_STAT as configured
mod paddr; // physical memory as a kdamond sees it
mod picture; // windows that are kept for a chart
mod spec; // kdamonds that a host adds
mod thread; // kdamond.N
mod vaddr; // the address space of a process
mod watched; // either of them

pub use picture::{WatchedRegion, WatchedWindow};
pub use spec::{KdamondFigures, KdamondSpec, SchemeFigures};
pub(crate) use thread::DamonThread;

use pageout_damon::SplitHistory;

/// What DAMON keeps between two steps of its threads.
#[derive(Default)]
pub(crate) struct Damon {
    /// Some folio was made idle: from then on idle and young flags mean something.
    pub(crate) has_flags: bool,
    /// State that all kdamonds share.
    pub(crate) history: SplitHistory,
    /// What each kdamond shows, by its number.
    pub(crate) kdamonds: Vec<KdamondFigures>,
    /// Time in which some task was stalled on memory, as the host has measured it.
    pub(crate) stalled: crate::units::Nanos,
    /// Windows for a chart, by the number of the kdamond, if a host wants them.
    pub(crate) pictures: Option<Vec<picture::Picture>>,
}

#[cfg(test)]
mod tests;
