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

/// How many tasks wait for devices, are in memstall sections, are runnable, and are both of these.
type Counts = [u32; 4];

impl Doing {
    /// What the task adds to the counts: 0 or 1 each.
    fn counts(self) -> Counts {
        let Doing { runnable, iowait, memstall, .. } = self;
        [iowait, memstall, runnable, runnable & memstall].map(u32::from)
    }
}

/// The tasks of one group on one CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    counts: Counts,
    /// Whether the CPU's current task is of the group, and is in a memstall section.
    current: Option<bool>,
    /// A bit for each state that it is in since `since`, [`NONIDLE`] included.
    states: u8,
    since: Nanos,
    /// Time spent in each state until then.
    times: [u64; STATES + 1],
}

impl Cell {
    /// A task here did `before` and does `after` from `at` on.
    #[inline]
    pub(super) fn change(&mut self, at: Nanos, before: Doing, after: Doing, is_machine: bool) {
        self.charge(at);
        let (less, more) = (before.counts(), after.counts());
        for (count, (less, more)) in self.counts.iter_mut().zip(less.into_iter().zip(more)) {
            *count = *count + more - less;
        }
        if after.on_cpu {
            self.current = Some(after.memstall);
        } else if before.on_cpu {
            self.current = None;
        }
        self.states = self.states_now(is_machine);
    }

    fn charge(&mut self, at: Nanos) {
        debug_assert!(at >= self.since, "time goes back from {} to {at}", self.since);
        let span = at.0 - self.since.0;
        self.since = at;
        // A task often does several things within no time.
        if span > 0 {
            for (state, time) in self.times.iter_mut().enumerate() {
                *time += span & u64::from(self.states >> state & 1).wrapping_neg();
            }
        }
    }

    fn states_now(&self, is_machine: bool) -> u8 {
        let Cell { counts: [iowait, memstall, running, memstall_running], current, .. } = *self;
        let on_cpu = current.is_some();
        let bit = |resource, full, is: bool| u8::from(is) << state(resource, full);
        bit(Resource::Memory, false, memstall > 0)
            | bit(
                Resource::Memory,
                true,
                memstall > 0 && (running == memstall_running || current == Some(true)),
            )
            | bit(Resource::Io, false, iowait > 0)
            | bit(Resource::Io, true, iowait > 0 && running == 0)
            | bit(Resource::Cpu, false, running > u32::from(on_cpu))
            // Of the whole machine somebody always has the CPU, as long as anybody wants it.
            | bit(Resource::Cpu, true, running > 0 && !on_cpu && !is_machine)
            | u8::from(iowait + memstall + running > 0) << NONIDLE
    }

    /// Time spent in each state until `at`.
    pub(super) fn times_by(&self, at: Nanos) -> [u64; STATES + 1] {
        let span = at.0 - self.since.0;
        std::array::from_fn(|state| self.times[state] + if self.states >> state & 1 == 1 { span } else { 0 })
    }
}
