//! Promises of demotion: which pages go to slower memory, which don't, and where they end.

use crate::memory::folio::FolioFlags;
use crate::memory::mm::Advice;
use crate::stat::Stat;
use crate::*;

const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);

/// A machine of one fast node and slow ones, with a heap and a file that were touched once, all on the fast node.
struct Bench {
    engine: Engine,
    task: TaskId,
    objects: [(ObjectId, bool); 2],
}

const PAGES: u64 = 256;

impl Bench {
    fn new(policy: Policy, demotion_enabled: bool, slow: &[(u64, u32)]) -> Bench {
        let distances = slow.iter().map(|&(_, adistance)| MemoryType::Adistance(adistance));
        let memory_types = [MemoryType::Dram].into_iter().chain(distances).collect();
        let config = Config {
            node_pages: [4096].into_iter().chain(slow.iter().map(|&(pages, _)| pages)).collect(),
            layout: Layout { memory_types, ..Layout::default() },
            demotion_enabled,
            policy,
            folio_batch: 1,
            ..Config::default()
        };
        let mut engine = Engine::new(config).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let spec = FileSpec {
            name: "data".to_owned(),
            pages: PAGES,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        };
        let data = engine.file_create(spec).unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let heap = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        let open = engine.open(task, data).unwrap();
        let mut bench = Bench { engine, task, objects: [(heap, true), (open, false)] };
        assert_eq!(bench.access_all(), 0);
        bench
    }

    fn run(&mut self, mut step: Step) -> Served {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                match op {
                    Op::ReadFile { io, .. } | Op::WriteSwap { io, .. } | Op::ReadSwap { io, .. } => {
                        self.engine.io_done(io, CpuId(0), Ok(()));
                    }
                    _ => {}
                }
            }
            self.engine.take_woken(&mut Vec::new());
            match step {
                Step::Done(served) => return served,
                Step::Again | Step::Wait(_) => step = self.engine.resume(self.task),
            }
        }
    }

    /// Accesses each page of each object; returns how many were hits.
    fn access_all(&mut self) -> u64 {
        let mut hits = 0;
        for (object, write) in self.objects {
            for page in 0..PAGES {
                let step = self.engine.start(self.task, Access::new(object, page, write));
                hits += u64::from(matches!(self.run(step), Served::Hit(_)));
            }
        }
        hits
    }

    /// Writes `memory.reclaim`, until this number of pages is reclaimed or it fails.
    fn reclaim(&mut self, pages: u64) -> u64 {
        let bytes = (pages * PAGE_SIZE).to_string();
        let step = self.engine.write_file(self.task, "/sys/fs/cgroup/job/memory.reclaim", &bytes).unwrap();
        match self.run(step) {
            Served::Written { reclaimed } => reclaimed,
            other => panic!("{other:?}"),
        }
    }

    fn stats<const N: usize>(&self, stats: [Stat; N]) -> [i64; N] {
        stats.map(|stat| self.engine.figures().vmstat(stat))
    }

    fn used(&self, node: NodeId) -> u64 {
        self.engine.core.mm.folios_in_use(node).len() as u64
    }

    /// Pages of slow memory that have left fast memory, and have not been seen to be used since.
    fn unseen(&self) -> u64 {
        let core = &self.engine.core;
        let folios = core.mm.folios_in_use(SLOW).into_iter();
        folios.filter(|&pfn| core.mm.memory.folios[pfn].has(FolioFlags::DEPARTED)).count() as u64
    }
}

fn profiles() -> impl Iterator<Item = Policy> {
    ["classic@6.12", "mglru@6.12"].map(|name| Profile::by_name(name).unwrap().policy()).into_iter()
}

/// Without swap, anonymous pages go as well: slow memory can hold them.
#[test]
fn what_nobody_uses_goes_to_slower_memory_and_is_still_a_hit() {
    for policy in profiles() {
        let mut bench = Bench::new(policy, true, &[(4096, 2880)]);
        let reclaimed = bench.reclaim(2 * PAGES);
        let [demoted, stolen_anon, migrated, failed] = bench.stats([
            Stat::PgdemoteProactive,
            Stat::PgstealAnon,
            Stat::PgmigrateSuccess,
            Stat::PgmigrateFail,
        ]);
        assert!(demoted >= PAGES as i64, "{demoted}");
        assert!(stolen_anon > 0, "anonymous pages are among them");
        assert_eq!((migrated, failed), (demoted, 0));
        assert!(reclaimed >= demoted as u64, "they count as reclaimed");
        bench.engine.check_invariants();
        let kept = bench.access_all();
        let lost = 2 * PAGES - kept;
        assert_eq!(reclaimed - demoted as u64, lost, "all that was demoted is found");
        bench.engine.check_invariants();
    }
}

/// A governor measures promotion and adds nothing to it: it marks no entry, so it causes no fault.
#[test]
fn what_is_demoted_is_known_to_the_governor_and_not_marked_for_it() {
    for policy in profiles() {
        let mut bench = Bench::new(policy, true, &[(4096, 2880)]);
        let config = &mut bench.engine.core.mm.config;
        (config.numa_balancing, config.promotion_governor_ms) = (2, 1000);
        bench.reclaim(2 * PAGES);
        assert_eq!(bench.unseen(), bench.used(SLOW), "what is still there");
        assert!(bench.unseen() > 0);
        bench.access_all();
        assert_eq!(bench.stats([Stat::NumaPteUpdates, Stat::NumaHintFaults]), [0, 0]);
        bench.engine.check_invariants();
    }
}

/// If reads are watched, one in 64 demoted file pages is sampled for how soon it is used.
#[test]
fn a_page_of_a_file_is_asked_where_reads_are_looked_at() {
    for watched in [false, true] {
        let mut bench = Bench::new(Policy::of("classic@6.12"), true, &[(4096, 2880)]);
        let config = &mut bench.engine.core.mm.config;
        (config.numa_balancing, config.promotion_governor_ms) = (2, 1000);
        config.pagecache_promotion_enabled = watched;
        bench.reclaim(PAGES);
        let core = &bench.engine.core;
        let of_file = core.mm.folios_in_use(SLOW).into_iter().map(|pfn| core.mm.memory.folios[pfn]);
        let asked = of_file.filter(|folio| folio.has(FolioFlags::INDEXED) && folio.index.is_multiple_of(64));
        let asked = asked.count() as u64;
        assert!(asked > 0, "one of them went");
        let unseen = bench.unseen();
        let (open, _) = bench.objects[1];
        for page in 0..PAGES {
            let step = bench.engine.start(bench.task, Access::new(open, page, false));
            bench.run(step);
        }
        assert_eq!(unseen - bench.unseen(), if watched { asked } else { 0 });
    }
}

#[test]
fn without_the_switch_or_a_slower_tier_nothing_is_demoted() {
    for (demotion_enabled, adistance) in [(false, 2880), (true, 576)] {
        for policy in profiles() {
            let mut bench = Bench::new(policy, demotion_enabled, &[(4096, adistance)]);
            bench.reclaim(PAGES);
            let stats =
                [Stat::PgdemoteProactive, Stat::PgdemoteDirect, Stat::PgmigrateSuccess, Stat::PgstealAnon];
            assert_eq!(bench.stats(stats), [0; 4], "no swap, no slower memory: anonymous pages stay");
        }
    }
}

/// The nearest tier is full: the pages go to the one after it.
#[test]
fn what_finds_no_room_in_the_next_tier_goes_to_any_slower_one() {
    let mut bench = Bench::new(Policy::of("classic@6.12"), true, &[(64, 2880), (4096, 5760)]);
    bench.reclaim(2 * PAGES);
    let [demoted] = bench.stats([Stat::PgdemoteProactive]);
    assert!(demoted > 64, "{demoted}");
    assert!(bench.used(NodeId(2)) > 0 && bench.used(NodeId(1)) < 64);
    bench.engine.check_invariants();
}

/// Slow memory is full. Reclaim for a shortage drops pages after all; reclaim that a user requested leaves them.
#[test]
fn what_finds_no_room_at_all_leaves_memory_unless_a_user_asked() {
    for policy in profiles() {
        let mut bench = Bench::new(policy, true, &[(1, 2880)]);
        let before = bench.used(FAST);
        // The slow node has one page, which is dropped there to make room for the next.
        bench.reclaim(64);
        let [demoted, failed] = bench.stats([Stat::PgdemoteProactive, Stat::PgmigrateFail]);
        assert!(failed > demoted, "{demoted} {failed}");
        assert_eq!(bench.used(FAST) + demoted as u64, before, "nothing else has left the fast node");
        let limit = (PAGES * 3 / 2 * PAGE_SIZE).to_string();
        let step = bench.engine.write_file(bench.task, "/sys/fs/cgroup/job/memory.max", &limit).unwrap();
        bench.run(step);
        assert!(bench.used(FAST) < before - PAGES / 4, "pages of the file were dropped");
        bench.engine.check_invariants();
    }
}

#[test]
fn pages_of_files_are_dropped_where_they_may_not_be_demoted() {
    for mut policy in profiles() {
        policy.group.reclaim.demote_file = false;
        let mut bench = Bench::new(policy, true, &[(4096, 2880)]);
        bench.reclaim(2 * PAGES);
        let [demoted, anon, file] =
            bench.stats([Stat::PgdemoteProactive, Stat::PgstealAnon, Stat::PgstealFile]);
        assert!(demoted > 0 && file > 0);
        assert_eq!(demoted, anon, "only anonymous pages moved");
        bench.engine.check_invariants();
    }
}

#[test]
fn pages_of_a_group_stay_on_its_nodes_where_demotion_asks() {
    let with = |demotion_mems| {
        let mut policy = Policy::of("classic@6.12");
        policy.group.reclaim.demotion_mems = demotion_mems;
        let mut bench = Bench::new(policy, true, &[(4096, 2880), (4096, 5760)]);
        let mems = "/sys/fs/cgroup/job/cpuset.mems";
        let _ = bench.engine.write_file(bench.task, mems, "0,2").unwrap();
        bench.reclaim(2 * PAGES);
        bench.engine.check_invariants();
        [NodeId(1), NodeId(2)].map(|node| bench.used(node) > 0)
    };
    assert!(with(DemotionMems::Ignored)[0], "to the nearest, whose it is not");
    assert_eq!(with(DemotionMems::NearestOnly), [false, false]);
    assert_eq!(with(DemotionMems::Respected), [false, true]);
}

/// Each batch goes to one of two equally near nodes, as it is drawn.
#[test]
fn equally_near_nodes_are_all_targets() {
    let mut bench = Bench::new(Policy::of("classic@6.12"), true, &[(4096, 2880), (4096, 2880)]);
    bench.reclaim(2 * PAGES);
    let used = [NodeId(1), NodeId(2)].map(|node| bench.used(node));
    assert!(used.iter().all(|&pages| pages > 0), "{used:?}");
}
