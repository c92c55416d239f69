//! Seam 1, harvest: how reclaim finds accessed bits, by the reverse map or by page-table walks.
//!
//! Hardware sets an accessed bit in the page-table entry and notifies no software. Software can find the bit in two ways:
//!
//! - `rmap.rs`, from the page: the reverse map leads to every entry that maps it. Each step touches a cache line of another page table. It
//!   sees exactly the requested pages and pays for each of them.
//! - `walk.rs`, from the address space: one page table after the other, 512 entries side by side. A walk pays for every entry that it
//!   passes, and also finds young pages that reclaim did not ask about. `bloom.rs` keeps it away from tables where the last walk found few
//!   young pages. Aging walks; hot-page tracking walks too, but ages nothing (`scan.rs`).
//!
//! `look_around.rs` joins the two: once the reverse map has led to an entry, its neighbours cost little to read.
//!
//! A mapping has no recency if it is advised random or sequential, or if its data won't be reused: an access does not predict the next
//! one. So its bits are neither counted nor cleared. [reclaim-6.12 M6]

mod host;
mod look_around;
mod rmap;
mod scan;
mod walk;

pub(crate) use pageout_mm::accessed::*;
pub(crate) use rmap::{Referenced, mapped_stat};
pub(crate) use scan::Scan;
pub(crate) use walk::{ENTRIES_PER_STEP, Walk, Walked};
