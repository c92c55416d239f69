//! Promises of idle and young flags, and of the modules.

use super::flags::Look;
use crate::memory::mm::Advice;
use crate::units::PAGE_SIZE;
use crate::*;

mod schemes;

const MS: u64 = 1_000_000;

/// A machine with a file, a heap and a task.
struct Bench {
    engine: Engine,
    task: TaskId,
    file: FileId,
    read: ObjectId,
    heap: ObjectId,
    kdamond: Option<TaskId>,
    /// When kdamond goes on.
    due: u64,
    now: u64,
}

impl Bench {
    fn new(config: Config) -> Bench {
        Bench::with(Config { node_pages: vec![8192], ..config }, |_, _| None)
    }

    /// A machine with a kdamond, if one is given for its process.
    fn with(config: Config, added: impl FnOnce(&Engine, MmId) -> Option<KdamondSpec>) -> Bench {
        let config = Config { folio_batch: 1, kmem: false, ..config };
        let mut builder = Engine::builder(config).unwrap();
        builder.swap_on(SwapSpec { pages: 8192, kind: SwapKind::Device }).unwrap();
        let mut engine = builder.build();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let spec =
            FileSpec { name: "f".to_owned(), pages: 4096, kind: FileKind::Regular, bdi: Default::default() };
        let file = engine.file_create(spec).unwrap();
        let read = engine.open(task, file).unwrap();
        let heap = engine.map_anon(task, 4096, Advice::Normal).unwrap();
        if let Some(spec) = added(&engine, mm) {
            engine.kdamond_add(spec).unwrap();
        }
        let threads = engine.start_kernel_threads();
        let kdamond = threads.iter().find(|thread| thread.name == "kdamond.0").map(|thread| thread.task);
        Bench { engine, task, file, read, heap, kdamond, due: 0, now: 0 }
    }

    fn carry_out(&mut self) {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        for op in ops {
            match op {
                Op::ReadFile { io, .. } | Op::ReadSwap { io, .. } | Op::WriteSwap { io, .. } => {
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
                _ => {}
            }
        }
    }

    fn access(&mut self, object: ObjectId, page: u64) {
        let access = Access { object, page, write: false, wanted: PAGE_SIZE as u32, offset: 0 };
        if self.engine.run_hits(self.task, &[access], |access| access) == 1 {
            return;
        }
        let mut step = self.engine.start(self.task, access);
        loop {
            self.carry_out();
            match step {
                Step::Done(_) => return,
                Step::Again | Step::Wait(_) => step = self.engine.resume(self.task),
            }
        }
    }

    /// The folio of a page of the file, or of the heap.
    fn folio(&self, object: ObjectId, page: u64) -> Option<Pfn> {
        let access = Access { object, page, write: false, wanted: PAGE_SIZE as u32, offset: 0 };
        match self.engine.touched(self.task, access) {
            Touched::Frame(pfn) => Some(pfn),
            _ => None,
        }
    }

    fn store(&mut self, page: u64) {
        let access = Access { object: self.heap, page, write: true, wanted: PAGE_SIZE as u32, offset: 0 };
        let mut step = self.engine.start(self.task, access);
        while !matches!(step, Step::Done(_)) {
            self.carry_out();
            step = self.engine.resume(self.task);
        }
    }

    /// Runs kdamond until a time.
    fn run_until(&mut self, ms: u64) {
        let kdamond = self.kdamond.expect("a module is enabled");
        while self.due <= ms * MS {
            self.now = self.now.max(self.due);
            self.engine.set_now(Nanos(self.now));
            match self.engine.resume(kdamond) {
                Step::Wait(Wait::WokenOr(span, _)) => self.due = self.now + span.0,
                // Each batch takes some time.
                Step::Again => self.now += 1_000,
                // The thread has ended.
                Step::Wait(Wait::Woken) => self.due = u64::MAX,
                step => panic!("{step:?}"),
            }
            self.due = self.due.max(self.now);
            self.carry_out();
        }
        self.now = self.now.max(ms * MS);
        self.engine.set_now(Nanos(self.now));
    }

    fn parameter(&mut self, module: &str, name: &str) -> u64 {
        let text = self.engine.read_file(&format!("/sys/module/{module}/parameters/{name}")).unwrap();
        text.trim().parse().unwrap()
    }
}

#[test]
fn use_after_a_sample_makes_a_page_young() {
    let mut bench = Bench::new(Config::default());
    for object in [bench.read, bench.heap] {
        bench.access(bench.read, 3);
        bench.store(3);
        bench.engine.core.lru_add_drain();
        let pfn = bench.folio(object, 3).unwrap();
        for _ in 0..5 {
            bench.engine.core.damon_make_old(Look::Sample, pfn);
            assert!(!bench.engine.core.damon_is_young(Look::Sample, pfn));
            // Another page in between: reading one again is no use of it.
            bench.access(bench.read, 9);
            bench.access(object, 3);
            assert!(bench.engine.core.damon_is_young(Look::Sample, pfn));
        }
    }
    bench.engine.check_invariants();
}

#[test]
fn file_page_in_full_use_settles_again_after_a_sample() {
    let mut bench = Bench::new(Config::default());
    for page in [3, 9, 3, 9, 3, 9] {
        bench.access(bench.read, page);
    }
    bench.engine.core.lru_add_drain();
    let word = |bench: &Bench| bench.engine.core.mm.memory.file(bench.file).index.word(3);
    let pfn = bench.folio(bench.read, 3).unwrap();
    assert!(word(&bench).is_settled());
    bench.engine.core.damon_make_old(Look::Sample, pfn);
    assert!(word(&bench).is_idle() && !word(&bench).is_settled());
    bench.access(bench.read, 3);
    assert!(!word(&bench).is_idle() && word(&bench).is_settled());
}

#[test]
fn young_flag_hides_no_use_from_reclaim() {
    let mut bench = Bench::new(Config::default());
    bench.store(3);
    bench.engine.core.lru_add_drain();
    let pfn = bench.folio(bench.heap, 3).unwrap();
    let referenced = |bench: &mut Bench| bench.engine.core.folio_referenced(pfn, true).young;
    bench.engine.core.damon_make_old(Look::Sample, pfn);
    assert_eq!(referenced(&mut bench), 1, "the use before the sample");
    assert_eq!(referenced(&mut bench), 0);
    bench.access(bench.heap, 3);
    bench.engine.core.damon_make_old(Look::Sample, pfn);
    bench.access(bench.heap, 3);
    assert_eq!(referenced(&mut bench), 2, "used before and after the sample");
}

#[test]
fn reclaim_that_clears_a_bit_hides_no_use_from_a_sample() {
    let mut bench = Bench::new(Config::default());
    bench.store(3);
    bench.engine.core.lru_add_drain();
    let pfn = bench.folio(bench.heap, 3).unwrap();
    bench.engine.core.damon_make_old(Look::Sample, pfn);
    bench.access(bench.heap, 3);
    let _ = bench.engine.core.folio_referenced(pfn, true);
    assert!(bench.engine.core.damon_is_young(Look::Sample, pfn));
}

#[test]
fn disabled_modules_have_no_thread() {
    let mut bench = Bench::new(Config::default());
    assert_eq!(bench.kdamond, None);
    bench.store(3);
    assert!(!bench.engine.core.mm.damon.has_flags);
    assert_eq!(bench.parameter("damon_reclaim", "nr_reclaim_tried_regions"), 0);
}

#[test]
fn only_one_module_can_be_enabled() {
    let config = Config { damon_reclaim: true, damon_stat: true, ..Config::default() };
    assert!(config.check().unwrap_err().to_string().contains("modules of DAMON"));
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    for (config, name) in [
        (Config { damon_sample_interval: 200_000, ..reclaiming() }, "damon.aggr_interval"),
        (Config { damon_min_nr_regions: 2_000, ..reclaiming() }, "damon.max_nr_regions"),
        (Config { damon_reclaim_wmarks_high: 300, ..reclaiming() }, "damon_reclaim.wmarks_high"),
    ] {
        let refused = Engine::builder(config).err().expect("the parameters contradict each other");
        assert!(refused.to_string().starts_with(name), "{refused}");
    }
}

/// DAMON_RECLAIM without waiting for memory to be short.
fn reclaiming() -> Config {
    Config {
        damon_reclaim: true,
        damon_reclaim_min_age: 1_000_000,
        damon_reclaim_wmarks_high: 1000,
        damon_reclaim_wmarks_mid: 1000,
        damon_reclaim_wmarks_low: 0,
        ..Config::default()
    }
}

#[test]
fn reclaim_module_frees_idle_memory_and_spares_what_is_used() {
    for version in ["classic@6.1.192", "classic@6.12", "mglru@6.12", "classic@7.2", "mglru@7.3"] {
        let mut bench = Bench::new(Config { policy: Policy::by_name(version).unwrap(), ..reclaiming() });
        (0..2048).for_each(|page| bench.access(bench.read, page));
        (0..1024).for_each(|page| bench.store(page));
        // Regions of the hot half are found in use, whichever of their pages is sampled.
        for ms in (5..12_000).step_by(5) {
            (0..512).for_each(|page| bench.access(bench.heap, page));
            bench.run_until(ms);
        }
        let resident = |bench: &Bench, object, pages: std::ops::Range<u64>| {
            pages.filter(|&page| bench.folio(object, page).is_some()).count()
        };
        let hot = resident(&bench, bench.heap, 0..512);
        let cold = resident(&bench, bench.heap, 512..1024) + resident(&bench, bench.read, 0..2048);
        assert_eq!(hot, 512, "{version}");
        assert!(cold < 256, "{version}: {cold} of 2,560 idle pages are left");
        let freed = bench.parameter("damon_reclaim", "bytes_reclaimed_regions");
        assert!(freed >= (2560 - 256) * PAGE_SIZE, "{version}: {freed}");
        assert!(bench.parameter("damon_reclaim", "nr_reclaim_tried_regions") > 0);
        bench.engine.check_invariants();
    }
}

#[test]
fn watermarks_keep_the_reclaim_module_inactive() {
    let marks = Config { damon_reclaim_wmarks_high: 300, damon_reclaim_wmarks_mid: 300, ..reclaiming() };
    let mut bench = Bench::new(marks);
    (0..1024).for_each(|page| bench.access(bench.read, page));
    bench.run_until(12_000);
    assert_eq!(bench.parameter("damon_reclaim", "nr_reclaim_tried_regions"), 0);
    assert_eq!(bench.engine.work().damon_pages, 0, "it does not even sample");
}

#[test]
fn skip_anon_spares_idle_heaps() {
    let mut bench = Bench::new(Config { damon_reclaim_skip_anon: true, ..reclaiming() });
    (0..1024).for_each(|page| bench.access(bench.read, page));
    (0..1024).for_each(|page| bench.store(page));
    bench.run_until(6_000);
    let left = |bench: &Bench, object| (0..1024).filter(|&page| bench.folio(object, page).is_some()).count();
    assert_eq!(left(&bench, bench.heap), 1024);
    assert!(left(&bench, bench.read) < 256);
}

#[test]
fn lru_sort_moves_cold_pages_and_activates_hot_ones_by_rule() {
    let mut activated = Vec::new();
    for version in ["classic@6.12", "classic@7.2"] {
        let mut bench = Bench::new(Config {
            policy: Policy::by_name(version).unwrap(),
            damon_lru_sort: true,
            damon_lru_sort_cold_min_age: 1_000_000,
            damon_lru_sort_wmarks_high: 1000,
            damon_lru_sort_wmarks_mid: 1000,
            damon_lru_sort_wmarks_low: 0,
            ..Config::default()
        });
        (0..2048).for_each(|page| bench.store(page));
        for ms in (5..3_000).step_by(5) {
            (0..512).for_each(|page| bench.access(bench.heap, page));
            bench.run_until(ms);
        }
        assert!(bench.parameter("damon_lru_sort", "bytes_lru_sort_tried_hot_regions") > 0, "{version}");
        assert!(bench.parameter("damon_lru_sort", "bytes_lru_sorted_cold_regions") > 0, "{version}");
        activated.push(bench.engine.figures().vmstat(Stat::Pgactivate));
    }
    assert!(activated[0] >= 512 && activated[1] >= 512, "{activated:?}");
}

#[test]
fn stat_module_reports_idle_time_and_bandwidth() {
    let mut bench = Bench::new(Config { damon_stat: true, ..Config::default() });
    (0..4096).for_each(|page| bench.store(page));
    for ms in (5..4_000).step_by(5) {
        (0..4096).for_each(|page| bench.access(bench.heap, page));
        bench.run_until(ms);
    }
    // Half of the memory is in use in each sample of 5 ms or more.
    assert!(bench.parameter("damon_stat", "estimated_memory_bandwidth") > 100 << 20);
    let idle =
        bench.engine.read_file("/sys/module/damon_stat/parameters/memory_idle_ms_percentiles").unwrap();
    let idle: Vec<i64> = idle.trim().split(',').map(|ms| ms.parse().unwrap()).collect();
    assert_eq!(idle.len(), 101);
    assert!(idle[0] < 0 && idle[100] > 1_000, "{idle:?}");
}
