//! `pageout trace`: what a trace holds, conversion to `.pgt`, and what pages compress to.

pub(crate) mod args; // what can be asked
mod compressibility; // what pages compress to
mod convert;
mod info;
mod options;

pub(crate) use options::{read_options, read_table, remark_interpretation};

use crate::failure::Outcome;
use args::{TraceArgs, TraceCommand};

/// Does with traces what was asked for.
pub(crate) fn run(args: &TraceArgs) -> Outcome {
    match &args.command {
        TraceCommand::Info { trace, reading, output } => info::info(trace, reading, output),
        TraceCommand::Convert { from, to, force, reading, output } => {
            convert::convert(from, to, *force, reading, output)
        }
        TraceCommand::Compressibility { what, compressor, sample, output } => {
            compressibility::compressibility(what, *compressor, *sample, output)
        }
    }
}
