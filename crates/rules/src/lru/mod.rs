//! Rules of the LRU: which lists there are, and how generations are kept. [reclaim 2, 4]

mod generations; // how each era keeps its generations
mod pass; // how each era makes a pass over them

pub use generations::*;
pub use pass::*;

use crate::choice::choice;

choice! {
    /// The lists that an LRU keeps its folios on.
    Lru {
        /// Active and inactive, for each type: the classic LRU of Linux.
        TwoLists = "two_lists",
        /// Pages of about the same age together: the multi-generational LRU of Linux.
        Generations = "generations",
        /// One list in order of access: the textbook LRU.
        SingleList = "single_list",
        /// One queue in order of arrival and a hand that spares what was used: SIEVE.
        Sieve = "sieve",
    }
}

choice! {
    /// What reclaim walks while a group is switched between generations and two lists.
    Switching {
        /// Both: nothing is ever out of reach.
        Both = "both",
        /// The new ones only, as before the bug was mended (merged in March 2026): a false OOM where the group is at its limit.
        NewOnly = "new_only",
    }
}

choice! {
    /// How accesses are counted, and what a young page-table entry does.
    References {
        /// WORKINGSET is set by the second access; a walk that finds a page young makes it youngest at once.
        Linux6_12 = "6.12",
        /// WORKINGSET is set by the fifth access; a page that was only mapped is made youngest when found young twice.
        Linux6_16 = "6.16",
        /// Three bits are one number, 0 to 7, to which every access adds, read or mapped; it promotes the page by itself. MGLRU-FG, as
        /// posted for the third time in October 2026.
        Frequency = "fg3",
    }
}

choice! {
    /// What the gauges of active and inactive pages count of generations.
    Gauges {
        /// The two youngest generations are active: when one is opened, a whole generation becomes inactive at once.
        Generations = "generations",
        /// Pages that were accessed three times are. Only with the references of MGLRU-FG.
        Count = "count",
    }
}

impl Lru {
    /// Whether `lru_gen/enabled` concerns it: only the two LRUs that Linux has.
    #[inline]
    pub fn may_be_switched(self) -> bool {
        matches!(self, Lru::TwoLists | Lru::Generations)
    }
}
