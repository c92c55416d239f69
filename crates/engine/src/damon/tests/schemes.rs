//! Promises of kdamonds that a host adds.

use super::*;
use crate::damos::{
    Action, Attrs, Filter, Goal, Metric, OpsFilter, Pattern, QuotaLimits, Range, SchemeSpec, Tuner,
};
use crate::policy::Policy;

const ADMIN: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// A scheme for what was idle for so many windows.
fn idle(windows: u32, action: Action) -> SchemeSpec {
    SchemeSpec::new(Pattern { nr_accesses: 0..=0, age: windows..=u32::MAX, ..Pattern::ANY }, action)
}

fn one_node() -> Config {
    Config { node_pages: vec![8192], ..Config::default() }
}

/// A fast node without free pages to spare, and a larger one.
fn two_nodes(policy: &str) -> Config {
    Config { node_pages: vec![8192, 8192], policy: Policy::by_name(policy).unwrap(), ..Config::default() }
}

fn kdamond(schemes: Vec<SchemeSpec>) -> KdamondSpec {
    KdamondSpec { schemes, ..KdamondSpec::default() }
}

fn resident(bench: &Bench, object: ObjectId, pages: std::ops::Range<u64>) -> usize {
    pages.filter(|&page| bench.folio(object, page).is_some()).count()
}

/// Uses a part of the heap in each sample until a time.
fn use_until(bench: &mut Bench, ms: u64, pages: std::ops::Range<u64>) {
    while bench.now < ms * MS {
        pages.clone().for_each(|page| bench.access(bench.heap, page));
        bench.run_until((bench.now / MS + 5).min(ms));
    }
}

fn figure(bench: &mut Bench, file: &str) -> u64 {
    bench.engine.read_file(&format!("{ADMIN}/{file}")).unwrap().trim().parse().unwrap()
}

#[test]
fn kdamond_with_what_does_not_exist_is_refused() {
    let refused = |config: Config, spec: KdamondSpec| {
        let mut engine = Engine::new(config).unwrap();
        engine.kdamond_add(spec).unwrap_err().to_string()
    };
    let module = Config { damon_stat: true, ..one_node() };
    assert!(refused(module, KdamondSpec::default()).contains("runs alone"));
    let attrs = Attrs { sample_us: 0, ..Attrs::default() };
    let error = refused(one_node(), KdamondSpec { attrs, ..KdamondSpec::default() });
    assert_eq!(error, "sample interval: found 0, expected at least 1 us");
    let error = refused(one_node(), kdamond(vec![idle(1, Action::MigrateCold(1))]));
    assert_eq!(error, "there is no node 1");
    let quota =
        QuotaLimits { goals: vec![Goal::new(Metric::NodeMemcgUsedBp(0, 7), 1)], ..Default::default() };
    let error = refused(one_node(), kdamond(vec![SchemeSpec { quota, ..idle(1, Action::Pageout) }]));
    assert_eq!(error, "there is no memcg 7");
    let ranges: Vec<Range> = std::iter::once(0..1 << 40).collect();
    let error = refused(one_node(), KdamondSpec { ranges, ..KdamondSpec::default() });
    assert!(error.contains("expected addresses from"), "{error}");
}

#[test]
fn anon_filter_spares_heaps_in_both_orders() {
    for policy in ["classic@6.12", "classic@7.3"] {
        let config = Config { policy: Policy::by_name(policy).unwrap(), ..one_node() };
        let filter = Filter { kind: OpsFilter::Anon, matching: true, allow: false };
        let scheme = SchemeSpec { ops_filters: vec![filter], ..idle(10, Action::Pageout) };
        let mut bench = Bench::with(config, |_, _| Some(kdamond(vec![scheme])));
        (0..1024).for_each(|page| bench.access(bench.read, page));
        (0..1024).for_each(|page| bench.store(page));
        bench.run_until(6_000);
        assert_eq!(resident(&bench, bench.heap, 0..1024), 1024, "{policy}");
        assert!(resident(&bench, bench.read, 0..1024) < 256, "{policy}");
        bench.engine.check_invariants();
    }
}

#[test]
fn filter_that_allows_rejects_before_first_fit() {
    for (policy, spares_heap) in [("classic@6.12", true), ("classic@7.3", false)] {
        let config = Config { policy: Policy::by_name(policy).unwrap(), ..one_node() };
        let filter = Filter { kind: OpsFilter::Anon, matching: true, allow: true };
        let scheme = SchemeSpec { ops_filters: vec![filter], ..idle(10, Action::Pageout) };
        let mut bench = Bench::with(config, |_, _| Some(kdamond(vec![scheme])));
        (0..1024).for_each(|page| bench.access(bench.read, page));
        (0..1024).for_each(|page| bench.store(page));
        bench.run_until(6_000);
        assert_eq!(resident(&bench, bench.heap, 0..1024) == 1024, spares_heap, "{policy}");
        assert_eq!(resident(&bench, bench.read, 0..1024) == 1024, !spares_heap, "{policy}");
    }
}

#[test]
fn cold_pages_migrate_until_the_goal_is_reached() {
    let quota = QuotaLimits {
        bytes: 1 << 20,
        reset_interval_ms: 100,
        goals: vec![Goal::new(Metric::NodeMemFreeBp(0), 8_000)],
        tuner: Tuner::Temporal,
        ..QuotaLimits::default()
    };
    let scheme = SchemeSpec { quota, ..idle(5, Action::MigrateCold(1)) };
    let mut bench = Bench::with(two_nodes("classic@7.3"), |_, _| Some(kdamond(vec![scheme])));
    (0..4096).for_each(|page| bench.store(page));
    bench.run_until(20_000);
    let figures = bench.engine.figures();
    let moved = figures.vmstat(Stat::PgmigrateSuccess);
    let free = figures.node_stat(NodeId(0), Stat::NrFreePages);
    // 4,096 of 8,192 pages were free, and four fifths are to be. An interval moves 256 pages.
    // The goal does not count freed pages that the CPU holds.
    assert!((2_400..3_600).contains(&moved), "{moved}");
    assert!(free > 6_500, "{free}");
    assert_eq!(figures.vmstat(Stat::PgdemoteKswapd) + figures.vmstat(Stat::PgpromoteSuccess), 0);
    assert_eq!(figure(&mut bench, "0/contexts/0/schemes/0/stats/sz_applied"), moved as u64 * PAGE_SIZE);
    assert!(figure(&mut bench, "0/contexts/0/schemes/0/quotas/goals/0/current_value") > 7_500);
    bench.engine.check_invariants();
}

#[test]
fn full_target_keeps_folios_unless_any_node_serves() {
    for (policy, is_moved_within) in [("classic@6.12", false), ("classic@7.2", true), ("classic@7.3", false)]
    {
        let config = Config { node_pages: vec![8192, 512], ..two_nodes(policy) };
        let scheme = idle(5, Action::MigrateCold(1));
        let mut bench = Bench::with(config, |_, _| Some(kdamond(vec![scheme])));
        (0..4096).for_each(|page| bench.store(page));
        bench.run_until(5_000);
        let figures = bench.engine.figures();
        let (moved, failed) = (figures.vmstat(Stat::PgmigrateSuccess), figures.vmstat(Stat::PgmigrateFail));
        assert_eq!(moved > 512, is_moved_within, "{policy}: {moved} moved");
        assert_eq!(failed == 0, is_moved_within, "{policy}: {failed} failed");
        bench.engine.check_invariants();
    }
}

#[test]
fn address_space_of_a_process_is_monitored_alone() {
    let scheme = idle(10, Action::Pageout);
    let mut bench =
        Bench::with(one_node(), |_, mm| Some(KdamondSpec { processes: vec![mm], ..kdamond(vec![scheme]) }));
    (0..1024).for_each(|page| bench.access(bench.read, page));
    (0..2048).for_each(|page| bench.store(page));
    use_until(&mut bench, 8_000, 0..512);
    assert_eq!(resident(&bench, bench.heap, 0..512), 512);
    let cold = resident(&bench, bench.heap, 512..2048);
    assert!(cold < 256, "{cold} of 1,536 idle pages are left");
    assert_eq!(resident(&bench, bench.read, 0..1024), 1024, "no mapping shows them");
    assert_eq!(bench.engine.read_file(&format!("{ADMIN}/0/contexts/0/operations")).unwrap(), "vaddr\n");
    bench.engine.check_invariants();
}

#[test]
fn cold_action_deactivates_pages_of_a_process() {
    let scheme = idle(5, Action::Cold);
    let mut bench =
        Bench::with(one_node(), |_, mm| Some(KdamondSpec { processes: vec![mm], ..kdamond(vec![scheme]) }));
    (0..2048).for_each(|page| bench.store(page));
    let task = bench.task;
    for page in 0..2048 {
        let pfn = bench.folio(bench.heap, page).unwrap();
        bench.engine.enter(task);
        bench.engine.core.lru_activate(pfn);
    }
    bench.engine.core.lru_add_drain();
    assert!(bench.engine.figures().vmstat(Stat::NrActiveAnon) >= 2048);
    bench.run_until(3_000);
    bench.engine.core.lru_add_drain();
    assert_eq!(bench.engine.figures().vmstat(Stat::NrActiveAnon), 0);
    assert!(figure(&mut bench, "0/contexts/0/schemes/0/stats/sz_applied") >= 2048 * PAGE_SIZE);
    bench.engine.check_invariants();
}

#[test]
fn thread_ends_with_the_last_of_its_processes() {
    let mut bench = Bench::with(one_node(), |_, mm| {
        Some(KdamondSpec { processes: vec![mm], ..kdamond(vec![idle(1, Action::Stat)]) })
    });
    (0..64).for_each(|page| bench.store(page));
    bench.run_until(1_000);
    let tried = |bench: &mut Bench| figure(bench, "0/contexts/0/schemes/0/stats/nr_tried");
    assert!(tried(&mut bench) > 0);
    let _ = bench.engine.task_exit(bench.task);
    bench.carry_out();
    bench.run_until(1_200);
    assert_eq!(bench.due, u64::MAX, "it waits for nothing");
    let before = tried(&mut bench);
    bench.run_until(2_000);
    assert_eq!(tried(&mut bench), before);
}

#[test]
fn every_file_of_a_kdamond_shows_its_setting() {
    let quota = QuotaLimits { goals: vec![Goal::new(Metric::NodeMemUsedBp(0), 9_970)], ..Default::default() };
    let filter = Filter { kind: OpsFilter::Young, matching: true, allow: false };
    let scheme = SchemeSpec { quota, ops_filters: vec![filter], ..idle(7, Action::Pageout) };
    let mut bench = Bench::with(one_node(), |_, _| Some(kdamond(vec![scheme])));
    let mut shown = |file: &str| bench.engine.read_file(&format!("{ADMIN}/{file}"));
    for file in damon_files() {
        let path = file.path.replace('*', "0");
        let exists = !path.contains("core_filters/0") && !path.contains("regions/0");
        assert_eq!(shown(&path).is_ok(), exists, "{path}");
    }
    for (file, text) in [
        ("nr_kdamonds", "1\n"),
        ("0/contexts/0/schemes/0/action", "pageout\n"),
        ("0/contexts/0/schemes/0/access_pattern/age/min", "7\n"),
        ("0/contexts/0/schemes/0/quotas/goals/0/target_metric", "node_mem_used_bp\n"),
        ("0/contexts/0/schemes/0/ops_filters/0/type", "young\n"),
        ("0/contexts/0/schemes/0/ops_filters/0/matching", "Y\n"),
        ("0/contexts/0/schemes/0/target_nid", "-1\n"),
    ] {
        assert_eq!(shown(file).unwrap(), text, "{file}");
    }
    for path in ["1/state", "0/contexts/0/schemes/1/action", "00/state", "0/stat", "0/contexts/1/operations"]
    {
        assert!(shown(path).is_err(), "{path}");
    }
}

#[test]
fn memory_stall_of_the_host_reaches_a_goal() {
    let goal = Goal::new(Metric::SomeMemPsiUs, 10_000);
    let quota = QuotaLimits { reset_interval_ms: 100, goals: vec![goal], ..QuotaLimits::default() };
    let scheme = SchemeSpec { quota, ..idle(1, Action::Pageout) };
    let mut bench = Bench::with(one_node(), |_, _| Some(kdamond(vec![scheme])));
    assert!(bench.engine.kdamonds()[0].needs_memory_stall());
    for ms in 1..=20 {
        bench.engine.set_memory_stall(Nanos(ms * 2 * MS));
        bench.run_until(ms * 100);
    }
    let current = figure(&mut bench, "0/contexts/0/schemes/0/quotas/goals/0/current_value");
    assert_eq!(current, 2_000, "2 ms of stall per interval");
}
