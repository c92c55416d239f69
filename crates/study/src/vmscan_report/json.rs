//! The answer as data, with everything in it, times in nanoseconds.

use pageout_kerneltext::ftrace::{CallKind, REASONS, Totals};
use pageout_kerneltext::vmscan::{
    ByOrder, ByType, Durations, EventKind, OffCpu, OffCpuTime, Process, Reclaimer, Refaults, Stall, Sums,
    Work,
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::story::{lacking, story};
use super::summary::{KSWAPD_EDGES, Value as Figure, edges, verdict};
use super::why::why;
use super::{Answer, Reading};
use crate::json::merged;

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl Answer {
    fn json(&self) -> Value {
        json!({
            "complete": self.readings.iter().all(Reading::is_complete),
            "traces": self.readings.iter().map(reading_json).collect::<Vec<_>>(),
        })
    }

    /// A row a process, and a row a call that took long, of each trace.
    pub fn rows(&self) -> Vec<Value> {
        let json = self.json();
        let elements = |of: &Value, list: &str| of[list].as_array().cloned().unwrap_or_default();
        let of_trace = |trace: &Value| {
            let kinds = [("process", "processes"), ("call", "longest_calls")];
            let rows = kinds.into_iter().flat_map(|(kind, list)| {
                let head = json!({ "trace": trace["trace"], "kind": kind });
                elements(trace, list).into_iter().map(move |element| merged(head.clone(), element))
            });
            rows.collect::<Vec<Value>>()
        };
        elements(&json, "traces").iter().flat_map(of_trace).collect()
    }
}

fn reading_json(reading: &Reading) -> Value {
    let sums = &reading.sums;
    let work = Reclaimer::ALL.map(|class| (class.name().to_string(), work_json(sums, &sums.work(class))));
    let summary = reading.summary();
    let summary = summary.iter().map(|(label, value)| (label.to_string(), figure_json(*value)));
    json!({
        "trace": reading.name,
        "complete": reading.is_complete(),
        "faults": reading.faults,
        "read": totals_json(&reading.totals),
        "tells_work": sums.has_work_events,
        "story": story(reading),
        "refaults": refaults_json(&sums.refaults),
        "record_next": lacking(reading).iter().flat_map(|lack| lack.events.iter()).collect::<Vec<_>>(),
        "summary": summary.collect::<Map<_, _>>(),
        "work": Map::from_iter(work),
        "processes": sums.processes.iter().map(|process| process_json(sums, process)).collect::<Vec<_>>(),
        "longest_calls": sums.stalls.iter().map(|stall| stall_json(reading, stall)).collect::<Vec<_>>(),
        "timeline": timeline_json(reading),
    })
}

fn totals_json(totals: &Totals) -> Value {
    let skipped = totals.skipped.reasons();
    let skipped = skipped
        .map(|(reason, lines, first)| json!({ "reason": reason, "lines": lines, "first_line": first }));
    json!({
        "bytes": totals.bytes,
        "lines": totals.lines,
        "events": totals.events,
        "other_events": totals.others,
        "unknown_events": totals.unknown,
        "lost_events": totals.lost,
        "uncounted_losses": totals.losses,
        "displaced_events": totals.displaced,
        "late_events": totals.late,
        "back_ns": totals.back.map(|(ns, _)| ns),
        "skipped_lines": totals.skipped.total(),
        "skipped": skipped.collect::<Vec<_>>(),
        "dialect": totals.dialect(),
        "form": if totals.is_perf { "perf script" } else { "ftrace" },
        "cpus": Some(totals.cpus).filter(|&cpus| cpus > 0),
        "first_ns": totals.span_ns.map(|(first, _)| first),
        "last_ns": totals.span_ns.map(|(_, last)| last),
    })
}

fn figure_json(figure: Figure) -> Value {
    match figure {
        Figure::Count(count) => json!(count),
        Figure::Milliseconds(ns) => json!(ns as f64 / 1e6),
        Figure::Seconds(seconds) => json!(seconds),
        Figure::Share(share) => json!(share * 100.0),
        Figure::Unknown => Value::Null,
    }
}

fn by_type(ByType { anon, file, unknown }: ByType) -> Value {
    json!({ "anon": anon, "file": file, "untold": unknown, "total": anon + file + unknown })
}

fn by_order(counts: &ByOrder) -> Value {
    counts.iter().map(|(order, count)| (order.to_string(), json!(count))).collect::<Map<_, _>>().into()
}

/// Null if no event shows work.
fn work_json(sums: &Sums, work: &Work) -> Value {
    if !sums.has_work_events {
        return Value::Null;
    }
    let kept = work.kept();
    let seen = |need: EventKind| sums.coverage.count_of(&need).is_ok();
    let throttled = REASONS.iter().zip(work.throttled_for_us);
    let throttled = throttled.map(|(reason, us)| (reason.to_string(), json!(us)));
    json!({
        "scanned": Some(by_type(work.scanned)).filter(|_| seen(EventKind::Scans)),
        "taken": work.taken().map(by_type),
        "reclaimed": Some(by_type(work.reclaimed)).filter(|_| seen(EventKind::Batches)),
        "written_sync": Some(by_type(work.written_sync)).filter(|_| seen(EventKind::Writes)),
        "written_async": Some(by_type(work.written_async)).filter(|_| seen(EventKind::Writes)),
        "contig_dirty": work.contig_dirty,
        "activated": kept[0],
        "ref_keep": kept[1],
        "dirty": kept[2],
        "writeback": kept[3],
        "immediate": kept[4],
        "unmap_fail": kept[5],
        "throttled_us": Some(work.throttled_us).filter(|_| seen(EventKind::Throttles)),
        "throttled_us_by_reason": Some(throttled.collect::<Map<_, _>>()).filter(|_| seen(EventKind::Throttles)),
        "lowest_priority": work.priority,
    })
}

/// Null without the events that the value needs.
fn told<const N: usize>(sums: &Sums, needs: [EventKind; N], value: impl FnOnce() -> Value) -> Value {
    verdict(sums, needs, |_| value()).unwrap_or(Value::Null)
}

fn latency_json(latency: &Durations) -> Value {
    let summary = latency.summary();
    json!({
        "count": summary.count,
        "total_ns": summary.total_ns,
        "p50_ns": summary.p50_ns,
        "p99_ns": summary.p99_ns,
        "max_ns": summary.max_ns,
    })
}

fn process_json(sums: &Sums, process: &Process) -> Value {
    let mut json = json!({ "name": process.name(), "comm": process.comm, "pid": process.pid });
    for kind in [CallKind::Direct, CallKind::Memcg, CallKind::SoftLimit, CallKind::Node] {
        let calls = process.calls(kind);
        if calls.begun.total() + calls.without_begin > 0 {
            json[Reclaimer::from(kind).name()] = json!({
                "calls": sums.calls_of(process, kind),
                "calls_by_order": by_order(&calls.begun),
                "stalled": told(sums, edges(kind), || latency_json(&calls.latency)),
                "reclaimed": figure_json(sums.freed_of(process, kind).into()),
                "unfinished_calls": calls.unfinished.map_or(0, |(count, _)| count),
                "unfinished_since_ns": calls.unfinished.map(|(_, since_ns)| since_ns),
                "begins_without_end": calls.without_end,
                "ends_without_begin": calls.without_begin,
                "work": work_json(sums, process.work_by(kind.into())),
            });
        }
    }
    if let Some(kswapd) = &process.kswapd {
        json["kswapd"] = json!({
            "wakeups": told(sums, [EventKind::KswapdWakes], || json!(kswapd.wakes.total())),
            "wakeups_by_order": by_order(&kswapd.wakes),
            "wakeups_while_awake": told(sums, [EventKind::KswapdWakes], || json!(kswapd.rewakes.total())),
            "wakeups_while_awake_by_order": by_order(&kswapd.rewakes),
            "sleeps": told(sums, [EventKind::KswapdSleeps], || json!(kswapd.sleeps)),
            "awake": told(sums, KSWAPD_EDGES, || latency_json(&kswapd.awake)),
            "awake_before_until_ns": kswapd.awake_before_ns,
            "awake_at_end_since_ns": kswapd.since.map(|(since_ns, _)| since_ns),
            "work": work_json(sums, process.work_by(Reclaimer::Kswapd)),
        });
    }
    json["wake_requests"] = told(sums, [EventKind::WakeRequests], || json!(process.wake_requests.total()));
    json["wake_requests_by_order"] = by_order(&process.wake_requests);
    json["outside"] = work_json(sums, process.work_by(Reclaimer::Outside));
    json
}

/// `sure` by the scheduler's events; otherwise nothing that the call did accounts for the time.
fn absence_json(stall: &Stall) -> Value {
    match (stall.off_cpu, stall.off_cpu_time()) {
        (Some(OffCpu { asleep_ns, waiting_ns }), _) => {
            json!({ "sure": true, "ns": asleep_ns.saturating_add(waiting_ns), "asleep_ns": asleep_ns, "waiting_for_cpu_ns": waiting_ns })
        }
        (None, Some(OffCpuTime::Inferred(ns))) => {
            json!({ "sure": false, "ns": ns, "asleep_ns": null, "waiting_for_cpu_ns": null })
        }
        (None, _) => Value::Null,
    }
}

/// Null without events.
fn refaults_json(refaults: &Refaults) -> Value {
    if !refaults.is_known() {
        return json!({ "told_by_events_of_that_name": Some(refaults.refault_events).filter(|&told| told > 0) });
    }
    json!({
        "entered": refaults.added,
        "reclaimed": refaults.reclaimed,
        "removed_otherwise": refaults.removed,
        "refaulted": refaults.refaulted,
        "away": latency_json(&refaults.away),
        "forgotten": refaults.forgotten,
        "told_by_events_of_that_name": Some(refaults.refault_events).filter(|&told| told > 0),
    })
}

fn stall_json(reading: &Reading, stall: &Stall) -> Value {
    json!({
        "process": reading.sums.processes[stall.process].name(),
        "class": stall.reclaimer.name(),
        "order": stall.order,
        "begin_ns": stall.begin_ns,
        "lasted_ns": stall.lasted_ns,
        "ended": stall.is_over,
        "reclaimed": stall.reclaimed,
        "why": why(stall),
        "off_cpu": absence_json(stall),
        "shrinkers_ns": stall.slab_ns,
        "work": work_json(&reading.sums, &stall.work),
    })
}

/// Only steps in which something happened.
fn timeline_json(reading: &Reading) -> Value {
    let timeline = &reading.sums.timeline;
    let begin_ns = timeline.begin_ns.unwrap_or(0);
    let mut steps = Vec::new();
    for (at, step) in timeline.steps.iter().enumerate() {
        let busy = Reclaimer::ALL.into_iter().filter(|class| step[*class as usize] != Default::default());
        let classes = busy.map(|class| {
            let slice = step[class as usize];
            let slice = json!({
                "scanned": slice.scanned,
                "reclaimed": slice.reclaimed,
                "written": slice.written,
                "busy_ns": slice.busy_ns,
            });
            (class.name().to_string(), slice)
        });
        let classes: Map<String, Value> = classes.collect();
        if !classes.is_empty() {
            let mut step = json!({ "begin_ns": begin_ns + at as u64 * timeline.step_ns });
            step.as_object_mut().expect("it is one").extend(classes);
            steps.push(step);
        }
    }
    json!({ "step_ns": timeline.step_ns, "steps": steps })
}
