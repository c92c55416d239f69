//! Readahead of files: which pages are read before a task asks for them.
//!
//! ```text
//!            start                    mark            start + size
//!              │ wanted now │           │ read ahead       │                       the window of an open file
//!              └────────────┴───────────┴──────────────────┘
//!                            ◀── the reader walks on ──▶│
//!                                                       └─ it meets the marked page: the next window is read now, so that it is
//!                                                          there before the reader has used this one up
//! ```
//! A miss begins a window (`sync_readahead`), its marked page continues it (`async_readahead`). A window grows from four pages to the
//! limit of the open file as long as reads follow each other. A read that follows nothing counts as random, unless enough pages
//! before it are cached. In that case another reader has read up to there, or another stream has overwritten the state of this one.
//!
//! If the file system has large folios, a window is read in folios of an order that grows by 2 from window to window (`readahead.order`). A folio
//! has one mark, which the first use of any of its pages meets. A folio that is not aligned to its size, or that would reach beyond the window, is made
//! smaller. If there is no block for one, or a page of it is cached, the rest of the window comes in page by page. Reads that are random, requested or by
//! advice are always of single pages. [folios 1.2, 1.3]
//!
//! Mechanisms here say what to read ([`Readahead`]); `access/read_ahead.rs` takes page after page in, as each has to be allocated
//! and charged and may wait for reclaim. [machine 1.3 to 1.6]
//!
//! The mark is the kernel's PG_readahead, which is the same bit as PG_reclaim: see [`FolioFlags::RECLAIM`].

use crate::config::FileSystem;
use crate::core::Core;
use crate::memory::folio::{Folio, FolioFlags, HUGE_PAGE_ORDER, HUGE_PAGE_PAGES};
use crate::memory::mm::{Advice, HugeAdvice};
use crate::memory::open_file::{NO_PAGE, OpenFile};
use crate::memory::table::Entry;
use crate::state::State;
use crate::units::{FileId, IoId, OpenFileId, Pfn};
use pageout_rules::readahead::{HugeAdviceFiles, ReadaheadExec, ReadaheadOrder, ReadaheadWindow};

/// Pages of a file that are to be read as one batch, as far as it has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Readahead {
    pub(crate) file: FileId,
    /// The next page to look at.
    pub(crate) next: u64,
    /// The page behind the last one.
    pub(crate) end: u64,
    /// The page that gets the mark.
    pub(crate) mark: u64,
    /// Its folios have at most 2 to the power of this many pages.
    pub(crate) order: u8,
    /// The order of the folio that is being allocated, if its allocation has begun.
    pub(crate) begun: Option<u8>,
    /// The read that the pages gathered last are part of: it is submitted where the next page is present already.
    pub(crate) gathered: Option<IoId>,
}

/// Hints of a mapping about the faults on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileFault {
    pub(crate) advice: Advice,
    pub(crate) huge: HugeAdvice,
    pub(crate) executable: bool,
}

/// Pages of a node of a file's index. A search for pages that are not cached walks its slots. If a search begins within a large folio, it
/// begins with the folio's first slot, but counts from the requested start; at the node's end the two meet again. So it ends behind the page
/// that it looked for, or, backwards, skips pages of the node before. If there is no such node, it ends where that one would. As traced; of folios
/// larger than a node nothing is known.
const NODE_PAGES: u64 = 64;

/// The order to which windows are aligned at most.
const WINDOW_ORDER_MAX: u8 = 11;

/// So much larger is the order of the next window.
const ORDER_GROWTH: u8 = 2;

/// The largest folio of a page cache: a huge page. [folios 1.1]
const FOLIO_ORDER_MAX: u8 = HUGE_PAGE_ORDER;

/// The largest folio of btrfs: 64 blocks.
const BTRFS_ORDER_MAX: u8 = 6;

/// The first window of a ramp for a read of `req` pages.
fn init_window(req: u64, max: u64) -> u64 {
    let size = req.next_power_of_two();
    if size <= max / 32 {
        4 * size
    } else if size <= max / 4 {
        2 * size
    } else {
        max
    }
}

/// The window after one of `size` pages.
fn next_window(size: u64, max: u64) -> u64 {
    if size < max / 16 {
        4 * size
    } else if size <= max / 2 {
        2 * size
    } else {
        max
    }
}

impl Core {
    /// Submits what a batch has gathered.
    pub(crate) fn submit_readahead(&mut self, batch: &mut Readahead) {
        if let Some(io) = batch.gathered.take() {
            self.submit_read_file(io, None);
        }
    }
}

impl State {
    /// The readahead for a read of `req` pages whose first is absent; `None` where each page is to be read by itself.
    #[doc(alias = "page_cache_sync_ra")]
    pub(crate) fn sync_readahead(&mut self, open: OpenFileId, page: u64, req: u64) -> Option<Readahead> {
        let state = self.memory.open_files[open.index()];
        if state.ra_pages == 0 {
            return self.force_readahead(open, page, 1);
        }
        if state.random {
            return self.force_readahead(open, page, req);
        }
        if self.config.policy.machine.readahead_window == ReadaheadWindow::OneFunction {
            return self.ondemand_readahead(open, page, req, None);
        }
        let max = self.window_max(&state, req);
        let previous = state.prev_page();
        if page == 0 || req > max || page == previous || page == previous.wrapping_add(1) {
            let size = init_window(req, max);
            let async_size = if size > req { size - req } else { size / 2 };
            return self.move_window_of(open, page, size, async_size, self.first_order());
        }
        let cached = self.cached_before(state.file, page, max);
        if cached <= req {
            return self.batch(state.file, page, req, NO_PAGE);
        }
        // A run that begins with the file was most likely read from there on by this stream.
        let run = if cached == page { 2 * cached } else { cached };
        self.move_window_of(open, page, (run + req).min(max), 1, self.first_order())
    }

    /// The readahead for a fault on a mapped page that is absent; `None` where the page is to be read by itself. [machine 1.7]
    ///
    /// Faults are a weak hint of the next accesses. So the pages around are read, until too many such reads were useless: pages
    /// found in the cache count for it, missed pages against it.
    #[doc(alias = "do_sync_mmap_readahead")]
    pub(crate) fn mmap_readahead(
        &mut self,
        open: OpenFileId,
        page: u64,
        FileFault { advice, huge, executable }: FileFault,
    ) -> Option<Readahead> {
        /// Misses, less pages found, up to which reading around goes on (MMAP_LOTSAMISS).
        const MISSES: u32 = 100;
        let is_huge = huge == HugeAdvice::Hugepage;
        let reads_any_huge = self.config.policy.machine.huge_advice_files == HugeAdviceFiles::Any;
        if is_huge && reads_any_huge {
            return self.read_huge_around(open, page, advice);
        }
        let file = self.memory.open_files[open.index()].file;
        let reads_huge = is_huge && self.max_folio_order(file) > 0;
        let reads_exec = executable && self.config.policy.machine.readahead_exec == ReadaheadExec::Ahead;
        let state = &mut self.memory.open_files[open.index()];
        let ra_pages = state.ra_pages;
        if advice == Advice::Random && !reads_huge && !reads_exec || ra_pages == 0 {
            return None;
        }
        if advice == Advice::Sequential {
            return self.sync_readahead(open, page, ra_pages);
        }
        state.mmap_miss = (state.mmap_miss + 1).min(10 * MISSES);
        if state.mmap_miss > MISSES {
            return None;
        }
        if reads_huge {
            return self.read_huge_around(open, page, advice);
        }
        if reads_exec {
            return self.move_window_of(open, page, ra_pages, 0, 0);
        }
        let (start, order) = (page.saturating_sub(ra_pages / 2), self.first_order());
        self.move_window_of(open, start, ra_pages, ra_pages / 4, order)
    }

    /// Reads the 2 MiB around a page that is advised to be in huge pages, and those behind them unless the accesses are random. [folios 1.4]
    #[cold]
    fn read_huge_around(&mut self, open: OpenFileId, page: u64, advice: Advice) -> Option<Readahead> {
        let start = page & !(HUGE_PAGE_PAGES - 1);
        let size = if advice == Advice::Random { HUGE_PAGE_PAGES } else { 2 * HUGE_PAGE_PAGES };
        self.move_window_of(open, start, size, HUGE_PAGE_PAGES, HUGE_PAGE_ORDER)
    }

    /// What to read where a fault finds its page, which speaks for reading around.
    #[doc(alias = "do_async_mmap_readahead")]
    pub(crate) fn mmap_found(&mut self, open: OpenFileId, pfn: Pfn, page: u64) -> Option<Readahead> {
        let state = &mut self.memory.open_files[open.index()];
        state.mmap_miss = state.mmap_miss.saturating_sub(1);
        let ra_pages = state.ra_pages;
        if !self.memory.folios[pfn].has(FolioFlags::RECLAIM) {
            return None;
        }
        self.async_readahead(open, pfn, page, ra_pages)
    }

    /// What to read where a folio with the mark is met at this page, `req` pages being wanted from there on. The mark goes, unless there is a
    /// reason not to read ahead at present.
    #[doc(alias = "page_cache_async_ra")]
    pub(crate) fn async_readahead(
        &mut self,
        open: OpenFileId,
        pfn: Pfn,
        page: u64,
        req: u64,
    ) -> Option<Readahead> {
        let state = self.memory.open_files[open.index()];
        // The bit has another meaning for a page that is dirty or under writeback.
        if state.ra_pages == 0
            || self.memory.folios[pfn].flags().intersects(FolioFlags::WRITEBACK | FolioFlags::DIRTY)
        {
            return None;
        }
        self.memory.change_reclaim(pfn, false);
        let max = self.window_max(&state, req);
        let folio = self.memory.folios[pfn];
        if self.config.policy.machine.readahead_window == ReadaheadWindow::OneFunction {
            return self.ondemand_readahead(open, page, req, Some(folio));
        }
        let (start, size) =
            if page == (state.start + state.size - state.async_size) >> folio.order << folio.order {
                (state.start + state.size, next_window(state.size, max).max(state.size))
            } else {
                // Another stream's mark, or the window was overwritten: go on behind what is cached.
                let start = self.absent_behind(state.file, page, max)?;
                (start, next_window(start - page + req, max))
            };
        let order = self.next_order(&state, &folio);
        let size = match self.config.policy.machine.readahead_order {
            ReadaheadOrder::MarkedFolio => size,
            // A window ends where a folio of its order does, so that the next one begins with as large a one.
            ReadaheadOrder::Stored => {
                let order = order.min(max.trailing_zeros() as u8);
                let aligned = ((start + size) >> order << order).saturating_sub(start);
                if aligned > 0 { aligned } else { size }
            }
        };
        self.move_window_of(open, start, size, size, order)
    }

    /// The order of a window that begins with a miss.
    fn first_order(&self) -> u8 {
        match self.config.policy.machine.readahead_order {
            ReadaheadOrder::MarkedFolio => ORDER_GROWTH,
            ReadaheadOrder::Stored => 0,
        }
    }

    /// The order of a window that begins with the mark of this folio.
    fn next_order(&self, state: &OpenFile, marked: &Folio) -> u8 {
        if self.memory.file(state.file).bdi.file_system == FileSystem::None {
            return 0;
        }
        match self.config.policy.machine.readahead_order {
            ReadaheadOrder::MarkedFolio => marked.order + ORDER_GROWTH,
            ReadaheadOrder::Stored => (state.order + ORDER_GROWTH).min(WINDOW_ORDER_MAX),
        }
    }

    /// The order of the largest folios that a file may have.
    pub(crate) fn max_folio_order(&self, file: FileId) -> u8 {
        let (rules, of) = (&self.config.policy.machine, self.memory.file(file));
        match of.bdi.file_system {
            FileSystem::Ext4 if rules.ext4_large_folios => FOLIO_ORDER_MAX,
            FileSystem::Xfs if rules.xfs_large_folios => FOLIO_ORDER_MAX,
            FileSystem::Btrfs if rules.btrfs_large_folios => BTRFS_ORDER_MAX,
            FileSystem::None | FileSystem::Ext4 | FileSystem::Xfs | FileSystem::Btrfs => 0,
        }
    }

    /// An order that the page cache has: there was a time without folios of two pages.
    pub(crate) fn allowed_order(&self, order: u8) -> u8 {
        if order == 1 && !self.config.policy.machine.order_one { 0 } else { order }
    }

    /// The readahead of Linux 6.1 if a page is absent, or has the mark: one decision for both. A reader that would immediately be on the mark gets
    /// the next window as well. [kernels 3.1]
    fn ondemand_readahead(
        &mut self,
        open: OpenFileId,
        page: u64,
        req: u64,
        marked: Option<Folio>,
    ) -> Option<Readahead> {
        let state = self.memory.open_files[open.index()];
        let max = self.window_max(&state, req);
        let end = state.start + state.size;
        let continues = page == end - state.async_size || page == end;
        let first = || {
            let size = init_window(req, max);
            (page, size, if size > req { size - req } else { size })
        };
        let (start, mut size, mut async_size) = if page == 0 {
            first()
        } else if continues {
            let size = next_window(state.size, max);
            (end, size, size)
        } else if marked.is_some() {
            let start = self.absent_behind(state.file, page, max)?;
            let size = next_window(start - page + req, max);
            (start, size, size)
        } else if req > max || page.wrapping_sub(state.prev_page()) <= 1 {
            first()
        } else {
            let cached = self.cached_before(state.file, page, max);
            if cached <= req {
                return self.batch(state.file, page, req, NO_PAGE);
            }
            let run = if cached >= page { 2 * cached } else { cached };
            (page, (run + req).min(max), 1)
        };
        if page == start && size == async_size {
            let more = next_window(size, max);
            (size, async_size) = if size + more <= max { (size + more, more) } else { (max, max / 2) };
        }
        let order = marked.map_or(self.first_order(), |folio| self.next_order(&state, &folio));
        self.move_window_of(open, start, size, async_size, order)
    }

    /// The first page behind this one that is not cached, of so many: what the search takes for it ([`NODE_PAGES`]). It begins with the folio of
    /// the next page.
    fn absent_behind(&self, file: FileId, page: u64, max: u64) -> Option<u64> {
        let next = self.cached_page(file, page + 1).map(|pfn| self.memory.folios[pfn]);
        let within = next.filter(|folio| u32::from(folio.order) < NODE_PAGES.ilog2());
        let mut at = within.map_or(page + 1, |folio| folio.index.into());
        for index in page + 1..=page + max {
            if !self.memory.is_cached(file, at) {
                return Some(index);
            }
            at += 1;
            if at.is_multiple_of(NODE_PAGES) {
                at += (index + 1) % NODE_PAGES;
            }
        }
        None
    }

    /// The frame of a page that is in the page cache.
    fn cached_page(&self, file: FileId, page: u64) -> Option<Pfn> {
        let index = &self.memory.file(file).index;
        match (page < index.pages()).then(|| index.word(page).decode())? {
            Entry::Present(pfn) => Some(pfn),
            _ => None,
        }
    }

    /// The order of the folio that begins with the next page of a batch: the largest that is aligned, and ends before the batch does.
    pub(crate) fn ahead_order(&self, batch: &Readahead) -> u8 {
        let page = batch.next;
        let mut order = if page == 0 { batch.order } else { batch.order.min(page.trailing_zeros() as u8) };
        while page + (1 << order) > batch.end {
            order -= 1;
        }
        self.allowed_order(order)
    }

    /// Returns true if a page of this range of a file is cached.
    pub(crate) fn is_any_cached(&self, file: FileId, pages: std::ops::Range<u64>) -> bool {
        pages.into_iter().any(|page| self.memory.is_cached(file, page))
    }

    /// Returns true if a page of this range of a file is cached, or in swap.
    pub(crate) fn is_any_known(&self, file: FileId, pages: std::ops::Range<u64>) -> bool {
        let index = &self.memory.file(file).index;
        pages.into_iter().any(|page| matches!(index.word(page).decode(), Entry::Present(_) | Entry::Swap(_)))
    }

    /// Reads the requested pages in one piece, independent of the window; the window is unchanged.
    #[doc(alias = "force_page_cache_ra")]
    pub(crate) fn force_readahead(&mut self, open: OpenFileId, page: u64, req: u64) -> Option<Readahead> {
        let OpenFile { file, ra_pages, .. } = self.memory.open_files[open.index()];
        let most = self.io_pages(file).max(ra_pages);
        self.batch(file, page, req.min(most), NO_PAGE)
    }

    /// Pages of the largest request, as the file's backing device says. btrfs has a device of its own, without a limit: seen on 6.18.
    fn io_pages(&self, file: FileId) -> u64 {
        let bdi = &self.memory.file(file).bdi;
        if bdi.file_system == FileSystem::Btrfs { 0 } else { bdi.io_pages.into() }
    }

    /// A call that wants more than the window gets as much at a time as the device takes in one request.
    fn window_max(&self, state: &OpenFile, req: u64) -> u64 {
        let io_pages = self.io_pages(state.file);
        if req > state.ra_pages && io_pages > state.ra_pages { req.min(io_pages) } else { state.ra_pages }
    }

    /// Moves the window, and reads it in folios of up to this order, as far as its file has large ones. Otherwise in single pages.
    fn move_window_of(
        &mut self,
        open: OpenFileId,
        start: u64,
        size: u64,
        async_size: u64,
        order: u8,
    ) -> Option<Readahead> {
        let file = self.memory.open_files[open.index()].file;
        let max = self.max_folio_order(file);
        let is_stored = self.config.policy.machine.readahead_order == ReadaheadOrder::Stored;
        let limited = match size.checked_ilog2() {
            Some(of_window) if is_stored || size >= 4 => order.min(max).min(of_window as u8),
            _ => 0,
        };
        let state = &mut self.memory.open_files[open.index()];
        (state.start, state.size, state.async_size) = (start, size, async_size);
        state.order = limited;
        let pages = self.clip(file, start, size)?;
        // Single pages: the mark is counted from the end of what is left of the window at the end of the file.
        let behind = if max > 0 { start + size } else { start + pages };
        let mark = behind.checked_sub(async_size).filter(|&mark| mark >= start).unwrap_or(NO_PAGE);
        let batch = self.batch(file, start, pages, mark)?;
        Some(Readahead { order: limited, ..batch })
    }

    /// How many of these pages the file has; `None` for none.
    fn clip(&self, file: FileId, start: u64, pages: u64) -> Option<u64> {
        let left = self.memory.file(file).pages().saturating_sub(start);
        Some(pages.min(left)).filter(|&pages| pages > 0)
    }

    fn batch(&self, file: FileId, start: u64, pages: u64, mark: u64) -> Option<Readahead> {
        let pages = self.clip(file, start, pages)?;
        Some(Readahead { file, next: start, end: start + pages, mark, order: 0, begun: None, gathered: None })
    }

    /// Pages cached without a gap before this one, as the search counts them ([`NODE_PAGES`]). At most `max` are scanned. If all of them are
    /// cached, one less is counted, as the kernel's search ends on the last one that it scanned.
    fn cached_before(&self, file: FileId, page: u64, max: u64) -> u64 {
        let Some(last) = page.checked_sub(1) else { return 0 };
        let within = self.cached_page(file, last).map(|pfn| self.memory.folios[pfn]);
        let within = within.filter(|folio| u32::from(folio.order) < NODE_PAGES.ilog2());
        let mut at = within.map_or(last, |folio| folio.index.into());
        let mut cached = 0;
        while cached < max && self.memory.is_cached(file, at) {
            cached += 1;
            if at == 0 {
                break;
            }
            at -= 1;
            if at % NODE_PAGES == NODE_PAGES - 1 {
                if self.memory.file(file).index.is_node_empty(at) {
                    cached = (last - at).min(max);
                    break;
                }
                at = at + 1 - NODE_PAGES + (last - cached) % NODE_PAGES;
            }
        }
        if cached == max { max - 1 } else { cached }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_small_and_double() {
        let first: Vec<u64> = [1, 2, 3, 4, 5, 8, 9, 32].map(|req| init_window(req, 32)).to_vec();
        assert_eq!(first, [4, 4, 8, 8, 16, 16, 32, 32]);
        let ramp: Vec<u64> =
            std::iter::successors(Some(4), |&size| Some(next_window(size, 128))).take(6).collect();
        assert_eq!(ramp, [4, 16, 32, 64, 128, 128]);
    }
}
