//! Arguments of `pageout trace`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum, ValueHint};

use super::options::{OutputOptions, ReadingOptions};

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Read a trace to its end and say what is in it.
    #[command(
        after_long_help = "Examples:\n  pageout trace info w92.oracleGeneral.zst\n  pageout trace info blocks.csv --read csv.offset=lba --read csv.offset_unit=512 --json\n  pageout trace info io_traces.csv --trace-format alibaba"
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
        after_long_help = "Examples:\n  pageout trace convert w92.oracleGeneral.zst w92.pgt\n  pageout trace convert blocks.csv blocks.pgt --read csv.id=key --read csv.size=bytes\nThe output appears under its name only when it is whole. Into a pipe or device it goes as it comes,\nand what is said about it to standard error."
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
        after_long_help = "Examples:\n  pageout trace compressibility dump.rdb\n  pageout trace compressibility 4711                       what this process has in memory\n  pageout trace compressibility 4711 --compressor zstd --json\nOf a process what can be swapped out is read, by kind of mapping: heap, stack, other anonymous memory, private pages of files, shared\nmemory; pages that it never touched are left out. It takes the right to trace the process (its owner's, or root). A file that is\ncalled by a number is ./4711.\nlzo-rle, which zram takes where nothing else is set, is not among them: no library that could be linked here writes what the kernel does. Beside\nzram of Linux 6.18, on C source and the heap of a Python program, lz4 here comes to the same within 0.4 %, and lzo-rle to 4 % and 10 % less\nthan that, so lz4 is the one to take for it.\nWhat is printed last goes into a [[task.object]], or a [[swap]] of kind zram."
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
