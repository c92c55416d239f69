//! How much may be dirty: the thresholds of the machine, of a group, of a device's share, and of a node. [machine 5.2]
//!
//! ```text
//!   0 ─────────── background ──────── free run ──────── thresh ─ limit
//!     nobody acts             flusher           writers are          writers stop
//!                             writes            slowed down
//! ```
//! Dirty pages may fill a share of the memory that could hold them: what is free beyond the reserves, and the page cache. A
//! share of all memory would let dirty pages fill what anonymous memory leaves. A group's share is of its own page cache and of
//! what it may still take.
//!
//! A node's limit throttles no task. The machine may be far from its threshold while the memory nearest to a writer holds nothing
//! but its own dirty pages. Reclaim there has to wait for the disk. So a page that will be written comes from a node below its
//! limit, as far as the low watermark allows. If there is none, the slow path takes any page. [machine 2.6]

use crate::core::Core;
use crate::memcg::UNLIMITED;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{MemcgId, NodeId, PAGE_SIZE, WbId};
use crate::writeback::BdiLimits;
use crate::writeback::failing::StuckPages;
use crate::writeback::writer::RATIO_MIN;
use pageout_rules::writeback::DirtyRule;

/// The thresholds of a domain and where it stands. Unit: pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Pages that could be dirty.
    available: u64,
    pub(super) thresh: u64,
    pub(super) background: u64,
    /// Dirty pages, without and with those under writeback.
    pub(super) nr_dirty: u64,
    pub(super) dirty: u64,
}

impl Limits {
    /// Up to here no writer is throttled.
    pub(super) fn freerun(&self) -> u64 {
        (self.thresh + self.background) / 2
    }

    pub(super) fn is_free_run(&self) -> bool {
        self.dirty <= self.freerun()
    }
}

/// Shares are kept in parts of a page, as whole percents of few pages would be too coarse.
const PARTS: u64 = PAGE_SIZE;

impl Core {
    /// The limits for a real-time task: a quarter more, and since writers sleep a thirty-second part of the machine's limit besides.
    pub(super) fn for_real_time(&self, limits: Limits) -> Limits {
        let more = match self.mm.dirty_rule() {
            DirtyRule::Sleeps => {
                self.writeback.domain(MemcgId::ROOT).map_or(0, |domain| domain.dirty_limit / 32)
            }
            DirtyRule::Writes => 0,
        };
        let raised = |pages: u64| pages + pages / 4 + more;
        Limits { thresh: raised(limits.thresh), background: raised(limits.background), ..limits }
    }

    /// The limit of a domain: its threshold, or what that was not long ago, if more is dirty than it is now.
    pub(super) fn hard_limit(&self, memcg: MemcgId, limits: &Limits) -> u64 {
        self.writeback.domain(memcg).map_or(0, |domain| domain.dirty_limit).max(limits.thresh)
    }

    /// Lets the limit of a domain follow its threshold.
    pub(super) fn update_dirty_limit(&mut self, memcg: MemcgId, limits: &Limits) {
        let (ticks, interval) = (self.ticks(), self.mm.bandwidth_interval());
        let domain = self.writeback.domain_mut(memcg);
        if domain.dirty_limit < limits.thresh {
            (domain.dirty_limit, domain.dirty_limit_at) = (limits.thresh, ticks);
            return;
        }
        if ticks < domain.dirty_limit_at + interval {
            return;
        }
        domain.dirty_limit_at = ticks;
        // Existing dirty pages can't be forbidden immediately.
        let goal = limits.thresh.max(limits.dirty);
        domain.dirty_limit -= domain.dirty_limit.saturating_sub(goal) / 32;
    }

    /// The share of a threshold that is a wb's: as much of it as of the pages written lately, within what its device may have.
    pub(super) fn wb_share(&self, wb: WbId, memcg: MemcgId, thresh: u64) -> u64 {
        let of = self.writeback.wb(wb);
        let written = if memcg == MemcgId::ROOT { of.completions } else { of.completions_in_memcg };
        let all = self.writeback.domain(memcg).map_or(0, |domain| domain.completions.at(self.by.now));
        let share = u128::from(thresh) * u128::from(written.at(self.by.now));
        let share = share.checked_div(u128::from(all)).unwrap_or(0) as u64;
        let BdiLimits { min_ratio, max_ratio, .. } = self.bdi_limits(wb);
        let percent = |percent: u8| thresh * u64::from(percent) / 100;
        share.clamp(percent(min_ratio), percent(max_ratio))
    }

    pub(super) fn bdi_limits(&self, wb: WbId) -> BdiLimits {
        self.writeback.bdis[self.writeback.wb(wb).bdi.index()].limits
    }

    /// The position of a wb within its own share, without the pages `left_out`. Only this share throttles the writers of a device with a
    /// strict limit.
    pub(super) fn own_limits(
        &self,
        wb: WbId,
        memcg: MemcgId,
        limits: &Limits,
        left_out: StuckPages,
    ) -> Limits {
        let of = self.writeback.wb(wb);
        let thresh = self.wb_share(wb, memcg, limits.thresh);
        let background = (limits.background * thresh).checked_div(limits.thresh).unwrap_or(0);
        let (nr_dirty, dirty) = (of.nr_dirty - left_out.dirty, of.dirty() - left_out.all());
        Limits { thresh, background, nr_dirty, dirty, ..*limits }
    }

    /// Brings the statistics of a group up to date that its limits are worked out of, as the rule of the machine has it. The machine's own
    /// limits go by live numbers.
    #[doc(alias = "mem_cgroup_wb_stats")]
    pub(super) fn flush_before_limits(&mut self, memcg: MemcgId) {
        if memcg != MemcgId::ROOT {
            self.flush_stats_by(self.mm.config.policy.machine.writeback.stat_flush, memcg);
        }
    }

    /// Returns true if a wb has to be written in the background.
    pub(super) fn is_over_background(&mut self, wb: WbId) -> bool {
        self.flush_before_limits(self.writeback.wb(wb).memcg);
        let of = self.writeback.wb(wb);
        let left_out = self.left_out(wb, None);
        let global = self.mm.global_limits_without(left_out.machine);
        let nr_dirty = of.nr_dirty - left_out.wb.dirty;
        let is_over = |memcg: MemcgId, limits: &Limits| {
            limits.nr_dirty > limits.background || nr_dirty > self.wb_share(wb, memcg, limits.background)
        };
        let of_group = || self.mm.memcg_limits(of.memcg, &global, left_out.group);
        is_over(MemcgId::ROOT, &global)
            || of.memcg != MemcgId::ROOT && is_over(of.memcg, &of_group())
            || self.has_probed_files(wb)
    }

    /// Returns true if the pages under writeback exceed the dirty threshold by a tenth. Writes of stuck files do not count: they may take forever.
    /// [machine 9.3]
    pub(crate) fn is_writeback_over_threshold(&self) -> bool {
        let thresh = self.mm.global_limits().thresh;
        let written = self.mm.vmstat(Stat::NrWriteback).max(0) as u64;
        written.saturating_sub(self.stuck_under_writeback()) > thresh + thresh / 10
    }

    /// Timer ticks since the beginning of time.
    pub(super) fn ticks(&self) -> u64 {
        self.by.now.0 / crate::Nanos::from_ticks(1, self.mm.config.hz).0
    }
}

impl State {
    /// The thresholds of the machine.
    pub(super) fn global_limits(&self) -> Limits {
        self.global_limits_without(StuckPages::default())
    }

    /// The same for those who have nothing to do with these pages. (`failing.rs`)
    pub(super) fn global_limits_without(&self, left_out: StuckPages) -> Limits {
        let stat = |stat| self.vmstat(stat).max(0) as u64;
        let available = self.dirtyable().saturating_sub(left_out.all()).max(1);
        let config = &self.config;
        let share = |bytes: u32, ratio: u8| match bytes {
            0 => u64::from(ratio) * PARTS / 100 * available / PARTS,
            bytes => u64::from(bytes).div_ceil(PAGE_SIZE),
        };
        let ratio = match self.dirty_rule() {
            DirtyRule::Sleeps => config.dirty_ratio,
            DirtyRule::Writes => config.dirty_ratio.max(RATIO_MIN),
        };
        let thresh = share(config.dirty_bytes, ratio);
        let background = share(config.dirty_background_bytes, config.dirty_background_ratio);
        let nr_dirty = stat(Stat::NrDirty).saturating_sub(left_out.dirty);
        let writeback = stat(Stat::NrWriteback).saturating_sub(left_out.writeback);
        limits(available, thresh, background, nr_dirty, nr_dirty + writeback)
    }

    /// The thresholds of a group, from its statistics as of their last flush, without these pages of it.
    pub(super) fn memcg_limits(&self, memcg: MemcgId, global: &Limits, left_out: StuckPages) -> Limits {
        self.memcg_limits_by(memcg, global, left_out, |stat| self.memcg_stat(memcg, stat).max(0) as u64)
    }

    /// The thresholds of a group, from these statistics.
    pub(super) fn memcg_limits_by(
        &self,
        memcg: MemcgId,
        global: &Limits,
        left_out: StuckPages,
        stat: impl Fn(Stat) -> u64,
    ) -> Limits {
        // The statistics may be older than the pages.
        let file = (stat(Stat::NrInactiveFile) + stat(Stat::NrActiveFile)).saturating_sub(left_out.all());
        let nr_dirty = stat(Stat::NrDirty).saturating_sub(left_out.dirty);
        let writeback = stat(Stat::NrWriteback).saturating_sub(left_out.writeback);
        let headroom = self.memcgs.ancestors(memcg).filter(|&id| id != MemcgId::ROOT).map(|id| {
            let group = &self.memcgs[id];
            group.max.min(group.high).saturating_sub(group.usage)
        });
        let headroom = headroom.min().unwrap_or(UNLIMITED);
        let clean = file - nr_dirty.min(file);
        let other_clean = (global.available - global.nr_dirty.min(global.available)).saturating_sub(clean);
        let available = file + headroom.min(other_clean);
        let config = &self.config;
        let share = |bytes: u32, ratio: u8| share_of_part(bytes, ratio, global.available) * available / PARTS;
        let thresh = share(config.dirty_bytes, config.dirty_ratio);
        let background = share(config.dirty_background_bytes, config.dirty_background_ratio);
        limits(available, thresh, background, nr_dirty, nr_dirty + writeback)
    }

    /// How many pages a group may still dirty before the machine's limit throttles its writers. That is the free part of the floor
    /// (`memory.dirty_min`) of the group, or of one above it, by statistics as of their last flush. [machine 5.8]
    pub(super) fn room_below_floor(&self, memcg: MemcgId) -> u64 {
        let room = |id: MemcgId| {
            let dirty = self.memcg_stat(id, Stat::NrDirty) + self.memcg_stat(id, Stat::NrWriteback);
            self.memcgs[id].dirty_min.saturating_sub(dirty.max(0) as u64)
        };
        let floors = self.memcgs.ancestors(memcg).filter(|&id| self.memcgs[id].dirty_min > 0);
        floors.map(room).max().unwrap_or(0)
    }

    /// Returns true if nodes have limits at all.
    pub(crate) fn keeps_node_limits(&self) -> bool {
        self.config.policy.machine.writeback.node_limit
    }

    /// Returns true if a node has so many dirty pages that new ones should come from other nodes. (If the threshold is set in bytes, its
    /// share is as for a group: the source gives none for nodes.)
    #[doc(alias = "node_dirty_ok")]
    pub(crate) fn is_over_dirty_limit(&self, node: NodeId) -> bool {
        let stat = |stat| self.node_stat(node, stat).max(0) as u64;
        let dirty = stat(Stat::NrDirty) + stat(Stat::NrWriteback);
        if dirty == 0 {
            return false;
        }
        let reserve = self.memory.zones.node_reserve(node);
        let available = stat(Stat::NrFreePages).saturating_sub(reserve)
            + stat(Stat::NrInactiveFile)
            + stat(Stat::NrActiveFile);
        let config = &self.config;
        let of_machine = if config.dirty_bytes == 0 { 0 } else { self.dirtyable() };
        dirty > share_of_part(config.dirty_bytes, config.dirty_ratio, of_machine) * available / PARTS
    }

    /// Pages that could be dirty: free ones beyond the reserves, and the page cache. Never none.
    pub(super) fn dirtyable(&self) -> u64 {
        let stat = |stat| self.vmstat(stat).max(0) as u64;
        let free = stat(Stat::NrFreePages);
        if self.dirty_rule() == DirtyRule::Writes {
            return free + self.memory.nodes().map(|node| self.node_reclaimable(node)).sum::<u64>() + 1;
        }
        let reserve = self.memory.zones.total_reserve();
        free - free.min(reserve) + stat(Stat::NrInactiveFile) + stat(Stat::NrActiveFile) + 1
    }

    /// `nr_dirty_threshold` and `nr_dirty_background_threshold`, as `/proc/vmstat` shows them.
    pub(crate) fn dirty_thresholds(&self) -> [u64; 2] {
        let limits = self.global_limits();
        [limits.thresh, limits.background]
    }

    /// Rates are updated no more often than every 200 ms. Unit: ticks.
    pub(super) fn bandwidth_interval(&self) -> u64 {
        u64::from(self.config.hz / 5).max(1)
    }
}

/// The share of a part of memory, where the threshold may be set in bytes of all. Unit: [`PARTS`].
fn share_of_part(bytes: u32, ratio: u8, of_machine: u64) -> u64 {
    match bytes {
        0 => u64::from(ratio) * PARTS / 100,
        bytes => (u64::from(bytes).div_ceil(PAGE_SIZE) * PARTS).div_ceil(of_machine).min(PARTS),
    }
}

fn limits(available: u64, thresh: u64, background: u64, nr_dirty: u64, dirty: u64) -> Limits {
    let background = if background >= thresh { thresh / 2 } else { background };
    Limits { available, thresh, background, nr_dirty, dirty }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Engine, Policy};

    #[test]
    fn a_share_is_that_of_what_was_written_within_what_the_device_may_have() {
        let mut builder = Engine::builder(Config::default()).unwrap();
        let bdis = ["fast", "slow", "idle"].map(|name| builder.bdi_register(name).unwrap());
        let mut limit = |at: usize, min_ratio, max_ratio| {
            let limits = BdiLimits { min_ratio, max_ratio, strict_limit: false };
            builder.bdi_set_limits(bdis[at], limits).map_err(|error| error.to_string())
        };
        assert!(limit(0, 60, 50).unwrap_err().contains("min_ratio"));
        assert!(limit(0, 0, 101).unwrap_err().contains("max_ratio"));
        let mut engine = builder.build();
        let wbs = bdis.map(|bdi| engine.core.wb_for(bdi, MemcgId::ROOT));
        for (wb, pages) in wbs.into_iter().zip([90, 10, 0]) {
            engine.core.writeback.wb_mut(wb).completions.add(engine.core.by.now, pages);
            engine.core.writeback.global.completions.add(engine.core.by.now, pages);
        }
        let shares = |engine: &Engine| wbs.map(|wb| engine.core.wb_share(wb, MemcgId::ROOT, 1000));
        assert_eq!(shares(&engine), [900, 100, 0]);
        for (at, min_ratio, max_ratio) in [(0, 0, 50), (1, 20, 100), (2, 5, 100)] {
            let limits = BdiLimits { min_ratio, max_ratio, strict_limit: false };
            engine.core.writeback.set_bdi_limits(bdis[at], limits);
        }
        assert_eq!(shares(&engine), [500, 200, 50]);
    }

    #[test]
    fn the_limits_of_a_real_time_task_are_a_quarter_higher_and_since_3_1_a_part_of_the_machines() {
        let raised = |policy| {
            let mut engine = Engine::new(Config { policy, ..Config::default() }).unwrap();
            engine.core.writeback.global.dirty_limit = 960;
            let limits = engine.core.for_real_time(limits(4000, 800, 400, 10, 20));
            [limits.thresh, limits.background, limits.dirty, limits.freerun()]
        };
        assert_eq!(raised(Policy::of("classic@6.12")), [1000 + 30, 500 + 30, 20, 780]);
        assert_eq!(raised(Policy::of("classic@2010")), [1000, 500, 20, 750]);
    }
}
