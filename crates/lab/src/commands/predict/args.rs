//! Arguments of `pageout predict`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_study::scenario::variation::Variation;

use crate::cli::options::{FIVE_SEEDS, RepeatOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  # the variants of a scenario, into a file
  pageout predict scenarios/predictions/02-loop-limit.toml --out loop.md
  # two policies, at a limit that is not exactly known
  pageout predict web.toml --vary kernel.lists=classic,mglru \\
      --unknown memcg./web.memory.max=63MiB,64MiB
  # an unknown number of pages, and the accesses as files for fio
  pageout predict loop.toml --accesses loop-accesses \\
      --unknown 'file.text.size=1 pages,2 pages,3 pages'";

/// Predict what a kernel will do, with ranges and a check
///
/// The output is Markdown: time, commit, figures, and the commands that set up a kernel, make the accesses, and record the result. The
/// columns are the scenario's variants, or the combinations of --vary. Each runs with several seeds and with all values of --unknown. A
/// figure is median (min-max) of these runs; a kernel outside of the range refutes it. An expectation of the scenario is a claim, with the
/// share of runs that meet it.
///
/// Unknown inputs are, for example, the pages of a program's text in its group, the time of statistics flushes
/// (kernel.memcg.stat_flush_phase), or the speed of the disk.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PredictArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Key and values, one column each; repeatable
    #[arg(long, value_name = "KEY=A,B")]
    pub(crate) vary: Vec<Variation>,

    /// Unknown key and its possible values; repeatable
    #[arg(long, value_name = "KEY=A,B")]
    pub(crate) unknown: Vec<Variation>,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<FIVE_SEEDS>,

    /// Folder for the accesses of each task, for fio
    ///
    /// Existing files are replaced
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) accesses: Option<PathBuf>,

    /// Predict all counters, and times
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
