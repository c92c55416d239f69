//! fio's I/O log, versions 2 and 3, as `write_iolog` writes it.
//!
//! ```text
//!   fio version 2 iolog                fio version 3 iolog
//!   /mnt/f add                         0 /mnt/f add
//!   /mnt/f open                        0 /mnt/f open
//!   /mnt/f wait 12000                  12000 /mnt/f read 8192 4096    microseconds in front
//!   /mnt/f read 8192 4096              15000 /mnt/f close
//!   /mnt/f close
//! ```
//!
//! A file is an object, numbered in order of first appearance; offsets keep their place in it. Opens, closes, syncs,
//! waits and trims are records that access no page. Version 2 has no times but its waits: they are in microseconds, too, and add
//! up.
//!
//! Source: fio's documentation, "Trace file format".

use super::error::TraceError;
use super::intern::Names;
use super::options::ReadOptions;
use super::record::{REQUEST_BYTES_MAX, Record, RecordReader, Target, pages_of_range, whole_pages_of_range};
use super::source::Source;
use super::text::shown;
use crate::Access;

pub(super) struct FioIolog {
    source: Source,
    page_size: u64,
    unterminated_ok: bool,
    has_times: bool,
    /// Microseconds waited so far, in version 2.
    waited: Option<u64>,
    files: Names,
    line: Vec<u8>,
}

impl FioIolog {
    /// Reads the version line.
    pub(super) fn new(mut source: Source, options: &ReadOptions) -> Result<FioIolog, TraceError> {
        let mut line = Vec::new();
        if !source.read_line(&mut line, options.unterminated_ok)? {
            let why = "found an empty file, expected the first line `fio version 2 iolog`";
            return Err(source.error(why).help(TraceError::EMPTY));
        }
        let has_times = match line.trim_ascii() {
            b"fio version 2 iolog" => false,
            b"fio version 3 iolog" => true,
            other => {
                let reason = format!(
                    "the file starts with `{}`, expected `fio version 2 iolog` or `fio version 3 iolog`",
                    shown(other)
                );
                return Err(source.error(reason));
            }
        };
        let page_size = options.page_bytes().into();
        let unterminated_ok = options.unterminated_ok;
        Ok(FioIolog {
            source,
            page_size,
            unterminated_ok,
            has_times,
            waited: None,
            files: Names::listed(),
            line,
        })
    }

    fn parse(&mut self) -> Result<Record, TraceError> {
        let mut fields = self.line.split(|byte| byte.is_ascii_whitespace()).filter(|field| !field.is_empty());
        let time = if self.has_times {
            let field = fields.next().unwrap_or_default();
            Some(number(&self.source, "timestamp", field)? as f64)
        } else {
            self.waited.map(|waited| waited as f64)
        };
        let (Some(file), Some(action)) = (fields.next(), fields.next()) else {
            return Err(self.source.error("a line must have a file and an action"));
        };
        let is_write = match action {
            b"read" => false,
            b"write" => true,
            b"add" | b"open" | b"close" => {
                // Objects are numbered in the order in which the log adds files, accessed or not.
                if self.files.number(file, Access::OBJECTS_MAX).is_none() {
                    return Err(self.source.error("more than 2^23 files"));
                }
                return Ok(Record::without_access(time));
            }
            b"wait" if !self.has_times => {
                let waits = number(&self.source, "wait", fields.next().unwrap_or_default())?;
                let begun = self.waited.unwrap_or(0);
                let Some(over) = begun.checked_add(waits) else {
                    return Err(self.source.error("the sum of the waits exceeds the number range"));
                };
                self.waited = Some(over);
                return Ok(Record::without_access(Some(begun as f64)));
            }
            b"sync" | b"datasync" | b"wait" => return Ok(Record::without_access(time)),
            b"trim" => {
                let (offset, length) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
                let offset = number(&self.source, "offset", offset)?;
                let bytes = number(&self.source, "length", length)?;
                let Some((first, pages)) = whole_pages_of_range(offset, bytes, self.page_size) else {
                    return Err(self.source.error("offset and length exceed the number range"));
                };
                let Some(object) = self.files.number(file, Access::OBJECTS_MAX) else {
                    return Err(self.source.error("more than 2^23 files"));
                };
                return Ok(match pages {
                    0 => Record::without_access(time),
                    pages => Record::delete(object, Target::Place(first), pages, time),
                });
            }
            other => return Err(self.source.error(format!("unknown action `{}`", shown(other)))),
        };
        let (Some(offset), Some(length), None) = (fields.next(), fields.next(), fields.next()) else {
            return Err(self
                .source
                .error("a read or write must have an offset and a length, and no further field"));
        };
        let offset = number(&self.source, "offset", offset)?;
        let bytes = number(&self.source, "length", length)?;
        if bytes > REQUEST_BYTES_MAX {
            return Err(self.source.error(format!("a length of {bytes} bytes, more than 4 GiB")));
        }
        let Some((first, pages)) = pages_of_range(offset, bytes, self.page_size) else {
            return Err(self.source.error("offset and length exceed the number range"));
        };
        let Some(object) = self.files.number(file, Access::OBJECTS_MAX) else {
            return Err(self.source.error("more than 2^23 files"));
        };
        Ok(Record { object, target: Target::Place(first), pages, is_write, time, bytes, removes: 0 })
    }
}

impl RecordReader for FioIolog {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if !self.source.read_line(&mut self.line, self.unterminated_ok)? {
                return self.source.end();
            }
            if self.line.trim_ascii().is_empty() {
                continue;
            }
            let record = self.parse()?;
            self.source.count_records(1);
            return Ok(Some(record));
        }
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn object_names(&self) -> &[String] {
        self.files.names()
    }

    fn time_unit(&self) -> &'static str {
        "us"
    }

    fn has_times(&self) -> bool {
        true
    }

    fn object_titles(&self) -> &'static [&'static str] {
        &["object", "file"]
    }
}

fn number(source: &Source, what: &str, field: &[u8]) -> Result<u64, TraceError> {
    let parsed = str::from_utf8(field).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| source.error(format!("{what} is not a number: `{}`", shown(field))))
}
