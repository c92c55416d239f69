//! Flusher work (`wb_writeback`): which files of a wb are written next, and how much of each at a time. [machine 5.7]
//!
//! ```text
//!   work: passes over b_io, 100 ms each        b_dirty ── old enough ──► b_io ──► chunk ──► clean: off the lists
//!   file: a chunk of its pages, in index order,  ▲                        ▲         ├── chunk used up ──► b_more_io ─┐
//!         from where the last chunk ended        └──── dirty again ───────│─────────┘                                │
//!                                                                         └──────────────────────────────────────────┘
//! ```
//! Pages are written in the order of their index and not in that in which they were dirtied: neighbours become one request, and
//! that is what makes writing later cheap. Chunks keep one large file from holding up all others. The thread does not wait for
//! what it has started. It goes on until the device takes no more requests, which makes it sleep in the machine. Work that someone
//! waits for is the exception (`whole.rs`): it writes a file as a whole, and its wb has nothing else done until the device has that.
//!
//! In 2010 a task that has dirtied too much did such a piece of work itself (`writer.rs`).

use crate::core::Core;
use crate::memory::file::InodeList;
use crate::memory::folio::FolioFlags;
use crate::story::{TracedInode, TracedWork, WritebackTracepoint};
use crate::units::{FileId, MemcgId, Nanos, NodeId, WbId};
use crate::writeback::WritebackReason;
use crate::writeback::whole::WholeFile;
use pageout_mm::votes::Votes;
use pageout_rules::writeback::FlusherChunk;

/// One piece of work.
#[derive(Debug)]
pub(super) struct Work {
    reason: WritebackReason,
    /// Each file is written as a whole, and waited for (`WB_SYNC_ALL`).
    pub(super) is_sync: bool,
    /// Pages that it may still write.
    budget: u64,
    begun: Nanos,
    pass: Option<Pass>,
    chunk: Option<Chunk>,
    /// Files that this work has tried in vain, if someone waits for it. (`retry.rs`)
    failing: Vec<FileId>,
}

/// A piece of work that someone has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// All that the wb has, for another group.
    Foreign,
    /// All that the wb has, for a caller that waits until the device has it.
    Sync,
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
pub(super) struct Chunk {
    pub(super) file: FileId,
    /// Pages that may be written of it, and those of them that are left.
    pages: u64,
    pub(super) left: u64,
    pub(super) cursor: u64,
    /// The index at which it began, once it has wrapped around at the end of the file.
    wrapped: Option<u64>,
    begun_at: u64,
    pub(super) votes: Votes,
    /// The file is written as a whole, and waited for.
    pub(super) whole: Option<WholeFile>,
}

/// The outcome of one step of a flusher's piece of work.
pub(super) enum WorkStep {
    /// Writes of this number of pages have begun.
    Begun(u64),
    /// Nothing can be done until a write has ended.
    Waits,
    Over,
}

/// The outcome of one step of a file's turn.
pub(super) enum TurnStep {
    PlugFull,
    Waits,
    Over,
}

/// Pages of one file written in a row at least.
pub(super) const CHUNK_PAGES: u64 = 1024;
/// A budget that is never used up: a long's largest, from which a tracepoint counts down.
pub(super) const ENDLESS: u64 = i64::MAX as u64;
/// Files whose places an assertion looks at, at most.
const LOOKED_AT: usize = 8;
/// How long a pass lasts before the work is checked again.
const PASS: Nanos = Nanos(100_000_000);
/// Pages that one step starts to write at most, as many as the block layer puts into one transfer.
pub(super) const PLUG_PAGES: u64 = 256;

impl Core {
    /// Goes on with a piece of work, to the end of a plug of writes or of a pass.
    #[doc(alias = "wb_writeback")]
    pub(super) fn work_step(&mut self, wb: WbId, work: &mut Work) -> WorkStep {
        if let Some(chunk) = &mut work.chunk {
            let before = chunk.left;
            let turn = match work.is_sync {
                false => self.write_chunk(chunk, work.reason),
                true => self.write_whole(wb, chunk, work.reason),
            };
            assert!(chunk.left <= before, "a file's turn gives pages back");
            let written = before - chunk.left;
            work.budget = work.budget.saturating_sub(written);
            let is_over = matches!(turn, TurnStep::Over);
            // A chunk that has reached the end of its file counts as progress, even if others have dirtied
            // the file again.
            let is_done = is_over && (self.requeue(wb, chunk) || work.is_sync);
            if is_over && let Some(Chunk { file, votes, .. }) = work.chunk.take() {
                self.end_votes(file, &votes);
                if work.is_sync && self.is_resting(file) {
                    work.failing.push(file);
                }
            }
            let pass = work.pass.as_mut().expect("a file is written within a pass");
            pass.written += written;
            pass.done += u64::from(is_done);
            return if matches!(turn, TurnStep::Waits) { WorkStep::Waits } else { WorkStep::Begun(written) };
        }
        let is_pass_over = work.pass.as_ref().is_none_or(|pass| {
            let is_spent = pass.written > 0 && work.budget == 0;
            is_spent || self.by.now.0 - pass.begun.0 >= PASS.0 || self.writeback.wb(wb).b_io.is_empty()
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

    /// A task writes up to `pages` pages of a wb itself, files that have been dirty for longest first. Returns how many it has begun.
    pub(super) fn write_as_writer(&mut self, wb: WbId, pages: u64) -> u64 {
        let mut work = Work::new(WritebackReason::Writer, pages, self.by.now);
        let mut written = 0;
        while written < pages
            && let WorkStep::Begun(more) = self.work_step(wb, &mut work)
        {
            written += more;
        }
        if let Some(mut chunk) = work.chunk.take() {
            // The file goes on where it was left, before others are begun.
            chunk.left = 0;
            self.mm.memory.file_mut(chunk.file).inode.writeback_index = chunk.cursor;
            self.requeue(wb, &chunk);
        }
        written
    }

    /// Looks whether the work goes on, and which files are next.
    fn begin_flush(&mut self, wb: WbId, work: &mut Work) -> bool {
        let has_moved = work.pass.take().is_none_or(|pass| pass.written + pass.done > 0);
        let is_needed = work.reason != WritebackReason::Background || self.is_over_background(wb);
        // No task waits for this work, but one waits for the requested work.
        let gives_way = matches!(work.reason, WritebackReason::Background | WritebackReason::Periodic)
            && !self.writeback.wb(wb).worker.asked.is_empty();
        if work.budget == 0 || !has_moved || !is_needed || gives_way {
            return false;
        }
        let expire = u64::from(self.mm.config.dirty_expire_centisecs) * (Nanos::SECOND.0 / 100);
        let cutoff = match work.reason {
            WritebackReason::Periodic => self.by.now.0.checked_sub(expire).map(Nanos),
            WritebackReason::Background => Some(self.by.now),
            WritebackReason::Vmscan
            | WritebackReason::Sync
            | WritebackReason::LaptopTimer
            | WritebackReason::Foreign
            | WritebackReason::Fsync
            | WritebackReason::Pageout
            | WritebackReason::Writer => Some(work.begun),
        };
        self.trace(NodeId(0), |core| WritebackTracepoint::WritebackStart {
            work: core.traced_work(wb, work),
        });
        if self.writeback.wb(wb).b_io.is_empty() {
            self.queue_io(wb, cutoff);
            self.leave_resting_files(wb, work);
            self.trace(NodeId(0), |core| core.traced_queue_io(wb, cutoff, work.reason));
        }
        work.pass = Some(Pass { begun: self.by.now, written: 0, done: 0 });
        let has_files = !self.writeback.wb(wb).b_io.is_empty();
        if !has_files {
            self.trace_written(wb, work);
        }
        has_files
    }

    fn trace_written(&mut self, wb: WbId, work: &Work) {
        self.trace(NodeId(0), |core| WritebackTracepoint::WritebackWritten {
            work: core.traced_work(wb, work),
        });
    }

    pub(super) fn traced_work(&self, wb: WbId, work: &Work) -> TracedWork {
        let Work { reason, is_sync, budget, .. } = *work;
        TracedWork { wb: self.traced_wb(wb), nr_pages: budget, reason, is_sync }
    }

    /// Files were chosen for a pass.
    fn traced_queue_io(
        &self,
        wb: WbId,
        cutoff: Option<Nanos>,
        reason: WritebackReason,
    ) -> WritebackTracepoint {
        let cutoff = cutoff.unwrap_or(Nanos::ZERO);
        let (older, age) = (self.mm.ticks_of(cutoff), Nanos(self.by.now.0 - cutoff.0));
        let enqueue = self.writeback.wb(wb).b_io.len() as u64;
        WritebackTracepoint::QueueIo { wb: self.traced_wb(wb), older, age, enqueue, reason }
    }

    /// A file's turn, as it stands.
    fn traced_inode(&self, chunk: &Chunk) -> TracedInode {
        let inode = &self.mm.memory.file(chunk.file).inode;
        TracedInode {
            file: chunk.file,
            state: self.mm.inode_state(chunk.file),
            dirtied_when: self.mm.ticks_of(inode.dirtied_when),
            age: Nanos(self.by.now.0 - inode.dirtied_when.0),
            index: inode.writeback_index,
            to_write: chunk.pages,
            wrote: chunk.pages - chunk.left,
        }
    }

    /// Fills b_io: what had its turn and was not clean then is served first, then what has been dirty for longest.
    fn queue_io(&mut self, wb: WbId, cutoff: Option<Nanos>) {
        let of = &mut self.writeback.wbs[wb.index()];
        let files = &mut self.mm.memory.files;
        let mut next = std::mem::take(&mut of.b_more_io);
        while let Some(&file) = of.b_dirty.back() {
            let inode = &files[file.index()].inode;
            assert_eq!(inode.on, InodeList::Dirty, "a file on b_dirty says that it is elsewhere");
            if cutoff.is_none_or(|cutoff| inode.dirtied_when > cutoff) {
                break;
            }
            of.b_dirty.pop_back();
            next.push_front(file);
        }
        for &file in &next {
            let inode = &mut files[file.index()].inode;
            assert!(
                matches!(inode.on, InodeList::Dirty | InodeList::MoreIo),
                "a file is to be written that is {:?}",
                inode.on
            );
            inode.on = InodeList::Io;
        }
        assert!(of.b_io.is_empty(), "files that were to be written are forgotten");
        of.b_io = next;
        if cfg!(debug_assertions) {
            let of = self.writeback.wb(wb);
            of.b_io
                .iter()
                .chain(&of.b_dirty)
                .take(LOOKED_AT)
                .for_each(|&file| self.assert_inode_listed(file));
        }
    }

    /// Puts files back on b_dirty that rest after a failed write, and those of which some pages are being tried (`failing.rs`). Work that someone
    /// waits for tries each of them once. (`retry.rs`)
    fn leave_resting_files(&mut self, wb: WbId, work: &Work) {
        let (now, files) = (self.by.now, &mut self.mm.memory.files);
        let stuck = &self.writeback.stuck;
        let of = &mut self.writeback.wbs[wb.index()];
        let b_dirty = &mut of.b_dirty;
        of.b_io.retain(|&file| {
            let inode = &mut files[file.index()].inode;
            let rests = match work.is_sync {
                true => work.failing.contains(&file),
                false => inode.rest.is_on(now) || !inode.writeback.is_empty() && stuck.contains_key(&file),
            };
            if rests {
                (inode.on, inode.dirtied_when) = (InodeList::Dirty, now);
                b_dirty.push_front(file);
            }
            !rests
        });
    }

    fn begin_chunk(&mut self, wb: WbId, file: FileId, work: &Work) -> Chunk {
        let of = self.writeback.wb(wb);
        let limit = self.writeback.domain(MemcgId::ROOT).map_or(0, |domain| domain.dirty_limit);
        let owner = of.memcg;
        let pages = match self.mm.config.policy.machine.writeback.flusher_chunk {
            _ if work.is_sync => ENDLESS,
            FlusherChunk::HalfASecond => {
                let pages = (of.rates.average / 2).min(limit / 8).min(work.budget) + CHUNK_PAGES;
                pages / CHUNK_PAGES * CHUNK_PAGES
            }
            // A task that writes has its own measure, and goes by that.
            FlusherChunk::Pages1024 if work.reason == WritebackReason::Writer => work.budget,
            FlusherChunk::Pages1024 => CHUNK_PAGES,
        };
        let pages = if work.is_sync || !self.is_stuck(file) { pages } else { pages.min(PLUG_PAGES) };
        let inode = &mut self.mm.memory.file_mut(file).inode;
        assert_eq!(inode.on, InodeList::Io, "a file's turn begins that was not to be written");
        assert_eq!(inode.wb, Some(wb), "a file's turn begins with another's flusher");
        inode.on = InodeList::Sync;
        let whole = work.is_sync.then(|| WholeFile::new(&inode.dirty));
        let cursor = if work.is_sync { 0 } else { inode.writeback_index };
        let votes = Votes::new(owner, inode.foreign.carried());
        self.assert_inode_listed(file);
        let chunk = Chunk { file, pages, left: pages, cursor, wrapped: None, begun_at: cursor, votes, whole };
        self.trace(NodeId(0), |core| WritebackTracepoint::SingleInodeStart {
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
            let inode = &self.mm.memory.file(chunk.file).inode;
            let next =
                inode.dirty.next(chunk.cursor).filter(|&page| chunk.wrapped.is_none_or(|end| page < end));
            let Some(page) = next else {
                if chunk.wrapped.is_some() || chunk.begun_at == 0 {
                    self.mm.memory.file_mut(chunk.file).inode.writeback_index = chunk.cursor_at_end();
                    return TurnStep::Over;
                }
                (chunk.wrapped, chunk.cursor) = (Some(chunk.begun_at), 0);
                continue;
            };
            let pfn = self.mm.memory.cached_folio(chunk.file, page);
            if self.mm.memory.folios[pfn].has(FolioFlags::WRITEBACK) {
                // Written again while it is being written: another time.
                chunk.cursor = page + 1;
                continue;
            }
            if last != page.checked_sub(1) || last.is_none() {
                requests += 1;
            }
            if pages >= PLUG_PAGES || requests > self.mm.config.plug_requests {
                return TurnStep::PlugFull;
            }
            chunk.votes.count(self.mm.memory.folios[pfn].memcg);
            self.start_file_write(pfn, reason);
            let written = self.mm.memory.folios[pfn].file_pages();
            last = Some(written.end - 1);
            chunk.cursor = written.end;
            assert!(chunk.left > 0, "more of a file is written than its turn allows");
            // The last folio may have more pages than the turn has left.
            chunk.left = chunk.left.saturating_sub(written.end - written.start);
            pages += written.end - written.start;
        }
        self.mm.memory.file_mut(chunk.file).inode.writeback_index = chunk.cursor;
        TurnStep::Over
    }

    /// A file's turn is over: puts it where it is found when the next one comes. True when it is clean.
    fn requeue(&mut self, wb: WbId, chunk: &Chunk) -> bool {
        let now = self.by.now;
        self.write_inode(wb, chunk.file, chunk.whole.is_some());
        self.trace(NodeId(0), |core| WritebackTracepoint::SingleInode {
            wb: core.traced_wb(wb),
            inode: core.traced_inode(chunk),
        });
        let inode = &mut self.mm.memory.files[chunk.file.index()].inode;
        let of = &mut self.writeback.wbs[wb.index()];
        assert_eq!(inode.on, InodeList::Sync, "a file's turn ends that had not begun");
        assert!(
            of.nr_dirty >= inode.dirty.count(),
            "a wb has {} dirty pages, a file of it {}",
            of.nr_dirty,
            inode.dirty.count()
        );
        if inode.dirty.is_empty() {
            inode.on = InodeList::None;
            self.assert_turn_over(chunk.file);
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
        self.assert_turn_over(chunk.file);
        false
    }

    /// A file's turn is over: it is on a list if it has something dirty, and on none if not.
    fn assert_turn_over(&self, file: FileId) {
        if cfg!(debug_assertions) {
            self.assert_inode_listed(file);
            let inode = &self.mm.memory.file(file).inode;
            assert_ne!(inode.on, InodeList::Sync, "a file's turn is over, and it is written still");
            assert_eq!(
                inode.on == InodeList::None,
                inode.dirty.is_empty(),
                "a file whose turn is over is on {:?}, and has {} dirty pages",
                inode.on,
                inode.dirty.count()
            );
        }
    }
}

impl Work {
    /// The file whose pages are being written now.
    pub(super) fn file(&self) -> Option<FileId> {
        self.chunk.as_ref().map(|chunk| chunk.file)
    }

    pub(super) fn new(reason: WritebackReason, budget: u64, begun: Nanos) -> Work {
        Work { reason, is_sync: false, budget, begun, pass: None, chunk: None, failing: Vec::new() }
    }

    pub(super) fn asked(asked: Asked, budget: u64, begun: Nanos) -> Work {
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
