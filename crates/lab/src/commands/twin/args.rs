//! Arguments of `pageout twin`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::{OutputOptions, PageOptions, ParallelOptions};

const EXAMPLES: &str = "\
Examples:
  # is the twin like the machine?
  pageout twin rec
  # beside what repeats of the recording span
  pageout twin rec rec-2 rec-3
  pageout twin rec --ask memory=-25%,memory=+50%,policy=mglru@6.12
  pageout twin rec --ask memory.high=-10%,readahead=0,device=nvme,readers=2
  pageout twin rec --ask policy=mglru@6.12+memory=-25% --report twin.html
  pageout twin rec --scenario twin.toml && pageout explain twin.toml --evictions 5
Questions, each a row; + joins changes of one:
  memory=-25% | +50% | 48MiB    the group's limit; programs and the kernel hold as much of it as before
  memory.high=-10% | SIZE | max
  policy=PROFILE                a kernel's lists and version, as classic@6.8, mglru@6.12 (`pageout keys kernel.profile`)
  device=CLASS                  hdd, sata-ssd, nvme, pmem or virtio instead of the recorded disk
  readahead=KIB                 of all files that are read ahead
  readers=N                     so many do at the same time what was recorded, on the same files, each with memory of its own: in step on one CPU;
                                the range is from CPUs of their own to starts far apart
  swap=on|off                   whether memory of programs may go to swap: a range, from none of it there to all of it
  zswap=on|off                  told where nothing was swapped; else it hangs on which memory of programs is used, which is not recorded";

/// A recorded machine, simulated: its counters beside the recorded ones, and what if it had less memory, another policy, another disk.
///
/// Plays what `pageout record` has recorded on a machine with its limit, settings and disk. Each counter stands beside the recorded one, with the
/// difference; what could not be modelled is named. What is not known (what else the group holds from moment to moment, when statistics are flushed) is
/// varied, and figures have the interval that it makes. With --ask the same accesses meet another machine. Which answers the recording can't carry
/// is said with the reason.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TwinArgs {
    /// The folder of a recording; further ones are repeats of it, which say how much the machine differs from itself
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) recordings: Vec<PathBuf>,

    /// What if
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) ask: Vec<String>,

    /// Take a recording from which events are missing
    #[arg(long)]
    pub(crate) allow_loss: bool,

    /// Write the twin as a scenario, to read, run and change; - for standard output. Nothing is simulated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["report", "ask"])]
    pub(crate) scenario: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}
