//! `pageout trace`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use super::options::{OutputOptions, ReadingOptions};

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Read a trace to its end and say what is in it.
    #[command(
        after_long_help = "Examples:\n  pageout trace info w92.oracleGeneral.zst\n  pageout trace info blocks.csv --read csv.offset=lba --read csv.offset_unit=512 --json\n  pageout trace info io_traces.csv --format alibaba"
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
}
