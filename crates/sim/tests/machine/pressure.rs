//! Pressure as a machine's tasks bring it about.

use pageout_engine::{CpuId, Nanos};
use pageout_sim::scenario::Scenario;
use pageout_sim::{Pressure, Repeat, Report, TimedAction, TimedEvent};
use pageout_workload::Access;
use pageout_workload::rng::SplitMix64;

use crate::rig::{Rig, pages};

fn of<'a>(report: &'a Report, group: &str) -> &'a Pressure {
    report.pressure.iter().find(|pressure| pressure.group == group).unwrap()
}

/// Collections round down, one at most every two seconds.
fn is_close(left: Nanos, right: Nanos) -> bool {
    left.0.abs_diff(right.0) < 1_000
}

#[test]
fn two_tasks_on_one_cpu_lack_it_for_as_long_as_they_wait_for_it() {
    let mut rig = Rig::new();
    for _ in 0..2 {
        let file = rig.file(10);
        rig.reader("hitter", "/job", file, pages(0..10), 100_000);
    }
    let switch = rig.spec.costs.context_switch;
    let report = rig.run();
    // During a switch both wait, and it counts once.
    let waited = report.tasks[0].cpu_wait + report.tasks[1].cpu_wait;
    let waited = Nanos(waited.0 - report.context_switches * switch);
    let pressure = of(&report, "/");
    assert!(is_close(pressure.cpu.some, waited), "{pressure:?} {waited}");
    assert_eq!(pressure.cpu.full, Nanos::ZERO);
    assert_eq!(of(&report, "/job").cpu.some, pressure.cpu.some);
}

#[test]
fn a_task_alone_lacks_io_while_it_reads_and_memory_while_it_reclaims() {
    let mut rig = Rig::new();
    rig.limit("/job", 1_000);
    let file = rig.file(20_000);
    // Each page once: nothing comes back, so no read is for want of memory.
    rig.reader("scan", "/job", file, pages(0..20_000), 1);
    let report = rig.run();
    let (task, pressure) = (&report.tasks[0], of(&report, "/job"));
    assert!(is_close(pressure.io.some, task.io_wait), "{pressure:?} {task:?}");
    assert_eq!(pressure.io.some, pressure.io.full);
    assert!(task.reclaim_time > Nanos(1_000_000), "{task:?}");
    assert!(is_close(pressure.memory.full, task.reclaim_time), "{pressure:?} {task:?}");
    assert_eq!(pressure.memory.some, pressure.memory.full);
    assert_eq!(pressure.cpu.some, Nanos::ZERO);
}

#[test]
fn refaults_of_the_working_set_are_want_of_memory_and_first_reads_are_not() {
    let run = |accesses: u64| {
        let mut rig = Rig::new();
        rig.limit("/job", 500);
        let file = rig.file(1_600);
        // A hot half and a cold one, of which 500 pages fit.
        let page =
            |round: u64| if round.is_multiple_of(3) { 800 + round / 3 * 11 % 800 } else { round * 7 % 400 };
        rig.reader("reader", "/job", file, pages((0..accesses).map(page)), 1);
        rig.run()
    };
    let (once, often) = (run(400), run(200_000));
    let stalled_reading = |report: &Report| of(report, "/job").memory.some.0 - report.tasks[0].reclaim_time.0;
    assert!(stalled_reading(&once) < 1_000, "{once:?}");
    assert!(stalled_reading(&often) > often.tasks[0].io_wait.0 / 100, "{often:?}");
}

/// Stretches of four pages: of a hot part of 400 pages twice as often as of a cold one. 500 fit, so that active pages leave and come back.
fn hot_and_cold(stretches: u64) -> Vec<Access> {
    let mut rng = SplitMix64::new(1);
    let stretch = |_| if rng.below(3) == 0 { 100 + rng.below(300) } else { rng.below(100) };
    pages((0..stretches).map(stretch).flat_map(|stretch| stretch * 4..stretch * 4 + 4))
}

#[test]
fn who_waits_for_pages_of_the_working_set_lacks_memory_and_for_first_reads_only_io_read_ahead_or_not() {
    let run = |ra_pages: u32, accesses: Vec<Access>| {
        let mut rig = Rig::new();
        rig.limit("/job", 500);
        let file = rig.file_read_ahead(10_000, ra_pages);
        rig.reader("reader", "/job", file, accesses, 1);
        let report = rig.run();
        let (task, pressure) = (&report.tasks[0], of(&report, "/job"));
        assert!(is_close(pressure.io.some, task.io_wait), "{pressure:?} {task:?}");
        (pressure.memory.some.0 - task.reclaim_time.0, task.io_wait.0)
    };
    for ra_pages in [0, 32] {
        let (stalled, waited) = run(ra_pages, pages(0..8_000));
        assert!(stalled < 1_000 && waited > 1_000_000, "{ra_pages} ahead, once: {stalled} of {waited}");
        let (stalled, waited) = run(ra_pages, hot_and_cold(50_000));
        assert!(stalled > waited / 50 && stalled < waited, "{ra_pages} ahead, again: {stalled} of {waited}");
    }
}

#[test]
fn who_decompresses_pages_of_the_working_set_lacks_memory_and_no_io() {
    let run = |ops: u64| {
        let text = format!(
            r#"{{
                "swap": [{{"kind": "zram", "size": "64MiB"}}],
                "memcg": [{{"path": "/job", "memory.max": "4MiB"}}],
                "task": [{{"name": "writer", "memcg": "/job", "think_time": "100us", "object":
                    [{{"channel": "anonymous", "size": "8MiB", "workload": {{"pattern": "zipf", "ops": {ops}}}}}]}}]
            }}"#
        );
        let scenario: Scenario = serde_json::from_str(&text).unwrap();
        assert_eq!(scenario.validate(), []);
        let mut machine = scenario.build().unwrap();
        machine.run(&mut ()).unwrap();
        let vmstat = machine.read_file("/proc/vmstat").unwrap();
        let count = |name: &str| {
            let line = vmstat.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().parse::<u64>().unwrap()
        };
        let report = machine.report();
        let (task, pressure) = (&report.tasks[0], of(&report, "/job"));
        assert_eq!(pressure.io.some, Nanos::ZERO);
        assert_eq!(pressure.memory.some, pressure.memory.full);
        let (swapped_in, restored) = (count("pswpin "), count("workingset_restore_anon "));
        let (_, decompressing) = report.spent.by_unit.iter().find(|(of, _)| *of == "decompressed").unwrap();
        let stalled = pressure.memory.full.0.saturating_sub(task.reclaim_time.0);
        (stalled, swapped_in, decompressing.0 * restored / swapped_in.max(1))
    };
    let (stalled, swapped_in, restoring) = run(8_000);
    assert!(stalled < 1_000 && swapped_in > 100 && restoring == 0, "{stalled} ns, {swapped_in} pages");
    let (stalled, swapped_in, restoring) = run(100_000);
    assert!(restoring > 1_000_000, "{restoring} ns, {swapped_in} pages");
    // One in 32 belongs to a step that reclaims, and so is a part of that.
    assert!(stalled > restoring / 10 * 9 && stalled <= restoring, "{stalled} of {restoring} ns");
}

#[test]
fn a_stall_on_one_cpu_counts_half_beside_a_task_that_is_never_idle_on_another() {
    let mut rig = Rig::new();
    let cold = rig.file(20_000);
    rig.reader("reader", "/job", cold, pages((0..20_000).rev()), 1);
    let hot = rig.file(10);
    rig.reader("hitter", "/job", hot, pages(0..10), u32::MAX);
    rig.tasks[1].cpu = CpuId(1);
    rig.tasks[1].background = true;
    let report = rig.run();
    let half = Nanos(report.tasks[0].io_wait.0 / 2);
    let pressure = of(&report, "/job");
    // The hitter waits for its first ten pages, and the weights are whole ticks.
    assert!(pressure.io.some.0.abs_diff(half.0) < half.0 / 50, "{pressure:?} {half}");
}

#[test]
fn memory_high_is_want_of_memory_while_it_sleeps() {
    let mut rig = Rig::new();
    rig.anon("writer", "/job", 600, pages(0..600));
    rig.high("/job", 300);
    let report = rig.run();
    let (task, pressure) = (&report.tasks[0], of(&report, "/job"));
    assert!(task.delays.memory_high > Nanos(10_000_000), "{task:?}");
    assert!(pressure.memory.full >= task.delays.memory_high, "{pressure:?} {task:?}");
}

#[test]
fn pressure_is_read_by_events_in_the_kernels_format() {
    let mut rig = Rig::new();
    let file = rig.file(100_000);
    rig.reader("reader", "/job", file, pages((0..100_000).rev()), 1);
    for path in ["/proc/pressure/io", "/sys/fs/cgroup/job/io.pressure", "/sys/fs/cgroup/cpu.pressure"] {
        let action = TimedAction::Read { path: path.to_string() };
        rig.events.push(TimedEvent {
            at: Nanos(2_100_000_000),
            when: None,
            repeat: Repeat::Never,
            shell: None,
            action,
        });
    }
    let report = rig.run();
    let [machine, job, cpu] = &report.reads[..] else { panic!("{:?}", report.reads) };
    assert_eq!(machine.text, job.text);
    assert!(machine.text.starts_with("some avg10="), "{}", machine.text);
    let total = machine.text.lines().next().unwrap().rsplit_once("total=").unwrap().1;
    // As of the worker's visit after two seconds and a tick.
    assert!((1_000_000..2_004_000).contains(&total.parse::<u64>().unwrap()), "{total}");
    let nothing = "avg10=0.00 avg60=0.00 avg300=0.00 total=0";
    assert_eq!(cpu.text, format!("some {nothing}\nfull {nothing}\n"));
}
