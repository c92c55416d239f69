//! Promises of balancing of CPUs: which pages are marked, which hint faults move them, and what is counted; and all of it
//! written a second time.

use crate::config::{Layout, MemoryType};
use crate::memory::folio::FolioFlags;
use crate::memory::mm::Advice;
use crate::tiers::ADISTANCE_DAX_KMEM;
use crate::*;
use pageout_rules::numa_balancing::{PromoteCount, SkippedMappings, SlowNode};
use std::collections::BTreeMap;

const TICK_MS: u64 = 4;

/// Two nodes with two CPUs each, a slow node, and processes with a heap each.
struct Bench {
    engine: Engine,
    /// Each thread, its heap, and its CPU time.
    threads: Vec<(TaskId, ObjectId, Nanos)>,
    now: Nanos,
}

fn config() -> Config {
    let layout = Layout {
        cpu_nodes: vec![NodeId(0), NodeId(0), NodeId(1), NodeId(1)],
        memory_types: vec![MemoryType::Dram, MemoryType::Dram, MemoryType::Adistance(ADISTANCE_DAX_KMEM)],
        ..Layout::default()
    };
    let mut config = Config {
        node_pages: vec![16_384; 3],
        cpus: 4,
        layout,
        numa_balancing: 1,
        scan_delay_ms: 16,
        scan_period_min_ms: 16,
        scan_period_max_ms: 16,
        ..Config::default()
    };
    config.policy.machine.numa_balancing.skipped_mappings = SkippedMappings::Nothing;
    config
}

impl Bench {
    /// Processes with threads on these CPUs, and heaps of `pages` pages.
    fn new(config: Config, processes: &[&[u16]], pages: u64) -> Bench {
        let mut engine = Engine::new(config).unwrap();
        let mut threads = Vec::new();
        for cpus in processes {
            let mm = engine.process_create(MemcgId::ROOT);
            let first = engine.task_create(mm, CpuId(cpus[0]));
            let heap = engine.map_anon(first, pages, Advice::Normal).unwrap();
            let others = cpus[1..].iter().map(|&cpu| engine.thread_create(first, CpuId(cpu)));
            let tasks: Vec<TaskId> = std::iter::once(first).chain(others).collect();
            threads.extend(tasks.iter().map(|&task| (task, heap, Nanos::ZERO)));
        }
        Bench { engine, threads, now: Nanos::ZERO }
    }

    /// An access of a thread: true if it took a fault, and the page's node.
    fn access(&mut self, thread: usize, page: u64) -> (bool, NodeId) {
        let (task, heap, _) = self.threads[thread];
        let access = Access::new(heap, page, true);
        let mut step = self.engine.start(task, access);
        loop {
            self.engine.take_ops(&mut Vec::new());
            match step {
                Step::Done(Served::Hit(touched) | Served::Minor(touched)) => {
                    let is_fault = matches!(step, Step::Done(Served::Minor(_)));
                    let Touched::Frame(pfn) = touched else { panic!("{touched:?}") };
                    // A page in a batch of a CPU could not move at its next fault.
                    self.engine.core.lru_add_drain();
                    let memory = &self.engine.core.mm.memory;
                    return (is_fault, memory.folios[memory.folio_of(pfn)].node);
                }
                Step::Done(served) => panic!("{served:?}"),
                Step::Again | Step::Wait(_) => step = self.engine.resume(task),
            }
        }
    }

    /// A tick of a running thread: true if it has scanned.
    fn tick(&mut self, thread: usize) -> bool {
        self.now += Nanos(TICK_MS * 1_000_000);
        self.engine.set_now(self.now);
        let (task, _, runtime) = &mut self.threads[thread];
        *runtime += Nanos(TICK_MS * 1_000_000);
        let (task, runtime) = (*task, *runtime);
        let has_scanned = self.engine.scan_tick(task, runtime);
        self.engine.take_ops(&mut Vec::new());
        has_scanned
    }

    /// Ticks of a thread until it scans.
    fn scan(&mut self, thread: usize) {
        let scans = (0..100).any(|_| self.tick(thread));
        assert!(scans, "no scan in 100 ticks");
    }

    /// Pages of processes on a node.
    fn listed(&self, node: NodeId) -> Vec<Pfn> {
        let core = &self.engine.core;
        let folios = core.mm.folios_in_use(node).into_iter();
        folios.filter(|&pfn| core.mm.memory.folios[pfn].has(FolioFlags::LRU)).collect()
    }

    /// Moves all pages to a node.
    fn move_all(&mut self, to: NodeId) {
        self.engine.core.lru_add_drain();
        let nodes = [0, 1, 2].map(NodeId).into_iter().filter(|&node| node != to);
        let pfns: Vec<Pfn> = nodes.flat_map(|node| self.listed(node)).collect();
        for pfn in pfns {
            self.engine.core.migrate_prepare(pfn, None, to).unwrap();
            assert_eq!(self.engine.core.migrate_to_node(&[pfn], to, MigrateReason::Kmigrated), 1);
        }
        self.engine.core.lru_add_drain();
        self.engine.take_ops(&mut Vec::new());
    }

    fn stats<const N: usize>(&self, stats: [Stat; N]) -> [i64; N] {
        stats.map(|stat| self.engine.figures().vmstat(stat))
    }
}

/// Marked, faults, local ones, moved.
const BALANCING: [Stat; 4] =
    [Stat::NumaPteUpdates, Stat::NumaHintFaults, Stat::NumaHintFaultsLocal, Stat::NumaPagesMigrated];

#[test]
fn page_on_another_node_follows_a_new_thread_at_its_first_hint_fault() {
    let mut bench = Bench::new(config(), &[&[0]], 8);
    (0..8).for_each(|page| {
        bench.access(0, page);
    });
    bench.scan(0);
    assert_eq!(bench.stats(BALANCING), [0; 4], "a process of one thread has no pages elsewhere to mark");
    bench.move_all(NodeId(1));
    bench.scan(0);
    assert_eq!(bench.stats(BALANCING), [8, 0, 0, 0]);
    assert_eq!(bench.access(0, 3), (true, NodeId(0)));
    assert_eq!(bench.access(0, 3), (false, NodeId(0)));
    assert_eq!(bench.stats(BALANCING), [8, 1, 0, 1]);
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
}

#[test]
fn page_shared_by_two_nodes_moves_when_one_of_them_uses_it_twice_in_a_row() {
    let mut bench = Bench::new(config(), &[&[0, 2]], 1);
    bench.access(0, 0);
    bench.scan(0);
    assert_eq!(bench.access(0, 0), (true, NodeId(0)), "local pages of two threads are marked, too");
    bench.scan(0);
    assert_eq!(bench.access(1, 0), (true, NodeId(0)), "its last hint fault was on node 0");
    bench.scan(0);
    assert_eq!(bench.access(1, 0), (true, NodeId(1)));
    assert_eq!(bench.stats(BALANCING), [3, 3, 1, 1]);
}

#[test]
fn slow_page_is_promoted_at_its_second_hint_fault_unless_the_rule_forbids_it() {
    for (rule, count, nodes, counted) in [
        (SlowNode::SecondFault, PromoteCount::Tiering, [2, 0], 0),
        (SlowNode::SecondFault, PromoteCount::AnyMove, [2, 0], 1),
        (SlowNode::Never, PromoteCount::AnyMove, [2, 2], 0),
    ] {
        let mut config = config();
        config.policy.machine.numa_balancing.slow_node = rule;
        config.policy.machine.numa_balancing.promote_count = count;
        let mut bench = Bench::new(config, &[&[0]], 1);
        bench.access(0, 0);
        bench.move_all(NodeId(2));
        let seen = [0, 1].map(|_| {
            bench.scan(0);
            bench.access(0, 0).1.0
        });
        assert_eq!((seen, bench.stats([Stat::PgpromoteSuccess])), (nodes, [counted]), "{rule:?}");
    }
}

#[test]
fn both_modes_together_time_slow_pages_and_move_fast_ones() {
    let config = Config { numa_balancing: 3, hot_threshold_ms: 8, ..config() };
    let mut bench = Bench::new(config, &[&[0]], 2);
    bench.access(0, 0);
    bench.move_all(NodeId(1));
    bench.access(0, 1);
    bench.engine.core.lru_add_drain();
    for pfn in bench.listed(NodeId(0)) {
        bench.engine.core.migrate_prepare(pfn, None, NodeId(2)).unwrap();
        bench.engine.core.migrate_to_node(&[pfn], NodeId(2), MigrateReason::Kmigrated);
    }
    bench.engine.core.lru_add_drain();
    bench.scan(0);
    assert_eq!(bench.access(0, 0), (true, NodeId(0)), "a remote page follows at once");
    (0..3).for_each(|_| {
        bench.tick(0);
    });
    assert_eq!(bench.access(0, 1), (true, NodeId(2)), "12 ms after its mark it is not hot");
    bench.scan(0);
    assert_eq!(bench.access(0, 1), (true, NodeId(0)), "at once it is");
    assert_eq!(bench.stats([Stat::PgpromoteSuccess, Stat::NumaPagesMigrated]), [1, 2]);
}

#[test]
fn memory_confined_to_one_node_is_scanned_unless_the_rule_forbids_it() {
    for (rule, scans) in [(false, true), (true, false)] {
        let mut config = config();
        config.policy.machine.numa_balancing.single_node_cpuset = rule;
        let mut bench = Bench::new(config, &[&[0, 1]], 8);
        bench.access(0, 0);
        bench.engine.core.mm.memcgs[MemcgId::ROOT].mems = Some(Nodemask::of([NodeId(0)]));
        assert_eq!((0..100).any(|_| bench.tick(0)), scans, "single_node_cpuset = {rule}");
    }
}

#[test]
fn frame_of_a_freed_page_has_no_last_user() {
    let mut bench = Bench::new(config(), &[&[0, 2]], 1);
    bench.access(0, 0);
    bench.scan(0);
    bench.access(1, 0);
    bench.engine.core.lru_add_drain();
    let pfn = bench.listed(NodeId(1))[0];
    let user = |bench: &Bench| bench.engine.core.mm.numa_balancing.last_users.get(pfn).cpu();
    assert_eq!(user(&bench), Some(CpuId(2)));
    let heap = bench.threads[0].1;
    bench.engine.munmap(bench.threads[0].0, heap).unwrap();
    bench.engine.take_ops(&mut Vec::new());
    assert_eq!(user(&bench), None);
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// Node, whether marked, and the last user's CPU and low bits.
type ModelPage = (u8, bool, Option<(u16, u32)>);

/// All of it a second time, as plainly as possible.
#[derive(Default)]
struct Model {
    /// By process and page.
    pages: BTreeMap<(usize, u64), ModelPage>,
    threads: Vec<ModelThread>,
    /// Passes, by process.
    passes: Vec<u32>,
    /// Marked, faults, local ones, moved.
    counts: [i64; 4],
}

#[derive(Clone, Default)]
struct ModelThread {
    process: usize,
    cpu: u16,
    id: u32,
    pass: u32,
    retry_ms: u64,
    preferred: Option<u8>,
    faults: [[i64; 3]; 2],
}

const NODE_OF_CPU: [u8; 4] = [0, 0, 1, 1];

impl Model {
    fn scan(&mut self, thread: usize) {
        let ModelThread { process, cpu, .. } = self.threads[thread];
        let is_single = self.threads.iter().filter(|thread| thread.process == process).count() == 1;
        for ((of, _), (node, is_marked, _)) in &mut self.pages {
            if *of == process && !*is_marked && !(is_single && *node == NODE_OF_CPU[usize::from(cpu)]) {
                *is_marked = true;
                self.counts[0] += 1;
            }
        }
        self.passes[process] += 1;
    }

    /// True if it took a fault, and the page's node.
    fn access(&mut self, thread: usize, page: u64, now_ms: u64) -> (bool, u8) {
        let ModelThread { process, cpu, id, pass, preferred, .. } = self.threads[thread];
        let here = NODE_OF_CPU[usize::from(cpu)];
        let Some((node, is_marked, last)) = self.pages.get_mut(&(process, page)) else {
            self.pages.insert((process, page), (here, false, None));
            return (true, here);
        };
        if !std::mem::take(is_marked) {
            return (false, *node);
        }
        self.counts[1] += 1;
        self.counts[2] += i64::from(*node == here);
        let before = last.replace((cpu, id & 255));
        let is_mine = before.is_some_and(|(_, low)| low == id & 255);
        let belongs = if *node == 2 && before.is_none() {
            false
        } else if (preferred.is_none() || pass <= 4) && (before.is_none() || is_mine) {
            true
        } else {
            before.is_none_or(|(cpu, _)| NODE_OF_CPU[usize::from(cpu)] == here)
        };
        if belongs && *node != here {
            self.counts[3] += 1;
            *node = here;
        }
        let (node, is_counted) = (*node, *node != 2 || before.is_some());
        let thread = &mut self.threads[thread];
        if is_counted {
            thread.faults[1][usize::from(node)] += 1;
            if now_ms > thread.retry_ms {
                thread.retry_ms = now_ms + 1;
                if thread.pass != self.passes[process] {
                    thread.pass = self.passes[process];
                    thread.end_pass();
                }
            }
        }
        (true, node)
    }
}

impl ModelThread {
    fn end_pass(&mut self) {
        for node in 0..3 {
            self.faults[0][node] = self.faults[0][node] / 2 + self.faults[1][node];
        }
        self.faults[1] = [0; 3];
        let most = *self.faults[0].iter().max().unwrap();
        let node = self.faults[0].iter().position(|&faults| faults == most && most > 0);
        // The slow node has no CPUs, and node 0 comes after it.
        self.preferred = node.map(|node| if node == 2 { 0 } else { node as u8 });
    }
}

#[test]
fn random_accesses_move_pages_as_a_naive_model_does() {
    let mut moved = 0;
    for seed in 0..20 {
        let mut random = Random(seed);
        let processes: [&[u16]; 2] = [&[0, 2, 3], &[1]];
        let mut bench = Bench::new(config(), &processes, 32);
        let mut model = Model { passes: vec![0; 2], ..Model::default() };
        for (process, cpus) in processes.into_iter().enumerate() {
            for &cpu in cpus {
                let id = bench.threads[model.threads.len()].0.0;
                model.threads.push(ModelThread { process, cpu, id, ..ModelThread::default() });
            }
        }
        for at in 0..20_000 {
            let thread = random.below(4) as usize;
            if at == 200 {
                bench.move_all(NodeId(2));
                model.pages.values_mut().for_each(|page| page.0 = 2);
            }
            if random.below(20) == 0 && bench.tick(thread) {
                model.scan(thread);
            }
            let page = random.below(32);
            let (is_fault, node) = bench.access(thread, page);
            let expected = model.access(thread, page, bench.now.0 / 1_000_000);
            assert_eq!(
                (is_fault, node.0),
                expected,
                "seed {seed}, access {at}: thread {thread}, page {page}"
            );
        }
        assert_eq!(bench.stats(BALANCING), model.counts, "seed {seed}");
        moved += model.counts[3];
        bench.engine.core.lru_add_drain();
        bench.engine.check_invariants();
    }
    assert!(moved > 1000, "{moved} pages moved: too few to compare anything");
}
