//! Rules of a reclaim call that have a default and an alternative: when it brings statistics up to date, and what it tries
//! before it gives up.
//!
//! Linux 6.12 gives up too early where a group's anonymous pages turn over faster than its statistics are flushed. All listed
//! pages have become active since the last flush, reclaim's statistics do not show it, and a pass looks at nothing. One of these
//! rules was lost between 6.1 and 6.12. The others are remedies that no kernel has. The drain only puts the end off; each of the
//! others prevents it. `docs/results/premature-oom.md` shows what each does, and what it costs where nothing was wrong.

use crate::switch::choice;

choice! {
    /// When a pass over two lists brings the statistics of all groups up to date before it decides by them.
    FlushRule {
        /// When the periodic worker is late by a whole period. Linux 6.12.
        WorkerLate = "6.12",
        /// When the CPUs have told the machine of enough updates. Linux 6.1.
        Updates = "6.1",
    }
}

choice! {
    /// Which groups a call looks at that reclaims for a limit, or for a task that needs a page, where a tree of groups is walked.
    TreeWalk {
        /// A part: reclaimers share one walk, and a call that found nothing in its part looks at all groups before it gives up.
        /// Since Linux 6.10.
        Shared = "shared",
        /// All groups at every priority. Linux 5.19 to 6.9.
        Full = "full",
        /// A part, and nothing more before it gives up. Before Linux 5.19.
        SharedOnly = "shared_only",
    }
}

choice! {
    /// By which settings of the groups above a group is protected that reclaim for the machine comes by in the order of the memcg LRU.
    ProtectionRule {
        /// By those that they have now, worked out from the top down. Since Linux 6.11.
        TopDown = "top_down",
        /// By what was worked out for its parent when reclaim last came by that, which is nothing before. Linux 6.1 to 6.10.
        AsVisited = "as_visited",
    }
}

/// What a reclaim call does about old statistics, which groups it comes by, and what it does before it gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReclaimRules {
    /// When a pass over two lists flushes.
    pub stat_flush: FlushRule,
    /// Which groups a call comes by.
    pub tree_walk: TreeWalk,
    /// Which protection counts in the order of the memcg LRU.
    pub protection: ProtectionRule,
    /// Who reclaims while others have more of a type in their hands than an eighth of what is on the list waits, once. Without it,
    /// the few pages left on the list look like all there are (before Linux 2.6.32).
    pub isolation_limit: bool,
    /// A call that found nothing empties the batches of its CPU and starts over, because a page that waits there is on no
    /// list. Batches of other CPUs stay: to ask those would interrupt them.
    pub drain_before_giving_up: bool,
    /// Forced deactivation reaches active anonymous pages where a pass has nothing else to scan.
    pub force_active_anon: bool,
    /// A call that reclaimed nothing leaves fresh statistics of its group to the next attempt.
    pub flush_after_failure: bool,
}

impl ReclaimRules {
    pub(crate) fn linux_6_12() -> ReclaimRules {
        ReclaimRules {
            stat_flush: FlushRule::WorkerLate,
            tree_walk: TreeWalk::Shared,
            protection: ProtectionRule::TopDown,
            isolation_limit: true,
            drain_before_giving_up: false,
            force_active_anon: false,
            flush_after_failure: false,
        }
    }
}
