//! Rules of memory tiering: which pages of slow memory are promoted.

use crate::choice::choice;

choice! {
    /// How hot a page has to be that is promoted where room is short.
    PromotionThreshold {
        /// By the rate limit: an eighth more or less of it in a `scan_period_max` (all kernels).
        RateLimit = "rate_limit",
        /// By room: so that pages as hot as that are no more than are free or inactive, within a second.
        Capacity = "capacity",
        /// By its list: one that faults while it is active; another becomes active (TPP).
        Active = "active",
    }
}
