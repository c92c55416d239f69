//! A host with pages for the tests, and what must hold of any list of regions.

use crate::goal::Metric;
use crate::kdamond::{Applied, Apply, Kdamond, Memory, Step};
use crate::rules::Rules;
use crate::split::SplitHistory;
use crate::target::{Range, Target};
use crate::{Attrs, Draws};

pub(crate) const PAGE: u64 = 4096;

/// Pages that are accessed with some probability between two looks.
pub(crate) struct Pages {
    /// By page: the chance of an access in a sample interval, of 1,000.
    pub(crate) chance: Vec<u64>,
    pub(crate) draws: Draws,
    pub(crate) free_mem_rate: u64,
    pub(crate) metric: u64,
    pub(crate) prepared: u64,
    pub(crate) new_ranges: Option<Vec<Range>>,
}

impl Pages {
    pub(crate) fn new(chance: Vec<u64>) -> Pages {
        let draws = Draws::new(99);
        Pages { chance, draws, free_mem_rate: 300, metric: 0, prepared: 0, new_ranges: None }
    }
}

impl Memory for Pages {
    fn prepare(&mut self, _: usize, _: u64) {
        self.prepared += 1;
    }

    fn is_young(&mut self, _: usize, address: u64) -> bool {
        let chance = self.chance.get((address / PAGE) as usize).copied().unwrap_or(0);
        self.draws.within(0, 1000) < chance
    }

    fn ranges(&mut self, _: usize) -> Option<Vec<Range>> {
        self.new_ranges.clone()
    }

    fn is_valid(&self, _: usize) -> bool {
        true
    }

    fn free_mem_rate(&self) -> u64 {
        self.free_mem_rate
    }

    fn measure(&mut self, _: Metric) -> u64 {
        self.metric
    }
}

/// A kdamond over pages, with a clock.
pub(crate) struct Rig {
    pub(crate) kdamond: Kdamond,
    pub(crate) pages: Pages,
    pub(crate) history: SplitHistory,
    pub(crate) now_ns: u64,
    pub(crate) applied: Vec<(u64, Apply)>,
}

impl Rig {
    pub(crate) fn new(attrs: Attrs, rules: Rules, chance: Vec<u64>) -> Rig {
        let mut kdamond = Kdamond::new(attrs, rules, 1, 1).unwrap();
        kdamond.add_target(&[0..chance.len() as u64 * PAGE], false);
        let (pages, history) = (Pages::new(chance), SplitHistory::default());
        Rig { kdamond, pages, history, now_ns: 0, applied: Vec::new() }
    }

    /// Steps until a window is over. An action takes no time and has the whole region as effect.
    pub(crate) fn window(&mut self) {
        loop {
            match self.step() {
                Step::Aggregated => return,
                Step::Ended => panic!("the target is valid"),
                _ => {}
            }
        }
    }

    pub(crate) fn step(&mut self) -> Step {
        let step = self.kdamond.step(&mut self.pages, &mut self.history, self.now_ns);
        match &step {
            Step::Sleep(ns) => self.now_ns += ns,
            Step::Apply(apply) => {
                let bytes = apply.range.end - apply.range.start;
                self.applied.push((self.now_ns, apply.clone()));
                self.kdamond.applied(Applied { bytes, passed_bytes: bytes }, self.now_ns);
            }
            _ => {}
        }
        step
    }
}

/// Regions are sorted, do not overlap, and sum to the ranges, which are sorted and do not touch.
pub(crate) fn check_regions(target: &Target, ranges: &[Range]) {
    let mut covered: Vec<Range> = Vec::new();
    for region in target.regions() {
        assert!(region.start < region.end, "{region:?} is empty");
        match covered.last_mut() {
            Some(last) if last.end == region.start => last.end = region.end,
            last => {
                assert!(last.is_none_or(|last| last.end < region.start), "{region:?} overlaps");
                covered.push(region.start..region.end);
            }
        }
    }
    assert_eq!(covered, ranges);
}
