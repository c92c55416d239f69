//! Processes that the engine's OOM killer has ended: their tasks are taken to their ends, and the report is updated.

use pageout_engine::{OomCause, OomKill, TaskId};

use super::Machine;
use super::threads::THREAD;
use crate::report::Kill;
use crate::runner::State;

impl Machine {
    /// Takes note of who was killed since the last time, and has their tasks go on to their ends: those that run, wait, pause, or
    /// sleep after their last access.
    #[cold]
    pub(super) fn note_kills(&mut self) {
        let mut kills = Vec::new();
        self.engine.take_oom_kills(&mut kills);
        for kill in kills {
            let log = self.engine.figures().oom_log(&kill, |task| self.name_of(task));
            let was_at_rest = kill.tasks.iter().all(|&task| self.is_at_rest(task));
            let OomKill { at, memcg, badness, invoked_by, with_group, .. } = &kill;
            self.kills.push(Kill {
                at: *at,
                task: kill.tasks.first().map_or_else(|| "?".to_owned(), |&task| self.name_of(task)),
                was_at_rest,
                memcg: memcg.clone(),
                invoked_by: self.name_of(*invoked_by),
                limited: kill.limited().map(str::to_owned),
                min_ttl_ms: match kill.cause {
                    OomCause::WorkingSet { min_ttl_ms } => Some(min_ttl_ms),
                    OomCause::Allocation(_) => None,
                },
                with_group: with_group.clone(),
                badness: *badness,
                log,
            });
            for task in kill.tasks {
                self.kill(task);
            }
        }
    }

    fn kill(&mut self, task: TaskId) {
        let now = self.agenda.now();
        let index = self.index_of(task);
        let has_exited = self.engine.has_exited(task);
        if index < THREAD {
            let task = &mut self.tasks[index as usize];
            if !has_exited && task.runner.state == State::Ended {
                task.at_rest = Some((task.runner.clock, task.runner.spent_by(task.runner.clock)));
            }
            task.killed = Some(now);
        }
        if has_exited {
            // It was killed for its own want of memory, and has ended there.
            return;
        }
        if let Some(at) = self.runner_mut(index).kill(now) {
            self.push_run(at, index);
        }
    }

    /// Returns true if a task has made all its accesses.
    fn is_at_rest(&self, task: TaskId) -> bool {
        let index = self.index_of(task);
        let has_ended = index < THREAD && self.tasks[index as usize].runner.state == State::Ended;
        has_ended && !self.engine.has_exited(task)
    }

    /// The kernel's name of a task: its name, or that of its thread. A task that writes a kernel file has the name of a shell.
    fn name_of(&self, task: TaskId) -> String {
        self.comm(task).unwrap_or("sh").to_owned()
    }
}
