//! Swap readahead: the table of [machine 1.11], and its rules written a second time.
//!
//! All pages of a mapping or a tmpfs file are swapped out, in order, so page n is in slot n of the device. Then each access is
//! compared by the pages that it brings into memory.

#![allow(clippy::unwrap_used)] // helpers of tests

use pageout_engine::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

struct Swapped {
    engine: Engine,
    task: TaskId,
    object: ObjectId,
    file: Option<FileId>,
    /// By slot, the page in it.
    page_in: BTreeMap<u32, u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Memory {
    Heap,
    Tmpfs,
}

impl Swapped {
    fn new(memory: Memory, pages: u64, page_cluster: u8) -> Swapped {
        // All that is charged is pages of the mapping or the file.
        let config =
            Config { page_cluster, kmem: false, folio_batch: 1, charge_stock: 1, ..Config::default() };
        Swapped::with(config, memory, pages, SwapKind::Device)
    }

    fn with(config: Config, memory: Memory, pages: u64, kind: SwapKind) -> Swapped {
        Swapped::on(config, memory, pages, kind, false)
    }

    fn on(config: Config, memory: Memory, pages: u64, kind: SwapKind, seeks: bool) -> Swapped {
        let mut builder = Engine::builder(config).unwrap();
        let swap = builder.swap_on(SwapSpec { pages: 2 * pages, kind }).unwrap();
        if seeks {
            builder.swap_rotational(swap).unwrap();
        }
        let mut engine = builder.build();
        let job = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(job);
        let task = engine.task_create(mm, CpuId(0));
        let (object, file) = match memory {
            Memory::Heap => (engine.map_anon(task, pages, Advice::Normal).unwrap(), None),
            Memory::Tmpfs => {
                let spec = FileSpec {
                    name: "data".to_owned(),
                    pages,
                    kind: FileKind::Tmpfs,
                    bdi: Bdi::NO_READAHEAD,
                };
                let file = engine.file_create(spec).unwrap();
                (engine.open(task, file).unwrap(), Some(file))
            }
        };
        let mut swapped = Swapped { engine, task, object, file, page_in: BTreeMap::new() };
        let mut page_of = BTreeMap::new();
        for page in 0..pages {
            let Step::Done(Served::Minor(Touched::Frame(pfn))) =
                swapped.engine.start(task, Access::new(object, page, true))
            else {
                panic!("there is room")
            };
            page_of.insert(pfn, page);
        }
        while swapped.engine.figures().memcg_usage(job) > 0 {
            let step =
                swapped.engine.write_file(task, "/sys/fs/cgroup/job/memory.reclaim", "64M swappiness=200");
            let ops = swapped.finish(step.unwrap());
            let slots = ops.into_iter().filter_map(|op| match op {
                Op::WriteSwap { slot, pfn, .. } | Op::WriteSwapNow { slot, pfn, .. } => {
                    Some((slot, page_of[&pfn]))
                }
                _ => None,
            });
            swapped.page_in.extend(slots);
        }
        swapped
    }

    /// Goes on until the step is done, each transfer ending at once; returns the operations.
    fn finish(&mut self, mut step: Step) -> Vec<Op> {
        let mut all = Vec::new();
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in &ops {
                if let Op::ReadSwap { io, .. } | Op::WriteSwap { io, .. } = *op {
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            all.append(&mut ops);
            self.engine.take_woken(&mut Vec::new());
            if let Step::Done(served) = step {
                assert!(!matches!(served, Served::Failed(_)), "{served:?}");
                return all;
            }
            step = self.engine.resume(self.task);
        }
    }

    /// Loads from a page, or reads it; returns the pages that were read from swap.
    fn load(&mut self, page: u64) -> Vec<u64> {
        let step = self.engine.start(self.task, Access::new(self.object, page, false));
        let ops = self.finish(step);
        let slots = ops.into_iter().filter_map(|op| match op {
            Op::ReadSwap { slot, .. } | Op::ReadSwapNow { slot, .. } => Some(self.page_in[&slot]),
            _ => None,
        });
        slots.collect()
    }

    fn vmstat(&self, stat: Stat) -> i64 {
        self.engine.figures().vmstat(stat)
    }

    fn is_in_memory(&self, page: u64) -> bool {
        let name = match self.file {
            Some(file) => PageName::File { file, page },
            None => self.engine.figures().page_name(self.task, self.object, page).unwrap(),
        };
        self.engine.figures().page_state(name).is_some()
    }
}

fn range(range: Range<u64>) -> Vec<u64> {
    range.collect()
}

#[test]
fn windows_in_a_mapping_are_those_of_the_table() {
    let mut heap = Swapped::new(Memory::Heap, 1000, 3);
    assert_eq!(heap.load(10), range(7..15));
    assert_eq!((heap.vmstat(Stat::SwapRa), heap.vmstat(Stat::SwapRaHit)), (7, 0));
    assert_eq!(heap.load(100), range(99..103));
    assert_eq!(heap.load(300), range(300..302));
    assert_eq!(heap.load(500), [500]);
    assert_eq!(heap.load(700), [700]);
    assert_eq!(heap.load(701), [701, 702]);
    assert_eq!(heap.load(702), []);
    assert_eq!(heap.vmstat(Stat::SwapRaHit), 1);
    assert_eq!(heap.load(703), range(703..707));
    (704..707).for_each(|page| assert_eq!(heap.load(page), []));
    assert_eq!(heap.load(707), range(707..715));
    assert_eq!(heap.vmstat(Stat::SwapRaHit), 4);
    heap.engine.check_invariants();
    let vmstat = heap.engine.read_file("/proc/vmstat").unwrap();
    assert!(vmstat.contains("\nswap_ra 22\nswap_ra_hit 4\n"), "{vmstat}");
}

#[test]
fn a_window_ends_with_its_mapping_and_its_page_table() {
    let mut heap = Swapped::new(Memory::Heap, 1000, 3);
    assert_eq!(heap.load(0), range(0..5), "three before it would be outside");
    assert_eq!(heap.load(1), []);
    let mut heap = Swapped::new(Memory::Heap, 1000, 3);
    assert_eq!(heap.load(511), range(508..512));
    let mut heap = Swapped::new(Memory::Heap, 1000, 3);
    assert_eq!(heap.load(999), range(996..1000));
}

#[test]
fn what_is_in_memory_or_was_never_written_is_left_out() {
    let mut heap = Swapped::new(Memory::Heap, 100, 3);
    assert_eq!(heap.load(10), range(7..15));
    let step = heap.engine.start(heap.task, Access::new(heap.object, 50, true));
    assert_eq!(heap.finish(step).len(), 5, "a window of four, and the slot that the store makes useless");
    assert_eq!(
        heap.load(15),
        [15, 16],
        "half of the last window, forwards from the page found last or not at all"
    );
}

#[test]
fn page_cluster_is_the_logarithm_of_the_largest_window_and_can_be_written() {
    assert_eq!(Swapped::new(Memory::Heap, 1000, 0).load(10), [10]);
    assert_eq!(Swapped::new(Memory::Heap, 1000, 1).load(10), range(10..12));
    let mut heap = Swapped::new(Memory::Heap, 1000, 3);
    let _ = heap.engine.write_file(heap.task, "/proc/sys/vm/page-cluster", "2").unwrap();
    assert_eq!(heap.engine.read_file("/proc/sys/vm/page-cluster").unwrap(), "2\n");
    assert_eq!(heap.load(10), range(9..13));
    assert!(heap.engine.write_file(heap.task, "/proc/sys/vm/page-cluster", "32").is_err());
}

#[test]
fn tmpfs_is_read_by_slot() {
    let mut file = Swapped::new(Memory::Tmpfs, 1000, 3);
    assert_eq!(file.load(10), range(8..16));
    (8..16).for_each(|page| assert!(file.is_in_memory(page) && file.load(page).is_empty(), "{page}"));
    assert_eq!((file.vmstat(Stat::SwapRa), file.vmstat(Stat::SwapRaHit)), (7, 7));
    // Seven hits: a window of sixteen, but for the maximum.
    assert_eq!(file.load(100), range(96..104));
    assert_eq!(file.load(300), range(300..304), "half of the last");
    file.engine.check_invariants();
}

#[test]
fn a_device_that_seeks_is_read_by_slot() {
    let config =
        Config { page_cluster: 3, kmem: false, folio_batch: 1, charge_stock: 1, ..Config::default() };
    let mut heap = Swapped::on(config.clone(), Memory::Heap, 1000, SwapKind::Device, true);
    assert_eq!(heap.load(10), range(8..16));
    let by_slot = Config { vma_ra_enabled: false, ..config };
    assert_eq!(Swapped::with(by_slot, Memory::Heap, 1000, SwapKind::Device).load(10), range(8..16));
    assert!(Engine::builder(Config::default()).unwrap().swap_rotational(SwapId(0)).is_err());
}

#[test]
fn a_synchronous_device_is_read_page_by_page() {
    for memory in [Memory::Heap, Memory::Tmpfs] {
        let config =
            Config { page_cluster: 3, kmem: false, folio_batch: 1, charge_stock: 1, ..Config::default() };
        let mut swapped = Swapped::with(config, memory, 100, SwapKind::Synchronous);
        assert_eq!(swapped.load(10), [10], "{memory:?}");
        assert_eq!(swapped.vmstat(Stat::SwapRa), 0);
    }
}

#[test]
fn pages_read_for_others_belong_to_their_group_and_can_be_dropped_without_a_write() {
    let mut heap = Swapped::new(Memory::Heap, 1000, 3);
    heap.load(10);
    let job = heap.engine.figures().memcg_by_path("/job").unwrap();
    assert_eq!(heap.engine.figures().memcg_usage(job), 8);
    while heap.engine.figures().memcg_usage(job) > 0 {
        let step =
            heap.engine.write_file(heap.task, "/sys/fs/cgroup/job/memory.reclaim", "64M swappiness=200");
        let ops = heap.finish(step.unwrap());
        assert!(!ops.iter().any(|op| matches!(op, Op::WriteSwap { .. })), "their slots still hold them");
    }
    assert_eq!(heap.vmstat(Stat::SwapRaHit), 0);
    heap.engine.check_invariants();
}

#[test]
fn a_page_of_another_group_is_paid_for_by_that_group() {
    let config =
        Config { page_cluster: 3, kmem: false, folio_batch: 1, charge_stock: 1, ..Config::default() };
    let mut heap = Swapped::on(config, Memory::Heap, 996, SwapKind::Device, true);
    // Four pages of a second group lie in the same block of eight slots as the last four of the first.
    let other = heap.engine.memcg_create(MemcgId::ROOT, "other").unwrap();
    let mm = heap.engine.process_create(other);
    let task = heap.engine.task_create(mm, CpuId(0));
    let object = heap.engine.map_anon(task, 8, Advice::Normal).unwrap();
    for page in 0..8 {
        let step = heap.engine.start(task, Access::new(object, page, true));
        heap.finish(step);
    }
    while heap.engine.figures().memcg_usage(other) > 0 {
        let step =
            heap.engine.write_file(heap.task, "/sys/fs/cgroup/other/memory.reclaim", "64M swappiness=200");
        heap.finish(step.unwrap());
    }
    let job = heap.engine.figures().memcg_by_path("/job").unwrap();
    let step = heap.engine.start(heap.task, Access::new(heap.object, 995, false));
    assert_eq!(heap.finish(step).iter().filter(|op| matches!(op, Op::ReadSwap { .. })).count(), 8);
    assert_eq!((heap.engine.figures().memcg_usage(job), heap.engine.figures().memcg_usage(other)), (4, 4));
    heap.engine.check_invariants();
}

/// The rules again, for one mapping of so many pages under page tables of 512, all of them swapped out in the beginning.
struct Naive {
    pages: u64,
    most: u64,
    in_memory: BTreeSet<u64>,
    /// Read for others and not wanted since.
    marked: BTreeSet<u64>,
    mapped: BTreeSet<u64>,
    last: Option<u64>,
    window: u64,
    hits: u64,
}

impl Naive {
    fn load(&mut self, page: u64) -> Vec<u64> {
        if !self.mapped.insert(page) {
            return Vec::new();
        }
        if self.in_memory.contains(&page) {
            self.last = Some(page);
            if self.marked.remove(&page) {
                self.hits = (self.hits + 1).min(63);
            }
            return Vec::new();
        }
        let (forwards, backwards) =
            (self.last.is_some_and(|last| page == last + 1), self.last.is_some_and(|last| page + 1 == last));
        let mut size = if self.hits > 0 { 4 } else { 1 + u64::from(forwards || backwards) };
        while self.hits > 0 && size < self.hits + 2 {
            size *= 2;
        }
        size = size.min(self.most).max(self.window / 2);
        (self.last, self.window, self.hits) = (Some(page), size, 0);
        let first = match (forwards, backwards) {
            (true, _) => page as i64,
            (_, true) => page as i64 - size as i64 + 1,
            _ => page as i64 - (size as i64 - 1) / 2,
        };
        let mut read = Vec::new();
        for at in first..first + size as i64 {
            let is_inside = at >= 0 && (at as u64) < self.pages && at as u64 / 512 == page / 512;
            if is_inside && self.in_memory.insert(at as u64) {
                read.push(at as u64);
                if at as u64 != page {
                    self.marked.insert(at as u64);
                }
            }
        }
        read
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_mapping_is_read_as_by_the_naive_model(
        page_cluster in 1..6u8,
        runs in prop::collection::vec((0..1100u64, 1..20u64, any::<bool>()), 1..60),
    ) {
        let pages = 1100;
        let mut heap = Swapped::new(Memory::Heap, pages, page_cluster);
        let mut naive = Naive {
            pages,
            most: 1 << page_cluster,
            in_memory: BTreeSet::new(),
            marked: BTreeSet::new(),
            mapped: BTreeSet::new(),
            last: None,
            window: 0,
            hits: 4,
        };
        for (from, length, is_backwards) in runs {
            for step in 0..length {
                let page = if is_backwards { from.saturating_sub(step) } else { (from + step).min(pages - 1) };
                prop_assert_eq!(heap.load(page), naive.load(page), "page {}", page);
            }
        }
        let hits = heap.vmstat(Stat::SwapRa) - naive.marked.len() as i64;
        prop_assert_eq!(heap.vmstat(Stat::SwapRaHit), hits);
        heap.engine.check_invariants();
    }
}
