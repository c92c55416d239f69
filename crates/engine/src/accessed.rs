//! Seam 1, harvest: how accessed bits are found, by the reverse map or by walks of page tables.
//!
//! Hardware sets an accessed bit in the page-table entry and tells nobody. Two ways lead to it:
//!
//! - `rmap.rs`, from the page: the reverse map leads to every entry that maps it. Each step touches a cache line of another page
//!   table. It sees exactly the pages it asks about and pays for each of them.
//! - `walk.rs`, from the address space: one page table after the other, 512 entries side by side. It pays for what it passes
//!   and finds what it didn't ask for; `bloom.rs` keeps it away from tables where little was found the last time. Aging walks; so does
//!   hot-page tracking, which ages nothing (`scan.rs`).
//!
//! `look_around.rs` joins the two: once the reverse map has led to an entry, its neighbours are at hand.
//!
//! A mapping advised random or sequential (or of data that won't be reused) has no recency: an access says nothing about the
//! next one. So its bits are neither counted nor cleared. [reclaim-6.12 M6]

mod look_around;
mod rmap;
mod scan;
mod walk;

pub(crate) use pageout_mm::accessed::*;
pub(crate) use rmap::{Referenced, mapped_stat};
pub(crate) use scan::Scan;
pub(crate) use walk::{ENTRIES_PER_STEP, Walk, Walked};
