//! Arguments of `pageout advise-tier`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::options::{PageOptions, ParallelOptions, RunOptions};

pub(super) const EXAMPLES: &str = "\
Examples:
  pageout advise-tier web.toml
  pageout advise-tier requests.pgt --memory 64GiB             a trace, read by one task through an open file
  pageout advise-tier web.toml --device cxl-1.1,pmem --ratio 1:1,1:2,1:4
  pageout advise-tier web.toml --report advice.html --repeat 5
  pageout advise-tier web.toml --warm-up 30s                  what all memory fast does in 30 s of simulated time counts nowhere
  pageout advise-tier web.toml --json | jq '.advice'
The scenario's memory is taken as it is, all of it fast; that is what each share of slow memory is compared with.
With --repeat N all is run with N seeds and compared seed by seed: a loss is then a mean ± half of its 95 % interval.
A machine of 2 TiB: write it at a 1024th, memory and what uses it alike, with machine.page_stands_for = 1024. Each page, and each access
to it, then stands for so many, and what is told of memory saved is of the whole. task.stands_for makes a long run shorter and no memory
larger: what a page goes through, such as a fault, is not multiplied by it.";

/// Arguments of `advise-tier`.
#[derive(Debug, Args)]
pub(crate) struct AdviseTierArgs {
    /// The scenario file, or a recorded trace
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Memory in all, fast and slow, instead of the scenario's
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Classes of slow memory: names of presets, separated by commas
    #[arg(long, value_name = "PRESETS", value_delimiter = ',', default_value = "cxl-1.1,cxl-2.0-switch")]
    pub(crate) device: Vec<String>,

    /// Fast to slow memory, separated by commas
    #[arg(long, value_name = "RATIOS", value_delimiter = ',', default_value = "2:1,1:1,1:2,1:4")]
    pub(crate) ratio: Vec<String>,

    /// How much longer than with fast memory alone is too long, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub(crate) loss: f64,

    /// What is left out of losses at the beginning of each run: a time with all memory fast, a part of the work, or none
    ///
    /// While memory is filled and pages come to their places, a run tells what beginning costs. At every ratio as many accesses are left
    /// out as the run with all its memory fast made by then; the loss is how much longer an access takes after that. A fifth, because the
    /// first touches of most of what a workload uses are among them; a workload that fills its memory for longer needs more.
    #[arg(long, value_name = "TIME|PERCENT|none", default_value = "20%")]
    pub(crate) warm_up: String,

    /// Seeds for each run, counted up from the scenario's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
