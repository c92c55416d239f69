//! Sampling a machine: an observer looks at it every so often, without changing the run.
//!
//! Samples are not events: a run with them is the same run. One is due when the next event lies behind its time, and shows the state of the machine
//! after the earlier events. Tasks run ahead of events through hits; of these, only those that are over by then count.

use pageout_engine::{MemcgId, Nanos};

use super::Machine;
use crate::device::DeviceReport;
use crate::observe::Observer;
use crate::report::{TaskReport, ThreadReport};

impl Machine {
    /// Shows the machine to observers every `period` from now on, its beginning included.
    ///
    /// # Panics
    /// When `period` is 0.
    pub fn sample_every(&mut self, period: Nanos) {
        assert!(period > Nanos::ZERO, "samples without time between them never end");
        self.sample_period = period;
        self.sample_at = self.agenda.now();
    }

    /// Takes the samples that are due by `due`.
    #[cold]
    pub(super) fn take_samples(&mut self, due: Nanos, observer: &mut dyn Observer) {
        while self.sample_at <= due {
            let at = self.sample_at;
            self.follow_groups();
            self.psi.set_now(at);
            self.release_tracepoints(at, observer);
            observer.sample(at, self);
            self.sample_at += self.sample_period;
        }
    }

    /// Accesses of all tasks up to `at`.
    pub fn accesses_by(&self, at: Nanos) -> u64 {
        let of = |task: &crate::task::Task| {
            task.accesses.index - task.last_accesses + task.runner.accesses_by(at, task.last_accesses)
        };
        self.tasks.iter().map(of).sum()
    }

    /// For how long some and all of a group's tasks were stalled by the lack of each resource, in the order of
    /// [`Resource::ALL`](crate::Resource::ALL), up to the current sample.
    pub fn stall_totals(&self, memcg: MemcgId) -> [[Nanos; 2]; 3] {
        self.psi.totals(memcg).unwrap_or_default()
    }

    /// Statistics of each device up to `at`.
    pub fn devices_by(&self, at: Nanos) -> Vec<DeviceReport> {
        self.devices.iter().map(|device| device.report(at)).collect()
    }

    /// Statistics of each process up to `at`.
    pub fn tasks_by(&self, at: Nanos) -> Vec<TaskReport> {
        self.task_reports(at)
    }

    /// Statistics of the kernel's threads so far.
    pub fn threads(&self) -> Vec<ThreadReport> {
        self.thread_reports()
    }
}
