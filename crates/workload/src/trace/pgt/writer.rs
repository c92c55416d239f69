//! The `.pgt` writer: accesses are written as they stream by, and a block of them is all that is held.

use std::io::{self, Write};

use super::block::{BLOCK_ACCESSES, BlockEncoder, KIND_ACCESSES, KIND_END, encode_accesses};
use super::tables::{End, encode_ids, encode_objects};
use super::{FLAG_NO_NEIGHBOURS, FLAG_WRITES_UNKNOWN, HEADER_BYTES, MAGIC, ObjectInfo, TraceHeader, VERSION};
use crate::Access;
use crate::trace::footprint::{Footprint, ObjectFootprint, SeenPages};
use crate::trace::intern::OriginalId;

/// A name in the object table is cut at this length.
const NAME_BYTES_MAX: usize = 4096;

/// Writes a `.pgt` while its accesses come. The names of its objects can be given at the end.
pub struct PgtWriter<'a> {
    out: &'a mut dyn Write,
    encoder: BlockEncoder,
    page_size: u32,
    tells_writes: bool,
    has_neighbours: bool,
    /// Bytes written so far.
    offset: u64,
    /// What was accessed so far, and which pages that is.
    footprint: Footprint,
    seen: SeenPages,
    pending: Vec<Access>,
    raw: Vec<u8>,
    framed: Vec<u8>,
}

impl<'a> PgtWriter<'a> {
    /// Writes the file header. `tells_writes`: what is written says which accesses write.
    pub fn new(out: &'a mut dyn Write, page_size: u32, tells_writes: bool) -> io::Result<PgtWriter<'a>> {
        PgtWriter::of(out, page_size, tells_writes, true)
    }

    /// Writes the file header of a trace whose pages are places, or have no neighbours.
    pub(in crate::trace) fn of(
        out: &'a mut dyn Write,
        page_size: u32,
        tells_writes: bool,
        has_neighbours: bool,
    ) -> io::Result<PgtWriter<'a>> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..10].copy_from_slice(&VERSION.to_le_bytes());
        let flags = if tells_writes { 0 } else { FLAG_WRITES_UNKNOWN }
            | if has_neighbours { 0 } else { FLAG_NO_NEIGHBOURS };
        header[10..12].copy_from_slice(&flags.to_le_bytes());
        header[12..16].copy_from_slice(&page_size.to_le_bytes());
        let crc = crc32fast::hash(&header[..28]);
        header[28..].copy_from_slice(&crc.to_le_bytes());
        out.write_all(&header)?;
        Ok(PgtWriter {
            out,
            encoder: BlockEncoder::new()?,
            page_size,
            tells_writes,
            has_neighbours,
            offset: HEADER_BYTES as u64,
            footprint: Footprint::default(),
            seen: SeenPages::new(),
            pending: Vec::with_capacity(BLOCK_ACCESSES),
            raw: Vec::new(),
            framed: Vec::new(),
        })
    }

    /// Takes accesses in; writes a block whenever one is full.
    pub fn write(&mut self, mut accesses: &[Access]) -> io::Result<()> {
        while !accesses.is_empty() {
            let room = BLOCK_ACCESSES - self.pending.len();
            let (now, later) = accesses.split_at(room.min(accesses.len()));
            self.footprint.count(now, &mut self.seen);
            self.pending.extend_from_slice(now);
            accesses = later;
            if self.pending.len() == BLOCK_ACCESSES {
                self.write_pending()?;
            }
        }
        Ok(())
    }

    fn write_pending(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.raw.clear();
        encode_accesses(&self.pending, &mut self.raw);
        self.encoder.encode(KIND_ACCESSES, self.pending.len(), &self.raw, &mut self.framed)?;
        self.pending.clear();
        self.write_framed()
    }

    fn write_framed(&mut self) -> io::Result<()> {
        self.out.write_all(&self.framed)?;
        self.offset += self.framed.len() as u64;
        self.framed.clear();
        Ok(())
    }

    /// Writes what is pending, the tables and the end block. `names` may be fewer or more than the objects.
    pub fn finish(
        mut self,
        names: &[String],
        ids: Option<&[Vec<OriginalId>]>,
        records: u64,
    ) -> io::Result<TraceHeader> {
        self.write_pending()?;
        let tables_offset = self.offset;
        // A file that is named but never accessed is an object without pages.
        let touched = &mut self.footprint.objects;
        touched.resize(touched.len().max(names.len()), ObjectFootprint::default());
        let named = |(index, of): (usize, &ObjectFootprint)| {
            let name = names.get(index).map_or_else(|| format!("object-{index}"), |name| cut(name));
            ObjectInfo { name, pages: of.pages }
        };
        let objects: Vec<ObjectInfo> = touched.iter().enumerate().map(named).collect();
        encode_objects(&objects, touched, &mut self.encoder, &mut self.framed)?;
        let id_count = encode_ids(ids.unwrap_or(&[]), &mut self.encoder, &mut self.framed)?;
        let end = End {
            accesses: self.footprint.accesses,
            records,
            objects: objects.len() as u64,
            ids: id_count,
            tables_offset,
        };
        BlockEncoder::encode_plain(KIND_END, 1, &end.encode(), &mut self.framed);
        self.write_framed()?;
        self.out.flush()?;
        Ok(TraceHeader {
            objects,
            accesses: self.footprint.accesses,
            records,
            page_size: self.page_size,
            tells_writes: self.tells_writes,
            has_neighbours: self.has_neighbours,
            footprint: Some(self.footprint),
            requests: None,
        })
    }
}

fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::AccessStream;
    use crate::trace::options::ReadOptions;
    use crate::trace::{Format, from_reader};

    /// What is wrong with a file of accesses to pages 3, 5 and 3, where the table was changed.
    fn fault(change: impl FnOnce(&mut ObjectFootprint)) -> String {
        let mut bytes = Vec::new();
        let mut writer = PgtWriter::new(&mut bytes, 4096, true).expect("a vector takes all");
        writer.write(&[3, 5, 3].map(|page| Access::new(0, page, page == 5))).expect("a vector takes all");
        change(&mut writer.footprint.objects[0]);
        writer.finish(&[], None, 3).expect("a vector takes all");
        let options = ReadOptions { format: Some(Format::Pgt), ..ReadOptions::default() };
        let mut stream =
            from_reader("t.pgt", Box::new(Cursor::new(bytes)), &options).expect("it has a header");
        let mut accesses = Vec::new();
        loop {
            match stream.fill(&mut accesses, 10) {
                Ok(0) => return String::new(),
                Ok(_) => {}
                Err(error) => return error.reason().to_string(),
            }
        }
    }

    #[test]
    fn a_table_that_is_not_true_is_found_at_the_end() {
        assert_eq!(fault(|_| ()), "");
        let told = "the object table does not match the accesses";
        assert_eq!(fault(|of| of.pages = 7), told);
        assert_eq!(fault(|of| of.distinct_pages = 3), told);
        assert_eq!(fault(|of| of.writes = 2), told);
        assert_eq!(fault(|of| of.distinct_pages = 7), "the object table is not well-formed");
    }
}
