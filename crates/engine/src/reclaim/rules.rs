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

/// What a reclaim call does about old statistics, and before it gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReclaimRules {
    /// When a pass over two lists flushes.
    pub stat_flush: FlushRule,
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
            drain_before_giving_up: false,
            force_active_anon: false,
            flush_after_failure: false,
        }
    }
}
