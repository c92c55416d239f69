//! Packed accesses: those of a loaded trace in memory, four bytes each where their pages allow it.
//!
//! ```text
//!   31      30 ......... shift   shift - 1 ........ 0
//!   write   object               page                  in blocks in which that is enough; else 8 bytes, as they are
//! ```

use std::sync::Arc;

use super::error::TraceError;
use crate::{Access, AccessStream};

/// Accesses in a full block: a page number past the rest costs its neighbours their short form, and no others.
const BLOCK_ACCESSES: usize = 1 << 16;
const WRITE: u32 = 1 << 31;

/// Accesses in memory. Copies share them.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed(Arc<[Block]>);

impl Packed {
    /// A stream from the first of them on.
    pub fn stream(&self) -> impl AccessStream + use<> {
        PackedStream { packed: self.clone(), block: 0, next: 0 }
    }

    /// Bytes of memory that the accesses take.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(Block::bytes).sum()
    }

    fn accesses(&self) -> u64 {
        self.0.iter().map(|block| block.len() as u64).sum()
    }
}

#[derive(Debug, PartialEq)]
enum Block {
    Short { shift: u32, words: Box<[u32]> },
    Long(Box<[Access]>),
}

impl Block {
    fn new(accesses: &[Access]) -> Block {
        let (objects, pages) = accesses
            .iter()
            .fold((0, 0), |(objects, pages), access| (objects | access.object(), pages | access.page()));
        let (object_bits, page_bits) =
            (u32::BITS - objects.leading_zeros(), u64::BITS - pages.leading_zeros());
        if object_bits + page_bits >= u32::BITS {
            return Block::Long(accesses.into());
        }
        let shift = 31 - object_bits;
        let word = |access: &Access| {
            (u32::from(access.is_write()) << 31) | access.object().unbounded_shl(shift) | access.page() as u32
        };
        Block::Short { shift, words: accesses.iter().map(word).collect() }
    }

    fn len(&self) -> usize {
        match self {
            Block::Short { words, .. } => words.len(),
            Block::Long(accesses) => accesses.len(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Block::Short { words, .. } => size_of_val(&**words) as u64,
            Block::Long(accesses) => size_of_val(&**accesses) as u64,
        }
    }

    /// Appends `count` accesses from position `from` on.
    fn unpack(&self, from: usize, count: usize, out: &mut Vec<Access>) {
        match self {
            Block::Long(accesses) => out.extend_from_slice(&accesses[from..from + count]),
            &Block::Short { shift, ref words } => {
                let pages = (1 << shift) - 1;
                out.extend(words[from..from + count].iter().map(|&word| {
                    Access::new((word & !WRITE) >> shift, (word & pages).into(), word & WRITE != 0)
                }));
            }
        }
    }
}

/// Packs accesses as they come, up to a budget.
pub(super) struct Packer {
    blocks: Vec<Block>,
    pending: Vec<Access>,
    bytes: u64,
    bytes_max: u64,
}

impl Packer {
    pub(super) fn new(bytes_max: u64) -> Packer {
        Packer { blocks: Vec::new(), pending: Vec::new(), bytes: 0, bytes_max }
    }

    /// Takes accesses in; `false` once they are past the budget, and nothing is kept any more.
    pub(super) fn pack(&mut self, mut accesses: &[Access]) -> bool {
        while !accesses.is_empty() && self.is_within_budget() {
            let whole = self.pending.is_empty() && accesses.len() >= BLOCK_ACCESSES;
            let room = BLOCK_ACCESSES - self.pending.len();
            let (now, later) = accesses.split_at(room.min(accesses.len()));
            accesses = later;
            if whole {
                self.push(Block::new(now));
            } else {
                self.pending.extend_from_slice(now);
                if self.pending.len() == BLOCK_ACCESSES {
                    self.push_pending();
                }
            }
        }
        self.is_within_budget()
    }

    /// What was packed, unless it is past the budget.
    pub(super) fn finish(mut self) -> Option<Packed> {
        if !self.pending.is_empty() {
            self.push_pending();
        }
        self.is_within_budget().then(|| Packed(self.blocks.into()))
    }

    fn push_pending(&mut self) {
        let block = Block::new(&self.pending);
        self.pending.clear();
        self.push(block);
    }

    fn push(&mut self, block: Block) {
        self.bytes += block.bytes();
        if self.is_within_budget() {
            self.blocks.push(block);
        } else {
            self.blocks = Vec::new();
        }
    }

    fn is_within_budget(&self) -> bool {
        self.bytes <= self.bytes_max
    }
}

struct PackedStream {
    packed: Packed,
    block: usize,
    next: usize,
}

impl AccessStream for PackedStream {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < max {
            let Some(block) = self.packed.0.get(self.block) else { break };
            let count = (block.len() - self.next).min(max - filled);
            block.unpack(self.next, count, out);
            self.next += count;
            filled += count;
            if self.next == block.len() {
                self.block += 1;
                self.next = 0;
            }
        }
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        Some(self.packed.accesses())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(accesses: &[Access], bytes_max: u64) -> Option<Packed> {
        let mut packer = Packer::new(bytes_max);
        accesses.chunks(1000).all(|chunk| packer.pack(chunk));
        packer.finish()
    }

    fn unpacked(packed: &Packed) -> Vec<Access> {
        let (mut stream, mut out) = (packed.stream(), Vec::new());
        while stream.fill(&mut out, 700).unwrap() > 0 {}
        out
    }

    fn any_access(objects: u32, pages: u64) -> impl Strategy<Value = Access> {
        (0..objects, 0..pages, any::<bool>())
            .prop_map(|(object, page, write)| Access::new(object, page, write))
    }

    proptest! {
        #[test]
        fn accesses_come_back(
            short in proptest::collection::vec(any_access(8, 1 << 28), 0..2000),
            long in proptest::collection::vec(any_access(Access::OBJECTS_MAX, Access::PAGES_MAX), 0..2000),
        ) {
            let packed_short = packed(&short, u64::MAX).unwrap();
            prop_assert_eq!(packed_short.bytes(), 4 * short.len() as u64);
            prop_assert_eq!(unpacked(&packed_short), short);
            prop_assert_eq!(unpacked(&packed(&long, u64::MAX).unwrap()), long);
        }
    }

    #[test]
    fn an_access_needs_eight_bytes_only_where_object_and_page_need_more_than_31_bits() {
        for (object, page, bytes) in [
            (0, (1 << 31) - 1, 4),
            (0, 1 << 31, 8),
            (1, (1 << 30) - 1, 4),
            (1, 1 << 30, 8),
            (Access::OBJECTS_MAX - 1, 255, 4),
            (Access::OBJECTS_MAX - 1, 256, 8),
            (Access::OBJECTS_MAX - 1, Access::PAGES_MAX - 1, 8),
        ] {
            let accesses = [Access::new(object, page, true), Access::new(0, 0, false)];
            let packed = packed(&accesses, u64::MAX).unwrap();
            assert_eq!(packed.bytes(), 2 * bytes, "object {object}, page {page}");
            assert_eq!(unpacked(&packed), accesses);
        }
    }

    #[test]
    fn one_long_block_leaves_the_others_short() {
        let page = |index: u64| if index == 70_000 { Access::PAGES_MAX - 1 } else { index };
        let accesses: Vec<Access> = (0..200_000).map(|index| Access::new(0, page(index), false)).collect();
        let packed = packed(&accesses, u64::MAX).unwrap();
        assert_eq!(packed.bytes(), 4 * 200_000 + 4 * BLOCK_ACCESSES as u64);
        assert_eq!(unpacked(&packed), accesses);
    }

    #[test]
    fn past_the_budget_nothing_is_kept() {
        let accesses = vec![Access::new(0, 7, false); 3 * BLOCK_ACCESSES];
        let bytes = 4 * accesses.len() as u64;
        assert!(packed(&accesses, bytes).is_some());
        assert!(packed(&accesses, bytes - 1).is_none());
        let mut packer = Packer::new(bytes / 3);
        assert!(packer.pack(&accesses[..BLOCK_ACCESSES]));
        assert!(!packer.pack(&accesses) && packer.blocks.is_empty());
    }
}
