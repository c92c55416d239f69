//! Arguments of `pageout compare`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_study::scenario::variation::Variation;

use crate::cli::options::{ONE_SEED, PageOptions, RepeatOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  pageout compare web.toml --vary kernel.profile=classic@6.12,lru
  pageout compare web.toml --vary memcg./web.memory.max=64MiB,128MiB,256MiB
  pageout compare web.toml --vary sysctl.vm.swappiness=0,60,200 --vary swap.0.kind=disk,zram
  pageout compare web.toml --vary kernel.memcg.stat_flush=periodic,live --repeat 5
  pageout compare scenarios/regressions/m12-idle-memory-out-of-reach.toml
With --repeat N every variant runs with N seeds; a value is then mean ± standard deviation. Runs are compared seed by seed:
a difference is marked `~` if the 95 % confidence interval of its mean contains 0, so that it may be noise. One seed has no marks.";

/// Run variants of a scenario side by side.
///
/// Every --vary gives one key several values. Each combination is a column, and the first is the base. The others are
/// compared with it in percent, as kernel cover letters do, or in percentage points (pp) where figures are percentages.
/// Variants run in parallel; results do not depend on that.
///
/// Copies of a task count as one. Their accesses, misses and throughput are added up; runtime, time in direct reclaim and
/// waiting are means.
///
/// Without --vary the scenario's own variants (`[[variant]]`) are run, and its expectations (`[[expect]]`) are checked.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// A key and its values, separated by commas; may be given several times, and then all combinations are run. Without
    /// it the scenario's own variants are
    #[arg(long, value_name = "KEY=A,B[,C]")]
    pub(crate) vary: Vec<Variation>,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<ONE_SEED>,

    /// Print every counter, not only those that tell a story
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
