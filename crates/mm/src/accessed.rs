//! What walks of page tables remember from one to the next. [reclaim 4.4]

mod bloom; // tables in which little was found
mod iteration; // how far the walks of a generation have come

pub use bloom::BloomFilters;
pub use iteration::{TableWalkState, WalkStats};
