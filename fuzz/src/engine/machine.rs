//! The machine: tasks and what they do. It sees no more of the engine than any machine does.

use pageout_engine::*;

use super::contents::{Contents, Page};
use super::files::{FILES, LRU_GEN_FILES, ODDITIES, lru_gen_text};
use super::input::{Action, Group, Limit, Setup};
use super::store::Store;

/// Times that an access is made anew because its page was gone again.
const REPEATS_MAX: u8 = 8;
/// Mappings of a task, former ones included: each takes a table of its own.
const OBJECTS_MAX: usize = 24;
const GROUPS_MAX: usize = 6;
const TASKS_MAX: usize = 8;
/// The most folios in any batch of any setup.
const BATCH_MAX: u64 = 31;
/// Steps within which all tasks must come to rest when transfers end well and limits are off.
const SETTLING_STEPS_MAX: u32 = 100_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Object {
    Open(usize),
    Mapped(usize),
    Anon,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Access(Access, Object),
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
    Delayed(Doing, Nanos),
    /// Waits for another task's wake, or until a time if there is one.
    Waiting(Doing, Option<Nanos>),
    /// The page was gone again when the access had been made: to be started anew, as a faulting instruction is.
    Repeat(Doing, u8),
}

struct Task {
    state: State,
    repeats: u8,
    /// A read that it waited for has failed.
    must_fail: bool,
    objects: Vec<(ObjectId, Object)>,
    ever_mapped: usize,
}

impl Task {
    fn new(state: State) -> Task {
        Task { state, repeats: 0, must_fail: false, objects: Vec::new(), ever_mapped: 0 }
    }

    fn can_go_on(&self) -> bool {
        !matches!(self.state, State::Idle | State::Sleeping(_) | State::Waiting(_, None))
    }

    /// Whether nothing is left to do for a user.
    fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Idle | State::Waiting(Doing::Thread, _))
    }
}

pub(super) struct Machine {
    engine: Engine,
    cpus: u16,
    frames_total: u64,
    anon_pages: u64,
    advice: Advice,
    bdi: Bdi,
    files: Vec<(FileId, FileKind, u64)>,
    groups: Vec<(MemcgId, String)>,
    /// Processes with the group that each is in, and the process of each task that has one.
    processes: Vec<(MmId, usize)>,
    runs_in: Vec<(usize, MmId)>,
    tasks: Vec<Task>,
    store: Store,
    contents: Contents,
    now: Nanos,
    /// `memory.high` was used: a page can leave memory between the end of an access and the return from it.
    high_used: bool,
    /// An access has failed for want of memory.
    is_out_of_memory: bool,
    actions: u32,
    show: bool,
}

impl Machine {
    pub(super) fn new(setup: &Setup, show: bool) -> Machine {
        let mut engine = Engine::new(setup.config.clone()).expect("every setup is in range");
        engine.record_page_cache_events();
        for &spec in &setup.swap {
            engine.swap_on(spec).expect("every swap device is in range");
        }
        let mut machine = Machine {
            engine,
            cpus: setup.config.cpus,
            frames_total: setup.config.node_pages.iter().sum(),
            anon_pages: setup.anon_pages,
            advice: setup.advice,
            bdi: setup.bdi,
            files: Vec::new(),
            groups: vec![(MemcgId::ROOT, String::new())],
            processes: Vec::new(),
            runs_in: Vec::new(),
            tasks: Vec::new(),
            store: Store::default(),
            contents: Contents::default(),
            now: Nanos::ZERO,
            high_used: false,
            is_out_of_memory: false,
            actions: 0,
            show,
        };
        for (at, &(kind, pages)) in setup.files.iter().enumerate() {
            let file = machine.engine.file_create(FileSpec {
                name: format!("file{at}"),
                pages,
                kind,
                bdi: setup.bdi,
            });
            machine.files.push((file.expect("every file is in range"), kind, pages));
        }
        for group in &setup.groups {
            machine.create_group(group.parent, group.policy);
        }
        let mms: Vec<MmId> =
            setup.processes.iter().map(|&group| machine.create_process(group.into())).collect();
        for &(process, cpu) in &setup.tasks {
            machine.create_task(mms[usize::from(process)], cpu);
        }
        for ThreadInfo { task, wait, .. } in machine.engine.start_kernel_threads() {
            assert_eq!(task, TaskId(machine.tasks.len() as u32));
            machine.tasks.push(Task::new(State::Idle));
            machine.advanced(task.0 as usize, Doing::Thread, Step::Wait(wait), false);
        }
        for (at, Group { knobs, .. }) in setup.groups.iter().enumerate() {
            for &(knob, limit) in knobs {
                machine.write_limit(0, at + 1, knob, limit);
                machine.carry_out(None);
            }
        }
        machine.engine.check_invariants();
        machine
    }

    fn create_group(&mut self, parent: u8, policy: Policy) -> MemcgId {
        let (parent, path) = self.groups[usize::from(parent) % self.groups.len()].clone();
        let name = format!("g{}", self.groups.len());
        let memcg = self.engine.memcg_create_with(parent, &name, policy).expect("the name is new");
        let path = format!("{path}/{name}");
        assert_eq!(self.engine.memcg_by_path(&path), Some(memcg));
        self.groups.push((memcg, path));
        memcg
    }

    fn create_process(&mut self, group: usize) -> MmId {
        let mm = self.engine.process_create(self.groups[group].0);
        self.processes.push((mm, group));
        mm
    }

    /// Removes a group with nothing below it, and makes another in its place. Its processes move there; what they have in memory
    /// stays with the removed one.
    fn replace_group(&mut self, group: usize) {
        let of_group = |(_, at): &&(MmId, usize)| *at == group;
        let mms: Vec<MmId> = self.processes.iter().filter(of_group).map(|&(mm, _)| mm).collect();
        let runs_here = |(_, mm): &&(usize, MmId)| mms.contains(mm);
        let mut tasks = self.runs_in.iter().filter(runs_here).map(|&(task, _)| task);
        if tasks.any(|task| self.tasks[task].state != State::Idle) {
            return;
        }
        let (memcg, path) = self.groups[group].clone();
        let directory = format!("/sys/fs/cgroup{path}");
        mms.iter().for_each(|&mm| self.engine.process_move(mm, MemcgId::ROOT));
        let mut heir = memcg;
        match self.engine.remove_directory(&directory) {
            Ok(()) => {
                let (parent, name) = path.rsplit_once('/').expect("only the root has no name");
                let parent = self.engine.memcg_by_path(parent).expect("a parent outlives its children");
                heir = self.engine.memcg_create(parent, name).expect("the name is free");
                self.groups[group].0 = heir;
                let gone = self.engine.read_file("/sys/fs/cgroup/cgroup.stat").expect("the root has it");
                assert!(gone.starts_with("nr_descendants"), "{gone}");
            }
            Err(error) => {
                let inside = format!("{path}/");
                let has_children = self.groups.iter().any(|(_, other)| other.starts_with(&inside));
                assert!(has_children || group == 0, "{error}");
            }
        }
        mms.iter().for_each(|&mm| self.engine.process_move(mm, heir));
    }

    fn create_task(&mut self, mm: MmId, cpu: u8) -> usize {
        let task = self.tasks.len();
        let id = self.engine.task_create(mm, CpuId(u16::from(cpu) % self.cpus));
        assert_eq!(id, TaskId(task as u32));
        self.tasks.push(Task::new(State::Idle));
        self.runs_in.push((task, mm));
        let files = (0..self.files.len()).flat_map(|file| [Object::Open(file), Object::Mapped(file)]);
        for object in files.chain([Object::Anon, Object::Anon]) {
            let made = self.make_object(task, object);
            self.tasks[task].objects.push((made, object));
        }
        task
    }

    fn make_object(&mut self, task: usize, object: Object) -> ObjectId {
        self.tasks[task].ever_mapped += 1;
        let (id, advice) = (TaskId(task as u32), self.advice);
        let made = match object {
            Object::Open(file) => self.engine.open(id, self.files[file].0),
            Object::Mapped(file) => self.engine.map_file(id, self.files[file].0, advice, task == 0),
            Object::Anon => self.engine.map_anon(id, self.anon_pages, advice),
        };
        made.expect("every object is in range")
    }

    /// Lets an action happen.
    pub(super) fn perform(&mut self, action: Action) {
        if self.show {
            eprintln!("{action:?}");
        }
        self.act(action);
        self.carry_out(None);
        if self.show {
            let states: Vec<State> = self.tasks.iter().map(|task| task.state).collect();
            eprintln!("    {states:?}");
        }
        // Walking all tables takes longer than most actions, and what is broken seldom mends itself.
        self.actions += 1;
        if self.show || self.actions <= 32 || self.actions.is_multiple_of(8) {
            self.engine.check_invariants();
        }
        let free = self.engine.vmstat(Stat::NrFreePages);
        // A task that is charging a page has its frame in its hands, and nothing in it, and so have the pages that it has gathered
        // to be read ahead.
        let unfilled = (self.frames_total - self.store.frames() as u64) as i64
            - free
            - self.kernel_frames()
            - self.frames_of_cpus();
        let gathered = i64::from(self.bdi.ra_pages.max(self.bdi.io_pages));
        assert!(
            (0..=self.tasks.len() as i64 * (1 + gathered)).contains(&unfilled),
            "{unfilled} frames handed out and not filled"
        );
    }

    /// Frames that are free, but on the lists of CPUs, where no counter sees them.
    fn frames_of_cpus(&self) -> i64 {
        self.engine.zones().flat_map(|zone| zone.pagesets).map(|pageset| i64::from(pageset.count)).sum()
    }

    /// Frames that the kernel says it has taken for itself.
    fn kernel_frames(&self) -> i64 {
        let gauge = |stat| self.engine.vmstat(stat);
        let stacks = gauge(Stat::NrKernelStack) * 1024 / PAGE_SIZE as i64;
        gauge(Stat::NrPageTablePages) + gauge(Stat::NrSlabReclaimable) + gauge(Stat::NrZspages) + stacks
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Access { task, object, page, write, wanted } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                // One page beyond the end, now and then.
                let page = self.page_at(object, page, 1);
                let access = Access { wanted: wanted * PAGE_SIZE as u32, ..Access::new(id, page, write) };
                self.start(task, access, object);
            }
            Action::Run { task, object, page, count, write } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let first = self.page_at(object, page, 0);
                let pages = first..(first + u64::from(count) + 1).min(self.pages_of(object) + 1);
                let accesses: Vec<Access> = pages.map(|page| Access::new(id, page, write)).collect();
                self.run_hits(task, &accesses, object);
            }
            Action::Resume { which } => {
                let tasks: Vec<usize> =
                    (0..self.tasks.len()).filter(|&at| self.tasks[at].can_go_on()).collect();
                if !tasks.is_empty() {
                    self.resume(tasks[usize::from(which) % tasks.len()]);
                }
            }
            Action::Complete { which, fails, early, cpu } => {
                if self.store.transfers() > 0 {
                    self.complete(usize::from(which) % self.store.transfers(), fails, early, cpu);
                }
            }
            Action::MadviseFree { task, object, page } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let page = self.page_at(object, page, 1);
                let result = self.engine.madvise_free(TaskId(task as u32), id, page);
                self.check_advice(object, page, result);
                if object == Object::Anon {
                    self.contents.may_be_forgotten(Page::Anon(TaskId(task as u32), id, page));
                }
            }
            Action::MadviseCold { task, object, page } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let page = self.page_at(object, page, 1);
                let result = self.engine.madvise_cold(TaskId(task as u32), id, page);
                self.check_advice(object, page, result);
            }
            Action::FadviseDontneed { task, file, page } => {
                let Some(task) = self.idle(task) else { return };
                let file = usize::from(file) % self.files.len();
                let page = self.page_at(Object::Open(file), page, 1);
                let result = self.engine.fadvise_dontneed(TaskId(task as u32), self.files[file].0, page);
                assert_eq!(result.is_ok(), page < self.files[file].2, "{result:?}");
            }
            Action::Mlock { task, object } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let result = self.engine.mlock(TaskId(task as u32), id);
                assert_eq!(result.is_ok(), !matches!(object, Object::Open(_)), "{result:?}");
            }
            Action::Munlock { task, object } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let result = self.engine.munlock(TaskId(task as u32), id);
                assert_eq!(result.is_ok(), !matches!(object, Object::Open(_)), "{result:?}");
            }
            Action::Munmap { task, object } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                if self.tasks[task].ever_mapped < OBJECTS_MAX {
                    self.munmap(task, id, object);
                    let made = self.make_object(task, object);
                    let slot = self.tasks[task].objects.iter_mut().find(|(known, _)| *known == id);
                    slot.expect("it was just unmapped").0 = made;
                }
            }
            Action::Exec { task } => {
                let Some(task) = self.idle(task) else { return };
                let id = TaskId(task as u32);
                let mm = self.engine.mm_of(id);
                // What it wrote stays with those that it leaves behind, under the names that its own pages will have.
                if self.runs_in.iter().filter(|&&(_, other)| other == mm).count() > 1 {
                    return;
                }
                self.contents.forgotten(id);
                let step = self.engine.task_exec(id);
                let new = self.engine.mm_of(id);
                self.processes.iter_mut().filter(|(old, _)| *old == mm).for_each(|process| process.0 = new);
                self.runs_in.iter_mut().filter(|(_, old)| *old == mm).for_each(|runs| runs.1 = new);
                self.advanced(task, Doing::Exec, step, false);
            }
            Action::Pin { file, page } => {
                let file = usize::from(file) % self.files.len();
                let page = self.page_at(Object::Open(file), page, 0);
                self.engine.pin(self.files[file].0, page);
            }
            Action::Reclaim { task, group, pages, swappiness } => {
                let Some(task) = self.idle(task) else { return };
                let group = usize::from(group) % self.groups.len();
                let step = match swappiness {
                    Some(swappiness) if pages & 1 == 0 => {
                        let value = format!("{} swappiness={swappiness}", u64::from(pages) * PAGE_SIZE);
                        self.write(task, group, "memory.reclaim", &value).expect("the request is well-formed")
                    }
                    _ => self.engine.reclaim(
                        TaskId(task as u32),
                        self.groups[group].0,
                        pages.into(),
                        swappiness,
                    ),
                };
                self.advanced(task, Doing::Reclaim, step, false);
            }
            Action::Write { task, group, knob, limit } => {
                let Some(task) = self.idle(task) else { return };
                self.write_limit(task, usize::from(group) % self.groups.len(), knob, limit);
            }
            Action::Swappiness { task, value } => {
                let Some(task) = self.idle(task) else { return };
                let step = self.engine.write_file(
                    TaskId(task as u32),
                    "/proc/sys/vm/swappiness",
                    &value.to_string(),
                );
                self.advanced(task, Doing::Reclaim, step.expect("it is in range"), false);
                assert_eq!(self.engine.read_file("/proc/sys/vm/swappiness"), Ok(format!("{value}\n")));
            }
            Action::WriteOddity { task, group, file, text } => {
                let Some(task) = self.idle(task) else { return };
                let group = usize::from(group) % self.groups.len();
                let file = FILES[usize::from(file) % FILES.len()];
                self.high_used |= file == "memory.high";
                let result = self.write(task, group, file, ODDITIES[usize::from(text) % ODDITIES.len()]);
                if let Ok(step) = result {
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::LruGen { task, group, file, text } => {
                let Some(task) = self.idle(task) else { return };
                let group = usize::from(group) % self.groups.len();
                let memcg = self.groups[group].0;
                let path = LRU_GEN_FILES[usize::from(file) % LRU_GEN_FILES.len()];
                let generations = self.engine.lru_gen(memcg, NodeId(0));
                let youngest = generations.last().map_or(0, |generation| generation.seq);
                let value = lru_gen_text(memcg, youngest, file, text);
                let result = self.engine.write_file(TaskId(task as u32), path, &value);
                if let Ok(step) = result {
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::Read { group } => {
                let path = self.groups[usize::from(group) % self.groups.len()].1.clone();
                for file in FILES {
                    let _ = self.engine.read_file(&format!("/sys/fs/cgroup{path}/{file}"));
                }
                for file in LRU_GEN_FILES {
                    assert!(self.engine.read_file(file).is_ok(), "{file}");
                }
                let vmstat = self.engine.read_file("/proc/vmstat").expect("it exists");
                for line in vmstat.lines() {
                    let (name, value) = line.split_once(' ').expect("a name and a number");
                    assert!(value.parse::<u64>().is_ok(), "{name} is {value}");
                }
            }
            Action::Replace { group } => self.replace_group(usize::from(group) % self.groups.len()),
            Action::FlushStats => self.engine.flush_stats(),
            Action::Compact { task } => {
                let Some(task) = self.idle(task) else { return };
                let step = self.engine.write_file(TaskId(task as u32), "/proc/sys/vm/compact_memory", "1");
                self.advanced(task, Doing::Reclaim, step.expect("it takes 1"), false);
            }
            Action::Tick { nanos } => self.pass(Nanos(self.now.0 + nanos)),
            Action::Spawn { parent, policy, cpu } => {
                if self.groups.len() < GROUPS_MAX && self.tasks.len() < TASKS_MAX {
                    let memcg = self.create_group(parent, policy);
                    let group = self.groups.iter().position(|&(id, _)| id == memcg);
                    let mm = self.create_process(group.expect("it was just created"));
                    self.create_task(mm, cpu);
                }
            }
        }
    }

    fn pass(&mut self, until: Nanos) {
        self.now = self.now.max(until);
        self.engine.set_now(self.now);
    }

    fn idle(&self, task: u8) -> Option<usize> {
        let task = usize::from(task) % self.tasks.len();
        (self.tasks[task].state == State::Idle).then_some(task)
    }

    fn idle_object(&self, task: u8, object: u8) -> Option<(usize, (ObjectId, Object))> {
        let task = self.idle(task)?;
        let objects = &self.tasks[task].objects;
        Some((task, objects[usize::from(object) % objects.len()]))
    }

    fn pages_of(&self, object: Object) -> u64 {
        match object {
            Object::Open(file) | Object::Mapped(file) => self.files[file].2,
            Object::Anon => self.anon_pages,
        }
    }

    /// A page out of those of an object and so many beyond. The low half of all numbers means the first pages, so that
    /// some are hot.
    fn page_at(&self, object: Object, number: u8, beyond: u64) -> u64 {
        let pages = self.pages_of(object);
        let number = u64::from(number);
        if number < 128 {
            number % pages.min(8)
        } else {
            (number - 128) * (pages / 128 + 1) % (pages + beyond)
        }
    }

    fn page(&self, task: usize, access: Access, object: Object) -> Page {
        match object {
            Object::Open(file) | Object::Mapped(file) => match self.files[file] {
                (id, FileKind::Regular, _) => Page::Regular(id, access.page),
                (id, FileKind::Tmpfs, _) => Page::Tmpfs(id, access.page),
            },
            Object::Anon => Page::Anon(TaskId(task as u32), access.object, access.page),
        }
    }

    fn check_advice(&self, object: Object, page: u64, result: Result<(), ConfigError>) {
        let fits = !matches!(object, Object::Open(_)) && page < self.pages_of(object);
        assert_eq!(result.is_ok(), fits, "{object:?} page {page}: {result:?}");
    }

    fn write(&mut self, task: usize, group: usize, file: &str, value: &str) -> Result<Step, FileError> {
        let path = format!("/sys/fs/cgroup{}/{file}", self.groups[group].1);
        self.engine.write_file(TaskId(task as u32), &path, value)
    }

    fn write_limit(&mut self, task: usize, group: usize, knob: &str, limit: Limit) {
        self.high_used |= knob == "memory.high" && limit != Limit::Max;
        match self.write(task, group, knob, &limit.text()) {
            Ok(step) => self.advanced(task, Doing::Reclaim, step, false),
            Err(error) => assert_eq!(self.groups[group].0, MemcgId::ROOT, "{error}"),
        }
    }

    fn munmap(&mut self, task: usize, id: ObjectId, object: Object) {
        let result = self.engine.munmap(TaskId(task as u32), id);
        assert_eq!(result.is_ok(), !matches!(object, Object::Open(_)), "{result:?}");
        self.carry_out(None);
        if result.is_ok() {
            let step = self.engine.start(TaskId(task as u32), Access::new(id, 0, false));
            let gone = AccessError::BeyondObject { page: 0, pages: 0 };
            assert_eq!(step, Step::Done(Served::Failed(gone)), "an access to what is unmapped");
            self.contents.unmapped(TaskId(task as u32), id);
        }
    }

    fn start(&mut self, task: usize, access: Access, object: Object) {
        let step = self.engine.start(TaskId(task as u32), access);
        self.advanced(task, Doing::Access(access, object), step, false);
    }

    fn run_hits(&mut self, task: usize, accesses: &[Access], object: Object) -> usize {
        let hits = self.engine.run_hits(TaskId(task as u32), accesses, |access| access);
        self.carry_out(None);
        for &access in &accesses[..hits] {
            let at = self.engine.touched(TaskId(task as u32), access);
            self.touch(task, access, object, at);
        }
        hits
    }

    fn resume(&mut self, task: usize) {
        match self.tasks[task].state {
            State::Repeat(Doing::Access(access, object), repeats) => {
                self.tasks[task].repeats = repeats;
                self.start(task, access, object);
            }
            State::Runnable(doing) => {
                let step = self.engine.resume(TaskId(task as u32));
                self.advanced(task, doing, step, true);
            }
            State::Delayed(doing, until) | State::Waiting(doing, Some(until)) => {
                self.pass(until);
                let step = self.engine.resume(TaskId(task as u32));
                self.advanced(task, doing, step, true);
            }
            state => unreachable!("task {task} can't go on: {state:?}"),
        }
    }

    /// Takes note of how far a call has got.
    fn advanced(&mut self, task: usize, doing: Doing, step: Step, resumed: bool) {
        let page = match doing {
            Doing::Access(access, object) => Some(self.page(task, access, object)),
            Doing::Reclaim | Doing::Exec | Doing::Fsync | Doing::Thread => None,
        };
        if self.show {
            eprintln!("    task {task}: {step:?}");
        }
        let woken = self.hand_over(page);
        // A flusher that finds nothing to write lets those look for themselves who hoped for a write to end.
        // It serves several groups of files in turn: one may rest while it still writes another.
        let may_rest = doing == Doing::Thread;
        assert!(woken == 0 || may_rest, "tasks are woken though no transfer has ended");
        let must_fail = std::mem::take(&mut self.tasks[task].must_fail);
        let has_failed = step == Step::Done(Served::Failed(AccessError::Io));
        assert_eq!(has_failed, must_fail, "task {task}: a failed read, and the access that waited for it");
        let repeats = std::mem::take(&mut self.tasks[task].repeats);
        self.tasks[task].state = match step {
            Step::Again => State::Runnable(doing),
            Step::Wait(Wait::Io) => State::Sleeping(doing),
            Step::Wait(Wait::Delay(span, _)) => State::Delayed(doing, self.now + span),
            Step::Wait(Wait::Woken) => State::Waiting(doing, None),
            Step::Wait(Wait::WokenOr(span, _)) => State::Waiting(doing, Some(self.now + span)),
            Step::Done(served) => match doing {
                Doing::Thread => panic!("a kernel thread has ended: {served:?}"),
                Doing::Reclaim => {
                    assert!(matches!(served, Served::Written { .. } | Served::Refused(_)), "{served:?}");
                    State::Idle
                }
                Doing::Exec => {
                    assert_eq!(served, Served::Exited);
                    State::Idle
                }
                Doing::Fsync => {
                    assert!(matches!(served, Served::Synced(_)), "{served:?}");
                    State::Idle
                }
                Doing::Access(access, object) => match served {
                    Served::Failed(error) => {
                        self.check_failure(access, object, &error);
                        State::Idle
                    }
                    Served::Written { .. }
                    | Served::Refused(_)
                    | Served::Synced(_)
                    | Served::Advised
                    | Served::Exited => {
                        panic!("an access ended as {served:?}")
                    }
                    // What memory.high did on the way back has cost the page. So the instruction runs again.
                    Served::Hit(Touched::Gone)
                    | Served::Minor(Touched::Gone)
                    | Served::Major(Touched::Gone) => {
                        assert!(resumed && self.high_used, "{access:?} is done, but its page is gone");
                        if repeats < REPEATS_MAX && self.run_hits(task, &[access], object) == 0 {
                            State::Repeat(doing, repeats + 1)
                        } else {
                            State::Idle
                        }
                    }
                    Served::Hit(at) | Served::Minor(at) | Served::Major(at) => {
                        self.touch(task, access, object, at);
                        State::Idle
                    }
                },
            },
        };
    }

    /// Makes an access that the engine says is done, where it says.
    fn touch(&mut self, task: usize, access: Access, object: Object, at: Touched) {
        let page = self.page(task, access, object);
        match at {
            Touched::Frame(pfn) => {
                if access.write {
                    *self.store.written_mut(pfn, page) = self.contents.write(page);
                } else {
                    self.contents.check_read(page, *self.store.value_mut(pfn, page));
                }
            }
            Touched::Zeroes => {
                assert!(!access.write, "{page:?} was written, but is in no frame");
                self.contents.check_read(page, 0);
            }
            Touched::Gone => panic!("{access:?} is done, but its page is nowhere"),
        }
    }

    fn check_failure(&mut self, access: Access, object: Object, error: &AccessError) {
        let pages = self.pages_of(object);
        match error {
            AccessError::Io => {}
            AccessError::Oom(_) => self.is_out_of_memory = true,
            AccessError::BeyondObject { .. } => {
                assert!(access.page >= pages, "{access:?} of {object:?}: {error}")
            }
            AccessError::NoObject { .. } => panic!("{access:?} of {object:?}: {error}"),
        }
        // A message that can't be printed is a panic too.
        let _ = error.to_string();
    }

    /// Carries out what the engine has decided. `page`: what the task of the present call accesses.
    fn carry_out(&mut self, page: Option<Page>) {
        assert_eq!(self.hand_over(page), 0, "tasks are woken though no transfer has ended");
    }

    /// The same; returns how many tasks were woken out of a wait for a transfer although none has ended.
    fn hand_over(&mut self, page: Option<Page>) -> usize {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        let has_written = ops.iter().any(|op| matches!(op, Op::WriteSwapNow { .. }));
        for op in ops {
            if self.show {
                eprintln!("    {op:?}");
            }
            self.store.carry_out(&self.engine, op, page);
        }
        let mut events = Vec::new();
        self.engine.take_page_cache_events(&mut events);
        events.into_iter().for_each(|event| self.store.note_page_cache(event));
        let _ = self.engine.take_work();
        let woken = self.wake(false);
        if has_written { 0 } else { woken }
    }

    /// Makes those go on whose wait is over, and returns how many waited for a transfer; `must_fail`: they find that it failed.
    fn wake(&mut self, must_fail: bool) -> usize {
        let mut woken = Vec::new();
        self.engine.take_woken(&mut woken);
        let mut by_transfers = 0;
        for id in woken {
            let task = &mut self.tasks[id.0 as usize];
            let doing = match task.state {
                State::Sleeping(doing) => {
                    task.must_fail = must_fail;
                    by_transfers += 1;
                    doing
                }
                State::Waiting(doing, _) => doing,
                state => panic!("{id:?} is woken but doesn't sleep: {state:?}"),
            };
            task.state = State::Runnable(doing);
        }
        by_transfers
    }

    /// A transfer ends, and the engine is told.
    fn complete(&mut self, at: usize, fails: bool, early: bool, cpu: u8) {
        let transfer = self.store.end(at, fails, early);
        if self.show {
            eprintln!("    {transfer:?} ends");
        }
        if let Some((file, page)) = transfer.written_page() {
            self.contents.reached_device(Page::Regular(file, page), fails, self.store.block(file, page));
        }
        let result = if fails { Err(IoError::Device) } else { Ok(()) };
        self.engine.io_done(transfer.io, CpuId(u16::from(cpu) % self.cpus), result);
        self.wake(fails && !transfer.is_write && !transfer.is_readahead);
        self.carry_out(None);
    }

    /// Ends a run: lets everything under way end well, reads back what was written, and gives everything up.
    pub(super) fn finish(mut self) {
        // Limits go first, or a task above one may lose its page again each time before it gets to use it.
        let mm = self.engine.process_create(MemcgId::ROOT);
        let shells: Vec<usize> = (0..self.cpus).map(|cpu| self.create_task(mm, cpu as u8)).collect();
        for group in 1..self.groups.len() {
            for knob in ["memory.high", "memory.max"] {
                self.write_limit(shells[0], group, knob, Limit::Max);
            }
        }
        self.settle();
        self.read_back();
        self.check_devices();
        self.engine.check_invariants();
        for task in 0..self.tasks.len() {
            for (id, object) in self.tasks[task].objects.clone() {
                self.munmap(task, id, object);
            }
        }
        // A thread that has begun a program of its own has left its memory behind in the address space of the others.
        for task in (0..self.tasks.len()).filter(|task| !shells.contains(task)) {
            if self.tasks[task].state != State::Idle {
                continue;
            }
            let task = TaskId(task as u32);
            let mut step = self.engine.task_exit(task);
            while step == Step::Again {
                step = self.engine.resume(task);
            }
            assert_eq!(step, Step::Done(Served::Exited));
            self.carry_out(None);
        }
        let drained = shells.into_iter().all(|shell| self.drain_batches(shell));
        self.engine.check_invariants();
        for page in self.store.pages() {
            let is_left = drained && matches!(page, Page::Anon(..));
            assert!(!is_left, "{page:?} is kept though it was unmapped");
        }
        if self.show {
            eprintln!("all is well");
        }
    }

    /// Empties the batches of a task's CPU, which may be the last to hold on to a page: new pages push others out of the add
    /// batch, and reclaim that finds something to look at empties the rest. False if memory is too full for that.
    fn drain_batches(&mut self, shell: usize) -> bool {
        let (id, name) = (TaskId(shell as u32), format!("filler{shell}"));
        let file = self.engine.file_create(FileSpec {
            name,
            pages: BATCH_MAX,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        });
        let file = file.expect("it is in range");
        let object = self.engine.open(id, file).expect("it was just created");
        self.files.push((file, FileKind::Regular, BATCH_MAX));
        let kind = Object::Open(self.files.len() - 1);
        let mut is_full = false;
        for page in 0..BATCH_MAX {
            if page == 0 || is_full {
                let step = self.engine.reclaim(id, MemcgId::ROOT, u64::MAX, Some(0));
                self.advanced(shell, Doing::Reclaim, step, false);
                self.settle();
            }
            self.is_out_of_memory = false;
            self.start(shell, Access::new(object, page, false), kind);
            self.settle();
            is_full = self.is_out_of_memory;
        }
        let step = self.engine.reclaim(id, MemcgId::ROOT, u64::MAX, Some(0));
        self.advanced(shell, Doing::Reclaim, step, false);
        self.settle();
        !is_full
    }

    /// Reads every page that was written, as the device can't fail any more.
    fn read_back(&mut self) {
        for page in self.contents.pages() {
            let (task, object) = match page {
                Page::Anon(task, object, _) => (task.0 as usize, (object, Object::Anon)),
                Page::Tmpfs(file, _) | Page::Regular(file, _) => {
                    let is_it =
                        |object: Object| matches!(object, Object::Open(at) if self.files[at].0 == file);
                    let found = self.tasks[0].objects.iter().find(|(_, object)| is_it(*object));
                    (0, *found.expect("each task has each file open"))
                }
            };
            let (Page::Anon(_, _, at) | Page::Tmpfs(_, at) | Page::Regular(_, at)) = page;
            self.start(task, Access::new(object.0, at, false), object.1);
            self.settle();
        }
    }

    /// Has every file written that can be, and looks at what the devices have then.
    fn check_devices(&mut self) {
        for (id, object) in self.tasks[0].objects.clone() {
            if matches!(object, Object::Open(_)) {
                let step = self.engine.fsync(TaskId(0), id).expect("the object exists");
                self.advanced(0, Doing::Fsync, step, false);
                self.settle();
            }
        }
        for page in self.contents.pages() {
            if let Page::Regular(file, at) = page {
                self.contents.check_device(page, self.store.block(file, at));
            }
        }
    }

    /// Lets transfers end and tasks go on until all are idle.
    fn settle(&mut self) {
        for _ in 0..SETTLING_STEPS_MAX {
            let is_runnable = |task: &Task| matches!(task.state, State::Runnable(_) | State::Repeat(..));
            if let Some(task) = self.tasks.iter().position(is_runnable) {
                self.resume(task);
            } else if self.store.transfers() > 0 {
                self.complete(0, false, false, 0);
            } else {
                let Some(sleeper) = self.tasks.iter().position(|task| !task.is_at_rest()) else { return };
                // A kernel thread may be about to end its nap and wake it.
                let ends = |task: &Task| match task.state {
                    State::Delayed(_, until) | State::Waiting(_, Some(until)) => Some(until),
                    _ => None,
                };
                let napping = (0..self.tasks.len()).filter(|&task| ends(&self.tasks[task]).is_some());
                let Some(napping) = napping.min_by_key(|&task| ends(&self.tasks[task])) else {
                    panic!("task {sleeper} sleeps, but nothing is under way that could wake it")
                };
                self.resume(napping);
            }
        }
        let states: Vec<State> = self.tasks.iter().map(|task| task.state).collect();
        panic!("tasks go on for ever: {states:?}");
    }
}
