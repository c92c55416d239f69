//! Swap devices: slots, the swap cache, and the shadows of swapped pages.
//!
//! Reclaim takes a slot when it decides to swap a page out. On an ordinary device the page keeps its slot while it is in memory (the swap cache). If
//! it is read back and not written, it can be dropped again without a write. A slot's shadow lives in the slot and dies with it. A synchronous device
//! (zram) does not use the swap cache for reads. The page is copied out and the slot freed immediately, or the data would be in memory twice. The
//! contents of its slots are in memory of the machine (`zram.rs`). A page of zeroes is a bit of its slot, on any device: nothing is written and
//! nothing read. [reclaim-6.12 M9, M10, 6]

pub mod contents; // what pages come to when they are compressed
pub mod zram; // what a compressed device takes
pub mod zspool; // compressed pages, packed by size
mod slots; // which one is taken next
mod priority; // the choice of a device
pub mod window; // how many pages are read at once

use contents::Compressibility;
use priority::Priorities;
use slots::{Bits, Slots};
use window::SwapWindow;
use zram::Zram;

use crate::config::{SwapKind, SwapSpec};
use crate::memory::folio::UseBits;
use crate::memory::table::{Entry, Mark, NodeChange, Shadow, SwapEntry, Table, Word};
use crate::policy::MachineRules;
use crate::units::{CpuId, MemcgId, Pfn, SwapId};

/// The owner of the page in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// It is a page of an address space, not of a tmpfs file.
    pub is_anon: bool,
    /// The page's address space, or its tmpfs file.
    pub owner: u32,
    /// The page there.
    pub index: u32,
}

impl Owner {
    const ANON: u64 = 1 << 63;

    fn pack(self) -> u64 {
        let anon = if self.is_anon { Owner::ANON } else { 0 };
        anon | u64::from(self.owner) << 32 | u64::from(self.index)
    }

    fn unpack(word: u64) -> Owner {
        Owner {
            is_anon: word & Owner::ANON != 0,
            owner: ((word & !Owner::ANON) >> 32) as u32,
            index: word as u32,
        }
    }
}

/// One device.
pub struct SwapDevice {
    /// A device of its own, or memory.
    pub kind: SwapKind,
    /// Compressed sizes of pages that do not define them.
    pub compressibility: Compressibility,
    slots: Slots,
    /// The swap cache, by slot: the folio, or the shadow of the page that left memory.
    index: Table,
    /// By slot, the group that it is charged to. Begins as zeroes, so that a large device takes memory only where it is used.
    memcgs: Vec<u16>,
    /// Slots that hold a page of zeroes.
    zeroes: Bits,
    /// Slots whose page the device has, as it was when it left memory last; for assertions, and empty where there are none.
    written: Bits,
    /// By slot, the owner of its page. Readahead has no page-table entry that would show it.
    owners: Vec<u64>,
    /// The device has to seek.
    is_rotational: bool,
    /// Contents of a synchronous device, in memory.
    zram: Option<Zram>,
}

impl SwapDevice {
    /// Bytes of address space that a device of so many slots takes: its index, the groups, and bits of each slot.
    pub fn bytes_for(slots: u64) -> u64 {
        Table::bytes_for(slots)
            + slots * (size_of::<u16>() + size_of::<u64>()) as u64
            + slots * 3 / 8
            + Zram::bytes_for(slots)
    }

    fn new(spec: SwapSpec) -> SwapDevice {
        let slots = u32::try_from(spec.pages).expect("swap_on bounds the size");
        SwapDevice {
            kind: spec.kind,
            compressibility: Compressibility::default(),
            slots: Slots::new(slots),
            index: Table::by_slot(slots.into()),
            memcgs: vec![0; slots as usize],
            zeroes: Bits::new(slots),
            written: Bits::new(if cfg!(debug_assertions) { slots } else { 0 }),
            owners: vec![0; slots as usize],
            is_rotational: false,
            zram: (spec.kind == SwapKind::Synchronous).then(|| Zram::new(slots as usize)),
        }
    }
}

/// All devices.
#[derive(Default)]
pub struct Swap {
    devices: Vec<SwapDevice>,
    priorities: Priorities,
    /// The window of readahead by slots.
    pub window: SwapWindow,
}

impl Swap {
    /// Adds a device.
    pub fn add(&mut self, spec: SwapSpec, priority: Option<u16>) -> SwapId {
        let swap = SwapId(self.devices.len() as u8);
        self.devices.push(SwapDevice::new(spec));
        self.priorities.add(swap, priority);
        swap
    }

    /// The priority of a device.
    pub fn priority(&self, swap: SwapId) -> i32 {
        self.priorities.of(swap)
    }

    /// Pages that a device holds, and how many it could.
    pub fn used_of(&self, swap: SwapId) -> [u64; 2] {
        let slots = &self.devices[swap.index()].slots;
        [slots.used().into(), slots.len().into()]
    }

    /// A device, if there is one of this number.
    pub fn device_mut(&mut self, swap: SwapId) -> Option<&mut SwapDevice> {
        self.devices.get_mut(swap.index())
    }

    /// Compressed sizes of pages of a device that do not define them.
    pub fn compressibility(&self, swap: SwapId) -> Compressibility {
        self.devices[swap.index()].compressibility
    }

    /// The group that a slot is accounted to.
    pub fn memcg_of(&self, entry: SwapEntry) -> MemcgId {
        MemcgId(self.devices[entry.swap.index()].memcgs[entry.slot as usize])
    }

    /// Returns whether a slot holds a page of zeroes.
    pub fn holds_zeroes(&self, entry: SwapEntry) -> bool {
        self.devices[entry.swap.index()].zeroes.has(entry.slot)
    }

    /// Notes whether a slot holds a page of zeroes.
    pub fn set_holds_zeroes(&mut self, entry: SwapEntry, holds: bool) {
        assert!(self.is_taken(entry), "slot {} is free, and what it holds is noted", entry.slot);
        if self.holds_zeroes(entry) != holds {
            self.devices[entry.swap.index()].zeroes.flip(entry.slot);
        }
    }

    /// Notes whether the device has the page of a slot, or what it has is of no use; for assertions.
    pub fn note_written(&mut self, entry: SwapEntry, is_written: bool) {
        if cfg!(debug_assertions) {
            assert!(self.is_taken(entry), "slot {} is free, and what the device has is noted", entry.slot);
            let written = &mut self.devices[entry.swap.index()].written;
            if written.has(entry.slot) != is_written {
                written.flip(entry.slot);
            }
        }
    }

    /// Returns whether a slot holds its page, as a bit or on the device; for assertions.
    pub fn holds_page(&self, entry: SwapEntry) -> bool {
        let device = &self.devices[entry.swap.index()];
        let is_kept = || device.zram.as_ref().is_none_or(|zram| zram.holds(entry.slot));
        device.zeroes.has(entry.slot) || device.written.has(entry.slot) && is_kept()
    }

    /// Returns how many devices there are.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Returns whether a device is one of its own or in memory.
    pub fn kind(&self, swap: SwapId) -> SwapKind {
        self.devices[swap.index()].kind
    }

    /// Contents of a device, if it keeps them in memory.
    pub fn zram(&self, swap: SwapId) -> Option<&Zram> {
        self.devices.get(swap.index())?.zram.as_ref()
    }

    /// Contents of a device, if it keeps them in memory, for a change.
    pub fn zram_mut(&mut self, swap: SwapId) -> Option<&mut Zram> {
        self.devices.get_mut(swap.index())?.zram.as_mut()
    }

    /// All devices that hold their pages in memory.
    pub fn zrams(&self) -> impl Iterator<Item = &Zram> {
        self.devices.iter().filter_map(|device| device.zram.as_ref())
    }

    /// All devices that hold their pages in memory, to be changed.
    pub fn zrams_mut(&mut self) -> impl Iterator<Item = &mut Zram> {
        self.devices.iter_mut().filter_map(|device| device.zram.as_mut())
    }

    /// Slots of all devices.
    pub fn total_pages(&self) -> u64 {
        self.devices.iter().map(|device| u64::from(device.slots.len())).sum()
    }

    /// Free slots of all devices.
    pub fn free_pages(&self) -> u64 {
        self.devices.iter().map(|device| u64::from(device.slots.len() - device.slots.used())).sum()
    }

    /// More than half used: then a page in memory shouldn't hold on to its slot.
    pub fn is_half_full(&self) -> bool {
        self.free_pages() * 2 < self.total_pages()
    }

    /// Slots of a device, free ones included.
    pub fn slots(&self, swap: SwapId) -> u32 {
        self.devices[swap.index()].slots.len()
    }

    /// Returns whether a slot is taken.
    pub fn is_taken(&self, entry: SwapEntry) -> bool {
        self.devices[entry.swap.index()].slots.is_taken(entry.slot)
    }

    /// Returns whether a device has to seek.
    pub fn has_rotational(&self) -> bool {
        self.devices.iter().any(|device| device.is_rotational)
    }

    /// Notes that a device has to seek.
    pub fn set_rotational(&mut self, swap: SwapId) {
        self.devices[swap.index()].is_rotational = true;
    }

    /// Returns the owner of the page in an occupied slot.
    pub fn owner(&self, entry: SwapEntry) -> Owner {
        Owner::unpack(self.devices[entry.swap.index()].owners[entry.slot as usize])
    }

    /// Notes whose page a slot holds.
    pub fn set_owner(&mut self, entry: SwapEntry, owner: Owner) {
        assert!(self.is_taken(entry), "slot {} is free, and gets an owner", entry.slot);
        self.devices[entry.swap.index()].owners[entry.slot as usize] = owner.pack();
    }

    /// The group that a taken slot is accounted to.
    pub fn memcg(&self, entry: SwapEntry) -> MemcgId {
        MemcgId(self.devices[entry.swap.index()].memcgs[entry.slot as usize])
    }

    /// Takes a slot for a page of this group on the first device that has one.
    pub fn take(&mut self, memcg: MemcgId, cpu: CpuId) -> Option<SwapEntry> {
        let (swap, slot) = self.priorities.take(&mut self.devices, cpu)?;
        let device = &mut self.devices[swap.index()];
        assert!(
            device.index.word(slot.into()) == Word::EMPTY,
            "slot {slot} is taken with what it held before"
        );
        assert!(!device.zeroes.has(slot), "slot {slot} is taken and holds zeroes");
        assert!(device.slots.is_taken(slot), "slot {slot} was handed out and counts as free");
        device.memcgs[slot as usize] = memcg.0;
        Some(SwapEntry { swap, slot })
    }

    /// Takes slots in a row for the pages of a large folio of this group: on the first device that is asked, and only if it is a block device. Returns the
    /// first. [folios 3.5]
    #[cold]
    pub fn take_large(
        &mut self,
        memcg: MemcgId,
        cpu: CpuId,
        order: u8,
        rules: &MachineRules,
    ) -> Option<SwapEntry> {
        let swap = self.priorities.first(&self.devices)?;
        let device = &mut self.devices[swap.index()];
        if device.kind == SwapKind::File || device.is_rotational && !rules.swap_rotational {
            return None;
        }
        let first = device.slots.take_large(order, cpu, rules.swap_clusters)?;
        for slot in first..first + (1 << order) {
            assert!(
                device.index.word(slot.into()) == Word::EMPTY && !device.zeroes.has(slot),
                "slot {slot} is taken with what it held before"
            );
            device.memcgs[slot as usize] = memcg.0;
        }
        Some(SwapEntry { swap, slot: first })
    }

    /// Gives back a slot in which there is nothing any more, and no shadow; returns the group it was accounted to.
    pub fn free(&mut self, entry: SwapEntry, cpu: CpuId) -> MemcgId {
        let device = &mut self.devices[entry.swap.index()];
        let slot = entry.slot;
        assert!(device.index.word(slot.into()) == Word::EMPTY, "slot {slot} is freed under its folio");
        if device.zeroes.has(slot) {
            device.zeroes.flip(slot);
        }
        if cfg!(debug_assertions) && device.written.has(slot) {
            device.written.flip(slot);
        }
        device.slots.free(slot, cpu);
        assert!(!device.slots.is_taken(slot), "slot {slot} was freed and counts as taken");
        assert!(!device.zeroes.has(slot), "slot {slot} is free, and holds a page of zeroes");
        MemcgId(device.memcgs[slot as usize])
    }

    /// The folio of a slot in the swap cache.
    pub fn cached(&self, entry: SwapEntry) -> Option<Pfn> {
        match self.index(entry.swap).word(entry.slot.into()).decode() {
            Entry::Present(pfn) => Some(pfn),
            _ => None,
        }
    }

    /// The shadow of the page that the slot holds, or an empty word.
    pub fn shadow(&self, entry: SwapEntry) -> Word {
        let word = self.index(entry.swap).word(entry.slot.into());
        if word.is_shadow() { word } else { Word::EMPTY }
    }

    /// Puts a page of a folio of this order into the swap cache.
    pub fn cache_insert(&mut self, entry: SwapEntry, pfn: Pfn, order: u8) -> NodeChange {
        let device = &mut self.devices[entry.swap.index()];
        // The folio keeps its use bits in its record: an access finds it by its page table, not here.
        let word = Word::cached(pfn, UseBits::empty(), Mark::Classic).with_order(order);
        let (old, change) = device.index.replace(entry.slot.into(), word);
        assert!(
            device.slots.is_taken(entry.slot),
            "a folio is put into the swap cache by slot {}, which is free",
            entry.slot
        );
        assert!(!old.is_present(), "slot {} holds another page", entry.slot);
        change
    }

    /// The page of a slot, one of a large folio in the swap cache, is a single page in this frame.
    pub fn cache_split(&mut self, entry: SwapEntry, pfn: Pfn) {
        self.cache_mut(entry.swap).update(entry.slot.into(), |word| *word = word.with_pfn(pfn).with_order(0));
    }

    /// Takes the folio out of the swap cache, leaving a shadow if reclaim did it.
    pub fn cache_remove(&mut self, entry: SwapEntry, shadow: Option<Shadow>) -> NodeChange {
        let word = shadow.map_or(Word::EMPTY, Shadow::pack);
        let (old, change) = self.cache_mut(entry.swap).replace(entry.slot.into(), word);
        assert!(old.is_present(), "slot {} has no folio", entry.slot);
        assert!(self.is_taken(entry), "slot {} was freed before its folio left the swap cache", entry.slot);
        change
    }

    /// Forgets the shadow of the page that the slot holds, if there is one.
    pub fn forget_shadow(&mut self, entry: SwapEntry) -> NodeChange {
        if self.shadow(entry) == Word::EMPTY {
            return NodeChange::None;
        }
        self.cache_mut(entry.swap).replace(entry.slot.into(), Word::EMPTY).1
    }

    fn index(&self, swap: SwapId) -> &Table {
        &self.devices[swap.index()].index
    }

    /// The swap cache of a device.
    pub fn cache_mut(&mut self, swap: SwapId) -> &mut Table {
        &mut self.devices[swap.index()].index
    }

    /// The swap caches of all devices.
    pub fn indexes(&self) -> impl Iterator<Item = &Table> {
        self.devices.iter().map(|device| &device.index)
    }

    /// All taken slots with their group, for checkers.
    pub fn taken(&self) -> impl Iterator<Item = (SwapEntry, MemcgId)> {
        self.devices.iter().enumerate().flat_map(|(swap, device)| {
            device.slots.taken().map(move |slot| {
                (SwapEntry { swap: SwapId(swap as u8), slot }, MemcgId(device.memcgs[slot as usize]))
            })
        })
    }

    /// Panics unless slots, swap caches and what devices hold agree.
    pub fn check_invariants(&self) {
        for device in &self.devices {
            device.slots.check_invariants();
            device.index.check_invariants();
            let held = (0..device.slots.len()).filter(|&slot| device.zeroes.has(slot));
            held.for_each(|slot| {
                assert!(device.slots.is_taken(slot), "slot {slot} is free and holds zeroes")
            });
            if let Some(zram) = &device.zram {
                zram.check_invariants(|slot| device.slots.is_taken(slot));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swap(pages: u64) -> Swap {
        let mut swap = Swap::default();
        swap.add(SwapSpec { pages, kind: SwapKind::Device }, None);
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
    fn a_shadow_stays_until_its_slot_is_used_or_it_is_forgotten() {
        let mut swap = swap(4);
        let entry = swap.take(MemcgId(1), CpuId(0)).unwrap();
        swap.cache_insert(entry, Pfn(9), 0);
        let shadow =
            Shadow { memcg: MemcgId(1), node: crate::units::NodeId(0), workingset: true, refs: 0, stamp: 4 };
        swap.cache_remove(entry, Some(shadow));
        assert!(swap.shadow(entry) == shadow.pack());
        swap.cache_insert(entry, Pfn(9), 0);
        assert!(swap.shadow(entry) == Word::EMPTY);
        assert_eq!(swap.forget_shadow(entry), NodeChange::None);
        assert_eq!(swap.cache_remove(entry, Some(shadow)), NodeChange::ShadowOnly);
        assert_eq!(swap.forget_shadow(entry), NodeChange::Mixed);
        assert!(swap.shadow(entry) == Word::EMPTY);
    }
}
