//! Intervals and limits of monitoring. [access-aware 1.1, 1.6]

use crate::region::{PARTS, Region};

/// How often a kdamond samples, and how many regions it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attrs {
    /// Microseconds between preparing and testing a page.
    pub sample_us: u64,
    /// Microseconds of a window.
    pub aggr_us: u64,
    /// Microseconds after which the address ranges are looked up again; 0: never.
    pub update_us: u64,
    /// Regions are not larger than all of them over this.
    pub min_regions: u64,
    /// Most regions.
    pub max_regions: u64,
    /// Size of the smallest region, in addresses.
    pub min_region_size: u64,
    /// The goal by which the intervals are tuned.
    pub intervals_goal: IntervalsGoal,
}

/// How much access a window should show. [access-aware 1.6]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IntervalsGoal {
    /// The wanted share of positive samples over all bytes, in 1/10,000.
    pub access_bp: u64,
    /// Windows between two adjustments; 0: the intervals stay.
    pub aggrs: u64,
    /// Least sample interval, in microseconds.
    pub min_sample_us: u64,
    /// Longest sample interval, in microseconds.
    pub max_sample_us: u64,
}

/// Why attributes are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrsError {
    /// The sample interval is 0.
    NoSampleInterval,
    /// The sample interval is above the aggregation interval.
    SampleAboveAggregation,
    /// The interval goal has no range of sample intervals.
    NoIntervals,
    /// Fewer than three regions are allowed.
    TooFewRegions,
    /// The minimum of regions is above the maximum.
    MinAboveMax,
    /// The smallest region has no address.
    NoRegionSize,
}

impl std::fmt::Display for AttrsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AttrsError::NoSampleInterval => "sample interval: found 0, expected at least 1 us",
            AttrsError::SampleAboveAggregation => {
                "sample interval: expected at most the aggregation interval"
            }
            AttrsError::NoIntervals => "interval goal: expected min_sample_us from 1 to max_sample_us",
            AttrsError::TooFewRegions => "min regions: expected at least 3",
            AttrsError::MinAboveMax => "min regions: expected at most max regions",
            AttrsError::NoRegionSize => "min region size: found 0, expected at least 1",
        })
    }
}

impl std::error::Error for AttrsError {}

impl Default for Attrs {
    fn default() -> Attrs {
        Attrs {
            sample_us: 5_000,
            aggr_us: 100_000,
            update_us: 60_000_000,
            min_regions: 10,
            max_regions: 1_000,
            min_region_size: 4_096,
            intervals_goal: IntervalsGoal::default(),
        }
    }
}

impl Attrs {
    /// Checks that a kdamond can run with them.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), AttrsError> {
        let goal = &self.intervals_goal;
        let has_no_intervals =
            goal.aggrs > 0 && (goal.min_sample_us == 0 || goal.min_sample_us > goal.max_sample_us);
        let faults = [
            (self.sample_us == 0, AttrsError::NoSampleInterval),
            (self.sample_us > self.aggr_us, AttrsError::SampleAboveAggregation),
            (has_no_intervals, AttrsError::NoIntervals),
            (self.min_regions < 3, AttrsError::TooFewRegions),
            (self.min_regions > self.max_regions, AttrsError::MinAboveMax),
            (self.min_region_size == 0, AttrsError::NoRegionSize),
        ];
        faults.iter().find(|(is_wrong, _)| *is_wrong).map_or(Ok(()), |&(_, error)| Err(error))
    }

    /// Samples of a window: the largest count of a region.
    pub fn samples(&self) -> u32 {
        u32::try_from(self.aggr_us / self.sample_us.max(1)).unwrap_or(u32::MAX).max(1)
    }

    /// The size that a region may have, if all regions have `total` addresses.
    pub(crate) fn size_limit(&self, total: u64) -> u64 {
        (total / self.min_regions.max(1)).max(self.min_region_size)
    }

    /// Converts a region's results when these attributes replace `old`. The count of an unfinished window is dropped.
    pub(crate) fn convert(&self, old: &Attrs, region: &mut Region, is_window_over: bool) {
        let count = |nr: u32| {
            let share = u64::from(nr) * PARTS / u64::from(old.samples());
            (share * u64::from(self.samples()) / PARTS) as u32
        };
        let age = u128::from(region.age) * u128::from(old.aggr_us) / u128::from(self.aggr_us.max(1));
        region.age = u32::try_from(age).unwrap_or(u32::MAX);
        region.last_nr_accesses = count(region.last_nr_accesses);
        region.nr_accesses = if is_window_over { count(region.nr_accesses) } else { 0 };
        region.moving =
            PARTS * u64::from(if is_window_over { region.nr_accesses } else { region.last_nr_accesses });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_attrs_allow_20_hits_per_window() {
        assert_eq!(Attrs::default().samples(), 20);
        assert_eq!(Attrs::default().check(), Ok(()));
    }

    #[test]
    fn invalid_attrs_name_the_fault() {
        let base = Attrs::default();
        let goal = IntervalsGoal { access_bp: 400, aggrs: 3, min_sample_us: 6, max_sample_us: 5 };
        for (attrs, fault) in [
            (Attrs { sample_us: 0, ..base }, AttrsError::NoSampleInterval),
            (Attrs { sample_us: 100_001, ..base }, AttrsError::SampleAboveAggregation),
            (Attrs { min_regions: 2, ..base }, AttrsError::TooFewRegions),
            (Attrs { min_regions: 1_001, ..base }, AttrsError::MinAboveMax),
            (Attrs { min_region_size: 0, ..base }, AttrsError::NoRegionSize),
            (Attrs { intervals_goal: goal, ..base }, AttrsError::NoIntervals),
        ] {
            assert_eq!(attrs.check(), Err(fault));
        }
    }

    #[test]
    fn new_attrs_convert_counts_and_ages() {
        let (old, new) = (Attrs::default(), Attrs { aggr_us: 200_000, ..Attrs::default() });
        let before = Region { nr_accesses: 9, last_nr_accesses: 10, age: 7, ..Region::new(0, 4096) };
        let mut region = before;
        new.convert(&old, &mut region, true);
        assert_eq!((region.nr_accesses, region.last_nr_accesses, region.age), (18, 20, 3));
        let mut region = before;
        new.convert(&old, &mut region, false);
        assert_eq!((region.nr_accesses, region.last_nr_accesses, region.age), (0, 20, 3));
    }
}
