//! Swapping out and in: folios with a slot, what is not written, held back, read ahead. Devices, slots and the index of the swap cache are state
//! (`pageout_mm::swap`). [reclaim-6.12 M9, M10, 6]

mod cache; // folios that have a slot
pub(crate) mod zeroes; // pages that are a bit of their slot
pub(crate) mod plug; // writes held back, to be merged
pub(crate) mod readahead; // which pages are read with one that is needed

mod large; // slots in a row for the pages of a folio

pub(crate) use pageout_mm::swap::*;
