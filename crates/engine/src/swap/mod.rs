//! Swap devices: slots, the swap cache, and the shadows of swapped pages.
//!
//! A slot is taken when reclaim decides to swap a page out. On an ordinary device the page and its slot stay together while
//! the page is in memory (the swap cache): a page that was read back and not written since can be dropped again without a
//! write. A slot's shadow lives in the slot and dies with it. A synchronous device (zram) has no use for the swap cache on
//! the way in: the page is copied out and the slot freed at once, or the data would be in memory twice.

mod slots; // which one is taken next

use slots::Slots;

use crate::config::{SwapKind, SwapSpec};
use crate::table::{Shadow, SwapEntry, Word};
use crate::units::{CpuId, MemcgId, Pfn, SwapId};

/// One device.
pub(crate) struct SwapDevice {
    pub(crate) kind: SwapKind,
    slots: Slots,
    /// By slot: folio in the swap cache, plus 1; shadow of the page that left memory; group that the slot is accounted to. All
    /// begin as zeroes, so that a large device takes memory only where it is used.
    cache: Vec<u32>,
    shadows: Vec<u64>,
    memcgs: Vec<u16>,
}

impl SwapDevice {
    fn new(spec: SwapSpec) -> SwapDevice {
        let slots = u32::try_from(spec.pages).expect("swap_on bounds the size");
        SwapDevice {
            kind: spec.kind,
            slots: Slots::new(slots),
            cache: vec![0; slots as usize],
            shadows: vec![0; slots as usize],
            memcgs: vec![0; slots as usize],
        }
    }
}

/// All devices, in order of priority.
#[derive(Default)]
pub(crate) struct Swap {
    devices: Vec<SwapDevice>,
}

impl Swap {
    pub(crate) fn add(&mut self, spec: SwapSpec) -> SwapId {
        self.devices.push(SwapDevice::new(spec));
        SwapId((self.devices.len() - 1) as u8)
    }

    pub(crate) fn devices(&self) -> usize {
        self.devices.len()
    }

    pub(crate) fn kind(&self, swap: SwapId) -> SwapKind {
        self.devices[swap.index()].kind
    }

    pub(crate) fn total_pages(&self) -> u64 {
        self.devices.iter().map(|device| u64::from(device.slots.len())).sum()
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.devices.iter().map(|device| u64::from(device.slots.len() - device.slots.used())).sum()
    }

    /// More than half used: then a page in memory shouldn't hold on to its slot.
    pub(crate) fn is_half_full(&self) -> bool {
        self.free_pages() * 2 < self.total_pages()
    }

    /// Takes a slot for a page of this group on the first device that has one.
    pub(crate) fn take(&mut self, memcg: MemcgId, cpu: CpuId) -> Option<SwapEntry> {
        let mut devices = self.devices.iter_mut().enumerate();
        let (swap, slot) = devices.find_map(|(swap, device)| Some((swap, device.slots.take(cpu)?)))?;
        self.devices[swap].memcgs[slot as usize] = memcg.0;
        Some(SwapEntry { swap: SwapId(swap as u8), slot })
    }

    /// Gives the slot back; returns the group it was accounted to.
    pub(crate) fn free(&mut self, entry: SwapEntry, cpu: CpuId) -> MemcgId {
        let device = &mut self.devices[entry.swap.index()];
        let slot = entry.slot as usize;
        assert_eq!(device.cache[slot], 0, "slot {slot} is freed under its folio");
        device.slots.free(entry.slot, cpu);
        device.shadows[slot] = 0;
        MemcgId(device.memcgs[slot])
    }

    pub(crate) fn cached(&self, entry: SwapEntry) -> Option<Pfn> {
        self.devices[entry.swap.index()].cache[entry.slot as usize].checked_sub(1).map(Pfn)
    }

    pub(crate) fn cache_insert(&mut self, entry: SwapEntry, pfn: Pfn) {
        let device = &mut self.devices[entry.swap.index()];
        assert!(
            device.slots.is_taken(entry.slot) && device.cache[entry.slot as usize] == 0,
            "slot holds another page"
        );
        device.cache[entry.slot as usize] = pfn.0 + 1;
    }

    /// Takes the folio out of the swap cache, leaving a shadow if reclaim did it.
    pub(crate) fn cache_remove(&mut self, entry: SwapEntry, shadow: Option<Shadow>) {
        let device = &mut self.devices[entry.swap.index()];
        assert_ne!(device.cache[entry.slot as usize], 0, "slot {} has no folio", entry.slot);
        device.cache[entry.slot as usize] = 0;
        device.shadows[entry.slot as usize] = shadow.map_or(Word::EMPTY, Shadow::pack).bits();
    }

    /// The shadow of the page that this slot holds; reading it takes it.
    pub(crate) fn take_shadow(&mut self, entry: SwapEntry) -> Word {
        Word::from_bits(std::mem::take(&mut self.devices[entry.swap.index()].shadows[entry.slot as usize]))
    }

    /// All taken slots with their group, for checkers.
    pub(crate) fn taken(&self) -> impl Iterator<Item = (SwapEntry, MemcgId)> {
        self.devices.iter().enumerate().flat_map(|(swap, device)| {
            device.slots.taken().map(move |slot| {
                (SwapEntry { swap: SwapId(swap as u8), slot }, MemcgId(device.memcgs[slot as usize]))
            })
        })
    }

    pub(crate) fn check_invariants(&self) {
        self.devices.iter().for_each(|device| device.slots.check_invariants());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swap(pages: u64) -> Swap {
        let mut swap = Swap::default();
        swap.add(SwapSpec { pages, kind: SwapKind::Device });
        swap
    }

    #[test]
    fn half_full_means_more_used_than_free() {
        let mut swap = swap(4);
        swap.take(MemcgId(1), CpuId(0));
        swap.take(MemcgId(1), CpuId(0));
        assert!(!swap.is_half_full());
        swap.take(MemcgId(1), CpuId(0));
        assert!(swap.is_half_full());
    }

    #[test]
    fn a_shadow_is_read_once() {
        let mut swap = swap(4);
        let entry = swap.take(MemcgId(1), CpuId(0)).unwrap();
        swap.cache_insert(entry, Pfn(9));
        let shadow =
            Shadow { memcg: MemcgId(1), node: crate::NodeId(0), workingset: true, refs: 0, stamp: 4 };
        swap.cache_remove(entry, Some(shadow));
        assert!(swap.take_shadow(entry) == shadow.pack());
        assert!(swap.take_shadow(entry) == Word::EMPTY);
    }
}
