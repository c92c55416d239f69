//! Promises of NUMA balancing between tiers: whose entries are marked and when, which hint faults promote, and that afterwards only
//! the node differs.

use crate::config::{Layout, MemoryType};
use crate::memory::folio::FolioFlags;
use crate::memory::mm::Advice;
use crate::tiers::ADISTANCE_DAX_KMEM;
use crate::units::PAGEBLOCK_PAGES;
use crate::*;

const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);

/// A fast node with two CPUs, a slow node, and a process with a heap on the slow one.
struct Bench {
    engine: Engine,
    task: TaskId,
    heap: ObjectId,
    pages: u64,
    now: Nanos,
    runtime: Nanos,
}

impl Bench {
    fn new(pages: u64) -> Bench {
        Bench::with(pages, Config::default())
    }

    fn with(pages: u64, config: Config) -> Bench {
        let layout = Layout {
            memory_types: vec![MemoryType::Dram, MemoryType::Adistance(ADISTANCE_DAX_KMEM)],
            ..Layout::default()
        };
        let config =
            Config { node_pages: vec![16_384, 16_384], cpus: 2, layout, numa_balancing: 2, ..config };
        let mut engine = Engine::new(config).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let heap = engine.map_anon(task, pages, Advice::Normal).unwrap();
        let mut bench = Bench { engine, task, heap, pages, now: Nanos::ZERO, runtime: Nanos::ZERO };
        bench.access_all();
        bench.move_all(SLOW);
        bench
    }

    fn move_all(&mut self, to: NodeId) {
        self.engine.core.lru_add_drain();
        let folios = self.engine.core.mm.folios_in_use(if to == SLOW { FAST } else { SLOW }).into_iter();
        let listed = folios.filter(|&pfn| self.engine.core.mm.memory.folios[pfn].has(FolioFlags::LRU));
        for pfn in listed.collect::<Vec<Pfn>>() {
            self.engine.core.migrate_prepare(pfn, None, to).unwrap();
            let pages = self.engine.core.mm.memory.folios[pfn].pages();
            assert_eq!(self.engine.core.migrate_to_node(&[pfn], to, MigrateReason::Kmigrated), pages);
        }
        self.engine.core.lru_add_drain();
        self.engine.take_ops(&mut Vec::new());
    }

    /// So much time passes, all of it the task's own, tick by tick; returns at which times something was scanned.
    fn run_for(&mut self, ms: u64) -> Vec<u64> {
        let tick = Nanos::from_ticks(1, 250);
        let mut scans = Vec::new();
        for _ in 0..ms / 4 {
            self.now += tick;
            self.runtime += tick;
            self.engine.set_now(self.now);
            if self.engine.scan_tick(self.task, self.runtime) {
                scans.push(self.now.0 / 1_000_000);
            }
        }
        scans
    }

    /// An access: whether it was a hit, and on which node the page was found.
    fn access(&mut self, page: u64, write: bool) -> (bool, NodeId) {
        let access = Access::new(self.heap, page, write);
        let mut step = self.engine.start(self.task, access);
        loop {
            self.engine.take_ops(&mut Vec::new());
            match step {
                Step::Done(Served::Hit(touched) | Served::Minor(touched)) => {
                    let is_hit = matches!(step, Step::Done(Served::Hit(_)));
                    assert_eq!(self.engine.touched(self.task, access), touched);
                    let Touched::Frame(pfn) = touched else { panic!("{touched:?}") };
                    let memory = &self.engine.core.mm.memory;
                    return (is_hit, memory.folios[memory.folio_of(pfn)].node);
                }
                Step::Done(served) => panic!("{served:?}"),
                Step::Again | Step::Wait(_) => step = self.engine.resume(self.task),
            }
        }
    }

    fn access_all(&mut self) {
        (0..self.pages).for_each(|page| {
            self.access(page, true);
        });
    }

    fn stats<const N: usize>(&self, stats: [Stat; N]) -> [i64; N] {
        stats.map(|stat| self.engine.figures().vmstat(stat))
    }

    fn write(&mut self, path: &str, value: &str) {
        let _ = self.engine.write_file(self.task, path, value).unwrap();
    }
}

/// Marked, faults, promoted, candidates.
const BALANCING: [Stat; 4] =
    [Stat::NumaPteUpdates, Stat::NumaHintFaults, Stat::PgpromoteSuccess, Stat::PgpromoteCandidate];

#[test]
fn a_page_used_soon_after_it_was_marked_is_promoted_and_one_used_late_stays() {
    let mut bench = Bench::new(64);
    // The first attempt, after a second of CPU time, only says when memory may be scanned.
    let scans = bench.run_for(2600);
    assert_eq!(scans, [2004]);
    assert_eq!(bench.stats(BALANCING), [64, 0, 0, 0]);
    assert_eq!(bench.access(3, true), (false, FAST));
    assert_eq!(bench.access(3, true), (true, FAST), "its entry is accessible again");
    assert_eq!(bench.access(4, false), (false, FAST));
    assert_eq!(bench.stats(BALANCING), [64, 2, 2, 2]);
    let moved = [Stat::NumaPagesMigrated, Stat::PgmigrateSuccess, Stat::NumaHintFaultsLocal];
    assert_eq!(bench.stats(moved), [2, 66, 0]);
    // A second later than they were marked, others are not hot.
    bench.run_for(420);
    assert_eq!(bench.access(5, true), (false, SLOW));
    assert_eq!(bench.access(5, true), (true, SLOW));
    assert_eq!(bench.stats(BALANCING), [64, 3, 2, 2]);
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
}

#[test]
fn hint_faults_that_report_move_nothing_and_kmigrated_promotes_what_they_said() {
    let config = Config { pghot_record_hintfaults_enable: 1, pghot_freq_threshold: 1, ..Config::default() };
    let mut bench = Bench::with(64, config);
    let threads = bench.engine.start_kernel_threads();
    bench.run_for(2600);
    assert_eq!(bench.access(3, true), (false, SLOW), "the fault itself moves nothing");
    assert_eq!(bench.access(3, true), (true, SLOW), "its entry is accessible again");
    let reported = [Stat::NumaHintFaults, Stat::PghotRecordedHintfaults, Stat::PgpromoteSuccess];
    assert_eq!(bench.stats(reported), [1, 1, 0]);
    let kmigrated = threads.iter().find(|thread| thread.name == "kmigrated1").expect("it has slow memory");
    while bench.engine.resume(kmigrated.task) == Step::Again {}
    assert_eq!(bench.stats(reported), [1, 1, 1]);
    assert_eq!(bench.access(3, true), (true, FAST), "what was promoted stays mapped");
    assert_eq!(bench.access(4, true), (false, SLOW));
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
}

/// The posted masks overlap, so a record may seem to be of a time that has not come.
#[test]
fn records_as_posted_promote_where_there_is_room_however_old_they_seem() {
    let config = Config {
        pghot_record_hwhints_enable: 1,
        pghot_record: RecordSize::U64,
        pghot_quirks: PghotQuirks::V3,
        ..Config::default()
    };
    let mut bench = Bench::with(64, config);
    let threads = bench.engine.start_kernel_threads();
    let pfn = bench.engine.core.mm.folios_in_use(SLOW)[0];
    for _ in 0..8 {
        bench.engine.hardware_hinted(pfn, Some(FAST), 1);
    }
    let record = bench.engine.core.mm.pghot.records.get(pfn);
    assert!(record.ready && record.time > 0, "at time 0 it is of {record:?}");
    // Without room to spare everything looks too old.
    run_thread(&mut bench, &threads, "kmigrated1");
    assert_eq!(bench.stats([Stat::PgpromoteSuccess]), [0]);
}

/// A kernel thread goes on until it waits.
fn run_thread(bench: &mut Bench, threads: &[ThreadInfo], name: &str) {
    let thread = threads.iter().find(|thread| thread.name == name).expect("it has slow memory");
    while bench.engine.resume(thread.task) == Step::Again {}
    bench.engine.take_ops(&mut Vec::new());
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
}

#[test]
fn a_hint_fault_soon_after_its_mark_is_enough_and_a_late_one_is_one_report() {
    for (rule, promoted) in [(HintFaultRule::Timed, [1, 1]), (HintFaultRule::Counted, [0, 0])] {
        let config =
            Config { pghot_record_hintfaults_enable: 1, pghot_hint_faults: rule, ..Config::default() };
        let mut bench = Bench::with(64, config);
        let threads = bench.engine.start_kernel_threads();
        bench.run_for(2600);
        bench.access(3, true);
        run_thread(&mut bench, &threads, "kmigrated1");
        assert_eq!(bench.stats([Stat::PgpromoteSuccess]), [promoted[0]], "{rule:?}");
        // A second later than it was marked, a page is not hot.
        bench.run_for(420);
        bench.access(5, true);
        run_thread(&mut bench, &threads, "kmigrated1");
        assert_eq!(bench.stats([Stat::PgpromoteSuccess]), [promoted[1]], "{rule:?}");
        assert_eq!(bench.stats([Stat::PghotRecordedHintfaults]), [2]);
    }
}

#[test]
fn klruscand_reports_what_was_used_since_its_last_round_and_kmigrated_promotes_it() {
    let config =
        Config { pghot_record_pgtscans_enable: 1, policy: Policy::of("mglru@6.12"), ..Config::default() };
    let mut bench = Bench::with(64, config);
    let threads = bench.engine.start_kernel_threads();
    let reported = [Stat::PghotRecordedPgtscans, Stat::PgpromoteSuccess];
    let is_young = |bench: &Bench, page: u64| {
        let space = bench.engine.core.mm.memory.mm(bench.engine.mm_of(bench.task));
        space.table.word(space.vmas[0].start + page).is_young()
    };
    // All pages have been written, and all went to slow memory.
    run_thread(&mut bench, &threads, "klruscand");
    run_thread(&mut bench, &threads, "kmigrated1");
    assert_eq!(bench.stats(reported), [64, 0], "one report is not enough");
    assert!((0..64).all(|page| !is_young(&bench, page)), "there is one accessed bit, and it was taken");
    for page in 0..8 {
        bench.access(page, false);
    }
    run_thread(&mut bench, &threads, "klruscand");
    assert_eq!(bench.stats(reported), [64, 0], "the next round is half a second later");
    bench.engine.set_now(Nanos(500_000_000));
    run_thread(&mut bench, &threads, "klruscand");
    run_thread(&mut bench, &threads, "kmigrated1");
    assert_eq!(bench.stats(reported), [72, 8]);
    assert!((0..64).all(|page| bench.access(page, false).1 == if page < 8 { FAST } else { SLOW }));
}

fn huge(config: Config) -> Config {
    Config { transparent_hugepage: TransparentHugepage::Always, ..config }
}

#[test]
fn a_hint_fault_on_any_page_of_a_huge_one_promotes_all_of_it() {
    let mut bench = Bench::with(1024, huge(Config::default()));
    assert_eq!(bench.run_for(2600), [2004]);
    let marked = [Stat::NumaPteUpdates, Stat::NumaHugePteUpdates];
    assert_eq!(bench.stats(marked), [1024, 2], "an entry counts as its pages");
    assert_eq!(bench.access(700, true), (false, FAST));
    assert_eq!(bench.access(513, true), (true, FAST), "one fault for all of them");
    let moved = [Stat::NumaHintFaults, Stat::PgpromoteCandidate, Stat::PgpromoteSuccess, Stat::ThpSplitPage];
    assert_eq!(bench.stats(moved), [1, 512, 512, 0]);
    // The other one is used late, and so is not hot, whichever page of it is used.
    bench.run_for(420);
    assert_eq!(bench.access(400, true), (false, SLOW));
    assert_eq!(bench.access(5, true), (true, SLOW));
    assert_eq!(bench.stats(moved), [2, 512, 512, 0]);
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
}

/// The time of the mark is the huge page's, and single pages made of it inherit it.
#[test]
fn single_pages_of_a_marked_huge_one_are_marked_since_then() {
    let mut bench = Bench::with(1024, huge(Config::default()));
    bench.run_for(2600);
    bench.engine.madvise_free(bench.task, bench.heap, 7).unwrap();
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
    assert_eq!(bench.stats([Stat::ThpSplitPage, Stat::NumaHintFaults]), [1, 0]);
    assert_eq!(bench.access(100, true), (false, FAST));
    assert_eq!(bench.access(101, true), (false, FAST), "each has a fault of its own");
    assert_eq!(bench.stats([Stat::NumaHintFaults, Stat::PgpromoteSuccess]), [2, 2]);
    bench.run_for(420);
    assert_eq!(bench.access(102, true), (false, SLOW));
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
}

#[test]
fn hint_faults_on_a_huge_page_are_reports_of_its_head() {
    let config = Config { pghot_record_hintfaults_enable: 1, pghot_freq_threshold: 1, ..Config::default() };
    let mut bench = Bench::with(1024, huge(config));
    let threads = bench.engine.start_kernel_threads();
    bench.run_for(2600);
    assert_eq!(bench.access(300, true), (false, SLOW), "the fault itself moves nothing");
    let reported: Vec<(Pfn, bool)> =
        bench.engine.core.mm.pghot.records.iter().map(|(pfn, record)| (pfn, record.ready)).collect();
    let [(head, true)] = reported[..] else { panic!("{reported:?}") };
    assert!(bench.engine.core.mm.memory.folios[head].is_large_anon());
    run_thread(&mut bench, &threads, "kmigrated1");
    let moved = [Stat::PghotRecordedHintfaults, Stat::PgpromoteSuccess, Stat::ThpSplitPage];
    assert_eq!(bench.stats(moved), [1, 512, 0]);
    assert_eq!(bench.access(511, true), (true, FAST));
    assert_eq!(bench.access(512, true).1, SLOW);
}

#[test]
fn klruscand_finds_a_huge_page_by_one_entry_and_kmigrated_promotes_all_of_it() {
    let config =
        Config { pghot_record_pgtscans_enable: 1, policy: Policy::of("mglru@6.12"), ..Config::default() };
    let mut bench = Bench::with(1024, huge(config));
    let threads = bench.engine.start_kernel_threads();
    let reported = [Stat::PghotRecordedPgtscans, Stat::PgpromoteSuccess, Stat::ThpSplitPage];
    run_thread(&mut bench, &threads, "klruscand");
    run_thread(&mut bench, &threads, "kmigrated1");
    assert_eq!(bench.stats(reported), [2, 0, 0], "a report each, and one is not enough");
    // Any page of it will do, and many are no more than one.
    bench.access(40, false);
    bench.access(41, false);
    bench.engine.set_now(Nanos(500_000_000));
    run_thread(&mut bench, &threads, "klruscand");
    run_thread(&mut bench, &threads, "kmigrated1");
    assert_eq!(bench.stats(reported), [3, 512, 0]);
    assert_eq!([0, 511, 512, 1023].map(|page| bench.access(page, false).1), [FAST, FAST, SLOW, SLOW]);
}

#[test]
fn klruscand_passes_by_groups_whose_policy_walks_no_page_tables() {
    let config = Config { pghot_record_pgtscans_enable: 1, ..Config::default() };
    let mut bench = Bench::with(64, config);
    let threads = bench.engine.start_kernel_threads();
    run_thread(&mut bench, &threads, "klruscand");
    assert_eq!(bench.stats([Stat::PghotRecordedPgtscans]), [0]);
}

#[test]
fn hints_of_hardware_make_a_page_hot_and_those_of_pages_that_have_gone_do_nothing() {
    let config = Config { pghot_record_hwhints_enable: 1, ..Config::default() };
    let mut bench = Bench::with(64, config);
    let threads = bench.engine.start_kernel_threads();
    assert!(bench.engine.wants_hardware_hints());
    let pfn = bench.engine.core.mm.folios_in_use(SLOW)[0];
    for _ in 0..2 {
        assert!(bench.engine.hardware_sampled(pfn, FAST));
        bench.engine.hardware_kept(FAST, true);
        bench.engine.hardware_hinted(pfn, Some(FAST), 1);
    }
    bench.engine.hardware_kept(FAST, false);
    run_thread(&mut bench, &threads, "kmigrated1");
    let hints =
        [Stat::HwhintNrEvents, Stat::HwhintCxlAccesses, Stat::HwhintRemoteNode, Stat::HwhintDramAccesses];
    assert_eq!(bench.stats(hints), [2, 2, 2, 0]);
    let kept = [Stat::HwhintUsefulSamples, Stat::HwhintBufferFull, Stat::PghotRecordedHwhints];
    assert_eq!(bench.stats(kept), [2, 1, 2]);
    assert_eq!(bench.stats([Stat::PgpromoteSuccess]), [1]);
    assert!(!bench.engine.hardware_sampled(pfn, FAST), "its frame is free");
    bench.engine.hardware_hinted(pfn, Some(FAST), 1);
    assert_eq!(bench.stats([Stat::HwhintNonLru, Stat::PghotRecordedHwhints]), [1, 2]);
}

/// A batch ends a step of kmigrated, and other blocks are left.
#[test]
fn what_is_hot_in_blocks_still_to_be_walked_stays_flagged_and_is_walked_once() {
    let config = Config { pghot_record_hwhints_enable: 1, pghot_freq_threshold: 1, ..Config::default() };
    let mut bench = Bench::with(2048, config);
    let threads = bench.engine.start_kernel_threads();
    let mut frames = bench.engine.core.mm.folios_in_use(SLOW);
    frames.sort_unstable();
    let last = frames.pop().unwrap();
    frames.iter().for_each(|&pfn| bench.engine.hardware_hinted(pfn, Some(FAST), 1));
    let kmigrated = threads.iter().find(|thread| thread.name == "kmigrated1").unwrap().task;
    assert_eq!(bench.engine.resume(kmigrated), Step::Again);
    bench.engine.take_ops(&mut Vec::new());
    let records = &bench.engine.core.mm.pghot.records;
    assert!(records.iter().any(|(_, record)| record.ready), "they wait for their turn");
    records.check_invariants();
    // It becomes hot in a block whose turn is still to come.
    bench.engine.hardware_hinted(last, Some(FAST), 1);
    run_thread(&mut bench, &threads, "kmigrated1");
    assert_eq!(bench.stats([Stat::PgpromoteSuccess]), [2048]);
    let walked = bench.engine.work().hotness_walked;
    run_thread(&mut bench, &threads, "kmigrated1");
    assert_eq!(bench.engine.work().hotness_walked, walked, "nothing is left to look at");
}

#[test]
fn the_time_of_a_mark_goes_with_its_page_to_another_frame() {
    let mut bench = Bench::new(64);
    assert_eq!(bench.run_for(2600), [2004]);
    bench.move_all(FAST);
    let memory = &mut bench.engine.core.mm.memory;
    memory.zones.drain_all(&mut memory.folios);
    bench.engine.core.mm.give_back_records_now();
    bench.move_all(SLOW);
    // 600 ms after its mark. The new frame has no record yet.
    assert_eq!(bench.access(3, true), (false, FAST));
}

/// Or it holds what it has found for as long as no time can pass, and a node that is full for a moment turns away all of it.
#[test]
fn kmigrated_lets_time_pass_after_eight_blocks_with_few_hot_pages() {
    let config = Config { pghot_record_hwhints_enable: 1, pghot_freq_threshold: 1, ..Config::default() };
    let mut bench = Bench::with(2048 * 5, config);
    let threads = bench.engine.start_kernel_threads();
    let mut hot = bench.engine.core.mm.folios_in_use(SLOW);
    hot.sort_unstable();
    hot.dedup_by_key(|pfn| pfn.0 / PAGEBLOCK_PAGES as u32);
    assert!(hot.len() >= 20, "a page of each block");
    hot.iter().for_each(|&pfn| bench.engine.hardware_hinted(pfn, Some(FAST), 1));
    let kmigrated = threads.iter().find(|thread| thread.name == "kmigrated1").unwrap().task;
    assert_eq!(bench.engine.resume(kmigrated), Step::Again);
    bench.engine.take_ops(&mut Vec::new());
    assert_eq!(bench.engine.work().hotness_walked, 8 * PAGEBLOCK_PAGES);
    assert_eq!(bench.stats([Stat::PgpromoteSuccess]), [8]);
    run_thread(&mut bench, &threads, "kmigrated1");
    assert_eq!(bench.stats([Stat::PgpromoteSuccess]), [hot.len() as i64]);
}

#[test]
fn of_accesses_to_pages_in_a_row_each_has_its_share_and_a_huge_page_is_told_of_once() {
    let config =
        Config { pghot_record_hwhints_enable: 1, pghot_record: RecordSize::U32, ..Config::default() };
    let counted = |bench: &Bench, pfn| bench.engine.core.mm.pghot.records.get(pfn).freq;
    let reports = Stat::PghotRecordedHwhints;

    let mut bench = Bench::with(64, config.clone());
    let frames = bench.engine.core.mm.folios_in_use(SLOW);
    let first = Pfn(frames.iter().min().unwrap().0.next_multiple_of(16));
    bench.engine.hardware_hinted_range(first, 16, 33);
    assert_eq!(bench.stats([reports]), [16]);
    assert_eq!([first.0, first.0 + 15, first.0 + 16].map(|pfn| counted(&bench, Pfn(pfn))), [3, 3, 0]);

    let mut bench = Bench::with(1024, huge(config));
    let head = bench.engine.core.mm.folios_in_use(SLOW)[0];
    bench.engine.hardware_hinted_range(head, 512, 512 * 2);
    assert_eq!((bench.stats([reports]), counted(&bench, head)), ([1], 7), "as many as a record can hold");
    // A report of the other half of the next huge page, and of the free frames after it.
    let next = Pfn(head.0 ^ 512);
    bench.engine.hardware_hinted_range(Pfn(next.0 + 510), 2, 2);
    assert_eq!((bench.stats([reports]), counted(&bench, next)), ([2], 2));
    assert!(bench.engine.core.mm.pghot.records.get(next).ready);
}

#[test]
fn the_written_page_of_a_hint_fault_is_dirty_and_counts_one_fault() {
    for policy in PROFILES {
        let mut bench = Bench::with(8, Config { policy: policy.policy(), ..Config::default() });
        bench.run_for(2100);
        let before = bench.stats([Stat::Pgfault]);
        bench.access(1, true);
        bench.access(2, false);
        assert_eq!(bench.stats([Stat::Pgfault]), [before[0] + 2]);
        let mm = bench.engine.mm_of(bench.task);
        let start = bench.engine.core.mm.memory.mm(mm).vmas[0].start;
        let word = |page| bench.engine.core.mm.memory.mm(mm).table.word(start + page);
        assert!(word(1).is_dirty() && word(1).is_young() && !word(1).is_prot_none());
        assert!(word(2).is_young() && word(3).is_prot_none());
        bench.engine.core.lru_add_drain();
        bench.engine.check_invariants();
    }
}

#[test]
fn what_was_promoted_is_not_marked_again_and_a_mark_keeps_its_time() {
    let mut bench = Bench::new(64);
    bench.run_for(2100);
    (0..40).for_each(|page| {
        bench.access(page, false);
    });
    assert_eq!(bench.stats(BALANCING), [64, 40, 40, 40]);
    // The period has doubled; meanwhile 4096 ms are over, and what is marked since the first scan looks as old as modulo that.
    let scans = bench.run_for(2_004 + 4_096 + 500 - bench.now.0 / 1_000_000);
    assert!(!scans.is_empty());
    assert_eq!(bench.stats(BALANCING), [64, 40, 40, 40], "the rest is marked still");
    assert_eq!(bench.access(50, false), (false, FAST), "it looks as if it had been marked 500 ms ago");
}

#[test]
fn periods_double_with_each_pass_that_promotes_and_stay_without() {
    let mut bench = Bench::new(256);
    let mut scans = Vec::new();
    for page in 0..60 {
        // A page a second, none of them twice.
        scans.extend(bench.run_for(1000));
        bench.access(page, false);
    }
    let gaps: Vec<u64> = scans.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).all(|pair| pair[0] <= pair[1]), "{scans:?}");
    assert!(scans.len() < 8, "{scans:?}");
    // No task accesses anything: the period stays.
    let mut idle = Bench::new(256);
    let scans = idle.run_for(20_000);
    let gaps: Vec<u64> = scans.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (1000..=2020).contains(gap)), "{scans:?}");
}

#[test]
fn the_rate_limit_refuses_pages_that_are_counted_as_candidates() {
    let mut bench = Bench::with(1024, Config { promote_rate_limit_mbps: 1, ..Config::default() });
    bench.run_for(2100);
    (0..1024).for_each(|page| {
        bench.access(page, false);
    });
    // The page that opens a second is its measure: 256 pages are a MiB.
    assert_eq!(bench.stats(BALANCING), [1024, 1024, 256, 1024]);
}

#[test]
fn a_full_fast_node_refuses_and_asks_its_kswapd() {
    let mut bench = Bench::new(64);
    bench.engine.start_kernel_threads();
    bench.run_for(2100);
    let zone = bench.engine.figures().zones().find(|zone| zone.node == FAST).unwrap();
    let request =
        crate::page_alloc::request::Request::movable(crate::page_alloc::request::Gfp::THISNODE, FAST);
    for _ in 0..zone.free - zone.high {
        // What CPUs hold makes the end come sooner.
        let Some(pfn) = bench.engine.core.alloc_pages(&request, MemcgId::ROOT) else { break };
        bench.engine.core.mm.memory.folios[pfn].refs = 1;
    }
    bench.engine.take_woken(&mut Vec::new());
    assert_eq!(bench.access(9, true), (false, SLOW));
    assert_eq!(bench.stats(BALANCING), [64, 1, 0, 1], "a candidate it was");
    let mut woken = Vec::new();
    bench.engine.take_woken(&mut woken);
    assert_eq!(woken.len(), 1, "kswapd of the fast node");
    assert_eq!(bench.access(9, true), (true, SLOW));
    bench.engine.check_invariants();
}

#[test]
fn a_page_in_someone_elses_hands_stays_where_it_is() {
    let mut bench = Bench::new(64);
    bench.run_for(2100);
    let Touched::Frame(pfn) = bench.engine.touched(bench.task, Access::new(bench.heap, 7, false)) else {
        panic!("it is there");
    };
    bench.engine.hold(pfn);
    assert_eq!(bench.access(7, true), (false, SLOW));
    bench.engine.release(pfn);
    assert_eq!(bench.stats(BALANCING), [64, 1, 0, 1]);
    assert_eq!(bench.stats([Stat::PgmigrateFail, Stat::NrIsolatedAnon]), [1, 0]);
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
}

#[test]
fn marks_are_lifted_by_accesses_after_balancing_was_turned_off() {
    let mut bench = Bench::new(64);
    bench.run_for(2100);
    bench.write("/proc/sys/kernel/numa_balancing", "0");
    assert_eq!(bench.engine.scan_due(bench.task), None);
    assert_eq!(bench.access(7, true), (false, SLOW));
    assert_eq!(bench.access(7, true), (true, SLOW));
    assert_eq!(bench.stats(BALANCING), [64, 1, 0, 0]);
    assert_eq!(bench.run_for(5000), [0; 0]);
    bench.write("/proc/sys/kernel/numa_balancing", "2");
    assert!(!bench.run_for(5000).is_empty());
}

/// Three scan sizes of 16 MiB: a first thread has a period of 333 ms for that, any other the delay of 1000.
#[test]
fn a_thread_that_joins_a_process_is_scanned_once_in_a_delay_however_large_the_process() {
    let config = || Config { scan_size_mb: 16, ..Config::default() };
    let pages = 3 * (16 << 8);
    let mut alone = Bench::with(pages, config());
    // Its first attempts come before the delay is over.
    assert_eq!(alone.run_for(3000), [2336, 2676]);
    let mut pool = Bench::with(pages, config());
    let worker = pool.engine.thread_create(pool.task, CpuId(0));
    let first = std::mem::replace(&mut pool.task, worker);
    assert_eq!(pool.run_for(5000), [2004, 3012, 4020]);
    // So it is when the first has gone.
    assert_eq!(pool.engine.task_exit(first), Step::Done(Served::Exited));
    let late = pool.engine.thread_create(pool.task, CpuId(0));
    pool.task = late;
    pool.runtime = Nanos::ZERO;
    assert_eq!(pool.run_for(3000), [6004, 7012]);
}

#[test]
fn nothing_is_scanned_where_all_memory_is_of_one_tier() {
    let config = Config { node_pages: vec![4096, 4096], numa_balancing: 2, ..Config::default() };
    let mut engine = Engine::new(config).unwrap();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(0));
    assert_eq!(engine.scan_due(task), None);
}

#[test]
fn a_mapping_nobody_uses_is_passed_by_until_its_turn_comes() {
    let mut bench = Bench::new(64);
    let idle = bench.engine.map_anon(bench.task, 512, Advice::Normal).unwrap();
    let heap = std::mem::replace(&mut bench.heap, idle);
    (0..512).for_each(|page| {
        bench.access(page, true);
    });
    bench.move_all(SLOW);
    bench.heap = heap;
    let mut marked = Vec::new();
    for at in 0..12 {
        bench.run_for(1000);
        // Only the first mapping is in use.
        bench.access(at, false);
        marked.push(bench.stats([Stat::NumaPteUpdates])[0]);
    }
    let mm = bench.engine.mm_of(bench.task);
    let start = bench.engine.core.mm.memory.mm(mm).vmas[1].start;
    assert!(
        bench.engine.core.mm.memory.mm(mm).table.word(start).is_prot_none(),
        "new mappings are looked at: {marked:?}"
    );
}

/// The numbers of scans from one that marks the heap to the next, if ten unused mappings lie below it and ten above. One marked page is used
/// each second, or all of them at the same time. Nothing is promoted, so that the period stays a second.
fn scans_between_marks(is_all_at_once: bool) -> Vec<usize> {
    const IDLE: usize = 10;
    let mut bench = Bench::with(2, Config { hot_threshold_ms: 1, ..Config::default() });
    let map = |bench: &mut Bench, pages| bench.engine.map_anon(bench.task, pages, Advice::Normal).unwrap();
    for _ in 1..IDLE {
        map(&mut bench, 2);
    }
    (bench.heap, bench.pages) = (map(&mut bench, 64), 64);
    bench.access_all();
    bench.move_all(SLOW);
    for _ in 0..IDLE {
        map(&mut bench, 2);
    }
    let (mut marked, mut scans, mut between) = (0, 0, Vec::new());
    for half in 0..400 {
        scans += bench.run_for(500).len();
        let now_marked = bench.stats([Stat::NumaPteUpdates])[0];
        if now_marked > marked {
            between.push(scans);
            (marked, scans) = (now_marked, 0);
            if is_all_at_once {
                bench.access_all();
            }
        }
        if !is_all_at_once {
            bench.access(half / 2 % 64, false);
        }
    }
    between
}

#[test]
fn a_mapping_whose_marks_are_all_used_waits_like_one_that_nobody_uses() {
    let in_use = scans_between_marks(false);
    assert!(
        in_use[3..].iter().all(|&scans| scans == 11),
        "each of those above has a scan of its own: {in_use:?}"
    );
    // Two scans have come by without a hint fault in between. So those below have a scan of their own first, too.
    let forgotten = scans_between_marks(true);
    assert_eq!(forgotten[3..5], [11, 21], "{forgotten:?}");
}

#[test]
fn an_object_larger_than_a_scan_takes_several() {
    let mut bench = Bench::with(1536, Config { scan_size_mb: 2, ..Config::default() });
    let mut marked = Vec::new();
    for _ in 0..40 {
        if !bench.run_for(100).is_empty() {
            marked.push(bench.stats([Stat::NumaPteUpdates])[0]);
        }
    }
    assert_eq!(marked[..3], [512, 1024, 1536]);
}
