//! Arguments of `pageout ablate`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_study::scenario::switches::Wanted;
use pageout_study::scenario::variation::Variation;

use crate::cli::options::{FIVE_SEEDS, PageOptions, RepeatOptions, RunOptions, VariantOption};

const EXAMPLES: &str = "\
Examples:
  # all switches of the scenario's profile
  pageout ablate web.toml
  pageout ablate web.toml --set kernel.profile=mglru@6.12
  pageout ablate web.toml --switch harvest.bloom_filter --switch balance
  pageout ablate web.toml --switch lru.generations=2,3,8,16 --repeat 20
  pageout ablate scenarios/zipf-under-limit.toml --switch balance --switch lru.tiers --repeat 3 \\
      --set kernel.profile=mglru@6.12 --over memcg./web.memory.max=10%,25%,50%
  pageout ablate scenarios/shifting-hot-set.toml --variant default --switch pghot --switch numa
  pageout ablate web.toml --json | jq '.variants[]
      | {switch, value, e: .effects.throughput.difference_percent}'
  # what the switches of a seam do
  pageout keys kernel.lru
Runs are compared seed by seed. An effect is marked `~` if the 95 % confidence interval of its mean contains 0: it may be
noise. More seeds (--repeat) narrow it. A value with which the scenario fails is shown as failed, and the exit code is 1.";

/// Turn every mechanism of the reclaim policy alone, and say what that changes.
///
/// A policy is a set of switches in four seams: harvest (how accessed bits are found), lru (which lists, who is next),
/// workingset (what a refault means), balance (anonymous against file memory). The scenario runs as it is, and once more
/// for every other value of every switch, each with several seeds. The table has a line for each value. A mechanism that
/// can be turned off without harm has not earned its place in this scenario. It may in another, or in this one with more
/// memory: --over shows for which values of a key an effect keeps its sign.
///
/// "Looked at" counts every page that reclaim takes into its hands or sorts. pgscan counts fewer: it leaves out active
/// pages, and under generations pages that are only sorted.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AblateArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Turn only this switch, or those of this seam; may be given several times
    ///
    /// harvest.bloom_filter turns it the other way, lru.generations=2,8 tries these values, balance is a whole seam.
    /// `pageout keys kernel.` lists all switches. Those of memory tiers (numa, pghot, and the sysctls that turn them on) are
    /// turned unasked where the machine has tiers.
    #[arg(long = "switch", value_name = "NAME[=VALUE,..]")]
    pub(crate) switches: Vec<Wanted>,

    #[command(flatten)]
    pub(crate) variant: VariantOption,

    /// A key and its values, separated by commas: all is done at each of them, and shown is which way each effect points
    /// there; may be given several times, and then at all combinations
    #[arg(long, value_name = "KEY=A,B[,C]")]
    pub(crate) over: Vec<Variation>,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<FIVE_SEEDS>,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
