//! The cuts after a window: each region into random parts, so that differences within it show. [access-aware 1.4]

use crate::draws::Draws;
use crate::region::Region;
use crate::target::Target;

/// What is cut when there are more than half of the allowed regions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverHalf {
    /// Nothing: borders stay until regions merge.
    Nothing,
    /// Some regions into two, others each time.
    Rotating,
}

/// The state that splits share. All kdamonds share it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SplitHistory {
    last_regions: u64,
    turn: u64,
}

/// What a split goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) max_regions: u64,
    pub(crate) min_region_size: u64,
    pub(crate) over_half: OverHalf,
    pub(crate) copies_count: bool,
}

/// Which regions are cut, and into how many parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    All {
        parts: u32,
    },
    /// One of `every`, from the `first` on.
    Some {
        every: u64,
        first: u64,
    },
}

impl Split {
    /// Splits the regions of all targets.
    pub(crate) fn run(&self, targets: &mut [Target], history: &mut SplitHistory, draws: &mut Draws) {
        let regions: usize = targets.iter().map(|target| target.regions.len()).sum();
        let Some(plan) = self.plan(regions as u64, history) else { return };
        let mut number = 0;
        for target in targets {
            let mut cut = Vec::with_capacity(3 * target.regions.len());
            for &region in &target.regions {
                self.cut(region, number, plan, draws, &mut cut);
                number += 1;
            }
            target.regions = cut;
        }
    }

    fn plan(&self, regions: u64, history: &mut SplitHistory) -> Option<Plan> {
        let max = self.max_regions;
        if regions > max / 2 {
            if self.over_half == OverHalf::Nothing || regions >= max {
                return None;
            }
            let every = max / (max - regions);
            let first = history.turn % every;
            history.turn = history.turn.wrapping_add(1);
            return Some(Plan::Some { every, first });
        }
        let parts = if regions == history.last_regions && regions < max / 3 { 3 } else { 2 };
        history.last_regions = regions;
        Some(Plan::All { parts })
    }

    /// Cuts the left part of a region again and again, so that of three parts the left ones are the smaller.
    fn cut(&self, mut region: Region, number: u64, plan: Plan, draws: &mut Draws, into: &mut Vec<Region>) {
        let size = self.min_region_size;
        let (cuts, least) = match plan {
            Plan::All { parts } => (parts - 1, 2 * size + 1),
            Plan::Some { every, first } => (u32::from(number % every == first), 2 * size),
        };
        let mut right_parts = [None; 2];
        for part in right_parts.iter_mut().take(cuts as usize) {
            if region.size() < least {
                break;
            }
            let left = u128::from(region.size()) * u128::from(draws.within(1, 10)) / 10;
            let left = left as u64 / size * size;
            if left > 0 {
                *part = Some(region.cut(left, self.copies_count));
            }
        }
        into.push(region);
        into.extend(right_parts.into_iter().rev().flatten());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const PAGE: u64 = 4096;
    const SPLIT: Split =
        Split { max_regions: 1000, min_region_size: PAGE, over_half: OverHalf::Rotating, copies_count: true };

    fn targets(regions: u64, pages: u64) -> [Target; 1] {
        let size = pages * PAGE;
        [Target { regions: (0..regions).map(|at| Region::new(at * size, (at + 1) * size)).collect() }]
    }

    #[test]
    fn region_of_100_pages_is_cut_at_tenths() {
        let mut draws = Draws::new(1);
        let mut at = BTreeSet::new();
        for _ in 0..500 {
            let mut of = targets(1, 100);
            SPLIT.run(&mut of, &mut SplitHistory::default(), &mut draws);
            assert_eq!(of[0].regions.len(), 2);
            at.insert(of[0].regions[0].size() / PAGE);
        }
        assert_eq!(at.into_iter().collect::<Vec<_>>(), [10, 20, 30, 40, 50, 60, 70, 80, 90]);
    }

    #[test]
    fn same_count_as_last_time_is_cut_into_three() {
        let (mut history, mut draws) = (SplitHistory::default(), Draws::new(1));
        let mut of = targets(10, 1000);
        SPLIT.run(&mut of, &mut history, &mut draws);
        assert_eq!(of[0].regions.len(), 20);
        let mut of = targets(10, 1000);
        SPLIT.run(&mut of, &mut history, &mut draws);
        assert_eq!(of[0].regions.len(), 30);
    }

    #[test]
    fn more_than_half_are_cut_in_rotation_by_rule() {
        for (over_half, regions) in [(OverHalf::Nothing, [600, 600]), (OverHalf::Rotating, [900, 900])] {
            let (mut history, mut draws) = (SplitHistory::default(), Draws::new(1));
            let split = Split { over_half, ..SPLIT };
            let mut first = targets(600, 1000);
            split.run(&mut first, &mut history, &mut draws);
            let mut second = targets(600, 1000);
            split.run(&mut second, &mut history, &mut draws);
            assert_eq!([first[0].regions.len(), second[0].regions.len()], regions);
            if over_half == OverHalf::Rotating {
                let begins = |of: &Target| of.regions[0].size() < 1000 * PAGE;
                assert!(begins(&first[0]) != begins(&second[0]), "others are cut the second time");
            }
        }
    }

    #[test]
    fn full_list_of_regions_is_not_cut() {
        let mut of = targets(1000, 1000);
        SPLIT.run(&mut of, &mut SplitHistory::default(), &mut Draws::new(1));
        assert_eq!(of[0].regions.len(), 1000);
    }

    #[test]
    fn region_of_two_pages_is_cut_in_rotation_alone() {
        let mut of = targets(400, 2);
        SPLIT.run(&mut of, &mut SplitHistory::default(), &mut Draws::new(1));
        assert_eq!(of[0].regions.len(), 400);
        let mut of = targets(999, 2);
        SPLIT.run(&mut of, &mut SplitHistory { last_regions: 0, turn: 3 }, &mut Draws::new(9));
        assert!(of[0].regions.len() <= 1000);
    }
}
