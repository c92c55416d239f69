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
    let mut engine = Engine::new(Config { kmem: false, ..Config::default() }).unwrap();
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

#[test]
fn waiting_for_a_page_is_a_memstall_if_it_was_in_the_working_set() {
    let mut machine = machine();
    let step = machine.engine.write_file(machine.task, "/sys/fs/cgroup/g/memory.max", "163840").unwrap();
    machine.finish(step);
    // Another task that wants the same page.
    let mm = machine.engine.process_create(MemcgId::ROOT);
    let other = machine.engine.task_create(mm, CpuId(0));
    let file = machine.engine.figures().file_by_name("f").unwrap();
    assert_eq!(machine.engine.open(other, file), Ok(machine.object));
    let restored = |engine: &Engine| engine.figures().vmstat(Stat::WorkingsetRestoreFile);
    let mut sections = [0; 2];
    for round in 0u64..4_000 {
        // A hot half and a cold one, of 64 pages of which 40 fit.
        let page = if round % 3 == 0 { 32 + round / 3 * 7 % 32 } else { round * 5 % 32 };
        let access = Access::new(machine.object, page, false);
        let before = restored(&machine.engine);
        let mut step = machine.engine.start(machine.task, access);
        while step == Step::Again {
            step = machine.engine.resume(machine.task);
        }
        if matches!(step, Step::Wait(Wait::Io(_))) {
            let is_restored = restored(&machine.engine) > before;
            sections[usize::from(is_restored)] += 1;
            let expected = is_restored.then_some(Memstall::Refault);
            assert_eq!(machine.engine.memstall(machine.task), expected);
            assert_eq!(machine.engine.start(other, access), Step::Wait(Wait::Io(IoWait::OthersRead)));
            assert_eq!(machine.engine.memstall(other), expected, "who waits for another's read");
            machine.finish(step);
            machine.engine.take_woken(&mut Vec::new());
            assert!(matches!(machine.engine.resume(other), Step::Done(_)));
        }
        assert_eq!(machine.engine.memstall(machine.task), None);
        if round % 100 == 0 {
            machine.engine.flush_stats();
        }
    }
    assert!(sections.iter().all(|&count| count > 50), "{sections:?}");
}

#[test]
fn reclaim_for_a_limit_is_a_memstall_and_reclaim_that_a_user_asked_for_is_none() {
    let mut machine = machine();
    (0..60).for_each(|page| {
        machine.read(page);
    });
    let step = machine.engine.write_file(machine.task, "/sys/fs/cgroup/g/memory.max", "131072").unwrap();
    assert_eq!((&step, machine.engine.memstall(machine.task)), (&Step::Again, None));
    machine.finish(step);
    let mut sections = Vec::new();
    for page in 0..60 {
        let mut step = machine.engine.start(machine.task, Access::new(machine.object, page, false));
        while step == Step::Again {
            sections.push(machine.engine.memstall(machine.task));
            step = machine.engine.resume(machine.task);
        }
        machine.finish(step);
    }
    assert!(
        sections.len() > 1 && sections.iter().all(|&section| section == Some(Memstall::Reclaim)),
        "{sections:?}"
    );
}
