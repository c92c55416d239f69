//! Transparent huge pages of anonymous memory: one entry maps 2 MiB, until the huge page is split into single ones. [machine 2.6; tiering 6.2]
//!
//! ```text
//!   page table   one entry for a leaf                    words of 512 pages, all of which name the first frame
//!   frames       [ head ][ tail ][ tail ] ...            one folio of order 9; the head's record is the folio's, tails have none
//!   lists        [ head ]                                one place, which counts as 512 pages wherever pages are counted
//! ```
//! A fault makes one where nothing of its 2 MiB was ever used (`access/huge.rs`). After that it is a folio like any other: it ages, moves
//! to another node and goes at exit as a whole, for the price of one entry. The accessed bit of its entry is the young bit above
//! the words (`memory/table/`), which a hit sets anyway, so a hit knows nothing of huge pages.
//!
//! What needs a part of one makes single pages of it: swapping it out, forgetting a page of it, moving it to where no block is free.
//! The single pages take over its state: all are young if it was, all are dirty, and each has its share of the charge, which does not change.
//!
//! *When not to use it:* where only a page here and there is used, memory takes up to 512 times as much.
//!
//! Not modelled: khugepaged, which would make huge pages of single ones; swap slots for a complete huge page; large folios of tmpfs, and of
//! anonymous memory below 2 MiB. Large folios of files are in `page_cache.rs`; one entry never maps all of one. The huge page of zeroes is also missing, so a first read maps single pages of zeroes, and later writes get single
//! pages, too. The queue of partly used pages is missing because it would be empty: a mapping can't be unmapped in part.

use crate::audit::Transition;
use crate::config::TransparentHugepage;
use crate::core::Core;
use crate::lru::Arrival;
use crate::memory::folio::{FolioFlags, HUGE_PAGE_ORDER, HUGE_PAGE_PAGES};
use crate::memory::mm::{Backing, HugeAdvice, Vma};
use crate::memory::table::{LEAF_PAGES, Word};
use crate::mthp::MthpStat;
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{MmId, Pfn};
use std::ops::Range;

/// Pages under the entry that maps this page.
fn leaf_of(page: u64) -> Range<u64> {
    let first = page & !(LEAF_PAGES - 1);
    first..first + LEAF_PAGES
}

impl Core {
    /// Maps a new huge page, because this page of it is accessed.
    pub(crate) fn map_huge(&mut self, mm: MmId, page: u64, head: Pfn) {
        let space = self.mm.memory.mm_mut(mm);
        if let Some(tlb) = &mut space.tlb {
            tlb.access(page);
        }
        for page in leaf_of(page) {
            let (before, _) = space.table.replace(page, Word::mapping_huge(head, true));
            debug_assert!(before == Word::EMPTY, "a huge page is mapped over page {page}");
        }
        let locked = space.vma_of(page).locked;
        let folio = &self.mm.memory.folios[head];
        assert_eq!((folio.order, folio.mapped), (HUGE_PAGE_ORDER, 0), "{head:?} is mapped as a huge page");
        let books = self.open_audit(Transition::Map, [head]);
        self.mm.memory.folios[head].mapped = 1;
        self.count_huge(head, 1);
        self.close_audit(books);
        if locked {
            self.mlock_folio(head);
        }
    }

    /// Takes the entry of a huge page away.
    #[doc(alias = "zap_huge_pmd")]
    pub(crate) fn unmap_huge(&mut self, mm: MmId, page: u64) {
        let space = self.mm.memory.mm_mut(mm);
        assert!(
            space.table.word(page).is_huge(),
            "the entry of a huge page is taken away, and page {page} is none of one"
        );
        let head = space.table.word(page).pfn();
        for page in leaf_of(page) {
            space.table.replace(page, Word::EMPTY);
            if let Some(tlb) = &mut space.tlb {
                tlb.drop_page(page);
            }
        }
        assert_eq!(self.mm.memory.folios[head].mapped, 1, "{head:?} loses the entry of a huge page");
        let books = self.open_audit(Transition::Unmap, [head]);
        self.count_huge(head, -1);
        self.mm.memory.folios[head].mapped = 0;
        self.close_audit(books);
    }

    /// Counts a huge page that is mapped, or is not any more.
    fn count_huge(&mut self, head: Pfn, sign: i64) {
        let lruvec = self.mm.lruvec_of(head);
        self.count(lruvec, Stat::NrAnonPages, sign * HUGE_PAGE_PAGES as i64);
        self.count(lruvec, Stat::NrAnonThps, sign);
    }

    /// Splits a huge page that the caller has taken off its list. The single pages are isolated by the caller, too: the first is where the huge one
    /// was, the others are added to `tails`. False, changing nothing, if it is held.
    #[doc(alias = "split_huge_page_to_list")]
    pub(crate) fn split_huge_page(&mut self, head: Pfn, tails: &mut Vec<Pfn>) -> bool {
        let folio = self.mm.memory.folios[head];
        assert!(folio.order == HUGE_PAGE_ORDER && folio.mapped == 1, "{head:?} is not a huge page");
        self.mm.assert_isolated(head);
        if self.is_held(&folio) {
            self.count_mthp(folio.node, HUGE_PAGE_ORDER, MthpStat::SplitFailed);
            return false;
        }
        let (mm, first) = (MmId(folio.owner), u64::from(folio.index));
        let books = self.open_audit(Transition::Split, [head]);
        self.split_entry(mm, first);
        self.count(self.mm.lruvec_of(head), Stat::NrAnonThps, -1);
        let singles: Vec<Pfn> = (head.0..).take(HUGE_PAGE_PAGES as usize).map(Pfn).collect();
        for (at, &pfn) in (0..).zip(&singles) {
            self.mm.memory.folios[pfn] = folio.part(at, 0);
            if at > 0 {
                self.mm.numa_balancing.copy_access_time(head, pfn);
                tails.push(pfn);
            }
            self.tell(pfn, |_| PageEvent::SplitOff);
        }
        self.close_books_of_split(books, &singles);
        self.count_mthp(folio.node, HUGE_PAGE_ORDER, MthpStat::Split);
        self.mm.count_node(folio.node, Stat::ThpSplitPmd, 1);
        self.out.count.list_moves(HUGE_PAGE_PAGES - 1);
        true
    }

    /// Makes entries for single pages of the entry of a huge one.
    fn split_entry(&mut self, mm: MmId, first: u64) {
        let space = self.mm.memory.mm_mut(mm);
        let is_young = space.table.is_leaf_young(first / LEAF_PAGES);
        for page in leaf_of(first) {
            let of = if mutant!(self, SplitLeadsToFirst) { first } else { page };
            space.table.update(page, |word| *word = word.of_split(of, is_young));
            if let Some(tlb) = &mut space.tlb {
                tlb.drop_page(page);
            }
        }
        self.out.count.ptes_walked(LEAF_PAGES);
    }

    /// Splits the huge page that shows this page, if one does. False if that is impossible because it is isolated.
    pub(crate) fn split_huge_at(&mut self, mm: MmId, page: u64) -> bool {
        let word = self.mm.memory.mm(mm).table.word(page);
        if !word.is_huge() {
            return true;
        }
        let head = word.pfn();
        let folio = self.mm.memory.folios[head];
        if !folio.has(FolioFlags::LRU) {
            self.count_mthp(folio.node, HUGE_PAGE_ORDER, MthpStat::SplitFailed);
            return false;
        }
        let mut pages = vec![head];
        self.lru_unlink(head);
        let is_split = self.split_huge_page(head, &mut pages);
        // The last one first, so that they lie in their order.
        for pfn in pages.into_iter().rev() {
            self.lru_place(pfn, Arrival::Added);
        }
        is_split
    }
}

impl State {
    /// Returns true if a first use of a page may bring in the 2 MiB around it.
    pub(crate) fn may_map_huge(&self, mm: MmId, vma: usize, page: u64) -> bool {
        let space = self.memory.mm(mm);
        let vma: &Vma = &space.vmas[vma];
        let is_wanted = match (self.config.transparent_hugepage, vma.huge_advice) {
            (TransparentHugepage::Never, _) | (_, HugeAdvice::NoHugepage) => false,
            (TransparentHugepage::Madvise, advice) => advice == HugeAdvice::Hugepage,
            (TransparentHugepage::Always, _) => true,
        };
        let (all, leaf) = (vma.range(), leaf_of(page));
        is_wanted
            && vma.backing == Backing::Anon
            && all.start <= leaf.start
            && leaf.end <= all.end
            && !space.table.leaf_exists(page / LEAF_PAGES)
    }

    /// Changes all words of the huge page that `page` lies in.
    pub(crate) fn update_huge(&mut self, mm: MmId, page: u64, mut change: impl FnMut(&mut Word)) {
        let space = self.memory.mm_mut(mm);
        debug_assert!(
            space.table.word(page).is_huge(),
            "page {page} changes with its huge page, but is not in one"
        );
        for page in leaf_of(page) {
            space.table.update(page, &mut change);
            if let Some(tlb) = &mut space.tlb {
                tlb.drop_page(page);
            }
        }
    }
}
