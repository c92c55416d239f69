//! The machine: the engine under its one lock, and what is carried out of what it decides.
//!
//! ```text
//!   a miss   lock ─▶ start ─▶ unlock ─▶ the reads it asks for ─▶ lock ─▶ frames open, io_done ─▶ resume ─▶ pin ─▶ unlock
//!                      └ Again: others may have the lock ─▶ resume          └ woken: whoever waited for the same page
//! ```
//! A thread reads its own misses. Reads without a waiting thread (readahead) are made by a few background threads. kswapd's reclaim is a thread's,
//! too, in steps between which the lock is free. Nothing here decides which pages stay in memory.

mod ahead; // pages of several writes, requested together
mod device; // backing devices, and what each has to do
mod driven; // misses that no thread waits for
mod budget; // a change of the budget
mod moves; // copies that are made without it
mod compressed; // pages on their way to the compressed pool, and back
mod inner; // what is under the lock, in parts
mod locked; // what is done under the lock
mod settle; // what the engine has decided, carried out
mod files; // which files there are, and how one is forgotten
mod groups; // groups: made, removed, counted
mod regions; // anonymous memory and its address spaces
mod mapped; // anonymous memory that users access by plain pointers
mod scans; // which of its pages in slow memory are in use
mod open_file; // a file: its handles, its lengths, and what of it could not be written
mod lengths; // how long files are: set, cut, reloaded
mod readers; // who reads what no thread makes for itself
mod threads; // what the cache's own threads do
mod turns; // who waits for the lock is not passed by for ever
mod frames; // frames of a transfer
mod transfer; // a read of a file into frames, or a write
mod uring; // reads and writes in flight together
mod waits; // who waits, and for whom
mod writes; // dirty pages, their way to the device, and sync
#[cfg(test)]
mod contract; // what lasts, over a device that fails

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use pageout_engine::{
    DelayReason, Engine, FileId, FrameGate, PAGE_SIZE, Pfn, Served, Step, TaskId, Wait, WatchedReads,
};

use crate::arena::{Arena, Pin};
use crate::budget::Budget;
use crate::error::Error;
use crate::file::Inner as File;
use crate::guard::ZEROES;
use crate::guards::{GuardWait, Guards};
use crate::local;
use crate::map::MapEvent;
use crate::region::Inner as Region;
use crate::stats::Histogram;
use crate::storage::Storage;
use crate::sync::{Condvar, Instant, Mutex, thread};
use crate::works::Works;

pub(crate) use compressed::Zpool;
pub(crate) use files::{FileLimits, Opened, Unwritten};
pub(crate) use groups::{FileRow, Place, bytes};
use inner::Inner;
pub(crate) use locked::{Locked, has_lock};
use locked::{Miss, Outcome};
pub(crate) use mapped::Samples;
use moves::Moves;
use open_file::OpenFile;
pub use readers::Backend;
use readers::Readers;
pub(crate) use regions::Purpose;
use turns::Turns;
pub(crate) use writes::{BYTES_MAX, Begun, Flush, Part, Writable};

/// State that all handles share.
pub(crate) struct LiveMachine {
    pub(crate) arena: Arc<Arena>,
    inner: Mutex<Inner>,
    turns: Turns,
    /// A kernel thread has been woken, or all is to stop.
    service: Condvar,
    readers: Readers,
    /// A file that is being forgotten has no access in progress any more, or is forgotten, or stays.
    idle: Condvar,
    began: Instant,
    /// A thread has panicked, perhaps with an unfinished read that others wait for.
    is_poisoned: AtomicBool,
    pub(crate) held: Histogram,
    /// Hold times are measured in the holder's CPU time.
    holds_by_cpu: bool,
    /// Tells one cache from others of the process.
    pub(crate) id: u64,
    /// Copies that are being made.
    moves: Moves,
    /// Threads that call wakers.
    pub(crate) wakers: Arc<Works>,
    pub(crate) limits: FileLimits,
    pub(crate) budget: Budget,
    pub(crate) guards: Guards,
    /// Maximum wait for a guard.
    pub(crate) guard_wait: Duration,
    /// Compressed pages, if the cache has any.
    pub(crate) zpool: Option<Zpool>,
    /// Hits that the engine must be notified of although nothing has to be recorded in their words.
    pub(crate) watched_reads: WatchedReads,
    /// The bug that it has in a test.
    #[cfg(test)]
    pub(crate) bug: std::sync::Mutex<Option<Bug>>,
}

/// A bug of a sync, which tests must notice.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    DoesNotFlush,
    /// It does not wait for writes that others have begun.
    ForgetsWriteback,
    /// An error is reported once.
    TellsOnce,
    /// Data of a failed flush is not written again.
    ForgetsUnkept,
}

/// A page that is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Want {
    pub(crate) page: u64,
    /// Bytes that the call still wants from the beginning of the page on.
    pub(crate) bytes: u64,
}

/// The target of an access: a file through a handle on behalf of a group, or a region.
#[derive(Clone, Copy)]
pub(crate) enum Accessed<'a> {
    File(&'a File, usize),
    Region(&'a Region),
}

impl Accessed<'_> {
    pub(crate) fn owner(self) -> PageOwner {
        match self {
            Accessed::File(file, _) => PageOwner::File(file.id),
            Accessed::Region(region) => PageOwner::Region(region.number),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Accessed::File(file, _) => file.path(),
            Accessed::Region(region) => region.path(),
        }
    }
}

/// The owner of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageOwner {
    File(FileId),
    /// By number.
    Region(usize),
}

impl From<FileId> for PageOwner {
    fn from(file: FileId) -> PageOwner {
        PageOwner::File(file)
    }
}

/// A page that was brought in to be read.
pub(crate) enum Brought<'a> {
    Page(Pin<'a>),
    /// A page of a region that was never written.
    Zeroes,
}

impl Brought<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Brought::Page(pin) => pin.bytes(),
            Brought::Zeroes => &ZEROES,
        }
    }
}

/// The outcome of a miss.
enum Found<'a> {
    /// Its page, or why there is none.
    Page(Result<Brought<'a>, Error>),
    /// Its page is being written in place.
    Taken(Pfn),
}

impl<'a> Found<'a> {
    /// The page for a caller that does not wait for its writer, but retries later.
    fn at_once(self, of: Accessed<'_>) -> Result<Brought<'a>, Error> {
        match self {
            Found::Page(found) => found,
            Found::Taken(_) => Err(Error::CutMeanwhile { path: of.path().to_owned() }),
        }
    }
}

/// The engine asks by this whether a frame is in use.
pub(crate) struct Doors(pub(crate) Arc<Arena>);

impl FrameGate for Doors {
    fn close(&mut self, pfn: Pfn) -> bool {
        let is_closed = self.0.close(pfn);
        self.0.tokens.record.note(|| MapEvent::Close { is_closed });
        is_closed
    }

    fn open(&mut self, pfn: Pfn) {
        self.0.gate(pfn).open();
    }
}

/// A thread that would have woken others may have panicked.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The shortest wait of a task that reclaims, if it is for others. Since 5.16 a task waits that often before an error that it adds up to seconds.
const TICK: Duration = Duration::from_millis(4);
/// How long it takes instead if no other does anything.
const IN_VAIN: Duration = Duration::from_micros(20);

/// Numbers of caches.
static IDS: AtomicU64 = AtomicU64::new(0);

impl LiveMachine {
    /// A machine whose engine has no task yet.
    pub(crate) fn new(
        engine: Engine,
        arena: Arc<Arena>,
        (backend, io_threads): (Backend, usize),
        limits: FileLimits,
        (budget, guard_wait): (Budget, Duration),
        holds_by_cpu: bool,
        (swap, zpool): (Option<Arc<dyn Storage>>, Option<Zpool>),
    ) -> Result<LiveMachine, Error> {
        Ok(LiveMachine {
            watched_reads: engine.watched_reads(),
            arena,
            inner: Mutex::new(Inner::new(engine, swap)),
            turns: Turns::default(),
            service: Condvar::new(),
            readers: Readers::new(backend, io_threads)?,
            idle: Condvar::new(),
            began: Instant::now(),
            is_poisoned: AtomicBool::new(false),
            held: Histogram::default(),
            holds_by_cpu,
            id: IDS.fetch_add(1, Relaxed),
            moves: Moves::default(),
            wakers: Arc::default(),
            limits,
            budget,
            guards: Guards::default(),
            guard_wait,
            zpool,
            #[cfg(test)]
            bug: std::sync::Mutex::default(),
        })
    }

    /// Takes the lock. The engine's time is now.
    pub(crate) fn lock(&self) -> Result<Locked<'_>, Error> {
        if !self.arena.is_of_this_process() || self.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let inner = self.turns.lock(&self.inner).ok_or(Error::Poisoned)?;
        Ok(Locked::new(self, inner))
    }

    /// Notifies the engine of all pending hits. Others may have the lock in between, if pages are promoted by that, or are compressed.
    pub(crate) fn drain<'a>(&'a self, mut locked: Locked<'a>) -> Result<Locked<'a>, Error> {
        locked = self.drain_hits(locked)?;
        let has_compressed;
        (locked, has_compressed) = self.compress_ahead(locked, false)?;
        if has_compressed { self.drain_hits(locked) } else { Ok(locked) }
    }

    fn drain_hits<'a>(&'a self, mut locked: Locked<'a>) -> Result<Locked<'a>, Error> {
        locked.collect_hits();
        while !locked.drain_step() {
            drop(locked);
            locked = self.lock()?;
        }
        Ok(locked)
    }

    /// A thread has panicked: the lock is never acquired any more, and waiting threads get an error.
    pub(crate) fn poison(&self) {
        self.is_poisoned.store(true, Relaxed);
        self.service.notify_all();
        self.readers.notify_all();
        self.idle.notify_all();
        self.fail_driven();
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Relaxed)
    }

    /// Runs a step of a task, and all that follows, to its end. Reads that the last call requested are not begun yet.
    pub(crate) fn see_through<'a>(
        &'a self,
        locked: Locked<'a>,
        task: TaskId,
        step: Step,
    ) -> Result<(Locked<'a>, Served), Error> {
        self.see_through_anew(locked, task, step, |_| {})
    }

    /// The same if a setting is repeated before each step.
    fn see_through_anew<'a>(
        &'a self,
        mut locked: Locked<'a>,
        task: TaskId,
        mut step: Step,
        mut say: impl FnMut(&mut Locked<'a>),
    ) -> Result<(Locked<'a>, Served), Error> {
        loop {
            locked.settle();
            if !matches!(step, Step::Done(_)) {
                locked = self.await_room(locked)?;
            }
            locked = match step {
                Step::Done(served) => return Ok((locked, served)),
                Step::Again => {
                    drop(self.read(locked, 0)?);
                    // What others have read counts before more of it is evicted.
                    self.compress_before(self.drain(self.lock()?)?)?
                }
                Step::Wait(Wait::Io(_)) => {
                    let locked = self.read(locked, 1)?;
                    self.wait(locked, task, None)?
                }
                Step::Wait(Wait::Woken) => {
                    let locked = self.read(locked, 0)?;
                    self.compress_before(self.wait(locked, task, None)?)?
                }
                Step::Wait(Wait::WokenOr(span, reason)) => {
                    let locked = self.read(locked, 0)?;
                    let span = Duration::from_nanos(span.0);
                    let is_short = reason == DelayReason::Reclaim && span <= TICK;
                    let is_vain = is_short && !locked.may_get_memory();
                    let span = if is_vain { span.min(IN_VAIN) } else { span };
                    self.compress_before(self.wait(locked, task, Some(span))?)?
                }
                Step::Wait(Wait::Delay(span, _)) => {
                    drop(self.read(locked, 0)?);
                    thread::sleep(Duration::from_nanos(span.0));
                    self.compress_before(self.lock()?)?
                }
            };
            say(&mut locked);
            step = locked.engine.resume(task);
        }
    }

    /// Begins what the last call has asked to be read: so many by this thread, which needs them, the rest by others, if there are any. Writes that were
    /// asked for are others' in any case.
    pub(crate) fn read<'a>(&'a self, mut locked: Locked<'a>, own: usize) -> Result<Locked<'a>, Error> {
        locked = self.begin_writes(locked)?;
        let is_alone = self.readers.threads == 0;
        let mut own = if is_alone { usize::MAX } else { own };
        while !locked.transfers.reads.is_empty() {
            if own > 0 && locked.transfers.reads.len() == 1 {
                // A miss, mostly.
                let mut read = locked.transfers.reads.pop().expect("there is one");
                drop(locked);
                let result = read.perform(&self.arena);
                locked = self.lock()?;
                locked.read_done(read, result);
                own = if is_alone { usize::MAX } else { 0 };
                continue;
            }
            let mut reads = std::mem::take(&mut locked.transfers.reads);
            let mut others = reads.split_off(own.min(reads.len()));
            reads.extend(others.extract_if(.., |read| !read.needs_device()));
            match &self.readers.ring {
                Some(ring) if !others.is_empty() => {
                    drop(locked);
                    ring.begin(&self.arena, others);
                }
                _ => {
                    others.iter().for_each(|_| self.readers.more.notify_one());
                    locked.transfers.queue.extend(others);
                    if reads.is_empty() {
                        break;
                    }
                    drop(locked);
                }
            }
            let results: Vec<_> = reads.iter_mut().map(|read| read.perform(&self.arena)).collect();
            locked = self.lock()?;
            for (read, result) in reads.into_iter().zip(results) {
                locked.read_done(read, result);
            }
            own = if is_alone { usize::MAX } else { 0 };
        }
        Ok(locked)
    }

    /// Makes all reads that were asked for, in flight together as far as that can be, or has others make them.
    fn read_together<'a>(&'a self, mut locked: Locked<'a>, of: PageOwner) -> Result<Locked<'a>, Error> {
        if locked.transfers.reads.len() > 1
            && let Some(ring) = self.readers.lend()
        {
            let mut reads = std::mem::take(&mut locked.transfers.reads);
            let empty: Vec<_> = reads.extract_if(.., |read| !read.needs_device()).collect();
            drop(locked);
            let mut ended = ring.perform(&self.arena, reads);
            self.readers.give_back(ring);
            ended.extend(empty.into_iter().map(|mut read| {
                let result = read.perform(&self.arena);
                (read, result)
            }));
            // The engine is notified of them in one order, whichever ends first.
            ended.sort_by_key(|(read, _)| read.io);
            locked = self.lock()?;
            ended.into_iter().for_each(|(read, result)| locked.read_done(read, result));
            return Ok(locked);
        }
        locked = self.read(locked, 1)?;
        // This thread reads, too, as long as the same device has reads that are not begun.
        let device = match of {
            PageOwner::File(file) => locked.device_of(file),
            PageOwner::Region(_) => locked.swap_device(),
        };
        while let Some(mut read) = locked.take_read(|_, read| Some(read.device as usize) == device) {
            drop(locked);
            let result = read.perform(&self.arena);
            locked = self.lock()?;
            locked.read_done(read, result);
        }
        Ok(locked)
    }

    /// Brings a page in, and pins its frame. Waits until the page has no writer in place.
    pub(crate) fn bring_in(&self, of: Accessed<'_>, want: Want) -> Result<Brought<'_>, Error> {
        let mut wait = self.guard_wait();
        loop {
            let mut locked = self.lock_for_page()?;
            local::give_back(self, &locked);
            locked = self.await_change_of(locked, of)?;
            let mut miss = locked.begin(of, want)?;
            locked.start(&mut miss);
            let found;
            (locked, found) = self.finish(locked, miss)?;
            drop(self.read(locked, 0)?);
            match found {
                Found::Page(found) => return found,
                Found::Taken(pfn) => {
                    let is_free = || !self.arena.gate(pfn).is_written();
                    self.await_guard(&mut wait, of.owner(), want.page, pfn, is_free)?
                }
            }
        }
    }

    /// Brings pages in, whose reads are in flight together, and shows each in its frame. All have come to an end when this
    /// returns, even where one has failed.
    pub(crate) fn bring_in_all(
        &self,
        of: Accessed<'_>,
        wants: impl Iterator<Item = Want>,
        mut show: impl FnMut(usize, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut locked = self.lock_for_page()?;
        local::give_back(self, &locked);
        locked = self.await_change_of(locked, of)?;
        let (mut misses, mut outcome) = (Vec::new(), Ok(()));
        for (at, want) in wants.enumerate() {
            // The lock was free between two steps of another one: the file may be forgotten, or change its length. A call that changes the length waits for
            // accesses, so this one waits for it only if it has none.
            if misses.is_empty() {
                locked = self.await_change_of(locked, of)?;
            }
            let mut miss = match locked.begin(of, want) {
                Ok(miss) => miss,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            locked.start(&mut miss);
            locked.settle();
            while miss.step == Step::Again {
                drop(locked);
                locked = self.drain(self.lock()?)?;
                miss.step = locked.engine.resume(miss.hired.task);
                locked.settle();
            }
            if matches!(miss.step, Step::Done(_)) {
                if miss.lacks_memory() {
                    // There may be free memory for it once those before it have been shown.
                    locked = self.finish_all(locked, of, &mut misses, &mut show, &mut outcome)?;
                }
                // It has nothing to wait for, and its page can go as soon as the lock is free.
                let (found, shown);
                (locked, found) = self.finish(locked, miss)?;
                (locked, shown) = self.show_found(locked, found.at_once(of), |page| show(at, page))?;
                outcome = outcome.and(shown);
                continue;
            }
            misses.push((at, miss));
        }
        locked = self.finish_all(locked, of, &mut misses, &mut show, &mut outcome)?;
        drop(self.read(locked, 0)?);
        outcome
    }

    /// Makes the reads of several misses together, and sees each through to its end.
    fn finish_all<'a>(
        &'a self,
        mut locked: Locked<'a>,
        of: Accessed<'_>,
        misses: &mut Vec<(usize, Miss)>,
        show: &mut impl FnMut(usize, &[u8]) -> Result<(), Error>,
        outcome: &mut Result<(), Error>,
    ) -> Result<Locked<'a>, Error> {
        locked = self.read_together(locked, of.owner())?;
        for (at, miss) in misses.drain(..) {
            let (found, shown);
            (locked, found) = self.finish(locked, miss)?;
            (locked, shown) = self.show_found(locked, found.at_once(of), |page| show(at, page))?;
            if outcome.is_ok() {
                *outcome = shown;
            }
        }
        Ok(locked)
    }

    /// Shows a page that was brought in: without the lock if the caller's buffer may be in a mapped region, whose faults need it.
    fn show_found<'a>(
        &'a self,
        locked: Locked<'a>,
        found: Result<Brought<'a>, Error>,
        show: impl FnOnce(&[u8]) -> Result<(), Error>,
    ) -> Result<(Locked<'a>, Result<(), Error>), Error> {
        if !self.arena.tokens.is_used() {
            return Ok((locked, found.and_then(|page| show(page.bytes()))));
        }
        drop(locked);
        let shown = found.and_then(|page| show(page.bytes()));
        Ok((self.lock()?, shown))
    }

    /// Requests reads of a file's pages without waiting, this many at a time, up to the end of the file.
    pub(crate) fn read_ahead(
        &self,
        file: &File,
        group: usize,
        pages: Range<u64>,
        at_once: u64,
    ) -> Result<(), Error> {
        let mut page = pages.start;
        loop {
            let mut locked = self.lock_for_page()?;
            locked = self.await_change(locked, file)?;
            // It may have been made shorter since the caller looked.
            let end = pages.end.min(file.bytes().div_ceil(PAGE_SIZE));
            if page >= end {
                return Ok(());
            }
            let miss = locked.begin(Accessed::File(file, group), Want { page, bytes: PAGE_SIZE })?;
            let (task, access) = (miss.hired.task, miss.access);
            let begun = locked.engine.readahead(task, access.object, page, at_once.min(end - page));
            let refused = match begun {
                Ok(step) => {
                    (locked, _) = self.see_through(locked, task, step)?;
                    let step = locked.engine.pay(task, access);
                    (locked, _) = self.see_through(locked, task, step)?;
                    None
                }
                Err(error) => Some(error),
            };
            locked.ended(&miss);
            drop(self.read(locked, 0)?);
            if let Some(error) = refused {
                return Err(error.into());
            }
            page += at_once;
        }
    }

    /// Drops pages of a file that are not in use, up to the end of the file.
    pub(crate) fn let_go(&self, file: &File, pages: Range<u64>) -> Result<(), Error> {
        /// The lock is free in between.
        const AT_ONCE: u64 = 64;
        let mut page = pages.start;
        loop {
            let mut locked = self.drain(self.lock()?)?;
            locked = self.await_change(locked, file)?;
            let (owner, end) = (locked.files.owner, pages.end.min(file.bytes().div_ceil(PAGE_SIZE)));
            if page >= end {
                return Ok(());
            }
            locked.engine.fadvise_dontneed(owner, file.id, page..end.min(page + AT_ONCE))?;
            locked.settle();
            page += AT_ONCE;
        }
    }

    /// Sees a miss through to its end, and pins the frame of its page.
    fn finish<'a>(
        &'a self,
        mut locked: Locked<'a>,
        mut miss: Miss,
    ) -> Result<(Locked<'a>, Found<'a>), Error> {
        loop {
            let (task, step) = (miss.hired.task, std::mem::replace(&mut miss.step, Step::Again));
            let served;
            (locked, served) = self.see_through(locked, task, step)?;
            if let Some(crowded) = locked.crowded(&mut miss, &served) {
                locked = self.await_room_beside(locked, &miss, crowded)?;
                locked.start(&mut miss);
                continue;
            }
            let found = match locked.outcome(miss.owner(), miss.access.page, served) {
                Outcome::Found(found) => {
                    // With its page held: otherwise that might take it, again and again while others of the group are in use.
                    let step = locked.engine.pay(task, miss.access);
                    (locked, _) = self.see_through(locked, task, step)?;
                    Found::Page(found)
                }
                // The access ends here: who forgets the file, and may have the page, waits for accesses.
                Outcome::Taken(pfn) => Found::Taken(pfn),
                Outcome::Again => {
                    locked.start(&mut miss);
                    continue;
                }
            };
            locked.ended(&miss);
            return Ok((locked, found));
        }
    }

    /// A wait for guards.
    pub(crate) fn guard_wait(&self) -> GuardWait<'_> {
        GuardWait::new(&self.guards, &self.arena, self.guard_wait)
    }

    /// A guard that is in no thread's line is gone.
    pub(crate) fn let_go_of_guard(&self, pfn: Pfn) {
        // In the child of a fork, the thread that would unlock what a thread of the parent had locked may not exist.
        if self.arena.is_of_this_process() {
            self.guards.let_go(pfn);
        }
    }

    /// Counts pins of a thread that has no ring.
    #[cold]
    pub(crate) fn count_pins(&self, more: i64) {
        if let Ok(mut locked) = self.lock() {
            locked.hits.pins_of_ended += more;
        }
    }

    /// Threads that make reads without a waiting thread.
    pub(crate) fn io_threads(&self) -> usize {
        self.readers.threads
    }

    /// By what files are read that no thread waits for alone.
    pub(crate) fn backend(&self) -> Backend {
        self.readers.backend()
    }

    /// How files are read, in words.
    pub(crate) fn describe_readers(&self) -> String {
        self.readers.describe()
    }
}

#[cfg(test)]
mod tests; // what a panic, a failing device and a move leave
