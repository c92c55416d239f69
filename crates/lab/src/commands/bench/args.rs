//! Arguments of `pageout bench`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_sim::scenario::{SEED_MAX, Size};

use crate::cli::options::{OutputOptions, ReadingOptions};

const EXAMPLES: &str = "\
Examples:
  # Zipf reads of a file that is four times the budget
  pageout bench
  # an existing file
  pageout bench segment.bin --load uniform --budget 256MiB
  # the cost of a hit: all pages fit
  pageout bench --size 128MiB --budget 160MiB
  # the same, for one byte per page and without a copy
  pageout bench --size 128MiB --budget 160MiB --in-place
  # the cost of a miss, with 32 reads per call
  pageout bench --load uniform --cold --batch 32
  # a trace, compared with buffered reads only
  pageout bench --load w92.oracleGeneral.zst --policy classic@6.12 \\
      --beside buffered

Readers (--beside; `kernel` is the first two):
  buffered   pread(2) through the kernel's page cache
  mmap       copies from a mapping of the file
  direct     pread(2) with O_DIRECT, without a cache
  io_uring   the same with io_uring, up to 64 pages in flight
  memcpy     copies from plain memory, without a budget: the upper bound";

/// Compare the live page cache with the kernel's, on a real file
///
/// The live page cache (crate `pageout`) is this program's reclaim over real memory and direct I/O. Each reader is a process; the order
/// changes per round. Readers that use the kernel's page cache run in a cgroup with equal memory. A FILE is only read. Without FILE, a
/// nameless file is created, which disappears with the program.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// The file to read; by default one is created
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    /// `zipf[:EXPONENT]`, uniform, sequential, or a trace
    #[arg(long, short, value_name = "LOAD", default_value = "zipf")]
    pub(crate) load: String,

    /// Memory for the pages of each reader
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub(crate) budget: Size,

    /// Size of the created file [default: 4 budgets]
    #[arg(long, value_name = "SIZE", conflicts_with = "file")]
    pub(crate) size: Option<Size>,

    /// Folder of the created file [default: the temporary one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "file", hide_short_help = true)]
    pub(crate) folder: Option<PathBuf>,

    /// Policy of the page cache
    #[arg(long, value_name = "PROFILE", default_value = "classic@6.12")]
    pub(crate) policy: String,

    /// Other readers, or `none` [default: all]
    ///
    /// memcpy is included up to 1 GiB
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) beside: Vec<String>,

    /// Reads per thread and round
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) reads: u64,

    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// Threads per reader
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,

    /// Pages per call
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) batch: u16,

    /// Load one byte per page, without a copy
    #[arg(long, conflicts_with = "batch")]
    pub(crate) in_place: bool,

    /// Start each round with empty memory
    #[arg(long)]
    pub(crate) cold: bool,

    /// Read through the kernel's page cache, without O_DIRECT; a page may be in memory twice
    #[arg(long, hide_short_help = true)]
    pub(crate) buffered: bool,

    /// Fail if the kernel's readers cannot get equal memory
    #[arg(long, hide_short_help = true)]
    pub(crate) equal_memory: bool,

    /// Seed of the random pages
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=SEED_MAX), hide_short_help = true)]
    pub(crate) seed: u64,

    /// Run as the process of one reader, with its parameters on standard input
    #[arg(long, hide = true)]
    pub(crate) reader: bool,

    #[command(flatten)]
    pub(crate) reading: ReadingOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
