//! A machine that holds bytes: frames, swap slots, devices and tasks, single-threaded and as adversarial as it may be.
//!
//! ```text
//!   action ─► engine call ─► operations, carried out at once ─► step
//!                                 │ reads and writes                │ done: the access touches the frame that its page is in
//!                                 ▼                                 ▼
//!                            transfers in flight                  model: what must be there
//! ```
//! *Adversarial* means: transfers end in any order. A write leaves in its slot what the frame held at the start or at the end, as
//! the run says. A failed transfer leaves garbage at its target. A freed frame or slot holds garbage at once. So whatever is
//! freed, reused or forgotten too early shows as a wrong value: at once, or at the end of the run, when every page is read back.
//! [`Checks::All`] adds what a machine may expect of the operations themselves.

use super::actions::{Action, Kind, PAGES, Setup, TASKS};
use super::model::{Model, Page, file_contents};
use super::mutant::Mutant;
use crate::lru::Switching;
use crate::memory::folio::FolioFlags;
use crate::*;
use std::collections::{BTreeMap, BTreeSet};

/// What freed and never used memory holds.
const GARBAGE: u64 = 0xdead_beef_dead_beef;

/// What is checked while a run goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Checks {
    /// Contents only.
    Contents,
    /// Contents, the order of operations, failures, and the engine's own invariants after every action.
    All,
}

/// Where a transfer's data is outside memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    File(FileId, u64),
    Slot(SwapId, u32),
}

#[derive(Clone, Debug)]
struct Transfer {
    io: IoId,
    medium: Medium,
    frames: Vec<Pfn>,
    is_write: bool,
    /// Nobody's access depends on it.
    is_readahead: bool,
    /// What the frame held when a write started.
    at_start: u64,
}

impl Transfer {
    /// Both are of the same slot, or of the same block while one of them writes it.
    fn overlaps(&self, other: &Transfer) -> bool {
        match (self.medium, other.medium) {
            (Medium::File(file, page), Medium::File(of, at)) if self.is_write || other.is_write => {
                let ends = [page + self.frames.len() as u64, at + other.frames.len() as u64];
                file == of && page < ends[1] && at < ends[0]
            }
            (Medium::Slot(..), Medium::Slot(..)) => self.medium == other.medium,
            _ => false,
        }
    }
}

/// What a task is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Access(Kind, Access),
    Reclaim,
    Exec,
    Fsync,
    /// It is a kernel thread.
    Thread,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Runnable(Doing),
    Sleeping(Doing),
    /// Waits for another task's wake, or until a time if there is one.
    Waiting(Doing, Option<Nanos>),
    /// The page was gone again when the access had been made: to be started anew, as a faulting instruction is.
    Repeat(Doing),
}

struct Task {
    state: State,
    objects: BTreeMap<usize, ObjectId>,
    /// A read that it waited for has failed.
    must_fail: bool,
}

impl Task {
    fn new(state: State) -> Task {
        Task { state, objects: BTreeMap::new(), must_fail: false }
    }

    /// Whether nothing is left to do for a user.
    fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Idle | State::Waiting(Doing::Thread, _))
    }
}

/// The machine.
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    checks: Checks,
    advice: Advice,
    /// Pages that a read of a file brings in at most.
    pages_a_read: u64,
    frames: BTreeMap<Pfn, u64>,
    slots: BTreeMap<(SwapId, u32), u64>,
    /// Pages of files on their device, as far as they were written.
    blocks: BTreeMap<(FileId, u64), u64>,
    transfers: Vec<Transfer>,
    tasks: Vec<Task>,
    /// Writes limits while others are busy.
    administrator: TaskId,
    groups: [String; 2],
    regular: FileId,
    tmpfs: FileId,
    model: Model,
    next_value: u64,
    now: Nanos,
    /// `memory.high` was used: a page can leave memory between the end of an access and the return from it.
    high_used: bool,
    /// All of its pages fit into memory, so that only groups are ever short of it.
    has_room: bool,
    /// Pages that the engine's events say are in page caches.
    cached: BTreeSet<(FileId, u64)>,
    ops: Vec<Op>,
}

impl Machine {
    pub(crate) fn new(setup: &Setup, mutant: Option<Mutant>, checks: Checks) -> Machine {
        let mut engine = Engine::new(Config {
            node_pages: vec![setup.memory],
            cpus: setup.cpus,
            swappiness: setup.swappiness,
            folio_batch: setup.folio_batch,
            charge_stock: setup.charge_stock,
            reclaim_batch: setup.reclaim_batch,
            plug_requests: setup.plug_requests,
            writes_won: setup.writes_won,
            stat_flush: if setup.live_stats { StatFlush::Live } else { StatFlush::Periodic },
            kmem: setup.kmem,
            policy: setup.policy,
            ..Config::default()
        })
        .unwrap();
        engine.core.mutant = mutant;
        engine.record_page_cache_events();
        for &spec in &setup.swap {
            let swap = engine.swap_on(spec).unwrap();
            if spec.kind == SwapKind::Synchronous {
                engine.zram_limit(swap, setup.zram_limit).unwrap();
            }
        }
        let file = |engine: &mut Engine, name: &str, kind| {
            engine
                .file_create(FileSpec { name: name.to_owned(), pages: PAGES, kind, bdi: setup.bdi })
                .unwrap()
        };
        let regular = file(&mut engine, "data", FileKind::Regular);
        let tmpfs = file(&mut engine, "shm", FileKind::Tmpfs);
        let first = engine.memcg_create(MemcgId::ROOT, "a").unwrap();
        let parent = if setup.nested { first } else { MemcgId::ROOT };
        let second = engine.memcg_create(parent, "b").unwrap();
        let mms = [engine.process_create(first), engine.process_create(second)];
        let groups = [first, second].map(|memcg| {
            let (_, path) = engine.memcgs().find(|(id, _)| *id == memcg).unwrap();
            format!("/sys/fs/cgroup{path}")
        });
        let mut machine = Machine {
            engine,
            checks,
            advice: setup.advice,
            pages_a_read: u64::from(setup.bdi.ra_pages.max(setup.bdi.io_pages).max(1)),
            frames: BTreeMap::new(),
            slots: BTreeMap::new(),
            blocks: BTreeMap::new(),
            transfers: Vec::new(),
            tasks: Vec::new(),
            administrator: TaskId(TASKS as u32),
            groups,
            regular,
            tmpfs,
            model: Model::default(),
            next_value: 0,
            now: Nanos::ZERO,
            high_used: false,
            has_room: setup.memory >= 4096,
            cached: BTreeSet::new(),
            ops: Vec::new(),
        };
        for at in 0..TASKS {
            let task = machine.engine.task_create(mms[at / 2], CpuId(at as u16 % setup.cpus));
            machine.tasks.push(Task::new(State::Idle));
            for kind in Kind::ALL {
                machine.make_object(task, kind);
            }
        }
        machine.engine.task_create(mms[0], CpuId(0));
        machine.tasks.push(Task::new(State::Idle));
        for thread in machine.engine.start_kernel_threads() {
            assert_eq!(thread.task.index(), machine.tasks.len());
            machine.tasks.push(Task::new(State::Idle));
            machine.advanced(thread.task, Doing::Thread, Step::Wait(thread.wait), false);
        }
        for group in 0..2 {
            machine.write(TaskId(0), group, "memory.max", setup.limits[group]);
        }
        machine
    }

    fn make_object(&mut self, task: TaskId, kind: Kind) {
        let (regular, tmpfs, advice) = (self.regular, self.tmpfs, self.advice);
        let object = match kind {
            Kind::OpenRegular => self.engine.open(task, regular),
            Kind::OpenTmpfs => self.engine.open(task, tmpfs),
            Kind::MappedRegular => self.engine.map_file(task, regular, advice, task.0 == 0),
            Kind::MappedTmpfs => self.engine.map_file(task, tmpfs, advice, false),
            Kind::Anon => self.engine.map_anon(task, PAGES, advice),
        };
        self.tasks[task.index()].objects.insert(kind as usize, object.unwrap());
    }

    fn object(&self, task: TaskId, kind: Kind) -> ObjectId {
        self.tasks[task.index()].objects[&(kind as usize)]
    }

    fn page(&self, task: TaskId, kind: Kind, page: u64) -> Page {
        match kind {
            Kind::OpenRegular | Kind::MappedRegular => Page::Regular(self.regular, page),
            Kind::OpenTmpfs | Kind::MappedTmpfs => Page::Tmpfs(self.tmpfs, page),
            Kind::Anon => Page::Anon(task, self.object(task, Kind::Anon), page),
        }
    }

    /// Lets an action happen.
    pub(crate) fn perform(&mut self, action: Action) {
        match action {
            Action::Access { task, kind, page, write, wanted, patience } => {
                self.help(TaskId(task as u32), patience);
                if let Some(task) = self.idle(task) {
                    let access = Access::new(self.object(task, kind), page, write);
                    let access = Access { wanted: wanted * PAGE_SIZE as u32, ..access };
                    self.start(task, Doing::Access(kind, access));
                }
            }
            Action::Run { task, kinds, page, count, write } => {
                if let Some(task) = self.idle(task) {
                    self.run(task, kinds, page..(page + count).min(PAGES), write);
                }
            }
            Action::Resume { which, steps } => {
                let runnable: Vec<usize> =
                    (0..self.tasks.len()).filter(|&task| self.can_go_on(task)).collect();
                if let Some(&task) = runnable.get(which % runnable.len().max(1)) {
                    for _ in 0..steps {
                        if self.can_go_on(task) {
                            self.resume(TaskId(task as u32));
                        }
                    }
                }
            }
            Action::Complete { which, fails, early } => {
                if !self.transfers.is_empty() {
                    self.complete(which % self.transfers.len(), fails, early);
                }
            }
            Action::MadviseFree { task, page } => {
                if let Some(task) = self.idle(task) {
                    let object = self.object(task, Kind::Anon);
                    self.engine.madvise_free(task, object, page).unwrap();
                    self.model.may_be_forgotten(Page::Anon(task, object, page));
                }
            }
            Action::MadviseCold { task, kind, page } => {
                if let Some(task) = self.idle(task).filter(|_| kind.is_mapping()) {
                    self.engine.madvise_cold(task, self.object(task, kind), page).unwrap();
                }
            }
            Action::FadviseDontneed { task, tmpfs, page } => {
                if let Some(task) = self.idle(task) {
                    let file = if tmpfs { self.tmpfs } else { self.regular };
                    self.engine.fadvise_dontneed(task, file, page).unwrap();
                }
            }
            Action::Mlock { task, kind } => {
                if let Some(task) = self.idle(task).filter(|_| kind.is_mapping()) {
                    self.engine.mlock(task, self.object(task, kind)).unwrap();
                }
            }
            Action::Munlock { task, kind } => {
                if let Some(task) = self.idle(task).filter(|_| kind.is_mapping()) {
                    self.engine.munlock(task, self.object(task, kind)).unwrap();
                }
            }
            Action::Munmap { task, kind } => {
                if let Some(task) = self.idle(task).filter(|_| kind.is_mapping()) {
                    self.munmap(task, kind);
                }
            }
            Action::Exec { task } => {
                if let Some(task) = self.idle(task) {
                    self.model.forgotten(task);
                    let step = self.engine.task_exec(task);
                    self.advanced(task, Doing::Exec, step, false);
                }
            }
            Action::Reclaim { task, group, pages } => {
                if let Some(task) = self.idle(task) {
                    self.write(task, group, "memory.reclaim", pages);
                }
            }
            Action::Compact { task } => {
                if let Some(task) = self.idle(task) {
                    let step = self.engine.write_file(task, "/proc/sys/vm/compact_memory", "1").unwrap();
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::SetMax { task, group, pages } => {
                if let Some(task) = self.idle(task) {
                    self.write(task, group, "memory.max", pages);
                }
            }
            Action::SetHigh { task, group, pages } => {
                if let Some(task) = self.idle(task) {
                    self.high_used = true;
                    self.write(task, group, "memory.high", if pages == 0 { u64::MAX } else { pages });
                }
            }
            Action::Replace { group } => self.replace(group),
            Action::Fsync { task } => {
                if let Some(task) = self.idle(task) {
                    self.fsync(task);
                }
            }
            Action::FlushStats => self.engine.flush_stats(),
            Action::Switch { task, caps } => {
                if let Some(task) = self.idle(task) {
                    let path = "/sys/kernel/mm/lru_gen/enabled";
                    let step = self.engine.write_file(task, path, &format!("{caps:#x}")).unwrap();
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::LruGen { task, group, evicts } => {
                if let Some(task) = self.idle(task) {
                    self.lru_gen(task, MemcgId(group as u16 + 1), evicts);
                }
            }
        }
        self.carry_out();
        if self.checks == Checks::All {
            self.engine.check_invariants();
        }
    }

    fn is_runnable(&self, task: usize) -> bool {
        matches!(self.tasks[task].state, State::Runnable(_) | State::Repeat(_))
    }

    /// The same, or its wait may come to its own end.
    fn can_go_on(&self, task: usize) -> bool {
        self.is_runnable(task) || matches!(self.tasks[task].state, State::Waiting(_, Some(_)))
    }

    /// Goes on with a task, and with transfers in order while it sleeps, for so many steps or until it is idle.
    fn help(&mut self, task: TaskId, steps: usize) {
        for _ in 0..steps {
            match self.tasks[task.index()].state {
                State::Idle => return,
                State::Runnable(_) | State::Repeat(_) => self.resume(task),
                // What it waits for may still be in the hands of a reclaimer who submits it at the end of a pass.
                State::Sleeping(_) | State::Waiting(..) if self.transfers.is_empty() => {
                    let runnable = (0..self.tasks.len()).find(|&task| self.is_runnable(task));
                    let reclaimer = runnable.or((0..self.tasks.len()).find(|&task| self.can_go_on(task)));
                    self.resume(TaskId(reclaimer.expect("somebody goes on") as u32));
                }
                State::Sleeping(_) | State::Waiting(..) => self.complete(0, false, false),
            }
        }
    }

    fn idle(&self, task: usize) -> Option<TaskId> {
        (self.tasks[task].state == State::Idle).then_some(TaskId(task as u32))
    }

    /// Writes a number of pages to a file of a group; `u64::MAX` is `max`.
    fn write(&mut self, task: TaskId, group: usize, file: &str, pages: u64) {
        let value = if pages == u64::MAX { "max".to_owned() } else { (pages * PAGE_SIZE).to_string() };
        let path = format!("{}/{file}", self.groups[group]);
        let step = self.engine.write_file(task, &path, &value).unwrap();
        self.advanced(task, Doing::Reclaim, step, false);
    }

    /// Removes a group and makes another in its place, to which its processes move. What they have in memory stays with the
    /// removed one.
    fn replace(&mut self, group: usize) {
        let directory = self.groups[group].clone();
        let path = directory.strip_prefix("/sys/fs/cgroup").unwrap();
        let memcg = self.engine.memcg_by_path(path).unwrap();
        let mms = self.engine.core.memcgs[memcg].mms.clone();
        let is_busy = (0..TASKS).any(|task| {
            self.tasks[task].state != State::Idle && mms.contains(&self.engine.tasks[task].mm.unwrap())
        });
        if is_busy {
            return;
        }
        mms.iter().for_each(|&mm| self.engine.process_move(mm, MemcgId::ROOT));
        let max = self.engine.read_file(&format!("{directory}/memory.max")).unwrap();
        let heir = match self.engine.remove_directory(&directory) {
            Ok(()) => {
                let (parent, name) = path.rsplit_once('/').unwrap();
                let parent = self.engine.memcg_by_path(parent).unwrap();
                self.engine.memcg_create(parent, name).unwrap()
            }
            Err(error) => {
                let is_parent = self.groups[1].starts_with(&format!("{directory}/"));
                assert!(is_parent, "{error}");
                memcg
            }
        };
        mms.iter().for_each(|&mm| self.engine.process_move(mm, heir));
        let done = Ok(Step::Done(Served::Written { reclaimed: 0 }));
        if heir != memcg {
            let path = format!("{directory}/memory.max");
            assert_eq!(self.engine.write_file(self.administrator, &path, &max), done);
        }
    }

    fn lru_gen(&mut self, task: TaskId, memcg: MemcgId, evicts: Option<u64>) {
        let generations = self.engine.lru_gen(memcg, NodeId(0));
        let Some(youngest) = generations.last().map(|one| one.seq) else { return };
        let id = memcg.0 + 1;
        let command = match evicts {
            None => format!("+ {id} 0 {youngest}"),
            Some(back) => format!("- {id} 0 {} 200", youngest.saturating_sub(back)),
        };
        if let Ok(step) = self.engine.write_file(task, "/sys/kernel/debug/lru_gen", &command) {
            self.advanced(task, Doing::Reclaim, step, false);
        }
    }

    fn munmap(&mut self, task: TaskId, kind: Kind) {
        let object = self.object(task, kind);
        self.engine.munmap(task, object).unwrap();
        self.carry_out();
        let access = Access::new(object, 0, false);
        let gone = AccessError::BeyondObject { page: 0, pages: 0 };
        assert_eq!(self.engine.start(task, access), Step::Done(Served::Failed(gone)));
        self.make_object(task, kind);
    }

    fn start(&mut self, task: TaskId, doing: Doing) {
        let Doing::Access(_, access) = doing else { unreachable!("only accesses are started anew") };
        let step = self.engine.start(task, access);
        self.advanced(task, doing, step, false);
    }

    fn run(&mut self, task: TaskId, kinds: [Kind; 2], pages: std::ops::Range<u64>, write: bool) {
        let access = |(kind, page)| (kind, Access::new(self.object(task, kind), page, write));
        let both = |page| kinds.map(|kind| (kind, page));
        let accesses: Vec<(Kind, Access)> = pages.flat_map(both).map(access).collect();
        let hits = self.engine.run_hits(task, &accesses, |(_, access)| access);
        self.carry_out();
        for &(kind, access) in &accesses[..hits] {
            self.touch(task, kind, access, self.engine.touched(task, access));
        }
    }

    fn fsync(&mut self, task: TaskId) {
        let step = self.engine.fsync(task, self.object(task, Kind::OpenRegular)).unwrap();
        self.advanced(task, Doing::Fsync, step, false);
    }

    fn resume(&mut self, task: TaskId) {
        match self.tasks[task.index()].state {
            State::Repeat(doing) => self.start(task, doing),
            State::Runnable(doing) => {
                let step = self.engine.resume(task);
                self.advanced(task, doing, step, true);
            }
            State::Waiting(doing, Some(until)) => {
                self.now = self.now.max(until);
                self.engine.set_now(self.now);
                let step = self.engine.resume(task);
                self.advanced(task, doing, step, true);
            }
            state => unreachable!("{task:?} can't go on: {state:?}"),
        }
    }

    /// Takes note of how far a call has got.
    fn advanced(&mut self, task: TaskId, doing: Doing, step: Step, resumed: bool) {
        self.carry_out();
        let must_fail = std::mem::take(&mut self.tasks[task.index()].must_fail);
        if must_fail || step == Step::Done(Served::Failed(AccessError::Io)) {
            assert!(must_fail, "{task:?} failed though no read of it did");
            assert_eq!(
                step,
                Step::Done(Served::Failed(AccessError::Io)),
                "{task:?} used what could not be read"
            );
        }
        self.tasks[task.index()].state = match step {
            Step::Again => State::Runnable(doing),
            Step::Wait(Wait::Io) => State::Sleeping(doing),
            Step::Wait(Wait::Woken) => State::Waiting(doing, None),
            Step::Wait(Wait::WokenOr(span, _)) => State::Waiting(doing, Some(self.now + span)),
            Step::Wait(Wait::Delay(span, _)) => State::Waiting(doing, Some(self.now + span)),
            Step::Done(served) => match doing {
                Doing::Thread => panic!("a kernel thread has ended: {served:?}"),
                Doing::Reclaim => {
                    assert!(matches!(served, Served::Written { .. } | Served::Refused(_)), "{served:?}");
                    State::Idle
                }
                Doing::Fsync => {
                    assert!(matches!(served, Served::Synced(_)), "{served:?}");
                    State::Idle
                }
                Doing::Exec => {
                    assert_eq!(served, Served::Exited);
                    State::Idle
                }
                Doing::Access(kind, access) => match served {
                    Served::Failed(error) => {
                        self.check_failure(access, &error);
                        State::Idle
                    }
                    Served::Written { .. }
                    | Served::Synced(_)
                    | Served::Refused(_)
                    | Served::Exited
                    | Served::Advised => {
                        panic!("an access ended as {served:?}")
                    }
                    Served::Hit(Touched::Gone)
                    | Served::Minor(Touched::Gone)
                    | Served::Major(Touched::Gone) => {
                        assert!(
                            resumed && self.high_used,
                            "{access:?} of {task:?} is done, but the page isn't there"
                        );
                        State::Repeat(doing)
                    }
                    Served::Hit(at) | Served::Minor(at) | Served::Major(at) => {
                        self.touch(task, kind, access, at);
                        State::Idle
                    }
                },
            },
        };
    }

    /// Makes an access that the engine says is done, where it says.
    fn touch(&mut self, task: TaskId, kind: Kind, access: Access, at: Touched) {
        let page = self.page(task, kind, access.page);
        match at {
            Touched::Frame(pfn) if access.write => {
                self.next_value += 1;
                self.frames.insert(pfn, self.next_value);
                self.model.written(page, self.next_value);
            }
            Touched::Frame(pfn) => {
                let seen = self.frame(pfn);
                self.model.check_read(page, seen);
            }
            Touched::Zeroes if !access.write => self.model.check_read(page, 0),
            Touched::Zeroes | Touched::Gone => panic!("{access:?} of {task:?} is done, but at {at:?}"),
        }
    }

    fn check_failure(&self, access: Access, error: &AccessError) {
        match error {
            AccessError::Io => {}
            // Pages may be left that reclaim can take, and still too few to be above the reserve.
            AccessError::Oom(report) if report.max.is_none() => assert!(!self.has_room, "{error}"),
            AccessError::Oom(report) => {
                // With numbers as of the last flush, reclaim may well not know what there is. Else only what a read has brought
                // in may have become reclaimable since it last looked.
                // The old rule of a switch is the bug that ends here.
                let mut groups = self.engine.core.memcgs.ids();
                let is_bug = groups.any(|memcg| self.engine.is_switching(memcg))
                    && self.engine.core.config.policy.generations.switching == Switching::NewOnly;
                // What others have in their hands may be too much for anyone to take more.
                let isolated =
                    [Stat::NrIsolatedAnon, Stat::NrIsolatedFile].map(|stat| self.engine.vmstat(stat));
                if self.checks == Checks::All
                    && isolated == [0; 2]
                    && self.engine.core.config.stat_flush == StatFlush::Live
                    && !is_bug
                {
                    let left = self.engine.reclaimable_pages(report.memcg);
                    assert!(
                        left <= TASKS as u64 * self.pages_a_read,
                        "{error}, but {left} pages can be reclaimed"
                    );
                }
            }
            AccessError::NoObject { .. } | AccessError::BeyondObject { .. } => panic!("{access:?}: {error}"),
        }
    }

    fn frame(&self, pfn: Pfn) -> u64 {
        self.frames.get(&pfn).copied().unwrap_or(GARBAGE)
    }

    fn slot(&self, swap: SwapId, slot: u32) -> u64 {
        self.slots.get(&(swap, slot)).copied().unwrap_or(GARBAGE)
    }

    fn block(&self, file: FileId, page: u64) -> u64 {
        self.blocks.get(&(file, page)).copied().unwrap_or_else(|| file_contents(file, page))
    }

    /// Carries out what the engine has decided.
    fn carry_out(&mut self) {
        let mut ops = std::mem::take(&mut self.ops);
        self.engine.take_ops(&mut ops);
        for op in ops.drain(..) {
            self.carry_out_one(op);
        }
        self.ops = ops;
        let mut events = Vec::new();
        self.engine.take_page_cache_events(&mut events);
        for PageCacheEvent { file, page, removed } in events {
            let changed =
                if removed { self.cached.remove(&(file, page)) } else { self.cached.insert((file, page)) };
            assert!(changed, "{file:?} page {page} enters or leaves the page cache twice");
        }
        self.wake(false);
    }

    /// Makes those go on whose wait for a transfer is over; `must_fail`: they find that it failed.
    fn wake(&mut self, must_fail: bool) {
        let mut woken = Vec::new();
        self.engine.take_woken(&mut woken);
        for id in woken {
            let task = &mut self.tasks[id.index()];
            let doing = match task.state {
                State::Sleeping(doing) => {
                    task.must_fail = must_fail;
                    doing
                }
                State::Waiting(doing, _) => doing,
                state => panic!("{id:?} is woken but doesn't sleep: {state:?}"),
            };
            task.state = State::Runnable(doing);
        }
    }

    fn carry_out_one(&mut self, op: Op) {
        match op {
            Op::Zero { pfn, pages } => (0..pages).for_each(|at| {
                self.frames.insert(Pfn(pfn.0 + at), 0);
            }),
            Op::ReadFile { io, file, page, pages, readahead } => {
                let frames: Vec<Pfn> = self.engine.frames_of(io).collect();
                assert_eq!(frames.len(), pages as usize, "a frame for each page");
                self.begin(Transfer {
                    io,
                    medium: Medium::File(file, page),
                    frames,
                    is_write: false,
                    is_readahead: readahead,
                    at_start: 0,
                });
            }
            Op::WriteFile { io, file, page, pfn } => {
                let (medium, frames, at_start) = (Medium::File(file, page), vec![pfn], self.frame(pfn));
                let (is_write, is_readahead) = (true, false);
                self.begin(Transfer { io, medium, frames, is_write, is_readahead, at_start });
            }
            Op::ReadSwap { io, swap, slot, pfn } => {
                let (medium, frames) = (Medium::Slot(swap, slot), vec![pfn]);
                let (is_write, is_readahead) = (false, false);
                self.begin(Transfer { io, medium, frames, is_write, is_readahead, at_start: 0 });
            }
            Op::WriteSwap { io, swap, slot, pfn } => {
                let (medium, frames, at_start) = (Medium::Slot(swap, slot), vec![pfn], self.frame(pfn));
                let (is_write, is_readahead) = (true, false);
                self.begin(Transfer { io, medium, frames, is_write, is_readahead, at_start });
            }
            Op::ReadSwapNow { swap, slot, pfn } => {
                let data = self.slot(swap, slot);
                self.frames.insert(pfn, data);
            }
            Op::WriteSwapNow { swap, slot, pfn } => {
                let data = self.frame(pfn);
                self.slots.insert((swap, slot), data);
            }
            Op::Copy { from, to, pages } => (0..pages).for_each(|at| {
                let from = Pfn(from.0 + at);
                let busy = self.transfers.iter().any(|transfer| transfer.frames.contains(&from));
                assert!(!busy || self.checks == Checks::Contents, "{from:?} is moved under a transfer");
                let value = self.frame(from);
                self.frames.insert(Pfn(to.0 + at), value);
            }),
            Op::FreeFrame { pfn, pages } => (0..pages).for_each(|at| {
                let pfn = Pfn(pfn.0 + at);
                let busy = self.transfers.iter().any(|transfer| transfer.frames.contains(&pfn));
                assert!(!busy || self.checks == Checks::Contents, "{pfn:?} is freed under a transfer");
                self.frames.remove(&pfn);
            }),
            Op::FreeSlot { swap, slot } => {
                let busy = self.transfers.iter().any(|transfer| transfer.medium == Medium::Slot(swap, slot));
                assert!(!busy || self.checks == Checks::Contents, "slot {slot} is freed under a transfer");
                self.slots.remove(&(swap, slot));
            }
        }
    }

    fn begin(&mut self, transfer: Transfer) {
        // Two transfers of the same frame, slot or block might end in either order.
        let races = |other: &Transfer| {
            other.frames.iter().any(|pfn| transfer.frames.contains(pfn)) || other.overlaps(&transfer)
        };
        let raced = self.transfers.iter().any(races);
        assert!(!raced || self.checks == Checks::Contents, "{transfer:?} races with another");
        self.transfers.push(transfer);
    }

    /// A transfer ends: moves its data, or leaves garbage if it fails, and tells the engine.
    fn complete(&mut self, at: usize, fails: bool, early: bool) {
        let transfer = self.transfers.swap_remove(at);
        for (at, &pfn) in (0..).zip(&transfer.frames) {
            match transfer.medium {
                Medium::Slot(swap, slot) if transfer.is_write => {
                    let data = if early { transfer.at_start } else { self.frame(pfn) };
                    self.slots.insert((swap, slot), if fails { GARBAGE } else { data });
                }
                Medium::Slot(swap, slot) => {
                    let data = self.slot(swap, slot);
                    self.frames.insert(pfn, if fails { GARBAGE } else { data });
                }
                Medium::File(file, page) if transfer.is_write => {
                    let data = if early { transfer.at_start } else { self.frame(pfn) };
                    self.blocks.insert((file, page), if fails { GARBAGE } else { data });
                    self.model.reached_device(Page::Regular(file, page), (!fails).then_some(data), GARBAGE);
                }
                Medium::File(file, page) => {
                    let data = self.block(file, page + at);
                    self.frames.insert(pfn, if fails { GARBAGE } else { data });
                }
            }
        }
        let result = if fails { Err(IoError::Device) } else { Ok(()) };
        self.engine.io_done(transfer.io, CpuId(0), result);
        self.wake(fails && !transfer.is_write && !transfer.is_readahead);
        self.carry_out();
    }

    /// Ends a run: lets everything under way end well, reads every page back, and gives everything up.
    pub(crate) fn finish(mut self) {
        // First of all, or a task above `memory.high` may lose its page again each time before it gets to use it.
        for (group, file) in [(0, "memory.high"), (1, "memory.high"), (0, "memory.max"), (1, "memory.max")] {
            let path = format!("{}/{file}", self.groups[group]);
            assert_eq!(
                self.engine.write_file(self.administrator, &path, "max"),
                Ok(Step::Done(Served::Written { reclaimed: 0 }))
            );
        }
        self.settle();
        for task in (0..TASKS as u32).map(TaskId) {
            for kind in Kind::ALL {
                for page in 0..PAGES {
                    let access = Access::new(self.object(task, kind), page, false);
                    self.start(task, Doing::Access(kind, access));
                    self.settle();
                }
            }
        }
        self.fsync(TaskId(0));
        self.settle();
        for page in 0..PAGES {
            let on_device = self.block(self.regular, page);
            self.model.check_device(Page::Regular(self.regular, page), on_device);
        }
        if self.checks == Checks::Contents {
            return;
        }
        self.engine.check_invariants();
        for task in (0..TASKS as u32).map(TaskId) {
            for kind in Kind::ALL.into_iter().filter(|kind| kind.is_mapping()) {
                self.munmap(task, kind);
            }
        }
        // A thread that began a program of its own has left its heap behind in the address space of the others.
        for task in (0..=TASKS as u32).map(TaskId) {
            let mut step = self.engine.task_exit(task);
            while step == Step::Again {
                step = self.engine.resume(task);
            }
            assert_eq!(step, Step::Done(Served::Exited));
        }
        for cpu in 0..self.engine.core.config.cpus {
            self.engine.core.cpu = crate::CpuId(cpu);
            self.engine.core.lru_add_drain();
        }
        self.carry_out();
        self.engine.check_invariants();
        let kernel = self.engine.core.kernel_frames().len() as i64;
        let stacks = self.engine.vmstat(Stat::NrKernelStack) * 1024 / PAGE_SIZE as i64;
        let slab = self.engine.vmstat(Stat::NrSlabReclaimable);
        let compressed = self.engine.vmstat(Stat::NrZspages);
        assert_eq!(kernel, stacks + slab + compressed, "no page table is left");
        if !self.has_room {
            // What kswapd was writing to swap as its owner let go of it stays until reclaim comes by again. Pages of tmpfs that it
            // compressed while others were read back stay as well.
            return;
        }
        assert_eq!(compressed, 0, "every page was read back, so that none is compressed");
        for pfn in self.engine.used_folios() {
            let folio = &self.engine.core.memory.folios[pfn];
            assert!(
                folio.has(FolioFlags::INDEXED),
                "{pfn:?} is left in memory though nobody needs it: {folio:?}"
            );
        }
        assert_eq!(self.engine.used_folios().len(), self.cached.len(), "page-cache events and memory");
        assert_eq!(self.engine.used_slots(), 0, "every page was read back, so that no slot is needed");
    }

    /// Lets transfers end and tasks go on until all are idle.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if let Some(task) = (0..self.tasks.len()).find(|&task| self.is_runnable(task)) {
                self.resume(TaskId(task as u32));
            } else if !self.transfers.is_empty() {
                self.complete(0, false, false);
            } else {
                let Some(sleeper) = self.tasks.iter().position(|task| !task.is_at_rest()) else { return };
                let napping = (0..self.tasks.len()).find(|&task| self.can_go_on(task));
                let Some(napping) = napping else {
                    panic!("task {sleeper} sleeps, but nothing is under way that could wake it")
                };
                self.resume(TaskId(napping as u32));
            }
        }
        panic!("tasks go on for ever: {:?}", self.tasks.iter().map(|task| task.state).collect::<Vec<_>>());
    }
}
