//! Tasks: what each is in the middle of, and how a call from the machine takes it further.

use crate::access::Object;
use crate::engine::Engine;
use crate::fault::Attempt;
use crate::high::HighReclaim;
use crate::reclaim::{ReclaimStep, UserReclaim};
use crate::step::{Access, Served, Step};
use crate::units::{CpuId, MmId, TaskId};

/// A thread of execution.
pub(crate) struct Task {
    pub(crate) mm: MmId,
    pub(crate) cpu: CpuId,
    pub(crate) objects: Vec<Object>,
    /// Pages charged while above `memory.high`, to be reclaimed before returning to user space.
    pub(crate) high_debt: u64,
    /// The read it waited for has failed.
    pub(crate) read_failed: bool,
    stage: Stage,
}

/// What a task is in the middle of.
enum Stage {
    Idle,
    Access(Attempt),
    /// A write to `memory.reclaim`, or a limit lowered below usage.
    UserReclaim(UserReclaim),
    /// An access is complete; what it owes for `memory.high` is being paid.
    High(Box<HighReclaim>),
}

impl Task {
    pub(crate) fn new(mm: MmId, cpu: CpuId) -> Task {
        Task { mm, cpu, objects: Vec::new(), high_debt: 0, read_failed: false, stage: Stage::Idle }
    }

    pub(crate) fn suspend(&mut self, attempt: Attempt) {
        self.stage = Stage::Access(attempt);
    }
}

impl Engine {
    /// What the calls below do, they do as this task on its CPU.
    pub(crate) fn enter(&mut self, task: TaskId) {
        self.current = task;
        self.cpu = self.tasks[task.index()].cpu;
    }

    /// Begins an access.
    ///
    /// The task must not be in the middle of another one.
    pub fn start(&mut self, task: TaskId, access: Access) -> Step {
        self.enter(task);
        assert!(
            matches!(self.tasks[task.index()].stage, Stage::Idle),
            "task {} is in the middle of something",
            task.0
        );
        match self.check_access(task, access) {
            Err(error) => Step::Done(Served::Failed(error)),
            // What the fast path could have served is a hit here too.
            Ok(_) if self.run_hits(task, &[access], |access| access) == 1 => {
                self.return_to_user(task, Served::Hit)
            }
            Ok(object) => self.attempt(task, Attempt::new(access, object)),
        }
    }

    /// Goes on with what a task is in the middle of: after [`Step::Again`], or when its wait is over.
    pub fn resume(&mut self, task: TaskId) -> Step {
        self.enter(task);
        match std::mem::replace(&mut self.tasks[task.index()].stage, Stage::Idle) {
            Stage::Idle => panic!("task {} is in the middle of nothing", task.0),
            Stage::Access(attempt) => self.attempt(task, attempt),
            Stage::UserReclaim(request) => self.user_reclaim(task, request),
            Stage::High(high) => self.pay_high(task, high),
        }
    }

    /// Whether a task is inside a reclaim call.
    pub fn in_reclaim(&self, task: TaskId) -> bool {
        match &self.tasks[task.index()].stage {
            Stage::Idle => false,
            Stage::Access(attempt) => attempt.in_reclaim(),
            Stage::UserReclaim(_) => true,
            Stage::High(high) => high.in_reclaim(),
        }
    }

    /// Goes on with reclaim that a user asked for.
    pub(crate) fn user_reclaim(&mut self, task: TaskId, mut request: UserReclaim) -> Step {
        match self.user_reclaim_step(&mut request) {
            ReclaimStep::Again => {
                self.tasks[task.index()].stage = Stage::UserReclaim(request);
                Step::Again
            }
            ReclaimStep::Done(reclaimed) => Step::Done(Served::Reclaimed(reclaimed)),
        }
    }

    /// The last thing before an access is complete: pays what it owes for `memory.high`.
    #[inline]
    pub(crate) fn return_to_user(&mut self, task: TaskId, served: Served) -> Step {
        match std::mem::take(&mut self.tasks[task.index()].high_debt) {
            0 => Step::Done(served),
            debt => self.pay_high(task, Box::new(HighReclaim::new(debt, served))),
        }
    }

    pub(crate) fn suspend_high(&mut self, task: TaskId, high: Box<HighReclaim>) {
        self.tasks[task.index()].stage = Stage::High(high);
    }
}
