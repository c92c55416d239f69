//! Arguments of `pageout keys`.

use clap::Args;

use crate::cli::options::{OutputOptions, parse_lists, parse_version};
use pageout_engine::{Lists, Version};

const EXAMPLES: &str = "\
Examples:
  pageout keys
  # those whose name contains this
  pageout keys memory.high
  # one rule, by the name that ablate and bisect print
  pageout keys lru.tiers
  # textbook policies for replay, with their parameters and sources
  pageout keys policy
  # what held in that version, and how it is known
  pageout keys kernel --at 6.8
  pageout keys device --json";

/// The reference of all keys a scenario may contain, and of textbook policies: meaning, unit, range, default, and why that default.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct KeysArgs {
    /// Only keys whose path contains this; `policy`, or the name of one, for textbook policies
    pub(crate) filter: Option<String>,

    /// What held in this version of the kernel, rule by rule, and how it is known: 6.12.117, or 6.12 for the newest of a series
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) at: Option<Version>,

    /// Lists of that version: classic (active and inactive) or mglru (generations)
    #[arg(long, value_name = "LISTS", requires = "at", value_parser = parse_lists)]
    pub(crate) lists: Option<Lists>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
