//! The end of a task, and of the address space that it was the last to run in.
//!
//! ```text
//!   exit   the task is gone ──────────────────┐  the last one there: page tables are emptied, a table a step; anonymous
//!   exec   it goes on in a new address space ─┴─ memory and swap slots go, files are unmapped, walks no longer come by
//! ```
//! An address space whose tasks are never ended stays unchanged, as if they slept: a machine that only measures how memory was filled needs that.

use crate::access::engine::Engine;
use crate::access::hits;
use crate::access::task::{Current, Stage};
use crate::machine::step::{Served, Step};
use crate::units::{MmId, TaskId};
use crate::zap::Zap;

/// An address space being taken apart by the last task that ran in it.
pub(crate) struct Exit {
    mm: MmId,
    zap: Zap,
    /// The task's state afterwards.
    then: Stage,
}

impl Engine {
    /// Ends a task. The last one of an address space takes it apart, which takes steps: [`Step::Done`] with
    /// [`Served::Exited`] comes when all is given back.
    ///
    /// The task must be in the middle of nothing, and nothing may be asked of it afterwards.
    pub fn task_exit(&mut self, task: TaskId) -> Step {
        self.enter(task);
        self.assert_idle(task);
        self.current(task).exit()
    }

    /// The task executes its program again from the start (execve). It continues in a new address space with the mappings of the old one,
    /// none of which is in memory. Its files are open at their start. The rest is as for [`Engine::task_exit`].
    pub fn task_exec(&mut self, task: TaskId) -> Step {
        self.enter(task);
        self.assert_idle(task);
        let old = self.mm_of(task);
        let new = self.process_create_like(old);
        let task_of = &mut self.tasks[task.index()];
        task_of.mm = Some(new);
        for object in &mut task_of.objects {
            object.open().iter().for_each(|&open| self.core.mm.memory.open_again(open));
            if let hits::Object::Mapping { mm, .. } = object {
                *mm = new;
            }
        }
        self.core.mm.memory.mm_mut(new).users += 1;
        self.current(task).leave(old, Stage::Idle)
    }

    /// Ends all tasks of a process together, with the contents of their address space. None of them may be in the middle of an access.
    pub fn process_exit(&mut self, mm: MmId) {
        for task in (0..self.tasks.len()).map(|task| TaskId(task as u32)) {
            if self.tasks[task.index()].mm != Some(mm) || self.has_exited(task) {
                continue;
            }
            let mut step = self.task_exit(task);
            while step == Step::Again {
                step = self.resume(task);
            }
        }
    }

    /// Forgets a task that has ended: its number is reused for the next one. Its objects must be closed before it ends.
    ///
    /// # Panics
    /// Panics where it has not ended.
    pub fn task_forget(&mut self, task: TaskId) {
        let of = &mut self.tasks[task.index()];
        assert!(matches!(of.stage, Stage::Exited) && of.mm.is_some(), "task {} has not ended", task.0);
        of.mm = None;
        self.free_tasks.push(task);
        self.core.sleepers.remove(task);
    }

    /// Returns true if a task has ended, or is ending.
    pub fn has_exited(&self, task: TaskId) -> bool {
        match &self.tasks[task.index()].stage {
            Stage::Exited => true,
            Stage::Exit(exit) => matches!(exit.then, Stage::Exited),
            _ => false,
        }
    }

    /// Returns true if a task is ending, and to be resumed until it has.
    pub fn is_exiting(&self, task: TaskId) -> bool {
        matches!(&self.tasks[task.index()].stage, Stage::Exit(exit) if matches!(exit.then, Stage::Exited))
    }
}

impl Current<'_> {
    /// The task ends, being in the middle of nothing.
    pub(super) fn exit(&mut self) -> Step {
        let mm = self.task.mm();
        self.drop_promotion_work();
        self.task.objects = Vec::new();
        (self.task.closed, self.task.lent) = (Vec::new(), None);
        self.task.high_debt = 0;
        self.core.dirtier_exits(&mut self.task.dirty, self.task.cpu);
        self.free_stack();
        self.leave(mm, Stage::Exited)
    }

    /// A task no longer runs in an address space.
    fn leave(&mut self, mm: MmId, then: Stage) -> Step {
        let space = self.core.mm.memory.mm_mut(mm);
        space.users -= 1;
        if space.users > 0 {
            self.task.stage = then;
            return Step::Done(Served::Exited);
        }
        self.exit_step(Box::new(Exit { mm, zap: Zap::default(), then }))
    }

    pub(crate) fn exit_step(&mut self, mut exit: Box<Exit>) -> Step {
        if self.core.exit_mmap(exit.mm, &mut exit.zap) {
            self.task.stage = Stage::Exit(exit);
            return Step::Again;
        }
        self.task.stage = exit.then;
        Step::Done(Served::Exited)
    }
}
