//! Zero-filled pages on swap (`swap_zeromap`), and where the contents of any swapped page come from: the host if it has the pages, the page's region, or
//! else its device.
//!
//! A page of zeroes needs no place: a bit of its slot says that it is one. It is asked for before zswap and the device are, on the
//! way out and on the way in. Its slot and its place in the swap cache are those of any page. [reclaim 6.2; reclaim-6.12 6]

use crate::core::Core;
use crate::machine::op::Op;
use crate::memory::table::SwapEntry;
use crate::stat::Stat;
use crate::state::State;
use crate::swap::Owner;
use crate::swap::contents::{Compressibility, Contents};
use crate::units::{FileId, MmId, PAGE_SIZE, Pfn};

/// The compressed size of a page of one word repeated, if such pages are not detected: a few tens of bytes with
/// any compressor.
const ONE_WORD_BYTES: u16 = 36;
/// Any word but zero.
const ONE_WORD: u64 = u64::MAX;

impl Core {
    /// The word that a page repeats that goes to a swap device, if it has no other content.
    pub(crate) fn repeated_word(&mut self, pfn: Pfn, slot: SwapEntry) -> Option<u64> {
        if let Some(contents) = &mut self.contents {
            return contents.repeated_word(pfn);
        }
        match self.mm.contents_of(slot) {
            Contents::Zeroes => Some(0),
            Contents::OneWord => Some(ONE_WORD),
            Contents::Bytes(_) => None,
        }
    }

    /// The number of bytes that a page comes to when it is compressed, from 1 to 4096.
    pub(crate) fn compressed_bytes(&mut self, pfn: Pfn, slot: SwapEntry) -> u16 {
        let Some(contents) = &mut self.contents else {
            return match self.mm.contents_of(slot) {
                Contents::Zeroes | Contents::OneWord => ONE_WORD_BYTES,
                Contents::Bytes(length) => length,
            };
        };
        let length = contents.compressed_bytes(pfn);
        assert!((1..=PAGE_SIZE).contains(&length.into()), "the host has {pfn:?} come to {length} bytes");
        length
    }

    /// A page of zeroes goes out as a bit of its slot. False if it is none.
    pub(crate) fn swap_zeroes_out(&mut self, pfn: Pfn, entry: SwapEntry) -> bool {
        assert_eq!(
            self.mm.memory.swap.cached(entry),
            Some(pfn),
            "slot {} is another page's than goes out",
            entry.slot
        );
        let is_zeroes = self.mm.config.zero_map && self.repeated_word(pfn, entry) == Some(0);
        self.mm.memory.swap.set_holds_zeroes(entry, is_zeroes);
        if is_zeroes {
            self.mm.count_node(self.mm.memory.folios[pfn].node, Stat::SwpoutZero, 1);
        }
        is_zeroes
    }

    /// The same of a large folio: only if all of its pages are zeroes.
    #[cold]
    pub(crate) fn swap_zeroes_out_large(&mut self, pfn: Pfn) -> bool {
        let folio = self.mm.memory.folios[pfn];
        let slots = || {
            (0..).zip(folio.slots()).map(|(at, slot)| (Pfn(pfn.0 + at), SwapEntry { swap: folio.swap, slot }))
        };
        let is_zeroes = self.mm.config.zero_map
            && slots().all(|(frame, slot)| self.repeated_word(frame, slot) == Some(0));
        for (_, slot) in slots() {
            self.mm.memory.swap.set_holds_zeroes(slot, is_zeroes);
        }
        if is_zeroes {
            self.mm.count_node(folio.node, Stat::SwpoutZero, folio.pages() as i64);
        }
        is_zeroes
    }

    /// Returns true if a page of an anonymous folio holds nothing but zeroes, as far as that is known. A host may have the pages, or the region's
    /// contents are drawn.
    pub(crate) fn holds_zeroes(&mut self, pfn: Pfn, at: u32) -> bool {
        if let Some(contents) = &mut self.contents {
            return contents.repeated_word(Pfn(pfn.0 + at)) == Some(0);
        }
        let folio = &self.mm.memory.folios[pfn];
        let (owner, index) = (folio.owner, folio.index + at);
        let of_region = self.mm.region_compressibility(true, owner, index.into());
        of_region.is_some_and(|of| of.contents_of(true, owner, index) == Contents::Zeroes)
    }

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
    /// The contents of a page that goes to a swap device, where they are drawn.
    fn contents_of(&self, slot: SwapEntry) -> Contents {
        let Owner { is_anon, owner, index } = self.memory.swap.owner(slot);
        let of_region = self.region_compressibility(is_anon, owner, index.into());
        let compressibility = of_region.unwrap_or_else(|| self.memory.swap.compressibility(slot.swap));
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
}
