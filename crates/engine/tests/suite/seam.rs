//! What a machine with threads and real files asks of the engine beside accesses: frames that are looked at without its knowledge, and
//! things that end.

#![allow(clippy::unwrap_used)] // a bench that can't be set up fails its test

use pageout_engine::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Frames that somebody looks at, and those that are closed.
#[derive(Clone, Default)]
struct Looks(Arc<Mutex<(BTreeSet<Pfn>, BTreeSet<Pfn>)>>);

impl FrameGate for Looks {
    fn close(&mut self, pfn: Pfn) -> bool {
        let (looked_at, closed) = &mut *self.0.lock().unwrap();
        !looked_at.contains(&pfn) && closed.insert(pfn)
    }

    fn open(&mut self, pfn: Pfn) {
        assert!(self.0.lock().unwrap().1.remove(&pfn), "{pfn:?} was not closed");
    }
}

struct Bench {
    engine: Engine,
    looks: Looks,
    task: TaskId,
    file: FileId,
    object: ObjectId,
}

impl Bench {
    fn new(pages: u64, config: Config) -> Bench {
        let looks = Looks::default();
        let mut builder = Engine::builder(config).unwrap();
        builder.set_frame_gate(Box::new(looks.clone()));
        let mut engine = builder.build();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let spec =
            FileSpec { name: "data".to_owned(), pages, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
        let file = engine.file_create(spec).unwrap();
        let object = engine.open(task, file).unwrap();
        Bench { engine, looks, task, file, object }
    }

    /// Makes an access as a device without latency lets it; frames are open when they are filled.
    fn access(&mut self, task: TaskId, object: ObjectId, page: u64, write: bool) -> Served {
        let step = self.engine.start(task, Access::new(object, page, write));
        self.go_on(task, step)
    }

    fn go_on(&mut self, task: TaskId, mut step: Step) -> Served {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                if let Op::ReadFile { io, .. } = op {
                    let frames: Vec<Pfn> = self.engine.frames_of(io).collect();
                    frames.iter().for_each(|pfn| _ = self.looks.0.lock().unwrap().1.remove(pfn));
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            self.engine.take_woken(&mut Vec::new());
            match step {
                Step::Done(served) => return served,
                _ => step = self.engine.resume(task),
            }
        }
    }

    fn read(&mut self, page: u64) -> Served {
        self.access(self.task, self.object, page, false)
    }

    /// Somebody looks at a page; where it is.
    fn look(&mut self, page: u64) -> Pfn {
        let (Served::Hit(at) | Served::Minor(at) | Served::Major(at)) = self.read(page) else {
            panic!("page {page}")
        };
        let Touched::Frame(pfn) = at else { panic!("page {page} is at {at:?}") };
        self.looks.0.lock().unwrap().0.insert(pfn);
        pfn
    }

    fn is_cached(&self, page: u64) -> bool {
        self.engine.touched(self.task, Access::new(self.object, page, false)) != Touched::Gone
    }
}

#[test]
fn a_page_that_somebody_looks_at_is_not_evicted() {
    let mut bench = Bench::new(64, Config::default());
    for page in 0..64 {
        bench.read(page);
    }
    let pfn = bench.look(7);
    let step = bench.engine.reclaim(bench.task, MemcgId::ROOT, 1000, None);
    bench.go_on(bench.task, step);
    let left: Vec<u64> = (0..64).filter(|&page| bench.is_cached(page)).collect();
    assert!(left.contains(&7) && left.len() < 40, "{left:?}");
    assert!(!bench.looks.0.lock().unwrap().1.contains(&pfn), "its frame is open still");
    bench.engine.fadvise_dontneed(bench.task, bench.file, 7..8).unwrap();
    assert!(bench.is_cached(7));
    bench.looks.0.lock().unwrap().0.clear();
    bench.engine.fadvise_dontneed(bench.task, bench.file, 7..8).unwrap();
    bench.engine.check_invariants();
}

#[test]
fn what_others_reclaim_leaves_its_shadow_unless_it_is_dirty_or_in_use() {
    let mut bench = Bench::new(64, Config::default());
    (0..64).for_each(|page| _ = bench.read(page));
    bench.look(7);
    let step = bench.engine.start(bench.task, Access::new(bench.object, 8, true));
    bench.go_on(bench.task, step);
    let step = bench.engine.evict(bench.task, bench.object, 5..10).unwrap();
    assert_eq!(bench.go_on(bench.task, step), Served::Truncated);
    let gone: Vec<u64> = (0..64).filter(|&page| !bench.is_cached(page)).collect();
    assert_eq!(gone, [5, 6, 9]);
    let refaults =
        |bench: &Bench| bench.engine.figures().memcg_stat_now(MemcgId::ROOT, Stat::WorkingsetRefaultFile);
    let before = refaults(&bench);
    bench.read(9);
    assert_eq!(refaults(&bench), before + 1);
    assert!(bench.engine.evict(bench.task, bench.object, 5..65).is_err());
    bench.looks.0.lock().unwrap().0.clear();
    bench.engine.check_invariants();
}

#[test]
fn a_truncation_ends_at_a_page_that_somebody_looks_at_and_is_made_again() {
    let mut bench = Bench::new(64, Config::default());
    (0..64).for_each(|page| _ = bench.read(page));
    bench.look(20);
    let step = bench.engine.truncate(bench.task, bench.object, 10..30).unwrap();
    assert_eq!(bench.go_on(bench.task, step), Served::Failed(AccessError::Held { page: 20 }));
    assert!(bench.is_cached(20) && !bench.is_cached(21), "all others are gone");
    bench.looks.0.lock().unwrap().0.clear();
    let step = bench.engine.truncate(bench.task, bench.object, 10..30).unwrap();
    assert_eq!(bench.go_on(bench.task, step), Served::Truncated);
    assert!(!bench.is_cached(20) && bench.is_cached(30));
    bench.engine.check_invariants();
}

#[test]
fn no_step_of_a_truncation_takes_more_pages_than_a_step_may() {
    let mut bench = Bench::new(64, Config { step_pages: 16, ..Config::default() });
    (0..64).for_each(|page| _ = bench.read(page));
    let mut step = bench.engine.unlink(bench.task, bench.object).unwrap();
    let mut left = vec![(0..64).filter(|&page| bench.is_cached(page)).count()];
    while step == Step::Again {
        step = bench.engine.resume(bench.task);
        left.push((0..64).filter(|&page| bench.is_cached(page)).count());
    }
    assert_eq!(left, [48, 32, 16, 0, 0]);
}

#[test]
fn what_has_ended_gives_its_number_to_the_next() {
    let mut bench = Bench::new(64, Config::default());
    let (task, file, object) = (bench.task, bench.file, bench.object);
    bench.read(3);
    let why = |error: ConfigError| error.to_string();
    assert_eq!(
        why(bench.engine.file_forget(file).unwrap_err()),
        "file data has pages or shadows: unlink it first"
    );
    let step = bench.engine.unlink(task, object).unwrap();
    bench.go_on(task, step);
    assert_eq!(why(bench.engine.file_forget(file).unwrap_err()), "file data is open: close it first");
    bench.engine.close(task, object).unwrap();
    assert!(bench.engine.close(task, object).is_err());
    bench.engine.file_forget(file).unwrap();
    assert_eq!(why(bench.engine.file_forget(file).unwrap_err()), "there is no file 0");
    let spec =
        FileSpec { name: "next".to_owned(), pages: 9, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    assert_eq!(bench.engine.file_create(spec), Ok(file));
    assert_eq!(bench.engine.open(task, file), Ok(object));
    assert!(matches!(bench.read(8), Served::Major(_)));
    let other = bench.engine.task_create(bench.engine.mm_of(task), CpuId(0));
    assert_eq!(bench.engine.task_exit(other), Step::Done(Served::Exited));
    bench.engine.task_forget(other);
    assert_eq!(bench.engine.task_create(bench.engine.mm_of(task), CpuId(0)), other);
    bench.engine.check_invariants();
}

#[test]
fn a_task_reads_through_the_file_that_it_is_lent_and_pays_for_what_it_reads() {
    let mut bench = Bench::new(64, Config::default());
    let group = bench.engine.memcg_create(MemcgId::ROOT, "tenant").unwrap();
    let mm = bench.engine.process_create(group);
    let [first, second] = [(); 2].map(|()| bench.engine.task_create(mm, CpuId(0)));
    for (task, page) in [(first, 0), (second, 1), (first, 2)] {
        let lent = bench.engine.lend((bench.task, bench.object), task).unwrap();
        assert!(matches!(bench.access(task, lent, page, false), Served::Major(_)));
    }
    assert_eq!(bench.engine.figures().memcg_stat_now(group, Stat::NrFilePages), 3);
    // Whoever reads page 2 next reads on where the first one was: through the same descriptor.
    let lent = bench.engine.lend((bench.task, bench.object), second).unwrap();
    bench.access(second, lent, 2, false);
    bench.access(second, lent, 2, false);
    let word = bench.engine.words_of(bench.task, bench.object).get(2);
    assert!(!word.is_in_use(), "the rest of one request is no second use");
    bench.engine.close(bench.task, bench.object).unwrap();
    let gone = bench.access(second, lent, 2, false);
    assert!(matches!(gone, Served::Failed(AccessError::BeyondObject { pages: 0, .. })), "{gone:?}");
    bench.engine.check_invariants();
}

fn regular(name: &str, pages: u64) -> FileSpec {
    FileSpec { name: name.to_owned(), pages, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD }
}

#[test]
fn closed_object_stays_closed_when_file_grows() {
    let mut bench = Bench::new(64, Config::default());
    let (task, file, object) = (bench.task, bench.file, bench.object);
    let second = bench.engine.open(task, file).unwrap();
    bench.engine.close(task, second).unwrap();
    bench.engine.file_grow(file, 80).unwrap();
    let gone = bench.access(task, second, 70, false);
    assert!(matches!(gone, Served::Failed(AccessError::BeyondObject { pages: 0, .. })), "{gone:?}");
    assert!(matches!(bench.read(70), Served::Major(_)), "what is open reaches it");
    let step = bench.engine.unlink(task, object).unwrap();
    bench.go_on(task, step);
    bench.engine.close(task, object).unwrap();
    bench.engine.file_forget(file).unwrap();
}

#[test]
fn closed_object_reaches_no_later_file() {
    let mut bench = Bench::new(64, Config::default());
    let (task, file, object) = (bench.task, bench.file, bench.object);
    let mm = bench.engine.mm_of(task);
    let [borrower, other] = [(); 2].map(|()| bench.engine.task_create(mm, CpuId(0)));
    let lent = bench.engine.lend((task, object), borrower).unwrap();
    bench.engine.close(task, object).unwrap();
    // The next open file has the number of the one that was closed.
    let own = bench.engine.open(other, file).unwrap();
    for closed in [(task, object), (borrower, lent)] {
        assert!(bench.engine.fsync(closed.0, closed.1).is_err());
        assert!(bench.engine.open_same(task, closed).is_err());
        assert!(bench.engine.truncate(closed.0, closed.1, 0..1).is_err());
        assert!(bench.engine.unlink(closed.0, closed.1).is_err());
        assert!(bench.engine.set_partial_writes(closed.0, closed.1, true).is_err());
        assert!(bench.engine.acknowledge_write_errors(closed.0, closed.1).is_err());
    }
    // Who was lent the former may be in the middle of something else when the latter is closed.
    let busy = bench.engine.open(borrower, file).unwrap();
    let step = bench.engine.start(borrower, Access::new(busy, 5, false));
    assert!(matches!(step, Step::Wait(_)), "{step:?}");
    bench.engine.close(other, own).unwrap();
    bench.go_on(borrower, step);
}

#[test]
fn forgotten_file_neither_grows_nor_opens() {
    let mut bench = Bench::new(64, Config::default());
    let (task, file) = (bench.task, bench.file);
    bench.engine.close(task, bench.object).unwrap();
    bench.engine.file_forget(file).unwrap();
    for error in [bench.engine.file_grow(file, 9).unwrap_err(), bench.engine.open(task, file).unwrap_err()] {
        assert_eq!(error.to_string(), "there is no file 0");
    }
    assert_eq!(bench.engine.file_create(regular("next", 9)), Ok(file));
}

#[test]
fn length_near_the_largest_number_is_an_error() {
    let mut bench = Bench::new(64, Config::default());
    for pages in [0, (1 << 30) + 1, 1 << 52, u64::MAX - 1, u64::MAX] {
        assert!(bench.engine.file_create(regular("large", pages)).is_err(), "{pages} pages");
        assert!(bench.engine.file_create_on(regular("large", pages), BdiId(0)).is_err(), "{pages} pages");
        assert!(bench.engine.file_grow(bench.file, pages).is_err(), "{pages} pages");
        assert!(bench.engine.file_shrink(bench.task, bench.object, pages).is_err(), "{pages} pages");
    }
    assert!(bench.engine.file_grow(FileId(u32::MAX), 9).is_err());
    let range = u64::MAX - 1..u64::MAX;
    assert!(bench.engine.truncate(bench.task, bench.object, range).is_err());
    assert_eq!(bench.engine.figures().file_pages(bench.file), 64);
}

#[test]
fn fsync_given_up_leaves_an_idle_task() {
    let mut bench = Bench::new(64, Config::default());
    let (task, object) = (bench.task, bench.object);
    assert!(!bench.engine.give_up_fsync(task), "it is in none");
    let begin = |bench: &mut Bench, page| {
        bench.access(task, object, page, true);
        let mut step = bench.engine.fsync(task, object).unwrap();
        while step == Step::Again {
            step = bench.engine.resume(task);
        }
        assert_eq!(step, Step::Wait(Wait::Io(IoWait::Writeback)));
        let mut ops = Vec::new();
        bench.engine.take_ops(&mut ops);
        let write =
            ops.iter().find_map(|op| if let Op::WriteFile { io, .. } = op { Some(*io) } else { None });
        write.unwrap()
    };
    let woken = |bench: &mut Bench| {
        let mut woken = Vec::new();
        bench.engine.take_woken(&mut woken);
        woken
    };
    let io = begin(&mut bench, 0);
    assert!(bench.engine.give_up_fsync(task) && !bench.engine.give_up_fsync(task));
    assert!(
        matches!(bench.access(task, object, 1, false), Served::Major(_)),
        "it goes on with something else"
    );
    bench.engine.io_done(io, CpuId(0), Ok(()));
    assert_eq!(woken(&mut bench), []);
    let io = begin(&mut bench, 2);
    bench.engine.io_done(io, CpuId(0), Err(IoError::Device));
    assert!(bench.engine.give_up_fsync(task), "it is named, and was not resumed");
    assert_eq!(woken(&mut bench), []);
    let step = bench.engine.fsync(task, object).unwrap();
    assert_eq!(step, Step::Done(Served::Synced(Err(IoError::Device))), "the error was told to nobody");
    bench.engine.check_invariants();
}

#[test]
fn a_file_that_shrinks_and_grows_reads_anew_what_it_had_lost() {
    let mut bench = Bench::new(64, Config::default());
    (0..64).for_each(|page| _ = bench.read(page));
    let step = bench.engine.file_shrink(bench.task, bench.object, 40).unwrap();
    assert_eq!(bench.go_on(bench.task, step), Served::Truncated);
    assert_eq!(bench.engine.figures().file_pages(bench.file), 40);
    assert!(matches!(bench.read(40), Served::Failed(AccessError::BeyondObject { page: 40, pages: 40 })));
    bench.engine.file_grow(bench.file, 50).unwrap();
    assert!(matches!(bench.read(39), Served::Hit(_)) && matches!(bench.read(40), Served::Major(_)));
    assert!(bench.engine.file_shrink(bench.task, bench.object, 51).is_err());
    bench.engine.check_invariants();
}

#[test]
fn a_group_has_no_name_that_leads_elsewhere_or_is_that_of_a_file() {
    let mut engine = Bench::new(1, Config::default()).engine;
    for name in ["", ".", "..", "a/b", "memory.max", "cgroup.procs", "cpuset.mems"] {
        let error = engine.memcg_create(MemcgId::ROOT, name).unwrap_err();
        assert_eq!(error, ConfigError::BadName(name.to_owned()));
    }
    let group = engine.memcg_create(MemcgId::ROOT, "memory").unwrap();
    assert!(engine.memcg_create(group, "...").is_ok());
}
