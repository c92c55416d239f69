//! Inode state (`I_DIRTY_SYNC`, `I_DIRTY_PAGES`, `I_SYNC`): whether an inode's times and pages differ from the device, for tracepoints.
//! [machine 9.5]
//!
//! ```text
//!   a write begins  ─► its times change, once a tick: times ──┐
//!   a page is dirty ─────────────────────────────────► pages ─┴─► a flusher's turn: its pages are written, then the inode itself
//! ```
//! The times of a file have the resolution of a tick, so only a tick's first write changes them. Then the writer may have to wait for what is
//! dirty. Then its page is dirty. That explains both orders of the two events that recordings show: the next write changes the times right
//! after a page, and dirties its own page after the wait.
//!
//! Only tracepoints show times. The journal writes them, and it is not modelled: a file with nothing else to write is on no list. A write that
//! finds its page dirty is a hit, and changes no time here.

use crate::core::Core;
use crate::memory::file::InodeList;
use crate::state::State;
use crate::story::{InodeMark, InodeState, ListedInode, WritebackTracepoint};
use crate::units::{FileId, NodeId, WbId};
use std::collections::VecDeque;

impl Core {
    /// A write to a file begins.
    pub(crate) fn file_update_time(&mut self, file: FileId) {
        let (tick, now) = (self.ticks(), self.by.now);
        let inode = &mut self.mm.memory.file_mut(file).inode;
        if inode.times_of == Some(tick) {
            return;
        }
        inode.times_of = Some(tick);
        let was_clean = inode.is_clean();
        if was_clean {
            inode.dirtied_when = now;
        }
        let mark = |core: &Core| core.mm.inode_mark(file, InodeState::TIMES);
        self.trace(NodeId(0), |core| WritebackTracepoint::MarkInodeDirty { inode: mark(core) });
        self.trace(NodeId(0), |core| WritebackTracepoint::DirtyInodeStart { inode: mark(core) });
        self.trace(NodeId(0), |core| WritebackTracepoint::DirtyInode { inode: mark(core) });
        self.mm.memory.file_mut(file).inode.has_dirty_times = true;
        self.trace_enqueue(file, was_clean);
    }

    /// A page of a file has become dirty.
    pub(super) fn mark_inode_pages(&mut self, file: FileId) {
        self.trace(NodeId(0), |core| WritebackTracepoint::MarkInodeDirty {
            inode: core.mm.inode_mark(file, InodeState::PAGES),
        });
        let inode = &mut self.mm.memory.file_mut(file).inode;
        let was_clean = inode.is_clean();
        inode.has_dirty_pages = true;
        self.trace_enqueue(file, was_clean);
    }

    /// A flusher has begun to write what its turn may take of a file's pages: the inode itself is next.
    pub(super) fn write_inode(&mut self, wb: WbId, file: FileId, is_sync: bool) {
        let inode = &mut self.mm.memory.file_mut(file).inode;
        inode.has_dirty_pages = !inode.dirty.is_empty();
        if std::mem::take(&mut inode.has_dirty_times) {
            let wb = self.traced_wb(wb);
            self.trace(NodeId(0), |_| WritebackTracepoint::WriteInodeStart { wb, file, is_sync });
            self.trace(NodeId(0), |_| WritebackTracepoint::WriteInode { wb, file, is_sync });
        }
    }

    /// A file without pages is deleted: no flusher has to come by for it. One that is in the middle of its turn finds it clean.
    pub(crate) fn evict_inode(&mut self, file: FileId) {
        let inode = &mut self.mm.memory.file_mut(file).inode;
        assert!(inode.dirty.is_empty(), "a file is deleted that has dirty pages");
        assert!(inode.writeback.is_empty(), "a file is deleted while pages of it are being written");
        inode.rest = Default::default();
        if matches!(inode.on, InodeList::None | InodeList::Sync) {
            return;
        }
        self.assert_inode_listed(file);
        let inode = &mut self.mm.memory.file_mut(file).inode;
        inode.on = InodeList::None;
        (inode.has_dirty_times, inode.has_dirty_pages, inode.times_of) = (false, false, None);
        if let Some(wb) = inode.wb.take() {
            let of = self.writeback.wb_mut(wb);
            let files = |of: &crate::writeback::Wb| of.b_dirty.len() + of.b_io.len() + of.b_more_io.len();
            let before = files(of);
            for list in [&mut of.b_dirty, &mut of.b_io, &mut of.b_more_io] {
                list.retain(|&listed| listed != file);
            }
            assert_eq!(before - files(of), 1, "places of a deleted file with its flusher");
        }
    }

    /// A file stands somewhere else with its flusher: it is on the list that it says, and on no other.
    #[track_caller]
    pub(super) fn assert_inode_listed(&self, file: FileId) {
        if cfg!(debug_assertions) {
            let inode = &self.mm.memory.file(file).inode;
            let Some(wb) = inode.wb else { return };
            let of = self.writeback.wb(wb);
            let places = |list: &VecDeque<FileId>| list.iter().filter(|&&listed| listed == file).count();
            let listed = [&of.b_dirty, &of.b_io, &of.b_more_io].map(places);
            let expected = match inode.on {
                InodeList::None | InodeList::Sync => [0, 0, 0],
                InodeList::Dirty => [1, 0, 0],
                InodeList::Io => [0, 1, 0],
                InodeList::MoreIo => [0, 0, 1],
            };
            assert_eq!(
                listed, expected,
                "places of a file on b_dirty, b_io and b_more_io, which says {:?}",
                inode.on
            );
        }
    }

    fn trace_enqueue(&mut self, file: FileId, was_clean: bool) {
        if was_clean {
            self.trace(NodeId(0), |core| WritebackTracepoint::DirtyInodeEnqueue {
                inode: core.mm.listed_inode(file),
            });
        }
    }
}

impl State {
    fn inode_mark(&self, file: FileId, flags: InodeState) -> InodeMark {
        InodeMark { bdi: self.memory.file(file).inode.bdi, file, state: self.inode_state(file), flags }
    }

    /// A file, as those see it who put it on a list.
    pub(super) fn listed_inode(&self, file: FileId) -> ListedInode {
        let inode = &self.memory.file(file).inode;
        let (bdi, dirtied_when) = (inode.bdi, self.ticks_of(inode.dirtied_when));
        ListedInode { bdi, file, state: self.inode_state(file), dirtied_when }
    }

    pub(super) fn inode_state(&self, file: FileId) -> InodeState {
        let inode = &self.memory.file(file).inode;
        let is_written = inode.on == InodeList::Sync;
        InodeState { times: inode.has_dirty_times, pages: inode.has_dirty_pages, is_written }
    }
}
