//! Printing: tables and summaries as people read them, files of results, progress and signals.

pub(crate) mod summary; // a run in words and tables
pub(crate) mod access; // how long accesses took, by what made them wait
pub(crate) mod remarks; // what is said around figures
pub(crate) mod visible; // names that a terminal does not obey
pub(crate) mod layout; // words and tables that fit
mod table; // aligned columns
mod damon; // what schemes did
pub(crate) mod options; // where results go, and in which form
pub(crate) mod form; // in which form a result is printed
pub(crate) mod csv; // a row an element of a result's list
#[cfg(feature = "parquet")]
mod parquet; // the same rows, with types
pub(crate) mod output; // where results and remarks go
pub(crate) mod outputs; // files that are no input, and no other result
pub(crate) mod streamed; // results that are written while they come
pub(crate) mod timeline; // rows of them, for plotting
pub(crate) mod unfinished; // files that have a name when they are whole
pub(crate) mod progress; // a bar where someone sees it

pub(crate) use layout::Layout;
pub(crate) use output::Output;
pub(crate) use pageout_study::figures; // numbers with their units
pub(crate) use progress::Terminal;
