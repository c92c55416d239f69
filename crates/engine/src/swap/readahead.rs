//! Swap readahead: which swapped pages are read with the one that a fault needs.
//!
//! ```text
//!   by address   the pages around the faulting one in its mapping, as far as they are swapped out       devices that don't seek
//!   by slot      the aligned block of slots around the wanted one, whoever's pages they hold            devices that do; tmpfs
//! ```
//! Pages that were swapped out together lie together on the device, which matters if the device seeks. On other devices, neighbours
//! in a mapping are the better guess. How many are read: `window.rs`. A page read for others carries the mark of readahead until the
//! first fault finds it, which is a hit. Readahead is useless for a synchronous device: its pages come one by one, without a wait.
//! [machine 1.11]
//!
//! `access/swap_ahead.rs` takes page after page in. Not as in the kernel: a device has no header, so its first slot is one like the
//! others; and of a mapping, pages on synchronous devices are left out.

use crate::config::SwapKind;
use crate::core::Core;
use crate::lru::AddedFor;
use crate::memory::folio::FolioFlags;
use crate::memory::mm::Backing;
use crate::memory::table::{Entry, LEAF_PAGES, SwapEntry};
use crate::stat::Stat;
use crate::state::State;
use crate::units::{MemcgId, MmId, Pfn, SwapId, TaskId};
use std::ops::Range;

/// Swapped pages that are to be read as one batch, as far as it has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SwapReadahead {
    of: Neighbours,
    /// The next page or slot to look at.
    next: u64,
    /// The one behind the last.
    end: u64,
    /// The page of the fault; `None` if no task waits for any of the pages.
    wanted: Option<SwapEntry>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Neighbours {
    Slots(SwapId),
    Pages(MmId),
}

impl SwapReadahead {
    /// Reads pages of an address space that no task waits for.
    pub(crate) fn of_pages(mm: MmId, pages: Range<u64>) -> SwapReadahead {
        SwapReadahead { of: Neighbours::Pages(mm), next: pages.start, end: pages.end, wanted: None }
    }

    /// Returns true if advice requested them, and not a fault on one of them.
    pub(crate) fn is_advised(&self) -> bool {
        self.wanted.is_none()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.next >= self.end
    }

    pub(crate) fn go_on(&mut self) {
        self.next += 1;
    }

    pub(crate) fn is_wanted(&self, entry: SwapEntry) -> bool {
        self.wanted == Some(entry)
    }
}

/// By address no more is read than fits the kernel's word for it.
const PAGES_MAX_ORDER: u8 = 5;

impl Core {
    /// Puts a swapped page into the swap cache, and begins to read it, unless it is one of zeroes or compressed. `task`, if any, is woken when
    /// the read is over.
    pub(crate) fn swap_cache_read(
        &mut self,
        pfn: Pfn,
        entry: SwapEntry,
        task: Option<TaskId>,
        added_for: AddedFor,
    ) {
        assert!(self.mm.memory.swap.is_taken(entry), "slot {} is free, and is read", entry.slot);
        assert_eq!(
            self.mm.memory.swap.cached(entry),
            None,
            "slot {} is read, and its page is in memory",
            entry.slot
        );
        self.mm.memory.folios[pfn].set(FolioFlags::LOCKED);
        let shadow = self.mm.memory.swap.shadow(entry);
        self.swap_cache_insert(pfn, entry);
        self.workingset_refault(pfn, shadow, added_for);
        self.lru_add(pfn, added_for);
        if self.swap_zeroes_in(pfn, entry) {
            self.mm.memory.folios[pfn].clear(FolioFlags::LOCKED);
        } else if self.zswap_load(pfn, entry) {
            self.mm.memory.folios[pfn].clear(FolioFlags::LOCKED);
            self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
        } else {
            self.mm.zswap_missed(pfn);
            self.start_read_swap(pfn, entry, task);
        }
    }
}

impl State {
    /// What to read where a page of anonymous memory is swapped out; nothing where it is to be read by itself.
    #[doc(alias = "swap_vma_readahead")]
    #[doc(alias = "swapin_readahead")]
    pub(crate) fn swap_readahead(
        &mut self,
        mm: MmId,
        vma: usize,
        page: u64,
        wanted: SwapEntry,
    ) -> Option<SwapReadahead> {
        if !self.reads_by_address() {
            return self.swap_cluster_readahead(wanted);
        }
        let most = 1 << self.config.page_cluster.min(PAGES_MAX_ORDER);
        if most == 1 || self.memory.swap.kind(wanted.swap) == SwapKind::Synchronous {
            return None;
        }
        let vma = &mut self.memory.mm_mut(mm).vmas[vma];
        let (size, before) = vma.swap_window.around_page(page, most);
        // What lies under one page table, and in the mapping.
        let table = page / LEAF_PAGES * LEAF_PAGES;
        let range = vma.range();
        let start = page.saturating_sub(before).max(range.start).max(table);
        let end = (page + size - before).min(range.end).min(table + LEAF_PAGES);
        let batch = SwapReadahead { of: Neighbours::Pages(mm), next: start, end, wanted: Some(wanted) };
        (size > 1).then_some(batch)
    }

    /// What to read where a page of tmpfs is swapped out, or the device seeks.
    pub(crate) fn swap_cluster_readahead(&mut self, wanted: SwapEntry) -> Option<SwapReadahead> {
        let most = 1u64 << self.config.page_cluster;
        if most == 1 || self.memory.swap.kind(wanted.swap) == SwapKind::Synchronous {
            return None;
        }
        let slot = u64::from(wanted.slot);
        let size = self.memory.swap.window.around_slot(slot, most);
        let start = slot / size * size;
        let end = (start + size).min(self.memory.swap.slots(wanted.swap).into());
        let batch =
            SwapReadahead { of: Neighbours::Slots(wanted.swap), next: start, end, wanted: Some(wanted) };
        (size > 1).then_some(batch)
    }

    /// Neighbours in a mapping are read unless some device seeks.
    fn reads_by_address(&self) -> bool {
        self.config.vma_ra_enabled && !self.memory.swap.has_rotational()
    }

    /// The page that a batch has got to, if it is on the device and nowhere else.
    pub(crate) fn swap_neighbour(&self, batch: &SwapReadahead) -> Option<SwapEntry> {
        let entry = match batch.of {
            Neighbours::Slots(swap) => {
                let entry = SwapEntry { swap, slot: batch.next as u32 };
                Some(entry).filter(|&entry| self.memory.swap.is_taken(entry))
            }
            Neighbours::Pages(mm) => match self.memory.mm(mm).table.word(batch.next).decode() {
                Entry::Swap(entry) => Some(entry),
                _ => None,
            },
        };
        entry.filter(|&entry| {
            self.memory.swap.kind(entry.swap) == SwapKind::Device && self.memory.swap.cached(entry).is_none()
        })
    }

    /// The memcg that is charged for a page that swap readahead brings back: the page's own while that is online, else the reader's.
    pub(crate) fn payer_of(&self, entry: SwapEntry, reader: MemcgId) -> MemcgId {
        let owner = self.memory.swap.memcg(entry);
        let is_there = self.memcgs.contains(owner) && self.memcgs[owner].is_online;
        if is_there { owner } else { reader }
    }

    /// A page was read ahead of any request for it.
    pub(crate) fn swap_read_ahead(&mut self, pfn: Pfn) {
        assert!(
            self.memory.folios[pfn].has(FolioFlags::SWAPCACHE),
            "{pfn:?} was read ahead, and is in no slot"
        );
        self.memory.change_reclaim(pfn, true);
        self.count_node(self.memory.folios[pfn].node, Stat::SwapRa, 1);
    }

    /// A fault has found its swapped page in the swap cache. `place`: the mapping it is for, and the page there; tmpfs has none.
    pub(crate) fn swap_cache_found(&mut self, pfn: Pfn, place: Option<(MmId, usize, u64)>) {
        let folio = self.memory.folios[pfn];
        let is_hit = folio.has(FolioFlags::RECLAIM)
            && !folio.flags().intersects(FolioFlags::WRITEBACK | FolioFlags::DIRTY);
        let by_address = place.filter(|_| self.reads_by_address());
        if let Some((mm, vma, page)) = by_address {
            let vma = &mut self.memory.mm_mut(mm).vmas[vma];
            debug_assert_eq!(vma.backing, Backing::Anon, "what it maps is its own");
            vma.swap_window.found_page(page, is_hit);
        }
        if is_hit {
            self.memory.change_reclaim(pfn, false);
            self.count_node(folio.node, Stat::SwapRaHit, 1);
            if by_address.is_none() {
                self.memory.swap.window.found_slot();
            }
        }
    }
}
