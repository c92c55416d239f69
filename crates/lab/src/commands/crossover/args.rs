//! Arguments of `pageout crossover`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_study::scenario::variation::Variation;

use crate::cli::options::{FIVE_SEEDS, RepeatOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  # all 32 combinations
  pageout crossover web.toml
  # with another rule, and ten seeds
  pageout crossover web.toml --set kernel.lru.executable_protection=false \\
      --repeat 10
  # all figures, including the cost of reclaim
  pageout crossover web.toml --all
  # at three limits of the cgroup
  pageout crossover scenarios/zipf-under-limit.toml --repeat 3 \\
      --over memcg./web.memory.max=10%,25%,50%
  # pages read by each mixed combination
  pageout crossover web.toml --json | jq '.cells[] | select(.corner == null)
      | .against_classic.pages_read'";

/// Combine the mechanisms of classic LRU and MGLRU in all 32 ways
///
/// The mechanisms are: two lists or generations; accessed bits by reverse map, page-table walks, Bloom filter, or look-around; refaults by
/// distance or by oldest generation; types balanced by cost or by feedback.
///
/// Each combination is compared with classic LRU and with MGLRU. A second table shows each mechanism alone: as the first step away from
/// classic, and as the last step to MGLRU. The last one shows the interaction: the effect of all four minus the sum of the single effects.
///
/// Classic LRU has no oldest generation. There `oldest_generation` means that refaults are only counted.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CrossoverArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Print all figures
    #[arg(long)]
    pub(crate) all: bool,

    /// Repeat the study at each value of a key
    ///
    /// The table shows the direction of each effect. Repeat the option for all combinations
    #[arg(long, value_name = "KEY=A,B")]
    pub(crate) over: Vec<Variation>,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<FIVE_SEEDS>,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
