//! Finished windows of kdamonds, kept for a chart. Nothing is kept unless a host requests it.

use crate::access::engine::Engine;
use crate::units::{MmId, Nanos};
use pageout_damon::{Range, Target};

/// Windows of a kdamond that are kept. With one more, every second one is dropped, and from then on one in twice as many is kept.
const WINDOWS: usize = 64;

/// What a kdamond knew at the end of a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchedWindow {
    /// The end of the window.
    pub at: Nanos,
    /// Samples of each region in the window: no region has more accesses.
    pub samples: u32,
    /// Regions of each target, in order of address.
    pub targets: Vec<Vec<WatchedRegion>>,
}

/// A region at the end of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatchedRegion {
    /// Its first address.
    pub start: u64,
    /// The address behind its last one.
    pub end: u64,
    /// Samples that found an access.
    pub nr_accesses: u32,
    /// Windows for which its accesses have been about the same.
    pub age: u32,
}

/// The windows that are kept of a kdamond.
#[derive(Default)]
pub(crate) struct Picture {
    windows: Vec<WatchedWindow>,
    /// One in two to the power of this is kept.
    shift: u32,
    passed: u64,
}

impl Picture {
    pub(super) fn add(&mut self, at: Nanos, samples: u32, targets: &[Target]) {
        let is_kept = self.passed.is_multiple_of(1 << self.shift);
        self.passed += 1;
        if !is_kept {
            return;
        }
        if self.windows.len() == WINDOWS {
            let mut number = 0;
            self.windows.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.shift += 1;
        }
        let regions = |target: &Target| {
            let regions = target.regions().iter();
            let kept = regions.map(|region| WatchedRegion {
                start: region.start,
                end: region.end,
                nr_accesses: region.nr_accesses,
                age: region.age,
            });
            kept.collect()
        };
        self.windows.push(WatchedWindow { at, samples, targets: targets.iter().map(regions).collect() });
    }
}

impl Engine {
    /// Keeps windows of kdamonds from now on, evenly spread over the run ([`Engine::damon_windows`]). It changes nothing in the run.
    pub fn keep_damon_windows(&mut self) {
        self.core.mm.damon.pictures.get_or_insert_default();
    }

    /// The windows that were kept of the kdamond with this number.
    pub fn damon_windows(&self, kdamond: usize) -> &[WatchedWindow] {
        let pictures = self.core.mm.damon.pictures.as_deref().unwrap_or_default();
        pictures.get(kdamond).map_or(&[], |picture| &picture.windows)
    }

    /// The present targets of the kdamond with this number: the process, none for physical memory, and the ranges of addresses.
    pub fn damon_targets(&self, kdamond: usize) -> Vec<(Option<MmId>, Vec<Range>)> {
        let Some(of) = self.core.mm.damon.kdamonds.get(kdamond) else { return Vec::new() };
        if of.processes.is_empty() {
            let all = || vec![self.core.mm.system_ram()];
            return vec![(None, if of.ranges.is_empty() { all() } else { of.ranges.clone() })];
        }
        of.processes.iter().map(|&mm| (Some(mm), self.core.mm.ranges_of_process(mm))).collect()
    }
}
