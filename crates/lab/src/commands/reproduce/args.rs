//! Arguments of `pageout reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::{PageOptions, ParallelOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  # the chapters, their experiments and sizes
  pageout reproduce --list
  # a small size: minutes instead of hours
  pageout reproduce mglru --scale small --report mglru.html
  # one experiment, with three seeds
  pageout reproduce mglru --scale small --experiment browser --seeds 3
  # the verdict of each row
  pageout reproduce mglru --scale small --json | jq '.experiments[].rows[]
      | {row, sides: [.sides[] | {side, change_percent, holds}]}'
  # a small load of it, simulated and on real memory
  pageout reproduce mglru --live
  # a custom chapter; start from scenarios/chapters/mglru.toml
  pageout reproduce my/chapter.toml";

/// Run a publication's experiments and compare the tables
///
/// A chapter defines what was published, the matching simulated figures, and the scenarios. Each scenario runs at each side of the
/// comparison (for example the kernel before and after), with several seeds. A row is held (reproduced) if the sign of its change is right
/// for nine seeds of ten, and the mean change is between half and twice the published one. Rows that are not held are printed with the
/// command that shows the reason, if it is known. Sizes and constants that a publication leaves open were fixed before the first run.
///
/// Rows that are not held are not an error. The exit code is 1 if a run failed; the other rows are printed.
///
/// With --live the exit code is 4 if a row with a relation is not held. Such a row was fixed before the first run on real memory. A row that the rounds do not decide is not an error.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// Chapter of --list, or the file of a custom one
    #[arg(value_name = "CHAPTER", required_unless_present = "list", value_hint = ValueHint::FilePath)]
    pub(crate) name: Option<String>,

    /// List the chapters, their experiments and sizes
    #[arg(long, conflicts_with_all = ["name", "scale", "experiments", "report"])]
    pub(crate) list: bool,

    /// Run only this experiment; repeatable
    #[arg(long = "experiment", value_name = "NAME")]
    pub(crate) experiments: Vec<String>,

    /// Run at this smaller size of --list
    #[arg(long, value_name = "SIZE")]
    pub(crate) scale: Option<String>,

    /// Number of seeds, from the scenario's on
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,

    /// Compare the simulator with real memory, at a small size
    #[arg(long, conflicts_with_all = ["scale", "seeds", "report", "settings", "kernel", "seed"])]
    pub(crate) live: bool,

    #[command(flatten)]
    pub(crate) live_options: LiveOptions,
}

/// How real memory is used.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --live")]
pub(crate) struct LiveOptions {
    /// Folder of files and swap; by default that for temporary files
    #[arg(long, value_name = "DIR", requires = "live", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub(crate) folder: Option<PathBuf>,

    /// Runs of each side on each machine; at least 5 are judged
    #[arg(long, value_name = "N", default_value_t = 5, requires = "live", value_parser = clap::value_parser!(u32).range(1..=100), hide_short_help = true)]
    pub(crate) rounds: u32,
}
