//! zram: the compressed pages that a swap device of that kind keeps in memory, how long each is, and where it lies.
//!
//! A page with one word repeated takes nothing but its slot. How well others compress is their region's business (`contents.rs`).

use crate::swap::zspool::{Handle, ZsPool, ZspagePages};
use crate::units::{PAGE_SIZE, Pfn};

/// The mark in the slot of a page with one word repeated.
const SAME_FILLED: u64 = 1;

/// The pages and bytes that a zram device holds, in the order of its `mm_stat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZramStat {
    /// Pages stored, but those with one word repeated.
    pub stored: u64,
    /// Bytes that they come to.
    pub compressed_bytes: u64,
    /// Pages of memory that it has taken at most.
    pub used_max: u64,
    /// Pages stored as one word.
    pub same: u64,
    /// Pages that hardly shrink, and so are kept uncompressed.
    pub huge: u64,
    /// Pages that hardly shrink, counted whenever one was stored.
    pub huge_since: u64,
    /// Pages that there was no memory for.
    pub failed_writes: u64,
}

/// One device.
pub struct Zram {
    /// Pages of memory that it may take at most (`mem_limit`).
    pub limit: Option<u64>,
    /// Counters of the device.
    pub stat: ZramStat,
    /// The pool of compressed pages.
    pub pool: ZsPool,
    /// By slot: nothing, one word, or an object of the pool.
    slots: Vec<u64>,
}

impl Zram {
    /// A device of so many slots that holds nothing.
    pub fn new(slots: usize) -> Zram {
        Zram { limit: None, stat: ZramStat::default(), pool: ZsPool::default(), slots: vec![0; slots] }
    }

    /// Bytes of address space that a device of so many slots takes.
    pub fn bytes_for(slots: u64) -> u64 {
        slots * size_of::<u64>() as u64
    }

    /// The stored form of a page with this length: one that hardly shrinks is kept uncompressed.
    pub fn kept(&self, length: u16) -> u16 {
        if self.pool.is_huge(length) { PAGE_SIZE as u16 } else { length }
    }

    /// Pages that are needed to store this many bytes; `None` if the limit allows fewer.
    pub fn wanted(&self, kept: u16) -> Option<usize> {
        let wanted = if kept == 0 { 0 } else { self.pool.wanted(kept) };
        let fits = self.limit.is_none_or(|limit| self.pool.pages() + wanted as u64 <= limit);
        fits.then_some(wanted)
    }

    /// Stores a page in an empty slot, in `pages` where any were wanted.
    pub fn store(&mut self, slot: u32, kept: u16, pages: &[Pfn]) {
        assert_eq!(self.slots[slot as usize], 0, "slot {slot} holds a page");
        assert!(kept > 0 || pages.is_empty(), "a page of one word gets memory");
        let is_huge = u64::from(kept) == PAGE_SIZE;
        self.slots[slot as usize] = if kept == 0 {
            self.stat.same += 1;
            SAME_FILLED
        } else {
            self.stat.stored += 1;
            self.stat.compressed_bytes += u64::from(kept);
            self.stat.huge += u64::from(is_huge);
            self.stat.huge_since += u64::from(is_huge);
            self.pool.store(kept, pages).pack()
        };
        self.stat.used_max = self.stat.used_max.max(self.pool.pages());
    }

    /// Returns whether a slot holds a page.
    pub fn holds(&self, slot: u32) -> bool {
        self.slots[slot as usize] != 0
    }

    /// Forgets what a slot holds, if anything. The pages that this leaves free.
    #[must_use]
    pub fn free(&mut self, slot: u32) -> Option<(ZspagePages, usize)> {
        let packed = std::mem::take(&mut self.slots[slot as usize]);
        let Some(handle) = Handle::unpack(packed) else {
            assert!(packed != SAME_FILLED || self.stat.same > 0, "a page of one word is not counted");
            self.stat.same -= u64::from(packed == SAME_FILLED);
            return None;
        };
        assert!(self.stat.stored > 0, "slot {slot} held a page, and none is stored");
        assert!(
            self.stat.compressed_bytes >= u64::from(handle.length),
            "slot {slot} held more than all slots"
        );
        self.stat.stored -= 1;
        self.stat.compressed_bytes -= u64::from(handle.length);
        self.stat.huge -= u64::from(u64::from(handle.length) == PAGE_SIZE);
        self.pool.free(handle)
    }

    /// Pages of memory that it takes.
    pub fn pages(&self) -> u64 {
        self.pool.pages()
    }

    /// The frames of it, for checkers.
    pub fn frames(&self) -> impl Iterator<Item = Pfn> {
        self.pool.frames()
    }

    /// Panics unless its figures are those of what the slots hold, and only slots that `is_taken` hold anything.
    pub fn check_invariants(&self, is_taken: impl Fn(u32) -> bool) {
        let held = || (0..).zip(&self.slots).filter(|&(_, &packed)| packed != 0);
        for (slot, _) in held() {
            assert!(is_taken(slot), "slot {slot} is free and holds a page");
        }
        let handles = || held().filter_map(|(_, &packed)| Handle::unpack(packed));
        self.pool.check_invariants(handles());
        let bytes: u64 = handles().map(|handle| u64::from(handle.length)).sum();
        assert_eq!((self.stat.stored, self.stat.compressed_bytes), (handles().count() as u64, bytes));
        let same = held().filter(|&(_, &packed)| packed == SAME_FILLED).count() as u64;
        assert_eq!(self.stat.same, same, "pages with one word repeated");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_gives_back_what_it_took() {
        let mut zram = Zram::new(4);
        assert_eq!((zram.kept(0), zram.kept(2000), zram.kept(4000)), (0, 2000, 4096));
        assert_eq!((zram.wanted(0), zram.wanted(4096)), (Some(0), Some(1)));
        zram.store(0, 0, &[]);
        zram.store(1, 4096, &[Pfn(7)]);
        let pages: Vec<Pfn> = (10..).take(zram.wanted(2000).unwrap()).map(Pfn).collect();
        zram.store(2, 2000, &pages);
        let stat = zram.stat;
        assert_eq!((stat.stored, stat.compressed_bytes, stat.same, stat.huge), (2, 6096, 1, 1));
        zram.check_invariants(|slot| slot < 3);
        assert_eq!(zram.free(0), None);
        assert_eq!(zram.free(1).map(|(pages, count)| pages[..count].to_vec()), Some(vec![Pfn(7)]));
        assert_eq!(zram.free(2).map(|(_, count)| count), Some(pages.len()));
        assert_eq!(zram.pages(), 0);
        let ZramStat { used_max, huge_since, .. } = zram.stat;
        assert_eq!((used_max, huge_since), (1 + pages.len() as u64, 1));
        zram.check_invariants(|_| false);
        zram.limit = Some(1);
        assert_eq!((zram.wanted(4096), zram.wanted(2213)), (Some(1), None), "a page is all that it may take");
    }
}
