//! Kinds of events that a trace has: a figure needs events of certain kinds, and is unknown without them.
//!
//! If a trace has no event of a kind, either the kind was not recorded, or nothing of it happened. It did not happen if the trace has
//! what `vmscan:*` records in any reclaim: isolations, batches, and calls with both ends or kswapd's wakings.

use crate::ftrace::{CallKind, Event};

/// A kind of event that a figure needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Begins of reclaim calls.
    Begins(CallKind),
    /// Ends of reclaim calls.
    Ends(CallKind),
    /// kswapd wakes.
    KswapdWakes,
    /// kswapd sleeps.
    KswapdSleeps,
    /// Tasks ask for kswapd.
    WakeRequests,
    /// Pages scanned: isolations, or batches if there are no isolations.
    Scans,
    /// Batches, with the number of pages freed.
    Batches,
    /// Pages written by reclaim.
    Writes,
    /// Tasks throttled in reclaim.
    Throttles,
}

impl EventKind {
    /// Name of the kind, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Begins(_) => "begin events",
            EventKind::Ends(_) => "end events",
            EventKind::KswapdWakes => "kswapd wake events",
            EventKind::KswapdSleeps => "kswapd sleep events",
            EventKind::WakeRequests => "wake-up requests",
            EventKind::Scans => "isolations",
            EventKind::Batches => "batches",
            EventKind::Writes => "write events",
            EventKind::Throttles => "throttle events",
        }
    }

    /// The event as `trace-cmd record -e` and `perf record -e` take it.
    pub fn event(self) -> &'static str {
        match self {
            EventKind::Begins(CallKind::Direct) => "vmscan:mm_vmscan_direct_reclaim_begin",
            EventKind::Begins(CallKind::Memcg) => "vmscan:mm_vmscan_memcg_reclaim_begin",
            EventKind::Begins(CallKind::SoftLimit) => "vmscan:mm_vmscan_memcg_softlimit_reclaim_begin",
            EventKind::Begins(CallKind::Node) => "vmscan:mm_vmscan_node_reclaim_begin",
            EventKind::Ends(CallKind::Direct) => "vmscan:mm_vmscan_direct_reclaim_end",
            EventKind::Ends(CallKind::Memcg) => "vmscan:mm_vmscan_memcg_reclaim_end",
            EventKind::Ends(CallKind::SoftLimit) => "vmscan:mm_vmscan_memcg_softlimit_reclaim_end",
            EventKind::Ends(CallKind::Node) => "vmscan:mm_vmscan_node_reclaim_end",
            EventKind::KswapdWakes => "vmscan:mm_vmscan_kswapd_wake",
            EventKind::KswapdSleeps => "vmscan:mm_vmscan_kswapd_sleep",
            EventKind::WakeRequests => "vmscan:mm_vmscan_wakeup_kswapd",
            EventKind::Scans => "vmscan:mm_vmscan_lru_isolate",
            EventKind::Batches => "vmscan:mm_vmscan_lru_shrink_inactive",
            // mm_vmscan_writepage until 6.x.
            EventKind::Writes => "vmscan:mm_vmscan_write*",
            EventKind::Throttles => "vmscan:mm_vmscan_throttled",
        }
    }
}

/// The trace has no events of this kind, so a figure that needs them is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {} ({})", .0.name(), .0.event().rsplit(':').next().unwrap_or_default())]
pub struct NotRecorded(pub EventKind);

/// Number of events of each kind.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    begins: [u64; 4],
    ends: [u64; 4],
    wakes: u64,
    sleeps: u64,
    requests: u64,
    isolations: u64,
    batches: u64,
    writes: u64,
    throttles: u64,
    /// `Options::has_all_events`.
    has_all_events: bool,
    /// The kernel is of 2010, and may have no batches.
    pub(super) is_early: bool,
}

impl Coverage {
    pub(super) fn new(has_all_events: bool) -> Coverage {
        Coverage { has_all_events, ..Coverage::default() }
    }

    pub(super) fn count(&mut self, event: &Event) {
        *match event {
            Event::Begin { kind, .. } => &mut self.begins[*kind as usize],
            Event::End { kind, .. } => &mut self.ends[*kind as usize],
            Event::KswapdWake { .. } => &mut self.wakes,
            Event::KswapdSleep => &mut self.sleeps,
            Event::WakeupKswapd { .. } => &mut self.requests,
            Event::Isolate(_) => &mut self.isolations,
            Event::ShrinkInactive(_) => &mut self.batches,
            Event::Write(_) => &mut self.writes,
            Event::Throttled { .. } => &mut self.throttles,
            _ => return,
        } += 1;
    }

    /// Returns true if a kind without events did not happen.
    fn is_whole(&self) -> bool {
        let has_both = self.begins.iter().zip(self.ends).all(|(begins, ends)| (*begins > 0) == (ends > 0));
        let has_edges = self.begins.iter().any(|begins| *begins > 0) || self.wakes + self.sleeps > 0;
        let has_work = self.isolations > 0 && (self.batches > 0 || self.is_early);
        self.has_all_events || has_both && has_edges && has_work
    }

    /// Returns true if pages scanned are those that batches judged, as the trace has no isolations.
    pub fn scans_by_batches(&self) -> bool {
        self.isolations == 0 && self.batches > 0
    }

    /// Returns true if end events of these calls were recorded, and begin events were not.
    pub fn has_only_ends(&self, kind: CallKind) -> bool {
        self.begins[kind as usize] == 0 && self.ends[kind as usize] > 0
    }

    /// Number of events of a kind, 0 if none happened. Errors: none was recorded, and some may have happened.
    pub fn count_of(&self, kind: &EventKind) -> Result<u64, NotRecorded> {
        let count = match *kind {
            EventKind::Begins(kind) => self.begins[kind as usize],
            EventKind::Ends(kind) => self.ends[kind as usize],
            EventKind::KswapdWakes => self.wakes,
            EventKind::KswapdSleeps => self.sleeps,
            EventKind::WakeRequests => self.requests,
            EventKind::Scans => self.isolations.max(self.batches),
            EventKind::Batches => self.batches,
            EventKind::Writes => self.writes,
            EventKind::Throttles => self.throttles,
        };
        // A kernel without batch events still frees pages.
        let is_zero = self.is_whole() && !(self.is_early && *kind == EventKind::Batches);
        if count > 0 || is_zero { Ok(count) } else { Err(NotRecorded(*kind)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(events: &[Event]) -> Coverage {
        let mut coverage = Coverage::default();
        events.iter().for_each(|event| coverage.count(event));
        coverage
    }

    #[test]
    fn figure_without_its_kind_of_event_is_unknown() {
        let begin = Event::Begin { kind: CallKind::Memcg, order: 0 };
        let (begins, ends) = (EventKind::Begins(CallKind::Memcg), EventKind::Ends(CallKind::Memcg));
        let begun = coverage(&[begin]);
        assert_eq!(begun.count_of(&begins), Ok(1));
        let unknown = begun.count_of(&ends).unwrap_err();
        assert_eq!(unknown.to_string(), "no end events (mm_vmscan_memcg_reclaim_end)");
        let both = coverage(&[begin, Event::End { kind: CallKind::Memcg, reclaimed: 1 }]);
        assert_eq!((both.count_of(&begins), both.count_of(&ends)), (Ok(1), Ok(1)));
        assert!(both.count_of(&EventKind::KswapdWakes).is_err());
    }

    #[test]
    fn kind_without_events_is_zero_in_a_complete_record() {
        let whole = Coverage::new(true);
        assert_eq!(whole.count_of(&EventKind::Writes), Ok(0));
    }
}
