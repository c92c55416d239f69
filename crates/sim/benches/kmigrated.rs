//! What a round of kmigrated costs on a node of 1 TiB: `cargo bench -p pageout-sim --bench kmigrated`.
//!
//! 2 GiB of the node are in use, 16 sections of 128 MiB. A page of each of some sections is hot, and can't go: the fast node has no room for
//! it, so each round finds it again. What a round takes should go with how many sections are hot, not with how large the node is. `all` is
//! the walk of the third posting, which comes by every page of the node whenever anything is hot. Figures are medians.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark that can't be set up has nothing better to do")]

use std::time::Instant;

use pageout_engine::{
    ADISTANCE_DAX_KMEM, Access, Advice, Config, CpuId, Engine, Layout, MemcgId, MemoryType, Nanos, NodeId,
    Parameter, Pfn, Served, Step, TaskId, Touched,
};

/// Pages of the fast node, which are all taken; of 1 TiB; of what is in use there; and of a section.
const FAST: u64 = 1 << 14;
const SLOW: u64 = 1 << 28;
const IN_USE: u64 = 1 << 19;
const SECTION: u64 = 1 << 15;
const ROUNDS: u64 = 15;

struct Bench {
    engine: Engine,
    kmigrated: TaskId,
    /// Frames in use on the slow node, in the order in which they were touched.
    frames: Vec<Pfn>,
}

impl Bench {
    fn new(walk: &str) -> Bench {
        let layout = Layout {
            memory_types: vec![MemoryType::Dram, MemoryType::Adistance(ADISTANCE_DAX_KMEM)],
            ..Layout::default()
        };
        let mut config = Config { node_pages: vec![FAST, SLOW], kmem: false, layout, ..Config::default() };
        let set = [
            ("vm.pghot_record_hwhints_enable", "1"),
            ("vm.pghot_freq_threshold", "1"),
            ("pghot.walk", walk),
            ("pghot.refused", "requeue"),
        ];
        for (name, value) in set {
            assert!(Parameter::by_name(name).unwrap().set(&mut config, value));
        }
        let mut engine = Engine::new(config).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let memory = engine.map_anon(task, FAST + IN_USE, Advice::Normal).unwrap();
        let mut frames = Vec::new();
        for page in 0..FAST + IN_USE {
            let step = engine.start(task, Access::new(memory, page, true));
            engine.take_ops(&mut Vec::new());
            let Step::Done(Served::Minor(Touched::Frame(pfn))) = step else { panic!("{step:?}") };
            if engine.node_of(pfn) == NodeId(1) {
                frames.push(pfn);
            }
        }
        let threads = engine.start_kernel_threads();
        let kmigrated = threads.iter().find(|thread| thread.name == "kmigrated1").unwrap().task;
        Bench { engine, kmigrated, frames }
    }

    /// A round with a hot page in each of so many sections: microseconds, and records that it came by.
    fn round(&mut self, number: u64, hot: u64) -> (f64, u64) {
        self.engine.set_now(Nanos(number * 100_000_000));
        for section in 0..hot {
            let pfn = self.frames[(section * SECTION) as usize];
            self.engine.hardware_hinted(pfn, Some(NodeId(0)), 1);
        }
        let (start, before) = (Instant::now(), self.engine.work().hotness_walked);
        while self.engine.resume(self.kmigrated) == Step::Again {}
        let took = start.elapsed().as_secs_f64() * 1e6;
        self.engine.take_ops(&mut Vec::new());
        self.engine.take_woken(&mut Vec::new());
        (took, self.engine.work().hotness_walked - before)
    }
}

fn main() {
    println!("\n1 TiB, 2 GiB in use   hot sections   records come by   us a round");
    for walk in ["blocks", "sections", "all"] {
        let mut bench = Bench::new(walk);
        for (turn, hot) in (0..).zip([0, 1, 4, 15]) {
            let mut rounds: Vec<(f64, u64)> =
                (1..=ROUNDS).map(|round| bench.round(turn * 2 * ROUNDS + round, hot)).collect();
            rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (took, records) = rounds[rounds.len() / 2];
            println!("{walk:<20} {hot:>14}   {records:>15}   {took:>10.1}");
        }
    }
}
