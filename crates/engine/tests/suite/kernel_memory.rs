//! Memory that the kernel takes for itself: from the start on, and for who reads a file of `/proc`.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::{
    Access, Advice, BlockEffort, Config, CpuId, Engine, FreeMemory, KernelBlock, MemcgId, MigrateType,
    NodeId, Pfn, Served, Step, TaskId,
};

/// Free pages and those that CPUs hold.
fn spare(engine: &Engine) -> u64 {
    engine
        .figures()
        .zones()
        .map(|zone| zone.free + zone.pagesets.iter().map(|set| u64::from(set.count)).sum::<u64>())
        .sum()
}

fn recorded() -> Engine {
    Engine::new(Config { node_pages: vec![28_005], min_free_kbytes: 1324, cpus: 2, ..Config::default() })
        .unwrap()
}

#[test]
fn what_the_kernel_holds_is_free_no_more() {
    let mut engine = recorded();
    engine.hold_kernel_memory(3_000).unwrap();
    assert_eq!(spare(&engine), 28_005 - 3_000);
    assert_eq!(
        engine.figures().zones().map(|zone| zone.free).sum::<u64>(),
        28_005 - 3_000,
        "no CPU keeps any of the rest"
    );
    engine.check_invariants();
    let refusal = engine.hold_kernel_memory(28_005).unwrap_err().to_string();
    assert!(
        refusal.contains("pages that the kernel holds: 28005 is not in the range 0 to 24417"),
        "{refusal}"
    );
}

#[test]
fn a_reader_of_proc_holds_ten_pages_until_the_file_is_closed() {
    let mut engine = recorded();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(1));
    for _ in 0..2 {
        assert_eq!(engine.open_proc_file(task), Step::Done(Served::Opened));
        assert_eq!(spare(&engine), 28_005 - 10, "a slab of eight pages, and two more");
        engine.close_proc_file(task);
        assert_eq!(spare(&engine), 28_005);
        engine.check_invariants();
    }
    // It is in the middle of nothing.
    let memory = engine.map_anon(task, 1, Advice::Normal).unwrap();
    assert!(matches!(engine.start(task, Access::new(memory, 0, true)), Step::Done(Served::Minor(_))));
}

#[test]
fn who_wants_fresh_statistics_has_all_cpus_give_back_what_they_hold_too_many_of() {
    let mut engine = recorded();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(1));
    let memory = engine.map_anon(task, 4_000, Advice::Normal).unwrap();
    for page in 0..4_000 {
        assert!(matches!(engine.start(task, Access::new(memory, page, true)), Step::Done(Served::Minor(_))));
    }
    let held = |engine: &Engine| engine.figures().zones().next().unwrap().pagesets[1];
    let before = held(&engine);
    assert_eq!(engine.read_file("/proc/sys/vm/stat_refresh").unwrap(), "");
    let after = held(&engine);
    assert_eq!(
        after.high,
        (before.high - before.high / 8).max(after.high_min),
        "an eighth of the limit a time"
    );
    assert!(before.high > before.high_min && after.count <= after.high, "{before:?} {after:?}");
    let task_reads = engine.write_file(task, "/proc/sys/vm/stat_refresh", "1");
    assert!(task_reads.is_err(), "it is for reading");
}

fn block(order: u8, effort: BlockEffort) -> KernelBlock {
    KernelBlock { order, kind: MigrateType::Unmovable, effort }
}

/// Takes pages until a touch finds none free.
fn touch_all(engine: &mut Engine, task: TaskId, pages: u64) {
    let memory = engine.map_anon(task, pages, Advice::Normal).unwrap();
    for page in 0..pages {
        assert!(matches!(engine.start(task, Access::new(memory, page, true)), Step::Done(Served::Minor(_))));
    }
}

#[test]
fn a_block_that_the_kernel_took_is_given_back_by_its_number() {
    let mut engine = recorded();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(0));
    for (number, order) in [(7, 0), (8, 1), (9, 3)] {
        let taken = engine.take_kernel_block(task, number, block(order, BlockEffort::Reclaims));
        assert_eq!(taken, Step::Done(Served::Opened));
    }
    assert_eq!(spare(&engine), 28_005 - 1 - 2 - 8);
    engine.check_invariants();
    engine.give_kernel_block(task, 8);
    assert_eq!(spare(&engine), 28_005 - 1 - 8);
    engine.give_kernel_block(task, 8);
    assert_eq!(spare(&engine), 28_005 - 1 - 8, "it is gone already");
    engine.check_invariants();
}

#[test]
fn a_block_for_which_nothing_is_done_is_not_had_where_memory_is_short() {
    let mut engine = recorded();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(0));
    touch_all(&mut engine, task, 27_000);
    let (before, mut left) = (spare(&engine), 1_000);
    for number in 0..left {
        let taken = engine.take_kernel_block(task, number, block(0, BlockEffort::Nothing));
        assert_eq!(taken, Step::Done(Served::Opened));
    }
    left -= before - spare(&engine);
    assert!(
        left > 300,
        "{left} of a thousand could not be had: what is below the lowest mark is not for them"
    );
    engine.check_invariants();
}

#[test]
fn with_frames_aside_page_tables_stacks_and_index_nodes_take_none_of_the_allocators() {
    let mut engine = recorded();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(0));
    // Frames that are on no list are the kernel's.
    let zone = engine.figures().zones().next().unwrap().zone;
    let aside: Vec<Pfn> = (0..64).map(Pfn).collect();
    let blocks = (1_024..27_648).step_by(1_024).map(Pfn).collect();
    let blocks = vec![pageout_engine::FreeBlocks { order: 10, kind: MigrateType::Movable, first: blocks }];
    let free = FreeMemory { reserved: 64, blocks, ..FreeMemory::default() };
    engine.set_free_memory(NodeId(0), zone, &free).unwrap();
    engine.take_kernel_memory_aside(aside);
    let before = spare(&engine);
    touch_all(&mut engine, task, 5_000);
    assert_eq!(
        spare(&engine),
        before - 5_000,
        "neither its stack nor ten page tables are of the allocator's"
    );
    engine.check_invariants();
    let mut step = engine.task_exit(task);
    while step == Step::Again {
        step = engine.resume(task);
    }
    assert_eq!(step, Step::Done(Served::Exited));
    assert_eq!(spare(&engine), before);
    engine.check_invariants();
}
