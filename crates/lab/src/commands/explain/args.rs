//! Arguments of `pageout explain`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::RunOptions;

const EXAMPLES: &str = "\
Examples:
  # page 17 of the first object of the task `server`
  pageout explain scenarios/scan-and-hot-set.toml --page server/0:17
  # the last three evictions from a cgroup
  pageout explain scenarios/scan-and-hot-set.toml --evictions 3 --memcg /host
  # a page of a [[file]], under MGLRU
  pageout explain web.toml --page data.db:1024 --set kernel.profile=mglru@6.12
  # the pages only
  pageout explain web.toml --evictions 100 --json | jq '.pages[] | .page'";

/// Explain why a page was kept or evicted
///
/// Prints each step of a page, with the rule that decided and the numbers that it compared. The run is repeated, and only the pages in
/// question are noted: the result is the same, and memory does not grow with the run.
///
/// FILE:PAGE is a page of a [[file]], TASK/OBJECT:PAGE a page of a task's object. Objects have the order of the scenario. Copies of a task are
/// TASK.0, TASK.1 and so on. Objects and pages are counted from 0.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("question").required(true).args(["page", "evictions"]))]
pub(crate) struct ExplainArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Page to explain: FILE:PAGE or TASK/OBJECT:PAGE
    #[arg(long, value_name = "PAGE")]
    pub(crate) page: Option<String>,

    /// Explain the last N evictions, each from its page's last read
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) evictions: Option<u32>,

    /// Cgroup of the evictions, including those below it
    #[arg(long, value_name = "PATH", requires = "evictions", conflicts_with = "page")]
    pub(crate) memcg: Option<String>,

    /// Number of first steps, and of last steps, per page
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) steps: u32,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
