//! Arguments of `pageout bench`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_sim::scenario::{SEED_MAX, Size};

use crate::cli::options::{OutputOptions, ReadingOptions};

const EXAMPLES: &str = "\
Examples:
  # Zipf over a file four times the budget
  pageout bench
  pageout bench segment.bin --load uniform --budget 256MiB
  # all of it fits: what a hit costs
  pageout bench --size 128MiB --budget 160MiB
  # the same of one byte of a page, where it lies
  pageout bench --size 128MiB --budget 160MiB --in-place
  # nothing is in memory, and reads are made 32 at a time
  pageout bench --load uniform --cold --batch 32
  pageout bench --load w92.oracleGeneral.zst --policy classic@6.12 --beside buffered
Who reads beside this program's page cache (--beside; `kernel` is the first two):
  buffered   pread(2), through the kernel's page cache
  mmap       a mapping of the file, copied from
  direct     pread(2) with O_DIRECT: nothing is kept
  io_uring   the same by io_uring, up to 64 pages of a call at once
  memcpy     the file in plain memory, without a budget: what no cache can beat
Each reads in a process of its own, one after the other in each round, in an order that turns. What uses the kernel's page cache is in a memory cgroup
whose limit is the budget and what the processes take by themselves; where none can be made, that is said, and --equal-memory makes it an error.
A file of one's own is only read. The one that is made has no name, and is gone with the program, however that ends.
`cargo run --release -p pageout-bench` takes the same options, and has caches of others beside this one.";

/// Read a real file through the live page cache, and beside it through the kernel's, with as little memory.
///
/// The live page cache (the crate `pageout`) is this program's reclaim with real memory and direct I/O. Throughput and CPU time are told round by round beside
/// those of buffered reads, a mapping, direct reads and plain memory, with latencies, bytes read from the device, and memory that was taken.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// The file to read; without one a file is made (--size)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    /// Which pages are read: zipf (or zipf:0.8, with another exponent than 0.99), uniform, sequential, or a trace, by its file
    #[arg(long, short, value_name = "LOAD|TRACE", default_value = "zipf")]
    pub(crate) load: String,

    /// Memory that each may have for pages: the budget of the page cache, the limit of the cgroup
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub(crate) budget: Size,

    /// How large a file is to be made. Default: four times the budget, or as the trace needs it
    #[arg(long, value_name = "SIZE", conflicts_with = "file")]
    pub(crate) size: Option<Size>,

    /// The folder that a file is made in. Default: the system's for temporary files
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "file")]
    pub(crate) folder: Option<PathBuf>,

    /// The kernel whose reclaim decides in the page cache: a profile, as `pageout keys kernel.profile` names them
    #[arg(long, value_name = "PROFILE", default_value = "mglru@6.12")]
    pub(crate) policy: String,

    /// Who else reads; `none` for nobody. Default: all that there are, memcpy where the file is at most 1 GiB
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) beside: Vec<String>,

    /// Reads of a thread in each round
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) reads: u64,

    /// Rounds in which each reads once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// Threads that read, each other pages
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,

    /// Pages that are read by one call
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) batch: u16,

    /// Look at one byte of each page where it lies, and copy nothing: a guard here, a load from a mapping there
    #[arg(long, conflicts_with = "batch")]
    pub(crate) in_place: bool,

    /// Have nothing in memory when a round begins
    #[arg(long)]
    pub(crate) cold: bool,

    /// Let the page cache read through the kernel's: for a file system without O_DIRECT. Pages may be in memory twice then
    #[arg(long)]
    pub(crate) buffered: bool,

    /// Refuse to measure where what uses the kernel's page cache can't have as little memory
    #[arg(long)]
    pub(crate) equal_memory: bool,

    /// Seed of the pages that are drawn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: u64,

    /// Be the process of one that reads: all else is on standard input
    #[arg(long, hide = true)]
    pub(crate) reader: bool,

    #[command(flatten)]
    pub(crate) reading: ReadingOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
