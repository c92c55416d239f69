//! Writes of a task to regular files. The task may have to sleep before it dirties a page (`balance_dirty_pages`). It may wait until the
//! device has the data that it wrote (fsync), or that any task wrote (sync, syncfs). [machine 5.1, 5.4, 5.7]

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::access::huge::huge_gfp;
use crate::access::miss::{Pause, Source, Stop};
use crate::access::task::{Current, Stage};
use crate::config::ConfigError;
use crate::machine::step::{AccessError, DelayReason, IoWait, Served, Step, Wait};
use crate::memory::Memory;
use crate::memory::folio::{FolioFlags, HUGE_PAGE_ORDER, HUGE_PAGE_PAGES};
use crate::memory::mm::{Backing, HugeAdvice};
use crate::mthp::MthpStat;
use crate::page_alloc::request::Gfp;
use crate::units::{FileId, ObjectId, OpenFileId, PAGE_SIZE, Pfn, TaskId};
use crate::writeback::{Fsync, FsyncStep, SyncCall, SyncStep, ThrottleStep};
use pageout_rules::folio::{TmpfsHuge, TmpfsOrders, WriteOrder};
use std::ops::Range;

impl Engine {
    /// fsync(2) of an open or mapped file. A tmpfs file has no device, so the call is done immediately.
    ///
    /// The task must not be in the middle of an access.
    pub fn fsync(&mut self, task: TaskId, object: ObjectId) -> Result<Step, ConfigError> {
        self.enter(task);
        Ok(match self.opened_regular_file(task, object)? {
            Some((file, open)) => self.current(task).fsync_on(Box::new(Fsync::new(file, open))),
            None => Step::Done(Served::Synced(Ok(()))),
        })
    }

    /// Ends an fsync(2) that has not come to its end: the machine can't begin the write that the task waits for, and the caller must not
    /// wait. The task is idle afterwards, and the end of that write does not wake it. Writes that the call has begun continue, and the
    /// call has reported no error. Returns false, and does nothing, if the task is in no fsync.
    pub fn give_up_fsync(&mut self, task: TaskId) -> bool {
        let of = &mut self.tasks[task.index()];
        if !matches!(of.stage, Stage::Fsync(_)) {
            return false;
        }
        of.stage = Stage::Idle;
        self.core.stop_waiting_for_io(task);
        // It may have been named already, and the machine not have asked.
        self.core.out.woken.retain(|&woken| woken != task);
        true
    }
}

impl Engine {
    /// sync(2): the task waits until the devices have all files that differ from them now. A failed write is reported to a later fsync or
    /// syncfs.
    ///
    /// The task must not be in the middle of an access.
    pub fn sync(&mut self, task: TaskId) -> Step {
        self.enter(task).assert_idle();
        let call = self.core.sync();
        self.current(task).sync_on(Box::new(call))
    }

    /// syncfs(2): the same for the file system of an open or mapped file. It ends with an error if a write of any of its files has failed
    /// since the last error reported to the open file. tmpfs has no device, so the call is done immediately.
    ///
    /// The task must not be in the middle of an access.
    pub fn syncfs(&mut self, task: TaskId, object: ObjectId) -> Result<Step, ConfigError> {
        self.enter(task).assert_idle();
        Ok(match self.opened_regular_file(task, object)? {
            Some((file, open)) => {
                let call = self.core.mm.syncfs(file, open);
                self.current(task).sync_on(Box::new(call))
            }
            None => Step::Done(Served::Synced(Ok(()))),
        })
    }

    /// Promises that the host writes the pages of one write(2) one after the other, as far as [`crate::Access::wanted`] says that the call goes on. No
    /// other access may see them before. Then a write may create a large folio, of which later accesses of the call fill the rest. A host that
    /// holds bytes and lets tasks take turns within a call must not promise it. Default: no.
    pub fn writes_whole_calls(&mut self) {
        self.core.mm.writes_whole_calls = true;
    }

    /// The next access that the task starts ([`Engine::start`]) waits for no dirty limit, and gets no [`AccessError::Writeback`], whatever
    /// the task has dirtied. The pages that it dirties count, so a later access waits for them. This is for a call that must not wait,
    /// such as truncation, which writes zeroes into the rest of the file's last page. It is valid for one access, even if that is a hit or
    /// fails. An access that is repeated has to be spared again.
    pub fn spare_next_throttle(&mut self, task: TaskId) {
        self.tasks[task.index()].dirty.is_spared = true;
    }

    /// The regular file behind an object of a task, and what it is open as.
    pub(crate) fn opened_regular_file(
        &self,
        task: TaskId,
        object: ObjectId,
    ) -> Result<Option<(FileId, OpenFileId)>, ConfigError> {
        let Some(of) = self.open_object(task, object) else {
            return Err(ConfigError::Unknown(format!("object {} of task {}", object.0, task.0)));
        };
        let open = match of {
            Object::File { open, .. } => Some(open),
            Object::Mapping { open, .. } => open,
        };
        Ok(of.regular_file(&self.core.mm.memory).zip(open))
    }
}

impl Current<'_> {
    /// A write changes its file's times. A task that has dirtied some pages of files may be throttled before its next write, unless this
    /// access is spared ([`Engine::spare_next_throttle`]).
    #[cold]
    pub(super) fn begin_write(&mut self, is_spared: bool) {
        let Some(file) = self.written_file() else { return };
        self.core.file_update_time(file);
        let of = &mut *self.task;
        of.attempt.progress.was_there = matches!(of.accessed(), Object::File { .. })
            && self.core.mm.memory.file(file).index.word(of.attempt.page).is_plain();
        of.attempt.progress.is_throttled = !is_spared && self.core.is_look_due(&mut of.dirty, file, of.cpu);
    }

    /// What the page of an access that writes is asked for with. A page of a file that write(2) brings in will be dirty; one that a store
    /// faults in is asked for as if it were only read.
    #[cold]
    pub(super) fn gfp_to_write(&self) -> Gfp {
        match self.task.accessed() {
            Object::File { is_tmpfs: false, .. } => Gfp::KERNEL | Gfp::WRITE,
            _ => Gfp::KERNEL,
        }
    }

    /// Returns true if an absent page may come as part of a large folio that has nothing to be read but what a write leaves out.
    #[inline]
    pub(super) fn may_create_large(&self, source: Source) -> bool {
        let attempt = &self.task.attempt;
        attempt.progress.write_order != Some(0)
            && match source {
                Source::File(file, _) | Source::Overwritten(file, _) => {
                    attempt.write && self.core.mm.max_folio_order(file) > 0
                }
                Source::NewTmpfs(file, _) => self.core.mm.memory.file(file).huge() != TmpfsHuge::Never,
                Source::NewAnon | Source::Swap(_) => false,
            }
    }

    /// Brings in the page that an access lacks with others around it. The folio has the largest order that a write or tmpfs allows, and for which
    /// there is a block. [folios 1.5, 1.6, 2.6]
    #[doc(alias = "__filemap_get_folio")]
    #[doc(alias = "shmem_alloc_and_add_folio")]
    #[cold]
    pub(super) fn bring_in_large(&mut self, source: Source, gfp: Gfp) -> Result<(), Stop> {
        let (Source::File(file, page) | Source::Overwritten(file, page) | Source::NewTmpfs(file, page)) =
            source
        else {
            unreachable!("only pages of files are created in large folios here")
        };
        let is_tmpfs = matches!(source, Source::NewTmpfs(..));
        let orders =
            if is_tmpfs { self.tmpfs_orders(file, page) } else { 1..self.write_order(file, page) + 1 };
        let gfp = if is_tmpfs { self.tmpfs_gfp() } else { gfp | Gfp::NORETRY | Gfp::NOWARN };
        let first = self.task.attempt.progress.write_order.unwrap_or(u8::MAX);
        for order in orders.filter(|&order| order <= first).rev() {
            if self.core.mm.allowed_order(order) != order {
                continue;
            }
            self.task.attempt.progress.write_order = Some(order);
            let start = page >> order << order;
            let pages = start..start + (1 << order);
            let is_in_the_way = self.core.mm.is_any_known(file, pages.clone());
            if is_in_the_way && !self.task.attempt.is_reclaiming() {
                self.give_back();
                continue;
            }
            let memcg = self.memcg();
            match self.prepare_large(memcg, file, pages, gfp) {
                Ok(Some(pfn)) if !is_in_the_way => return self.fill_large(pfn, source),
                Ok(Some(_)) => self.give_back(),
                Err((Stop::NoRoom, is_charge)) => {
                    if is_tmpfs {
                        self.core.count_mthp(self.core.current_node(), order, MthpStat::ShmemFallback);
                    }
                    self.give_back();
                    // tmpfs tries smaller folios if there is no block. If the group is full, the page comes alone.
                    if is_tmpfs && is_charge {
                        break;
                    }
                }
                Ok(None) => return Ok(()),
                Err((stop, _)) => return Err(stop),
            }
        }
        self.task.attempt.progress.write_order = Some(0);
        Ok(())
    }

    /// The orders of the folios in which tmpfs may create a page.
    #[doc(alias = "shmem_allowable_huge_orders")]
    fn tmpfs_orders(&self, file: FileId, page: u64) -> Range<u8> {
        const HUGE: Range<u8> = HUGE_PAGE_ORDER..HUGE_PAGE_ORDER + 1;
        let of = self.core.mm.memory.file(file);
        // What a fault or a write may reach: nothing lies beyond the end of a mapping, or of what the file will be.
        let (end, is_advised, is_fault) = match *self.task.accessed() {
            Object::Mapping { mm, vma, start, .. } => {
                let vma = &self.core.mm.memory.mm(mm).vmas[vma];
                let huge = page >> HUGE_PAGE_ORDER << HUGE_PAGE_ORDER;
                let (all, advice) = vma.huge_at(start + page);
                if start + huge < all.start || start + huge + HUGE_PAGE_PAGES > all.end {
                    return 0..0;
                }
                (of.pages(), advice == HugeAdvice::Hugepage, true)
            }
            Object::File { .. } => (of.pages().max(page + self.task.attempt.pages_wanted()), false, false),
        };
        let is_within = |order: u8| (page >> order << order) + (1 << order) <= end;
        let most = match of.huge() {
            TmpfsHuge::Never => return 0..0,
            TmpfsHuge::Advise if !is_advised => return 0..0,
            TmpfsHuge::Always | TmpfsHuge::Advise => HUGE_PAGE_ORDER,
            TmpfsHuge::WithinSize if is_advised => HUGE_PAGE_ORDER,
            TmpfsHuge::WithinSize => {
                (1..HUGE_PAGE_ORDER + 1).rev().find(|&order| is_within(order)).unwrap_or(0)
            }
        };
        let orders = match self.core.mm.config.policy.machine.tmpfs_orders {
            _ if is_fault => HUGE,
            TmpfsOrders::Huge => HUGE,
            TmpfsOrders::Length => {
                let length = self.task.attempt.pages_wanted().max(1).ilog2() as u8;
                let aligned = if page == 0 { u8::MAX } else { page.trailing_zeros() as u8 };
                1..length.min(aligned).min(HUGE_PAGE_ORDER) + 1
            }
            TmpfsOrders::Highest => 1..HUGE_PAGE_ORDER + 1,
        };
        orders.start..orders.end.min(most + 1)
    }

    /// How much work a large folio of tmpfs is worth.
    pub(super) fn tmpfs_gfp(&self) -> Gfp {
        let is_advised = match *self.task.accessed() {
            Object::Mapping { mm, vma, start, .. } => {
                let vma = &self.core.mm.memory.mm(mm).vmas[vma];
                vma.huge_at(start + self.task.attempt.page).1 == HugeAdvice::Hugepage
            }
            Object::File { .. } => false,
        };
        huge_gfp(self.core.mm.config.hugepage_defrag, is_advised)
    }

    /// The order of the folio in which a write creates a page.
    fn write_order(&self, file: FileId, page: u64) -> u8 {
        let is_by_length = self.core.mm.config.policy.machine.write_order == WriteOrder::Length
            && self.core.mm.writes_whole_calls
            && matches!(self.task.accessed(), Object::File { is_tmpfs: false, .. });
        let attempt = &self.task.attempt;
        let (offset, largest) = (u64::from(attempt.offset), PAGE_SIZE << self.core.mm.max_folio_order(file));
        let rest = u64::from(attempt.wanted).saturating_sub(offset);
        // A piece of a call ends where a folio of the largest size would.
        let pages = rest.min(largest - (page * PAGE_SIZE + offset) % largest) / PAGE_SIZE;
        if !is_by_length || pages < 2 {
            return 0;
        }
        let order = self.core.mm.max_folio_order(file).min(pages.ilog2() as u8);
        if page == 0 { order } else { order.min(page.trailing_zeros() as u8) }
    }

    /// Fills a large folio that an access creates. If the write leaves out a part of its first page, that one is read.
    fn fill_large(&mut self, pfn: Pfn, source: Source) -> Result<(), Stop> {
        self.task.attempt.frame = None;
        let charged = self.task.attempt.charged;
        if self.core.is_telling() {
            self.tell_filled(pfn, source, charged);
        }
        self.hold_for(pfn);
        let added_for = self.added_for();
        if let Source::NewTmpfs(file, page) = source {
            self.fill_tmpfs(pfn, file, page, added_for);
            return Ok(());
        }
        let (Source::File(file, page) | Source::Overwritten(file, page)) = source else {
            unreachable!("only pages of files are created in large folios here")
        };
        if let Source::Overwritten(..) = source {
            self.core.page_cache_add_for_write(pfn, file, page);
            self.core.lru_add(pfn, added_for);
            self.task.attempt.progress.created = true;
            return Ok(());
        }
        self.core.mm.memory.folios[pfn].set(FolioFlags::LOCKED);
        self.core.page_cache_add_for_write(pfn, file, page);
        self.core.lru_add(pfn, added_for);
        self.core.start_read_first_page(pfn, self.id);
        self.task.attempt.progress.started_read = true;
        self.task.attempt.will_retry();
        Err(Stop::Pause(Pause::Io(IoWait::FileRead)))
    }

    /// The access writes to a page of a regular file.
    #[cold]
    pub(super) fn dirty(&mut self, pfn: Pfn) {
        if self.core.folio_mark_dirty(pfn) {
            let task = &mut *self.task;
            self.core.note_dirtied(&mut task.dirty, task.cpu);
        }
    }

    /// Looks whether a task that is about to dirty another page of a file has dirtied too many; what it has to wait for.
    pub(super) fn throttle(&mut self) -> Option<Step> {
        let memcg = self.memcg();
        let file = self.written_file()?;
        let of = &mut *self.task;
        let step = self.core.throttle_step(&mut of.dirty, file, memcg);
        of.attempt.progress.is_throttled = step != ThrottleStep::Leave;
        match step {
            ThrottleStep::Leave => None,
            ThrottleStep::Sleep(span) => {
                of.suspend_access();
                Some(Step::Wait(Wait::Delay(span, DelayReason::DirtyPages)))
            }
            ThrottleStep::Fail => {
                self.abandon_access();
                Some(Step::Done(Served::Failed(AccessError::Writeback)))
            }
        }
    }

    /// Returns the regular file of the access in progress.
    fn written_file(&self) -> Option<FileId> {
        self.task.accessed().regular_file(&self.core.mm.memory)
    }

    pub(super) fn fsync_on(&mut self, mut call: Box<Fsync>) -> Step {
        let step = match self.core.fsync_step(&mut call) {
            FsyncStep::Done(result) => return Step::Done(Served::Synced(result)),
            FsyncStep::Again => Step::Again,
            FsyncStep::WaitFor(pfn) => Step::Wait(Wait::Io(self.core.wait_for_folio(pfn, self.id))),
        };
        self.task.stage = Stage::Fsync(call);
        step
    }
}

impl Current<'_> {
    pub(super) fn sync_on(&mut self, mut call: Box<SyncCall>) -> Step {
        let step = self.core.sync_step(&mut call, self.id);
        if let SyncStep::Done(result) = step {
            return Step::Done(Served::Synced(result));
        }
        self.task.stage = Stage::Sync(call);
        match step {
            SyncStep::WaitFor(pfn) => Step::Wait(Wait::Io(self.core.wait_for_folio(pfn, self.id))),
            SyncStep::WaitForFlusher => self.wait(Wait::Woken),
            SyncStep::Again | SyncStep::Done(_) => Step::Again,
        }
    }
}

impl Object {
    /// The regular file behind it.
    fn regular_file(self, memory: &Memory) -> Option<FileId> {
        match self {
            Object::File { file, is_tmpfs, .. } => (!is_tmpfs).then_some(file),
            Object::Mapping { mm, vma, is_regular_file, .. } => match memory.mm(mm).vmas[vma].backing {
                Backing::File(file) if is_regular_file => Some(file),
                _ => None,
            },
        }
    }
}
