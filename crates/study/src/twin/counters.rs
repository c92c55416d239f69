//! Results about a group's files without a simulation: the number of pages that must be read whatever the memory.
//!
//! The first insertion of a page always needs a read; more memory saves at most the others. Events show both kinds. Without events,
//! counters give bounds: a page that returns and has a shadow is a refault, and *pages brought in - refaults* is an upper bound of the
//! distinct pages. The kernel forgets: shadows are dropped with their nodes and inodes. Refaults are therefore a lower bound of the
//! returns, and exact only if nothing was forgotten. In cgroup v1 both sides are unknown: a charge is a folio of any size.
//!
//! The curve between is not identified by one point, nor which policy would do better, nor who of several readers causes misses, nor scans
//! against reuse.

use super::evidence::{INSERTIONS, Need};
use super::recording::Recording;
use crate::basis::{Verdict, verdict};

/// The results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Pages brought in at this limit.
    pub insertions: u64,
    /// Insertions of pages that had been in memory before: memory can save only these.
    pub again: u64,
    /// By what that is known.
    pub by: By,
}

/// The source of knowledge about earlier pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// First insertions come from events.
    Events,
    /// Counters do, of a kernel that has forgotten nothing.
    Counters,
    /// The kernel counted those that it remembered: there may be more.
    Remembered,
}

const REFAULTS: Need = Need::Counter("workingset_refault_file");

impl Counted {
    /// Of a recording. Errors: what is missing for any of it.
    pub fn of(recording: &Recording) -> Verdict<Counted> {
        let by_events = verdict(recording, [INSERTIONS, Need::FirstInsertions], |[insertions, first]| {
            Counted { insertions, again: insertions - first, by: By::Events }
        });
        if by_events.is_ok() {
            return by_events;
        }
        let bound = |insertions: u64, refaults: u64| {
            let by = match verdict(recording, [Need::NothingForgotten], |_| ()) {
                Ok(()) => By::Counters,
                Err(_) => By::Remembered,
            };
            Counted { insertions, again: refaults.min(insertions), by }
        };
        let with_events =
            verdict(recording, [INSERTIONS, Need::AllPages, REFAULTS], |[insertions, _, refaults]| {
                bound(insertions, refaults)
            });
        if with_events.is_ok() {
            return with_events;
        }
        // Inserted pages have been evicted or are still in memory.
        let evicted = match recording.rose("pgsteal") {
            Some(_) => [Need::Counter("pgsteal"); 2],
            None => [Need::Counter("pgsteal_kswapd"), Need::Counter("pgsteal_direct")],
        };
        // Counters of different moments can disagree.
        let needs = [Need::PagesCharged, Need::NoSwap, REFAULTS, evicted[0], evicted[1], Need::Agreeing];
        verdict(recording, needs, |[_, _, refaults, ..]| bound(recording.came_by_counters(), refaults))
    }

    /// Distinct pages that came in: the floor, and the most that it may be if the kernel has forgotten some.
    pub fn distinct(&self) -> u64 {
        self.insertions - self.again
    }

    /// Returns true if as many pages as [`Counted::distinct`] have to come in, and not fewer.
    pub fn is_floor(&self) -> bool {
        self.by != By::Remembered
    }
}
