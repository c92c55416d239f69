//! Regions in slow memory beside the engine alone: the same accesses and scans leave the same counters.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use pageout_engine::{
    Access, Advice, CpuId, Engine, HugeAdvice, MemPolicy, MemcgId, Nanos, ObjectId, PROFILES, Served, Step,
    TaskId,
};

use crate::{Delay, Limits, Memory, Node, RegionOptions};

const PAGES: u64 = 400;
const PAGE: u64 = 4096;
const MEMS: &str = "/sys/fs/cgroup/tenant/cpuset.mems";
const SCHED: &str = "/sys/kernel/debug/sched/numa_balancing";
/// Scans come when they are asked for, and each marked page that is accessed is hot.
const SETTINGS: [(&str, &str); 3] =
    [("hot_threshold_ms", "1000000"), ("scan_delay_ms", "1"), ("scan_period_min_ms", "1")];
const SCANS: u64 = 12;

/// What happens between two scans: pages, and whether they are written.
fn accesses(scan: u64) -> impl Iterator<Item = (u64, bool)> {
    (0..60).map(move |at| ((at * at + scan * 37) % PAGES, (at + scan).is_multiple_of(5)))
}

/// Counters of pages that are marked, accessed and moved.
fn counters(vmstat: &str) -> Vec<String> {
    let names = ["numa_", "pgpromote", "pgmigrate", "pgdemote", "nr_anon", "nr_active", "nr_inactive"];
    let is_compared = |line: &&str| names.iter().any(|name| line.starts_with(name));
    vmstat.lines().filter(is_compared).map(str::to_owned).collect()
}

/// The engine alone, with memory to spare.
struct Alone {
    engine: Engine,
    task: TaskId,
    object: ObjectId,
}

impl Alone {
    fn finish(&mut self, mut step: Step) -> Served {
        loop {
            self.engine.take_ops(&mut Vec::new());
            step = match step {
                Step::Done(served) => return served,
                Step::Again => self.engine.resume(self.task),
                Step::Wait(wait) => panic!("{wait:?}"),
            };
        }
    }

    fn write(&mut self, path: &str, value: &str) {
        let step = self.engine.write_file(self.task, path, value).unwrap();
        self.finish(step);
    }
}

fn alone(memory: &Memory) -> Vec<String> {
    let mut engine = Engine::new(memory.config().clone()).unwrap();
    let tenant = engine.memcg_create(MemcgId::ROOT, "tenant").unwrap();
    let mm = engine.process_create(tenant);
    let task = engine.task_create(mm, CpuId(0));
    let object = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
    engine.madvise_hugepage(task, object, HugeAdvice::NoHugepage).unwrap();
    let mut alone = Alone { engine, task, object };
    SETTINGS.iter().for_each(|(file, value)| alone.write(&format!("{SCHED}/{file}"), value));
    alone.write(MEMS, "1");
    alone.engine.set_mempolicy(mm, MemPolicy::Default).unwrap();
    for page in 0..PAGES {
        let step = alone.engine.start(task, Access::new(alone.object, page, true));
        alone.finish(step);
    }
    alone.write(MEMS, "0-1");
    let mut now = Nanos::ZERO;
    for scan in 0..SCANS {
        for (page, write) in accesses(scan) {
            let step = alone.engine.start(task, Access::new(alone.object, page, write));
            alone.finish(step);
        }
        // Periods are shorter than that, whatever the faults make of them.
        now += Nanos(1_000_000_000_000);
        alone.engine.set_now(now);
        alone.engine.scan_tick(task, now);
        alone.engine.take_ops(&mut Vec::new());
    }
    counters(&alone.engine.read_file("/proc/vmstat").unwrap())
}

fn live(memory: &Memory) -> Vec<String> {
    let machine = &memory.0.machine;
    // The test scans, and the service thread does not.
    machine.lock().unwrap().regions.scans_at = Nanos(u64::MAX);
    SETTINGS.iter().for_each(|(file, value)| memory.write(&format!("{SCHED}/{file}"), value).unwrap());
    let group = memory.group("tenant", Limits::NONE).unwrap();
    group.write("cpuset.mems", "1").unwrap();
    let region = memory.region(PAGES * PAGE, RegionOptions::new().group(&group)).unwrap();
    (0..PAGES).for_each(|page| region.write_at(&[7; PAGE as usize], page * PAGE).unwrap());
    // A group that may use one node alone is not scanned since 6.16.
    group.write("cpuset.mems", "0-1").unwrap();
    for scan in 0..SCANS {
        for (page, write) in accesses(scan) {
            if write {
                region.write_at(&[7; PAGE as usize], page * PAGE).unwrap();
            } else {
                region.read_at(&mut [0; PAGE as usize], page * PAGE).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(10));
        let mut locked = machine.drain(machine.lock().unwrap()).unwrap();
        let owner = locked.regions.owners()[0];
        locked.engine.scan_tick(owner, Nanos((scan + 1) * 1_000_000_000_000));
        locked.settle();
    }
    counters(&memory.read("/proc/vmstat").unwrap())
}

#[test]
fn scanned_regions_leave_the_counters_of_the_engine_alone() {
    for profile in PROFILES {
        let slow = Node::slow(8 << 20).emulated(Delay::per_page(Duration::ZERO));
        let builder = Memory::builder().budget(28 << 20).policy(profile.name).node(slow).io_threads(0);
        let memory = builder.build().unwrap();
        let (live, alone) = (live(&memory), alone(&memory));
        let differ: Vec<_> = live.iter().zip(&alone).filter(|(live, alone)| live != alone).collect();
        assert!(differ.is_empty() && live.len() == alone.len(), "{}: {differ:#?}", profile.name);
        let is_tried = |zero: &str| !live.iter().any(|line| line == zero);
        assert!(
            is_tried("numa_hint_faults 0") && is_tried("pgpromote_success 0"),
            "{}: {live:#?}",
            profile.name
        );
    }
}
