//! What a trace can tell, by kind of event: a figure needs events of certain kinds, and is unknown without them.
//!
//! A kind of which no event was seen was not recorded, or nothing of it happened. It did not happen if the trace has what
//! `vmscan:*` has whenever pages are reclaimed: isolations, batches, and calls with both of their ends or kswapd's wakings.

use pageout_study::basis::Evidence;

use crate::commands::vmscan_report::ftrace::{CallKind, Event};

/// What a figure or a sentence needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands::vmscan_report) enum Need {
    /// Begins of calls.
    Begins(CallKind),
    /// Ends of calls.
    Ends(CallKind),
    KswapdWakes,
    KswapdSleeps,
    /// Tasks ask for kswapd.
    WakeRequests,
    /// Pages looked at: isolations, or else batches, which say how many pages were judged.
    Scans,
    /// Batches, which say how many pages were freed.
    Batches,
    Writes,
    Throttles,
}

impl Need {
    /// What results call the kind of event.
    fn name(self) -> &'static str {
        match self {
            Need::Begins(_) => "begin events",
            Need::Ends(_) => "end events",
            Need::KswapdWakes => "kswapd wake events",
            Need::KswapdSleeps => "kswapd sleep events",
            Need::WakeRequests => "wake-up requests",
            Need::Scans => "isolations",
            Need::Batches => "batches",
            Need::Writes => "write events",
            Need::Throttles => "throttle events",
        }
    }

    /// The event as tools that record take its name.
    pub(in crate::commands::vmscan_report) fn event(self) -> &'static str {
        match self {
            Need::Begins(CallKind::Direct) => "vmscan:mm_vmscan_direct_reclaim_begin",
            Need::Begins(CallKind::Memcg) => "vmscan:mm_vmscan_memcg_reclaim_begin",
            Need::Begins(CallKind::SoftLimit) => "vmscan:mm_vmscan_memcg_softlimit_reclaim_begin",
            Need::Begins(CallKind::Node) => "vmscan:mm_vmscan_node_reclaim_begin",
            Need::Ends(CallKind::Direct) => "vmscan:mm_vmscan_direct_reclaim_end",
            Need::Ends(CallKind::Memcg) => "vmscan:mm_vmscan_memcg_reclaim_end",
            Need::Ends(CallKind::SoftLimit) => "vmscan:mm_vmscan_memcg_softlimit_reclaim_end",
            Need::Ends(CallKind::Node) => "vmscan:mm_vmscan_node_reclaim_end",
            Need::KswapdWakes => "vmscan:mm_vmscan_kswapd_wake",
            Need::KswapdSleeps => "vmscan:mm_vmscan_kswapd_sleep",
            Need::WakeRequests => "vmscan:mm_vmscan_wakeup_kswapd",
            Need::Scans => "vmscan:mm_vmscan_lru_isolate",
            Need::Batches => "vmscan:mm_vmscan_lru_shrink_inactive",
            // mm_vmscan_writepage until 6.x.
            Need::Writes => "vmscan:mm_vmscan_write*",
            Need::Throttles => "vmscan:mm_vmscan_throttled",
        }
    }
}

/// How many events of each kind there were.
#[derive(Clone, Debug, Default)]
pub(in crate::commands::vmscan_report) struct Seen {
    begins: [u64; 4],
    ends: [u64; 4],
    wakes: u64,
    sleeps: u64,
    requests: u64,
    isolations: u64,
    batches: u64,
    writes: u64,
    throttles: u64,
    /// All kinds are known to be there: the events are those of a run here.
    is_run: bool,
    /// The kernel is of 2010, and may have no batches.
    pub(super) is_early: bool,
}

impl Seen {
    pub(super) fn new(is_run: bool) -> Seen {
        Seen { is_run, ..Seen::default() }
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

    /// Whether what was not seen did not happen.
    fn is_whole(&self) -> bool {
        let has_both = self.begins.iter().zip(self.ends).all(|(begins, ends)| (*begins > 0) == (ends > 0));
        let has_edges = self.begins.iter().any(|begins| *begins > 0) || self.wakes + self.sleeps > 0;
        let has_work = self.isolations > 0 && (self.batches > 0 || self.is_early);
        self.is_run || has_both && has_edges && has_work
    }

    /// Whether batches stand in for isolations.
    pub(in crate::commands::vmscan_report) fn scans_by_batches(&self) -> bool {
        self.isolations == 0 && self.batches > 0
    }

    /// Whether the ends of these calls are all that was recorded of them.
    pub(in crate::commands::vmscan_report) fn has_ends_alone(&self, kind: CallKind) -> bool {
        self.begins[kind as usize] == 0 && self.ends[kind as usize] > 0
    }
}

impl Evidence for Seen {
    type Need = Need;
    type Seen = u64;

    fn seen(&self, need: &Need) -> Result<u64, String> {
        let count = match *need {
            Need::Begins(kind) => self.begins[kind as usize],
            Need::Ends(kind) => self.ends[kind as usize],
            Need::KswapdWakes => self.wakes,
            Need::KswapdSleeps => self.sleeps,
            Need::WakeRequests => self.requests,
            Need::Scans => self.isolations.max(self.batches),
            Need::Batches => self.batches,
            Need::Writes => self.writes,
            Need::Throttles => self.throttles,
        };
        // A kernel that has no batches has not freed nothing.
        let is_zero = self.is_whole() && !(self.is_early && *need == Need::Batches);
        if count > 0 || is_zero {
            return Ok(count);
        }
        let event = need.event().rsplit(':').next().unwrap_or_default();
        Err(format!("no {} ({event})", need.name()))
    }
}

#[cfg(test)]
mod tests {
    use pageout_study::basis::verdict;

    use super::*;

    fn seen(events: &[Event]) -> Seen {
        let mut seen = Seen::default();
        events.iter().for_each(|event| seen.count(event));
        seen
    }

    #[test]
    fn figure_without_its_kind_of_event_is_unknown() {
        let begin = Event::Begin { kind: CallKind::Memcg, order: 0 };
        let needs = [Need::Begins(CallKind::Memcg), Need::Ends(CallKind::Memcg)];
        let unknown = verdict(&seen(&[begin]), needs, |_| ()).unwrap_err();
        assert_eq!(unknown.to_string(), "unknown: no end events (mm_vmscan_memcg_reclaim_end)");
        let end = Event::End { kind: CallKind::Memcg, reclaimed: 1 };
        assert_eq!(verdict(&seen(&[begin, end]), needs, |counts| counts), Ok([1, 1]));
        assert!(verdict(&seen(&[begin, end]), [Need::KswapdWakes], |_| ()).is_err());
    }
}
