//! A cache of translations hides accesses from reclaim, until it lets go of them.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::{
    Access, Advice, Config, CpuId, Engine, MemcgId, ObjectId, Served, Stat, Step, SwapKind, SwapSpec, TaskId,
};

struct Machine {
    engine: Engine,
    group: MemcgId,
    task: TaskId,
    memory: ObjectId,
}

impl Machine {
    /// A process with pages 0 to 8 of anonymous memory in memory, and no accessed bit set.
    fn new(tlb_entries: u32) -> Machine {
        let config = Config { tlb_entries, folio_batch: 1, reclaim_batch: 1, ..Config::default() };
        let mut builder = Engine::builder(config).unwrap();
        builder.swap_on(SwapSpec { pages: 64, kind: SwapKind::Synchronous }).unwrap();
        let mut engine = builder.build();
        let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(group);
        let task = engine.task_create(mm, CpuId(0));
        let memory = engine.map_anon(task, 16, Advice::Normal).unwrap();
        let mut machine = Machine { engine, group, task, memory };
        for page in 0..8 {
            machine.access(page, true);
        }
        for page in 0..8 {
            machine.engine.mark_idle(task, memory, page).unwrap();
        }
        machine
    }

    fn access(&mut self, page: u64, write: bool) {
        let step = self.engine.start(self.task, Access::new(self.memory, page, write));
        assert!(matches!(step, Step::Done(Served::Hit(_) | Served::Minor(_))), "{step:?}");
        self.engine.take_ops(&mut Vec::new());
    }

    /// Pages that reclaim looked at to free one.
    fn looks_for_one(&mut self) -> i64 {
        let before = self.engine.figures().vmstat(Stat::PgscanAnon);
        let mut step = self.engine.reclaim(self.task, self.group, 1, None);
        while step == Step::Again {
            self.engine.take_ops(&mut Vec::new());
            step = self.engine.resume(self.task);
        }
        assert_eq!(step, Step::Done(Served::Written { reclaimed: 1 }));
        self.engine.figures().vmstat(Stat::PgscanAnon) - before
    }
}

#[test]
fn an_access_through_a_held_translation_leaves_no_accessed_bit() {
    for (entries, looks) in [(0, 2), (8, 1)] {
        let mut machine = Machine::new(entries);
        // The page at the cold end.
        machine.access(0, false);
        assert_eq!(machine.looks_for_one(), looks, "with {entries} entries");
    }
}

#[test]
fn an_access_shows_again_when_another_page_has_taken_the_translations_place() {
    let mut machine = Machine::new(4);
    // Pages 0 and 4 share a place; 4 came later.
    machine.access(0, false);
    assert_eq!(machine.looks_for_one(), 2);
}
