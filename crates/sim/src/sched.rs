//! The CPU scheduler, which decides what task runs on which CPU: fair, and simple enough to explain.
//!
//! **Selection.** Each CPU runs one task at a time. CPU time is counted as virtual run time: at nice 0 it passes as the clock does, for a heavier
//! task slower. When the CPU is free, or the running task has used its time slice up, the task with the least virtual run time is next; among equals
//! the one that has waited longest. So CPU-bound tasks share it in proportion to their weights.
//!
//! **Sleepers.** A sleeping task gathers no claim to more than one time slice: it comes back at most a slice behind the one furthest behind on its
//! CPU. If it is behind the running task by more than `wakeup_granularity`, it preempts it at the end of the current step: a batch of reclaim, an
//! access that misses, or hits for [`crate::MachineSpec::quantum`].
//!
//! **Real time.** A task with a real-time priority runs before all that share their CPU, and before those of a lower priority: when it wakes, it
//! preempts them at the end of the current step. It keeps the CPU until it sleeps or one of a higher priority comes. Among equals the first arrival
//! is first, and a preempted task goes on before the others (SCHED_FIFO). It never loses the CPU otherwise, so a task that never sleeps leaves
//! nothing to others, including kernel threads of that CPU; the kernel keeps 5 % of each second back for them.
//!
//! **Placement.** A pinned task stays on its CPU. One that may migrate, within a row of CPUs, goes, when it wakes, to its last CPU if that is idle,
//! else to the first idle one, else to the one with the fewest tasks, its own before others. A CPU that becomes idle takes the task that has waited
//! longest elsewhere, among those that may migrate. At the end of a slice such a task goes to the CPU with the fewest tasks, and among equals on to
//! the next CPU: three tasks on two CPUs take turns at being alone. It keeps its distance to the floor of the queue that it leaves.
//!
//! This is the idea of the kernel's fair class up to 6.5. Version 6.6 brought deadlines within the same fairness (EEVDF), which move latencies of a
//! fraction of a slice. Not modelled on purpose: groups of tasks as one entity (`cpu.weight`), round robin and deadlines among real-time tasks, their
//! bandwidth limit, load averages, caches and distances between CPUs.

mod queue;
mod weight;

use std::ops::Range;

use pageout_engine::{CpuId, Nanos, TaskId};

use queue::{Cpu, Place, Rank, Running};
use weight::Weight;

/// Position of a task in its machine.
pub(crate) type TaskIndex = u32;

/// The knobs of the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedRules {
    /// The time for which a task keeps its CPU while others wait for it. Default 3 ms, the base slice of the kernel on 8 CPUs or more.
    pub timeslice: Nanos,
    /// The CPU time by which a waking task must be behind the running one to preempt it. Default 1 ms, the kernel's before its factor for the number of CPUs. From
    /// a time slice on, no task preempts.
    pub wakeup_granularity: Nanos,
}

impl Default for SchedRules {
    fn default() -> SchedRules {
        SchedRules { timeslice: Nanos(3_000_000), wakeup_granularity: Nanos(1_000_000) }
    }
}

/// Where a task may run, and how much of a CPU is its due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placement {
    /// Where it is, or begins.
    pub(crate) cpu: CpuId,
    /// Where else it may go; nowhere if that is all.
    pub(crate) allowed: CpuRow,
    /// -20 (most) to 19.
    pub(crate) nice: i8,
    /// 1 to 99, the higher before the lower; 0: it shares its CPU.
    pub(crate) rt_priority: u8,
}

/// CPUs that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CpuRow {
    first: u16,
    end: u16,
}

impl CpuRow {
    /// This one and no other.
    pub(crate) fn single(cpu: CpuId) -> CpuRow {
        CpuRow { first: cpu.0, end: cpu.0 + 1 }
    }

    fn contains(self, cpu: CpuId) -> bool {
        (self.first..self.end).contains(&cpu.0)
    }

    fn is_single(self) -> bool {
        self.end - self.first == 1
    }

    fn ids(self) -> impl Iterator<Item = CpuId> {
        (self.first..self.end).map(CpuId)
    }
}

impl From<Range<CpuId>> for CpuRow {
    fn from(cpus: Range<CpuId>) -> CpuRow {
        CpuRow { first: cpus.start.0, end: cpus.end.0 }
    }
}

/// The outcome of a request for a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// The task has this CPU now.
    Now(CpuId),
    /// The task will have this CPU, whose last task still works until then.
    At(CpuId, Nanos),
    /// The task waits in this CPU's queue, and will be named when it is its turn.
    Waits(CpuId),
}

/// All CPUs of a machine, and what they know of its tasks.
#[derive(Debug)]
pub(crate) struct Scheduler {
    rules: SchedRules,
    cpus: Vec<Cpu>,
    /// By the engine's number of the task.
    tasks: Vec<Option<Entity>>,
    arrivals: u64,
    /// Tasks that wait for a CPU, all CPUs together.
    waiting: usize,
}

/// A task as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
struct Entity {
    /// Where it is, or was last.
    cpu: CpuId,
    allowed: CpuRow,
    weight: Weight,
    rank: Rank,
    /// When it came to the queue that it was in last.
    arrival: u64,
    /// While it sleeps: its virtual run time, on the scale of its CPU. None before it has run.
    vruntime: Option<u64>,
}

/// The outcome of the end of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rotated {
    /// The task that has the CPU now: possibly the same as before.
    pub(crate) next: TaskId,
    /// The one that had it goes to another CPU, and asks there.
    pub(crate) leaves: bool,
}

impl Scheduler {
    pub(crate) fn new(cpus: u16, rules: SchedRules) -> Scheduler {
        Scheduler {
            rules,
            cpus: vec![Cpu::default(); usize::from(cpus)],
            tasks: Vec::new(),
            arrivals: 0,
            waiting: 0,
        }
    }

    /// The CPUs of a task that is bound to none.
    pub(crate) fn all_cpus(&self) -> CpuRow {
        CpuRow { first: 0, end: self.cpus.len() as u16 }
    }

    /// Makes a task known. It sleeps until it is ready for the first time.
    pub(crate) fn add(&mut self, task: TaskId, placement: Placement) {
        let slot = task.0 as usize;
        if self.tasks.len() <= slot {
            self.tasks.resize(slot + 1, None);
        }
        let Placement { cpu, allowed, nice, rt_priority } = placement;
        debug_assert!(allowed.contains(cpu));
        let (weight, rank) = (Weight::of_nice(nice), Rank::of_priority(rt_priority));
        self.tasks[slot] = Some(Entity { cpu, allowed, weight, rank, arrival: 0, vruntime: None });
    }

    fn entity(&mut self, task: TaskId) -> &mut Entity {
        self.tasks[task.0 as usize].as_mut().expect("the scheduler knows all tasks that run")
    }

    /// A task is ready at `now`, or goes on where it is.
    #[inline]
    pub(crate) fn ready(&mut self, task: TaskId, now: Nanos) -> Turn {
        let Entity { cpu, weight, rank, vruntime, .. } = *self.entity(task);
        let queue = &mut self.cpus[usize::from(cpu.0)];
        match (queue.running, vruntime) {
            (Some(running), _) if running.task == task => Turn::Now(cpu),
            // On its last CPU if that is free, and no task has got ahead of it by more than a slice.
            (None, Some(vruntime)) if queue.is_idle(now) && queue.grants(vruntime, self.rules.timeslice) => {
                queue.running = Some(Running { task, since: now, vruntime, weight, rank });
                Turn::Now(cpu)
            }
            _ => self.wake_up(task, now),
        }
    }

    /// A task that slept is ready: it gets a CPU, or a place in a queue.
    #[inline(never)]
    fn wake_up(&mut self, task: TaskId, now: Nanos) -> Turn {
        let Entity { cpu: last, allowed, weight, rank, vruntime, .. } = *self.entity(task);
        let cpu = if allowed.is_single() { last } else { self.place(last, allowed, now) };
        let floor = self.cpus[usize::from(cpu.0)].floor(now);
        let vruntime = match vruntime {
            Some(vruntime) => {
                let credit = self.rules.timeslice.0;
                self.translate(vruntime, last, cpu, now).max(floor.saturating_sub(credit))
            }
            None => floor,
        };
        let arrival = self.arrive();
        let entity = self.entity(task);
        (entity.cpu, entity.arrival) = (cpu, arrival);
        let queue = &mut self.cpus[usize::from(cpu.0)];
        match queue.running {
            None => {
                let since = queue.free_at.max(now);
                queue.running = Some(Running { task, since, vruntime, weight, rank });
                if since == now {
                    return Turn::Now(cpu);
                }
                queue.switches += 1;
                Turn::At(cpu, since)
            }
            Some(running) => {
                let lead = running.vruntime_at(now).saturating_sub(vruntime);
                queue.is_claimed |= rank < running.rank
                    || running.rank == Rank::FAIR && lead > self.rules.wakeup_granularity.0;
                queue.enqueue(task, rank, vruntime, arrival);
                self.waiting += 1;
                Turn::Waits(cpu)
            }
        }
    }

    /// The running task gives the CPU up at `at`; the next one, if any, has it from then on.
    #[inline]
    pub(crate) fn pass_on(&mut self, cpu: CpuId, at: Nanos) -> Option<TaskId> {
        let leaving = self.stop(cpu, at);
        self.entity(leaving.task).vruntime = Some(leaving.vruntime);
        if self.waiting == 0 { None } else { self.pass_on_to_next(cpu, at, leaving.task) }
    }

    /// A CPU that `last` has left goes to the next one of those that wait, here or elsewhere.
    #[inline(never)]
    fn pass_on_to_next(&mut self, cpu: CpuId, at: Nanos, last: TaskId) -> Option<TaskId> {
        let next = self.dequeue(cpu).or_else(|| self.pull(cpu, at));
        self.begin(cpu, at, next, last)
    }

    /// Takes out the one that is furthest behind of those that wait for a CPU.
    fn dequeue(&mut self, cpu: CpuId) -> Option<(TaskId, u64)> {
        let first = self.cpus[usize::from(cpu.0)].dequeue()?;
        self.waiting -= 1;
        Some(first)
    }

    /// Returns true if the running task is to make room at `at`: its slice is used up, or someone has preempted it.
    #[inline]
    pub(crate) fn is_yielding(&self, cpu: CpuId, at: Nanos) -> bool {
        let queue = &self.cpus[usize::from(cpu.0)];
        let slice_is_over =
            |running: Running| running.rank == Rank::FAIR && at >= running.since + self.rules.timeslice;
        queue.is_contended() && (queue.is_claimed || queue.running.is_some_and(slice_is_over))
    }

    /// The running task, whose slice is over, makes room at `at` for those that wait.
    #[inline(never)]
    pub(crate) fn rotate(&mut self, cpu: CpuId, at: Nanos) -> Rotated {
        let Running { task, vruntime, rank, .. } = self.stop(cpu, at);
        let allowed = self.entity(task).allowed;
        let home = if allowed.is_single() { cpu } else { self.place_displaced(cpu, allowed, at) };
        let leaves = home != cpu;
        if leaves {
            let vruntime = self.translate(vruntime, cpu, home, at);
            let entity = self.entity(task);
            (entity.cpu, entity.vruntime) = (home, Some(vruntime));
        } else {
            // A task that keeps the CPU until it sleeps, and was preempted, goes on before those that came later.
            let arrival = if rank == Rank::FAIR { self.arrive() } else { self.entity(task).arrival };
            self.cpus[usize::from(cpu.0)].enqueue(task, rank, vruntime, arrival);
            self.waiting += 1;
        }
        let first = self.dequeue(cpu);
        let next = self.begin(cpu, at, first, task).expect("a slice ends only while others wait");
        Rotated { next, leaves }
    }

    /// Returns true if anyone waits for the CPU.
    #[inline]
    pub(crate) fn is_contended(&self, cpu: CpuId) -> bool {
        self.cpus[usize::from(cpu.0)].is_contended()
    }

    /// How often a CPU went from one task to another that waited for it, all CPUs together.
    pub(crate) fn switches(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.switches).sum()
    }

    /// For how long each CPU was taken up to `now`.
    pub(crate) fn busy(&self, now: Nanos) -> impl Iterator<Item = Nanos> {
        self.cpus.iter().map(move |cpu| {
            let running = cpu.running.map_or(0, |running| now.0.saturating_sub(running.since.0));
            let ahead = cpu.free_at.0.saturating_sub(now.0);
            Nanos(cpu.busy.0 - ahead + running)
        })
    }

    fn arrive(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Takes the running task off its CPU at `at`.
    fn stop(&mut self, cpu: CpuId, at: Nanos) -> Running {
        let queue = &mut self.cpus[usize::from(cpu.0)];
        let mut running = queue.running.take().expect("a CPU that is passed on is not idle");
        running.vruntime = running.vruntime_at(at);
        queue.raise_floor(Some(running.vruntime).filter(|_| running.rank == Rank::FAIR));
        queue.busy += Nanos(at.0.saturating_sub(running.since.0));
        queue.free_at = at;
        queue.is_claimed = false;
        running
    }

    /// Gives the CPU to `next` at `at`.
    fn begin(&mut self, cpu: CpuId, at: Nanos, next: Option<(TaskId, u64)>, last: TaskId) -> Option<TaskId> {
        let (task, vruntime) = next?;
        let Entity { weight, rank, .. } = *self.entity(task);
        let queue = &mut self.cpus[usize::from(cpu.0)];
        queue.running = Some(Running { task, since: at, vruntime, weight, rank });
        queue.switches += u64::from(task != last);
        Some(task)
    }

    /// Where a task goes that wakes and may run on several CPUs.
    fn place(&self, last: CpuId, allowed: CpuRow, now: Nanos) -> CpuId {
        let is_idle = |cpu: &CpuId| self.cpus[usize::from(cpu.0)].is_idle(now);
        let idle = std::iter::once(last).chain(allowed.ids()).find(is_idle);
        idle.unwrap_or_else(|| self.least_loaded(std::iter::once(last).chain(allowed.ids()), now))
    }

    /// Where a task goes whose slice on `cpu` is over.
    fn place_displaced(&self, cpu: CpuId, allowed: CpuRow, now: Nanos) -> CpuId {
        let after = allowed.ids().filter(|&other| other > cpu);
        let before = allowed.ids().filter(|&other| other <= cpu);
        self.least_loaded(after.chain(before), now)
    }

    /// The first of those where fewest run or wait.
    fn least_loaded(&self, cpus: impl Iterator<Item = CpuId>, now: Nanos) -> CpuId {
        let load = |cpu: &CpuId| self.cpus[usize::from(cpu.0)].load(now);
        cpus.min_by_key(load).expect("a machine has a CPU")
    }

    fn ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus.len() as u16).map(CpuId)
    }

    /// Takes for `cpu`, which is about to be idle, who has waited longest elsewhere and may migrate.
    fn pull(&mut self, cpu: CpuId, at: Nanos) -> Option<(TaskId, u64)> {
        let waiting = self.ids().flat_map(|from| {
            self.cpus[usize::from(from.0)].waiting().map(move |(key, task)| (from, key, task))
        });
        let may_come = |&(_, _, task): &(CpuId, Place, TaskId)| {
            self.tasks[task.0 as usize].is_some_and(|entity| entity.allowed.contains(cpu))
        };
        let (from, key, task) =
            waiting.filter(may_come).min_by_key(|&(_, (rank, _, arrival), _)| (rank, arrival))?;
        self.cpus[usize::from(from.0)].remove(key);
        self.waiting -= 1;
        self.entity(task).cpu = cpu;
        Some((task, self.translate(key.1, from, cpu, at)))
    }

    /// A virtual run time on the scale of another CPU: as far from the floor there as here.
    fn translate(&mut self, vruntime: u64, from: CpuId, to: CpuId, at: Nanos) -> u64 {
        if from == to {
            return vruntime;
        }
        let here = self.cpus[usize::from(from.0)].floor(at);
        let there = self.cpus[usize::from(to.0)].floor(at);
        (there + vruntime).saturating_sub(here)
    }
}

#[cfg(test)]
mod tests;
