//! `pageout trace`: what a trace holds, and conversion to `.pgt`.

mod convert;
mod info;
mod options;

pub(crate) use convert::convert;
pub(crate) use info::info;
pub(crate) use options::{read_options, read_table, remark_interpretation};
