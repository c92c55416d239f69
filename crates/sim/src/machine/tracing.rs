//! Tracepoints of all engine calls in the order of time, each with its CPU and the task that ran there.
//!
//! The engine emits them within its calls, and a call takes no time there. Here it takes the time of its work: a reclaim call that ends in a step
//! ends when that step does, as in [`Report::reclaim`](crate::Report::reclaim). So a step's last events may be later than the first ones of steps on
//! other CPUs that begin before it ends. They wait until nothing earlier can come. Events with the time of the call itself need not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pageout_engine::{CpuId, Nanos, NodeId, TaskId, Told, Tracepoint};

use super::Machine;
use super::threads::{Role, THREAD};
use crate::observe::Observer;

/// A tracepoint, and where it was met.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceRecord {
    /// Virtual time of the event.
    pub at: Nanos,
    /// The CPU on which the event happened.
    pub cpu: CpuId,
    /// The task that ran there; none during a device's interrupt or the statistics worker.
    pub task: Option<TaskId>,
    /// The node that it is about.
    pub node: NodeId,
    /// The event.
    pub event: Tracepoint,
}

/// Records that wait for earlier ones.
#[derive(Default)]
pub(super) struct Tracing {
    waiting: BinaryHeap<Reverse<Waiting>>,
    told: u64,
}

/// One of them. Events of equal times are in the order in which they were emitted.
struct Waiting {
    order: (Nanos, u64),
    record: TraceRecord,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.order == other.order
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

/// Division of the time of an engine call among its events: calls of reclaim that end in it get equal parts, one after the other. Each event lies at
/// the beginning of its part, and ends lie at the end.
struct Parts {
    begin: Nanos,
    spent: Nanos,
    calls: u64,
    ended: u64,
}

impl Parts {
    fn at(&self, part: u64) -> Nanos {
        match self.spent.0.checked_div(self.calls) {
            _ if part == 0 => self.begin,
            // Nanoseconds that don't divide belong to the last part.
            Some(_) if part >= self.calls => self.begin + self.spent,
            Some(each) => self.begin + Nanos(each * part),
            None => self.begin,
        }
    }

    fn stamp(&mut self, event: &Tracepoint) -> Nanos {
        if event.ends_reclaim() {
            self.ended += 1;
        }
        self.at(self.ended)
    }
}

impl Machine {
    /// Starts sending the events of a kernel's tracepoints to observers.
    pub fn tell_tracepoints(&mut self) {
        self.engine.tell_tracepoints();
        self.tells_story = true;
    }

    /// The `comm` of a task.
    pub fn comm(&self, task: TaskId) -> Option<&str> {
        let index = self.task_index.get(task.0 as usize).copied().flatten()?;
        match index.checked_sub(THREAD) {
            None => Some(&self.tasks[index as usize].name),
            Some(thread) => match &self.threads[thread as usize].role {
                Role::Kernel(name) => Some(name),
                Role::Control { .. } => Some("control"),
            },
        }
    }

    /// Returns true if a task only writes kernel files when a timed event says so.
    pub fn is_control_task(&self, task: TaskId) -> bool {
        let index = self.task_index.get(task.0 as usize).copied().flatten();
        let thread = index.and_then(|index| index.checked_sub(THREAD));
        thread.is_some_and(|thread| matches!(self.threads[thread as usize].role, Role::Control { .. }))
    }

    /// Delivers the events of an engine call: stories immediately, tracepoints in the order of time.
    #[cold]
    pub(super) fn hand_over_story(
        &mut self,
        task: Option<TaskId>,
        cpu: CpuId,
        spent: Nanos,
        calls: u64,
        observer: &mut dyn Observer,
    ) {
        self.engine.take_story(&mut self.story);
        let now = self.agenda.now();
        self.release_tracepoints(now, observer);
        let mut parts = Parts { begin: now, spent, calls, ended: 0 };
        let mut story = std::mem::take(&mut self.story);
        for event in story.drain(..) {
            let Told::Tracepoint(told) = event.told else {
                observer.story(&event);
                continue;
            };
            let record = TraceRecord { at: parts.stamp(&told), cpu, task, node: event.node, event: told };
            if record.at == now {
                observer.tracepoint(&record, self);
            } else {
                self.tracing.told += 1;
                self.tracing.waiting.push(Reverse(Waiting { order: (record.at, self.tracing.told), record }));
            }
        }
        self.story = story;
    }

    /// Hands over the tracepoints up to a time before which nothing more can happen.
    pub(super) fn release_tracepoints(&mut self, until: Nanos, observer: &mut dyn Observer) {
        while self.tracing.waiting.peek().is_some_and(|Reverse(first)| first.order.0 <= until) {
            let Some(Reverse(first)) = self.tracing.waiting.pop() else { return };
            observer.tracepoint(&first.record, self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_end_in_a_step_share_its_time_to_the_last_nanosecond() {
        let end = Tracepoint::DirectReclaimEnd { nr_reclaimed: 1 };
        let other = Tracepoint::KswapdSleep;
        let mut parts = Parts { begin: Nanos(100), spent: Nanos(50), calls: 3, ended: 0 };
        let stamps = [other, end, other, end, other, end, other].map(|event| parts.stamp(&event).0);
        assert_eq!(stamps, [100, 116, 116, 132, 132, 150, 150]);
        let mut none = Parts { begin: Nanos(7), spent: Nanos(50), calls: 0, ended: 0 };
        assert_eq!(none.stamp(&other).0, 7);
    }
}
