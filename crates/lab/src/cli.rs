//! Options of the command line that commands share.

pub(crate) mod usage; // errors of the command line
pub(crate) mod options; // how a scenario is changed, how a trace is read, how many runs there are

pub(crate) use options::ReadingOptions;
