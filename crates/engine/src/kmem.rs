//! Kernel memory: the memory that the kernel takes to keep track of pages and tasks, and the memcgs that are charged for it.
//!
//! | what | size | charged to | freed |
//! |---|---|---|---|
//! | node of a page-cache index | 576 bytes, 7 a page | the group of the page being inserted, 584 bytes | when nothing is in it; one of shadows only, when reclaim takes it |
//! | page-table page (PTE, PMD, PUD) | a page | the group of the address space | when the mappings below it go; not when their pages are reclaimed |
//! | compressed page of a zram device | its class of sizes, several in 1 to 8 pages | nobody | with its swap slot |
//! | kernel stack | 4 pages | the group of the task | when the task ends |
//! | pool of huge pages | blocks of an order | nobody | when `nr_hugepages` says fewer |
//! | balloon | pages that the host has back | nobody | when the host says fewer |
//! | what the kernel holds from its start on | pages | nobody | never |
//!
//! Each kind takes frames of the machine, independent of who pays. With `memcg.kmem` groups pay too, and reclaim at their limits
//! frees memory for it. The root pays for nothing. Page tables and stacks are charged by the page. Objects that share a page are
//! charged by their bytes (`memcg/objcg.rs`), and the rest of the page costs no group anything. [machine 7]
//!
//! *Where it differs:* a stack is charged when its task first needs memory, not at the fork, because only accesses can wait here.
//! Inodes, dentries, mappings' own records and buffer heads are left out, and so are the nodes of swap caches: no group pays
//! for those either.

mod pages; // frames for the kernel's own use
mod zram; // pages of a compressed swap device
mod zspools; // compaction of what holds compressed pages
mod hugetlb; // blocks that an administrator takes out of free memory
mod balloon; // frames that the host has back
mod nodes; // the nodes of page-cache indexes and page tables

pub(crate) use balloon::{BalloonResize, BalloonStep};
pub(crate) use hugetlb::{PoolResize, PoolResizeStep};
pub(crate) use nodes::IndexRoom;
pub(crate) use pageout_mm::kmem::*;
pub(crate) use zspools::{ZspoolShrink, ZspoolShrinkStep};
