//! Lines of a CSV trace, split into fields one at a time.

use super::super::error::TraceError;
use super::super::options::Delimiter;
use super::super::source::Source;

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
        }
    }

    /// Takes the next line that is not blank; `false` at the end.
    pub(super) fn read(&mut self, source: &mut Source, unterminated_ok: bool) -> Result<bool, TraceError> {
        loop {
            if !source.read_line(&mut self.line, unterminated_ok)? {
                return Ok(false);
            }
            if self.line.trim_ascii().is_empty() {
                continue;
            }
            self.line.push(b'\n');
            return self.split(source).map(|()| true);
        }
    }

    /// Splits the line in hand anew, if it is one field and has another delimiter in it: returns which. Tabs, semicolons and bars are
    /// hardly ever part of a field, blanks may be.
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
