//! Arguments of `pageout twin`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::{OutputOptions, PageOptions, ParallelOptions};

const EXAMPLES: &str = "\
Examples:
  # compare the simulation with the recording
  pageout twin rec
  # the same, with the variation of repeated recordings
  pageout twin rec rec-2 rec-3
  # checked by recordings at other limits
  pageout twin rec --against rec-2 rec-3
  # three changes
  pageout twin rec --ask memory=-25%,memory=+50%,policy=mglru@6.12
  # two changes at the same time, with a report
  pageout twin rec --ask policy=mglru@6.12+memory=-25% --report twin.html
  # a scenario to run and change
  pageout twin rec --scenario twin.toml && \\
      pageout explain twin.toml --evictions 5

Changes (--ask), one row each; a + combines changes:
  memory=-25%|+50%|48MiB     limit; programs and kernel hold the same amount
  memory.high=-10%|SIZE|max
  policy=PROFILE             classic@6.8, mglru@6.12 (`pageout keys kernel.profile`)
  device=CLASS               hdd, sata-ssd, nvme, pmem or virtio
  readahead=KIB              of all files that are read ahead
  readers=N                  N readers of the same files, each with its own memory,
                             in step on one CPU; the range is from a CPU for each
                             to starts far apart
  swap=on|off                swap of programs' memory: the range is none to all
  zswap=on|off               unknown if the recording has swap";

/// Simulate a recorded machine, unchanged or with changes
///
/// Replays a recording of `pageout record` on a simulated machine with its limit, settings and disk. Each counter is compared with the
/// recorded one; parts that are not modelled are listed. Unknown conditions are varied (memory of the group at each time, statistics
/// flushes), so figures have ranges. If the recording cannot answer a change, the reason is printed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TwinArgs {
    /// Folder of a recording, and of repetitions of it
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) recordings: Vec<PathBuf>,

    /// Changes to simulate, for example memory=-25%
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) ask: Vec<String>,

    /// Recordings of the same load at other limits: compare predicted and recorded
    ///
    /// From three recordings on, DIR included, the twin states its error by counter and kind of change, and answers are at least as wide
    #[arg(long, value_name = "DIR", value_delimiter = ',', num_args = 1.., value_hint = ValueHint::DirPath)]
    pub(crate) against: Vec<PathBuf>,

    /// Accept a recording that lost events
    #[arg(long)]
    pub(crate) allow_loss: bool,

    /// Write the twin as a scenario (-: standard output), run nothing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["report", "ask"])]
    pub(crate) scenario: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
