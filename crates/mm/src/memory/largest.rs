//! Blocks of the largest order, 4 MiB: which are free, their list links, and which of them no longer need the records of their frames.
//!
//! ```text
//!   used ─▶ free again: linked by its number, here ─▶ used again
//!                  └ many are: records of the rest move to fresh memory (per_frame.rs), and those of free blocks are gone
//! ```
//! Smaller free blocks are linked by the record of their first frame. If largest ones were, too, each page of records would keep saying
//! something. Then pages that have moved to another node, or whose process has ended, would take their records for good.
//!
//! Moving takes time: a free block has to pay for it. So it waits for a sixteenth as many free blocks as there are others, and for half a GiB of
//! them at least. So no more than 16 blocks are moved for each that is free. What that takes is measured in
//! docs/results/data/pghot.md.

use crate::memory::list::Links;
use crate::units::{MAX_BLOCK_ORDER, MAX_BLOCK_PAGES, Pfn};
use bytemuck::Zeroable;

/// So many free blocks are worth it, at least.
const BLOCKS_MIN: u64 = 128;
/// One for so many others.
const OTHERS: u64 = 16;

/// A block. One of zeroes was never used.
#[derive(Clone, Copy, Debug, Zeroable)]
struct Block {
    /// Links to other free blocks, while the block is free.
    links: (u32, u32),
    /// A frame of it has been used at some time.
    is_used: bool,
    is_free: bool,
}

/// All blocks, up to the last that has been used.
#[derive(Default, Debug)]
pub struct LargestBlocks {
    blocks: Vec<Block>,
    used: u64,
    /// Frames that were used before and are free.
    free: u64,
    /// Free frames whose records were given back. Which frames those are is not known after some are used again: it is the most
    /// that there can be.
    given_back: u64,
    /// Records of free blocks stay.
    keeps_records: bool,
}

impl LargestBlocks {
    /// The number by which the block is linked that begins with a frame.
    pub fn number(pfn: u32) -> u32 {
        pfn >> MAX_BLOCK_ORDER
    }

    /// The first frame of the block of a number.
    pub fn first(number: u32) -> u32 {
        number << MAX_BLOCK_ORDER
    }

    pub(super) fn populate(&mut self, pfn: Pfn) {
        let number = Self::number(pfn.0) as usize;
        if number >= self.blocks.len() {
            self.grow(number);
        }
        self.used += u64::from(!self.blocks[number].is_used);
        self.blocks[number].is_used = true;
    }

    /// Zeroes take memory where they are first written: below a node in use there may be one of which hardly a block is.
    #[cold]
    fn grow(&mut self, number: usize) {
        let blocks = bytemuck::zeroed_vec((number + 1).next_power_of_two());
        let old = std::mem::replace(&mut self.blocks, blocks);
        for (block, old) in self.blocks.iter_mut().zip(old).filter(|(_, old)| old.is_used) {
            *block = old;
        }
    }

    /// Returns true if a free block begins with a frame.
    #[inline]
    pub(super) fn is_free(&self, pfn: Pfn) -> bool {
        pfn.0.is_multiple_of(MAX_BLOCK_PAGES)
            && self.blocks.get(Self::number(pfn.0) as usize).is_some_and(|block| block.is_free)
    }

    pub(super) fn set_free(&mut self, pfn: Pfn, is_free: bool) {
        let block = &mut self.blocks[Self::number(pfn.0) as usize];
        assert!(block.is_used, "a block becomes free of which no frame was ever used: {pfn:?}");
        assert_ne!(block.is_free, is_free, "the block of {pfn:?} becomes free, or taken, twice");
        block.is_free = is_free;
        match is_free {
            true => self.free += 1,
            false => self.free -= 1,
        }
        assert!(self.free <= self.used, "{} of {} used blocks are free", self.free, self.used);
        self.given_back = self.given_back.min(self.free);
    }

    /// Returns true if a frame of a block is in use, by the block's number, or a smaller block of it is free: then records of it say something.
    pub(super) fn is_in_use(&self, number: usize) -> bool {
        self.blocks.get(number).is_some_and(|block| block.is_used && !block.is_free)
    }

    /// Returns whether enough blocks are free whose records are still there.
    pub fn is_worth_giving_back(&self) -> bool {
        let gained = self.free - self.given_back;
        !self.keeps_records && gained >= BLOCKS_MIN && gained >= (self.used - self.free) / OTHERS
    }

    /// Records of free blocks are never given back.
    pub(super) fn keep_records(&mut self) {
        self.keeps_records = true;
    }

    /// Records of free blocks are gone.
    pub(super) fn note_given_back(&mut self) {
        assert!(self.given_back <= self.free, "records of blocks in use were given back");
        self.given_back = self.free;
    }
}

impl Links for LargestBlocks {
    fn links(&self, item: u32) -> (u32, u32) {
        self.blocks[item as usize].links
    }

    fn links_mut(&mut self, item: u32) -> &mut (u32, u32) {
        &mut self.blocks[item as usize].links
    }
}
