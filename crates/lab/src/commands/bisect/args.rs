//! Arguments of `pageout bisect`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_engine::{Lists, Version};

use crate::cli::options::{
    FIVE_SEEDS, PageOptions, RepeatOptions, RunOptions, VariantOption, parse_lists, parse_version,
};

const EXAMPLES: &str = "\
Examples:
  # which rule causes the OOM kills of 6.12?
  pageout bisect scenarios/regressions/premature-oom.toml --from 6.1 --to 6.12
  # MGLRU in both versions, judged by file refaults
  pageout bisect web.toml --from 6.12 --to 6.18 --lists mglru \\
      --judge-by refaults_file
  # between two stable releases
  pageout bisect web.toml --from 6.12.0 --to 6.12.117 --json | jq '.verdict'
  # the rules of a version, with their sources
  pageout keys kernel --at 6.8";

/// Find the rule that changed a result between two versions
///
/// The scenario runs in both versions. Then each rule that differs is tested twice, with several seeds: alone in the older version, and
/// reverted in the newer one. A rule is the cause if it brings the change alone, and if the change is gone without it. Both are shares of
/// the whole change. If no single rule is the cause, a minimal set is searched (delta debugging). Unknown facts about a version are printed
/// with the rule. Runs are compared seed by seed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BisectArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Older version, for example 6.12 (newest of its series)
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) from: Version,

    /// Newer version
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) to: Version,

    /// LRU of both versions: `classic` or `mglru`
    ///
    /// The default is that of the scenario's profile
    #[arg(long, value_name = "LISTS", value_parser = parse_lists)]
    pub(crate) lists: Option<Lists>,

    /// Figure to explain, by its name in JSON
    ///
    /// `fails` is whether the scenario fails. The default is `fails` if the versions differ in it, or else the result of reclaim that
    /// differs most beyond noise
    #[arg(long, value_name = "NAME")]
    pub(crate) judge_by: Option<String>,

    #[command(flatten)]
    pub(crate) variant: VariantOption,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<FIVE_SEEDS>,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
