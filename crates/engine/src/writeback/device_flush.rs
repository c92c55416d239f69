//! Flushes of a device that fail (`writeback.failed_write=dirty`): what it had taken until then is written again.
//!
//! ```text
//!   fsync: all is written ─▶ flush_begins ─▶ the machine has the device flush ─▶ flush_ended ─┬─ well: what it had taken is kept
//!                                                                                             └─ not: pages in memory are dirty again, the others
//!                                                                                                are told, and fsync fails until it is acknowledged
//! ```
//! The simulator's devices keep a write that is done, so the simulator flushes none. A machine with real devices flushes them. If a device fails to
//! flush, it has perhaps lost any of the writes that it completed: as if those writes had failed. A kernel reports that once and leaves the pages
//! clean. Here they are written again, as long as they are in memory.
//!
//! A page that has left memory can't be written again. Reclaim does not wait for flushes, or a cache without syncs would fill up with clean pages
//! that can't go. When such a page comes back, it has the contents that the device had by then. It is written again, and reported as well.
//!
//! No file rests after that: a flush is requested by a task, and no other task retries it.

use crate::access::engine::Engine;
use crate::config::ConfigError;
use crate::core::Core;
use crate::memory::errors::IoError;
use crate::memory::folio::FolioFlags;
use crate::memory::table::Entry;
use crate::memory::unflushed::Unflushed;
use crate::units::{FileId, ObjectId, Pfn, TaskId};
use std::ops::Range;

/// Pages of a file that a device had taken, and may have lost.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Unkept {
    /// In memory ever since, and to be written again.
    pub dirty: Vec<u64>,
    /// Not in memory since, or not all the time: perhaps the written contents are lost.
    pub lost: Vec<u64>,
}

impl Engine {
    /// The machine is about to have a device keep what it has taken of an open regular file until now. The machine reports
    /// how that ends ([`Engine::flush_ended`]) before it begins the next flush of the file.
    ///
    /// # Errors
    ///
    /// The task has no such object.
    pub fn flush_begins(&mut self, task: TaskId, object: ObjectId) -> Result<(), ConfigError> {
        if let Some((file, _)) = self.opened_regular_file(task, object)?
            && self.core.keeps_failed_writes()
        {
            self.core.mm.unflushed(file).begin();
        }
        Ok(())
    }

    /// The flush has ended. If it has failed, fsync of the file fails from now on until that is acknowledged, and the pages to be kept are dirty
    /// again, if they are in memory. All of it in one step: that is for devices that work. Does nothing unless `writeback.failed_write` is `dirty`:
    /// otherwise the machine only reports the error to the caller of the flush.
    ///
    /// # Errors
    ///
    /// The task has no such object.
    pub fn flush_ended(
        &mut self,
        task: TaskId,
        object: ObjectId,
        result: Result<(), IoError>,
    ) -> Result<Unkept, ConfigError> {
        self.enter(task);
        match self.opened_regular_file(task, object)? {
            Some((file, _)) if self.core.keeps_failed_writes() => Ok(self.core.flushed(file, result)),
            _ => Ok(Unkept::default()),
        }
    }
}

impl crate::state::State {
    fn unflushed(&mut self, file: FileId) -> &mut Unflushed {
        let memory = &self.memory.tables;
        let of = &mut self.memory.files[file.index()];
        let pages = of.index.pages();
        of.inode.unflushed.get_or_insert_with(|| Box::new(Unflushed::new(pages, memory)))
    }

    /// A page leaves its file's cache.
    #[inline]
    pub(crate) fn note_unflushed_leaves(&mut self, file: FileId, page: u64) {
        if let Some(unflushed) = &mut self.memory.file_mut(file).inode.unflushed {
            unflushed.leaves(page);
        }
    }

    /// Pages of a file are none of it any more, or holes.
    pub(crate) fn forget_unflushed(&mut self, file: FileId, pages: Range<u64>) {
        if let Some(unflushed) = &mut self.memory.file_mut(file).inode.unflushed {
            unflushed.forget(pages);
        }
    }
}

impl Core {
    /// A device has taken a page of a file.
    pub(super) fn note_taken(&mut self, file: FileId, page: u64) {
        if self.keeps_failed_writes() {
            self.mm.unflushed(file).written(page);
        }
    }

    fn flushed(&mut self, file: FileId, result: Result<(), IoError>) -> Unkept {
        let [dirty, lost] = self.mm.unflushed(file).end();
        if result.is_ok() {
            return Unkept::default();
        }
        let inode = &mut self.mm.memory.file_mut(file).inode;
        inode.errors.note();
        let bdi = inode.bdi;
        self.mm.memory.fs_errors[bdi.index()].note();
        for &page in dirty.iter().chain(&lost) {
            if let Entry::Present(pfn) = self.mm.memory.file(file).index.word(page).decode() {
                self.redirty_unkept(pfn);
            }
        }
        Unkept { dirty, lost }
    }

    /// A page may differ from its block, if it is not being read from there right now. One that is being written is written with all that it has.
    fn redirty_unkept(&mut self, pfn: Pfn) {
        let busy = FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::DIRTY;
        if !self.mm.memory.folios[pfn].flags().intersects(busy) {
            self.make_dirty(pfn, false);
        }
    }

    /// Panics unless every page that a device has taken of a file, and that has not left memory since,
    /// exists.
    pub(super) fn check_unflushed(&self, file: FileId) {
        let of = self.mm.memory.file(file);
        for page in of.inode.unflushed.iter().flat_map(|unflushed| unflushed.there()) {
            let entry = of.index.word(page).decode();
            let is_there =
                matches!(entry, Entry::Present(pfn) if !self.mm.memory.folios[pfn].has(FolioFlags::LOCKED));
            assert!(is_there, "page {page} of {} was taken by its device, and is {entry:?}", of.name);
        }
    }
}
