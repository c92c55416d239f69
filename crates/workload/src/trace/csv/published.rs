//! Published collections of traces whose columns are known: lines without a header, or with the one that their
//! documentation gives.
//!
//! None of them is taken for granted. To a parser the columns of one are as good as another's, so the user must name the format. A
//! line that looks like one of them only makes a suggestion.
//!
//! Sources: the collections' own descriptions. MSR Cambridge: SNIA IOTTA, "MSR Cambridge Block I/O Traces". Alibaba:
//! github.com/alibaba/block-traces. Tencent: SNIA IOTTA, "Tencent Block Storage Traces". SPC: UMass Trace Repository,
//! "SPC Trace File Format Specification". Lis: the traces of N. Megiddo and D. S. Modha, ARC, FAST 2003. Twitter:
//! github.com/twitter/cache-trace (J. Yang and others, OSDI 2020). Wikipedia: "Analytics/Data Lake/Traffic/Caching" at wikitech.wikimedia.org, the data of
//! 2019. LRB: github.com/sunnyszy/lrb (Z. Song and others, NSDI 2020), the format that its documentation gives.

use super::super::column::{Column, ColumnUse};
use super::super::format::Format;
use super::super::options::Delimiter;

const SECTOR: u64 = 512;

/// A collection's columns.
pub(super) struct Published {
    pub(super) format: Format,
    /// What people call its traces.
    pub(super) title: &'static str,
    /// Names and uses, in order.
    columns: &'static [(&'static str, ColumnUse)],
    /// Unit of the times.
    pub(super) time_unit: &'static str,
    /// Returns true if fields, at least one per column, could be one of its lines.
    fits: fn(&[&[u8]]) -> bool,
    /// What is between two columns, if it is not the usual.
    pub(super) delimiter: Option<Delimiter>,
}

/// A unit that is as many bytes as a page has.
const PAGE: u64 = 0;

const ALL: [Published; 9] = [
    Published {
        format: Format::Msr,
        title: "the MSR Cambridge traces",
        columns: &[
            ("Timestamp", ColumnUse::Time),
            ("Hostname", ColumnUse::Object),
            ("DiskNumber", ColumnUse::Object),
            ("Type", ColumnUse::Op),
            ("Offset", ColumnUse::Offset { unit: 1 }),
            ("Size", ColumnUse::Size { unit: 1 }),
            ("ResponseTime", ColumnUse::Ignored),
        ],
        // Windows counts from 1601.
        time_unit: "x 100 ns",
        fits: |fields| are_whole(fields, &[0, 2, 4, 5, 6]) && is_op(fields[3]),
        delimiter: None,
    },
    Published {
        format: Format::Alibaba,
        title: "Alibaba's block traces",
        columns: &[
            ("device_id", ColumnUse::Object),
            ("opcode", ColumnUse::Op),
            ("offset", ColumnUse::Offset { unit: 1 }),
            ("length", ColumnUse::Size { unit: 1 }),
            ("timestamp", ColumnUse::Time),
        ],
        time_unit: "us",
        fits: |fields| are_whole(fields, &[0, 2, 3, 4]) && is_op(fields[1]),
        delimiter: None,
    },
    Published {
        format: Format::Tencent,
        title: "Tencent's CBS traces",
        columns: &[
            ("timestamp", ColumnUse::Time),
            ("offset", ColumnUse::Offset { unit: SECTOR }),
            ("size", ColumnUse::Size { unit: SECTOR }),
            ("iotype", ColumnUse::Op),
            ("volumeid", ColumnUse::Object),
        ],
        time_unit: "s",
        fits: |fields| are_whole(fields, &[0, 1, 2, 3, 4]) && matches!(fields[3], b"0" | b"1"),
        delimiter: None,
    },
    Published {
        format: Format::Spc,
        title: "the SPC traces",
        columns: &[
            ("ASU", ColumnUse::Object),
            ("LBA", ColumnUse::Offset { unit: SECTOR }),
            ("Size", ColumnUse::Size { unit: 1 }),
            ("Opcode", ColumnUse::Op),
            ("Timestamp", ColumnUse::Time),
        ],
        time_unit: "s",
        fits: |fields| are_whole(fields, &[0, 1, 2]) && is_op(fields[3]) && is_number(fields[4]),
        delimiter: None,
    },
    Published {
        format: Format::Lis,
        title: "the traces of ARC's authors",
        columns: &[
            ("first block", ColumnUse::Offset { unit: PAGE }),
            ("blocks", ColumnUse::Size { unit: PAGE }),
            ("ignored", ColumnUse::Ignored),
            ("request", ColumnUse::Ignored),
        ],
        time_unit: "",
        // Four numbers are anything: nothing but the name of a file says so.
        fits: |_| false,
        delimiter: Some(Delimiter::Blanks),
    },
    Published {
        format: Format::Twitter,
        title: "Twitter's cache traces",
        // An object is its key and its value.
        columns: &[
            ("timestamp", ColumnUse::Time),
            ("anonymized key", ColumnUse::Id),
            ("key size", ColumnUse::Size { unit: 1 }),
            ("value size", ColumnUse::Size { unit: 1 }),
            ("client id", ColumnUse::Ignored),
            ("operation", ColumnUse::Op),
            ("TTL", ColumnUse::Ttl),
        ],
        time_unit: "s",
        fits: |fields| are_whole(fields, &[0, 2, 3, 4, 6]) && TWITTER_OPS.contains(&fields[5].trim_ascii()),
        delimiter: None,
    },
    Published {
        format: Format::Wikipedia,
        title: "Wikimedia's caching data of uploads",
        columns: &[
            ("relative_unix", ColumnUse::Time),
            ("hashed_path_query", ColumnUse::Id),
            ("image_type", ColumnUse::Ignored),
            ("response_size", ColumnUse::Size { unit: 1 }),
            ("time_firstbyte", ColumnUse::Ignored),
        ],
        time_unit: "s",
        fits: |_| false,
        delimiter: Some(Delimiter::Byte(b'\t')),
    },
    Published {
        format: Format::Wikipedia,
        title: "Wikimedia's caching data of texts",
        columns: &[
            ("relative_unix", ColumnUse::Time),
            ("hashed_host_path_query", ColumnUse::Id),
            ("response_size", ColumnUse::Size { unit: 1 }),
            ("time_firstbyte", ColumnUse::Ignored),
        ],
        time_unit: "s",
        fits: |_| false,
        delimiter: Some(Delimiter::Byte(b'\t')),
    },
    Published {
        format: Format::Lrb,
        title: "LRB's traces",
        columns: &[("time", ColumnUse::Time), ("id", ColumnUse::Id), ("size", ColumnUse::Size { unit: 1 })],
        time_unit: "",
        // Three numbers are anything.
        fits: |_| false,
        delimiter: Some(Delimiter::Blanks),
    },
];

/// Operations that a line of Twitter's traces is known by.
const TWITTER_OPS: [&[u8]; 11] =
    [b"get", b"gets", b"set", b"add", b"replace", b"cas", b"append", b"prepend", b"delete", b"incr", b"decr"];

impl Published {
    /// The collection that is read as `format`, if it is one; of several kinds of lines the first.
    pub(super) fn of(format: Format) -> Option<&'static Published> {
        ALL.iter().find(|published| published.format == format)
    }

    /// The collection of this format whose lines have so many fields; this one if none has.
    pub(super) fn with_fields(&'static self, fields: usize) -> &'static Published {
        let has = |of: &&Published| of.format == self.format && of.columns.len() == fields;
        ALL.iter().find(has).unwrap_or(self)
    }

    /// The first collection that a line of these fields could be from.
    pub(super) fn looking_like(fields: &[&[u8]]) -> Option<&'static Published> {
        ALL.iter().find(|published| fields.len() == published.columns.len() && (published.fits)(fields))
    }

    /// The collection that names its columns so, where that says more than the names themselves: its units.
    pub(super) fn in_other_units(names: &[String]) -> Option<&'static Published> {
        let has_unit = |(_, holds): &(&str, ColumnUse)| holds.unit().is_some_and(|unit| unit != 1);
        ALL.iter().find(|published| published.is_named(names) && published.columns.iter().any(has_unit))
    }

    /// Returns true if `names` are those of its columns.
    pub(super) fn is_named(&self, names: &[String]) -> bool {
        let own = self.columns.iter().map(|(name, _)| *name);
        names.len() == self.columns.len()
            && names.iter().zip(own).all(|(name, own)| name.eq_ignore_ascii_case(own))
    }

    /// Its columns. A block is as large as a page where the collection does not say.
    pub(super) fn columns(&self, page_size: u64) -> Vec<Column> {
        let column = |(at, (name, holds)): (usize, &(&str, ColumnUse))| Column {
            place: at + 1,
            name: name.to_string(),
            holds: match *holds {
                ColumnUse::Offset { unit: PAGE } => ColumnUse::Offset { unit: page_size },
                ColumnUse::Size { unit: PAGE } => ColumnUse::Size { unit: page_size },
                holds => holds,
            },
        };
        self.columns.iter().enumerate().map(column).collect()
    }
}

/// Returns true if a field can be data and no column's name.
pub(super) fn is_number(field: &[u8]) -> bool {
    str::from_utf8(field).is_ok_and(|text| text.trim().parse::<f64>().is_ok_and(f64::is_finite))
}

fn are_whole(fields: &[&[u8]], columns: &[usize]) -> bool {
    columns
        .iter()
        .all(|&column| str::from_utf8(fields[column]).is_ok_and(|text| text.trim().parse::<u64>().is_ok()))
}

fn is_op(field: &[u8]) -> bool {
    ["r", "w", "read", "write"].iter().any(|op| field.trim_ascii().eq_ignore_ascii_case(op.as_bytes()))
}
