//! What is done under the engine's lock.
//!
//! The owner of a [`Locked`] has the lock alone. Nothing here releases it or reads a file. Decisions of an engine call are noted
//! ([`Locked::settle`]), and the thread that releases the lock copies the moved pages.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pageout_engine::{
    Access, AccessError, CpuId, FileId, IoError, Nanos, ObjectId, OomReport, PAGE_SIZE, Pfn, Served, Step,
    TaskId, Touched,
};

use super::inner::{Group, Inner, Runs, Waiter};
use super::open_file::OpenFile;
use super::regions::Purpose;
use super::transfer::{Failed, Target, Transfer};
use super::{Accessed, Brought, LiveMachine, PageOwner, Want};
use crate::arena::{OwnedPin, Pin};
use crate::cpu_time;
use crate::error::Error;
use crate::file::Inner as File;
use crate::gate::Unpinned;
use crate::ring::{Hits, Read};
use crate::sync::{Instant, Mutex, MutexGuard};

/// Maximum number of reads for promotion that are reported to the engine in one step: mostly one page each.
const PROMOTED_MAX: u64 = 31;

/// Every `MEASURED`-th hold is timed. A read of the clock takes a fiftieth of a miss.
const MEASURED: u64 = 8;

std::thread_local! {
    /// Locks of caches that this thread holds, as far as assertions are compiled.
    static LOCKS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Returns true if this thread holds the lock of a cache. A thread that does must not touch memory of a caller, which may be a mapped region.
pub(crate) fn has_lock() -> bool {
    LOCKS.with(std::cell::Cell::get) > 0
}

fn count_lock(more: i32) {
    if cfg!(debug_assertions) {
        LOCKS.with(|locks| locks.set(locks.get().wrapping_add_signed(more)));
    }
}

/// When a hold began.
enum Since {
    Clock(Instant),
    /// By the holder's CPU time.
    Cpu(Duration),
}

/// The lock, held.
pub(crate) struct Locked<'a> {
    machine: &'a LiveMachine,
    /// There as long as this is.
    inner: Option<MutexGuard<'a, Inner>>,
    /// Since when, if this hold is measured.
    since: Option<Since>,
}

impl<'a> Locked<'a> {
    /// Creates it for the thread that has got the lock. The engine's time is now.
    pub(super) fn new(machine: &'a LiveMachine, inner: MutexGuard<'a, Inner>) -> Locked<'a> {
        count_lock(1);
        let now = Instant::now();
        let mut locked = Locked { machine, inner: Some(inner), since: None };
        locked.tell_time(now - machine.began);
        locked.holds += 1;
        locked.since = match machine.holds_by_cpu {
            true => Some(Since::Cpu(cpu_time::of_thread())),
            false => locked.holds.is_multiple_of(MEASURED).then_some(Since::Clock(now)),
        };
        locked
    }

    /// Returns the locked state, for a caller that continues with the lock itself.
    pub(super) fn into_inner(mut self) -> MutexGuard<'a, Inner> {
        self.make_moves();
        self.make_zeroes();
        if !self.effects.to_wake.is_empty() {
            // The caller may sleep for long.
            self.wake_service();
        }
        count_lock(-1);
        self.inner.take().expect("it is held")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since.take() {
            self.count_hold(since);
        }
        if self.inner.is_none() {
            return;
        }
        if !std::thread::panicking() {
            self.make_zeroes();
        }
        count_lock(-1);
        let Some(mut inner) = self.inner.take() else { return };
        if inner.effects.moves.is_empty() && inner.effects.to_wake.is_empty() || std::thread::panicking() {
            return;
        }
        let (moves, woken) =
            (std::mem::take(&mut inner.effects.moves), std::mem::take(&mut inner.effects.to_wake));
        self.machine.moves.begin(&moves);
        drop(inner);
        for one in moves {
            one.make(&self.machine.arena);
            self.machine.moves.end(one);
        }
        woken.into_iter().for_each(|sleeper| self.machine.wakers.wake(sleeper));
    }
}

impl std::ops::Deref for Locked<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        self.inner.as_ref().expect("it is held")
    }
}

impl std::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        self.inner.as_mut().expect("it is held")
    }
}

/// A task that acts on behalf of a group, and is the group's again when this goes, however that comes.
pub(crate) struct Hired {
    pub(crate) task: TaskId,
    idle: Arc<Mutex<Vec<TaskId>>>,
}

impl Drop for Hired {
    fn drop(&mut self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
    }
}

/// The outcome of an access that is over.
pub(super) enum Outcome<T> {
    /// Its page, or why there is none.
    Found(Result<T, Error>),
    /// Its page has an exclusive holder: the access must be repeated when that holder has ended.
    Taken(Pfn),
    /// It must be repeated, as the group's debt for `memory.high` has cost the page.
    Again,
}

/// An access in progress.
pub(super) struct Miss {
    /// The owner of the page, and the serial number of the handle or region.
    pub(super) of: (PageOwner, u64),
    pub(super) hired: Hired,
    pub(super) access: Access,
    pub(super) step: Step,
    /// Dirty limits do not hold it up.
    pub(super) is_spared: bool,
    /// Reads of the device that had ended when it was last made.
    pub(super) reads_before: u64,
    /// How often it has found no memory, and how often although nothing of its group was being read.
    tries: u8,
    in_vain: u8,
    /// How often pages that waited in batches have come to the lists because of it.
    drained: u8,
}

/// An access that has found no memory is to be made again: after the shorter time, or where no read ends meanwhile, after the longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crowded {
    pub(super) least: Duration,
    pub(super) most: Duration,
}

impl Crowded {
    /// Reclaim finds more pages now, so nothing is to be waited for.
    const DRAINED: Crowded = Crowded { least: Duration::ZERO, most: Duration::ZERO };
}

impl Miss {
    /// An access to this owner that has not begun.
    pub(super) fn new(of: (PageOwner, u64), hired: Hired, access: Access, reads_before: u64) -> Miss {
        Miss {
            of,
            hired,
            access,
            step: Step::Again,
            is_spared: false,
            reads_before,
            tries: 0,
            in_vain: 0,
            drained: 0,
        }
    }

    /// The owner of the page.
    pub(super) fn owner(&self) -> PageOwner {
        self.of.0
    }

    /// Returns true if it is over, as there is no memory for its page.
    pub(super) fn lacks_memory(&self) -> bool {
        matches!(self.step, Step::Done(Served::Failed(AccessError::Oom(_))))
    }

    /// What is to be done where it has found no memory: nothing if that will last. The kernel would kill a process for a moment's want, and here a
    /// program's access would fail.
    fn crowded(&mut self, report: &OomReport, is_drained: bool, are_due: bool) -> Option<Crowded> {
        /// Others fill the batches again, so that this would not end.
        const DRAINED_MAX: u8 = 2;
        /// An attempt counts less if other misses hold pages that were read, and are yet to continue: their pages are free soon.
        const OF_DUE: u8 = 1;
        const OF_OTHERS: u8 = 4;
        /// The number of reclaim attempts, which take 66 ms together: threads that copy are done by then, and threads that poll have polled. The
        /// remaining pages are under guards.
        const IN_VAIN_MAX: u8 = 16 * OF_OTHERS;
        let span =
            |longest| Duration::from_micros(20 << self.tries.min(16)).min(Duration::from_millis(longest));
        let has_unlisted = report.usage > report.lists.iter().sum();
        if is_drained && has_unlisted && self.drained < DRAINED_MAX {
            self.drained += 1;
            return Some(Crowded::DRAINED);
        }
        // The engine has tried to write every page many times. A swap file that fails promises nothing to a group whose memory is mostly of regions.
        let [inactive, active, ..] = report.lists;
        let is_of_regions = 2 * (inactive + active) > report.lists.iter().sum();
        if report.swap_fails > 0 && report.being_read == 0 && is_of_regions {
            return None;
        }
        let crowded = match report.being_read {
            0 => Crowded { least: span(8), most: span(8) },
            // Room comes when that has ended, or otherwise before.
            _ => Crowded { least: span(1), most: Duration::from_millis(10) },
        };
        self.tries = self.tries.saturating_add(1);
        self.in_vain += match report.being_read {
            0 if are_due => OF_DUE,
            0 => OF_OTHERS,
            _ => 0,
        };
        (self.in_vain <= IN_VAIN_MAX).then_some(crowded)
    }
}

impl<'a> Locked<'a> {
    pub(super) fn machine(&self) -> &'a LiveMachine {
        self.machine
    }

    #[inline(never)]
    fn count_hold(&self, since: Since) {
        self.machine.held.count(match since {
            Since::Clock(since) => since.elapsed(),
            Since::Cpu(since) => cpu_time::of_thread().saturating_sub(since),
        });
    }

    fn tell_time(&mut self, since: Duration) {
        // A clock that stands still, or the lock that was got in another order than the time: the engine's never goes back.
        self.now = self.now.max(Nanos(since.as_nanos() as u64));
        let now = self.now;
        self.engine.set_now(now);
    }

    pub(super) fn waiter(&mut self, task: TaskId) -> &mut Waiter {
        let at = task.0 as usize;
        if self.waiting.waiters.len() <= at {
            self.waiting.waiters.resize_with(at + 1, Waiter::default);
        }
        &mut self.waiting.waiters[at]
    }

    /// A task that accesses on behalf of a group, and does nothing else at the moment.
    pub(crate) fn hire(&mut self, group: usize) -> Hired {
        let Group { mm, idle, .. } = &self.files.groups[group];
        let (mm, idle) = (*mm, Arc::clone(idle));
        let task = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let task = task.unwrap_or_else(|| self.engine.task_create(mm, CpuId(0)));
        self.waiter(task).is_woken = false;
        Hired { task, idle }
    }

    /// Prepares a read of a page.
    pub(super) fn begin(&mut self, of: Accessed<'_>, want: Want) -> Result<Miss, Error> {
        self.transfers.misses += 1;
        match of {
            Accessed::File(file, group) => self.begin_access(file, group, want, false),
            Accessed::Region(region) => self.begin_region_access(region.number, want.page, Purpose::Read),
        }
    }

    /// Prepares a read or write of a page of a file on behalf of a group.
    pub(super) fn begin_access(
        &mut self,
        file: &File,
        group: usize,
        want: Want,
        write: bool,
    ) -> Result<Miss, Error> {
        if !self.is_reachable(file) {
            return Err(file.forgotten());
        }
        let hired = self.hire(group);
        let (owner, hitter) = (self.files.owner, self.hits.hitter);
        let object = self.engine.lend((owner, file.object), hired.task)?;
        if !self.hits.is_promoting {
            self.engine.pass_call(hitter, hired.task);
        }
        let wanted = u32::try_from(want.bytes).unwrap_or(u32::MAX);
        let access = Access { wanted, ..Access::new(object, want.page, write) };
        self.access_begins(file.id, file.serial);
        let (of, reads_before) = ((PageOwner::File(file.id), file.serial), self.transfers.device_reads);
        Ok(Miss::new(of, hired, access, reads_before))
    }

    /// What crowds out a miss that found no memory only for a moment, so that it must be repeated.
    pub(super) fn crowded(&mut self, miss: &mut Miss, served: &Served) -> Option<Crowded> {
        let Served::Failed(AccessError::Oom(report)) = served else { return None };
        // Reclaim finds no page in a batch, and a group of up to 31 pages may have all of its pages there.
        let is_drained = self.engine.drain_batches();
        let are_due = !self.waiting.due.is_empty();
        let crowded = miss.crowded(report, is_drained, are_due)?;
        self.engine.take_back_oom_kill(report);
        Some(crowded)
    }

    /// Makes an access, for the first time or again.
    pub(super) fn start(&mut self, miss: &mut Miss) {
        miss.reads_before = self.transfers.device_reads;
        if miss.is_spared {
            self.engine.spare_next_throttle(miss.hired.task);
        }
        miss.step = self.engine.start(miss.hired.task, miss.access);
    }

    /// An access is over, and its call perhaps not.
    pub(super) fn ended(&mut self, miss: &Miss) {
        match miss.of {
            (PageOwner::File(file), serial) => {
                let hitter = self.hits.hitter;
                self.engine.pass_call(miss.hired.task, hitter);
                self.access_ends(file, serial);
            }
            (PageOwner::Region(region), _) => self.region_access_ends(region),
        }
    }

    pub(super) fn wake(&mut self) {
        let mut woken = std::mem::take(&mut self.effects.woken);
        self.engine.take_woken(&mut woken);
        for task in woken.drain(..) {
            if let Some(thread) = self.waiting.threads.iter_mut().find(|thread| thread.task == task) {
                thread.runs = Runs::Now;
                self.wake_service();
                continue;
            }
            let waiter = self.waiter(task);
            waiter.is_woken = true;
            if let Some(thread) = waiter.thread.take() {
                thread.unpark();
            } else if waiter.driven.is_some() {
                self.go_on_later(task);
            }
        }
        self.effects.woken = woken;
    }

    /// The thread that runs kernel threads has something to do.
    pub(super) fn wake_service(&mut self) {
        // A call to wake it costs as much as the rest of what is done here.
        if std::mem::take(&mut self.waiting.service_sleeps) {
            self.machine.service.notify_one();
        }
    }

    /// A read or a write has ended.
    pub(super) fn transfer_done(&mut self, transfer: Transfer, result: Result<(), Failed>) {
        if transfer.is_write() { self.write_done(transfer) } else { self.read_done(transfer, result) }
    }

    /// A read has ended: what it has filled can be seen, and who waited for it goes on.
    pub(super) fn read_done(&mut self, read: Transfer, result: Result<(), Failed>) {
        self.transfers.device_reads += 1;
        if let Target::File(file) = read.target
            && let Some(of) = &mut self.files.open[file.0 as usize]
        {
            of.requests.reads += 1;
            of.requests.bytes += if result.is_ok() { u64::from(read.bytes) } else { 0 };
        }
        match result {
            Ok(()) => {
                self.transfers.device_bytes += u64::from(read.bytes);
                read.frames.iter().for_each(|&pfn| self.machine.arena.gate(pfn).open());
            }
            Err(failed) => self.note_failed(&read, failed),
        }
        self.transfers.spare.give_back(read.frames);
        self.engine.io_done(read.io, CpuId(0), result.map_err(|_| IoError::Device));
        self.settle();
    }

    /// Keeps the reason why a read has failed, for those who wait for it.
    #[cold]
    fn note_failed(&mut self, read: &Transfer, failed: Failed) {
        match read.target {
            Target::File(file) => {
                if let Some(of) = &mut self.files.open[file.0 as usize] {
                    of.failed = Some((read.page, failed));
                }
            }
            Target::Swap => {
                let swap = self.transfers.swap.as_mut().expect("it was read");
                swap.read_error = match failed {
                    Failed::Errno(errno) => errno,
                    Failed::Shortened => libc::EIO,
                };
            }
        }
    }

    /// Takes all hits out of the rings of all threads.
    pub(super) fn collect_hits(&mut self) {
        let holds = &self.machine.arena.holds;
        let inner = &mut **self;
        inner.hits.rings.retain(|ring| {
            let is_over = ring.is_over();
            ring.drain(&mut inner.hits.untold);
            if is_over {
                ring.line.into_iter().for_each(|line| holds.give_back(line));
                inner.hits.of_ended += ring.hits();
                inner.hits.pins_of_ended += ring.pins();
            }
            !is_over
        });
    }

    /// Tells the engine of hits that were collected; false where there are more, and others should have the lock first: pages were promoted.
    pub(super) fn drain_step(&mut self) -> bool {
        if self.hits.is_promoting {
            let hitter = self.hits.hitter;
            let step = self.engine.resume(hitter);
            self.told(step);
            return false;
        }
        let mut promoted = 0;
        while let Some(&first) = self.hits.untold.front() {
            let run = self.hits.untold.iter().take_while(|read| read.object() == first.object()).count();
            promoted += self.tell_hits(first.object(), run);
            if self.hits.is_promoting || promoted >= PROMOTED_MAX {
                return false;
            }
        }
        true
    }

    /// Tells the engine of so many hits through one handle, or of as many as a step takes. Returns how many of them had something to promote.
    fn tell_hits(&mut self, object: ObjectId, run: usize) -> u64 {
        let mut untold = std::mem::take(&mut self.hits.untold);
        let mut reads = &untold.make_contiguous()[..run];
        let mut promoted = 0;
        // It may have been closed meanwhile.
        let (hitter, lent) = match reads[0].region() {
            None => {
                let (owner, hitter) = (self.files.owner, self.hits.hitter);
                (hitter, self.engine.lend((owner, object), hitter).ok())
            }
            Some(region) => {
                let of = self.regions.hitter_of(region);
                (of.map_or(self.hits.hitter, |(hitter, _)| hitter), of.map(|(_, object)| object))
            }
        };
        if let Some(object) = lent {
            let access =
                |read: Read| Access { wanted: read.wanted(), ..Access::new(object, read.page(), false) };
            while !reads.is_empty() && !self.hits.is_promoting && promoted < PROMOTED_MAX {
                let hits = self.engine.run_hits(hitter, reads, access);
                reads = &reads[hits..];
                let Some((&read, rest)) = reads.split_first() else { break };
                reads = rest;
                // A page that has gone meanwhile has nothing to be noted.
                if let Some(step) = self.engine.start_hit(hitter, access(read)) {
                    promoted += 1;
                    self.told(step);
                }
            }
            self.settle();
        } else {
            reads = &[];
        }
        let told = run - reads.len();
        untold.drain(..told);
        self.hits.untold = untold;
        promoted
    }

    /// The engine was notified of a hit that ends its call.
    fn told(&mut self, step: Step) {
        self.settle();
        self.hits.is_promoting = match step {
            Step::Again => true,
            Step::Done(_) => false,
            Step::Wait(wait) => panic!("who was told of a hit waits: {wait:?}"),
        };
    }

    /// Hits of all threads.
    pub(crate) fn hits(&self) -> Hits {
        let mut hits = self.hits.of_ended;
        self.hits.rings.iter().for_each(|ring| hits += ring.hits());
        hits
    }

    /// The outcome of an access that is over: its page, pinned, or the error.
    pub(super) fn outcome(&mut self, of: PageOwner, page: u64, served: Served) -> Outcome<Brought<'a>> {
        match self.frame_of(of, page, served) {
            Outcome::Found(Ok(None)) => Outcome::Found(Ok(Brought::Zeroes)),
            Outcome::Found(Ok(Some(pfn))) => match self.pin_filled(pfn) {
                Ok(pin) => Outcome::Found(Ok(Brought::Page(pin))),
                Err(Unpinned::Full | Unpinned::Held) => Outcome::Found(Err(self.pinned_page(of, page))),
                Err(Unpinned::Written) => Outcome::Taken(pfn),
                Err(Unpinned::Closed) => panic!("page {page} was served from {pfn:?}, which is closed"),
            },
            Outcome::Found(Err(error)) => Outcome::Found(Err(error)),
            Outcome::Taken(pfn) => Outcome::Taken(pfn),
            Outcome::Again => Outcome::Again,
        }
    }

    /// Pins a frame. If it is to be filled with zeroes, that is done first: a page of zeroes comes from swap this way.
    fn pin_filled(&mut self, pfn: Pfn) -> Result<Pin<'a>, Unpinned> {
        let arena = &self.machine.arena;
        if !arena.gate(pfn).is_open() && self.take_zeroes(pfn) {
            arena.zero(pfn, 0);
            arena.gate(pfn).open();
        }
        arena.pin(pfn)
    }

    /// The frame of a page whose access is over, or the error. `None` for a page of a region that was never written.
    pub(super) fn frame_of(&mut self, of: PageOwner, page: u64, served: Served) -> Outcome<Option<Pfn>> {
        match served {
            Served::Hit(touched) | Served::Minor(touched) | Served::Major(touched) => match touched {
                Touched::Gone => Outcome::Again,
                Touched::Frame(pfn) => {
                    let machine = self.machine;
                    machine.await_move(&mut self.effects.moves, pfn);
                    Outcome::Found(Ok(Some(pfn)))
                }
                Touched::Zeroes => Outcome::Found(Ok(None)),
            },
            Served::Failed(error) => Outcome::Found(Err(self.failure(of, page, error))),
            other => panic!("an access ended as {other:?}"),
        }
    }

    /// Keeps a page for a caller without a thread here, unless too many are held.
    pub(super) fn keep(&self, of: PageOwner, pin: Pin<'_>) -> Result<OwnedPin, Error> {
        let (pinned, most) = (self.pinned() + 1, self.machine.budget.pins_max());
        if pinned <= most {
            Ok(pin.into_owned(&self.machine.arena))
        } else {
            Err(Error::Pinned { path: self.path_of(of), page: None, pinned, most })
        }
    }

    /// The error for a caller that needs a held page.
    pub(crate) fn pinned_page(&self, of: impl Into<PageOwner>, page: u64) -> Error {
        let (pinned, most) = (self.pinned(), self.machine.budget.pins_max());
        Error::Pinned { path: self.path_of(of.into()), page: Some(page), pinned, most }
    }

    /// The error for a caller that needs all pages of a file, one of which is held.
    pub(crate) fn pinned_file(&self, file: FileId) -> Error {
        self.pinned_page(file, self.held_page(file).unwrap_or(0))
    }

    /// The path of a file, or the name of a region.
    pub(super) fn path_of(&self, of: PageOwner) -> PathBuf {
        let path = match of {
            PageOwner::File(file) => self.files.open[file.0 as usize].as_ref().map(|of| of.path.clone()),
            PageOwner::Region(region) => self.regions.name_of(region),
        };
        path.unwrap_or_default()
    }

    /// What an access's failure means to who made it.
    fn failure(&self, of: PageOwner, page: u64, error: AccessError) -> Error {
        let path = self.path_of(of);
        let of = match of {
            PageOwner::File(file) => self.files.open[file.0 as usize].as_ref(),
            PageOwner::Region(region)
                if matches!(error, AccessError::Io | AccessError::BeyondObject { .. }) =>
            {
                return self.region_failure(region, page, &error);
            }
            PageOwner::Region(_) => None,
        };
        match (error, of.and_then(|of| of.failed)) {
            (AccessError::Oom(mut report), _) => {
                report.held = self.pinned();
                Error::OutOfMemory(report)
            }
            (AccessError::BeyondObject { .. }, _) => {
                let bytes = of.map_or(0, OpenFile::bytes);
                Error::BeyondEnd { path, end: (page + 1) * PAGE_SIZE, bytes }
            }
            (AccessError::Io, Some((_, Failed::Shortened))) => Error::Shortened { path, page },
            (AccessError::Io, failed) => {
                let errno = match failed {
                    Some((_, Failed::Errno(errno))) => errno,
                    _ => libc::EIO,
                };
                Error::Io {
                    op: "a read",
                    path,
                    page: Some(page),
                    source: io::Error::from_raw_os_error(errno),
                }
            }
            (AccessError::Writeback, _) => {
                // The error of another file's pages, if its own have none.
                let of_device = || of.and_then(|of| self.transfers.devices[of.device].write_error);
                let errno = of.and_then(|of| of.write_error).or_else(of_device).unwrap_or(libc::EIO);
                Error::Io { op: "write-back", path, page: None, source: io::Error::from_raw_os_error(errno) }
            }
            (other, _) => panic!("an access failed: {other}"),
        }
    }

    /// How many pages guards hold.
    pub(crate) fn pinned(&self) -> u64 {
        let of_rings: i64 = self.hits.rings.iter().map(|ring| ring.pins()).sum();
        let arena = &self.machine.arena;
        (of_rings + self.hits.pins_of_ended).max(0) as u64 + arena.owned_pins() + arena.holds.count()
    }
}
