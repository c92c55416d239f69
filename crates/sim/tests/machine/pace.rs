//! When accesses start: prices, thinking, start times and timetables; and what is tied to their numbers.

use pageout_engine::Nanos;
use pageout_sim::{BuildError, Pace};

use crate::rig::{Rig, pages};

fn hits_of_one_page(count: u64) -> Rig {
    let mut rig = Rig::new();
    let file = rig.file(1);
    rig.reader("reader", "/job", file, pages((0..count).map(|_| 0)), 1);
    rig
}

#[test]
fn a_hit_takes_its_price_and_the_time_to_think() {
    let plain = hits_of_one_page(10_001).run();
    let shorter = hits_of_one_page(1).run();
    let mut thinker = hits_of_one_page(10_001);
    thinker.tasks[0].think_time = Nanos(1_000);
    let thinker = thinker.run();
    // The first access misses; what it takes apart from that is in all three.
    assert_eq!(plain.end.0 - shorter.end.0, 10_000 * 860);
    assert_eq!(thinker.end.0 - shorter.end.0, 10_000 * 1_860 + 1_000);
}

#[test]
fn a_task_starts_when_it_is_told() {
    let mut rig = hits_of_one_page(10);
    let at_once = hits_of_one_page(10).run();
    rig.tasks[0].start = Nanos(5_000_000);
    let later = rig.run();
    assert_eq!(later.tasks[0].runtime, at_once.tasks[0].runtime);
    assert_eq!(later.end.0, at_once.end.0 + 5_000_000);
}

#[test]
fn a_timetable_sets_the_clock_where_it_is_slower_than_the_machine() {
    let mut rig = hits_of_one_page(10_001);
    rig.tasks[0].pace =
        Pace::Timetable(vec![(0, Nanos(1_000)), (5_000, Nanos(50_000_000)), (10_000, Nanos(1_000_000_000))]);
    let report = rig.run();
    assert_eq!(report.end, Nanos(1_000_000_000 + 860));
    assert_eq!(report.tasks[0].idle.0 + report.tasks[0].cpu_time.0 + report.tasks[0].io_wait.0, report.end.0);
}

#[test]
fn a_timetable_faster_than_the_machine_does_not_speed_it_up() {
    let mut rig = hits_of_one_page(10_001);
    rig.tasks[0].pace = Pace::Timetable(vec![(0, Nanos(0)), (10_000, Nanos(10_000))]);
    assert_eq!(rig.run().end, hits_of_one_page(10_001).run().end);
}

#[test]
fn a_bad_timetable_is_refused_by_task() {
    let mut rig = hits_of_one_page(1);
    rig.tasks[0].pace = Pace::Timetable(Vec::new());
    let mut machine = pageout_sim::Machine::new(rig.engine, rig.spec).unwrap();
    let error = machine.task_add(rig.tasks.remove(0)).unwrap_err();
    assert!(matches!(error, BuildError::Pace { .. }));
    assert_eq!(error.to_string(), "task `reader`: the timetable has no points");
}

#[test]
fn flushes_and_reads_tied_to_accesses_cost_the_task_nothing() {
    let mut rig = hits_of_one_page(10_000);
    rig.tasks[0].flush_before = vec![7_777, 0, 100, 100];
    let path = "/sys/fs/cgroup/job/memory.stat".to_string();
    rig.tasks[0].stat_reads_at = vec![(5_000, path), (100, "/proc/vmstat".to_string())];
    let (marked, plain) = (rig.run(), hits_of_one_page(10_000).run());
    assert_eq!(marked.end, plain.end);
    assert_eq!(marked.tasks, plain.tasks);
    assert!(marked.kernel_time > plain.kernel_time);
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_time() {
    let mut rig = hits_of_one_page(10);
    rig.tasks[0].stat_reads_at = vec![(5, "/proc/nothing".to_string())];
    let text = rig.start().1.unwrap_err().to_string();
    assert!(text.contains(" into the run: /proc/nothing: no such file"), "{text}");
}
