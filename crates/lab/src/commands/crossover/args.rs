//! Arguments of `pageout crossover`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_study::scenario::variation::Variation;

use crate::cli::options::{FIVE_SEEDS, RepeatOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  pageout crossover web.toml
  pageout crossover web.toml --set kernel.lru.executable_protection=false --repeat 10
  # all figures, also those that reclaim costs
  pageout crossover web.toml --all
  pageout crossover scenarios/zipf-under-limit.toml --repeat 3 \\
      --over memcg./web.memory.max=10%,25%,50%
  pageout crossover web.toml --json | jq '.cells[] | select(.corner == null)
      | .against_classic.pages_read'
Two lists have no oldest generation. There `oldest_generation` means that refaults are only counted.";

/// Exchange the mechanisms of classic reclaim and MGLRU in all 32 combinations.
///
/// Two lists or generations; accessed bits by the reverse map alone, by page-table walks, with a Bloom filter, with
/// look-around; refaults by distance or by the oldest generation; types balanced by cost or by feedback. Each cell is
/// compared with both natural corners. Below that is what one step at one seam does alone: as the first step away from
/// classic, and as the last step to MGLRU. Last comes the interaction: what the four do together beyond the sum of each
/// alone.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CrossoverArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Print every figure, not only those that tell the story
    #[arg(long)]
    pub(crate) all: bool,

    /// A key and its values, separated by commas: all is done at each of them, and shown is which way each effect points
    /// there; may be given several times, and then at all combinations
    #[arg(long, value_name = "KEY=A,B[,C]")]
    pub(crate) over: Vec<Variation>,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<FIVE_SEEDS>,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
