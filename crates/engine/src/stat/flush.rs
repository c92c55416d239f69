//! Flushing of memcg statistics: when the counters of a memcg are brought up to date, and how old the numbers are that reclaim reads.
//!
//! Every event is counted immediately, on its node (`/proc/vmstat`) and on the lruvec of its memcg. But reclaim reads a
//! memcg's statistics as of the last *flush*, which also sums up the descendants. A worker flushes every two seconds, a
//! reader of `memory.stat` when enough updates are pending, reclaim itself only when the worker is late. In between, the
//! activation counter seems to stand still and lists seem to have their old length. So active lists grow longer than live
//! counters would let them. Measured on 6.12, this rule alone moves misses by up to 8 %. [reclaim 2.15; reclaim-6.12 2.15]

use crate::audit::Transition;
use crate::core::Core;
use crate::lru::lruvec::{Lruvec, LruvecId};
use crate::stat::{Stat, UPDATES_BATCH};
use crate::state::State;
use crate::units::{CpuId, MemcgId, Nanos, NodeId, PAGE_SIZE};
use pageout_rules::reclaim::FlushRule;

impl Core {
    /// Counts an event of a memcg, in its statistics and on the node.
    #[inline(always)]
    pub(crate) fn count(&mut self, lruvec: LruvecId, stat: Stat, n: i64) {
        let node = self.count_weighing(lruvec, stat, n, n.unsigned_abs());
        self.mm.count_node(node, stat, n);
    }

    /// Counts an event in `memory.stat` only, as memcg reclaim does with `pgscan_direct` and its like.
    #[inline(always)]
    pub(crate) fn count_memcg(&mut self, lruvec: LruvecId, stat: Stat, n: i64) {
        self.count_weighing(lruvec, stat, n, n.unsigned_abs());
    }

    /// Counts bytes in `memory.stat` only. A change within a page is one update.
    pub(crate) fn count_memcg_bytes(&mut self, lruvec: LruvecId, stat: Stat, n: i64) {
        self.count_weighing(lruvec, stat, n, (n.unsigned_abs() / PAGE_SIZE).max(1));
    }

    /// Notes updates of a group's statistics that have no counter here: charges and uncharges, swap that the group pays for, and pages on their
    /// way to it.
    #[inline]
    pub(crate) fn note_updates(&mut self, memcg: MemcgId, weight: u64) {
        let updates = &mut self.mm.cpus[self.by.cpu.index()].updates;
        let made = updates.made + weight;
        if updates.memcg == memcg && made < updates.room {
            updates.made = made;
        } else if self.mm.config.stat_flush != crate::StatFlush::Live {
            self.weigh_slowly(memcg, weight);
        }
    }

    /// Returns the node of the lruvec, which is known here.
    #[inline(always)]
    fn count_weighing(&mut self, lruvec: LruvecId, stat: Stat, n: i64, weight: u64) -> NodeId {
        let counters = &mut self.mm.lruvecs[lruvec];
        let counter = &mut counters.stat_local[stat as usize];
        *counter += n;
        debug_assert!(n >= 0 || *counter >= 0, "{} of a group falls below zero: {counter}", stat.name());
        let (memcg, node) = (counters.memcg, counters.node);
        let updates = &mut self.mm.cpus[self.by.cpu.index()].updates;
        let made = updates.made + weight;
        if updates.memcg == memcg && made < updates.room {
            updates.made = made;
        } else {
            self.count_slowly(lruvec, stat, n, weight);
        }
        node
    }

    /// The rarer updates: the first of a group, one that completes a batch, and all where nothing may be stale.
    #[cold]
    fn count_slowly(&mut self, lruvec: LruvecId, stat: Stat, n: i64, weight: u64) {
        if self.mm.config.stat_flush == crate::StatFlush::Live {
            return self.mm.count_above(lruvec, stat, n);
        }
        self.weigh_slowly(self.mm.lruvecs[lruvec].memcg, weight);
    }

    #[cold]
    fn weigh_slowly(&mut self, memcg: MemcgId, weight: u64) {
        let cpu = self.by.cpu;
        // First the updates that this CPU holds already, of this group or another; then this update. `room` is the rest of the
        // batch after it.
        self.mm.push_updates(cpu);
        let updates = &mut self.mm.cpus[cpu.index()].updates;
        (updates.memcg, updates.made) = (memcg, weight);
        self.mm.push_updates(cpu);
        let gathered =
            self.mm.memcgs.ancestors(memcg).map(|id| self.mm.memcgs[id].updates_by_cpu[cpu.index()]);
        let room = UPDATES_BATCH - gathered.max().unwrap_or(0);
        let updates = &mut self.mm.cpus[cpu.index()].updates;
        // The batch of all groups is complete when it is exceeded, a group's when it is reached.
        updates.room = room.min(UPDATES_BATCH + 1 - updates.of_all_groups);
    }

    /// The periodic worker: brings every group's statistics up to date.
    #[doc(alias = "mem_cgroup_flush_stats")]
    pub(crate) fn flush_stats(&mut self) {
        self.flush_memcg_stats(MemcgId::ROOT);
        self.mm.last_root_flush = self.by.now;
        self.mm.cpus.iter_mut().for_each(|cpu| cpu.updates.batches = 0);
    }

    /// Flushes from inside reclaim: only if the worker is late by a whole period, because flushing on every call costs more than stale numbers do.
    #[doc(alias = "mem_cgroup_flush_stats_ratelimited")]
    pub(crate) fn flush_stats_ratelimited(&mut self) {
        self.flush_stats_as_recorded();
        self.flush_stats_if_worker_late();
    }

    fn flush_stats_if_worker_late(&mut self) {
        let Some(period) = self.mm.stat_flush_period() else { return };
        if self.by.now > self.mm.last_root_flush + period + period {
            self.flush_stats();
        }
    }

    /// Flushes where it was recorded that the worker did.
    #[inline]
    pub(crate) fn flush_stats_as_recorded(&mut self) {
        while self.mm.recorded.is_flush_due() {
            self.flush_stats();
        }
    }

    /// Flushes before a decision by a group's statistics, as a rule has it.
    pub(crate) fn flush_stats_by(&mut self, rule: FlushRule, memcg: MemcgId) {
        match rule {
            FlushRule::WorkerLate => self.flush_stats_ratelimited(),
            FlushRule::GroupUpdates if self.mm.stat_flush_period().is_some() => self.flush_for_reader(memcg),
            FlushRule::Updates if self.mm.stat_flush_period().is_some() => self.flush_stats_if_updated(),
            FlushRule::GroupUpdates | FlushRule::Updates => {}
        }
    }

    /// Flushes as Linux 6.1 does: when the CPUs together have completed more batches of updates than there are CPUs, all groups counted.
    /// Updates decide, not time, so numbers are never far from the truth. [kernels 2.1, 3.1]
    ///
    /// The worker and readers are taken to flush as in 6.12.
    fn flush_stats_if_updated(&mut self) {
        if self.mm.is_flush_worth_it() {
            self.flush_stats();
        }
    }

    /// Flushes before a refault is judged, where the worker is late; up to 6.7 only where enough was counted as well. [kernels 3.1]
    pub(crate) fn flush_stats_for_refault(&mut self, memcg: MemcgId) {
        let by_updates = self.mm.memcgs[memcg].policy.reclaim.stat_flush == FlushRule::Updates;
        if !by_updates || self.mm.is_flush_worth_it() {
            // The page has just come, and the task has not slept since: a flush that was recorded by its number comes after this.
            self.flush_stats_if_worker_late();
        }
    }

    /// A reader of `memory.stat` gets fresh numbers, but only pays for a flush when enough has changed.
    pub(crate) fn flush_for_reader(&mut self, memcg: MemcgId) {
        self.mm.push_all_updates();
        if self.mm.memcgs[memcg].updates_pending > UPDATES_BATCH * u64::from(self.mm.config.cpus) {
            self.flush_memcg_stats(memcg);
        }
    }

    /// Sums up a subtree, children before parents. Groups are numbered in order of creation, so a child comes after its
    /// parent.
    pub(crate) fn flush_memcg_stats(&mut self, root: MemcgId) {
        self.release_empty_memcgs();
        if self.mm.config.stat_flush == crate::StatFlush::Live {
            return;
        }
        self.mm.push_all_updates();
        let subtree = self.mm.memcgs.subtree(root);
        for &id in subtree.iter().rev() {
            for node in self.mm.lruvecs.nodes() {
                let lruvec = self.mm.lruvecs.id(id, node);
                let mut sum = self.mm.lruvecs[lruvec].stat_local;
                for &child in &self.mm.memcgs[id].children {
                    let child = &self.mm.lruvecs[self.mm.lruvecs.id(child, node)];
                    sum.iter_mut().zip(&child.stat_flushed).for_each(|(sum, &part)| *sum += part);
                }
                self.mm.lruvecs[lruvec].stat_flushed = sum;
            }
            let group = &mut self.mm.memcgs[id];
            group.updates_pending = 0;
            group.stat_flushed_at = self.by.now;
            group.updates_by_cpu.fill(0);
        }
        self.out.count.stat_flushes(subtree.len() as u64);
        if cfg!(debug_assertions) && self.is_audited(Transition::FlushStats) {
            self.mm.assert_flushed(&subtree);
        }
    }
}

impl State {
    /// Returns true if the CPUs have completed more batches of updates than there are CPUs.
    fn is_flush_worth_it(&self) -> bool {
        let batches: u64 = self.cpus.iter().map(|cpu| cpu.updates.batches).sum();
        batches > u64::from(self.config.cpus)
    }

    /// Counts an event in `/proc/vmstat` only.
    #[inline(always)]
    pub(crate) fn count_node(&mut self, node: NodeId, stat: Stat, n: i64) {
        let counter = &mut self.vmstat[node.index()][stat as usize];
        *counter += n;
        debug_assert!(n >= 0 || *counter >= 0, "{} of {node:?} falls below zero: {counter}", stat.name());
    }

    /// Groups were flushed: each has what it counted itself, and what its children have.
    fn assert_flushed(&self, subtree: &[MemcgId]) {
        for (&id, node) in subtree.iter().flat_map(|id| self.lruvecs.nodes().map(move |node| (id, node))) {
            let of = |id: MemcgId| &self.lruvecs[self.lruvecs.id(id, node)];
            for (at, stat) in Stat::ALL.iter().enumerate() {
                let below: i64 =
                    self.memcgs[id].children.iter().map(|&child| of(child).stat_flushed[at]).sum();
                assert_eq!(
                    of(id).stat_flushed[at],
                    of(id).stat_local[at] + below,
                    "{} of {} after a flush, and what it and those below it have counted",
                    stat.name(),
                    self.memcgs.path(id)
                );
            }
        }
    }

    /// Passes the updates that a CPU has counted on to their group and its ancestors.
    fn push_updates(&mut self, cpu: CpuId) {
        let updates = &mut self.cpus[cpu.index()].updates;
        let (mut level, made) = (Some(updates.memcg), std::mem::take(&mut updates.made));
        updates.room = 0;
        updates.of_all_groups += made;
        if updates.of_all_groups > UPDATES_BATCH {
            updates.batches += std::mem::take(&mut updates.of_all_groups) / UPDATES_BATCH;
        }
        while let Some(id) = level {
            let group = &mut self.memcgs[id];
            let gathered = &mut group.updates_by_cpu[cpu.index()];
            *gathered += made;
            if *gathered >= UPDATES_BATCH {
                group.updates_pending += std::mem::take(gathered);
            }
            level = group.parent;
        }
        let updates = &self.cpus[cpu.index()].updates;
        debug_assert_eq!((updates.made, updates.room), (0, 0), "updates and room that a CPU is left with");
    }

    fn push_all_updates(&mut self) {
        (0..self.config.cpus).for_each(|cpu| self.push_updates(CpuId(cpu)));
    }

    /// Counts an event for readers of the group's ancestors, if statistics are always exact. Readers of the group itself add its own counters
    /// ([`State::read_stat`]).
    fn count_above(&mut self, lruvec: LruvecId, stat: Stat, n: i64) {
        let Lruvec { memcg, node, .. } = self.lruvecs[lruvec];
        let mut level = self.memcgs[memcg].parent;
        while let Some(id) = level {
            let above = self.lruvecs.id(id, node);
            self.lruvecs[above].stat_flushed[stat as usize] += n;
            level = self.memcgs[id].parent;
        }
    }

    /// The counter as readers see it. If statistics are always exact, a group's flushed counters are those of its descendants alone.
    #[inline]
    fn read_stat(&self, lruvec: LruvecId, stat: Stat) -> i64 {
        let of = &self.lruvecs[lruvec];
        let own =
            if self.config.stat_flush == crate::StatFlush::Live { of.stat_local[stat as usize] } else { 0 };
        own + of.stat_flushed[stat as usize]
    }

    /// What reclaim reads of a counter: its value at the last flush, descendants included, never negative.
    #[doc(alias = "lruvec_page_state")]
    pub(crate) fn stale(&self, lruvec: LruvecId, stat: Stat) -> u64 {
        self.read_stat(lruvec, stat).max(0) as u64
    }

    /// How often the machine must call [`Core::flush_stats`]; `None` where it need not.
    pub(crate) fn stat_flush_period(&self) -> Option<Nanos> {
        (self.config.stat_flush == crate::StatFlush::Periodic).then(|| self.config.stat_flush_period())
    }

    /// A group's counter as of the last flush, over all nodes.
    pub(crate) fn memcg_stat(&self, memcg: MemcgId, stat: Stat) -> i64 {
        let nodes = self.lruvecs.nodes();
        nodes.map(|node| self.read_stat(self.lruvecs.id(memcg, node), stat)).sum()
    }

    /// A group's live counter, descendants included: the value after a flush.
    pub(crate) fn memcg_stat_now(&self, memcg: MemcgId, stat: Stat) -> i64 {
        let subtree = self.memcgs.subtree(memcg);
        let of_group = |&id: &MemcgId| {
            let nodes = self.lruvecs.nodes();
            nodes.map(|node| self.lruvecs[self.lruvecs.id(id, node)].stat_local[stat as usize]).sum::<i64>()
        };
        subtree.iter().map(of_group).sum()
    }

    /// A machine-wide counter, always up to date.
    pub(crate) fn vmstat(&self, stat: Stat) -> i64 {
        match stat {
            Stat::NrFreePages => {
                self.memory.nodes().map(|node| self.memory.zones.free_pages(node) as i64).sum()
            }
            Stat::NrDirtyThreshold => self.dirty_thresholds()[0] as i64,
            Stat::NrDirtyBackgroundThreshold => self.dirty_thresholds()[1] as i64,
            _ => self.vmstat.iter().map(|node| node[stat as usize]).sum(),
        }
    }

    /// A node's counter, always up to date.
    pub(crate) fn node_stat(&self, node: NodeId, stat: Stat) -> i64 {
        match stat {
            Stat::NrFreePages => self.memory.zones.free_pages(node) as i64,
            _ => self.vmstat[node.index()][stat as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Engine, Policy};
    use proptest::prelude::*;

    const CPUS: u16 = 2;

    /// A second way to count: each update goes to every ancestor at once. Pending updates and, by CPU, gathered ones, by group.
    #[derive(Default, Clone, Copy)]
    struct Told {
        pending: u64,
        gathered: [u64; CPUS as usize],
    }

    /// A second way to count for the machine, by the rule of Linux 6.1: updates of all groups by CPU, and batches of all CPUs.
    #[derive(Default)]
    struct ToldMachine {
        gathered: [u64; CPUS as usize],
        batches: u64,
    }

    #[derive(Clone, Debug)]
    enum Event {
        Count { cpu: u16, group: u16, n: i64 },
        Read { group: u16 },
        Flush,
    }

    fn event() -> impl Strategy<Value = Event> {
        let count = (0..CPUS, 0..4u16, -40..40i64).prop_map(|(cpu, group, n)| Event::Count { cpu, group, n });
        prop_oneof![30 => count, 1 => (0..4u16).prop_map(|group| Event::Read { group }), 1 => Just(Event::Flush)]
    }

    /// A machine with a group, its parent, and a sibling, below the root.
    fn groups(config: Config) -> (Engine, [MemcgId; 4]) {
        let mut engine = Engine::new(config).unwrap();
        let parent = engine.memcg_create(MemcgId::ROOT, "a").unwrap();
        let first = engine.memcg_create(parent, "b").unwrap();
        let second = engine.memcg_create(parent, "c").unwrap();
        (engine, [MemcgId::ROOT, parent, first, second])
    }

    proptest! {
        #[test]
        fn exact_statistics_have_each_count_of_the_group_and_below(
            counts in prop::collection::vec((0..4usize, 0..40i64), 0..100)
        ) {
            let (mut engine, groups) =
                groups(Config { stat_flush: crate::StatFlush::Live, ..Config::default() });
            for (at, n) in counts {
                let lruvec = engine.core.mm.lruvecs.id(groups[at], NodeId(0));
                engine.core.count_memcg(lruvec, Stat::Pgfault, n);
                for id in groups {
                    let state = &engine.core.mm;
                    prop_assert_eq!(state.memcg_stat(id, Stat::Pgfault), state.memcg_stat_now(id, Stat::Pgfault));
                }
            }
        }

        #[test]
        fn updates_told_in_lots_are_pending_as_if_each_was_told_at_once(events in prop::collection::vec(event(), 0..400)) {
            let config = Config { cpus: CPUS, policy: Policy::of("classic@6.12"), ..Config::default() };
            let (mut engine, groups) = groups(config);
            let mut told = [Told::default(); 4];
            let mut machine = ToldMachine::default();
            for event in events {
                match event {
                    Event::Count { cpu, group, n } => {
                        engine.core.by.cpu = CpuId(cpu);
                        let group = groups[usize::from(group)];
                        let lruvec = engine.core.mm.lruvecs.id(group, NodeId(0));
                        engine.core.mm.lruvecs[lruvec].stat_local[Stat::Pgfault as usize] = 40;
                        engine.core.count_memcg(lruvec, Stat::Pgfault, n);
                        let gathered = &mut machine.gathered[usize::from(cpu)];
                        *gathered += n.unsigned_abs();
                        if *gathered > UPDATES_BATCH {
                            machine.batches += std::mem::take(gathered) / UPDATES_BATCH;
                        }
                        let batches = engine.core.mm.cpus.iter().map(|cpu| cpu.updates.batches).sum::<u64>();
                        prop_assert_eq!(batches, machine.batches);
                        for id in engine.core.mm.memcgs.ancestors(group) {
                            let told = &mut told[id.index()];
                            let gathered = &mut told.gathered[usize::from(cpu)];
                            *gathered += n.unsigned_abs();
                            if *gathered >= UPDATES_BATCH {
                                told.pending += std::mem::take(gathered);
                            }
                        }
                    }
                    Event::Read { group } => {
                        engine.core.mm.push_all_updates();
                        for (&group, told) in groups.iter().zip(&told) {
                            prop_assert_eq!(engine.core.mm.memcgs[group].updates_pending, told.pending);
                            prop_assert_eq!(&engine.core.mm.memcgs[group].updates_by_cpu[..], &told.gathered[..]);
                        }
                        let group = groups[usize::from(group)];
                        let is_due = told[group.index()].pending > UPDATES_BATCH * u64::from(CPUS);
                        engine.core.flush_for_reader(group);
                        if is_due {
                            engine.core.mm.memcgs.subtree(group).iter().for_each(|id| told[id.index()] = Told::default());
                        }
                    }
                    Event::Flush => {
                        engine.flush_stats();
                        machine.batches = 0;
                        told = [Told::default(); 4];
                    }
                }
            }
        }
    }
}
