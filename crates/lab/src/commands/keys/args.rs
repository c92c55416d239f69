//! Arguments of `pageout keys`.

use clap::Args;

use crate::cli::options::{OutputOptions, parse_lists, parse_version};
use pageout_engine::{Lists, Version};

const EXAMPLES: &str = "\
Examples:
  # all keys
  pageout keys
  # keys whose path contains a text
  pageout keys memory.high
  # a rule, by the name that ablate and bisect print
  pageout keys lru.tiers
  # textbook policies of replay
  pageout keys policy
  # the rules of a kernel version, with their sources
  pageout keys kernel --at 6.8
  # as data
  pageout keys device --json";

/// Print the keys of a scenario and the textbook policies
///
/// Each key has its meaning, unit, range and default, and the reason for the default. A policy has its parameters and source.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct KeysArgs {
    /// Part of a path; or `policy`, or a policy's name
    pub(crate) filter: Option<String>,

    /// Print the rules of this kernel version, with their sources
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) at: Option<Version>,

    /// LRU of that version: `classic` or `mglru`
    #[arg(long, value_name = "LISTS", requires = "at", value_parser = parse_lists)]
    pub(crate) lists: Option<Lists>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
