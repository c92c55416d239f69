//! Blocks of a `.pgt`: frames with checksums, and accesses as varints.
//!
//! An access is the zigzag difference of its page from that of the previous access in the block, shifted left by two. Bit 1 means that the object
//! differs and follows as a separate varint; bit 0 means that it writes. A block starts from object 0, page 0, so each can be decoded by itself. A
//! sequential run costs one byte per access before compression and next to nothing after; random pages of a range of n cost about log2(n) bits.

use crate::Access;
use crate::trace::error::TraceError;
use crate::trace::source::Source;
use crate::trace::zstd;

pub(super) const BLOCK_HEADER_BYTES: usize = 24;
pub(super) const KIND_ACCESSES: u32 = 1;
pub(super) const KIND_OBJECTS: u32 = 2;
pub(super) const KIND_IDS: u32 = 3;
pub(super) const KIND_END: u32 = 4;

/// Accesses in a full block.
pub(super) const BLOCK_ACCESSES: usize = 1 << 16;
/// No block is larger, raw or stored; what a file claims beyond is refused before anything is allocated.
pub(super) const BLOCK_BYTES_MAX: usize = 4 << 20;
/// Fast, and within some percent of the best level's size on page numbers.
const ZSTD_LEVEL: i32 = 3;

/// A block's header, checked.
#[derive(Clone, Copy)]
pub(super) struct BlockHeader {
    pub(super) kind: u32,
    pub(super) items: u32,
    raw_bytes: u32,
    stored_bytes: u32,
    payload_crc: u32,
}

impl BlockHeader {
    fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        let fields = [self.kind, self.items, self.raw_bytes, self.stored_bytes, self.payload_crc];
        for (chunk, field) in bytes.chunks_exact_mut(4).zip(fields) {
            chunk.copy_from_slice(&field.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes[..20]);
        bytes[20..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<BlockHeader, &'static str> {
        let mut fields = [0u32; 6];
        for (field, chunk) in fields.iter_mut().zip(bytes.chunks_exact(4)) {
            *field = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        let [kind, items, raw_bytes, stored_bytes, payload_crc, crc] = fields;
        if crc != crc32fast::hash(&bytes[..20]) {
            return Err("the checksum of a block header does not match: the file is corrupt here");
        }
        if raw_bytes as usize > BLOCK_BYTES_MAX || stored_bytes as usize > BLOCK_BYTES_MAX {
            return Err("a block of more than 4 MiB");
        }
        Ok(BlockHeader { kind, items, raw_bytes, stored_bytes, payload_crc })
    }
}

/// Frames, compresses and checks blocks for writing.
pub(super) struct BlockEncoder {
    zstd: zstd::Compressor,
}

impl BlockEncoder {
    pub(super) fn new() -> std::io::Result<BlockEncoder> {
        Ok(BlockEncoder { zstd: zstd::Compressor::new(ZSTD_LEVEL)? })
    }

    /// Appends a block of `raw` to `out`.
    pub(super) fn encode(
        &mut self,
        kind: u32,
        items: usize,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        assert!(raw.len() <= BLOCK_BYTES_MAX, "writers cut their blocks well below the limit");
        let payload = self.zstd.compress(raw)?;
        append_block(kind, items, raw.len(), &payload, out);
        Ok(())
    }

    /// Appends a block that is not compressed.
    pub(super) fn encode_plain(kind: u32, items: usize, raw: &[u8], out: &mut Vec<u8>) {
        append_block(kind, items, raw.len(), raw, out);
    }
}

fn append_block(kind: u32, items: usize, raw_bytes: usize, payload: &[u8], out: &mut Vec<u8>) {
    let header = BlockHeader {
        kind,
        items: items as u32,
        raw_bytes: raw_bytes as u32,
        stored_bytes: payload.len() as u32,
        payload_crc: crc32fast::hash(payload),
    };
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(payload);
}

/// Reads, checks and decompresses blocks.
pub(super) struct BlockDecoder {
    zstd: zstd::Decompressor,
    stored: Vec<u8>,
    raw: Vec<u8>,
    header: BlockHeader,
}

impl BlockDecoder {
    pub(super) fn new(source: &Source) -> Result<BlockDecoder, TraceError> {
        let zstd = zstd::Decompressor::new().map_err(|error| source.error(error.to_string()))?;
        let header = BlockHeader { kind: 0, items: 0, raw_bytes: 0, stored_bytes: 0, payload_crc: 0 };
        Ok(BlockDecoder { zstd, stored: Vec::new(), raw: Vec::new(), header })
    }

    /// The next block's header and raw bytes. An end of the file is an error: a `.pgt` ends with its end block.
    pub(super) fn read(&mut self, source: &mut Source) -> Result<(BlockHeader, &[u8]), TraceError> {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        if !source.read_record(&mut bytes)? {
            let why = "the file is truncated: there is no end block";
            return Err(source.error(why).help(TraceError::TRUNCATED));
        }
        let header = BlockHeader::decode(&bytes).map_err(|reason| source.error(reason))?;
        self.stored.resize(header.stored_bytes as usize, 0);
        source.read_rest(&mut self.stored)?;
        if crc32fast::hash(&self.stored) != header.payload_crc {
            return Err(source.error("the checksum of a block does not match: the file is corrupt here"));
        }
        if header.kind == KIND_END {
            if header.raw_bytes != header.stored_bytes {
                return Err(source.error("the end block has the wrong length"));
            }
            self.header = header;
            return Ok(self.last());
        }
        self.raw.clear();
        self.raw.reserve(header.raw_bytes as usize);
        let result = self.zstd.decompress_to_buffer(&self.stored, &mut self.raw);
        if let Err(error) = result {
            return Err(source.error(format!("a block can't be decompressed: {error}")));
        }
        if self.raw.len() != header.raw_bytes as usize {
            return Err(source.error("a decompressed block does not have the stated length"));
        }
        self.header = header;
        Ok(self.last())
    }

    /// The block read last, again.
    pub(super) fn last(&self) -> (BlockHeader, &[u8]) {
        (self.header, if self.header.kind == KIND_END { &self.stored } else { &self.raw })
    }
}

/// Appends `number` in groups of seven bits, lowest first, the top bit set on all but the last.
pub(super) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a varint off the front of `bytes`; `None` if there is no whole one or it is past 64 bits.
#[inline]
pub(super) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    // Nearly all are within eight bytes: taken together, since the length of the next one can't be predicted.
    let next = bytes.first_chunk::<8>().map_or(u64::MAX, |next| u64::from_le_bytes(*next));
    let ends = !next & 0x8080_8080_8080_8080;
    if ends == 0 {
        return take_long_varint(bytes);
    }
    let (end, groups) = (ends.trailing_zeros(), next & (ends ^ (ends - 1)) & 0x7F7F_7F7F_7F7F_7F7F);
    let pairs = (groups & 0x007F_007F_007F_007F) | ((groups & 0x7F00_7F00_7F00_7F00) >> 1);
    let fours = (pairs & 0x0000_3FFF_0000_3FFF) | ((pairs & 0x3FFF_0000_3FFF_0000) >> 2);
    *bytes = &bytes[end as usize / 8 + 1..];
    Some((fours & 0x0FFF_FFFF) | ((fours & 0x0FFF_FFFF_0000_0000) >> 4))
}

/// Takes a varint byte by byte: the longest ones, and those at the end of the bytes.
#[cold]
fn take_long_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        let group = u64::from(byte & 0x7F);
        if index == 9 && group > 1 {
            return None;
        }
        number |= group << (7 * index);
        if byte & 0x80 == 0 {
            *bytes = &bytes[index + 1..];
            return Some(number);
        }
    }
    None
}

/// Small numbers of either sign as small numbers.
pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Appends accesses as the module's header says.
pub(super) fn encode_accesses(accesses: &[Access], out: &mut Vec<u8>) {
    let (mut object, mut page) = (0, 0i64);
    for access in accesses {
        let changes_object = access.object() != object;
        let difference = zigzag(access.page() as i64 - page);
        put_varint(difference << 2 | u64::from(changes_object) << 1 | u64::from(access.is_write()), out);
        if changes_object {
            object = access.object();
            put_varint(object.into(), out);
        }
        page = access.page() as i64;
    }
}

/// Appends the `count` accesses that `bytes` hold, all of them; `None` if they are no such accesses.
pub(super) fn decode_accesses(mut bytes: &[u8], count: usize, out: &mut Vec<Access>) -> Option<()> {
    let (mut object, mut page) = (0u32, 0i64);
    out.reserve(count.min(BLOCK_ACCESSES));
    for _ in 0..count {
        let word = take_varint(&mut bytes)?;
        if word & 2 != 0 {
            let changed = take_varint(&mut bytes)?;
            object = u32::try_from(changed).ok().filter(|&changed| changed < Access::OBJECTS_MAX)?;
        }
        page = page.checked_add(unzigzag(word >> 2))?;
        if !(0..Access::PAGES_MAX as i64).contains(&page) {
            return None;
        }
        out.push(Access::new(object, page as u64, word & 1 != 0));
    }
    bytes.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_access() -> impl Strategy<Value = Access> {
        let page = prop_oneof![0..100u64, 0..Access::PAGES_MAX, Just(Access::PAGES_MAX - 1)];
        let object = prop_oneof![0..3u32, 0..Access::OBJECTS_MAX];
        (object, page, any::<bool>()).prop_map(|(object, page, write)| Access::new(object, page, write))
    }

    proptest! {
        #[test]
        fn a_varint_comes_back(number: u64, tail: Vec<u8>) {
            let mut bytes = Vec::new();
            put_varint(number, &mut bytes);
            prop_assert!(bytes.len() <= 10);
            bytes.extend(&tail);
            let mut rest = &bytes[..];
            prop_assert_eq!(take_varint(&mut rest), Some(number));
            prop_assert_eq!(rest, &tail[..]);
        }

        #[test]
        fn zigzag_comes_back(number: i64) {
            prop_assert_eq!(unzigzag(zigzag(number)), number);
        }

        #[test]
        fn accesses_come_back(accesses in proptest::collection::vec(any_access(), 0..300)) {
            let mut bytes = Vec::new();
            encode_accesses(&accesses, &mut bytes);
            let mut out = Vec::new();
            prop_assert_eq!(decode_accesses(&bytes, accesses.len(), &mut out), Some(()));
            prop_assert_eq!(out, accesses);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, count in 0..1000usize) {
            let _ = decode_accesses(&bytes, count, &mut Vec::new());
        }
    }

    #[test]
    fn a_varint_cut_short_or_too_long_is_refused() {
        assert_eq!(take_varint(&mut &[0x80u8][..]), None);
        assert_eq!(take_varint(&mut &[0xFFu8; 11][..]), None);
        assert_eq!(take_varint(&mut &[][..]), None);
    }
}
