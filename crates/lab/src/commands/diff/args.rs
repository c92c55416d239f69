//! Arguments of `pageout diff`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples:
  cat /proc/vmstat > before; sleep 60; cat /proc/vmstat > after
  pageout diff before after --interval 60s
  pageout diff before after --by-mtime --json | jq '.means[].says'
  cat /sys/fs/cgroup/web/memory.stat > web.before
  grep -E 'pgscan|pgsteal' /proc/vmstat > before
  pageout diff /proc/pressure/memory
Exit code 2 with a report: counters went back, so the figures are not all there is.";

/// What happened between two snapshots of /proc/vmstat, or of a cgroup's memory.stat, and what that means.
///
/// Counters (what happened) and gauges (what there is) are told apart, counters with rates if the time is known. Sentences say
/// what they mean: how hard reclaim works, who waits for it, how much of what it frees is needed again, swapping, huge pages,
/// compaction, tiers; each with the figures that it rests on. Counters that went back and names that are not known are named.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The earlier snapshot
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,

    /// The later one, of the same file of the same machine. A file of /proc/pressure alone is compared with the boot
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) after: Option<PathBuf>,

    /// The time between the two, such as 60s; a number alone is seconds. Without it there are no rates
    #[arg(long, alias = "seconds", value_name = "DURATION")]
    pub(crate) interval: Option<String>,

    /// The time between the two is that between the files' times of modification, which copies lose
    #[arg(long, conflicts_with = "interval")]
    pub(crate) by_mtime: bool,

    /// The size of the machine's pages: 16KiB or 64KiB on some arm64
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub(crate) page_size: String,

    /// Show what has not changed, too
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
