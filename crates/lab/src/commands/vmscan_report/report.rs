//! The result of `vmscan-report`: rows that all its forms share, then the forms (text, JSON, page, script).

mod json; // everything
mod script; // the text of the kernel's own script
mod text; // tables to read
mod story; // sentences
mod page; // pictures

pub(super) use page::pictures;
pub(super) use story::story;

use pageout_study::basis::verdict;

use super::Reading;
use super::ftrace::CallKind;
use super::tally::{Class, Need, Process, Sums, Work};
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
        let (direct, work) = (CallKind::Direct, sums.work(Class::Direct));
        rows.push(("Direct reclaims", sums.calls_made(direct)));
        rows.push(("Direct reclaim pages scanned", sums.scanned(direct.into(), &work)));
        rows.push(("Direct reclaim pages reclaimed", sums.freed(direct)));
        rows.push((
            "Direct reclaim write async I/O",
            sums.written(direct.into(), work.written_async.total()),
        ));
        rows.push(("Direct reclaim write sync I/O", sums.written(direct.into(), work.written_sync.total())));
        rows.push((
            "Wake kswapd requests",
            sums.told([Need::WakeRequests], Value::Count(sums.wake_requests())),
        ));
        let (kswapd, work) = (sums.kswapd(), sums.work(Class::Kswapd));
        let wakes = |count: u64| sums.told([Need::KswapdWakes], Value::Count(count));
        rows.push(("Kswapd wakeups", wakes(kswapd.wakes)));
        rows.push(("Kswapd wakeups while awake", wakes(kswapd.rewakes)));
        rows.push(("Kswapd pages scanned", sums.scanned(Class::Kswapd, &work)));
        rows.push(("Kswapd pages reclaimed", sums.freed_in_batches(&work)));
        rows.push((
            "Kswapd reclaim write async I/O",
            sums.written(Class::Kswapd, work.written_async.total()),
        ));
        rows.push(("Kswapd reclaim write sync I/O", sums.written(Class::Kswapd, work.written_sync.total())));
        rows.push(("Time stalled direct reclaim (ms)", sums.stalled(direct)));
        rows.push(("Time kswapd awake (ms)", sums.told(KSWAPD_EDGES, Value::Milliseconds(kswapd.awake_ns))));
        for (kind, labels) in [
            (CallKind::Memcg, MEMCG_ROWS),
            (CallKind::SoftLimit, SOFT_LIMIT_ROWS),
            (CallKind::Node, NODE_ROWS),
        ] {
            let work = sums.work(kind.into());
            rows.push((labels[0], sums.calls_made(kind)));
            rows.push((labels[1], sums.scanned(kind.into(), &work)));
            rows.push((labels[2], sums.freed(kind)));
            rows.push((labels[3], sums.written(kind.into(), work.written())));
            rows.push((labels[4], sums.stalled(kind)));
        }
        let share = match (self.times.cpu_s, sums.stalled(direct)) {
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
        rows.push(("Percentage time kswapd awake", sums.told(KSWAPD_EDGES, share)));
        rows
    }
}

/// What the time that kswapd was awake needs.
const KSWAPD_EDGES: [Need; 2] = [Need::KswapdWakes, Need::KswapdSleeps];

/// What the time that tasks were stalled needs.
fn edges(kind: CallKind) -> [Need; 2] {
    [Need::Begins(kind), Need::Ends(kind)]
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

    /// A count, as far as it is known.
    fn count(self) -> Option<u64> {
        match self {
            Value::Count(count) => Some(count),
            _ => None,
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
    reclaimed: u64,
    reclaimed_beginless: u64,
    stalled_ns: u64,
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
    /// A figure, where events tell all that it needs.
    fn told<const N: usize>(&self, needs: [Need; N], value: Value) -> Value {
        verdict(&self.seen, needs, |_| value).unwrap_or(Value::Unknown)
    }

    /// Calls of one kind: begins, or ends where no begin was recorded.
    fn calls_made(&self, kind: CallKind) -> Value {
        let made = |process: &Process| self.calls_of(process, kind);
        let need = if self.seen.has_ends_alone(kind) { Need::Ends(kind) } else { Need::Begins(kind) };
        self.told([need], Value::Count(self.processes.iter().map(made).sum()))
    }

    fn calls_of(&self, process: &Process, kind: CallKind) -> u64 {
        let calls = process.calls(kind);
        if self.seen.has_ends_alone(kind) { calls.beginless } else { calls.begun.total() }
    }

    /// Pages looked at by one class.
    fn scanned(&self, class: Class, work: &Work) -> Value {
        self.by(class, Need::Scans, work.scanned.total())
    }

    /// Pages written by one class.
    fn written(&self, class: Class, pages: u64) -> Value {
        self.by(class, Need::Writes, pages)
    }

    /// A count of a class: what was done in calls is known where their begins are.
    fn by(&self, class: Class, need: Need, count: u64) -> Value {
        match CallKind::ALL.into_iter().find(|kind| Class::from(*kind) == class) {
            Some(kind) => self.told([Need::Begins(kind), need], Value::Count(count)),
            None => self.told([need], Value::Count(count)),
        }
    }

    /// Pages that batches freed.
    fn freed_in_batches(&self, work: &Work) -> Value {
        self.told([Need::Batches], Value::Count(work.reclaimed.total()))
    }

    /// Pages freed by calls of one kind.
    fn freed(&self, kind: CallKind) -> Value {
        let (work, calls) = (self.work(kind.into()), self.calls(kind));
        self.freed_by(kind, &work, calls.reclaimed, calls.reclaimed_beginless)
    }

    /// Pages that a task's calls of one kind freed.
    fn freed_of(&self, process: &Process, kind: CallKind) -> Value {
        let calls = process.calls(kind);
        self.freed_by(kind, process.work_of(kind.into()), calls.reclaimed, calls.reclaimed_beginless)
    }

    /// Batches tell it, or else the ends of calls.
    fn freed_by(&self, kind: CallKind, work: &Work, reclaimed: u64, beginless: u64) -> Value {
        let by_batches = [Need::Begins(kind), Need::Batches];
        if work.batches > 0 {
            return self.told(by_batches, Value::Count(work.reclaimed.total()));
        }
        let by_ends = if self.seen.has_ends_alone(kind) { beginless } else { reclaimed };
        match self.told([Need::Ends(kind)], Value::Count(by_ends)) {
            Value::Unknown => self.told(by_batches, Value::Count(0)),
            told => told,
        }
    }

    /// How long calls of one kind lasted.
    fn stalled(&self, kind: CallKind) -> Value {
        self.told(edges(kind), Value::Milliseconds(self.calls(kind).stalled_ns))
    }

    fn calls(&self, kind: CallKind) -> AllCalls {
        let mut all = AllCalls::default();
        for process in &self.processes {
            let calls = process.calls(kind);
            all.reclaimed += calls.reclaimed;
            all.reclaimed_beginless += calls.reclaimed_beginless;
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
