//! sync(2) and syncfs(2): a task waits until all files are on their device that differed from it when it asked. [machine 5.7]
//!
//! ```text
//!   sync(2) ─► all flushers are woken ─► for one file system after the other:
//!                 an order to each wb that has dirty files ─► its worker: file by file, all that is dirty now, and waits for it
//!                 then what was being written before, of files that are clean by now
//! ```
//! The task writes nothing itself. Its order precedes the flushers' own work. A flusher takes one file after the other, writes all pages
//! that are dirty when the file's turn begins, including those under writeback, and waits until the device has them. Pages that become
//! dirty in the meantime are left to others, so that a writer can't delay the order forever.
//!
//! sync(2) reports no errors. syncfs(2) is for one file system, and reports writes that have failed there once to each open file.
//!
//! The source leaves open what follows. File systems have their turns in the order of their devices. A wb without dirty files gets no order.
//! While an order is in progress no file there goes over to another group, whose worker may have carried out its order already. On a machine
//! that has started no flushers the task does their work.

use std::collections::VecDeque;

use crate::core::Core;
use crate::memory::errors::IoError;
use crate::memory::file::Inode;
use crate::state::State;
use crate::story::WritebackTracepoint;
use crate::units::{BdiId, FileId, OpenFileId, Pfn, TaskId, WbId};
use crate::writeback::WritebackReason;

/// A call in progress.
pub(crate) struct SyncCall {
    /// Devices whose file systems are still to be written, starting with the current one.
    left: VecDeque<BdiId>,
    stage: Stage,
    /// The open file whose task asks, if errors are reported to that task.
    open: Option<OpenFileId>,
}

enum Stage {
    Ask,
    /// Orders that are not carried out yet: to which wb, and its number there.
    Ordered(Vec<(WbId, u64)>),
    /// Files that have pages under writeback, and the page of the last of them from which on they are waited for.
    Written(Vec<FileId>, u64),
}

/// The outcome of one step of sync(2) or syncfs(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SyncStep {
    Again,
    /// Go on when the write of this folio has ended.
    WaitFor(Pfn),
    /// Go on when a flusher has carried out an order.
    WaitForFlusher,
    /// The devices have all; or one has failed to write some of it since this was last asked.
    Done(Result<(), IoError>),
}

/// Orders to write all that a wb has, and who waits for them.
#[derive(Default, Debug)]
pub(super) struct Orders {
    given: u64,
    done: u64,
    waiting: Vec<TaskId>,
}

impl SyncCall {
    fn new(left: impl Iterator<Item = BdiId>, open: Option<OpenFileId>) -> SyncCall {
        SyncCall { left: left.collect(), stage: Stage::Ask, open }
    }
}

impl Core {
    /// Begins a sync(2).
    pub(crate) fn sync(&mut self) -> SyncCall {
        self.wakeup_flusher_threads(WritebackReason::Sync);
        SyncCall::new((0..self.writeback.bdis()).map(|bdi| BdiId(bdi as u16)), None)
    }

    #[doc(alias = "sync_inodes_sb")]
    pub(crate) fn sync_step(&mut self, call: &mut SyncCall, task: TaskId) -> SyncStep {
        while let Some(&bdi) = call.left.front() {
            call.stage = match &mut call.stage {
                Stage::Ask => Stage::Ordered(self.order_sync(bdi)),
                Stage::Ordered(orders) => {
                    orders.retain(|&(wb, order)| self.writeback.wb(wb).worker.orders.done < order);
                    if let Some(&(wb, _)) = orders.first() {
                        return self.wait_for_order(wb, task);
                    }
                    Stage::Written(self.mm.files_under_writeback(bdi), 0)
                }
                Stage::Written(files, from) => {
                    if let Some(pfn) = self.next_to_wait_for(files, from) {
                        return SyncStep::WaitFor(pfn);
                    }
                    self.writeback.bdis[bdi.index()].syncs -= 1;
                    call.left.pop_front();
                    Stage::Ask
                }
            };
        }
        SyncStep::Done(call.open.map_or(Ok(()), |open| {
            let of = &mut self.mm.memory.open_files[open.index()];
            let bdi = self.mm.memory.files[of.file.index()].inode.bdi;
            self.mm.memory.fs_errors[bdi.index()].tell(&mut of.fs_errors_known)
        }))
    }

    /// Gives an order to each wb of a device that has something to write.
    fn order_sync(&mut self, bdi: BdiId) -> Vec<(WbId, u64)> {
        let of = &mut self.writeback.bdis[bdi.index()];
        of.syncs += 1;
        let mut wbs = of.wbs.clone();
        wbs.retain(|&wb| self.writeback.wb(wb).has_dirty_files());
        let mut orders = Vec::new();
        for wb in wbs {
            let of = &mut self.writeback.wb_mut(wb).worker.orders;
            of.given += 1;
            orders.push((wb, of.given));
            self.ask_for_sync(wb);
        }
        orders
    }

    fn wait_for_order(&mut self, wb: WbId, task: TaskId) -> SyncStep {
        let of = &mut self.writeback.wbs[wb.index()];
        if self.writeback.bdis[of.bdi.index()].flusher.is_some() {
            let waiting = &mut of.worker.orders.waiting;
            // A signal may have called it back from there.
            if !waiting.contains(&task) {
                waiting.push(task);
            }
            return SyncStep::WaitForFlusher;
        }
        match self.worker_step(wb) {
            false if let Some((file, page)) = self.writeback.wb(wb).worker.waits_for => {
                SyncStep::WaitFor(self.mm.memory.cached_folio(file, page))
            }
            _ => SyncStep::Again,
        }
    }

    /// A flusher has carried out the oldest order that it had for a wb.
    pub(super) fn sync_is_done(&mut self, wb: WbId) {
        let of = &mut self.writeback.wb_mut(wb).worker.orders;
        of.done += 1;
        assert!(of.done <= of.given, "{} orders are carried out of {}", of.done, of.given);
        for task in std::mem::take(&mut of.waiting) {
            self.wake(task);
        }
    }

    /// The next page to wait for, of the last of some files from one page on. Files without such pages are
    /// removed.
    fn next_to_wait_for(&mut self, files: &mut Vec<FileId>, from: &mut u64) -> Option<Pfn> {
        mutant!(self, SyncForgetsWriteback => return None);
        while let Some(&file) = files.last() {
            if let Some(page) = self.mm.memory.file(file).inode.writeback.next(*from) {
                *from = page;
                self.trace_wait(file, page);
                return Some(self.mm.memory.cached_folio(file, page));
            }
            files.pop();
            *from = 0;
        }
        None
    }

    /// A task is about to wait for the write of a page.
    pub(super) fn trace_wait(&mut self, file: FileId, page: u64) {
        let node = self.mm.memory.folios[self.mm.memory.cached_folio(file, page)].node;
        self.trace(node, |core| WritebackTracepoint::WaitWriteback {
            folio: core.mm.traced_page(file, page),
        });
    }
}

impl State {
    /// Begins a syncfs(2) of the file system that an open file lives on.
    pub(crate) fn syncfs(&mut self, file: FileId, open: OpenFileId) -> SyncCall {
        SyncCall::new(std::iter::once(self.memory.file(file).inode.bdi), Some(open))
    }

    fn files_under_writeback(&self, bdi: BdiId) -> Vec<FileId> {
        let files = (0..).map(FileId).zip(&self.memory.files);
        let is_written = |inode: &Inode| inode.bdi == bdi && !inode.writeback.is_empty();
        files.filter(|(_, file)| is_written(&file.inode)).map(|(id, _)| id).collect()
    }
}
