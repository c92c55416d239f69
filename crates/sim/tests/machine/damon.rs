//! What a kdamond costs, and the regions that a report shows.

use pageout_engine::Nanos;
use pageout_sim::Report;
use pageout_sim::scenario::Scenario;

/// A task that uses 8 MiB for 10 seconds with an access each 20 us, whatever it stands for, and a kdamond with 100 to 150 regions.
fn run(page_stands_for: u64, schemes: &str) -> Report {
    let think_time = 20_000 - 173 * page_stands_for;
    let text = format!(
        r#"{{
            "kernel": {{"profile": "classic@7.3"}},
            "machine": {{"cpus": 2, "memory": "64MiB", "page_stands_for": {page_stands_for}}},
            "damon": [{{"nr_regions": {{"min": 100, "max": 150}}, "scheme": [{schemes}]}}],
            "task": [{{"name": "server", "think_time": "{think_time}ns", "object":
                [{{"channel": "anonymous", "size": "8MiB", "workload": {{"pattern": "uniform", "ops": 500000}}}}]}}]
        }}"#
    );
    let scenario: Scenario = serde_json::from_str(&text).unwrap();
    assert_eq!(scenario.validate(), []);
    let mut machine = scenario.build().unwrap();
    machine.watch_heat();
    machine.run(&mut ()).unwrap();
    machine.report()
}

/// CPU time of the kdamond in 1/1,000,000 of the run, and that of these units of work.
fn share(report: &Report, units: &[&str]) -> (u64, u64) {
    let kdamond = report.threads.iter().find(|thread| thread.name == "kdamond.0").unwrap();
    let of = |time: Nanos| time.0 * 1_000_000 / report.end.0;
    let spent = kdamond.spent.by_unit.iter().filter(|(unit, _)| units.contains(unit));
    (of(kdamond.cpu_time), of(Nanos(spent.map(|(_, time)| time.0).sum())))
}

#[test]
fn kdamond_without_schemes_costs_the_same_whatever_a_page_stands_for() {
    let samples = ["damon_samples", "damon_sample_steps"];
    let (alone, of_samples) = share(&run(1, ""), &samples);
    assert!(alone > 3_000 && of_samples > alone / 2, "{alone} and {of_samples} ppm");
    for page_stands_for in [16, 64] {
        let (many, of_samples) = share(&run(page_stands_for, ""), &samples);
        assert!(many.abs_diff(alone) < alone / 20, "{page_stands_for}: {many} ppm, {alone} at 1");
        assert!(of_samples > many / 2, "{page_stands_for}: {of_samples} of {many} ppm");
    }
}

#[test]
fn pages_that_a_scheme_looks_at_cost_as_many_times_as_they_stand_for() {
    let scheme = r#"{"action": "stat", "filter": [{"kind": "young"}]}"#;
    let looks = ["damon_pages", "rmap_steps"];
    let (_, one) = share(&run(1, scheme), &looks);
    let (_, many) = share(&run(16, scheme), &looks);
    // Windows are longer where the scheme takes a quarter of a CPU.
    assert!(one > 1_000 && (8 * one..20 * one).contains(&many), "{one} and {many} ppm");
}

#[test]
fn report_has_the_regions_of_a_kdamond_over_the_accesses_to_its_addresses() {
    let report = run(16, "");
    let [map] = &report.damon_maps[..] else { panic!("{:?}", report.damon_maps) };
    assert_eq!(map.name, "kdamond.0, physical memory");
    let accesses: u64 = map.accesses.iter().flatten().sum();
    assert!((490_000..=500_000).contains(&accesses), "{accesses}");
    assert!((32..=64).contains(&map.windows.len()), "{} windows", map.windows.len());
    assert!(map.windows.is_sorted_by_key(|window| window.at));
    for window in &map.windows {
        let regions = &window.regions;
        assert!((50..=150).contains(&regions.len()), "{} regions", regions.len());
        assert!(regions.windows(2).all(|pair| pair[0].end == pair[1].start), "{regions:?}");
        assert_eq!(regions[0].start, map.first);
        assert!(regions.iter().all(|region| region.nr_accesses <= window.samples));
    }
    let last = &map.windows.last().unwrap().regions;
    assert!(last.iter().any(|region| region.nr_accesses > 0), "the task uses its memory: {last:?}");
}
