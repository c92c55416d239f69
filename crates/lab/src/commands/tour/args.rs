//! Arguments of `pageout tour`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::{OutputOptions, PageOptions, ParallelOptions};

const EXAMPLES: &str = "\
Examples:
  # all five stops, and a page to show
  pageout tour --report tour.html
  # some of them
  pageout tour --only mglru,zswap-lru
  pageout tour --json | jq '.stops[] | {name, held, not_held, not_decided}'
Rows that do not hold are no error. The exit code is 1 if a run failed; the other stops are printed then, too.";

/// Five publications on page reclaim and memory tiers, each with its table beside ours, in three minutes.
///
/// A stop is an experiment of a chapter of `reproduce` at a size that fits: what was claimed, on which machine, the published rows beside ours,
/// which of them hold, and the command for more. A row whose interval is too wide for a verdict is not decided at this size, and does not count as
/// held. Nothing but the program is needed. Each stop is printed when it is done; a signal ends the tour with the stops that are.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TourArgs {
    /// A tour of your own, FILE.toml, instead of the program's; start from scenarios/chapters/tour.toml
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    /// Only these stops: mglru, page-cache-promotion, pghot, no-writeback, zswap-lru
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
