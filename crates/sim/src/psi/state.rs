//! What a task does, as far as pressure is concerned, and what a CPU's tasks of one group add up to.

use pageout_engine::Nanos;

/// What a task does. All four are false while it sleeps for a reason of its own, and when it has ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Doing {
    /// It has a CPU or waits for one.
    pub(crate) runnable: bool,
    /// It has the CPU.
    pub(crate) on_cpu: bool,
    /// It sleeps until a device has done something.
    pub(crate) iowait: bool,
    /// It is in a memstall section: whatever it does or waits for there, it does because memory is short.
    pub(crate) memstall: bool,
}

/// A resource that tasks may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Memory.
    Memory,
    /// Block devices.
    Io,
    /// Processors.
    Cpu,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 3] = [Resource::Memory, Resource::Io, Resource::Cpu];

    /// What its file in `/proc/pressure` is called.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Memory => "memory",
            Resource::Io => "io",
            Resource::Cpu => "cpu",
        }
    }
}

/// States of a group on a CPU whose time is counted: some and full of each resource, in the order of [`Resource::ALL`].
pub(super) const STATES: usize = 6;
/// That any of its tasks is anything but asleep for a reason of its own.
pub(super) const NONIDLE: usize = STATES;

/// Position of a state: of some task, or of all.
pub(super) fn state(resource: Resource, full: bool) -> usize {
    2 * resource as usize + usize::from(full)
}

/// How many tasks wait for devices and are in memstall sections, and how many are runnable and are both of these: two to a word, so
/// that a change adds to all four at once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    iowait_memstall: u64,
    runnable_both: u64,
}

impl Counts {
    fn of(doing: Doing) -> Counts {
        let Doing { runnable, iowait, memstall, .. } = doing;
        Counts { iowait_memstall: pair(iowait, memstall), runnable_both: pair(runnable, runnable & memstall) }
    }
}

fn pair(low: bool, high: bool) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// What a change of one task is to a cell that it belongs to before, after, or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    /// What is added to the counts, modulo 2^64: no count ever is below 0.
    more: Counts,
    had_cpu: bool,
    /// Whether it has the CPU, and is in a memstall section.
    current: Option<bool>,
    /// It has a CPU from now on, or waits for one.
    pub(super) runnable: bool,
}

impl Transition {
    #[inline]
    pub(super) fn new(before: Doing, after: Doing) -> Transition {
        let (less, more) = (Counts::of(before), Counts::of(after));
        Transition {
            more: Counts {
                iowait_memstall: more.iowait_memstall.wrapping_sub(less.iowait_memstall),
                runnable_both: more.runnable_both.wrapping_sub(less.runnable_both),
            },
            had_cpu: before.on_cpu,
            current: after.on_cpu.then_some(after.memstall),
            runnable: after.runnable,
        }
    }
}

/// Of each resource no task, some, or all are stalled, and where none is the cell may be idle: so many combinations.
const COMBINATIONS: usize = 1 + 3 * 3 * 3;
const IDLE: u8 = 0;

/// The tasks of one group on one CPU.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    counts: Counts,
    /// Whether the CPU's current task is of the group, and is in a memstall section.
    current: Option<bool>,
    /// The combination that it is in since `since`.
    combination: u8,
    since: Nanos,
    /// Time spent in each combination until then. A change is one addition; states are told apart when somebody asks.
    times: [u64; COMBINATIONS],
}

impl Default for Cell {
    fn default() -> Cell {
        Cell {
            counts: Counts::default(),
            current: None,
            combination: IDLE,
            since: Nanos::ZERO,
            times: [0; COMBINATIONS],
        }
    }
}

impl Cell {
    /// A task here does something else from `at` on.
    #[inline]
    pub(super) fn change(&mut self, at: Nanos, transition: Transition, is_machine: bool) {
        debug_assert!(at >= self.since, "time goes back from {} to {at}", self.since);
        self.times[usize::from(self.combination)] += at.0 - self.since.0;
        self.since = at;
        let Transition { more, had_cpu, current, .. } = transition;
        self.counts = Counts {
            iowait_memstall: self.counts.iowait_memstall.wrapping_add(more.iowait_memstall),
            runnable_both: self.counts.runnable_both.wrapping_add(more.runnable_both),
        };
        if had_cpu || current.is_some() {
            self.current = current;
        }
        self.combination = self.combination_now(is_machine);
    }

    fn combination_now(&self, is_machine: bool) -> u8 {
        let Counts { iowait_memstall, runnable_both } = self.counts;
        let (iowait, memstall) = (iowait_memstall as u32, (iowait_memstall >> 32) as u32);
        let (runnable, stalled_runnable) = (runnable_both as u32, (runnable_both >> 32) as u32);
        let on_cpu = self.current.is_some();
        let is_any = iowait_memstall | runnable_both != 0;
        let level = |some: bool, full: bool| u8::from(some) + u8::from(some & full);
        let memory = level(memstall > 0, (runnable == stalled_runnable) | (self.current == Some(true)));
        let io = level(iowait > 0, runnable == 0);
        // Of the whole machine somebody always has the CPU, as long as anybody wants it.
        let cpu = level(runnable > u32::from(on_cpu), !on_cpu & !is_machine);
        u8::from(is_any) + (memory * 3 + io) * 3 + cpu
    }

    /// Time spent in each state until `at`.
    pub(super) fn times_by(&self, at: Nanos) -> [u64; STATES + 1] {
        let mut times = [0; STATES + 1];
        for (combination, &time) in self.times.iter().enumerate().skip(1) {
            let last = if combination == usize::from(self.combination) { at.0 - self.since.0 } else { 0 };
            let levels = combination - 1;
            for (resource, level) in Resource::ALL.into_iter().zip([levels / 9, levels / 3 % 3, levels % 3]) {
                for full in [false, true].into_iter().take(level) {
                    times[state(resource, full)] += time + last;
                }
            }
            times[NONIDLE] += time + last;
        }
        times
    }
}
