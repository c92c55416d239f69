//! Arguments of `pageout replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use pageout_sim::scenario::{SEED_MAX, Size};
use pageout_study::bench::WarmUp;
use pageout_study::replay::parse_speed;
use pageout_study::scenario::traces::TRACE_MEMORY;

use crate::cli::options::{OutputOptions, PageOptions, ParallelOptions, ReadingOptions};

const EXAMPLES: &str = "\
Examples:
  pageout replay w92.oracleGeneral.zst --memory 30%
  pageout replay io.csv --memory 5%,10%,20%,40%,80%
  pageout replay prxy_0.csv --trace-format msr --memory 10%,30%
  pageout replay pages.u32 --memory 64MiB --channel anonymous --swap zram
  pageout replay w92.oracleGeneral.zst --ignore-size --policy lru,s3-fifo,arc,opt \\
      --memory 1%..100%/50log --report curves.html
  pageout replay io.csv --by volume --policy lru,s3-fifo,classic@6.12 --memory 256MiB
  pageout replay prxy_0.csv --trace-format msr --timed=10 --memory 10%,30%
  # on a real file, by the live page cache; the simulator's counters beside
  pageout replay pages.u32 --live data.bin --memory 20%
  pageout replay a.pgt b.pgt c.pgt \\
      --policy lru,sieve,s3-fifo:small=0.05,classic@6.12,lru@machine --memory 5%,20%
Policies are of two kinds. A textbook policy sees page numbers and counts misses, without time or devices: lru, s3-fifo, opt and others
(`pageout keys policy` lists them with their parameters). A name with @ runs in the simulated machine: a kernel's (classic@6.12,
mglru@6.12), or fifo, lru, s3-fifo and sieve as lists of that machine (lru@machine), with time, batches and readahead. What concerns the
machine alone (--channel, --device, --read-ahead-kb, --swap, --think-time, --writes) says nothing to textbook policies.

A percentage is of the distinct pages that the trace touches, as in a scenario. The replaying task runs in a cgroup, and
memory is the limit of that cgroup (memory.max). The kernel's own memory is not charged to it (kernel.memcg.kmem = false); a
scenario has it charged unless it says otherwise. All else has the defaults of a scenario.";

/// Replay traces against memory of one or several sizes under one or several policies, without a scenario file.
///
/// Prints miss ratio, runtime, device reads and refaults for each size, and for several sizes the curve. Several policies stand in one
/// table, those of textbooks and those of the machine; `opt` is the bound that none can pass.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The trace file, or several
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,

    /// Memory for the trace's pages alone: a size, or a percentage of the distinct pages in the trace; several separated by commas make a curve
    ///
    /// A range is several: 10%..100%/10 in equal steps, 1%..100%/50log by equal factors. The machine has 64 pages at least, a textbook policy one.
    #[arg(
        long,
        short,
        value_name = "SIZE|PERCENT|FROM..TO/COUNT[log]",
        value_delimiter = ',',
        default_value = "30%"
    )]
    pub(crate) memory: Vec<String>,

    /// How the pages are accessed
    #[arg(long, value_enum, default_value_t = ChannelArg::File)]
    pub(crate) channel: ChannelArg,

    /// Let writes in the trace dirty pages of the file, which have to be written back, rather than read them
    #[arg(long)]
    pub(crate) writes: bool,

    /// Policies: of a textbook (lru, s3-fifo:small=0.1, opt; see `pageout keys policy`), or with @ of the machine (classic@6.12, lru@machine);
    /// several separated by commas
    #[arg(long, value_name = "POLICY,...", default_value = "classic@6.12")]
    pub(crate) policy: Vec<String>,

    /// Tell tenants apart by this column of a CSV, or by object: the misses of each in the memory they share, alone at all sizes up to it,
    /// and the split of the memory with the fewest misses
    ///
    /// Any column will do, by its name or as #2: a volume, a process, a user. A fio log and a .pgt have `object`, a file, and an lcs `tenant`. Under a policy of the machine
    /// each tenant is a cgroup below the one that has the limit.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,

    /// Start each access at the trace's own time, or SPEED times as fast: an open loop, in the machine. What can't start waits, and its wait
    /// counts. Without it each access starts when the one before has ended, a closed loop
    #[arg(long, value_name = "SPEED", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = parse_speed)]
    pub(crate) timed: Option<f64>,

    /// Simulate so many accesses of each trace first, or so many percent of them, without counting them; textbook policies alone
    #[arg(long, value_name = "N|PERCENT")]
    pub(crate) warm_up: Option<WarmUp>,

    /// Estimate misses of textbook policies from this share of the pages, above 0 up to 1, with the spread over five samples
    #[arg(long, value_name = "RATE", conflicts_with = "exact")]
    pub(crate) sample: Option<f64>,

    /// Count every access, as without --sample
    #[arg(long)]
    pub(crate) exact: bool,

    /// Make the accesses on this real file, by the live page cache, and print its counters beside the simulated ones; once for each object
    ///
    /// One thread reads, so that both have to come to the same: exit code 4 where they don't. Writes in the trace read. The file is as long as the
    /// trace reaches, or longer.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) live: Vec<PathBuf>,

    /// Make a file of --live that is not there, as long as the trace needs it: it takes no room, and reads as zeroes
    #[arg(long, requires = "live")]
    pub(crate) make: bool,

    /// The device that misses are read from: a preset (see `pageout keys device[].preset`)
    #[arg(long, value_name = "PRESET", default_value = "nvme")]
    pub(crate) device: String,

    /// Read a file ahead up to this size while it is read in order, in KiB [default: 128, as Linux; 0 for a trace of opaque ids]
    ///
    /// It is `device[].read_ahead_kb`. 0: nothing is read ahead, of swap neither, as in cache simulators and as a trace of block I/O needs it,
    /// which contains what was read ahead. Opaque ids (oracleGeneral, lcs, keys and ids of a CSV, --read page_ids=dense) have no
    /// neighbours: they are numbered as they first appear, so what lies behind a page is what is asked for next. With a kernel policy that
    /// reads ahead, the table has `opt` as well: a bound of policies that read only what is asked for.
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(..=4_194_304))]
    pub(crate) read_ahead_kb: Option<u32>,

    /// Swap for anonymous memory
    #[arg(long, value_enum, default_value_t = SwapArg::None)]
    pub(crate) swap: SwapArg,

    /// Time the task computes between two accesses
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub(crate) think_time: String,

    #[command(flatten)]
    pub(crate) reading: ReadingOptions,

    /// Seed of the device's random numbers, and of the policy `random`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: u64,

    /// Keep a trace in memory up to this size, and read it once; a longer one is read again, for each size of --memory where the machine replays it
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
