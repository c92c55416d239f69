//! Promises of huge pages: which tasks get them, how they are counted, how they are handled as one unit, and what splits them into
//! single pages.
use crate::memory::folio::{FolioFlags, HUGE_PAGE_PAGES};
use crate::memory::mm::Advice;
use crate::memory::table::LEAF_PAGES;
use crate::page_alloc::request::{Gfp, Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::stat::Stat;
use crate::story::MigrateReason;
use crate::*;

const HERE: NodeId = NodeId(0);
const THERE: NodeId = NodeId(1);
const HUGE: i64 = HUGE_PAGE_PAGES as i64;
/// Two huge pages, and a rest that is too small for one.
const PAGES: u64 = 2 * HUGE_PAGE_PAGES + 100;

/// A machine of a fast and a slow node, with a group of one task that has a heap. Nothing of it is used yet.
struct Bench {
    engine: Engine,
    memcg: MemcgId,
    task: TaskId,
    heap: ObjectId,
    ops: Vec<Op>,
}

fn always() -> Config {
    Config {
        transparent_hugepage: TransparentHugepage::Always,
        charge_stock: 1,
        stat_flush: StatFlush::Live,
        ..Config::default()
    }
}

impl Bench {
    fn new(config: Config) -> Bench {
        let swap: &[u64] = if config.demotion_enabled { &[] } else { &[4096] };
        Bench::with_swap(config, swap)
    }

    /// One with swap devices of so many slots.
    fn with_swap(config: Config, swap: &[u64]) -> Bench {
        let memory_types = vec![MemoryType::Dram, MemoryType::Adistance(ADISTANCE_DAX_KMEM)];
        let layout = Layout { memory_types, ..Layout::default() };
        let config = Config { node_pages: vec![8192, 8192], layout, kmem: false, ..config };
        let mut builder = Engine::builder(config).unwrap();
        for &pages in swap {
            builder.swap_on(SwapSpec { pages, kind: SwapKind::Synchronous }).unwrap();
        }
        let mut engine = builder.build();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let heap = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        Bench { engine, memcg, task, heap, ops: Vec::new() }
    }

    fn run(&mut self, mut step: Step) -> Served {
        loop {
            self.engine.take_ops(&mut self.ops);
            self.engine.check_invariants();
            match step {
                Step::Done(served) => return served,
                Step::Again => step = self.engine.resume(self.task),
                Step::Wait(_) => {
                    self.engine.set_now(Nanos(self.engine.core.by.now.0 + 100_000_000));
                    step = self.engine.resume(self.task);
                }
            }
        }
    }

    fn access(&mut self, page: u64, write: bool) -> Served {
        let step = self.engine.start(self.task, Access::new(self.heap, page, write));
        self.run(step)
    }

    fn fault(&mut self, page: u64) -> Pfn {
        match self.access(page, true) {
            Served::Minor(Touched::Frame(pfn)) => pfn,
            served => panic!("{served:?}"),
        }
    }

    fn frame(&mut self, page: u64) -> Pfn {
        match self.access(page, true) {
            Served::Hit(Touched::Frame(pfn)) => pfn,
            served => panic!("page {page}: {served:?}"),
        }
    }

    fn write(&mut self, path: &str, value: &str) -> Served {
        let step = self.engine.write_file(self.task, path, value).unwrap();
        self.run(step)
    }

    fn reclaim(&mut self, pages: u64) -> u64 {
        match self.write("/sys/fs/cgroup/job/memory.reclaim", &(pages * PAGE_SIZE).to_string()) {
            Served::Written { reclaimed } => reclaimed,
            served => panic!("{served:?}"),
        }
    }

    fn stats<const N: usize>(&self, stats: [Stat; N]) -> [i64; N] {
        stats.map(|stat| self.engine.figures().vmstat(stat))
    }

    fn usage(&self) -> u64 {
        self.engine.core.mm.memcgs[self.memcg].usage
    }

    /// The folio that a page of the heap is in.
    fn folio(&self, page: u64) -> crate::memory::folio::Folio {
        let word = self.engine.core.mm.memory.mm(self.engine.mm_of(self.task)).table.word(page);
        self.engine.core.mm.memory.folios[word.pfn()]
    }

    /// Leaves a node with many free pages of which no 512 lie in a row.
    fn fragment(&mut self, node: NodeId) {
        let request = Request::movable(Gfp::NOWAIT | Gfp::THISNODE, node);
        let core = &mut self.engine.core;
        // A CPU may hold a whole block.
        core.mm.memory.drain_all_pages();
        let (mark, rights) = (Watermark::Min, Rights::NO_WATERMARKS);
        let mut taken = Vec::new();
        while let Some(pfn) = core.try_alloc(&request, mark, rights, MemcgId::ROOT) {
            taken.push(pfn);
        }
        for pfn in taken {
            if pfn.0 % 64 == 0 {
                // A page of the kernel, as far as migration can see.
                core.mm.memory.folios[pfn].set(FolioFlags::KERNEL);
            } else {
                core.free_folio(pfn);
            }
        }
        core.mm.memory.drain_all_pages();
    }
}

const THP: [Stat; 4] =
    [Stat::NrAnonThps, Stat::ThpFaultAlloc, Stat::ThpFaultFallback, Stat::ThpFaultFallbackCharge];
const SPLIT: [Stat; 3] = [Stat::ThpSplitPage, Stat::ThpSplitPmd, Stat::ThpSwpoutFallback];

#[test]
fn a_first_write_brings_in_2_mib_and_all_of_its_pages_are_hits_from_then_on() {
    for profile in PROFILES {
        println!("{}", profile.name);
        let mut bench = Bench::new(Config { policy: profile.policy(), ..always() });
        let third = bench.fault(3);
        assert_eq!(third.0 % LEAF_PAGES as u32, 3, "its frames are a block of their own");
        assert_eq!(bench.stats(THP), [1, 1, 0, 0]);
        assert_eq!(
            (bench.engine.figures().vmstat(Stat::NrAnonPages), bench.usage()),
            (HUGE, HUGE_PAGE_PAGES)
        );
        for page in 0..LEAF_PAGES {
            assert_eq!(bench.frame(page).0, third.0 - 3 + page as u32);
        }
        let zeroed: u32 =
            bench.ops.iter().map(|op| if let Op::Zero { pages, .. } = op { *pages } else { 0 }).sum();
        assert_eq!(zeroed, LEAF_PAGES as u32);
        bench.fault(LEAF_PAGES + 9);
        bench.fault(2 * LEAF_PAGES);
        bench.fault(2 * LEAF_PAGES + 1);
        assert_eq!(bench.stats(THP), [2, 2, 0, 0], "the rest of the heap is too small for one");
        assert_eq!(bench.usage(), 2 * HUGE_PAGE_PAGES + 2);
        assert_eq!(bench.engine.work().faults, 4);
        let memory_stat = bench.engine.read_file("/sys/fs/cgroup/job/memory.stat").unwrap();
        assert!(memory_stat.contains("anon_thp 4194304\n"), "{memory_stat}");
        let meminfo = bench.engine.read_file("/proc/meminfo").unwrap();
        assert!(meminfo.lines().any(|line| line.split_whitespace().eq(["AnonHugePages:", "4096", "kB"])));
    }
}

#[test]
fn only_whom_the_machine_lets_has_them() {
    use {HugeAdvice::*, TransparentHugepage::*};
    for (enabled, advice, expected) in [
        (Never, Hugepage, 0),
        (Madvise, Normal, 0),
        (Madvise, Hugepage, 1),
        (Madvise, NoHugepage, 0),
        (Always, Normal, 1),
        (Always, NoHugepage, 0),
    ] {
        let mut bench = Bench::new(Config { transparent_hugepage: enabled, ..Config::default() });
        bench.engine.madvise_hugepage(bench.task, bench.heap, advice).unwrap();
        bench.fault(0);
        assert_eq!(bench.stats(THP), [expected, expected, 0, 0], "{enabled:?} {advice:?}");
    }
}

#[test]
fn where_a_page_was_used_before_single_pages_follow() {
    let mut bench = Bench::new(always());
    assert!(matches!(bench.access(5, false), Served::Minor(Touched::Zeroes)));
    bench.fault(5);
    bench.fault(6);
    assert_eq!(bench.stats(THP), [0; 4]);
    assert_eq!(bench.usage(), 2);
}

#[test]
fn where_no_block_is_free_a_single_page_does() {
    let mut bench = Bench::new(always());
    bench.fragment(HERE);
    bench.fragment(THERE);
    bench.fault(0);
    assert_eq!(bench.stats(THP), [0, 0, 1, 0]);
    assert_eq!(bench.usage(), 1);
    bench.fault(1);
    assert_eq!(bench.stats(THP), [0, 0, 1, 0], "once for each 2 MiB");
    bench.fault(LEAF_PAGES);
    assert_eq!(bench.stats(THP), [0, 0, 2, 0]);
}

/// A huge page causes no OOM kill, and no reclaim in a mapping without the advice for huge pages.
#[test]
fn where_its_group_has_no_room_a_single_page_does() {
    for (advice, reclaims) in [(HugeAdvice::Normal, false), (HugeAdvice::Hugepage, true)] {
        let mut bench = Bench::new(always());
        bench.engine.madvise_hugepage(bench.task, bench.heap, advice).unwrap();
        bench.write("/sys/fs/cgroup/job/memory.max", &(300 * PAGE_SIZE).to_string());
        for page in 0..200 {
            bench.fault(page);
        }
        assert_eq!(bench.stats(THP), [0, 0, 1, 1], "{advice:?}");
        assert_eq!(bench.usage(), 200);
        bench.fault(LEAF_PAGES);
        assert_eq!(bench.engine.figures().vmstat(Stat::PgscanAnon) > 0, reclaims, "{advice:?}");
        assert_eq!(bench.engine.figures().vmstat(Stat::OomKill), 0);
    }
}

#[test]
fn it_is_freed_as_a_whole_at_exit_and_by_munmap() {
    for exits in [true, false] {
        let mut bench = Bench::new(always());
        bench.fault(0);
        bench.fault(LEAF_PAGES);
        let zapped = bench.engine.work().zapped;
        if exits {
            let step = bench.engine.task_exit(bench.task);
            bench.run(step);
        } else {
            bench.engine.munmap(bench.task, bench.heap).unwrap();
        }
        bench.engine.check_invariants();
        assert_eq!(bench.engine.work().zapped - zapped, 2, "an entry each");
        assert_eq!(bench.stats([Stat::NrAnonPages, Stat::NrAnonThps]), [0, 0]);
        assert_eq!(bench.usage(), 0);
        bench.engine.take_ops(&mut bench.ops);
        let freed = bench.ops.iter().filter(|op| matches!(op, Op::FreeFrame { pages: 512, .. })).count();
        assert_eq!(freed, 2);
        assert_eq!(bench.engine.used_folios(), []);
    }
}

#[test]
fn reclaim_without_free_slots_in_a_row_swaps_single_pages() {
    for profile in PROFILES {
        println!("{}", profile.name);
        // No device has a row of 512.
        let mut bench = Bench::with_swap(Config { policy: profile.policy(), ..always() }, &[300, 300]);
        bench.fault(0);
        for _ in 0..4 {
            bench.reclaim(HUGE_PAGE_PAGES);
        }
        assert_eq!(bench.stats(SPLIT), [1, 1, 1]);
        assert_eq!(bench.stats([Stat::ThpSwpout]), [0]);
        assert_eq!(bench.stats([Stat::NrAnonThps, Stat::Pswpout, Stat::NrAnonPages]), [0, HUGE, 0]);
        assert_eq!(bench.usage(), 0);
        // All of it comes back page by page.
        for page in 0..LEAF_PAGES {
            assert!(matches!(bench.access(page, false), Served::Major(Touched::Frame(_))));
        }
        assert_eq!(bench.stats(THP), [0, 1, 0, 0]);
    }
}

#[test]
fn reclaim_with_slots_in_a_row_swaps_all_of_it() {
    for profile in PROFILES {
        println!("{}", profile.name);
        let mut bench = Bench::new(Config { policy: profile.policy(), ..always() });
        let pfn = bench.fault(0);
        bench.reclaim(HUGE_PAGE_PAGES);
        bench.reclaim(HUGE_PAGE_PAGES);
        assert_eq!(bench.stats(SPLIT), [0, 1, 0], "its entry is taken away page by page");
        assert_eq!(bench.stats([Stat::ThpSwpout, Stat::Pswpout, Stat::NrAnonPages]), [1, HUGE, 0]);
        assert_eq!(bench.usage(), 0);
        let freed = Op::FreeFrame { pfn, pages: 512 };
        assert!(bench.ops.contains(&freed), "it is free as a whole");
        for page in 0..LEAF_PAGES {
            assert!(matches!(bench.access(page, false), Served::Major(Touched::Frame(_))));
        }
        assert_eq!(bench.stats(THP), [0, 1, 0, 0], "it comes back page by page");
    }
}

#[test]
fn one_use_of_a_page_keeps_all_of_it_and_takes_one_look() {
    for profile in ["classic@6.12", "mglru@6.12"] {
        let policy = Policy::of(profile);
        let mut bench = Bench::new(Config { policy, ..always() });
        bench.fault(0);
        let head = bench.frame(0);
        bench.engine.mark_idle(bench.task, bench.heap, 5).unwrap();
        assert_eq!(bench.engine.core.folio_referenced(head, true).young, 0);
        bench.frame(77);
        let before = *bench.engine.work();
        assert_eq!(bench.engine.core.folio_referenced(head, true).young, 1, "{profile}");
        assert_eq!(bench.engine.core.folio_referenced(head, true).young, 0, "{profile}");
        let work = *bench.engine.work() - before;
        assert_eq!((work.rmap_steps, work.ptes_walked), (2, 0), "nothing lies beside it");
    }
}

#[test]
fn a_walk_finds_a_huge_page_by_one_entry() {
    let policy = Policy::of("mglru@6.12");
    let mut bench = Bench::new(Config { policy, ..always() });
    bench.fault(0);
    bench.fault(LEAF_PAGES);
    let age = |bench: &mut Bench| {
        let max_seq =
            bench.engine.core.mm.generations(bench.engine.core.mm.lruvecs.id(bench.memcg, HERE)).max_seq;
        let command = format!("+ {} 0 {max_seq}", bench.memcg.0 + 1);
        assert_eq!(bench.write("/sys/kernel/debug/lru_gen", &command), Served::Written { reclaimed: 0 });
    };
    age(&mut bench);
    let before = bench.engine.work().ptes_walked;
    bench.frame(100);
    age(&mut bench);
    let walked = bench.engine.work().ptes_walked - before;
    assert!(walked <= PAGES - 2 * LEAF_PAGES, "{walked} entries of the rest of the heap at most");
    let anon: Vec<u64> =
        bench.engine.figures().lru_gen(bench.memcg, HERE).iter().map(|generation| generation.anon).collect();
    let youngest = anon.iter().rev().find(|&&pages| pages > 0);
    assert_eq!(youngest, Some(&HUGE_PAGE_PAGES), "{anon:?}: the one that was used");
}

#[test]
fn advice_on_a_page_makes_single_pages_of_what_it_is_part_of() {
    let mut bench = Bench::new(always());
    bench.fault(0);
    bench.engine.madvise_free(bench.task, bench.heap, 7).unwrap();
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
    assert_eq!(bench.stats(SPLIT), [1, 1, 0]);
    assert_eq!(bench.stats([Stat::NrAnonThps, Stat::NrAnonPages, Stat::Pglazyfree]), [0, HUGE, 1]);
    let swapbacked = (0..LEAF_PAGES).filter(|&page| bench.folio(page).has(FolioFlags::SWAPBACKED)).count();
    assert_eq!(swapbacked, LEAF_PAGES as usize - 1);
    bench.fault(LEAF_PAGES);
    bench.engine.madvise_cold(bench.task, bench.heap, LEAF_PAGES + 1).unwrap();
    assert_eq!(bench.stats(SPLIT), [2, 2, 0]);
    bench.engine.check_invariants();
}

/// A user outside the engine holds it, so it can be neither moved nor split.
#[test]
fn what_is_held_stays_huge() {
    let mut bench = Bench::new(always());
    let pfn = bench.fault(9);
    bench.engine.hold(pfn);
    bench.engine.madvise_free(bench.task, bench.heap, 7).unwrap();
    assert_eq!(bench.stats([Stat::ThpSplitPage, Stat::ThpSplitPageFailed]), [0, 1]);
    bench.reclaim(HUGE_PAGE_PAGES);
    assert_eq!(bench.stats([Stat::ThpSplitPage, Stat::NrAnonThps]), [0, 1]);
    bench.engine.release(pfn);
    bench.engine.check_invariants();
}

#[test]
fn locked_memory_is_locked_as_a_whole() {
    for locks_first in [true, false] {
        let mut bench = Bench::new(always());
        if locks_first {
            bench.engine.mlock(bench.task, bench.heap).unwrap();
        }
        bench.fault(0);
        bench.engine.mlock(bench.task, bench.heap).unwrap();
        bench.engine.check_invariants();
        assert_eq!(bench.stats([Stat::NrMlock, Stat::NrUnevictable]), [HUGE, HUGE]);
        bench.reclaim(HUGE_PAGE_PAGES);
        assert_eq!(bench.stats([Stat::NrAnonThps, Stat::ThpSplitPage]), [1, 0]);
        bench.engine.munlock(bench.task, bench.heap).unwrap();
        bench.engine.check_invariants();
        assert_eq!(bench.stats([Stat::NrMlock, Stat::NrUnevictable]), [0, 0]);
    }
}

const MOVED: [Stat; 4] =
    [Stat::PgmigrateSuccess, Stat::ThpMigrationSuccess, Stat::ThpMigrationFail, Stat::ThpMigrationSplit];

#[test]
fn it_moves_to_another_node_as_a_whole() {
    for profile in PROFILES {
        let mut bench = Bench::new(Config { policy: profile.policy(), ..always() });
        let from = bench.fault(0);
        bench.engine.core.migrate_prepare(from, None, THERE).unwrap();
        assert_eq!(
            bench.engine.core.migrate_to_node(&[from], THERE, MigrateReason::Kmigrated),
            HUGE_PAGE_PAGES
        );
        bench.engine.check_invariants();
        assert_eq!(bench.stats(MOVED), [HUGE, 1, 0, 0]);
        let on = |bench: &Bench, node| {
            [Stat::NrAnonPages, Stat::NrAnonThps].map(|stat| bench.engine.figures().node_stat(node, stat))
        };
        assert_eq!((on(&bench, HERE), on(&bench, THERE)), ([0, 0], [HUGE, 1]));
        let to = bench.frame(0);
        assert!(to != from && bench.frame(511).0 == to.0 + 511);
        bench.engine.take_ops(&mut bench.ops);
        assert!(bench.ops.contains(&Op::Copy { from, to, pages: 512 }));
        assert_eq!(bench.usage(), HUGE_PAGE_PAGES);
    }
}

/// No task reclaims or compacts for a page that is only in the wrong place.
#[test]
fn a_misplaced_one_stays_where_no_block_is_free() {
    let mut bench = Bench::new(always());
    let pfn = bench.fault(0);
    bench.fragment(THERE);
    bench.engine.core.migrate_prepare(pfn, None, THERE).unwrap();
    assert_eq!(bench.engine.core.migrate_to_node(&[pfn], THERE, MigrateReason::Kmigrated), 0);
    bench.engine.check_invariants();
    assert_eq!(bench.stats(MOVED), [0, 0, 1, 0]);
    assert_eq!(bench.frame(0), pfn);
}

#[test]
fn a_misplaced_one_goes_page_by_page_where_no_block_is_free_and_the_rule_says_so() {
    let mut bench = Bench::new(Config { misplaced_huge: MisplacedHuge::Split, ..always() });
    let pfn = bench.fault(0);
    bench.fragment(THERE);
    bench.engine.core.migrate_prepare(pfn, None, THERE).unwrap();
    let moved = bench.engine.core.migrate_to_node(&[pfn], THERE, MigrateReason::Kmigrated);
    bench.engine.check_invariants();
    assert_eq!((moved, bench.stats(MOVED)), (HUGE_PAGE_PAGES, [HUGE, 0, 0, 1]));
    assert_eq!(bench.stats([Stat::NrAnonThps, Stat::NrIsolatedAnon]), [0, 0]);
    assert_eq!(bench.engine.figures().node_stat(THERE, Stat::NrAnonPages), HUGE);
}

#[test]
fn it_is_demoted_as_a_whole_or_as_single_pages_where_no_block_is_free() {
    for profile in ["classic@6.12", "mglru@6.12"] {
        for is_fragmented in [false, true] {
            let policy = Policy::of(profile);
            let mut bench = Bench::new(Config { policy, demotion_enabled: true, ..always() });
            bench.fault(0);
            if is_fragmented {
                bench.fragment(THERE);
            }
            bench.reclaim(HUGE_PAGE_PAGES);
            let demoted = bench.stats([Stat::PgdemoteProactive]);
            assert_eq!(demoted, [HUGE], "{profile} {is_fragmented}");
            let whole = [HUGE, 1, 0, 0];
            let single = [HUGE, 0, 0, 1];
            assert_eq!(bench.stats(MOVED), if is_fragmented { single } else { whole }, "{profile}");
            assert_eq!(bench.engine.figures().node_stat(THERE, Stat::NrAnonPages), HUGE);
            assert_eq!(bench.engine.figures().node_stat(THERE, Stat::NrAnonThps), i64::from(!is_fragmented));
        }
    }
}

#[test]
fn it_leaves_a_node_that_goes_as_a_whole_or_as_single_pages_where_no_block_is_free() {
    const ONLINE: &str = "/sys/devices/system/node/node1/memory*/online";
    for is_fragmented in [false, true] {
        let mut bench = Bench::new(always());
        for page in [0, LEAF_PAGES] {
            let pfn = bench.fault(page);
            bench.engine.core.migrate_prepare(pfn, None, THERE).unwrap();
            assert_eq!(
                bench.engine.core.migrate_to_node(&[pfn], THERE, MigrateReason::Kmigrated),
                HUGE_PAGE_PAGES
            );
        }
        bench.engine.core.lru_add_drain();
        if is_fragmented {
            bench.fragment(HERE);
        }
        bench.write(ONLINE, "0");
        assert_eq!(bench.engine.read_file(ONLINE).unwrap(), "0\n");
        bench.engine.core.lru_add_drain();
        bench.engine.check_invariants();
        assert_eq!(bench.engine.core.mm.folios_in_use(THERE), []);
        let whole = [4 * HUGE, 4, 0, 0];
        let single = [4 * HUGE, 2, 0, 2];
        assert_eq!(bench.stats(MOVED), if is_fragmented { single } else { whole });
        assert_eq!(bench.engine.figures().node_stat(HERE, Stat::NrAnonPages), 2 * HUGE);
        assert_eq!(bench.stats([Stat::NrAnonThps]), [if is_fragmented { 0 } else { 2 }]);
        let isolated = [Stat::NrIsolatedAnon, Stat::NrIsolatedFile];
        assert_eq!(bench.stats(isolated), [0, 0]);
        for page in 0..2 * LEAF_PAGES {
            assert_eq!(bench.folio(page).node, HERE);
            bench.frame(page);
        }
    }
}

/// One of two is held from outside: the node stays, and the other one has left.
#[test]
fn one_that_is_held_keeps_its_node_where_it_is() {
    let mut bench = Bench::new(always());
    let mut there = Vec::new();
    for page in [0, LEAF_PAGES] {
        let pfn = bench.fault(page);
        bench.engine.core.migrate_prepare(pfn, None, THERE).unwrap();
        assert_eq!(
            bench.engine.core.migrate_to_node(&[pfn], THERE, MigrateReason::Kmigrated),
            HUGE_PAGE_PAGES
        );
        there.push(bench.frame(page));
    }
    bench.engine.core.lru_add_drain();
    bench.engine.hold(there[1]);
    let online = "/sys/devices/system/node/node1/memory*/online";
    let error = bench.engine.write_file(bench.task, online, "0").unwrap_err();
    assert!(error.to_string().contains("512 more free pages on other nodes"), "{error}");
    bench.engine.release(there[1]);
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
    assert_eq!(bench.engine.core.mm.folios_in_use(THERE), [there[1]]);
    assert_eq!(bench.stats([Stat::NrAnonThps, Stat::ThpSplitPage]), [2, 0]);
}
