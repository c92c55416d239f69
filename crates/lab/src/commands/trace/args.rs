//! Arguments of `pageout trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::cli::options::{OutputOptions, ReadingOptions};

const INFO_EXAMPLES: &str = "\
Examples:
  # a trace whose format is detected
  pageout trace info w92.oracleGeneral.zst
  # a CSV with block numbers
  pageout trace info blocks.csv --read csv.offset=lba --read csv.offset_unit=512
  # a CSV without a header
  pageout trace info io_traces.csv --trace-format alibaba";

const CONVERT_EXAMPLES: &str = "\
Examples:
  # a trace whose format is detected
  pageout trace convert w92.oracleGeneral.zst w92.pgt
  # a CSV with other column names
  pageout trace convert blocks.csv blocks.pgt --read csv.id=key \\
      --read csv.size=bytes";

const COMPRESSIBILITY_EXAMPLES: &str = "\
Examples:
  # a file
  pageout trace compressibility dump.rdb
  # the memory of a process, here the shell
  pageout trace compressibility $$
  # scenario keys for zstd
  pageout trace compressibility $$ --compressor zstd";

/// Inspect and convert traces
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// The commands of `pageout trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Print the content of a trace
    ///
    /// The trace is read to its end.
    #[command(
        after_long_help = INFO_EXAMPLES
    )]
    Info {
        /// Trace files
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        trace: Vec<PathBuf>,

        #[command(flatten)]
        reading: ReadingOptions,

        #[command(flatten)]
        output: OutputOptions,
    },

    /// Convert a trace to .pgt
    ///
    /// A .pgt file is compact, has checksums per block, and replays without hashing. It gets its name when it is complete. A pipe or device
    /// receives it as it is written, and the result goes to standard error.
    #[command(
        after_long_help = CONVERT_EXAMPLES
    )]
    Convert {
        /// Trace file
        #[arg(value_hint = ValueHint::FilePath)]
        from: PathBuf,

        /// New .pgt file
        #[arg(value_hint = ValueHint::FilePath)]
        to: PathBuf,

        /// Replace an existing file, but never the trace itself
        #[arg(long, short)]
        force: bool,

        #[command(flatten)]
        reading: ReadingOptions,

        #[command(flatten)]
        output: OutputOptions,
    },

    /// Measure the compressed size of pages
    ///
    /// The last lines are keys for a `[[task.object]]`, or for a `[[swap]]` of kind zram. A process is read by kind of mapping:
    /// heap, stack, other anonymous memory, private file pages, shared memory. Untouched pages are ignored. This needs the right to trace the process. A file whose name
    /// is a number is ./4711.
    ///
    /// zram's default lzo-rle is missing, because no library has the kernel's algorithm. Use lz4 for it. On C source
    /// and the heap of a Python program, lz4 here is within 0.4 % of zram in Linux 6.18, and lzo-rle there is 4 % and 10 % smaller than lz4.
    #[command(
        after_long_help = COMPRESSIBILITY_EXAMPLES
    )]
    Compressibility {
        /// Files or process ids
        #[arg(required = true, value_name = "FILE|PID", value_hint = ValueHint::FilePath)]
        what: Vec<PathBuf>,

        /// Compressor of the scenario keys; the table has all
        #[arg(long, value_name = "NAME", value_enum, default_value_t = Compressor::Lz4)]
        compressor: Compressor,

        /// Maximum number of pages per region, evenly spread
        #[arg(long, value_name = "PAGES", default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(1..))]
        sample: u64,

        #[command(flatten)]
        output: OutputOptions,
    },
}

/// A compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compressor {
    Lz4,
    /// At level 3, the kernel's default.
    Zstd,
}
