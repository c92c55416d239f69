//! Arguments of `pageout diff`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples:
  # take two snapshots; excerpts (grep pgscan) are accepted
  cat /proc/vmstat > before; sleep 60; cat /proc/vmstat > after
  # compare them, with rates
  pageout diff before after --interval 60s
  # the sentences only
  pageout diff before after --by-mtime --json | jq '.means[].says'
  # take a snapshot of a cgroup
  cat /sys/fs/cgroup/web/memory.stat > web.before
  # pressure since boot
  pageout diff /proc/pressure/memory";

/// Compare two snapshots of /proc/vmstat or memory.stat
///
/// Prints the change of each counter, with a rate if the time is known, and the values of gauges. Sentences explain what the counters mean:
/// how hard reclaim works, which tasks wait, how much is needed again, swap, huge pages, compaction, tiers. Each sentence has its figures.
/// Counters that decreased and unknown names are listed. Exit code 2 with a report: counters decreased, so the figures are not complete.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The earlier snapshot
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,

    /// The later one; a /proc/pressure file needs none
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) after: Option<PathBuf>,

    /// Time between the snapshots, for rates (number: seconds)
    #[arg(long, alias = "seconds", value_name = "DURATION")]
    pub(crate) interval: Option<String>,

    /// Take the interval from the files' modification times
    #[arg(long, conflicts_with = "interval")]
    pub(crate) by_mtime: bool,

    /// Page size: 16KiB or 64KiB on some arm64
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub(crate) page_size: String,

    /// Print counters that did not change, too
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
