//! `pageout replay`: the shortest way from a trace to an answer ([`pageout_study::replay`]), as tables, curves and pages.

pub(crate) mod args; // what can be asked
mod alone; // one kernel policy, one trace
mod comparison; // several of either, and textbook policies
mod tenants; // several that share a memory
#[cfg(target_os = "linux")]
mod live; // on real files
mod curve;
mod readahead; // what is read ahead, and figures below a bound for it

use std::fmt::Write;
use std::path::Path;

use pageout_sim::scenario::{Channel, SwapKind};
use pageout_study::Error;
use pageout_study::replay::{self, Answer, Ask, LeftOut, OpenLoop};
use pageout_study::result::requests::{self, Deletes};
use pageout_workload::trace::Requests;
use serde_json::Value;

use crate::commands::trace::read_table;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::{Layout, Terminal, figures};
use crate::report::{Page, Picture, check_name};
use args::{ChannelArg, ReplayArgs, SwapArg};

/// Replays traces under every policy at every size, and prints the table, or the curve.
pub(crate) fn run(args: &ReplayArgs, cx: &Context) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
        if !args.live.is_empty() {
            let message = "--report: not available with --live, which has a table only";
            return Err(Failure::Input(anyhow::anyhow!(message)));
        }
    }
    let ask = asked(args)?;
    cx.user_policies.policies(ask.policies())?;
    let terminal = Terminal::new(&cx.output);
    let answer = match replay::ask(&ask, &terminal) {
        Err(error @ Error::Interrupted(_)) => {
            return cx.output.no_result(error.into(), Value::Null);
        }
        answer => answer?,
    };
    if let Answer::Scenario(text) = &answer {
        return cx.output.print(text);
    }
    let failure = match answer.failure() {
        Some(failure) if answer.is_nothing() => {
            return cx.output.no_result(failure.into(), Value::Null);
        }
        failure => failure.map(Failure::from),
    };
    if let Some(path) = &args.page.report
        && let Some(page) = page(&answer)
    {
        page?.write(path, &cx.output)?;
    }
    match failure {
        Some(failure) if cx.output.is_data() => cx.output.no_result(failure, answer.json()),
        None if cx.output.is_data() => cx.output.print_json(&answer),
        // As in a comparison, the sizes that can be simulated have their figures.
        failure => cx.output.print_text(&text(&answer, args, cx.layout())).and(failure.map_or(Ok(()), Err)),
    }?;
    #[cfg(target_os = "linux")]
    if let Answer::Live(answer) = &answer {
        return live::verdict(answer);
    }
    Ok(())
}

/// The question that the options are.
fn asked(args: &ReplayArgs) -> anyhow::Result<Ask> {
    Ok(Ask {
        traces: args.traces.clone(),
        memory: args.memory.clone(),
        policy: args.policy.clone(),
        channel: match args.channel {
            ChannelArg::File => Channel::File,
            ChannelArg::Mapped => Channel::Mapped,
            ChannelArg::Anonymous => Channel::Anonymous,
        },
        writes: args.writes,
        by: args.by.clone(),
        timed: args.timed,
        untimed: args.untimed,
        warm_up: args.warm_up,
        sample: args.sample,
        exact: args.exact,
        live: args.live.clone(),
        make: args.make,
        region: args.region,
        device: args.device.clone(),
        read_ahead_kb: args.read_ahead_kb,
        swap: match args.swap {
            SwapArg::None => None,
            SwapArg::Disk => Some(SwapKind::Disk),
            SwapArg::Zram => Some(SwapKind::Zram),
        },
        think_time: args.think_time.clone(),
        read: read_table(&args.reading)?,
        seed: args.seed,
        trace_memory: args.trace_memory,
        jobs: args.parallel.jobs,
        print_scenario: args.print_scenario,
    })
}

fn text(answer: &Answer, args: &ReplayArgs, layout: Layout) -> String {
    match answer {
        Answer::Alone(answer) => alone::text(answer, layout),
        Answer::Comparison(answer) => comparison::text(answer, args.page.report.is_some(), layout),
        Answer::Tenants(answer) => tenants::text(answer, layout),
        #[cfg(target_os = "linux")]
        Answer::Live(answer) => live::text(answer, layout),
        Answer::Scenario(text) => text.clone(),
    }
}

/// The page with the curves, if there are any.
fn page(answer: &Answer) -> Option<anyhow::Result<Page>> {
    match answer {
        Answer::Alone(answer) => Some(alone::page::page(answer)),
        Answer::Comparison(answer) => Some(Ok(comparison::page::page(answer))),
        Answer::Tenants(answer) => Some(Ok(tenants::page(answer))),
        _ => None,
    }
}

/// Headings of what a table shows of an open loop.
const OPEN_LOOP: [&str; 5] = ["p50", "p99", "p99.9", "waited", "busy"];

fn open_loop_cells(of: &OpenLoop) -> [String; 5] {
    [
        figures::time(of.p50_ns),
        figures::time(of.p99_ns),
        figures::time(of.p999_ns),
        figures::percent(of.waited_share),
        figures::percent(of.busy_share),
    ]
}

/// Figures that a policy reports, with their sizes: one line per figure.
fn own_figures<'a>(
    policy: &str,
    sizes: impl Iterator<Item = (String, &'a [(String, f64)])> + Clone,
) -> String {
    let mut text = String::new();
    let Some((_, first)) = sizes.clone().find(|(_, own)| !own.is_empty()) else { return text };
    for (name, _) in first {
        let value = |(size, own): (String, &[(String, f64)])| {
            let (_, value) = own.iter().find(|(other, _)| other == name)?;
            Some(format!("{value} ({size})"))
        };
        let values: Vec<String> = sizes.clone().filter_map(value).collect();
        let _ = writeln!(text, "{policy} tells {name}: {}", values.join(", "));
    }
    text
}

/// A trace, and what it touches.
fn touched(trace: &Path, accesses: u64, distinct_pages: u64) -> String {
    format!(
        "{}: {} accesses to {} distinct pages ({})",
        trace.display(),
        figures::count(accesses),
        figures::count(distinct_pages),
        figures::bytes(distinct_pages * 4096)
    )
}

/// Lines about parts of the trace that are not accesses.
fn requests_lines(requests: Option<&Requests>, deletes: Deletes) -> String {
    let says = requests.map(|of| requests::says(of, deletes)).unwrap_or_default();
    says.into_iter().map(|says| says + "\n").collect()
}

/// A line on what percentages are of.
fn percentages(distinct_pages: u64) -> String {
    format!("percentages are of the {} distinct pages\n", figures::count(distinct_pages))
}

/// Lines on when accesses start, or on what a replay without a clock leaves out.
fn loop_line(ask: &Ask, left_out: &[LeftOut]) -> String {
    match ask.timed {
        None if ask.untimed => {
            let says = left_out.iter().map(|of| format!("  {}\n", of.says()));
            format!(
                "untimed: misses and counters of the kernel policy, without a clock; left out:\n{}",
                says.collect::<String>()
            )
        }
        None => "closed loop: an access starts when the one before has ended\n".to_string(),
        Some(speed) => format!(
            "open loop: an access starts at its time in the trace{}; what can't waits for its turn{}\n",
            if speed == 1.0 { String::new() } else { format!(", {speed} times as fast") },
            if ask.by.is_some() { "" } else { ", and p50, p99, p99.9 contain the wait" }
        ),
    }
}

/// Lines on what the machine makes of a trace.
fn machine(ask: &Ask, writes: u64, has_neighbours: bool) -> String {
    let mut text = String::new();
    if writes > 0 && ask.channel != Channel::Anonymous {
        let writes = figures::count(writes);
        let _ = match ask.writes {
            true => writeln!(
                text,
                "{writes} writes dirty whole pages, which are written back; metadata, the journal and fsync are not modelled"
            ),
            false => writeln!(text, "{writes} writes are replayed as reads; --writes lets them dirty pages"),
        };
    }
    text += &readahead::line(ask, has_neighbours);
    text += "memory is for these pages alone: the kernel's own is not charged (kernel.memcg.kmem = false)\n";
    text
}
