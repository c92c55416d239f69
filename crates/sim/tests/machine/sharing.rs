//! Tasks side by side: CPUs, order, pages that several wait for.

use pageout_engine::{CpuId, Nanos};
use pageout_sim::Pace;
use pageout_sim::cost::Costs;

use crate::rig::{Rig, pages};

/// Two readers of resident files of their own, on these CPUs; the time each took.
fn two_hitters(cpus: [u16; 2]) -> [u64; 2] {
    let mut rig = Rig::new();
    for cpu in cpus {
        let file = rig.file(10);
        rig.reader("hitter", "/job", file, pages(0..10), 10_000);
        rig.tasks.last_mut().unwrap().cpu = CpuId(cpu);
    }
    let report = rig.run();
    [report.tasks[0].runtime.0, report.tasks[1].runtime.0]
}

#[test]
fn two_tasks_on_one_cpu_take_twice_as_long_as_on_two() {
    let (apart, together) = (two_hitters([0, 1]), two_hitters([0, 0]));
    let ratio = together[1] as f64 / apart[1] as f64;
    assert!((1.95..2.05).contains(&ratio), "{apart:?} {together:?}");
    // Neither runs to its end before the other gets a turn.
    assert!(together[0] as f64 > 1.9 * apart[0] as f64, "{apart:?} {together:?}");
}

#[test]
fn two_tasks_on_one_cpu_share_it_by_the_weights_of_their_nice_values() {
    let mut rig = Rig::new();
    for nice in [0, 5] {
        let file = rig.file(10);
        rig.reader("hitter", "/job", file, pages(0..10), u32::MAX);
        rig.tasks.last_mut().unwrap().nice = nice;
    }
    let mut machine = rig.machine();
    machine.run_until(Nanos(2_000_000_000), &mut ()).unwrap();
    let tasks = machine.report().tasks;
    // 1024 to 336, and what is left goes into switches.
    let ratio = tasks[0].cpu_time.0 as f64 / tasks[1].cpu_time.0 as f64;
    assert!((ratio - 1024.0 / 336.0).abs() < 0.02, "{ratio}");
    let both = tasks[0].cpu_time + tasks[1].cpu_time;
    assert!((1_990_000_000..=2_000_000_000).contains(&both.0), "{both}");
}

#[test]
fn a_sleeper_preempts_a_hog_within_a_quantum_and_a_switch() {
    let wait_of_sleeper = |wakeup_granularity| {
        let mut rig = Rig::new();
        rig.spec.sched.wakeup_granularity = Nanos(wakeup_granularity);
        let cold = rig.file(100);
        rig.reader("sleeper", "/job", cold, pages(0..100), 1);
        // Every 10 ms one read, long before which it sleeps again.
        rig.tasks[0].pace = Pace::Timetable(vec![(0, Nanos::ZERO), (100, Nanos(1_000_000_000))]);
        let hot = rig.file(10);
        rig.reader("hog", "/job", hot, pages(0..10), u32::MAX);
        rig.tasks[1].background = true;
        let (quantum, switch) = (rig.spec.quantum.0, rig.spec.costs.context_switch);
        let sleeper = rig.run().tasks.remove(0);
        // It wakes twice for each page: at its time, and when the page has been read.
        (sleeper.cpu_wait.0 / 200, quantum + switch + 2_000)
    };
    let (wait, bound) = wait_of_sleeper(1_000_000);
    assert!(wait <= bound, "{wait} > {bound}");
    let (wait, bound) = wait_of_sleeper(3_000_000);
    assert!(wait > 5 * bound, "without preemption it waits for the end of slices: {wait}");
}

#[test]
fn tasks_that_may_migrate_take_turns_on_fewer_cpus_and_none_is_left_idle() {
    let mut rig = Rig::new();
    for _ in 0..6 {
        let file = rig.file(10);
        rig.reader("hitter", "/job", file, pages(0..10), u32::MAX);
        rig.tasks.last_mut().unwrap().migrates = true;
    }
    let mut machine = rig.machine();
    machine.run_until(Nanos(3_000_000_000), &mut ()).unwrap();
    for task in machine.report().tasks {
        let share = task.cpu_time.0 as f64 / 3e9;
        assert!((share - 4.0 / 6.0).abs() < 0.01, "{share}");
    }
}

#[test]
fn a_task_that_waits_for_a_device_leaves_its_cpu_to_others() {
    let mut rig = Rig::new();
    let cold = rig.file(10_000);
    rig.reader("misser", "/job", cold, pages(0..10_000), 1);
    let hot = rig.file(10);
    rig.reader("hitter", "/job", hot, pages(0..10), 30_000);
    let report = rig.run();
    let (misser, hitter) = (&report.tasks[0], &report.tasks[1]);
    assert!(misser.io_wait.0 > misser.runtime.0 / 10, "{misser:?}");
    assert!(hitter.cpu_wait.0 < hitter.runtime.0 / 4, "{hitter:?}");
}

#[test]
fn tasks_that_miss_the_same_page_share_one_read() {
    let mut rig = Rig::new();
    let file = rig.file(1);
    for cpu in 0..3 {
        rig.reader("reader", "/job", file, pages([0]), 1);
        rig.tasks.last_mut().unwrap().cpu = CpuId(cpu);
    }
    let report = rig.run();
    assert_eq!(report.devices[0].read.count, 1);
    assert!(report.tasks.iter().all(|task| task.accesses == 1 && task.io_wait > Nanos::ZERO), "{report:?}");
}

#[test]
fn a_background_task_does_not_keep_the_run_going() {
    let mut rig = Rig::new();
    let file = rig.file(10);
    rig.reader("background", "/job", file, pages(0..10), u32::MAX);
    rig.reader("foreground", "/job", file, pages(0..10), 1_000);
    rig.tasks[0].background = true;
    rig.tasks[1].cpu = CpuId(1);
    let report = rig.run();
    assert_eq!(report.tasks[0].ended, None);
    assert_eq!(report.tasks[1].ended, Some(report.end));
    assert!(report.tasks[0].accesses > 5_000);
}

#[test]
fn the_quantum_bounds_how_far_hits_run_ahead_and_changes_little() {
    let run = |quantum| {
        let mut rig = Rig::new();
        rig.spec.quantum = Nanos(quantum);
        rig.limit("/job", 500);
        let file = rig.file(700);
        for cpu in 0..2 {
            rig.reader("reader", "/job", file, pages((0..700).chain(0..300)), 5);
            rig.tasks.last_mut().unwrap().cpu = CpuId(cpu);
        }
        rig.run()
    };
    let (exact, ahead) = (run(0), run(100_000));
    assert_eq!(exact.accesses, ahead.accesses);
    let ratio = exact.end.0 as f64 / ahead.end.0 as f64;
    assert!((0.9..1.1).contains(&ratio), "{} {}", exact.end, ahead.end);
}

#[test]
fn without_costs_nothing_takes_time_but_devices() {
    let mut rig = Rig::new();
    rig.spec.costs = Costs::free();
    let file = rig.file(100);
    rig.reader("reader", "/job", file, pages(0..100), 50);
    let report = rig.run();
    assert_eq!(report.tasks[0].cpu_time, Nanos::ZERO);
    assert_eq!(report.end, report.devices[0].read.total);
}

#[test]
fn a_reclaim_call_runs_to_its_end_though_another_task_has_brought_the_page_in() {
    let mut rig = Rig::new();
    rig.limit("/job", 1_000);
    let file = rig.file(2_000);
    for cpu in 0..2 {
        rig.reader("reader", "/job", file, pages(0..2_000), 3);
        rig.tasks.last_mut().unwrap().cpu = CpuId(cpu);
    }
    let report = rig.run();
    assert!(report.reclaim.count > 50, "{report:?}");
    assert_eq!(report.work.reclaim_calls, report.reclaim.count);
    let each = report.work.reclaimed as f64 / report.work.reclaim_calls as f64;
    assert!(each >= 32.0, "{each} pages reclaimed a call");
    for task in &report.tasks {
        assert!(task.reclaim_time + task.io_wait <= task.runtime, "{task:?}");
    }
}
