//! The page allocator: which pages of each zone are free, and which requests may have them. [machine 2]
//!
//! Zones with their blocks, lists and marks are state (`pageout_mm::page_alloc`); the tries of a request are here.

mod alloc; // the tries of a request, and what is counted
pub(crate) mod slow_path; // what a request does that no zone can serve at once

pub(crate) use pageout_mm::page_alloc::*;
