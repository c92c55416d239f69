//! The state of MGLRU: the lists of each generation, a folio's place among them, and how often it was used. [reclaim 4.1, 4.3]

mod lists; // the generations of one lruvec
mod references; // how often a page was read, in its word

pub use lists::{GenerationLists, Place};
pub use references::{ACTIVE_FROM, CountsUse, FREQUENCY_MAX, ladder, with_frequency};
