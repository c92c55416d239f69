//! An access that is served names its frame, which stays while it is held.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::*;

struct Machine {
    engine: Engine,
    task: TaskId,
    object: ObjectId,
    freed: Vec<Pfn>,
}

/// A task that reads a file of 64 pages in a group of its own.
fn machine() -> Machine {
    let mut engine = Engine::new(Config::default()).unwrap();
    let group = engine.memcg_create(MemcgId::ROOT, "g").unwrap();
    let file = engine
        .file_create(FileSpec {
            name: "f".into(),
            pages: 64,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        })
        .unwrap();
    let mm = engine.process_create(group);
    let task = engine.task_create(mm, CpuId(0));
    let object = engine.open(task, file).unwrap();
    Machine { engine, task, object, freed: Vec::new() }
}

impl Machine {
    /// Takes a step to its end; every transfer ends as soon as it has begun.
    fn finish(&mut self, mut step: Step) -> Served {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                match op {
                    Op::ReadFile { io, .. } => self.engine.io_done(io, CpuId(0), Ok(())),
                    Op::FreeFrame { pfn, .. } => self.freed.push(pfn),
                    other => panic!("{other:?}"),
                }
            }
            if let Step::Done(served) = step {
                return served;
            }
            step = self.engine.resume(self.task);
        }
    }

    fn read(&mut self, page: u64) -> Served {
        let step = self.engine.start(self.task, Access::new(self.object, page, false));
        self.finish(step)
    }

    fn reclaim(&mut self) {
        let step = self.engine.write_file(self.task, "/sys/fs/cgroup/g/memory.reclaim", "1M").unwrap();
        self.finish(step);
    }
}

#[test]
fn a_hit_finds_its_page_in_the_frame_that_the_miss_has_named() {
    let mut machine = machine();
    let Served::Major(Touched::Frame(pfn)) = machine.read(7) else { panic!("it was read from a device") };
    assert_eq!(machine.read(7), Served::Hit(Touched::Frame(pfn)));
    let access = Access::new(machine.object, 8, false);
    assert_eq!(machine.engine.touched(machine.task, access), Touched::Gone);
}

#[test]
fn a_frame_that_is_held_is_not_freed_before_it_is_released() {
    let mut machine = machine();
    for page in 0..64 {
        machine.read(page);
    }
    let Served::Hit(Touched::Frame(held)) = machine.read(0) else { panic!("all of it is resident") };
    machine.engine.hold(held);
    machine.reclaim();
    assert!(!machine.freed.is_empty() && !machine.freed.contains(&held), "{:?}", machine.freed);
    assert_eq!(machine.read(0), Served::Hit(Touched::Frame(held)));
    machine.engine.release(held);
    machine.reclaim();
    assert!(machine.freed.contains(&held));
    machine.engine.check_invariants();
}
