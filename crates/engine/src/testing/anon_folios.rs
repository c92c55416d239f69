//! Promises of anonymous folios between single and huge pages: orders at a fault, counters of refusals, folios that lose pages, swap.
use crate::memory::folio::FolioFlags;
use crate::memory::mm::Advice;
use crate::stat::Stat;
use crate::swap::contents::{Compressibility, PageContents};
use crate::*;

/// Two leaves of a page table.
const PAGES: u64 = 1024;
const LIMIT: &str = "/sys/fs/cgroup/job/memory.max";
const RECLAIM: &str = "/sys/fs/cgroup/job/memory.reclaim";

/// A group of one task with a heap. Nothing of it is used yet.
struct Bench {
    engine: Engine,
    task: TaskId,
    heap: ObjectId,
}

/// A kernel whose sizes of folios are on as listed, by order; all others are off.
fn config(kernel: &str, sizes: &[(u8, SizeEnabled)]) -> Config {
    let policy = Policy::by_name(kernel).unwrap();
    let config =
        Config { policy, charge_stock: 1, stat_flush: StatFlush::Live, kmem: false, ..Config::default() };
    let mut config = Config { node_pages: vec![16_384], ..config };
    *config.size_enabled(9).unwrap() = SizeEnabled::Never;
    for &(order, enabled) in sizes {
        *config.size_enabled(order).unwrap() = enabled;
    }
    config
}

impl Bench {
    fn new(config: Config, swap: Option<SwapSpec>) -> Bench {
        Bench::with(config, swap, None)
    }

    fn with(config: Config, swap: Option<SwapSpec>, contents: Option<Box<dyn PageContents>>) -> Bench {
        let mut builder = Engine::builder(config).unwrap();
        if let Some(spec) = swap {
            builder.swap_on(spec).unwrap();
        }
        if let Some(contents) = contents {
            builder.set_page_contents(contents);
        }
        let mut engine = builder.build();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let heap = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        Bench { engine, task, heap }
    }

    fn run(&mut self, mut step: Step) -> Served {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                if let Op::WriteSwap { io, .. } | Op::ReadSwap { io, .. } = op {
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
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

    fn touch(&mut self, pages: std::ops::Range<u64>) {
        for page in pages {
            self.access(page, true);
        }
    }

    fn write(&mut self, path: &str, value: &str) {
        let step = self.engine.write_file(self.task, path, value).unwrap();
        self.run(step);
    }

    fn dontneed(&mut self, pages: std::ops::Range<u64>) {
        let held = self.engine.madvise_dontneed(self.task, self.heap, pages).unwrap();
        assert_eq!(held, None);
        self.engine.check_invariants();
    }

    fn page_out(&mut self, pages: std::ops::Range<u64>) {
        self.engine.madvise_pageout(self.task, self.heap, pages).unwrap();
        self.run(Step::Done(Served::Advised));
    }

    /// What its entries lead to, as order and number; -1 for what is swapped, -2 for nothing, -3 for zeroes.
    fn folios(&self) -> Vec<(i8, u64)> {
        let all = self.engine.figures().mapped_folios(self.task, self.heap);
        let number = |folio| match folio {
            MappedFolio::Whole(order) => order as i8,
            MappedFolio::Part(order) => 10 + order as i8,
            MappedFolio::Swapped => -1,
            MappedFolio::Nothing => -2,
            MappedFolio::Zeroes => -3,
        };
        all.into_iter().map(|(folio, count)| (number(folio), count)).collect()
    }

    fn mthp<const N: usize>(&self, order: u8, stats: [MthpStat; N]) -> [u64; N] {
        stats.map(|stat| self.engine.figures().mthp(order, stat))
    }

    fn stat(&self, stat: Stat) -> i64 {
        self.engine.figures().vmstat(stat)
    }

    fn usage(&self) -> u64 {
        let group = self.engine.figures().memcg_by_path("/job").unwrap();
        self.engine.figures().memcg_usage(group)
    }
}

const ZRAM: Option<SwapSpec> = Some(SwapSpec { pages: 4096, kind: SwapKind::Synchronous });
const AT_FAULT: [MthpStat; 3] =
    [MthpStat::AnonFaultAlloc, MthpStat::AnonFaultFallback, MthpStat::AnonFaultFallbackCharge];

#[test]
fn first_write_takes_the_largest_empty_order() {
    use SizeEnabled::Always;
    let mut bench = Bench::new(config("classic@6.18", &[(2, Always), (4, Always), (6, Always)]), None);
    bench.access(70, true);
    assert_eq!(bench.folios(), [(-2, 64), (6, 1), (-2, PAGES - 128)]);
    // A page of zeroes is in the way of the larger ones.
    bench.access(3, false);
    bench.access(8, true);
    bench.access(20, true);
    bench.access(0, true);
    let expected = [(0, 1), (-2, 2), (-3, 1), (-2, 4), (2, 1), (-2, 4), (4, 1), (-2, 32), (6, 1)];
    assert_eq!(bench.folios()[..9], expected);
    assert_eq!([2, 4, 6].map(|order| bench.mthp(order, AT_FAULT)), [[1, 0, 0]; 3]);
    assert_eq!(bench.usage(), 64 + 4 + 16 + 1);
}

#[test]
fn switch_of_a_size_decides_by_advice_and_machine() {
    use SizeEnabled::{Always, Inherit, Madvise, Never};
    use TransparentHugepage as Thp;
    for (machine, size, advice, is_large) in [
        (Thp::Never, Always, HugeAdvice::Normal, true),
        (Thp::Never, Always, HugeAdvice::NoHugepage, false),
        (Thp::Never, Madvise, HugeAdvice::Hugepage, true),
        (Thp::Always, Madvise, HugeAdvice::Normal, false),
        (Thp::Always, Inherit, HugeAdvice::Normal, true),
        (Thp::Madvise, Inherit, HugeAdvice::Normal, false),
        (Thp::Madvise, Inherit, HugeAdvice::Hugepage, true),
        (Thp::Always, Never, HugeAdvice::Hugepage, false),
    ] {
        let config = Config { transparent_hugepage: machine, ..config("classic@6.18", &[(4, size)]) };
        let mut bench = Bench::new(config, None);
        bench.engine.madvise_hugepage(bench.task, bench.heap, advice).unwrap();
        bench.access(0, true);
        let expected = if is_large { (4, 1) } else { (0, 1) };
        assert_eq!(bench.folios()[0], expected, "{machine:?} {size:?} {advice:?}");
    }
}

#[test]
fn kernel_before_mthp_ignores_the_switches_of_sizes() {
    for (kernel, order) in [("classic@6.1", 0), ("classic@6.12", 4)] {
        let mut bench = Bench::new(config(kernel, &[(4, SizeEnabled::Always)]), None);
        bench.access(0, true);
        assert_eq!(bench.folios()[0], (order, 1), "{kernel}");
    }
}

#[test]
fn folio_does_not_cross_the_border_of_advice() {
    let mut bench =
        Bench::new(config("classic@6.18", &[(2, SizeEnabled::Madvise), (4, SizeEnabled::Madvise)]), None);
    bench.engine.madvise_hugepage_pages(bench.task, bench.heap, 20..PAGES, HugeAdvice::Hugepage).unwrap();
    bench.touch(0..32);
    assert_eq!(bench.folios(), [(0, 20), (2, 3), (-2, PAGES - 32)]);
}

#[test]
fn refused_charge_is_counted_for_each_order_tried() {
    let sizes = [(3, SizeEnabled::Always), (4, SizeEnabled::Always)];
    let mut bench = Bench::new(config("classic@6.18", &sizes), ZRAM);
    bench.write(LIMIT, &(20 * PAGE_SIZE).to_string());
    bench.touch(0..16);
    bench.access(16, true);
    assert_eq!([3, 4].map(|order| bench.mthp(order, AT_FAULT)), [[0, 1, 1], [1, 1, 1]]);
    assert_eq!(bench.folios()[..2], [(4, 1), (0, 1)]);
    bench.write("/sys/kernel/mm/transparent_hugepage/defrag", "always");
    bench.access(32, true);
    assert_eq!(bench.mthp(4, AT_FAULT), [2, 1, 1], "with reclaim there is room");
}

#[test]
fn size_file_shows_and_takes_its_words() {
    const FILE: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    let mut bench = Bench::new(Config::default(), None);
    assert_eq!(bench.engine.read_file(FILE).unwrap(), "always inherit madvise [never]\n");
    let huge = FILE.replace("64kB", "2048kB");
    assert_eq!(bench.engine.read_file(&huge).unwrap(), "always [inherit] madvise never\n");
    bench.write(FILE, "always");
    bench.access(0, true);
    assert_eq!(bench.folios()[0], (4, 1));
    let error = bench.engine.write_file(bench.task, FILE, "on").unwrap_err();
    assert!(error.to_string().ends_with("expected always, inherit, madvise or never"), "{error}");
}

#[test]
fn part_that_goes_leaves_its_charge_until_pressure_splits() {
    let mut bench = Bench::new(config("classic@6.18", &[(4, SizeEnabled::Always)]), ZRAM);
    bench.touch(0..64);
    bench.dontneed(3..4);
    bench.dontneed(20..30);
    let stats = [MthpStat::SplitDeferred, MthpStat::NrAnon, MthpStat::NrAnonPartlyMapped, MthpStat::Split];
    assert_eq!(bench.mthp(4, stats), [2, 4, 2, 0]);
    assert_eq!((bench.stat(Stat::NrAnonPages), bench.usage()), (64 - 11, 64));
    // A page of the gap is new.
    bench.access(3, true);
    assert_eq!(bench.usage(), 65);
    bench.write(RECLAIM, &(16 * PAGE_SIZE).to_string());
    bench.write(RECLAIM, &(64 * PAGE_SIZE).to_string());
    assert_eq!(bench.mthp(4, stats), [2, 0, 0, 2]);
    assert_eq!(bench.usage(), 0);
    bench.engine.check_invariants();
}

#[test]
fn folio_that_loses_all_pages_at_once_is_in_no_queue() {
    let mut bench = Bench::new(config("classic@6.18", &[(4, SizeEnabled::Always)]), None);
    bench.touch(0..64);
    bench.dontneed(16..48);
    assert_eq!(bench.mthp(4, [MthpStat::SplitDeferred, MthpStat::NrAnon]), [0, 2]);
    bench.engine.munmap(bench.task, bench.heap).unwrap();
    bench.engine.check_invariants();
    assert_eq!(bench.mthp(4, [MthpStat::SplitDeferred, MthpStat::NrAnon]), [0, 0]);
    assert_eq!(bench.usage(), 0);
}

#[test]
fn huge_page_that_loses_a_part_has_entries_of_pages() {
    let mut bench = Bench::new(config("classic@6.18", &[(9, SizeEnabled::Always)]), ZRAM);
    bench.touch(0..512);
    bench.dontneed(100..200);
    assert_eq!(bench.folios(), [(19, 100), (-2, 100), (19, 312), (-2, 512)]);
    assert_eq!(
        [Stat::NrAnonThps, Stat::ThpSplitPmd, Stat::ThpDeferredSplitPage].map(|of| bench.stat(of)),
        [0, 1, 1]
    );
    assert_eq!((bench.stat(Stat::NrAnonPages), bench.usage()), (412, 512));
    bench.dontneed(0..512);
    assert_eq!((bench.stat(Stat::NrAnonPages), bench.usage()), (0, 0));
}

/// All pages are zeroes but the first of each 16.
struct MostlyZeroes;

impl PageContents for MostlyZeroes {
    fn repeated_word(&mut self, pfn: Pfn) -> Option<u64> {
        (!pfn.0.is_multiple_of(16)).then_some(0)
    }

    fn compressed_bytes(&mut self, _: Pfn) -> u16 {
        2000
    }
}

#[test]
fn underused_huge_page_gives_its_zeroes_back() {
    for (kernel, most, is_split) in
        [("classic@6.18", 409, true), ("classic@6.18", 511, false), ("classic@6.1", 409, false)]
    {
        let mut config = config(kernel, &[(9, SizeEnabled::Always)]);
        config.max_ptes_none = most;
        config.transparent_hugepage = TransparentHugepage::Always;
        let mut bench = Bench::with(config, None, Some(Box::new(MostlyZeroes)));
        bench.touch(0..512);
        let lruvec =
            bench.engine.core.mm.lruvecs.id(bench.engine.figures().memcg_by_path("/job").unwrap(), NodeId(0));
        bench.engine.core.shrink_deferred_splits(lruvec, 0);
        bench.engine.check_invariants();
        let splits = [Stat::ThpSplitPage, Stat::ThpUnderusedSplitPage].map(|of| bench.stat(of));
        assert_eq!(splits, [is_split.into(); 2], "{kernel} {most}");
        assert_eq!(bench.usage(), if is_split { 32 } else { 512 }, "{kernel} {most}");
    }
}

#[test]
fn folio_goes_to_zram_whole_and_comes_back_by_one_fault() {
    for (kernel, majors) in [("classic@6.12", 1), ("classic@6.18", 1), ("mglru@7.2", 1), ("classic@6.10", 16)]
    {
        let mut bench = Bench::new(config(kernel, &[(4, SizeEnabled::Always)]), ZRAM);
        bench.touch(0..16);
        bench.page_out(0..16);
        assert_eq!(bench.folios(), [(-1, 16), (-2, PAGES - 16)], "{kernel}");
        assert_eq!(
            bench.mthp(4, [MthpStat::Swpout, MthpStat::Split, MthpStat::NrAnon]),
            [1, 0, 0],
            "{kernel}"
        );
        assert_eq!((bench.stat(Stat::Pswpout), bench.usage()), (16, 0), "{kernel}");
        let count = (0..16).filter(|&page| matches!(bench.access(page, true), Served::Major(_))).count();
        assert_eq!(count, majors, "{kernel}");
        assert_eq!(bench.stat(Stat::Pswpin), 16, "{kernel}");
        assert_eq!(bench.engine.core.mm.memory.swap.free_pages(), 4096, "{kernel}");
    }
}

#[test]
fn folio_on_a_disk_is_found_whole_while_it_is_cached() {
    let disk = SwapSpec { pages: 4096, kind: SwapKind::Device };
    let mut bench = Bench::new(config("classic@6.18", &[(4, SizeEnabled::Always)]), Some(disk));
    bench.touch(0..16);
    bench.page_out(0..16);
    assert_eq!(bench.folios(), [(-1, 16), (-2, PAGES - 16)]);
    assert_eq!(bench.usage(), 16, "its write is over, and reclaim has not come by again");
    assert!(matches!(bench.access(5, true), Served::Minor(_)));
    assert_eq!(bench.folios(), [(4, 1), (-2, PAGES - 16)], "all of its pages are mapped");
    // A page that is given back frees its slot with the folio's.
    bench.page_out(0..16);
    bench.dontneed(4..5);
    bench.write(RECLAIM, &(16 * PAGE_SIZE).to_string());
    assert_eq!((bench.usage(), bench.engine.core.mm.memory.swap.free_pages()), (0, 4096 - 15));
    for page in (0..16).filter(|&page| page != 4) {
        assert!(matches!(bench.access(page, false), Served::Major(_) | Served::Minor(_)));
    }
}

#[test]
fn folio_without_slots_is_split_even_without_swap() {
    let file = Some(SwapSpec { pages: 4096, kind: SwapKind::File });
    for (swap, pswpout) in [(None, 0), (file, 32)] {
        let mut bench = Bench::new(config("classic@6.18", &[(4, SizeEnabled::Always)]), swap);
        bench.touch(0..32);
        bench.page_out(0..32);
        let stats = [MthpStat::Split, MthpStat::SwpoutFallback, MthpStat::SplitDeferred, MthpStat::Swpout];
        assert_eq!(bench.mthp(4, stats), [2, 2, 2, 0], "{swap:?}");
        assert_eq!(bench.stat(Stat::Pswpout), pswpout, "{swap:?}");
    }
}

#[test]
fn zswap_passes_a_folio_by_or_stores_its_pages() {
    let disk = Some(SwapSpec { pages: 4096, kind: SwapKind::Device });
    for (kernel, stored) in [("classic@6.12", 0), ("classic@6.18", 16)] {
        let config = Config { zswap_enabled: true, ..config(kernel, &[(4, SizeEnabled::Always)]) };
        let mut bench = Bench::new(config, disk);
        bench.touch(0..16);
        bench.page_out(0..16);
        let written = 16 - stored;
        assert_eq!([Stat::Zswpout, Stat::Pswpout].map(|of| bench.stat(of)), [stored, written], "{kernel}");
        let counts = bench.mthp(4, [MthpStat::Zswpout, MthpStat::Swpout]);
        assert_eq!(counts, [u64::from(stored > 0), u64::from(stored == 0)], "{kernel}");
        bench.touch(0..16);
        assert_eq!(bench.mthp(4, [MthpStat::Swpin]), [0], "{kernel}: pages come back alone");
        bench.engine.check_invariants();
    }
}

#[test]
fn large_swap_in_needs_all_zeroes_or_none_and_room() {
    let mut bench = Bench::new(config("classic@6.18", &[(4, SizeEnabled::Always)]), ZRAM);
    bench.touch(0..32);
    bench.page_out(0..32);
    // Its pages no longer lie in a row.
    bench.dontneed(3..4);
    bench.access(0, false);
    assert_eq!(bench.mthp(4, [MthpStat::Swpin, MthpStat::SwpinFallback]), [0, 0]);
    bench.write(LIMIT, &(8 * PAGE_SIZE).to_string());
    bench.access(16, false);
    let stats = [MthpStat::Swpin, MthpStat::SwpinFallback, MthpStat::SwpinFallbackCharge];
    assert_eq!(bench.mthp(4, stats), [0, 1, 1]);
    assert_eq!(bench.folios()[..2], [(0, 1), (-1, 2)]);
}

#[test]
fn one_young_entry_keeps_the_folio_for_a_round() {
    let mut bench = Bench::new(config("classic@6.18", &[(4, SizeEnabled::Always)]), None);
    bench.touch(0..16);
    let head = bench.engine.anon_frames(bench.task, bench.heap, 0..1).unwrap()[0].1;
    assert_eq!(
        bench.engine.core.folio_referenced(head, true).young,
        1,
        "16 young entries of a mapping are one use"
    );
    assert_eq!(bench.engine.core.folio_referenced(head, true).young, 0);
    bench.access(9, false);
    assert_eq!(bench.engine.core.folio_referenced(head, true).young, 1);
}

#[test]
fn compressed_size_of_a_page_is_drawn_for_its_own_place() {
    let mut builder = Engine::builder(config("classic@6.18", &[(4, SizeEnabled::Always)])).unwrap();
    let swap = builder.swap_on(ZRAM.unwrap()).unwrap();
    let half = Compressibility { zero_filled: 500, ..Compressibility::default() };
    builder.swap_compressibility(swap, half).unwrap();
    let mut engine = builder.build();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(0));
    let heap = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
    let mut bench = Bench { engine, task, heap };
    bench.touch(0..512);
    bench.page_out(0..512);
    let zram = bench.engine.core.mm.memory.swap.zram(swap).unwrap();
    let same = zram.stat.same;
    assert!((200..312).contains(&same), "{same} of 512 pages are one word");
    assert!(!bench.engine.core.mm.memory.folios[Pfn(0)].has(FolioFlags::WRITEBACK));
}
