//! Writeback in a result: pages written by flushers, by reason, and by reclaim itself; how often reclaimers waited; and what became of
//! pages that reclaim had written.

use pageout_engine::{Engine, Pageouts, Rotations, ThrottleReason, WritebackReason};
use serde::Serialize;

use super::run_result::Counters;

/// The writeback of dirty pages in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WritebackResult {
    /// Pages of files whose write was begun, by reason.
    pub pages_by_reason: Counters,
    /// Pages that reclaim began to write, to files and to swap, by who did.
    pub pages_by_reclaim: Counters,
    /// Pages among these that their file system marked dirty again instead.
    pub redirtied: u64,
    /// Dirty pages that went with their files, and were not written.
    pub cancelled: u64,
    /// The number of requests of reclaim to the flushers.
    pub wakeups_by_reclaim: u64,
    /// The number of waits of reclaimers for others, by reason: the four of `reclaim_throttle`, and their predecessors.
    pub waits_of_reclaim: Counters,
    /// Pages for which a rotation to the cold end after their write was due: queued ones, ones dropped instead, and the rest by the reason.
    /// The rotated pages are `pgrotated`.
    pub rotations: Counters,
}

impl WritebackResult {
    /// Returns the writeback of this machine.
    pub fn of(engine: &Engine) -> WritebackResult {
        let reasons = WritebackReason::ALL.iter();
        let Pageouts { direct, direct_sync, kswapd, group, redirtied } = engine.figures().pageouts();
        let by = [("direct", direct), ("direct_sync", direct_sync), ("kswapd", kswapd), ("group", group)];
        let waits = ThrottleReason::ALL.map(|reason| (reason.name(), engine.figures().throttled(reason)));
        let waits = waits.into_iter().chain([("congestion_wait", engine.figures().congestion_waits())]);
        let Rotations { queued, not_listed, unfit, active, dropped } = engine.figures().rotations();
        let rotations = [
            ("queued", queued),
            ("not on a list", not_listed),
            ("in use", unfit),
            ("active", active),
            ("dropped", dropped),
        ];
        WritebackResult {
            pages_by_reason: reasons
                .map(|&reason| (reason.name().to_string(), engine.figures().pages_written_by(reason).into()))
                .collect(),
            pages_by_reclaim: by.map(|(who, pages)| (who.to_string(), pages.into())).into_iter().collect(),
            redirtied,
            cancelled: engine.figures().file_writes_cancelled(),
            wakeups_by_reclaim: engine.figures().flusher_wakeups(),
            waits_of_reclaim: waits.map(|(reason, times)| (reason.to_string(), times.into())).collect(),
            rotations: rotations.map(|(what, pages)| (what.to_string(), pages.into())).into_iter().collect(),
        }
    }

    /// Nothing was written and no task waited.
    pub fn is_empty(&self) -> bool {
        let none = |counters: &Counters| counters.values().all(|value| value.as_u64() == Some(0));
        none(&self.pages_by_reason)
            && none(&self.pages_by_reclaim)
            && none(&self.waits_of_reclaim)
            && none(&self.rotations)
            && self.wakeups_by_reclaim == 0
            && self.cancelled == 0
    }
}
