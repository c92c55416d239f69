//! CSV: text with named columns, whatever their names and order.
//!
//! Each line is a record: where (an opaque `id`, a `page` or a byte `offset`, within an optional `object`), how much,
//! which operation. Fields may be quoted; a quoted field ends on its line, so that line numbers and truncation are
//! always known. Blank lines are skipped.

use super::error::TraceError;
use super::fio_iolog::shown;
use super::intern::Names;
use super::options::{CsvOptions, ReadOptions};
use super::record::{REQUEST_BYTES_MAX, Record, RecordReader, Target, pages_of_range};
use super::source::Source;
use crate::Access;

const FIELDS_MAX: usize = 1024;

/// Column names that are understood without being told, by what they hold.
const USUAL_TIME: &[&str] = &["time", "timestamp", "ts", "clock_time"];
const USUAL_OBJECT: &[&str] = &["object", "file", "filename", "volume", "device", "disk"];
const USUAL_ID: &[&str] = &["id", "obj_id", "object_id", "key", "block"];
const USUAL_PAGE: &[&str] = &["page", "page_id", "page_number"];
const USUAL_OFFSET: &[&str] = &["offset", "byte_offset", "address"];
const USUAL_SIZE: &[&str] = &["size", "obj_size", "length", "len", "bytes"];
const USUAL_OP: &[&str] = &["op", "operation", "opcode", "type", "rw"];

pub(super) struct Csv {
    source: Source,
    lines: LineSplitter,
    options: CsvOptions,
    page_size: u64,
    ignore_size: bool,
    unterminated_ok: bool,
    columns: Columns,
    objects: Names,
    /// Ids that are no numbers.
    text_ids: Names,
}

/// Places of the columns in a line.
struct Columns {
    time: Option<usize>,
    object: Option<usize>,
    place: PlaceColumn,
    size: Option<usize>,
    op: Option<usize>,
    /// One more than the last column used.
    needed: usize,
}

enum PlaceColumn {
    Id(usize),
    Page(usize),
    Offset(usize),
}

impl Csv {
    /// Reads the header line, if there is to be one, and finds the columns.
    pub(super) fn new(mut source: Source, options: &ReadOptions) -> Result<Csv, TraceError> {
        let csv = options.csv.clone();
        if csv.offset_unit == 0 || csv.size_unit == 0 {
            return Err(source.error("the read options `offset_unit` and `size_unit` must be at least 1"));
        }
        let name = source.file().to_lowercase();
        let is_tsv = name.strip_suffix(".zst").unwrap_or(&name).ends_with(".tsv");
        let delimiter = csv.delimiter.unwrap_or(if is_tsv { '\t' } else { ',' });
        let Some(delimiter) = u8::try_from(delimiter).ok().filter(|byte| byte.is_ascii()) else {
            return Err(source.error(format!("the delimiter must be an ASCII character, got `{delimiter}`")));
        };
        let mut lines = LineSplitter::new(delimiter);
        let mut header = Vec::new();
        if csv.header {
            if !lines.read(&mut source, options.unterminated_ok)? {
                return Err(source.error("the file is empty: there is no header line"));
            }
            header = (0..lines.len())
                .map(|column| String::from_utf8_lossy(lines.field(column)).trim().to_lowercase())
                .collect();
        }
        let columns = Columns::find(&header, &csv).map_err(|reason| source.error(reason))?;
        if let Some((option, column)) = columns.unused_option(options) {
            let reason =
                format!("the read option `{option}` needs a column `{column}`, and none was chosen or found");
            return Err(source.error(reason));
        }
        Ok(Csv {
            source,
            lines,
            options: csv,
            page_size: options.page_bytes().into(),
            ignore_size: options.ignore_size,
            unterminated_ok: options.unterminated_ok,
            columns,
            objects: Names::listed(),
            text_ids: Names::unlisted(),
        })
    }

    fn parse(&mut self) -> Result<Record, TraceError> {
        let fields = self.lines.len();
        if fields < self.columns.needed {
            let reason = format!("{fields} fields where {} are needed", self.columns.needed);
            return Err(self.source.error(reason));
        }
        let source = &self.source;
        let field = |column: usize| self.lines.field(column).trim_ascii();
        let time = self.columns.time.map(|column| real(source, "time", field(column))).transpose()?;
        let op = self.columns.op.map_or(Some(Op::Read), |column| Op::parse(field(column)));
        let is_write = match op {
            Some(Op::Read) => false,
            Some(Op::Write) => true,
            Some(Op::NoAccess) => return Ok(Record::without_access(time)),
            None => {
                let given = self.columns.op.map(field).unwrap_or_default();
                let reason =
                    format!("unknown operation `{}` (r, read, get, w, write, set, ...)", shown(given));
                return Err(source.error(reason));
            }
        };
        let object = match self.columns.object {
            None => Some(0),
            Some(column) => self.objects.number(field(column), Access::OBJECTS_MAX),
        };
        let object = object.ok_or_else(|| source.error("more than 2^23 objects"))?;
        let size = match self.columns.size {
            None => None,
            Some(column) => Some(scaled(source, "size", field(column), self.options.size_unit)?),
        };
        if let Some(bytes) = size.filter(|&bytes| bytes > REQUEST_BYTES_MAX) {
            return Err(source.error(format!("a size of {bytes} bytes, more than 4 GiB")));
        }
        let bytes = size.unwrap_or(0);
        // What has a size but no offset starts at a page border.
        let whole_pages = || size.map_or(1, |bytes| bytes.div_ceil(self.page_size).max(1));
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
                let offset = scaled(source, "offset", field(column), self.options.offset_unit)?;
                let bytes = size.unwrap_or(1);
                let Some((first, pages)) = pages_of_range(offset, bytes, self.page_size) else {
                    return Err(source.error("offset and size reach past the end of the number range"));
                };
                (Target::Place(first), pages)
            }
        };
        Ok(Record { object, target, pages, is_write, time, bytes })
    }
}

impl RecordReader for Csv {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        if !self.lines.read(&mut self.source, self.unterminated_ok)? {
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
}

impl Columns {
    fn find(header: &[String], options: &CsvOptions) -> Result<Columns, String> {
        let chosen = |choice: &Option<String>| -> Result<Option<usize>, String> {
            choice.as_deref().map(|name| find_chosen(header, name)).transpose()
        };
        let usual = |names: &[&str]| -> Result<Option<usize>, String> {
            let found = header.iter().position(|column| names.contains(&column.as_str()));
            found.map(|column| the_only(header, column)).transpose()
        };
        let mut place = Vec::new();
        place.extend(chosen(&options.id)?.map(PlaceColumn::Id));
        place.extend(chosen(&options.page)?.map(PlaceColumn::Page));
        place.extend(chosen(&options.offset)?.map(PlaceColumn::Offset));
        let is_chosen = !place.is_empty();
        if !is_chosen {
            place.extend(usual(USUAL_ID)?.map(PlaceColumn::Id));
            place.extend(usual(USUAL_PAGE)?.map(PlaceColumn::Page));
            place.extend(usual(USUAL_OFFSET)?.map(PlaceColumn::Offset));
        }
        let count = place.len();
        let Some(place) = place.pop().filter(|_| count == 1) else {
            let columns = if header.is_empty() { "none".to_string() } else { header.join(", ") };
            return Err(format!(
                "exactly one of the columns `id`, `page` and `offset` must be chosen, got {count} (columns named in the header: {columns})"
            ));
        };
        // Choosing the place says that the columns are known; then none is taken by its name alone.
        let optional = |choice: &Option<String>, names: &[&str]| match chosen(choice)? {
            None if !is_chosen => usual(names),
            column => Ok(column),
        };
        let time = optional(&options.time, USUAL_TIME)?;
        let object = optional(&options.object, USUAL_OBJECT)?;
        let size = optional(&options.size, USUAL_SIZE)?;
        let op = optional(&options.op, USUAL_OP)?;
        let (PlaceColumn::Id(at) | PlaceColumn::Page(at) | PlaceColumn::Offset(at)) = place;
        let needed = 1 + [time, object, size, op].into_iter().flatten().fold(at, usize::max);
        Ok(Columns { time, object, place, size, op, needed })
    }

    /// An option that says how to read a column that is not there, and the column.
    fn unused_option(&self, options: &ReadOptions) -> Option<(&'static str, &'static str)> {
        let has_id = matches!(self.place, PlaceColumn::Id(_));
        let has_offset = matches!(self.place, PlaceColumn::Offset(_));
        let unused = [
            ("ignore_size", "id", options.ignore_size && !has_id),
            ("csv.offset_unit", "offset", options.csv.offset_unit != 1 && !has_offset),
            ("csv.size_unit", "size", options.csv.size_unit != 1 && self.size.is_none()),
        ];
        unused.into_iter().find(|(.., is_unused)| *is_unused).map(|(option, column, _)| (option, column))
    }
}

fn find_chosen(header: &[String], name: &str) -> Result<usize, String> {
    let wanted = name.trim().to_lowercase();
    if let Some(column) = header.iter().position(|column| *column == wanted) {
        return the_only(header, column);
    }
    let by_place = wanted.strip_prefix('#').and_then(|place| place.parse::<usize>().ok());
    match by_place {
        Some(place) if (1..=FIELDS_MAX).contains(&place) => Ok(place - 1),
        _ if header.is_empty() => {
            Err(format!("there is no header line to find column `{name}` in: name it by its place, as `#1`"))
        }
        _ => Err(format!("there is no column `{name}`; the header names {}", header.join(", "))),
    }
}

/// A column found by its name, which must be no other's: nobody can tell which of the two is meant.
fn the_only(header: &[String], column: usize) -> Result<usize, String> {
    let name = &header[column];
    match header[column + 1..].iter().position(|other| other == name) {
        None => Ok(column),
        Some(behind) => Err(format!(
            "two columns are called `{name}`: choose one by its place, as `#{}` or `#{}`",
            column + 1,
            column + behind + 2
        )),
    }
}

enum Op {
    Read,
    Write,
    NoAccess,
}

impl Op {
    fn parse(field: &[u8]) -> Option<Op> {
        let field = str::from_utf8(field).ok()?.to_ascii_lowercase();
        Some(match field.as_str() {
            "r" | "read" | "rs" | "ra" | "get" | "gets" | "load" | "0" => Op::Read,
            "w" | "write" | "ws" | "set" | "put" | "store" | "add" | "replace" | "cas" | "append"
            | "prepend" | "incr" | "decr" | "update" | "insert" | "1" => Op::Write,
            "d" | "trim" | "discard" | "delete" | "flush" | "sync" => Op::NoAccess,
            _ => return None,
        })
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
    let parsed = str::from_utf8(field).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| source.error(format!("{what} is not a whole number: `{}`", shown(field))))
}

fn scaled(source: &Source, what: &str, field: &[u8], unit: u64) -> Result<u64, TraceError> {
    let number = whole(source, what, field)?;
    number
        .checked_mul(unit)
        .ok_or_else(|| source.error(format!("{what} {number} in bytes is past the number range")))
}

fn real(source: &Source, what: &str, field: &[u8]) -> Result<f64, TraceError> {
    let parsed =
        str::from_utf8(field).ok().and_then(|text| text.parse().ok()).filter(|time: &f64| time.is_finite());
    parsed.ok_or_else(|| source.error(format!("{what} is not a number: `{}`", shown(field))))
}

/// Splits lines into fields, one line at a time.
struct LineSplitter {
    core: csv_core::Reader,
    line: Vec<u8>,
    text: Vec<u8>,
    /// Where each field ends in `text`.
    ends: Vec<usize>,
    fields: usize,
}

impl LineSplitter {
    fn new(delimiter: u8) -> LineSplitter {
        let core = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        LineSplitter { core, line: Vec::new(), text: Vec::new(), ends: vec![0; FIELDS_MAX], fields: 0 }
    }

    /// Takes the next line that is not blank; `false` at the end.
    fn read(&mut self, source: &mut Source, unterminated_ok: bool) -> Result<bool, TraceError> {
        loop {
            if !source.read_line(&mut self.line, unterminated_ok)? {
                return Ok(false);
            }
            if self.line.trim_ascii().is_empty() {
                continue;
            }
            self.line.push(b'\n');
            self.text.resize(self.line.len(), 0);
            self.core.reset();
            let (result, taken, _, fields) =
                self.core.read_record(&self.line, &mut self.text, &mut self.ends);
            self.fields = fields;
            return match result {
                csv_core::ReadRecordResult::Record if taken == self.line.len() => Ok(true),
                csv_core::ReadRecordResult::Record => Err(source.error("a carriage return inside the line")),
                csv_core::ReadRecordResult::OutputEndsFull => {
                    Err(source.error(format!("more than {FIELDS_MAX} fields")))
                }
                _ => Err(source.error("a quoted field does not end on its line")),
            };
        }
    }

    fn len(&self) -> usize {
        self.fields
    }

    fn field(&self, column: usize) -> &[u8] {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        &self.text[start..self.ends[column]]
    }
}
