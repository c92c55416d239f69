//! Arguments of `pageout sweep`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_sim::scenario::{Size, TimeSpan};

use crate::cli::options::{OutputOptions, POLICY_HEADING, ParallelOptions, ReadingOptions};

const EXAMPLES: &str = "\
A plan is the product of its lists, without the cells of [[except]]:
  traces = [\"traces/*.oracleGeneral.zst\"]  # or scenarios = [\"*.toml\"]
  policy = [\"lru\", \"s3-fifo\", \"opt\", \"classic@6.12\"]
  memory = [\"1%..80%/12log\"]     # of traces, as in replay
  seeds = 5                      # for `random` and the simulated machine
  read = { ignore_size = true }  # how traces are read
  read_ahead_kb = 0              # default: 128, and 0 for opaque ids
  untimed = true                 # no clock: misses and counters only
  [vary]                         # keys of the simulated machine
  \"device.nvme.read_latency\" = [\"20us\", \"80us\"]
  [[except]]                     # trace, scenario, policy, memory, seed (and)
  policy = \"opt\"
  memory = \"80%\"

Examples:
  # count the cells
  pageout sweep plan.toml --into results --dry-run
  # run them; the same command resumes, and --shard 3/16 runs a part of them
  pageout sweep plan.toml --into results
  # show the progress
  pageout sweep --status results
  # make one table
  pageout sweep --collect results --out all.csv
  # the table of a paper; --traces, --policy and --memory replace a plan
  pageout sweep --collect results --summary lru";

/// Run many traces, policies, sizes and seeds into a folder
///
/// Cells that the folder has are not run again, so the same command resumes. Part files are written atomically. A cell's key is a hash of
/// all that its result depends on: the trace's bytes, policy, parameters, memory, seed, settings, and the build. A failed cell is a row with
/// its error. If a kernel policy reads ahead, cells of `opt` are added. Paths of a plan start from its folder.
///
/// --summary prints one line per memory and policy: the mean of 1 - miss ratio / miss ratio of BASE over traces, its 95 % interval,
/// percentiles, and wins.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// The plan
    #[arg(value_name = "PLAN.toml", value_hint = ValueHint::FilePath, required_unless_present_any = ["status", "collect", "traces"])]
    pub(crate) plan: Option<PathBuf>,

    /// Folder of the results
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["status", "collect"], required_unless_present_any = ["status", "collect", "dry_run", "own_cells"])]
    pub(crate) into: Option<PathBuf>,

    /// Traces instead of a plan: files or patterns
    #[arg(long, value_name = "PATTERN", num_args = 1.., conflicts_with_all = ["plan", "status", "collect"], requires_all = ["into", "policy", "memory"])]
    pub(crate) traces: Vec<String>,

    /// Policies of --traces
    #[arg(long, value_name = "A,B", requires = "traces")]
    pub(crate) policy: Vec<String>,

    /// Memory sizes of --traces, for example 1%,10%
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "traces")]
    pub(crate) memory: Vec<String>,

    /// Seeds of --traces
    #[arg(long, value_name = "N", requires = "traces", default_value_t = 1, hide_short_help = true)]
    pub(crate) seeds: u32,

    /// Print reductions of misses against policy BASE
    #[arg(long, value_name = "BASE", conflicts_with_all = ["status", "dry_run", "own_cells"])]
    pub(crate) summary: Option<String>,

    /// Part of the cells to run, from 0/N
    #[arg(long, value_name = "I/N", value_parser = parse_shard, default_value = "0/1")]
    pub(crate) shard: (u32, u32),

    /// Count the cells, run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Interval of the part files (or 1,000 cells)
    #[arg(long, value_name = "DURATION", default_value = "60s", hide_short_help = true)]
    pub(crate) part_every: TimeSpan,

    /// Maximum time of a cell of a custom policy, which runs in a separate process; its end is a row
    #[arg(long, value_name = "DURATION", default_value = "10min", help_heading = POLICY_HEADING, hide_short_help = true)]
    pub(crate) policy_time: TimeSpan,

    /// Maximum memory of that process, including the trace
    #[arg(long, value_name = "SIZE", default_value = "4GiB", help_heading = POLICY_HEADING, hide_short_help = true)]
    pub(crate) policy_memory: Size,

    /// Run as that process: standard input has the keys of the cells
    #[arg(long, hide = true)]
    pub(crate) own_cells: bool,

    /// Show the progress of the sweep in a folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "plan")]
    pub(crate) status: Option<PathBuf>,

    /// Print all rows of a folder, sorted, as one table
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["plan", "status"])]
    pub(crate) collect: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: ReadingOptions,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

fn parse_shard(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(shard, of)| Some((shard.parse().ok()?, of.parse().ok()?)));
    parts
        .filter(|(shard, of)| shard < of)
        .ok_or(format!("expected I/N with I below N, for example 0/4, found `{text}`"))
}
