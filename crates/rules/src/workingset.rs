//! Rules of refaults: what an evicted page that is needed again says. [reclaim 3]

use crate::choice::choice;

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

choice! {
    /// Whose swap room says whether anonymous lists might have made room for a page that comes back.
    SwapRoom {
        /// That of the group that reads the page in. Up to 6.7.
        Reader = "reader",
        /// That of the group whose limit evicted the page, which is whose lists it is compared with. Since 6.8.
        Evictor = "evictor",
    }
}

choice! {
    /// What the counters of refaults and activations count of generations. No decision hangs on them.
    RefaultCounters {
        /// `workingset_refault` counts recent refaults alone, and `workingset_activate` pages that eviction protects. 6.1 to 6.4.
        Protected = "protected",
        /// `workingset_refault` counts each refault, and `workingset_activate` recent ones. Since 6.5.
        Refaults = "refaults",
    }
}

choice! {
    /// Which pages that come back soon are given back what was known of their use, by the references of 6.12. Those of 6.16 give
    /// back what the shadow holds.
    Restore {
        /// Before 6.7: those that come back by a fault or had a full count. They have been in use; their count begins anew.
        Full = "full",
        /// 6.7 to 6.12: also those one use short of it. Their count comes back full, so that they are spared when eviction
        /// meets them next.
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
    /// Which pages that come back by a fault count as activated, by the references of 6.16.
    RefaultActivate {
        /// All that come back soon. 6.16 to 7.1, where a fault activates all that it brings in.
        Fault = "fault",
        /// Refaults by faults of pages that were in use when they were evicted. Since 7.2.
        FaultOfWorkingset = "fault_of_workingset",
    }
}

impl Restore {
    /// Uses after which a page that was only read is restored: one or two may be a single use in parts, and to protect those
    /// would spare pages that a scan has passed by. [reclaim-6.12 3.4]
    pub fn least_refs(self) -> u8 {
        match self {
            Restore::Full => 4,
            Restore::NearlyFull => 3,
        }
    }
}
