//! The result of a run as plain data, from which the summary, the JSON and the comparisons are made.

mod tiers; // fast and slow memory

use std::collections::{BTreeMap, BTreeSet};

use pageout_engine::{CGROUP_FILES, Engine, Holds, KswapdActivity, Nanos};
use pageout_sim::DamonMap;
use pageout_sim::latency::LatencySummary;
use pageout_sim::memory::HeatMap;
use pageout_sim::scenario::{Percentage, Scenario};
use pageout_sim::{Ended, Kill, Machine, Pressure, Spent, Stall, ThreadReport};
use serde::Serialize;

use crate::figures;
use crate::result::access::{AccessResult, of_copies, shared_name};
use crate::result::damon::KdamondResult;
use crate::result::events::{ConditionResult, ReadResult, ThinnedResult, WriteResult};
use crate::result::notes::{self, Note};
use crate::result::outdated::{self, OutdatedResult};
use crate::result::trail::Trail;
use crate::result::user_policies::{self, OwnPolicyResult};
use crate::result::writeback::WritebackResult;
pub use tiers::TiersResult;

/// The figures of one run. Times are in simulated nanoseconds.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// True if the run reached the end that the scenario defines. Otherwise the figures are those of a part.
    pub complete: bool,
    /// The end of the run.
    pub ended: &'static str,
    /// The scenario's question.
    pub question: String,
    /// The profile of the kernel.
    pub profile: String,
    /// The seed of the run.
    pub seed: u64,
    /// The end of the run, in virtual time.
    pub end_ns: u64,
    /// Accesses of all tasks.
    pub accesses: u64,
    /// The tasks, in the scenario's order.
    pub tasks: Vec<TaskResult>,
    /// The access times of all copies of a task, by the name that these share.
    #[serde(skip)]
    pub copies: BTreeMap<String, AccessResult>,
    /// The cgroups that are in the scenario, in its order.
    pub memcgs: Vec<MemcgResult>,
    /// Figures that the user's own policies report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own_policies: Vec<OwnPolicyResult>,
    /// The values of percentages in its limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub percentages: Vec<Percentage>,
    /// The devices.
    pub devices: Vec<DeviceResult>,
    /// Pages of files that were read before anyone asked for them.
    pub readahead: ReadaheadResult,
    /// The memory in which accesses found their pages, if the machine has several kinds of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiers: Option<TiersResult>,
    /// Accesses by address and time, for a chart.
    #[serde(skip)]
    pub heat: HeatMap,
    /// The addresses that kdamonds monitor, for charts.
    #[serde(skip)]
    pub damon_maps: Vec<DamonMap>,
    /// Direct reclaim calls of all tasks.
    pub reclaim: Latency,
    /// Direct reclaim calls of shells, for what they write to kernel files.
    pub reclaim_for_writes: Latency,
    /// The CPUs, in order.
    pub cpus: Vec<CpuResult>,
    /// Kernel threads, in the order in which they were started.
    pub threads: Vec<ThreadResult>,
    /// For how long tasks were stalled, as pressure stall information has it: those of the machine.
    pub pressure: PressureResult,
    /// CPU time that no task pays for.
    pub kernel_time_ns: u64,
    /// The kernel's work in the units that it is priced by: reverse-map steps, page-table entries walked, list moves, ...
    pub work: Counters,
    /// CPU time that it took; times of the accesses themselves are not among it.
    #[serde(flatten)]
    pub spent: SpentResult,
    /// The part of it that did not run in kernel threads.
    pub spent_by_tasks: SpentResult,
    /// The number of switches of a CPU from one waiting task to another.
    pub context_switches: u64,
    /// Time of tasks that is priced by call, batch or task, and not by page.
    #[serde(skip)]
    pub by_call_ns: u64,
    /// `/proc/vmstat` at the end.
    pub vmstat: Counters,
    /// Pages written, by writer.
    #[serde(skip_serializing_if = "WritebackResult::is_empty")]
    pub writeback: WritebackResult,
    /// Kdamonds, by their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kdamonds: Vec<KdamondResult>,
    /// Decisions by statistics of the last flush, by kind, and how many live ones would have turned.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stale_decisions: BTreeMap<&'static str, OutdatedResult>,
    /// False if statistics were sometimes old and the run did not compare decisions with live ones.
    #[serde(skip_serializing_if = "outdated::is_compared")]
    pub stale_decisions_compared: bool,
    /// Refaults by their distance, in steps by a factor of two; only of policies that measure it, which MGLRU does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refault_distances: Vec<RefaultDistanceResult>,
    /// The requests to kswapds, and their work.
    pub kswapd: KswapdResult,
    /// Processes that the OOM killer ended, in order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kills: Vec<KillResult>,
    /// Files read by events.
    pub reads: Vec<ReadResult>,
    /// Files written by events.
    pub writes: Vec<WriteResult>,
    /// Events whose readings were too many for all to be kept.
    pub reads_thinned: Vec<ThinnedResult>,
    /// The conditions of events, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionResult>,
    /// Events that were not due yet when the run ended.
    pub events_not_reached: usize,
    /// Times at which an event that repeats was left out, as the time before still waited.
    pub events_left_out: u64,
    /// Notes about missing parts of the run.
    pub notes: Vec<Note>,
    /// The progress over time, if requested.
    #[serde(skip)]
    pub trail: Option<Trail>,
}

/// Counters by the kernel's names, in the kernel's order.
pub type Counters = serde_json::Map<String, serde_json::Value>;

/// One task, or one copy of it.
#[derive(Debug, Clone, Serialize)]
pub struct TaskResult {
    /// The task's name; a copy's has its number behind a point.
    pub name: String,
    /// Path of its cgroup.
    pub memcg: String,
    /// Accesses that it made.
    pub accesses: u64,
    /// Accesses that each of them stands for.
    #[serde(skip_serializing_if = "is_one")]
    pub stands_for: u32,
    /// Accesses that found their page.
    pub hits: u64,
    /// Faults of mappings that found their page in memory.
    pub minor: u64,
    /// Faults of mappings that read from a device.
    pub major: u64,
    /// Pages that read(2) and write(2) did not find.
    pub read_misses: u64,
    /// Misses of read(2) and write(2) that read from a device.
    pub read_misses_io: u64,
    /// Hits as a share of the accesses; nothing where there were none.
    pub hit_ratio: Option<f64>,
    /// True if it made all its accesses.
    pub finished: bool,
    /// The time when the OOM killer ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_at_ns: Option<u64>,
    /// From its start to its end, or to the end of the run.
    pub runtime_ns: u64,
    /// Accesses a second of that.
    pub throughput_per_s: f64,
    /// Threads of the process. With several threads, times are sums over all of them.
    #[serde(skip_serializing_if = "is_one")]
    pub threads: u32,
    /// The sum of the lifetimes of its threads.
    #[serde(skip)]
    pub thread_time_ns: u64,
    /// CPU time that it took.
    pub cpu_time_ns: u64,
    /// Part of it: in user space.
    pub user_time_ns: u64,
    /// Part of it: in system calls and faults.
    pub system_time_ns: u64,
    /// Time that it waited for a CPU.
    pub cpu_wait_ns: u64,
    /// Time that it spent in direct reclaim.
    pub reclaim_time_ns: u64,
    /// Time that it waited for devices.
    pub io_wait_ns: u64,
    /// Time that it was made to wait for no transfer of its own.
    pub delayed_ns: u64,
    /// All of that, by reason.
    pub delayed_by: DelaysResult,
    /// The access times, with their causes; `None` if the run did not measure them (machine.access_times).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessResult>,
}

/// Time that a task was made to wait, by reason.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct DelaysResult {
    /// Time delayed because the task's group was above `memory.high`.
    pub memory_high_ns: u64,
    /// More was dirty than may be (`balance_dirty_pages`).
    pub dirty_pages_ns: u64,
    /// Reclaim waited for others (`reclaim_throttle`); all but what kswapd had to free first is part of the time in direct reclaim.
    pub reclaim_ns: u64,
}

impl DelaysResult {
    /// The reasons, as reported for a throttled task.
    pub fn told(&self) -> [(&'static str, u64); 3] {
        [
            ("by memory.high", self.memory_high_ns),
            ("for dirty pages", self.dirty_pages_ns),
            ("in reclaim", self.reclaim_ns),
        ]
    }
}

impl RunResult {
    /// `9,000 accesses`, and how many each of them stands for where that is more than one.
    pub fn accesses_told(&self) -> String {
        let count = format!("{} accesses", figures::count(self.accesses));
        let each = self.tasks.iter().map(|task| task.stands_for);
        match (each.clone().min(), each.max()) {
            (Some(least), Some(most)) if least == most && most > 1 => {
                format!("{count} with a scale factor of {},", figures::count(most.into()))
            }
            (_, Some(most)) if most > 1 => {
                format!("{count}, some with a scale factor of up to {},", figures::count(most.into()))
            }
            _ => count,
        }
    }
}

impl RunResult {
    /// Paths of cgroups with tasks of several names in them or below.
    pub fn groups_of_several(&self) -> BTreeSet<&str> {
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        let mut several = BTreeSet::new();
        for task in &self.tasks {
            let (mut path, name) = (task.memcg.as_str(), shared_name(&task.name));
            while let Some((parent, _)) = path.rsplit_once('/').filter(|_| path != "/") {
                if *first.entry(path).or_insert(name) != name {
                    several.insert(path);
                }
                path = parent;
            }
        }
        several
    }
}

impl TaskResult {
    /// Time that it lost to reclaim, devices and limits. Waits of reclaim are part of the reclaim time, except those of a task that kswapd
    /// keeps from reclaiming.
    pub fn stalled_ns(&self) -> u64 {
        let DelaysResult { memory_high_ns, dirty_pages_ns, reclaim_ns } = self.delayed_by;
        [self.reclaim_time_ns.max(reclaim_ns), self.io_wait_ns, memory_high_ns, dirty_pages_ns]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Accesses that did not find their page.
    pub fn misses(&self) -> u64 {
        self.minor + self.major + self.read_misses
    }
}

/// One cgroup.
#[derive(Debug, Clone, Serialize)]
pub struct MemcgResult {
    /// The path of it.
    pub path: String,
    /// The profile of its policy.
    pub policy: String,
    /// The time of its removal: the following figures are those of that moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_at_ns: Option<u64>,
    /// `memory.current` and the limits, as the files say.
    pub files: BTreeMap<String, String>,
    /// Counters of `memory.stat`.
    pub counters: Counters,
    /// Counters of `memory.events`.
    pub events: Counters,
    /// The access times of its tasks, and of those in cgroups below it; `None` if it has no tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessResult>,
    /// Direct reclaim calls of its tasks.
    pub reclaim: Latency,
    /// For how long its tasks were stalled, and those of the cgroups below it.
    pub pressure: PressureResult,
}

/// Requests to and work of the kswapds of all nodes.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct KswapdResult {
    /// Allocations that asked for more free memory.
    pub requests: u64,
    /// Times that one was woken from sleep.
    pub wakeups: u64,
    /// Time that they were awake, at work or in a nap.
    pub awake_ns: u64,
}

/// Stall time of a group by the resource that was lacking.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct PressureResult {
    /// Memory was lacking.
    pub memory: StallResult,
    /// A device was.
    pub io: StallResult,
    /// A CPU was.
    pub cpu: StallResult,
}

/// Time in which some task made no headway, and in which none did.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct StallResult {
    /// Some task made no headway.
    pub some_ns: u64,
    /// None did.
    pub full_ns: u64,
}

impl PressureResult {
    fn of(pressure: &Pressure) -> PressureResult {
        let stall = |stall: Stall| StallResult { some_ns: stall.some.0, full_ns: stall.full.0 };
        PressureResult { memory: stall(pressure.memory), io: stall(pressure.io), cpu: stall(pressure.cpu) }
    }
}

/// One device.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceResult {
    /// The device's name.
    pub name: String,
    /// Requests that read, from when they were made.
    pub reads: Latency,
    /// Requests that write, from when they were made.
    pub writes: Latency,
    /// Pages read from it.
    pub pages_read: u64,
    /// Pages written to it.
    pub pages_written: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that became part of one that waited.
    pub merged: u64,
    /// Time that it was busy.
    pub busy_ns: u64,
    /// Total time that requests waited for it.
    pub queue_wait_ns: u64,
}

/// Pages that readahead brought in and that were never used: those in memory, and those that have left it. A mapped page counts as used,
/// because its use is unknown.
#[derive(Debug, Clone, Serialize)]
pub struct ReadaheadResult {
    /// The maximum readahead in KiB, by device.
    pub read_ahead_kb: BTreeMap<String, u32>,
    /// Pages that it brought in.
    pub pages: u64,
    /// Unused pages in memory.
    pub unused_pages: u64,
    /// Those that have left it unused.
    pub dropped_pages: u64,
}

impl ReadaheadResult {
    /// Pages that were read for nothing, as far as the run shows.
    pub fn never_used(&self) -> u64 {
        self.unused_pages + self.dropped_pages
    }
}

/// One CPU: how long tasks had it, and how much work was done on it that no task pays for.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CpuResult {
    /// The time that tasks used it.
    pub busy_ns: u64,
    /// Work that no task pays for.
    pub kernel_ns: u64,
}

/// A kernel thread: how long it had a CPU, and how long it waited for one.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadResult {
    /// The thread's name.
    pub name: String,
    /// CPU time.
    pub cpu_time_ns: u64,
    /// Time of waiting for a CPU.
    pub cpu_wait_ns: u64,
    /// CPU time by its kind of work.
    #[serde(flatten)]
    pub spent: SpentResult,
}

/// The CPU time of the kernel's work, by kind.
#[derive(Debug, Clone, Serialize)]
pub struct SpentResult {
    /// By the units that it is priced by, and by operation.
    pub spent_ns: Counters,
    /// Part of it: moving pages that were used to younger lists.
    pub marking_ns: u64,
    /// Part of it: aging.
    pub aging_ns: u64,
}

impl From<Spent> for SpentResult {
    fn from(spent: Spent) -> SpentResult {
        SpentResult { spent_ns: times(&spent.by_unit), marking_ns: spent.marking.0, aging_ns: spent.aging.0 }
    }
}

/// Statistics of a duration.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Latency {
    /// The number of occurrences.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// One in a hundred took as long or longer.
    pub p99_ns: u64,
    /// One in a thousand did.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them together.
    pub total_ns: u64,
}

/// Refaults whose distance is within a range: evictions and activations between the eviction of a page and its refault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RefaultDistanceResult {
    /// The shortest distance of the range, in pages.
    pub from_pages: u64,
    /// The longest distance of the range, in pages.
    pub to_pages: u64,
    /// The pages that were refaulted.
    pub refaulted_pages: u64,
}

impl RefaultDistanceResult {
    fn all(engine: &Engine) -> Vec<RefaultDistanceResult> {
        let distances = engine.figures().refault_distances();
        let result = |(range, refaulted_pages): (std::ops::RangeInclusive<u64>, u64)| RefaultDistanceResult {
            from_pages: *range.start(),
            to_pages: *range.end(),
            refaulted_pages,
        };
        distances.iter().map(result).collect()
    }
}

/// A process that the OOM killer has ended.
#[derive(Debug, Clone, Serialize)]
pub struct KillResult {
    /// The time of the kill.
    pub at_ns: u64,
    /// The task's name.
    pub task: String,
    /// Path of its cgroup.
    pub memcg: String,
    /// True if the task had made all its accesses before, and slept.
    pub was_at_rest: bool,
    /// The group or the machine that ran out of memory.
    pub invoked_by: String,
    /// The cgroup whose limit could not be kept; none when the machine was short.
    pub limited_memcg: Option<String>,
    /// kswapd was to keep the working set for so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ttl_ms: Option<u64>,
    /// The cgroup that was killed as a whole (memory.oom.group).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_group: Option<String>,
    /// Anonymous pages that it had.
    pub anon_pages: u64,
    /// Pages of files that it had mapped.
    pub file_pages: u64,
    /// Pages of shared memory that it had mapped.
    pub shmem_pages: u64,
    /// Pages that it had in swap.
    pub swap_pages: u64,
    /// Pages of its page tables.
    pub page_table_pages: u64,
    /// Its `oom_score_adj`.
    pub oom_score_adj: i16,
    /// The score of the OOM killer.
    pub score: i64,
    /// The lines of the kernel's log.
    pub log: Vec<String>,
}

impl From<LatencySummary> for Latency {
    fn from(summary: LatencySummary) -> Latency {
        Latency {
            count: summary.count,
            p50_ns: summary.p50.0,
            p99_ns: summary.p99.0,
            p999_ns: summary.p999.0,
            max_ns: summary.max.0,
            total_ns: summary.total.0,
        }
    }
}

impl KswapdResult {
    fn of(engine: &Engine) -> KswapdResult {
        let KswapdActivity { requests, wakeups, awake } = engine.figures().kswapd_activity();
        KswapdResult { requests, wakeups, awake_ns: awake.0 }
    }
}

impl RunResult {
    /// The figures of a machine that has run, whether to its end or not.
    pub fn of(scenario: &Scenario, machine: &mut Machine) -> RunResult {
        let report = machine.report();
        let (complete, ended) = match report.ended {
            Ended::Complete if report.tasks.iter().any(|task| task.killed.is_some() && !task.is_finished) => {
                (true, "all tasks were done or killed")
            }
            Ended::Complete => (true, "all tasks were done"),
            Ended::TimeUp => (true, "the time given was over"),
            Ended::NotYet | Ended::Interrupted => (false, "it was interrupted"),
            Ended::Failed => (false, "it failed"),
        };
        let reclaim: BTreeMap<&str, LatencySummary> =
            report.reclaim_by_memcg.iter().map(|(path, summary)| (path.as_str(), *summary)).collect();
        let pressure = |group: &str| {
            let of_group = report.pressure.iter().find(|pressure| pressure.group == group);
            of_group.map(PressureResult::of).unwrap_or_default()
        };
        let memcgs = scenario.memcg.iter().map(|memcg| {
            let of_kernel = scenario.kernel.name();
            let policy = memcg.policy.as_ref().unwrap_or(&of_kernel);
            let reclaim = reclaim.get(memcg.path.as_str()).copied();
            match report.removed_groups.iter().find(|removed| removed.pressure.group == memcg.path) {
                Some(removed) => MemcgResult {
                    removed_at_ns: Some(removed.at.0),
                    ..memcg_result(
                        &memcg.path,
                        policy,
                        reclaim,
                        PressureResult::of(&removed.pressure),
                        |name| removed.file(name).to_string(),
                    )
                },
                None => memcg_result(&memcg.path, policy, reclaim, pressure(&memcg.path), |name| {
                    read(machine, &format!("/sys/fs/cgroup{}/{name}", memcg.path))
                }),
            }
        });
        let mut memcgs: Vec<MemcgResult> = memcgs.collect();
        for memcg in &mut memcgs {
            memcg.access =
                report.accesses_by_memcg.get(&memcg.path).map(|times| AccessResult::from(times.report()));
        }
        let vmstat = counters(&read(machine, "/proc/vmstat"));
        RunResult {
            notes: notes::of_run(scenario, &report, machine.engine(), &vmstat),
            trail: None,
            complete,
            ended,
            question: scenario.question.clone(),
            profile: scenario.kernel.name(),
            seed: scenario.seed,
            end_ns: report.end.0,
            accesses: report.accesses,
            copies: of_copies(&report.tasks),
            memcgs,
            own_policies: user_policies::of(machine.engine()),
            percentages: scenario.percentages(),
            readahead: ReadaheadResult {
                read_ahead_kb: scenario
                    .readahead()
                    .into_iter()
                    .map(|(device, kib)| (device.to_string(), kib))
                    .collect(),
                pages: report.readahead.pages,
                unused_pages: report.readahead.unused,
                dropped_pages: report.readahead.dropped,
            },
            tiers: report.tiers.clone().map(TiersResult::from),
            heat: report.heat.clone(),
            damon_maps: report.damon_maps.clone(),
            reclaim: report.reclaim.into(),
            reclaim_for_writes: report.reclaim_for_writes.into(),
            cpus: report
                .cpus
                .iter()
                .map(|cpu| CpuResult { busy_ns: cpu.busy.0, kernel_ns: cpu.kernel.0 })
                .collect(),
            threads: report.threads.into_iter().map(thread_result).collect(),
            pressure: pressure("/"),
            kernel_time_ns: report.kernel_time.0,
            work: report.work.iter().map(|(name, units)| (name.to_string(), units.into())).collect(),
            spent: report.spent.into(),
            spent_by_tasks: report.spent_by_tasks.into(),
            context_switches: report.context_switches,
            by_call_ns: report.by_call.0,
            vmstat,
            writeback: WritebackResult::of(machine.engine()),
            kdamonds: KdamondResult::all(machine.engine()),
            stale_decisions: outdated::of(machine.engine()),
            stale_decisions_compared: outdated::is_told(machine.engine()),
            refault_distances: RefaultDistanceResult::all(machine.engine()),
            kswapd: KswapdResult::of(machine.engine()),
            conditions: report.watched.into_iter().map(ConditionResult::from).collect(),
            events_not_reached: report.timed_left,
            events_left_out: report.timed_left_out,
            tasks: report.tasks.iter().map(task_result).collect(),
            devices: report.devices.iter().map(device_result).collect(),
            kills: report.kills.into_iter().map(kill_result).collect(),
            reads: report.reads.into_iter().map(ReadResult::from).collect(),
            reads_thinned: report.reads_thinned.into_iter().map(ThinnedResult::from).collect(),
            writes: report.writes.into_iter().map(WriteResult::from).collect(),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

fn task_result(task: &pageout_sim::TaskReport) -> TaskResult {
    TaskResult {
        name: task.name.clone(),
        memcg: task.memcg.clone(),
        accesses: task.accesses,
        stands_for: task.stands_for,
        hits: task.hits,
        minor: task.minor,
        major: task.major,
        read_misses: task.read_misses,
        read_misses_io: task.read_misses_io,
        hit_ratio: (task.accesses > 0).then(|| crate::figures::share(task.hits, task.accesses)),
        finished: task.is_finished,
        killed_at_ns: task.killed.map(|at| at.0),
        runtime_ns: task.runtime.0,
        throughput_per_s: task.throughput(),
        threads: task.threads,
        thread_time_ns: task.thread_time.0,
        cpu_time_ns: task.cpu_time.0,
        user_time_ns: task.user_time.0,
        system_time_ns: task.cpu_time.0 - task.user_time.0,
        cpu_wait_ns: task.cpu_wait.0,
        reclaim_time_ns: task.reclaim_time.0,
        io_wait_ns: task.io_wait.0,
        delayed_ns: task.delays.total().0,
        delayed_by: DelaysResult {
            memory_high_ns: task.delays.memory_high.0,
            dirty_pages_ns: task.delays.dirty_pages.0,
            reclaim_ns: task.delays.reclaim.0,
        },
        access: task.access.as_ref().map(|times| times.report().into()),
    }
}

fn memcg_result(
    path: &str,
    policy: &str,
    reclaim: Option<LatencySummary>,
    pressure: PressureResult,
    mut file: impl FnMut(&str) -> String,
) -> MemcgResult {
    let sizes = CGROUP_FILES
        .iter()
        .filter(|file| matches!(file.holds, Holds::Usage | Holds::Limit(_) | Holds::Switch(_)));
    MemcgResult {
        path: path.to_string(),
        policy: policy.to_string(),
        removed_at_ns: None,
        files: sizes
            .map(|known| (known, file(known.name).trim().to_string()))
            // A value that this version of cgroups does not have is omitted.
            .filter(|(known, text)| !(text.is_empty() || known.is_posted && known.is_initially(text)))
            .map(|(known, text)| (known.name.to_string(), text))
            .collect(),
        counters: counters(&file("memory.stat")),
        events: counters(&file("memory.events")),
        access: None,
        reclaim: reclaim.map(Latency::from).unwrap_or_default(),
        pressure,
    }
}

fn thread_result(thread: ThreadReport) -> ThreadResult {
    ThreadResult {
        spent: thread.spent.into(),
        name: thread.name,
        cpu_time_ns: thread.cpu_time.0,
        cpu_wait_ns: thread.cpu_wait.0,
    }
}

fn kill_result(kill: Kill) -> KillResult {
    KillResult {
        at_ns: kill.at.0,
        task: kill.task,
        memcg: kill.memcg,
        was_at_rest: kill.was_at_rest,
        invoked_by: kill.invoked_by,
        limited_memcg: kill.limited,
        min_ttl_ms: kill.min_ttl_ms,
        with_group: kill.with_group,
        anon_pages: kill.badness.anon,
        file_pages: kill.badness.file,
        shmem_pages: kill.badness.shmem,
        swap_pages: kill.badness.swap,
        page_table_pages: kill.badness.page_tables,
        oom_score_adj: kill.badness.oom_score_adj,
        score: kill.badness.score,
        log: kill.log.lines().map(str::to_string).collect(),
    }
}

fn device_result(device: &pageout_sim::device::DeviceReport) -> DeviceResult {
    DeviceResult {
        name: device.name.clone(),
        reads: device.read.into(),
        writes: device.write.into(),
        pages_read: device.pages_read,
        pages_written: device.pages_written,
        errors: device.errors,
        merged: device.merged,
        busy_ns: device.busy.0,
        queue_wait_ns: device.queue_wait.0,
    }
}

/// A kernel file's text; a file that this kernel does not have is empty.
fn read(machine: &mut Machine, path: &str) -> String {
    machine.read_file(path).unwrap_or_default()
}

/// Lines of `name value`.
fn counters(text: &str) -> Counters {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter_map(|(name, value)| Some((name.to_string(), value.trim().parse::<i64>().ok()?.into())))
        .collect()
}

/// Times by name.
fn times(times: &[(&'static str, Nanos)]) -> Counters {
    times.iter().map(|(name, time)| (name.to_string(), time.0.into())).collect()
}

/// A counter's value; 0 when there is no such counter.
pub fn counter(counters: &Counters, name: &str) -> i64 {
    counters.get(name).and_then(serde_json::Value::as_i64).unwrap_or(0)
}
