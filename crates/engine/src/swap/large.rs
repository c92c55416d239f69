//! Slots in a row: when a large folio is swapped out and comes back as a whole.
//!
//! ```text
//!   out   a free row of slots on the first device ─▶ each slot is a page's, with its own owner, zswap entry and shadow; one write, one end
//!         none, or the device is a file           ─▶ the folio is split, and single pages go
//!   in    a synchronous device, aligned slots in a row, none in the swap cache, all or none of zeroes ─▶ a folio, mapped by all its entries
//!         tmpfs: the pages that went together; refused ─▶ one comes alone, the others stay together in smaller parts
//! ```
//! Words of tmpfs have the order. Nothing else knows that slots belong together. Each is freed when its page needs it no more, so a row has holes as soon as a page of it comes back
//! alone. [folios 2.5, 3.5]

use crate::audit::{Paid, Transition};
use crate::config::SwapKind;
use crate::core::Core;
use crate::memcg::SwapEvent;
use crate::memory::folio::{FolioFlags, HUGE_PAGE_ORDER};
use crate::memory::mm::Backing;
use crate::memory::table::{SwapEntry, Word};
use crate::mthp::MthpStat;
use crate::state::State;
use crate::swap::Owner;
use crate::units::{FileId, MmId, NodeId, Pfn};
use pageout_rules::folio::{SwapInLarge, TmpfsSwapIn};

impl Core {
    /// Gives a large folio slots in a row; false where there are none, or its group may not have so many.
    #[doc(alias = "folio_alloc_swap")]
    #[cold]
    pub(crate) fn add_large_to_swap(&mut self, pfn: Pfn) -> bool {
        self.mm.assert_isolated(pfn);
        let folio = self.mm.memory.folios[pfn];
        assert!(!folio.has(FolioFlags::SWAPCACHE), "{pfn:?} has slots, and gets others");
        let (memcg, pages) = (folio.memcg, folio.pages());
        let charges = self.open_charges(Transition::TakeSlot, memcg);
        let mut first = None;
        if self.mm.memcgs.charge_swap_pages(memcg, pages) {
            let rules = &self.mm.config.policy.machine;
            first = self.mm.memory.swap.take_large(memcg, self.by.cpu, folio.order, rules);
            if first.is_none() {
                self.mm.memcgs.swap_event(memcg, SwapEvent::Fail);
                self.mm.memcgs.uncharge_swap_pages(memcg, pages);
            }
        }
        self.close_charges(charges, Paid::slots(if first.is_some() { pages as i64 } else { 0 }));
        let Some(first) = first else { return false };
        self.note_updates(memcg, pages);
        // The slots hold nothing yet.
        self.mm.memory.folios[pfn].set(FolioFlags::DIRTY | FolioFlags::SWAPBACKED);
        self.swap_cache_insert(pfn, first);
        let is_anon = folio.has(FolioFlags::ANON);
        for at in 0..pages as u32 {
            let owner = Owner { is_anon, owner: folio.owner, index: folio.index + at };
            self.mm.memory.swap.set_owner(SwapEntry { slot: first.slot + at, ..first }, owner);
        }
        self.mm.assert_slots_charged();
        true
    }

    /// A large folio could not be brought back. Kernels that have the counters count it.
    pub(crate) fn count_swap_in_fallback(&mut self, node: NodeId, order: u8, is_charge: bool) {
        if self.mm.config.policy.machine.swap_in_large == SwapInLarge::SameGroup {
            self.count_mthp(node, order, MthpStat::SwpinFallback);
            if is_charge {
                self.count_mthp(node, order, MthpStat::SwpinFallbackCharge);
            }
        }
    }
}

impl State {
    /// The orders of the large folios, a bit each, as which a swapped page of anonymous memory may come back. A huge page comes back as smaller ones.
    pub(crate) fn swap_in_orders(&self, mm: MmId, vma: usize, page: u64, entry: SwapEntry) -> u16 {
        let rule = self.config.policy.machine.swap_in_large;
        if rule == SwapInLarge::Never
            || self.memory.swap.kind(entry.swap) != SwapKind::Synchronous
            || self.zswap.was_enabled
        {
            return 0;
        }
        let space = self.memory.mm(mm);
        let of = &space.vmas[vma];
        let (all, advice) = of.huge_at(page);
        if of.backing != Backing::Anon {
            return 0;
        }
        let mut orders = self.allowed_anon_orders(advice) & ((1 << HUGE_PAGE_ORDER) - 1);
        let mut suitable = 0;
        while orders != 0 {
            let order = orders.ilog2();
            orders &= !(1 << order);
            let (first, at) = (page >> order << order, (page & ((1 << order) - 1)) as u32);
            let is_within = all.start <= first && first + (1 << order) <= all.end;
            let is_aligned = entry.slot.checked_sub(at).is_some_and(|slot| slot.is_multiple_of(1 << order));
            if is_within
                && is_aligned
                && self.is_row(mm, first, SwapEntry { slot: entry.slot - at, ..entry }, 1 << order)
            {
                suitable |= 1 << order;
            }
        }
        suitable
    }

    /// The order, as a bit, of the large folio as which a swapped page of tmpfs may come back: that of the pages which went to swap together.
    #[cold]
    pub(crate) fn tmpfs_swap_in_orders(&self, file: FileId, page: u64, entry: SwapEntry) -> u16 {
        let (index, swap) = (&self.memory.file(file).index, &self.memory.swap);
        let (order, holds_zeroes) = (index.word(page).order(), swap.holds_zeroes(entry));
        if order == 0
            || self.config.policy.machine.tmpfs_swap_in == TmpfsSwapIn::Single
            || swap.kind(entry.swap) != SwapKind::Synchronous
            || self.zswap.was_enabled
        {
            return 0;
        }
        let first = page >> order << order;
        let Some(first_slot) = entry.slot.checked_sub((page - first) as u32) else { return 0 };
        let is_row = (first_slot..).zip(first..first + (1 << order)).all(|(slot, page)| {
            let slot = SwapEntry { slot, ..entry };
            index.word(page) == Word::swapped(slot).with_order(order)
                && swap.cached(slot).is_none()
                && swap.holds_zeroes(slot) == holds_zeroes
        });
        u16::from(is_row) << order
    }

    /// Returns true if pages in a row are in slots in a row, in nothing but these, and alike.
    fn is_row(&self, mm: MmId, first: u64, slots: SwapEntry, pages: u32) -> bool {
        let (space, swap) = (self.memory.mm(mm), &self.memory.swap);
        let needs_one_group = self.config.policy.machine.swap_in_large == SwapInLarge::SameGroup;
        let (holds_zeroes, memcg) = (swap.holds_zeroes(slots), swap.memcg(slots));
        (0..pages).all(|at| {
            let slot = SwapEntry { slot: slots.slot + at, ..slots };
            space.table.word(first + u64::from(at)) == Word::swapped(slot)
                && swap.cached(slot).is_none()
                && swap.holds_zeroes(slot) == holds_zeroes
                && (!needs_one_group || swap.memcg(slot) == memcg)
        })
    }
}
