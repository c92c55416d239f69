//! `pageout vmscan-report`: reclaim on a real kernel, the stalls of tasks, and the results ([`pageout_study::vmscan_report`]), as tables, JSON, a
//! page, and the text of the kernel's script.

pub(crate) mod args; // what can be asked
mod text; // tables to read
mod page; // pictures
mod script; // the text of the kernel's own script
mod live; // from the tracepoints of a run to sums

use anyhow::anyhow;
use pageout_study::vmscan_report::{self, Ask, Reading};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::{Layout, Terminal, figures, output};
use crate::report::{Picture, check_name};
use args::{ReportLayout, VmscanReportArgs};
pub(super) use live::{Heard, Listener};

/// The maximum number of calls in the script's list of latencies.
const ITEMS_MAX: usize = 1_000_000;

/// All that is to be printed.
struct Report<'a> {
    readings: &'a [Reading],
    ignore_pid: bool,
    all: bool,
    layout: Layout,
}

/// Reads the traces and prints what they say about reclaim.
pub(crate) fn run(args: &VmscanReportArgs, cx: &Context) -> Outcome {
    let is_script = args.layout == ReportLayout::Script;
    if is_script && (args.traces.len() > 1 || cx.output.is_data()) {
        return Err(Failure::Input(anyhow!("--layout script: expected one trace, and no --json")));
    }
    if let Some(path) = &args.page.report {
        check_name(path, Picture::None)?;
    }
    let ask = Ask {
        traces: args.traces.clone(),
        ignore_pid: args.ignore_pid,
        cpu_time: args.cpu_time.clone(),
        elapsed: args.elapsed.clone(),
        items_max: if is_script { ITEMS_MAX } else { 0 },
    };
    let answer = vmscan_report::ask(&ask, &Terminal::new(&cx.output))?;
    let report = Report {
        readings: &answer.readings,
        ignore_pid: args.ignore_pid,
        all: args.all,
        layout: cx.layout(),
    };
    match args.layout {
        _ if cx.output.is_data() => {
            let json = serde_json::to_value(&answer).expect("results hold nothing that JSON can't");
            cx.output.print_json_or_rows(&json, || answer.rows())?;
        }
        ReportLayout::Tables => cx.output.print_text(&report.to_text())?,
        ReportLayout::Script => cx.output.print(&report.to_script())?,
    }
    if let Some(path) = &args.page.report {
        report.to_page().write(path, &cx.output)?;
    }
    for reading in &answer.readings {
        if reading.sums.items_left_out > 0 {
            cx.output.remark(&format!(
                "{}: the list of latencies has the first {} calls; the sums have {} more",
                reading.name,
                figures::count(ITEMS_MAX as u64),
                figures::count(reading.sums.items_left_out)
            ));
        }
    }
    let faults = answer
        .readings
        .iter()
        .flat_map(|reading| reading.faults.iter().map(|fault| format!("{}: {fault}", reading.name)));
    let faults: Vec<String> = faults.collect();
    if faults.is_empty() {
        return Ok(());
    }
    let told = faults.join("\n  ");
    if args.skip_bad {
        cx.output.remark(&format!("not counted:\n  {told}"));
        return Ok(());
    }
    Err(Failure::Input(anyhow!(
        "the report is not complete: lines were skipped:\n  {told}\nhelp: accept them with --skip-bad"
    )))
}

/// Reads bytes as a trace and makes every form of the report; for fuzzers.
#[doc(hidden)]
pub fn drain(bytes: &[u8]) {
    let answer = vmscan_report::read_bytes(bytes);
    let report =
        Report { readings: &answer.readings, ignore_pid: false, all: true, layout: Layout::default() };
    for text in [report.to_text(), output::to_json(&answer), report.to_script()] {
        assert!(!text.contains('\u{1b}'), "no terminal obeys what a trace says");
    }
}
