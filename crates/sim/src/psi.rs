//! Pressure stall information: for how much of their time tasks could not go on for want of memory, I/O or a CPU. [machine-6.12 4]
//!
//! ```text
//!   task: runnable, on its CPU, in I/O wait, in a memstall section
//!     └─▶ (group, CPU): counts of each ─▶ some, full of memory, io, cpu: time in each       at every change
//!           └─▶ group: mean over CPUs, weighted with the time they had anything to do      every 2 s and a tick
//!                 └─▶ total, avg10, avg60, avg300 ─▶ /proc/pressure/*, *.pressure           when they are read
//! ```
//! *Some*: at least one task is stalled. *Full*: tasks are stalled and none does anything useful meanwhile. Which sections are
//! memstall sections is the engine's knowledge ([`pageout_engine::Engine::memstall`]); the machine asks it after each step.
//! A step in which a task reclaims belongs to the section as a whole.
//!
//! The machine tells changes when it learns of them. They are written down, and taken in when somebody reads, or when there are many:
//! every miss of every task tells some, and has nothing to wait for. So the way of a miss does not lead through all that a change
//! means. Some changes lie ahead of the time at which they are told: when a step is priced, it is known when its task will stop. These
//! wait in `later`, so that a collection sees the past and nothing else. The worker needs no events: it is made up for whenever time
//! is found to have passed.
//!
//! Not here: triggers (poll) and `irq.pressure`. Work that runs on no task's account (completions) stalls no one.

mod group;
mod state;

use pageout_engine::{CpuId, MemcgId, Nanos, TaskId};

use group::{Group, Period};
pub(crate) use state::Doing;
pub use state::Resource;
use state::{Cell, Transition};

/// The pressure on a machine.
#[derive(Clone, Debug)]
pub(crate) struct Psi {
    /// What was told, and is yet to be taken in.
    told: Vec<Told>,
    now: Nanos,
    cpus: u16,
    period: Period,
    /// By number of the cgroup; the machine is the root.
    groups: Vec<Option<Group>>,
    /// By number of the cgroup, then by CPU.
    cells: Vec<Cell>,
    /// By the engine's number of the task.
    tasks: Vec<Option<Task>>,
    /// Changes ahead of `now`, the last one first.
    later: Vec<Change>,
    /// When a group's worker is due next.
    work_due: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    memcg: MemcgId,
    cpu: CpuId,
    doing: Doing,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    at: Nanos,
    task: TaskId,
    cpu: CpuId,
    doing: Doing,
}

/// A change, and when it was told.
#[derive(Clone, Copy, Debug)]
struct Told {
    now: Nanos,
    change: Change,
}

/// Changes that are written down before they are taken in: few enough to stay in the cache.
const TOLD: usize = 64;

impl Psi {
    /// A machine whose root is the only group.
    pub(crate) fn new(cpus: u16, hz: u32) -> Psi {
        let mut psi = Psi {
            told: Vec::with_capacity(TOLD),
            now: Nanos::ZERO,
            cpus,
            period: Period::new(hz),
            groups: Vec::new(),
            cells: Vec::new(),
            tasks: Vec::new(),
            later: Vec::new(),
            work_due: Nanos(u64::MAX),
        };
        psi.group_add(MemcgId::ROOT, None);
        psi
    }

    /// Makes a group known, from now on.
    pub(crate) fn group_add(&mut self, memcg: MemcgId, parent: Option<MemcgId>) {
        self.take_in();
        let slot = usize::from(memcg.0);
        if self.groups.len() <= slot {
            self.groups.resize(slot + 1, None);
            self.cells.resize((slot + 1) * usize::from(self.cpus), Cell::default());
        }
        self.groups[slot] = Some(Group::new(parent, self.cpus, self.period, self.now));
    }

    /// Whether it knows the group.
    pub(crate) fn has_group(&self, memcg: MemcgId) -> bool {
        self.groups.get(usize::from(memcg.0)).is_some_and(Option::is_some)
    }

    /// Makes a task of a group known. It does nothing yet.
    pub(crate) fn task_add(&mut self, task: TaskId, memcg: MemcgId, cpu: CpuId) {
        let slot = task.0 as usize;
        if self.tasks.len() <= slot {
            self.tasks.resize(slot + 1, None);
        }
        self.tasks[slot] = Some(Task { memcg, cpu, doing: Doing::default() });
    }

    /// At `now`, a task is known to do this on this CPU from `at` on, which is not in the past. Of changes at the same time the last
    /// one told counts.
    #[inline]
    pub(crate) fn tell(&mut self, now: Nanos, at: Nanos, task: TaskId, cpu: CpuId, doing: Doing) {
        self.told.push(Told { now, change: Change { at, task, cpu, doing } });
        if self.told.len() >= TOLD {
            self.take_in();
        }
    }

    /// Takes in what was told.
    #[inline(never)]
    fn take_in(&mut self) {
        let mut told = std::mem::take(&mut self.told);
        for &Told { now, change } in &told {
            self.pass_to(now);
            self.change(change);
        }
        told.clear();
        self.told = told;
    }

    /// Time has passed, and what was told until now is to be seen.
    pub(crate) fn set_now(&mut self, now: Nanos) {
        self.take_in();
        self.pass_to(now);
    }

    fn pass_to(&mut self, now: Nanos) {
        if self.work_due <= now || self.later.last().is_some_and(|change| change.at <= now) {
            self.catch_up(now);
        }
        self.now = now;
    }

    /// Makes up for what was to happen until `now`.
    fn catch_up(&mut self, now: Nanos) {
        loop {
            let next = self.later.last().map_or(Nanos(u64::MAX), |change| change.at);
            if next.min(self.work_due) > now {
                return;
            }
            if next <= self.work_due {
                let change = self.later.pop().expect("it is due");
                self.apply(change);
            } else {
                self.work();
            }
        }
    }

    fn change(&mut self, change: Change) {
        if change.at <= self.now {
            self.apply(change);
        } else {
            let place = self.later.partition_point(|later| later.at > change.at);
            self.later.insert(place, change);
        }
    }

    fn apply(&mut self, Change { at, task, cpu, doing }: Change) {
        let known = self.tasks[task.0 as usize].as_mut().expect("a task is added before it does anything");
        let before = std::mem::replace(known, Task { cpu, doing, ..*known });
        if (before.cpu, before.doing) == (cpu, doing) {
            return;
        }
        if before.cpu == cpu {
            self.tell_groups(before.memcg, cpu, at, Transition::new(before.doing, doing));
        } else {
            let gone = Transition::new(before.doing, Doing::default());
            self.tell_groups(before.memcg, before.cpu, at, gone);
            self.tell_groups(before.memcg, cpu, at, Transition::new(Doing::default(), doing));
        }
    }

    /// A task of this group, and so of those above it, does something else on this CPU.
    fn tell_groups(&mut self, memcg: MemcgId, cpu: CpuId, at: Nanos, transition: Transition) {
        let mut next = Some(memcg);
        while let Some(memcg) = next {
            let group = self.groups[usize::from(memcg.0)].as_mut().expect("a task's group is there");
            let cell = &mut self.cells[usize::from(memcg.0) * usize::from(self.cpus) + usize::from(cpu.0)];
            cell.change(at, transition, memcg == MemcgId::ROOT);
            if transition.runnable && group.work_due.is_none() {
                let due = self.period.after(at);
                group.work_due = Some(due);
                self.work_due = self.work_due.min(due);
            }
            next = group.parent;
        }
    }

    /// The workers that are due come by.
    fn work(&mut self) {
        let due = self.work_due;
        self.work_due = Nanos(u64::MAX);
        for (group, cells) in self.groups.iter_mut().zip(self.cells.chunks(usize::from(self.cpus))) {
            let Some(group) = group else { continue };
            if group.work_due == Some(due) {
                group.work(cells, due);
            }
            self.work_due = group.work_due.map_or(self.work_due, |at| at.min(self.work_due));
        }
    }

    /// What the file of a group says; `None` if there is no such group.
    pub(crate) fn text(&mut self, memcg: MemcgId, resource: Resource) -> Option<String> {
        let cells = cells_of(&self.cells, memcg, self.cpus);
        Some(self.groups.get_mut(usize::from(memcg.0))?.as_mut()?.text(cells, resource, self.now))
    }

    /// For how long some and all of a group's tasks were stalled; `None` if there is no such group.
    pub(crate) fn totals(&self, memcg: MemcgId, resource: Resource) -> Option<[Nanos; 2]> {
        let cells = cells_of(&self.cells, memcg, self.cpus);
        Some(self.groups.get(usize::from(memcg.0))?.as_ref()?.totals(cells, resource, self.now))
    }
}

/// The cells of a group; none where there is no such group.
fn cells_of(cells: &[Cell], memcg: MemcgId, cpus: u16) -> &[Cell] {
    cells.chunks(usize::from(cpus)).nth(usize::from(memcg.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
