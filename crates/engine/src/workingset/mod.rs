//! Seam 3, workingset: what a refault means, which is an evicted page that is needed again. [reclaim 3]
//!
//! When reclaim takes a page, it leaves a shadow in the page's slot: who evicted it and when. When the page comes back, the
//! shadow tells whether it was evicted too early. The policy says what "too early" means. Counting refaults and keeping shadows
//! is shared.

mod refault; // what every refault has in common
mod distance;
mod generation;
mod shadow_nodes;

use crate::switch::choice;
pub use generation::{RefaultActivate, Restore, ShadowCount};
pub(crate) use shadow_nodes::{IndexNode, ShadowNodes};

choice! {
    /// Which refaults say that a page was evicted too early.
    Workingset {
        /// The refault of a page that returns before the active list would have turned over: classic.
        Distance = "distance",
        /// The refault of a page evicted from the generation that is still the oldest: MGLRU of 6.12.
        OldestGeneration = "oldest_generation",
        /// The refault of a page evicted from any generation that could still exist: MGLRU of 6.16.
        AnyGeneration = "any_generation",
        /// None: refaults are counted and have no consequence.
        CountOnly = "count_only",
    }
}
