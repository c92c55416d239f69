//! The speed budgets, each beside what it is a ratio of, interleaved in one run: `cargo bench -p pageout-sim --bench budgets`.
//!
//! `ci/figures/bench.sh` runs it side by side with libCacheSim. Words after `--` select rows by part of their names; `--tsv` runs one
//! round and prints it for a script; `--small` takes an eighth of the pages and other accesses, for tools that slow a program down.
//!
//! Zipf 0.99 over 1 M pages. *Bare walk* is the least that any simulator must do: for each access, read and write one word of
//! a flat table. *Engine* is a batch of hits as a machine makes it; *machine* is the whole simulated machine, clock, devices
//! and all. *Slower node*: there is one, and nothing that promotes or demotes is on. Figures are medians of five rounds with their spread.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark that can't be set up has nothing better to do")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use pageout_engine::{
    ADISTANCE_DAX_KMEM, Access, Advice, Bdi, Config, CpuId, Engine, FileKind, FileSpec, IoId, Layout,
    MemcgId, MemoryType, ObjectId, Op, Policy, Step, TaskId,
};
use pageout_sim::cost::{Channel, Costs};
use pageout_sim::device::DeviceSpec;
use pageout_sim::{Machine, MachineSpec, TaskSpec};
use pageout_workload::{AccessStream, InMemory, Pattern};

const FULL: Size = Size { pages: 1 << 20, accesses: 20_000_000, seed: 1 };
const SMALL: Size = Size { pages: 1 << 17, accesses: 1_500_000, seed: 2 };
const ROUNDS: usize = 5;
const BARE: &str = "bare walk over page words";
const CROWD: &str = "machine, read(2), 64 tasks on 16 CPUs, global reclaim, memory for 30 %";
const TASKS: usize = 64;
const CPUS: u16 = 16;

/// How much is accessed.
#[derive(Clone, Copy)]
struct Size {
    pages: u64,
    accesses: usize,
    seed: u64,
}

/// How a page is reached.
#[derive(Clone, Copy)]
enum By {
    Read,
    Mapping,
}

/// The memory of a machine.
#[derive(Clone, Copy)]
enum Nodes {
    One,
    /// Another is in a lower tier, and free.
    Slower,
}

impl Nodes {
    fn config(self, pages: u64) -> Config {
        let config = Config { node_pages: vec![pages + (1 << 16)], ..Config::default() };
        match self {
            Nodes::One => config,
            Nodes::Slower => Config {
                node_pages: vec![pages + (1 << 16), pages],
                layout: Layout {
                    memory_types: vec![MemoryType::Dram, MemoryType::Adistance(ADISTANCE_DAX_KMEM)],
                    ..Layout::default()
                },
                ..config
            },
        }
    }
}

fn main() {
    let is_given = |option: &str| std::env::args().any(|arg| arg == option);
    let size = if is_given("--small") { SMALL } else { FULL };
    let pages = size.pages;
    let accesses: Arc<[pageout_workload::Access]> = zipf(size).into();
    let mut table: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut record = |name, time: Duration| {
        let rate = size.accesses as f64 / time.as_secs_f64() / 1e6;
        match table.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rates)) => rates.push(rate),
            None => table.push((name, vec![rate])),
        }
    };
    let for_script = is_given("--tsv");
    let rounds = if for_script { 1 } else { ROUNDS };
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    let mut words = vec![1u64; pages as usize];
    let everything = pages + 64;
    let part = pages * 3 / 10;
    let mut resident = [
        ("engine, read(2), all resident", By::Read, Policy::of("classic@6.12"), Nodes::One),
        ("engine, read(2), all resident, slower node", By::Read, Policy::of("classic@6.12"), Nodes::Slower),
        ("engine, mapped, all resident", By::Mapping, Policy::of("classic@6.12"), Nodes::One),
        ("engine, mapped, all resident, slower node", By::Mapping, Policy::of("classic@6.12"), Nodes::Slower),
        ("engine, read(2), all resident, MGLRU", By::Read, Policy::of("mglru@6.12"), Nodes::One),
        (
            "engine, read(2), all resident, MGLRU, slower node",
            By::Read,
            Policy::of("mglru@6.12"),
            Nodes::Slower,
        ),
        ("engine, mapped, all resident, MGLRU", By::Mapping, Policy::of("mglru@6.12"), Nodes::One),
        (
            "engine, mapped, all resident, MGLRU, slower node",
            By::Mapping,
            Policy::of("mglru@6.12"),
            Nodes::Slower,
        ),
    ]
    .map(|(name, by, policy, nodes)| (name, Bench::new(by, pages, everything, policy, nodes)));
    for (name, bench) in &mut resident {
        if is_wanted(name) {
            bench.run(&accesses);
            bench.run(&accesses);
        }
    }
    for _ in 0..rounds {
        record(BARE, timed(|| bare_walk(&mut words, &accesses)));
        for (name, bench) in &mut resident {
            if is_wanted(name) {
                record(name, timed(|| bench.run(&accesses)));
            }
        }
        for (name, by, policy) in [
            ("engine, read(2), memory for 30 %", By::Read, Policy::of("classic@6.12")),
            ("engine, mapped, memory for 30 %", By::Mapping, Policy::of("classic@6.12")),
            ("engine, read(2), memory for 30 %, MGLRU", By::Read, Policy::of("mglru@6.12")),
            ("engine, mapped, memory for 30 %, MGLRU", By::Mapping, Policy::of("mglru@6.12")),
            ("engine, read(2), memory for 30 %, LRU", By::Read, Policy::of("lru")),
            ("engine, read(2), memory for 30 %, SIEVE", By::Read, Policy::of("sieve")),
            ("engine, mapped, memory for 30 %, SIEVE", By::Mapping, Policy::of("sieve")),
        ] {
            if is_wanted(name) {
                let mut bench = Bench::new(by, pages, part, policy, Nodes::One);
                record(name, timed(|| bench.run(&accesses)));
            }
        }
        // Nobody has a limit: kswapd and 64 tasks share 16 CPUs, and the machine is what is short.
        if is_wanted(CROWD) {
            let mut machine = crowd(pages, part, &accesses);
            record(CROWD, timed(|| _ = machine.run(&mut ()).unwrap()));
        }
        for (name, by, limit) in [
            ("machine, read(2), all resident, cold start", By::Read, everything),
            ("machine, read(2), memory for 30 %", By::Read, part),
            ("machine, mapped, memory for 30 %", By::Mapping, part),
        ] {
            if is_wanted(name) {
                let mut machine = machine(by, pages, limit, &accesses);
                record(name, timed(|| _ = machine.run(&mut ()).unwrap()));
            }
        }
    }
    table.iter_mut().for_each(|(_, rates)| rates.sort_by(f64::total_cmp));
    if for_script {
        table.iter().for_each(|(name, rates)| println!("{name}\t{}", rates[0]));
        return;
    }
    println!("\nM accesses/s, median of {ROUNDS} (least to largest), and time relative to the bare walk");
    let bare = table[0].1[ROUNDS / 2];
    for (name, rates) in &table {
        let (least, median, largest) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        println!("{name:<72} {median:>7.1}  ({least:.1} to {largest:.1})  {:.2}x", bare / median);
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn zipf(size: Size) -> Vec<pageout_workload::Access> {
    let pattern: Pattern = serde_json::from_value(
        serde_json::json!({ "pattern": "zipf", "pages": size.pages, "ops": size.accesses, "alpha": 0.99 }),
    )
    .unwrap();
    let mut stream = pattern.stream(0, size.seed).unwrap();
    let mut accesses = Vec::with_capacity(size.accesses);
    while stream.fill(&mut accesses, 1 << 16).unwrap() > 0 {}
    accesses
}

#[inline(never)]
fn bare_walk(words: &mut [u64], accesses: &[pageout_workload::Access]) {
    for access in accesses {
        words[access.page() as usize] |= 2;
    }
    std::hint::black_box(words);
}

fn decode(access: pageout_workload::Access) -> Access {
    Access::new(ObjectId(access.object()), access.page(), access.is_write())
}

fn build(by: By, pages: u64, limit: u64, policy: Policy, nodes: Nodes) -> (Engine, TaskId) {
    let config = Config { kmem: false, policy, ..nodes.config(pages) };
    let mut engine = Engine::new(config).unwrap();
    let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    let mm = engine.process_create(group);
    let task = engine.task_create(mm, CpuId(0));
    let file = engine
        .file_create(FileSpec {
            name: "data".to_string(),
            pages,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        })
        .unwrap();
    match by {
        By::Read => engine.open(task, file).unwrap(),
        By::Mapping => engine.map_file(task, file, Advice::Normal, false).unwrap(),
    };
    let _ = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &(limit * 4096).to_string()).unwrap();
    (engine, task)
}

/// The engine with the least machine: reads complete at once.
struct Bench {
    engine: Engine,
    task: TaskId,
    ops: Vec<Op>,
    reads: Vec<IoId>,
    woken: Vec<TaskId>,
}

impl Bench {
    fn new(by: By, pages: u64, limit: u64, policy: Policy, nodes: Nodes) -> Bench {
        let (engine, task) = build(by, pages, limit, policy, nodes);
        Bench { engine, task, ops: Vec::new(), reads: Vec::new(), woken: Vec::new() }
    }

    fn run(&mut self, accesses: &[pageout_workload::Access]) {
        let mut done = 0;
        while done < accesses.len() {
            done += self.engine.run_hits(self.task, &accesses[done..], decode);
            if let Some(&access) = accesses.get(done) {
                let mut step = self.engine.start(self.task, decode(access));
                while !matches!(step, Step::Done(_)) {
                    self.carry_out();
                    step = self.engine.resume(self.task);
                }
                self.carry_out();
                done += 1;
            }
        }
    }

    fn carry_out(&mut self) {
        self.engine.take_ops(&mut self.ops);
        for op in self.ops.drain(..) {
            if let Op::ReadFile { io, .. } = op {
                self.reads.push(io);
            }
        }
        for io in self.reads.drain(..) {
            self.engine.io_done(io, CpuId(0), Ok(()));
        }
        self.engine.take_woken(&mut self.woken);
        self.woken.clear();
    }
}

fn machine(by: By, pages: u64, limit: u64, accesses: &Arc<[pageout_workload::Access]>) -> Machine {
    let (engine, task) = build(by, pages, limit, Policy::of("classic@6.12"), Nodes::One);
    let spec = MachineSpec {
        costs: Costs::xeon_vm(),
        devices: vec![DeviceSpec::preset("nvme").expect("it is a preset")],
        files: vec![(pageout_engine::FileId(0), 0)],
        ..MachineSpec::default()
    };
    let mut machine = Machine::new(engine, spec).unwrap();
    let accesses = accesses.clone();
    let source = Box::new(move |_| Ok(Box::new(InMemory::new(accesses.clone())) as Box<dyn AccessStream>));
    let channel = match by {
        By::Read => Channel::File,
        By::Mapping => Channel::Mapped,
    };
    machine.task_add(TaskSpec::new(task, "zipf", "/job", vec![channel], source)).unwrap();
    machine
}

/// A machine of so many pages on which tasks read one file, each its part of the accesses.
fn crowd(pages: u64, memory: u64, accesses: &[pageout_workload::Access]) -> Machine {
    let config = Config { node_pages: vec![memory], cpus: CPUS, ..Config::default() };
    let mut engine = Engine::new(config).unwrap();
    let spec = FileSpec { name: "data".to_string(), pages, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    let file = engine.file_create(spec).unwrap();
    let mut tasks = Vec::new();
    for index in 0..TASKS {
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(index as u16 % CPUS));
        engine.open(task, file).unwrap();
        tasks.push(task);
    }
    let spec = MachineSpec {
        devices: vec![DeviceSpec::preset("nvme").expect("it is a preset")],
        files: vec![(file, 0)],
        ..MachineSpec::default()
    };
    let mut machine = Machine::new(engine, spec).unwrap();
    for (index, (task, part)) in tasks.into_iter().zip(accesses.chunks(accesses.len() / TASKS)).enumerate() {
        let part: Arc<[pageout_workload::Access]> = part.into();
        let source = Box::new(move |_| Ok(Box::new(InMemory::new(part.clone())) as Box<dyn AccessStream>));
        let mut spec = TaskSpec::new(task, &format!("reader.{index}"), "/", vec![Channel::File], source);
        spec.cpu = CpuId(index as u16 % CPUS);
        machine.task_add(spec).unwrap();
    }
    machine
}
