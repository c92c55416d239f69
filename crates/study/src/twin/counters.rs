//! What can be told of a group's files without simulating anything: how many pages have to come in whatever the memory.
//!
//! A page that comes in for the first time has to be read; more memory saves at most the others. Events tell both. Without events, counters
//! tell bounds: a page that comes back and is remembered is a refault, and *pages brought in - refaults* are at most so many distinct ones. The
//! kernel forgets: shadows go with their nodes, and with their inodes. So refaults say how often pages came back at least, and all of it
//! only if nothing was forgotten. In the first version of cgroups neither side is known: a charge is a folio of any size.
//!
//! The curve between is not identified by one point, nor which policy would do better, nor who of several readers causes misses, nor scans
//! against reuse.

use super::evidence::{INSERTIONS, Need};
use super::recording::Recording;
use crate::basis::{Verdict, verdict};

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Pages brought in at this limit.
    pub insertions: u64,
    /// Of these, pages that had been there: what memory can save.
    pub again: u64,
    /// By what that is known.
    pub by: By,
}

/// How it is known which pages had been there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Events tell first insertions.
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
        // What came in has been evicted, or is there.
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

    /// Whether as many pages as [`Counted::distinct`] have to come in, and not fewer.
    pub fn is_floor(&self) -> bool {
        self.by != By::Remembered
    }
}
