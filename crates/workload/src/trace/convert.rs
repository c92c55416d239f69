//! Conversion of a trace of any format, or of any stream of accesses, to `.pgt`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use super::error::{Place, TraceError};
use super::open::open_reader;
use super::options::ReadOptions;
use super::pgt::{PgtWriter, TraceHeader};
use crate::AccessStream;
use crate::trace::Format;

const CHUNK: usize = 1 << 16;

/// Converts the trace at `path` to `.pgt`, streaming. It calls `progress` now and then with the bytes of the file that have been read. The result is
/// complete only if this returns `Ok`; an incomplete one lacks its end block and is rejected by the reader.
pub fn convert(
    path: &Path,
    options: &ReadOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<TraceHeader, TraceError> {
    let (mut reader, bytes_read) = open_reader(path, options)?;
    let writer = PgtWriter::of(out, reader.page_size(), reader.tells_writes(), reader.has_neighbours());
    let mut writer = writer.map_err(write_error)?;
    let mut chunk = Vec::with_capacity(CHUNK);
    while reader.fill(&mut chunk, CHUNK)? > 0 {
        writer.write(&chunk).map_err(write_error)?;
        chunk.clear();
        progress(bytes_read.load(Ordering::Relaxed));
    }
    progress(bytes_read.load(Ordering::Relaxed));
    let header = writer.finish(reader.object_names(), reader.originals(), reader.records_read());
    Ok(TraceHeader { requests: reader.requests(), ..header.map_err(write_error)? })
}

/// Writes any stream as `.pgt`, for example that of a generator. `names` are the names of the objects by number; further objects get `object-N`.
/// `page_size` is in bytes.
pub fn record(
    stream: &mut dyn AccessStream,
    names: &[String],
    page_size: u32,
    out: &mut dyn Write,
) -> Result<TraceHeader, TraceError> {
    let mut writer = PgtWriter::new(out, page_size, true).map_err(write_error)?;
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut records = 0;
    while stream.fill(&mut chunk, CHUNK)? > 0 {
        writer.write(&chunk).map_err(write_error)?;
        records += chunk.len() as u64;
        chunk.clear();
    }
    writer.finish(names, None, records).map_err(write_error)
}

fn write_error(error: io::Error) -> TraceError {
    TraceError::io("the `.pgt` being written", Some(Format::Pgt), Place::default(), error)
}
