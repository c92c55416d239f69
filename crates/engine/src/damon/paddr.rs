//! Physical memory as a kdamond sees it: addresses of frames. [access-aware 1.3, 1.7]

use crate::core::Core;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{PAGE_SIZE, Pfn};
use pageout_damon::{Memory, Metric, Range};

/// Memory during one step.
pub(super) struct Paddr<'a> {
    pub(super) core: &'a mut Core,
}

/// The frame of an address.
pub(super) fn frame_of(address: u64) -> Pfn {
    Pfn((address / PAGE_SIZE) as u32)
}

impl Memory for Paddr<'_> {
    fn prepare(&mut self, _: usize, address: u64) {
        if let Some(pfn) = self.core.damon_folio(frame_of(address)) {
            self.core.damon_make_old(pfn);
        }
    }

    fn is_young(&mut self, _: usize, address: u64) -> bool {
        let folio = self.core.damon_folio(frame_of(address));
        folio.is_some_and(|pfn| self.core.damon_is_young(pfn))
    }

    fn ranges(&mut self, _: usize) -> Option<Vec<Range>> {
        None
    }

    fn is_valid(&self, _: usize) -> bool {
        true
    }

    fn free_mem_rate(&self) -> u64 {
        let nodes = || self.core.mm.memory.nodes();
        let free: u64 = nodes().map(|node| self.core.mm.memory.zones.free_pages(node)).sum();
        let all: u64 = nodes().map(|node| self.core.mm.present_pages(node)).sum();
        free * 1_000 / all.max(1)
    }

    fn measure(&mut self, metric: Metric) -> u64 {
        let mm = &self.core.mm;
        let sum = |stats: &[Stat]| -> u64 {
            let nodes = mm.memory.nodes();
            nodes.flat_map(|node| stats.iter().map(move |&stat| mm.node_stat(node, stat).max(0) as u64)).sum()
        };
        let share = |part: u64, all: u64| part * 10_000 / all.max(1);
        let active = sum(&[Stat::NrActiveAnon, Stat::NrActiveFile]);
        let inactive = sum(&[Stat::NrInactiveAnon, Stat::NrInactiveFile]);
        match metric {
            Metric::ActiveMemBp => share(active, active + inactive),
            Metric::InactiveMemBp => share(inactive, active + inactive),
            // No module here has a goal of these.
            _ => 0,
        }
    }
}

impl State {
    /// Pages of a node that exist.
    pub(super) fn present_pages(&self, node: crate::units::NodeId) -> u64 {
        self.memory.zones.of_node(node).iter().map(|zone| zone.present).sum()
    }

    /// All physical memory, from the first frame to the last one, holes included.
    pub(super) fn system_ram(&self) -> Range {
        let zones = || self.memory.nodes().flat_map(|node| self.memory.zones.of_node(node));
        let start = zones().map(|zone| u64::from(zone.start)).min().unwrap_or(0);
        let end = zones().map(|zone| u64::from(zone.start) + zone.present).max().unwrap_or(0);
        start * PAGE_SIZE..end * PAGE_SIZE
    }
}
