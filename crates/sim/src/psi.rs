//! Pressure stall information: the share of their time in which tasks were delayed by a lack of memory, I/O or a CPU. [machine 4]
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
//! The machine reports changes when it learns of them. They are recorded in order of time. They are processed when the figures are read, or when
//! there are many: every miss of every task reports some, and waits for nothing. So a miss does not process all consequences of a change. Some
//! changes lie ahead of the time at which they are reported: when a step is priced, the time at which its task will stop is known. These stay
//! recorded until their time has come, so that a collection sees only the past. The worker needs no events: its periods are made up for whenever
//! changes are processed.
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
    /// Reported changes that are not processed yet, in order of time; at the same time in the order of their reports.
    changes: Vec<Change>,
    /// Number that is processed together, in addition to those that lay ahead the last time.
    changes_max: usize,
    now: Nanos,
    cpus: u16,
    period: Period,
    /// By number of the cgroup; the machine is the root.
    groups: Vec<Option<Group>>,
    /// By number of the cgroup, then by CPU.
    cells: Vec<Cell>,
    /// By the engine's number of the task.
    tasks: Vec<Option<Task>>,
    /// When a group's worker is due next.
    work_due: Nanos,
    /// The worker of some group may stay away.
    has_idle: bool,
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

/// Changes that are written down before they are taken in: few enough to stay in the cache.
const LOT: usize = 64;

impl Psi {
    /// A machine whose root is the only group.
    pub(crate) fn new(cpus: u16, hz: u32) -> Psi {
        let mut psi = Psi {
            changes: Vec::with_capacity(LOT),
            changes_max: LOT,
            now: Nanos::ZERO,
            cpus,
            period: Period::new(hz),
            groups: Vec::new(),
            cells: Vec::new(),
            tasks: Vec::new(),
            work_due: Nanos(u64::MAX),
            has_idle: true,
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
            self.cells.resize((slot + 1) * usize::from(self.cpus), Cell::new(None));
        }
        for cpu in (0..self.cpus).map(CpuId) {
            let (place, above) =
                (self.place(memcg, cpu), parent.map(|parent| self.place(parent, cpu) as u32));
            self.cells[place] = Cell::new(above);
        }
        self.groups[slot] = Some(Group::new(parent, self.cpus, self.period, self.now));
        self.has_idle = true;
    }

    /// Where the cell of a group on a CPU is.
    #[inline]
    fn place(&self, memcg: MemcgId, cpu: CpuId) -> usize {
        usize::from(memcg.0) * usize::from(self.cpus) + usize::from(cpu.0)
    }

    /// Returns true if it knows the group.
    pub(crate) fn has_group(&self, memcg: MemcgId) -> bool {
        self.groups.get(usize::from(memcg.0)).is_some_and(Option::is_some)
    }

    /// Makes a task of a group known. It does nothing yet.
    pub(crate) fn task_add(&mut self, task: TaskId, memcg: MemcgId, cpu: CpuId) {
        let slot = task.0 as usize;
        if self.tasks.len() <= slot {
            self.tasks.resize(slot + 1, None);
        }
        self.tasks[slot] = Some(Task { memcg, cpu, doing: Doing::SLEEPS });
    }

    /// Reports at `now` that a task does this on this CPU from `at` on, which is not in the past. Among changes at the same time the last report
    /// counts.
    #[inline]
    pub(crate) fn tell(&mut self, now: Nanos, at: Nanos, task: TaskId, cpu: CpuId, doing: Doing) {
        self.now = now;
        self.changes.push(Change { at, task, cpu, doing });
        if let [.., before, _] = self.changes[..]
            && before.at > at
        {
            self.put_in_order();
        }
        if self.changes.len() >= self.changes_max {
            self.take_in();
        }
    }

    /// The latest reported change comes before others.
    #[inline(never)]
    fn put_in_order(&mut self) {
        let last = self.changes.len() - 1;
        let at = self.changes[last].at;
        let place = self.changes[..last].partition_point(|change| change.at <= at);
        self.changes[place..].rotate_right(1);
    }

    /// Time has passed, and the changes until now must be visible.
    pub(crate) fn set_now(&mut self, now: Nanos) {
        self.now = now;
        self.take_in();
    }

    /// Processes the reported changes that have happened.
    #[inline(never)]
    fn take_in(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        let happened = changes.partition_point(|change| change.at <= self.now);
        for &change in &changes[..happened] {
            self.work_until(change.at);
            self.apply(change);
        }
        self.work_until(self.now);
        changes.drain(..happened);
        self.changes_max = changes.len() + LOT;
        self.changes = changes;
    }

    #[inline]
    fn apply(&mut self, Change { at, task, cpu, doing }: Change) {
        let known = self.tasks[task.0 as usize].as_mut().expect("a task is added before it does anything");
        let Task { memcg, cpu: last, doing: before } =
            std::mem::replace(known, Task { cpu, doing, ..*known });
        let before = if last == cpu { before } else { self.leave(memcg, last, at, before) };
        if before != doing {
            self.tell_groups(memcg, cpu, at, Transition::new(before, doing));
        }
    }

    /// A task does nothing any more on the CPU where it was, and nothing yet where it goes.
    #[inline(never)]
    fn leave(&mut self, memcg: MemcgId, cpu: CpuId, at: Nanos, doing: Doing) -> Doing {
        self.tell_groups(memcg, cpu, at, Transition::new(doing, Doing::SLEEPS));
        Doing::SLEEPS
    }

    /// A task of this group, and so of those above it, does something else on this CPU. Inlined: its call would take as long as it
    /// does for a group.
    #[inline(always)]
    fn tell_groups(&mut self, memcg: MemcgId, cpu: CpuId, at: Nanos, transition: Transition) {
        let mut next = Some(self.place(memcg, cpu));
        let mut below = None;
        while let Some(place) = next {
            let cell = &mut self.cells[place];
            below = Some(cell.change(at, transition, below.as_ref()));
            next = cell.above.map(|above| above as usize);
        }
        if transition.runnable && self.has_idle {
            self.rouse(memcg, at);
        }
    }

    /// The workers of a group and of those above it, which stay away while it is idle, come by from now on.
    #[inline]
    fn rouse(&mut self, memcg: MemcgId, at: Nanos) {
        let mut next = Some(memcg);
        while let Some(memcg) = next {
            let group = self.groups[usize::from(memcg.0)].as_mut().expect("a task's group is there");
            if group.work_due.is_none() {
                let due = self.period.after(at);
                group.work_due = Some(due);
                self.work_due = self.work_due.min(due);
            }
            next = group.parent;
        }
    }

    /// Makes up for the worker's periods until then.
    #[inline]
    fn work_until(&mut self, at: Nanos) {
        while self.work_due <= at {
            self.work();
        }
    }

    /// The workers that are due come by.
    #[cold]
    fn work(&mut self) {
        let due = self.work_due;
        (self.work_due, self.has_idle) = (Nanos(u64::MAX), false);
        for (group, cells) in self.groups.iter_mut().zip(self.cells.chunks(usize::from(self.cpus))) {
            let Some(group) = group else { continue };
            if group.work_due == Some(due) {
                group.work(cells, due);
            }
            match group.work_due {
                Some(at) => self.work_due = self.work_due.min(at),
                None => self.has_idle = true,
            }
        }
    }

    /// What the file of a group says; `None` if there is no such group.
    pub(crate) fn text(&mut self, memcg: MemcgId, resource: Resource) -> Option<String> {
        let cells = cells_of(&self.cells, memcg, self.cpus);
        Some(self.groups.get_mut(usize::from(memcg.0))?.as_mut()?.text(cells, resource, self.now))
    }

    /// Returns for how long some and all of a group's tasks were stalled by the lack of each resource; `None` if there is no such group.
    pub(crate) fn totals(&self, memcg: MemcgId) -> Option<[[Nanos; 2]; 3]> {
        let cells = cells_of(&self.cells, memcg, self.cpus);
        Some(self.groups.get(usize::from(memcg.0))?.as_ref()?.totals(cells, self.now))
    }
}

/// The cells of a group; none where there is no such group.
fn cells_of(cells: &[Cell], memcg: MemcgId, cpus: u16) -> &[Cell] {
    cells.chunks(usize::from(cpus)).nth(usize::from(memcg.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
