//! Tracepoints for ui.perfetto.dev: JSON of spans, instants and counters, an event a line.
//!
//! Reclaim calls and kswapd's waking hours are spans on the tracks of those who were in them. Any other tracepoint is an instant on the same track,
//! with its fields. Beside them are tracks of what memory holds and for want of what tasks waited. The form is that of Chrome's trace
//! viewer, which Perfetto reads, and so does `jq`.

use std::collections::BTreeSet;
use std::io::Write;

use pageout_engine::{MemcgId, Nanos, PAGE_SIZE, Stat, Tracepoint};
use pageout_sim::{Machine, Resource, TraceRecord};
use serde_json::json;

use super::{Task, ftrace};

/// What has been written so far, as far as what follows depends on it.
#[derive(Default)]
pub(super) struct Perfetto {
    has_events: bool,
    named: BTreeSet<u32>,
    /// Tasks in the middle of a span.
    open: BTreeSet<u32>,
    /// When the last sample was taken, and how long tasks had been stalled then.
    stalled: [u64; 6],
    sampled_at: Nanos,
}

/// The process that everything belongs to: the machine.
const MACHINE: u32 = 1;

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
        let machine = json!({ "name": "pageout" });
        self.put(out, &json!({ "name": "process_name", "ph": "M", "pid": MACHINE, "args": machine }));
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n]}\n");
    }

    fn put(&mut self, out: &mut Vec<u8>, event: &serde_json::Value) {
        out.extend_from_slice(if self.has_events { b",\n" } else { b"\n" });
        self.has_events = true;
        _ = write!(out, "{event}");
    }

    pub(super) fn add(&mut self, record: &TraceRecord, task: &Task, out: &mut Vec<u8>) {
        let tid = task.pid;
        if self.named.insert(tid) {
            let args = json!({ "name": task.comm });
            self.put(
                out,
                &json!({ "name": "thread_name", "ph": "M", "pid": MACHINE, "tid": tid, "args": args }),
            );
        }
        let mut args = fields(record);
        args.insert("cpu".to_string(), record.cpu.0.into());
        let mut event = json!({ "pid": MACHINE, "tid": tid, "ts": micros(record.at) });
        let (phase, name) = match record.event {
            Tracepoint::DirectReclaimBegin { .. } => ("B", "direct reclaim"),
            Tracepoint::MemcgReclaimBegin { .. } => ("B", "reclaim at a cgroup's limit"),
            Tracepoint::DirectReclaimEnd { .. } | Tracepoint::MemcgReclaimEnd { .. } => ("E", ""),
            Tracepoint::KswapdWake { .. } if !self.open.contains(&tid) => ("B", "awake"),
            Tracepoint::KswapdSleep if self.open.contains(&tid) => ("E", ""),
            Tracepoint::Throttled { .. } => ("X", "throttled"),
            other => ("i", other.name()),
        };
        match (phase, record.event) {
            ("B", _) => _ = self.open.insert(tid),
            ("E", _) => _ = self.open.remove(&tid),
            ("X", Tracepoint::Throttled { delayed, .. }) => {
                event["ts"] = micros(Nanos(record.at.0.saturating_sub(delayed.0)));
                event["dur"] = micros(delayed);
            }
            _ => event["s"] = "t".into(),
        }
        event["ph"] = phase.into();
        if !name.is_empty() {
            event["name"] = name.into();
        }
        event["args"] = args.into();
        self.put(out, &event);
    }

    /// Tracks of memory and pressure.
    pub(super) fn sample(&mut self, at: Nanos, machine: &Machine, out: &mut Vec<u8>) {
        let engine = machine.engine();
        let ts = micros(at);
        for (name, counters) in MEMORY {
            let mut args = serde_json::Map::new();
            for (counter, stat) in counters {
                args.insert((*counter).to_string(), (engine.vmstat(*stat).max(0) as u64 * PAGE_SIZE).into());
            }
            self.put(out, &json!({ "name": name, "ph": "C", "pid": MACHINE, "ts": ts, "args": args }));
        }
        let passed = at.0.saturating_sub(self.sampled_at.0);
        for (place, resource) in Resource::ALL.into_iter().enumerate() {
            let totals = machine.stall_totals(MemcgId::ROOT, resource).map(|total| total.0);
            let mut args = serde_json::Map::new();
            for (extent, (total, before)) in
                ["some", "full"].into_iter().zip(totals.into_iter().zip(&mut self.stalled[2 * place..]))
            {
                // What lasts is an estimate until it is over, and may turn out shorter.
                let stalled = total.saturating_sub(std::mem::replace(before, total));
                let percent = if passed == 0 { 0.0 } else { 100.0 * stalled as f64 / passed as f64 };
                args.insert(extent.to_string(), ((percent * 100.0).round() / 100.0).into());
            }
            let name = format!("pressure of {} (%)", resource.name());
            self.put(out, &json!({ "name": name, "ph": "C", "pid": MACHINE, "ts": ts, "args": args }));
        }
        self.sampled_at = at;
    }
}

/// Microseconds with the nanoseconds behind the point.
fn micros(time: Nanos) -> serde_json::Value {
    json!(time.0 as f64 / 1000.0)
}

/// A tracepoint's fields by name, numbers as numbers.
fn fields(record: &TraceRecord) -> serde_json::Map<String, serde_json::Value> {
    let mut text = Vec::new();
    ftrace::modern(record, &mut text);
    let text = String::from_utf8_lossy(&text);
    let pairs = text.split(' ').filter_map(|field| field.split_once('='));
    let value = |text: &str| text.parse::<u64>().map_or_else(|_| text.into(), serde_json::Value::from);
    let mut fields: serde_json::Map<_, _> =
        pairs.map(|(name, text)| (name.to_string(), value(text))).collect();
    if fields.is_empty() && !text.is_empty() {
        // Some are sentences.
        fields.insert("text".to_string(), text.into());
    }
    fields
}
