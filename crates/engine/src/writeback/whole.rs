//! `WB_SYNC_ALL`: work that a task waits for writes each file as a whole, and waits until the device has it. [machine 5.7]
//!
//! ```text
//!   a file's turn:  its pages that are dirty now ─► written, one plug a step; one that is being written already: waited for first
//!                   then all of its pages that are being written ─► waited for, one after the other ─► the next file
//! ```
//! A task that asks wants its writes to be safe, so a page that was dirtied again while it was being written is written once
//! more. The set of pages is fixed when the turn begins, or a writer could delay the turn forever.

use crate::core::Core;
use crate::memory::tags::PageTags;
use crate::state::State;
use crate::units::{FileId, WbId};
use crate::writeback::WritebackReason;
use crate::writeback::work::{Chunk, PLUG_PAGES, TurnStep};
use std::ops::Range;

/// A file's turn in work that someone waits for.
#[derive(Debug)]
pub(super) struct WholeFile {
    /// The file's pages that were dirty when its turn began.
    dirty: PageTags,
    /// All of them are being written; those below are waited for no more.
    waits_from: Option<u64>,
}

/// What is next in such a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NextOfFile {
    Write(u64),
    WaitFor(u64),
    Over,
}

impl WholeFile {
    pub(super) fn new(dirty: &PageTags) -> WholeFile {
        WholeFile { dirty: dirty.clone(), waits_from: None }
    }
}

impl Core {
    /// Starts to write a plug of those pages of a file that were dirty when its turn began, or waits for the first that is being written.
    pub(super) fn write_whole(&mut self, wb: WbId, chunk: &mut Chunk, reason: WritebackReason) -> TurnStep {
        let (mut pages, mut requests) = (0, 0);
        let mut last = None;
        loop {
            let whole = chunk.whole.as_mut().expect("its work waits for all of it");
            match self.mm.next_of_whole(chunk.file, whole, chunk.cursor) {
                NextOfFile::Write(page) => {
                    if last != page.checked_sub(1) || last.is_none() {
                        requests += 1;
                    }
                    if pages >= PLUG_PAGES || requests > self.mm.config.plug_requests {
                        return TurnStep::PlugFull;
                    }
                    let pfn = self.mm.memory.cached_folio(chunk.file, page);
                    chunk.votes.count(self.mm.memory.folios[pfn].memcg);
                    self.start_file_write(pfn, reason);
                    self.writeback.wb_mut(wb).worker.waits_for = None;
                    assert!(page >= chunk.cursor, "a file that is waited for is written backwards");
                    let written = self.mm.memory.folios[pfn].file_pages();
                    last = Some(written.end - 1);
                    chunk.cursor = written.end;
                    chunk.left = chunk.left.saturating_sub(written.end - written.start);
                    pages += written.end - written.start;
                }
                NextOfFile::WaitFor(_) if pages > 0 => return TurnStep::PlugFull,
                NextOfFile::WaitFor(page) => {
                    let waits_for = Some((chunk.file, page));
                    let worker = &mut self.writeback.wb_mut(wb).worker;
                    if std::mem::replace(&mut worker.waits_for, waits_for) != waits_for {
                        self.trace_wait(chunk.file, page);
                    }
                    return TurnStep::Waits;
                }
                NextOfFile::Over => {
                    self.writeback.wb_mut(wb).worker.waits_for = None;
                    return TurnStep::Over;
                }
            }
        }
    }

    /// The write of a page has ended: its flusher goes on if it has waited for that.
    pub(super) fn flusher_goes_on(&mut self, wb: WbId, file: FileId, pages: Range<u64>) {
        let waits_for = self.writeback.wb(wb).worker.waits_for;
        if waits_for.is_some_and(|(of, page)| of == file && pages.contains(&page)) {
            self.wake_flusher(wb);
        }
    }
}

impl State {
    /// What is next in a file's turn, from a page on.
    fn next_of_whole(&self, file: FileId, whole: &mut WholeFile, from: u64) -> NextOfFile {
        let inode = &self.memory.file(file).inode;
        if whole.waits_from.is_none() {
            let mut from = from;
            while let Some(page) = whole.dirty.next(from) {
                // Others may have begun to write it.
                if inode.dirty.contains(page) {
                    let is_written = inode.writeback.contains(page);
                    return if is_written { NextOfFile::WaitFor(page) } else { NextOfFile::Write(page) };
                }
                from = page + 1;
            }
        }
        let waits_from = whole.waits_from.get_or_insert(0);
        let Some(page) = inode.writeback.next(*waits_from) else { return NextOfFile::Over };
        *waits_from = page;
        NextOfFile::WaitFor(page)
    }
}
