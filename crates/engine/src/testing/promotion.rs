//! Promises of what is read again on slow memory: promoted by its reader, or reported and promoted by kmigrated.

use crate::memory::folio::FolioFlags;
use crate::page_alloc::request::{Gfp, Request};
use crate::stat::Stat;
use crate::story::MigrateReason;
use crate::*;

const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);
const PAGES: u64 = 8;

/// A machine with slow memory, on which a file of some pages lies that was read once.
struct Bench {
    engine: Engine,
    task: TaskId,
    file: FileId,
    object: ObjectId,
    threads: Vec<ThreadInfo>,
}

impl Bench {
    fn new(policy: Policy, set: &[(&str, &str)]) -> Bench {
        let slow = MemoryType::Adistance(ADISTANCE_DAX_KMEM);
        let layout = Layout { memory_types: vec![MemoryType::Dram, slow], ..Layout::default() };
        Bench::on(vec![4096, 4096], layout, policy, set)
    }

    fn on(node_pages: Vec<u64>, layout: Layout, policy: Policy, set: &[(&str, &str)]) -> Bench {
        let mut config = Config { node_pages, policy, layout, ..Config::default() };
        for (name, value) in [("kernel.numa_balancing", "2")].iter().chain(set) {
            let parameter = Parameter::by_name(name).expect("a parameter");
            assert!(parameter.set(&mut config, value), "{name} = {value}");
        }
        let mut engine = Engine::new(config).unwrap();
        let threads = engine.start_kernel_threads();
        let spec = FileSpec {
            name: "data".to_owned(),
            pages: PAGES,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        };
        let file = engine.file_create(spec).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let object = engine.open(task, file).unwrap();
        let mut bench = Bench { engine, task, file, object, threads };
        bench.read_all(PAGES as u32);
        bench.engine.core.lru_add_drain();
        let folios = bench.listed(FAST);
        assert!(folios.iter().all(|&pfn| bench.engine.core.migrate_prepare(pfn, None, SLOW).is_ok()));
        assert_eq!(bench.engine.core.migrate_to_node(&folios, SLOW, MigrateReason::Kmigrated), PAGES);
        bench.settle();
        bench
    }

    fn promoting(policy: Policy) -> Bench {
        Bench::new(policy, &[("numa.pagecache_promotion_enabled", "true")])
    }

    /// Reads the file in calls of this number of pages.
    fn read_all(&mut self, call: u32) {
        for page in 0..PAGES {
            self.read(page, call - page as u32 % call);
        }
    }

    /// Reads a page, of whose call so many are still to come with it. As a machine does: hits in a run, the rest one by one.
    fn read(&mut self, page: u64, pages_to_come: u32) {
        let wanted = pages_to_come * PAGE_SIZE as u32;
        let access = Access { wanted, ..Access::new(self.object, page, false) };
        if self.engine.run_hits(self.task, &[()], |()| access) == 1 {
            return;
        }
        let step = self.engine.start(self.task, access);
        self.finish(self.task, step);
    }

    /// Goes on with a task until its step is done, or it waits for a time or a wake.
    fn finish(&mut self, task: TaskId, mut step: Step) {
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
                Step::Done(served) => {
                    assert!(!matches!(served, Served::Failed(_)), "{served:?}");
                    return;
                }
                Step::Wait(Wait::Woken | Wait::WokenOr(..)) => return,
                Step::Again | Step::Wait(_) => step = self.engine.resume(task),
            }
        }
    }

    /// kmigrated of the slow node has slept enough.
    fn kmigrated(&mut self) {
        let task =
            self.threads.iter().find(|thread| thread.name == "kmigrated1").expect("it has slow memory").task;
        let step = self.engine.resume(task);
        self.finish(task, step);
        self.settle();
    }

    fn settle(&mut self) {
        self.engine.core.lru_add_drain();
        self.engine.take_ops(&mut Vec::new());
        self.engine.check_invariants();
    }

    fn listed(&self, node: NodeId) -> Vec<Pfn> {
        let folios = self.engine.core.mm.folios_in_use(node).into_iter();
        let on_list = |pfn: &Pfn| self.engine.core.mm.memory.folios[*pfn].has(FolioFlags::LRU);
        folios.filter(on_list).collect()
    }

    fn count(&self, stat: Stat) -> i64 {
        self.engine.figures().vmstat(stat)
    }

    /// Pages on slow memory, in readers' hands, and promoted so far.
    fn whereabouts(&self) -> (usize, i64, i64) {
        (self.listed(SLOW).len(), self.count(Stat::NrIsolatedFile), self.count(Stat::PgpromoteSuccess))
    }
}

#[test]
fn the_fourth_read_of_a_page_is_the_first_that_promotes_it() {
    let mut bench = Bench::promoting(Policy::of("classic@6.12"));
    for _ in 2..=3 {
        bench.read_all(PAGES as u32);
        bench.settle();
        assert_eq!(bench.count(Stat::NumaHintPageCache), 0);
    }
    bench.read_all(PAGES as u32);
    bench.settle();
    assert_eq!(bench.count(Stat::NumaHintPageCache), 8);
    assert_eq!(bench.count(Stat::NumaHintPageCacheLocal), 0, "it was read from the fast node");
    assert_eq!(bench.count(Stat::PgpromoteCandidate), 8);
    assert_eq!(bench.count(Stat::NumaPagesMigrated), 8);
    assert_eq!(bench.whereabouts(), (0, 0, 8));
    bench.read_all(PAGES as u32);
    assert_eq!(bench.count(Stat::NumaHintPageCache), 8, "what is in the top tier is left alone");
}

#[test]
fn among_generations_it_is_the_sixth_and_only_where_the_switch_says_so() {
    let mut bench = Bench::promoting(Policy::of("mglru@6.12"));
    for _ in 2..=5 {
        bench.read_all(PAGES as u32);
    }
    assert_eq!(bench.count(Stat::NumaHintPageCache), 0);
    bench.read_all(PAGES as u32);
    bench.settle();
    assert_eq!(bench.whereabouts(), (0, 0, 8));
    let v3 = [("numa.pagecache_promotion_enabled", "true"), ("numa.pagecache_promotion_mglru", "false")];
    let mut bench = Bench::new(Policy::of("mglru@6.12"), &v3);
    for _ in 0..12 {
        bench.read_all(PAGES as u32);
    }
    assert_eq!((bench.count(Stat::NumaHintPageCache), bench.whereabouts()), (0, (8, 0, 0)));
}

#[test]
fn nothing_is_counted_or_moved_without_the_switch_or_without_tiering() {
    for set in [("numa.pagecache_promotion_enabled", "false"), ("kernel.numa_balancing", "1")] {
        let mut bench =
            Bench::new(Policy::of("classic@6.12"), &[("numa.pagecache_promotion_enabled", "true"), set]);
        for _ in 0..6 {
            bench.read_all(PAGES as u32);
        }
        let counted = [Stat::NumaHintPageCache, Stat::PgpromoteCandidate, Stat::PgpromoteSuccess];
        assert_eq!(counted.map(|stat| bench.count(stat)), [0; 3], "{set:?}");
        let looked_up = bench.engine.work().tiers_looked_up;
        assert_eq!((looked_up, bench.whereabouts()), (0, (8, 0, 0)));
    }
}

/// `numactl --membind` and `--preferred` say where a task's memory is to be, and so do not let it be moved: it is seen, and no candidate.
#[test]
fn who_has_said_where_its_memory_is_to_be_promotes_nothing() {
    for policy in [MemPolicy::Bind(Nodemask::of([SLOW])), MemPolicy::Preferred(FAST)] {
        let mut bench = Bench::promoting(Policy::of("classic@6.12"));
        let mm = bench.engine.mm_of(bench.task);
        bench.engine.set_mempolicy(mm, policy).unwrap();
        for _ in 2..=4 {
            bench.read_all(PAGES as u32);
            bench.settle();
        }
        assert_eq!(bench.count(Stat::NumaHintPageCache), 8, "{policy:?}");
        assert_eq!(bench.count(Stat::PgpromoteCandidate) + bench.count(Stat::PgpromoteCandidateNrl), 0);
        assert_eq!(bench.whereabouts(), (8, 0, 0), "{policy:?}");
        bench.engine.set_mempolicy(mm, MemPolicy::Default).unwrap();
        bench.read_all(PAGES as u32);
        bench.settle();
        assert_eq!(bench.whereabouts(), (0, 0, 8));
    }
}

/// The posting says so itself: pages may leave the nodes of the group of who has allocated them.
#[test]
fn the_nodes_of_a_group_do_not_keep_its_pages_from_being_promoted() {
    let mut bench = Bench::promoting(Policy::of("classic@6.12"));
    let _ = bench.engine.memcg_create(MemcgId::ROOT, "slow").unwrap();
    let memcg = bench.engine.figures().memcg_by_path("/slow").unwrap();
    let _ = bench.engine.write_file(bench.task, "/sys/fs/cgroup/slow/cpuset.mems", "1").unwrap();
    let mm = bench.engine.process_create(memcg);
    bench.task = bench.engine.task_create(mm, CpuId(0));
    bench.object = bench.engine.open(bench.task, bench.file).unwrap();
    for _ in 2..=4 {
        bench.read_all(PAGES as u32);
        bench.settle();
    }
    assert_eq!(bench.whereabouts(), (0, 0, 8));
}

#[test]
fn pages_wait_in_the_readers_hands_until_its_call_is_over() {
    let mut bench = Bench::promoting(Policy::of("classic@6.12"));
    bench.read_all(PAGES as u32);
    bench.read_all(PAGES as u32);
    bench.settle();
    for page in 0..PAGES - 1 {
        bench.read(page, (PAGES - page) as u32);
    }
    bench.engine.check_invariants();
    assert_eq!(bench.whereabouts(), (1, 7, 0));
    bench.read(PAGES - 1, 1);
    bench.settle();
    assert_eq!(bench.whereabouts(), (0, 0, 8));
}

#[test]
fn calls_of_single_pages_promote_each_page_at_its_own_end() {
    let mut bench = Bench::promoting(Policy::of("classic@6.12"));
    bench.read_all(1);
    bench.read_all(1);
    bench.settle();
    for page in 0..PAGES {
        bench.read(page, 1);
        assert_eq!(bench.whereabouts().1, 0);
        assert_eq!(bench.count(Stat::PgpromoteSuccess), page as i64 + 1);
    }
}

#[test]
fn a_task_sets_aside_no_more_than_it_may_in_a_call() {
    let set = [("numa.pagecache_promotion_enabled", "true"), ("numa.pagecache_promote_pages_per_work", "3")];
    let mut bench = Bench::new(Policy::of("classic@6.12"), &set);
    bench.read_all(PAGES as u32);
    bench.read_all(PAGES as u32);
    bench.settle();
    for promoted in [3, 6, 8, 8] {
        bench.read_all(PAGES as u32);
        bench.settle();
        assert_eq!(bench.count(Stat::PgpromoteSuccess), promoted);
        assert_eq!(bench.count(Stat::NumaHintPageCache), promoted, "beyond the limit nobody looks");
    }
}

#[test]
fn the_order_of_promotion_is_that_of_reading_or_its_opposite() {
    for (order, backwards) in [("tail", 0), ("head", 8)] {
        let set = [("numa.pagecache_promotion_enabled", "true"), ("numa.pagecache_promotion_order", order)];
        let mut bench = Bench::new(Policy::of("classic@6.12"), &set);
        for _ in 0..2 {
            bench.read_all(PAGES as u32);
        }
        bench.settle();
        for page in 0..PAGES - 1 {
            bench.read(page, (PAGES - page) as u32);
        }
        let last = Access::new(bench.object, PAGES - 1, false);
        let mut frames: Vec<Pfn> = (0..PAGES)
            .map(|page| match bench.engine.touched(bench.task, Access { page, ..last }) {
                Touched::Frame(pfn) => pfn,
                other => panic!("{other:?}"),
            })
            .collect();
        let _ = bench.engine.start(bench.task, last);
        let mut ops = Vec::new();
        bench.engine.take_ops(&mut ops);
        let copied =
            ops.iter().filter_map(|op| if let Op::Copy { from, .. } = *op { Some(from) } else { None });
        let copied: Vec<Pfn> = copied.collect();
        if order == "head" {
            frames.reverse();
        }
        assert_eq!(copied, frames);
        assert_eq!(bench.engine.work().migrated_backwards, backwards);
    }
}

#[test]
fn who_ends_in_the_middle_of_a_call_leaves_its_pages_where_they_were() {
    let mut bench = Bench::promoting(Policy::of("classic@6.12"));
    bench.read_all(PAGES as u32);
    bench.read_all(PAGES as u32);
    bench.settle();
    for page in 0..4 {
        bench.read(page, (PAGES - page) as u32);
    }
    assert_eq!(bench.whereabouts(), (4, 4, 0));
    let step = bench.engine.task_exit(bench.task);
    bench.finish(bench.task, step);
    bench.settle();
    assert_eq!(bench.whereabouts(), (8, 0, 0));
}

#[test]
fn a_page_that_is_set_aside_can_not_be_dropped() {
    let mut bench = Bench::promoting(Policy::of("classic@6.12"));
    bench.read_all(PAGES as u32);
    bench.read_all(PAGES as u32);
    bench.settle();
    for page in 0..PAGES - 1 {
        bench.read(page, (PAGES - page) as u32);
    }
    bench.engine.fadvise_dontneed(bench.task, bench.file, 2..3).unwrap();
    bench.read(PAGES - 1, 1);
    bench.settle();
    assert_eq!(bench.whereabouts(), (0, 0, 8));
}

#[test]
fn reports_of_reads_have_kmigrated_promote_what_was_read_twice() {
    for profile in ["classic@6.12", "mglru@6.12"] {
        let policy = Policy::by_name(profile).unwrap();
        let mut bench = Bench::new(policy, &[("vm.pghot_record_fma_enable", "1")]);
        bench.read_all(PAGES as u32);
        assert_eq!(bench.count(Stat::PghotRecordedFma), 8);
        bench.kmigrated();
        assert_eq!(bench.whereabouts(), (8, 0, 0), "one report is not enough");
        bench.read_all(PAGES as u32);
        bench.kmigrated();
        assert_eq!(bench.count(Stat::PghotRecordedAccesses), 16);
        assert_eq!(bench.whereabouts(), (0, 0, 8), "{profile}");
        assert_eq!(bench.engine.core.mm.pghot.records.iter().count(), 0, "what has moved leaves no record");
    }
}

#[test]
fn no_step_moves_more_folios_than_a_step_may() {
    let mut bench = Bench::new(Policy::of("classic@6.12"), &[("vm.pghot_record_fma_enable", "1")]);
    bench.engine.core.mm.config.step_moves = 3;
    bench.read_all(PAGES as u32);
    bench.read_all(PAGES as u32);
    bench.settle();
    let task = bench.threads.iter().find(|thread| thread.name == "kmigrated1").unwrap().task;
    for promoted in [3, 6, 8] {
        let step = bench.engine.resume(task);
        assert_eq!(step == Step::Again, promoted < 8, "{step:?}");
        bench.settle();
        assert_eq!(bench.count(Stat::PgpromoteSuccess), promoted, "kmigrated");
    }
    let mut bench = Bench::promoting(Policy::of("classic@6.12"));
    bench.engine.core.mm.config.step_moves = 3;
    (2..=3).for_each(|_| bench.read_all(PAGES as u32));
    bench.settle();
    (0..PAGES - 1).for_each(|page| bench.read(page, (PAGES - page) as u32));
    let mut step = bench.engine.start(bench.task, Access::new(bench.object, PAGES - 1, false));
    for promoted in [3, 6, 8] {
        assert_eq!(bench.count(Stat::PgpromoteSuccess), promoted, "a reader");
        if promoted < 8 {
            assert_eq!(step, Step::Again);
            step = bench.engine.resume(bench.task);
        }
    }
    assert!(matches!(step, Step::Done(Served::Hit(Touched::Frame(_)))), "{step:?}");
    bench.settle();
}

/// A machine with threads of its own serves the pages of one call by several tasks, and hits by none at first.
#[test]
fn a_call_that_goes_on_in_another_task_promotes_at_its_end_what_the_first_has_read() {
    let mut bench = Bench::promoting(Policy::of("classic@6.12"));
    (2..=3).for_each(|_| bench.read_all(PAGES as u32));
    bench.settle();
    (0..4).for_each(|page| bench.read(page, (PAGES - page) as u32));
    assert_eq!(bench.count(Stat::NrIsolatedFile), 4);
    let other = bench.engine.task_create(bench.engine.mm_of(bench.task), CpuId(0));
    let object = bench.engine.lend((bench.task, bench.object), other).unwrap();
    bench.engine.pass_call(bench.task, other);
    bench.engine.check_invariants();
    // A page that has gone has nothing to be noted, and is not brought in for that.
    bench.engine.fadvise_dontneed(bench.task, bench.file, 6..7).unwrap();
    assert_eq!(bench.engine.start_hit(other, Access::new(object, 6, false)), None);
    assert_eq!(
        bench.engine.run_hits(other, &[()], |()| Access::new(object, 7, false)),
        0,
        "its call is over with it"
    );
    let step = bench.engine.start_hit(other, Access::new(object, 7, false));
    assert!(matches!(step, Some(Step::Done(Served::Hit(Touched::Frame(_))))), "{step:?}");
    bench.settle();
    assert_eq!(bench.whereabouts(), (2, 0, 5));
}

#[test]
fn who_reads_without_the_engine_is_told_which_reads_matter_as_soon_as_they_do() {
    let mut bench = Bench::new(Policy::of("classic@6.12"), &[]);
    let (watched, slow) = (bench.engine.watched_reads(), bench.listed(SLOW)[0]);
    let fast = bench.engine.core.alloc_pages(&Request::movable(Gfp::THISNODE, FAST), MemcgId::ROOT).unwrap();
    assert!(!watched.holds(slow));
    let promotion = "/sys/kernel/mm/numa/pagecache_promotion_enabled";
    for (file, value, matters) in [
        (promotion, "1", true),
        ("/proc/sys/kernel/numa_balancing", "1", false),
        ("/proc/sys/vm/pghot_record_fma_enable", "1", true),
        (promotion, "0", true),
        ("/proc/sys/vm/pghot_record_fma_enable", "0", false),
    ] {
        let _ = bench.engine.write_file(bench.task, file, value).unwrap();
        assert_eq!((watched.holds(slow), watched.holds(fast)), (matters, false), "{file}: {value}");
    }
    bench.engine.core.free_folio(fast);
}

#[test]
fn kmigrated_looks_around_as_long_as_a_source_is_on() {
    let first_wait = |set: &[(&str, &str)]| {
        let bench = Bench::new(Policy::of("classic@6.12"), set);
        bench.threads.iter().find(|thread| thread.name == "kmigrated1").unwrap().wait
    };
    assert_eq!(first_wait(&[]), Wait::Woken);
    let nap = Wait::WokenOr(Nanos(100_000_000), DelayReason::Nap);
    assert_eq!(first_wait(&[("vm.pghot_record_fma_enable", "1")]), nap);
    let mut bench = Bench::new(Policy::of("classic@6.12"), &[]);
    let file = "/proc/sys/vm/pghot_record_fma_enable";
    for (value, wait) in [("1", nap), ("0", Wait::Woken)] {
        let _ = bench.engine.write_file(bench.task, file, value).unwrap();
        let mut woken = Vec::new();
        bench.engine.take_woken(&mut woken);
        // kmigrated, and klruscand, which has nothing to do with this source.
        assert_eq!(woken.len(), 2);
        assert_eq!(bench.engine.resume(woken[0]), Step::Wait(wait));
        assert_eq!(bench.engine.resume(woken[1]), Step::Wait(Wait::Woken));
    }
}

#[test]
fn a_page_that_may_not_move_now_is_tried_again_or_forgotten() {
    for (refused, promoted) in [("requeue", 8), ("forget", 0)] {
        let set =
            [("vm.pghot_record_fma_enable", "1"), ("pghot.refused", refused), ("pghot.age_sweep", "false")];
        let mut bench = Bench::new(Policy::of("classic@6.12"), &set);
        let folios = bench.listed(SLOW);
        bench.read_all(PAGES as u32);
        bench.read_all(PAGES as u32);
        // Another task has isolated them.
        bench.settle();
        assert!(folios.iter().all(|&pfn| bench.engine.core.migrate_isolate(pfn)));
        bench.kmigrated_refused();
        folios.iter().for_each(|&pfn| bench.engine.core.migrate_put_back(pfn));
        bench.settle();
        bench.kmigrated();
        assert_eq!(bench.count(Stat::PgpromoteSuccess), promoted, "{refused}");
    }
}

impl Bench {
    /// kmigrated comes by while its pages are in someone's hands.
    fn kmigrated_refused(&mut self) {
        let task = self.threads.iter().find(|thread| thread.name == "kmigrated1").unwrap().task;
        let step = self.engine.resume(task);
        self.finish(task, step);
        assert_eq!(self.count(Stat::PgpromoteSuccess), 0);
    }
}

#[test]
fn what_was_said_of_a_page_is_forgotten_with_it() {
    for (clear, left) in [("true", 0), ("false", 1)] {
        let set = [("vm.pghot_record_fma_enable", "1"), ("pghot.clear_stale", clear)];
        let mut bench = Bench::new(Policy::of("classic@6.12"), &set);
        bench.read(3, 1);
        assert_eq!(bench.engine.core.mm.pghot.records.iter().count(), 1);
        bench.settle();
        bench.engine.fadvise_dontneed(bench.task, bench.file, 3..4).unwrap();
        bench.settle();
        assert_eq!(bench.engine.core.mm.pghot.records.iter().count(), left);
    }
}

#[test]
fn what_finds_no_room_stays_hot_and_goes_as_soon_as_kswapd_has_made_some() {
    let mut bench = Bench::new(Policy::of("classic@6.12"), &[("vm.pghot_record_fma_enable", "1")]);
    bench.read_all(PAGES as u32);
    bench.read_all(PAGES as u32);
    bench.settle();
    // Room for two at most.
    let request = Request::movable(Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN, FAST);
    let mut taken = Vec::new();
    while bench.engine.core.mm.has_room_for(FAST, 3) {
        let pfn = bench.engine.core.alloc_pages(&request, MemcgId::ROOT).unwrap();
        bench.engine.core.mm.memory.folios[pfn].refs = 1;
        taken.push(pfn);
        // Pages that a CPU keeps don't count as free at a watermark.
        bench.engine.core.mm.memory.drain_all_pages();
    }
    bench.kmigrated();
    let [gone, failed] = [Stat::PgpromoteSuccess, Stat::PgmigrateFail].map(|stat| bench.count(stat));
    assert!(gone > 0 && gone + failed <= 2, "no more are taken off their lists than there is room for");

    let kmigrated = bench.threads.iter().find(|thread| thread.name == "kmigrated1").unwrap().task;
    let mut woken = Vec::new();
    let mut kswapd_is_done = |bench: &mut Bench, node| -> Vec<TaskId> {
        bench.engine.core.wake_kmigrated_for_room(node);
        bench.engine.take_woken(&mut woken);
        std::mem::take(&mut woken)
    };
    assert_eq!(kswapd_is_done(&mut bench, FAST), [], "it has made no room");
    for pfn in taken.drain(..taken.len() / 2) {
        bench.engine.core.mm.memory.folios[pfn].refs = 0;
        bench.engine.core.free_folio(pfn);
    }
    bench.engine.core.mm.memory.drain_all_pages();
    assert_eq!(kswapd_is_done(&mut bench, SLOW), [], "it is another one");
    assert_eq!(kswapd_is_done(&mut bench, FAST), [kmigrated]);
    assert_eq!(kswapd_is_done(&mut bench, FAST), [], "once is enough");
    bench.kmigrated();
    assert_eq!(bench.count(Stat::PgpromoteSuccess), PAGES as i64);
}

/// A machine whose third node is as fast as the first, and can leave.
#[test]
fn a_target_that_leaves_the_machine_takes_no_hot_pages() {
    let slow = MemoryType::Adistance(ADISTANCE_DAX_KMEM);
    let memory_types = vec![MemoryType::Dram, slow, MemoryType::Dram];
    let layout = Layout { memory_types, ..Layout::default() };
    let set = [("vm.pghot_record_fma_enable", "1"), ("pghot.default_target", "knob")];
    let mut bench = Bench::on(vec![4096; 3], layout, Policy::of("classic@6.12"), &set);
    let write = |bench: &mut Bench, path: &str, value: &str| {
        let _ = bench.engine.write_file(bench.task, path, value).unwrap();
    };
    write(&mut bench, "/proc/sys/vm/pghot_target_nid", "2");
    let online = "/sys/devices/system/node/node2/memory*/online";
    write(&mut bench, online, "0");
    for _ in 0..2 {
        bench.read_all(PAGES as u32);
    }
    bench.kmigrated();
    assert_eq!(bench.whereabouts(), (8, 0, 0));
    write(&mut bench, online, "1");
    for _ in 0..2 {
        bench.read_all(PAGES as u32);
    }
    bench.kmigrated();
    assert_eq!((bench.whereabouts(), bench.listed(NodeId(2)).len()), ((0, 0, 8), 8));
}

/// The limit lets one MiB a second through, and the page that opens a second is free.
#[test]
fn a_hot_page_that_asks_again_and_again_is_one_candidate() {
    let set = [
        ("vm.pghot_record_fma_enable", "1"),
        ("kernel.numa_balancing_promote_rate_limit_MBps", "0"),
        ("pghot.age_sweep", "false"),
    ];
    let mut bench = Bench::new(Policy::of("classic@6.12"), &set);
    for _ in 0..2 {
        bench.read_all(PAGES as u32);
    }
    for _ in 0..5 {
        bench.kmigrated();
        bench.read_all(PAGES as u32);
    }
    assert_eq!((bench.count(Stat::PgpromoteCandidate), bench.count(Stat::PgpromoteSuccess)), (8, 0));
    let rate = "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps";
    let _ = bench.engine.write_file(bench.task, rate, "1").unwrap();
    bench.kmigrated();
    assert_eq!((bench.count(Stat::PgpromoteCandidate), bench.count(Stat::PgpromoteSuccess)), (8, 8));
    assert_eq!(bench.count(Stat::PgpromoteCandidateNrl), 0, "there is no GiB free");
}

/// The age is the full clock minus a part of a time. If free memory is short, no page is young enough, except on a machine that has just been
/// started.
#[test]
fn as_posted_an_age_is_too_great_once_the_clock_is_longer_than_a_record() {
    for (quirks, uptime_s, promoted) in [("none", 0, 8), ("none", 100, 8), ("v3", 100, 0)] {
        let set = [
            ("vm.pghot_record_fma_enable", "1"),
            ("pghot.record", "u64"),
            ("pghot.default_target", "knob"),
            ("pghot.quirks", quirks),
        ];
        let mut bench = Bench::new(Policy::of("classic@6.12"), &set);
        bench.engine.set_now(Nanos(uptime_s * 1_000_000_000));
        for _ in 0..3 {
            bench.read_all(PAGES as u32);
            bench.settle();
        }
        bench.kmigrated();
        assert_eq!(bench.count(Stat::PgpromoteSuccess), promoted, "{quirks} after {uptime_s} s");
    }
}
