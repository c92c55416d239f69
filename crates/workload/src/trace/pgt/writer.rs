//! Writes a `.pgt` as it streams by: a block of accesses is all that is held.

use std::io::{self, Write};

use super::block::{BLOCK_ACCESSES, BlockEncoder, KIND_ACCESSES, KIND_END, encode_accesses};
use super::tables::{End, encode_ids, encode_objects};
use super::{HEADER_BYTES, MAGIC, ObjectInfo, TraceHeader, VERSION};
use crate::Access;
use crate::trace::intern::OriginalId;

/// A name in the object table is cut at this length.
const NAME_BYTES_MAX: usize = 4096;

pub(in crate::trace) struct PgtWriter<'a> {
    out: &'a mut dyn Write,
    encoder: BlockEncoder,
    page_size: u32,
    /// Bytes written so far.
    offset: u64,
    accesses: u64,
    /// Pages of each object so far.
    pages: Vec<u64>,
    pending: Vec<Access>,
    raw: Vec<u8>,
    framed: Vec<u8>,
}

impl<'a> PgtWriter<'a> {
    pub(in crate::trace) fn new(out: &'a mut dyn Write, page_size: u32) -> io::Result<PgtWriter<'a>> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..10].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&page_size.to_le_bytes());
        let crc = crc32fast::hash(&header[..28]);
        header[28..].copy_from_slice(&crc.to_le_bytes());
        out.write_all(&header)?;
        Ok(PgtWriter {
            out,
            encoder: BlockEncoder::new()?,
            page_size,
            offset: HEADER_BYTES as u64,
            accesses: 0,
            pages: Vec::new(),
            pending: Vec::with_capacity(BLOCK_ACCESSES),
            raw: Vec::new(),
            framed: Vec::new(),
        })
    }

    /// Takes accesses in; writes a block whenever one is full.
    pub(in crate::trace) fn write(&mut self, mut accesses: &[Access]) -> io::Result<()> {
        while !accesses.is_empty() {
            let room = BLOCK_ACCESSES - self.pending.len();
            let (now, later) = accesses.split_at(room.min(accesses.len()));
            for access in now {
                let object = access.object() as usize;
                if object >= self.pages.len() {
                    self.pages.resize(object + 1, 0);
                }
                self.pages[object] = self.pages[object].max(access.page() + 1);
            }
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
        self.accesses += self.pending.len() as u64;
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
    pub(in crate::trace) fn finish(
        mut self,
        names: &[String],
        ids: Option<&[Vec<OriginalId>]>,
        records: u64,
    ) -> io::Result<TraceHeader> {
        self.write_pending()?;
        let tables_offset = self.offset;
        // A file that is named but never accessed is an object without pages.
        self.pages.resize(self.pages.len().max(names.len()), 0);
        let named = |(index, &pages): (usize, &u64)| {
            let name = names.get(index).map_or_else(|| format!("object-{index}"), |name| cut(name));
            ObjectInfo { name, pages }
        };
        let objects: Vec<ObjectInfo> = self.pages.iter().enumerate().map(named).collect();
        encode_objects(&objects, &mut self.encoder, &mut self.framed)?;
        let id_count = encode_ids(ids.unwrap_or(&[]), &mut self.encoder, &mut self.framed)?;
        let end = End {
            accesses: self.accesses,
            records,
            objects: objects.len() as u64,
            ids: id_count,
            tables_offset,
        };
        BlockEncoder::encode_plain(KIND_END, 1, &end.encode(), &mut self.framed);
        self.write_framed()?;
        self.out.flush()?;
        Ok(TraceHeader { objects, accesses: self.accesses, records, page_size: self.page_size })
    }
}

fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_string()
}
