use super::*;
use crate::feed::REACHED;
use crate::filter::{CoreFilter, Filter};
use crate::goal::Goal;
use crate::model::{PAGE, Rig, check_regions};
use crate::quota::QuotaLimits;
use crate::scheme::{Action, Pattern};
use crate::watermark::{WatermarkMetric, Watermarks};

const ATTRS: Attrs = Attrs { max_regions: 100, ..crate::modules::ATTRS };

fn bytes(of: &[(u64, Apply)]) -> u64 {
    of.iter().map(|(_, apply)| apply.range.end - apply.range.start).sum()
}

#[test]
fn regions_stay_sorted_and_sum_to_the_ranges() {
    for (number, rules) in Rules::ALL.into_iter().enumerate() {
        for seed in 0..6 {
            let mut draws = Draws::new(seed * 100 + number as u64);
            let pages = draws.within(8, 3000);
            let mut chance: Vec<u64> = Vec::new();
            while (chance.len() as u64) < pages {
                let (value, run) = (draws.within(0, 1001), draws.within(1, 300));
                chance.extend((0..run).map(|_| value));
            }
            let whole = 0..chance.len() as u64 * PAGE;
            let mut rig = Rig::new(ATTRS, rules, chance);
            for action in [Action::Stat, Action::Pageout, Action::LruPrio] {
                let mut spec = SchemeSpec::new(
                    Pattern { nr_accesses: 0..=draws.within(0, 20) as u32, ..Pattern::ANY },
                    action,
                );
                spec.quota.bytes = draws.within(0, 100) * PAGE;
                spec.quota.reset_interval_ms = draws.within(10, 500);
                spec.apply_interval_us = draws.within(0, 300_000);
                let from = draws.within(0, pages) * PAGE;
                let kind = CoreFilter::Addresses(from..from + draws.within(0, pages) * PAGE);
                spec.core_filters.push(Filter { kind, matching: draws.within(0, 2) == 0, allow: true });
                rig.kdamond.add_scheme(spec);
            }
            for _ in 0..1500 {
                rig.step();
                check_regions(&rig.kdamond.targets[0], std::slice::from_ref(&whole));
            }
            assert!(!rig.applied.is_empty(), "schemes that do nothing test nothing: {number}, {seed}");
        }
    }
}

#[test]
fn count_of_regions_stays_below_the_maximum() {
    for rules in Rules::ALL {
        let chance = (0..20_000).map(|page| if page / 37 % 2 == 0 { 900 } else { 0 }).collect();
        let mut rig = Rig::new(ATTRS, rules, chance);
        for _ in 0..60 {
            rig.window();
            assert!(rig.kdamond.regions() <= 100, "{} after the merge", rig.kdamond.regions());
        }
        rig.step();
        assert!(rig.kdamond.regions() > 20, "differences are found: {}", rig.kdamond.regions());
    }
}

#[test]
fn same_seed_gives_the_same_regions() {
    let run = |seed| {
        let chance = (0..5_000).map(|page| page % 700).collect();
        let mut rig = Rig::new(ATTRS, Rules::V7_3, chance);
        rig.kdamond.draws = Draws::new(seed);
        (0..20).for_each(|_| rig.window());
        rig.kdamond.targets
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn access_rate_gives_the_expected_count() {
    // r s = 0.4: 1 - exp(-0.4) = 0.330 of all samples are positive.
    let mut rig = Rig::new(ATTRS, Rules::V6_12, vec![330; 4096]);
    let (mut sum, mut count) = (0u64, 0u64);
    for _ in 0..200 {
        rig.window();
        for region in rig.kdamond.targets[0].regions() {
            sum += u64::from(region.nr_accesses) * region.size();
            count += region.size();
        }
    }
    let mean = sum as f64 / count as f64;
    assert!(
        (mean - 20.0 * 0.33).abs() < 0.35,
        "mean count {mean}, expected about 6.6, less rounding in merges"
    );
}

#[test]
fn idle_memory_ages_by_one_per_window() {
    for rules in Rules::ALL {
        let mut rig = Rig::new(ATTRS, rules, vec![0; 4096]);
        for window in 1..30 {
            rig.window();
            assert!(rig.kdamond.targets[0].regions().iter().all(|region| region.age == window));
        }
    }
}

#[test]
fn window_ends_by_samples_or_by_the_clock() {
    for (rules, samples) in [(Rules::V6_1, 17), (Rules::V6_12, 20)] {
        let mut rig = Rig::new(ATTRS, rules, vec![0; 64]);
        let mut slept = 0;
        loop {
            match rig.step() {
                // Checks take a millisecond.
                Step::Sleep(_) => (slept, rig.now_ns) = (slept + 1, rig.now_ns + 1_000_000),
                Step::Aggregated => break,
                _ => {}
            }
        }
        assert_eq!(slept, samples, "{rules:?}");
    }
}

#[test]
fn each_region_is_prepared_once_per_sample() {
    let mut rig = Rig::new(Attrs { max_regions: 1_000, ..ATTRS }, Rules::V7_3, vec![500; 300_000]);
    (0..30).for_each(|_| rig.window());
    while !matches!(rig.step(), Step::Sleep(_)) {}
    let (regions, before) = (rig.kdamond.regions() as u64, rig.pages.prepared);
    assert!(regions > REGIONS_PER_STEP as u64, "more than one step has: {regions}");
    while !matches!(rig.step(), Step::Sleep(_)) {}
    assert_eq!(rig.pages.prepared - before, regions);
}

#[test]
fn strict_rule_cuts_physical_memory_at_the_start() {
    for (rules, regions) in [(Rules::V6_12, 1), (Rules::V7_2, 10)] {
        assert_eq!(Rig::new(ATTRS, rules, vec![0; 1000]).kdamond.regions(), regions);
    }
}

#[test]
fn scheme_resets_the_age_unless_it_only_counts() {
    for (action, age) in [(Action::Stat, 3), (Action::Pageout, 0)] {
        let mut rig = Rig::new(ATTRS, Rules::V7_3, vec![0; 1000]);
        rig.kdamond.add_scheme(SchemeSpec::new(Pattern { age: 2..=u32::MAX, ..Pattern::ANY }, action));
        rig.window();
        rig.window();
        let ages = |rig: &Rig| rig.kdamond.targets[0].regions().iter().map(|region| region.age).max();
        assert_eq!(ages(&rig), Some(if action == Action::Stat { 2 } else { 0 }));
        rig.window();
        assert_eq!(ages(&rig), Some(if action == Action::Stat { age } else { 1 }));
        assert_eq!(rig.kdamond.schemes[0].stats.sz_applied, bytes(&rig.applied));
    }
}

#[test]
fn quota_goes_round_through_the_address_space() {
    for rules in Rules::ALL {
        let mut rig = Rig::new(ATTRS, rules, vec![0; 1000]);
        let mut spec = SchemeSpec::new(Pattern::ANY, Action::Pageout);
        spec.quota = QuotaLimits { bytes: 250 * PAGE, reset_interval_ms: 1, ..QuotaLimits::default() };
        rig.kdamond.add_scheme(spec);
        // All priorities are equal. The first window has no limit by the rule of some versions.
        if rules.first_window == crate::FirstWindow::Unlimited {
            rig.window();
            assert_eq!(bytes(&rig.applied), 1000 * PAGE, "no limit");
            rig.applied.clear();
        }
        for window in 0..8u64 {
            rig.applied.clear();
            rig.window();
            assert_eq!(bytes(&rig.applied), 250 * PAGE, "window {window}");
            let at = rig.applied.first().map(|(_, apply)| apply.range.start);
            assert_eq!(at, Some(window % 4 * 250 * PAGE), "window {window} of {rules:?}");
        }
    }
}

#[test]
fn hot_regions_come_first_under_a_quota() {
    let chance = (0..1000).map(|page| if page >= 700 { 1000 } else { 0 }).collect();
    let mut rig = Rig::new(ATTRS, Rules::V7_3, chance);
    (0..20).for_each(|_| rig.window());
    let mut spec = SchemeSpec::new(Pattern::ANY, Action::MigrateHot(0));
    spec.quota = QuotaLimits { bytes: 100 * PAGE, reset_interval_ms: 1, ..QuotaLimits::default() };
    spec.quota.weights.nr_accesses = 1;
    rig.kdamond.add_scheme(spec);
    rig.window();
    rig.window();
    assert_eq!(rig.applied.len() as u64, rig.kdamond.schemes[0].stats.nr_applied);
    assert!(!rig.applied.is_empty());
    assert!(rig.applied.iter().all(|(_, apply)| apply.nr_accesses >= 15), "{:?}", rig.applied);
}

#[test]
fn filter_by_address_cuts_at_its_borders() {
    let mut rig = Rig::new(ATTRS, Rules::V7_3, vec![0; 1000]);
    let mut spec = SchemeSpec::new(Pattern::ANY, Action::Stat);
    let kind = CoreFilter::Addresses(333 * PAGE..777 * PAGE);
    spec.core_filters.push(Filter { kind, matching: true, allow: true });
    rig.kdamond.add_scheme(spec);
    rig.window();
    assert_eq!(bytes(&rig.applied), 444 * PAGE);
    assert_eq!(rig.kdamond.schemes[0].stats.sz_tried, 444 * PAGE);
    assert!(rig.applied.iter().all(|(_, apply)| !apply.asks_ops_filters));
}

#[test]
fn apply_interval_is_independent_of_the_window() {
    let mut rig = Rig::new(ATTRS, Rules::V6_12, vec![0; 64]);
    let mut spec = SchemeSpec::new(Pattern::ANY, Action::Stat);
    spec.apply_interval_us = 25_000;
    rig.kdamond.add_scheme(spec);
    rig.window();
    let mut times: Vec<u64> = rig.applied.iter().map(|&(ns, _)| ns / 1_000_000).collect();
    times.dedup();
    assert_eq!(times, [25, 50, 75, 100]);
}

#[test]
fn inactive_schemes_stop_all_monitoring() {
    let mut rig = Rig::new(ATTRS, Rules::V7_3, vec![0; 64]);
    let mut spec = SchemeSpec::new(Pattern::ANY, Action::Stat);
    spec.watermarks = Watermarks {
        metric: WatermarkMetric::FreeMemRate,
        interval_us: 5_000_000,
        high: 200,
        mid: 150,
        low: 50,
    };
    rig.kdamond.add_scheme(spec);
    assert_eq!(rig.step(), Step::Sleep(5_000_000_000), "300 of 1,000 are free");
    assert_eq!((rig.step(), rig.pages.prepared), (Step::Sleep(5_000_000_000), 0));
    rig.pages.free_mem_rate = 149;
    assert_eq!(rig.step(), Step::Sleep(5_000_000));
    assert!(rig.pages.prepared > 0);
}

#[test]
fn snapshots_end_a_scheme() {
    let mut rig = Rig::new(ATTRS, Rules::V7_3, vec![0; 64]);
    let spec = SchemeSpec { max_nr_snapshots: 2, ..SchemeSpec::new(Pattern::ANY, Action::Stat) };
    rig.kdamond.add_scheme(spec);
    (0..5).for_each(|_| rig.window());
    assert_eq!(rig.kdamond.schemes[0].stats.sz_tried, 2 * 64 * PAGE);
}

#[test]
fn reached_goal_keeps_the_size_of_a_quota() {
    let mut rig = Rig::new(ATTRS, Rules::V7_3, vec![0; 1000]);
    let mut spec = SchemeSpec::new(Pattern::ANY, Action::Pageout);
    spec.quota.goals.push(Goal::new(Metric::NodeMemFreeBp(0), REACHED));
    spec.quota.reset_interval_ms = 1;
    rig.kdamond.add_scheme(spec);
    (0..14).for_each(|_| rig.window());
    assert_eq!(rig.kdamond.schemes[0].quota.effective_bytes(), 1 << 14, "it doubles with a score of 0");
    rig.pages.metric = REACHED;
    rig.window();
    assert_eq!(rig.kdamond.schemes[0].quota.effective_bytes(), 1 << 14);
}

#[test]
fn tuned_intervals_grow_on_idle_memory() {
    let goal =
        crate::IntervalsGoal { access_bp: 400, aggrs: 3, min_sample_us: 5_000, max_sample_us: 10_000_000 };
    let mut rig = Rig::new(Attrs { intervals_goal: goal, ..ATTRS }, Rules::V7_3, vec![0; 1000]);
    (0..3).for_each(|_| rig.window());
    assert_eq!((rig.kdamond.attrs().sample_us, rig.kdamond.attrs().aggr_us), (10_000, 200_000));
    assert!(rig.kdamond.targets[0].regions().iter().all(|region| region.age == 1), "3 windows are 1.5");
    (0..60).for_each(|_| rig.window());
    assert_eq!(rig.kdamond.attrs().sample_us, 10_000_000);
}

#[test]
fn new_ranges_are_taken_at_the_update_interval() {
    let attrs = Attrs { update_us: 1_000_000, ..ATTRS };
    let mut rig = Rig::new(attrs, Rules::V7_3, vec![0; 1000]);
    rig.pages.new_ranges = Some(vec![0..100 * PAGE, 500 * PAGE..2000 * PAGE]);
    (0..10).for_each(|_| rig.window());
    assert_eq!(rig.kdamond.targets[0].size(), 1000 * PAGE);
    rig.step();
    check_regions(&rig.kdamond.targets[0], &[0..100 * PAGE, 500 * PAGE..2000 * PAGE]);
}

#[test]
fn service_comes_before_schemes_and_keeps_results() {
    let mut rig = Rig::new(ATTRS, Rules::V7_3, vec![0; 64]);
    rig.kdamond.add_scheme(SchemeSpec::new(Pattern::ANY, Action::Stat));
    rig.window();
    rig.kdamond.ask_service();
    let mut steps = Vec::new();
    loop {
        let step = rig.step();
        if step == Step::Serve {
            rig.kdamond.set_attrs(Attrs { aggr_us: 50_000, ..ATTRS }).unwrap();
            break;
        }
        steps.push(step);
    }
    assert!(steps.iter().all(|step| !matches!(step, Step::Apply(_))));
    assert!(rig.kdamond.targets[0].regions().iter().all(|region| region.age == 2), "1 of 100 ms");
    assert!(rig.kdamond.set_attrs(Attrs { sample_us: 0, ..ATTRS }).is_err());
    assert_eq!(rig.kdamond.attrs().aggr_us, 50_000);
}
