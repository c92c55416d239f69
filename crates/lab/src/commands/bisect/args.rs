//! Arguments of `pageout bisect`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_engine::{Lists, Version};

use crate::cli::options::{
    FIVE_SEEDS, PageOptions, RepeatOptions, RunOptions, VariantOption, parse_lists, parse_version,
};

const EXAMPLES: &str = "\
Examples:
  pageout bisect web.toml --from 6.1 --to 6.12
  pageout bisect web.toml --from 6.12 --to 6.18 --lists mglru --judge-by refaults_file
  pageout bisect scenarios/regressions/premature-oom.toml --from 6.1 --to 6.12
  pageout bisect web.toml --from 6.12.0 --to 6.12.117 --json | jq '.verdict'
  # what held in a version, and how it is known
  pageout keys kernel --at 6.8
Runs are compared seed by seed. What a rule brings alone, and what is gone without it, are shares of the whole change.";

/// Which rule changed the result between two versions of the kernel.
///
/// The scenario runs in both versions. Rules that differ between them are then turned one by one: each alone in the older version, and all but
/// it in the newer one, each with several seeds. A rule that brings the change alone, and without which it is gone, did it. Where no
/// single rule does, sets of rules are tried, smaller and smaller ones (delta debugging), until none of a set can be left out.
/// What is not known of a version is said with the rule.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BisectArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// The version to begin with: 6.12.117, or 6.12 for the newest of a series
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) from: Version,

    /// The version whose result is another
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) to: Version,

    /// Lists of both versions, instead of those of the scenario's profile: classic (active and inactive) or mglru (generations)
    #[arg(long, value_name = "LISTS", value_parser = parse_lists)]
    pub(crate) lists: Option<Lists>,

    /// The figure that is another, by its name in JSON; `fails` is whether the scenario fails. Without it: `fails` where the two versions differ in
    /// that, else the figure of what comes of reclaim that differs most beyond noise
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
