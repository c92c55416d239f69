//! `pageout trace`: what a trace holds, conversion to `.pgt`, and what pages compress to.

mod compressibility; // what pages compress to
mod convert;
mod info;
mod memory; // the pages of a file or a process
mod options;

pub(crate) use compressibility::compressibility;
pub(crate) use convert::convert;
pub(crate) use info::info;
pub(crate) use options::{read_options, read_table, remark_interpretation};
