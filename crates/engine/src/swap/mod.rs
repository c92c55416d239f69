//! Swapping out and in: what is not written, what is held back, what is read ahead. The devices with their slots and the swap cache are state
//! (`pageout_mm::swap`). [reclaim-6.12 M9, M10, 6]

pub(crate) mod zeroes; // pages that are a bit of their slot
pub(crate) mod plug; // writes held back, to be merged
pub(crate) mod readahead; // which pages are read with one that is needed

pub(crate) use pageout_mm::swap::*;
