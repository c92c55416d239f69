//! The end of a window: ages grow, and neighbours with about the same accesses become one region. [access-aware 1.4]
//!
//! A pass compares by a threshold. If too many regions are left, further passes double it, up to all samples of a window. Ages change in the first
//! pass only.

use crate::region::Region;
use crate::target::Target;

/// What a merge goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merge {
    /// Largest difference of counts that is about the same: a tenth of the window's largest count before the merge.
    pub(crate) threshold: u32,
    /// Largest threshold: the samples of a window.
    pub(crate) samples: u32,
    pub(crate) size_limit: u64,
    pub(crate) max_regions: u64,
    pub(crate) age_zero: bool,
}

impl Merge {
    /// Merges the regions of all targets.
    pub(crate) fn run(&self, targets: &mut [Target]) {
        let mut threshold = self.threshold;
        let mut is_first = true;
        loop {
            for target in targets.iter_mut() {
                self.pass(&mut target.regions, threshold, is_first);
            }
            is_first = false;
            let regions: usize = targets.iter().map(|target| target.regions.len()).sum();
            if regions as u64 <= self.max_regions || threshold >= self.samples {
                return;
            }
            threshold = threshold.saturating_mul(2).max(1).min(self.samples);
        }
    }

    fn pass(&self, regions: &mut Vec<Region>, threshold: u32, ages: bool) {
        if ages {
            regions.iter_mut().for_each(|region| self.age(region, threshold));
        }
        regions.dedup_by(|region, previous| {
            let joins = previous.end == region.start
                && previous.nr_accesses.abs_diff(region.nr_accesses) <= threshold
                && previous.size() + region.size() <= self.size_limit;
            if joins {
                previous.join(region);
            }
            joins
        });
    }

    fn age(&self, region: &mut Region, threshold: u32) {
        let (now, last) = (region.nr_accesses, region.last_nr_accesses);
        let has_changed = now.abs_diff(last) > threshold || self.age_zero && (now == 0) != (last == 0);
        region.age = if has_changed { 0 } else { region.age.saturating_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERGE: Merge =
        Merge { threshold: 2, samples: 20, size_limit: 1000, max_regions: 100, age_zero: true };

    fn target(regions: &[(u64, u64, u32, u32)]) -> Target {
        let region = |&(start, end, nr_accesses, last_nr_accesses)| Region {
            nr_accesses,
            last_nr_accesses,
            age: 5,
            ..Region::new(start, end)
        };
        Target { regions: regions.iter().map(region).collect() }
    }

    fn merged(merge: Merge, regions: &[(u64, u64, u32, u32)]) -> Vec<(u64, u64, u32, u32)> {
        let mut targets = [target(regions)];
        merge.run(&mut targets);
        let [of] = targets;
        of.regions.iter().map(|region| (region.start, region.end, region.nr_accesses, region.age)).collect()
    }

    #[test]
    fn neighbours_with_like_counts_are_joined() {
        let regions = [(0, 10, 4, 4), (10, 20, 6, 6), (20, 30, 9, 9), (31, 40, 9, 9)];
        assert_eq!(merged(MERGE, &regions), [(0, 20, 5, 6), (20, 30, 9, 6), (31, 40, 9, 6)]);
    }

    #[test]
    fn regions_are_not_joined_above_the_limit() {
        let regions = [(0, 600, 4, 4), (600, 1000, 4, 4), (1000, 1001, 4, 4)];
        assert_eq!(merged(MERGE, &regions), [(0, 1000, 4, 6), (1000, 1001, 4, 6)]);
    }

    #[test]
    fn age_restarts_when_a_region_becomes_idle_by_rule() {
        for (age_zero, age) in [(true, 0), (false, 6)] {
            assert_eq!(merged(Merge { age_zero, ..MERGE }, &[(0, 10, 0, 2)]), [(0, 10, 0, age)]);
            assert_eq!(merged(Merge { age_zero, ..MERGE }, &[(0, 10, 1, 3)]), [(0, 10, 1, 6)]);
        }
        assert_eq!(merged(MERGE, &[(0, 10, 3, 6)]), [(0, 10, 3, 0)], "more than the threshold");
    }

    #[test]
    fn too_many_regions_double_the_threshold() {
        let regions: Vec<_> = (0..8).map(|at| (at * 10, at * 10 + 10, 3 * (at as u32 % 2), 0)).collect();
        assert_eq!(merged(Merge { max_regions: 8, ..MERGE }, &regions).len(), 8);
        let joined = merged(Merge { max_regions: 7, ..MERGE }, &regions);
        assert_eq!(joined.len(), 1, "a threshold of 4 covers a difference of 3: {joined:?}");
        // 6, 0, 6, 0 ... by size, each mean rounded down: 3, 4, 3, 3, 2, 2, 1. A second aging would give more.
        assert_eq!(joined[0].3, 1, "ages change in the first pass alone");
    }

    #[test]
    fn threshold_ends_at_the_samples_of_a_window() {
        // Parts of the limit can't be joined, whatever the threshold.
        let regions: Vec<_> = (0..8).map(|at| (at * 10, at * 10 + 10, 0, 0)).collect();
        assert_eq!(merged(Merge { max_regions: 1, size_limit: 10, ..MERGE }, &regions).len(), 8);
    }
}
