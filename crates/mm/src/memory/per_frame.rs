//! An array by frame: what is known of each frame of the machine, as far as frames are used.
//!
//! ```text
//!   frames   0 ┃used ┃free ┃used ┃never used ...                              ┃used ┃free ┃   in blocks of 4 MiB
//!   memory     ┃taken┃taken┃taken┃zeroes that nobody has written take none    ┃taken┃taken┃
//!                       └ given back: what is used moves to fresh memory, and the rest is zeroes again ┘
//! ```
//! A record of zeroes is unused. When a block is free (`largest.rs`), the records of its frames are unused, too. So the arrays give them back
//! together. An array that keeps them explains why.
//!
//! *Why they move.* The system can take back a part of an array where it is (`MADV_DONTNEED`). But that call is unsafe in `memmap2` and in
//! `rustix`, and this crate has no `unsafe`. An array of pieces would need a second look-up for each of the hundred records
//! that a miss looks at.

use crate::memory::largest::LargestBlocks;
use crate::units::{MAX_BLOCK_PAGES, Pfn, SECTION_FRAMES};
use bytemuck::Zeroable;
use prefetch_index::prefetch_index;

/// Something for each frame up to the end of the last section used.
///
/// One array rather than one per section, as a miss looks up some hundred records. It consists of zeroes, which take memory when they are first
/// written. Below a node in use there may be one with hardly a frame in use, and its records are only addresses.
pub struct PerFrame<T> {
    records: Vec<T>,
    /// Records that exist; the rest is room to grow.
    used: usize,
}

impl<T> Default for PerFrame<T> {
    fn default() -> PerFrame<T> {
        PerFrame { records: Vec::new(), used: 0 }
    }
}

/// Records that are moved together when there have to be more, or left where none of them says anything: those of the largest block.
const BLOCK: usize = MAX_BLOCK_PAGES as usize;
/// So many blocks are moved before the memory they were in is given back: 64 MiB of frames. For so many there is twice the memory meanwhile.
const PIECE: usize = 16;

impl<T: Copy + Default + PartialEq + Zeroable> PerFrame<T> {
    /// Makes the frame's record exist.
    #[inline]
    pub fn populate(&mut self, pfn: Pfn) {
        if pfn.index() >= self.used {
            self.grow(pfn);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, pfn: Pfn) {
        self.used = (pfn.index() + 1).next_multiple_of(SECTION_FRAMES as usize);
        if self.used <= self.records.len() {
            return;
        }
        self.move_to(self.used.max(2 * self.records.len()), |_| true);
    }

    /// Makes room for the records of so many frames: none moves when the array grows.
    pub fn reserve(&mut self, frames: usize) {
        let frames = frames.next_multiple_of(SECTION_FRAMES as usize);
        if frames > self.records.len() {
            self.move_to(frames, |_| true);
        }
    }

    /// Gives back the memory of records of free blocks, which are unused: the others move to fresh memory.
    pub fn give_back(&mut self, blocks: &LargestBlocks) {
        self.move_to(self.records.len(), |block| blocks.is_in_use(block));
    }

    /// Moves the records into fresh memory of this size, except blocks that are not kept. It moves piece by piece, from the end on: at no time does
    /// memory hold both. Unused records are not written, as that would take memory: of a huge page only the first is in use.
    fn move_to(&mut self, len: usize, is_kept: impl Fn(usize) -> bool) {
        let mut old = std::mem::replace(&mut self.records, bytemuck::zeroed_vec(len));
        let mut moved = 0;
        for block in (0..old.len().div_ceil(BLOCK)).rev().filter(|&block| is_kept(block)) {
            let at = block * BLOCK;
            let end = old.len().min(at + BLOCK);
            let mut says_something = false;
            for (record, &old) in self.records[at..end].iter_mut().zip(&old[at..end]) {
                if old != T::default() {
                    *record = old;
                    says_something = true;
                }
            }
            moved += usize::from(says_something);
            if says_something && moved % PIECE == 0 {
                old.truncate(at);
                old.shrink_to_fit();
            }
        }
    }

    /// The frame's record, or an empty one where there is none yet.
    #[inline]
    pub fn get(&self, pfn: Pfn) -> T {
        self.get_ref(pfn).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn get_ref(&self, pfn: Pfn) -> Option<&T> {
        self.records.get(pfn.index())
    }

    /// Prefetches the frame's record.
    #[inline(always)]
    pub(super) fn prefetch(&self, pfn: Pfn) {
        prefetch_index(&self.records, pfn.index());
    }

    /// Bytes of the records that exist.
    pub fn bytes(&self) -> usize {
        self.used * size_of::<T>()
    }
}

impl<T> std::ops::Index<Pfn> for PerFrame<T> {
    type Output = T;
    #[inline]
    fn index(&self, pfn: Pfn) -> &T {
        &self.records[pfn.index()]
    }
}

impl<T> std::ops::IndexMut<Pfn> for PerFrame<T> {
    #[inline]
    fn index_mut(&mut self, pfn: Pfn) -> &mut T {
        &mut self.records[pfn.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_with_room_never_move() {
        let (mut array, frames) = (PerFrame::<u32>::default(), 40 * MAX_BLOCK_PAGES);
        array.populate(Pfn(0));
        array[Pfn(0)] = 7;
        array.reserve(frames as usize);
        let first = std::ptr::from_ref(&array[Pfn(0)]);
        for pfn in (0..frames).step_by(500).map(Pfn) {
            array.populate(pfn);
            assert_eq!(std::ptr::from_ref(&array[Pfn(0)]), first, "{pfn:?}");
        }
        assert_eq!(array[Pfn(0)], 7);
    }

    #[test]
    fn records_of_free_blocks_are_zeroes_again_and_the_others_are_where_they_were() {
        let (mut array, mut blocks) = (PerFrame::<u32>::default(), LargestBlocks::default());
        for block in 0..40 {
            for frame in [0, 1, MAX_BLOCK_PAGES - 1] {
                let pfn = Pfn(block * MAX_BLOCK_PAGES + frame);
                array.populate(pfn);
                blocks.populate(pfn);
                array[pfn] = pfn.0 + 1;
            }
        }
        let is_free = |block| block % 3 == 0;
        let free = (0..40).filter(|&block| is_free(block));
        free.for_each(|block| blocks.set_free(Pfn(block * MAX_BLOCK_PAGES), true));
        array.give_back(&blocks);
        for pfn in (0..40 * MAX_BLOCK_PAGES).map(Pfn) {
            let was_written =
                matches!(pfn.0 % MAX_BLOCK_PAGES, 0 | 1) || (pfn.0 + 1).is_multiple_of(MAX_BLOCK_PAGES);
            let is_kept = was_written && !is_free(pfn.0 / MAX_BLOCK_PAGES);
            assert_eq!(array[pfn], if is_kept { pfn.0 + 1 } else { 0 }, "{pfn:?}");
        }
    }
}
