//! Arguments of `pageout working-set`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples:
  # dump the generations of a machine
  ssh web1 cat /sys/kernel/debug/lru_gen > web1@$(date +%FT%T).lru_gen
  # several dumps of a machine
  pageout working-set web1@*.lru_gen
  # all dumps of a folder, used within 5 minutes
  pageout working-set fleet --within 5m --json | jq '.machines[].total.in_use'
  # free memory, without damaged dumps
  pageout working-set fleet --memory 16GiB --skip-bad
  # where does a job of 4 GiB fit?
  pageout working-set fleet --job 4GiB --memory 16GiB,db1=64GiB --reserve 5%
  # this machine
  cat /sys/kernel/debug/lru_gen | pageout working-set -";

/// Estimate the memory in use from lru_gen dumps of machines
///
/// A generation is an interval in which the use of its pages was last seen. The memory in use within a window has a lower and an upper
/// bound; both are printed, by type and by cgroup (without its children). The rest is idle. Several dumps of a machine show the trend; the
/// latest one counts. Dumps of Linux 6.1 to 6.16 are accepted (lru_gen and lru_gen_full).
///
/// Not counted: use since the last aging, and use by read(2), which makes no page younger. For a window of 2 minutes, age each group every
/// minute: with a shorter interval the oldest of its four generations is within the window. A dump has no end mark, so rows that are
/// missing at its end are not detected.
///
/// A file's name is its machine: web1@2026-11-22T10:00.lru_gen and web1.lru_gen are of web1, in the order of their names. If the name is
/// lru_gen or a time, the folder names the machine: web1/lru_gen.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct WorkingSetArgs {
    /// Dumps, folders of dumps, or - for standard input
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,

    /// Window before the dump that counts as use
    ///
    /// If it is longer than the four generations, or shorter than the time since the last aging, the output warns
    #[arg(long, value_name = "DURATION", default_value = "2min")]
    pub(crate) within: String,

    /// Rank the machines for a job of this size
    #[arg(long, value_name = "SIZE")]
    pub(crate) job: Option<String>,

    /// Memory: SIZE of all machines, MACHINE=SIZE of one
    ///
    /// The output then has the free memory. --job needs it for all machines
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub(crate) memory: Vec<String>,

    /// Memory per machine that a job cannot use
    ///
    /// For example the kernel's, mlocked and huge pages, a margin
    #[arg(long, value_name = "SIZE|%", requires = "memory")]
    pub(crate) reserve: Option<String>,

    /// List files that are not complete dumps, and continue
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// The machines have no swap
    ///
    /// Their anonymous generations then do not show use, and idle anonymous pages cannot be freed
    #[arg(long)]
    pub(crate) no_swap: bool,

    /// Page size: 16KiB or 64KiB on some arm64
    #[arg(long, value_name = "SIZE", default_value = "4KiB", hide_short_help = true)]
    pub(crate) page_size: String,

    /// Maximum number of generations
    ///
    /// Linux has four. A simulated machine may have 2 to 64 (kernel.lru.generations)
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64), hide_short_help = true)]
    pub(crate) generations: u32,

    /// Print all cgroups and dumps, also with --job
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
