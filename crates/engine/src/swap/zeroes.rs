//! Zero-filled pages on swap (`swap_zeromap`), and where the contents of any swapped page come from: its region, or else its device.
//!
//! A page of zeroes needs no place: a bit of its slot says that it is one. It is asked for before zswap and the device are, on the
//! way out and on the way in. Its slot and its place in the swap cache are those of any page. [reclaim 6.2; reclaim-6.12 6]

use crate::core::Core;
use crate::machine::op::Op;
use crate::memory::folio::FolioFlags;
use crate::memory::table::SwapEntry;
use crate::stat::Stat;
use crate::state::State;
use crate::swap::contents::{Compressibility, Contents};
use crate::units::{FileId, MmId, Pfn, SwapId};

impl Core {
    /// Fills a page whose slot says that it is one of zeroes. False if it doesn't.
    pub(crate) fn swap_zeroes_in(&mut self, pfn: Pfn, entry: SwapEntry) -> bool {
        let is_zeroes = self.mm.memory.swap.holds_zeroes(entry);
        assert!(
            self.mm.memory.swap.is_taken(entry),
            "slot {} is free, and a page is filled from it",
            entry.slot
        );
        assert!(
            !is_zeroes || self.mm.zswap.find(entry).is_none(),
            "slot {} holds zeroes and has an entry",
            entry.slot
        );
        if is_zeroes {
            self.mm.count_node(self.mm.memory.folios[pfn].node, Stat::SwpinZero, 1);
            self.out.push(Op::Zero { pfn, pages: 1 });
        }
        is_zeroes
    }
}

impl State {
    /// The contents of a page that goes to a swap device.
    pub(crate) fn contents_of(&self, pfn: Pfn, swap: SwapId) -> Contents {
        let folio = &self.memory.folios[pfn];
        let (is_anon, owner, index) = (folio.has(FolioFlags::ANON), folio.owner, folio.index);
        let of_region = self.region_compressibility(is_anon, owner, index.into());
        let compressibility = of_region.unwrap_or_else(|| self.memory.swap.compressibility(swap));
        compressibility.contents_of(is_anon, owner, index)
    }

    /// The compressibility that is set for the region of a page, if any.
    pub(crate) fn region_compressibility(
        &self,
        is_anon: bool,
        owner: u32,
        page: u64,
    ) -> Option<Compressibility> {
        if !is_anon {
            return self.memory.file(FileId(owner)).compressibility;
        }
        // A page may be held for longer than its mapping exists.
        let mut vmas = self.memory.mm(MmId(owner)).vmas.iter();
        vmas.find(|vma| vma.range().contains(&page)).and_then(|vma| vma.compressibility)
    }

    /// A page of zeroes goes out as a bit of its slot. False if it is none.
    pub(crate) fn swap_zeroes_out(&mut self, pfn: Pfn, entry: SwapEntry) -> bool {
        assert_eq!(
            self.memory.swap.cached(entry),
            Some(pfn),
            "slot {} is another page's than goes out",
            entry.slot
        );
        let is_zeroes = self.config.zero_map && self.contents_of(pfn, entry.swap) == Contents::Zeroes;
        self.memory.swap.set_holds_zeroes(entry, is_zeroes);
        if is_zeroes {
            self.count_node(self.memory.folios[pfn].node, Stat::SwpoutZero, 1);
        }
        is_zeroes
    }
}
