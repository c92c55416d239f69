//! Metrics: a result as a flat list of named figures, in which form commands compare results.

use std::collections::BTreeMap;

use pageout_sim::Cause;

use crate::figures;
use crate::result::access::{AccessResult, shared_name};
use crate::result::damon::KdamondResult;
use crate::result::run_result::{
    Counters, KswapdResult, Latency, PressureResult, RunResult, SpentResult, TaskResult, TiersResult, counter,
};
use crate::result::writeback::WritebackResult;

/// The main counters, in reading order: scanned and reclaimed pages, returned pages, moved pages. Zero counters are omitted.
pub const STORY: &[&str] = &[
    "pgscan",
    "pgscan_direct",
    "pgskip_dma",
    "pgskip_dma32",
    "pgskip_normal",
    "pgskip_movable",
    "pgscan_kswapd",
    "pgscan_proactive",
    "pgsteal",
    "pgsteal_direct",
    "pgsteal_kswapd",
    "pgsteal_proactive",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "workingset_nodereclaim",
    "pgactivate",
    "pgdeactivate",
    "pgrefill",
    "pgfault",
    "pgmajfault",
    "pswpin",
    "pswpout",
];

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Under which heading it stands: `task reader`, `memcg /web`, `device nvme`.
    pub group: String,
    /// The metric's name under that heading.
    pub name: String,
    /// The metric's value.
    pub value: f64,
    /// The unit in which the figure is printed.
    pub unit: Unit,
    /// The run ended before what it measures did.
    pub is_truncated: bool,
}

impl Metric {
    /// The name by which JSON and expectations call it: `task reader: runtime_ns`.
    pub fn full_name(&self) -> String {
        format!("{}: {}{}", self.group, self.name, self.unit.suffix())
    }

    /// Returns the key that finds it.
    pub fn place(&self) -> (String, String) {
        (self.group.clone(), self.name.clone())
    }

    /// The figure that makes this one redundant if both have the same value: all reclaim was direct, or all misses were of one kind.
    pub fn total(&self) -> Option<Metric> {
        let name = match self.name.as_str() {
            "pgscan_direct" => "pgscan",
            "pgsteal_direct" => "pgsteal",
            "major faults" | "read misses" => "misses",
            _ => return None,
        };
        Some(Metric { name: name.to_string(), ..self.clone() })
    }

    /// Returns true if this figure of the run is redundant because it equals the figure of the only task.
    pub fn may_be_that_of(&self, task: &Metric) -> bool {
        let is_pair = matches!(
            (self.name.as_str(), task.name.as_str()),
            ("accesses", "accesses") | ("simulated time", "runtime")
        );
        is_pair && self.group == "run" && task.group.starts_with("task ")
    }
}

/// The unit of a figure, which decides how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Pages, calls, accesses: a whole number, except in a mean.
    Count,
    /// Simulated time.
    Nanoseconds,
    /// A size.
    Bytes,
    /// A part of 1, shown as a percentage.
    Share,
    /// A rate.
    PerSecond,
    /// One figure divided by another.
    Ratio,
}

impl Unit {
    /// A value of this unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Count => figures::count(value.round().max(0.0) as u64),
            Unit::Nanoseconds => figures::time(value.round().max(0.0) as u64),
            Unit::Bytes => figures::bytes(value.round().max(0.0) as u64),
            Unit::Share => figures::percent(value),
            Unit::PerSecond => figures::rate(value),
            Unit::Ratio => format!("{value:.2}"),
        }
    }

    /// The ending of the name in JSON.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Count | Unit::Share | Unit::Ratio => "",
            Unit::Nanoseconds => "_ns",
            Unit::Bytes => "_bytes",
            Unit::PerSecond => "_per_s",
        }
    }
}

/// All figures of a run. With `all` it has every counter, otherwise only the main counters.
pub fn metrics(result: &RunResult, all: bool) -> Vec<Metric> {
    let mut list = List { metrics: Vec::new(), group: String::new() };
    list.group = "run".to_string();
    list.add("simulated time", result.end_ns as f64, Unit::Nanoseconds);
    list.add("accesses", result.accesses as f64, Unit::Count);
    list.add("pages read ahead", result.readahead.pages as f64, Unit::Count);
    list.add("read ahead, never used", result.readahead.never_used() as f64, Unit::Count);
    for (name, copies) in by_name(&result.tasks) {
        list.group = format!("task {name}");
        list.task(&copies);
        if let Some(access) = result.copies.get(&name).or(copies[0].access.as_ref()) {
            list.access(access, all);
        }
    }
    if let Some(tiers) = &result.tiers {
        list.group = "tiers".to_string();
        list.tiers(tiers);
    }
    let of_several = result.groups_of_several();
    for memcg in &result.memcgs {
        list.group = format!("memcg {}", memcg.path);
        list.counters(&memcg.counters, all);
        let current = memcg.files.get("memory.current").and_then(|bytes| bytes.parse().ok()).unwrap_or(0.0);
        list.add("memory.current", current, Unit::Bytes);
        list.latency("direct reclaim", &memcg.reclaim);
        // If there is one task, its own figures are listed above.
        if let Some(access) = &memcg.access
            && (all || of_several.contains(memcg.path.as_str()))
        {
            list.access(access, all);
        }
        for (name, value) in &memcg.events {
            list.add(&format!("memory.events {name}"), value.as_f64().unwrap_or(0.0), Unit::Count);
        }
    }
    list.group = "/proc/vmstat".to_string();
    // With cgroups most of it repeats what stands there; swapping is only here.
    if all || result.memcgs.is_empty() {
        list.counters(&result.vmstat, all);
    } else {
        for name in ["pswpin", "pswpout"] {
            list.add(name, counter(&result.vmstat, name) as f64, Unit::Count);
        }
    }
    // If there are cgroups, their own figures are enough.
    if all || result.memcgs.is_empty() {
        list.machine(result, all);
    }
    if !result.writeback.is_empty() {
        list.metrics.extend(writeback_metrics(&result.writeback));
    }
    list.group = "decisions by old statistics".to_string();
    if let Some(writers) = result.stale_decisions.get("dirty_throttle") {
        list.add("writers asleep that had room by live ones", writers.slept_ns as f64, Unit::Nanoseconds);
    }
    for (name, decisions) in result.stale_decisions.iter().filter(|_| all) {
        list.add(&format!("{name}, compared"), decisions.compared as f64, Unit::Count);
        list.add(&format!("{name}, turned by live ones"), decisions.turned() as f64, Unit::Count);
    }
    if all {
        list.group = "work".to_string();
        list.counters(&result.work, all);
        list.group = "CPU time".to_string();
        let busy: u64 = result.cpus.iter().map(|cpu| cpu.busy_ns + cpu.kernel_ns).sum();
        list.add("all", busy as f64, Unit::Nanoseconds);
        list.spent(&result.spent);
        list.group = "tasks".to_string();
        let of_threads: u64 = result.threads.iter().map(|thread| thread.cpu_time_ns).sum();
        list.add("CPU time", busy.saturating_sub(of_threads) as f64, Unit::Nanoseconds);
        list.spent(&result.spent_by_tasks);
    }
    list.metrics.extend(result.kdamonds.iter().flat_map(of_kdamond));
    for device in &result.devices {
        list.group = format!("device {}", device.name);
        list.add("pages read", device.pages_read as f64, Unit::Count);
        list.add("pages written", device.pages_written as f64, Unit::Count);
        list.add("read p99", device.reads.p99_ns as f64, Unit::Nanoseconds);
        list.add("write p99", device.writes.p99_ns as f64, Unit::Nanoseconds);
        list.add("busy", device.busy_ns as f64, Unit::Nanoseconds);
        list.add("merged", device.merged as f64, Unit::Count);
        list.add("errors", device.errors as f64, Unit::Count);
    }
    list.metrics
}

struct List {
    metrics: Vec<Metric>,
    group: String,
}

impl List {
    fn add(&mut self, name: &str, value: f64, unit: Unit) {
        let (group, name) = (self.group.clone(), name.to_string());
        self.metrics.push(Metric { group, name, value, unit, is_truncated: false });
    }

    /// Copies of a task are added up; times that run side by side are averaged.
    fn task(&mut self, copies: &[&TaskResult]) {
        let sum = |of: fn(&TaskResult) -> u64| copies.iter().map(|task| of(task)).sum::<u64>();
        let mean = |of: fn(&TaskResult) -> u64| sum(of) as f64 / copies.len() as f64;
        let accesses = sum(|task| task.accesses);
        self.add("accesses", accesses as f64, Unit::Count);
        if accesses > 0 {
            self.add("hit ratio", figures::share(sum(|task| task.hits), accesses), Unit::Share);
        }
        self.add("misses", sum(TaskResult::misses) as f64, Unit::Count);
        self.add("major faults", sum(|task| task.major) as f64, Unit::Count);
        self.add("read misses", sum(|task| task.read_misses) as f64, Unit::Count);
        self.add("runtime", mean(|task| task.runtime_ns), Unit::Nanoseconds);
        if let Some(runtime) = self.metrics.last_mut() {
            runtime.is_truncated = copies.iter().any(|task| !task.finished);
        }
        self.add("throughput", copies.iter().map(|task| task.throughput_per_s).sum(), Unit::PerSecond);
        self.add("in direct reclaim", mean(|task| task.reclaim_time_ns), Unit::Nanoseconds);
        self.add("waiting for I/O", mean(|task| task.io_wait_ns), Unit::Nanoseconds);
        self.add("throttled", mean(|task| task.delayed_ns), Unit::Nanoseconds);
        self.add("throttled by memory.high", mean(|task| task.delayed_by.memory_high_ns), Unit::Nanoseconds);
        self.add("throttled for dirty pages", mean(|task| task.delayed_by.dirty_pages_ns), Unit::Nanoseconds);
        self.add("throttled in reclaim", mean(|task| task.delayed_by.reclaim_ns), Unit::Nanoseconds);
    }

    /// How long accesses took, and what they lost; causes that there were not stay away, as what is nothing everywhere does.
    fn access(&mut self, access: &AccessResult, all: bool) {
        self.quantiles("access", &access.all, all, ["p50", "p99", "p99.9", "longest"]);
        let none = Latency::default();
        for &cause in Cause::ALL {
            let lost = access.by_cause.get(cause).unwrap_or(&none);
            self.quantiles(&format!("lost to {},", cause.title()), lost, all, ["p99"]);
            if all {
                let name = format!("of the slowest 1%, lost to {}", cause.title());
                self.add(&name, access.slowest_share(cause), Unit::Share);
            }
        }
        self.quantiles("fsync", &access.fsync, all, ["p99", "longest"]);
    }

    /// How long something took: what tells most, or all.
    fn quantiles<const N: usize>(&mut self, what: &str, of: &Latency, all: bool, told: [&str; N]) {
        if all {
            self.add(&format!("{what} count"), of.count as f64, Unit::Count);
        }
        for (name, ns) in [
            ("p50", of.p50_ns),
            ("p99", of.p99_ns),
            ("p99.9", of.p999_ns),
            ("longest", of.max_ns),
            ("in all", of.total_ns),
        ] {
            if all || told.contains(&name) {
                self.add(&format!("{what} {name}"), ns as f64, Unit::Nanoseconds);
            }
        }
    }

    /// Fast and slow memory.
    fn tiers(&mut self, tiers: &TiersResult) {
        self.add("fast-tier hit ratio", tiers.fast_hit_ratio.unwrap_or(0.0), Unit::Share);
        if let Some(best) = tiers.offline_fast_hit_ratio {
            self.add("offline-optimal hit ratio", best, Unit::Share);
        }
        self.add("pages promoted", tiers.promoted as f64, Unit::Count);
        self.add("pages demoted", tiers.demoted as f64, Unit::Count);
        self.add("ping-pong", tiers.ping_pong_ratio(), Unit::Share);
        self.add("bytes moved per useful byte", tiers.moved_per_useful_byte, Unit::Ratio);
        if let Some(converged) = tiers.converged_ns {
            self.add("90 % converged", converged as f64, Unit::Nanoseconds);
        }
        if let Some(below) = tiers.longest_below_ns {
            self.add("longest below 90 %", below as f64, Unit::Nanoseconds);
        }
        for (node, &accesses) in tiers.accesses_by_node.iter().enumerate() {
            self.add(&format!("accesses on node {node}"), accesses as f64, Unit::Count);
        }
        self.add("access p50", tiers.access.p50_ns as f64, Unit::Nanoseconds);
        self.add("access p99", tiers.access.p99_ns as f64, Unit::Nanoseconds);
        if tiers.hotness_bytes > 0 {
            self.add("records of hot pages", tiers.hotness_bytes as f64, Unit::Bytes);
            let of_slow = tiers.hotness_bytes_per_slow_gib as f64;
            self.add("records a GiB of slow memory", of_slow, Unit::Bytes);
        }
        self.add("tracker CPU", tiers.tracker_ns as f64, Unit::Nanoseconds);
        for (part, _) in &tiers.tracker_by_part_ns {
            let name = format!("tracker CPU: {}", part.replace('_', " "));
            let time = counter(&tiers.tracker_by_part_ns, part);
            if time > 0 {
                self.add(&name, time as f64, Unit::Nanoseconds);
            }
        }
    }

    /// What a machine as a whole lost, and what its kernel threads took.
    fn machine(&mut self, result: &RunResult, all: bool) {
        self.group = "machine".to_string();
        self.latency("direct reclaim", &result.reclaim);
        if result.reclaim_for_writes.count > 0 {
            self.latency("reclaim for writes to kernel files", &result.reclaim_for_writes);
        }
        let PressureResult { memory, io, cpu } = result.pressure;
        for (name, stall) in [("memory", memory), ("io", io), ("cpu", cpu)] {
            self.add(&format!("stalled for {name}, some"), stall.some_ns as f64, Unit::Nanoseconds);
            self.add(&format!("stalled for {name}, full"), stall.full_ns as f64, Unit::Nanoseconds);
        }
        if all {
            let KswapdResult { requests, wakeups, awake_ns } = result.kswapd;
            self.add("kswapd requests", requests as f64, Unit::Count);
            self.add("kswapd wake-ups", wakeups as f64, Unit::Count);
            self.add("kswapd awake", awake_ns as f64, Unit::Nanoseconds);
        }
        for thread in &result.threads {
            self.group = format!("thread {}", thread.name);
            self.add("CPU time", thread.cpu_time_ns as f64, Unit::Nanoseconds);
            if all {
                self.spent(&thread.spent);
            }
        }
    }

    fn spent(&mut self, spent: &SpentResult) {
        self.add("marking", spent.marking_ns as f64, Unit::Nanoseconds);
        self.add("aging", spent.aging_ns as f64, Unit::Nanoseconds);
        for (name, time) in &spent.spent_ns {
            self.add(name, time.as_f64().unwrap_or(0.0), Unit::Nanoseconds);
        }
    }

    fn counters(&mut self, counters: &Counters, all: bool) {
        if !all {
            return STORY.iter().for_each(|name| self.add(name, counter(counters, name) as f64, Unit::Count));
        }
        for (name, value) in counters {
            self.add(name, value.as_f64().unwrap_or(0.0), Unit::Count);
        }
    }

    fn latency(&mut self, what: &str, latency: &Latency) {
        self.add(&format!("{what} calls"), latency.count as f64, Unit::Count);
        let spans = [
            ("p50", latency.p50_ns),
            ("p99", latency.p99_ns),
            ("max", latency.max_ns),
            ("in all", latency.total_ns),
        ];
        for (name, value) in spans {
            self.add(&format!("{what} {name}"), value as f64, Unit::Nanoseconds);
        }
    }
}

/// Figures of writeback, in the group `writeback`.
pub(crate) fn writeback_metrics(writeback: &WritebackResult) -> Vec<Metric> {
    let each = [
        ("pages written, reason", &writeback.pages_by_reason),
        ("pages written by reclaim,", &writeback.pages_by_reclaim),
        ("waits of reclaim,", &writeback.waits_of_reclaim),
        ("rotations of written pages,", &writeback.rotations),
    ];
    let of = |name: String, value: f64| {
        let (group, unit) = ("writeback".to_string(), Unit::Count);
        Metric { group, name, value, unit, is_truncated: false }
    };
    let counted = each.into_iter().flat_map(|(what, counters)| {
        counters.keys().map(move |name| of(format!("{what} {name}"), counter(counters, name) as f64))
    });
    let others = [
        ("pages written by reclaim, left dirty", writeback.redirtied),
        ("dirty pages that went with their files", writeback.cancelled),
        ("flusher wake-ups by reclaim", writeback.wakeups_by_reclaim),
    ];
    counted.chain(others.map(|(name, value)| of(name.to_string(), value as f64))).collect()
}

/// Tasks by the scenario's name: `reader.0` and `reader.1` are copies of `reader`.
fn by_name(tasks: &[TaskResult]) -> Vec<(String, Vec<&TaskResult>)> {
    let mut groups: Vec<(String, Vec<&TaskResult>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for task in tasks {
        let name = shared_name(&task.name);
        let next = groups.len();
        let place = *places.entry(name).or_insert(next);
        if place == next {
            groups.push((name.to_string(), Vec::new()));
        }
        groups[place].1.push(task);
    }
    groups
}

/// The figures of a kdamond, and of each of its schemes.
fn of_kdamond(kdamond: &KdamondResult) -> Vec<Metric> {
    let metric = |group: &str, name: &str, value: u64, unit| {
        let (group, name) = (group.to_string(), name.to_string());
        Metric { group, name, value: value as f64, unit, is_truncated: false }
    };
    let mut metrics = vec![
        metric(&kdamond.name, "windows", kdamond.windows, Unit::Count),
        metric(&kdamond.name, "regions", kdamond.regions, Unit::Count),
        metric(&kdamond.name, "sample interval", kdamond.sample_us.saturating_mul(1_000), Unit::Nanoseconds),
    ];
    for (number, scheme) in kdamond.schemes.iter().enumerate() {
        let group = format!("{} scheme {number} {}", kdamond.name, scheme.action);
        metrics.extend([
            metric(&group, "nr_tried", scheme.nr_tried, Unit::Count),
            metric(&group, "sz_tried", scheme.sz_tried, Unit::Bytes),
            metric(&group, "nr_applied", scheme.nr_applied, Unit::Count),
            metric(&group, "sz_applied", scheme.sz_applied, Unit::Bytes),
            metric(&group, "qt_exceeds", scheme.qt_exceeds, Unit::Count),
        ]);
    }
    metrics
}
