//! Arguments of `pageout sweep`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_sim::scenario::{Size, TimeSpan};

use crate::cli::options::{OutputOptions, ParallelOptions};

const EXAMPLES: &str = "\
A plan is the product of its lists, less what [[except]] names:
  traces = [\"traces/*.oracleGeneral.zst\"]         # or scenarios = [\"scenarios/*.toml\"]; from the plan's folder
  policy = [\"lru\", \"s3-fifo\", \"opt\", \"classic@6.12\"]
  memory = [\"1%..80%/12log\"]                      # as in replay; of traces alone
  seeds = 5                                       # for what draws: `random`, and the machine
  read = { ignore_size = true }                   # how traces are read
  read_ahead_kb = 0                               # of traces in the machine; default 128, and 0 for opaque ids
  [vary]                                          # keys of the machine
  \"device.nvme.read_latency\" = [\"20us\", \"80us\"]
  [[except]]                                      # trace, scenario, policy, memory, seed: all that is said holds
  policy = \"opt\"
  memory = \"80%\"

Examples:
  pageout sweep plan.toml --into results --dry-run
  # again, to go on where it was ended
  pageout sweep plan.toml --into results
  pageout sweep plan.toml --into shared/results --shard 3/16
  pageout sweep --status results
  pageout sweep --collect results --out all.csv
A key stands for all that a cell's result depends on: the trace's bytes, policy, parameters, memory, seed, settings, and which build of pageout runs
it. If a policy of the machine reads a trace ahead, cells of opt are added: the bound. Shards count from 0, and may share a folder. A cell that fails is a row with its error; it is not run again.";

/// Run traces or scenarios times policies times sizes times seeds into a folder, on one machine or on many.
///
/// A plan is a TOML file. Cells that are in the folder are not run again, so the same command goes on after whatever ended it. Parts of the
/// folder are whole or not there. --shard I/N takes a part of the cells; all shards together are the whole. --collect makes one table of it.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// The plan, a TOML file
    #[arg(value_name = "PLAN.toml", value_hint = ValueHint::FilePath, required_unless_present_any = ["status", "collect"])]
    pub(crate) plan: Option<PathBuf>,

    /// The folder that results go to; cells that are in it are not run again
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["status", "collect"], required_unless_present_any = ["status", "collect", "dry_run", "own_cells"])]
    pub(crate) into: Option<PathBuf>,

    /// Run only every N-th cell, by its key: shard I of N, from 0 on
    #[arg(long, value_name = "I/N", value_parser = parse_shard, default_value = "0/1")]
    pub(crate) shard: (u32, u32),

    /// Run nothing, but say how many cells there are and how many are done
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Write what there is after so long, or 1,000 cells: what a kill can cost
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub(crate) part_every: TimeSpan,

    /// A cell of an own policy may take so long; it runs in a process of its own, and its end there is a row
    #[arg(long, value_name = "DURATION", default_value = "10min", help_heading = "Own policies")]
    pub(crate) policy_time: TimeSpan,

    /// The process of an own policy may take so much memory, with the trace
    #[arg(long, value_name = "SIZE", default_value = "4GiB", help_heading = "Own policies")]
    pub(crate) policy_memory: Size,

    /// Be that process: run cells whose keys are on standard input
    #[arg(long, hide = true)]
    pub(crate) own_cells: bool,

    /// Say how far a folder's sweep has come
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "plan")]
    pub(crate) status: Option<PathBuf>,

    /// Print all rows of a folder, sorted
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["plan", "status"])]
    pub(crate) collect: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

fn parse_shard(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(shard, of)| Some((shard.parse().ok()?, of.parse().ok()?)));
    parts
        .filter(|(shard, of)| shard < of)
        .ok_or(format!("`{text}` is no shard I/N, from 0/N to (N - 1)/N, such as 0/4"))
}
