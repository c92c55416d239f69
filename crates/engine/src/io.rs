//! I/O in flight: reads and writes of folios, what happens to a folio when they end, and which tasks wait for it. [reclaim 1.3]

use crate::audit::Transition;
use crate::config::SwapKind;
use crate::core::Core;
use crate::machine::op::Op;
use crate::machine::step::IoWait;
use crate::memory::errors::IoError;
use crate::memory::folio::{Folio, FolioFlags};
use crate::memory::table::{SwapEntry, Word};
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::swap::plug::Plug;
use crate::units::{FileId, IoId, Nanos, PAGE_SIZE, Pfn, TaskId};
use crate::writeback::WritebackReason;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Read,
    Write,
}

/// What is being transferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contents {
    Folio(Pfn),
    /// Pages of a file, which are found in its index: a page that is being read can't leave it.
    FilePages {
        file: FileId,
        first: u64,
        end: u64,
        readahead: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    direction: Direction,
    contents: Contents,
    /// The task that started it, if it waits.
    starter: Option<TaskId>,
    /// The task or thread that started it.
    by: TaskId,
    /// The transfer writes a page of a file.
    is_file_write: bool,
    /// Pages that it writes.
    written: u64,
    /// The transfer begins a request rather than to be a further part of one.
    is_request: bool,
    /// A write: its folio is not needed in memory when it has ended (PG_dropbehind), and leaves this in the swap cache.
    drops: Option<Word>,
}

/// What the end of a transfer means to those who waited for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Read,
    Written,
    /// A read has failed.
    ReadFailed,
    /// Readahead has failed: no task relies on it yet.
    ReadaheadFailed,
    WriteFailed,
}

/// What writes promise to one who has found nothing to reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hope {
    /// Some are in flight: it can wait for one.
    Wait,
    /// Some pages have become clean since it last looked.
    Look,
    None,
}

/// A task's view of writes so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SeenWrites {
    cleaned: u64,
    waits_in_vain: u32,
    /// It has waited for a failing swap device.
    has_waited_for_failing: bool,
    /// It has had a page tried on one.
    has_tried_failing: bool,
}

/// After waiting for more writes than this without any page becoming clean, a task stops waiting. It is the number of reclaim attempts.
const WAITS_IN_VAIN_MAX: u32 = 16;

/// After this many failed writes to swap with no successful one between them, its devices count as failing. It is the number of reclaim attempts.
const SWAP_FAILS_FROM: u64 = 16;
/// After this many its writes promise no memory: two batches of reclaim, which a device that fails nine of ten writes rarely fails in a row.
const SWAP_HOPELESS_FROM: u64 = 64;
/// The time between two tries of a failing swap device. It is shorter than the repeated attempts of an access.
const SWAP_RESTS: Nanos = Nanos(50_000_000);

/// Pages of the largest request, as far as congestion goes: 512 KiB.
const REQUEST_PAGES: u64 = 128;
/// Requests of writes from which on the queue counts as congested, and below which it no longer does. [machine 9.3]
const CONGESTED_FROM: usize = 113;
const CONGESTED_TO: usize = 103;

/// Returns true if a failing swap device may be tried now: once, now and then.
fn may_try(tried: &mut Option<Nanos>, now: Nanos) -> bool {
    let may_try = tried.is_none_or(|tried| now >= tried + SWAP_RESTS);
    if may_try {
        *tried = Some(now);
    }
    may_try
}

/// All transfers in flight.
#[derive(Default)]
pub(crate) struct Transfers {
    slots: Vec<Option<Transfer>>,
    free: Vec<u32>,
    /// Tasks that came for a page while it was being transferred, in order of arrival. They are few at any time, so a
    /// transfer needs no list of its own.
    joined: Vec<(IoId, TaskId)>,
    writes: usize,
    /// Pages that they write.
    written_pages: u64,
    /// Writes in flight that write files.
    file_writes: usize,
    /// Writes that have ended since the beginning and left a clean page: of a file even one that failed, unless failed writes are kept.
    writes_cleaned: u64,
    /// Pages whose write to swap the device has failed since the beginning.
    writes_failed: u64,
    /// The same since the last write to swap that has succeeded.
    swap_failed: u64,
    /// When a page in memory was last written to a failing device; nothing if the next one may be tried immediately.
    page_tried: Option<Nanos>,
    /// When an entry of zswap was.
    entry_tried: Option<Nanos>,
    /// Tasks that wait for any write to end.
    write_waiters: Vec<TaskId>,
    /// The machine can't begin those writes that there are ([`crate::Engine::writes_are_held_up`]).
    pub(crate) are_held_up: bool,
    /// Requests of writes in flight: neighbours that were submitted one after the other are one.
    requests: usize,
    /// The page of a file that was last submitted to be written.
    last_page: Option<(FileId, u64)>,
    /// A device's queue has been nearly full, and is not nearly as full again yet.
    pub(crate) is_congested: bool,
    /// Tasks that wait until it is.
    pub(crate) congestion_waiters: Vec<TaskId>,
}

impl Transfers {
    fn start(
        &mut self,
        direction: Direction,
        contents: Contents,
        starter: Option<TaskId>,
        by: TaskId,
    ) -> IoId {
        let transfer = Some(Transfer {
            direction,
            contents,
            starter,
            by,
            is_file_write: false,
            written: u64::from(direction == Direction::Write),
            is_request: false,
            drops: None,
        });
        self.writes += usize::from(direction == Direction::Write);
        self.written_pages += u64::from(direction == Direction::Write);
        match self.free.pop() {
            Some(slot) => {
                debug_assert!(
                    self.slots[slot as usize].is_none(),
                    "transfer {slot} begins while it is in flight"
                );
                self.slots[slot as usize] = transfer;
                IoId(slot)
            }
            None => {
                self.slots.push(transfer);
                IoId((self.slots.len() - 1) as u32)
            }
        }
    }

    fn end(&mut self, io: IoId) -> Transfer {
        let transfer = self.slots.get_mut(io.index()).and_then(Option::take);
        let transfer = transfer.unwrap_or_else(|| panic!("transfer {} isn't in flight", io.0));
        self.free.push(io.0);
        let is_write = transfer.direction == Direction::Write;
        debug_assert!(!is_write || self.writes > 0, "a write ends, and none is in flight");
        debug_assert!(
            is_write || !transfer.is_request && !transfer.is_file_write,
            "a read counts as a write: {transfer:?}"
        );
        debug_assert!(
            self.requests >= usize::from(transfer.is_request),
            "a request ends, but none is in flight"
        );
        debug_assert!(
            self.file_writes >= usize::from(transfer.is_file_write),
            "a write of a file ends, but none is in flight"
        );
        self.writes -= usize::from(transfer.direction == Direction::Write);
        self.written_pages -= transfer.written;
        self.requests -= usize::from(transfer.is_request);
        self.file_writes -= usize::from(transfer.is_file_write);
        debug_assert!(
            self.file_writes.max(self.requests) <= self.writes,
            "{} writes: {} are of files, {} are requests",
            self.writes,
            self.file_writes,
            self.requests
        );
        transfer
    }

    /// Puts a task behind those that wait for the transfer of this folio. Few are in flight at a time, so the transfer is searched
    /// for rather than remembered. Returns what that task waits for; nothing where no transfer of it is in flight.
    fn join(&mut self, pfn: Pfn, folio: &Folio, task: TaskId) -> Option<IoWait> {
        let owner = FileId(folio.owner);
        let page = u64::from(folio.index);
        let is_of_folio = |slot: &Option<Transfer>| match slot.map(|transfer| transfer.contents) {
            Some(Contents::Folio(other)) => other == pfn,
            Some(Contents::FilePages { file, first, end, .. }) => {
                folio.has(FolioFlags::INDEXED) && file == owner && (first..end).contains(&page)
            }
            None => false,
        };
        let slot = self.slots.iter().position(is_of_folio)?;
        self.joined.push((IoId(slot as u32), task));
        Some(match self.get(IoId(slot as u32)) {
            Transfer { direction: Direction::Write, .. } => IoWait::Writeback,
            Transfer { by, .. } if by != task => IoWait::OthersRead,
            Transfer { contents: Contents::Folio(_), .. } => IoWait::SwapRead,
            Transfer { contents: Contents::FilePages { .. }, .. } => IoWait::FileRead,
        })
    }

    /// Asks whether writes may still free memory, for a task that has found nothing to reclaim and has `seen` this many of them. `are_awaited`:
    /// writes are in flight that it may wait for.
    ///
    /// On a real machine the device's full request queue would have stopped the reclaimer long before. A kill would come too early while pages
    /// are being written and are about to become free. But a device that fails every write promises nothing.
    pub(crate) fn hope(&self, seen: &mut SeenWrites, are_awaited: bool) -> Hope {
        let is_news = seen.cleaned != self.writes_cleaned;
        if is_news {
            *seen = self.seen_writes();
        }
        match are_awaited && !self.are_held_up && seen.waits_in_vain <= WAITS_IN_VAIN_MAX {
            true => {
                seen.waits_in_vain += 1;
                Hope::Wait
            }
            false if is_news => Hope::Look,
            false => Hope::None,
        }
    }

    /// Returns true if a task may wait once more for writes that others have yet to begin. If failed writes are kept, the waiting ones may all be of files
    /// that rest.
    pub(crate) fn may_wait(&self, seen: &mut SeenWrites) -> bool {
        seen.waits_in_vain += 1;
        seen.waits_in_vain <= WAITS_IN_VAIN_MAX
    }

    /// Returns true if a task may wait for a write to a failing swap device: once, as the device may work again. It makes one more attempt then.
    pub(crate) fn may_wait_for_failing(&self, seen: &mut SeenWrites) -> bool {
        let may_wait = self.writes > 0 && self.is_swap_hopeless() && !self.are_held_up;
        may_wait && !std::mem::replace(&mut seen.has_waited_for_failing, true)
    }

    /// Returns true if a task that would give up makes one more attempt. In it, a page is tried on a failing swap device, which may work again. A task does
    /// this once.
    pub(crate) fn may_try_failing(&mut self, seen: &mut SeenWrites) -> bool {
        let may_try = self.is_swap_hopeless() && !std::mem::replace(&mut seen.has_tried_failing, true);
        if may_try {
            self.page_tried = None;
            seen.has_waited_for_failing = false;
        }
        may_try
    }

    /// The initial view of a task that has seen no write end.
    pub(crate) fn seen_writes(&self) -> SeenWrites {
        SeenWrites {
            cleaned: self.writes_cleaned,
            waits_in_vain: 0,
            has_waited_for_failing: false,
            has_tried_failing: false,
        }
    }

    pub(crate) fn writes_failed(&self) -> u64 {
        self.writes_failed
    }

    /// Pages whose write to swap has failed since one has succeeded; 0 as long as they are few.
    pub(crate) fn swap_fails(&self) -> u64 {
        if self.swap_failed < SWAP_FAILS_FROM { 0 } else { self.swap_failed }
    }

    /// Returns true if the writes to swap that are in flight promise no memory.
    fn is_swap_hopeless(&self) -> bool {
        self.swap_failed >= SWAP_HOPELESS_FROM
    }

    /// A synchronous device has not accepted this many pages.
    pub(crate) fn write_failed(&mut self, pages: u64) {
        self.writes_failed += pages;
    }

    /// A write has ended: whether that ends the queue's congestion.
    pub(crate) fn ends_congestion(&mut self) -> bool {
        self.requests < CONGESTED_TO && std::mem::take(&mut self.is_congested)
    }

    /// A write of these pages of a file is submitted: part of the request before it, if that ends where this begins.
    fn submit_pages(&mut self, io: IoId, file: FileId, pages: Range<u64>) {
        let (page, count) = (pages.start, pages.end - pages.start);
        let transfer = self.slots[io.index()].as_mut().expect("it was begun");
        self.written_pages += count - transfer.written;
        transfer.written = count;
        assert_eq!(transfer.direction, Direction::Write, "a page is submitted to be written by a read");
        assert!(!transfer.is_file_write, "a page of a file is submitted twice");
        transfer.is_file_write = true;
        self.file_writes += 1;
        let continues = page.checked_sub(1).map(|before| (file, before));
        if continues.is_none() || self.last_page != continues || page.is_multiple_of(REQUEST_PAGES) {
            self.submit_request(io);
        }
        self.last_page = Some((file, pages.end - 1));
    }

    /// A write to swap writes N pages.
    fn writes_pages(&mut self, io: IoId, pages: u64) {
        let transfer = self.slots[io.index()].as_mut().expect("it was begun");
        self.written_pages += pages - transfer.written;
        transfer.written = pages;
    }

    /// A write is submitted that is part of no request before it.
    pub(crate) fn submit_request(&mut self, io: IoId) {
        let transfer = self.slots[io.index()].as_mut().expect("it was begun");
        assert!(!transfer.is_request, "a request is submitted twice");
        transfer.is_request = true;
        self.requests += 1;
        self.is_congested |= self.requests >= CONGESTED_FROM;
    }

    /// Returns true if pages are being written to swap, and its devices do not fail.
    pub(crate) fn has_hopeful_swap_writes(&self) -> bool {
        self.writes > self.file_writes && !self.is_swap_hopeless()
    }

    /// Returns true if writes in flight may free memory. Those to failing swap devices don't: a page whose write fails stays in memory.
    pub(crate) fn has_hopeful_writes(&self) -> bool {
        self.file_writes > 0 || self.has_hopeful_swap_writes()
    }

    fn get(&self, io: IoId) -> Transfer {
        self.slots[io.index()].unwrap_or_else(|| panic!("transfer {} isn't in flight", io.0))
    }
}

impl Core {
    /// Starts reading a folio of a file; `task` is woken when it is in memory.
    pub(crate) fn start_read_file(&mut self, pfn: Pfn, task: TaskId) {
        let io = self.gather_read_file(pfn, None, false);
        self.submit_read_file(io, Some(task));
    }

    /// Starts reading the first page of a large folio, whose others are about to be written; `task` is woken when it is in memory.
    pub(crate) fn start_read_first_page(&mut self, pfn: Pfn, task: TaskId) {
        let io = self.gather_read_file(pfn, None, false);
        let transfer = self.io.slots[io.index()].as_mut().expect("a read that is gathered is known");
        if let Contents::FilePages { first, end, .. } = &mut transfer.contents {
            *end = *first + 1;
        }
        self.submit_read_file(io, Some(task));
    }

    /// Makes a folio of a file part of the read that has gathered the pages before it, or of a new one.
    #[inline(always)]
    pub(crate) fn gather_read_file(&mut self, pfn: Pfn, gathered: Option<IoId>, readahead: bool) -> IoId {
        let folio = &self.mm.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::LOCKED), "a folio being read is locked");
        debug_assert!(folio.has(FolioFlags::INDEXED), "{pfn:?} is read, and is in no file");
        debug_assert_eq!(folio.mapped, 0, "{pfn:?} is read while it is mapped");
        let (file, first, pages) = (FileId(folio.owner), u64::from(folio.index), folio.pages());
        let end = first + pages;
        self.mm.count_node(folio.node, Stat::Pgpgin, (pages * PAGE_SIZE / 1024) as i64);
        let Some(io) = gathered else {
            return self.io.start(
                Direction::Read,
                Contents::FilePages { file, first, end, readahead },
                None,
                self.by.task,
            );
        };
        let transfer = self.io.slots[io.index()].as_mut().expect("a read that is gathered is known");
        let Contents::FilePages { end: behind, .. } = &mut transfer.contents else {
            unreachable!("a read of a file stays one")
        };
        debug_assert_eq!(*behind, first, "a read has no gaps");
        *behind = end;
        io
    }

    /// Returns true if this page is among those that a gathered read of its file brings in.
    #[inline]
    pub(crate) fn is_read_by(&self, page: u64, io: IoId) -> bool {
        matches!(self.io.get(io).contents, Contents::FilePages { first, end, .. } if (first..end).contains(&page))
    }

    /// Hands a gathered read over to the machine; `task`, if any, is woken when it is done.
    #[inline(always)]
    pub(crate) fn submit_read_file(&mut self, io: IoId, task: Option<TaskId>) {
        let transfer = self.io.slots[io.index()].as_mut().expect("a read that is gathered is known");
        debug_assert_eq!(transfer.direction, Direction::Read, "a write is submitted as a read");
        debug_assert!(transfer.starter.is_none(), "a read is submitted twice");
        transfer.starter = task;
        let Contents::FilePages { file, first, end, readahead } = transfer.contents else {
            unreachable!("a read of a file stays one")
        };
        self.out.push(Op::ReadFile { io, file, page: first, pages: (end - first) as u32, readahead });
    }

    /// The frames that a transfer fills or empties, in the order of what is on the device.
    pub(crate) fn frames_of(&self, io: IoId) -> impl Iterator<Item = Pfn> {
        let (folio, pages) = match self.io.get(io).contents {
            Contents::Folio(pfn) => (Some(pfn), None),
            Contents::FilePages { file, first, end, .. } => (None, Some((file, first..end))),
        };
        let cached = pages.into_iter().flat_map(move |(file, pages)| {
            let index = &self.mm.memory.file(file).index;
            pages.filter_map(move |page| {
                Some(index.word(page)).filter(|word| word.is_present()).map(|word| word.frame(page))
            })
        });
        let frames = folio.into_iter().flat_map(move |pfn| {
            (0..self.mm.memory.folios[pfn].pages() as u32).map(move |at| Pfn(pfn.0 + at))
        });
        frames.chain(cached)
    }

    /// Pages of all transfers in flight, and whether they are written.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = (Pfn, bool)> {
        let in_flight = (0..).zip(&self.io.slots).filter_map(|(io, slot)| Some((IoId(io), (*slot)?)));
        in_flight.flat_map(|(io, transfer)| {
            self.frames_of(io).map(move |pfn| (pfn, transfer.direction == Direction::Write))
        })
    }

    /// Starts reading a swap slot; `task`, if any, is woken when it is in memory.
    pub(crate) fn start_read_swap(&mut self, pfn: Pfn, entry: SwapEntry, task: Option<TaskId>) {
        let io = self.start_read(pfn, task);
        self.mm.count_node(self.mm.memory.folios[pfn].node, Stat::Pswpin, 1);
        self.out.push(Op::ReadSwap { io, swap: entry.swap, slot: entry.slot, pfn });
    }

    fn start_read(&mut self, pfn: Pfn, task: Option<TaskId>) -> IoId {
        let io = self.io.start(Direction::Read, Contents::Folio(pfn), task, self.by.task);
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::LOCKED), "a folio being read is locked");
        assert!(folio.has(FolioFlags::SWAPCACHE), "{pfn:?} is read from swap, and has no slot");
        assert_eq!(folio.mapped, 0, "{pfn:?} is read while it is mapped");
        self.mm.count_node(folio.node, Stat::Pgpgin, (folio.pages() * PAGE_SIZE / 1024) as i64);
        io
    }

    /// Starts writing a folio of a file.
    pub(crate) fn start_write_file(&mut self, pfn: Pfn, reason: WritebackReason) {
        let io = self.io.start(Direction::Write, Contents::Folio(pfn), None, self.by.task);
        let folio = self.mm.memory.folios[pfn];
        assert!(
            folio.has(FolioFlags::INDEXED | FolioFlags::WRITEBACK),
            "{pfn:?} is written to its file: {folio:?}"
        );
        let (file, page, pages) = (FileId(folio.owner), u64::from(folio.index), folio.pages() as u32);
        self.io.submit_pages(io, file, folio.file_pages());
        let is_awaited = reason == WritebackReason::Fsync;
        self.out.push(Op::WriteFile { io, file, page, pfn, pages, is_awaited });
    }

    /// Ends the waits of those who hope for any write to end, though none may have.
    pub(crate) fn wake_write_waiters(&mut self) {
        self.out.wake_all(self.io.write_waiters.drain(..));
    }

    /// None of the writes in flight is going to end for now.
    pub(crate) fn hold_up_writes(&mut self) {
        self.io.are_held_up = true;
        self.wake_write_waiters();
    }

    /// Starts writing to a swap slot, and a large folio to those behind it, too, as soon as the plug is submitted.
    pub(crate) fn start_write(&mut self, pfn: Pfn, entry: SwapEntry, plug: &mut Plug) {
        let io = self.io.start(Direction::Write, Contents::Folio(pfn), None, self.by.task);
        let folio = &self.mm.memory.folios[pfn];
        let pages = folio.pages();
        self.note_updates(folio.memcg, 1);
        if pages > 1 {
            self.io.writes_pages(io, pages);
        }
        self.plug(plug, io, pfn, entry);
    }

    /// Starts writing to a swap slot immediately; `drops`: the folio is not needed in memory afterwards, and this shadow is left in its place.
    pub(crate) fn start_write_at_once(&mut self, pfn: Pfn, to: SwapEntry, drops: Option<Word>) {
        assert!(
            self.mm.memory.folios[pfn].has(FolioFlags::WRITEBACK),
            "{pfn:?} is written, but its state does not record it"
        );
        assert_eq!(
            self.mm.memory.swap.cached(to),
            Some(pfn),
            "slot {} is written from another folio",
            to.slot
        );
        let io = self.io.start(Direction::Write, Contents::Folio(pfn), None, self.by.task);
        self.io.slots[io.index()].as_mut().expect("it has just been started").drops = drops;
        self.io.submit_request(io);
        self.out.push(Op::WriteSwap { io, swap: to.swap, slot: to.slot, pfn, pages: 1 });
    }

    /// Puts a task to sleep until the transfer of this folio ends. Returns what it waits for.
    pub(crate) fn wait_for_folio(&mut self, pfn: Pfn, task: TaskId) -> IoWait {
        self.try_wait_for_folio(pfn, task).expect("a locked folio has a transfer in flight")
    }

    /// Puts a task to sleep until the transfer of a folio under writeback has ended; nothing where a reclaimer holds the write back in its plug.
    pub(crate) fn try_wait_for_folio(&mut self, pfn: Pfn, task: TaskId) -> Option<IoWait> {
        self.io.join(pfn, &self.mm.memory.folios[pfn], task)
    }

    /// Puts a task to sleep until any write has ended.
    pub(crate) fn wait_for_any_write(&mut self, task: TaskId) {
        assert!(!self.io.write_waiters.contains(&task), "{task:?} waits for a write twice");
        self.io.write_waiters.push(task);
    }

    /// A task waits for no transfer any more, whatever it has waited for.
    pub(crate) fn stop_waiting_for_io(&mut self, task: TaskId) {
        for transfer in self.io.slots.iter_mut().flatten() {
            transfer.starter = transfer.starter.filter(|&starter| starter != task);
        }
        self.io.joined.retain(|&(_, waiting)| waiting != task);
        self.io.write_waiters.retain(|&waiting| waiting != task);
    }

    /// A device has completed a transfer. Returns what that means to its waiters.
    #[inline(always)]
    pub(crate) fn transfer_done(&mut self, io: IoId, result: Result<(), IoError>) -> Ended {
        let transfer = self.io.end(io);
        let (mut well, mut failed) = (Ended::Read, Ended::ReadFailed);
        match (transfer.direction, transfer.contents) {
            (Direction::Read, Contents::Folio(pfn)) => self.read_done(pfn, result),
            (Direction::Read, Contents::FilePages { file, first, end, readahead }) => {
                if readahead {
                    failed = Ended::ReadaheadFailed;
                }
                if self.mm.is_laptop_mode() {
                    self.laptop_read_done(file);
                }
                let mut page = first;
                while page < end {
                    let word = self.mm.memory.file(file).index.word(page);
                    debug_assert!(word.is_present(), "page {page} was read, and has left its file meanwhile");
                    let pfn = word.pfn();
                    page += self.mm.memory.folios[pfn].pages();
                    self.read_done(pfn, result);
                }
            }
            (Direction::Write, Contents::Folio(pfn)) => {
                (well, failed) = (Ended::Written, Ended::WriteFailed);
                self.write_done(pfn, result, transfer.drops);
            }
            (Direction::Write, Contents::FilePages { .. }) => {
                unreachable!("a file is written folio by folio")
            }
        }
        if let Some(starter) = transfer.starter {
            self.out.wake(starter);
        }
        if !self.io.joined.is_empty() {
            self.wake_joined(io);
        }
        if transfer.direction == Direction::Write {
            self.io.are_held_up = false;
            self.note_request_ended();
            self.out.wake_all(self.io.write_waiters.drain(..));
        }
        if result.is_ok() { well } else { failed }
    }

    /// Wakes those who have joined the one who began a transfer.
    #[inline(never)]
    fn wake_joined(&mut self, io: IoId) {
        self.out.wake_all(self.io.joined.extract_if(.., |&mut (of, _)| of == io).map(|(_, task)| task));
    }

    fn read_done(&mut self, pfn: Pfn, result: Result<(), IoError>) {
        self.tell(pfn, |_| PageEvent::Read { ok: result.is_ok() });
        let folio = &mut self.mm.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::LOCKED), "{pfn:?} was read, and was not locked: {folio:?}");
        debug_assert_eq!(folio.mapped, 0, "{pfn:?} was mapped while it was being read");
        folio.clear(FolioFlags::LOCKED);
        if folio.has(FolioFlags::INDEXED) {
            let (file, pages) = (FileId(folio.owner), folio.file_pages());
            for page in pages {
                self.mm.memory.file_mut(file).index.update(page, |word| {
                    debug_assert!(!word.is_plain(), "{pfn:?} was being read, and hits did not wait for it");
                    word.set_busy(false);
                });
            }
        }
        if result.is_err() {
            self.read_failed(pfn);
        }
        self.release_if_unused(pfn);
    }

    /// A page without contents must not be found. The readers are notified and release it. A swap slot stays: the data may be readable another time.
    /// It is freed if its owner has released it meanwhile, as no other code would free it later.
    #[cold]
    fn read_failed(&mut self, pfn: Pfn) {
        let folio = &mut self.mm.memory.folios[pfn];
        if folio.has(FolioFlags::INDEXED) {
            // A buffer lets go with its page.
            folio.clear(FolioFlags::PINNED);
            self.page_cache_remove(pfn, Word::EMPTY);
        } else if folio.has(FolioFlags::SWAPCACHE) {
            if self.mm.memory.is_slot_referenced(pfn) {
                self.swap_cache_remove(pfn, None);
            } else {
                self.swap_cache_give_up(pfn);
            }
        }
    }

    /// Returns true if an entry of zswap may be written to its device. If the device fails, the page is in memory again and is compressed again. A
    /// host that keeps failed writes has that done for few entries: a full pool is an error then, and otherwise accesses would take hundreds of
    /// writes each.
    pub(crate) fn may_write_back_now(&mut self) -> bool {
        !self.keeps_failed_writes()
            || self.io.swap_fails() == 0
            || may_try(&mut self.io.entry_tried, self.by.now)
    }

    /// Returns true if a page may be written to its slot now. A synchronous device always answers. A host that keeps failed writes has few pages tried on a
    /// device that fails all. Otherwise, on a full disk, each attempt of reclaim would write all pages of a group, and an access would wait for hundreds of
    /// thousands of writes.
    pub(crate) fn may_write_swap_now(&mut self, entry: SwapEntry) -> bool {
        self.mm.memory.swap.kind(entry.swap) == SwapKind::Synchronous
            || !self.keeps_failed_writes()
            || !self.io.is_swap_hopeless()
            || may_try(&mut self.io.page_tried, self.by.now)
    }

    #[inline(never)]
    fn write_done(&mut self, pfn: Pfn, result: Result<(), IoError>, drops: Option<Word>) {
        let is_of_file = self.mm.memory.folios[pfn].has(FolioFlags::INDEXED);
        #[cfg(test)]
        if self.mutant.is_some_and(crate::testing::Mutant::forgets_writes)
            && !self.mm.memory.folios[pfn].has(FolioFlags::WRITEBACK)
        {
            return;
        }
        self.tell(pfn, |_| match is_of_file {
            true => PageEvent::FileWritten { ok: result.is_ok() },
            false => PageEvent::Written { ok: result.is_ok() },
        });
        let (lruvec, folio) = (self.mm.lruvec_of(pfn), self.mm.memory.folios[pfn]);
        assert!(folio.has(FolioFlags::WRITEBACK), "{pfn:?} was written, and did not say so: {folio:?}");
        assert!(
            is_of_file || folio.has(FolioFlags::SWAPCACHE),
            "{pfn:?} was written, but has no place to go: {folio:?}"
        );
        self.mm.memory.change_reclaim(pfn, false);
        if !is_of_file {
            self.note_updates(folio.memcg, 1);
            for slot in folio.slots() {
                self.mm.memory.swap.note_written(SwapEntry { swap: folio.swap, slot }, result.is_ok());
            }
            self.io.swap_failed = if result.is_ok() { 0 } else { self.io.swap_failed + folio.pages() };
        }
        match result {
            Ok(()) if drops.is_some() && self.mm.may_drop(pfn) && self.gate_close(pfn) => {
                self.tell(pfn, |_| PageEvent::Dropped);
                self.out.rotation_dropped();
                let slot = self.mm.memory.swap_entry(pfn);
                self.mm.assert_in_slot(pfn);
                self.swap_cache_remove(pfn, drops.and_then(Word::shadow));
                debug_assert!(
                    drops.is_some_and(|left| self.mm.memory.swap.shadow(slot) == left),
                    "{pfn:?} has left memory, but its shadow is not in slot {}",
                    slot.slot
                );
            }
            // RECLAIM is cleared even if the rotation finds the folio isolated and does nothing: then it will be met at the wrong end of its list.
            // [reclaim 6.7]
            _ if folio.has(FolioFlags::RECLAIM) && (result.is_ok() || is_of_file) => self.lru_rotate(pfn),
            Ok(()) => {}
            // The page is clean, or is made dirty below, and its file remembers.
            Err(_) if is_of_file => {}
            // The only copy is in memory again.
            Err(_) => {
                self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
                self.io.writes_failed += folio.pages();
            }
        }
        let books = self.open_audit(Transition::EndWrite, [pfn]);
        self.mm.memory.folios[pfn].clear(FolioFlags::WRITEBACK);
        let is_kept = result.is_err() && (!is_of_file || self.keeps_failed_writes());
        self.io.writes_cleaned += u64::from(!is_kept);
        if is_of_file {
            self.file_written(pfn, result);
        }
        self.count(lruvec, Stat::NrWriteback, -(folio.pages() as i64));
        self.close_audit(books);
        self.assert_writeback_counted();
        self.mm.count_node(folio.node, Stat::NrWritten, folio.pages() as i64);
        self.note_written(folio.node, folio.pages());
        if is_of_file && is_kept {
            self.keep_dirty(pfn);
        }
        self.release_if_unused(pfn);
    }

    /// A write of a page of a file that is in flight counts as ended.
    #[cfg(test)]
    pub(crate) fn count_as_written(&mut self, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        if folio.has(FolioFlags::WRITEBACK) && !folio.has(FolioFlags::SWAPBACKED) {
            self.mm.memory.folios[pfn].clear(FolioFlags::WRITEBACK);
            self.mm.memory.change_reclaim(pfn, false);
            self.file_written(pfn, Ok(()));
            self.count(self.mm.lruvec_of(pfn), Stat::NrWriteback, -(folio.pages() as i64));
        }
    }

    /// A write has begun or ended: nodes count as many pages under writeback as there are writes.
    #[inline]
    pub(crate) fn assert_writeback_counted(&self) {
        if cfg!(debug_assertions) && !self.forgets_writes() {
            let counted: i64 =
                self.mm.vmstat.iter().map(|counters| counters[Stat::NrWriteback as usize]).sum();
            assert_eq!(counted, self.io.written_pages as i64, "pages under writeback, and writes in flight");
        }
    }

    /// An engine with a known bug counts writes as ended that are in flight.
    fn forgets_writes(&self) -> bool {
        [mutant!(self, FrameReusedBeforeWritten), mutant!(self, FlushEndsAfterTruncation)].contains(&true)
    }
}

impl State {
    /// Returns true if a folio that was written to be dropped is still nothing but a copy of its slot: only the add batch knows of it.
    fn may_drop(&self, pfn: Pfn) -> bool {
        let folio = &self.memory.folios[pfn];
        let is_waiting = folio.refs == 1 && !folio.has(FolioFlags::LRU);
        folio.has(FolioFlags::SWAPCACHE)
            && folio.mapped == 0
            && !folio.flags().intersects(FolioFlags::DIRTY | FolioFlags::LOCKED)
            && (folio.refs == 0 || is_waiting)
            && self.memory.is_slot_referenced(pfn)
    }
}
