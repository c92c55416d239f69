//! What can be chosen: every rule of every kernel, every size and setting, as data.
//!
//! Nothing here does anything. The engine reads these values and acts by them; scenarios, `ablate` and the reference of keys go through
//! the tables. The map, in reading order:
#![forbid(unsafe_code)]

pub mod units; // page frames, nodes, times: the newtypes everything is counted in
mod choice; // words and ranges that a setting accepts
pub mod config; // sizes, batches, freshness: choices beside the policy
mod version; // versions of the kernel, as text and in order
pub mod era; // the versions of a value, and their sources
pub mod history; // the eras of a rule in words
pub mod unmodelled; // behaviours of versions without a rule
mod kernel; // a version, as a query over all eras
pub mod policy; // every rule's value, for groups and for the machine; the profiles
mod declare; // `rules!`: a struct of rules, and a row a rule
pub mod switch; // every mechanism and every era's rule under a name

pub mod accessed; // seam 1: the search for accessed bits
pub mod lru; // seam 2: lists, and the order of generations
pub mod workingset; // seam 3: the meaning of a refault
pub mod balance; // seam 4: anonymous against file
pub mod reclaim; // a reclaim call
pub mod writeback; // dirty pages of files
pub mod zswap; // compressed pages in front of swap
pub mod damon; // regions by access, and schemes on them
pub mod migrate; // folios that move
pub mod folio; // folio sizes of file systems and writes
pub mod readahead; // reads before the first access
pub mod numa_balancing; // pages of slow memory, promoted by faults
pub mod pghot; // pages of slow memory, promoted by a thread
pub mod promotion; // pages of slow memory, promoted by readers

pub use choice::Values;
pub use kernel::Kernel;
pub use version::{Series, Version};
