//! Recorded traces: from a file of any known format to a stream of accesses, and to the project's own `.pgt`.
//!
//! ```text
//!   file ─▶ Source ─────▶ one RecordReader a format ─▶ Replay ──────────────▶ accesses ─▶ open, info, convert
//!           unzstd,       what a record says:          splits byte ranges
//!           offsets       object, id or place, op      into pages, interns ids
//!        └▶ Source ─────▶ PgtReader ─────────────────────────────────────────▶ accesses
//! ```
//!
//! **Ids and places.** A format gives either *places* or *opaque ids*. Places are page numbers or byte offsets within an object: words, page lists,
//! fio logs, CSV columns `page` and `offset`. Opaque ids are those of oracleGeneral and of the CSV column `id`. Places are kept, because neighbours
//! matter to readahead and page tables. Ids are numbered in order of first appearance by a hash table while reading; [`convert()`] does that once,
//! and replaying the `.pgt` hashes nothing. [`PageIds`] overrides either choice.
//!
//! Traces stream in constant memory except for that table; [`load()`] reads one once and keeps it, up to a budget. Any reader also reads the `zstd`
//! form of its format.

mod error; // where and why reading failed
mod formats; // which formats there are: a row each
mod format; // their names, and how a file's is told
mod options; // how to read: page size, sizes, ids, CSV columns

mod file; // files, opened
mod zstd; // compressed bytes, where the library is linked
mod source; // bytes with a position: decompression, fixed records, lines

mod intern; // dense page numbers for sparse ids
mod column; // columns of a text, and their use
mod text; // parts of lines
mod chunk; // accesses read many at a time
mod record; // what one record of a foreign format says
mod requests; // counts over the records, besides accesses
mod replay; // from records to accesses

mod csv; // text with columns
mod fio_iolog; // fio's I/O log, versions 2 and 3
mod lcs; // libCacheSim's format with a header
mod oracle_general; // libCacheSim's binary format
mod parquet; // columns of a Parquet file, as text
mod page_list; // bare page numbers
mod pages_text; // the same as text
mod vscsi; // VMware's block traces
mod words; // the ground truth's packed words

mod pgt; // the project's own format

mod footprint; // what a trace touches
mod packed; // accesses in memory, four bytes each

mod file_calls; // what a task did with whole files between its accesses

mod bytes_ahead; // bytes of a file, read by another thread
mod ahead; // read by another thread, ahead of its user
mod dense; // a trace as cache simulators want it: page numbers without gaps
mod convert; // any trace, or any stream, to `.pgt`
mod info; // what a trace holds
mod interpretation; // what its bytes were taken for
mod load; // a trace read once and kept in memory
mod details; // when each access was, and whose
mod parted; // a trace kept in memory by tenant
mod open; // from a path to a reader

pub use column::{Column, ColumnUse};
pub use convert::{convert, record};
pub use dense::{DenseReader, Numbering, Removal};
pub use details::{Detail, DetailReader};
pub use error::{Place, TraceError};
pub use file_calls::{COLUMNS as FILE_CALL_COLUMNS, FileCall, PlacedCall, file_calls};
pub use footprint::{Footprint, ObjectFootprint};
pub(crate) use format::Use;
pub use format::{Format, UnknownFormat};
pub use info::{TimeSpan, TraceInfo, info};
pub use intern::OriginalId;
pub use interpretation::{Interpretation, interpretation};
pub use load::{Loaded, keep, load, load_within};
pub use open::{from_reader, has_neighbours, header, open, open_ahead, original_ids};
pub use options::{ColumnNames, CsvOptions, Delimiter, PageIds, ReadOptions, TimeUnit};
pub use packed::Packed;
pub use parted::{Outlier, Part, Parted, load_parted};
pub use pgt::{ObjectInfo, PgtWriter, TraceHeader};
pub use record::TENANTS_MAX;
pub use requests::Requests;
