//! Columns of a text, and the use that is made of each.

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
