//! Page words, read by other threads while the engine runs.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::{
    Access, Advice, Bdi, Config, CpuId, Engine, FileKind, FileSpec, MemcgId, NodeId, ObjectId, Op, Policy,
    Served, Stat, Step, TaskId,
};
use std::sync::atomic::{AtomicBool, Ordering};

const PAGES: u64 = 4096;
const FRAMES: u64 = 1 << 15;

/// A machine with a file that a task has open and mapped.
fn machine() -> (Engine, TaskId, ObjectId, ObjectId) {
    let policy = Policy::of("mglru@6.12");
    let mut engine = Engine::new(Config { node_pages: vec![FRAMES], policy, ..Config::default() }).unwrap();
    let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    let mm = engine.process_create(group);
    let task = engine.task_create(mm, CpuId(0));
    let spec =
        FileSpec { name: "data".to_owned(), pages: PAGES, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    let file = engine.file_create(spec).unwrap();
    let opened = engine.open(task, file).unwrap();
    let mapped = engine.map_file(task, file, Advice::Normal, false).unwrap();
    (engine, task, opened, mapped)
}

/// Ends what a call has asked for, until it is over.
fn finish(engine: &mut Engine, task: TaskId, mut step: Step) -> Served {
    let mut ops = Vec::new();
    loop {
        engine.take_ops(&mut ops);
        for op in ops.drain(..) {
            if let Op::ReadFile { io, .. } = op {
                engine.io_done(io, CpuId(0), Ok(()));
            }
        }
        match step {
            Step::Done(served) => return served,
            _ => step = engine.resume(task),
        }
    }
}

fn access(engine: &mut Engine, task: TaskId, object: ObjectId, page: u64) {
    let step = engine.start(task, Access::new(object, page, false));
    finish(engine, task, step);
}

#[test]
fn other_threads_see_where_pages_are_while_the_engine_brings_them_in() {
    let (mut engine, task, opened, mapped) = machine();
    let objects = [opened, mapped];
    let readers = objects.map(|object| engine.words_of(task, object));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads = readers.map(|mut reader| {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut frames = vec![None; PAGES as usize];
                loop {
                    let is_last = is_over.load(Ordering::Acquire);
                    for (page, known) in (0..PAGES).zip(&mut frames) {
                        let word = reader.get(page);
                        // Nothing is reclaimed, so a page that is in a frame stays there.
                        let frame = word.is_present().then(|| word.frame(page));
                        assert!(known.is_none() || *known == frame, "page {page}: {known:?}, now {frame:?}");
                        *known = frame;
                    }
                    if is_last {
                        return frames;
                    }
                }
            })
        });
        for page in 0..PAGES {
            access(&mut engine, task, opened, page);
            access(&mut engine, task, mapped, page);
        }
        is_over.store(true, Ordering::Release);
        let [by_index, by_table] = threads.map(|thread| thread.join().unwrap());
        assert!(by_index.iter().all(Option::is_some), "all pages are in memory");
        assert_eq!(by_index, by_table, "the file's index and the page table name the same frames");
    });
    engine.check_invariants();
}

#[test]
fn a_file_that_is_truncated_gives_the_memory_of_its_words_back() {
    let (mut engine, task, opened, _) = machine();
    let before = engine.figures().metadata_bytes();
    for page in 0..PAGES {
        access(&mut engine, task, opened, page);
    }
    let (full, words) = (engine.figures().metadata_bytes(), 8 * PAGES as usize);
    assert!(full >= before + words, "{before} bytes, {full} with all pages in memory");
    let mut reader = engine.words_of(task, opened);
    assert!(reader.get(7).is_present());
    let step = engine.truncate(task, opened, 0..PAGES).unwrap();
    assert_eq!(finish(&mut engine, task, step), Served::Truncated);
    assert!(!reader.get(7).is_present(), "a reader finds nothing there");
    let after = engine.figures().metadata_bytes();
    assert!(after + words <= full, "{full} bytes, {after} after it");
    engine.check_invariants();
}

#[test]
fn a_file_that_grows_keeps_what_is_cached_and_all_that_have_it_open_reach_its_new_end() {
    let (mut engine, task, opened, mapped) = machine();
    let file = engine.figures().file_by_name("data").unwrap();
    for page in [0, PAGES - 1] {
        access(&mut engine, task, opened, page);
    }
    let mut reader = engine.words_of(task, opened);
    let before = [0, PAGES - 1].map(|page| reader.get(page));
    let longer = 70 * PAGES;
    engine.file_grow(file, longer).unwrap();
    assert_eq!(engine.figures().file_pages(file), longer);
    assert_eq!(
        [0, PAGES - 1].map(|page| reader.get(page)),
        before,
        "a reader from before finds what was there"
    );
    let last = longer - 1;
    assert!(!reader.get(last).is_present());
    let step = engine.start(task, Access::new(opened, last, true));
    finish(&mut engine, task, step);
    assert!(reader.get(last).is_present(), "and what is new, once it is in memory");
    assert_eq!(engine.figures().node_stat(NodeId(0), Stat::NrDirty), 1);
    engine.check_invariants();
    // A mapping stays as long as it was; a file gets shorter by truncation alone.
    access(&mut engine, task, mapped, PAGES - 1);
    assert!(engine.file_grow(file, PAGES).is_err() && engine.file_grow(file, u64::MAX).is_err());
    let step = engine.truncate(task, opened, 1..longer).unwrap();
    assert_eq!(finish(&mut engine, task, step), Served::Truncated);
    engine.check_invariants();
}
