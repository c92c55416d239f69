//! The `.pgt` reader: one block is decoded at a time, and nothing is hashed.

use super::block::{BLOCK_ACCESSES, BlockDecoder, KIND_ACCESSES, decode_accesses};
use super::tables::{End, Tables, TablesBuilder};
use super::{FLAG_NO_NEIGHBOURS, FLAG_WRITES_UNKNOWN, HEADER_BYTES, MAGIC, TraceHeader, VERSIONS};
use crate::trace::chunk::Chunk;
use crate::trace::error::TraceError;
use crate::trace::footprint::{Footprint, SeenPages};
use crate::trace::format::Format;
use crate::trace::intern::OriginalId;
use crate::trace::options::is_page_size;
use crate::trace::replay::TraceReader;
use crate::trace::source::Source;
use crate::{Access, AccessStream};

pub(in crate::trace) struct PgtReader {
    source: Source,
    decoder: BlockDecoder,
    version: u16,
    page_size: u32,
    tells_writes: bool,
    has_neighbours: bool,
    /// The block being replayed.
    chunk: Chunk,
    /// What has been accessed so far, and which pages that is: the end of the file says it, too.
    footprint: Footprint,
    seen: SeenPages,
    /// What the file says of itself, where it could be read ahead of the accesses: then they are held to it.
    ahead: Option<TableOfContents>,
    /// Once the end block has been seen: all that the file says after its accesses.
    tables: Option<Tables>,
    /// Names from the tables, for a file that could not be read ahead.
    names: Vec<String>,
}

struct TableOfContents {
    end: End,
    footprint: Option<Footprint>,
    names: Vec<String>,
    pages: Vec<u64>,
}

impl PgtReader {
    /// Checks the file header.
    pub(in crate::trace) fn new(mut source: Source) -> Result<PgtReader, TraceError> {
        let mut header = [0; HEADER_BYTES];
        if !source.read_record(&mut header)? {
            return Err(source.error("found an empty file, expected accesses").help(TraceError::EMPTY));
        }
        let [m @ .., _, _, _, _] = &header;
        let crc = u32::from_le_bytes([header[28], header[29], header[30], header[31]]);
        let version = u16::from_le_bytes([header[8], header[9]]);
        let flags = u16::from_le_bytes([header[10], header[11]]);
        let known_flags = if version >= 3 { FLAG_WRITES_UNKNOWN | FLAG_NO_NEIGHBOURS } else { 0 };
        let page_size = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        let fault = if header[..8] != *MAGIC {
            Some("not a `.pgt` file, or damaged in transfer: the magic does not match".to_string())
        } else if crc32fast::hash(m) != crc {
            Some("the checksum of the file header does not match: the file is corrupt here".to_string())
        } else if !VERSIONS.contains(&version) {
            let known = VERSIONS.end();
            Some(format!(
                "unsupported format version: found {version}, expected {} to {known}\nhelp: read it with the later program that wrote it",
                VERSIONS.start()
            ))
        } else if flags & !known_flags != 0 || header[16..28].iter().any(|&byte| byte != 0) {
            Some("the file header uses fields that this reader does not know".to_string())
        } else if !is_page_size(page_size) {
            Some(format!("found pages of {page_size} bytes, expected a power of two from 512 to 2^30"))
        } else {
            None
        };
        if let Some(reason) = fault {
            return Err(source.error(reason));
        }
        let decoder = BlockDecoder::new(&source)?;
        Ok(PgtReader {
            source,
            decoder,
            version,
            page_size,
            tells_writes: flags & FLAG_WRITES_UNKNOWN == 0,
            has_neighbours: flags & FLAG_NO_NEIGHBOURS == 0,
            chunk: Chunk::default(),
            footprint: Footprint::default(),
            seen: SeenPages::new(),
            ahead: None,
            tables: None,
            names: Vec::new(),
        })
    }

    /// Refuses a page size that is not the trace's: its accesses can't be split again.
    pub(in crate::trace) fn with_page_size(self, wanted: Option<u32>) -> Result<PgtReader, TraceError> {
        match wanted {
            Some(wanted) if wanted != self.page_size => Err(self.source.error(format!(
                "the read option `page_size` is {wanted}, but the trace was converted to pages of {} bytes\nhelp: convert the original again with that size",
                self.page_size
            ))),
            _ => Ok(self),
        }
    }

    /// The version of the format that it is in.
    pub(in crate::trace) fn version(&self) -> u16 {
        self.version
    }

    /// Tells the reader what the end of the file says, so that it can name objects and hold accesses to their sizes.
    pub(in crate::trace) fn set_tables(&mut self, tables: Tables) -> TraceHeader {
        let header = TraceHeader {
            objects: tables.objects,
            accesses: tables.end.accesses,
            records: tables.end.records,
            page_size: self.page_size,
            tells_writes: self.tells_writes,
            has_neighbours: self.has_neighbours,
            footprint: tables.footprint,
            requests: None,
        };
        self.ahead = Some(TableOfContents {
            end: tables.end,
            footprint: header.footprint.clone(),
            names: header.objects.iter().map(|object| object.name.clone()).collect(),
            pages: header.objects.iter().map(|object| object.pages).collect(),
        });
        header
    }

    /// Decodes the next block of accesses; none at the end.
    fn advance(&mut self, chunk: &mut Vec<Access>) -> Result<(), TraceError> {
        if self.tables.is_some() {
            return Ok(());
        }
        let tables_offset = self.source.offset();
        let (header, raw) = self.decoder.read(&mut self.source)?;
        if header.kind != KIND_ACCESSES {
            return self.read_to_end(tables_offset);
        }
        let count = header.items as usize;
        let decoded = (1..=BLOCK_ACCESSES).contains(&count).then(|| decode_accesses(raw, count, chunk));
        if decoded.flatten().is_none() {
            return Err(self.source.error("a block of accesses is not well-formed"));
        }
        if let Some(ahead) = &self.ahead {
            let is_inside = |access: &Access| {
                ahead.pages.get(access.object() as usize).is_some_and(|&end| access.page() < end)
            };
            if !chunk.iter().all(is_inside) {
                return Err(self.source.error("an access outside the objects of the object table"));
            }
        }
        self.source.count_records(count as u64);
        self.footprint.count(chunk, &mut self.seen);
        Ok(())
    }

    /// Checks the tables and the counts. The first block of the tables has been decoded already.
    fn read_to_end(&mut self, tables_offset: u64) -> Result<(), TraceError> {
        let mut builder = TablesBuilder::new(self.version);
        let (mut header, mut raw) = self.decoder.last();
        let end = loop {
            let added = builder.add(header.kind, header.items, raw);
            match added.map_err(|reason| self.source.error(reason))? {
                Some(end) => break end,
                None => (header, raw) = self.decoder.read(&mut self.source)?,
            }
        };
        let tables = builder.finish(&mut self.source, end)?;
        let is_as_announced =
            self.ahead.as_ref().is_none_or(|ahead| ahead.end == end && ahead.footprint == tables.footprint);
        if end.accesses != self.footprint.accesses || end.tables_offset != tables_offset || !is_as_announced {
            return Err(self.source.error("the counts of the end block don't match the accesses"));
        }
        if let Some(said) = &tables.footprint {
            // A file that is named but never accessed is an object without pages.
            self.footprint
                .objects
                .resize(said.objects.len().max(self.footprint.objects.len()), Default::default());
            if self.footprint != *said {
                return Err(self.source.error("the object table does not match the accesses"));
            }
        }
        if self.ahead.is_none() {
            self.names = tables.objects.iter().map(|object| object.name.clone()).collect();
        }
        self.tables = Some(tables);
        Ok(())
    }
}

impl AccessStream for PgtReader {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let mut chunk = std::mem::take(&mut self.chunk);
        let filled = chunk.take(out, max, |accesses| self.advance(accesses));
        self.chunk = chunk;
        filled
    }

    fn len_hint(&self) -> Option<u64> {
        self.ahead.as_ref().map(|ahead| ahead.end.accesses)
    }
}

impl TraceReader for PgtReader {
    fn format(&self) -> Format {
        Format::Pgt
    }

    fn page_size(&self) -> u32 {
        self.page_size
    }

    fn records_read(&self) -> u64 {
        self.tables.as_ref().map_or(self.footprint.accesses, |tables| tables.end.records)
    }

    fn request_bytes(&self) -> Option<u64> {
        None
    }

    fn time_span(&self) -> Option<(f64, f64, &'static str)> {
        None
    }

    fn object_names(&self) -> &[String] {
        self.ahead.as_ref().map_or(&self.names, |ahead| &ahead.names)
    }

    fn tells_writes(&self) -> bool {
        self.tells_writes
    }

    fn has_neighbours(&self) -> bool {
        self.has_neighbours
    }

    fn object_titles(&self) -> &'static [&'static str] {
        &["object", "file"]
    }

    fn records_without_access(&self) -> Option<u64> {
        None
    }

    fn originals(&self) -> Option<&[Vec<OriginalId>]> {
        self.tables.as_ref().map(|tables| &tables.ids[..]).filter(|ids| !ids.is_empty())
    }
}
