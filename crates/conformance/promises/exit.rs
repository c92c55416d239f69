//! The memory of tasks that end, and of tasks that restart a program.

#![allow(clippy::unwrap_used)] // tests: failing is what it is for

use crate::check;
use pageout_engine::*;

#[test]
fn an_exit_gives_back_anonymous_memory_and_swap_slots_and_leaves_the_page_cache() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        swap 10 sync
        file data 8
        task t in job
        t anon 8 as heap
        t map data as m
        t open data as f
        t write heap 0..4         => 4m
        t sets job reclaim 1      => reclaimed 1
        swapped job               => 1
        t read m 0..2             => 2M
        t read f 2                => M
        usage job                 => 6
        t exits                   => exited
        usage job                 => 3             # the file's
        swapped job               => 0
        flush
        cat job anon              => 0
        cat job file_mapped       => 0
    ",
    );
}

#[test]
fn a_used_file_page_is_marked_accessed_when_its_process_ends() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        task u in job
        u open data as f
        t map data as m
        t read m 0                => M
        t exits                   => exited        # young: the first of two accesses
        u read f 0                => H             # the second
        lists job                 => anon 0+0 file 0+1
    ",
    );
}

#[test]
fn a_page_being_written_to_swap_is_freed_when_the_write_ends_after_its_process() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        swap 10
        task t in job
        task u in job
        t anon 8 as heap
        t write heap 0            => m
        device holds
        u sets job reclaim 1
        swapped job               => 1
        t exits                   => exited
        usage job                 => 1             # in the hands of the disk
        io
        usage job                 => 0
        swapped job               => 0
    ",
    );
}

#[test]
fn a_program_that_is_run_anew_finds_its_mappings_empty_and_its_files_cached() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        file data 8
        task t in job
        t anon 8 as heap
        t map data as m
        t write heap 0..4         => 4m
        t read m 0                => M
        t execs                   => exited
        usage job                 => 1
        t read heap 0             => m             # zeroes
        t write heap 0..4         => 4m
        t read m 0                => m             # in the page cache, and mapped again
        t execs                   => exited
        t exits                   => exited
        usage job                 => 1
    ",
    );
}

/// A machine with one group, and a process in it.
fn machine() -> (Engine, MmId, TaskId) {
    let mut engine = Engine::new(Config {
        folio_batch: 1,
        charge_stock: 1,
        kmem: false,
        page_cluster: 0,
        ..Config::default()
    })
    .unwrap();
    let job = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    let mm = engine.process_create(job);
    let task = engine.task_create(mm, CpuId(0));
    (engine, mm, task)
}

fn write(engine: &mut Engine, task: TaskId, object: ObjectId, pages: std::ops::Range<u64>) {
    for page in pages {
        let step = engine.start(task, Access::new(object, page, true));
        assert!(matches!(step, Step::Done(Served::Minor(_) | Served::Hit(_))), "{step:?}");
        engine.take_ops(&mut Vec::new());
    }
}

#[test]
fn an_address_space_lives_as_long_as_its_last_thread() {
    let (mut engine, mm, first) = machine();
    let second = engine.task_create(mm, CpuId(0));
    let heap = engine.map_anon(first, 100, Advice::Normal).unwrap();
    write(&mut engine, first, heap, 0..100);
    let job = engine.figures().memcg_by_path("/job").unwrap();
    assert_eq!(engine.task_exit(first), Step::Done(Served::Exited));
    assert_eq!(engine.figures().memcg_usage(job), 100);
    assert!(engine.has_exited(first) && !engine.has_exited(second));
    engine.process_exit(mm);
    assert_eq!(engine.figures().memcg_usage(job), 0);
    assert!(engine.has_exited(second));
    engine.check_invariants();
}

#[test]
fn an_exit_goes_on_table_by_table_and_passes_by_what_was_never_used() {
    let (mut engine, _, task) = machine();
    let heap = engine.map_anon(task, 1 << 20, Advice::Normal).unwrap();
    write(&mut engine, task, heap, 0..1);
    write(&mut engine, task, heap, 700_000..700_600);
    let job = engine.figures().memcg_by_path("/job").unwrap();
    let before = *engine.work();
    let mut usage = Vec::new();
    let mut step = engine.task_exit(task);
    while step == Step::Again {
        usage.push(engine.figures().memcg_usage(job));
        engine.check_invariants();
        step = engine.resume(task);
    }
    assert_eq!((step, usage), (Step::Done(Served::Exited), vec![600, 600 - 416, 0]));
    let work = *engine.work() - before;
    assert_eq!((work.zapped, work.unmapped), (601, 0));
}

#[test]
#[should_panic(expected = "task 0 has exited")]
fn nothing_may_be_asked_of_a_task_that_has_exited() {
    let (mut engine, _, task) = machine();
    assert_eq!(engine.task_exit(task), Step::Done(Served::Exited));
    let _ = engine.start(task, Access::new(ObjectId(0), 0, false));
}
