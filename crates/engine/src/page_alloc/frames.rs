//! Which frames of a zone are free: a stack an order, over frames never used so far.
//!
//! A freed block goes back to the stack of its order and is handed out first, as the kernel's per-CPU lists do, because its cache
//! lines are warm.

use crate::units::{MAX_ORDER, Pfn};

/// Free frames of one zone.
pub(crate) struct Frames {
    start: u32,
    end: u32,
    /// First frame never handed out.
    fresh: u32,
    free_blocks: [Vec<u32>; MAX_ORDER as usize + 1],
    pub(super) free_pages: u64,
}

impl Frames {
    pub(crate) fn new(start: u32, pages: u32) -> Frames {
        Frames {
            start,
            end: start + pages,
            fresh: start,
            free_blocks: Default::default(),
            free_pages: pages.into(),
        }
    }

    pub(crate) fn alloc(&mut self, order: u8) -> Option<Pfn> {
        let pfn = self.take(order)?;
        self.free_pages -= 1 << order;
        Some(Pfn(pfn))
    }

    pub(crate) fn free(&mut self, pfn: Pfn, order: u8) {
        debug_assert!((self.start..self.fresh).contains(&pfn.0), "frame {} was never handed out", pfn.0);
        self.free_blocks[order as usize].push(pfn.0);
        self.free_pages += 1 << order;
    }

    pub(crate) fn has_block(&self, order: u8) -> bool {
        let is_fresh = self.fresh.next_multiple_of(1 << order) + (1 << order) <= self.end;
        is_fresh || self.free_blocks[order as usize..].iter().any(|stack| !stack.is_empty())
    }

    /// Every frame in use or freed since, for checkers.
    pub(crate) fn handed_out(&self) -> impl Iterator<Item = Pfn> {
        (self.start..self.fresh).map(Pfn)
    }

    /// Free blocks, for checkers.
    pub(crate) fn free_blocks(&self) -> impl Iterator<Item = (Pfn, u8)> {
        self.free_blocks
            .iter()
            .enumerate()
            .flat_map(|(order, stack)| stack.iter().map(move |&pfn| (Pfn(pfn), order as u8)))
    }

    fn take(&mut self, order: u8) -> Option<u32> {
        if let Some(pfn) = self.free_blocks[order as usize].pop() {
            return Some(pfn);
        }
        let size = 1 << order;
        let aligned = self.fresh.next_multiple_of(size);
        if aligned + size <= self.end {
            while self.fresh < aligned {
                self.free_blocks[0].push(self.fresh);
                self.fresh += 1;
            }
            self.fresh = aligned + size;
            return Some(aligned);
        }
        if order == 0 && self.fresh < self.end {
            self.fresh += 1;
            return Some(self.fresh - 1);
        }
        self.split(order)
    }

    /// Takes the first half of a larger block again and again until one of this order is left.
    fn split(&mut self, order: u8) -> Option<u32> {
        let larger = (order + 1..=MAX_ORDER).find(|&larger| !self.free_blocks[larger as usize].is_empty())?;
        let pfn = self.free_blocks[larger as usize].pop()?;
        for half in order..larger {
            self.free_blocks[half as usize].push(pfn + (1 << half));
        }
        Some(pfn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_frame_is_handed_out_once() {
        let mut frames = Frames::new(32, 10);
        let taken: BTreeSet<u32> = std::iter::from_fn(|| frames.alloc(0).map(|pfn| pfn.0)).collect();
        assert_eq!(taken, (32..42).collect());
    }

    #[test]
    fn the_frame_freed_last_is_reused_first() {
        let mut frames = Frames::new(0, 8);
        let first = frames.alloc(0).unwrap();
        let second = frames.alloc(0).unwrap();
        frames.free(first, 0);
        frames.free(second, 0);
        assert_eq!(frames.alloc(0), Some(second));
    }

    #[test]
    fn large_blocks_are_aligned_and_leave_no_frame_behind() {
        let mut frames = Frames::new(0, 16);
        frames.alloc(0).unwrap();
        let block = frames.alloc(3).unwrap();
        assert_eq!(block, Pfn(8));
        assert_eq!(frames.free_pages, 7);
        frames.free(block, 3);
        let singles = std::iter::from_fn(|| frames.alloc(0)).count();
        assert_eq!(singles, 15, "the block must split when only it is left");
    }
}
