//! Arguments of `pageout replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use pageout_sim::scenario::{Device, SEED_MAX, Size};
use pageout_study::scenario::traces::TRACE_MEMORY;

use super::options::{OutputOptions, PageOptions, ParallelOptions, ReadingOptions};

pub(super) const EXAMPLES: &str = "\
Examples:
  pageout replay w92.oracleGeneral.zst --memory 30%
  pageout replay io.csv --memory 5%,10%,20%,40%,80%
  pageout replay prxy_0.csv --format msr --memory 10%,30%
  pageout replay pages.u32 --memory 64MiB --channel anonymous --swap zram
  pageout replay w92.oracleGeneral.zst --ignore-size --memory 512pages,8192pages --policy lru --read-ahead-kb 0
A percentage is of the distinct pages that the trace touches, as in a scenario. The replaying task runs in a cgroup, and
memory is the limit of that cgroup (memory.max). The kernel's own memory is not charged to it (kernel.memcg.kmem = false); a
scenario has it charged unless it says otherwise. All else has the defaults of a scenario.";

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The trace file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) trace: PathBuf,

    /// Memory for the trace's pages alone: a size, or a percentage of the distinct pages in the trace; several separated by commas make a curve
    #[arg(long, short, value_name = "SIZE|PERCENT", value_delimiter = ',', default_value = "30%")]
    pub(crate) memory: Vec<String>,

    /// How the pages are accessed
    #[arg(long, value_enum, default_value_t = ChannelArg::File)]
    pub(crate) channel: ChannelArg,

    /// Let writes in the trace dirty pages of the file, which have to be written back, rather than read them
    #[arg(long)]
    pub(crate) writes: bool,

    /// The reclaim policy
    #[arg(long, value_name = "PROFILE", default_value = "classic@6.12")]
    pub(crate) policy: String,

    /// The device that misses are read from: a preset (see `pageout keys device[].preset`)
    #[arg(long, value_name = "PRESET", default_value = "nvme")]
    pub(crate) device: String,

    /// How far a file is read ahead at most while it is read in order, in KiB: `device[].read_ahead_kb`, whose default is Linux's in
    /// `run` as well. 0: nothing is read ahead, of swap neither, as cache simulators have it and as a trace of block I/O wants it,
    /// which has in it what was read ahead
    #[arg(long, value_name = "KIB", default_value_t = Device::READ_AHEAD_KB, value_parser = clap::value_parser!(u32).range(..=4_194_304))]
    pub(crate) read_ahead_kb: u32,

    /// Swap for anonymous memory
    #[arg(long, value_enum, default_value_t = SwapArg::None)]
    pub(crate) swap: SwapArg,

    /// Time the task computes between two accesses
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub(crate) think_time: String,

    #[command(flatten)]
    pub(crate) reading: ReadingOptions,

    /// Seed of the device's random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: u64,

    /// Keep the trace in memory up to this size, and read it once; a longer one is read again for each size of --memory
    #[arg(long, value_name = "SIZE", default_value_t = TRACE_MEMORY)]
    pub(crate) trace_memory: Size,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    /// Run nothing, but print the replay as a scenario, to go on from with --set and compare
    #[arg(long)]
    pub(crate) print_scenario: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// Channels by their names in scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChannelArg {
    /// read(2) of a file; writes in the trace are replayed as reads without --writes
    File,
    /// A shared mapping of a file; writes in the trace are replayed as reads without --writes
    Mapped,
    /// Private anonymous memory; needs --swap when it does not fit
    Anonymous,
}

/// Kinds of swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SwapArg {
    /// No swap
    None,
    /// On the device
    Disk,
    /// Compressed in memory
    Zram,
}
