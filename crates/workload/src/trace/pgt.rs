//! `.pgt`, the project's own trace format: dense, checked block by block, replayed without hashing.
//!
//! ```text
//!   header   32 bytes   magic 8 | version u16 | flags u16 | page size u32 | zeros 12 | crc32 of the 28 before
//!   block    24 bytes   kind u32 | items u32 | raw bytes u32 | stored bytes u32 | crc32 of the payload
//!                       | crc32 of the 20 before
//!            payload    zstd frame of the raw bytes, each block by itself
//!   ...
//!   in order:  kind 1  accesses    up to 65536 an block: see `block`
//!              kind 2  objects     name (length, UTF-8) and pages of each: what replay sizes things by; since
//!                                  version 2 also its distinct pages, and accesses that write
//!              kind 3  ids         only on request: object, id, index of each page, as the source called it
//!              kind 4  end         stored plain: accesses u64 | source records u64 | objects u64 | ids u64
//!                                  | offset of the first block after the accesses u64; then the file ends
//! ```
//!
//! Flags are 0 before version 3. Since then bit 0 means that the source does not mark writes, so that no access writes. Bit 1 means that pages were
//! numbered in order of first appearance, like opaque ids: pages 7 and 8 are not neighbours. A file whose numbers are places has the bit clear.
//!
//! All numbers are little-endian; raw bytes are varints. A conversion streams and learns the tables last, so they are at the end.
//! The end block has a fixed length and is found from the file's end. Every byte is under a checksum or compared with a
//! constant, so a flipped bit is found, and located to its block. A file that lacks its end block was cut short. Times are
//! not kept: a replay's clock is the machine's.

mod block; // frames, checksums, and accesses as varints
mod reader; // replay
mod tables; // objects, original ids, and the end block
mod writer; // conversion

pub(super) use reader::PgtReader;
pub(super) use tables::{END_BYTES, Tables, read_end, read_tables};
pub use writer::PgtWriter;

use std::ops::RangeInclusive;

use super::footprint::Footprint;
use super::format::Format;
use super::requests::Requests;

/// First bytes of a `.pgt`. Like PNG's, they show a transfer that changed line ends or stripped the eighth bit.
pub(super) const MAGIC: &[u8] = Format::Pgt.magic();

/// What is written, and what is read: version 1 does not say how many distinct pages there are, and only version 3 whether it is
/// known which accesses write.
const VERSION: u16 = 3;
const VERSIONS: RangeInclusive<u16> = 1..=VERSION;
const HEADER_BYTES: usize = 32;
/// A flag: it is not known which accesses write.
const FLAG_WRITES_UNKNOWN: u16 = 1;
/// A flag: pages were numbered as they came, so that adjacent numbers are not neighbours.
const FLAG_NO_NEIGHBOURS: u16 = 2;

/// The header of a `.pgt`, and the tables behind its accesses that can be read without them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// The objects by number.
    pub objects: Vec<ObjectInfo>,
    /// Accesses in the trace.
    pub accesses: u64,
    /// Records of the trace that it was converted from; one record can be several accesses or none.
    pub records: u64,
    /// Bytes of a page.
    pub page_size: u32,
    /// True if the trace says which accesses write; where it does not, none does.
    pub tells_writes: bool,
    /// True if the numbers of pages are places, so that adjacent numbers are neighbours.
    pub has_neighbours: bool,
    /// The footprint of the file's accesses; `None` in files of version 1, which don't have it.
    pub footprint: Option<Footprint>,
    /// The records that are not accesses, right after a conversion; a `.pgt` does not keep them.
    pub requests: Option<Requests>,
}

/// An object of a `.pgt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// The object's name in the source of the trace, or `object-N`.
    pub name: String,
    /// One more than the highest page accessed.
    pub pages: u64,
}
