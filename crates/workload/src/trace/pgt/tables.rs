//! The tables of a `.pgt` behind its accesses: the objects, the original ids if they were kept, and the counts.

use super::ObjectInfo;
use super::block::{
    self, BLOCK_HEADER_BYTES, BlockDecoder, BlockEncoder, KIND_END, KIND_IDS, KIND_OBJECTS, put_varint,
    take_varint, unzigzag, zigzag,
};
use crate::Access;
use crate::trace::error::TraceError;
use crate::trace::footprint::{Footprint, ObjectFootprint};
use crate::trace::intern::OriginalId;
use crate::trace::source::Source;

/// A table's block is closed when it gets here; one more entry (a name of a line's length at most) still fits.
const TABLE_BLOCK_BYTES: usize = 1 << 20;

const END_PAYLOAD_BYTES: usize = 40;
/// The end block, header and all; the last bytes of the file.
pub(in crate::trace) const END_BYTES: usize = BLOCK_HEADER_BYTES + END_PAYLOAD_BYTES;

/// The counts of the end block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) struct End {
    pub(in crate::trace) accesses: u64,
    pub(in crate::trace) records: u64,
    pub(in crate::trace) objects: u64,
    pub(in crate::trace) ids: u64,
    /// Byte offset of the first block after the accesses.
    pub(in crate::trace) tables_offset: u64,
}

impl End {
    pub(super) fn encode(&self) -> [u8; END_PAYLOAD_BYTES] {
        let mut bytes = [0; END_PAYLOAD_BYTES];
        let fields = [self.accesses, self.records, self.objects, self.ids, self.tables_offset];
        for (chunk, field) in bytes.chunks_exact_mut(8).zip(fields) {
            chunk.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<End> {
        let bytes: &[u8; END_PAYLOAD_BYTES] = bytes.try_into().ok()?;
        let mut fields = [0; 5];
        for (field, chunk) in fields.iter_mut().zip(bytes.chunks_exact(8)) {
            *field = u64::from_le_bytes(chunk.try_into().ok()?);
        }
        let [accesses, records, objects, ids, tables_offset] = fields;
        Some(End { accesses, records, objects, ids, tables_offset })
    }
}

/// Everything after the accesses.
pub(in crate::trace) struct Tables {
    pub(in crate::trace) objects: Vec<ObjectInfo>,
    /// What the accesses touch; `None` where the version does not say.
    pub(in crate::trace) footprint: Option<Footprint>,
    /// By object and page; empty unless the ids were kept.
    pub(in crate::trace) ids: Vec<Vec<OriginalId>>,
    pub(in crate::trace) end: End,
}

/// The counts, from a source that is at the end block.
pub(in crate::trace) fn read_end(source: &mut Source) -> Result<End, TraceError> {
    let mut decoder = BlockDecoder::new(source)?;
    let end = match decoder.read(source) {
        Ok((header, raw)) if header.kind == KIND_END => End::decode(raw),
        // In a truncated file these bytes can be anything, so a wrong value in them is not an error of its own.
        _ => None,
    };
    end.ok_or_else(|| {
        let why = "the file does not end with an end block: it is truncated, or damaged at its end";
        source.error(why).help(TraceError::TRUNCATED)
    })
}

/// The tables, from a source that is at the first block after the accesses; the file ends with them.
pub(in crate::trace) fn read_tables(source: &mut Source, version: u16) -> Result<Tables, TraceError> {
    let mut decoder = BlockDecoder::new(source)?;
    let mut builder = TablesBuilder::new(version);
    loop {
        let (header, raw) = decoder.read(source)?;
        let added = builder.add(header.kind, header.items, raw);
        match added.map_err(|reason| source.error(reason))? {
            None => {}
            Some(end) => return builder.finish(source, end),
        }
    }
}

/// Collects the tables block by block.
pub(super) struct TablesBuilder {
    version: u16,
    objects: Vec<ObjectInfo>,
    touched: Vec<ObjectFootprint>,
    ids: Vec<Vec<OriginalId>>,
    id_count: u64,
}

impl TablesBuilder {
    /// For a file of this version.
    pub(super) fn new(version: u16) -> TablesBuilder {
        TablesBuilder { version, objects: Vec::new(), touched: Vec::new(), ids: Vec::new(), id_count: 0 }
    }

    /// Takes a block in; the end block's counts when it is that.
    pub(super) fn add(&mut self, kind: u32, items: u32, mut raw: &[u8]) -> Result<Option<End>, &'static str> {
        match kind {
            KIND_OBJECTS if self.ids.is_empty() => {
                for _ in 0..items {
                    self.add_object(&mut raw).ok_or("the object table is not well-formed")?;
                }
            }
            KIND_IDS => {
                let mut last = 0;
                for _ in 0..items {
                    self.add_id(&mut raw, &mut last).ok_or("the table of ids is not well-formed")?;
                }
            }
            KIND_END => return End::decode(raw).map(Some).ok_or("the end block has the wrong length"),
            block::KIND_ACCESSES => return Err("accesses after the tables"),
            _ => return Err("a block of an unknown kind or out of order"),
        }
        if raw.is_empty() { Ok(None) } else { Err("a table block has bytes left over") }
    }

    fn add_object(&mut self, raw: &mut &[u8]) -> Option<()> {
        if self.objects.len() >= Access::OBJECTS_MAX as usize {
            return None;
        }
        let name_bytes = usize::try_from(take_varint(raw)?).ok()?;
        let (name, rest) = raw.split_at_checked(name_bytes)?;
        *raw = rest;
        let name = str::from_utf8(name).ok()?.to_string();
        let pages = take_varint(raw).filter(|&pages| pages <= Access::PAGES_MAX)?;
        self.objects.push(ObjectInfo { name, pages });
        if self.version > 1 {
            let distinct_pages = take_varint(raw).filter(|&distinct| distinct <= pages)?;
            self.touched.push(ObjectFootprint { pages, distinct_pages, writes: take_varint(raw)? });
        }
        Some(())
    }

    fn add_id(&mut self, raw: &mut &[u8], last: &mut u64) -> Option<()> {
        let object = usize::try_from(take_varint(raw)?).ok().filter(|&object| object < self.objects.len())?;
        let id = last.wrapping_add_signed(unzigzag(take_varint(raw)?));
        let index = take_varint(raw)?;
        *last = id;
        self.ids.resize_with(self.objects.len(), Vec::new);
        self.ids[object].push(OriginalId { id, index });
        self.id_count += 1;
        Some(())
    }

    /// Compares the tables with the counts, and checks that nothing follows.
    pub(super) fn finish(self, source: &mut Source, end: End) -> Result<Tables, TraceError> {
        if end.objects != self.objects.len() as u64 || end.ids != self.id_count {
            return Err(source.error("the counts of the end block don't match the tables"));
        }
        if source.read_record(&mut [0])? {
            return Err(source.error("there are bytes after the end block"));
        }
        let footprint =
            (self.version > 1).then_some(Footprint { objects: self.touched, accesses: end.accesses });
        Ok(Tables { objects: self.objects, footprint, ids: self.ids, end })
    }
}

/// Appends the blocks of the object table.
pub(super) fn encode_objects(
    objects: &[ObjectInfo],
    touched: &[ObjectFootprint],
    encoder: &mut BlockEncoder,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let mut raw = Vec::new();
    let mut items = 0;
    for (index, (object, of)) in objects.iter().zip(touched).enumerate() {
        put_varint(object.name.len() as u64, &mut raw);
        raw.extend_from_slice(object.name.as_bytes());
        put_varint(object.pages, &mut raw);
        put_varint(of.distinct_pages, &mut raw);
        put_varint(of.writes, &mut raw);
        items += 1;
        if raw.len() >= TABLE_BLOCK_BYTES || index + 1 == objects.len() {
            encoder.encode(KIND_OBJECTS, items, &raw, out)?;
            raw.clear();
            items = 0;
        }
    }
    Ok(())
}

/// Appends the blocks of the table of original ids, and returns how many ids there are.
pub(super) fn encode_ids(
    ids: &[Vec<OriginalId>],
    encoder: &mut BlockEncoder,
    out: &mut Vec<u8>,
) -> std::io::Result<u64> {
    let mut raw = Vec::new();
    let (mut items, mut count, mut last) = (0, 0, 0u64);
    for (object, ids) in ids.iter().enumerate() {
        for original in ids {
            put_varint(object as u64, &mut raw);
            put_varint(zigzag(original.id.wrapping_sub(last) as i64), &mut raw);
            put_varint(original.index, &mut raw);
            last = original.id;
            items += 1;
            count += 1;
            if raw.len() >= TABLE_BLOCK_BYTES {
                encoder.encode(KIND_IDS, items, &raw, out)?;
                raw.clear();
                (items, last) = (0, 0);
            }
        }
    }
    if items > 0 {
        encoder.encode(KIND_IDS, items, &raw, out)?;
    }
    Ok(count)
}
