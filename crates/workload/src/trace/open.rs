//! Opening a trace: from a path to a reader.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ahead::Ahead;
use super::bytes_ahead::BytesAhead;
use super::csv::Csv;
use super::error::{Place, TraceError};
use super::file::{open_file, require_regular};
use super::format::Format;
use super::formats::for_each_format;
use super::intern::OriginalId;
use super::options::{ReadOptions, is_page_size};
use super::pgt::{self, PgtReader, Tables, TraceHeader};
use super::replay::{Replay, TraceReader};
use super::source::{Input, Source};
use crate::AccessStream;

/// Opens a trace for replay. It must be a regular file: a replay reads it several times.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Box<dyn AccessStream>, TraceError> {
    require_regular(path)?;
    let (reader, _) = open_reader(path, options)?;
    Ok(reader)
}

/// Opens a trace for replay, read ahead by a thread of its own.
pub fn open_ahead(path: &Path, options: &ReadOptions) -> Result<Box<dyn AccessStream>, TraceError> {
    Ok(Box::new(Ahead::new(open(path, options)?)))
}

/// Replays a trace from any bytes, such as a pipe. `name` is for errors, and for telling the format where neither
/// content nor options do.
pub fn from_reader(
    name: &str,
    input: Box<dyn Read + Send>,
    options: &ReadOptions,
) -> Result<Box<dyn AccessStream>, TraceError> {
    let source = detected(name, input, options)?;
    let reader = reader_of(source, options)?;
    Ok(reader)
}

/// Returns the header of a `.pgt`, without reading its accesses. `None` for other formats, which have none, and for a `.pgt` compressed once more,
/// whose end can't be reached without reading all of it.
pub fn header(path: &Path, options: &ReadOptions) -> Result<Option<TraceHeader>, TraceError> {
    require_regular(path)?;
    let Some((mut reader, tables)) = open_pgt(path, options)? else { return Ok(None) };
    Ok(Some(reader.set_tables(tables)))
}

/// Returns whether the numbers of a trace's pages are places, so that adjacent numbers are neighbours: opaque ids have none.
pub fn has_neighbours(path: &Path, options: &ReadOptions) -> Result<bool, TraceError> {
    Ok(open_to_look(path, options)?.has_neighbours())
}

/// Returns the original names of the pages of a converted trace, by object and page. Empty unless `keep_ids` was set when it was converted; `None`
/// where [`header`] is.
pub fn original_ids(path: &Path, options: &ReadOptions) -> Result<Option<Vec<Vec<OriginalId>>>, TraceError> {
    Ok(open_pgt(path, options)?.map(|(_, tables)| tables.ids))
}

/// A reader of a trace that is only inspected.
pub(super) fn open_to_look(path: &Path, options: &ReadOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    require_regular(path)?;
    Ok(open_reader(path, options)?.0)
}

/// A trace's reader, and the count of bytes that it has read of the file as it is stored.
pub(super) fn open_reader(
    path: &Path,
    options: &ReadOptions,
) -> Result<(Box<dyn TraceReader>, Arc<AtomicU64>), TraceError> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    let counted = |file| BytesAhead::of(Box::new(Counted { file, bytes_read: Arc::clone(&bytes_read) }));
    let name = path.to_string_lossy();
    let source = detected(&name, counted(open_file(path)?), options)?;
    let mut reader: Box<dyn TraceReader> = reader_of(source, options)?;
    if reader.format() == Format::Pgt {
        // Its tables are at its end.
        require_regular(path)?;
        if let Some((_, tables)) = open_pgt(path, options)? {
            let mut pgt = PgtReader::new(detected(&name, counted(open_file(path)?), options)?)?;
            pgt.set_tables(tables);
            bytes_read.store(0, Ordering::Relaxed);
            reader = Box::new(pgt);
        }
    }
    Ok((reader, bytes_read))
}

/// A `.pgt`'s reader at its start and its tables; `None` for anything else.
fn open_pgt(path: &Path, options: &ReadOptions) -> Result<Option<(PgtReader, Tables)>, TraceError> {
    let name = path.to_string_lossy();
    let mut file = open_file(path)?;
    let fail = |error| TraceError::io(&name, Some(Format::Pgt), Place::default(), error);
    let mut magic = [0; pgt::MAGIC.len()];
    let is_plain_pgt = file.read_exact(&mut magic).is_ok() && magic == pgt::MAGIC;
    if !is_plain_pgt {
        return Ok(None);
    }
    let source = detected(&name, Box::new(open_file(path)?), options)?;
    let reader = PgtReader::new(source)?.with_page_size(options.page_size)?;
    let length = file.seek(SeekFrom::End(0)).map_err(fail)?;
    let mut source_at = |offset: u64| -> Result<Source, TraceError> {
        file.seek(SeekFrom::Start(offset)).map_err(fail)?;
        let file = file.try_clone().map_err(fail)?;
        let mut source = Source::new(&name, Box::new(file))?;
        source.set_format(Format::Pgt);
        source.set_offset(offset);
        Ok(source)
    };
    let end = pgt::read_end(&mut source_at(length.saturating_sub(pgt::END_BYTES as u64))?)?;
    let tables = pgt::read_tables(&mut source_at(end.tables_offset)?, reader.version())?;
    Ok(Some((reader, tables)))
}

/// How files begin that are compressed in a way that is not read here, how they are called, and what decompresses them.
const COMPRESSED: &[(&[u8], &str, &str, &str)] = &[
    (&[0x1F, 0x8B, 0x08], "gzip", ".gz", "gunzip"),
    (&[0xFD, b'7', b'z', b'X', b'Z', 0], "xz", ".xz", "unxz"),
    (b"BZh", "bzip2", ".bz2", "bunzip2"),
    (&[0x04, 0x22, 0x4D, 0x18], "lz4", ".lz4", "unlz4"),
    (b"PK\x03\x04", "zip", ".zip", "unzip"),
];

/// A source whose format is known.
fn detected(name: &str, input: Input, options: &ReadOptions) -> Result<Source, TraceError> {
    let mut source = Source::new(name, input)?;
    let format = match options.format {
        Some(format) => format,
        None => {
            // If nothing can be read, the name alone may tell, so that the error says where in what it happened.
            if let Ok(by_name) = Format::detect(Path::new(name), &[]) {
                source.set_format(by_name);
            }
            let start = source.peek(Format::DETECTED_BYTES)?;
            refuse_compressed(&source, name, &start)?;
            Format::detect(Path::new(name), &start)?
        }
    };
    source.set_format(format);
    if options.format.is_some() {
        let start = source.peek(8)?;
        refuse_compressed(&source, name, &start)?;
    }
    Ok(source)
}

/// Magic bytes of compression, if text is expected or the name suggests compression, too: a list of pages may begin with any bytes.
fn refuse_compressed(source: &Source, name: &str, start: &[u8]) -> Result<(), TraceError> {
    let Some((_, kind, suffix, program)) = COMPRESSED.iter().find(|(magic, ..)| start.starts_with(magic))
    else {
        return Ok(());
    };
    let is_text = source.format().is_none_or(Format::is_text);
    if !is_text && !name.to_lowercase().ends_with(suffix) {
        return Ok(());
    }
    Err(source.error(format!("it is compressed with {kind}, but only zstd is supported: {program} it first")))
}

/// The reader of the source's format.
pub(super) fn reader_of(
    mut source: Source,
    options: &ReadOptions,
) -> Result<Box<dyn TraceReader>, TraceError> {
    if !is_page_size(options.page_bytes()) {
        let reason =
            format!("`page_size` must be a power of two from 512 to 2^30, got {}", options.page_bytes());
        return Err(source.error(reason));
    }
    let format = source.format().expect("the caller has told the source its format");
    if let Some((option, needed)) = options.unused_by(format) {
        let formats: Vec<&str> =
            Format::ALL.iter().filter(|other| other.uses(needed)).map(|other| other.name()).collect();
        let reason = format!("the read option `{option}` is for {}, not for {format}", formats.join(", "));
        return Err(source.error(reason));
    }
    if !format.has_header() && source.peek(1)?.is_empty() {
        return Err(source.error("found an empty file, expected accesses").help(TraceError::EMPTY));
    }
    maker(format)(source, options)
}

/// A reader, or why there is none.
type Opened = Result<Box<dyn TraceReader>, TraceError>;

/// Makes the function that knows the maker of each format's reader.
macro_rules! makers {
    ($($format:ident = $name:literal, $about:literal, $row:expr, $open:expr;)*) => {
        /// What makes the reader of a source of this format.
        fn maker(format: Format) -> fn(Source, &ReadOptions) -> Opened {
            match format {
                $(Format::$format => $open,)*
            }
        }
    };
}

for_each_format!(makers);

/// The reader of text with columns.
fn columns(source: Source, options: &ReadOptions) -> Opened {
    Ok(Box::new(Replay::new(Csv::new(source, options)?, options)))
}

struct Counted {
    file: File,
    bytes_read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
