//! A machine that goes on from where another was found: its free memory and its lists.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::{
    Access, Advice, Config, CpuId, Engine, FreeBlocks, FreeMemory, FreeOfCpu, MemcgId, MigrateType, NodeId,
    ObjectId, Pfn, Policy, Served, StartFolio, StartGenerations, StartList, StartLruvec, Step, TaskId,
    Touched, ZoneType,
};

const NODE: NodeId = NodeId(0);
const ZONE: ZoneType = ZoneType::Dma32;
const PAGES: u64 = 8192;

fn machine(policy: &str) -> (Engine, TaskId, ObjectId) {
    let policy = Policy::by_name(policy).unwrap();
    let mut engine = Engine::new(Config { node_pages: vec![PAGES], policy, ..Config::default() }).unwrap();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(0));
    let memory = engine.map_anon(task, 4096, Advice::Normal).unwrap();
    (engine, task, memory)
}

fn blocks(order: u8, kind: MigrateType, first: &[u32]) -> FreeBlocks {
    FreeBlocks { order, kind, first: first.iter().copied().map(Pfn).collect() }
}

/// 2,048 pages in the upper half, movable, and a block of 64 in an unmovable pageblock.
fn found() -> FreeMemory {
    let mut pageblocks = vec![MigrateType::Movable; 16];
    pageblocks[0] = MigrateType::Unmovable;
    FreeMemory {
        reserved: 1000,
        boost: 0,
        pageblocks,
        blocks: vec![
            blocks(6, MigrateType::Unmovable, &[64]),
            blocks(10, MigrateType::Movable, &[6144, 4096]),
        ],
        cpus: vec![FreeOfCpu {
            high: 100,
            alloc_factor: 2,
            free_count: 3,
            blocks: vec![
                blocks(0, MigrateType::Movable, &[3001, 2999, 3007]),
                blocks(0, MigrateType::Unmovable, &[30, 31, 32, 33, 40, 41, 42, 43]),
            ],
        }],
    }
}

fn touch(engine: &mut Engine, task: TaskId, memory: ObjectId, page: u64) -> Pfn {
    match engine.start(task, Access::new(memory, page, true)) {
        Step::Done(Served::Minor(Touched::Frame(pfn))) => pfn,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pages_are_handed_out_in_the_order_of_the_free_lists_that_were_found() {
    let (mut engine, task, memory) = machine("classic@6.12");
    engine.set_free_memory(NODE, ZONE, &found()).unwrap();
    engine.check_invariants();
    let zone = engine.figures().zones().next().unwrap();
    assert_eq!((zone.free, zone.managed, zone.pagesets[0].count), (2048 + 64, PAGES - 1000, 11));
    assert_eq!((zone.free_blocks[6], zone.free_blocks[10]), (1, 2));
    let handed_out: Vec<u32> = (0..4).map(|page| touch(&mut engine, task, memory, page).0).collect();
    assert_eq!(handed_out[..3], [3001, 2999, 3007], "the CPU's own, from the head on");
    assert_eq!(handed_out[3] / 1024, 6144 / 1024, "then the block that is first");
    engine.check_invariants();
}

#[test]
fn what_is_free_and_was_not_found_free_is_the_kernels() {
    let (mut engine, task, memory) = machine("classic@6.12");
    let held = touch(&mut engine, task, memory, 0);
    let mut free = found();
    free.blocks.truncate(1);
    engine.set_free_memory(NODE, ZONE, &free).unwrap();
    engine.check_invariants();
    assert_eq!(engine.figures().zones().map(|zone| zone.free).sum::<u64>(), 64);
    // Who had a page has it still.
    let again = engine.start(task, Access::new(memory, 0, false));
    assert_eq!(again, Step::Done(Served::Hit(Touched::Frame(held))));
}

#[test]
fn free_memory_that_no_zone_has_is_refused_with_the_block() {
    let refused = |change: fn(&mut FreeMemory)| {
        let (mut engine, task, memory) = machine("classic@6.12");
        touch(&mut engine, task, memory, 0);
        let mut free = found();
        change(&mut free);
        engine.set_free_memory(NODE, ZONE, &free).unwrap_err().to_string()
    };
    for (change, told) in [
        (
            (|free| free.blocks[1].first[0] = Pfn(6145)) as fn(&mut FreeMemory),
            "order 10 that begins with frame 6145",
        ),
        (|free| free.blocks[1].first[0] = Pfn(1 << 20), "frame 1048576 is not of the zone"),
        (|free| free.cpus[0].blocks[0].first.push(Pfn(3001)), "frame 3001 is in use, or on two lists"),
        (
            |free| free.blocks[0].kind = MigrateType::Movable,
            "on a list of Movable, in a pageblock of Unmovable",
        ),
        (|free| free.blocks[0].order = 11, "no blocks of order 11"),
        (|free| free.cpus[0].blocks[0].order = 5, "a CPU has no list of Movable blocks of order 5"),
        (|free| free.cpus.resize(9, FreeOfCpu::default()), "9 CPUs hold pages"),
        (|free| free.reserved = 1 << 20, "1048576 frames are reserved"),
        (|free| free.pageblocks.resize(99, MigrateType::Movable), "99 pageblocks have a type"),
    ] {
        let text = refused(change);
        assert!(text.contains(told), "{text}");
    }
    let (mut engine, ..) = machine("classic@6.12");
    let text = engine.set_free_memory(NodeId(3), ZONE, &found()).unwrap_err().to_string();
    assert!(text.contains("zone DMA32 of node 3"), "{text}");
}

fn folio(pfn: Pfn, is_active: bool) -> StartFolio {
    StartFolio { pfn, is_active, is_referenced: false, is_workingset: false }
}

fn lists(of: &[(Option<u64>, &[StartFolio])]) -> Vec<StartList> {
    of.iter().map(|&(seq, folios)| StartList { seq, folios: folios.to_vec() }).collect()
}

#[test]
fn two_lists_are_as_they_were_found() {
    let (mut engine, task, memory) = machine("classic@6.12");
    let pages: Vec<Pfn> = (0..3).map(|page| touch(&mut engine, task, memory, page)).collect();
    let inactive = [folio(pages[2], false), folio(pages[0], false)];
    let found = StartLruvec {
        lists: lists(&[(None, &inactive), (None, &[folio(pages[1], true)])]),
        cost: [7, 9],
        nonresident_age: 5,
        counted: None,
        refaulted: [false; 2],
        generations: None,
    };
    engine.set_lists(MemcgId::ROOT, NODE, &found).unwrap();
    engine.check_invariants();
    assert_eq!(engine.figures().list_sizes(MemcgId::ROOT, pageout_engine::LruType::Anon), (2, 1));
    let forgotten = StartLruvec { lists: lists(&[(None, &inactive)]), ..found.clone() };
    let text = engine.set_lists(MemcgId::ROOT, NODE, &forgotten).unwrap_err().to_string();
    assert!(text.contains("1 pages of the group are on lists, but not on any"), "{text}");
}

#[test]
fn generations_are_as_they_were_found() {
    let found = |pages: &[Pfn], seqs: [u64; 2], window: (u64, [u64; 2])| StartLruvec {
        lists: lists(&[
            (Some(seqs[0]), &[folio(pages[0], false), folio(pages[1], false)]),
            (Some(seqs[1]), &[folio(pages[2], false)]),
        ]),
        cost: [0; 2],
        nonresident_age: 0,
        counted: None,
        refaulted: [false; 2],
        generations: Some(StartGenerations {
            max_seq: window.0,
            min_seq: window.1,
            averages: Default::default(),
            present: Default::default(),
        }),
    };
    let machine = || {
        let (mut engine, task, memory) = machine("mglru@6.12");
        let pages: Vec<Pfn> = (0..3).map(|page| touch(&mut engine, task, memory, page)).collect();
        (engine, pages)
    };
    let (mut engine, pages) = machine();
    engine.set_lists(MemcgId::ROOT, NODE, &found(&pages, [14, 17], (17, [14, 15]))).unwrap();
    engine.check_invariants();
    let rows = engine.figures().lru_gen(MemcgId::ROOT, NODE);
    let anon: Vec<(u64, u64)> = rows.iter().map(|row| (row.seq, row.anon)).collect();
    assert_eq!(anon, [(14, 2), (15, 0), (16, 0), (17, 1)]);
    for (seqs, window, told) in [
        ([14, 18], (17, [14, 15]), "generation 18 is not in the window"),
        ([14, 17], (17, [13, 15]), "generations 13 to 17 are not a window of up to 4"),
    ] {
        let (mut engine, pages) = machine();
        let text =
            engine.set_lists(MemcgId::ROOT, NODE, &found(&pages, seqs, window)).unwrap_err().to_string();
        assert!(text.contains(told), "{text}");
    }
    let (mut engine, task, memory) = super::start_state::machine("classic@6.12");
    let pages: Vec<Pfn> = (0..3).map(|page| touch(&mut engine, task, memory, page)).collect();
    let text =
        engine.set_lists(MemcgId::ROOT, NODE, &found(&pages, [1, 2], (3, [0, 0]))).unwrap_err().to_string();
    assert!(text.contains("the group does not use MGLRU"), "{text}");
}
