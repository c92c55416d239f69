//! The interpretation of a trace: how its bytes are understood, told to the user who must believe the result.
//!
//! A trace seldom says what it means. A column left out merges disks. A sector taken for a byte shrinks a disk. A number with high
//! bits set is a page or a word. So a reader tells how it has read each column, and what it doubts.

use std::path::Path;

use super::error::TraceError;
use super::format::Format;
use super::open::open_to_look;
use super::options::ReadOptions;
use super::replay::TraceReader;

/// Accesses of a text whose units are looked at.
const LOOKED_AT: usize = 1 << 12;

/// How a trace is understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Interpretation {
    /// The format it is read as.
    pub format: Format,
    /// Bytes a page: what the trace says itself, or else what it is read with.
    pub page_size: u32,
    /// Whether it says which accesses write; where it does not, all are taken for reads.
    pub tells_writes: bool,
    /// Whether the numbers of its pages are places, so that those beside each other are neighbours. Opaque ids have none, nor have
    /// pages that are numbered anew.
    pub has_neighbours: bool,
    /// The columns of a text that has them, in their order.
    pub columns: Vec<Column>,
    /// Columns or values that may have been meant otherwise, each with what to do then.
    pub doubts: Vec<String>,
}

/// A column of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's place in a line, from 1.
    pub place: usize,
    /// The column's name in the header line or the format; empty where it has none.
    pub name: String,
    /// The use that is made of the column.
    pub holds: ColumnUse,
}

/// The use that is made of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnUse {
    /// When the access was. Nothing but `info` looks at it.
    Time,
    /// What the place is within: a volume, a file, a host. Several such columns are one object together.
    Object,
    /// The column is an opaque id.
    Id,
    /// A page number within the object.
    Page,
    /// An offset within the object.
    Offset {
        /// Bytes in a unit of it.
        unit: u64,
    },
    /// How much is accessed.
    Size {
        /// Bytes in a unit of it.
        unit: u64,
    },
    /// The column says whether the access reads or writes.
    Op,
    /// How many requests the line stands for.
    Count,
    /// A time to live. Lines that have one are counted, and nothing else is made of it.
    Ttl,
    /// The column is not read.
    Ignored,
}

impl ColumnUse {
    /// The name of the use, as the read options have it.
    pub const fn name(self) -> &'static str {
        match self {
            ColumnUse::Time => "time",
            ColumnUse::Object => "object",
            ColumnUse::Id => "id",
            ColumnUse::Page => "page",
            ColumnUse::Offset { .. } => "offset",
            ColumnUse::Size { .. } => "size",
            ColumnUse::Op => "op",
            ColumnUse::Count => "count",
            ColumnUse::Ttl => "ttl",
            ColumnUse::Ignored => "ignored",
        }
    }

    /// Bytes in a unit of the column, where it counts bytes.
    pub const fn unit(self) -> Option<u64> {
        match self {
            ColumnUse::Offset { unit } | ColumnUse::Size { unit } => Some(unit),
            _ => None,
        }
    }
}

/// Tells how the trace at `path` is understood. It is read no further than that takes, which is to its end only where
/// its bytes can mean two things.
pub fn interpretation(path: &Path, options: &ReadOptions) -> Result<Interpretation, TraceError> {
    let mut reader = open_to_look(path, options)?;
    let mut chunk = Vec::new();
    while reader.is_ambiguous() && reader.fill(&mut chunk, 1 << 16)? > 0 {
        chunk.clear();
    }
    if !reader.columns().is_empty() {
        // Units that don't fit show in the values. What can't be read is told by whoever reads on.
        _ = reader.fill(&mut chunk, LOOKED_AT);
    }
    Ok(Interpretation::of(&*reader))
}

impl Interpretation {
    /// What `reader` can say, as far as it has read.
    pub(super) fn of(reader: &dyn TraceReader) -> Interpretation {
        Interpretation {
            format: reader.format(),
            page_size: reader.page_size(),
            tells_writes: reader.tells_writes(),
            has_neighbours: reader.has_neighbours(),
            columns: reader.columns().to_vec(),
            doubts: reader.doubts(),
        }
    }
}
