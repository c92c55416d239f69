//! Errors of reading a trace, each with its place: one bad byte in gigabytes can be fixed only if its place is known.

use std::fmt;
use std::io;

use super::Format;

/// A trace that could not be read: which file, as which format, where in it, and why.
#[derive(Debug)]
pub struct TraceError(Box<Failure>);

#[derive(Debug)]
struct Failure {
    file: String,
    format: Option<Format>,
    place: Place,
    reason: String,
    help: Option<&'static str>,
    source: Option<io::Error>,
    is_decompressed: bool,
}

/// A place in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Records read in full before it; so the record at fault is this one, counted from 0.
    pub records_read: u64,
    /// Bytes before it, counted after decompression.
    pub byte_offset: u64,
    /// The line of the place, counted from 1, in a text format.
    pub line: Option<u64>,
}

impl TraceError {
    /// What to do about a file that is not complete.
    pub(super) const TRUNCATED: &str = "copy or download the file again; its other end may be missing";

    /// What to do about a file without accesses.
    pub(super) const EMPTY: &str = "check the path, and whether the program that writes the file has ended";

    /// An error about `file` at `place`; `format` where it is already known.
    pub fn new(file: &str, format: Option<Format>, place: Place, reason: impl Into<String>) -> TraceError {
        TraceError(Box::new(Failure {
            file: file.to_string(),
            format,
            place,
            reason: reason.into(),
            help: None,
            source: None,
            is_decompressed: false,
        }))
    }

    /// Adds what to do about it.
    #[must_use]
    pub(super) fn help(mut self, help: &'static str) -> TraceError {
        self.0.help = Some(help);
        self
    }

    /// This error, saying that its bytes were counted after decompression.
    pub(super) fn decompressed(mut self) -> TraceError {
        self.0.is_decompressed = true;
        self
    }

    /// An error of the operating system or the decompressor, which becomes the source.
    pub fn io(file: &str, format: Option<Format>, place: Place, source: io::Error) -> TraceError {
        let reason = source.to_string();
        TraceError::io_told(file, format, place, source, reason)
    }

    /// An error of the operating system or the decompressor, with additional words.
    pub(super) fn io_told(
        file: &str,
        format: Option<Format>,
        place: Place,
        source: io::Error,
        reason: String,
    ) -> TraceError {
        let mut error = TraceError::new(file, format, place, reason);
        error.0.source = Some(source);
        error
    }

    /// The file as it was named to the reader.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The format read, if it was known yet.
    pub fn format(&self) -> Option<Format> {
        self.0.format
    }

    /// The record at fault, counted from 0; also the number of records read in full before it.
    pub fn records_read(&self) -> u64 {
        self.0.place.records_read
    }

    /// Byte offset in the decompressed file at which the record at fault starts.
    pub fn byte_offset(&self) -> u64 {
        self.0.place.byte_offset
    }

    /// The line at fault, counted from 1, in a text format.
    pub fn line(&self) -> Option<u64> {
        self.0.place.line
    }

    /// The reason why the trace can't be read.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { file, format, place, reason, help, is_decompressed, .. } = &*self.0;
        write!(f, "{file}")?;
        if let Some(format) = format {
            write!(f, " ({format})")?;
        }
        write!(f, ": ")?;
        if let Some(line) = place.line {
            write!(f, "line {line}, ")?;
        }
        if format.is_some() {
            let of = if *is_decompressed { " of the decompressed data" } else { "" };
            write!(f, "record {} at byte {}{of}: ", place.records_read, place.byte_offset)?;
        }
        // The help of a reason comes last.
        let (reason, more) = reason.split_once("\nhelp: ").unwrap_or((reason, ""));
        write!(f, "{reason}")?;
        if place.records_read > 0 {
            write!(f, " ({} records were read before it)", place.records_read)?;
        }
        match (more, help) {
            ("", None) => Ok(()),
            ("", Some(help)) => write!(f, "\nhelp: {help}"),
            (more, _) => write!(f, "\nhelp: {more}"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}
