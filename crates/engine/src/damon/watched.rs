//! The addresses that a kdamond monitors: of physical memory, or of processes.

use crate::core::Core;
use crate::units::MmId;
use pageout_damon::{Memory, Metric, Range};

use super::flags::Look;
use super::paddr::frame_of;

/// Memory during one step.
pub(super) struct Watched<'a> {
    pub(super) core: &'a mut Core,
    /// The processes, by the numbers of their targets; none for physical memory.
    pub(super) processes: &'a [MmId],
}

impl Watched<'_> {
    fn process(&self, target: usize) -> Option<MmId> {
        self.processes.get(target).copied()
    }
}

impl Memory for Watched<'_> {
    fn prepare(&mut self, target: usize, address: u64) {
        if let Some(mm) = self.process(target) {
            self.core.damon_make_entry_old(mm, address);
        } else if let Some(pfn) = self.core.damon_folio(Look::Sample, frame_of(address)) {
            self.core.damon_make_old(Look::Sample, pfn);
        }
    }

    fn is_young(&mut self, target: usize, address: u64) -> bool {
        if let Some(mm) = self.process(target) {
            return self.core.damon_is_entry_young(mm, address);
        }
        let folio = self.core.damon_folio(Look::Sample, frame_of(address));
        folio.is_some_and(|pfn| self.core.damon_is_young(Look::Sample, pfn))
    }

    fn ranges(&mut self, target: usize) -> Option<Vec<Range>> {
        self.process(target).map(|mm| self.core.mm.ranges_of_process(mm))
    }

    fn is_valid(&self, target: usize) -> bool {
        self.process(target).is_none_or(|mm| self.core.mm.memory.mm(mm).users > 0)
    }

    fn free_mem_rate(&self) -> u64 {
        let nodes = || self.core.mm.memory.nodes();
        let free: u64 = nodes().map(|node| self.core.mm.memory.zones.free_pages(node)).sum();
        let all: u64 = nodes().map(|node| self.core.mm.present_pages(node)).sum();
        free * 1_000 / all.max(1)
    }

    fn measure(&mut self, metric: Metric) -> u64 {
        self.core.mm.measure_for_damon(metric)
    }
}
