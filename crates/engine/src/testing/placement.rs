//! Promises of memory policies, of nodes of a group, and of nodes that leave and come back.

use crate::memory::mm::Advice;
use crate::page_alloc::request::{Gfp, Request};
use crate::units::SECTION_FRAMES;
use crate::*;

const PAGES: u64 = 240;
const CPU_NODE: NodeId = NodeId(0);

/// Three nodes, the first with the CPU, and a process with a heap in a group.
struct Bench {
    engine: Engine,
    task: TaskId,
    heap: ObjectId,
}

impl Bench {
    fn new() -> Bench {
        Bench::of(Policy::of("classic@6.12"))
    }

    fn of(policy: Policy) -> Bench {
        let layout = Layout {
            memory_types: vec![MemoryType::Dram, MemoryType::Adistance(2880), MemoryType::Adistance(5760)],
            movable_pages: vec![0, 4096, 4096],
            interleave_weights: vec![3, 1, 2],
            ..Layout::default()
        };
        let config =
            Config { node_pages: vec![4096; 3], layout, policy, demotion_enabled: true, ..Config::default() };
        let mut engine = Engine::new(config).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let heap = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        Bench { engine, task, heap }
    }

    fn with(policy: MemPolicy) -> Bench {
        let mut bench = Bench::new();
        let mm = bench.engine.mm_of(bench.task);
        bench.engine.set_mempolicy(mm, policy).unwrap();
        bench
    }

    fn touch(&mut self, page: u64) -> Option<NodeId> {
        let access = Access::new(self.heap, page, true);
        let mut step = self.engine.start(self.task, access);
        loop {
            self.engine.take_ops(&mut Vec::new());
            self.engine.take_woken(&mut Vec::new());
            match step {
                Step::Done(Served::Hit(Touched::Frame(pfn)) | Served::Minor(Touched::Frame(pfn))) => {
                    return Some(self.engine.node_of(pfn));
                }
                Step::Done(_) => return None,
                Step::Again | Step::Wait(_) => step = self.engine.resume(self.task),
            }
        }
    }

    /// How many pages are on each node after all were touched.
    fn touch_all(&mut self) -> [u64; 3] {
        let mut nodes = [0; 3];
        (0..PAGES).for_each(|page| nodes[self.touch(page).unwrap().index()] += 1);
        self.engine.core.lru_add_drain();
        self.engine.check_invariants();
        nodes
    }

    fn write(&mut self, path: &str, value: &str) -> Result<(), FileError> {
        let written = self.engine.write_file(self.task, path, value).map(|_| ());
        self.engine.take_ops(&mut Vec::new());
        written
    }
}

fn mask(nodes: &str) -> Nodemask {
    Nodemask::parse(nodes).unwrap()
}

#[test]
fn pages_come_from_where_the_policy_says() {
    let of = |policy| Bench::with(policy).touch_all();
    assert_eq!(of(MemPolicy::Default), [PAGES, 0, 0]);
    assert_eq!(of(MemPolicy::Preferred(NodeId(2))), [0, 0, PAGES]);
    assert_eq!(of(MemPolicy::Bind(mask("1-2"))), [0, PAGES, 0]);
    assert_eq!(of(MemPolicy::Interleave(mask("0,2"))), [PAGES / 2, 0, PAGES / 2]);
    assert_eq!(of(MemPolicy::WeightedInterleave(mask("0-2"))), [PAGES / 2, PAGES / 6, PAGES / 3]);
}

/// How many pages of a file of 1200 are on each node after its writer has written them one after the other, as an engine of this policy
/// has it. No flusher runs, so all stay dirty.
fn write_a_file(policy: Policy, placement: MemPolicy) -> [u64; 3] {
    let mut bench = Bench::of(policy);
    let mm = bench.engine.mm_of(bench.task);
    bench.engine.set_mempolicy(mm, placement).unwrap();
    let spec =
        FileSpec { name: "data".to_owned(), pages: 1200, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    let file = bench.engine.file_create(spec).unwrap();
    bench.heap = bench.engine.open(bench.task, file).unwrap();
    let mut nodes = [0; 3];
    for page in 0..1200 {
        let node = bench.touch(page).unwrap();
        nodes[node.index()] += 1;
        let is_over = bench.engine.core.mm.is_over_dirty_limit(node);
        assert!(!is_over || nodes[node.index()] > 600, "page {page} took {node:?} over its limit: {nodes:?}");
    }
    bench.engine.check_invariants();
    nodes
}

#[test]
fn pages_to_be_written_come_from_nodes_below_their_dirty_limits() {
    let [first, second, third] = write_a_file(Policy::of("classic@6.12"), MemPolicy::Default);
    assert!(
        (600..820).contains(&first),
        "a fifth of what is free of 4096 pages beyond the reserves: {first}"
    );
    assert_eq!([first + second, third], [1200, 0], "the rest is on the next node");
    let mut without = Policy::of("classic@6.12");
    without.machine.writeback.node_limit = false;
    assert_eq!(write_a_file(without, MemPolicy::Default), [1200, 0, 0]);
}

#[test]
fn where_all_nodes_are_over_their_dirty_limits_the_nearest_serves() {
    assert_eq!(write_a_file(Policy::of("classic@6.12"), MemPolicy::Bind(mask("1"))), [0, 1200, 0]);
}

#[test]
fn a_request_is_counted_by_the_node_it_wanted_memory_of_and_the_one_it_got() {
    const COUNTED: [Stat; 5] =
        [Stat::NumaHit, Stat::NumaMiss, Stat::NumaForeign, Stat::NumaLocal, Stat::NumaOther];
    let of = |bench: &Bench, node| COUNTED.map(|stat| bench.engine.core.mm.node_stat(node, stat));
    let mut bench = Bench::with(MemPolicy::Bind(mask("1")));
    bench.touch_all();
    let pages = PAGES as i64;
    assert_eq!(of(&bench, NodeId(1)), [pages, 0, 0, 0, pages]);
    let [kernel @ .., other] = of(&bench, CPU_NODE);
    assert_eq!((kernel, other), ([kernel[0], 0, 0, kernel[0]], 0), "its page tables are near its CPU");
    let mut bench = Bench::with(MemPolicy::Interleave(mask("1-2")));
    bench.touch_all();
    let interleaved =
        [0, 1, 2].map(|node| bench.engine.core.mm.node_stat(NodeId(node), Stat::NumaInterleave));
    assert_eq!(interleaved, [0, pages / 2, pages / 2]);
    let mut bench = Bench::new();
    let request = Request::movable(Gfp::KERNEL, CPU_NODE);
    let taken = || bench.engine.core.alloc_pages(&request, MemcgId::ROOT).expect("there is enough");
    let got = std::iter::repeat_with(taken).find(|pfn| pfn.0 >= SECTION_FRAMES).expect("the node is used up");
    assert_eq!(bench.engine.node_of(got), NodeId(1));
    assert_eq!(of(&bench, NodeId(1)), [0, 1, 0, 0, 1]);
    assert_eq!(of(&bench, CPU_NODE)[2], 1);
}

#[test]
fn a_policy_names_nodes_that_exist() {
    let mut bench = Bench::new();
    let mm = bench.engine.mm_of(bench.task);
    let error = bench.engine.set_mempolicy(mm, MemPolicy::Bind(mask("1,3"))).unwrap_err();
    assert_eq!(error.to_string(), "node: 3 is not in the range 0 to 2");
}

/// A node that is bound to and full is not left for another that is empty.
#[test]
fn who_is_bound_has_no_other_memory() {
    let mut bench = Bench::with(MemPolicy::Bind(mask("1")));
    let taker = bench.engine.process_create(MemcgId::ROOT);
    let task = bench.engine.task_create(taker, CpuId(0));
    let heap = bench.engine.map_anon(task, 4000, Advice::Normal).unwrap();
    bench.engine.set_mempolicy(taker, MemPolicy::Preferred(NodeId(1))).unwrap();
    let own = std::mem::replace(&mut bench.task, task);
    let own_heap = std::mem::replace(&mut bench.heap, heap);
    (0..4000).for_each(|page| {
        bench.touch(page);
    });
    (bench.task, bench.heap) = (own, own_heap);
    for page in 0..PAGES {
        let node = bench.touch(page);
        assert!(node.is_none_or(|node| node == NodeId(1)), "page {page} is on {node:?}");
    }
}

#[test]
fn nodes_of_a_group_confine_its_processes_from_then_on() {
    let mut bench = Bench::new();
    (0..PAGES / 2).for_each(|page| assert_eq!(bench.touch(page), Some(CPU_NODE)));
    bench.write("/sys/fs/cgroup/job/cpuset.mems", "1-2").unwrap();
    assert_eq!(bench.touch_all(), [PAGES / 2, PAGES / 2, 0], "what is there stays");
    let mut read = |file: &str| bench.engine.read_file(&format!("/sys/fs/cgroup/job/{file}")).unwrap();
    assert_eq!([read("cpuset.mems"), read("cpuset.mems.effective")], ["1-2\n", "1-2\n"]);
    bench.write("/sys/fs/cgroup/job/cpuset.mems", "").unwrap();
    assert_eq!(bench.engine.read_file("/sys/fs/cgroup/job/cpuset.mems.effective").unwrap(), "0-2\n");
    for (wrong, expected) in [("0-3", "online nodes, which are 0-2"), ("fast", "a list of nodes")] {
        let error = bench.write("/sys/fs/cgroup/job/cpuset.mems", wrong).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn pages_of_a_node_that_goes_move_to_others_and_nothing_new_comes_until_it_is_back() {
    let online = |node: u8| format!("/sys/devices/system/node/node{node}/memory*/online");
    let mut bench = Bench::with(MemPolicy::Interleave(mask("0-2")));
    assert_eq!(bench.touch_all(), [PAGES / 3; 3]);
    bench.write(&online(1), "0").unwrap();
    bench.engine.check_invariants();
    assert_eq!(bench.engine.read_file(&online(1)).unwrap(), "0\n");
    assert_eq!(bench.engine.core.mm.folios_in_use(NodeId(1)), []);
    let [_, gone, _] = bench.touch_all();
    assert_eq!(gone, 0, "and they are there without a fault");
    assert_eq!(bench.engine.figures().tiers().iter().count(), 2);
    bench.write(&online(1), "1").unwrap();
    assert_eq!(bench.engine.figures().tiers().iter().count(), 3);
    assert!(matches!(bench.engine.read_file(&online(3)), Err(FileError::NoSuchFile(_))));
    let error = bench.write(&online(0), "0").unwrap_err();
    assert!(error.to_string().contains("a node without CPUs"), "{error}");
}

#[test]
fn a_node_whose_pages_find_no_room_stays() {
    let mut bench = Bench::with(MemPolicy::Bind(mask("1")));
    assert_eq!(bench.touch_all(), [0, PAGES, 0]);
    bench.write("/sys/devices/system/node/node2/memory*/online", "0").unwrap();
    let filler = bench.engine.process_create(MemcgId::ROOT);
    let task = bench.engine.task_create(filler, CpuId(0));
    let heap = bench.engine.map_anon(task, 4096, Advice::Normal).unwrap();
    bench.engine.set_mempolicy(filler, MemPolicy::Preferred(CPU_NODE)).unwrap();
    let own = std::mem::replace(&mut bench.task, task);
    let own_heap = std::mem::replace(&mut bench.heap, heap);
    (0..4000).for_each(|page| {
        bench.touch(page);
    });
    let error = bench.write("/sys/devices/system/node/node1/memory*/online", "0").unwrap_err();
    assert!(error.to_string().contains("EBUSY"), "{error}");
    (bench.task, bench.heap) = (own, own_heap);
    assert!((0..PAGES).all(|page| bench.touch(page).is_some()));
    bench.engine.core.lru_add_drain();
    bench.engine.check_invariants();
}
