//! Pauses of a run, and events that are added in one.

use pageout_engine::{Nanos, SwapKind};
use pageout_sim::{Ended, Machine, Report};

use crate::rig::{Rig, pages};
use crate::timed;

const HIGH: &str = "/sys/fs/cgroup/job/memory.high";

/// Readers that share CPUs, and a writer of anonymous memory, all short of memory.
fn rig() -> Rig {
    let mut rig = Rig::with_swap(SwapKind::Device);
    rig.limit("/job", 1_000);
    let file = rig.file(1_500);
    for cpu in 0..4 {
        let start = u64::from(cpu) * 300;
        rig.reader(&format!("reader{cpu}"), "/job", file, pages((start..1_500).chain(0..start)), 2);
        rig.tasks[usize::from(cpu)].cpu = pageout_engine::CpuId(cpu % 3);
    }
    rig.anon("writer", "/job", 600, pages((0..600).chain(0..600)));
    rig
}

/// Runs with a pause every `period`, or at every step for 0. Returns the pauses as well.
fn paused(mut machine: Machine, period: u64) -> (Report, u64) {
    let mut pauses = 0;
    loop {
        let next = machine.next_at().unwrap_or_default();
        machine.pause_at(Nanos(next.0 + period.max(1)));
        match machine.run(&mut ()).unwrap() {
            Ended::Interrupted => pauses += 1,
            ended => {
                assert_eq!(ended, Ended::Complete);
                return (machine.report(), pauses);
            }
        }
    }
}

#[test]
fn run_paused_at_any_period_is_the_same_run() {
    let mut whole = rig().machine();
    whole.run(&mut ()).unwrap();
    let whole = whole.report();
    assert!(whole.reclaim.count > 50, "{whole:?}");
    for (period, at_least) in [(0, 5_000), (777, 5_000), (100_000, 100), (7_000_000, 2)] {
        let (report, pauses) = paused(rig().machine(), period);
        assert!(pauses >= at_least, "{pauses} pauses, every {period} ns");
        assert_eq!(report, whole, "paused every {period} ns");
    }
}

#[test]
fn event_inserted_in_a_pause_is_that_of_the_start() {
    let at = 20_000_001;
    let mut from_start = rig();
    from_start.events.push(timed::write(at, HIGH, "2048000"));
    let mut whole = from_start.machine();
    whole.run(&mut ()).unwrap();

    let mut machine = rig().machine();
    machine.pause_at(Nanos(at));
    assert_eq!(machine.run(&mut ()).unwrap(), Ended::Interrupted);
    machine.event_insert(timed::write(at, HIGH, "2048000")).unwrap();
    machine.pause_at(Nanos(u64::MAX));
    assert_eq!(machine.run(&mut ()).unwrap(), Ended::Complete);
    assert_eq!(machine.report(), whole.report());
    assert_ne!(whole.report(), paused(rig().machine(), 0).0, "the event has an effect");
}

#[test]
fn event_inserted_after_its_time_happens_now() {
    let mut machine = rig().machine();
    machine.pause_at(Nanos(20_000_000));
    machine.run(&mut ()).unwrap();
    machine.event_insert(timed::write(5, HIGH, "2048000")).unwrap();
    machine.pause_at(Nanos(u64::MAX));
    machine.run(&mut ()).unwrap();
    let report = machine.report();
    let [write] = &report.writes[..] else { panic!("one write") };
    assert!(write.at.0 > 15_000_000, "{write:?}");
}
