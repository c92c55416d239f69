//! Arguments of `pageout predict`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_study::scenario::variation::Variation;

use crate::cli::options::{FIVE_SEEDS, RepeatOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  pageout predict scenarios/predictions/02-loop-limit.toml --out loop.md
  pageout predict web.toml --vary kernel.lists=classic,mglru \\
      --unknown memcg./web.memory.max=63MiB,64MiB
  pageout predict loop.toml --unknown 'file.text.size=1 pages,2 pages,3 pages' \\
      --accesses loop-accesses
--unknown is for what the one who will check knows, or nobody: how many pages of its own text a program has in its group, when statistics
are flushed (kernel.memcg.stat_flush_phase), how fast the disk is. Each of its values is run with each seed.";

/// Write down what a kernel will do before it does: a page with ranges, time and commit, and the commands to check it.
///
/// The scenario's variants, or combinations of --vary, are the columns. Each is run with several seeds and with all values of --unknown, which are
/// of what nobody knows beforehand. A figure is the middle one of these runs, with the least and the most of them: a kernel outside of that
/// range refutes it. What the scenario expects is a claim, with the share of runs in which it comes true.
///
/// The page is Markdown. It ends with commands that set a kernel up as the scenario says and make the accesses, and with a table for what came of it.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PredictArgs {
    /// The scenario file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// What is chosen: a key and its values, a column each. May be given several times, and then all combinations are. Without it the scenario's
    /// own variants are the columns, or the scenario as it is
    #[arg(long, value_name = "KEY=A,B[,C]")]
    pub(crate) vary: Vec<Variation>,

    /// What is not known: a key and values that it may have, over which the figures range. May be given several times, and then all combinations
    /// are run
    #[arg(long, value_name = "KEY=A,B[,C]")]
    pub(crate) unknown: Vec<Variation>,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<FIVE_SEEDS>,

    /// Write the accesses of each task into this folder, for fio or a program of one's own to make them on a kernel. Files of these names are
    /// replaced
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) accesses: Option<PathBuf>,

    /// Predict every counter, not only those that tell a story, and times
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
