//! The sums of a trace in rows, as the kernel's own script has them, and for cgroups besides.

use pageout_kerneltext::ftrace::CallKind;
use pageout_kerneltext::vmscan::{Coverage, EventKind, NotRecorded, Reclaimer, Sums};

use super::Reading;
use crate::basis::{self, Evidence, Verdict};
use crate::figures;

impl Reading {
    /// Returns the elapsed time in nanoseconds: as given, or from the first event to the last.
    pub fn elapsed_ns(&self) -> f64 {
        let (first, last) = self.totals.span_ns.unwrap_or_default();
        self.times.elapsed_s.map_or((last - first) as f64, |seconds| seconds * 1e9)
    }

    /// Returns true if all of it was read.
    pub fn is_complete(&self) -> bool {
        self.faults.is_empty()
    }

    /// The rows of the seed's summary, and those for cgroups, as text and value.
    pub fn summary(&self) -> Vec<(&'static str, Value)> {
        let mut rows = Vec::new();
        let sums = &self.sums;
        let (direct, work) = (CallKind::Direct, sums.work(Reclaimer::Direct));
        rows.push(("Direct reclaims", sums.calls_made(direct).into()));
        rows.push(("Direct reclaim pages scanned", sums.scanned(direct.into(), &work).into()));
        rows.push(("Direct reclaim pages reclaimed", sums.freed(direct).into()));
        rows.push((
            "Direct reclaim write async I/O",
            sums.written(direct.into(), work.written_async.total()).into(),
        ));
        rows.push((
            "Direct reclaim write sync I/O",
            sums.written(direct.into(), work.written_sync.total()).into(),
        ));
        rows.push((
            "Wake kswapd requests",
            known(sums, [EventKind::WakeRequests], Value::Count(sums.wake_requests())),
        ));
        let (kswapd, work) = (sums.kswapd(), sums.work(Reclaimer::Kswapd));
        let wakes = |count: u64| known(sums, [EventKind::KswapdWakes], Value::Count(count));
        rows.push(("Kswapd wakeups", wakes(kswapd.wakes)));
        rows.push(("Kswapd wakeups while awake", wakes(kswapd.rewakes)));
        rows.push(("Kswapd pages scanned", sums.scanned(Reclaimer::Kswapd, &work).into()));
        rows.push(("Kswapd pages reclaimed", sums.freed_in_batches(&work).into()));
        rows.push((
            "Kswapd reclaim write async I/O",
            sums.written(Reclaimer::Kswapd, work.written_async.total()).into(),
        ));
        rows.push((
            "Kswapd reclaim write sync I/O",
            sums.written(Reclaimer::Kswapd, work.written_sync.total()).into(),
        ));
        rows.push(("Time stalled direct reclaim (ms)", stalled(sums, direct)));
        rows.push((
            "Time kswapd awake (ms)",
            known(sums, KSWAPD_EDGES, Value::Milliseconds(kswapd.awake_ns)),
        ));
        for (kind, labels) in [
            (CallKind::Memcg, MEMCG_ROWS),
            (CallKind::SoftLimit, SOFT_LIMIT_ROWS),
            (CallKind::Node, NODE_ROWS),
        ] {
            let work = sums.work(kind.into());
            rows.push((labels[0], sums.calls_made(kind).into()));
            rows.push((labels[1], sums.scanned(kind.into(), &work).into()));
            rows.push((labels[2], sums.freed(kind).into()));
            rows.push((labels[3], sums.written(kind.into(), work.written()).into()));
            rows.push((labels[4], stalled(sums, kind)));
        }
        let share = match (self.times.cpu_s, stalled(sums, direct)) {
            (Some(cpu_s), Value::Milliseconds(ns)) => {
                let stalled_s = ns as f64 / 1e9;
                Value::Share(stalled_s / (cpu_s + stalled_s))
            }
            _ => Value::Unknown,
        };
        rows.push(("User/Sys time (seconds)", self.times.cpu_s.map_or(Value::Unknown, Value::Seconds)));
        rows.push(("Percentage time direct reclaim", share));
        rows.push(("Total elapsed time (seconds)", Value::Seconds(self.elapsed_ns() / 1e9)));
        let awake = kswapd.awake_ns as f64 / kswapd.threads.max(1) as f64;
        let share = Value::Share(ratio(awake, self.elapsed_ns()));
        rows.push(("Percentage time kswapd awake", known(sums, KSWAPD_EDGES, share)));
        rows
    }
}

/// How long calls of one kind lasted.
fn stalled(sums: &Sums, kind: CallKind) -> Value {
    sums.stalled_ns(kind).map_or(Value::Unknown, Value::Milliseconds)
}

/// The events that the time that kswapd was awake needs.
pub const KSWAPD_EDGES: [EventKind; 2] = [EventKind::KswapdWakes, EventKind::KswapdSleeps];

/// Returns the events that the time of stalled tasks needs.
pub fn edges(kind: CallKind) -> [EventKind; 2] {
    [EventKind::Begins(kind), EventKind::Ends(kind)]
}

/// Labels of the rows for calls at a cgroup's limit.
pub const MEMCG_ROWS: [&str; 5] = [
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
pub fn is_rare(label: &str) -> bool {
    SOFT_LIMIT_ROWS.contains(&label) || NODE_ROWS.contains(&label)
}

/// A figure of the summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number of events or pages.
    Count(u64),
    /// A time, in nanoseconds; milliseconds are shown.
    Milliseconds(u64),
    /// A time in seconds.
    Seconds(f64),
    /// A part of 1.
    Share(f64),
    /// No event shows it.
    Unknown,
}

impl Value {
    /// As a table shows it.
    pub fn text(self) -> String {
        match self {
            Value::Count(count) => figures::count(count),
            Value::Milliseconds(ns) => format!("{:.2}", ns as f64 / 1e6),
            Value::Seconds(seconds) => format!("{seconds:.2}"),
            Value::Share(share) => figures::percent(share),
            Value::Unknown => "-".to_string(),
        }
    }

    /// Returns true if it says that nothing happened, or nothing at all.
    pub fn is_zero(self) -> bool {
        matches!(self, Value::Count(0) | Value::Milliseconds(0) | Value::Unknown)
    }
}

/// A part of a whole; 0 of nothing.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The kinds of events that a trace has, as evidence of verdicts.
struct Recorded<'a>(&'a Coverage);

impl Evidence for Recorded<'_> {
    type Need = EventKind;
    type Seen = u64;

    fn seen(&self, need: &EventKind) -> Result<u64, String> {
        self.0.count_of(need).map_err(|missing| missing.to_string())
    }
}

/// A verdict on a trace, from the events that it needs.
pub fn verdict<T, const N: usize>(
    sums: &Sums,
    needs: [EventKind; N],
    say: impl FnOnce([u64; N]) -> T,
) -> Verdict<T> {
    basis::verdict(&Recorded(&sums.coverage), needs, say)
}

/// Seconds since the trace's clock began, to the microsecond.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// A figure, if the trace has all kinds of events that it needs.
pub fn known<const N: usize>(sums: &Sums, needs: [EventKind; N], value: Value) -> Value {
    verdict(sums, needs, |_| value).unwrap_or(Value::Unknown)
}

impl From<Result<u64, NotRecorded>> for Value {
    fn from(count: Result<u64, NotRecorded>) -> Value {
        count.map_or(Value::Unknown, Value::Count)
    }
}
