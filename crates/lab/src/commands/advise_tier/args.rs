//! Arguments of `pageout advise-tier`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use pageout_study::advise_tier::Ask;

use crate::cli::options::{ONE_SEED, PageOptions, RepeatOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  # two classes of memory at three ratios
  pageout advise-tier web.toml --device cxl-1.1,pmem --ratio 1:1,1:2,1:4
  # a trace, read by one task through an open file
  pageout advise-tier requests.pgt --memory 64GiB
  # five seeds, with a report
  pageout advise-tier web.toml --report advice.html --repeat 5
  # all sources of hotness, two loads, as one table
  pageout advise-tier web.toml mine.toml --every-source --repeat 5
  # the money saved, from prices per GiB
  pageout advise-tier web.toml --price fast=9,cxl-1.1=4,cxl-2.0-switch=5
  # the advice only
  pageout advise-tier web.toml --json | jq '.advice'";

/// Find how much of a workload's memory may be slower
///
/// The workload runs with fast memory only, then with a part of its memory slower: at each ratio, with each class of memory, with each way
/// to find hot pages. The answer is the smallest fast memory with an acceptable loss, its distance to an optimal placement, and the effect
/// of each knob there. The scenario's own nodes, demotion and promotion are ignored.
///
/// With --repeat N, runs are compared seed by seed, and a loss is a mean ± half of its 95 % interval. machine.page_stands_for = 1024
/// simulates a large machine at 1/1024 of its memory, files, processes and accesses; task.stands_for = 64 shortens the run.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AdviseTierArgs {
    /// The scenario file, or a trace; several with --every-source
    #[arg(value_hint = ValueHint::FilePath, required = true, num_args = 1..)]
    pub(crate) scenario: Vec<PathBuf>,

    /// Total memory, instead of the scenario's
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Classes of slow memory
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "cxl-1.1,cxl-2.0-switch")]
    pub(crate) device: Vec<String>,

    /// Ratios FAST:SLOW
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "2:1,1:1,1:2,1:4")]
    pub(crate) ratio: Vec<String>,

    /// Acceptable slowdown in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub(crate) loss: f64,

    /// Prices per GiB of `fast` and of classes
    #[arg(long, value_name = "NAME=PRICE", hide_short_help = true)]
    pub(crate) price: Option<String>,

    /// Start of each run that a loss excludes: TIME, PERCENT or none
    ///
    /// All ratios exclude the same number of accesses. 20 % contains most first touches; a workload that fills its memory for longer needs more
    #[arg(long, value_name = "TIME", default_value = "20%", hide_short_help = true)]
    pub(crate) warm_up: String,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<ONE_SEED>,

    /// Compare all ways to find hot pages, and change no knob
    ///
    /// One table has a row per scenario, ratio, class of memory and source: loss, moved pages, and CPU time to find them. With --repeat N each
    /// figure is a mean ± half of its 95 % interval
    #[arg(long, conflicts_with_all = ["price", "check_scale"], hide_short_help = true)]
    pub(crate) every_source: bool,

    /// Repeat the study at half of machine.page_stands_for
    ///
    /// The output states whether the verdict is the same. The command takes two to three times as long
    #[arg(long, hide_short_help = true)]
    pub(crate) check_scale: bool,

    #[command(flatten)]
    pub(crate) page: PageOptions,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

impl AdviseTierArgs {
    /// What is asked about a scenario.
    pub(crate) fn ask(&self, scenario: &Path) -> Ask {
        Ask {
            scenario: scenario.to_path_buf(),
            changes: self.options.changes(),
            memory: self.memory.clone(),
            devices: self.device.clone(),
            ratios: self.ratio.clone(),
            loss: self.loss,
            price: self.price.clone(),
            warm_up: self.warm_up.clone(),
            check_scale: self.check_scale,
            every_source: self.every_source,
            repeat: self.runs.repeat,
            jobs: self.runs.parallel.jobs,
        }
    }
}
