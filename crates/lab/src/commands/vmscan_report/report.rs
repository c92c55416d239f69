//! The result of `vmscan-report`: rows that all its forms share, then the forms (text, JSON, page, script).

mod json; // everything
mod script; // the text of the kernel's own script
mod text; // tables to read
mod story; // sentences
mod page; // pictures

pub(super) use page::pictures;
pub(super) use story::story;

use super::Reading;
use super::ftrace::CallKind;
use super::tally::{Class, Process, Sums, Work};
use crate::print::figures;

/// All that is to be printed.
pub(super) struct Report<'a> {
    pub(super) readings: &'a [Reading],
    pub(super) ignore_pid: bool,
    pub(super) all: bool,
}

/// What a trace does not say of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) elapsed_s: Option<f64>,
    pub(super) cpu_s: Option<f64>,
}

impl Reading {
    /// How long it took, in nanoseconds: as given, or from the first event to the last.
    fn elapsed_ns(&self) -> f64 {
        let (first, last) = self.totals.span_ns.unwrap_or_default();
        self.times.elapsed_s.map_or((last - first) as f64, |seconds| seconds * 1e9)
    }

    fn is_complete(&self) -> bool {
        self.faults.is_empty()
    }

    /// The rows of the seed's summary, and those for cgroups, as text and value.
    fn summary(&self) -> Vec<(&'static str, Value)> {
        let mut rows = Vec::new();
        let sums = &self.sums;
        let count = |value: u64| Value::Count(value);
        let direct = sums.calls(CallKind::Direct);
        let work = sums.work(Class::Direct);
        rows.push(("Direct reclaims", count(direct.begun)));
        rows.push(("Direct reclaim pages scanned", sums.told(work.scanned.total())));
        rows.push(("Direct reclaim pages reclaimed", count(direct.freed(&work))));
        rows.push(("Direct reclaim write async I/O", sums.told(work.written_async.total())));
        rows.push(("Direct reclaim write sync I/O", sums.told(work.written_sync.total())));
        rows.push(("Wake kswapd requests", count(sums.wake_requests())));
        let kswapd = sums.kswapd();
        let work = sums.work(Class::Kswapd);
        rows.push(("Kswapd wakeups", count(kswapd.wakes)));
        rows.push(("Kswapd wakeups while awake", count(kswapd.rewakes)));
        rows.push(("Kswapd pages scanned", sums.told(work.scanned.total())));
        rows.push(("Kswapd pages reclaimed", sums.told_batches(&work)));
        rows.push(("Kswapd reclaim write async I/O", sums.told(work.written_async.total())));
        rows.push(("Kswapd reclaim write sync I/O", sums.told(work.written_sync.total())));
        rows.push(("Time stalled direct reclaim (ms)", Value::Milliseconds(direct.stalled_ns)));
        rows.push(("Time kswapd awake (ms)", Value::Milliseconds(kswapd.awake_ns)));
        for (kind, labels) in [
            (CallKind::Memcg, MEMCG_ROWS),
            (CallKind::SoftLimit, SOFT_LIMIT_ROWS),
            (CallKind::Node, NODE_ROWS),
        ] {
            let calls = sums.calls(kind);
            let work = sums.work(kind.into());
            rows.push((labels[0], count(calls.begun)));
            rows.push((labels[1], sums.told(work.scanned.total())));
            rows.push((labels[2], count(calls.freed(&work))));
            rows.push((labels[3], sums.told(work.written())));
            rows.push((labels[4], Value::Milliseconds(calls.stalled_ns)));
        }
        let stalled_s = direct.stalled_ns as f64 / 1e9;
        let share =
            self.times.cpu_s.map_or(Value::Unknown, |cpu| Value::Share(stalled_s / (cpu + stalled_s)));
        rows.push(("User/Sys time (seconds)", self.times.cpu_s.map_or(Value::Unknown, Value::Seconds)));
        rows.push(("Percentage time direct reclaim", share));
        rows.push(("Total elapsed time (seconds)", Value::Seconds(self.elapsed_ns() / 1e9)));
        let awake = kswapd.awake_ns as f64 / kswapd.threads.max(1) as f64;
        rows.push(("Percentage time kswapd awake", Value::Share(ratio(awake, self.elapsed_ns()))));
        rows
    }
}

const MEMCG_ROWS: [&str; 5] = [
    "Memcg reclaims",
    "Memcg reclaim pages scanned",
    "Memcg reclaim pages reclaimed",
    "Memcg reclaim write I/O",
    "Time stalled memcg reclaim (ms)",
];
const SOFT_LIMIT_ROWS: [&str; 5] = [
    "Soft limit reclaims",
    "Soft limit reclaim pages scanned",
    "Soft limit reclaim pages reclaimed",
    "Soft limit reclaim write I/O",
    "Time in soft limit reclaim (ms)",
];
const NODE_ROWS: [&str; 5] = [
    "Node reclaims",
    "Node reclaim pages scanned",
    "Node reclaim pages reclaimed",
    "Node reclaim write I/O",
    "Time stalled node reclaim (ms)",
];

/// Rows that are left out where no trace has them.
fn is_rare(label: &str) -> bool {
    SOFT_LIMIT_ROWS.contains(&label) || NODE_ROWS.contains(&label)
}

/// A figure of the summary.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Count(u64),
    /// In nanoseconds.
    Milliseconds(u64),
    Seconds(f64),
    Share(f64),
    /// No event tells it.
    Unknown,
}

impl Value {
    fn text(self) -> String {
        match self {
            Value::Count(count) => figures::count(count),
            Value::Milliseconds(ns) => format!("{:.2}", ns as f64 / 1e6),
            Value::Seconds(seconds) => format!("{seconds:.2}"),
            Value::Share(share) => figures::percent(share),
            Value::Unknown => "-".to_string(),
        }
    }

    fn is_zero(self) -> bool {
        matches!(self, Value::Count(0) | Value::Milliseconds(0) | Value::Unknown)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Calls of one kind, of all tasks.
#[derive(Default)]
struct AllCalls {
    begun: u64,
    reclaimed: u64,
    stalled_ns: u64,
}

impl AllCalls {
    /// Pages freed: by the batches, or by the ends of calls in the dialect of 2010, which tells of no batches.
    fn freed(&self, work: &Work) -> u64 {
        if work.batches > 0 { work.reclaimed.total() } else { self.reclaimed }
    }
}

/// All kswapds.
#[derive(Default)]
struct AllKswapds {
    threads: u64,
    wakes: u64,
    rewakes: u64,
    awake_ns: u64,
}

impl Sums {
    /// A count of work, where any event tells of work.
    fn told(&self, count: u64) -> Value {
        if self.tells_work { Value::Count(count) } else { Value::Unknown }
    }

    /// Pages freed, where batches tell it.
    fn told_batches(&self, work: &Work) -> Value {
        let is_untold = work.batches == 0 && work.scanned.total() > 0;
        if is_untold { Value::Unknown } else { self.told(work.reclaimed.total()) }
    }

    fn calls(&self, kind: CallKind) -> AllCalls {
        let mut all = AllCalls::default();
        for process in &self.processes {
            let calls = process.calls(kind);
            all.begun += calls.begun.total();
            all.reclaimed += calls.reclaimed;
            all.stalled_ns = all.stalled_ns.saturating_add(calls.latency.total().0);
        }
        all
    }

    fn kswapd(&self) -> AllKswapds {
        let mut all = AllKswapds::default();
        for kswapd in self.processes.iter().filter_map(|process| process.kswapd.as_deref()) {
            all.threads += 1;
            all.wakes += kswapd.wakes.total();
            all.rewakes += kswapd.rewakes.total();
            all.awake_ns = all.awake_ns.saturating_add(kswapd.awake.total().0);
        }
        all
    }

    fn wake_requests(&self) -> u64 {
        self.processes.iter().map(|process| process.wake_requests.total()).sum()
    }
}

/// Pages that a task's calls of one kind freed.
fn freed(process: &Process, kind: CallKind) -> u64 {
    let work = process.work_of(kind.into());
    if work.batches > 0 { work.reclaimed.total() } else { process.calls(kind).reclaimed }
}
