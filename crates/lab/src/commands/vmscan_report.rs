//! `pageout vmscan-report`: who reclaimed on a real kernel, how long tasks were stalled by it, and what it came to.
//!
//! ```text
//!   file, .zst, stdin, trace.dat ──input──▶ text ──kerneltext::ftrace──▶ events by time ──kerneltext::vmscan──▶ sums ──report──▶ tables, JSON,
//!                                                                                                       the kernel script's own text
//! ```
//! The questions are those of the series "Avoid overflowing of stack during page reclaim" of 2010, which brought these events and the
//! script that reads them: what direct reclaim and kswapd scan, free and write, and how long tasks wait for it. Here calls at a
//! cgroup's limit count as a third kind, which that script does not know.
//!
//! A trace of any length is read once, in constant memory. Lines that cannot be read are counted by reason and never end the report; but
//! then it is not complete, which the exit code says.

mod input; // from a file to bytes
mod report; // from sums to tables and JSON
mod live; // from the tracepoints of a run to sums

use std::path::Path;

use anyhow::{anyhow, bail, ensure};
use pageout_kerneltext::ftrace::{Reader, Totals};
use pageout_kerneltext::vmscan::{Options, Sums, Tally};
use serde_json::{Value, json};

use crate::cli::{ReportLayout, VmscanReportArgs};
use crate::failure::{Failure, Outcome};
use crate::print::{figures, output, progress};
use crate::report::{Picture, check_name};
use input::Input;
pub(super) use live::{Heard, Listener};
use report::{Report, Times};

/// Single calls that the script's list of latencies has room for.
const ITEMS_MAX: usize = 1_000_000;

/// What a trace shows of work whose begin it doesn't: `memory.reclaim`, madvise, a call that began before it.
const OUTSIDE: &str = "outside of any call";

/// What one trace says.
struct Reading {
    name: String,
    totals: Totals,
    sums: Sums,
    times: Times,
    /// Why the figures are not all there is.
    faults: Vec<String>,
    /// What work outside of any call is, as far as is known.
    outside: &'static str,
    /// Whether it is a real machine's, on which other events can be recorded.
    is_recorded: bool,
}

/// Reads the traces and prints what they say about reclaim.
pub(crate) fn run(args: &VmscanReportArgs) -> Outcome {
    let is_script = args.layout == ReportLayout::Script;
    if is_script && (args.traces.len() > 1 || args.output.is_data()) {
        return Err(Failure::Input(anyhow!(
            "--layout script is the text of one trace: no second trace, and no --json"
        )));
    }
    let times = times(args)?;
    if let Some(path) = &args.page.report {
        check_name(path, Picture::None)?;
    }
    let options = Options {
        ignore_pid: args.ignore_pid,
        items_max: if is_script { ITEMS_MAX } else { 0 },
        has_all_events: false,
    };
    let mut readings = Vec::new();
    for (path, times) in args.traces.iter().zip(times) {
        readings.push(read(path, options, times, args)?);
    }
    let report = Report { readings: &readings, ignore_pid: args.ignore_pid, all: args.all };
    match args.layout {
        _ if args.output.is_data() => {
            let json = report.to_json();
            output::print_json_or_rows(&json, || rows(&json))?;
        }
        ReportLayout::Tables => output::print_text(&report.to_text())?,
        ReportLayout::Script => output::print(&report.to_script())?,
    }
    if let Some(path) = &args.page.report {
        report.to_page().write(path)?;
    }
    for reading in &readings {
        if reading.sums.items_left_out > 0 {
            output::remark(&format!(
                "{}: the list of latencies has the first {}; {} more are in the sums alone",
                reading.name,
                figures::count(ITEMS_MAX as u64),
                figures::count(reading.sums.items_left_out)
            ));
        }
    }
    let faults = readings
        .iter()
        .flat_map(|reading| reading.faults.iter().map(|fault| format!("{}: {fault}", reading.name)));
    let faults: Vec<String> = faults.collect();
    if faults.is_empty() {
        return Ok(());
    }
    let told = faults.join("\n  ");
    if args.skip_bad {
        output::remark(&format!("not counted:\n  {told}"));
        return Ok(());
    }
    Err(Failure::Input(anyhow!(
        "the report is of what could be read, and that is not all (--skip-bad makes this no error):\n  {told}"
    )))
}

/// How long the test took and what CPU time it used, for each trace.
fn times(args: &VmscanReportArgs) -> anyhow::Result<Vec<Times>> {
    let list = |option: &str, values: &[f64]| -> anyhow::Result<Vec<Option<f64>>> {
        let traces = args.traces.len();
        ensure!(
            values.is_empty() || values.len() == traces,
            "{option} has {} values for {traces} traces; write one for each, separated by commas",
            values.len()
        );
        if let Some(bad) = values.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
            bail!("{option} {bad}: write seconds, above 0");
        }
        Ok((0..traces).map(|at| values.get(at).copied()).collect())
    };
    let (elapsed, cpu) = (list("--elapsed", &args.elapsed)?, list("--cpu-time", &args.cpu_time)?);
    Ok(elapsed.into_iter().zip(cpu).map(|(elapsed_s, cpu_s)| Times { elapsed_s, cpu_s }).collect())
}

fn read(path: &Path, options: Options, times: Times, args: &VmscanReportArgs) -> Result<Reading, Failure> {
    let length = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
    let bar = progress::bar(&args.output, length, &progress::name_of(path));
    let mut input = Input::open(path, |file| Box::new(bar.wrap_read(file)))?;
    let mut tally = Tally::new(options);
    let mut reader = Reader::new(&mut input.text);
    for record in reader.by_ref() {
        tally.add(record);
    }
    let (totals, fault) = reader.finish();
    bar.finish_and_clear();
    let name = input.name.clone();
    let mut faults = faults(&totals);
    if let Some(fault) = fault {
        faults.push(format!("it breaks off after {}: {fault}", figures::bytes(totals.bytes)));
    }
    let closed = if totals.gave_up { Ok(()) } else { input.close(totals.bytes) };
    if let Err(error) = closed {
        faults.push(format!("{error:#}"));
    }
    if !totals.is_trace() {
        return Err(Failure::Input(no_trace(&name, &totals, &faults)));
    }
    Ok(Reading {
        name,
        sums: tally.finish(&totals),
        totals,
        times,
        faults,
        outside: OUTSIDE,
        is_recorded: true,
    })
}

/// Reads bytes as a trace and makes every form of the report; for fuzzers.
#[doc(hidden)]
pub fn drain(bytes: &[u8]) {
    let mut tally =
        Tally::new(Options { ignore_pid: bytes.len() % 2 == 1, items_max: 100, has_all_events: false });
    let mut reader = Reader::new(bytes);
    for record in reader.by_ref() {
        tally.add(record);
    }
    let (totals, _) = reader.finish();
    assert!(totals.events + totals.others + totals.skipped.total() <= totals.lines);
    assert!(totals.late <= totals.displaced && totals.bytes <= bytes.len() as u64);
    let sums = tally.finish(&totals);
    let faults = faults(&totals);
    let times = Times::default();
    let name = "fuzzed".to_string();
    let readings = [Reading { name, totals, sums, times, faults, outside: OUTSIDE, is_recorded: true }];
    let report = Report { readings: &readings, ignore_pid: false, all: true };
    for text in [report.to_text(), output::to_json(&report.to_json()), report.to_script()] {
        assert!(!text.contains('\u{1b}'), "no terminal obeys what a trace says");
    }
}

/// What of a trace was not counted, and why.
fn faults(totals: &Totals) -> Vec<String> {
    let lines = |count: u64| if count == 1 { "line".to_string() } else { "lines".to_string() };
    let skipped = totals.skipped.reasons().map(|(reason, count, first)| {
        format!(
            "{} {} skipped, {reason} (first: line {})",
            figures::count(count),
            lines(count),
            figures::count(first)
        )
    });
    let mut faults: Vec<String> = skipped.collect();
    if totals.late > 0 {
        faults.push(format!(
            "{} events far out of order: they are counted, but calls that begin or end with them may be missing. Was it put together \
             from the traces of single CPUs? /sys/kernel/tracing/trace and `trace-cmd report` have them in order",
            figures::count(totals.late)
        ));
    }
    if totals.gave_up {
        faults.push(format!(
            "given up after {}: nothing in the last 64 MiB was a line of a trace",
            figures::bytes(totals.bytes)
        ));
    }
    faults
}

/// Why a file is none.
fn no_trace(name: &str, totals: &Totals, faults: &[String]) -> anyhow::Error {
    if totals.bytes == 0 && faults.is_empty() {
        return anyhow!(
            "{name}: there is nothing in it; expected: the text of /sys/kernel/tracing/trace, of `trace-cmd report` or of `perf script`"
        );
    }
    let mut text = format!(
        "{name}: this is no text of a trace; expected: lines such as\n  \
         dd-160 [001] ..... 207.727380: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL\n  \
         dd 160 [001] 207.727380: vmscan:mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL"
    );
    for fault in faults {
        text += &format!("\n  {fault}");
    }
    text += "\n  text of what pages were accessed is read by `pageout import`, and traces of accesses by `pageout replay`";
    anyhow!(text)
}

/// A row a process, and a row a call that took long, of each trace.
fn rows(json: &Value) -> Vec<Value> {
    let elements = |of: &Value, list: &str| of[list].as_array().cloned().unwrap_or_default();
    let of_trace = |trace: &Value| {
        let kinds = [("process", "processes"), ("call", "longest_calls")];
        let rows = kinds.into_iter().flat_map(|(kind, list)| {
            let head = json!({ "trace": trace["trace"], "kind": kind });
            elements(trace, list).into_iter().map(move |element| output::merged(head.clone(), element))
        });
        rows.collect::<Vec<Value>>()
    };
    elements(json, "traces").iter().flat_map(of_trace).collect()
}
