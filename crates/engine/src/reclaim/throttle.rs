//! Reclaimers that wait for others: too many at once, or no free page left for kswapd to work with.
//!
//! ```text
//!   too many isolated   more pages are in reclaimers' hands than on the list: what is left would look like the whole, and the
//!                       verdict on it would be that nothing can be reclaimed                    once, for a fiftieth of a second
//!   the gate            less than half of the minimum is free: those who allocate stand back until kswapd has freed some
//!                       pages, or it might find none for its own work                           until it opens
//!   no progress         the last priority but one gave nothing, and much is being written       a tick
//! ```
//! [reclaim 2.6, 5.4; machine 3.4]

use crate::core::Core;
use crate::machine::step::{DelayReason, Wait};
use crate::page_alloc::request::{Gfp, Request};
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::ZoneType;
use crate::reclaim::ScanControl;
use crate::stat::{ByType, ISOLATED, Stat};
use crate::units::{LruType, Nanos, NodeId};

impl Core {
    /// A batch is in a reclaimer's hands for as long as it takes, which is over when the reclaimer goes on.
    pub(crate) fn note_isolated(&mut self, node: NodeId, kind: LruType, pages: u64, sc: &mut ScanControl) {
        debug_assert!(sc.isolated == [0; 2] || sc.isolated_on == node, "a step stays on its node");
        sc.isolated_on = node;
        sc.isolated[kind as usize] += pages;
        self.count_node(node, ISOLATED.of(kind), pages as i64);
    }

    /// The reclaimer goes on: what its last batch had is freed or on lists again.
    pub(crate) fn release_isolated(&mut self, sc: &mut ScanControl) {
        for kind in LruType::BOTH {
            match std::mem::take(&mut sc.isolated[kind as usize]) {
                0 => {}
                pages => self.count_node(sc.isolated_on, ISOLATED.of(kind), -(pages as i64)),
            }
        }
    }

    /// Whether a reclaimer must not take more of a type now. The first time it is to wait; if there are still too many then, its
    /// batch gives nothing.
    pub(crate) fn too_many_isolated(&self, node: NodeId, kind: LruType, sc: &mut ScanControl) -> bool {
        if sc.by.is_kswapd() {
            return false;
        }
        let inactive = [Stat::NrInactiveAnon, Stat::NrInactiveFile];
        // Its own are those of the round under way, which a kernel would have put back by now.
        let isolated = self.node_stat(node, ISOLATED.of(kind)).max(0) as u64 - sc.isolated[kind as usize];
        let mut allowed = self.node_stat(node, inactive.of(kind)).max(0) as u64;
        if sc.by.may_enter_fs {
            // Those who can't enter a file system may be waited for by those who can: they may take more.
            allowed >>= 3;
        }
        if isolated <= allowed {
            sc.has_waited = false;
            return false;
        }
        sc.must_wait = !sc.has_waited;
        sc.has_waited = true;
        true
    }

    /// How long a reclaimer waits who has found too many pages in others' hands.
    pub(crate) fn isolated_wait(&self) -> Wait {
        Wait::Delay(
            Nanos::from_ticks(u64::from(self.config.hz / 50).max(1), self.config.hz),
            DelayReason::Reclaim,
        )
    }

    /// Whether a task that needs a page for itself may reclaim, or has to wait until kswapd has freed some.
    pub(crate) fn throttle_direct_reclaim(&mut self, request: &Request) -> Option<Wait> {
        let zonelist = self.memory.zones.zonelist(request.node, request.class.min(ZoneType::Normal));
        let node = zonelist.map(|zone| zone.node).next()?;
        if self.is_gate_open(node) {
            return None;
        }
        self.count_node(node, Stat::PgscanDirectThrottle, 1);
        self.wake_kswapd(node, 0, request.class.min(ZoneType::Normal));
        let (task, hz) = (self.task, self.config.hz);
        self.kswapds[node.index()].gate.push(task);
        Some(match request.gfp.contains(Gfp::FS) {
            true => Wait::Woken,
            // Its file system may be what kswapd waits for.
            false => Wait::WokenOr(Nanos::from_ticks(hz.into(), hz), DelayReason::Reclaim),
        })
    }

    /// A task has waited at the gate: by a wake, or for as long as it may.
    pub(crate) fn leave_gate(&mut self, request: &Request) {
        let task = self.task;
        let mut zonelist = self.memory.zones.zonelist(request.node, request.class.min(ZoneType::Normal));
        if let Some(node) = zonelist.next().map(|zone| zone.node) {
            self.kswapds[node.index()].gate.retain(|&waiting| waiting != task);
        }
    }

    /// Whether enough is free for kswapd to work with, or there is no kswapd to wait for.
    pub(crate) fn is_gate_open(&self, node: NodeId) -> bool {
        if self.kswapds[node.index()].task.is_none() || self.kswapds[node.index()].is_hopeless() {
            return true;
        }
        let lists = [Stat::NrInactiveFile, Stat::NrActiveFile, Stat::NrInactiveAnon, Stat::NrActiveAnon];
        let lists = if self.memory.swap.free_pages() > 0 { &lists[..] } else { &lists[..2] };
        let is_reclaimable = lists.iter().any(|&stat| self.node_stat(node, stat) > 0);
        let zones = self.memory.zones.of_node(node).iter().filter(|zone| zone.kind <= ZoneType::Normal);
        let sums =
            zones.filter(|_| is_reclaimable).map(|zone| (zone.mark(Watermark::Min), zone.free_pages()));
        let (reserve, free) = sums.fold((0, 0), |sum, zone| (sum.0 + zone.0, sum.1 + zone.1));
        reserve == 0 || free > reserve / 2
    }

    /// Lets those go on who wait at a node's gate.
    pub(crate) fn open_gate(&mut self, node: NodeId) {
        for task in std::mem::take(&mut self.kswapds[node.index()].gate) {
            self.wake(task);
        }
    }

    /// Whether a reclaimer who has found nothing should let time pass before its last priority: only where what it looks at is
    /// being written for the most part.
    pub(crate) fn throttle_no_progress(&self, node: NodeId, sc: &ScanControl) -> Option<Wait> {
        if !sc.by.is_for_machine() || sc.by.is_kswapd() || sc.priority != 1 || sc.nr_reclaimed > 0 {
            return None;
        }
        let of = |stats: &[Stat]| stats.iter().map(|&stat| self.node_stat(node, stat).max(0)).sum::<i64>();
        let pending = of(&[Stat::NrDirty, Stat::NrWriteback]);
        let mut reclaimable = of(&[Stat::NrInactiveFile, Stat::NrActiveFile]);
        if self.memory.swap.free_pages() > 0 {
            reclaimable += of(&[Stat::NrInactiveAnon, Stat::NrActiveAnon]);
        }
        let is_pointless = 2 * pending <= reclaimable || self.kswapds[node.index()].is_hopeless();
        (!is_pointless).then(|| Wait::Delay(Nanos::from_ticks(1, self.config.hz), DelayReason::Reclaim))
    }
}
