//! Intervals that follow a goal: how much access a window should show. [access-aware 1.6]

use crate::attrs::Attrs;
use crate::feed::feed;
use crate::target::Target;

/// The intervals after a window with these regions. The windows that were not the last of `aggrs` do not count.
pub(crate) fn tuned(attrs: &Attrs, targets: &[Target]) -> Attrs {
    let (mut size, mut accesses) = (0u128, 0u128);
    for region in targets.iter().flat_map(|target| &target.regions) {
        size += u128::from(region.size());
        accesses += u128::from(region.size()) * u128::from(region.nr_accesses);
    }
    let goal = &attrs.intervals_goal;
    let target = (size * u128::from(attrs.samples()) * u128::from(goal.access_bp) / 10_000).max(1);
    let score = u64::try_from(accesses * 10_000 / target).unwrap_or(u64::MAX);
    let factor = factor(score);
    if factor == 10_000 {
        return *attrs;
    }
    let sample_us = (u128::from(attrs.sample_us) * u128::from(factor) / 10_000) as u64;
    let sample_us = sample_us.clamp(goal.min_sample_us, goal.max_sample_us);
    Attrs { sample_us, aggr_us: sample_us.saturating_mul(attrs.samples().into()), ..*attrs }
}

/// The factor of the intervals, in 1/10,000.
fn factor(score: u64) -> u64 {
    let factor = feed(100_000_000, score) / 10_000;
    if factor <= 10_000 { 5_000 + factor / 2 } else { factor }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attrs::IntervalsGoal;
    use crate::region::Region;

    #[test]
    fn factor_equals_the_published_vectors() {
        assert_eq!([0, 9000, 11000, 20000].map(factor), [20000, 11000, 9500, 5000]);
        assert_eq!(factor(10_000), 10_000);
    }

    #[test]
    fn tuned_intervals_keep_their_ratio_and_range() {
        let goal =
            IntervalsGoal { access_bp: 400, aggrs: 3, min_sample_us: 5_000, max_sample_us: 10_000_000 };
        let attrs = Attrs { intervals_goal: goal, ..Attrs::default() };
        let window =
            |nr_accesses| [Target { regions: vec![Region { nr_accesses, ..Region::new(0, 1 << 30) }] }];
        let idle = tuned(&attrs, &window(0));
        assert_eq!((idle.sample_us, idle.aggr_us, idle.samples()), (10_000, 200_000, 20));
        assert_eq!(tuned(&attrs, &window(20)).sample_us, 5_000, "not below the minimum");
        let slow = Attrs { sample_us: 8_000_000, aggr_us: 160_000_000, ..attrs };
        assert_eq!(tuned(&slow, &window(0)).sample_us, 10_000_000, "not above the maximum");
        assert_eq!(tuned(&slow, &window(20)).sample_us, 4_000_000, "never below half");
    }
}
