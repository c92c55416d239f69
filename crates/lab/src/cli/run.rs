//! `pageout run`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_sim::scenario::TimeSpan;

use super::options::{PageOptions, RunOptions};
use crate::result::timeline::DEFAULT_COLUMNS;

pub(super) const EXAMPLES: &str = "\
Examples:
  pageout run scenarios/zipf-under-limit.toml
  pageout run web.toml --set memcg./web.memory.max=64MiB
  pageout run web.toml --set sysctl.vm.swappiness=10 --set task.reader.object.0.workload.alpha=0.8
  pageout run web.toml --set 'task.*.think_time=1us' --seed 7
  pageout run web.toml --json | jq .memcgs[0].counters.workingset_refault_file
  pageout run web.toml --report web.html   the same with pictures, to look at in a browser
  pageout run web.toml --check             only check the file";

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The scenario file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    /// Run this variant of the scenario, one of its `[[variant]]`
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    /// Only check the scenario and that its traces can be opened, run nothing
    #[arg(long)]
    pub(crate) check: bool,

    /// Write figures over time, a row every 10 ms of simulated time, for plotting: FILE.csv, FILE.jsonl, or `-` for a table on
    /// standard output, the summary then going to standard error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) timeline: Option<PathBuf>,

    /// Simulated time between two rows of --timeline
    #[arg(long, value_name = "TIME", default_value = "10ms", requires = "timeline")]
    pub(crate) timeline_every: TimeSpan,

    /// What the rows of --timeline show, separated by commas
    ///
    /// Names of /proc/vmstat (nr_free_pages, pgscan_kswapd, ...), accesses, pressure.memory.some and its like (microseconds in all);
    /// of a cgroup, /web:memory.current (bytes), /web:pressure.io.full or a live counter in pages, /web:nr_active_file; of a task,
    /// task.NAME.accesses, misses, cpu_ns, cpu_wait_ns, io_wait_ns, reclaim_ns; of a kernel thread, thread.kswapd0.cpu_ns.
    #[arg(long, value_name = "COLUMNS", default_value = DEFAULT_COLUMNS, hide_default_value = true, requires = "timeline")]
    pub(crate) timeline_columns: String,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
