//! fsync(2): a task writes what is dirty of a file, and waits until the device has it. [machine 5.7]
//!
//! The task does it itself rather than ask the flusher, so that it waits for its own pages only. A page that is under writeback
//! already may have been changed since that write began. So its write is waited for, and then it is written again.
//!
//! A write that failed is reported to each open file of the file once, whichever task started it. If pages that could not be written stay
//! dirty, it is reported each time until it is acknowledged (`retry.rs`).

use crate::core::Core;
use crate::memory::errors::IoError;
use crate::memory::folio::FolioFlags;
use crate::units::{FileId, OpenFileId, Pfn};
use crate::writeback::WritebackReason;

/// A call in progress.
pub(crate) struct Fsync {
    file: FileId,
    /// The open file whose task asks.
    open: OpenFileId,
    /// All dirty pages below have been submitted; or all are, and those below are waited for no more.
    cursor: u64,
    submitted: bool,
    /// Writes of the file that had failed when it began; not known before its first step.
    failed_before: Option<u64>,
}

/// The outcome of one step of fsync(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FsyncStep {
    /// A plug of writes is submitted; there are more.
    Again,
    /// Go on when the write of this folio has ended.
    WaitFor(Pfn),
    /// The device has all, or has failed to write some of it since this was last asked.
    Done(Result<(), IoError>),
}

impl Fsync {
    pub(crate) fn new(file: FileId, open: OpenFileId) -> Fsync {
        Fsync { file, open, cursor: 0, submitted: false, failed_before: None }
    }
}

impl Core {
    pub(crate) fn fsync_step(&mut self, call: &mut Fsync) -> FsyncStep {
        let failed_before =
            *call.failed_before.get_or_insert(self.mm.memory.file(call.file).inode.errors.count());
        let mut pages = 0;
        while let Some(page) =
            self.mm.memory.file(call.file).inode.dirty.next(call.cursor).filter(|_| !call.submitted)
        {
            let pfn = self.mm.memory.cached_folio(call.file, page);
            if self.mm.memory.folios[pfn].has(FolioFlags::WRITEBACK) {
                return self.wait_for_written(pfn);
            }
            if pages >= self.mm.config.step_pages {
                return FsyncStep::Again;
            }
            assert!(page >= call.cursor, "fsync goes back to page {page}");
            self.start_file_write(pfn, WritebackReason::Fsync);
            let written = self.mm.memory.folios[pfn].file_pages();
            call.cursor = written.end;
            pages += written.end - written.start;
        }
        if !call.submitted {
            (call.submitted, call.cursor) = (true, 0);
        }
        if pages > 0 {
            return FsyncStep::Again;
        }
        if let Some(page) = self.mm.memory.file(call.file).inode.writeback.next(call.cursor)
            && !mutant!(self, FsyncForgetsWriteback)
        {
            // Those before it are not looked at again: they would be of later writes.
            call.cursor = page;
            return self.wait_for_written(self.mm.memory.cached_folio(call.file, page));
        }
        let known = &mut self.mm.memory.open_files[call.open.index()].errors_known;
        let errors = &mut self.mm.memory.files[call.file.index()].inode.errors;
        let told = errors.tell(known);
        let outstanding = errors.outstanding(failed_before);
        FsyncStep::Done(if self.keeps_failed_writes() { outstanding } else { told })
    }

    fn wait_for_written(&mut self, pfn: Pfn) -> FsyncStep {
        let folio = &self.mm.memory.folios[pfn];
        assert!(folio.has(FolioFlags::WRITEBACK), "{pfn:?} is waited for, and is not being written");
        self.trace_wait(FileId(folio.owner), folio.index.into());
        FsyncStep::WaitFor(pfn)
    }
}
