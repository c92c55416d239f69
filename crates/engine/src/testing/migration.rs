//! Promises of migration between nodes: what moves, what does not, and that afterwards only the node differs.

use crate::memory::folio::FolioFlags;
use crate::memory::mm::Advice;
use crate::migrate::NotMigrated;
use crate::stat::Stat;
use crate::story::MigrateReason;
use crate::*;

const HERE: NodeId = NodeId(0);
const THERE: NodeId = NodeId(1);
const PAGES: u64 = 8;

/// A machine of two nodes, whose first holds a heap, a part of it locked, a file that is read and mapped, and a file of tmpfs.
struct Bench {
    engine: Engine,
    task: TaskId,
    objects: Vec<(ObjectId, bool)>,
}

impl Bench {
    fn new(policy: Policy) -> Bench {
        let config = Config { node_pages: vec![4096, 4096], policy, ..Config::default() };
        let mut engine = Engine::new(config).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let file = |engine: &mut Engine, name: &str, kind: FileKind| {
            let name = name.to_owned();
            engine.file_create(FileSpec { name, pages: PAGES, kind, bdi: Bdi::NO_READAHEAD }).unwrap()
        };
        let data = file(&mut engine, "data", FileKind::Regular);
        let tmp = file(&mut engine, "tmp", FileKind::Tmpfs);
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let heap = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        let locked = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        engine.mlock(task, locked).unwrap();
        let objects = vec![
            (heap, true),
            (locked, true),
            (engine.open(task, data).unwrap(), false),
            (engine.map_file(task, data, Advice::Normal, true).unwrap(), false),
            (engine.open(task, tmp).unwrap(), true),
        ];
        let mut bench = Bench { engine, task, objects };
        bench.access_all();
        bench.engine.core.lru_add_drain();
        bench.engine.check_invariants();
        bench
    }

    /// Accesses each page of each object; returns how many were hits.
    fn access_all(&mut self) -> usize {
        let mut hits = 0;
        for (object, writes) in self.objects.clone() {
            for page in 0..PAGES {
                hits += usize::from(self.access(self.task, object, page, writes));
            }
        }
        hits
    }

    fn access(&mut self, task: TaskId, object: ObjectId, page: u64, write: bool) -> bool {
        let mut step = self.engine.start(task, Access::new(object, page, write));
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                if let Op::ReadFile { io, .. } = op {
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            self.engine.take_woken(&mut Vec::new());
            match step {
                Step::Done(Served::Hit(_)) => return true,
                Step::Done(Served::Minor(_) | Served::Major(_)) => return false,
                Step::Done(served) => panic!("{served:?}"),
                Step::Again | Step::Wait(_) => step = self.engine.resume(task),
            }
        }
    }

    fn listed(&self, node: NodeId) -> Vec<Pfn> {
        let folios = self.engine.core.mm.folios_in_use(node).into_iter();
        folios.filter(|&pfn| self.engine.core.mm.memory.folios[pfn].has(FolioFlags::LRU)).collect()
    }

    fn prepare(&mut self, pfn: Pfn) -> Result<(), NotMigrated> {
        self.engine.core.migrate_prepare(pfn, None, THERE)
    }

    fn of(&self, node: NodeId, stats: &[Stat]) -> Vec<i64> {
        stats.iter().map(|&stat| self.engine.figures().node_stat(node, stat)).collect()
    }

    fn carry_out(&mut self) -> usize {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        ops.iter().filter(|op| matches!(op, Op::Copy { .. })).count()
    }
}

const GAUGES: &[Stat] = &[
    Stat::NrAnonPages,
    Stat::NrMapped,
    Stat::NrFilePages,
    Stat::NrShmem,
    Stat::NrMlock,
    Stat::NrUnevictable,
    Stat::NrIsolatedAnon,
    Stat::NrIsolatedFile,
];

#[test]
fn folios_of_every_kind_move_to_another_node_with_all_that_is_known_of_them() {
    for profile in PROFILES {
        println!("{}", profile.name);
        let mut bench = Bench::new(profile.policy());
        let folios = bench.listed(HERE);
        assert_eq!(folios.len() as u64, 4 * PAGES, "two heaps, a file and tmpfs");
        let (before, in_group) = (bench.of(HERE, GAUGES), bench.engine.core.mm.memcgs[MemcgId(1)].usage);
        assert_eq!(before[..6], [16, 8, 16, 8, 8, 8]);
        assert!(folios.iter().all(|&pfn| bench.prepare(pfn).is_ok()));
        assert_eq!(bench.of(HERE, GAUGES)[6..], [24, 8], "all are in the mover's hands");
        assert_eq!(bench.engine.core.migrate_misplaced(&folios, THERE, MigrateReason::Kmigrated), 4 * PAGES);
        bench.engine.core.lru_add_drain();
        assert_eq!(bench.carry_out() as u64, 4 * PAGES);
        bench.engine.check_invariants();
        assert_eq!(bench.of(THERE, GAUGES), before);
        assert_eq!(bench.of(HERE, GAUGES), [0; 8]);
        assert_eq!(bench.engine.core.mm.memcgs[MemcgId(1)].usage, in_group);
        assert_eq!((bench.listed(HERE).len(), bench.listed(THERE).len() as u64), (0, 4 * PAGES));
        let counted = [Stat::NumaPagesMigrated, Stat::PgmigrateSuccess, Stat::PgmigrateFail];
        assert_eq!(counted.map(|stat| bench.engine.figures().vmstat(stat)), [32, 32, 0]);
        assert_eq!(bench.access_all() as u64, 5 * PAGES, "every page is found where it went");
        bench.engine.process_exit(bench.engine.mm_of(bench.task));
        bench.engine.check_invariants();
    }
}

#[test]
fn what_may_not_move_now_or_never_stays_on_its_list() {
    let mut bench = Bench::new(Policy::of("classic@6.12"));
    let (heap, code) = (bench.objects[0].0, bench.objects[3].0);
    let frame = |bench: &Bench, object: ObjectId| match bench
        .engine
        .touched(bench.task, Access::new(object, 0, false))
    {
        Touched::Frame(pfn) => pfn,
        other => panic!("{other:?}"),
    };
    let (anon, file) = (frame(&bench, heap), frame(&bench, code));
    // A second process runs the same code.
    let other = bench.engine.process_create(MemcgId(1));
    let other = bench.engine.task_create(other, CpuId(0));
    let mapping = bench.engine.map_file(other, FileId(0), Advice::Normal, true).unwrap();
    bench.access(other, mapping, 0, false);
    let mm = bench.engine.mm_of(bench.task);
    let at = bench.engine.core.mm.memory.mm(mm).vmas.iter().position(|vma| vma.executable).unwrap();
    let vma = (mm, at);
    let prepare = |bench: &mut Bench, pfn: Pfn, vma: Option<(MmId, usize)>| {
        bench.engine.core.migrate_prepare(pfn, vma, THERE)
    };
    assert_eq!(prepare(&mut bench, file, Some(vma)), Err(NotMigrated::AccessDenied));
    // Without a mapping this is not known; but the page is dirty then.
    bench.access(bench.task, code, 0, true);
    assert_eq!(
        prepare(&mut bench, file, Some(vma)),
        Err(NotMigrated::AccessDenied),
        "never comes before later"
    );
    assert_eq!(prepare(&mut bench, file, None), Err(NotMigrated::Again));
    // Someone else has it.
    assert_eq!(prepare(&mut bench, anon, None), Ok(()));
    assert_eq!(prepare(&mut bench, anon, None), Err(NotMigrated::Again));
    bench.engine.core.migrate_put_back(anon);
    bench.engine.core.lru_add_drain();
    // The other node is full up to its high watermark.
    let zone = bench.engine.figures().zones().find(|zone| zone.node == THERE).unwrap();
    let request =
        crate::page_alloc::request::Request::movable(crate::page_alloc::request::Gfp::THISNODE, THERE);
    for _ in 0..zone.free - zone.high {
        let pfn = bench.engine.core.alloc_pages(&request, MemcgId::ROOT).unwrap();
        bench.engine.core.mm.memory.folios[pfn].refs = 1;
    }
    assert_eq!(prepare(&mut bench, anon, None), Err(NotMigrated::Again));
    bench.engine.check_invariants();
    assert_eq!(bench.engine.figures().vmstat(Stat::PgmigrateSuccess), 0);
    assert_eq!(
        bench.engine.figures().vmstat(Stat::NrIsolatedAnon)
            + bench.engine.figures().vmstat(Stat::NrIsolatedFile),
        0
    );
}

#[test]
fn of_a_batch_what_can_not_move_is_put_back_and_counted() {
    let mut bench = Bench::new(Policy::of("classic@6.12"));
    let folios = bench.listed(HERE);
    assert!(folios.iter().all(|&pfn| bench.prepare(pfn).is_ok()));
    // A task in the middle of an access holds some.
    let held = &folios[..5];
    held.iter().for_each(|&pfn| bench.engine.hold(pfn));
    assert_eq!(bench.engine.core.migrate_misplaced(&folios, THERE, MigrateReason::Kmigrated), 4 * PAGES - 5);
    bench.carry_out();
    held.iter().for_each(|&pfn| bench.engine.release(pfn));
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
    assert_eq!(bench.listed(HERE), held);
    assert_eq!(bench.of(HERE, &[Stat::PgmigrateSuccess, Stat::PgmigrateFail]), [27, 5]);
    assert_eq!(
        bench.engine.figures().vmstat(Stat::NrIsolatedAnon)
            + bench.engine.figures().vmstat(Stat::NrIsolatedFile),
        0
    );
}
