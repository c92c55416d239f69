//! Swap writes wait in the plug of the reclaimer that has begun them.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use std::collections::BTreeSet;

use pageout_engine::{
    Access, Advice, Config, CpuId, Engine, MemcgId, Op, Pfn, Served, Stat, Step, SwapKind, SwapSpec, TaskId,
};

const PAGES: u64 = 1024;

/// A group with a heap that hasn't been used since it was written, and its task.
struct Group {
    memcg: MemcgId,
    task: TaskId,
    frames: BTreeSet<Pfn>,
}

impl Group {
    fn new(engine: &mut Engine, name: &str) -> Group {
        let memcg = engine.memcg_create(MemcgId::ROOT, name).unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let object = engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        let mut frames = BTreeSet::new();
        let mut ops = Vec::new();
        for page in 0..PAGES {
            let step = engine.start(task, Access::new(object, page, true));
            assert!(matches!(step, Step::Done(Served::Minor(_))), "{step:?}");
            engine.mark_idle(task, object, page).unwrap();
            engine.take_ops(&mut ops);
            for op in ops.drain(..) {
                let Op::Zero { pfn, .. } = op else { panic!("a first touch asks for {op:?}") };
                frames.insert(pfn);
            }
        }
        Group { memcg, task, frames }
    }
}

/// The frames that the engine wants written by now.
fn written(engine: &mut Engine) -> BTreeSet<Pfn> {
    let mut ops = Vec::new();
    engine.take_ops(&mut ops);
    let frames = ops.into_iter().filter_map(|op| match op {
        Op::WriteSwap { pfn, .. } => Some(pfn),
        _ => None,
    });
    frames.collect()
}

#[test]
fn the_end_of_a_pass_submits_no_writes_of_a_reclaimer_that_is_in_the_middle_of_its_own() {
    let mut builder = Engine::builder(Config::default()).unwrap();
    builder.swap_on(SwapSpec { pages: 4 * PAGES, kind: SwapKind::Device }).unwrap();
    let mut engine = builder.build();
    let [first, second] = ["first", "second"].map(|name| Group::new(&mut engine, name));

    let mut step = engine.reclaim(first.task, first.memcg, PAGES, None);
    while engine.figures().vmstat(Stat::NrWriteback) == 0 {
        assert_eq!(step, Step::Again);
        assert!(written(&mut engine).is_empty());
        step = engine.resume(first.task);
    }
    assert_eq!(step, Step::Again, "the first reclaimer is in the middle of a pass");
    assert!(written(&mut engine).is_empty(), "what it has begun to write is held back");
    let held = engine.figures().vmstat(Stat::NrWriteback);

    step = engine.reclaim(second.task, second.memcg, PAGES, None);
    let of_second = loop {
        assert_eq!(step, Step::Again);
        let frames = written(&mut engine);
        if !frames.is_empty() {
            break frames;
        }
        step = engine.resume(second.task);
    };
    assert!(of_second.is_subset(&second.frames));

    let mut of_first = BTreeSet::new();
    while of_first.is_empty() {
        assert_eq!(engine.resume(first.task), Step::Again);
        of_first = written(&mut engine);
    }
    assert!(of_first.is_subset(&first.frames));
    assert!(of_first.len() as i64 >= held);
}
