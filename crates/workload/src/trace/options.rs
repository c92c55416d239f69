//! Read options: how to read a trace. Scenario files and command lines map onto this; unknown keys are refused.

use std::fmt;
use std::str::FromStr;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::format::{Format, Use};

/// Returns true if pages can be of this size.
pub(super) fn is_page_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && (512..=1 << 30).contains(&bytes)
}

/// The options of reading a trace. The default suits every format that needs no column names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadOptions {
    /// The format, by name. Default: told from content and file name.
    pub format: Option<Format>,
    /// Bytes per page; a power of two from 512 to 2^30. Default: the size in a `.pgt`, else 4096. Byte ranges are split into pages of this size. Page
    /// numbers in the file are interpreted as pages of this size, except those of a `.pgt`, which have their own.
    pub page_size: Option<u32>,
    /// One id, one page, whatever its size, as libCacheSim does when it ignores object sizes. Default false: an id of
    /// n bytes is ceil(n / page size) pages, all accessed in order. Concerns formats with opaque ids only.
    pub ignore_size: bool,
    /// How pages are numbered. Default `auto`.
    pub page_ids: PageIds,
    /// Conversion only: write a table of the original ids of the pages into the `.pgt` (16 bytes of memory per page meanwhile). Default false. Needs
    /// numbered pages and ids that are numbers.
    pub keep_ids: bool,
    /// Accept a text file whose last line has no line feed. Default false: such a line may be half a line.
    pub unterminated_ok: bool,
    /// Accept implausible values. In oracleGeneral, these are times that go back and impossible next accesses; in any format, sizes that make far
    /// more pages per record than usual. Default false: such a file is damaged, or of another format.
    pub implausible_ok: bool,
    /// Options for CSV.
    pub csv: CsvOptions,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            page_size: None,
            ignore_size: false,
            page_ids: PageIds::Auto,
            keep_ids: false,
            unterminated_ok: false,
            implausible_ok: false,
            csv: CsvOptions::default(),
        }
    }
}

impl ReadOptions {
    /// Bytes per page of a trace that does not define it.
    pub(super) fn page_bytes(&self) -> u32 {
        self.page_size.unwrap_or(4096)
    }

    /// An option that was set although `format` has no use for it.
    pub(super) fn unused_by(&self, format: Format) -> Option<(&'static str, Use)> {
        let set = [
            ("ignore_size", self.ignore_size, Use::IgnoreSize),
            ("page_ids", self.page_ids != PageIds::Auto, Use::PageIds),
            ("unterminated_ok", self.unterminated_ok, Use::UnterminatedOk),
            ("implausible_ok", self.implausible_ok, Use::ImplausibleOk),
            (self.csv.first_set().unwrap_or_default(), self.csv.first_set().is_some(), Use::Columns),
        ];
        let unused = set.into_iter().find(|&(_, is_set, needed)| is_set && !format.uses(needed));
        unused.map(|(option, _, needed)| (option, needed))
    }
}

/// How the pages of a trace are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageIds {
    /// Places keep their numbers, opaque ids are numbered.
    #[default]
    Auto,
    /// All are numbered densely within their object, in order of first appearance.
    Dense,
    /// All keep their numbers, which must be below 2^40; an id is its first page's number and its other pages follow.
    AsGiven,
}

/// The columns of the fields of a CSV trace. A column is named as in the header line, ignoring case, or by its position as `#1`, `#2`, ...
/// Fields without a selected column are found by usual names, if there is a header line; an empty name means that no column holds the field.
/// [`interpretation`](super::interpretation()) returns the result.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CsvOptions {
    /// Between fields. Default: a tab in a `.tsv`, else a comma; where the first line has none, a tab, a semicolon, a bar or
    /// blanks, whichever it has.
    pub delimiter: Option<Delimiter>,
    /// True if the first line names the columns. Default true.
    pub header: bool,
    /// Column of the time, a number in any unit, for `info` and open loops. Without one, accesses have no times.
    pub time: Option<String>,
    /// Unit of the time, for starting accesses by it. Default: not known.
    pub time_unit: Option<TimeUnit>,
    /// Column of the file, volume or region accessed, any text; a list of several makes them one object together. Default:
    /// all columns of usual names, wherever the place is from. With none, as of an empty list, all is one object.
    pub object: Option<ColumnNames>,
    /// Column of an opaque id, any text. Exactly one of `id`, `page` and `offset` is needed.
    pub id: Option<String>,
    /// Column of a page number within the object.
    pub page: Option<String>,
    /// Column of an offset within the object, in units of `offset_unit`.
    pub offset: Option<String>,
    /// Column of the size in units of `size_unit`. Without one each access is of one page.
    pub size: Option<String>,
    /// Column of the operation: r, read, get, ... or w, write, set, put, ... in any case, or SCSI's codes in hexadecimal (28, 2a).
    /// Without one it is unknown which accesses write, and all are taken for reads.
    pub op: Option<String>,
    /// Values of the operation that read: one, or a list. Before the usual ones, in any case.
    pub op_read: Option<ColumnNames>,
    /// Values of the operation that write.
    pub op_write: Option<ColumnNames>,
    /// Values of the operation that delete: what the record names ends, and is not accessed.
    pub op_delete: Option<ColumnNames>,
    /// Values of the operation whose records are skipped, and counted.
    pub op_skip: Option<ColumnNames>,
    /// True if records of unknown operations are skipped, and counted. Default false: the first one is an error.
    pub skip_unknown_ops: bool,
    /// Column of how many requests a line stands for, which are made one after the other. Default: a column called `op_count` or the
    /// like, where there is one.
    pub count: Option<String>,
    /// Column of the time to live. Lines that have one are counted; nothing expires. Default: a column called `ttl` or the like.
    pub ttl: Option<String>,
    /// Bytes in a unit of `offset`, such as 512 for sectors; at least 1. Default: 512 where the column is called like a number of
    /// sectors (`lba`, `lbn`, `sector`, `blkno`), else 1.
    pub offset_unit: Option<u64>,
    /// Bytes in a unit of `size`; at least 1. Default: 512 where the column is called like a count of sectors (`sectors`, `bcount`),
    /// else 1.
    pub size_unit: Option<u64>,
}

/// A unit of the times in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Thousandths of a second.
    Ms,
    /// Millionths of a second.
    Us,
    /// Thousand-millionths of a second.
    Ns,
}

impl TimeUnit {
    /// Its name, as a read option has it.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::S => "s",
            TimeUnit::Ms => "ms",
            TimeUnit::Us => "us",
            TimeUnit::Ns => "ns",
        }
    }
}

/// The separator between the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// This ASCII character separates columns.
    Byte(u8),
    /// Blanks and tabs, any number of them.
    Blanks,
}

impl fmt::Display for Delimiter {
    /// As a read option has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Delimiter::Blanks => f.write_str("blank"),
            Delimiter::Byte(b'\t') => f.write_str("tab"),
            Delimiter::Byte(byte) => write!(f, "{}", char::from(*byte)),
        }
    }
}

impl FromStr for Delimiter {
    type Err = String;

    fn from_str(text: &str) -> Result<Delimiter, String> {
        match text {
            " " | "blank" | "blanks" | "space" => return Ok(Delimiter::Blanks),
            "tab" | "\\t" => return Ok(Delimiter::Byte(b'\t')),
            _ => {}
        }
        let is_delimiter = |byte: u8| {
            byte.is_ascii()
                && !byte.is_ascii_alphanumeric()
                && !matches!(byte, b'"' | b'\n' | b'\r' | b'.' | b'-')
        };
        match text.as_bytes() {
            &[byte] if is_delimiter(byte) => Ok(Delimiter::Byte(byte)),
            _ => Err(format!(
                "{text:?} cannot be a delimiter: use one ASCII character that is not part of a number, `blank` or `tab`"
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Delimiter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Delimiter, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Names of columns, or values in one: one, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnNames(pub Vec<String>);

impl<'de> Deserialize<'de> for ColumnNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ColumnNames, D::Error> {
        /// A text, or a number as one: operations are often numbers.
        struct Text(String);
        impl<'de> Deserialize<'de> for Text {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
                let ColumnNames(mut names) = deserializer.deserialize_any(Names)?;
                match names.pop() {
                    Some(name) if names.is_empty() => Ok(Text(name)),
                    _ => Err(serde::de::Error::custom("a list within a list")),
                }
            }
        }

        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = ColumnNames;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a list of names")
            }

            fn visit_i64<E>(self, number: i64) -> Result<ColumnNames, E> {
                Ok(ColumnNames(vec![number.to_string()]))
            }

            fn visit_u64<E>(self, number: u64) -> Result<ColumnNames, E> {
                Ok(ColumnNames(vec![number.to_string()]))
            }

            fn visit_str<E>(self, name: &str) -> Result<ColumnNames, E> {
                Ok(ColumnNames(vec![name.to_string()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<ColumnNames, A::Error> {
                let mut list = Vec::new();
                while let Some(Text(name)) = names.next_element()? {
                    list.push(name);
                }
                Ok(ColumnNames(list))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

impl CsvOptions {
    /// Returns true if an option says what this operation is.
    pub(super) fn names_op(&self, operation: &str) -> bool {
        let lists = [&self.op_read, &self.op_write, &self.op_delete, &self.op_skip];
        let mut names = lists.into_iter().flatten().flat_map(|names| &names.0);
        names.any(|name| name.trim().eq_ignore_ascii_case(operation))
    }

    /// The first option that is set.
    fn first_set(&self) -> Option<&'static str> {
        let set = [
            ("csv.delimiter", self.delimiter.is_some()),
            ("csv.header", !self.header),
            ("csv.time", self.time.is_some()),
            ("csv.time_unit", self.time_unit.is_some()),
            ("csv.object", self.object.is_some()),
            ("csv.id", self.id.is_some()),
            ("csv.page", self.page.is_some()),
            ("csv.offset", self.offset.is_some()),
            ("csv.size", self.size.is_some()),
            ("csv.op", self.op.is_some()),
            ("csv.op_read", self.op_read.is_some()),
            ("csv.op_write", self.op_write.is_some()),
            ("csv.op_delete", self.op_delete.is_some()),
            ("csv.op_skip", self.op_skip.is_some()),
            ("csv.skip_unknown_ops", self.skip_unknown_ops),
            ("csv.count", self.count.is_some()),
            ("csv.ttl", self.ttl.is_some()),
            ("csv.offset_unit", self.offset_unit.is_some()),
            ("csv.size_unit", self.size_unit.is_some()),
        ];
        set.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions {
            delimiter: None,
            header: true,
            time: None,
            time_unit: None,
            object: None,
            id: None,
            page: None,
            offset: None,
            size: None,
            op: None,
            op_read: None,
            op_write: None,
            op_delete: None,
            op_skip: None,
            skip_unknown_ops: false,
            count: None,
            ttl: None,
            offset_unit: None,
            size_unit: None,
        }
    }
}
