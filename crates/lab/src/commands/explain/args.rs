//! Arguments of `pageout explain`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::RunOptions;

const EXAMPLES: &str = "\
FILE:PAGE is a page of a [[file]]. TASK/OBJECT:PAGE is a page of a task's object, such as server/0:17.
Objects are numbered in the order of the scenario. Copies of a task are TASK.0, TASK.1 ...
Objects and pages are counted from 0.

Examples:
  pageout explain scenarios/scan-and-hot-set.toml --page server/0:17
  pageout explain scenarios/scan-and-hot-set.toml --evictions 3 --memcg /host
  pageout explain web.toml --page data.db:1024 --set kernel.profile=mglru@6.12
  pageout explain web.toml --evictions 100 --json | jq '.pages[] | .page'";

/// Why a page is where it is: step by step, with the rule that decided and the numbers it compared.
///
/// Tells of one page (--page), or of the last evictions (--evictions). Runs are deterministic. So the scenario is run
/// again, and what happens to these pages is noted. Memory does not grow with the run, and asking changes no result.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("question").required(true).args(["page", "evictions"]))]
pub(crate) struct ExplainArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// The page to tell of: FILE:PAGE, or TASK/OBJECT:PAGE
    #[arg(long, value_name = "PAGE")]
    pub(crate) page: Option<String>,

    /// Tell of the last N evictions, each from the page's last read to its end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) evictions: Option<u32>,

    /// Only evictions from this cgroup and those below it
    #[arg(long, value_name = "PATH", requires = "evictions", conflicts_with = "page")]
    pub(crate) memcg: Option<String>,

    /// Show so many steps of a page from its beginning, and so many up to its end
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) steps: u32,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
