//! Arguments of `pageout compare`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_study::scenario::variation::Variation;

use crate::cli::options::{ONE_SEED, PageOptions, RepeatOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  # two policies
  pageout compare web.toml --vary kernel.profile=classic@6.12,lru
  # three limits of a cgroup
  pageout compare web.toml --vary memcg./web.memory.max=64MiB,128MiB,256MiB
  # all combinations of two keys
  pageout compare web.toml --vary sysctl.vm.swappiness=0,60,200 \\
      --vary swap.0.kind=disk,zram
  # each policy next to classic@6.12 at the same limit
  pageout compare web.toml --vary kernel.profile=classic@6.12,lru \\
      --vary memcg./web.memory.max=64MiB,1GiB --within memcg./web.memory.max
  # five seeds, so that noise is marked
  pageout compare web.toml --repeat 5 \\
      --vary kernel.memcg.stat_flush=periodic,live
  # the scenario's variants and expectations
  pageout compare scenarios/regressions/m12-idle-memory-out-of-reach.toml";

/// Run variants of a scenario and compare them
///
/// Each --vary gives a key several values. Each combination is a column; the first column is the base. The others are compared with it in
/// percent, or in percentage points (pp) if figures are percentages. Without --vary the scenario's variants (`[[variant]]`) run, and its
/// expectations (`[[expect]]`) are checked.
///
/// Copies of a task count as one: accesses, misses and throughput are sums; runtime, direct reclaim time and waits are means.
///
/// With --repeat N a value is mean ± standard deviation over N seeds. Runs are compared seed by seed. A difference is marked `~` if the 95 %
/// confidence interval of its mean contains 0, because it may be noise. One seed has no marks.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Key and values; repeat it for all combinations
    #[arg(long, value_name = "KEY=A,B")]
    pub(crate) vary: Vec<Variation>,

    /// Compare each variant with the first one that has its value of KEY
    #[arg(long, value_name = "KEY", requires = "vary")]
    pub(crate) within: Option<String>,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<ONE_SEED>,

    /// Print all counters
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
