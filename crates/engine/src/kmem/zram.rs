//! Frames of compressed memory: those that a zram device, or zswap, allocates when a page is stored, and frees when it leaves.
//!
//! The frames are taken in the middle of reclaim, which waits for nothing and may use the reserves for it: it frees more than it takes.
//! If there are none, the write fails, and the page stays in memory. The frames belong to no group. [tiering-zswap-6.12 1.1]

use crate::core::Core;
use crate::memory::table::SwapEntry;
use crate::page_alloc::request::{Gfp, Request};
use crate::stat::Stat;
use crate::state::State;
use crate::swap::zram::Zram;
use crate::units::{MemcgId, Pfn};

impl Core {
    /// Stores a page in its slot of a compressed device. False if there is no memory for it.
    pub(crate) fn zram_store(&mut self, pfn: Pfn, entry: SwapEntry) -> bool {
        let Some(kept) = self.compressed_length(pfn, entry) else { return true };
        // What the slot held of the page before is of no use any more.
        self.zram_free(entry);
        let wanted = self.mm.memory.swap.zram(entry.swap).and_then(|zram| zram.wanted(kept));
        let pages = wanted.and_then(|wanted| self.zspool_pages(wanted));
        let Some(zram) = self.mm.memory.swap.zram_mut(entry.swap) else { return true };
        match pages {
            Some(pages) => zram.store(entry.slot, kept, &pages),
            None => {
                zram.stat.failed_writes += 1;
                return false;
            }
        }
        self.mm.memory.swap.note_written(entry, true);
        self.mm.assert_zspages_counted();
        true
    }

    /// Bytes that a page takes on a zram device; `None` if the entry's device is not a zram device.
    fn compressed_length(&mut self, pfn: Pfn, entry: SwapEntry) -> Option<u16> {
        self.mm.memory.swap.zram(entry.swap)?;
        if self.repeated_word(pfn, entry).is_some() {
            return Some(0);
        }
        let length = self.compressed_bytes(pfn, entry);
        self.mm.memory.swap.zram(entry.swap).map(|zram| zram.kept(length))
    }

    /// So many frames for compressed pages; none at all where there are too few.
    pub(crate) fn zspool_pages(&mut self, wanted: usize) -> Option<Vec<Pfn>> {
        let mut pages = Vec::with_capacity(wanted);
        for _ in 0..wanted {
            let request = Request::movable(Gfp::MEMALLOC | Gfp::NOWARN, self.current_node());
            let Some(pfn) = self.alloc_pages_now(&request, MemcgId::ROOT) else {
                pages.into_iter().for_each(|pfn| self.zspage_free(pfn));
                return None;
            };
            self.mm.kernel_page_new(pfn, MemcgId::ROOT);
            self.mm.count_node(self.mm.memory.folios[pfn].node, Stat::NrZspages, 1);
            pages.push(pfn);
        }
        Some(pages)
    }

    /// A slot of a compressed device holds nothing any more.
    pub(crate) fn zram_free(&mut self, entry: SwapEntry) {
        let freed = self.mm.memory.swap.zram_mut(entry.swap).and_then(|zram| zram.free(entry.slot));
        if let Some((pages, count)) = freed {
            pages[..count].iter().for_each(|&pfn| self.zspage_free(pfn));
        }
        self.mm.assert_zspages_counted();
    }

    pub(crate) fn zspage_free(&mut self, pfn: Pfn) {
        let node = self.mm.memory.folios[pfn].node;
        let before = self.mm.node_stat(node, Stat::NrZspages);
        self.mm.count_node(node, Stat::NrZspages, -1);
        debug_assert_eq!(
            self.mm.node_stat(node, Stat::NrZspages),
            before - 1,
            "nr_zspages of the node of {pfn:?}"
        );
        self.kernel_page_free(pfn);
    }
}

impl State {
    /// Compressed pages have come, or gone: the frames that are counted are those that the pools have.
    #[inline]
    #[track_caller]
    pub(crate) fn assert_zspages_counted(&self) {
        if cfg!(debug_assertions) {
            let of_devices: u64 = self.memory.swap.zrams().map(Zram::pages).sum();
            let pages = of_devices + self.zswap.pool.pages();
            assert_eq!(self.vmstat(Stat::NrZspages), pages as i64, "nr_zspages, and pages of all pools");
        }
    }

    /// Returns true if a device may take a page that comes to this length; one that doesn't compress takes any.
    pub(crate) fn zram_has_room(&self, entry: SwapEntry, length: u16) -> bool {
        let kept = |zram: &Zram| if length == 0 { 0 } else { zram.kept(length) };
        self.memory.swap.zram(entry.swap).is_none_or(|zram| zram.wanted(kept(zram)).is_some())
    }
}
