//! The bytes of a trace with their position: every reader takes its records from here, so that every error knows where it happened.
//!
//! Decompression is detected by magic, not by name. Offsets count decompressed bytes, because those are used by a format's description and by a hex
//! viewer.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::error::{Place, TraceError};
use super::format::Format;
use super::zstd;

/// The byte stream that readers read from.
pub(super) type Input = Box<dyn Read + Send>;

pub(super) const BUFFER_BYTES: usize = 256 << 10;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// A text trace has no longer lines; a binary file read as text would otherwise be held in memory whole.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A trace's decompressed bytes, the position in them, and the names that errors carry.
pub(super) struct Source {
    bytes: BufReader<Input>,
    file: String,
    format: Option<Format>,
    is_compressed: bool,
    /// Where the record being read starts, and what was read before it.
    place: Place,
    /// Bytes taken so far.
    offset: u64,
}

impl Source {
    /// Looks at the first bytes and puts a decompressor in between if they ask for one.
    pub(super) fn new(file: &str, mut input: Input) -> Result<Source, TraceError> {
        let fail = |error| TraceError::io(file, None, Place::default(), error);
        let start = read_up_to(&mut input, ZSTD_MAGIC.len()).map_err(fail)?;
        let is_compressed = start == ZSTD_MAGIC;
        let whole: Input = Box::new(Cursor::new(start).chain(input));
        let plain: Input = if is_compressed { zstd::decoder(whole).map_err(fail)? } else { whole };
        let bytes = BufReader::with_capacity(BUFFER_BYTES, plain);
        let file = file.to_string();
        Ok(Source { bytes, file, format: None, is_compressed, place: Place::default(), offset: 0 })
    }

    /// The first `count` bytes, or as many as there are, without taking them.
    pub(super) fn peek(&mut self, count: usize) -> Result<Vec<u8>, TraceError> {
        let mut start = read_up_to(&mut self.bytes, count).map_err(|error| self.io_error(error))?;
        // Pushed back in front of what is left, buffered or not.
        let seen = start.clone();
        let empty: Input = Box::new(io::empty());
        let rest = std::mem::replace(&mut self.bytes, BufReader::with_capacity(0, empty));
        let rest: Input = Box::new(Cursor::new(std::mem::take(&mut start)).chain(rest));
        self.bytes = BufReader::with_capacity(BUFFER_BYTES, rest);
        Ok(seen)
    }

    pub(super) fn set_format(&mut self, format: Format) {
        self.format = Some(format);
    }

    /// Moves the reported position, for a source that starts in the middle of a file.
    pub(super) fn set_offset(&mut self, offset: u64) {
        self.offset = offset;
        self.place.byte_offset = offset;
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn format(&self) -> Option<Format> {
        self.format
    }

    /// Bytes taken so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn records_read(&self) -> u64 {
        self.place.records_read
    }

    /// The record at `place` has been read in full.
    pub(super) fn count_records(&mut self, records: u64) {
        self.place.records_read += records;
    }

    /// An error at the record being read.
    pub(super) fn error(&self, reason: impl Into<String>) -> TraceError {
        self.placed(TraceError::new(&self.file, self.format, self.place, reason))
    }

    fn placed(&self, error: TraceError) -> TraceError {
        if self.is_compressed { error.decompressed() } else { error }
    }

    /// An error about the record that has just been read and counted.
    pub(super) fn error_in_last(&self, reason: impl Into<String>) -> TraceError {
        let records_read = self.place.records_read.saturating_sub(1);
        self.placed(TraceError::new(&self.file, self.format, Place { records_read, ..self.place }, reason))
    }

    /// The end of a text: an error if no record came before it, as an empty file is.
    pub(super) fn end<T>(&self) -> Result<Option<T>, TraceError> {
        if self.records_read() > 0 {
            Ok(None)
        } else {
            Err(self.error("the file ends before its first record").help(TraceError::TRUNCATED))
        }
    }

    fn io_error(&self, error: io::Error) -> TraceError {
        if !self.is_compressed {
            return TraceError::io(&self.file, self.format, self.place, error);
        }
        // The decompressor gives whole blocks only: what is missing may be much more than what the file is short of.
        let reason = format!(
            "{error}: the compressed file is truncated or damaged; {} bytes were decompressed",
            self.offset
        );
        self.placed(TraceError::io_told(&self.file, self.format, self.place, error, reason))
            .help(TraceError::TRUNCATED)
    }

    /// Fills `record` with the next bytes, or says `false` at a clean end. An end in the middle is an error.
    #[inline]
    pub(super) fn read_record<const N: usize>(&mut self, record: &mut [u8; N]) -> Result<bool, TraceError> {
        self.place.byte_offset = self.offset;
        // Nearly every record is in the buffer whole.
        let Some(bytes) = self.bytes.buffer().first_chunk() else { return self.read_across(record) };
        *record = *bytes;
        self.bytes.consume(N);
        self.offset += N as u64;
        Ok(true)
    }

    /// The next bytes, as many as are in memory.
    pub(super) fn buffered(&self) -> &[u8] {
        self.bytes.buffer()
    }

    /// So many records of so many bytes each were read of what is in memory.
    pub(super) fn take_records(&mut self, records: usize, bytes: usize) {
        if records > 0 {
            self.bytes.consume(records * bytes);
            self.offset += (records * bytes) as u64;
            self.place.byte_offset = self.offset - bytes as u64;
            self.count_records(records as u64);
        }
    }

    /// Fills `record` where the buffer has no more than its start.
    #[cold]
    fn read_across(&mut self, record: &mut [u8]) -> Result<bool, TraceError> {
        match self.read_some(record)? {
            0 => Ok(false),
            count if count == record.len() => Ok(true),
            count => Err(self.truncated(count, record.len())),
        }
    }

    /// Fills `rest` with the next bytes of the record begun; the end is an error.
    pub(super) fn read_rest(&mut self, rest: &mut [u8]) -> Result<(), TraceError> {
        match self.read_some(rest)? {
            count if count == rest.len() => Ok(()),
            count => Err(self.truncated(count, rest.len())),
        }
    }

    fn read_some(&mut self, bytes: &mut [u8]) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < bytes.len() {
            match self.bytes.read(&mut bytes[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.io_error(error)),
            }
        }
        self.offset += count as u64;
        Ok(count)
    }

    /// Takes all bytes that are left, of a format whose index is at the end.
    #[cfg(feature = "parquet")]
    pub(super) fn take_all(&mut self) -> Result<Vec<u8>, TraceError> {
        let mut bytes = Vec::new();
        self.bytes.read_to_end(&mut bytes).map_err(|error| self.io_error(error))?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn truncated(&self, count: usize, wanted: usize) -> TraceError {
        self.error(format!("the file is truncated: found {count} bytes, expected {wanted}"))
            .help(TraceError::TRUNCATED)
    }

    /// Reads the next line into `line`, without its line end, or says `false` at the end. A last line without a line
    /// feed is an error unless `unterminated_ok`: half a number still looks like a number.
    pub(super) fn read_line(
        &mut self,
        line: &mut Vec<u8>,
        unterminated_ok: bool,
    ) -> Result<bool, TraceError> {
        self.place.byte_offset = self.offset;
        self.place.line = Some(self.place.line.unwrap_or(0) + 1);
        line.clear();
        let mut bounded = (&mut self.bytes).take(LINE_BYTES_MAX);
        let count = bounded.read_until(b'\n', line).map_err(|error| self.io_error(error))? as u64;
        self.offset += count;
        if count == 0 {
            return Ok(false);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        } else if count == LINE_BYTES_MAX {
            return Err(self.error("a line of more than 1 MiB: this is not a text trace"));
        } else if !unterminated_ok {
            let why = "the last line has no line feed, so the file may be truncated";
            return Err(self.error(why).help(
                "copy the file again, or accept it by the read option `unterminated_ok` (--read unterminated_ok=true)",
            ));
        }
        Ok(true)
    }
}

fn read_up_to(input: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count);
    input.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
