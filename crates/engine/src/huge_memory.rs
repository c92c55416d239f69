//! Large folios of anonymous memory: huge pages, which one entry maps until a part of them goes, and smaller ones with an entry per page. [machine 2.6;
//! tiering 6.2; folios 2]
//!
//! ```text
//!   page table   huge: one entry for a leaf              words of 512 pages, all of which name the first frame
//!                else an entry per page                  each names the first frame, and has its own young and dirty bit
//!   frames       [ head ][ tail ][ tail ] ...            one folio; the head's record is the folio's, tails have none
//!   lists        [ head ]                                one place, which counts as all of its pages wherever pages are counted
//! ```
//! A fault makes one where nothing of its range was ever used (`access/huge.rs`). After that it is a folio like any other: it ages, moves
//! to another node and goes to swap and comes back as a whole. The accessed bit of the entry of a huge page is the young bit above
//! the words (`memory/table/`), which a hit sets anyway. So a hit does not depend on huge pages.
//!
//! If a part of one is unmapped (`MADV_DONTNEED`), the folio keeps its frames and its charge. A queue remembers it, and a shrinker splits it under
//! pressure; only then the unmapped pages are free. A huge page is in the queue from the start, because it may be underused: the shrinker compares
//! its pages with zeroes. [folios 2.7, 2.8]
//!
//! What needs a part of one makes single pages of it: swap without slots in a row, forgetting a page of it, moving it to where no block is free.
//! The single pages take over its state: each has its entry, all are dirty, and each has its share of the charge, which does not change.
//!
//! *When not to use it:* where only a page here and there is used, memory takes up to 512 times as much.
//!
//! Not modelled: fork, so no page of one is ever shared or copied; khugepaged, which would make large folios of single pages. Large folios of files are in
//! `page_cache.rs`; one entry never maps all of one. The huge page of zeroes is also missing, so a first read maps single pages of zeroes, and later
//! writes get single pages, too.

use crate::audit::Transition;
use crate::core::Core;
use crate::lru::Arrival;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::two_lists;
use crate::memory::deferred::QueueId;
use crate::memory::folio::{Folio, FolioFlags, HUGE_PAGE_ORDER, HUGE_PAGE_PAGES};
use crate::memory::list::{Links, NONE};
use crate::memory::mm::{Backing, HugeAdvice, Vma};
use crate::memory::table::{LEAF_PAGES, SwapEntry, Word};
use crate::mthp::MthpStat;
use crate::reclaim::ShrinkerCall;
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{MmId, NodeId, Pfn};
use pageout_rules::folio::{DeferredQueue, TruncateSplit};
use pageout_rules::lru::Lru;
use std::ops::Range;

/// `max_ptes_none` with which no huge page is underused.
const ANY_PTES_NONE: u16 = HUGE_PAGE_PAGES as u16 - 1;

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
        self.mm.memory.folios[head].mapped = HUGE_PAGE_PAGES as u16;
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
        let mapped = self.mm.memory.folios[head].mapped;
        assert_eq!(u64::from(mapped), HUGE_PAGE_PAGES, "{head:?} loses the entry of a huge page");
        let books = self.open_audit(Transition::Unmap, [head]);
        let space = self.mm.memory.mm_mut(mm);
        for page in leaf_of(page) {
            space.table.replace(page, Word::EMPTY);
            if let Some(tlb) = &mut space.tlb {
                tlb.drop_page(page);
            }
        }
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

    /// Makes entries of single pages of the entry of a huge page. The folio stays.
    #[doc(alias = "split_huge_pmd")]
    pub(crate) fn split_huge_entry(&mut self, head: Pfn) {
        let folio = self.mm.memory.folios[head];
        let books = self.open_audit(Transition::SplitEntry, [head]);
        let space = self.mm.memory.mm_mut(MmId(folio.owner));
        let first = u64::from(folio.index);
        let is_young = space.table.is_leaf_young(first / LEAF_PAGES);
        for page in leaf_of(first) {
            space.table.update(page, |word| *word = word.of_split_entry(is_young));
            if let Some(tlb) = &mut space.tlb {
                tlb.drop_page(page);
            }
        }
        self.count(self.mm.lruvec_of(head), Stat::NrAnonThps, -1);
        self.mm.count_node(folio.node, Stat::ThpSplitPmd, 1);
        self.out.count.ptes_walked(LEAF_PAGES);
        self.close_audit(books);
    }

    /// A fault has created a large folio. Its group counts huge pages, too.
    pub(crate) fn count_anon_fault(&mut self, pfn: Pfn) {
        let (order, lruvec) = (self.mm.memory.folios[pfn].order, self.mm.lruvec_of(pfn));
        self.mm.mthp.gauge(order, MthpStat::AnonFaultAlloc, 1);
        if order == HUGE_PAGE_ORDER {
            self.count(lruvec, Stat::ThpFaultAlloc, 1);
        }
    }

    /// Maps all pages of a new large folio of anonymous memory, each by an entry, because this page of it is accessed.
    pub(crate) fn map_large_anon(&mut self, mm: MmId, page: u64, head: Pfn, dirty: bool) {
        let pages = self.mm.memory.folios[head].file_pages();
        self.map(mm, page, head, dirty);
        for other in pages.filter(|&other| other != page) {
            self.map_entry(mm, other, head, dirty);
        }
    }

    /// Splits a large folio of anonymous memory, or of tmpfs in the swap cache, that the caller has taken off its list. The single pages are isolated by the caller, too: the first is where
    /// the large one was, the others are added to `tails`. Some may be mapped nowhere, and are of no use. False, changing nothing, if it is held.
    #[doc(alias = "split_huge_page_to_list")]
    pub(crate) fn split_large_anon(&mut self, head: Pfn, tails: &mut Vec<Pfn>) -> bool {
        let folio = self.mm.memory.folios[head];
        let is_anon = folio.has(FolioFlags::ANON);
        assert!(
            folio.order > 0 && (is_anon || folio.has(FolioFlags::SWAPCACHE)),
            "{head:?} is split, and is not a large folio of anonymous memory or in the swap cache"
        );
        self.mm.assert_isolated(head);
        if self.is_held(&folio) {
            self.count_mthp(folio.node, folio.order, MthpStat::SplitFailed);
            return false;
        }
        if self.mm.memory.is_mapped_by_one(&folio) {
            self.split_huge_entry(head);
        }
        let was_partly_mapped = is_anon && self.large_anon_gone(&folio, head);
        if folio.order < HUGE_PAGE_ORDER && folio.mapped > 1 && !was_partly_mapped {
            // Its entries are taken away for the moment, one after the other.
            self.count_mthp(folio.node, folio.order, MthpStat::SplitDeferred);
        }
        let (mm, first) = (MmId(folio.owner), u64::from(folio.index));
        let books = self.open_audit(Transition::Split, [head]);
        let singles: Vec<Pfn> = (head.0..).take(folio.pages() as usize).map(Pfn).collect();
        for (at, &pfn) in (0..).zip(&singles) {
            let is_mapped = is_anon && self.split_page_entry(mm, head, first, u64::from(at));
            if folio.has(FolioFlags::SWAPCACHE) {
                self.mm.memory.swap.cache_split(SwapEntry { swap: folio.swap, slot: folio.slot + at }, pfn);
            }
            let single = &mut self.mm.memory.folios[pfn];
            *single = folio.part(at, 0);
            single.mapped = is_mapped.into();
            if at > 0 {
                self.mm.numa_balancing.copy_access_time(head, pfn);
                self.mm.numa_balancing.copy_user(head, pfn);
                tails.push(pfn);
            }
            self.tell(pfn, |_| PageEvent::SplitOff);
        }
        self.close_books_of_split(books, &singles);
        self.count_mthp(folio.node, folio.order, MthpStat::Split);
        self.out.count.list_moves(folio.pages() - 1);
        if is_anon {
            for pfn in singles {
                self.munlock_folio(pfn);
                self.forget_zeroes(pfn);
            }
        }
        true
    }

    /// Makes the entry of a page of a large folio, if it has one, that of a single page. Returns whether it has one.
    fn split_page_entry(&mut self, mm: MmId, head: Pfn, first: u64, at: u64) -> bool {
        let page = first + at;
        let of = if mutant!(self, SplitLeadsToFirst) { first } else { page };
        let space = self.mm.memory.mm_mut(mm);
        let word = space.table.word_if_any(page);
        let is_mapped = word.is_present() && !word.is_zero_page() && word.pfn() == head;
        if is_mapped {
            space.table.update(page, |word| *word = word.of_split(of));
            if let Some(tlb) = &mut space.tlb {
                tlb.drop_page(page);
            }
        }
        is_mapped
    }

    /// A page of a split folio that holds zeroes is free: its entry leads to the page of zeroes instead. [folios 2.8]
    #[doc(alias = "try_to_map_unused_to_zeropage")]
    fn forget_zeroes(&mut self, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        let may_forget = folio.mapped == 1
            && !folio.has(FolioFlags::MLOCKED)
            && !folio.has(FolioFlags::SWAPCACHE)
            && self.mm.config.policy.machine.underused;
        if may_forget && self.holds_zeroes(pfn, 0) {
            let (mm, page) = (MmId(folio.owner), u64::from(folio.index));
            self.unmap_one(mm, page, Word::EMPTY);
            self.mm.memory.mm_mut(mm).table.replace(page, Word::ZERO_PAGE);
        }
    }

    /// A large folio of anonymous memory is freed or split. Returns whether it was known to be partly mapped.
    #[cold]
    pub(crate) fn large_anon_gone(&mut self, folio: &Folio, pfn: Pfn) -> bool {
        self.mm.mthp.gauge(folio.order, MthpStat::NrAnon, -1);
        let was_partly_mapped = self.mm.deferred_splits.remove(pfn) == Some(true);
        if was_partly_mapped {
            self.mm.mthp.gauge(folio.order, MthpStat::NrAnonPartlyMapped, -1);
        }
        was_partly_mapped
    }

    /// Some pages of an anonymous folio have lost their entries. If it is partly mapped now, pressure may split it.
    #[doc(alias = "deferred_split_folio")]
    #[cold]
    pub(crate) fn note_unmapped_part(&mut self, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        if folio.order < 2 || !folio.is_partly_mapped() || folio.has(FolioFlags::SWAPCACHE) {
            return;
        }
        let queue = self.mm.split_queue_of(&folio);
        if self.mm.deferred_splits.add(pfn, queue, true) {
            self.count_mthp(folio.node, folio.order, MthpStat::SplitDeferred);
            self.mm.mthp.gauge(folio.order, MthpStat::NrAnonPartlyMapped, 1);
        }
    }

    /// A huge page is new: it may turn out to be underused.
    pub(crate) fn note_new_huge(&mut self, pfn: Pfn) {
        if self.mm.config.shrink_underused && self.mm.config.policy.machine.underused {
            let queue = self.mm.split_queue_of(&self.mm.memory.folios[pfn]);
            self.mm.deferred_splits.add(pfn, queue, false);
        }
    }

    /// Splits folios of a group's queue under the same pressure as its lists are.
    #[doc(alias = "deferred_split_scan")]
    #[cold]
    pub(crate) fn shrink_deferred_splits(&mut self, lruvec: LruvecId, priority: u8) {
        let (memcg, node) = (self.mm.lruvecs[lruvec].memcg, self.mm.lruvecs[lruvec].node);
        let queue = self.mm.split_queue(memcg, node);
        let freeable = self.mm.deferred_splits.of(queue).count() as u64;
        if freeable == 0 {
            return;
        }
        let mut call = ShrinkerCall::begin(freeable, self.mm.deferred_splits.owed(queue), priority);
        while let Some(chunk) = call.chunk() {
            let folios: Vec<Pfn> = self.mm.deferred_splits.of(queue).take(chunk as usize).collect();
            if folios.is_empty() {
                break;
            }
            folios.into_iter().for_each(|pfn| self.deferred_split(pfn, queue));
            call.note(chunk);
            self.mm.count_node(node, Stat::SlabsScanned, chunk as i64);
        }
        *self.mm.deferred_splits.owed(queue) += call.left();
    }

    /// Splits a folio of a queue, if some of its pages are of no use.
    fn deferred_split(&mut self, pfn: Pfn, queue: QueueId) {
        let is_partly_mapped = self.mm.deferred_splits.is_partly_mapped(pfn);
        if !is_partly_mapped && !self.is_underused(pfn) {
            self.mm.deferred_splits.remove(pfn);
            return;
        }
        let folio = self.mm.memory.folios[pfn];
        if self.split_in_place(pfn) {
            if !is_partly_mapped {
                self.mm.count_node(folio.node, Stat::ThpUnderusedSplitPage, 1);
            }
        } else {
            // It is tried again after the others.
            self.mm.deferred_splits.remove(pfn);
            self.mm.deferred_splits.add(pfn, queue, is_partly_mapped);
        }
    }

    /// Returns true if more pages of a huge page are zeroes than khugepaged would accept.
    #[doc(alias = "thp_underused")]
    fn is_underused(&mut self, pfn: Pfn) -> bool {
        let most = self.mm.config.max_ptes_none;
        let pages = self.mm.memory.folios[pfn].pages() as u32;
        most != ANY_PTES_NONE
            && (0..pages).filter(|&at| self.holds_zeroes(pfn, at)).count() > usize::from(most)
    }

    /// Splits a large folio that is on its list. The single pages are listed where it was, on two lists; those that nothing maps are free. False, changing nothing, if
    /// it is isolated or held.
    pub(crate) fn split_in_place(&mut self, head: Pfn) -> bool {
        let folio = self.mm.memory.folios[head];
        if !folio.has(FolioFlags::LRU) || self.is_held(&folio) {
            self.count_mthp(folio.node, folio.order, MthpStat::SplitFailed);
            return false;
        }
        let mut pages = vec![head];
        let mut behind = self.mm.neighbour_on_list(head);
        self.lru_unlink(head);
        let is_split = self.split_large_anon(head, &mut pages);
        // The first one is next to go, as the folio was.
        self.mm.order_of_split(&mut pages[1..]);
        for pfn in pages {
            if !self.release_if_unused(pfn) {
                self.lru_place(pfn, Arrival::Added);
                behind = behind.map(|(list, next)| self.mm.put_before(list, pfn, next));
            }
        }
        is_split
    }

    /// Splits the large folio that shows this page, if an anonymous one does. False if that is impossible because it is isolated or held.
    pub(crate) fn split_anon_at(&mut self, mm: MmId, page: u64) -> bool {
        let word = self.mm.memory.mm(mm).table.word(page);
        if !word.is_large() || !self.mm.memory.folios[word.pfn()].has(FolioFlags::ANON) {
            return true;
        }
        self.split_in_place(word.pfn())
    }
}

impl State {
    /// A switch of large anonymous folios has changed.
    pub(crate) fn note_anon_orders(&mut self) {
        self.anon_orders = self.config.anon_folio_orders(true);
    }

    /// The orders of large folios, a bit each, that a first use of a page may bring in. Switches and the advice on its mapping allow them, and their
    /// range lies in the mapping and is empty. [folios 2.1, 2.2]
    #[doc(alias = "thp_vma_allowable_orders")]
    #[doc(alias = "thp_vma_suitable_orders")]
    pub(crate) fn new_anon_orders(&self, mm: MmId, vma: usize, page: u64) -> u16 {
        let space = self.memory.mm(mm);
        let of: &Vma = &space.vmas[vma];
        let (all, advice) = of.huge_at(page);
        if of.backing != Backing::Anon || space.table.word(page) != Word::EMPTY {
            return 0;
        }
        let mut orders = self.allowed_anon_orders(advice);
        if space.table.leaf_exists(page / LEAF_PAGES) {
            orders &= !(1 << HUGE_PAGE_ORDER);
        }
        let mut suitable = 0;
        // A range that is empty contains smaller ones.
        let mut is_empty = false;
        while orders != 0 {
            let order = orders.ilog2();
            orders &= !(1 << order);
            let first = page >> order << order;
            let range = first..first + (1 << order);
            is_empty |= order == u32::from(HUGE_PAGE_ORDER);
            if range.start < all.start || range.end > all.end {
                continue;
            }
            is_empty = is_empty || space.table.words(range).all(|word| word == Word::EMPTY);
            if is_empty {
                suitable |= 1 << order;
            }
        }
        suitable
    }

    /// The orders of large folios that a mapping with this advice may have, a bit each.
    pub(crate) fn allowed_anon_orders(&self, advice: HugeAdvice) -> u16 {
        match advice {
            _ if self.anon_orders == 0 => 0,
            HugeAdvice::NoHugepage => 0,
            HugeAdvice::Hugepage => self.anon_orders,
            HugeAdvice::Normal => self.config.anon_folio_orders(false),
        }
    }

    /// The queue for folios of a group on a node.
    fn split_queue(&self, memcg: crate::units::MemcgId, node: NodeId) -> QueueId {
        match self.config.policy.machine.deferred_queue {
            DeferredQueue::Group => QueueId { memcg, node: NodeId(0) },
            DeferredQueue::GroupAndNode => QueueId { memcg, node },
        }
    }

    pub(crate) fn split_queue_of(&self, folio: &Folio) -> QueueId {
        self.split_queue(folio.memcg, folio.node)
    }

    /// Panics unless queues hold the folios that belong there.
    pub(crate) fn check_deferred_splits(&self) {
        for (pfn, queue, is_partly_mapped) in self.deferred_splits.iter() {
            let folio = &self.memory.folios[pfn];
            assert!(folio.is_large_anon(), "{pfn:?} is in a queue and is no large folio: {folio:?}");
            assert_eq!(queue, self.split_queue_of(folio), "{pfn:?} is in another queue");
            assert!(is_partly_mapped || folio.order == HUGE_PAGE_ORDER, "{pfn:?} is in a queue for nothing");
        }
    }

    /// The parts of a split folio but the first, which stand in their order, get that in which reclaim meets them.
    pub(crate) fn order_of_split(&self, tails: &mut [Pfn]) {
        if self.config.policy.machine.truncate_split == TruncateSplit::AtCut {
            // The split of these kernels makes them from the first on, and the last one is next to the folio.
            tails.reverse();
        }
    }

    /// The list that a folio is on, if it is one of the two, and its neighbour on the cold side.
    fn neighbour_on_list(&self, pfn: Pfn) -> Option<(LruList, u32)> {
        let folio = &self.memory.folios[pfn];
        let is_on_two_lists =
            self.lru_of(self.lruvec_of(pfn)) == Lru::TwoLists && !folio.has(FolioFlags::UNEVICTABLE);
        let list = two_lists::list_of(folio, self.memory.use_bits_of(folio));
        is_on_two_lists.then(|| (list, self.memory.folios.links(pfn.0).1))
    }

    /// Moves a folio, which is on this list, to the hot side of another one, or to the cold end. Returns the same of the next one.
    fn put_before(&mut self, list: LruList, pfn: Pfn, next: u32) -> (LruList, u32) {
        let lruvec = self.lruvec_of(pfn);
        let items = &mut self.lruvecs[lruvec].lists[list as usize];
        items.remove(&mut self.memory.folios, pfn.0);
        match next {
            NONE => items.push_tail(&mut self.memory.folios, pfn.0),
            next => items.insert_before(&mut self.memory.folios, pfn.0, next),
        }
        (list, pfn.0)
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
