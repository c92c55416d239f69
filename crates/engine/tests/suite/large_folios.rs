//! Large folios of the page cache: which orders are chosen, and that a folio is one thing on lists, in counts, in its file and on a swap device. [folios 1.2 to
//! 1.11, 3.1, 3.7]

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use std::fmt::Write;

use pageout_engine::*;

/// Pages of the file.
const PAGES: u64 = 1024;

struct Machine {
    engine: Engine,
    group: MemcgId,
    task: TaskId,
    file: FileId,
    object: ObjectId,
    /// Writes that the device was given: first page and pages.
    writes: Vec<(u64, u32)>,
}

impl Machine {
    fn new(kernel: &str, file_system: FileSystem) -> Machine {
        let bdi = Bdi { file_system, ..Bdi::default() };
        let spec = FileSpec { name: "data".to_owned(), pages: PAGES, kind: FileKind::Regular, bdi };
        Machine::with_file(kernel, spec, TmpfsHuge::Never)
    }

    fn tmpfs(kernel: &str, pages: u64, huge: TmpfsHuge) -> Machine {
        let bdi = Bdi::NO_READAHEAD;
        let spec = FileSpec { name: "data".to_owned(), pages, kind: FileKind::Tmpfs, bdi };
        Machine::with_file(kernel, spec, huge)
    }

    fn with_file(kernel: &str, spec: FileSpec, huge: TmpfsHuge) -> Machine {
        let config = Config {
            node_pages: vec![1 << 16],
            policy: Policy::of(kernel),
            kmem: false,
            ..Config::default()
        };
        let mut builder = Engine::builder(config).unwrap();
        builder.swap_on(SwapSpec { pages: 4096, kind: SwapKind::Synchronous }).unwrap();
        let mut engine = builder.build();
        engine.writes_whole_calls();
        let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let process = engine.process_create(group);
        let task = engine.task_create(process, CpuId(0));
        let is_tmpfs = spec.kind == FileKind::Tmpfs;
        let file = engine.file_create(spec).unwrap();
        assert_eq!(engine.set_tmpfs_huge(file, huge).is_ok(), is_tmpfs);
        let object = engine.open(task, file).unwrap();
        engine.record_page_cache_events();
        Machine { engine, group, task, file, object, writes: Vec::new() }
    }

    fn finish(&mut self, mut step: Step) -> Served {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                if let Op::WriteFile { io, page, pages, .. } = op {
                    self.writes.push((page, pages));
                    self.engine.io_done(io, CpuId(0), Ok(()));
                } else if let Op::ReadFile { io, .. } = op {
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            self.engine.take_woken(&mut Vec::new());
            self.engine.check_invariants();
            step = match step {
                Step::Done(served) => return served,
                Step::Again | Step::Wait(_) => self.engine.resume(self.task),
            };
        }
    }

    /// A call for some pages; returns the folios that came, as `first:order`, and those that went, with a minus.
    fn call(&mut self, object: ObjectId, page: u64, pages: u64, write: bool) -> String {
        for at in page..page + pages {
            let wanted = ((page + pages - at) * PAGE_SIZE) as u32;
            let step = self.engine.start(self.task, Access { wanted, ..Access::new(object, at, write) });
            self.finish(step);
        }
        self.changes()
    }

    fn read(&mut self, page: u64, pages: u64) -> String {
        self.call(self.object, page, pages, false)
    }

    fn write(&mut self, page: u64, pages: u64) -> String {
        self.call(self.object, page, pages, true)
    }

    /// Folios that came and went since this was asked last.
    fn changes(&mut self) -> String {
        let mut events = Vec::new();
        self.engine.take_page_cache_events(&mut events);
        let mut text = String::new();
        for PageCacheEvent { page, order, removed, .. } in events {
            let sign = if removed { "-" } else { "" };
            write!(text, " {sign}{page}:{order}").unwrap();
        }
        text.trim_start().to_owned()
    }

    fn truncate(&mut self, bytes: std::ops::Range<u64>) -> String {
        let step = self.engine.truncate_bytes(self.task, self.object, bytes).unwrap();
        assert_eq!(self.finish(step), Served::Truncated);
        self.changes()
    }

    fn mthp(&self, order: u8, stat: MthpStat) -> u64 {
        self.engine.figures().mthp(order, stat)
    }

    fn stat(&self, stat: Stat) -> i64 {
        self.engine.figures().memcg_stat_now(self.group, stat)
    }

    fn limit(&mut self, pages: u64) {
        let text = (pages * PAGE_SIZE).to_string();
        let step = self.engine.write_file(self.task, "/sys/fs/cgroup/job/memory.max", &text).unwrap();
        self.finish(step);
    }
}

/// Reads of a page each, in order; the folios of the reads that brought any.
fn ramp(machine: &mut Machine, pages: u64) -> String {
    let mut text = String::new();
    for page in 0..pages {
        let changes = machine.read(page, 1);
        if !changes.is_empty() {
            writeln!(text, "{page}: {changes}").unwrap();
        }
    }
    text
}

#[test]
fn ramp_since_6_17_grows_by_the_order_of_the_open_file() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Ext4);
    let expected = "0: 0:0 1:0 2:0 3:0\n1: 4:2 8:2\n4: 12:2\n12: 16:3\n16: 24:3\n24: 32:4\n32: 48:4\n48: 64:5\n64: 96:5\n96: 128:5\n";
    assert_eq!(ramp(&mut machine, 100), expected);
}

#[test]
fn ramp_before_6_17_is_limited_by_the_marked_folio() {
    let mut machine = Machine::new("classic@6.12", FileSystem::Xfs);
    let expected = "0: 0:2 4:2 8:2\n4: 12:2 16:3 24:2\n12: 28:2 32:4 48:3 56:2\n28: 60:2 64:4 80:3 88:2\n";
    assert_eq!(ramp(&mut machine, 60), expected);
}

#[test]
fn first_page_in_6_1_brings_one_folio_of_order_2() {
    let mut machine = Machine::new("classic@6.1", FileSystem::Xfs);
    assert_eq!(machine.read(0, 1), "0:2");
}

#[test]
fn calls_as_large_as_the_window_grow_by_2() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Xfs);
    let single: Vec<String> = (0..32).map(|page| format!("{page}:0")).collect();
    let pairs: Vec<String> = (32..64).step_by(4).map(|page| format!("{page}:2")).collect();
    assert_eq!(machine.read(0, 32), format!("{} {}", single.join(" "), pairs.join(" ")));
    assert_eq!(machine.read(32, 32), "64:4 80:4");
    assert_eq!(machine.read(64, 32), "96:5");
    assert_eq!(machine.read(500, 1), "500:0");
}

#[test]
fn file_system_has_large_folios_since_its_version() {
    let read = |kernel: &str, file_system| {
        let mut machine = Machine::new(kernel, file_system);
        machine.read(0, 1);
        machine.read(1, 1)
    };
    assert_eq!(read("classic@6.15", FileSystem::Ext4), "4:0 5:0 6:0 7:0 8:0 9:0 10:0 11:0");
    assert_eq!(read("classic@6.18", FileSystem::Ext4), "4:2 8:2");
    assert_eq!(read("classic@6.18", FileSystem::Btrfs), read("classic@6.18", FileSystem::None));
    assert_eq!(read("classic@7.2", FileSystem::Btrfs), "4:2 8:2");
}

#[test]
fn write_makes_folios_by_the_length_of_its_rest() {
    let mut machine = Machine::new("classic@6.12", FileSystem::Xfs);
    assert_eq!(machine.write(5, 5), "5:0 6:1 8:1");
    assert_eq!(machine.write(64, 16), "64:4");
    let mut machine = Machine::new("classic@6.1", FileSystem::Xfs);
    assert_eq!(machine.write(8, 4), "8:0 9:0 10:0 11:0");
}

#[test]
fn byte_written_makes_all_pages_of_its_folio_dirty() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Xfs);
    machine.read(0, 32);
    machine.read(32, 1);
    assert_eq!(machine.write(65, 1), "");
    assert_eq!((machine.stat(Stat::NrDirty), machine.engine.figures().vmstat(Stat::NrDirtied)), (16, 16));
    let step = machine.engine.fsync(machine.task, machine.object).unwrap();
    machine.finish(step);
    assert_eq!(machine.writes, [(64, 16)]);
    assert_eq!((machine.stat(Stat::NrDirty), machine.engine.figures().vmstat(Stat::NrWritten)), (0, 16));
}

#[test]
fn use_of_a_page_is_one_of_its_folio_and_counts_all_pages() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Xfs);
    machine.read(0, 32);
    machine.read(32, 1);
    machine.read(70, 1);
    machine.read(500, 1);
    machine.read(75, 1);
    let step = machine.engine.truncate(machine.task, machine.object, 1000..1001).unwrap();
    machine.finish(step);
    // Pages 64 to 79 are one folio.
    assert_eq!(machine.stat(Stat::NrActiveFile), 16);
}

#[test]
fn folio_is_evicted_as_a_whole_and_leaves_shadows() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Xfs);
    machine.write(0, 256);
    machine.write(256, 128);
    let step = machine.engine.fsync(machine.task, machine.object).unwrap();
    machine.finish(step);
    machine.changes();
    machine.limit(200);
    let gone = machine.changes();
    assert_eq!(gone, "-0:8");
    // A single page comes back. The rest of the range keeps its shadows.
    machine.limit(1000);
    machine.engine.fadvise(machine.task, machine.object, Advice::Random).unwrap();
    assert_eq!(machine.read(7, 1), "7:0");
    assert_eq!(machine.stat(Stat::WorkingsetRefaultFile), 1);
    assert_eq!(machine.read(8, 1), "8:0");
    assert_eq!(machine.stat(Stat::WorkingsetRefaultFile), 2);
}

#[test]
fn cut_splits_a_clean_folio_only_around_it() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Ext4);
    assert_eq!(machine.write(0, 512), "0:9");
    let step = machine.engine.fsync(machine.task, machine.object).unwrap();
    machine.finish(step);
    let gone = machine.truncate(100 * PAGE_SIZE..PAGES * PAGE_SIZE);
    assert_eq!(gone, "-100:0 -101:0 -102:1 -104:3 -112:4 -128:7 -256:8");
    machine.engine.fadvise_dontneed(machine.task, machine.file, 0..PAGES).unwrap();
    assert_eq!(machine.changes(), "-0:6 -64:5 -96:2");
}

#[test]
fn cut_before_6_15_leaves_single_pages() {
    let mut machine = Machine::new("classic@6.12", FileSystem::Xfs);
    machine.write(0, 8);
    let step = machine.engine.fsync(machine.task, machine.object).unwrap();
    machine.finish(step);
    machine.changes();
    assert_eq!(machine.truncate(5 * PAGE_SIZE..6 * PAGE_SIZE), "-5:0");
    machine.engine.fadvise_dontneed(machine.task, machine.file, 0..PAGES).unwrap();
    assert_eq!(machine.changes(), "-0:0 -1:0 -2:0 -3:0 -4:0 -6:0 -7:0");
}

#[test]
fn dirty_folio_that_a_cut_meets_stays_whole() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Xfs);
    machine.write(0, 16);
    machine.changes();
    assert_eq!(machine.truncate(4 * PAGE_SIZE..PAGES * PAGE_SIZE), "");
    assert_eq!(machine.stat(Stat::NrDirty), 16);
}

#[test]
fn dontneed_leaves_a_folio_that_it_covers_in_part() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Xfs);
    machine.write(0, 16);
    machine.write(16, 16);
    let step = machine.engine.fsync(machine.task, machine.object).unwrap();
    machine.finish(step);
    machine.changes();
    machine.engine.fadvise_dontneed(machine.task, machine.file, 8..32).unwrap();
    assert_eq!(machine.changes(), "-16:4");
}

#[test]
fn fault_maps_a_whole_folio_since_6_18() {
    let mapped = |kernel: &str| {
        let mut machine = Machine::new(kernel, FileSystem::Xfs);
        machine.write(0, 64);
        let map = machine.engine.map_file(machine.task, machine.file, Advice::Normal, false).unwrap();
        machine.call(map, 3, 1, false);
        let mapped = machine.stat(Stat::NrMapped);
        machine.engine.munmap(machine.task, map).unwrap();
        machine.engine.check_invariants();
        assert_eq!(machine.stat(Stat::NrMapped), 0);
        mapped
    };
    assert_eq!((mapped("classic@6.12"), mapped("classic@6.18")), (16, 64));
}

#[test]
fn page_mapped_twice_counts_once() {
    let mut machine = Machine::new("classic@6.12", FileSystem::Xfs);
    machine.write(0, 16);
    let maps =
        [0, 1].map(|_| machine.engine.map_file(machine.task, machine.file, Advice::Random, false).unwrap());
    for map in maps {
        machine.call(map, 3, 1, true);
    }
    machine.call(maps[0], 4, 1, true);
    assert_eq!(machine.stat(Stat::NrMapped), 2);
    machine.engine.munmap(machine.task, maps[0]).unwrap();
    assert_eq!(machine.stat(Stat::NrMapped), 1);
    machine.engine.check_invariants();
}

#[test]
fn advice_for_huge_pages_reads_2_mib_at_a_time() {
    let mut machine = Machine::new("classic@6.18", FileSystem::Xfs);
    let map = machine.engine.map_file(machine.task, machine.file, Advice::Random, false).unwrap();
    machine.engine.madvise_hugepage(machine.task, map, HugeAdvice::Hugepage).unwrap();
    assert_eq!(machine.call(map, 700, 1, false), "512:9");
    assert_eq!(machine.call(map, 20, 1, false), "0:9");
}

#[test]
fn tmpfs_always_creates_2_mib_around_a_page() {
    for kernel in ["classic@6.12", "classic@6.15", "classic@6.18"] {
        let mut machine = Machine::tmpfs(kernel, PAGES + 1, TmpfsHuge::Always);
        let expected = if kernel == "classic@6.15" { "700:0" } else { "512:9" };
        assert_eq!(machine.write(700, 1), expected, "{kernel}");
    }
    // Beyond the end, too.
    let mut machine = Machine::tmpfs("classic@6.18", PAGES + 1, TmpfsHuge::Always);
    assert_eq!(machine.write(PAGES, 1), "1024:9");
    assert_eq!(machine.mthp(9, MthpStat::ShmemAlloc), 1);
    assert_eq!(machine.engine.figures().vmstat(Stat::ThpFileAlloc), 1);
    assert_eq!(machine.stat(Stat::NrShmem), 512);
}

#[test]
fn tmpfs_within_size_creates_what_ends_in_the_file() {
    let write =
        |kernel: &str, page, pages| Machine::tmpfs(kernel, 300, TmpfsHuge::WithinSize).write(page, pages);
    assert_eq!(write("classic@6.18", 7, 1), "0:8");
    assert_eq!(write("classic@6.18", 290, 1), "288:3");
    assert_eq!(write("classic@6.18", 299, 1), "296:2");
    assert_eq!(write("classic@6.15", 8, 8), "8:3");
    assert_eq!(write("classic@6.12", 8, 2), "8:0 9:0");
}

#[test]
fn tmpfs_folio_is_not_put_over_a_page() {
    let mut machine = Machine::tmpfs("classic@6.18", 300, TmpfsHuge::WithinSize);
    let map = machine.engine.map_file(machine.task, machine.file, Advice::Normal, false).unwrap();
    assert_eq!(machine.call(map, 5, 1, true), "5:0");
    assert_eq!(machine.write(4, 1), "4:0");
    assert_eq!(machine.write(8, 1), "8:3");
}

#[test]
fn tmpfs_fault_has_a_huge_page_or_a_single_one() {
    let mut machine = Machine::tmpfs("classic@6.18", PAGES + 100, TmpfsHuge::Always);
    let map = machine.engine.map_file(machine.task, machine.file, Advice::Normal, false).unwrap();
    assert_eq!(machine.call(map, 600, 1, true), "512:9");
    // The mapping ends within the last 2 MiB.
    assert_eq!(machine.call(map, PAGES + 3, 1, true), "1027:0");
    assert_eq!(machine.stat(Stat::NrMapped), 513);
    assert_eq!(machine.engine.figures().vmstat(Stat::ThpFileMapped), 1);
    let folios = machine.engine.figures().mapped_folios(machine.task, map);
    let nothing = MappedFolio::Nothing;
    let whole = [(nothing, 512), (MappedFolio::Whole(9), 1), (nothing, 3), (MappedFolio::Whole(0), 1)];
    assert_eq!(folios, [&whole[..], &[(nothing, 96)]].concat());
}

#[test]
fn tmpfs_advise_needs_a_hint() {
    let mut machine = Machine::tmpfs("classic@6.18", PAGES, TmpfsHuge::Advise);
    let map = machine.engine.map_file(machine.task, machine.file, Advice::Normal, false).unwrap();
    assert_eq!(machine.call(map, 1, 1, true), "1:0");
    machine.engine.madvise_hugepage(machine.task, map, HugeAdvice::Hugepage).unwrap();
    assert_eq!(machine.call(map, 600, 1, true), "512:9");
    assert_eq!(machine.write(20, 1), "20:0");
}

#[test]
fn cut_splits_a_folio_of_tmpfs_although_it_is_dirty() {
    let mut machine = Machine::tmpfs("classic@6.18", PAGES, TmpfsHuge::Always);
    machine.write(0, 1);
    machine.changes();
    let gone = machine.truncate(100 * PAGE_SIZE..PAGES * PAGE_SIZE);
    assert_eq!(gone, "-100:0 -101:0 -102:1 -104:3 -112:4 -128:7 -256:8");
    assert_eq!(machine.mthp(9, MthpStat::Split), 1);
    assert_eq!(machine.engine.figures().vmstat(Stat::ThpSplitPage), 1);
}

#[test]
fn split_of_tmpfs_drops_parts_beyond_the_end() {
    // The second folio reaches beyond the end of the file.
    let mut machine = Machine::tmpfs("classic@6.18", 768, TmpfsHuge::Always);
    machine.write(512, 1);
    machine.changes();
    let gone = machine.truncate(691 * PAGE_SIZE..692 * PAGE_SIZE);
    assert_eq!(gone, "-768:8 -691:0");
    machine.engine.check_invariants();
}

#[test]
fn hole_within_a_page_of_tmpfs_splits_its_folio() {
    let mut machine = Machine::tmpfs("classic@6.18", PAGES, TmpfsHuge::Always);
    machine.write(0, 1);
    machine.changes();
    let gone = machine.truncate(100 * PAGE_SIZE + 8..100 * PAGE_SIZE + 16);
    assert_eq!((gone.as_str(), machine.mthp(9, MthpStat::Split)), ("", 1));
    machine.engine.check_invariants();
}

#[test]
fn tmpfs_page_comes_alone_if_a_charge_is_refused() {
    let mut machine = Machine::tmpfs("classic@6.18", PAGES, TmpfsHuge::Always);
    machine.limit(768);
    machine.write(0, 1);
    machine.changes();
    // 256 pages would fit.
    assert_eq!(machine.write(512, 1), "512:0");
    let refused = |order| machine.mthp(order, MthpStat::ShmemFallbackCharge);
    assert_eq!((1..=9).map(refused).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn tmpfs_folio_is_swapped_whole_since_6_12() {
    for (kernel, splits) in [("classic@6.8", 1), ("classic@6.18", 0)] {
        let mut machine = Machine::tmpfs(kernel, PAGES, TmpfsHuge::Always);
        machine.write(0, 1);
        machine.write(600, 1);
        machine.changes();
        machine.limit(800);
        let swapped = machine.engine.figures().memcg_swap_usage(machine.group);
        // The parts of a split folio join the batch.
        assert!((224..=512).contains(&swapped), "{kernel}: {swapped}");
        let counts = [MthpStat::Split, MthpStat::Swpout].map(|of| machine.mthp(9, of));
        assert_eq!(counts, [splits, 1 - splits], "{kernel}");
        // There is no memory for 512 pages more.
        machine.changes();
        assert_eq!(machine.read(0, 1), "0:0", "{kernel}");
    }
}

#[test]
fn tmpfs_folio_comes_back_whole_since_6_14() {
    for (kernel, expected) in [("classic@6.12", "5:0"), ("classic@6.18", "0:9")] {
        let mut machine = Machine::tmpfs(kernel, PAGES, TmpfsHuge::Always);
        machine.write(0, 1);
        machine.write(600, 1);
        machine.limit(800);
        machine.limit(1100);
        machine.changes();
        assert_eq!(machine.read(5, 1), expected, "{kernel}");
        let slots_left = if kernel == "classic@6.18" { 0 } else { 511 };
        assert_eq!(machine.engine.figures().memcg_swap_usage(machine.group), slots_left, "{kernel}");
        assert_eq!(machine.mthp(9, MthpStat::Swpin), u64::from(slots_left == 0), "{kernel}");
    }
}

#[test]
fn refused_tmpfs_folio_comes_back_in_parts() {
    let mut machine = Machine::tmpfs("classic@6.18", PAGES, TmpfsHuge::Always);
    machine.write(0, 1);
    machine.write(600, 1);
    machine.limit(800);
    machine.changes();
    // 512 pages do not fit, nor do the last 64.
    let read: Vec<String> =
        [0, 1, 40, 100, 130, 200, 260, 300].map(|page| machine.read(page, 1)).into_iter().collect();
    assert_eq!(read, ["0:0", "1:0", "32:5", "64:6", "128:6", "192:6", "260:0", "288:5"]);
    assert_eq!([5, 6, 9].map(|order| machine.mthp(order, MthpStat::Swpin)), [2, 3, 0]);
    assert_eq!(machine.mthp(9, MthpStat::SwpinFallback), 0, "only anonymous memory counts refusals");
}

#[test]
fn few_large_folios_are_tried_on_a_swap_device_that_fails_all() {
    const FOLIOS: u64 = 8;
    let mut policy = Policy::of("classic@6.18");
    policy.machine.writeback.failed_write = FailedWrite::Dirty;
    let config =
        Config { node_pages: vec![1 << 13], policy, kmem: false, oom_kill: false, ..Config::default() };
    let mut builder = Engine::builder(config).unwrap();
    builder.swap_on(SwapSpec { pages: FOLIOS * 512, kind: SwapKind::Device }).unwrap();
    let mut engine = builder.build();
    let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    let process = engine.process_create(group);
    let task = engine.task_create(process, CpuId(0));
    let (name, bdi) = ("data".to_owned(), Bdi::NO_READAHEAD);
    let spec = FileSpec { name, pages: FOLIOS * 512, kind: FileKind::Tmpfs, bdi };
    let file = engine.file_create(spec).unwrap();
    engine.set_tmpfs_huge(file, TmpfsHuge::Always).unwrap();
    let object = engine.open(task, file).unwrap();
    let limit = (4 * 512 * PAGE_SIZE).to_string();
    assert!(matches!(engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &limit), Ok(Step::Done(_))));
    let (mut writes, mut refused) = (0, 0);
    for folio in 0..FOLIOS {
        let mut step = engine.start(task, Access::new(object, folio * 512, true));
        let served = loop {
            let mut ops = Vec::new();
            engine.take_ops(&mut ops);
            for op in ops {
                if let Op::WriteSwap { io, .. } = op {
                    writes += 1;
                    engine.io_done(io, CpuId(0), Err(IoError::Device));
                }
            }
            engine.take_woken(&mut Vec::new());
            step = match step {
                Step::Done(served) => break served,
                Step::Again | Step::Wait(_) => engine.resume(task),
            };
        };
        refused += u64::from(matches!(served, Served::Failed(AccessError::Oom(_))));
    }
    assert_eq!(refused, FOLIOS - 4, "nothing leaves the group");
    assert!((refused..=2 * refused).contains(&writes), "{writes} writes for {refused} refused accesses");
    engine.check_invariants();
}

#[test]
fn folio_of_many_mappings_loses_entries_before_their_count_ends() {
    let mut machine = Machine::new("classic@6.12", FileSystem::Xfs);
    machine.write(0, 512);
    let mut mapped = 0;
    for _ in 0..140 {
        let map = machine.engine.map_file(machine.task, machine.file, Advice::Normal, false).unwrap();
        for page in (0..512).step_by(16) {
            let step = machine.engine.start(machine.task, Access::new(map, page, false));
            assert!(matches!(step, Step::Done(_)), "{step:?}");
        }
        let folios = machine.engine.figures().mapped_folios(machine.task, map);
        assert_eq!(folios[0], (MappedFolio::Whole(9), 1));
        mapped += 512;
    }
    assert!(mapped > u64::from(u16::MAX), "more than a record can count");
    machine.engine.check_invariants();
    assert_eq!(machine.stat(Stat::NrMapped), 512);
}
