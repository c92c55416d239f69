//! Timer ticks of NUMA balancing: when a task has used its scan period of CPU time, so that a scan of its memory is due.
//!
//! The kernel looks at each tick whether the running task has used its period of CPU time. Here a task's clock stops at the one tick at
//! which that will be so; ticks before it would find nothing.

use pageout_engine::Nanos;

use super::Machine;
use crate::event::NEVER;
use crate::observe::Observer;
use crate::runner::Next;
use crate::task::Task;

impl Task {
    /// The first tick at which it will have used more CPU time than its period, if it works all the time until then.
    #[cold]
    pub(super) fn scan_clock(&self, hz: u32) -> Nanos {
        let tick = Nanos::from_ticks(1, hz).0;
        let beyond = (self.runner.clock.0 + self.scan_due.0 + 1).saturating_sub(self.runner.cpu_time.0);
        Nanos(beyond.next_multiple_of(tick))
    }
}

impl Machine {
    /// Asks when tasks are to be scanned: at the start, and when balancing may have been turned on or off.
    pub(super) fn follow_scans(&mut self) {
        for index in 0..self.tasks.len() {
            self.tasks[index].scan_due = self.engine.scan_due(self.tasks[index].runner.id).unwrap_or(NEVER);
        }
    }

    /// It is that tick: the task looks after its memory on its way back to user space.
    #[cold]
    pub(super) fn scan_tick(&mut self, index: usize, observer: &mut dyn Observer) -> Next {
        let (id, cpu) = (self.tasks[index].runner.id, self.tasks[index].runner.cpu);
        let has_scanned = self.engine.scan_tick(id, self.tasks[index].runner.cpu_time);
        let settled = self.settle(Some(id), cpu, observer);
        let runner = &mut self.tasks[index].runner;
        let began = runner.clock;
        runner.work(settled.spent);
        if let Some(memory) = &mut self.memory {
            memory.scanning += settled.spent;
        }
        if has_scanned {
            // CPU time is counted in ticks.
            let tick = Nanos::from_ticks(1, self.engine.figures().hz()).0;
            let ticks = runner.clock.0 / tick - began.0 / tick;
            self.engine.scan_took(id, Nanos(ticks * tick));
        }
        self.tasks[index].scan_due = self.engine.scan_due(id).unwrap_or(NEVER);
        self.wake();
        Next::GoOn
    }
}
