//! Writes that fail and are tried again (`writeback.failed_write=dirty`): what was written is lost only with the machine.
//!
//! ```text
//!   a write fails ─► its page is dirty again ─► its file rests: 1 s, and twice as long after each further try, 30 s at most
//!                                                    │ over: flushers and reclaim write it as any other
//!                                                    └ meanwhile only who waits for it has it written: fsync, sync
//!   fsync fails ◄── until somebody acknowledges the error, even where a later try went well
//! ```
//! No kernel does that. There the page becomes clean, and its contents are lost when it is reclaimed: a second fsync of a database
//! returns success (<https://wiki.postgresql.org/wiki/Fsync_Errors>, <https://lwn.net/Articles/752063/>). For a device that is full or
//! away for a while a retry is right, and one that is broken for good holds memory. So each owner of a machine chooses. Data that the
//! device has taken and can't keep is in `device_flush.rs`.
//!
//! A file rests, and not a page: where one block of a device can't be written, its neighbours mostly can't either. Without a rest the flusher
//! would try without end while more is dirty than may be. A page that is dirty again does not count as dirtied again: that would slow its
//! writers down for writes that they have not made. `failing.rs` has the effect of such pages on writers. syncfs reports each failure once per
//! open file, as a kernel does: the caller could acknowledge no single file there.

use crate::access::engine::Engine;
use crate::config::ConfigError;
use crate::core::Core;
use crate::io::SeenWrites;
use crate::memory::errors::{IoError, Rest};
use crate::memory::folio::FolioFlags;
use crate::units::{FileId, Nanos, ObjectId, Pfn, TaskId};
use pageout_rules::writeback::FailedWrite;

/// How long a file rests after its first failed write, and at most.
const FIRST: Nanos = Nanos::SECOND;
const LONGEST: Nanos = Nanos(30 * Nanos::SECOND.0);

impl Engine {
    /// Acknowledges that writes of a regular file have failed: from now on fsync reports only later ones. Pages that could not be written
    /// stay dirty. Does nothing unless `writeback.failed_write` is `dirty`, as fsync otherwise reports once anyway, and for tmpfs.
    ///
    /// # Errors
    ///
    /// The task has no such object, or the object is not a file.
    pub fn acknowledge_write_errors(&mut self, task: TaskId, object: ObjectId) -> Result<(), ConfigError> {
        if let Some((file, _)) = self.opened_regular_file(task, object)? {
            self.core.mm.memory.file_mut(file).inode.errors.acknowledge();
        }
        Ok(())
    }
}

impl Core {
    /// Returns true if a page stays dirty whose write fails.
    pub(crate) fn keeps_failed_writes(&self) -> bool {
        self.mm.config.policy.machine.writeback.failed_write == FailedWrite::Dirty
    }

    /// Returns true if a task that would give up makes one more attempt, in which a failing swap device gets a page
    /// ([`crate::io::Transfers::may_try_failing`]). A machine that drops failed writes has lost the page by then.
    pub(crate) fn may_try_failing(&mut self, seen: &mut SeenWrites) -> bool {
        self.keeps_failed_writes() && self.io.may_try_failing(seen)
    }

    /// A write of a file has ended.
    pub(super) fn note_tried(&mut self, file: FileId, result: Result<(), IoError>) {
        if !self.keeps_failed_writes() {
            return;
        }
        let now = self.by.now;
        let rest = &mut self.mm.memory.file_mut(file).inode.rest;
        let is_resting = rest.is_on(now);
        match result {
            // Writes that were begun together fail together, and are one try.
            Err(_) if is_resting => rest.failed_at = Some(now),
            Err(_) => {
                let span = Nanos((2 * rest.span.0).clamp(FIRST.0, LONGEST.0));
                *rest = Rest { failed_at: Some(now), span };
            }
            Ok(()) if is_resting => {}
            Ok(()) => *rest = Rest::default(),
        }
    }

    /// A page whose write has failed still differs from its block.
    pub(crate) fn keep_dirty(&mut self, pfn: Pfn) {
        let folio = &self.mm.memory.folios[pfn];
        assert!(!folio.has(FolioFlags::WRITEBACK), "{pfn:?} is dirty again before its write has ended");
        assert!(
            folio.has(FolioFlags::INDEXED),
            "{pfn:?} could not be written, and has left its file meanwhile"
        );
        if !folio.has(FolioFlags::DIRTY) && !mutant!(self, FailedWriteForgotten) {
            self.make_dirty(pfn, false);
        }
    }

    /// Returns true if all leave a file alone who would write it unasked.
    pub(crate) fn is_resting(&self, file: FileId) -> bool {
        self.mm.memory.file(file).inode.rest.is_on(self.by.now)
    }
}
