//! The report of a run: plain figures, equal for equal runs.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use pageout_engine::{Badness, FileError, Nanos, ReadaheadStats, WatchedRegion, Work};

use crate::access_time::AccessTimes;
use crate::device::DeviceReport;
use crate::latency::LatencySummary;
use crate::memory::HeatMap;

/// The figures of a run so far; complete only if [`Report::ended`] says so.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The end of the run.
    pub ended: Ended,
    /// Virtual time at the end.
    pub end: Nanos,
    /// Accesses completed, all tasks together.
    pub accesses: u64,
    /// The tasks, in the order they were added.
    pub tasks: Vec<TaskReport>,
    /// Direct reclaim calls of all tasks: how long each held its task up, from the step it began in to the one it ended in.
    pub reclaim: LatencySummary,
    /// Direct reclaim calls of shells, for what they write to kernel files: for huge pages, below a limit, or because they ask for it.
    pub reclaim_for_writes: LatencySummary,
    /// Direct reclaim calls by the memcg of the task that reclaimed, in order of the first task of each; those that never did included.
    pub reclaim_by_memcg: Vec<(String, LatencySummary)>,
    /// The access times of the tasks in each memcg and below it, by its path; of those that have any tasks.
    pub accesses_by_memcg: BTreeMap<String, AccessTimes>,
    /// The devices, in the order they were added.
    pub devices: Vec<DeviceReport>,
    /// The kernel's threads, in the order in which the engine started them.
    pub threads: Vec<ThreadReport>,
    /// The CPUs, in order.
    pub cpus: Vec<CpuReport>,
    /// For how long tasks were stalled: those of the machine, whose group is `/`, then those of each cgroup, parents first.
    pub pressure: Vec<Pressure>,
    /// Groups that were removed during the run and can't be queried any more.
    pub removed_groups: Vec<RemovedGroup>,
    /// CPU time of what no task pays for: completions, the statistics worker, timed writes.
    pub kernel_time: Nanos,
    /// The kernel's work in units, for any task.
    pub work: Work,
    /// CPU time of the kernel's work in the run; the accesses themselves are not among it.
    pub spent: Spent,
    /// CPU time of the kernel's work that no kernel thread did.
    pub spent_by_tasks: Spent,
    /// The number of switches of a CPU from one task to another that waited for it.
    pub context_switches: u64,
    /// Time of tasks that a machine whose pages stand for many charges by call, batch or task and not by page: their calls of reclaim, drains and
    /// flushes, and all switches and wake-ups.
    pub by_call: Nanos,
    /// Pages read from files, and those of them that went on where another read of the file had ended: what Linux would have
    /// read ahead.
    pub file_pages_read: u64,
    /// See [`Report::file_pages_read`].
    pub file_pages_read_in_order: u64,
    /// Pages that readahead brought in, and how many of them are unused, or left memory unused.
    pub readahead: ReadaheadStats,
    /// Accesses by address and time: of memory that is not all alike, and after [`crate::Machine::watch_heat`].
    pub heat: HeatMap,
    /// The addresses that each kdamond monitors, with its regions, after [`crate::Machine::watch_heat`].
    pub damon_maps: Vec<DamonMap>,
    /// Accesses and migrations by tier, on a machine whose memory is not all alike.
    pub tiers: Option<TierReport>,
    /// Processes that the OOM killer has ended, in order of time.
    pub kills: Vec<Kill>,
    /// Kernel files read by timed events, in order of time. If an event read more than can be kept: an evenly spaced part, the first and the last.
    pub reads: Vec<FileRead>,
    /// The events with more readings than `reads` holds.
    pub reads_thinned: Vec<Thinned>,
    /// Kernel files written by timed events, in order of time.
    pub writes: Vec<FileWrite>,
    /// The conditions of events, in their order.
    pub watched: Vec<Watched>,
    /// Timed events that were not due yet when the run ended; recurring ones and those with a condition don't count.
    pub timed_left: usize,
    /// Times at which an event that repeats was left out, as the time before still waited for its shell.
    pub timed_left_out: u64,
}

/// Accesses by address and time, and the regions of DAMON over them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DamonMap {
    /// The kdamond and what it monitors.
    pub name: String,
    /// The length of a column.
    pub span: Nanos,
    /// The first address.
    pub first: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Accesses of each row, lowest addresses first, by column.
    pub accesses: Vec<Vec<u64>>,
    /// Windows, evenly spread over the run.
    pub windows: Vec<DamonWindow>,
}

/// What DAMON knew at the end of a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DamonWindow {
    /// The end of the window.
    pub at: Nanos,
    /// Samples of each region: no region has more accesses.
    pub samples: u32,
    /// Regions, in order of address.
    pub regions: Vec<WatchedRegion>,
}

/// Accesses by tier, latencies, and pages that moved between nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct TierReport {
    /// The nodes, in order.
    pub nodes: Vec<NodeReport>,
    /// Pages that went from one node to another, by both.
    pub moved: Vec<Vec<u64>>,
    /// Pages that went between the top tier and others, and back within ten seconds.
    pub ping_pong: u64,
    /// The convergence of the share of accesses to the top tier, to nine tenths of its value in the last quarter of the run; `None` without such accesses.
    pub converged: Option<Convergence>,
    /// Latency of accesses, each from its beginning to its end, with faults and waits for devices.
    pub latency: LatencySummary,
    /// Bytes that records of hot pages take.
    pub hotness_bytes: u64,
    /// Memory of lower tiers.
    pub slow_bytes: u64,
    /// CPU time of finding out which pages are in use.
    pub tracker: TrackerTime,
    /// The share of all accesses that the best placement could have served from the top tier, had it known them in advance. It has as many
    /// promotions, and pages begin at the same places: a bound, never below the reached share. `None` without any access, and if not requested.
    pub best_fast_share: Option<f64>,
    /// Pages of each node over time.
    pub residency: Residency,
}

/// The convergence of a share to its last value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Convergence {
    /// The first time at which the share had that value; `None` if it had it from the start.
    pub by: Option<Nanos>,
    /// The longest time in which the share was not reached: from the start, or after a change of phase.
    pub longest_below: Nanos,
}

/// CPU time that it took to know which pages are in use, by who noticed. Moving them is not among it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TrackerTime {
    /// Scans that mark page-table entries.
    pub scans: Nanos,
    /// Time in hint faults.
    pub hint_faults: Nanos,
    /// Records of hot pages, as far as no thread below has written them.
    pub records: Nanos,
    /// Time of klruscand.
    pub klruscand: Nanos,
    /// Time of kmigrated.
    pub kmigrated: Nanos,
    /// Interrupts of processors that sample.
    pub samples: Nanos,
    /// Samples of kdamonds, with their switches. The work of their schemes is not part of it.
    pub kdamond: Nanos,
}

impl TrackerTime {
    /// The parts of the time, by name.
    pub fn parts(&self) -> [(&'static str, Nanos); 7] {
        [
            ("scans", self.scans),
            ("hint_faults", self.hint_faults),
            ("records", self.records),
            ("klruscand", self.klruscand),
            ("kmigrated", self.kmigrated),
            ("samples", self.samples),
            ("kdamond", self.kdamond),
        ]
    }

    /// All of it.
    pub fn total(&self) -> Nanos {
        self.parts().into_iter().fold(Nanos::ZERO, |sum, (_, time)| sum + time)
    }
}

/// Pages on the lists of each node, from time to time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Residency {
    /// The time between two looks at the lists.
    pub span: Nanos,
    /// Pages by node, look by look.
    pub pages: Vec<Vec<u64>>,
}

impl Residency {
    /// Looks at most; then every other one is forgotten.
    const LOOKS: usize = 256;

    /// Returns true if it is time for the next look.
    pub(crate) fn is_due(&self, at: Nanos) -> bool {
        at.0 >= self.span.0 * self.pages.len() as u64
    }

    pub(crate) fn add(&mut self, at: Nanos, pages: Vec<u64>) {
        while at.0 / self.span.0 >= Residency::LOOKS as u64 {
            self.span.0 *= 2;
            let mut even = [true, false].into_iter().cycle();
            self.pages.retain(|_| even.next() == Some(true));
        }
        // There was no access meanwhile, so it was unchanged.
        self.pages.resize((at.0 / self.span.0) as usize + 1, pages);
    }
}

/// The figures of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeReport {
    /// True if the node is in the top tier.
    pub is_top_tier: bool,
    /// Accesses of tasks to its pages.
    pub accesses: u64,
    /// Bytes that those accesses moved.
    pub bytes: u64,
}

impl TierReport {
    /// Accesses to pages in the top tier, of all; `None` without any.
    pub fn fast_share(&self) -> Option<f64> {
        let sum = |fast: bool| {
            self.nodes.iter().filter(|node| node.is_top_tier || !fast).map(|node| node.accesses).sum::<u64>()
        };
        (sum(false) > 0).then(|| sum(true) as f64 / sum(false) as f64)
    }

    /// Pages that went to the top tier from below, and from it to below.
    pub fn promoted_and_demoted(&self) -> (u64, u64) {
        let sum = |to_top: bool| {
            let pairs = self.moved.iter().zip(&self.nodes).flat_map(|(row, from)| {
                row.iter().zip(&self.nodes).map(move |(pages, to)| (from.is_top_tier, to.is_top_tier, *pages))
            });
            pairs.filter(|&(from, to, _)| from != to && to == to_top).map(|(.., pages)| pages).sum()
        };
        (sum(true), sum(false))
    }

    /// Bytes that were moved between nodes, for each that tasks have accessed.
    pub fn moved_per_useful_byte(&self) -> f64 {
        let moved: u64 = self.moved.iter().flatten().sum();
        let useful: u64 = self.nodes.iter().map(|node| node.bytes).sum();
        if useful == 0 { 0.0 } else { (moved * pageout_engine::PAGE_SIZE) as f64 / useful as f64 }
    }
}

/// The end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Not yet: it was not run.
    NotYet,
    /// Every task but the background ones came to its end. Only then are the figures those of the whole workload.
    Complete,
    /// The time given to `run_until` came first; the run can go on.
    TimeUp,
    /// The observer broke it off; the run can go on.
    Interrupted,
    /// An error ended it.
    Failed,
}

/// The figures of one task; of a process with several threads, all of theirs together, waits that overlap in time included.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskReport {
    /// The task's name.
    pub name: String,
    /// The path of the task's memcg.
    pub memcg: String,
    /// Accesses completed: hits, faults of both kinds and read misses together.
    pub accesses: u64,
    /// Accesses that each of them stands for.
    pub stands_for: u32,
    /// Accesses that found the page.
    pub hits: u64,
    /// Minor faults: accesses to a mapping that found no page mapped and needed no device.
    pub minor: u64,
    /// Major faults: accesses to a mapping that read from a device.
    pub major: u64,
    /// Read misses: read(2), or for tmpfs write(2), of a missing page. They are not faults.
    pub read_misses: u64,
    /// Misses of read(2) and write(2) that read from a device: all but new pages of tmpfs and pages that someone else was reading.
    pub read_misses_io: u64,
    /// The time of its start; for a task that waits for others until the end, the end.
    pub started: Nanos,
    /// The time when the task ended; `None` while it has accesses left.
    pub ended: Option<Nanos>,
    /// True if the task made all its accesses.
    pub is_finished: bool,
    /// The time of the kill.
    pub killed: Option<Nanos>,
    /// The time from the task's start to its end, or to where it is now.
    pub runtime: Nanos,
    /// The task's threads.
    pub threads: u32,
    /// The runtimes of its threads together, which the times below are parts of.
    pub thread_time: Nanos,
    /// CPU time it used, thinking included.
    pub cpu_time: Nanos,
    /// The part of the CPU time in user space: think time, and loads and stores through mappings. The rest is system calls and faults.
    pub user_time: Nanos,
    /// Time it was ready but its CPU ran others, the switch included.
    pub cpu_wait: Nanos,
    /// Time in direct reclaim, waits included.
    pub reclaim_time: Nanos,
    /// Time waiting for device transfers.
    pub io_wait: Nanos,
    /// Time the engine made it wait although it waited for no transfer of its own.
    pub delays: Delays,
    /// Time it waited for its timetable.
    pub idle: Nanos,
    /// The access times of the task, with their causes; of a machine that measures them.
    pub access: Option<AccessTimes>,
}

/// Time that the engine made a task wait, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Delays {
    /// Time that the task was delayed because its group was above `memory.high`.
    pub memory_high: Nanos,
    /// Time that the task was delayed because it dirtied pages faster than they are written (`balance_dirty_pages`).
    pub dirty_pages: Nanos,
    /// Reclaim waited for others (`reclaim_throttle`), or kswapd had to free some first: [`TaskReport::reclaim_time`] has what of it
    /// fell in a call.
    pub reclaim: Nanos,
}

impl Delays {
    /// All of it.
    pub fn total(&self) -> Nanos {
        self.memory_high + self.dirty_pages + self.reclaim
    }
}

impl AddAssign for Delays {
    fn add_assign(&mut self, other: Delays) {
        self.memory_high += other.memory_high;
        self.dirty_pages += other.dirty_pages;
        self.reclaim += other.reclaim;
    }
}

/// The figures of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuReport {
    /// Time that tasks and threads had it, switches between them included.
    pub busy: Nanos,
    /// Time of work that no task pays for and that was done on it, while it was busy or not.
    pub kernel: Nanos,
}

/// For how long tasks of a group and of those below it were stalled, as pressure stall information has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pressure {
    /// Path of the cgroup.
    pub group: String,
    /// For lack of memory.
    pub memory: Stall,
    /// For lack of I/O.
    pub io: Stall,
    /// For lack of a CPU.
    pub cpu: Stall,
}

/// A cgroup as it was just before it was removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemovedGroup {
    /// The time of the removal of the group.
    pub at: Nanos,
    /// Names and texts of its files.
    pub files: Vec<(&'static str, String)>,
    /// The stalls of its tasks.
    pub pressure: Pressure,
}

impl RemovedGroup {
    /// The text of a file; empty if it had none of this name.
    pub fn file(&self, name: &str) -> &str {
        self.files.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
    }
}

/// Time lost for lack of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stall {
    /// While at least one task was stalled.
    pub some: Nanos,
    /// While none did anything useful.
    pub full: Nanos,
}

/// The figures of a kernel thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadReport {
    /// The kernel's name of the thread, such as `kswapd0`.
    pub name: String,
    /// CPU time it used.
    pub cpu_time: Nanos,
    /// Time it was ready but its CPU ran others, the switch included.
    pub cpu_wait: Nanos,
    /// The work that the thread's CPU time was spent on.
    pub spent: Spent,
}

/// CPU time of the kernel's work, by kinds of work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spent {
    /// By unit of work and by operation, in the order of the price table.
    pub by_unit: Vec<(&'static str, Nanos)>,
    /// To move pages that were used to younger lists: part of the above.
    pub marking: Nanos,
    /// To age those that were not: part of the above.
    pub aging: Nanos,
}

impl Spent {
    /// That on one unit of work or operation.
    pub(crate) fn on(&self, name: &str) -> Nanos {
        self.by_unit.iter().find(|(known, _)| *known == name).map_or(Nanos::ZERO, |&(_, time)| time)
    }
}

impl TaskReport {
    /// Adds what another thread of the process did.
    pub(crate) fn add_thread(&mut self, thread: &TaskReport) {
        self.accesses += thread.accesses;
        self.hits += thread.hits;
        self.minor += thread.minor;
        self.major += thread.major;
        self.read_misses += thread.read_misses;
        self.read_misses_io += thread.read_misses_io;
        let until = (self.started + self.runtime).max(thread.started + thread.runtime);
        self.started = self.started.min(thread.started);
        self.ended = self.ended.zip(thread.ended).map(|(one, other)| one.max(other));
        self.is_finished &= thread.is_finished;
        self.killed = self.killed.or(thread.killed);
        self.runtime = Nanos(until.0 - self.started.0);
        self.threads += thread.threads;
        self.thread_time += thread.thread_time;
        self.cpu_time += thread.cpu_time;
        self.cpu_wait += thread.cpu_wait;
        self.reclaim_time += thread.reclaim_time;
        self.io_wait += thread.io_wait;
        self.delays += thread.delays;
        self.idle += thread.idle;
        if let (Some(access), Some(others)) = (&mut self.access, &thread.access) {
            access.merge(others);
        }
    }

    /// Accesses a second of runtime; 0 when no time passed.
    pub fn throughput(&self) -> f64 {
        if self.runtime == Nanos::ZERO { 0.0 } else { self.accesses as f64 / (self.runtime.0 as f64 / 1e9) }
    }
}

/// A process that the OOM killer has ended, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kill {
    /// The time of the kill.
    pub at: Nanos,
    /// The name of its task.
    pub task: String,
    /// True if the task had made all its accesses before it was killed.
    pub was_at_rest: bool,
    /// Path of its memcg.
    pub memcg: String,
    /// The task or thread that ran out of memory.
    pub invoked_by: String,
    /// Path of the memcg whose limit could not be kept; `None` when the machine was short, or the working set was to be kept.
    pub limited: Option<String>,
    /// kswapd was to keep the working set for so many milliseconds.
    pub min_ttl_ms: Option<u64>,
    /// The path of the memcg that was killed as a whole, where the task went with others (`memory.oom.group`).
    pub with_group: Option<String>,
    /// The memory that the task had.
    pub badness: Badness,
    /// The kernel log of the kill.
    pub log: String,
}

/// A kernel file read by a timed event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRead {
    /// The time of the reading.
    pub at: Nanos,
    /// The path of the file.
    pub path: String,
    /// The text that the file showed.
    pub text: String,
}

/// An event that read a kernel file more often than readings can be kept, and how many were.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thinned {
    /// The path of the file.
    pub path: String,
    /// The number of readings.
    pub taken: u64,
    /// Readings in [`Report::reads`].
    pub kept: u64,
    /// The first of so many readings was kept.
    pub every: u64,
}

/// The condition that an event waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watched {
    /// The condition, as it was written.
    pub condition: String,
    /// The path of the file that was checked.
    pub path: String,
    /// Number of checks.
    pub looks: u64,
    /// Looks at which it held.
    pub held: u64,
}

/// A kernel file written by a timed event, or another call of it that takes time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileWrite {
    /// The time at which the write began.
    pub at: Nanos,
    /// Path of the file; or `sync`, `syncfs` with the name of a device, or `process_madvise`.
    pub path: String,
    /// The value that was written; empty for a sync; of advice, its name and the task.
    pub value: String,
    /// Its end and the reclaimed pages, if it ended before the run. Immediately and none unless it was `memory.reclaim` or lowered a limit; for
    /// `memory.reclaim`, fewer pages than requested is the kernel's `EAGAIN`.
    pub done: Option<(Nanos, u64)>,
    /// A signal has ended it before it had what was asked for: the kernel's `EINTR`.
    pub is_interrupted: bool,
    /// After proactive reclaim (`memory.reclaim`, or a `-` command of `lru_gen`): pages of its cgroups that refaulted between its end and the
    /// end of the run, whatever had evicted them. So requests that follow each other count the same refaults.
    pub refaulted_since: Option<u64>,
    /// The reason of its failure: of syncfs, that a write of the file system failed; of commands written to `lru_gen`, which was refused and what it takes. What was reclaimed before isn't
    /// known then.
    pub error: Option<FileError>,
}

impl FileWrite {
    /// One that has just begun.
    pub(crate) fn new(at: Nanos, path: String, value: String) -> FileWrite {
        FileWrite { at, path, value, done: None, is_interrupted: false, refaulted_since: None, error: None }
    }
}
