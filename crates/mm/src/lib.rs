//! The state of memory: pages, folios, free memory, lists, groups, slots, counters, as plain data with its own invariants.
//!
//! Nothing here decides what reclaim takes: that is the engine's task, whose mechanisms read and change this state. Each module has the name of the
//! engine's module for the mechanisms that use it. The map, in reading order:
#![forbid(unsafe_code)]

use pageout_rules::{config, policy, units}; // what can be chosen, and what everything is counted in

pub mod memory; // folios, page tables and indexes, files, address spaces
pub mod page_alloc; // free memory
pub mod tiers; // which nodes are fast, which are slow, and where pages go from each
pub mod swap; // swap devices: slots, the swap cache
pub mod zswap; // compressed pages in front of a swap device
pub mod kmem; // what the kernel holds for itself
pub mod memcg; // memory groups: the tree, limits, protection
pub mod stat; // counters under the kernel's names
pub mod cpu; // what belongs to one CPU
pub mod lru; // the lists of a group on a node
pub mod workingset; // nodes of indexes that hold nothing but shadows
pub mod balance; // what reclaim of each type of memory has cost
pub mod accessed; // what walks of page tables remember
pub mod votes; // who dirties a file
pub mod numa_balancing; // when pages of slow memory were marked, and how many may be promoted
pub mod pghot; // which pages of slow memory are in use
pub mod promotion; // pages of slow memory that their reader promotes
