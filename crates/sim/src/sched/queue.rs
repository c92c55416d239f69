//! The run queue of one CPU: the task that runs, and the tasks that wait, in their order.

use std::collections::BTreeMap;

use pageout_engine::{Nanos, TaskId};

use super::weight::Weight;

/// A task that has a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) task: TaskId,
    /// Since when, which may be ahead of the machine's time: then its predecessor works until then.
    pub(super) since: Nanos,
    /// The virtual run time of the task at `since`.
    pub(super) vruntime: u64,
    pub(super) weight: Weight,
    pub(super) rank: Rank,
}

/// Priority between tasks, regardless of their run time: the lower first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank(u8);

impl Rank {
    /// Tasks that share their CPU.
    pub(super) const FAIR: Rank = Rank(u8::MAX);

    /// The rank of a task by its real-time priority; 0 is none.
    pub(super) fn of_priority(rt_priority: u8) -> Rank {
        if rt_priority == 0 { Rank::FAIR } else { Rank(Rank::FAIR.0 - rt_priority) }
    }
}

/// Place in a queue: by rank, virtual run time, and when it came.
pub(super) type Place = (Rank, u64, u64);

impl Running {
    /// The virtual run time of the task at `at`.
    pub(super) fn vruntime_at(&self, at: Nanos) -> u64 {
        self.vruntime + self.weight.virtual_time(Nanos(at.0.saturating_sub(self.since.0)))
    }
}

/// A CPU and its queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    pub(super) running: Option<Running>,
    /// Until when its last owner works; the past if `running` is a task.
    pub(super) free_at: Nanos,
    /// Tasks that wait for the CPU.
    waiting: BTreeMap<Place, TaskId>,
    /// Virtual run time of the one furthest behind among those here that share it; it never falls.
    floor: u64,
    /// Someone who waits is to have the CPU as soon as the running task comes to the end of a step.
    pub(super) is_claimed: bool,
    pub(super) switches: u64,
    pub(super) busy: Nanos,
}

impl Cpu {
    pub(super) fn is_contended(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Tasks that run or wait here at `now`.
    pub(super) fn load(&self, now: Nanos) -> usize {
        usize::from(self.running.is_some() || self.free_at > now) + self.waiting.len()
    }

    /// Returns true if it does nothing at `now`.
    #[inline]
    pub(super) fn is_idle(&self, now: Nanos) -> bool {
        self.running.is_none() && self.free_at <= now && self.waiting.is_empty()
    }

    /// Returns true if a task that comes to the idle CPU keeps its virtual run time: it is no more than a slice behind.
    #[inline]
    pub(super) fn grants(&self, vruntime: u64, timeslice: Nanos) -> bool {
        vruntime >= self.floor.saturating_sub(timeslice.0)
    }

    /// The floor, brought up to `at`.
    pub(super) fn floor(&mut self, at: Nanos) -> u64 {
        let running = self.running.filter(|running| running.rank == Rank::FAIR);
        self.raise_floor(running.map(|running| running.vruntime_at(at)));
        self.floor
    }

    /// Raises the floor to the one furthest behind of those that wait and the one that runs, which exists.
    pub(super) fn raise_floor(&mut self, running: Option<u64>) {
        let first = self.waiting.range((Rank::FAIR, 0, 0)..).next().map(|(&(_, vruntime, _), _)| vruntime);
        if let Some(behind) = first.into_iter().chain(running).min() {
            self.floor = self.floor.max(behind);
        }
    }

    pub(super) fn enqueue(&mut self, task: TaskId, rank: Rank, vruntime: u64, arrival: u64) {
        // Among those of a priority who came first is first, however long it has run.
        let vruntime = if rank == Rank::FAIR { vruntime } else { 0 };
        self.waiting.insert((rank, vruntime, arrival), task);
    }

    /// Takes out the first: of the highest rank, and the one furthest behind.
    pub(super) fn dequeue(&mut self) -> Option<(TaskId, u64)> {
        let ((_, vruntime, _), task) = self.waiting.pop_first()?;
        Some((task, vruntime))
    }

    /// Tasks that wait for the CPU, with their keys.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Place, TaskId)> {
        self.waiting.iter().map(|(&key, &task)| (key, task))
    }

    pub(super) fn remove(&mut self, key: Place) {
        self.waiting.remove(&key);
    }
}
