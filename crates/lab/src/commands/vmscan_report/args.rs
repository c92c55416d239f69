//! Arguments of `pageout vmscan-report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::cli::options::{OutputOptions, PageOptions};

const EXAMPLES: &str = "\
Examples:
  pageout vmscan-report ground-truth/ftrace/ft-global.classic.t.txt.zst
  pageout vmscan-report ground-truth/ftrace/ft-global.mglru.t.txt.zst --report reclaim.html
  pageout vmscan-report before.txt after.txt.zst --cpu-time 2818.5,2821.9
  pageout vmscan-report trace.txt --json | jq '.traces[0].longest_calls[0]'
  trace-cmd report | pageout vmscan-report -
Record a trace, as root:
  cd /sys/kernel/tracing; echo 1 > events/vmscan/enable; cat trace_pipe > /var/tmp/trace.txt
A call's time is from its begin to its end, so it contains waiting for the CPU. Percentages of the seed of 2010:
direct reclaim's share of user + system + stalled time (say --cpu-time), and kswapd's of the elapsed time.
Exit code 2 with a report: lines were skipped, so the figures are not all there is.";

/// Who reclaimed on a real kernel, how long tasks were stalled by it, and why: from the text of a trace.
///
/// Reads events of vmscan as /sys/kernel/tracing/trace, `trace-cmd report` and `perf script` print them, from the kernel of 2010
/// to today's: a file, one compressed with zstd, standard input (-), or a trace.dat, if trace-cmd is installed. Of each task it tells calls
/// of direct reclaim and at a cgroup's limit, how long they took, pages scanned, reclaimed and written; the same of kswapd;
/// whether what was freed was needed again, if events of filemap are there; the longest calls with what took the time, off the CPU
/// surely if sched_switch is there; and the rows of the kernel's own trace-vmscan-postprocess. Several traces
/// stand side by side.
///
/// The trace is read once, in constant memory. Lines that cannot be read are counted by reason.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct VmscanReportArgs {
    /// Texts of traces, or - for standard input
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,

    /// Tasks of one name are one row
    #[arg(long)]
    pub(crate) ignore_pid: bool,

    /// User and system CPU time of what was traced, in seconds (`/usr/bin/time` tells it); one for each trace
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    pub(crate) cpu_time: Vec<f64>,

    /// How long what was traced took, in seconds, if not from the first event to the last; one for each trace
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    pub(crate) elapsed: Vec<f64>,

    /// How the text is laid out
    #[arg(long, value_enum, default_value_t = ReportLayout::Tables)]
    pub(crate) layout: ReportLayout,

    /// Lines that cannot be read are no error; they are counted by reason all the same
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// Show every task and every one of the 200 longest calls
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// Layouts of `vmscan-report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportLayout {
    /// Tables to read
    Tables,
    /// That of the kernel's trace-vmscan-postprocess, for programs that read it; it leaves cgroups out
    Script,
}
