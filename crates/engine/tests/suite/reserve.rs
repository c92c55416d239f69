//! A zone's reserve, seen from outside after every call: below its min mark, only who may use the reserve gets a page.
//!
//! A refill of a CPU's list takes many pages at once. It may begin above the mark and end below it. Then its pages are on that list, and
//! only who may use the reserve gets one of them. So what is free and what CPUs hold are together never below the mark, and free pages
//! alone are below it by a refill at most.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::*;

const PAGES: u64 = 20_000;
const ANON_PAGES: u64 = 6_000;
const FILE_PAGES: u64 = 30_000;
const USERS: usize = 4;
const CALLS: u64 = 120_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Runnable,
    /// For a wake, or until a time if there is one.
    Waiting(Option<Nanos>),
}

/// Users that have more than there is memory, and kernel threads, each of which goes on when chance says so.
struct Machine {
    engine: Engine,
    states: Vec<State>,
    in_flight: Vec<IoId>,
    now: Nanos,
    seed: u64,
    /// The least that was free and held by CPUs together, beyond the min mark.
    least: i64,
    /// The most that free pages were below the mark, as a share of what a refill takes at most, in percent.
    deepest_refill: i64,
}

impl Machine {
    fn new() -> Machine {
        let mut builder =
            Engine::builder(Config { node_pages: vec![PAGES], cpus: 2, ..Config::default() }).unwrap();
        builder.swap_on(SwapSpec { pages: 40_000, kind: SwapKind::Device }).unwrap();
        let mut engine = builder.build();
        let bdi = Bdi::default();
        let spec = FileSpec { name: "data".to_owned(), pages: FILE_PAGES, kind: FileKind::Regular, bdi };
        let file = engine.file_create(spec).unwrap();
        for user in 0..USERS {
            let mm = engine.process_create(MemcgId::ROOT);
            let task = engine.task_create(mm, CpuId(user as u16 % 2));
            engine.map_anon(task, ANON_PAGES, Advice::Normal).unwrap();
            engine.open(task, file).unwrap();
        }
        let mut machine = Machine {
            engine,
            states: vec![State::Idle; USERS],
            in_flight: Vec::new(),
            now: Nanos::ZERO,
            seed: 0,
            least: i64::MAX,
            deepest_refill: 0,
        };
        for thread in machine.engine.start_kernel_threads() {
            assert_eq!(thread.task, TaskId(machine.states.len() as u32));
            machine.states.push(State::Idle);
            machine.advanced(thread.task, Step::Wait(thread.wait));
        }
        machine
    }

    fn draw(&mut self, sides: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % sides
    }

    fn advanced(&mut self, task: TaskId, step: Step) {
        self.states[task.0 as usize] = match step {
            Step::Done(served) => {
                assert!(!matches!(served, Served::Failed(_)), "{served:?}");
                State::Idle
            }
            Step::Again => State::Runnable,
            Step::Wait(Wait::Io(_) | Wait::Woken) => State::Waiting(None),
            Step::Wait(Wait::Delay(span, _) | Wait::WokenOr(span, _)) => {
                State::Waiting(Some(self.now + span))
            }
        };
        self.settle();
    }

    fn settle(&mut self) {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        self.in_flight.extend(ops.into_iter().filter_map(|op| match op {
            Op::ReadFile { io, .. }
            | Op::WriteFile { io, .. }
            | Op::ReadSwap { io, .. }
            | Op::WriteSwap { io, .. } => Some(io),
            _ => None,
        }));
        let mut woken = Vec::new();
        self.engine.take_woken(&mut woken);
        woken.into_iter().for_each(|task| self.states[task.0 as usize] = State::Runnable);
        let mut kills = Vec::new();
        self.engine.take_oom_kills(&mut kills);
        assert!(kills.is_empty(), "there is swap for all");
        let zone = self.engine.figures().zones().next().unwrap();
        let min = (zone.min - zone.boost) as i64;
        let held: u32 = zone.pagesets.iter().map(|pageset| pageset.count).sum();
        self.least = self.least.min(zone.free as i64 + i64::from(held) - min);
        let PagesetInfo { batch, high_max, .. } = zone.pagesets[0];
        let refill = (batch << 5).min(high_max);
        let below = min - zone.free as i64;
        self.deepest_refill = self.deepest_refill.max(below * 100 / i64::from(refill));
    }

    fn complete(&mut self) {
        let which = self.draw(self.in_flight.len() as u64) as usize;
        let io = self.in_flight.swap_remove(which);
        self.engine.io_done(io, CpuId(0), Ok(()));
        self.settle();
    }

    fn go_on(&mut self, task: usize) {
        let id = TaskId(task as u32);
        let step = match self.states[task] {
            State::Idle => {
                let is_anon = self.draw(3) > 0;
                let (object, pages) = if is_anon { (0, ANON_PAGES) } else { (1, FILE_PAGES) };
                let page = self.draw(pages);
                self.engine.start(id, Access::new(ObjectId(object), page, is_anon))
            }
            State::Runnable => self.engine.resume(id),
            State::Waiting(Some(until)) => {
                self.now = self.now.max(until);
                self.engine.set_now(self.now);
                self.engine.resume(id)
            }
            State::Waiting(None) => return,
        };
        self.advanced(id, step);
    }

    fn run() -> Machine {
        let mut machine = Machine::new();
        for _ in 0..CALLS {
            let task = machine.draw(machine.states.len() as u64) as usize;
            // Kernel threads are slow, so that tasks come down to the mark.
            if task >= USERS && machine.draw(20) > 0 {
                continue;
            }
            let is_asleep = matches!(machine.states[task], State::Waiting(_));
            if machine.in_flight.len() > 64 || is_asleep && !machine.in_flight.is_empty() {
                machine.complete();
            } else {
                machine.go_on(task);
            }
        }
        machine
    }
}

#[test]
fn only_a_refill_takes_free_pages_below_the_min_mark_and_nobody_takes_what_it_holds() {
    let machine = Machine::run();
    assert!(machine.least >= 0, "{} pages of the reserve are gone", -machine.least);
    assert!((1..=100).contains(&machine.deepest_refill), "{} % of a refill", machine.deepest_refill);
    // The min mark had nothing more to give: so nobody stood back before.
    assert!(
        machine.engine.figures().vmstat(Stat::AllocstallMovable) > 0,
        "tasks had to reclaim for themselves"
    );
}
