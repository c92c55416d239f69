//! Seam 3, workingset: what a refault means, which is an evicted page that is needed again. [reclaim 3]
//!
//! When reclaim takes a page, it leaves a shadow in the page's slot: the lruvec and time of the eviction. When the page comes
//! back, the shadow shows whether it was evicted too early. The policy says what "too early" means. Counting refaults and
//! keeping shadows is shared.

mod refault; // what every refault has in common
mod distance;
mod generation;
mod shadow_nodes;

pub use distance::RefaultDistances;
pub(crate) use pageout_mm::workingset::*;
