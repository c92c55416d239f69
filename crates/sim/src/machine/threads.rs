//! Threads that run no workload: those of the kernel, and control tasks, each of which writes a kernel file or syncs.
//!
//! Threads run in steps and compete for CPUs as tasks do, and the engine names them when a wait is over. They have no accesses. The engine's kernel
//! threads exist from the start and wait for a wake-up. A control task is made when a write that takes time begins, and is reused for the next one
//! when it has ended.
//!
//! A kswapd runs on the CPUs of its node, other kernel threads on any; a control task is bound to the first.

use pageout_engine::{KdamondFigures, MemcgId, Nanos, Served, Step, ThreadInfo};

use super::agenda::Event;
use super::{Machine, RunError};
use crate::account::Account;
use crate::observe::Observer;
use crate::reclaim_time::ReclaimTime;
use crate::report::ThreadReport;
use crate::runner::{Next, Runner, State};
use crate::sched::{CpuRow, Placement, TaskIndex};

/// Index of the first thread; those below are the machine's tasks.
pub(super) const THREAD: TaskIndex = 1 << 31;

/// A thread without accesses.
pub(super) struct Thread {
    pub(super) runner: Runner,
    pub(super) role: Role,
    /// Time of its work.
    pub(super) account: Account,
    /// How long a thread that writes for a shell has reclaimed.
    pub(super) reclaim_time: ReclaimTime,
}

/// What a thread is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A thread of the kernel's, of this name.
    Kernel(String),
    /// A thread that writes a kernel file or syncs for a shell, or has done so; `entry` is where the result goes among the report's writes.
    Control { entry: usize, shell: usize },
}

impl Machine {
    /// The kernel's threads, as the machine starts. They wait.
    pub(super) fn start_kernel_threads(&mut self) {
        for ThreadInfo { task, name, cpus, wait } in self.engine.start_kernel_threads() {
            let runner = Runner::new(task, cpus.start, self.agenda.now());
            let index = self.thread_add(runner, Role::Kernel(name), cpus.into());
            let of_thread = |kdamond: &&KdamondFigures| kdamond.task == Some(task);
            let kdamond = self.engine.kdamonds().iter().find(of_thread);
            if kdamond.is_some_and(KdamondFigures::needs_memory_stall) {
                self.stall_readers.push(index);
            }
            let next = self.runner_mut(index).take_step(Step::Wait(wait)).expect_err("a wait serves nothing");
            self.come_back(index, &next);
        }
    }

    /// What the next wake of a kswapd takes, where that was recorded.
    pub(super) fn recorded_wake_up(&self, index: TaskIndex) -> Option<Nanos> {
        let count = self.kswapd_wake_ups.len();
        let thread = index.checked_sub(THREAD).filter(|_| count > 0).map(|at| &self.threads[at as usize])?;
        let is_kswapd = matches!(&thread.role, Role::Kernel(name) if name.starts_with("kswapd"));
        is_kswapd.then(|| self.kswapd_wake_ups[self.kswapd_woken % count])
    }

    pub(super) fn thread_add(&mut self, runner: Runner, role: Role, allowed: CpuRow) -> TaskIndex {
        let index = THREAD + self.threads.len() as TaskIndex;
        let placement = Placement { cpu: runner.cpu, allowed, nice: 0, rt_priority: 0 };
        self.enlist(runner.id, MemcgId::ROOT, placement, index);
        let (account, reclaim_time) = (Account::default(), ReclaimTime::default());
        self.threads.push(Thread { runner, role, account, reclaim_time });
        index
    }

    /// One step of a thread, at its clock, which is the present.
    pub(super) fn thread_step(
        &mut self,
        index: TaskIndex,
        observer: &mut dyn Observer,
    ) -> Result<Next, Box<RunError>> {
        if self.stall_readers.contains(&index) {
            self.psi.set_now(self.agenda.now());
            let [memory, ..] = self.stall_totals(MemcgId::ROOT);
            self.engine.set_memory_stall(memory[0]);
        }
        let before = self.account();
        let id = self.runner_mut(index).id;
        let step = self.engine.resume(id);
        self.finish_thread_step(index, before, step, observer)
    }

    /// Settles a step; `before` is the machine's account as it was before the step's engine call.
    pub(super) fn finish_thread_step(
        &mut self,
        index: TaskIndex,
        before: Account,
        step: Step,
        observer: &mut dyn Observer,
    ) -> Result<Next, Box<RunError>> {
        let Runner { id, cpu, .. } = *self.runner_mut(index);
        let settled = self.settle(Some(id), cpu, observer);
        let spent = self.account() - before;
        self.threads[(index - THREAD) as usize].account += spent;
        let Thread { runner, role, .. } = &mut self.threads[(index - THREAD) as usize];
        let began = runner.clock;
        runner.work(settled.spent);
        if matches!(role, Role::Control { .. }) {
            // One whose call is done is in the middle of nothing.
            let is_in_one = !matches!(step, Step::Done(_)) && self.engine.in_reclaim(id);
            self.note_reclaim_for_write(index, began, settled.reclaim_calls, is_in_one);
        }
        let Thread { runner, role, .. } = &mut self.threads[(index - THREAD) as usize];
        if matches!(role, Role::Kernel(_))
            && let Some(stalled) = runner.end_step(&step, &settled, &self.engine)
        {
            self.tell_memstall(index, began, &stalled);
        }
        let Thread { runner, role, .. } = &mut self.threads[(index - THREAD) as usize];
        let next = match (runner.take_step(step), role) {
            (Err(Next::GoOn), _) => runner.queue_until(settled.admitted, false),
            (Err(next), _) => next,
            (
                Ok(ref served @ (Served::Written { reclaimed } | Served::Interrupted { reclaimed })),
                &mut Role::Control { entry, shell },
            ) => {
                runner.state = State::Ended;
                let clock = runner.clock;
                let is_interrupted = matches!(served, Served::Interrupted { .. });
                self.write_done(entry, clock, reclaimed, is_interrupted);
                self.agenda.push(clock, Event::ShellGoesOn(shell as u32));
                Next::Stop
            }
            (Ok(Served::Synced(result)), &mut Role::Control { entry, shell }) => {
                runner.state = State::Ended;
                let clock = runner.clock;
                self.sync_done(entry, clock, result);
                self.agenda.push(clock, Event::ShellGoesOn(shell as u32));
                Next::Stop
            }
            (Ok(Served::Refused(error)), &mut Role::Control { entry, shell }) => {
                runner.state = State::Ended;
                let clock = runner.clock;
                self.outcome.writes[entry].error = Some(*error);
                self.agenda.push(clock, Event::ShellGoesOn(shell as u32));
                Next::Stop
            }
            (Ok(served), role) => unreachable!("{role:?} is served by {served:?}"),
        };
        self.wake();
        Ok(next)
    }

    /// Measures the reclaim calls that have ended in a step of a thread that writes for a shell. It may be in another one.
    fn note_reclaim_for_write(&mut self, index: TaskIndex, began: Nanos, calls: u64, is_in_one: bool) {
        let Thread { runner, reclaim_time, .. } = &mut self.threads[(index - THREAD) as usize];
        let span = reclaim_time.step(began, runner.clock, calls, is_in_one);
        for _ in 0..calls {
            self.reclaim_for_writes.record(span);
        }
    }

    /// CPU time that was not used by kernel threads: tasks' own work, and that of shells and timers.
    pub(super) fn account_of_tasks(&self) -> Account {
        let threads = self.threads.iter().filter(|thread| matches!(thread.role, Role::Kernel(_)));
        threads.fold(self.account(), |rest, thread| rest - thread.account)
    }

    /// What the kernel's threads did.
    pub(super) fn thread_reports(&self) -> Vec<ThreadReport> {
        let now = self.agenda.now();
        let report = |thread: &Thread| {
            let Role::Kernel(name) = &thread.role else { return None };
            let spent = thread.runner.spent_by(now);
            Some(ThreadReport {
                name: name.clone(),
                cpu_time: spent.cpu_time,
                cpu_wait: spent.waited.cpu,
                spent: thread.account.spent(&self.costs),
            })
        };
        self.threads.iter().filter_map(report).collect()
    }
}
