//! Rules of refaults: what an evicted page that is needed again says. [reclaim 3]

use crate::choice::choice;

choice! {
    /// Which refaults say that a page was evicted too early.
    Workingset {
        /// The refault of a page that returns before the active list would have turned over: classic.
        Distance = "distance",
        /// The refault of a page evicted from the generation that is still the oldest.
        OldestGeneration = "oldest_generation",
        /// The refault of a page evicted from any generation that could still exist.
        AnyGeneration = "any_generation",
        /// None: refaults are counted and have no consequence.
        CountOnly = "count_only",
    }
}

choice! {
    /// Whose free swap decides whether anonymous lists might have made room for a page that comes back.
    SwapRoom {
        /// Free swap of the group that reads the page in.
        Reader = "reader",
        /// Free swap of the group whose limit evicted the page, because the page is compared with the lists of
        /// that group.
        Evictor = "evictor",
    }
}

choice! {
    /// What the counters of refaults and activations count for generations. No decision depends on them.
    RefaultCounters {
        /// `workingset_refault` counts recent refaults alone, and `workingset_activate` counts pages that
        /// eviction protects.
        Protected = "protected",
        /// `workingset_refault` counts each refault, and `workingset_activate` counts recent ones.
        Refaults = "refaults",
    }
}

choice! {
    /// Which pages that come back soon get back what was known of their use, with
    /// [`Linux6_12`](crate::lru::References::Linux6_12). With [`Linux6_16`](crate::lru::References::Linux6_16)
    /// a page gets back what its shadow holds.
    Restore {
        /// Pages that come back by a fault or had a full count. They have been in use, and their count begins
        /// anew.
        Full = "full",
        /// Pages one use short of a full count, too. Their count comes back full, so that eviction spares them
        /// the next time.
        NearlyFull = "nearly_full",
    }
}

choice! {
    /// How much of a page's count of accesses its shadow holds, by the references of MGLRU-FG.
    ShadowCount {
        /// All of it: 0 to 7.
        Full = "full",
        /// 4 at most, as the counts before had no more: the uppermost tier looks like the one below.
        Four = "four",
    }
}

choice! {
    /// Which pages that come back by a fault count as activated, with
    /// [`Linux6_16`](crate::lru::References::Linux6_16).
    RefaultActivate {
        /// All pages that come back soon: a fault activates all that it brings in.
        Fault = "fault",
        /// Pages that were in use when they were evicted.
        FaultOfWorkingset = "fault_of_workingset",
    }
}

impl Restore {
    /// Uses after which a page that was only read is restored. One or two may be a single use in parts, and protecting those would spare pages of a
    /// scan. [reclaim-6.12 3.4]
    pub fn least_refs(self) -> u8 {
        match self {
            Restore::Full => 4,
            Restore::NearlyFull => 3,
        }
    }
}
