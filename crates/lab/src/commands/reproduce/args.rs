//! Arguments of `pageout reproduce`.

use clap::{Args, ValueHint};

use crate::cli::options::{PageOptions, ParallelOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  # the chapters, their experiments and sizes
  pageout reproduce --list
  # minutes instead of hours
  pageout reproduce mglru --scale small
  pageout reproduce mglru --scale small --experiment browser --seeds 3
  # do the rows depend on the prices?
  pageout reproduce mglru --scale small --set machine.costs=server-2025
  pageout reproduce mglru --scale small --report mglru.html --quiet
  pageout reproduce mglru --scale small --json | jq '.experiments[].rows[]
      | {row, sides: [.sides[] | {side, change_percent, holds}]}'
  # a chapter of your own; start from scenarios/chapters/mglru.toml
  pageout reproduce my/chapter.toml
Rows that are not held are no error. The exit code is 1 if a run failed; the other rows are printed then, too.";

/// Run the experiments of a publication, and print its table beside ours, row by row.
///
/// A chapter says what was published, which figures of ours are it, and which scenarios show it. Each scenario runs at every
/// side of the comparison (such as the kernel before and after), with several seeds. A row is held if the sign of its change
/// is right for nine seeds of ten, and the mean change is between half and twice the published one. What is not held is
/// shown like the rest, with the command that shows why where that is known. Sizes and constants that a publication leaves
/// open were fixed before any row was looked at.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// A chapter, one of --list; or a file of your own, FILE.toml, whose scenarios lie where it says
    #[arg(value_name = "CHAPTER", required_unless_present = "list", value_hint = ValueHint::FilePath)]
    pub(crate) name: Option<String>,

    /// Say which chapters there are, with their experiments and sizes
    #[arg(long, conflicts_with_all = ["name", "scale", "experiments", "report"])]
    pub(crate) list: bool,

    /// Only this experiment of the chapter; may be given several times
    #[arg(long = "experiment", value_name = "NAME")]
    pub(crate) experiments: Vec<String>,

    /// Run the experiments at this smaller size: only sizes at which the chapter says that its rows are sound
    #[arg(long, value_name = "SIZE")]
    pub(crate) scale: Option<String>,

    /// Run everything with so many seeds, counted up from the scenario's
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
