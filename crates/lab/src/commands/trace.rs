//! `pageout trace`: what a trace holds, conversion to `.pgt`, and what pages compress to.

pub(crate) mod args; // what can be asked
mod compressibility; // what pages compress to
mod convert;
mod info;
mod options;

pub(crate) use options::{read_document, read_options, read_table};

use crate::context::Context;
use crate::failure::Outcome;
use args::{TraceArgs, TraceCommand};

/// Does with traces what was asked for.
pub(crate) fn run(args: &TraceArgs, cx: &Context) -> Outcome {
    match &args.command {
        TraceCommand::Info { trace, reading, .. } => info::info(trace, reading, cx),
        TraceCommand::Convert { from, to, force, reading, .. } => {
            convert::convert(from, to, *force, reading, cx)
        }
        TraceCommand::Compressibility { what, compressor, sample, .. } => {
            compressibility::compressibility(what, *compressor, *sample, cx)
        }
    }
}
