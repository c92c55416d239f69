//! Promises to requests for blocks of pages: the order of the slow path's attempts, OOM kills for a block, and background
//! compaction by kcompactd.

use super::compaction::{Bench, PAGES};
use crate::machine::step::Wait;
use crate::memory::Memory;
use crate::page_alloc::request::{Gfp, MigrateType, Request, Rights};
use crate::page_alloc::slow_path::Allocated;
use crate::page_alloc::watermark::Watermark;
use crate::stat::Stat;
use crate::units::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};
use crate::*;

fn movable(order: u8, gfp: Gfp) -> Request {
    Request { order, ..Request::movable(gfp, NodeId(0)) }
}

impl Bench {
    /// Asks as a task does, to the end.
    fn ask(&mut self, request: Request) -> Option<Pfn> {
        self.engine.enter(self.task);
        if let Some(pfn) = self.engine.core.alloc_pages(&request, MemcgId::ROOT) {
            return Some(pfn);
        }
        let mm = self.engine.mm_of(self.task);
        let mut allocation = self.engine.core.allocation(request, MemcgId::ROOT, Some(mm));
        for step in 0.. {
            let allocated = self.engine.core.allocation_step(&mut allocation);
            if let Allocated::Page(pfn) = allocated {
                let folio = &mut self.engine.core.mm.memory.folios[pfn];
                assert_eq!((folio.order, folio.memcg), (request.order, MemcgId::ROOT));
                assert!(pfn.0.is_multiple_of(1 << request.order), "{pfn:?} is not aligned");
                folio.refs = 1;
            }
            let is_over = matches!(allocated, Allocated::Page(_) | Allocated::Nothing);
            if is_over || step % 8 == 0 {
                self.engine.check_invariants();
            }
            self.carry_out();
            match allocated {
                Allocated::Page(pfn) => return Some(pfn),
                Allocated::Nothing => return None,
                Allocated::Again | Allocated::Wait(_) => {}
                other => panic!("{other:?}"),
            }
        }
        unreachable!("it ends")
    }

    fn stats<const N: usize>(&self, stats: [Stat; N]) -> [i64; N] {
        stats.map(|stat| self.engine.figures().vmstat(stat))
    }

    fn hold_all(&mut self) {
        for pfn in self.engine.used_folios() {
            self.engine.core.mm.memory.folios[pfn].refs += 1;
        }
    }

    fn score(&self) -> u64 {
        self.engine.core.mm.memory.zones.fragmentation_score(NodeId(0))
    }
}

/// Memory of which only the frames that `keeps` says are in use.
fn memory(keeps: impl Fn(&Pfn) -> bool) -> Memory {
    let mut memory = Memory::new(&Config { node_pages: vec![PAGES], ..Config::default() });
    let request = movable(0, Gfp::KERNEL);
    let mut all = Vec::new();
    while let Some((_, pfn)) =
        memory.alloc(CpuId(0), &request, Watermark::Min, Rights::NO_WATERMARKS, MemcgId::ROOT)
    {
        all.push(pfn);
    }
    all.into_iter().filter(|pfn| !keeps(pfn)).for_each(|pfn| memory.free(CpuId(0), pfn));
    memory.drain_all_pages();
    memory
}

/// Almost all frames are in use: the page cache needs some for its nodes.
fn nearly_all(pfn: &Pfn) -> bool {
    u64::from(pfn.0) < PAGES - 32
}

const COMPACT: [Stat; 3] = [Stat::CompactStall, Stat::CompactSuccess, Stat::CompactFail];

fn every(step: u32) -> impl Fn(&Pfn) -> bool {
    move |pfn| pfn.0.is_multiple_of(step)
}

#[test]
fn the_fragmentation_index_tells_a_lack_of_memory_from_its_fragmentation() {
    let index = |memory: &Memory, orders: &[u8]| -> Vec<i64> {
        let zone = memory.zones.zone(NodeId(0), ZoneType::Dma32);
        orders.iter().map(|&order| zone.fragmentation_index(order)).collect()
    };
    // 3072 pages are free, a block of one and one of two in each four frames.
    let scattered = memory(every(4));
    assert_eq!(index(&scattered, &[0, 1, 2, 9]), [-1000, -1000, 625, 997]);
    assert_eq!(997, 1000 - (1000 + 3072 * 1000 / 512) / 2048);
    // Four single pages.
    let few = memory(|pfn| pfn.0 % 1024 != 5);
    assert_eq!(index(&few, &[0, 1, 9]), [-1000, 1000 - (1000 + 2000) / 4, 1000 - (1000 + 7) / 4]);
    assert_eq!(index(&memory(|_| true), &[0, 9]), [0, 0], "no free page is no fragmentation");
}

#[test]
fn scattered_free_pages_are_compacted_for_a_large_block_and_none_is_reclaimed() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(4));
    assert!(bench.ask(movable(PAGEBLOCK_ORDER, Gfp::KERNEL)).is_some());
    assert_eq!(bench.stats(COMPACT), [1, 1, 0]);
    assert_eq!(bench.stats([Stat::AllocstallMovable, Stat::PgstealDirect]), [0, 0]);
    let [scanned, of_daemon] = bench.stats([Stat::CompactMigrateScanned, Stat::CompactDaemonMigrateScanned]);
    assert!(scanned >= 512 && of_daemon == 0);
}

#[test]
fn small_blocks_of_movable_memory_are_reclaimed_for_first_and_kernel_memory_compacts_first() {
    // Every other page: no block of two pages, and much free memory.
    let mut bench = Bench::keeping(MigrateType::Movable, every(2));
    assert!(bench.ask(movable(2, Gfp::KERNEL)).is_some());
    assert_eq!(bench.stats([Stat::AllocstallMovable]), [1]);
    let mut bench = Bench::keeping(MigrateType::Movable, every(2));
    let kernel = Request { order: 2, ..Request::kernel(MigrateType::Unmovable, Gfp::KERNEL, NodeId(0)) };
    assert!(bench.ask(kernel).is_some());
    assert_eq!(bench.stats([Stat::AllocstallNormal, Stat::CompactSuccess]), [0, 1]);
}

#[test]
fn too_few_free_pages_for_a_large_block_are_reclaimed_until_compaction_can_work() {
    let mut bench = Bench::keeping(MigrateType::Movable, nearly_all);
    let got = bench.ask(movable(PAGEBLOCK_ORDER, Gfp::KERNEL));
    assert!(got.is_some());
    let [stalls, stolen] = bench.stats([Stat::AllocstallMovable, Stat::PgstealDirect]);
    assert_eq!(stalls, 1);
    assert!((1024..2048).contains(&stolen), "{stolen} pages for the gap of 1024 above the mark");
}

#[test]
fn one_round_without_compaction_is_all_that_a_large_block_is_worth_to_who_has_another_way() {
    let mut bench = Bench::keeping(MigrateType::Movable, nearly_all);
    let request = movable(PAGEBLOCK_ORDER, Gfp::KERNEL | Gfp::NORETRY);
    assert_eq!(bench.ask(request), None);
    assert_eq!(bench.stats([Stat::AllocstallMovable, Stat::PgstealDirect]), [0, 0]);
    assert_eq!(bench.stats(COMPACT), [0, 0, 0], "nothing was tried");
}

#[test]
fn nobody_is_killed_for_a_large_block_and_one_that_has_failed_puts_off_the_next() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(4));
    bench.hold_all();
    for gfp in [Gfp::KERNEL, Gfp::KERNEL | Gfp::RETRY_MAYFAIL] {
        assert_eq!(bench.ask(movable(PAGEBLOCK_ORDER, gfp)), None);
    }
    let [stalls, successes, fails] = bench.stats(COMPACT);
    assert_eq!((successes, bench.engine.figures().vmstat(Stat::OomKill)), (0, 0));
    assert!(stalls == fails && stalls >= 2, "{stalls} stalls, {fails} of them in vain");
    let before = bench.stats(COMPACT);
    assert_eq!(bench.ask(movable(PAGEBLOCK_ORDER, Gfp::KERNEL | Gfp::NORETRY)), None);
    assert_eq!(bench.stats(COMPACT), before, "it was put off");
}

#[test]
fn who_can_not_wait_neither_reclaims_nor_compacts() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(2));
    let atomic = Request { order: 3, ..Request::kernel(MigrateType::Unmovable, Gfp::ATOMIC, NodeId(0)) };
    assert_eq!(bench.ask(atomic), None);
    assert_eq!(bench.stats([Stat::AllocstallNormal, Stat::CompactMigrateScanned]), [0, 0]);
}

#[test]
fn a_block_that_compaction_has_made_is_its_makers_below_the_mark_too() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(4));
    // So many kernel pages at the end that what is free is just above the mark for compaction.
    let zone = bench.engine.figures().zones().next().unwrap();
    let spare = zone.free - zone.low - 1024 - 1;
    let core = &mut bench.engine.core;
    let request = Request { order: 0, ..Request::kernel(MigrateType::Movable, Gfp::KERNEL, NodeId(0)) };
    for _ in 0..spare {
        let pfn = core.try_alloc(&request, Watermark::Min, Rights::NO_WATERMARKS, MemcgId::ROOT).unwrap();
        core.mm.memory.folios[pfn].refs = 1;
    }
    core.mm.memory.drain_all_pages();
    let free = bench.engine.figures().zones().next().unwrap().free;
    assert!(free > zone.low && free < PAGES);
    let got = bench.ask(movable(PAGEBLOCK_ORDER, Gfp::KERNEL));
    assert!(got.is_some() || bench.engine.figures().vmstat(Stat::CompactFail) > 0);
}

/// The threads of a bench's node: kswapd and kcompactd.
fn threads(bench: &mut Bench) -> [TaskId; 2] {
    let threads = bench.engine.start_kernel_threads();
    let by_name = |name: &str| threads.iter().find(|thread| thread.name == name).expect(name).task;
    [by_name("kswapd0"), by_name("kcompactd0")]
}

fn run(bench: &mut Bench, thread: TaskId) -> Wait {
    loop {
        bench.engine.check_invariants();
        let step = bench.engine.resume(thread);
        bench.carry_out();
        match step {
            Step::Again => {}
            Step::Wait(wait) => return wait,
            Step::Done(served) => panic!("{served:?}"),
        }
    }
}

fn woken(bench: &mut Bench) -> Vec<TaskId> {
    let mut woken = Vec::new();
    bench.engine.take_woken(&mut woken);
    woken
}

const SCATTERED: u64 = 100;

#[test]
fn the_score_is_the_share_of_free_pages_in_no_free_pageblock() {
    let score = |memory: Memory| memory.zones.fragmentation_score(NodeId(0));
    assert_eq!(score(memory(every(4))), SCATTERED);
    // The first two pageblocks are free, and every third page of the others.
    assert_eq!(score(memory(|pfn| pfn.0 >= 1024 && pfn.0 % 3 != 0)), 100 * 1024 / 2048);
    assert_eq!(score(memory(|_| false)), 0);
    assert_eq!(score(memory(|_| true)), 0, "nothing is free, so nothing is apart");
}

#[test]
fn kcompactd_makes_the_block_that_kswapd_was_woken_for() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(2));
    bench.engine.core.mm.config.compaction_proactiveness = 0;
    let [kswapd, kcompactd] = threads(&mut bench);
    bench.engine.enter(bench.task);
    bench.engine.core.wake_kswapds(&movable(PAGEBLOCK_ORDER, Gfp::NOWAIT));
    assert_eq!(woken(&mut bench), [kswapd]);
    assert!(matches!(run(&mut bench, kswapd), Wait::WokenOr(_, DelayReason::Nap)));
    assert_eq!(woken(&mut bench), [kcompactd], "kswapd hands over before its nap");
    assert_eq!((bench.blocks(9), bench.engine.figures().vmstat(Stat::CompactDaemonWake)), (0, 0));
    assert_eq!(run(&mut bench, kcompactd), Wait::Woken);
    assert!(bench.blocks(9) > 0);
    let [wakes, all, of_daemon] = bench.stats([
        Stat::CompactDaemonWake,
        Stat::CompactMigrateScanned,
        Stat::CompactDaemonMigrateScanned,
    ]);
    assert!(wakes == 1 && all > 0 && all == of_daemon, "{wakes} wakes, {of_daemon} of {all} scanned");
    // A block is there now.
    bench.engine.core.wake_kcompactd(NodeId(0), PAGEBLOCK_ORDER, ZoneType::Movable);
    assert_eq!(woken(&mut bench), []);
}

#[test]
fn kcompactd_lowers_the_score_unasked_once_kswapd_has_been_woken() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(4));
    let [_, kcompactd] = threads(&mut bench);
    assert_eq!(bench.score(), SCATTERED);
    bench.engine.core.kcompactd_look_around(NodeId(0));
    assert_eq!(woken(&mut bench), [kcompactd]);
    assert_eq!(run(&mut bench, kcompactd), Wait::WokenOr(Nanos(500_000_000), DelayReason::Nap));
    let score = bench.score();
    assert!((50..=80).contains(&score), "{score}: it ends when its aim is reached");
    assert_eq!(bench.engine.figures().vmstat(Stat::CompactDaemonWake), 0, "nobody has asked");
    let moved = bench.engine.figures().vmstat(Stat::PgmigrateSuccess);
    bench.engine.set_now(Nanos(600_000_000));
    assert_eq!(run(&mut bench, kcompactd), Wait::WokenOr(Nanos(400_000_000), DelayReason::Nap));
    assert_eq!(bench.engine.figures().vmstat(Stat::PgmigrateSuccess), moved, "the score is low enough");
}

#[test]
fn a_run_that_does_not_lower_the_score_leaves_out_63() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(4));
    bench.hold_all();
    let [_, kcompactd] = threads(&mut bench);
    bench.engine.core.kcompactd_look_around(NodeId(0));
    let mut scans = Vec::new();
    for look in 0..66 {
        bench.engine.set_now(Nanos(look * 500_000_000));
        let before = bench.engine.figures().vmstat(Stat::CompactDaemonMigrateScanned);
        run(&mut bench, kcompactd);
        if bench.engine.figures().vmstat(Stat::CompactDaemonMigrateScanned) > before {
            scans.push(look);
        }
    }
    assert_eq!(scans, [0, 64]);
}

#[test]
fn a_machine_whose_kcompactd_may_not_act_unasked_is_left_alone() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(4));
    bench.engine.core.mm.config.compaction_proactiveness = 0;
    let [kswapd, kcompactd] = threads(&mut bench);
    bench.engine.core.wake(kswapd);
    woken(&mut bench);
    run(&mut bench, kswapd);
    assert_eq!(woken(&mut bench), []);
    // Until it may.
    let file = "/proc/sys/vm/compaction_proactiveness";
    assert!(matches!(bench.engine.write_file(bench.task, file, "50"), Ok(Step::Done(_))));
    assert_eq!(woken(&mut bench), [kcompactd]);
    run(&mut bench, kcompactd);
    let score = bench.score();
    assert!((30..=50).contains(&score), "{score}");
}

/// Writes the size of a pool of huge pages, and waits for the end of it.
fn resize_pool(bench: &mut Bench, file: &str, blocks: &str) -> String {
    let path = format!("/sys/kernel/mm/hugepages/{file}/nr_hugepages");
    let step = bench.engine.write_file(bench.task, &path, blocks).unwrap();
    end_write(bench, bench.task, step);
    bench.engine.read_file(&path).unwrap()
}

/// Lets a task go on until its write has ended.
fn end_write(bench: &mut Bench, task: TaskId, mut step: Step) {
    while !matches!(step, Step::Done(_)) {
        bench.carry_out();
        step = bench.engine.resume(task);
    }
    bench.carry_out();
    bench.engine.check_invariants();
}

#[test]
fn a_pool_of_huge_pages_grows_as_far_as_blocks_can_be_had_and_gives_them_back() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(4));
    let huge = "hugepages-2048kB";
    let has = resize_pool(&mut bench, huge, "100");
    let blocks: i64 = has.trim().parse().unwrap();
    // Clean pages of files: all are available except those that the kernel and the reserve need.
    assert!((4..8).contains(&blocks), "{blocks} of 8 pageblocks");
    assert_eq!(bench.stats([Stat::HtlbBuddyAllocSuccess, Stat::HtlbBuddyAllocFail]), [blocks, 1]);
    assert_eq!(bench.engine.figures().vmstat(Stat::OomKill), 0);
    assert_eq!(resize_pool(&mut bench, huge, &(blocks - 2).to_string()), format!("{}\n", blocks - 2));
    assert_eq!(resize_pool(&mut bench, "hugepages-16kB", "9"), "9\n");
    assert_eq!(resize_pool(&mut bench, huge, "0"), "0\n");
    assert_eq!(resize_pool(&mut bench, "hugepages-16kB", "0"), "0\n");
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    assert!(bench.engine.write_file(bench.task, path, "-1").is_err());
    let none = "/sys/kernel/mm/hugepages/hugepages-3kB/nr_hugepages";
    assert!(bench.engine.write_file(bench.task, none, "1").is_err());
}

/// A write that ended early would leave behind the pages that its reclaim or compaction has isolated.
#[test]
fn a_write_to_a_pool_that_another_write_makes_large_enough_comes_to_its_end() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(4));
    bench.engine.core.set_policy(Policy::of("classic@2010"));
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let mm = bench.engine.process_create(MemcgId::ROOT);
    let other = bench.engine.task_create(mm, CpuId(0));
    let mut step = bench.engine.write_file(other, path, "3").unwrap();
    let isolated = [Stat::NrIsolatedAnon, Stat::NrIsolatedFile];
    while bench.stats(isolated) == [0, 0] {
        assert!(!matches!(step, Step::Done(_)), "it takes pages off their lists");
        bench.carry_out();
        step = bench.engine.resume(other);
    }
    assert_eq!(resize_pool(&mut bench, "hugepages-2048kB", "3"), "3\n");
    end_write(&mut bench, other, step);
    assert_eq!(bench.stats(isolated), [0, 0]);
    assert_eq!(bench.engine.read_file(path).unwrap(), "3\n");
}

#[test]
fn a_request_for_a_huge_page_of_a_pool_that_is_not_repeated_ends_with_its_first_call_of_reclaim() {
    let calls = |repeat| {
        let mut bench = Bench::keeping(MigrateType::Movable, every(4));
        bench.engine.core.mm.config.hugetlb_repeat = repeat;
        bench.engine.core.set_policy(Policy::of("classic@2010"));
        // Each block has a page that stays, so no block is available.
        let step = PAGEBLOCK_PAGES as u32;
        for pfn in bench.engine.used_folios() {
            bench.engine.core.mm.memory.folios[pfn].refs += u16::from(pfn.0 % step < 8);
        }
        assert_eq!(resize_pool(&mut bench, "hugepages-2048kB", "8"), "0\n");
        bench.engine.work().reclaim_calls
    };
    assert_eq!(calls(false), 1);
    assert!(calls(true) > 1, "{} calls", calls(true));
}

#[test]
fn a_node_without_scattered_pages_is_not_touched_at_the_start() {
    let with_records = |blocks: &[u64]| {
        let layout = Layout { unmovable_blocks: blocks.to_vec(), ..Layout::default() };
        let config = Config { node_pages: vec![PAGES, PAGES], layout, ..Config::default() };
        let engine = Engine::new(config).unwrap();
        [NodeId(0), NodeId(1)].map(|node| engine.core.mm.memory.zones.used_so_far(node).count() as u64)
    };
    assert_eq!(with_records(&[]), [0, 0]);
    assert_eq!(with_records(&[0, 0]), [0, 0]);
    assert_eq!(with_records(&[0, 3]), [0, PAGES]);
}

/// The rights of a request of order > 0 that can't wait and may use the reserve.
const ATOMIC: Rights = Rights::MIN_RESERVE.union(Rights::NON_BLOCK).union(Rights::HIGHATOMIC);

/// Takes blocks of two pages for requests that can't wait, and returns how many pageblocks were kept for such
/// requests after each.
fn kept_after(pages: u64, requests: usize) -> (Memory, Vec<u64>) {
    let mut memory = Memory::new(&Config { node_pages: vec![pages], ..Config::default() });
    let request = Request { order: 1, ..Request::kernel(MigrateType::Unmovable, Gfp::ATOMIC, NodeId(0)) };
    // Each from another pageblock, as the rest of the one before is taken, too.
    let rest = movable(PAGEBLOCK_ORDER, Gfp::KERNEL);
    let kept = (0..requests)
        .map(|_| {
            memory.alloc(CpuId(0), &request, Watermark::Min, ATOMIC, MemcgId::ROOT).unwrap();
            memory.alloc(CpuId(0), &rest, Watermark::Min, Rights::empty(), MemcgId::ROOT).unwrap();
            memory.zones.check_invariants(&memory.folios);
            let zone = memory.zones.zone(NodeId(0), ZoneType::Dma32);
            zone.highatomic_free_pages() / (PAGES / 8 - 64)
        })
        .collect();
    (memory, kept)
}

#[test]
fn a_zone_keeps_pageblocks_for_who_can_not_wait_and_a_hundredth_at_most() {
    assert_eq!(kept_after(51_199, 3).1, [0, 0, 0], "a hundredth of it is no pageblock");
    let (memory, kept) = kept_after(51_200, 3);
    assert_eq!(kept, [1, 1, 1]);
    let zone = memory.zones.zone(NodeId(0), ZoneType::Dma32);
    let kept = zone.highatomic_free_pages();
    let (free, class) = (zone.free_pages(), ZoneType::Movable);
    assert!((448..512).contains(&kept), "{kept} pages");
    assert!(!zone.watermark_ok(0, free - kept, class, Rights::empty()), "nobody else counts them as free");
    assert!(zone.watermark_ok(0, free - kept, class, Rights::NON_BLOCK));
}

#[test]
fn pageblocks_kept_for_who_can_not_wait_are_given_up_to_the_last_one_and_that_before_a_kill() {
    let (mut memory, _) = kept_after(51_200, 1);
    let request = movable(0, Gfp::KERNEL);
    let kept = |memory: &Memory| memory.zones.zone(NodeId(0), ZoneType::Dma32).highatomic_free_pages();
    assert!(kept(&memory) > 0);
    assert!(!memory.release_highatomic(&request, false), "one stays after reclaim that did not help");
    assert!(kept(&memory) > 0);
    assert!(memory.release_highatomic(&request, true));
    assert_eq!(kept(&memory), 0);
    assert!(!memory.release_highatomic(&request, true), "there is no more");
    memory.zones.check_invariants(&memory.folios);
}

#[test]
fn only_a_request_of_order_above_0_that_can_not_wait_may_use_what_is_kept_for_such() {
    let bench = Bench::keeping(MigrateType::Movable, every(2));
    let rights = |order: u8, gfp: Gfp| {
        let kernel = Request::kernel(MigrateType::Unmovable, gfp, NodeId(0));
        bench.engine.core.slow_rights(&Request { order, ..kernel }) & Rights::RESERVES
    };
    assert_eq!(rights(1, Gfp::ATOMIC), ATOMIC);
    assert_eq!(rights(0, Gfp::ATOMIC), Rights::MIN_RESERVE | Rights::NON_BLOCK);
    assert_eq!(rights(1, Gfp::NOWAIT), Rights::NON_BLOCK);
    assert_eq!(rights(1, Gfp::KERNEL | Gfp::HIGH), Rights::MIN_RESERVE);
    assert_eq!(rights(1, Gfp::KERNEL), Rights::empty());
    assert_eq!(rights(1, Gfp::ATOMIC | Gfp::NOMEMALLOC), Rights::MIN_RESERVE);
}

#[test]
fn a_real_time_task_may_use_half_of_the_reserve_and_others_may_not() {
    let mut engine = Engine::new(Config::default()).unwrap();
    let mm = engine.process_create(MemcgId::ROOT);
    let [fair, real_time] = [0, 0].map(|cpu| engine.task_create(mm, CpuId(cpu)));
    engine.set_real_time(real_time, true);
    for (task, rights) in [(fair, Rights::empty()), (real_time, Rights::MIN_RESERVE), (fair, Rights::empty())]
    {
        engine.enter(task);
        let request = Request::movable(Gfp::KERNEL, NodeId(0));
        assert_eq!(engine.core.slow_rights(&request) & Rights::RESERVES, rights);
    }
}
