//! Arguments of `pageout vmscan-report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::cli::options::{OutputOptions, PageOptions};

const EXAMPLES: &str = "\
Examples:
  # record a trace, as root
  cd /sys/kernel/tracing; echo 1 > events/vmscan/enable; \\
      cat trace_pipe > /var/tmp/trace.txt
  # one trace, with a report
  pageout vmscan-report ground-truth/ftrace/ft-global.mglru.t.txt.zst \\
      --report reclaim.html
  # two traces, with their CPU time
  pageout vmscan-report before.txt after.txt.zst --cpu-time 2818.5,2821.9
  # the longest call
  pageout vmscan-report trace.txt --json | jq '.traces[0].longest_calls[0]'
  # from trace-cmd
  trace-cmd report | pageout vmscan-report -";

/// Report who reclaimed in a kernel trace, how long and why
///
/// Reads vmscan events as text of /sys/kernel/tracing/trace, `trace-cmd report` or `perf script`, of Linux 2.6.35 (2010) and later. Files may
/// be compressed with zstd. A trace.dat needs trace-cmd.
///
/// The report has, per task and for kswapd: calls of direct reclaim and at cgroup limits, their time, pages scanned, reclaimed and written.
/// With filemap events it has pages that were needed again, with sched_switch the time off the CPU in the longest calls. Several traces are
/// compared.
///
/// The time of a call includes waits for the CPU. With --cpu-time, a percentage is the share of direct reclaim in user + system + stalled
/// time; for kswapd it is the share of elapsed time. The trace is read once, in constant memory. Exit code 2 with a report: lines were
/// skipped, so the figures are not complete.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct VmscanReportArgs {
    /// Trace files, or - for standard input
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,

    /// Print one row for all tasks of the same name
    #[arg(long)]
    pub(crate) ignore_pid: bool,

    /// User + system time in seconds, one value per trace
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) cpu_time: Vec<f64>,

    /// Elapsed time in seconds, one value per trace
    ///
    /// The default is the time from the first event to the last
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) elapsed: Vec<f64>,

    /// Text layout: tables, or the kernel's trace-vmscan-postprocess
    ///
    /// `script` is for programs that read this text; it has no cgroups
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ReportLayout::Tables, hide_short_help = true)]
    pub(crate) layout: ReportLayout,

    /// Accept lines that cannot be read; they are counted by reason
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// Print all tasks, and the 200 longest calls
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
    /// Tables
    Tables,
    /// The text of the kernel's trace-vmscan-postprocess, without cgroups
    Script,
}
