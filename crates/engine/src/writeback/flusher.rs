//! The flusher: the thread of a device that writes its dirty pages. [6.12 machine 5.7]
//!
//! ```text
//!   woken ─► cycle: what others asked for ─► requests of reclaim ─► periodic, if due ─► background, if over ──────┐
//!              ▲                                                                                                  │
//!              └──────────────────────────── something was written ◄──────────────────────────────────────────────┤
//!                                                                                    nothing: sleep ◄────────────┘
//!   work: passes over b_io, 100 ms each        b_dirty ── old enough ──► b_io ──► chunk ──► clean: off the lists
//!   file: a chunk of its pages, in index order,  ▲                        ▲         ├── chunk used up ──► b_more_io ─┐
//!         from where the last chunk ended        └──── dirty again ───────│─────────┘                                │
//!                                                                         └──────────────────────────────────────────┘
//! ```
//! Pages are written in the order of their index and not in that in which they were dirtied: neighbours become one request, and
//! that is what makes writing later cheap. Chunks keep one large file from holding up all others. The thread does not wait for
//! what it has started. It goes on until the device takes no more requests, which makes it sleep in the machine. Work for who waits is
//! the exception (`sync.rs`): it writes a file as a whole, and its wb has nothing else done until the device has that.
//!
//! Background work is there to get below the threshold and stops there. Periodic work bounds what a crash costs: pages are
//! written half a minute after they were dirtied. Whatever works on behalf of someone goes first.
//!
//! Reclaim asks for all that is dirty, so one request is enough. In 2010 it asked for so many pages, and requests waited in a queue.
//!
//! A step of the thread is one plug of writes, so that others may run, and transfers may end, in between.

use std::collections::VecDeque;

use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::machine::step::{DelayReason, Wait};
use crate::memory::errors::WriteErrors;
use crate::memory::file::InodeList;
use crate::memory::folio::FolioFlags;
use crate::memory::table::Entry;
use crate::story::{TracedInode, TracedWork, Tracepoint};
use crate::units::{BdiId, FileId, MemcgId, Nanos, NodeId, TaskId, WbId};
use crate::writeback::rules::{FlusherChunk, FlusherRequests};
use crate::writeback::sync::{NextOfFile, Orders, WholeFile};
use crate::writeback::votes::Votes;
use crate::writeback::{Wb, WritebackReason};

/// The thread of a device.
pub(super) struct Flusher {
    name: String,
    bdi: BdiId,
    /// The wb whose turn it is.
    turn: usize,
}

/// What the thread is doing for a wb.
#[derive(Default, Debug)]
pub(super) struct Worker {
    /// It has been woken, and goes through the kinds of work from this one on.
    stage: Option<Stage>,
    /// Something was written since the cycle began.
    has_written: bool,
    /// Pages that it has begun to write since it was woken.
    written: u64,
    /// Pieces of work that someone has asked for, in the order in which they came.
    asked: VecDeque<Asked>,
    /// Requests to write everything, or so many pages, each with its reason, in the order in which they came.
    requests: VecDeque<(WritebackReason, u64)>,
    work: Option<Work>,
    /// Who waits for such work, and the page whose write it waits for itself.
    pub(super) orders: Orders,
    pub(super) waits_for: Option<(FileId, u64)>,
    /// When periodic work ran last, or its wb came to be, and when to look for some again.
    last_periodic: Nanos,
    timer: Option<Nanos>,
}

impl Worker {
    /// Of a wb that comes to be.
    pub(super) fn new(now: Nanos) -> Worker {
        Worker { last_periodic: now, ..Worker::default() }
    }

    /// A file is in the middle of being written.
    pub(super) fn holds_a_file(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.chunk.is_some())
    }

    /// The file whose pages are being written now.
    pub(super) fn file(&self) -> Option<FileId> {
        self.work.as_ref()?.chunk.as_ref().map(|chunk| chunk.file)
    }

    fn is_at_work(&self) -> bool {
        self.stage.is_some()
    }

    /// Begins a cycle, unless it is in one, which comes by all kinds of work again while there is some.
    fn begin(&mut self) -> bool {
        let begins = !self.is_at_work();
        if begins {
            self.stage = Some(Stage::FIRST);
            self.has_written = false;
        }
        begins
    }

    /// Someone waits for a piece of work that it has not begun.
    fn is_asked(&self) -> bool {
        !self.asked.is_empty() || !self.requests.is_empty()
    }
}

/// A piece of work that someone has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// All that the wb has, for another group.
    Foreign,
    /// The same, for who waits until the device has it.
    Sync,
}

/// The kinds of work, in the order in which a cycle comes by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// What others have asked for.
    Asked,
    Requests,
    Periodic,
    Background,
    End,
}

impl Stage {
    const FIRST: Stage = Stage::Asked;
}

/// One piece of work.
#[derive(Debug)]
struct Work {
    reason: WritebackReason,
    /// Each file is written as a whole, and waited for (`WB_SYNC_ALL`).
    is_sync: bool,
    /// Pages that it may still write.
    budget: u64,
    begun: Nanos,
    pass: Option<Pass>,
    chunk: Option<Chunk>,
}

/// A pass over the files of b_io.
#[derive(Debug)]
struct Pass {
    begun: Nanos,
    written: u64,
    /// Files that it has come to the end of.
    done: u64,
}

/// A file that is being written.
#[derive(Debug)]
struct Chunk {
    file: FileId,
    /// Pages that may be written of it, and those of them that are left.
    pages: u64,
    left: u64,
    cursor: u64,
    /// The index at which it began, once it has come by the end of the file.
    wrapped: Option<u64>,
    begun_at: u64,
    votes: Votes,
    /// It is written as a whole, and waited for.
    whole: Option<WholeFile>,
}

/// What a step of a piece of work came to.
enum WorkStep {
    /// So many pages are being written that were not.
    Begun(u64),
    /// Nothing can be done until a write has ended.
    Waits,
    Over,
}

/// What a step of a file's turn came to.
enum TurnStep {
    PlugFull,
    Waits,
    Over,
}

/// Pages of one file written in a row at least.
const CHUNK_PAGES: u64 = 1024;
/// How long a pass lasts before the work is looked at again.
const PASS: Nanos = Nanos(100_000_000);
/// A budget that is never used up: a long's largest, from which a tracepoint counts down.
const ENDLESS: u64 = i64::MAX as u64;
/// Pages that one step starts to write at most, as many as the block layer puts into one transfer.
const PLUG_PAGES: u64 = 256;

impl KernelThread for Flusher {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn started(&mut self, core: &mut Core, task: TaskId) {
        core.writeback.bdis[self.bdi.index()].flusher = Some(task);
    }

    fn step(&mut self, core: &mut Core, _woken: bool) -> ThreadStep {
        let wbs = core.writeback.bdis[self.bdi.index()].wbs.len();
        for _ in 0..wbs {
            let wb = core.writeback.bdis[self.bdi.index()].wbs[self.turn % wbs];
            self.turn = (self.turn + 1) % wbs;
            core.begin_cycle_if_due(wb);
            if core.worker_step(wb) {
                return ThreadStep::Again;
            }
        }
        let timers = core.writeback.bdis[self.bdi.index()].wbs.iter();
        let next = timers.filter_map(|&wb| core.writeback.wb(wb).worker.timer).min();
        ThreadStep::Wait(match next {
            Some(at) => Wait::WokenOr(Nanos(at.0.saturating_sub(core.now.0)), DelayReason::Nap),
            None => Wait::Woken,
        })
    }
}

impl Core {
    /// Makes a device known to which files are written back, with its thread.
    pub(crate) fn bdi_register(&mut self, name: &str) -> BdiId {
        let bdi = self.writeback.add_bdi();
        self.memory.fs_errors.push(WriteErrors::default());
        self.threads_to_start.push(Box::new(Flusher { name: format!("flush-{name}"), bdi, turn: 0 }));
        bdi
    }

    /// A clean wb has got a dirty file: somebody shall look when periodic work may be due.
    pub(super) fn arm_periodic(&mut self, wb: WbId) {
        if let Some(interval) = self.periodic_interval() {
            self.writeback.wb_mut(wb).worker.timer = Some(self.now + interval);
            // It counts the time from now on.
            self.wake_flusher(wb);
        }
    }

    /// Has a wb written in the background as far as it is over the threshold.
    pub(super) fn start_background(&mut self, wb: WbId) {
        let worker = &mut self.writeback.wb_mut(wb).worker;
        if worker.begin() {
            self.trace(NodeId(0), |core| Tracepoint::WakeBackground { wb: core.traced_wb(wb) });
            self.wake_flusher(wb);
        }
    }

    /// Has everything written that is dirty now, on all devices.
    pub(crate) fn wakeup_flusher_threads(&mut self, reason: WritebackReason) {
        self.wakeup_flusher_threads_for(reason, u64::MAX);
    }

    /// Has so many pages written on each device, if that many are dirty: what reclaim asked for in 2010.
    pub(crate) fn wakeup_flusher_threads_for(&mut self, reason: WritebackReason, pages: u64) {
        self.writeback.wakeups += u64::from(reason == WritebackReason::Vmscan);
        let rule = self.memcgs[MemcgId::ROOT].policy.writeback.flusher_requests;
        for at in 0..self.writeback.wbs.len() {
            let wb = WbId(at as u32);
            if !self.writeback.wb(wb).has_dirty_files() {
                continue;
            }
            let worker = &mut self.writeback.wb_mut(wb).worker;
            if rule == FlusherRequests::One && !worker.requests.is_empty() {
                continue;
            }
            worker.requests.push_back((reason, pages));
            worker.begin();
            self.wake_flusher(wb);
        }
    }

    /// Has all of a wb's dirty pages written for someone who waits for that.
    pub(super) fn ask_for_sync(&mut self, wb: WbId) {
        let worker = &mut self.writeback.wb_mut(wb).worker;
        worker.begin();
        worker.asked.push_back(Asked::Sync);
        let work = Work::asked(Asked::Sync, ENDLESS, self.now);
        self.trace(NodeId(0), |core| Tracepoint::WritebackQueue { work: core.traced_work(wb, &work) });
        self.wake_flusher(wb);
    }

    /// Has all of a wb's dirty pages written for another group that has dirtied some of them.
    pub(super) fn ask_for_foreign_flush(&mut self, wb: WbId) {
        let worker = &mut self.writeback.wb_mut(wb).worker;
        worker.begin();
        if !worker.asked.contains(&Asked::Foreign) {
            worker.asked.push_back(Asked::Foreign);
            let work = Work::asked(Asked::Foreign, self.writeback.wb(wb).nr_dirty, self.now);
            self.trace(NodeId(0), |core| Tracepoint::WritebackQueue { work: core.traced_work(wb, &work) });
        }
        self.wake_flusher(wb);
    }

    /// Whether writes of file pages are to be expected although none is in flight.
    pub(crate) fn is_flushing(&self) -> bool {
        let is_at_work = |wb: &Wb| wb.nr_dirty > 0 && wb.worker.is_at_work();
        let has_thread = |wb: &Wb| self.writeback.bdis[wb.bdi.index()].flusher.is_some();
        self.writeback.wbs.iter().any(|wb| is_at_work(wb) && has_thread(wb))
    }

    fn wake_flusher(&mut self, wb: WbId) {
        let bdi = self.writeback.wb(wb).bdi;
        if let Some(task) = self.writeback.bdis[bdi.index()].flusher {
            self.wake(task);
        }
    }

    fn periodic_interval(&self) -> Option<Nanos> {
        let centisecs = u64::from(self.config.dirty_writeback_centisecs);
        (centisecs > 0).then_some(Nanos(centisecs * (Nanos::SECOND.0 / 100)))
    }

    fn begin_cycle_if_due(&mut self, wb: WbId) {
        let now = self.now;
        let worker = &mut self.writeback.wb_mut(wb).worker;
        if worker.timer.is_some_and(|timer| timer <= now) {
            worker.timer = None;
            worker.begin();
        }
    }

    /// Goes on with a wb until a plug of writes is full; false when there is nothing left to do, or to be done yet.
    pub(super) fn worker_step(&mut self, wb: WbId) -> bool {
        loop {
            let work = self.writeback.wb_mut(wb).worker.work.take();
            let Some(mut work) = work.or_else(|| self.next_work(wb)) else { return false };
            let step = self.work_step(wb, &mut work);
            self.update_bandwidth(wb, None);
            let worker = &mut self.writeback.wb_mut(wb).worker;
            match step {
                WorkStep::Begun(written) => {
                    worker.has_written |= written > 0;
                    worker.written += written;
                    worker.work = Some(work);
                    if written > 0 {
                        return true;
                    }
                }
                WorkStep::Waits => {
                    worker.work = Some(work);
                    return false;
                }
                WorkStep::Over if work.is_sync => self.sync_is_done(wb),
                WorkStep::Over => {}
            }
        }
    }

    /// The next piece of work of the cycle; at its end, whether there is another cycle.
    fn next_work(&mut self, wb: WbId) -> Option<Work> {
        loop {
            let now = self.now;
            let worker = &mut self.writeback.wb_mut(wb).worker;
            let stage = worker.stage?;
            let mut most = u64::MAX;
            let (next, reason) = match stage {
                Stage::Asked if let Some(asked) = worker.asked.pop_front() => {
                    return Some(self.begin_asked(wb, asked));
                }
                Stage::Asked => (Some(Stage::Requests), None),
                Stage::Requests => {
                    let request = worker.requests.pop_front();
                    most = request.map_or(most, |(_, pages)| pages);
                    let next = if worker.requests.is_empty() { Stage::Periodic } else { Stage::Requests };
                    (Some(next), request.map(|(reason, _)| reason))
                }
                Stage::Periodic => {
                    let is_due = self.periodic_is_due(wb);
                    (Some(Stage::Background), is_due.then_some(WritebackReason::Periodic))
                }
                Stage::Background => {
                    let is_over = self.writeback.wb(wb).has_dirty_files() && self.is_over_background(wb);
                    (Some(Stage::End), is_over.then_some(WritebackReason::Background))
                }
                Stage::End if std::mem::take(&mut worker.has_written) || worker.is_asked() => {
                    (Some(Stage::FIRST), None)
                }
                Stage::End => (None, None),
            };
            self.writeback.wb_mut(wb).worker.stage = next;
            if let Some(reason) = reason {
                // What is dirty now; in the background, as far as it takes.
                let budget = match reason {
                    WritebackReason::Background => ENDLESS,
                    _ => self.global_limits().nr_dirty.min(most),
                };
                return Some(Work::new(reason, budget, now));
            }
            if next.is_none() {
                self.go_to_sleep(wb);
                return None;
            }
        }
    }

    /// Takes up what someone has asked for.
    fn begin_asked(&mut self, wb: WbId, asked: Asked) -> Work {
        let budget = match asked {
            Asked::Foreign => self.writeback.wb(wb).nr_dirty,
            Asked::Sync => ENDLESS,
        };
        let work = Work::asked(asked, budget, self.now);
        self.trace(NodeId(0), |core| Tracepoint::WritebackExec { work: core.traced_work(wb, &work) });
        work
    }

    fn periodic_is_due(&mut self, wb: WbId) -> bool {
        let (now, interval) = (self.now, self.periodic_interval());
        let worker = &mut self.writeback.wb_mut(wb).worker;
        let is_due = interval.is_some_and(|interval| now >= worker.last_periodic + interval);
        if is_due {
            worker.last_periodic = now;
        }
        is_due
    }

    /// A cycle has found nothing to do.
    fn go_to_sleep(&mut self, wb: WbId) {
        let timer = self.periodic_interval().map(|interval| self.now + interval);
        let pages = std::mem::take(&mut self.writeback.wb_mut(wb).worker.written);
        self.trace(NodeId(0), |_| Tracepoint::PagesWritten { pages });
        let of = self.writeback.wb_mut(wb);
        of.worker.timer = timer.filter(|_| of.has_dirty_files());
        // Those who hoped for a write look for themselves.
        self.wake_write_waiters();
    }

    /// Goes on with a piece of work, to the end of a plug of writes or of a pass.
    fn work_step(&mut self, wb: WbId, work: &mut Work) -> WorkStep {
        if let Some(chunk) = &mut work.chunk {
            let before = chunk.left;
            let turn = match work.is_sync {
                false => self.write_chunk(chunk, work.reason),
                true => self.write_whole(wb, chunk, work.reason),
            };
            let written = before - chunk.left;
            work.budget = work.budget.saturating_sub(written);
            let is_over = matches!(turn, TurnStep::Over);
            // Who has come to the end of a whole file has made headway, even if others have dirtied it again.
            let is_done = is_over && (self.requeue(wb, chunk) || work.is_sync);
            if is_over && let Some(Chunk { file, votes, .. }) = work.chunk.take() {
                self.end_votes(file, &votes);
            }
            let pass = work.pass.as_mut().expect("a file is written within a pass");
            pass.written += written;
            pass.done += u64::from(is_done);
            return if matches!(turn, TurnStep::Waits) { WorkStep::Waits } else { WorkStep::Begun(written) };
        }
        let is_pass_over = work.pass.as_ref().is_none_or(|pass| {
            let is_spent = pass.written > 0 && work.budget == 0;
            is_spent || self.now.0 - pass.begun.0 >= PASS.0 || self.writeback.wb(wb).b_io.is_empty()
        });
        if is_pass_over && work.pass.is_some() {
            self.trace_written(wb, work);
        }
        if is_pass_over && !self.begin_flush(wb, work) {
            return WorkStep::Over;
        }
        let Some(file) = self.writeback.wb_mut(wb).b_io.pop_back() else { return WorkStep::Over };
        work.chunk = Some(self.begin_chunk(wb, file, work));
        WorkStep::Begun(0)
    }

    /// A task writes up to so many pages of a wb itself, files that have been dirty for longest first. Returns how many it has begun.
    pub(super) fn write_as_writer(&mut self, wb: WbId, pages: u64) -> u64 {
        let mut work = Work::new(WritebackReason::Writer, pages, self.now);
        let mut written = 0;
        while written < pages
            && let WorkStep::Begun(more) = self.work_step(wb, &mut work)
        {
            written += more;
        }
        if let Some(mut chunk) = work.chunk.take() {
            // The file goes on where it was left, before others are begun.
            chunk.left = 0;
            self.memory.file_mut(chunk.file).inode.writeback_index = chunk.cursor;
            self.requeue(wb, &chunk);
        }
        written
    }

    /// Looks whether the work goes on, and which files are next.
    fn begin_flush(&mut self, wb: WbId, work: &mut Work) -> bool {
        let has_moved = work.pass.take().is_none_or(|pass| pass.written + pass.done > 0);
        let is_needed = work.reason != WritebackReason::Background || self.is_over_background(wb);
        // Nobody waits for it, and someone does for what was asked for.
        let gives_way = matches!(work.reason, WritebackReason::Background | WritebackReason::Periodic)
            && !self.writeback.wb(wb).worker.asked.is_empty();
        if work.budget == 0 || !has_moved || !is_needed || gives_way {
            return false;
        }
        let expire = u64::from(self.config.dirty_expire_centisecs) * (Nanos::SECOND.0 / 100);
        let cutoff = match work.reason {
            WritebackReason::Periodic => self.now.0.checked_sub(expire).map(Nanos),
            WritebackReason::Background => Some(self.now),
            WritebackReason::Vmscan
            | WritebackReason::Sync
            | WritebackReason::Foreign
            | WritebackReason::Fsync
            | WritebackReason::Pageout
            | WritebackReason::Writer => Some(work.begun),
        };
        self.trace(NodeId(0), |core| Tracepoint::WritebackStart { work: core.traced_work(wb, work) });
        if self.writeback.wb(wb).b_io.is_empty() {
            self.queue_io(wb, cutoff);
            self.trace(NodeId(0), |core| core.traced_queue_io(wb, cutoff, work.reason));
        }
        work.pass = Some(Pass { begun: self.now, written: 0, done: 0 });
        let has_files = !self.writeback.wb(wb).b_io.is_empty();
        if !has_files {
            self.trace_written(wb, work);
        }
        has_files
    }

    fn trace_written(&mut self, wb: WbId, work: &Work) {
        self.trace(NodeId(0), |core| Tracepoint::WritebackWritten { work: core.traced_work(wb, work) });
    }

    fn traced_work(&self, wb: WbId, work: &Work) -> TracedWork {
        let Work { reason, is_sync, budget, .. } = *work;
        TracedWork { wb: self.traced_wb(wb), nr_pages: budget, reason, is_sync }
    }

    /// Files were chosen for a pass.
    fn traced_queue_io(&self, wb: WbId, cutoff: Option<Nanos>, reason: WritebackReason) -> Tracepoint {
        let cutoff = cutoff.unwrap_or(Nanos::ZERO);
        let (older, age) = (self.ticks_of(cutoff), Nanos(self.now.0 - cutoff.0));
        let enqueue = self.writeback.wb(wb).b_io.len() as u64;
        Tracepoint::QueueIo { wb: self.traced_wb(wb), older, age, enqueue, reason }
    }

    /// A file's turn, as it stands.
    fn traced_inode(&self, chunk: &Chunk) -> TracedInode {
        let inode = &self.memory.file(chunk.file).inode;
        TracedInode {
            file: chunk.file,
            state: self.inode_state(chunk.file),
            dirtied_when: self.ticks_of(inode.dirtied_when),
            age: Nanos(self.now.0 - inode.dirtied_when.0),
            index: inode.writeback_index,
            to_write: chunk.pages,
            wrote: chunk.pages - chunk.left,
        }
    }

    /// Fills b_io: what had its turn and was not clean then is served first, then what has been dirty for longest.
    fn queue_io(&mut self, wb: WbId, cutoff: Option<Nanos>) {
        let of = &mut self.writeback.wbs[wb.index()];
        let files = &mut self.memory.files;
        let mut next = std::mem::take(&mut of.b_more_io);
        while let Some(&file) = of.b_dirty.back() {
            let inode = &files[file.index()].inode;
            if cutoff.is_none_or(|cutoff| inode.dirtied_when > cutoff) {
                break;
            }
            of.b_dirty.pop_back();
            next.push_front(file);
        }
        for &file in &next {
            files[file.index()].inode.on = InodeList::Io;
        }
        of.b_io = next;
    }

    fn begin_chunk(&mut self, wb: WbId, file: FileId, work: &Work) -> Chunk {
        let of = self.writeback.wb(wb);
        let limit = self.writeback.domain(MemcgId::ROOT).map_or(0, |domain| domain.dirty_limit);
        let owner = of.memcg;
        let pages = match self.memcgs[MemcgId::ROOT].policy.writeback.flusher_chunk {
            _ if work.is_sync => ENDLESS,
            FlusherChunk::HalfASecond => {
                let pages = (of.rates.average / 2).min(limit / 8).min(work.budget) + CHUNK_PAGES;
                pages / CHUNK_PAGES * CHUNK_PAGES
            }
            // A task that writes has its own measure, and goes by that.
            FlusherChunk::Pages1024 if work.reason == WritebackReason::Writer => work.budget,
            FlusherChunk::Pages1024 => CHUNK_PAGES,
        };
        let inode = &mut self.memory.file_mut(file).inode;
        inode.on = InodeList::Sync;
        let whole = work.is_sync.then(|| WholeFile::new(&inode.dirty));
        let cursor = if work.is_sync { 0 } else { inode.writeback_index };
        let votes = Votes::new(owner, inode.foreign.carried());
        let chunk = Chunk { file, pages, left: pages, cursor, wrapped: None, begun_at: cursor, votes, whole };
        self.trace(NodeId(0), |core| Tracepoint::SingleInodeStart {
            wb: core.traced_wb(wb),
            inode: core.traced_inode(&chunk),
        });
        chunk
    }

    /// Starts to write a plug of a file's dirty pages.
    fn write_chunk(&mut self, chunk: &mut Chunk, reason: WritebackReason) -> TurnStep {
        let (mut pages, mut requests) = (0, 0);
        let mut last = None;
        while chunk.left > 0 {
            let inode = &self.memory.file(chunk.file).inode;
            let next =
                inode.dirty.next(chunk.cursor).filter(|&page| chunk.wrapped.is_none_or(|end| page < end));
            let Some(page) = next else {
                if chunk.wrapped.is_some() || chunk.begun_at == 0 {
                    self.memory.file_mut(chunk.file).inode.writeback_index = chunk.cursor_at_end();
                    return TurnStep::Over;
                }
                (chunk.wrapped, chunk.cursor) = (Some(chunk.begun_at), 0);
                continue;
            };
            let pfn = self.cached_folio(chunk.file, page);
            if self.memory.folios[pfn].has(FolioFlags::WRITEBACK) {
                // Written again while it is being written: another time.
                chunk.cursor = page + 1;
                continue;
            }
            if last != page.checked_sub(1) || last.is_none() {
                requests += 1;
            }
            if pages == PLUG_PAGES || requests > self.config.plug_requests {
                return TurnStep::PlugFull;
            }
            chunk.votes.count(self.memory.folios[pfn].memcg);
            self.start_file_write(pfn, reason);
            last = Some(page);
            chunk.cursor = page + 1;
            chunk.left -= 1;
            pages += 1;
        }
        self.memory.file_mut(chunk.file).inode.writeback_index = chunk.cursor;
        TurnStep::Over
    }

    /// Starts to write a plug of those pages of a file that were dirty when its turn began, or waits for the first that is being written.
    fn write_whole(&mut self, wb: WbId, chunk: &mut Chunk, reason: WritebackReason) -> TurnStep {
        let (mut pages, mut requests) = (0, 0);
        let mut last = None;
        loop {
            let whole = chunk.whole.as_mut().expect("its work waits for all of it");
            match self.next_of_whole(chunk.file, whole, chunk.cursor) {
                NextOfFile::Write(page) => {
                    if last != page.checked_sub(1) || last.is_none() {
                        requests += 1;
                    }
                    if pages == PLUG_PAGES || requests > self.config.plug_requests {
                        return TurnStep::PlugFull;
                    }
                    let pfn = self.cached_folio(chunk.file, page);
                    chunk.votes.count(self.memory.folios[pfn].memcg);
                    self.start_file_write(pfn, reason);
                    self.writeback.wb_mut(wb).worker.waits_for = None;
                    last = Some(page);
                    chunk.cursor = page + 1;
                    chunk.left -= 1;
                    pages += 1;
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
    pub(super) fn flusher_goes_on(&mut self, wb: WbId, file: FileId, page: u64) {
        if self.writeback.wb(wb).worker.waits_for == Some((file, page)) {
            self.wake_flusher(wb);
        }
    }

    /// The folio of a page that is in the page cache.
    pub(super) fn cached_folio(&self, file: FileId, page: u64) -> crate::Pfn {
        let Entry::Present(pfn) = self.memory.file(file).index.word(page).decode() else {
            unreachable!("a dirty page is in the page cache")
        };
        pfn
    }

    /// A file's turn is over: puts it where it is found when the next one comes. True when it is clean.
    fn requeue(&mut self, wb: WbId, chunk: &Chunk) -> bool {
        let now = self.now;
        self.write_inode(wb, chunk.file, chunk.whole.is_some());
        self.trace(NodeId(0), |core| Tracepoint::SingleInode {
            wb: core.traced_wb(wb),
            inode: core.traced_inode(chunk),
        });
        let inode = &mut self.memory.files[chunk.file.index()].inode;
        let of = &mut self.writeback.wbs[wb.index()];
        if inode.dirty.is_empty() {
            inode.on = InodeList::None;
            return true;
        }
        if chunk.left == 0 {
            inode.on = InodeList::MoreIo;
            of.b_more_io.push_front(chunk.file);
        } else {
            inode.on = InodeList::Dirty;
            inode.dirtied_when = now;
            of.b_dirty.push_front(chunk.file);
        }
        false
    }
}

impl Work {
    fn new(reason: WritebackReason, budget: u64, begun: Nanos) -> Work {
        Work { reason, is_sync: false, budget, begun, pass: None, chunk: None }
    }

    fn asked(asked: Asked, budget: u64, begun: Nanos) -> Work {
        match asked {
            Asked::Foreign => Work::new(WritebackReason::Foreign, budget, begun),
            Asked::Sync => Work { is_sync: true, ..Work::new(WritebackReason::Sync, budget, begun) },
        }
    }
}

impl Chunk {
    /// Where the next round begins when this one has come by all pages.
    fn cursor_at_end(&self) -> u64 {
        self.wrapped.map_or(0, |_| self.cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::CHUNK_PAGES;
    use crate::*;

    /// Whose pages the flusher writes, one after the other, where some files have become dirty, each with two chunks and a page more.
    fn files_in_turn(rules: WritebackRules, files: &[&str], wake: impl FnOnce(&mut Engine)) -> Vec<u32> {
        let pages = 2 * CHUNK_PAGES + 1;
        let policy = Policy { writeback: rules, ..Policy::classic_6_12() };
        let mut engine =
            Engine::new(Config { node_pages: vec![1 << 18], policy, ..Config::default() }).unwrap();
        // A chunk is an eighth of the limit at most, which is set by who dirties more than these files are.
        let limits = engine.core.global_limits();
        engine.core.update_dirty_limit(MemcgId::ROOT, &limits);
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let mut objects = Vec::new();
        for &name in files {
            let (kind, bdi) = (FileKind::Regular, Bdi::NO_READAHEAD);
            let file = engine.file_create(FileSpec { name: name.to_owned(), pages, kind, bdi }).unwrap();
            objects.push(engine.open(task, file).unwrap());
        }
        let mut threads = engine.start_kernel_threads();
        threads.retain(|thread| thread.name.starts_with("flush-"));
        for object in objects {
            for page in 0..pages {
                assert!(matches!(engine.start(task, Access::new(object, page, true)), Step::Done(_)));
            }
        }
        wake(&mut engine);
        let (mut ops, mut written) = (Vec::new(), Vec::new());
        loop {
            let step = engine.resume(threads[0].task);
            engine.take_ops(&mut ops);
            for op in ops.drain(..) {
                if let Op::WriteFile { io, file, .. } = op {
                    written.push(file.0);
                    engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            if step != Step::Again {
                break;
            }
        }
        written
    }

    #[test]
    fn the_first_periodic_work_comes_an_interval_after_the_start_or_after_its_wb_came_to_be() {
        let mut engine = Engine::new(Config { node_pages: vec![1 << 14], ..Config::default() }).unwrap();
        let bdi = engine.core.writeback.add_bdi();
        let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let second = |seconds: u64| Nanos(seconds * Nanos::SECOND.0);
        engine.set_now(second(3));
        let [machines, groups] = [MemcgId::ROOT, group].map(|memcg| engine.core.wb_for(bdi, memcg));
        let mut is_due = |wb, seconds| {
            engine.set_now(second(seconds));
            engine.core.periodic_is_due(wb)
        };
        assert_eq!([4, 5, 9, 10].map(|seconds| is_due(machines, seconds)), [false, true, false, true]);
        assert!(is_due(groups, 10));
        assert!(!is_due(groups, 14));
    }

    #[test]
    fn in_2010_the_flusher_turns_to_the_next_file_after_1024_pages_and_later_after_half_a_second() {
        let turns = |flusher_chunk| {
            let rules = WritebackRules { flusher_chunk, ..WritebackRules::linux_6_12() };
            let half_a_minute_and_more = |engine: &mut Engine| engine.set_now(Nanos(60_000_000_000));
            let mut files = files_in_turn(rules, &["first", "second"], half_a_minute_and_more);
            assert_eq!(files.len() as u64, 2 * (2 * CHUNK_PAGES + 1));
            files.dedup();
            files
        };
        assert_eq!(turns(FlusherChunk::Pages1024), [0, 1, 0, 1, 0, 1]);
        assert_eq!(turns(FlusherChunk::HalfASecond), [0, 1]);
    }

    #[test]
    fn in_2010_each_request_for_some_pages_has_a_chunk_written_and_later_one_waits_for_all() {
        let written = |flusher_requests| {
            let rules = WritebackRules { flusher_requests, ..WritebackRules::linux_2_6_35() };
            let ask_twice = |engine: &mut Engine| {
                // Periodic work goes on with a file that had its turn and is not clean.
                engine.core.config.dirty_writeback_centisecs = 0;
                for pages in [1, 32] {
                    engine.core.wakeup_flusher_threads_for(WritebackReason::Vmscan, pages);
                }
            };
            files_in_turn(rules, &["file"], ask_twice).len() as u64
        };
        assert_eq!(written(FlusherRequests::Queue), 2 * CHUNK_PAGES);
        assert_eq!(written(FlusherRequests::One), CHUNK_PAGES);
    }
}
