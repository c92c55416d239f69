//! The fast path beside the slow one: a run of hits leaves behind what the same accesses one by one do.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::*;
use proptest::prelude::*;

const PAGES: u64 = 40;

struct Machine {
    engine: Engine,
    task: TaskId,
    /// Pages that left the page cache, in order, and accesses that were no hits.
    trace: Vec<(u64, u64)>,
}

impl Machine {
    /// A task with an open and a mapped regular file, the same of tmpfs, and a heap, in a group with room for half of it all.
    fn new(policy: Policy, batch: usize) -> Machine {
        let config = Config {
            policy,
            folio_batch: batch,
            charge_stock: 1,
            stat_flush: StatFlush::Live,
            ..Config::default()
        };
        let mut builder = Engine::builder(config).unwrap();
        builder.swap_on(SwapSpec { pages: 1000, kind: SwapKind::Synchronous }).unwrap();
        let mut engine = builder.build();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        for kind in [FileKind::Regular, FileKind::Tmpfs] {
            let file = engine
                .file_create(FileSpec {
                    name: format!("{kind:?}"),
                    pages: PAGES,
                    kind,
                    bdi: Bdi::NO_READAHEAD,
                })
                .unwrap();
            engine.open(task, file).unwrap();
            engine.map_file(task, file, Advice::Normal, false).unwrap();
        }
        engine.map_anon(task, PAGES, Advice::Normal).unwrap();
        let limit = (3 * PAGES / 2 * PAGE_SIZE).to_string();
        assert!(engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &limit).is_ok());
        engine.record_page_cache_events();
        engine.start_kernel_threads();
        Machine { engine, task, trace: Vec::new() }
    }

    fn carry_out(&mut self) {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        for op in ops {
            if let Op::ReadFile { io, .. } | Op::WriteFile { io, .. } = op {
                self.engine.io_done(io, CpuId(0), Ok(()));
            }
        }
    }

    /// Lets the threads go on that have been woken.
    fn run_threads(&mut self) {
        let mut woken = Vec::new();
        self.engine.take_woken(&mut woken);
        woken.retain(|&thread| thread != self.task);
        for thread in woken {
            while self.engine.resume(thread) == Step::Again {
                self.carry_out();
            }
            self.carry_out();
        }
    }

    /// Serves one access to its end.
    fn serve(&mut self, at: usize, access: Access) {
        let mut step = self.engine.start(self.task, access);
        loop {
            self.carry_out();
            self.run_threads();
            match step {
                Step::Done(Served::Hit(_)) => break,
                Step::Done(_) => {
                    self.trace.push((u64::MAX, at as u64));
                    break;
                }
                Step::Again | Step::Wait(_) => step = self.engine.resume(self.task),
            }
        }
        let mut events = Vec::new();
        self.engine.take_page_cache_events(&mut events);
        self.trace.extend(
            events.iter().filter(|event| event.removed).map(|event| (event.file.0.into(), event.page)),
        );
    }
}

fn accesses() -> impl Strategy<Value = Vec<Access>> {
    let object =
        prop_oneof![(0..5u32).prop_map(|object| (object, 1)), (0..5u32).prop_map(|object| (object, 6))];
    let run = (object, 0..PAGES + 1, any::<bool>()).prop_map(|((object, len), page, write)| {
        let pages = page..page + len;
        pages.map(move |page| Access::new(ObjectId(object), page, write)).collect::<Vec<_>>()
    });
    prop::collection::vec(run, 1..200).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_of_hits_leaves_behind_what_single_accesses_do(
        accesses in accesses(),
        profile in prop::sample::select(PROFILES),
        batch in prop_oneof![Just(1usize), Just(4), Just(31)],
    ) {
        let policy = profile.policy();
        let (mut slow, mut fast) = (Machine::new(policy, batch), Machine::new(policy, batch));
        for (at, &access) in accesses.iter().enumerate() {
            slow.serve(at, access);
        }
        let mut at = 0;
        while at < accesses.len() {
            at += fast.engine.run_hits(fast.task, &accesses[at..], |access| access);
            if let Some(&access) = accesses.get(at) {
                fast.serve(at, access);
                at += 1;
            }
        }
        prop_assert_eq!(slow.trace, fast.trace);
        let texts = [slow.engine, fast.engine].map(|mut engine| engine.read_file("/proc/vmstat").unwrap());
        prop_assert_eq!(&texts[0], &texts[1]);
    }
}
