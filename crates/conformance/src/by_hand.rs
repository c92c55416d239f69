//! [`ByHand`]: the engine, and nothing beside it. What it asks for is counted; transfers end and threads go on when a text says so.

use crate::machine::{Came, Device, Machine, Rested, Stepped};
use pageout_engine::{
    CpuId, Engine, EngineBuilder, IoError, IoId, Nanos, OomKill, Op, Step, TaskId, ThreadInfo, Wait,
};
use std::collections::{BTreeMap, VecDeque};

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

/// The machine that does one thing after the other.
pub struct ByHand {
    engine: Engine,
    names: BTreeMap<TaskId, String>,
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
    /// Who was killed since the last question.
    kills: Vec<(OomKill, String)>,
    /// Who goes on: if it is killed, it ends by itself.
    running: Option<TaskId>,
    /// The OOM killer has made room since somebody looked.
    has_killed: bool,
    /// For whom a signal is to come.
    signalled: Option<TaskId>,
}

impl Machine for ByHand {
    fn new(hardware: EngineBuilder) -> ByHand {
        ByHand {
            engine: hardware.build(),
            names: BTreeMap::new(),
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

    /// Until it is done, or waits for a device or a thread that waits for the text.
    fn go_on(&mut self, task: TaskId, mut step: Step) -> Came {
        let mut slept = Nanos::ZERO;
        loop {
            self.steps += 1;
            self.running = Some(task);
            self.carry_out();
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
        self.engine.io_done(transfer.io, CpuId(0), result);
        let woken = self.take_woken();
        (transfer.name, self.resume_all(woken))
    }

    fn start_threads(&mut self) -> Vec<String> {
        for ThreadInfo { task, name, wait, .. } in self.engine.start_kernel_threads() {
            if name.starts_with("flush-") {
                self.flushers.insert(task, None);
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
            // Who is killed for its own want of memory ends by itself.
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

    /// A kernel thread goes on until it waits, and then those whom it has woken.
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

    /// Flushers whose wait is over go on at once.
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
                let after = if let Device::Answers { after } = self.device { after } else { 0 };
                self.transfers.push_back(Transfer { io, name, due: self.steps + after });
            }
        }
        while self.device != Device::Holds
            && self.transfers.front().is_some_and(|transfer| transfer.due <= self.steps)
        {
            self.complete();
        }
    }

    /// The oldest transfer ends as the device has it.
    fn complete(&mut self) {
        let transfer = self.transfers.pop_front().expect("a transfer is in flight");
        let result = if self.device == Device::Fails { Err(IoError::Device) } else { Ok(()) };
        self.engine.io_done(transfer.io, CpuId(0), result);
        self.carry_out();
    }
}
