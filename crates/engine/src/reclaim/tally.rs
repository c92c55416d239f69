//! Tallies of the dirty and writeback pages that reclaim has met, by batch and by pass. Their effect: reclaim asks flushers to write, and
//! reclaimers wait.
//!
//! ```text
//!   batch   nothing but dirty pages            flushers write all there is          cgroup v1: and the reclaimer waits
//!   pass    kswapd: all taken are being written     the node is marked WRITEBACK: pages met again hold kswapd up
//!           kswapd: all of files are dirty          the node is marked DIRTY: it may write such pages, if anyone may
//!           all dirty ones were met before          the group, or the node, is congested: who reclaims there waits a tick
//!   kswapd can rest: nothing is marked any more
//! ```
//! Reclaim cycles through its lists faster than any device writes. Without these waits it would count pages under writeback as
//! unreclaimable, and the OOM killer would end a task. A wait for writes ends early when enough pages for all waiting reclaimers are
//! written. [reclaim 5.2 to 5.4; mglru-2026 2.7]
//!
//! In 2010 all waits were one: a tenth of a second, or until a queue of requests is no longer congested. The requests of all devices count
//! together here. A pass over a node ends with such waits while a tenth more is being written than may be dirty. [machine 9.3]
//!
//! The sums are those of the classic LRU, and since 7.2 also of MGLRU; there both work by batches. Reclaim of MGLRU for the machine has
//! none of these waits.

use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::machine::step::{DelayReason, Wait};
use crate::reclaim::scan_control::half_more;
use crate::reclaim::throttle::ThrottleReason;
use crate::reclaim::{PRIORITY_DEFAULT, ScanControl, Why};
use crate::stat::Stat;
use crate::state::State;
use crate::units::{Nanos, NodeId, Pfn, TaskId};
use crate::writeback::WritebackReason;
use pageout_rules::lru::Lru;
use pageout_rules::reclaim::{FlusherWake, Stalls, V1Throttle};

/// Dirty and writeback pages that batches have met. Unit: pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) taken: u64,
    pub(crate) file_taken: u64,
    /// Pages of files that are dirty or being written.
    pub(crate) dirty: u64,
    /// Dirty pages without a write in flight.
    pub(crate) unqueued_dirty: u64,
    /// Pages under writeback that were met before.
    pub(crate) congested: u64,
    /// Met while they are being written, and passed by.
    pub(crate) writeback: u64,
    /// Likewise, by a kswapd that should wait.
    pub(crate) immediate: u64,
    /// Dirty ones that the reclaimer may not write.
    pub(crate) refused: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.taken += other.taken;
        self.file_taken += other.file_taken;
        self.dirty += other.dirty;
        self.unqueued_dirty += other.unqueued_dirty;
        self.congested += other.congested;
        self.writeback += other.writeback;
        self.immediate += other.immediate;
        self.refused += other.refused;
    }
}

/// What a batch leaves a reclaimer to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stall {
    /// Pages of the node to be written.
    Writeback(NodeId),
    /// Until this folio is written.
    Folio(Pfn),
    /// Until a device can accept requests.
    Congestion,
}

/// What is known of a node's dirty pages, and who waits for them.
#[derive(Default)]
pub(crate) struct NodeWrites {
    /// Nothing but dirty pages of files came to the end of its lists.
    pub(crate) is_dirty: bool,
    /// Nothing but pages under writeback did.
    pub(crate) is_writeback: bool,
    /// Tasks that wait for pages to be written, and how many were since the first of them came.
    waiting: Vec<TaskId>,
    written: u64,
}

impl NodeWrites {
    /// Returns true if a task waits here: nothing else is to wake it.
    pub(crate) fn holds(&self, task: TaskId) -> bool {
        self.waiting.contains(&task)
    }
}

impl Core {
    /// A batch is over: asks for writes, and says what its reclaimer is to wait for.
    pub(crate) fn note_batch(&mut self, lru: Lru, lruvec: LruvecId, tally: Tally, sc: &mut ScanControl) {
        let rules = self.mm.memcgs[sc.by.target].policy.reclaim;
        if tally.unqueued_dirty == tally.taken && rules.flusher_wake == FlusherWake::Batch {
            // Dirty pages have come to the end of the list before they were written: the flusher is late.
            self.wakeup_flusher_threads(WritebackReason::Vmscan);
            if rules.v1_throttle == V1Throttle::Batch && !self.mm.is_throttled_at_source(sc) {
                sc.waits.stall = Some(Stall::Writeback(self.mm.lruvecs[lruvec].node));
            }
        }
        if tally.refused > 0 && rules.stalls == Stalls::CongestionWait {
            self.wakeup_flusher_threads_for(WritebackReason::Vmscan, tally.refused);
            sc.waits.stall = Some(Stall::Congestion);
        }
        if lru == Lru::Generations && !rules.batch_tallies {
            // All that their own rule asks for.
            sc.tally.unqueued_dirty += tally.unqueued_dirty;
            sc.tally.file_taken += tally.file_taken;
        } else {
            sc.tally += tally;
        }
    }

    /// A pass over a group's lists is over.
    #[doc(alias = "consider_reclaim_throttle")]
    pub(crate) fn note_pass(&mut self, lruvec: LruvecId, sc: &mut ScanControl) {
        let rules = self.mm.memcgs[sc.by.target].policy.reclaim;
        let has_met_dirty_only =
            sc.tally.unqueued_dirty > 0 && sc.tally.unqueued_dirty == sc.tally.file_taken;
        if has_met_dirty_only && rules.flusher_wake == FlusherWake::Pass {
            self.wakeup_flusher_threads(WritebackReason::Vmscan);
            if rules.v1_throttle == V1Throttle::AfterPass && !self.mm.is_throttled_at_source(sc) {
                sc.waits.stall = Some(Stall::Writeback(self.mm.lruvecs[lruvec].node));
            }
        }
    }

    /// A pass over a node is over: marks what it has found out, and says whether the reclaimer is to wait.
    pub(crate) fn note_node(&mut self, target: LruvecId, sc: &mut ScanControl) -> Option<Wait> {
        let tally = sc.tally;
        let rules = self.mm.memcgs[sc.by.target].policy.reclaim;
        // The pages of a group above its soft limit do not represent the node.
        if self.mm.keeps_generations(sc) || rules.stalls != Stalls::Throttle || sc.by.is_for_soft_limit() {
            return None;
        }
        let node = self.mm.lruvecs[target].node;
        let mut wait = None;
        if sc.by.is_kswapd() {
            let writes = &mut self.writes_of[node.index()];
            writes.is_writeback |= tally.writeback > 0 && tally.writeback == tally.taken;
            // If no page was taken, none was clean either.
            writes.is_dirty |= tally.unqueued_dirty == tally.file_taken;
            if tally.immediate > 0 {
                sc.waits.has_stalled = true;
                wait = Some(self.wait_for_writes(node, sc));
            }
        }
        if tally.dirty > 0 && tally.dirty == tally.congested {
            let lruvec = &mut self.mm.lruvecs[target];
            lruvec.is_group_congested |= !sc.by.is_global() && self.mm.config.cgroup_version == 2;
            lruvec.is_node_congested |= sc.by.is_kswapd();
        }
        let lruvec = &self.mm.lruvecs[target];
        let is_congested = lruvec.is_group_congested || lruvec.is_node_congested;
        if is_congested && !sc.by.is_kswapd() && self.is_much_pending(node) {
            wait = Some(self.throttle(node, sc, 1, ThrottleReason::Congested));
        }
        wait
    }

    /// kswapd can rest: what it has found out is over.
    pub(crate) fn forget_writes(&mut self, node: NodeId, root: LruvecId) {
        let writes = &mut self.writes_of[node.index()];
        (writes.is_dirty, writes.is_writeback) = (false, false);
        let lruvec = &mut self.mm.lruvecs[root];
        (lruvec.is_group_congested, lruvec.is_node_congested) = (false, false);
    }

    /// Turns what a batch has left to wait for into a wait.
    pub(crate) fn take_stall(&mut self, sc: &mut ScanControl) -> Option<Wait> {
        let stall = sc.waits.stall.take()?;
        sc.waits.has_stalled = true;
        // A reclaimer that sleeps first submits the writes that it has begun.
        self.unplug(&mut sc.hands.plug);
        Some(match stall {
            Stall::Writeback(node) => self.wait_for_writes(node, sc),
            Stall::Congestion => self.congestion_wait(),
            Stall::Folio(pfn) => match self.try_wait_for_folio(pfn, self.by.task) {
                Some(wait) => Wait::Io(wait),
                // Another reclaimer, which was interrupted in the middle of its pass, holds the write back.
                None => self.wait_for_writes(self.mm.memory.folios[pfn].node, sc),
            },
        })
    }

    /// The task waits for writes on a node: a tenth of a second at most.
    fn wait_for_writes(&mut self, node: NodeId, sc: &mut ScanControl) -> Wait {
        let (task, writes) = (self.by.task, &mut self.writes_of[node.index()]);
        if writes.waiting.is_empty() {
            writes.written = 0;
        }
        writes.waiting.push(task);
        self.throttle(node, sc, self.mm.tenth_of_a_second(), ThrottleReason::Writeback)
    }

    /// A reclaimer continues. If it has waited for writes, no task need wake it any more.
    pub(crate) fn leave_stall(&mut self, sc: &mut ScanControl) {
        if !std::mem::take(&mut sc.waits.has_stalled) {
            return;
        }
        let task = self.by.task;
        for writes in &mut self.writes_of {
            writes.waiting.retain(|&waiting| waiting != task);
        }
        self.io.congestion_waiters.retain(|&waiting| waiting != task);
        debug_assert!(
            !self.writes_of.iter().any(|writes| writes.holds(task))
                && !self.io.congestion_waiters.contains(&task),
            "{task:?} goes on, and waits for writes"
        );
    }

    /// A page of a node was written: enough of them, and those who wait for that go on.
    pub(crate) fn note_written(&mut self, node: NodeId, pages: u64) {
        let writes = &mut self.writes_of[node.index()];
        if writes.waiting.is_empty() {
            return;
        }
        writes.written += pages;
        if writes.written > self.mm.config.reclaim_batch * writes.waiting.len() as u64 {
            for task in std::mem::take(&mut writes.waiting) {
                self.wake(task);
            }
        }
        self.mm.count_node(node, Stat::NrThrottledWritten, pages as i64);
    }

    /// 2010: a tenth of a second, or until a device that was congested no longer is.
    pub(crate) fn congestion_wait(&mut self) -> Wait {
        let task = self.by.task;
        self.io.congestion_waiters.push(task);
        self.congestion_waits += 1;
        Wait::WokenOr(Nanos::from_ticks(self.mm.tenth_of_a_second(), self.mm.config.hz), DelayReason::Reclaim)
    }

    /// A write has ended.
    pub(crate) fn note_request_ended(&mut self) {
        if self.io.ends_congestion() {
            for task in std::mem::take(&mut self.io.congestion_waiters) {
                self.wake(task);
            }
        }
    }

    /// All nodes have been shrunk at a priority, in 2010: asks for writes if many pages were scanned in vain, and waits if the priority is
    /// low already.
    pub(crate) fn stall_of_2010(&mut self, sc: &mut ScanControl) -> Option<Wait> {
        let rules = self.mm.memcgs[sc.by.target].policy.reclaim;
        if rules.flusher_wake == FlusherWake::Scanned
            && sc.nr_scanned > half_more(sc.nr_to_reclaim)
            && sc.by.why != Why::Kswapd
        {
            // A disk that is woken for it has more to write.
            let pages = if self.mm.is_laptop_mode() { u64::MAX } else { sc.nr_scanned };
            self.wakeup_flusher_threads_for(WritebackReason::Vmscan, pages);
        }
        let is_earnest = sc.nr_scanned > 0 && sc.priority < PRIORITY_DEFAULT - 2;
        sc.waits.has_stalled = rules.stalls == Stalls::CongestionWait && is_earnest;
        sc.waits.has_stalled.then(|| self.congestion_wait())
    }
}

impl Core {
    /// In 2010: returns whether so much is under writeback that a reclaimer first waits for some of it. Otherwise more would be written
    /// than devices can handle.
    pub(crate) fn is_too_much_written(&self, sc: &ScanControl) -> bool {
        self.mm.memcgs[sc.by.target].policy.reclaim.stalls == Stalls::CongestionWait
            && self.is_writeback_over_threshold()
    }
}

impl State {
    /// Returns true if a reclaimer need not wait because those who dirty pages are slowed down in time: for the machine they always are,
    /// for a group since cgroup v2.
    pub(crate) fn is_throttled_at_source(&self, sc: &ScanControl) -> bool {
        sc.by.is_global() || self.config.cgroup_version == 2
    }

    /// A tenth of a second, in ticks.
    fn tenth_of_a_second(&self) -> u64 {
        u64::from(self.config.hz / 10).max(1)
    }
}
