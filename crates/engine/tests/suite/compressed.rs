//! zswap for a host that has the pages: it says what they come to, and keeps their bytes where the engine says.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use pageout_engine::{
    Access, Advice, Compressed, Config, CpuId, Engine, MemcgId, ObjectId, ObjectPlace, Op, PageContents, Pfn,
    Policy, Served, Stat, Step, SwapKind, SwapSpec, TaskId, Touched, Wait,
};

/// Contents of frames: a number stands for a page.
type Frames = Arc<Mutex<BTreeMap<Pfn, u64>>>;

/// Every seventh page is one word, which is zero for some; others come to lengths of their own.
fn word_of(value: u64) -> Option<u64> {
    if value.is_multiple_of(21) {
        Some(0)
    } else if value.is_multiple_of(7) {
        Some(value)
    } else {
        None
    }
}

fn length_of(value: u64) -> u16 {
    if value.is_multiple_of(10) { 4096 } else { (40 + value * 331 % 3000) as u16 }
}

struct Host(Frames);

impl PageContents for Host {
    fn repeated_word(&mut self, pfn: Pfn) -> Option<u64> {
        word_of(self.0.lock().unwrap()[&pfn])
    }

    fn compressed_bytes(&mut self, pfn: Pfn) -> u16 {
        length_of(self.0.lock().unwrap()[&pfn])
    }
}

struct Heap {
    engine: Engine,
    task: TaskId,
    object: ObjectId,
    frames: Frames,
    /// Bytes of the pool: the page that they are of, and which byte of the object.
    pool: BTreeMap<(Pfn, usize), (u64, usize)>,
    slots: BTreeMap<u32, u64>,
    stored: usize,
    /// Pages that were named before the last step.
    named: Vec<Pfn>,
    /// Named pages whose contents have not changed since, the last ones: those that a host has compressed. And stored pages that were among them.
    ready: VecDeque<Pfn>,
    known: usize,
    moves: u64,
    /// The most moves of one step.
    moves_of_step: u64,
    /// Pages that steps stored and that were not named: those of each step that had some.
    surprises: Vec<usize>,
}

fn bytes_of(place: ObjectPlace) -> impl Iterator<Item = (Pfn, usize)> {
    place.parts().flat_map(|(pfn, bytes)| bytes.map(move |at| (pfn, at)))
}

impl Heap {
    fn new(profile: &str, pages: u64, with: impl FnOnce(Config) -> Config) -> Heap {
        let config = Config {
            kmem: false,
            kmem_of_zswap: true,
            zswap_enabled: true,
            page_cluster: 0,
            charge_stock: 1,
            node_pages: vec![4096],
            policy: Policy::by_name(profile).unwrap(),
            ..Config::default()
        };
        let mut builder = Engine::builder(with(config)).unwrap();
        builder.swap_on(SwapSpec { pages: 4096, kind: SwapKind::Device }).unwrap();
        let frames = Frames::default();
        builder.set_page_contents(Box::new(Host(Arc::clone(&frames))));
        let mut engine = builder.build();
        let job = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(job);
        let task = engine.task_create(mm, CpuId(0));
        let object = engine.map_anon(task, pages, Advice::Normal).unwrap();
        let (pool, slots) = (BTreeMap::new(), BTreeMap::new());
        let (named, ready) = (Vec::new(), VecDeque::new());
        Heap {
            engine,
            task,
            object,
            frames,
            pool,
            slots,
            stored: 0,
            named,
            ready,
            known: 0,
            moves: 0,
            moves_of_step: 0,
            surprises: Vec::new(),
        }
    }

    fn value(&self, pfn: Pfn) -> u64 {
        self.frames.lock().unwrap()[&pfn]
    }

    fn fill(&mut self, pfn: Pfn, value: u64) {
        self.ready.retain(|&ready| ready != pfn);
        self.frames.lock().unwrap().insert(pfn, value);
    }

    fn carry_out(&mut self) {
        let (moves, unnamed) = (self.moves, self.stored - self.known);
        self.carry_out_all();
        self.moves_of_step = self.moves_of_step.max(self.moves - moves);
        let surprised = self.stored - self.known - unnamed;
        self.surprises.extend((surprised > 0).then_some(surprised));
    }

    fn carry_out_all(&mut self) {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            if ops.is_empty() {
                return;
            }
            for op in ops {
                match op {
                    Op::Zero { pfn, .. } => self.fill(pfn, 0),
                    Op::ReadSwap { io, slot, pfn, .. } => {
                        self.fill(pfn, self.slots[&slot]);
                        self.engine.io_done(io, CpuId(0), Ok(()));
                    }
                    Op::WriteSwap { io, slot, pfn, .. } => {
                        self.slots.insert(slot, self.value(pfn));
                        self.engine.io_done(io, CpuId(0), Ok(()));
                    }
                    Op::ZswapStore { pfn, to, .. } => {
                        let value = self.value(pfn);
                        self.stored += 1;
                        self.known += usize::from(self.ready.contains(&pfn));
                        match to {
                            Compressed::Word(word) => assert_eq!(Some(word), word_of(value)),
                            Compressed::At(place) => {
                                assert_eq!(place.length, length_of(value));
                                let bytes = bytes_of(place).enumerate();
                                self.pool.extend(bytes.map(|(byte, at)| (at, (value, byte))));
                            }
                        }
                    }
                    Op::ZswapLoad { pfn, from, .. } => match from {
                        Compressed::Word(word) => self.fill(pfn, word),
                        Compressed::At(place) => {
                            let (value, _) = self.pool[&bytes_of(place).next().unwrap()];
                            let is_whole =
                                bytes_of(place).enumerate().all(|(byte, at)| self.pool[&at] == (value, byte));
                            assert!(
                                is_whole && place.length == length_of(value),
                                "{place:?} of page {value}"
                            );
                            self.fill(pfn, value);
                        }
                    },
                    Op::ZswapMove { from, to } => {
                        self.moves += 1;
                        let moved: Vec<_> = bytes_of(from).map(|at| self.pool.get(&at).copied()).collect();
                        for (at, byte) in bytes_of(to).zip(moved) {
                            match byte {
                                Some(byte) => self.pool.insert(at, byte),
                                None => self.pool.remove(&at),
                            };
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn name_next(&mut self) {
        self.named.clear();
        self.engine.swapped_next(64, false, &mut self.named);
        assert!(self.named.len() <= 64);
        for &pfn in &self.named {
            if !self.ready.contains(&pfn) {
                self.ready.push_back(pfn);
            }
        }
        let old = self.ready.len().saturating_sub(96);
        self.ready.drain(..old);
    }

    fn access(&mut self, page: u64, write: bool) {
        self.name_next();
        let mut step = self.engine.start(self.task, Access::new(self.object, page, write));
        let touched = loop {
            self.carry_out();
            self.name_next();
            step = match step {
                Step::Done(Served::Hit(touched) | Served::Minor(touched) | Served::Major(touched)) => {
                    break touched;
                }
                Step::Done(served) => panic!("page {page}: {served:?}"),
                Step::Again | Step::Wait(Wait::Io(_)) => self.engine.resume(self.task),
                Step::Wait(wait) => panic!("{wait:?}"),
            };
        };
        let Touched::Frame(pfn) = touched else { panic!("page {page} is {touched:?}") };
        if write {
            self.fill(pfn, page);
        } else {
            // A page that is stored as zeroes comes back as such.
            let found = self.value(pfn);
            assert!(found == page || found == 0 && word_of(page) == Some(0), "{found} is in page {page}");
        }
    }

    fn write(&mut self, path: &str, value: &str) {
        let step = self.engine.write_file(self.task, path, value).unwrap();
        assert!(matches!(step, Step::Done(_)), "{step:?}");
    }

    fn stat(&mut self, name: &str) -> u64 {
        let text = self.engine.read_file("/sys/fs/cgroup/job/memory.stat").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
    }
}

#[test]
fn host_finds_each_page_where_the_engine_says() {
    for profile in ["mglru@6.12", "classic@6.12", "classic@6.8", "mglru@next"] {
        let mut heap = Heap::new(profile, 900, |config| config);
        heap.write("/sys/fs/cgroup/job/memory.max", &(500 * 4096).to_string());
        // The pages are numbered from 1, so that none is taken for a new one.
        (1..900).for_each(|page| heap.access(page, true));
        for round in 0..3 {
            for page in (1..900).map(|at| at * (7 + round) % 899 + 1) {
                heap.access(page, page % 3 == 0);
            }
            heap.engine.check_invariants();
        }
        assert!(heap.stored > 1000, "{profile}: {} stores", heap.stored);
        // Bytes and pages of the pool are those that the host has told, charged although no other kernel memory is.
        let pool = heap.engine.figures().zswap_pool();
        assert_eq!(heap.stat("zswapped"), pool.stored * 4096, "{profile}");
        let bytes = heap.stat("zswap");
        assert!(
            bytes > 0 && bytes <= pool.pages * 4096 && heap.stat("kernel") >= bytes,
            "{profile}: {bytes}"
        );
        assert!(heap.engine.figures().vmstat(Stat::SwpoutZero) > 0, "{profile}");
    }
}

#[test]
fn compacted_pool_keeps_the_bytes_of_its_pages() {
    let mut heap = Heap::new("classic@6.12", 3000, |config| Config {
        node_pages: vec![2000],
        zswap_max_pool_percent: 60,
        ..config
    });
    (1..3000).for_each(|page| heap.access(page, true));
    // Most come back, and leave holes.
    for round in 1..6 {
        for page in (1..3000).filter(|page| page % 6 != round) {
            heap.access(page, false);
        }
    }
    assert!(heap.moves > 100, "{} objects have moved", heap.moves);
    (1..3000).for_each(|page| heap.access(page, false));
    heap.engine.check_invariants();
}

/// A host copies the bytes of a step while others wait for the engine.
#[test]
fn pool_with_many_holes_is_compacted_in_steps() {
    let mut heap = Heap::new("classic@6.12", 6000, |config| Config {
        node_pages: vec![2500],
        zswap_max_pool_percent: 90,
        ..config
    });
    (1..4000).for_each(|page| heap.access(page, true));
    for page in (1..4000).filter(|page| page % 2 == 0) {
        heap.engine.madvise_dontneed(heap.task, heap.object, page..page + 1).unwrap();
        heap.carry_out();
    }
    let before = heap.moves;
    (4000..6000).for_each(|page| heap.access(page, true));
    assert!(heap.moves - before > 300, "{} objects have moved", heap.moves - before);
    assert_eq!(heap.moves_of_step, 64);
    (1..6000).filter(|page| page % 2 == 1).for_each(|page| heap.access(page, false));
    heap.engine.check_invariants();
}

#[test]
fn pages_that_are_stored_next_are_named_before() {
    for profile in ["mglru@6.12", "classic@6.12"] {
        let mut heap = Heap::new(profile, 900, |config| Config { zero_map: false, ..config });
        heap.write("/sys/fs/cgroup/job/memory.max", &(400 * 4096).to_string());
        heap.name_next();
        assert!(heap.named.is_empty(), "nothing was stored yet");
        (1..900).chain((1..900).map(|at| at * 13 % 899 + 1)).for_each(|page| heap.access(page, true));
        let (stored, known) = (heap.stored, heap.known);
        assert!(stored > 500 && known * 3 > stored * 2, "{profile}: {known} of {stored} were named");
        // The first step, and one before which all pages have been used.
        let many = heap.surprises.iter().filter(|&&pages| pages > 32).count();
        assert!(many <= 2, "{profile}: pages of steps that were not named: {:?}", heap.surprises);
        heap.write("/sys/module/zswap/parameters/enabled", "0");
        heap.name_next();
        assert!(heap.named.is_empty(), "it is off");
    }
}

#[test]
fn pool_holds_no_more_pages_than_its_host_has_records_for() {
    let mut heap = Heap::new("mglru@6.12", 900, |config| Config { zswap_pages_max: 100, ..config });
    heap.write("/sys/fs/cgroup/job/memory.max", &(400 * 4096).to_string());
    for page in (1..900).chain(1..900) {
        heap.access(page, true);
        assert!(heap.engine.figures().zswap_pool().stored <= 100);
    }
    let hits = heap.engine.read_file("/sys/kernel/debug/zswap/pool_limit_hit").unwrap();
    assert_ne!(hits.trim(), "0");
    (1..900).for_each(|page| heap.access(page, false));
}
