//! What was measured, as a table with ratios, latencies and what limits them.

use std::fmt::Write;

use pageout_study::live_bench::{Answer, OURS, ReaderFigures, Round, Spread};
use serde_json::Value;

use crate::print::{Layout, figures};

/// `1.2 (1.1 to 1.4)`.
fn shown(spread: Spread, show: impl Fn(f64) -> String) -> String {
    format!("{} ({} to {})", show(spread.median), show(spread.least), show(spread.most))
}

pub(super) fn text(found: &Answer, layout: Layout) -> String {
    let ask = &found.ask;
    let mut text = String::new();
    let what = match (ask.in_place, ask.batch) {
        (true, _) => "looks at a byte of a page".to_string(),
        (false, 1) => "reads of 4 KiB".to_string(),
        (false, batch) => format!("reads of 4 KiB, {batch} in a call"),
    };
    let _ = writeln!(
        text,
        "{} {what} by {} in each of {}{}: {}, over {} of {}, with {} for pages",
        figures::count(found.reads),
        figures::counted(ask.threads.into(), "thread"),
        figures::counted(found.rounds as u64, "round"),
        if ask.cold { ", which begins with nothing in memory" } else { "" },
        found.load,
        figures::bytes(found.file_bytes),
        found.file,
        figures::bytes(ask.budget.0),
    );
    if let Some(is) = found.ways[0].own.get("is").and_then(Value::as_str) {
        let _ = writeln!(text, "{OURS}: {is}");
    }
    let _ = writeln!(text, "\n{}", speed(found, layout));
    text += "x: reads per second, or CPU time, of pageout divided by those of the row; median (min to max) of the rounds.\n";
    let _ = writeln!(text, "\ntime of a call, from a separate round\n{}", latencies(found, layout));
    if let Some(histogram) = histogram(found, layout) {
        let _ = writeln!(text, "{histogram}");
    }
    let own = &found.ways[0].own;
    let of = |name: &str| own.get(name).and_then(Value::as_u64).unwrap_or(0);
    let _ = writeln!(
        text,
        "the engine's lock was taken {} times, and held {} by half of them, {} by 99 %, {} at most",
        figures::count(of("lock_times")),
        figures::time(of("lock_p50_ns")),
        figures::time(of("lock_p99_ns")),
        figures::time(of("lock_max_ns"))
    );
    found.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

fn speed(found: &Answer, layout: Layout) -> String {
    let heading = ["", "reads/s", "CPU a read", "x reads/s", "x CPU", "from device a read", "memory"];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for way in &found.ways {
        let spread = |of: fn(&Round) -> f64, show: &dyn Fn(f64) -> String| {
            way.spread(of).map_or("-".to_string(), |spread| shown(spread, show))
        };
        let (throughput, cpu) = if way.name == OURS { (None, None) } else { way.ratios(&found.ways[0]) };
        let ratio = |spread: Option<Spread>| {
            spread.map_or(String::new(), |spread| shown(spread, |of| format!("{of:.2}")))
        };
        rows.push(vec![
            way.name.clone(),
            spread(Round::per_second, &figures::rate),
            spread(Round::cpu, &|nanos| figures::time(nanos.round() as u64)),
            ratio(throughput),
            ratio(cpu),
            way.device_bytes().map_or("-".to_string(), |bytes| figures::bytes(bytes.round() as u64)),
            way.memory_bytes.map_or("-".to_string(), figures::bytes),
        ]);
    }
    layout.table(&rows, 1)
}

fn latencies(found: &Answer, layout: Layout) -> String {
    let heading = ["", "p50", "p90", "p99", "p99.9", "longest"];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for way in &found.ways {
        let Some(latency) = &way.latency else { continue };
        let time =
            |name: &str| latency.get(name).and_then(Value::as_u64).map_or("-".to_string(), figures::time);
        let times = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"].map(time);
        rows.push(std::iter::once(way.name.clone()).chain(times).collect());
    }
    layout.table(&rows, 1)
}

/// Shares of calls by powers of two of their time, a column each.
fn histogram(found: &Answer, layout: Layout) -> Option<String> {
    let all: Vec<Vec<(u64, u64)>> = found.ways.iter().map(ReaderFigures::histogram).collect();
    let mut from: Vec<u64> = all.iter().flatten().map(|(from, _)| *from).collect();
    from.sort_unstable();
    from.dedup();
    let heading =
        std::iter::once("share of calls".to_string()).chain(found.ways.iter().map(|way| way.name.clone()));
    let mut rows = vec![heading.collect::<Vec<_>>()];
    for from in from.iter().copied() {
        let mut row = vec![format!("{} to {}", figures::time(from), figures::time(2 * from))];
        for bins in &all {
            let sum: u64 = bins.iter().map(|(_, calls)| calls).sum();
            let here = bins.iter().find(|(begin, _)| *begin == from).map(|(_, calls)| *calls);
            row.push(here.map_or(String::new(), |calls| figures::percent(figures::share(calls, sum))));
        }
        rows.push(row);
    }
    (!from.is_empty()).then(|| layout.table(&rows, 1))
}
