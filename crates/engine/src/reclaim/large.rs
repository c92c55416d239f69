//! Large folios on their way to swap: which go as a whole, which are split first, and what the write of one is. [folios 3.4, 3.6]
//!
//! ```text
//!   held by someone              ─▶ activated
//!   some pages are not mapped    ─▶ split: single pages go, and the others are free
//!   slots in a row               ─▶ unmapped, written and freed as a whole
//!   none                         ─▶ split, whether there is swap at all or not
//! ```
//! The pages of a split folio are judged after the batch, each by its own accessed bit; the first takes the place of the folio.
//!
//! tmpfs comes here later: its pages are unmapped before they get slots.

use crate::config::SwapKind;
use crate::core::Core;
use crate::machine::op::Op;
use crate::memory::folio::{Folio, FolioFlags, UseBits};
use crate::memory::table::{SwapEntry, Word};
use crate::mthp::MthpStat;
use crate::reclaim::shrink_list::Pageout;
use crate::reclaim::{Lumpy, ScanControl};
use crate::stat::Stat;
use crate::story::{Because, Tracepoint, Verdict};
use crate::units::{FileId, LruType, PAGE_SIZE, Pfn};
use pageout_rules::folio::{SplitFirst, TmpfsSwapOut};

impl Core {
    /// Gives a large anonymous folio slots, or splits it; then its first page has one. The verdict where it can't be swapped, or nothing is left to swap.
    #[cold]
    pub(super) fn prepare_large_for_swap(&mut self, pfn: Pfn, sc: &mut ScanControl) -> Option<Verdict> {
        let folio = self.mm.memory.folios[pfn];
        let held = Because::Held { references: folio.refs };
        if folio.refs > 0 || !self.folio_freeze(pfn) {
            self.count_mthp(folio.node, folio.order, MthpStat::SplitFailed);
            return Some(self.verdict(pfn, Verdict::Activate, held));
        }
        self.folio_unfreeze(pfn);
        let splits_first = match self.mm.config.policy.machine.split_first {
            SplitFirst::ByEntries => !self.mm.memory.is_mapped_by_one(&folio),
            SplitFirst::PartlyMapped => folio.is_partly_mapped(),
        };
        if !splits_first && self.add_large_to_swap(pfn) {
            return None;
        }
        if !self.split_for_swap(pfn, sc) {
            return Some(self.verdict(pfn, Verdict::Activate, held));
        }
        if !splits_first {
            self.count_mthp(folio.node, folio.order, MthpStat::SwpoutFallback);
        }
        if self.mm.memory.folios[pfn].mapped == 0 {
            return Some(self.judge_left_over(pfn));
        }
        let has_slot = self.add_to_swap(pfn);
        (!has_slot).then(|| self.verdict(pfn, Verdict::Activate, Because::NoSwapSlot))
    }

    /// The verdict on an anonymous page that nothing maps: a folio was split of which it was the unmapped part.
    #[cold]
    pub(super) fn judge_left_over(&mut self, pfn: Pfn) -> Verdict {
        if self.folio_freeze(pfn) { Verdict::Free } else { Verdict::Keep }
    }

    /// Splits an anonymous folio into single pages. The caller continues with the first; the others are judged after the batch.
    fn split_for_swap(&mut self, pfn: Pfn, sc: &mut ScanControl) -> bool {
        let folio = self.mm.memory.folios[pfn];
        if !self.folio_freeze(pfn) {
            return false;
        }
        let from = sc.hands.split.len();
        let is_split = self.split_large_anon(pfn, &mut sc.hands.split);
        // Each page is where it was.
        self.open_all(pfn, folio.pages() as u32);
        if is_split {
            self.mm.order_of_split(&mut sc.hands.split[from..]);
        }
        for part in sc.hands.split[from..].iter().copied().chain([pfn]) {
            if is_split && self.mm.memory.folios[part].mapped == 0 {
                self.mm.memory.set_use_bits(part, UseBits::empty());
            }
        }
        is_split
    }

    /// Gives a large folio of tmpfs, which is not mapped any more, slots, or splits it; the caller continues with the first page. False if it is held.
    #[cold]
    pub(super) fn prepare_tmpfs_for_swap(&mut self, pfn: Pfn, sc: &mut ScanControl) -> bool {
        let folio = self.mm.memory.folios[pfn];
        if self.is_held(&folio) {
            return false;
        }
        let is_within = folio.file_pages().end <= self.mm.memory.file(FileId(folio.owner)).pages();
        let may_stay_whole = self.mm.config.policy.machine.tmpfs_swap_out == TmpfsSwapOut::Whole && is_within;
        if !self.folio_freeze(pfn) {
            return false;
        }
        if may_stay_whole && self.add_large_to_swap(pfn) {
            self.page_cache_remove(pfn, Word::swapped(self.mm.memory.swap_entry(pfn)));
            self.folio_unfreeze(pfn);
            return true;
        }
        let parts = self.split_isolated(pfn, &vec![0; folio.pages() as usize]);
        self.open_all(pfn, folio.pages() as u32);
        sc.hands.split.extend(&parts[1..]);
        true
    }

    /// Writes a frozen large folio to its slots, or begins to.
    #[cold]
    pub(super) fn write_large_to_swap(&mut self, pfn: Pfn, sc: &mut ScanControl) -> Pageout {
        let folio = &mut self.mm.memory.folios[pfn];
        assert_eq!(folio.mapped, 0, "{pfn:?} is written to swap while it is mapped");
        assert!(folio.has(FolioFlags::DIRTY), "{pfn:?} is written to swap, and is clean");
        folio.clear(FolioFlags::DIRTY);
        let folio = *folio;
        let (node, pages) = (folio.node, folio.pages() as i64);
        for (_, slot) in pages_of(pfn, &folio) {
            self.mm.memory.swap.note_written(slot, false);
        }
        self.mm.count_node(node, Stat::NrVmscanWrite, pages);
        let is_sync = sc.hands.lumpy == Lumpy::Sync;
        self.trace(node, |_| Tracepoint::WriteFolio { pfn, kind: LruType::Anon, is_sync });
        if self.swap_zeroes_out_large(pfn) {
            for (_, slot) in pages_of(pfn, &folio) {
                self.zswap_invalidate(slot);
                self.zram_free(slot);
            }
            return Pageout::Clean;
        }
        if self.zswap_store_large(pfn) {
            pages_of(pfn, &folio).for_each(|(_, slot)| self.zram_free(slot));
            return Pageout::Clean;
        }
        if !self.mm.may_write_back(folio.memcg) {
            self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
            return Pageout::MayNotWrite;
        }
        let entry = self.mm.memory.swap_entry(pfn);
        if !self.may_write_swap_now(entry) {
            self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
            return Pageout::Fails;
        }
        self.count_mthp(node, folio.order, MthpStat::Swpout);
        self.mm.count_node(node, Stat::Pswpout, pages);
        self.mm.count_node(node, Stat::Pgpgout, pages * (PAGE_SIZE / 1024) as i64);
        if self.mm.memory.swap.kind(entry.swap) != SwapKind::Synchronous {
            self.begin_swap_write(pfn, entry, sc);
            return Pageout::Started;
        }
        self.mm.count_node(node, Stat::NrWritten, pages);
        for (frame, slot) in pages_of(pfn, &folio) {
            if !self.zram_store(frame, slot) {
                // The only copy is in memory still.
                self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
                self.io.write_failed(pages as u64);
                return Pageout::NoRoom;
            }
            self.out.push(Op::WriteSwapNow { swap: slot.swap, slot: slot.slot, pfn: frame });
        }
        Pageout::Clean
    }
}

/// The frames of a folio in the swap cache, with their slots.
fn pages_of(pfn: Pfn, folio: &Folio) -> impl Iterator<Item = (Pfn, SwapEntry)> + use<> {
    let swap = folio.swap;
    (pfn.0..).map(Pfn).zip(folio.slots().map(move |slot| SwapEntry { swap, slot }))
}
