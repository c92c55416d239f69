//! What a page-table walk costs: `cargo bench -p pageout-sim --bench walk`.
//!
//! A process has 1 M anonymous pages in memory (2048 page tables) under `mglru@6.12`. Between two agings it uses a share of
//! them, side by side or spread evenly. The walk's cost should go with what was used, not with what is mapped: the upper
//! entries' accessed bits and the Bloom filter keep it away from the rest, and from tables of which fewer than one page in
//! eight was used. *Forced* is a walk without either, as a user
//! orders it. Figures are medians of five agings of each kind.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, reason = "a benchmark that can't be set up has nothing better to do")]

use std::time::{Duration, Instant};

use pageout_engine::{
    Access, Advice, Config, CpuId, Engine, MemcgId, NodeId, ObjectId, Policy, Step, Switch, TaskId, Work,
};

const PAGES: u64 = 1 << 20;
const ROUNDS: usize = 5;

struct Bench {
    engine: Engine,
    group: MemcgId,
    task: TaskId,
    memory: ObjectId,
}

impl Bench {
    fn new() -> Bench {
        let mut policy = Policy::of("mglru@6.12");
        // In which `+` may be written without force while the window is full; and a window so wide that an aging doesn't have
        // to move what is in its oldest generation, which is not the walk's cost.
        for (switch, value) in [("lru.interface", "6.16"), ("lru.generations", "64")] {
            assert!(Switch::by_name(switch).unwrap().set(&mut policy, value));
        }
        let config = Config { node_pages: vec![PAGES + (1 << 16)], kmem: false, policy, ..Config::default() };
        let mut engine = Engine::new(config).unwrap();
        let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(group);
        let task = engine.task_create(mm, CpuId(0));
        let memory = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        let mut bench = Bench { engine, group, task, memory };
        for page in 0..PAGES {
            let step = bench.engine.start(task, Access::new(memory, page, true));
            assert!(matches!(step, Step::Done(_)));
            bench.engine.take_ops(&mut Vec::new());
        }
        bench
    }

    fn touch(&mut self, pages: &[u64]) {
        let object = self.memory;
        let access = |page| Access::new(object, page, false);
        assert_eq!(self.engine.run_hits(self.task, pages, access), pages.len());
    }

    fn age(&mut self, is_forced: bool) -> (Duration, Work) {
        let (start, before) = (Instant::now(), *self.engine.work());
        let newest = self.engine.figures().lru_gen(self.group, NodeId(0)).last().unwrap().seq;
        let swappiness = Some(100);
        let step = self.engine.lru_gen_age(self.task, self.group, NodeId(0), newest, swappiness, is_forced);
        let mut step = step.unwrap();
        while !matches!(step, Step::Done(_)) {
            step = self.engine.resume(self.task);
        }
        (start.elapsed(), *self.engine.work() - before)
    }
}

fn main() {
    println!(
        "\n1 M pages mapped     pages used   entries looked at   a page used   us an aging   ns a page used"
    );
    for (name, spacing) in [("side by side", 1), ("every 8th page", 8), ("every 64th page", 64)] {
        for used in [1 << 8, 1 << 11, 1 << 14, 1 << 17, 1 << 20] {
            if used * spacing > PAGES {
                continue;
            }
            let pages: Vec<u64> = (0..used).map(|at| at * spacing).collect();
            row(name, &mut Bench::new(), &pages, false);
        }
    }
    let pages: Vec<u64> = (0..1 << 11).collect();
    row("forced", &mut Bench::new(), &pages, true);
}

fn row(name: &str, bench: &mut Bench, pages: &[u64], is_forced: bool) {
    // One that looks at everything, for the filter to learn where the used pages are; else only eviction would tell it.
    bench.age(true);
    bench.touch(pages);
    bench.age(true);
    let mut rounds: Vec<(Duration, Work)> = (0..ROUNDS)
        .map(|_| {
            bench.touch(pages);
            bench.age(is_forced)
        })
        .collect();
    rounds.sort_by_key(|(time, _)| *time);
    let (time, work) = rounds[ROUNDS / 2];
    let used = pages.len() as f64;
    println!(
        "{name:<20} {used:>10}   {:>17}   {:>11.1}   {:>12.1}   {:>14.1}",
        work.ptes_walked,
        work.ptes_walked as f64 / used,
        time.as_secs_f64() * 1e6,
        time.as_secs_f64() * 1e9 / used,
    );
}
