//! Arguments of `pageout ablate`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_study::scenario::switches::Wanted;
use pageout_study::scenario::variation::Variation;

use crate::cli::options::{FIVE_SEEDS, PageOptions, RepeatOptions, RunOptions, VariantOption};

const EXAMPLES: &str = "\
Examples:
  # all switches of MGLRU
  pageout ablate web.toml --set kernel.profile=mglru@6.12
  # one switch, and all switches of a group
  pageout ablate web.toml --switch harvest.bloom_filter --switch balance
  # several values of a switch
  pageout ablate web.toml --switch lru.generations=2,3,8,16 --repeat 20
  # does the effect keep its sign at other limits?
  pageout ablate scenarios/zipf-under-limit.toml --switch lru.tiers --repeat 3 \\
      --set kernel.profile=mglru@6.12 --over memcg./web.memory.max=10%,25%,50%
  # the switches of memory tiers, in a variant of the scenario
  pageout ablate scenarios/shifting-hot-set.toml --variant default \\
      --switch pghot --switch numa
  # one effect of each switch
  pageout ablate web.toml --json | jq '.variants[]
      | {switch, value, e: .effects.throughput.difference_percent}'";

/// Measure the effect of each mechanism of the reclaim policy
///
/// A policy is a set of switches. The groups are harvest (accessed bits), lru (lists and order of eviction), workingset (refaults) and balance
/// (anonymous vs file memory). The scenario runs unchanged, and once for each other value of each switch,
/// with several seeds. The table has one row per value. A mechanism without an effect here may have one with more memory: see --over.
///
/// An effect is marked `~` if the 95 % confidence interval of its mean contains 0, because it may be noise. More seeds narrow the interval.
/// If the scenario fails with a value, the row shows it, and the exit code is 1. Scanned pages include active pages, and pages that MGLRU
/// only sorts; pgscan excludes both.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AblateArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Change only this switch or group; repeatable
    ///
    /// NAME=A,B selects values. `pageout keys kernel.` lists the switches. Those of memory tiers (numa, pghot) are included by default if
    /// the machine has tiers
    #[arg(long = "switch", value_name = "NAME[=A,B]")]
    pub(crate) switches: Vec<Wanted>,

    #[command(flatten)]
    pub(crate) variant: VariantOption,

    /// Repeat the study at each value of a key
    ///
    /// The table shows the direction of each effect. Repeat the option for all combinations
    #[arg(long, value_name = "KEY=A,B")]
    pub(crate) over: Vec<Variation>,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<FIVE_SEEDS>,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
