//! Lines split into fields, one at a time.

use super::super::error::TraceError;
use super::super::source::Source;

/// More columns than any trace has.
pub(super) const FIELDS_MAX: usize = 1024;

/// Splits lines into fields. A quoted field ends on its line.
pub(super) struct LineSplitter {
    core: csv_core::Reader,
    line: Vec<u8>,
    text: Vec<u8>,
    /// Where each field ends in `text`.
    ends: Vec<usize>,
    fields: usize,
}

impl LineSplitter {
    pub(super) fn new(delimiter: u8) -> LineSplitter {
        let core = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        LineSplitter { core, line: Vec::new(), text: Vec::new(), ends: vec![0; FIELDS_MAX], fields: 0 }
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
