//! Readahead as a part of an access: when it begins, and how page after page is taken in.
//!
//! ```text
//!   miss of a regular file ─▶ begin_readahead ─┐                                        which pages: `page_cache/readahead.rs`
//!   page with the mark ─────▶ meets_mark ──────┴▶ read_ahead ─▶ find again
//!                                                 │  each page: allocate, charge (may reclaim, in steps), insert, gather
//!                                                 └▶ submit what was gathered at each page that is there already, and at the end
//! ```
//! If a page can't be allocated, the batch ends, because no task has asked for that page. If the accessed page is still absent then, it is
//! read by itself, with more effort. The pages are locked until their read is over, so a task that needs one of them waits for it.
//!
//! If the read fails, the pages leave the cache, and each waiting task reads its own page by itself. (The kernel leaves them there, not up
//! to date; the next reader reads them by itself too.) [machine 1.2, 1.6, 1.9]

use crate::access::hits::Object;
use crate::access::miss::{Attempt, Pause, Source, Stop};
use crate::access::task::Current;
use crate::machine::step::IoWait;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::page_alloc::request::Gfp;
use crate::page_cache::readahead::{FileFault, Readahead};
use crate::story::{Filled, PageEvent, PageName};
use crate::units::{IoId, PAGE_SIZE, Pfn};

impl Current<'_> {
    /// A page of a regular file is absent: what to read. Nothing where it has been tried, or is to be read by itself.
    pub(super) fn begin_readahead(&mut self) -> Option<Readahead> {
        let current = &mut *self.task;
        let attempt = &mut current.attempt;
        if std::mem::replace(&mut attempt.progress.has_read_ahead, true) {
            return None;
        }
        let (page, wanted, write) = (attempt.page, attempt.pages_wanted(), attempt.write);
        match *current.accessed() {
            // Writes do not predict reads.
            Object::File { .. } if write => None,
            Object::File { open, .. } => self.core.mm.sync_readahead(open, page, wanted),
            Object::Mapping { open: None, .. } => None,
            Object::Mapping { open: Some(open), mm, vma, start, .. } => {
                let of = &self.core.mm.memory.mm(mm).vmas[vma];
                let (_, huge) = of.huge_at(start + page);
                let fault = FileFault { advice: of.advice, huge, executable: of.executable };
                self.core.mm.mmap_readahead(open, page, fault)
            }
        }
    }

    /// A fault on a mapping of a file, which is to load: maps what is cached around it, once each time the fault is taken.
    #[inline(always)]
    pub(super) fn fault_around(&mut self) {
        let attempt = &mut self.task.attempt;
        if !std::mem::replace(&mut attempt.progress.has_faulted_around, true)
            && matches!(self.task.accessed(), Object::Mapping { is_regular_file: true, .. })
        {
            self.map_around();
        }
    }

    fn map_around(&mut self) {
        let attempt = &self.task.attempt;
        let (page, write) = (attempt.page, attempt.write);
        let Object::Mapping { open: Some(open), mm, start, pages, .. } = *self.task.accessed() else {
            return;
        };
        let block = u64::from(self.core.mm.config.fault_around_bytes) / PAGE_SIZE;
        // The file may have lost the page since the access began.
        if write || block < 2 || page >= pages {
            return;
        }
        let block = 1 << block.ilog2();
        let first = page / block * block;
        self.core.fault_around(mm, start, open, page, first..(first + block).min(pages));
    }

    /// The accessed page is there or on its way: whether its mark says that the next ones are to be read.
    #[inline(always)]
    pub(super) fn meets_mark(&mut self, pfn: Pfn) -> bool {
        !self.task.attempt.progress.has_seen_mark && self.see_mark(pfn)
    }

    fn see_mark(&mut self, pfn: Pfn) -> bool {
        let folio = &self.core.mm.memory.folios[pfn];
        if !folio.has(FolioFlags::INDEXED) || folio.has(FolioFlags::SWAPBACKED) {
            if folio.has(FolioFlags::SWAPCACHE) {
                self.found_in_swap_cache(pfn);
            }
            return false;
        }
        // On a dirty page or one under writeback, the same bit belongs to reclaim.
        let is_marked = folio.has(FolioFlags::RECLAIM)
            && !folio.flags().intersects(FolioFlags::WRITEBACK | FolioFlags::DIRTY);
        let attempt = &self.task.attempt;
        let (wanted, has_read_ahead) = (attempt.pages_wanted(), attempt.progress.has_read_ahead);
        let readahead = match *self.task.accessed() {
            Object::File { open, .. } if is_marked && !attempt.write => {
                // From the first page of its folio on.
                let first = u64::from(folio.index);
                self.core.mm.async_readahead(open, pfn, first, attempt.page - first + wanted)
            }
            // A fault that has waited for its page, or has had it read, finds what it has seen before.
            Object::Mapping { open: Some(open), mm, start, .. } if !has_read_ahead => {
                let page = start + self.task.attempt.page;
                if self.core.mm.memory.mm(mm).table.word(page).is_present() {
                    return false;
                }
                self.core.mm.mmap_found(open, pfn, self.task.attempt.page)
            }
            _ => return false,
        };
        self.task.attempt.progress.has_seen_mark = true;
        self.task.attempt.readahead = readahead;
        if readahead.is_some() && self.task.attempt.held.is_none() {
            self.hold_marked(pfn);
        }
        readahead.is_some()
    }

    /// Goes on with the batch that has paused, or was decided on.
    pub(super) fn go_on_reading_ahead(&mut self) -> Result<(), Stop> {
        let batch = self.task.attempt.readahead.take();
        self.read_ahead(batch.expect("a batch is under way"))
    }

    /// Takes in the pages of a batch as far as it goes without waiting.
    pub(super) fn read_ahead(&mut self, mut batch: Readahead) -> Result<(), Stop> {
        while batch.next < batch.end {
            mutant!(self.core, DirtyDroppedByReadahead => self.core.drop_although_dirty(batch.file, batch.next));
            let is_cached = self.core.mm.memory.is_cached(batch.file, batch.next);
            let added = match is_cached {
                true => self.pass_cached(&mut batch),
                false if batch.order > 0 || batch.begun.is_some() => self.add_large_ahead(&mut batch),
                false => self.add_ahead(&mut batch),
            };
            match added {
                Ok(()) => {}
                Err(Stop::Pause(pause)) => {
                    self.task.attempt.readahead = Some(batch);
                    return Err(Stop::Pause(pause));
                }
                Err(Stop::Oom(_) | Stop::NoRoom | Stop::Dying) => break,
            }
        }
        // What was meant for a page that others have brought in.
        self.give_back();
        if std::mem::take(&mut self.task.attempt.progress.holds_marked) {
            self.let_go();
        }
        if let Some(io) = batch.gathered
            && self.is_its_own(io)
        {
            self.core.submit_read_file(io, Some(self.id));
            self.task.attempt.will_retry();
            return Err(Stop::Pause(Pause::Io(IoWait::FileRead)));
        }
        self.core.submit_readahead(&mut batch);
        Ok(())
    }

    /// Returns true if a read brings in the page that the task needs, and there is nothing more to see to until it is over.
    #[inline]
    fn is_its_own(&self, io: IoId) -> bool {
        let Attempt { held, page, ref progress, .. } = self.task.attempt;
        let is_unmarked = |pfn: Pfn| !self.core.mm.memory.folios[pfn].has(FolioFlags::RECLAIM);
        progress.started_read && held.is_some_and(is_unmarked) && self.core.is_read_by(page, io)
    }

    /// Goes past a page that is cached, and submits what was gathered before it.
    #[inline(never)]
    fn pass_cached(&mut self, batch: &mut Readahead) -> Result<(), Stop> {
        if self.task.attempt.is_reclaiming() {
            // Another task was faster while this one reclaimed. There is no way out of a reclaim call but its end.
            self.prepare(self.memcg(), None, Gfp::READAHEAD)?;
        }
        if batch.begun.take().is_some() {
            self.give_back();
        }
        self.core.submit_readahead(batch);
        batch.next += 1;
        batch.order = 0;
        Ok(())
    }

    /// Puts the next folio of a batch into the page cache, as large as the batch wants it. If a page of it is cached, or there is no such block, the
    /// rest of the batch has single pages. [folios 1.2]
    #[cold]
    fn add_large_ahead(&mut self, batch: &mut Readahead) -> Result<(), Stop> {
        let order = batch.begun.unwrap_or_else(|| self.core.mm.ahead_order(batch));
        let pages = batch.next..batch.next + (1 << order);
        let is_in_the_way = self.core.mm.is_any_cached(batch.file, pages.clone());
        if order == 0 && batch.begun.is_none() {
            return self.add_ahead(batch);
        }
        batch.begun = Some(order);
        if is_in_the_way && !self.task.attempt.is_reclaiming() {
            self.give_back();
            (batch.begun, batch.order) = (None, 0);
            return Ok(());
        }
        let memcg = self.memcg();
        let pfn = match self.prepare_large(memcg, batch.file, pages, Gfp::READAHEAD) {
            Ok(Some(pfn)) if !is_in_the_way => pfn,
            Ok(_) | Err((Stop::NoRoom, _)) => {
                self.give_back();
                (batch.begun, batch.order) = (None, 0);
                return Ok(());
            }
            Err((stop, _)) => return Err(stop),
        };
        batch.begun = None;
        self.insert_ahead(batch, pfn);
        Ok(())
    }

    /// Puts the next page of a batch into the page cache, and gathers it for the read.
    #[inline]
    fn add_ahead(&mut self, batch: &mut Readahead) -> Result<(), Stop> {
        let page = batch.next;
        let memcg = self.memcg();
        let source = Source::File(batch.file, page);
        let Some(pfn) = self.prepare(memcg, Some(source), Gfp::READAHEAD)? else { return Ok(()) };
        self.insert_ahead(batch, pfn);
        Ok(())
    }

    /// Puts a folio into the page cache at the next page of a batch.
    #[inline]
    fn insert_ahead(&mut self, batch: &mut Readahead, pfn: Pfn) {
        let page = batch.next;
        let pages = page..page + self.core.mm.memory.folios[pfn].pages();
        let attempt = &mut self.task.attempt;
        attempt.frame = None;
        let (is_wanted, charged) = (pages.contains(&attempt.page), attempt.charged);
        let added_for = self.added_for();
        if self.core.is_telling() {
            let with = if is_wanted { Filled::File } else { Filled::Readahead };
            let (reclaim_calls, reclaimed) = (charged.reclaim_calls, charged.reclaimed);
            let name = PageName::File { file: batch.file, page };
            self.core.tell_filled(
                pfn,
                name,
                PageEvent::Filled { with, task: self.id, reclaim_calls, reclaimed },
            );
        }
        if is_wanted {
            self.hold_for(pfn);
        }
        self.core.mm.memory.folios[pfn].set(FolioFlags::LOCKED);
        self.core.page_cache_add(pfn, batch.file, page, added_for);
        self.core.lru_add(pfn, added_for);
        if is_wanted {
            self.task.attempt.progress.started_read = true;
        } else {
            self.core.mm.memory.folios[pfn].refs -= 1;
        }
        for unused in pages.clone().filter(|&page| page != self.task.attempt.page || !is_wanted) {
            self.core.mm.memory.file_mut(batch.file).index.set_unused(unused);
        }
        let is_refault = self.core.mm.memory.has_use(pfn, UseBits::WORKINGSET);
        self.task.attempt.progress.submits_refault |= is_refault;
        if pages.contains(&batch.mark) {
            self.core.mm.memory.change_reclaim(pfn, true);
        }
        batch.gathered = Some(self.core.gather_read_file(pfn, batch.gathered, true));
        mutant!(self.core, ReadaheadNotAwaited => self.core.mm.memory.file_mut(batch.file).index.update(page, |word| word.set_busy(false)));
        batch.next = pages.end;
    }
}
