//! [`ByHand`]: the machine that does one thing after the other. Copies are made immediately; transfers end and threads go on at a text's
//! commands. It holds the contents of pages, and compares the result of each access with the last write.

use crate::bytes::contents::{Contents, Heap, Page};
use crate::bytes::store::Store;
use crate::machine::{Came, Device, Rested, Stepped, TestMachine};
use pageout_engine::{
    Access, ConfigError, CpuId, Engine, EngineBuilder, FileId, FileKind, FileSpec, IoError, IoId, Nanos,
    ObjectId, OomKill, Op, PageName, Served, Step, TaskId, ThreadInfo, Touched, Wait,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// A transfer in flight.
struct Transfer {
    io: IoId,
    name: &'static str,
    /// Steps of tasks after which it ends.
    due: u64,
}

/// A kernel thread, and what it waits for.
struct Thread {
    task: TaskId,
    wait: Wait,
    is_woken: bool,
}

/// What has to do with contents, of what a task is in the middle of.
enum Doing {
    Access(Access),
    Truncate(Vec<Page>),
}

/// The machine that does one thing after the other.
pub struct ByHand {
    engine: Engine,
    names: BTreeMap<TaskId, String>,
    store: Store,
    contents: Contents,
    tmpfs: BTreeSet<FileId>,
    /// What tasks are in the middle of.
    doing: BTreeMap<TaskId, Doing>,
    now: Nanos,
    device: Device,
    transfers: VecDeque<Transfer>,
    /// Steps that tasks have made.
    steps: u64,
    ops: BTreeMap<&'static str, u64>,
    threads: BTreeMap<String, Thread>,
    /// Flusher threads, and when their naps end.
    flushers: BTreeMap<TaskId, Option<Nanos>>,
    /// Tasks whose wait is over.
    woken: Vec<TaskId>,
    /// OOM kills since the last question.
    kills: Vec<(OomKill, String)>,
    /// The task that runs: if it is killed, it ends by itself.
    running: Option<TaskId>,
    /// The OOM killer has freed memory since the last check.
    has_killed: bool,
    /// The task that will get a signal.
    signalled: Option<TaskId>,
}

impl TestMachine for ByHand {
    fn new(mut hardware: EngineBuilder) -> ByHand {
        let store = Store::default();
        hardware.set_frame_gate(Box::new(store.gate.clone()));
        let mut engine = hardware.build();
        engine.record_page_cache_events();
        ByHand {
            engine,
            names: BTreeMap::new(),
            store,
            contents: Contents::default(),
            tmpfs: BTreeSet::new(),
            doing: BTreeMap::new(),
            now: Nanos::ZERO,
            device: Device::Answers { after: 0 },
            transfers: VecDeque::new(),
            steps: 0,
            ops: BTreeMap::new(),
            threads: BTreeMap::new(),
            flushers: BTreeMap::new(),
            woken: Vec::new(),
            kills: Vec::new(),
            running: None,
            has_killed: false,
            signalled: None,
        }
    }

    fn with<T>(&mut self, call: impl FnOnce(&mut Engine) -> T) -> T {
        call(&mut self.engine)
    }

    fn name_task(&mut self, task: TaskId, name: &str) {
        self.names.insert(task, name.to_owned());
    }

    fn create_file(&mut self, spec: FileSpec) -> Result<FileId, ConfigError> {
        let is_tmpfs = spec.kind == FileKind::Tmpfs;
        let file = self.engine.file_create(spec)?;
        self.tmpfs.extend(is_tmpfs.then_some(file));
        Ok(file)
    }

    fn access(&mut self, task: TaskId, access: Access) -> Came {
        self.doing.insert(task, Doing::Access(access));
        let step = self.engine.start(task, access);
        self.go_on(task, step)
    }

    fn truncate(&mut self, task: TaskId, object: ObjectId, pages: Option<Range<u64>>) -> Came {
        let all = 0..self.engine.figures().object_pages(task, object).unwrap();
        let of = pages.clone().unwrap_or(all);
        let gone: Vec<Page> = of.map(|page| self.page(task, object, page)).collect();
        for &page in &gone {
            self.contents.is_going(page);
            self.store.is_going(page);
        }
        self.doing.insert(task, Doing::Truncate(gone));
        let step = match pages {
            Some(pages) => self.engine.truncate(task, object, pages),
            None => self.engine.unlink(task, object),
        };
        self.go_on(task, step.unwrap())
    }

    fn madvise_free(&mut self, task: TaskId, object: ObjectId, pages: Range<u64>) {
        for page in pages {
            self.contents.may_be_forgotten(self.page(task, object, page));
            self.engine.madvise_free(task, object, page).unwrap();
        }
    }

    /// Until it is done, or waits for a device or a thread that waits for the text.
    fn go_on(&mut self, task: TaskId, mut step: Step) -> Came {
        let mut slept = Nanos::ZERO;
        loop {
            self.steps += 1;
            self.running = Some(task);
            self.carry_out();
            // Before anyone else gets to the page.
            if let Step::Done(served) = &step {
                self.is_done(task, served);
            }
            self.bury();
            match step {
                Step::Again => {
                    self.run_flushers();
                    if self.signalled.take_if(|signalled| *signalled == task).is_some() {
                        self.engine.signal(task);
                    }
                }
                Step::Wait(Wait::Delay(span, _)) => {
                    slept += span;
                    self.pass(span);
                }
                // The OOM killer has made room.
                Step::Wait(Wait::WokenOr(span, _)) if std::mem::take(&mut self.has_killed) => {
                    slept += span;
                    self.pass(span);
                }
                Step::Wait(Wait::Woken | Wait::WokenOr(..)) => {
                    if !self.take_woken().contains(&task) {
                        return Came::WaitsForWake;
                    }
                }
                Step::Wait(Wait::Io(_)) => {
                    if self.device != Device::Holds && !self.transfers.is_empty() {
                        self.complete();
                    }
                    if !self.take_woken().contains(&task) {
                        return Came::WaitsForDevice;
                    }
                }
                Step::Done(served) => {
                    self.take_woken();
                    return Came::Done(served, slept);
                }
            }
            step = self.engine.resume(task);
        }
    }

    /// Flushers go on whose naps end.
    fn pass(&mut self, span: Nanos) {
        let end = self.now + span;
        loop {
            self.carry_out();
            self.run_flushers();
            let naps = self.flushers.iter().filter_map(|(&flusher, until)| Some(((*until)?, flusher)));
            let Some((until, flusher)) = naps.min().filter(|&(until, _)| until <= end) else { break };
            self.now = self.now.max(until);
            self.engine.set_now(self.now);
            self.run_flusher(flusher);
        }
        self.now = end;
        self.engine.set_now(end);
    }

    fn settle(&mut self) {
        self.carry_out();
        self.run_flushers();
        self.engine.check_invariants();
    }

    fn take_kills(&mut self) -> Vec<(OomKill, String)> {
        std::mem::take(&mut self.kills)
    }

    fn stepped(&mut self) -> Option<&mut dyn Stepped> {
        Some(self)
    }
}

impl Stepped for ByHand {
    fn set_device(&mut self, device: Device) {
        self.device = device;
    }

    fn end_transfer(&mut self, result: Result<(), IoError>) -> (&'static str, Vec<(TaskId, Came)>) {
        let transfer = self.transfers.pop_front().expect("a transfer is in flight");
        self.end(transfer.io, result);
        let woken = self.take_woken();
        (transfer.name, self.resume_all(woken))
    }

    fn start_threads(&mut self) -> Vec<String> {
        for ThreadInfo { task, name, wait, .. } in self.engine.start_kernel_threads() {
            if name.starts_with("flush-") {
                let until = if let Wait::WokenOr(span, _) = wait { Some(self.now + span) } else { None };
                self.flushers.insert(task, until);
            } else {
                self.threads.insert(name, Thread { task, wait, is_woken: false });
            }
        }
        self.threads.keys().cloned().collect()
    }

    fn run_thread(&mut self, name: &str) -> Option<Rested> {
        self.threads[name].is_woken.then(|| self.rest(name))
    }

    fn end_nap(&mut self, name: &str) -> Rested {
        let Wait::WokenOr(span, _) = self.threads[name].wait else {
            panic!("{name} has no end to {:?}", self.threads[name].wait)
        };
        self.now += span;
        self.engine.set_now(self.now);
        self.rest(name)
    }

    fn signal_later(&mut self, task: TaskId) {
        self.signalled = Some(task);
    }

    fn take_ops(&mut self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.ops)
    }
}

impl ByHand {
    /// Lets those end who were killed.
    fn bury(&mut self) {
        let mut kills = Vec::new();
        self.engine.take_oom_kills(&mut kills);
        for kill in kills {
            self.has_killed = true;
            let name = |task| self.names.get(&task).map_or("?", String::as_str).to_owned();
            let log = self.engine.figures().oom_log(&kill, name);
            // A task that is killed in its own request for memory ends by itself.
            for &task in &kill.tasks {
                let goes_on = self.running == Some(task) && self.engine.is_exiting(task);
                while !goes_on && (!self.engine.has_exited(task) || self.engine.is_exiting(task)) {
                    let _ = self.engine.resume(task);
                    self.carry_out();
                }
            }
            self.kills.push((kill, log));
        }
    }

    /// A kernel thread goes on until it waits, and then the tasks that it has woken.
    fn rest(&mut self, name: &str) -> Rested {
        let task = self.threads[name].task;
        let wait = loop {
            self.steps += 1;
            let step = self.engine.resume(task);
            self.carry_out();
            match step {
                Step::Again => {}
                Step::Wait(wait) => break wait,
                Step::Done(served) => panic!("{name} has ended: {served:?}"),
            }
        };
        let thread = self.threads.get_mut(name).expect("it exists");
        (thread.wait, thread.is_woken) = (wait, false);
        let woken = self.take_woken();
        Rested { naps: wait != Wait::Woken, woken: self.resume_all(woken) }
    }

    /// Tasks that were woken. Threads wait for the text.
    fn take_woken(&mut self) -> Vec<TaskId> {
        self.run_flushers();
        let mut woken = std::mem::take(&mut self.woken);
        for thread in self.threads.values_mut() {
            thread.is_woken |= woken.contains(&thread.task);
        }
        woken.retain(|task| self.threads.values().all(|thread| thread.task != *task));
        woken
    }

    /// Flushers whose wait is over go on immediately.
    fn run_flushers(&mut self) {
        loop {
            let mut woken = Vec::new();
            self.engine.take_woken(&mut woken);
            if woken.is_empty() {
                return;
            }
            for task in woken {
                if self.flushers.contains_key(&task) { self.run_flusher(task) } else { self.woken.push(task) }
            }
        }
    }

    fn run_flusher(&mut self, flusher: TaskId) {
        let until = loop {
            let step = self.engine.resume(flusher);
            self.steps += 1;
            self.carry_out();
            match step {
                Step::Again => {}
                Step::Wait(Wait::WokenOr(span, _)) => break Some(self.now + span),
                Step::Wait(Wait::Woken) => break None,
                step => panic!("a flusher came to {step:?}"),
            }
        };
        self.flushers.insert(flusher, until);
    }

    fn resume_all(&mut self, tasks: Vec<TaskId>) -> Vec<(TaskId, Came)> {
        let mut came = Vec::new();
        for task in tasks {
            let step = self.engine.resume(task);
            came.push((task, self.go_on(task, step)));
        }
        came
    }

    /// Takes note of what the engine wants done, and does it where the device answers.
    fn carry_out(&mut self) {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        for op in ops {
            let (name, io) = match op {
                Op::Zero { .. } => ("zero", None),
                Op::Clear { .. } => ("clear", None),
                Op::ReadFile { io, .. } => ("read", Some(io)),
                Op::WriteFile { io, .. } => ("write", Some(io)),
                Op::ReadSwap { io, .. } => ("swap-in", Some(io)),
                Op::WriteSwap { io, .. } => ("swap-out", Some(io)),
                Op::ReadSwapNow { .. } => ("swap-in now", None),
                Op::WriteSwapNow { .. } => ("swap-out now", None),
                Op::ZswapStore { .. } => ("zswap-in", None),
                Op::ZswapLoad { .. } => ("zswap-out", None),
                Op::ZswapMove { .. } => ("zswap-move", None),
                Op::ZswapFree { .. } => ("zswap-free", None),
                Op::Copy { .. } => ("copy", None),
                Op::FreeFrame { .. } => ("free", None),
                Op::FreeSlot { .. } => ("free slot", None),
                Op::PunchHole { .. } => ("hole", None),
            };
            *self.ops.entry(name).or_default() += 1;
            self.store.submit(&self.engine, op);
            self.store.carry_out_any(0);
            if let Some(io) = io {
                let after = if let Device::Answers { after } = self.device { after } else { 0 };
                self.transfers.push_back(Transfer { io, name, due: self.steps + after });
            }
        }
        let mut events = Vec::new();
        self.engine.take_page_cache_events(&mut events);
        events.into_iter().for_each(|event| self.store.note_page_cache(event));
        while self.device != Device::Holds
            && self.transfers.front().is_some_and(|transfer| transfer.due <= self.steps)
        {
            self.complete();
        }
    }

    /// A transfer ends, and the engine is notified.
    fn end(&mut self, io: IoId, result: Result<(), IoError>) {
        let transfer = self.store.end(self.store.transfer_at(io), result.is_err(), false);
        for (file, page) in transfer.written_pages() {
            self.contents.reached_device(
                Page::Regular(file, page),
                result.is_err(),
                self.store.block(file, page),
            );
        }
        self.engine.io_done(io, CpuId(0), result);
    }

    fn page(&self, task: TaskId, object: ObjectId, page: u64) -> Page {
        match self.engine.figures().page_name(task, object, page).unwrap() {
            PageName::Anon { mm, page } => Page::Anon(Heap::of_process(mm), page),
            PageName::File { file, page } if self.tmpfs.contains(&file) => Page::Tmpfs(file, page),
            PageName::File { file, page } => Page::Regular(file, page),
        }
    }

    /// A task's action is done, and changes the contents of pages or checks them.
    fn is_done(&mut self, task: TaskId, served: &Served) {
        match (self.doing.remove(&task), served) {
            (Some(Doing::Access(access)), Served::Hit(at) | Served::Minor(at) | Served::Major(at)) => {
                self.touch(task, access, *at);
            }
            (Some(Doing::Truncate(gone)), Served::Truncated) => {
                for page in gone {
                    self.contents.is_gone(page);
                    self.store.is_gone(page);
                }
            }
            _ => {}
        }
    }

    fn touch(&mut self, task: TaskId, access: Access, at: Touched) {
        let page = self.page(task, access.object, access.page);
        match at {
            Touched::Frame(pfn) if access.write => {
                let name = self.engine.figures().page_name(task, access.object, access.page).unwrap();
                let value = match self.engine.figures().is_of_zeroes(name) {
                    true => self.contents.write_zeroes(page),
                    false => self.contents.write(page),
                };
                *self.store.written_mut(pfn, page) = value;
            }
            Touched::Frame(pfn) => self.contents.check_read(page, *self.store.value_mut(pfn, page)),
            Touched::Zeroes => {
                assert!(!access.write, "{page:?} was written, but is in no frame");
                self.contents.check_read(page, 0);
            }
            // An instruction would run again.
            Touched::Gone => {}
        }
    }

    /// The oldest transfer ends as the device has it.
    fn complete(&mut self) {
        let transfer = self.transfers.pop_front().expect("a transfer is in flight");
        let result = if self.device == Device::Fails { Err(IoError::Device) } else { Ok(()) };
        self.end(transfer.io, result);
        self.carry_out();
    }
}
