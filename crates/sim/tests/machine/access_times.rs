//! How long accesses take, and to what they lose their time.

use pageout_engine::{CpuId, Nanos, SwapKind};
use pageout_sim::cost::Channel;
use pageout_sim::device::Latency;
use pageout_sim::{AccessReport, Calls, Cause, Report, TaskReport};
use pageout_workload::Access;

use crate::rig::{Rig, pages};

fn lost(access: &AccessReport, cause: Cause) -> Nanos {
    access.by_cause.iter().find(|(of, _)| *of == cause).map_or(Nanos::ZERO, |(_, lost)| lost.total)
}

/// What accesses took and lost adds up, and so does what the task did beside them. After its last access it may have a batch to drain.
#[track_caller]
fn check_sums(task: &TaskReport, think_time: Nanos) -> AccessReport {
    let access = task.access.as_ref().unwrap().report();
    let causes = access.by_cause.iter().fold(access.own_work, |sum, (_, lost)| sum + lost.total);
    assert_eq!(causes, access.all.total, "{access:?}");
    let beside = Nanos(think_time.0 * task.accesses) + task.idle + access.syncs.total;
    let rest = task.thread_time.0 - (access.all.total + beside).0;
    assert!(rest < 10_000, "{rest} ns are nowhere: {task:?}");
    access
}

fn only(report: &Report) -> AccessReport {
    check_sums(&report.tasks[0], Nanos::ZERO)
}

#[test]
fn on_a_device_that_always_takes_as_long_the_median_of_what_reads_lose_is_that() {
    let mut rig = Rig::new();
    (rig.spec.devices[0].read, rig.spec.devices[0].tail) = (Latency::Constant(Nanos(250_000)), None);
    let file = rig.file(100);
    rig.reader("reader", "/job", file, pages(0..100), 2);
    let (hit, access) = (rig.spec.costs.file_hit, only(&rig.run()));
    let [(Cause::DeviceRead, read)] = access.by_cause[..] else { panic!("{access:?}") };
    assert_eq!((read.count, read.p50, read.p999, read.max), (100, read.max, read.max, Nanos(250_000)));
    assert_eq!(access.all.count, 200);
    assert_eq!(access.all.p50, Nanos(hit | 3), "as many hits as misses, and buckets of 4 ns");
    assert!(access.all.p99 >= Nanos(250_000 + hit) && access.all.max < Nanos(254_000), "{access:?}");
    assert_eq!(
        (access.slowest.count, &access.slowest.by_cause[..]),
        (100, &[(Cause::DeviceRead, read.total)][..])
    );
}

#[test]
fn every_nanosecond_of_tasks_that_hinder_each_other_has_a_cause() {
    let mut rig = Rig::with_swap(SwapKind::Synchronous);
    rig.limit("/job", 1_000);
    rig.high("/job", 800);
    let file = rig.file(2_000);
    for name in ["first", "second", "third"] {
        rig.reader(name, "/job", file, pages(0..2_000), 2);
    }
    rig.anon("heap", "/job", 500, pages((0..500).chain(0..500)));
    rig.tasks[1].cpu = CpuId(1);
    rig.tasks[1].think_time = Nanos(700);
    rig.tasks[2].start = Nanos(10_000_000);
    let report = rig.run();
    for task in &report.tasks {
        let think_time = if task.name == "second" { Nanos(700) } else { Nanos::ZERO };
        let access = check_sums(task, think_time);
        assert_eq!(access.all.count, task.accesses);
        assert_eq!(lost(&access, Cause::Cpu), task.cpu_wait);
        assert_eq!(lost(&access, Cause::MemoryHigh), task.delays.memory_high);
        let io = [Cause::DeviceRead, Cause::OthersRead].map(|cause| lost(&access, cause).0);
        assert_eq!(io.iter().sum::<u64>(), task.io_wait.0, "{access:?}");
        assert!(lost(&access, Cause::DirectReclaim) <= task.reclaim_time, "without the CPU's waits");
    }
    let group = report.accesses_by_memcg["/job"].report();
    assert_eq!(group.all.count, report.accesses);
    assert_eq!(
        group.all.max,
        report.tasks.iter().map(|task| task.access.as_ref().unwrap().report().all.max).max().unwrap()
    );
}

#[test]
fn who_comes_for_a_page_that_another_reads_waits_for_that_and_who_has_read_ahead_for_the_device() {
    let mut rig = Rig::new();
    let file = rig.file(100);
    for name in ["first", "second"] {
        rig.reader(name, "/job", file, pages(0..100), 1);
    }
    rig.tasks[1].cpu = CpuId(1);
    let [first, second] = &rig.run().tasks[..] else { panic!("two tasks") };
    assert_eq!(lost(&first.access.as_ref().unwrap().report(), Cause::OthersRead), Nanos::ZERO);
    let second = second.access.as_ref().unwrap().report();
    assert!(lost(&second, Cause::OthersRead) > lost(&second, Cause::DeviceRead), "{second:?}");

    let mut rig = Rig::new();
    let file = rig.file_read_ahead(1_000, 32);
    rig.reader("alone", "/job", file, pages(0..1_000), 1);
    let alone = only(&rig.run());
    assert!(matches!(alone.by_cause[..], [(Cause::DeviceRead, _)]), "{alone:?}");
}

#[test]
fn a_page_from_swap_is_swapped_in_whether_it_is_read_or_decompressed() {
    for kind in [SwapKind::Synchronous, SwapKind::Device, SwapKind::File] {
        let mut rig = Rig::with_swap(kind);
        rig.limit("/job", 200);
        rig.anon("heap", "/job", 400, pages((0..400).chain(0..400)));
        let decompress = rig.spec.costs.decompress;
        let report = rig.run();
        let access = only(&report);
        let swapped_in = lost(&access, Cause::SwapIn);
        let reads = report.tasks[0].major;
        match kind {
            SwapKind::Synchronous => assert!(swapped_in.0 > 0 && swapped_in.0.is_multiple_of(decompress)),
            SwapKind::Device | SwapKind::File => {
                assert!(swapped_in.0 > reads * 20_000, "{swapped_in} of {reads} reads")
            }
        }
        assert!(lost(&access, Cause::DirectReclaim) > Nanos(100_000), "{access:?}");
        assert_eq!(lost(&access, Cause::DeviceRead), Nanos::ZERO);
    }
}

#[test]
fn a_call_of_several_pages_is_one_access() {
    let mut rig = Rig::new();
    let file = rig.file(100);
    rig.reader("reader", "/job", file, pages(0..100), 3);
    rig.tasks[0].calls = vec![Calls::of(16, 100)];
    rig.tasks[0].channels = vec![Channel::FileCalls { pages: 16 }];
    let page = rig.spec.costs.hit(Channel::FileCalls { pages: 16 });
    let report = rig.run();
    let access = only(&report);
    assert_eq!((report.tasks[0].accesses, access.all.count), (300, 21), "6 calls of 16 pages and one of 4");
    let p50 = access.all.p50.0;
    assert!((page.0 * 16..=page.0 * 16 * 101 / 100).contains(&p50), "{p50} for 16 hits of {page}");
    let [(Cause::DeviceRead, read)] = access.by_cause[..] else { panic!("{access:?}") };
    assert_eq!(read.count, 7, "each call of the first loop waits for all of its pages");
}

#[test]
fn hits_stand_at_the_price_of_their_object() {
    let mut rig = Rig::new();
    let file = rig.file(10);
    let both = (0..1_000).map(|at| Access::new(at % 4 / 3, u64::from(at % 10), false)).collect();
    rig.reader("reader", "/job", file, both, 1);
    rig.engine.open(rig.tasks[0].task, file).unwrap();
    rig.tasks[0].channels = vec![Channel::File, Channel::Mapped];
    rig.tasks[0].think_time = Nanos(90);
    let (file_hit, mapped_hit) = (rig.spec.costs.file_hit, rig.spec.costs.mapped_hit);
    let report = rig.run();
    let access = check_sums(&report.tasks[0], Nanos(90));
    assert_eq!((access.all.count, access.all.p50), (1_000, Nanos(file_hit | 3)));
    assert!(access.own_work.0 > 740 * file_hit + 250 * mapped_hit, "{access:?}");
}

#[test]
fn a_wait_for_a_cpu_between_two_accesses_is_part_of_the_second() {
    let mut rig = Rig::new();
    for _ in 0..2 {
        let file = rig.file(10);
        rig.reader("hitter", "/job", file, pages(0..10), 10_000);
    }
    for task in &rig.run().tasks {
        let access = check_sums(task, Nanos::ZERO);
        assert_eq!(access.all.count, 100_000);
        assert_eq!(lost(&access, Cause::Cpu), task.cpu_wait);
        assert!(access.all.max > Nanos(1_000_000), "the other's time slice: {access:?}");
    }
}

#[test]
fn a_task_that_syncs_is_told_of_its_calls_beside_its_accesses() {
    let mut rig = Rig::new();
    let file = rig.file(64);
    let writes = (0..64).map(|page| Access::new(0, page, true)).collect();
    rig.reader("log", "/job", file, writes, 1);
    rig.tasks[0].fsync_every = vec![(pageout_engine::ObjectId(0), 8)];
    let access = only(&rig.run());
    assert_eq!((access.all.count, access.syncs.count), (64, 8));
    assert!(access.syncs.p50 > Nanos(20_000), "it waits for the device: {access:?}");
    assert_eq!(lost(&access, Cause::Writeback), Nanos::ZERO, "an fsync's wait is its own");
}
