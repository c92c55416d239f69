//! Arguments of `pageout run`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_sim::scenario::TimeSpan;
use pageout_study::result::columns::DEFAULT_COLUMNS;

use crate::cli::options::{PageOptions, RunOptions, VariantOption};
use crate::tracing::Dialect;

const EXAMPLES: &str = "\
Examples:
  pageout run scenarios/zipf-under-limit.toml
  pageout run web.toml --set memcg./web.memory.max=64MiB
  pageout run web.toml --set sysctl.vm.swappiness=10 --set task.reader.object.0.workload.alpha=0.8
  pageout run web.toml --set 'task.*.think_time=1us' --seed 7
  pageout run web.toml --json | jq .memcgs[0].counters.workingset_refault_file
  # the same with pictures, to look at in a browser
  pageout run web.toml --report web.html
  pageout run web.toml --trace web.txt && pageout vmscan-report web.txt
  # for ui.perfetto.dev
  pageout run web.toml --trace web.json
  # only check the file
  pageout run web.toml --check";

/// Run a scenario and summarise what happened.
///
/// A scenario is a TOML file: machine, kernel settings, cgroups, devices, tasks, timed events. `pageout keys` lists
/// everything that it may contain. The files in scenarios/ are examples, each with the question it answers.
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

    /// Only check the scenario and that its traces can be opened, run nothing
    #[arg(long)]
    pub(crate) check: bool,

    /// Write figures over time, a row every 10 ms of simulated time, for plotting: FILE.csv, FILE.jsonl, or `-` for a table on
    /// standard output, the summary then going to standard error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) timeline: Option<PathBuf>,

    /// Simulated time between two rows of --timeline, and two samples of --trace
    #[arg(long, value_name = "TIME", default_value = "10ms", requires = "over_time")]
    pub(crate) timeline_every: TimeSpan,

    /// What the rows of --timeline show, separated by commas
    ///
    /// Names of /proc/vmstat (nr_free_pages, pgscan_kswapd, ...), accesses, pressure.memory.some and its like (microseconds in all);
    /// of a cgroup, /web:memory.current and memory.swap.current (bytes), /web:memory.events.max, /web:pressure.io.full or a live counter in
    /// pages, /web:nr_active_file; of a node, node.0.nr_free_pages; of a task, task.NAME.accesses, misses, major, cpu_ns, cpu_wait_ns, io_wait_ns,
    /// reclaim_ns; of a device, device.NAME.reads, writes, pages_read, pages_written, busy_ns, queue_wait_ns, errors; of a kernel thread,
    /// thread.kswapd0.cpu_ns.
    #[arg(long, value_name = "COLUMNS", default_value = DEFAULT_COLUMNS, hide_default_value = true, requires = "timeline")]
    pub(crate) timeline_columns: String,

    /// Write what the kernel's tracepoints tell, as ftrace does: text that tools for real traces read, among them vmscan-report
    ///
    /// FILE.json is a trace for ui.perfetto.dev instead, with tracks of lists, free memory and pressure every --timeline-every.
    /// FILE.zst (and FILE.json.zst) is compressed; `-` is text on standard output, the summary then going to standard error.
    /// Reclaim calls take the time that the summary counts. Switch it off and nothing is any different but the speed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,

    /// Whose words the text of --trace uses
    #[arg(long, value_enum, default_value_t = Dialect::Modern, requires = "trace")]
    pub(crate) trace_dialect: Dialect,

    /// Write the time of a tracepoint with nine digits behind the point rather than six, as `trace-cmd report -t` does
    ///
    /// What vmscan-report adds up of such a text is what the summary says to the nanosecond.
    #[arg(long, requires = "trace")]
    pub(crate) trace_nanoseconds: bool,

    /// Only these tracepoints, by name or pattern, separated by commas: mm_vmscan_*reclaim_*,mm_vmscan_kswapd_*
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "trace")]
    pub(crate) trace_events: Vec<String>,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
