//! Promises of compaction: what it makes of a zone whose pages are scattered, and what it leaves alone.

use crate::memory::folio::FolioFlags;
use crate::migrate::{CompactMode, CompactStep, Compacted, Compaction, Goal};
use crate::page_alloc::compact::Wanted;
use crate::page_alloc::request::{Gfp, MigrateType, Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::stat::Stat;
use crate::*;

pub(super) const PAGES: u64 = 4096;

/// A machine whose only zone is full of a file's pages, every fourth of them still there, or as many as a test says.
pub(super) struct Bench {
    pub(super) engine: Engine,
    pub(super) task: TaskId,
    pub(super) file: FileId,
}

/// The index words of a file, without the frames that they lead to, which are where the contents moved.
fn words(engine: &Engine, file: FileId) -> Vec<(u64, u8)> {
    let index = &engine.core.mm.memory.file(file).index;
    index.iter().map(|(page, word)| (page, word.use_bits().bits())).collect()
}

impl Bench {
    fn new(kind: MigrateType) -> Bench {
        Bench::keeping(kind, |pfn| pfn.0.is_multiple_of(4))
    }

    /// The pages in the frames that `keeps` says are still there.
    pub(super) fn keeping(kind: MigrateType, keeps: impl Fn(&Pfn) -> bool) -> Bench {
        let config =
            Config { node_pages: vec![PAGES], policy: Policy::of("classic@6.12"), ..Config::default() };
        let mut engine = Engine::new(config).unwrap();
        let memcg = MemcgId::ROOT;
        let spec =
            FileSpec { name: "data".to_owned(), pages: PAGES, kind: FileKind::Regular, bdi: Bdi::default() };
        let file = engine.file_create(spec).unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let request = Request { migrate_type: kind, ..Request::movable(Gfp::KERNEL, NodeId(0)) };
        let core = &mut engine.core;
        let all: Vec<Pfn> =
            std::iter::from_fn(|| core.try_alloc(&request, Watermark::Min, Rights::NO_WATERMARKS, memcg))
                .collect();
        assert_eq!(all.len() as u64, PAGES);
        let (mut kept, freed): (Vec<Pfn>, Vec<Pfn>) = all.into_iter().partition(keeps);
        // Adjacent frames are not adjacent on the list, or reclaim would make blocks.
        kept.sort_by_key(|pfn| pfn.0.wrapping_mul(0x9e37_79b1));
        freed.into_iter().for_each(|pfn| core.free_folio(pfn));
        for (page, pfn) in (0..).zip(kept) {
            core.mm.memcgs.charge(memcg, 1, 1).unwrap();
            core.mm.memory.folios[pfn].set(FolioFlags::CHARGED);
            core.page_cache_add(pfn, file, page, crate::lru::AddedFor::Other);
            core.lru_add(pfn, crate::lru::AddedFor::Other);
        }
        core.lru_add_drain();
        core.mm.memory.drain_all_pages();
        let mut bench = Bench { engine, task, file };
        bench.carry_out();
        bench
    }

    /// Frees what is copied from, as a machine would; returns the copies.
    pub(super) fn carry_out(&mut self) -> Vec<(Pfn, Pfn)> {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        ops.into_iter()
            .filter_map(|op| if let Op::Copy { from, to, .. } = op { Some((from, to)) } else { None })
            .collect()
    }

    pub(super) fn blocks(&self, order: usize) -> u64 {
        self.engine.figures().zones().next().unwrap().free_blocks[order..].iter().sum()
    }

    fn compact(&mut self, order: u8, mode: CompactMode) -> (Compacted, usize) {
        let wanted = Wanted { order, migrate_type: MigrateType::Movable, class: ZoneType::Movable };
        let mut run = Compaction::new(NodeId(0), ZoneType::Dma32, mode, Goal::Block(wanted));
        let mut steps = 0;
        loop {
            steps += 1;
            self.engine.check_invariants();
            if let CompactStep::Done(ended) = self.engine.core.compact_step(&mut run) {
                self.engine.check_invariants();
                return (ended, steps);
            }
        }
    }
}

#[test]
fn scattered_free_pages_become_large_blocks_and_no_page_is_lost() {
    let mut bench = Bench::new(MigrateType::Movable);
    let before = words(&bench.engine, bench.file);
    assert_eq!((bench.blocks(2), before.len() as u64), (0, PAGES / 4));
    let mut step = bench.engine.write_file(bench.task, "/proc/sys/vm/compact_memory", "1").unwrap();
    let mut copies = bench.carry_out();
    while step == Step::Again {
        bench.engine.check_invariants();
        step = bench.engine.resume(bench.task);
        copies.extend(bench.carry_out());
    }
    bench.engine.check_invariants();
    // Three quarters of each pageblock are free: of eight, the first are emptied into the last two.
    let blocks = bench.engine.figures().zones().next().unwrap().free_blocks;
    assert!(blocks[9] + 2 * blocks[10] >= 5, "{blocks:?}");
    assert!(copies.iter().all(|(from, to)| from < to), "pages move towards the end of the zone");
    assert_eq!(words(&bench.engine, bench.file), before);
    let moved = bench.engine.figures().vmstat(Stat::PgmigrateSuccess);
    assert_eq!((moved, bench.engine.figures().vmstat(Stat::PgmigrateFail)), (copies.len() as i64, 0));
    assert_eq!(bench.engine.figures().vmstat(Stat::NrIsolatedFile), 0);
}

#[test]
fn a_run_for_a_request_ends_with_the_first_block_and_is_not_made_where_there_is_one() {
    let mut bench = Bench::new(MigrateType::Movable);
    let (ended, steps) = bench.compact(5, CompactMode::Async);
    assert_eq!(ended, Compacted::Success);
    let moved = bench.engine.figures().vmstat(Stat::PgmigrateSuccess);
    assert!(moved <= 128, "a pageblock has 128 pages, and {moved} were moved in {steps} steps");
    assert_eq!(bench.compact(5, CompactMode::Async), (Compacted::Skipped, 1));
}

#[test]
fn what_is_held_stays_and_failures_put_off_the_next_run() {
    let mut bench = Bench::new(MigrateType::Movable);
    for pfn in bench.engine.used_folios() {
        bench.engine.core.mm.memory.folios[pfn].refs += 1;
    }
    assert_eq!(bench.compact(5, CompactMode::SyncLight).0, Compacted::Complete);
    assert_eq!(bench.engine.figures().vmstat(Stat::PgmigrateSuccess), 0);
    assert!(bench.engine.figures().vmstat(Stat::PgmigrateFail) > 0);
    assert_eq!(bench.compact(5, CompactMode::SyncLight), (Compacted::Deferred, 1));
    assert_eq!(bench.compact(5, CompactMode::SyncLight).0, Compacted::Complete);
    assert_eq!(bench.compact(5, CompactMode::Sync).0, Compacted::Complete, "the last try is not put off");
}

#[test]
fn an_asynchronous_run_takes_from_movable_pageblocks_only() {
    let mut bench = Bench::new(MigrateType::Unmovable);
    assert_eq!(bench.compact(5, CompactMode::Async).0, Compacted::Complete);
    assert_eq!(bench.engine.figures().vmstat(Stat::PgmigrateSuccess), 0);
}
