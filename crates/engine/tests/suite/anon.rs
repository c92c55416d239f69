//! Anonymous mappings that change their length, and pages of them that are discarded, swapped out or read in advance.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use pageout_engine::{
    Access, AccessError, Advice, Config, CpuId, Engine, FrameGate, MemcgId, Nanos, ObjectId, Op, Pfn, Policy,
    Served, Stat, Step, SwapKind, SwapSpec, TaskId, Touched, Wait,
};

/// Frames that a thread is reading, and those that are closed.
#[derive(Default)]
struct Looked {
    held: BTreeSet<Pfn>,
    closed: BTreeSet<Pfn>,
}

struct Gate(Arc<Mutex<Looked>>);

impl FrameGate for Gate {
    fn close(&mut self, pfn: Pfn) -> bool {
        let mut looked = self.0.lock().unwrap();
        !looked.held.contains(&pfn) && looked.closed.insert(pfn)
    }

    fn open(&mut self, pfn: Pfn) {
        self.0.lock().unwrap().closed.remove(&pfn);
    }
}

struct Heap {
    engine: Engine,
    task: TaskId,
    object: ObjectId,
    looked: Arc<Mutex<Looked>>,
    /// The requests since the last call.
    ops: Vec<Op>,
}

impl Heap {
    fn new(profile: &str, pages: u64) -> Heap {
        let policy = Policy::by_name(profile).unwrap();
        let config = Config {
            kmem: false,
            zero_map: false,
            page_cluster: 0,
            charge_stock: 1,
            folio_batch: 1,
            policy,
            ..Config::default()
        };
        let mut builder = Engine::builder(config).unwrap();
        builder.swap_on(SwapSpec { pages: 4096, kind: SwapKind::Device }).unwrap();
        let looked = Arc::<Mutex<Looked>>::default();
        builder.set_frame_gate(Box::new(Gate(Arc::clone(&looked))));
        let mut engine = builder.build();
        let job = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(job);
        let task = engine.task_create(mm, CpuId(0));
        let object = engine.map_anon(task, pages, Advice::Normal).unwrap();
        Heap { engine, task, object, looked, ops: Vec::new() }
    }

    /// Carries out the requests: transfers end immediately, and free frames are closed.
    fn carry_out(&mut self) {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            if ops.is_empty() {
                return;
            }
            for &op in &ops {
                match op {
                    Op::Zero { pfn, .. } => _ = self.looked.lock().unwrap().closed.remove(&pfn),
                    Op::ReadSwap { io, pfn, .. } => {
                        self.looked.lock().unwrap().closed.remove(&pfn);
                        self.engine.io_done(io, CpuId(0), Ok(()));
                    }
                    Op::WriteSwap { io, .. } => self.engine.io_done(io, CpuId(0), Ok(())),
                    Op::FreeFrame { pfn, .. } => {
                        let mut looked = self.looked.lock().unwrap();
                        assert!(!looked.held.contains(&pfn), "{pfn:?} is freed, and somebody looks at it");
                        looked.closed.insert(pfn);
                    }
                    _ => {}
                }
            }
            self.ops.extend(ops);
        }
    }

    fn finish(&mut self, mut step: Step) -> Served {
        loop {
            self.carry_out();
            step = match step {
                Step::Done(served) => return served,
                Step::Again | Step::Wait(Wait::Io(_)) => self.engine.resume(self.task),
                Step::Wait(wait) => panic!("{wait:?}"),
            };
        }
    }

    fn access(&mut self, page: u64, write: bool) -> Served {
        let step = self.engine.start(self.task, Access::new(self.object, page, write));
        let served = self.finish(step);
        self.engine.check_invariants();
        served
    }

    fn write(&mut self, page: u64) -> Pfn {
        match self.access(page, true) {
            Served::Hit(Touched::Frame(pfn))
            | Served::Minor(Touched::Frame(pfn))
            | Served::Major(Touched::Frame(pfn)) => pfn,
            other => panic!("{other:?}"),
        }
    }

    fn read_file(&mut self, name: &str) -> u64 {
        let text = self.engine.read_file(&format!("/sys/fs/cgroup/job/{name}")).unwrap();
        text.trim().parse().unwrap()
    }

    /// Pages in memory, and those in swap.
    fn pages(&mut self) -> (u64, u64) {
        (self.read_file("memory.current") / 4096, self.read_file("memory.swap.current") / 4096)
    }

    /// Writes pages to swap.
    fn page_out(&mut self, pages: std::ops::Range<u64>) {
        self.engine.madvise_pageout(self.task, self.object, pages).unwrap();
        self.carry_out();
        self.engine.check_invariants();
    }

    /// The same for pages in memory, which are freed when this returns.
    fn swap_out(&mut self, pages: std::ops::Range<u64>) {
        let bytes = (pages.end - pages.start) * 4096;
        self.page_out(pages);
        let step = self.engine.write_file(self.task, "/sys/fs/cgroup/job/memory.reclaim", &bytes.to_string());
        assert!(matches!(self.finish(step.unwrap()), Served::Written { .. }));
        self.engine.flush_stats();
        self.engine.check_invariants();
    }

    fn dontneed(&mut self, pages: std::ops::Range<u64>) -> Option<u64> {
        let held = self.engine.madvise_dontneed(self.task, self.object, pages).unwrap();
        self.carry_out();
        self.engine.check_invariants();
        held
    }
}

const PROFILES: [&str; 2] = ["mglru@6.12", "classic@6.12"];

#[test]
fn dontneed_frees_pages_and_slots_and_leaves_zeroes() {
    for profile in PROFILES {
        let mut heap = Heap::new(profile, 1300);
        (0..100).chain(600..620).for_each(|page| _ = heap.write(page));
        heap.page_out(600..620);
        assert_eq!(heap.pages().1, 20, "{profile}");
        assert_eq!(heap.dontneed(50..1300), None);
        heap.engine.flush_stats();
        assert_eq!(heap.read_file("memory.swap.current"), 0, "{profile}");
        for page in [50, 610] {
            assert_eq!(heap.access(page, false), Served::Minor(Touched::Zeroes));
        }
        assert!(matches!(heap.access(49, false), Served::Hit(Touched::Frame(_))));
        heap.write(610);
    }
}

#[test]
fn dontneed_stops_at_a_page_that_somebody_looks_at() {
    let mut heap = Heap::new("mglru@6.12", 64);
    let frames: Vec<Pfn> = (0..20).map(|page| heap.write(page)).collect();
    heap.looked.lock().unwrap().held.insert(frames[7]);
    assert_eq!(heap.dontneed(3..20), Some(7));
    assert_eq!(heap.access(7, false), Served::Hit(Touched::Frame(frames[7])));
    assert_eq!(heap.access(6, false), Served::Minor(Touched::Zeroes));
    heap.looked.lock().unwrap().held.clear();
    assert_eq!(heap.dontneed(3..20), None);
    assert_eq!(heap.access(19, false), Served::Minor(Touched::Zeroes));
}

#[test]
fn dontneed_of_an_unmapped_page_in_the_swap_cache_asks_who_looks_at_it() {
    let mut heap = Heap::new("classic@6.12", 64);
    let pfn = heap.write(5);
    heap.looked.lock().unwrap().held.insert(pfn);
    // It gets a slot and loses its mapping, but is not written while a thread reads it.
    heap.page_out(5..6);
    assert_eq!(heap.dontneed(0..64), Some(5));
    heap.looked.lock().unwrap().held.clear();
    assert_eq!(heap.dontneed(0..64), None);
    heap.engine.flush_stats();
    assert_eq!(heap.pages().1, 0);
}

#[test]
fn mapping_shrinks_by_empty_pages_alone_and_grows_with_zeroes() {
    let mut heap = Heap::new("mglru@6.12", 2000);
    heap.write(3);
    heap.write(1500);
    assert!(heap.engine.resize_anon(heap.task, heap.object, 1000).is_err());
    assert_eq!(heap.dontneed(1000..2000), None);
    let tables = |heap: &Heap| heap.engine.figures().vmstat(Stat::NrPageTablePages);
    assert_eq!(tables(&heap), 4);
    heap.engine.resize_anon(heap.task, heap.object, 1000).unwrap();
    assert_eq!(tables(&heap), 3);
    let beyond = Served::Failed(AccessError::BeyondObject { page: 1500, pages: 1000 });
    assert_eq!(heap.access(1500, true), beyond);
    // What was refused may owe something all the same.
    let refused = Access::new(heap.object, 1500, true);
    assert_eq!(heap.engine.pay(heap.task, refused), Step::Done(Served::Hit(Touched::Gone)));
    assert!(heap.engine.resize_anon(heap.task, heap.object, 0).is_err());
    heap.engine.resize_anon(heap.task, heap.object, 5000).unwrap();
    for page in [1500, 4999] {
        assert_eq!(heap.access(page, false), Served::Minor(Touched::Zeroes));
        heap.write(page);
    }
    assert!(matches!(heap.access(3, false), Served::Hit(Touched::Frame(_))));
    let other = heap.engine.map_anon(heap.task, 10, Advice::Normal).unwrap();
    assert!(heap.engine.resize_anon(heap.task, heap.object, 10).is_err(), "another mapping is behind it");
    heap.engine.resize_anon(heap.task, other, 600).unwrap();
    heap.engine.check_invariants();
}

#[test]
fn page_tables_of_empty_pages_are_freed_a_few_at_a_time() {
    let mut heap = Heap::new("mglru@6.12", 600_000);
    let tables = |heap: &Heap| heap.engine.figures().vmstat(Stat::NrPageTablePages);
    // The first takes a table of each of three levels, and the last one of two.
    for (page, expected) in [(3, 3), (1500, 4), (1501, 4), (2000, 5), (300_000, 7)] {
        heap.write(page);
        assert_eq!(tables(&heap), expected, "after page {page}");
    }
    // Of tables that are there, no page is known to be empty.
    for (pages, expected) in
        [(0..600_000, 0), (512..600_000, 1024), (2048..600_000, 299_520), (2048..9000, 9000)]
    {
        assert_eq!(heap.engine.skip_empty(heap.task, heap.object, pages), Ok(expected));
    }
    assert_eq!(heap.dontneed(1000..600_000), None);
    assert_eq!(tables(&heap), 7);
    for (are_more, expected) in [(true, 6), (true, 5), (false, 3), (false, 3)] {
        assert_eq!(heap.engine.free_page_tables(heap.task, heap.object, 1000, 1), Ok(are_more));
        assert_eq!(tables(&heap), expected);
    }
    heap.write(1500);
    assert_eq!(tables(&heap), 4);
    assert_eq!(heap.dontneed(0..600_000), None);
    assert_eq!(heap.engine.free_page_tables(heap.task, heap.object, 0, 100), Ok(false));
    assert_eq!(tables(&heap), 0);
    assert_eq!(heap.engine.skip_empty(heap.task, heap.object, 0..600_000), Ok(600_000));
    heap.write(3);
    heap.engine.check_invariants();
}

#[test]
fn pageout_swaps_young_pages_and_no_others() {
    for profile in PROFILES {
        let mut heap = Heap::new(profile, 300);
        let frames: Vec<Pfn> = (0..100).map(|page| heap.write(page)).collect();
        heap.ops.clear();
        heap.page_out(10..40);
        let written = heap.ops.iter().filter_map(|op| match op {
            Op::WriteSwap { pfn, .. } => Some(*pfn),
            _ => None,
        });
        assert!(written.eq(frames[10..40].iter().copied()), "{profile}");
        assert_eq!(heap.pages().1, 30, "{profile}");
        for page in 0..100 {
            // Written pages are in the swap cache until they are reclaimed.
            let is_mapped = matches!(heap.access(page, false), Served::Hit(_));
            assert_eq!(is_mapped, !(10..40).contains(&page), "{profile}: page {page}");
        }
        assert!(heap.engine.madvise_pageout(heap.task, heap.object, 299..301).is_err());
    }
}

/// When the wait of the second thread is over, a load of the first has mapped the page.
#[test]
fn store_that_waited_beside_a_load_makes_the_page_dirty() {
    for profile in PROFILES {
        let mut heap = Heap::new(profile, 64);
        heap.write(3);
        heap.swap_out(3..4);
        let other = heap.engine.thread_create(heap.task, CpuId(0));
        let load = heap.engine.start(heap.task, Access::new(heap.object, 3, false));
        let store = heap.engine.start(other, Access::new(heap.object, 3, true));
        assert!(matches!((&load, &store), (Step::Wait(Wait::Io(_)), Step::Wait(Wait::Io(_)))));
        heap.carry_out();
        assert!(matches!(heap.engine.resume(heap.task), Step::Done(Served::Major(Touched::Frame(_)))));
        assert!(matches!(heap.engine.resume(other), Step::Done(Served::Minor(Touched::Frame(_)))));
        // The slot does not have the bytes of the store: they are written to it before the page is freed.
        heap.ops.clear();
        heap.page_out(3..4);
        let writes = heap.ops.iter().filter(|op| matches!(op, Op::WriteSwap { .. })).count();
        assert_eq!(writes, 1, "{profile}");
    }
}

#[test]
fn willneed_reads_swapped_pages_and_maps_none() {
    for profile in PROFILES {
        let mut heap = Heap::new(profile, 600);
        (0..50).for_each(|page| _ = heap.write(page));
        heap.swap_out(0..50);
        heap.ops.clear();
        let step = heap.engine.madvise_willneed(heap.task, heap.object, 0..32).unwrap();
        assert_eq!(heap.finish(step), Served::Advised);
        let reads = heap.ops.iter().filter(|op| matches!(op, Op::ReadSwap { .. })).count();
        assert_eq!(reads, 32, "{profile}");
        let figures = heap.engine.figures();
        assert_eq!(figures.vmstat(Stat::SwapRa), 0, "it is no readahead");
        assert!(matches!(heap.access(31, false), Served::Minor(Touched::Frame(_))));
        assert!(matches!(heap.access(32, false), Served::Major(Touched::Frame(_))));
        heap.engine.set_now(Nanos(1));
    }
}
