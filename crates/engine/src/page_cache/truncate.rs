//! Truncation: pages leave the cache because what they hold is no longer part of their file.
//!
//! ```text
//!   first pass   takes what nobody is busy with, and waits for nothing      so that of what is gone little is still written
//!   the edges    splits large folios in which the range begins or ends
//!   the rest     waits for each read and each write in flight, takes the page, and looks again from the start until all is gone
//!   the end      the device has zeroes there                                Op::PunchHole
//! ```
//! A dirty page goes unwritten: it is clean without I/O, and no device gets a request. So a file that is deleted before its pages were dirty for
//! `vm.dirty_expire_centisecs` costs no write at all. Truncation waits for a page under writeback, as the device would else write a frame that
//! has another user by then. Shadows go as well: there is no data to read back. Slots of a tmpfs file are freed.
//!
//! A large folio that lies in the range only in part is split first, at the page in which the range begins or ends. The parts wholly in the range then go
//! like other folios. If it can't be split, it stays, and its part of the range becomes zeroes. [folios 1.11]
//!
//! This is `fallocate(FALLOC_FL_PUNCH_HOLE)`: the file keeps its length, and reads as zeroes there. To the pages ftruncate(2) and unlink(2)
//! are the same. But a truncated file stays on its flusher's list with the age of its first dirty page. Data written to it soon after is
//! written back when that age is up. A deleted one is on no list: a file made in its place starts with a new age.
//!
//! Not modelled: blocks that a file system frees (a hole is read from the device like any other page, at its price), and the part of
//! a page that stays.
//!
//! The two passes are those of the kernel's documentation of `truncate_inode_pages_range`
//! (<https://docs.kernel.org/core-api/mm-api.html>).

use crate::audit::Transition;
use crate::core::Core;
use crate::lru::Arrival;
use crate::machine::op::Op;
use crate::memory::folio::FolioFlags;
use crate::memory::table::{Entry, LEAF_PAGES, SwapEntry, Word};
use crate::mthp::MthpStat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{FileId, Pfn};
use pageout_rules::folio::TruncateSplit;
use std::ops::Range;

/// A truncation in progress.
pub(crate) struct Truncation {
    file: FileId,
    pages: Range<u64>,
    /// All pages below are gone, or busy in the first pass.
    cursor: u64,
    /// The first pass is over.
    waits: bool,
    what: What,
    /// Pages at which folios are still to be split, the first one last: those in which the range begins and ends.
    cuts: Vec<u64>,
    /// The pages of the folio that was split where the range begins.
    first_split: Range<u64>,
    /// The range begins, or ends, within a page that stays, and the file system has written zeroes there before.
    zeroes_first: bool,
}

/// What the call does to the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// It has a hole.
    Hole,
    /// It ends where the pages begin.
    Shorter,
    /// It is deleted, and all of it goes.
    Deleted,
}

/// The user of a page that can't be removed yet.
enum Busy {
    /// A device.
    Transfer(Pfn),
    /// A reader outside the engine, which the engine can't wait for.
    Held,
}

/// The outcome of one step of a truncation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TruncateStep {
    /// Some pages are gone; there are more.
    Again,
    /// Go on when the transfer of this folio has ended.
    WaitFor(Pfn),
    /// A reader outside the engine holds this page: the truncation ends here.
    Held(u64),
    /// No page of the range is left.
    Done,
}

impl Truncation {
    pub(crate) fn new(file: FileId, pages: Range<u64>) -> Truncation {
        let cuts = vec![pages.end, pages.start];
        Truncation {
            file,
            cursor: pages.start,
            pages,
            waits: false,
            what: What::Hole,
            cuts,
            first_split: 0..0,
            zeroes_first: false,
        }
    }

    /// The same, where the range begins and ends in these pages, which it leaves in part. `zeroes_first`: the file system writes zeroes to that part
    /// before pages go, which makes their folio dirty.
    pub(crate) fn within(mut self, [first, last]: [u64; 2], zeroes_first: bool) -> Truncation {
        self.cuts = vec![last, first];
        self.zeroes_first = zeroes_first;
        self
    }

    /// The truncation of a file of so many pages that is deleted.
    pub(crate) fn of_all(file: FileId, pages: u64) -> Truncation {
        Truncation { what: What::Deleted, ..Truncation::new(file, 0..pages) }
    }

    /// The truncation of a file that ends where these pages begin.
    pub(crate) fn behind(file: FileId, pages: Range<u64>) -> Truncation {
        Truncation { what: What::Shorter, ..Truncation::new(file, pages) }
    }

    /// The file that gets shorter, and where it ends.
    pub(crate) fn new_end(&self) -> Option<(FileId, u64)> {
        (self.what == What::Shorter).then_some((self.file, self.pages.start))
    }
}

impl Core {
    #[doc(alias = "truncate_inode_pages_range")]
    pub(crate) fn truncate_step(&mut self, call: &mut Truncation) -> TruncateStep {
        // What waits in this CPU's batches to be listed could not be freed.
        self.lru_add_drain();
        let mut gone = 0;
        loop {
            while call.waits
                && let Some(&cut) = call.cuts.last()
            {
                if let Some(busy) = self.split_at(call, cut) {
                    return TruncateStep::WaitFor(busy);
                }
                call.cuts.pop();
            }
            // Others may bring pages in again while this task waits. So the last pass begins at the start and finds nothing busy.
            let is_whole = call.waits && call.cursor == call.pages.start;
            while let Some(page) = self.mm.next_in_index(call.file, call.cursor..call.pages.end) {
                if let Some(end) = self.mm.folio_beyond(call.file, page, &call.pages) {
                    if call.waits {
                        self.zero_part(call.file, page..end.min(call.pages.end));
                    }
                    call.cursor = end;
                    continue;
                }
                match self.truncate_page(call.file, page) {
                    None => gone += 1,
                    Some(Busy::Transfer(busy)) if call.waits => {
                        call.cursor = page;
                        return TruncateStep::WaitFor(busy);
                    }
                    Some(Busy::Held) if call.waits => return TruncateStep::Held(page),
                    Some(_) => {}
                }
                call.cursor = page + 1;
                let most =
                    if call.waits { self.mm.config.step_busy_pages } else { self.mm.config.step_pages };
                if gone >= most {
                    return TruncateStep::Again;
                }
            }
            if is_whole {
                break;
            }
            call.waits = true;
            call.cursor = call.pages.start;
        }
        if call.what == What::Deleted {
            self.evict_inode(call.file);
        }
        self.mm.forget_unflushed(call.file, call.pages.clone());
        let pages = call.pages.end - call.pages.start;
        if pages > 0 {
            self.out.push(Op::PunchHole { file: call.file, page: call.pages.start, pages });
        }
        TruncateStep::Done
    }

    /// Splits the large folio with a page in which a range begins or ends, if it does not lie wholly in the range, so that this page is single. Returns
    /// the folio if it has to be waited for.
    #[doc(alias = "truncate_inode_partial_folio")]
    fn split_at(&mut self, call: &mut Truncation, page: u64) -> Option<Pfn> {
        let index = &self.mm.memory.file(call.file).index;
        let word = if page < index.pages() { index.word(page) } else { Word::EMPTY };
        if !word.is_large() {
            return None;
        }
        let (pfn, of_folio) = (word.pfn(), self.mm.memory.folios[word.pfn()].file_pages());
        if call.pages.start <= of_folio.start && of_folio.end <= call.pages.end {
            return None;
        }
        if self.mm.memory.folios[pfn].flags().intersects(FolioFlags::LOCKED | FolioFlags::WRITEBACK) {
            return Some(pfn);
        }
        // A file system cannot give up what it knows of the blocks of a dirty folio. tmpfs has no blocks.
        let folio = &self.mm.memory.folios[pfn];
        let is_dirty = folio.has(FolioFlags::DIRTY) && !folio.has(FolioFlags::SWAPBACKED);
        if is_dirty || call.zeroes_first {
            return None;
        }
        if self.mm.config.policy.machine.truncate_split == TruncateSplit::All {
            self.split_file_folio(pfn, &vec![0; (of_folio.end - of_folio.start) as usize]);
            self.drop_beyond_end(call.file, of_folio.end);
            return None;
        }
        // The folio in which the range ends is split where the range begins in it, first of all.
        let begins_within = call.cuts.len() > 1;
        let is_part = call.first_split.contains(&page);
        let first = if begins_within || is_part { page } else { of_folio.start };
        let end = of_folio.end;
        let is_split = self.split_file_folio(pfn, &orders_around(first - of_folio.start, word.order()));
        self.drop_beyond_end(call.file, end);
        if begins_within && is_split {
            call.first_split = of_folio;
        } else if first != page && is_split {
            let word = self.mm.memory.file(call.file).index.word(page);
            if word.is_large() {
                let orders = orders_around(page - word.head(page), word.order());
                self.split_file_folio(word.pfn(), &orders);
                self.drop_beyond_end(call.file, end);
            }
        }
        None
    }

    /// Parts of a split folio, whose pages ended at this one, go if they lie wholly beyond the end of their file. [folios 2.10]
    fn drop_beyond_end(&mut self, file: FileId, folio_end: u64) {
        let mut at = self.mm.memory.file(file).pages();
        while let Some(page) = self.mm.next_in_index(file, at..folio_end) {
            let word = self.mm.memory.file(file).index.word(page);
            if word.head(page) >= at {
                self.truncate_page(file, page);
            }
            at = word.head(page) + (1 << word.order());
        }
    }

    /// Makes several folios of a large one of a file, unless someone holds it. It is unmapped first. [folios 2.10]
    #[doc(alias = "folio_split")]
    pub(crate) fn split_file_folio(&mut self, pfn: Pfn, orders: &[u8]) -> bool {
        let folio = self.mm.memory.folios[pfn];
        if self.is_held(&folio) || !folio.has(FolioFlags::LRU) {
            self.count_mthp(folio.node, folio.order, MthpStat::SplitFailed);
            return false;
        }
        let is_locked = self.mm.is_mapped_locked(pfn);
        self.unmap_all(pfn);
        if is_locked {
            self.munlock_folio(pfn);
        }
        self.lru_unlink(pfn);
        let parts = self.split_isolated(pfn, orders);
        // The last one first, so that they lie in their order.
        for &part in parts.iter().rev() {
            self.lru_place(part, Arrival::Added);
        }
        true
    }

    /// Makes several folios of a large one of a file that is on no list, not mapped and not held. They are on no list either.
    pub(crate) fn split_isolated(&mut self, pfn: Pfn, orders: &[u8]) -> Vec<Pfn> {
        let folio = self.mm.memory.folios[pfn];
        let books = self.open_audit(Transition::Split, [pfn]);
        let parts = self.mm.memory.index_split(pfn, orders);
        self.close_books_of_split(books, &parts);
        self.count_mthp(folio.node, folio.order, MthpStat::Split);
        self.out.count.list_moves(parts.len() as u64 - 1);
        for &part in parts.iter().rev() {
            self.tell(part, |_| PageEvent::SplitOff);
        }
        parts
    }

    /// Pages of a large folio that stays have zeroes from now on.
    fn zero_part(&mut self, file: FileId, pages: Range<u64>) {
        let word = self.mm.memory.file(file).index.word(pages.start);
        self.out.push(Op::Clear { pfn: word.frame(pages.start), pages: (pages.end - pages.start) as u32 });
    }

    /// Takes what the index has of a page; or says who is busy with it.
    fn truncate_page(&mut self, file: FileId, page: u64) -> Option<Busy> {
        match self.mm.memory.file(file).index.word(page).decode() {
            Entry::Empty => {}
            Entry::Shadow(_) => self.index_forget(file, page),
            Entry::Swap(entry) => return self.truncate_swapped(file, page, entry),
            Entry::Present(pfn) => return self.truncate_folio(pfn),
        }
        None
    }

    fn truncate_folio(&mut self, pfn: Pfn) -> Option<Busy> {
        mutant!(self, FlushEndsAfterTruncation => self.count_as_written(pfn));
        let busy = FolioFlags::LOCKED | FolioFlags::WRITEBACK;
        let folio = self.mm.memory.folios[pfn];
        if folio.flags().intersects(busy) {
            return Some(Busy::Transfer(pfn));
        }
        if !self.gate_close(pfn) {
            return Some(Busy::Held);
        }
        let is_dirty = folio.has(FolioFlags::DIRTY);
        self.tell(pfn, |_| PageEvent::Truncated { dirty: is_dirty });
        self.out.count.zapped(1);
        let is_locked = self.mm.is_mapped_locked(pfn);
        self.unmap_all(pfn);
        if is_locked {
            self.munlock_folio(pfn);
        }
        self.mm.assert_locked_by_mapping(pfn);
        if is_dirty && !folio.has(FolioFlags::SWAPBACKED) {
            self.clear_dirty(pfn);
            self.writeback.note_cancelled(folio.pages());
            self.note_pages_gone(FileId(folio.owner));
        }
        // A buffer lets go with its page.
        self.mm.memory.folios[pfn].clear(FolioFlags::PINNED);
        self.page_cache_remove(pfn, Word::EMPTY);
        self.release_if_unused(pfn);
        None
    }

    /// A page of tmpfs that is in swap; who reads or writes its slot frees it when that is over.
    fn truncate_swapped(&mut self, file: FileId, page: u64, entry: SwapEntry) -> Option<Busy> {
        if let Some(pfn) = self.mm.memory.swap.cached(entry)
            && self.mm.memory.folios[pfn].order > 0
        {
            let busy = FolioFlags::LOCKED | FolioFlags::WRITEBACK;
            if self.mm.memory.folios[pfn].flags().intersects(busy) {
                return Some(Busy::Transfer(pfn));
            }
            if !self.split_in_place(pfn) {
                return Some(Busy::Held);
            }
        }
        self.out.count.zapped(1);
        self.index_forget(file, page);
        self.give_up_swapped(entry);
        None
    }
}

/// The orders of the parts of a large folio, each as large as possible, of which page `at` is one.
fn orders_around(at: u64, order: u8) -> Vec<u8> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for half in (0..order).rev() {
        if at >> half & 1 == 1 { before.push(half) } else { after.push(half) }
    }
    before.push(0);
    before.extend(after.into_iter().rev());
    before
}

impl State {
    /// The end of the large folio with this page, if it does not lie wholly in a range.
    fn folio_beyond(&self, file: FileId, page: u64, pages: &Range<u64>) -> Option<u64> {
        let word = self.memory.file(file).index.word(page);
        let end = word.head(page) + (1 << word.order());
        (word.is_large() && !(pages.start <= word.head(page) && end <= pages.end)).then_some(end)
    }

    /// The first page in this range of which the index of its file knows anything.
    pub(crate) fn next_in_index(&self, file: FileId, mut pages: Range<u64>) -> Option<u64> {
        let index = &self.memory.file(file).index;
        while pages.start < pages.end {
            let leaf = pages.start / LEAF_PAGES;
            let end = ((leaf + 1) * LEAF_PAGES).min(pages.end);
            if index.may_have_words(leaf)
                && let Some(page) = (pages.start..end).find(|&page| index.word(page) != Word::EMPTY)
            {
                return Some(page);
            }
            pages.start = end;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folio_cut_at_a_page_has_the_largest_parts_around_it() {
        assert_eq!(orders_around(100, 9), [6, 5, 2, 0, 0, 1, 3, 4, 7, 8]);
        assert_eq!(orders_around(0, 2), [0, 0, 1]);
        assert_eq!(orders_around(3, 2), [1, 0, 0]);
    }
}
