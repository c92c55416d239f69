//! States of pressure stall information: a task's (runnable, in I/O wait, in a memstall section), and those of a group on one CPU.

use pageout_engine::Nanos;

/// What a task does, in a byte: changes are written down and compared as such.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Doing(u8);

/// The task has a CPU or waits for one.
pub(super) const RUNNABLE: u8 = 1;
/// The task has the CPU.
pub(super) const ON_CPU: u8 = 2;
/// The task sleeps until a device has done something.
pub(super) const IOWAIT: u8 = 4;
/// The task is in a memstall section: whatever it does or waits for there, it does because memory is short.
pub(super) const MEMSTALL: u8 = 8;

impl Doing {
    /// The task has a CPU.
    pub(crate) const RUNS: Doing = Doing(RUNNABLE | ON_CPU);
    /// The task waits for a CPU.
    pub(crate) const QUEUES: Doing = Doing(RUNNABLE);
    /// The task waits for a device.
    pub(crate) const AWAITS_IO: Doing = Doing(IOWAIT);
    /// The task sleeps for another reason, or has ended.
    pub(crate) const SLEEPS: Doing = Doing(0);

    /// What the task does, in a memstall section if it is in one.
    #[inline]
    pub(crate) const fn stalled_if(self, is_stalled: bool) -> Doing {
        Doing(self.0 | if is_stalled { MEMSTALL } else { 0 })
    }

    /// Returns true if all of these bits are set.
    #[inline]
    pub(super) const fn is(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// A resource that tasks may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Pressure by lack of memory.
    Memory,
    /// Pressure by lack of block devices.
    Io,
    /// Pressure by lack of processors.
    Cpu,
}

impl Resource {
    /// All resources.
    pub const ALL: [Resource; 3] = [Resource::Memory, Resource::Io, Resource::Cpu];

    /// The name of the resource's file in `/proc/pressure`.
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

/// How many tasks wait for devices and are in memstall sections, and how many are runnable and are both of these: two to a word, so that a change
/// adds to all four together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    iowait_memstall: u64,
    runnable_both: u64,
}

/// Both counts of a word are 1.
const ONE_EACH: u64 = 1 << 32 | 1;

/// What each way of being busy adds to the counts.
static COUNTS: [Counts; 16] = {
    let mut counts = [Counts { iowait_memstall: 0, runnable_both: 0 }; 16];
    let mut bits = 0;
    while bits < 16 {
        let of = Doing(bits as u8);
        counts[bits] = Counts {
            iowait_memstall: of.is(IOWAIT) as u64 | (of.is(MEMSTALL) as u64) << 32,
            runnable_both: of.is(RUNNABLE) as u64 | (of.is(RUNNABLE | MEMSTALL) as u64) << 32,
        };
        bits += 1;
    }
    counts
};

/// Effect of a change of one task on a cell that it belongs to before, after, or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    /// What is added to the counts, modulo 2^64: no count ever is below 0.
    more: Counts,
    had_cpu: bool,
    /// What it does with the CPU; it sleeps as far as that is concerned if it does not have it.
    current: Doing,
    /// The task has a CPU from now on, or waits for one.
    pub(super) runnable: bool,
}

impl Transition {
    #[inline]
    pub(super) fn new(before: Doing, after: Doing) -> Transition {
        let (less, more) = (COUNTS[usize::from(before.0) % 16], COUNTS[usize::from(after.0) % 16]);
        Transition {
            more: Counts {
                iowait_memstall: more.iowait_memstall.wrapping_sub(less.iowait_memstall),
                runnable_both: more.runnable_both.wrapping_sub(less.runnable_both),
            },
            had_cpu: before.is(ON_CPU),
            current: if after.is(ON_CPU) { after } else { Doing::SLEEPS },
            runnable: after.is(RUNNABLE),
        }
    }
}

/// Combinations: none, some or all tasks are stalled for each resource, and where none is the cell may be idle.
const COMBINATIONS: usize = 1 + 3 * 3 * 3;
const IDLE: u8 = 0;

/// The tasks of one group on one CPU.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The place of the cell that the group above has on this CPU.
    pub(super) above: Option<u32>,
    tally: Tally,
    /// The combination that it is in since `since`.
    combination: u8,
    since: Nanos,
    /// Time spent in each combination until then. A change is one addition; states are separated on a query.
    times: [u64; COMBINATIONS],
}

/// What a cell's combination follows from.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Tally {
    counts: Counts,
    /// What the CPU's current task does, if it is of the group; nothing if it is not.
    current: Doing,
}

/// Combinations by [`Tally::key`].
static OF_FEW: [u8; 256] = {
    let mut combinations = [IDLE; 256];
    let mut key = 0;
    while key < combinations.len() {
        combinations[key] = Tally::of_key(key as u8).of_any();
        key += 1;
    }
    combinations
};

impl Tally {
    #[inline]
    fn combination(self) -> u8 {
        match self.key() {
            Some(key) => OF_FEW[usize::from(key)],
            None => self.of_any(),
        }
    }

    /// A byte that says all, where no count is more than one: most cells have one task that is not asleep.
    #[inline]
    fn key(self) -> Option<u8> {
        let Counts { iowait_memstall, runnable_both } = self.counts;
        let bits = iowait_memstall | runnable_both << 2;
        let key = (bits | bits >> 31) as u8 & 15 | self.current.0 << 4;
        ((iowait_memstall | runnable_both) & !ONE_EACH == 0).then_some(key)
    }

    /// What has this key.
    const fn of_key(key: u8) -> Tally {
        let (low, high) = ((key & 5) as u64, (key >> 1 & 5) as u64);
        Tally {
            counts: Counts {
                iowait_memstall: low & 1 | (high & 1) << 32,
                runnable_both: low >> 2 | high >> 2 << 32,
            },
            current: Doing(key >> 4),
        }
    }

    const fn of_any(self) -> u8 {
        let Counts { iowait_memstall, runnable_both } = self.counts;
        let (iowait, memstall) = (iowait_memstall as u32, (iowait_memstall >> 32) as u32);
        let (runnable, stalled_runnable) = (runnable_both as u32, (runnable_both >> 32) as u32);
        let on_cpu = self.current.is(ON_CPU);
        let is_any = iowait_memstall | runnable_both != 0;
        let memory = level(memstall > 0, runnable == stalled_runnable || self.current.is(MEMSTALL));
        let io = level(iowait > 0, runnable == 0);
        let cpu = level(runnable > on_cpu as u32, !on_cpu);
        is_any as u8 + (memory * 3 + io) * 3 + cpu
    }
}

/// 0 for none, 1 for some, 2 for all.
const fn level(some: bool, full: bool) -> u8 {
    some as u8 + (some && full) as u8
}

impl Cell {
    pub(super) fn new(above: Option<u32>) -> Cell {
        let (tally, times) = (Tally::default(), [0; COMBINATIONS]);
        Cell { above, tally, combination: IDLE, since: Nanos::ZERO, times }
    }

    /// A task here does something else from `at` on. `below` is the same CPU's cell of a group below, which has changed already.
    #[inline]
    pub(super) fn change(&mut self, at: Nanos, transition: Transition, below: Option<&Below>) -> Below {
        debug_assert!(at >= self.since, "time goes back from {} to {at}", self.since);
        self.times[usize::from(self.combination)] += at.0 - self.since.0;
        self.since = at;
        let Transition { more, had_cpu, current, .. } = transition;
        let Tally { counts, .. } = &mut self.tally;
        counts.iowait_memstall = counts.iowait_memstall.wrapping_add(more.iowait_memstall);
        counts.runnable_both = counts.runnable_both.wrapping_add(more.runnable_both);
        if had_cpu || current != Doing::SLEEPS {
            self.tally.current = current;
        }
        // If a group's tasks are all in one group below it, so are its states.
        self.combination = match below {
            Some(below) if below.tally == self.tally => below.combination,
            _ => self.tally.combination(),
        };
        Below { tally: self.tally, combination: self.combination }
    }

    /// Time spent in each state until `at`.
    pub(super) fn times_by(&self, at: Nanos, is_machine: bool) -> [u64; STATES + 1] {
        let mut times = [0; STATES + 1];
        for (combination, &time) in self.times.iter().enumerate().skip(1) {
            let last = if combination == usize::from(self.combination) { at.0 - self.since.0 } else { 0 };
            // Few combinations ever come up.
            if time + last == 0 {
                continue;
            }
            let levels = combination - 1;
            for (resource, level) in Resource::ALL.into_iter().zip([levels / 9, levels / 3 % 3, levels % 3]) {
                for full in [false, true].into_iter().take(level) {
                    times[state(resource, full)] += time + last;
                }
            }
            times[NONIDLE] += time + last;
        }
        if is_machine {
            // A task always has the CPU, as long as one needs it.
            times[state(Resource::Cpu, true)] = 0;
        }
        times
    }
}

/// What a cell has come to, for those of the groups above it.
pub(super) struct Below {
    tally: Tally,
    combination: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_tasks_are_in_the_combination_that_any_number_is() {
        for key in 0..=u8::MAX {
            let tally = Tally::of_key(key);
            assert_eq!(tally.key(), Some(key));
            assert_eq!(tally.combination(), tally.of_any(), "{tally:?}");
        }
        for counts in [
            Counts { iowait_memstall: 2, ..Counts::default() },
            Counts { iowait_memstall: 2 << 32, ..Counts::default() },
            Counts { runnable_both: 2, ..Counts::default() },
            Counts { runnable_both: 2 << 32 | 2, ..Counts::default() },
        ] {
            assert_eq!(Tally { counts, ..Tally::default() }.key(), None, "{counts:?}");
        }
    }
}
