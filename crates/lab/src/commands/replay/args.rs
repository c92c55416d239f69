//! Arguments of `pageout replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use pageout_sim::scenario::{SEED_MAX, Size};
use pageout_study::bench::WarmUp;
use pageout_study::replay::parse_speed;
use pageout_study::scenario::traces::TRACE_MEMORY;

use crate::cli::options::{OutputOptions, PageOptions, ParallelOptions, ReadingOptions};

/// The heading of the options that textbook policies ignore.
const MACHINE: &str = "Simulated machine (policies with @)";

const EXAMPLES: &str = "\
Examples:
  # miss-ratio curves of textbook policies at 50 sizes
  pageout replay w92.oracleGeneral.zst --ignore-size --memory 1%..100%/50log \\
      --policy lru,s3-fifo,arc,opt --report curves.html
  # textbook and kernel policies, several traces
  pageout replay a.pgt b.pgt --memory 5%,20% \\
      --policy lru,s3-fifo:small=0.05,classic@6.12,lru@machine
  # tenants that share the memory
  pageout replay io.csv --by volume --policy lru,classic@6.12 --memory 256MiB
  # at ten times the speed of the trace
  pageout replay prxy_0.csv --trace-format msr --timed=10 --memory 10%,30%
  # anonymous memory with compressed swap
  pageout replay pages.u32 --memory 64MiB --channel anonymous --swap zram
  # on a real file, through the live page cache
  pageout replay pages.u32 --live data.bin --memory 20%";

/// Replay traces with several memory sizes and policies
///
/// A textbook policy (lru, s3-fifo, opt) sees page numbers and counts misses. A name with @ runs in the simulated machine, with time and
/// devices: classic@6.12, lru@machine. There the memory is a cgroup's memory.max, without the kernel's own memory. A percentage refers to the
/// distinct pages of the trace.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// Trace files
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,

    /// Sizes, for example 20%,1GiB or 1%..100%/50log
    ///
    /// 10%..100%/10 is ten equal steps, /50log is 50 equal factors
    #[arg(long, short, value_name = "A,B", value_delimiter = ',', default_value = "30%")]
    pub(crate) memory: Vec<String>,

    /// Policies; `pageout keys policy` lists them
    #[arg(long, value_name = "A,B", default_value = "classic@6.12")]
    pub(crate) policy: Vec<String>,

    /// Column of the tenants to compare, or `object`
    ///
    /// A column has a name or a number (#2)
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,

    /// First accesses, not counted (textbook)
    #[arg(long, value_name = "N|PERCENT")]
    pub(crate) warm_up: Option<WarmUp>,

    /// Share of the pages for an estimate (textbook)
    #[arg(long, value_name = "RATE", conflicts_with = "exact")]
    pub(crate) sample: Option<f64>,

    /// Count all accesses, also if this takes long
    #[arg(long, hide_short_help = true)]
    pub(crate) exact: bool,

    /// Real file for the live page cache
    ///
    /// If its counters differ from the simulated ones, the exit code is 4. One file per object; writes are replayed as reads
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) live: Vec<PathBuf>,

    /// Create a missing file of --live; it is sparse
    #[arg(long, requires = "live", hide_short_help = true)]
    pub(crate) make: bool,

    /// Access a region of anonymous memory; --live names the folder of its swap file
    ///
    /// The first access to each page writes it. With --writes, so do writes of the trace
    #[arg(long, requires = "live", conflicts_with = "make", hide_short_help = true)]
    pub(crate) region: bool,

    /// Start accesses at the trace's times, SPEED times as fast
    ///
    /// Late ones wait, and the wait counts
    #[arg(long, value_name = "SPEED", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = parse_speed, help_heading = MACHINE, hide_short_help = true)]
    pub(crate) timed: Option<f64>,

    /// Run without a clock, for misses and counters
    #[arg(long, conflicts_with_all = ["timed", "by", "live", "print_scenario"], help_heading = MACHINE, hide_short_help = true)]
    pub(crate) untimed: bool,

    /// Kind of memory
    #[arg(long, value_name = "KIND", value_enum, default_value_t = ChannelArg::File, help_heading = MACHINE, hide_short_help = true)]
    pub(crate) channel: ChannelArg,

    /// Let writes dirty pages (default: they are reads)
    #[arg(long, help_heading = MACHINE, hide_short_help = true)]
    pub(crate) writes: bool,

    /// Device of the misses
    #[arg(long, value_name = "PRESET", default_value = "nvme", help_heading = MACHINE, hide_short_help = true)]
    pub(crate) device: String,

    /// Readahead [default: 128; 0 for opaque ids]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(..=4_194_304), help_heading = MACHINE, hide_short_help = true)]
    pub(crate) read_ahead_kb: Option<u32>,

    /// Swap for anonymous memory
    #[arg(long, value_name = "KIND", value_enum, default_value_t = SwapArg::None, help_heading = MACHINE, hide_short_help = true)]
    pub(crate) swap: SwapArg,

    /// CPU time between two accesses
    #[arg(long, value_name = "DURATION", default_value = "0s", help_heading = MACHINE, hide_short_help = true)]
    pub(crate) think_time: String,

    #[command(flatten)]
    pub(crate) reading: ReadingOptions,

    /// Seed of the device and of `random`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=SEED_MAX), hide_short_help = true)]
    pub(crate) seed: u64,

    /// Limit to keep a trace in memory
    #[arg(long, value_name = "SIZE", default_value_t = TRACE_MEMORY, hide_short_help = true)]
    pub(crate) trace_memory: Size,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    /// Print the replay as a scenario, run nothing
    #[arg(long)]
    pub(crate) print_scenario: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// Kinds of memory, with the names that scenarios use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChannelArg {
    /// read(2) of a file
    File,
    /// A shared mapping of a file
    Mapped,
    /// Private anonymous memory, which needs --swap if it does not fit
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
