//! Arguments of `pageout advise-tier`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::{ONE_SEED, PageOptions, RepeatOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  pageout advise-tier web.toml
  # a trace, read by one task through an open file
  pageout advise-tier requests.pgt --memory 64GiB
  pageout advise-tier web.toml --device cxl-1.1,pmem --ratio 1:1,1:2,1:4
  pageout advise-tier web.toml --report advice.html --repeat 5
  # is it the same at half of page_stands_for?
  pageout advise-tier web.toml --check-scale
  # the first fifth of the run with all memory fast counts nowhere
  pageout advise-tier web.toml --warm-up 20%
  # a price per GiB, and the money saved
  pageout advise-tier web.toml --price fast=9,cxl-1.1=4,cxl-2.0-switch=5
  pageout advise-tier web.toml --json | jq '.advice'
The scenario's memory is taken as it is, all of it fast; that is what each share of slow memory is compared with.
With --repeat N all is run with N seeds and compared seed by seed: a loss is then a mean ± half of its 95 % interval.
A machine of 2 TiB is written small, and two keys say so. machine.page_stands_for = 1024 is a smaller machine: memory, files, processes and
counts of accesses at a 1024th; each page, and each access to it, stands for 1024, and what is told of memory saved is of the whole.
--check-scale makes the study at 512 as well: the answer should not depend on it. task.stands_for = 64 is a shorter run on the same memory:
each access stands for 64 to other pages of its kind, and what a page goes through, such as a fault, is not multiplied. Half of it with twice
the ops is the check.";

/// How much of a workload's memory may be slower, what has to find its hot pages there, and which knobs matter.
///
/// The workload runs with all its memory fast, and then with parts of it slower: at each ratio, on each class of memory,
/// with each way to notice hot pages. The answer is the least fast memory that loses little enough, how far that is from
/// a placement that knew all accesses beforehand, and what each knob changes there. What the scenario says of nodes,
/// demotion and promotion is put aside.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
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

    /// Prices of a GiB in any currency, of fast memory and of devices: prints the money that slower memory saves
    #[arg(long, value_name = "fast=PRICE,DEVICE=PRICE")]
    pub(crate) price: Option<String>,

    /// What is left out of losses at the beginning of each run: a time with all memory fast, a part of the work, or none
    ///
    /// While memory is filled and pages come to their places, a run tells what beginning costs. At every ratio as many accesses are left
    /// out as the run with all its memory fast made by then; the loss is how much longer an access takes after that. A fifth, because the
    /// first touches of most of what a workload uses are among them; a workload that fills its memory for longer needs more.
    #[arg(long, value_name = "TIME|PERCENT|none", default_value = "20%")]
    pub(crate) warm_up: String,

    #[command(flatten)]
    pub(crate) runs: RepeatOptions<ONE_SEED>,

    /// Make the study again at half of machine.page_stands_for, and say whether the verdict is the same
    ///
    /// With a page that stands for many, batches and defaults of the kernel and latencies of devices weigh as if each were of so many pages.
    /// The check has twice the memory, files, processes and accesses of the scenario, and half as many pages behind each: the same
    /// machine. Each of its runs takes about twice as long; with it the command takes two to three times as long as without. It says how
    /// long before it starts.
    #[arg(long)]
    pub(crate) check_scale: bool,

    #[command(flatten)]
    pub(crate) page: PageOptions,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
