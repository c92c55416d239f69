//! A page goes into compressed memory, and leaves it: the frames that a zram device takes for it.
//!
//! They are taken in the middle of reclaim, which waits for nothing and may use the reserves for it: it frees more than it takes.
//! Where there are none, the write fails, and the page stays in memory. They belong to no group. [zswap 1.1]

use crate::core::Core;
use crate::memory::table::SwapEntry;
use crate::page_alloc::request::{Gfp, Request};
use crate::stat::Stat;
use crate::swap::contents::Contents;
use crate::units::{MemcgId, Pfn};

impl Core {
    /// What is kept of a page on a compressed device.
    fn compressed_length(&self, pfn: Pfn, entry: SwapEntry) -> Option<u16> {
        let zram = self.memory.swap.zram(entry.swap)?;
        Some(match self.contents_of(pfn, entry.swap) {
            Contents::Zeroes | Contents::OneWord => 0,
            Contents::Bytes(length) => zram.kept(length),
        })
    }

    /// Stores a page in its slot of a compressed device. False if there is no memory for it.
    pub(crate) fn zram_store(&mut self, pfn: Pfn, entry: SwapEntry) -> bool {
        let Some(kept) = self.compressed_length(pfn, entry) else { return true };
        // What the slot held of the page before is of no use any more.
        self.zram_free(entry);
        let pages = self.zram_pages(entry, kept);
        let Some(zram) = self.memory.swap.zram_mut(entry.swap) else { return true };
        match pages {
            Some(pages) => zram.store(entry.slot, kept, &pages),
            None => {
                zram.stat.failed_writes += 1;
                return false;
            }
        }
        true
    }

    /// The frames that it takes to store so much; none at all where there are too few.
    fn zram_pages(&mut self, entry: SwapEntry, kept: u16) -> Option<Vec<Pfn>> {
        let wanted = self.memory.swap.zram(entry.swap)?.wanted(kept)?;
        let mut pages = Vec::with_capacity(wanted);
        for _ in 0..wanted {
            let request = Request::movable(Gfp::MEMALLOC | Gfp::NOWARN, self.current_node());
            let Some(pfn) = self.alloc_pages_now(&request, MemcgId::ROOT) else {
                pages.into_iter().for_each(|pfn| self.zspage_free(pfn));
                return None;
            };
            self.kernel_page_new(pfn, MemcgId::ROOT);
            self.count_node(self.memory.folios[pfn].node, Stat::NrZspages, 1);
            pages.push(pfn);
        }
        Some(pages)
    }

    /// A slot of a compressed device holds nothing any more.
    pub(crate) fn zram_free(&mut self, entry: SwapEntry) {
        let freed = self.memory.swap.zram_mut(entry.swap).and_then(|zram| zram.free(entry.slot));
        if let Some((pages, count)) = freed {
            pages[..count].iter().for_each(|&pfn| self.zspage_free(pfn));
        }
    }

    fn zspage_free(&mut self, pfn: Pfn) {
        self.count_node(self.memory.folios[pfn].node, Stat::NrZspages, -1);
        self.kernel_page_free(pfn);
    }
}
