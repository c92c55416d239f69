//! System calls by which user space speaks of its memory: mlock, munmap, madvise, fadvise, and pins. [machine 1.8, 6]

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::config::ConfigError;
use crate::core::Core;
use crate::machine::step::{Served, Step};
use crate::memory::folio::FolioFlags;
use crate::memory::mm::{Advice, Backing};
use crate::memory::table::{Entry, Word};
use crate::reclaim::{Advised, Madvise, PageAdvice};
use crate::units::{FileId, MmId, ObjectId, Pfn, TaskId};
use std::ops::Range;

impl Engine {
    /// Locks a mapping into memory: its pages, those present and those to come, are out of reclaim's reach.
    pub fn mlock(&mut self, task: TaskId, object: ObjectId) -> Result<(), ConfigError> {
        let (mm, vma) = self.mapping(task, object)?;
        self.core.mm.memory.mm_mut(mm).vmas[vma].locked = true;
        for pfn in self.present(mm, vma) {
            self.core.mlock_folio(pfn);
        }
        Ok(())
    }

    /// Takes [`Engine::mlock`] back. A page that another locked mapping shows stays locked.
    pub fn munlock(&mut self, task: TaskId, object: ObjectId) -> Result<(), ConfigError> {
        let (mm, vma) = self.mapping(task, object)?;
        self.core.mm.memory.mm_mut(mm).vmas[vma].locked = false;
        for pfn in self.present(mm, vma) {
            self.core.munlock_folio(pfn);
        }
        Ok(())
    }

    /// Removes a mapping. Accesses to it fail from now on, those of other threads too; none may be in the middle of one.
    pub fn munmap(&mut self, task: TaskId, object: ObjectId) -> Result<(), ConfigError> {
        self.enter(task);
        let (mm_id, vma_at) = self.mapping(task, object)?;
        self.core.munmap(mm_id, vma_at);
        for object in self.tasks.iter_mut().flat_map(|task| &mut task.objects) {
            if let Object::Mapping { mm, vma, pages, .. } = object
                && (*mm, *vma) == (mm_id, vma_at)
            {
                *pages = 0;
            }
        }
        Ok(())
    }

    /// `madvise(MADV_COLD)` on a page of a mapping: it is not expected to be used soon.
    pub fn madvise_cold(&mut self, task: TaskId, object: ObjectId, page: u64) -> Result<(), ConfigError> {
        self.with_single(task, object, page, |core, pfn, _| core.lru_deactivate(pfn))
    }

    /// `madvise(MADV_FREE)` on a page of an anonymous mapping: its contents may be forgotten unless it is written again.
    pub fn madvise_free(&mut self, task: TaskId, object: ObjectId, page: u64) -> Result<(), ConfigError> {
        self.with_single(task, object, page, |core, pfn, word| core.madvise_free_folio(pfn, word))
    }

    /// `madvise(2)` on a whole mapping: the expected order of accesses. [`Advice::NoReuse`] is about an open file: [`Engine::fadvise`].
    pub fn madvise(&mut self, task: TaskId, object: ObjectId, advice: Advice) -> Result<(), ConfigError> {
        let (mm, vma) = self.mapping(task, object)?;
        if advice == Advice::NoReuse {
            return Err(ConfigError::Unknown("advice `noreuse` on a mapping".to_owned()));
        }
        self.core.mm.memory.mm_mut(mm).vmas[vma].advice = advice;
        Ok(())
    }

    /// `posix_fadvise` on an open file, through any object made from it: the expected order of reads. [`Advice::NoReuse`] also removes the recency of
    /// mappings made from it, which have the window, too. [machine 1.8]
    pub fn fadvise(&mut self, task: TaskId, object: ObjectId, advice: Advice) -> Result<(), ConfigError> {
        let open = self.open_file_of(task, object)?;
        let open = &mut self.core.mm.memory.open_files[open.index()];
        let ra_pages = u64::from(self.core.mm.memory.files[open.file.index()].bdi.ra_pages);
        match advice {
            Advice::Normal => (open.ra_pages, open.random, open.no_reuse) = (ra_pages, false, false),
            Advice::Sequential => (open.ra_pages, open.random) = (2 * ra_pages, false),
            Advice::Random => open.random = true,
            Advice::NoReuse => open.no_reuse = true,
        }
        Ok(())
    }

    /// Advises on all pages of mappings, each of a task and one of its objects. The last [`Step::Done`] is [`Served::Written`], with the pages that
    /// were freed. The call takes CPU time of its caller, which must not be in the middle of anything else.
    ///
    /// # Errors
    /// [`ConfigError`]: an object is not a mapping, a mapping is locked, or [`PageAdvice::Free`] is for a file.
    pub fn process_madvise(
        &mut self,
        caller: TaskId,
        mappings: &[(TaskId, ObjectId)],
        advice: PageAdvice,
    ) -> Result<Step, ConfigError> {
        let mut advised = Vec::new();
        for &(task, object) in mappings {
            let (mm, vma) = self.mapping(task, object)?;
            let mapped = &self.core.mm.memory.mm(mm).vmas[vma];
            let refuse = |why: &str| Err(ConfigError::InUse(format!("mapping {} {why}", object.0)));
            if mapped.locked {
                return refuse("is locked into memory");
            }
            if advice == PageAdvice::Free && mapped.backing != Backing::Anon {
                return refuse("is of a file, and MADV_FREE is for anonymous memory");
            }
            advised.push(Advised { mm, vma, pages: mapped.start..mapped.start + mapped.pages });
        }
        self.enter(caller);
        self.core.lru_add_drain();
        Ok(self.current(caller).madvise(Box::new(Madvise::new(advice, advised))))
    }

    /// Returns the objects of a task that are mappings, in order. An ended process has none.
    pub fn mappings_of(&self, task: TaskId) -> Vec<ObjectId> {
        let objects = self.tasks[task.index()].objects.iter().enumerate();
        let mapped = objects.filter(|(_, object)| match **object {
            Object::Mapping { mm, vma, pages, .. } => {
                pages > 0 && self.core.mm.memory.mm(mm).vmas[vma].mapped
            }
            Object::File { .. } => false,
        });
        mapped.map(|(at, _)| ObjectId(at as u32)).collect()
    }

    /// Reads pages of an open file ahead: `posix_fadvise(POSIX_FADV_WILLNEED)`, `madvise(MADV_WILLNEED)`, readahead(2). The task waits for none of
    /// them, but may wait for memory. At most the number of pages that fit into a request of the device, or into the window, are read. The first
    /// [`Step::Done`] has [`Served::Advised`]. [machine 1.6, 1.8]
    pub fn readahead(
        &mut self,
        task: TaskId,
        object: ObjectId,
        page: u64,
        pages: u64,
    ) -> Result<Step, ConfigError> {
        self.enter(task);
        self.assert_idle(task);
        let open = self.open_file_of(task, object)?;
        let file = self.core.mm.memory.open_files[open.index()].file;
        if self.core.mm.memory.file(file).is_tmpfs() {
            // Missing pages are in swap, which is read on demand.
            return Ok(Step::Done(Served::Advised));
        }
        let readahead = self.core.mm.force_readahead(open, page, pages);
        self.tasks[task.index()].attempt.begin_advice(object, readahead);
        Ok(self.current(task).attempt())
    }

    /// `fadvise(POSIX_FADV_DONTNEED)` on pages of a file: those that are not in use are dropped immediately, the others are moved to the cold end.
    /// Drains the batches of the task's CPU first; if pages stay, those of all CPUs, for a second attempt. The range may go beyond the end of the file. A
    /// large folio that lies in it only in part stays. [machine 6] [folios 1.11]
    pub fn fadvise_dontneed(
        &mut self,
        task: TaskId,
        file: FileId,
        pages: Range<u64>,
    ) -> Result<(), ConfigError> {
        self.enter(task);
        let cached = self.core.mm.memory.files.get(file.index());
        let cached = cached.ok_or_else(|| ConfigError::Unknown(format!("file {}", file.0)))?;
        if pages.is_empty() {
            return Err(ConfigError::Unknown(format!("pages {pages:?} in {}", cached.name)));
        }
        self.core.invalidate_pages(file, pages);
        Ok(())
    }

    /// An external agent reclaims these pages of an open or mapped file, in reclaim for all of memory: DAMON, or kswapd of a machine of which this is
    /// a part. They leave their shadows. Dirty, isolated or in-flight pages stay. The task only names the place.
    ///
    /// The task must not be in the middle of an access.
    pub fn evict(&mut self, task: TaskId, object: ObjectId, pages: Range<u64>) -> Result<Step, ConfigError> {
        let file = self.file_to_truncate(task, object)?;
        let of = self.core.mm.memory.file(file);
        if pages.is_empty() || pages.end > of.pages() {
            return Err(ConfigError::Unknown(format!("pages {pages:?} in {}", of.name)));
        }
        for page in pages {
            if let Entry::Present(pfn) = self.core.mm.memory.file(file).index.word(page).decode() {
                self.core.evict_folio(pfn);
            }
        }
        Ok(Step::Done(Served::Truncated))
    }

    /// Memory reclaims the inode of an open or mapped file, as a slab shrinker does: the shadows of its evicted pages are dropped. The
    /// file keeps its name. An inode with pages stays, and nothing happens. The task only identifies the object.
    ///
    /// The task must not be in the middle of an access.
    pub fn inode_reclaim(&mut self, task: TaskId, object: ObjectId) -> Result<Step, ConfigError> {
        let file = self.file_to_truncate(task, object)?;
        let index = &self.core.mm.memory.file(file).index;
        if index.iter().all(|(_, word)| word.is_shadow()) {
            let shadows: Vec<u64> = index.iter().map(|(page, _)| page).collect();
            shadows.into_iter().for_each(|page| self.core.index_forget(file, page));
        }
        Ok(Step::Done(Served::Truncated))
    }

    /// Clears the accessed bit of a page of a mapping, as idle page tracking does for a user who measures the working set. Reclaim does
    /// not see accesses before this call. A huge page has one such bit for all of its pages.
    pub fn mark_idle(&mut self, task: TaskId, object: ObjectId, page: u64) -> Result<(), ConfigError> {
        let (mm, page) = self.address(task, object, page)?;
        if self.core.mm.memory.mm(mm).table.word(page).is_present() {
            self.core.mm.memory.mm_mut(mm).table.clear_entry_young(page);
        }
        Ok(())
    }

    /// Pins a resident page of a file, as a busy buffer or a device does: reclaim finds it in use each time. False if it
    /// isn't resident.
    pub fn pin(&mut self, file: FileId, page: u64) -> bool {
        let resident = self.core.mm.memory.file(file).index.word(page);
        if let Entry::Present(pfn) = resident.decode() {
            self.core.mm.memory.folios[pfn].set(FolioFlags::PINNED);
        }
        resident.is_present()
    }

    /// Applies advice to a present page. It is about that page alone, so a large anonymous folio that contains it is split first; if that is impossible, the
    /// advice has no effect.
    fn with_single(
        &mut self,
        task: TaskId,
        object: ObjectId,
        page: u64,
        advise: impl FnOnce(&mut Core, Pfn, &mut Word),
    ) -> Result<(), ConfigError> {
        let (mm, page) = self.address(task, object, page)?;
        if !self.core.split_anon_at(mm, page) {
            return Ok(());
        }
        let mut word = self.core.mm.memory.mm(mm).table.word(page);
        if word.is_present() && !word.is_zero_page() {
            advise(&mut self.core, word.pfn(), &mut word);
            self.core.mm.memory.mm_mut(mm).table.replace(page, word);
        }
        Ok(())
    }

    /// Where a page of a mapping is in its address space.
    fn address(&mut self, task: TaskId, object: ObjectId, page: u64) -> Result<(MmId, u64), ConfigError> {
        self.enter(task);
        let (mm, vma) = self.mapping(task, object)?;
        let vma = &self.core.mm.memory.mm(mm).vmas[vma];
        if page >= vma.pages {
            return Err(ConfigError::Unknown(format!("page {page} in a mapping of {} pages", vma.pages)));
        }
        Ok((mm, vma.start + page))
    }

    pub(super) fn mapping(&self, task: TaskId, object: ObjectId) -> Result<(MmId, usize), ConfigError> {
        match self.tasks[task.index()].objects.get(object.index()) {
            Some(&Object::Mapping { mm, vma, .. }) if self.core.mm.memory.mm(mm).vmas[vma].mapped => {
                Ok((mm, vma))
            }
            _ => Err(ConfigError::Unknown(format!("mapping {} of task {}", object.0, task.0))),
        }
    }

    /// Folios that a mapping shows.
    fn present(&self, mm: MmId, vma: usize) -> Vec<Pfn> {
        let mm = self.core.mm.memory.mm(mm);
        let vma = &mm.vmas[vma];
        let words = (vma.start..vma.start + vma.pages).map(|page| mm.table.word(page));
        words.filter(|word| word.is_present() && !word.is_zero_page()).map(Word::pfn).collect()
    }
}
