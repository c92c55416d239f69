//! Text page lists: page numbers as text, one a line, of one object, and nothing says which accesses write.
//!
//! ```text
//!   # comments, to the end of the line
//!   100
//!   0x65
//! ```
//!
//! Numbers are decimal, or hexadecimal behind `0x`. They are pages. Addresses in bytes would look the same, so a list whose numbers
//! are all multiples of the page size is reported.

use super::error::TraceError;
use super::options::ReadOptions;
use super::record::{Record, RecordReader, Target};
use super::source::Source;
use super::text::{page_number, shown, without_comment};

pub(super) struct PagesText {
    source: Source,
    unterminated_ok: bool,
    page_size: u64,
    line: Vec<u8>,
    /// All numbers so far are multiples of the page size.
    are_multiples: bool,
    /// One of them is not 0.
    has_other_than_0: bool,
}

impl PagesText {
    pub(super) fn new(source: Source, options: &ReadOptions) -> PagesText {
        PagesText {
            source,
            unterminated_ok: options.unterminated_ok,
            page_size: options.page_bytes().into(),
            line: Vec::new(),
            are_multiples: true,
            has_other_than_0: false,
        }
    }

    fn fault(&self, line: &[u8]) -> TraceError {
        let shown = shown(line);
        let is_hexadecimal =
            line.iter().all(u8::is_ascii_hexdigit) && line.iter().any(u8::is_ascii_alphabetic);
        self.source.error(if is_hexadecimal {
            format!("`{shown}` is not a page number: a hexadecimal number begins with 0x")
        } else if line.iter().any(|byte| !byte.is_ascii_alphanumeric()) {
            format!(
                "found `{shown}`, expected one page number; to read text with several columns: --trace-format csv --read csv.header=false, and select columns by position, such as --read csv.page=#1"
            )
        } else {
            format!("`{shown}` is not a page number")
        })
    }
}

impl RecordReader for PagesText {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if !self.source.read_line(&mut self.line, self.unterminated_ok)? {
                return self.source.end();
            }
            let line = self.line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.line);
            let line = without_comment(line);
            if line.is_empty() {
                continue;
            }
            let Some(page) = page_number(line) else { return Err(self.fault(line)) };
            self.are_multiples &= page % self.page_size == 0;
            self.has_other_than_0 |= page != 0;
            self.source.count_records(1);
            let target = Target::Place(page);
            return Ok(Some(Record {
                object: 0,
                target,
                pages: 1,
                is_write: false,
                time: None,
                bytes: 0,
                removes: 0,
            }));
        }
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn tells_writes(&self) -> bool {
        false
    }

    fn doubts(&self) -> Vec<String> {
        if !(self.are_multiples && self.has_other_than_0) {
            return Vec::new();
        }
        let size = self.page_size;
        vec![format!(
            "all numbers are multiples of {size}, and are read as page numbers; if they are bytes: --trace-format csv --read csv.header=false --read csv.offset=#1"
        )]
    }

    fn is_ambiguous(&self) -> bool {
        self.are_multiples
    }
}
