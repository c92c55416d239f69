//! Rules of memory tiering: which pages of slow memory are promoted.

use crate::choice::choice;

choice! {
    /// How hot a page must be to be promoted when fast memory is short.
    PromotionThreshold {
        /// By the rate limit: an eighth more or less of it in a `scan_period_max` (all kernels).
        RateLimit = "rate_limit",
        /// By capacity: within a second, the pages that count as hot do not exceed the free or inactive ones.
        Capacity = "capacity",
        /// By its list: one that faults while it is active; another becomes active (TPP).
        Active = "active",
    }
}
