//! Promises of large folios. No access makes one yet, so the tests put them into the page cache by hand. From there on, whatever
//! the lists do with a folio they do with all of its pages.

use crate::memory::folio::FolioFlags;
use crate::page_alloc::request::{Gfp, Request};
use crate::stat::Stat;
use crate::*;

const ORDER: u8 = 4;
const PAGES: u64 = 1 << ORDER;
const FOLIOS: u64 = 12;
const ALL: i64 = (PAGES * FOLIOS) as i64;

/// A group of one task whose file is cached in large folios.
struct Bench {
    engine: Engine,
    memcg: MemcgId,
    task: TaskId,
}

impl Bench {
    fn new(policy: Policy) -> Bench {
        let config = Config { policy, stat_flush: StatFlush::Live, kmem: false, ..Config::default() };
        let mut engine = Engine::new(config).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let spec = FileSpec {
            name: "data".to_owned(),
            pages: PAGES * FOLIOS,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        };
        let file = engine.file_create(spec).unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let request = Request { order: ORDER, ..Request::movable(Gfp::KERNEL, NodeId(0)) };
        for folio in 0..FOLIOS {
            engine.core.mm.memcgs.charge(memcg, PAGES, PAGES).unwrap();
            let pfn = engine.core.alloc_pages(&request, memcg).unwrap();
            engine.core.mm.memory.folios[pfn].set(crate::memory::folio::FolioFlags::CHARGED);
            engine.core.page_cache_add(pfn, file, folio * PAGES, crate::lru::AddedFor::Other);
            engine.core.lru_add(pfn, crate::lru::AddedFor::Other);
            assert!(
                engine.core.mm.memory.folios[pfn].has(FolioFlags::LRU),
                "a large folio does not wait in a batch"
            );
        }
        engine.check_invariants();
        Bench { engine, memcg, task }
    }

    fn stat(&self, stat: Stat) -> i64 {
        self.engine.figures().memcg_stat_now(self.memcg, stat)
    }

    fn cached(&self) -> i64 {
        self.stat(Stat::NrInactiveFile) + self.stat(Stat::NrActiveFile)
    }

    /// Writes `memory.reclaim`, and waits for the end of it.
    fn reclaim(&mut self, pages: u64) {
        let bytes = (pages * PAGE_SIZE).to_string();
        let mut step =
            self.engine.write_file(self.task, "/sys/fs/cgroup/job/memory.reclaim", &bytes).unwrap();
        while !matches!(step, Step::Done(_)) {
            self.engine.check_invariants();
            self.engine.take_ops(&mut Vec::new());
            step = self.engine.resume(self.task);
        }
        self.engine.check_invariants();
    }
}

#[track_caller]
fn with_every_policy(promise: impl Fn(Bench)) {
    for profile in PROFILES {
        println!("{}", profile.name);
        promise(Bench::new(profile.policy()));
    }
}

#[test]
fn a_large_folio_counts_as_its_pages_on_every_list() {
    with_every_policy(|bench| {
        assert_eq!(bench.cached(), ALL);
        assert_eq!(bench.stat(Stat::NrFilePages), ALL);
        assert_eq!(bench.engine.core.mm.memcgs[bench.memcg].usage, ALL as u64);
        let generations = bench.engine.figures().lru_gen(bench.memcg, NodeId(0));
        let in_generations: u64 = generations.iter().map(|generation| generation.file).sum();
        assert!(in_generations == ALL as u64 || in_generations == 0, "{in_generations} pages in generations");
    });
}

#[test]
fn a_large_folio_is_scanned_stolen_and_freed_as_its_pages() {
    with_every_policy(|mut bench| {
        bench.reclaim(PAGES);
        let stolen = bench.engine.figures().vmstat(Stat::PgstealFile);
        assert!(stolen >= PAGES as i64 && stolen % PAGES as i64 == 0, "{stolen} pages stolen");
        let scanned = bench.engine.figures().vmstat(Stat::PgscanFile);
        assert!(scanned >= stolen && scanned % PAGES as i64 == 0, "{scanned} pages scanned");
        assert_eq!(bench.cached(), ALL - stolen);
        assert_eq!(bench.engine.core.mm.memcgs[bench.memcg].usage, (ALL - stolen) as u64);
        bench.reclaim(ALL as u64);
        assert_eq!(bench.engine.core.mm.memcgs[bench.memcg].usage, 0);
        assert_eq!(bench.engine.figures().vmstat(Stat::Pgfree), ALL);
        assert_eq!(bench.engine.used_folios(), []);
    });
}

#[test]
fn a_large_folio_moves_to_the_other_lists_as_its_pages_when_the_policy_is_switched() {
    let mut bench = Bench::new(Policy::of("classic@6.12"));
    let mut generations = Vec::new();
    for (enabled, expected) in [("7", ALL as u64), ("0", 0)] {
        let mut step =
            bench.engine.write_file(bench.task, "/sys/kernel/mm/lru_gen/enabled", enabled).unwrap();
        while !matches!(step, Step::Done(_)) {
            step = bench.engine.resume(bench.task);
        }
        bench.engine.check_invariants();
        assert_eq!(bench.cached(), ALL);
        generations.extend(bench.engine.figures().lru_gen(bench.memcg, NodeId(0)));
        assert_eq!(generations.drain(..).map(|generation| generation.file).sum::<u64>(), expected);
    }
}
