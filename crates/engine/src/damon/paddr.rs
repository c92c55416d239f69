//! Physical memory as a kdamond sees it: addresses of frames, and what goals measure. [access-aware 1.3, 1.7]

use crate::stat::Stat;
use crate::state::State;
use crate::units::{MemcgId, NodeId, PAGE_SIZE, Pfn};
use pageout_damon::{Metric, Range};

/// The frame of an address.
pub(super) fn frame_of(address: u64) -> Pfn {
    Pfn((address / PAGE_SIZE) as u32)
}

/// The counters of a node's lists, by type and activity.
const LISTS: [Stat; 4] = [Stat::NrActiveAnon, Stat::NrActiveFile, Stat::NrInactiveAnon, Stat::NrInactiveFile];

impl State {
    /// The present value of a goal's metric.
    pub(super) fn measure_for_damon(&self, metric: Metric) -> u64 {
        let sum = |stats: &[Stat]| -> u64 {
            let nodes = self.memory.nodes();
            nodes
                .flat_map(|node| stats.iter().map(move |&stat| self.node_stat(node, stat).max(0) as u64))
                .sum()
        };
        let share = |part: u64, all: u64| part * 10_000 / all.max(1);
        let of_memcg = |node: NodeId, memcg: MemcgId| -> u64 {
            let groups = self.memcgs.subtree(memcg);
            let lruvecs = groups.iter().map(|&group| &self.lruvecs[self.lruvecs.id(group, node)]);
            lruvecs.flat_map(|of| LISTS.iter().map(|&stat| of.stat_local[stat as usize].max(0) as u64)).sum()
        };
        let total = |node| self.memory.zones.of_node(node).iter().map(|zone| zone.managed).sum::<u64>();
        let free = |node| self.memory.zones.free_pages(node);
        match metric {
            Metric::ActiveMemBp => share(sum(&LISTS[..2]), sum(&LISTS)),
            Metric::InactiveMemBp => share(sum(&LISTS[2..]), sum(&LISTS)),
            Metric::NodeMemUsedBp(node) => {
                let node = NodeId(node);
                share(total(node).saturating_sub(free(node)), total(node))
            }
            Metric::NodeMemFreeBp(node) => share(free(NodeId(node)), total(NodeId(node))),
            Metric::NodeMemcgUsedBp(node, memcg) => {
                share(of_memcg(NodeId(node), MemcgId(memcg)), total(NodeId(node)))
            }
            Metric::NodeMemcgFreeBp(node, memcg) => {
                let (total, used) = (total(NodeId(node)), of_memcg(NodeId(node), MemcgId(memcg)));
                share(total.saturating_sub(used), total)
            }
            Metric::SomeMemPsiUs => self.damon.stalled.0 / 1_000,
            // The value that the user has written stays.
            Metric::UserInput => 0,
        }
    }
}

impl State {
    /// Pages of a node that exist.
    pub(super) fn present_pages(&self, node: NodeId) -> u64 {
        self.memory.zones.of_node(node).iter().map(|zone| zone.present).sum()
    }

    /// The addresses of a node, from its first frame to its last one, holes included.
    pub(crate) fn addresses_of(&self, node: NodeId) -> Range {
        let zones = self.memory.zones.of_node(node).iter().filter(|zone| zone.present > 0);
        let ranges = zones.map(|zone| u64::from(zone.start)..u64::from(zone.start) + zone.present);
        let all = ranges.reduce(|all, zone| all.start.min(zone.start)..all.end.max(zone.end));
        all.map_or(0..0, |frames| frames.start * PAGE_SIZE..frames.end * PAGE_SIZE)
    }

    /// All physical memory, from the first frame to the last one, holes included.
    pub(super) fn system_ram(&self) -> Range {
        let zones = || self.memory.nodes().flat_map(|node| self.memory.zones.of_node(node));
        let start = zones().map(|zone| u64::from(zone.start)).min().unwrap_or(0);
        let end = zones().map(|zone| u64::from(zone.start) + zone.present).max().unwrap_or(0);
        start * PAGE_SIZE..end * PAGE_SIZE
    }
}
