//! Arguments of `pageout run`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_sim::scenario::TimeSpan;
use pageout_study::result::columns::DEFAULT_COLUMNS;

use crate::cli::options::{PageOptions, RunOptions, VariantOption};
use crate::tracing::Dialect;

/// The heading of the options that record a run over time.
const OVER_TIME: &str = "Figures over time and tracepoints";

const EXAMPLES: &str = "\
Examples:
  # change the limit of a cgroup, and a sysctl
  pageout run web.toml --set memcg./web.memory.max=64MiB \\
      --set sysctl.vm.swappiness=10
  # change all tasks, with another seed
  pageout run web.toml --set 'task.*.think_time=1us' --seed 7
  # print one counter
  pageout run web.toml --json | jq .memcgs[0].counters.pgscan
  # write a report with charts
  pageout run web.toml --report web.html
  # analyse the tracepoints of the run; web.json is for ui.perfetto.dev
  pageout run web.toml --trace web.txt && pageout vmscan-report web.txt
  # check the file only
  pageout run web.toml --check";

/// Run a scenario and print a summary
///
/// A scenario is a TOML file: machine, kernel settings, cgroups, devices, tasks, timed events. `pageout keys` lists all keys. The files in
/// scenarios/ are examples, each with its question.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("over_time").args(["timeline", "trace", "report"]).multiple(true))]
pub(crate) struct RunArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) variant: VariantOption,

    /// Check the scenario and its traces, run nothing
    #[arg(long)]
    pub(crate) check: bool,

    /// Write figures over time to FILE.csv or FILE.jsonl
    ///
    /// `-` prints a table on standard output; the summary goes to standard error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OVER_TIME)]
    pub(crate) timeline: Option<PathBuf>,

    /// Simulated time between two rows of --timeline, and between two samples of --trace FILE.json
    #[arg(long, value_name = "TIME", default_value = "10ms", requires = "over_time", help_heading = OVER_TIME, hide_short_help = true)]
    pub(crate) timeline_every: TimeSpan,

    /// Columns of --timeline, separated by commas
    ///
    /// /proc/vmstat names, accesses, pressure.memory.some (total microseconds). Cgroup: /web:memory.current, memory.swap.current (bytes),
    /// memory.events.max, pressure.io.full, nr_active_file (pages). Node: node.0.nr_free_pages. Task: task.NAME.accesses, misses,
    /// major, cpu_ns, cpu_wait_ns, io_wait_ns, reclaim_ns. Device: device.NAME.reads, writes, pages_read, pages_written, busy_ns,
    /// queue_wait_ns, errors. Kernel thread: thread.kswapd0.cpu_ns
    #[arg(long, value_name = "A,B", default_value = DEFAULT_COLUMNS, hide_default_value = true, requires = "timeline", help_heading = OVER_TIME, hide_short_help = true)]
    pub(crate) timeline_columns: String,

    /// Write tracepoints as ftrace text, or FILE.json for Perfetto
    ///
    /// Tools for real traces read the text. FILE.json (for ui.perfetto.dev) also has tracks of lists, free memory and pressure. FILE.zst is
    /// compressed. `-` is standard output; the summary goes to standard error. Tracing changes no result
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OVER_TIME)]
    pub(crate) trace: Option<PathBuf>,

    /// Text format of --trace: that of Linux 2.6.35 (2010), or of 6.12
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Dialect::Modern, requires = "trace", help_heading = OVER_TIME, hide_short_help = true)]
    pub(crate) trace_dialect: Dialect,

    /// Print nanoseconds in --trace, as `trace-cmd report -t`
    #[arg(long, requires = "trace", help_heading = OVER_TIME, hide_short_help = true)]
    pub(crate) trace_nanoseconds: bool,

    /// Tracepoints of --trace, by name or pattern: mm_vmscan_*reclaim_*,mm_vmscan_kswapd_*
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "trace", help_heading = OVER_TIME, hide_short_help = true)]
    pub(crate) trace_events: Vec<String>,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
