//! Who runs where: each CPU runs one task at a time, and those that wait for it take turns.
//!
//! A task is bound to its CPU. It keeps the CPU until it sleeps, ends, or has run for a time slice while another waits;
//! then the one that has waited longest is next. A waker does not preempt and nobody migrates: that is simpler than the
//! kernel's scheduler, and enough for tasks that compete for a CPU to slow each other down by the right factor.

use std::collections::VecDeque;

use pageout_engine::{CpuId, Nanos};

/// Position of a task in its machine.
pub(crate) type TaskIndex = u32;

/// All CPUs of a machine.
#[derive(Debug, Default)]
pub(crate) struct Cpus {
    cpus: Vec<Cpu>,
    timeslice: Nanos,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<TaskIndex>,
    /// Since when `running` has had the CPU.
    since: Nanos,
    waiting: VecDeque<TaskIndex>,
    switches: u64,
}

impl Cpus {
    pub(crate) fn new(timeslice: Nanos) -> Cpus {
        Cpus { cpus: Vec::new(), timeslice }
    }

    /// Makes sure the CPU exists.
    pub(crate) fn ensure(&mut self, cpu: CpuId) {
        let count = usize::from(cpu.0) + 1;
        if self.cpus.len() < count {
            self.cpus.resize(count, Cpu::default());
        }
    }

    /// A CPU that runs nobody: this one, or else the first.
    pub(crate) fn idle_near(&self, cpu: CpuId) -> Option<CpuId> {
        let is_idle = |at: usize| self.cpus[at].running.is_none();
        let near = usize::from(cpu.0);
        if is_idle(near) {
            return Some(cpu);
        }
        (0..self.cpus.len()).find(|&at| is_idle(at)).map(|at| CpuId(at as u16))
    }

    /// Whether the task has the CPU from `now` on; otherwise it waits and will be named by [`Cpus::pass_on`].
    pub(crate) fn take(&mut self, cpu: CpuId, task: TaskIndex, now: Nanos) -> bool {
        let cpu = &mut self.cpus[usize::from(cpu.0)];
        match cpu.running {
            Some(running) if running == task => true,
            Some(_) => {
                cpu.waiting.push_back(task);
                false
            }
            None => {
                cpu.running = Some(task);
                cpu.since = now;
                true
            }
        }
    }

    /// The running task gives the CPU up at `at`; the next one, if any, has it from then on.
    pub(crate) fn pass_on(&mut self, cpu: CpuId, at: Nanos) -> Option<TaskIndex> {
        let cpu = &mut self.cpus[usize::from(cpu.0)];
        assert!(cpu.running.is_some(), "an idle CPU is passed on");
        cpu.running = cpu.waiting.pop_front();
        cpu.since = at;
        cpu.switches += u64::from(cpu.running.is_some());
        cpu.running
    }

    /// The running task goes behind those that wait, and the first of them has the CPU from `at` on.
    pub(crate) fn rotate(&mut self, cpu: CpuId, at: Nanos) -> Option<TaskIndex> {
        let waiting = &mut self.cpus[usize::from(cpu.0)];
        waiting.waiting.extend(waiting.running);
        self.pass_on(cpu, at)
    }

    /// Whether anyone waits for the CPU.
    pub(crate) fn is_contended(&self, cpu: CpuId) -> bool {
        !self.cpus[usize::from(cpu.0)].waiting.is_empty()
    }

    /// Whether the running task has used its slice up by `at` and someone waits.
    pub(crate) fn slice_is_over(&self, cpu: CpuId, at: Nanos) -> bool {
        self.is_contended(cpu) && at >= self.cpus[usize::from(cpu.0)].since + self.timeslice
    }

    /// How often a CPU went from one task to another that waited for it, all CPUs together.
    pub(crate) fn switches(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.switches).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId(0);

    fn one_cpu() -> Cpus {
        let mut cpus = Cpus::new(Nanos(100));
        cpus.ensure(CPU);
        cpus
    }

    #[test]
    fn the_longest_waiting_task_is_next() {
        let mut cpus = one_cpu();
        assert!(cpus.take(CPU, 0, Nanos(0)));
        assert!(!cpus.take(CPU, 1, Nanos(1)) && !cpus.take(CPU, 2, Nanos(2)));
        assert_eq!(cpus.pass_on(CPU, Nanos(10)), Some(1));
        assert!(cpus.take(CPU, 1, Nanos(10)));
        assert_eq!((cpus.pass_on(CPU, Nanos(20)), cpus.pass_on(CPU, Nanos(30))), (Some(2), None));
        assert_eq!(cpus.switches(), 2);
    }

    #[test]
    fn who_is_bound_to_no_cpu_goes_where_nobody_runs() {
        let mut cpus = one_cpu();
        cpus.ensure(CpuId(2));
        assert_eq!(cpus.idle_near(CpuId(1)), Some(CpuId(1)));
        assert!(cpus.take(CpuId(1), 0, Nanos(0)));
        assert_eq!(cpus.idle_near(CpuId(1)), Some(CPU));
        assert!(cpus.take(CPU, 1, Nanos(0)) && cpus.take(CpuId(2), 2, Nanos(0)));
        assert_eq!(cpus.idle_near(CPU), None);
    }

    #[test]
    fn a_slice_ends_only_when_someone_waits() {
        let mut cpus = one_cpu();
        assert!(cpus.take(CPU, 0, Nanos(0)));
        assert!(!cpus.slice_is_over(CPU, Nanos(1_000)));
        assert!(!cpus.take(CPU, 1, Nanos(50)));
        assert!(!cpus.slice_is_over(CPU, Nanos(99)) && cpus.slice_is_over(CPU, Nanos(100)));
        assert_eq!((cpus.rotate(CPU, Nanos(100)), cpus.rotate(CPU, Nanos(200))), (Some(1), Some(0)));
    }
}
