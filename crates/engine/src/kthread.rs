//! Kernel threads, and waits that someone else ends.
//!
//! A kernel thread is a task without an address space: it accesses nothing, never ends, and the host runs it in steps like any
//! other task. It mostly waits. A caller with work for the thread first records the work, then wakes the thread
//! ([`Core::wake`]). The thread checks for recorded work and starts to wait within one call. Calls follow one another, so no
//! wake falls in between and is lost.
//!
//! ```text
//!   machine: start_kernel_threads ─▶ name, CPU, first wait ─▶ a runner that sleeps
//!   waker:   its request, wake(task) ─▶ take_woken ─▶ resume(task) ─▶ step ─▶ Again | Wait
//! ```
//! A wait for a wake can have a timeout ([`Wait::WokenOr`]). If the timeout comes first, the machine resumes the task, and the
//! task learns that it was not woken.

use std::ops::Range;

use crate::core::Core;
use crate::machine::step::Wait;
use crate::units::{CpuId, NodeId, TaskId};

/// What a kernel thread does.
pub(crate) trait KernelThread: Send + Sync {
    /// What the kernel calls it, such as `kswapd0`.
    fn name(&self) -> String;

    /// The node whose CPUs it runs on, if that has any; all CPUs if none.
    fn node(&self) -> Option<NodeId> {
        None
    }

    /// What the thread waits for when the machine starts.
    fn first_wait(&self) -> Wait {
        Wait::Woken
    }

    /// The machine is about to start, and this is the thread's task, which callers with work for it wake.
    fn started(&mut self, core: &mut Core, task: TaskId);

    /// Goes on until it waits or a batch is over. `woken`: its last wait was for a wake, and one came.
    fn step(&mut self, core: &mut Core, woken: bool) -> ThreadStep;

    /// Returns true if it is inside a reclaim call.
    fn in_reclaim(&self) -> bool {
        false
    }
}

/// The outcome of one step of a kernel thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadStep {
    /// A batch is over; there is more to do.
    Again,
    Wait(Wait),
}

/// A kernel thread, as the machine has to run it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadInfo {
    /// To be resumed as any task.
    pub task: TaskId,
    /// The kernel's name of the thread.
    pub name: String,
    /// CPUs that the machine may run it on. It is on the first until it is moved.
    pub cpus: Range<CpuId>,
    /// The wait of the thread at its start.
    pub wait: Wait,
}

/// Kernel threads that wait until someone wakes them. There are few at any time.
#[derive(Default)]
pub(crate) struct Sleepers(Vec<TaskId>);

impl Sleepers {
    /// A task begins to wait.
    pub(crate) fn add(&mut self, task: TaskId) {
        debug_assert!(!self.0.contains(&task), "{task:?} sleeps twice");
        self.0.push(task);
    }

    /// A task waits no longer; whether it did.
    pub(crate) fn remove(&mut self, task: TaskId) -> bool {
        let at = self.0.iter().position(|&sleeper| sleeper == task);
        at.map(|at| self.0.remove(at)).is_some()
    }
}

impl Core {
    /// Ends a task's wait for a wake; false if it doesn't wait for one: then it will see what the waker has written down.
    pub(crate) fn wake(&mut self, task: TaskId) -> bool {
        let sleeps = self.sleepers.remove(task);
        if sleeps {
            self.out.wake(task);
        }
        sleeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::step::{DelayReason, Step};
    use crate::{Config, Engine, Nanos};

    /// Makes the given waits, and counts in the statistics how it was woken.
    struct Sleeper(Vec<Wait>);

    impl KernelThread for Sleeper {
        fn name(&self) -> String {
            "sleeper".to_owned()
        }

        fn started(&mut self, _: &mut Core, _: TaskId) {}

        fn step(&mut self, core: &mut Core, woken: bool) -> ThreadStep {
            core.congestion_waits += if woken { 1 } else { 100 };
            self.0.pop().map_or(ThreadStep::Again, ThreadStep::Wait)
        }
    }

    /// An engine with one thread that waits for what is given, last first, and how often it was woken or was not.
    fn started(waits: &[Wait]) -> (Engine, TaskId) {
        let mut engine = Engine::new(Config::default()).unwrap();
        engine.core.threads_to_start.clear();
        engine.core.threads_to_start.push(Box::new(Sleeper(waits.to_vec())));
        let threads = engine.start_kernel_threads();
        let task = threads[0].task;
        assert_eq!(
            threads,
            [ThreadInfo { task, name: "sleeper".into(), cpus: CpuId(0)..CpuId(1), wait: Wait::Woken }]
        );
        (engine, task)
    }

    fn woken(engine: &mut Engine) -> Vec<TaskId> {
        let mut woken = Vec::new();
        engine.take_woken(&mut woken);
        woken
    }

    #[test]
    fn a_wake_ends_a_wait_once() {
        let (mut engine, task) = started(&[Wait::Woken]);
        assert!(engine.core.wake(task) && !engine.core.wake(task));
        assert_eq!(woken(&mut engine), [task]);
        assert_eq!(engine.resume(task), Step::Wait(Wait::Woken));
        assert_eq!(engine.core.congestion_waits, 1);
        assert!(engine.core.wake(task));
        assert_eq!(woken(&mut engine), [task]);
        assert_eq!(engine.resume(task), Step::Again);
        assert!(!engine.core.wake(task), "it runs, and is named to nobody");
        assert_eq!(woken(&mut engine), []);
    }

    #[test]
    fn who_is_resumed_by_its_timer_learns_that_nobody_woke_it() {
        let nap = Wait::WokenOr(Nanos(100), DelayReason::Nap);
        let (mut engine, task) = started(&[nap, nap]);
        assert!(engine.core.wake(task));
        assert_eq!(engine.resume(task), Step::Wait(nap));
        assert_eq!(engine.resume(task), Step::Wait(nap));
        assert_eq!(engine.core.congestion_waits, 101);
        // A wake after the timer has gone off and before the machine has resumed it: it counts as woken.
        assert!(engine.core.wake(task));
        assert_eq!(engine.resume(task), Step::Again);
        assert_eq!(engine.core.congestion_waits, 102);
    }
}
