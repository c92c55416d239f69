//! Arguments of `pageout tour`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::{OutputOptions, PageOptions, ParallelOptions};
use crate::commands::reproduce::args::LiveOptions;

const EXAMPLES: &str = "\
Examples:
  # all five stops, with a report
  pageout tour --report tour.html
  # two of them
  pageout tour --only mglru,zswap-lru
  # on real memory
  pageout tour --live
  # the verdicts
  pageout tour --json | jq '.stops[] | {name, held, not_held, not_decided}'";

/// Reproduce five publications in three minutes
///
/// A stop is an experiment of a chapter of `reproduce` at a small size: the claim, its machine, published and simulated rows, the verdicts,
/// and the command for more. A row is not decided if its interval is too wide at this size; it does not count as held. Each stop is printed
/// when it is complete. If you interrupt the tour, the complete stops remain.
///
/// Rows that are not held are not an error. The exit code is 1 if a run failed; the other stops are printed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TourArgs {
    /// Custom tour; start from scenarios/chapters/tour.toml
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    /// Run only these stops: mglru, page-cache-promotion, pghot, no-writeback, zswap-lru
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,

    /// Compare the simulator with real memory, at a small size
    #[arg(long, conflicts_with_all = ["file", "report"])]
    pub(crate) live: bool,

    #[command(flatten)]
    pub(crate) live_options: LiveOptions,
}
