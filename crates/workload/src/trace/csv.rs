//! CSV: text with columns, whatever their names and order, and the published collections that have fixed ones.
//!
//! Each line is a record: where (an opaque `id`, a `page` or an `offset`, within an optional `object`), how much, which
//! operation. Several columns can be the object together: a host and the number of its disk. Fields may be quoted; a
//! quoted field ends on its line, so that line numbers and truncation are always known. Blank lines are skipped, and so are comments,
//! which begin with a `#`.

mod columns; // which column is what
mod line; // lines into fields
mod operation; // what an operation does
mod published; // collections of known columns

use columns::{Columns, PlaceColumn, Units};
use line::LineSplitter;
use operation::{Op, Operations};
use published::{Published, is_number};

use super::column::Column;
use super::error::TraceError;
use super::format::plain_name;
use super::intern::Names;
use super::options::{CsvOptions, Delimiter, ReadOptions, TimeUnit};
use super::record::{
    REQUEST_BYTES_MAX, Record, RecordReader, TENANTS_MAX, Target, pages_of_range, whole_pages_of_range,
};
use super::requests::Requests;
use super::source::Source;
use super::text::shown;
use crate::Access;

pub(super) struct Csv {
    source: Source,
    lines: LineSplitter,
    /// The line that was last split is still to be read as a record.
    is_pending: bool,
    page_size: u64,
    ignore_size: bool,
    unterminated_ok: bool,
    columns: Columns,
    /// Columns that the header line names, if there is one: a line with more fields is an error.
    fields_max: Option<usize>,
    described: Vec<Column>,
    doubts: Vec<String>,
    time_unit: &'static str,
    objects: Names,
    /// The object of a line, where several columns are one.
    object: Vec<u8>,
    /// Ids that are not numbers.
    text_ids: Names,
    tenants: Option<Tenants>,
    operations: Operations,
    /// The last record, and how many more times its line stands for it.
    repeated: Option<(Record, u64)>,
    /// Offsets and sizes so far, where there are both and options don't say the units of both.
    units: Option<Units>,
    /// Records so far with a time to live.
    ttls: u64,
    /// Records so far whose operation is skipped.
    skipped: Requests,
}

/// A line of more requests than this has a count that is none.
const REQUESTS_MAX: u64 = 1 << 24;

/// The column that identifies tenants, if requested.
struct Tenants {
    column: usize,
    names: Names,
    /// That of the last record.
    last: u32,
}

impl Csv {
    /// Reads the first line and finds the columns.
    pub(super) fn new(mut source: Source, options: &ReadOptions) -> Result<Csv, TraceError> {
        let csv = &options.csv;
        if csv.offset_unit == Some(0) || csv.size_unit == Some(0) {
            return Err(source.error("the read options `offset_unit` and `size_unit` must be at least 1"));
        }
        let is_tsv = plain_name(source.file()).ends_with(".tsv");
        let published = source.format().and_then(Published::of);
        let usual = published.and_then(|published| published.delimiter);
        let usual = usual.unwrap_or(Delimiter::Byte(if is_tsv { b'\t' } else { b',' }));
        let mut lines = LineSplitter::new(csv.delimiter.unwrap_or(usual));
        let has_line = lines.read(&mut source, options.unterminated_ok)?;
        let published = published.map(|published| published.with_fields(lines.len()));
        let mut found_delimiter = None;
        if published.is_none() && csv.delimiter.is_none() && has_line {
            found_delimiter = lines.find_delimiter(&source)?;
        }
        let mut commented = None;
        if published.is_none() && csv.header && has_line {
            commented = lines.names_in_comment(&source);
        }
        let is_commented = commented.is_some();
        let names = match commented {
            Some(names) => names,
            None if published.is_none() && !csv.header => Vec::new(),
            None => lines.names(),
        };
        let (mut described, mut is_pending) = match published {
            Some(published) => {
                (published.columns(options.page_bytes().into()), has_line && !published.is_named(&names))
            }
            None if csv.header && !has_line => {
                return Err(source
                    .error("found an empty file, expected a header line")
                    .help(TraceError::EMPTY));
            }
            None => {
                let fields: Vec<&[u8]> = match is_commented {
                    true => names.iter().map(|name| name.as_bytes()).collect(),
                    false => (0..lines.len()).map(|column| lines.field(column)).collect(),
                };
                let found = named_columns(&names, &fields, csv).map_err(|reason| source.error(reason))?;
                (found, has_line && (is_commented || !csv.header))
            }
        };
        let mut doubts = Vec::new();
        if published.is_none() {
            doubts.extend(found_delimiter.map(|delimiter| {
                format!("`{delimiter}` is used as the delimiter between columns; the read option `csv.delimiter` selects another")
            }));
            doubts.extend(columns::doubts(&described, csv));
            if !is_pending {
                is_pending = lines.read(&mut source, options.unterminated_ok)?;
            }
            if is_pending {
                let field = |at: usize| (at < lines.len()).then(|| shown(lines.field(at).trim_ascii()));
                doubts.extend(columns::doubts_of_data(&mut described, csv, field));
            }
        }
        let columns = Columns::of(&described);
        if let Some((option, column)) = unused_option(&columns, options) {
            let reason = format!(
                "the read option `{option}` needs a column `{column}`, but none was selected or found"
            );
            return Err(source.error(reason));
        }
        let is_offset = matches!(columns.place, PlaceColumn::Offset(_));
        let are_chosen = csv.offset_unit.is_some() && csv.size_unit.is_some();
        let has_units = is_offset && columns.size.is_some() && published.is_none() && !are_chosen;
        let units = has_units.then(Units::default);
        Ok(Csv {
            lines,
            is_pending,
            page_size: options.page_bytes().into(),
            ignore_size: options.ignore_size,
            unterminated_ok: options.unterminated_ok,
            columns,
            doubts,
            fields_max: if published.is_none() && csv.header { Some(names.len()) } else { None },
            described,
            time_unit: match (published, csv.time_unit) {
                (Some(published), _) => published.time_unit,
                (None, unit) => unit.map_or("", TimeUnit::name),
            },
            objects: Names::listed(),
            object: Vec::new(),
            text_ids: Names::unlisted(),
            tenants: None,
            operations: Operations::of(csv).map_err(|reason| source.error(reason))?,
            repeated: None,
            units,
            ttls: 0,
            skipped: Requests::default(),
            source,
        })
    }

    fn parse(&mut self) -> Result<Record, TraceError> {
        let fields = self.lines.len();
        if fields < self.columns.needed {
            let reason = format!("found {fields} fields, expected {}", self.columns.needed);
            return Err(self.source.error(reason));
        }
        if let Some(named) = self.fields_max.filter(|&named| named < fields)
            && (named..fields).any(|at| !self.lines.field(at).trim_ascii().is_empty())
        {
            let reason = format!(
                "found {fields} fields, but the header line names {named}: does a field with a delimiter need quotes?"
            );
            return Err(self.source.error(reason));
        }
        let source = &self.source;
        let field = |column: usize| self.lines.field(column).trim_ascii();
        let time = self.columns.time.map(|column| real(source, "time", field(column))).transpose()?;
        let given = self.columns.op.map(field);
        let op = given.map_or(Some(Op::Read), |given| self.operations.parse(given));
        let is_write = match op {
            Some(Op::Read | Op::Delete) => false,
            Some(Op::Write) => true,
            Some(Op::NoAccess) => return Ok(Record::without_access(time)),
            Some(Op::Skip) => {
                self.skipped.skip(&shown(given.unwrap_or_default()));
                return Ok(Record::without_access(time));
            }
            None => {
                let given = shown(given.unwrap_or_default());
                let reason = format!(
                    "unknown operation `{given}` in column {}: found `{given}`, expected one such as r, read, get, w, write, set, delete, or 28 and 2a as in SCSI. help: name it in the read option `csv.op_read`, `csv.op_write`, `csv.op_delete` or `csv.op_skip`, such as `csv.op_read = \"{given}\"`; `csv.skip_unknown_ops = true` skips and counts all unknown operations; if operations are in another column, select it by `csv.op`",
                    self.columns.op.map_or(0, |column| column + 1)
                );
                return Err(source.error(reason));
            }
        };
        let object = match self.columns.objects[..] {
            [] => Some(0),
            [column] => self.objects.number(field(column), Access::OBJECTS_MAX),
            ref columns => {
                join(&mut self.object, columns.iter().map(|&column| field(column)));
                self.objects.number(&self.object, Access::OBJECTS_MAX)
            }
        };
        let object = object.ok_or_else(|| source.error("more than 2^23 objects"))?;
        let mut size = match self.columns.size {
            None => None,
            Some(column) => Some(scaled(source, "size", field(column), self.columns.size_unit)?),
        };
        if let Some(column) = self.columns.more_size {
            let more = scaled(source, "size", field(column), self.columns.size_unit)?;
            size = size.map(|bytes| bytes.saturating_add(more));
        }
        if let Some(bytes) = size.filter(|&bytes| bytes > REQUEST_BYTES_MAX) {
            return Err(source.error(format!("a size of {bytes} bytes, more than 4 GiB")));
        }
        let bytes = size.unwrap_or(0);
        // What has a size but no offset starts at a page border.
        let whole_pages = || size.map_or(1, |bytes| bytes.div_ceil(self.page_size).max(1));
        let is_delete = matches!(op, Some(Op::Delete));
        let (target, pages) = match self.columns.place {
            PlaceColumn::Id(column) => {
                let pages = if self.ignore_size { 1 } else { whole_pages() };
                let id = field(column);
                let target = match canonical_number(id) {
                    Some(id) => Target::Id { id, was_text: false },
                    None => match self.text_ids.number(id, u32::MAX) {
                        Some(number) => Target::Id { id: number.into(), was_text: true },
                        None => return Err(source.error("more than 2^32 ids")),
                    },
                };
                (target, pages)
            }
            PlaceColumn::Page(column) => {
                (Target::Place(whole(source, "page", field(column))?), whole_pages())
            }
            PlaceColumn::Offset(column) => {
                let offset = scaled(source, "offset", field(column), self.columns.offset_unit)?;
                if let (Some(units), Some(at)) = (&mut self.units, self.columns.size) {
                    // A line that was read once can be read again.
                    let (offset, size) =
                        (whole(source, "offset", field(column))?, whole(source, "size", field(at))?);
                    units.add(offset, self.columns.offset_unit, size, self.columns.size_unit);
                }
                let bytes = size.unwrap_or(1);
                let range = match is_delete {
                    true => whole_pages_of_range(offset, bytes, self.page_size),
                    false => pages_of_range(offset, bytes, self.page_size),
                };
                let Some((first, pages)) = range else {
                    return Err(source.error("offset and size exceed the number range"));
                };
                (Target::Place(first), pages)
            }
        };
        if let Some(tenants) = &mut self.tenants {
            let name = self.lines.field(tenants.column).trim_ascii();
            tenants.last = tenants.names.number(name, TENANTS_MAX).ok_or_else(|| {
                let column = &self.described[tenants.column];
                let called =
                    if column.name.is_empty() { format!("#{}", column.place) } else { column.name.clone() };
                self.source.error(format!(
                    "column `{called}` has more than {TENANTS_MAX} values: does it identify tenants?"
                ))
            })?;
        }
        if let Some(column) = self.columns.ttl {
            let ttl = self.lines.field(column).trim_ascii();
            self.ttls += u64::from(real(&self.source, "ttl", ttl).is_ok_and(|ttl| ttl > 0.0));
        }
        if is_delete {
            let removes = if matches!(target, Target::Id { .. }) { u64::MAX } else { pages };
            return Ok(match removes {
                0 => Record::without_access(time),
                removes => Record::delete(object, target, removes, time),
            });
        }
        let record = Record { object, target, pages, is_write, time, bytes, removes: 0 };
        if let Some(column) = self.columns.count {
            let count = whole(&self.source, "count", self.lines.field(column).trim_ascii())?;
            if count > REQUESTS_MAX {
                return Err(self.source.error(format!("a line of {count} requests, more than 2^24")));
            }
            match count {
                0 => return Ok(Record::without_access(time)),
                1 => {}
                count => self.repeated = Some((record, count - 1)),
            }
        }
        Ok(record)
    }
}

impl RecordReader for Csv {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some((record, left)) = self.repeated {
            self.repeated = Some((record, left - 1)).filter(|_| left > 1);
            return Ok(Some(record));
        }
        let is_pending = std::mem::take(&mut self.is_pending);
        if !is_pending && !self.lines.read(&mut self.source, self.unterminated_ok)? {
            return self.source.end();
        }
        let record = self.parse()?;
        self.source.count_records(1);
        Ok(Some(record))
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn object_names(&self) -> &[String] {
        self.objects.names()
    }

    fn time_unit(&self) -> &'static str {
        self.time_unit
    }

    fn has_times(&self) -> bool {
        self.columns.time.is_some()
    }

    fn object_titles(&self) -> &'static [&'static str] {
        if self.columns.objects.is_empty() { &[] } else { &["object"] }
    }

    fn note_tenants(&mut self, column: &str) -> bool {
        let named = self.described.iter().position(|known| known.name.eq_ignore_ascii_case(column));
        let place = || column.strip_prefix('#')?.parse::<usize>().ok()?.checked_sub(1);
        let Some(column) = named.or_else(place).filter(|&at| at < self.described.len()) else { return false };
        self.columns.needed = self.columns.needed.max(column + 1);
        self.tenants = Some(Tenants { column, names: Names::listed(), last: 0 });
        true
    }

    fn tenant(&self) -> u32 {
        self.tenants.as_ref().map_or(0, |tenants| tenants.last)
    }

    fn tenant_names(&self) -> &[String] {
        self.tenants.as_ref().map_or(&[], |tenants| tenants.names.names())
    }

    fn tells_writes(&self) -> bool {
        self.columns.op.is_some()
    }

    fn columns(&self) -> &[Column] {
        &self.described
    }

    fn doubts(&self) -> Vec<String> {
        let (offset_unit, size_unit) = (self.columns.offset_unit, self.columns.size_unit);
        let of_units = self.units.iter().flat_map(|units| units.doubts(offset_unit, size_unit));
        self.doubts.iter().cloned().chain(of_units).collect()
    }

    fn has_ids(&self) -> bool {
        matches!(self.columns.place, PlaceColumn::Id(_))
    }

    fn count_in(&self, requests: &mut Requests) {
        requests.ttls += self.ttls;
        requests.skipped.clone_from(&self.skipped.skipped);
        requests.doubts = self.doubts();
    }
}

/// The columns of a text that is not a published collection, by the names on its first line or, if there are none, by their positions.
fn named_columns(names: &[String], fields: &[&[u8]], options: &CsvOptions) -> Result<Vec<Column>, String> {
    let found = columns::find(names, fields.len(), options);
    if let Some(Published { format, title, .. }) =
        Published::looking_like(fields).filter(|_| options.header || found.is_err())
    {
        return Err(format!("the first line looks like one of {title}; use the format `{format}` for it"));
    }
    let mut numbers = "the first line has numbers instead of names: if no line names the columns, set `csv.header = false` and select them by position, such as `#1`"
        .to_string();
    if fields.len() == 1 {
        numbers +=
            ", or if each line is a page number, use the format `pages-text` (--trace-format pages-text)";
    }
    let found = match found {
        Err(reason) if options.header && fields.iter().any(|field| is_number(field)) => {
            return Err(format!("{reason}; {numbers}"));
        }
        Ok(found) if options.header && columns::is_data(&found) => return Err(numbers),
        found => found?,
    };
    if let Some(Published { format, title, .. }) =
        Published::in_other_units(names).filter(|_| options.offset.is_none() && options.offset_unit.is_none())
    {
        return Err(format!(
            "the column names are those of {title}, which counts sectors: the format `{format}` reads them in sectors; to read them otherwise, select `csv.offset` and its `csv.offset_unit`"
        ));
    }
    Ok(found)
}

/// An option for reading a column that is missing, and the column.
fn unused_option(columns: &Columns, options: &ReadOptions) -> Option<(&'static str, &'static str)> {
    let has_id = matches!(columns.place, PlaceColumn::Id(_));
    let has_offset = matches!(columns.place, PlaceColumn::Offset(_));
    // A unit of 1 changes nothing.
    let scales = |unit: Option<u64>| unit.is_some_and(|unit| unit != 1);
    let unused = [
        ("csv.time_unit", "time", options.csv.time_unit.is_some() && columns.time.is_none()),
        ("ignore_size", "id", options.ignore_size && !has_id),
        ("csv.offset_unit", "offset", scales(options.csv.offset_unit) && !has_offset),
        ("csv.size_unit", "size", scales(options.csv.size_unit) && columns.size.is_none()),
        ("csv.op_read", "op", options.csv.op_read.is_some() && columns.op.is_none()),
        ("csv.op_write", "op", options.csv.op_write.is_some() && columns.op.is_none()),
        ("csv.op_delete", "op", options.csv.op_delete.is_some() && columns.op.is_none()),
        ("csv.op_skip", "op", options.csv.op_skip.is_some() && columns.op.is_none()),
        ("csv.skip_unknown_ops", "op", options.csv.skip_unknown_ops && columns.op.is_none()),
    ];
    unused.into_iter().find(|(.., is_unused)| *is_unused).map(|(option, column, _)| (option, column))
}

/// One name of several fields, which differs whenever one of them does.
fn join<'a>(name: &mut Vec<u8>, fields: impl Iterator<Item = &'a [u8]>) {
    name.clear();
    for (at, field) in fields.enumerate() {
        if at > 0 {
            name.push(b'/');
        }
        for &byte in field {
            if matches!(byte, b'/' | b'\\') {
                name.push(b'\\');
            }
            name.push(byte);
        }
    }
}

/// A number that has only this spelling, so that `7` and `07` stay different ids.
fn canonical_number(field: &[u8]) -> Option<u64> {
    if field.len() > 1 && field.first() == Some(&b'0') || field.first() == Some(&b'+') {
        return None;
    }
    str::from_utf8(field).ok()?.parse().ok()
}

fn whole(source: &Source, what: &str, field: &[u8]) -> Result<u64, TraceError> {
    let parsed = str::from_utf8(field).ok().and_then(|text| match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        _ => text.parse().ok(),
    });
    parsed.ok_or_else(|| source.error(format!("{what} is not an integer: `{}`", shown(field))))
}

fn scaled(source: &Source, what: &str, field: &[u8], unit: u64) -> Result<u64, TraceError> {
    let number = whole(source, what, field)?;
    number
        .checked_mul(unit)
        .ok_or_else(|| source.error(format!("{what} {number} in bytes exceeds the number range")))
}

fn real(source: &Source, what: &str, field: &[u8]) -> Result<f64, TraceError> {
    let parsed =
        str::from_utf8(field).ok().and_then(|text| text.parse().ok()).filter(|time: &f64| time.is_finite());
    parsed.ok_or_else(|| source.error(format!("{what} is not a number: `{}`", shown(field))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_fields_differ_whenever_a_field_does() {
        let joined = |fields: [&str; 2]| {
            let mut name = Vec::new();
            join(&mut name, fields.iter().map(|field| field.as_bytes()));
            String::from_utf8(name).unwrap()
        };
        assert_eq!(joined(["usr", "0"]), "usr/0");
        assert_ne!(joined(["a/b", "c"]), joined(["a", "b/c"]));
        assert_ne!(joined(["a\\", "b"]), joined(["a", "\\b"]));
    }
}
