//! Tracepoints for ui.perfetto.dev: JSON of spans, instants and counters, an event a line.
//!
//! Reclaim calls, and times in which kswapd is awake, are spans on the tracks of their tasks. Other tracepoints are instants on the same track, with
//! their fields. Further tracks show lists, free memory and pressure. The form is that of Chrome's trace viewer, which Perfetto and `jq` read.

use std::collections::BTreeSet;

use pageout_engine::{MemcgId, Nanos, PAGE_SIZE, Stat, Tracepoint};
use pageout_sim::{Machine, Resource, TraceRecord};

use super::Task;
use super::fields::{self, Json};
use super::text::{Lasting, Part, Zeros, text};

/// What has been written so far, as far as what follows depends on it.
#[derive(Default)]
pub(super) struct Perfetto {
    has_events: bool,
    named: BTreeSet<u32>,
    /// Whose the last event was, and when.
    where_and_when: Lasting<(u32, Nanos)>,
    last: Option<u32>,
    /// Tasks in the middle of a span.
    open: BTreeSet<u32>,
    /// When the last sample was taken, and how long tasks had been stalled then.
    stalled: [[Nanos; 2]; 3],
    sampled_at: Nanos,
    /// What each track of counters shows, in their order in a sample.
    shown: [Vec<Hundredths>; TRACKS],
}

/// The process that everything belongs to: the machine.
const MACHINE: u32 = 1;

/// Tracks of counters: of memory, and of pressure.
const TRACKS: usize = MEMORY.len() + Resource::ALL.len();

/// Counters of pages that share a track, and the track's name.
const MEMORY: [(&str, &[(&str, Stat)]); 3] = [
    ("free memory", &[("free", Stat::NrFreePages)]),
    (
        "lists",
        &[
            ("active anon", Stat::NrActiveAnon),
            ("inactive anon", Stat::NrInactiveAnon),
            ("active file", Stat::NrActiveFile),
            ("inactive file", Stat::NrInactiveFile),
        ],
    ),
    ("dirty", &[("dirty", Stat::NrDirty), ("writeback", Stat::NrWriteback)]),
];

impl Perfetto {
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
        self.next(out);
        text!(
            out, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" => MACHINE;
            ",\"args\":{\"name\":\"pageout\"}}"
        );
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n]}\n");
    }

    /// Begins an event. The caller writes the rest, including its closing brace.
    fn next(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.has_events { b",\n" } else { b"\n" });
        self.has_events = true;
    }

    pub(super) fn add(&mut self, record: &TraceRecord, task: &Task, out: &mut Vec<u8>) {
        let tid = task.pid;
        if self.last.replace(tid) != Some(tid) && self.named.insert(tid) {
            self.next(out);
            text!(
                out, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":" => MACHINE, ",\"tid\":" => tid,
                ",\"args\":{\"name\":" => Quoted(&task.comm); "}}"
            );
        }
        let (phase, name) = match record.event {
            Tracepoint::DirectReclaimBegin { .. } => ("B", "direct reclaim"),
            Tracepoint::MemcgReclaimBegin { .. } => ("B", "reclaim at a cgroup's limit"),
            Tracepoint::SoftLimitReclaimBegin { .. } => ("B", "reclaim of a cgroup above its soft limit"),
            Tracepoint::NodeReclaimBegin { .. } => ("B", "reclaim of a near node"),
            Tracepoint::DirectReclaimEnd { .. }
            | Tracepoint::NodeReclaimEnd { .. }
            | Tracepoint::MemcgReclaimEnd { .. }
            | Tracepoint::SoftLimitReclaimEnd { .. } => ("E", ""),
            Tracepoint::KswapdWake { .. } if !self.open.contains(&tid) => ("B", "awake"),
            Tracepoint::KswapdSleep if self.open.contains(&tid) => ("E", ""),
            Tracepoint::Throttled { .. } => ("X", "throttled"),
            other => ("i", other.name()),
        };
        let lasted = match record.event {
            Tracepoint::Throttled { delayed, .. } => delayed,
            _ => Nanos::ZERO,
        };
        let begun = Nanos(record.at.0.saturating_sub(lasted.0));
        self.next(out);
        self.where_and_when.put((tid, begun), out, |out| {
            text!(out, "{\"pid\":1,\"tid\":" => tid, ",\"ts\":" => Micros(begun); ",\"ph\":\"");
        });
        text!(out, "" => phase; "\"");
        // By default an instant belongs to its track.
        match phase {
            "B" => _ = self.open.insert(tid),
            "E" => _ = self.open.remove(&tid),
            "X" => text!(out, ",\"dur\":" => Micros(lasted)),
            _ => {}
        }
        if !name.is_empty() {
            text!(out, ",\"name\":\"" => name; "\"");
        }
        text!(out, ",\"args\":{\"cpu\":" => record.cpu.0);
        fields::modern::<Json>(record, out);
        out.extend_from_slice(b"}}");
    }

    /// Tracks of memory and pressure. A track shows a value until the next one comes, so an unchanged one adds nothing.
    pub(super) fn sample(&mut self, at: Nanos, machine: &Machine, out: &mut Vec<u8>) {
        let engine = machine.engine();
        let mut tracks = 0..TRACKS;
        let mut track = |of: &mut Perfetto, name: &[&str], values: &[(&str, Hundredths)]| {
            let shown = &mut of.shown[tracks.next().expect("they are as many")];
            if shown.iter().eq(values.iter().map(|(_, value)| value)) {
                return;
            }
            shown.clear();
            shown.extend(values.iter().map(|&(_, value)| value));
            of.next(out);
            text!(out, "{\"ph\":\"C\",\"pid\":" => MACHINE, ",\"ts\":" => Micros(at); ",\"name\":\"");
            name.iter().for_each(|&part| part.put(out));
            out.extend_from_slice(b"\",\"args\":");
            for (place, &(counter, value)) in values.iter().enumerate() {
                out.push(if place == 0 { b'{' } else { b',' });
                text!(out, "\"" => counter, "\":" => value);
            }
            out.extend_from_slice(b"}}");
        };
        for (name, counters) in MEMORY {
            let bytes = |stat| engine.figures().vmstat(stat).max(0) as u64 * PAGE_SIZE;
            let values: Vec<_> =
                counters.iter().map(|&(counter, stat)| (counter, Hundredths(bytes(stat) * 100))).collect();
            track(self, &[name], &values);
        }
        let passed = at.0.saturating_sub(self.sampled_at.0);
        let totals = machine.stall_totals(MemcgId::ROOT);
        let before = std::mem::replace(&mut self.stalled, totals);
        for ((resource, now), before) in Resource::ALL.into_iter().zip(totals).zip(before) {
            let percent = [0, 1].map(|extent: usize| {
                // The duration of an open span is an estimate, and may turn out shorter.
                let stalled = now[extent].0.saturating_sub(before[extent].0);
                let share = if passed == 0 { 0.0 } else { stalled as f64 / passed as f64 };
                Hundredths((share * 10_000.0).round() as u64)
            });
            track(
                self,
                &["pressure of ", resource.name(), " (%)"],
                &[("some", percent[0]), ("full", percent[1])],
            );
        }
        self.sampled_at = at;
    }
}

/// Microseconds with the nanoseconds behind the point.
struct Micros(Nanos);

impl Part for Micros {
    fn put(self, out: &mut Vec<u8>) {
        text!(out, "" => self.0.0 / 1000, "." => Zeros(self.0.0 % 1000, 3));
    }
}

/// A number of at most two places behind the point, in hundredths.
#[derive(Clone, Copy, PartialEq)]
struct Hundredths(u64);

impl Part for Hundredths {
    fn put(self, out: &mut Vec<u8>) {
        text!(out, "" => self.0 / 100);
        if !self.0.is_multiple_of(100) {
            text!(out, "." => Zeros(self.0 % 100, 2));
        }
    }
}

/// Words that may hold anything.
struct Quoted<'a>(&'a str);

impl Part for Quoted<'_> {
    fn put(self, out: &mut Vec<u8>) {
        _ = serde_json::to_writer(out, self.0); // memory takes it all
    }
}
