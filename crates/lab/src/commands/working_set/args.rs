//! Arguments of `pageout working-set`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
A file's name names its machine: web1@2026-11-22T10:00.lru_gen is one of several dumps of web1,
in the order of their names (9:00 is before 10:00); web1.lru_gen is of web1, too. Files of different
names are different machines. Only if the name is the kernel's own or a time, the directory names the
machine: web1/lru_gen, web1/10:00.lru_gen. In a directory all files are read.

Examples:
  ssh web1 cat /sys/kernel/debug/lru_gen > web1@$(date +%FT%T).lru_gen
  pageout working-set web1@*.lru_gen
  pageout working-set fleet/*.lru_gen --within 5m --json | jq '.machines[].total.in_use'
  pageout working-set fleet --memory 16GiB --skip-bad
  pageout working-set fleet --job 4GiB --memory 16GiB,db1=64GiB --reserve 5%
  cat /sys/kernel/debug/lru_gen | pageout working-set -
Generations are only as young as the last aging. For a window of 2 minutes let each group age every
minute; if it ages more often, the oldest of its four generations is within the window, and that one
also holds everything older.";

/// What machines have in use, from their dumps of /sys/kernel/debug/lru_gen, and where a new job would fit.
///
/// A generation says between which two moments the use of its pages was last seen. So the memory in use within a window
/// has a lower and an upper bound. Both are printed, or one figure when they agree, by type and by cgroup (its own pages,
/// without those of its children). Idle is the rest. Several dumps of a machine show where it is heading; the latest one
/// counts.
///
/// Use since the last aging is not counted, nor is use by read(2): it makes no page younger, so such files look idle.
/// Dumps of Linux 6.1 to 6.16 are read, lru_gen or lru_gen_full. One file that is no whole dump is an error for all,
/// unless --skip-bad leaves it out. But a dump has no end mark: whole rows that are missing at its end are not noticed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct WorkingSetArgs {
    /// Dumps of lru_gen, directories of them, or - for standard input
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,

    /// What was used within this time before the dump is in use
    ///
    /// Pages that are not used for 2 minutes cost little when they must be read again. A window much longer than the four
    /// generations reach back, or shorter than the time since the last aging, tells less; the output says so.
    #[arg(long, value_name = "DURATION", default_value = "2min")]
    pub(crate) within: String,

    /// Rank the machines for a job that needs so much memory: first where it pushes out the least that is in use
    #[arg(long, value_name = "SIZE")]
    pub(crate) job: Option<String>,

    /// The memory of every machine, or of one; several separated by commas
    ///
    /// With it the output says what of a machine's memory is free; a --job needs that of all machines.
    #[arg(long, value_name = "SIZE|MACHINE=SIZE", value_delimiter = ',')]
    pub(crate) memory: Vec<String>,

    /// Memory of each machine that a job can't have: the kernel's own, mlocked and huge pages, a margin
    #[arg(long, value_name = "SIZE|PERCENT", requires = "memory")]
    pub(crate) reserve: Option<String>,

    /// Go on without files that are no whole dumps, and name them
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// The machines have no swap. Their anonymous generations say nothing about use, and idle anonymous pages make no room
    #[arg(long)]
    pub(crate) no_swap: bool,

    /// The size of the machines' pages: 16KiB or 64KiB on some arm64
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub(crate) page_size: String,

    /// Generations that a machine keeps at most
    ///
    /// Linux keeps four, so a fifth row of a node is an error: it belongs to another node. A simulated machine may keep 2 to 64,
    /// as its scenario's kernel.lru.generations says.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub(crate) generations: u32,

    /// Print every cgroup and every dump, also with --job
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
