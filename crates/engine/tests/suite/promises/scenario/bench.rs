//! The machine that a scenario drives: the engine, and what its text has named; transfers that wait, threads that go on.

use pageout_engine::*;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

pub(super) struct Transfer {
    pub(super) io: IoId,
    pub(super) name: String,
    /// Steps of tasks after which it ends.
    pub(super) due: u64,
}

pub(super) struct Machine {
    pub(super) engine: Engine,
    pub(super) now: Nanos,
    pub(super) files: BTreeMap<String, FileId>,
    pub(super) tasks: BTreeMap<String, TaskId>,
    pub(super) processes: BTreeMap<TaskId, MmId>,
    pub(super) objects: BTreeMap<(TaskId, String), ObjectId>,
    /// Steps that a transfer takes; `None` if it waits to be told.
    pub(super) latency: Option<u64>,
    pub(super) answer: Result<(), IoError>,
    pub(super) steps: u64,
    /// All work until the last question for any.
    pub(super) worked: Work,
    pub(super) transfers: VecDeque<Transfer>,
    pub(super) ops: BTreeMap<&'static str, u64>,
    pub(super) failure: String,
    pub(super) threads: BTreeMap<String, Thread>,
    /// Flusher threads, and when their naps end.
    pub(super) flushers: BTreeMap<TaskId, Option<Nanos>>,
    /// Tasks whose wait is over.
    pub(super) woken: Vec<TaskId>,
    /// Who was killed since the last question.
    pub(super) kills: Vec<OomKill>,
    pub(super) log: String,
    /// Who goes on: if it is killed, it ends by itself.
    pub(super) running: Option<TaskId>,
    pub(super) has_killed: bool,
    /// For whom a signal is to come.
    pub(super) signalled: Option<TaskId>,
}

/// A kernel thread, and what it waits for.
pub(super) struct Thread {
    pub(super) task: TaskId,
    pub(super) wait: Wait,
    pub(super) is_woken: bool,
}

impl Machine {
    pub(super) fn new(engine: Engine) -> Machine {
        Machine {
            engine,
            now: Nanos::ZERO,
            files: BTreeMap::new(),
            tasks: BTreeMap::new(),
            processes: BTreeMap::new(),
            objects: BTreeMap::new(),
            latency: Some(0),
            answer: Ok(()),
            steps: 0,
            worked: Work::default(),
            transfers: VecDeque::new(),
            ops: BTreeMap::new(),
            failure: String::new(),
            threads: BTreeMap::new(),
            flushers: BTreeMap::new(),
            woken: Vec::new(),
            kills: Vec::new(),
            log: String::new(),
            running: None,
            has_killed: false,
            signalled: None,
        }
    }

    pub(super) fn name_of(&self, task: TaskId) -> String {
        self.tasks
            .iter()
            .find(|(_, id)| **id == task)
            .map_or_else(|| "?".to_owned(), |(name, _)| name.clone())
    }

    /// Lets those end who were killed.
    pub(super) fn bury(&mut self) {
        let mut kills = Vec::new();
        self.engine.take_oom_kills(&mut kills);
        for kill in kills {
            self.has_killed = true;
            self.log = self.engine.figures().oom_log(&kill, |task| self.name_of(task));
            // Who is killed for its own want of memory ends by itself.
            for &task in &kill.tasks {
                let goes_on = self.running == Some(task) && self.engine.is_exiting(task);
                while !goes_on && (!self.engine.has_exited(task) || self.engine.is_exiting(task)) {
                    let _ = self.engine.resume(task);
                    self.carry_out();
                }
            }
            self.kills.push(kill);
        }
    }

    pub(super) fn accesses(&mut self, task: TaskId, object: &str, pages: Range<u64>, write: bool) -> String {
        let object = self.object(task, object);
        let mut runs: Vec<(u64, String)> = Vec::new();
        for page in pages {
            let step = self.engine.start(task, Access::new(object, page, write));
            let served = self.go_on(task, step);
            match runs.last_mut() {
                Some((count, last)) if *last == served => *count += 1,
                _ => runs.push((1, served)),
            }
        }
        let text = |(count, served): &(u64, String)| match count {
            1 => served.clone(),
            count => format!("{count}{served}"),
        };
        runs.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    /// Goes on with a task until it is done or waits for a device that holds its answer.
    pub(super) fn go_on(&mut self, task: TaskId, mut step: Step) -> String {
        let mut slept = Nanos::ZERO;
        loop {
            self.steps += 1;
            self.running = Some(task);
            self.carry_out();
            self.bury();
            step = match step {
                Step::Again => {
                    self.run_flushers();
                    if self.signalled.take_if(|signalled| *signalled == task).is_some() {
                        self.engine.signal(task);
                    }
                    self.engine.resume(task)
                }
                Step::Wait(Wait::Delay(span, _)) => {
                    slept += span;
                    self.pass(span);
                    self.engine.resume(task)
                }
                // The OOM killer has made room.
                Step::Wait(Wait::WokenOr(span, _)) if std::mem::take(&mut self.has_killed) => {
                    slept += span;
                    self.pass(span);
                    self.engine.resume(task)
                }
                Step::Wait(Wait::Woken | Wait::WokenOr(..)) => {
                    if !self.take_woken().contains(&task) {
                        return "T".to_owned();
                    }
                    self.engine.resume(task)
                }
                Step::Wait(Wait::Io(_)) => {
                    if self.latency.is_some() && !self.transfers.is_empty() {
                        self.complete();
                    }
                    if !self.take_woken().contains(&task) {
                        return "W".to_owned();
                    }
                    self.engine.resume(task)
                }
                Step::Done(served) => {
                    self.take_woken();
                    let served = match served {
                        Served::Hit(_) => "H".to_owned(),
                        Served::Minor(_) => "m".to_owned(),
                        Served::Major(_) => "M".to_owned(),
                        Served::Written { reclaimed: pages } => format!("reclaimed {pages}"),
                        Served::Interrupted { reclaimed } => format!("interrupted, reclaimed {reclaimed}"),
                        Served::Synced(Ok(())) => "synced".to_owned(),
                        Served::Synced(Err(IoError::Device)) => "failed".to_owned(),
                        Served::Truncated => "truncated".to_owned(),
                        Served::Exited => "exited".to_owned(),
                        Served::Advised => "advised".to_owned(),
                        Served::Opened => "opened".to_owned(),
                        Served::Refused(error) => panic!("{error}"),
                        Served::Failed(error) => {
                            self.failure = error.to_string();
                            let name = if error == AccessError::Io { "E" } else { "O" };
                            assert!(matches!(error, AccessError::Io | AccessError::Oom(_)), "{error}");
                            name.to_owned()
                        }
                    };
                    return if slept == Nanos::ZERO { served } else { format!("{served} after {slept}") };
                }
            };
        }
    }

    /// A kernel thread goes on until it waits, and then those whom it has woken.
    pub(super) fn run_thread(&mut self, name: &str) -> String {
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
        let how = if wait == Wait::Woken { "sleeps" } else { "naps" };
        let woken = self.take_woken();
        format!("{how}{}", self.resume_all(woken))
    }

    /// Tasks that were woken. Threads wait for `run`.
    pub(super) fn take_woken(&mut self) -> Vec<TaskId> {
        self.run_flushers();
        let mut woken = std::mem::take(&mut self.woken);
        for thread in self.threads.values_mut() {
            thread.is_woken |= woken.contains(&thread.task);
        }
        woken.retain(|task| self.threads.values().all(|thread| thread.task != *task));
        woken
    }

    /// Flushers whose wait is over go on at once.
    pub(super) fn run_flushers(&mut self) {
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

    pub(super) fn run_flusher(&mut self, flusher: TaskId) {
        loop {
            let step = self.engine.resume(flusher);
            self.steps += 1;
            self.carry_out();
            let until = match step {
                Step::Again => continue,
                Step::Wait(Wait::WokenOr(span, _)) => Some(self.now + span),
                Step::Wait(Wait::Woken) => None,
                step => panic!("a flusher came to {step:?}"),
            };
            self.flushers.insert(flusher, until);
            return;
        }
    }

    /// Time passes, and flushers go on whose naps end.
    pub(super) fn pass(&mut self, span: Nanos) {
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

    pub(super) fn resume_all(&mut self, tasks: Vec<TaskId>) -> String {
        let mut answer = String::new();
        for task in tasks {
            let step = self.engine.resume(task);
            let served = self.go_on(task, step);
            let name = self.tasks.iter().find(|(_, id)| **id == task).map_or("", |(name, _)| name);
            answer += &format!(", {name} {served}");
        }
        answer
    }

    pub(super) fn io(&mut self, result: Result<(), IoError>) -> String {
        let transfer = self.transfers.pop_front().expect("a transfer is in flight");
        self.engine.io_done(transfer.io, CpuId(0), result);
        let woken = self.take_woken();
        transfer.name + &self.resume_all(woken)
    }

    /// Takes note of what the engine wants done, and does it where the device answers.
    pub(super) fn carry_out(&mut self) {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        for op in ops {
            let (name, io) = match op {
                Op::Zero { .. } => ("zero", None),
                Op::ReadFile { io, .. } => ("read", Some(io)),
                Op::WriteFile { io, .. } => ("write", Some(io)),
                Op::ReadSwap { io, .. } => ("swap-in", Some(io)),
                Op::WriteSwap { io, .. } => ("swap-out", Some(io)),
                Op::ReadSwapNow { .. } => ("swap-in now", None),
                Op::WriteSwapNow { .. } => ("swap-out now", None),
                Op::ZswapStore { .. } => ("zswap-in", None),
                Op::ZswapLoad { .. } => ("zswap-out", None),
                Op::ZswapFree { .. } => ("zswap-free", None),
                Op::Copy { .. } => ("copy", None),
                Op::FreeFrame { .. } => ("free", None),
                Op::FreeSlot { .. } => ("free slot", None),
                Op::PunchHole { .. } => ("hole", None),
            };
            *self.ops.entry(name).or_default() += 1;
            if let Some(io) = io {
                let due = self.steps + self.latency.unwrap_or(0);
                self.transfers.push_back(Transfer { io, name: name.to_owned(), due });
            }
        }
        while self.latency.is_some()
            && self.transfers.front().is_some_and(|transfer| transfer.due <= self.steps)
        {
            self.complete();
        }
    }

    /// The oldest transfer ends as the device has it.
    pub(super) fn complete(&mut self) {
        let transfer = self.transfers.pop_front().expect("a transfer is in flight");
        self.engine.io_done(transfer.io, CpuId(0), self.answer);
        self.carry_out();
    }
}
