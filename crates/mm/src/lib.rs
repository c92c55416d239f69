//! The state of memory: pages, folios, free memory, lists, groups, slots, counters, as plain data with its own invariants.
//!
//! Nothing here decides what reclaim takes: that is the engine's task, whose mechanisms read and change this state. Each module has the name of the
//! engine's module for the mechanisms that use it. The map, in reading order:
#![forbid(unsafe_code)]

use pageout_rules::{config, policy, units}; // what can be chosen, and what everything is counted in

pub mod memory; // folios, page tables and indexes, files, address spaces
pub mod page_alloc; // free memory
pub mod tiers; // fast and slow nodes, and demotion targets
pub mod swap; // swap devices: slots, the swap cache
pub mod zswap; // compressed pages in front of a swap device
pub mod kmem; // the kernel's own memory
pub mod memcg; // memory groups: the tree, limits, protection
pub mod stat; // counters under the kernel's names
pub mod cpu; // the state of one CPU
pub mod lru; // the lists of a group on a node
pub mod workingset; // nodes of indexes that hold nothing but shadows
pub mod balance; // the cost of reclaim by type of memory
pub mod accessed; // the memory of page-table walks
pub mod votes; // the groups that dirty a file
pub mod numa_balancing; // marked pages of slow memory, and promotion limits
pub mod pghot; // hot pages of slow memory
pub mod promotion; // pages of slow memory that their reader promotes
