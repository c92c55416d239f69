//! Lines of a CSV trace, split into fields one at a time.

use super::super::error::TraceError;
use super::super::options::Delimiter;
use super::super::source::Source;
use super::published::is_number;

/// More columns than any trace has.
pub(super) const FIELDS_MAX: usize = 1024;

/// Splits lines into fields. A quoted field ends on its line.
pub(super) struct LineSplitter {
    delimiter: Delimiter,
    core: csv_core::Reader,
    line: Vec<u8>,
    /// The line with one blank between fields, where any number may be.
    narrowed: Vec<u8>,
    text: Vec<u8>,
    /// End of each field in `text`, in bytes.
    ends: Vec<usize>,
    fields: usize,
    /// The last comment before the line, without its sign.
    comment: Vec<u8>,
}

impl LineSplitter {
    pub(super) fn new(delimiter: Delimiter) -> LineSplitter {
        LineSplitter {
            delimiter,
            core: core(delimiter),
            line: Vec::new(),
            narrowed: Vec::new(),
            text: Vec::new(),
            ends: vec![0; FIELDS_MAX],
            fields: 0,
            comment: Vec::new(),
        }
    }

    /// Takes the next line that is neither blank nor a comment, which begins with a `#`; `false` at the end.
    pub(super) fn read(&mut self, source: &mut Source, unterminated_ok: bool) -> Result<bool, TraceError> {
        loop {
            if !source.read_line(&mut self.line, unterminated_ok)? {
                return Ok(false);
            }
            let line = self.line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.line).trim_ascii();
            if line.is_empty() {
                continue;
            }
            if let Some(comment) = line.strip_prefix(b"#") {
                self.comment.clear();
                self.comment.extend_from_slice(comment);
                continue;
            }
            self.line.push(b'\n');
            return self.split(source).map(|()| true);
        }
    }

    /// Splits the current line again, if it is one field and contains another delimiter: returns which. Tabs, semicolons and bars are hardly ever
    /// part of a field, blanks may be.
    pub(super) fn find_delimiter(&mut self, source: &Source) -> Result<Option<Delimiter>, TraceError> {
        const USUAL: [Delimiter; 5] = [
            Delimiter::Byte(b'\t'),
            Delimiter::Byte(b';'),
            Delimiter::Byte(b','),
            Delimiter::Byte(b'|'),
            Delimiter::Blanks,
        ];
        if self.fields != 1 {
            return Ok(None);
        }
        let line = self.line.trim_ascii();
        let stands = |delimiter: &Delimiter| match delimiter {
            Delimiter::Byte(byte) => line.contains(byte),
            Delimiter::Blanks => line.contains(&b' '),
        };
        let Some(found) = USUAL.into_iter().find(stands) else { return Ok(None) };
        (self.delimiter, self.core) = (found, core(found));
        self.split(source)?;
        Ok(Some(found))
    }

    /// The names in the comment above the first line, if it names as many columns as that has fields: some people put a `#` in front of
    /// names. Only above a line that has numbers, which can't be names.
    pub(super) fn names_in_comment(&mut self, source: &Source) -> Option<Vec<String>> {
        let has_number = (0..self.len()).any(|column| is_number(self.field(column)));
        if self.comment.is_empty() || !has_number {
            return None;
        }
        let fields = self.len();
        let mut line = std::mem::take(&mut self.comment);
        line.push(b'\n');
        std::mem::swap(&mut self.line, &mut line);
        let names = self.split(source).ok().map(|()| self.names());
        std::mem::swap(&mut self.line, &mut line);
        self.split(source).ok()?;
        let is_name = |name: &String| !name.is_empty() && !is_number(name.as_bytes());
        names.filter(|names| names.len() == fields && names.iter().all(is_name))
    }

    fn split(&mut self, source: &Source) -> Result<(), TraceError> {
        let mut line = &self.line;
        if self.delimiter == Delimiter::Blanks {
            narrow(&self.line, &mut self.narrowed);
            line = &self.narrowed;
        }
        self.text.resize(line.len(), 0);
        self.core.reset();
        let (result, taken, _, fields) = self.core.read_record(line, &mut self.text, &mut self.ends);
        self.fields = fields;
        match result {
            csv_core::ReadRecordResult::Record if taken == line.len() => Ok(()),
            csv_core::ReadRecordResult::Record => Err(source.error("a carriage return inside the line")),
            csv_core::ReadRecordResult::OutputEndsFull => {
                Err(source.error(format!("more than {FIELDS_MAX} fields")))
            }
            _ => Err(source.error("a quoted field does not end on its line")),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.fields
    }

    pub(super) fn field(&self, column: usize) -> &[u8] {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        &self.text[start..self.ends[column]]
    }

    /// The fields as names of columns.
    pub(super) fn names(&self) -> Vec<String> {
        // Some programs put a byte-order mark in front, and some people a `#`.
        let name = |field: &[u8]| {
            String::from_utf8_lossy(field).trim_start_matches(['\u{feff}', '#']).trim().to_string()
        };
        (0..self.len()).map(|column| name(self.field(column))).collect()
    }
}

fn core(delimiter: Delimiter) -> csv_core::Reader {
    let byte = match delimiter {
        Delimiter::Byte(byte) => byte,
        Delimiter::Blanks => b' ',
    };
    csv_core::ReaderBuilder::new().delimiter(byte).build()
}

/// Makes one blank of each run of blanks and tabs outside of quotes, and none of those at the ends of the line.
fn narrow(line: &[u8], narrowed: &mut Vec<u8>) {
    narrowed.clear();
    let (mut is_quoted, mut is_due) = (false, false);
    for &byte in line.trim_ascii() {
        is_quoted ^= byte == b'"';
        if !is_quoted && matches!(byte, b' ' | b'\t') {
            is_due = true;
            continue;
        }
        if std::mem::take(&mut is_due) {
            narrowed.push(b' ');
        }
        narrowed.push(byte);
    }
    narrowed.push(b'\n');
}
