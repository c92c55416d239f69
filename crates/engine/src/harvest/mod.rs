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

mod bloom;
mod look_around;
mod rmap;
mod iteration;
mod scan;
mod walk;

pub(crate) use iteration::TableWalkState;
pub(crate) use rmap::{Referenced, mapped_stat};
pub(crate) use scan::Scan;
pub(crate) use walk::{ENTRIES_PER_STEP, Walk, Walked};

/// How accessed bits are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Harvest {
    /// From the folio that reclaim has in its hands, through the reverse map. Without it every mapped page looks idle
    /// there: it shows what accessed bits are worth.
    pub rmap: bool,
    /// From address spaces: when generations age, and once a turn of inactive lists.
    pub page_table_walk: bool,
    /// A walk passes by tables whose upper entry's accessed bit says that nothing below was used. Some processors don't
    /// set it.
    pub non_leaf_young: bool,
    /// A walk passes by tables in which the last one found too little.
    pub bloom_filter: bool,
    /// Where the reverse map finds an entry young, its neighbours are looked at too.
    pub look_around: bool,
    /// A walk passes by address spaces that have not run since the last one.
    pub mm_skip: bool,
}

impl Harvest {
    /// Whether accessed bits are also cleared where reclaim did not ask for them.
    pub(crate) fn sees_elsewhere(self) -> bool {
        self.page_table_walk || self.look_around
    }

    pub(crate) fn rmap_only() -> Harvest {
        Harvest {
            page_table_walk: false,
            non_leaf_young: false,
            look_around: false,
            ..Harvest::page_table_walk()
        }
    }

    pub(crate) fn page_table_walk() -> Harvest {
        Harvest {
            rmap: true,
            page_table_walk: true,
            non_leaf_young: true,
            bloom_filter: true,
            look_around: true,
            mm_skip: true,
        }
    }
}
