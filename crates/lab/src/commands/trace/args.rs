//! Arguments of `pageout trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::cli::options::{OutputOptions, ReadingOptions};

const INFO_EXAMPLES: &str = "\
Examples:
  pageout trace info w92.oracleGeneral.zst
  pageout trace info blocks.csv --read csv.offset=lba --read csv.offset_unit=512 --json
  pageout trace info io_traces.csv --trace-format alibaba";

const CONVERT_EXAMPLES: &str = "\
Examples:
  pageout trace convert w92.oracleGeneral.zst w92.pgt
  pageout trace convert blocks.csv blocks.pgt --read csv.id=key --read csv.size=bytes
The output appears under its name only when it is whole. Into a pipe or device it goes as it comes,
and what is said about it to standard error.";

const COMPRESSIBILITY_EXAMPLES: &str = "\
Examples:
  pageout trace compressibility dump.rdb
  # what a process has in memory, here the shell
  pageout trace compressibility $$
  pageout trace compressibility $$ --compressor zstd --json
Of a process what can be swapped out is read, by kind of mapping: heap, stack, other anonymous memory, private pages of files, shared
memory; pages that it never touched are left out. It takes the right to trace the process (its owner's, or root). A file that is
called by a number is ./4711.
lzo-rle, which zram takes where nothing else is set, is not among them: no library that could be linked here writes what the kernel does. Beside
zram of Linux 6.18, on C source and the heap of a Python program, lz4 here comes to the same within 0.4 %, and lzo-rle to 4 % and 10 % less
than that, so lz4 is the one to take for it.
What is printed last goes into a [[task.object]], or a [[swap]] of kind zram.";

/// Look into traces, and convert them.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Read a trace to its end and say what is in it.
    #[command(
        after_long_help = INFO_EXAMPLES
    )]
    Info {
        /// The trace files
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        trace: Vec<PathBuf>,

        #[command(flatten)]
        reading: ReadingOptions,

        #[command(flatten)]
        output: OutputOptions,
    },

    /// Convert a trace to .pgt, which is compact, checked block by block, and replayed without hashing.
    #[command(
        after_long_help = CONVERT_EXAMPLES
    )]
    Convert {
        /// The trace file
        #[arg(value_hint = ValueHint::FilePath)]
        from: PathBuf,

        /// The file to write; must not exist unless --force
        #[arg(value_hint = ValueHint::FilePath)]
        to: PathBuf,

        /// Overwrite the output; never the trace itself
        #[arg(long, short)]
        force: bool,

        #[command(flatten)]
        reading: ReadingOptions,

        #[command(flatten)]
        output: OutputOptions,
    },

    /// Measure what the pages of files and processes compress to, and print the keys of a scenario that say so.
    #[command(
        after_long_help = COMPRESSIBILITY_EXAMPLES
    )]
    Compressibility {
        /// Files, or numbers of processes
        #[arg(required = true, value_name = "FILE|PID", value_hint = ValueHint::FilePath)]
        what: Vec<PathBuf>,

        /// By which compressor the keys of a scenario are; the table has all
        #[arg(long, value_enum, default_value_t = Compressor::Lz4)]
        compressor: Compressor,

        /// Pages of a region that are compressed at most, evenly spread over it
        #[arg(long, value_name = "PAGES", default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(1..))]
        sample: u64,

        #[command(flatten)]
        output: OutputOptions,
    },
}

/// What compresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compressor {
    Lz4,
    /// At level 3, as the kernel's zstd does unless told otherwise.
    Zstd,
}
