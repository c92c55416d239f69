//! The machine: the engine under its one lock, and what is carried out of what it decides.
//!
//! ```text
//!   a miss   lock ─▶ start ─▶ unlock ─▶ the reads it asks for ─▶ lock ─▶ frames open, io_done ─▶ resume ─▶ pin ─▶ unlock
//!                      └ Again: others may have the lock ─▶ resume          └ woken: whoever waited for the same page
//! ```
//! Who misses reads by himself. What nobody waits for (pages read ahead) goes to a few threads. Reclaim that kswapd does is a thread's,
//! too, in steps between which the lock is free. Nothing here decides what stays in memory.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pageout_engine::{
    Access, AccessError, CpuId, Engine, FileId, FrameGate, IoError, IoId, MemcgId, MmId, Nanos, ObjectId, Op,
    PAGE_SIZE, Pfn, Served, Step, TaskId, Touched, Wait,
};

use crate::arena::{Arena, Pin};
use crate::error::Error;
use crate::file::Inner as File;
use crate::gate::Unpinned;
use crate::local;
use crate::ring::{Read, Ring};
use crate::stats::Histogram;

/// What all handles share.
pub(crate) struct Machine {
    pub(crate) arena: Arc<Arena>,
    inner: Mutex<Inner>,
    /// A kernel thread has been woken, or all is to stop.
    service: Condvar,
    /// There is something to read.
    readers: Condvar,
    /// A file that is going has no access under way any more, or is gone, or is not going any more.
    idle: Condvar,
    began: Instant,
    /// Something has panicked, perhaps with a read in its hands that others wait for.
    is_poisoned: AtomicBool,
    pub(crate) held: Histogram,
    /// Tells one cache from others of the process.
    pub(crate) id: u64,
    /// Threads that read what nobody waits for; none: whoever asks for it reads it.
    io_threads: usize,
    /// Pages that guards may hold.
    pub(crate) pins_max: u64,
}

/// What is under the lock.
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    ops: Vec<Op>,
    woken: Vec<TaskId>,
    /// Asked for, and not begun.
    reads: Vec<Transfer>,
    /// For the threads that read.
    queue: VecDeque<Transfer>,
    waiters: Vec<Waiter>,
    threads: Vec<KernelThread>,
    /// By file.
    pub(crate) files: Vec<Option<OpenFile>>,
    pub(crate) groups: Vec<Group>,
    /// Has all files open, and never accesses any.
    pub(crate) owner: TaskId,
    /// In its name the engine hears of hits.
    hitter: TaskId,
    pub(crate) rings: Vec<Arc<Ring>>,
    drained: Vec<Read>,
    /// Of rings whose threads are gone.
    pub(crate) hits_of_ended: u64,
    pub(crate) pins_of_ended: i64,
    pub(crate) misses: u64,
    pub(crate) device_reads: u64,
    pub(crate) device_bytes: u64,
    /// Handles of files that there have been, and those that are gone.
    serials: u64,
    pub(crate) closed: u64,
    now: Nanos,
    stops: bool,
}

/// A file as the machine reads it.
pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<std::fs::File>,
    pub(crate) bytes: u64,
    /// By which it is known to be the same file.
    pub(crate) inode: (u64, u64),
    pub(crate) is_direct: bool,
    /// Its handles, each with the owner's object of it.
    handles: Vec<(u64, ObjectId)>,
    /// Its pages are going: nobody may bring in any.
    pub(crate) is_going: bool,
    /// Accesses that are under way.
    busy: u32,
    /// Why a page could not be read, last.
    failed: Option<(u64, Failed)>,
}

/// An address space, to which pages are charged, and tasks that access on its behalf.
pub(crate) struct Group {
    pub(crate) mm: MmId,
    idle: Arc<Mutex<Vec<TaskId>>>,
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

/// A task and the thread that waits for it.
#[derive(Default)]
struct Waiter {
    is_woken: bool,
    thread: Option<Thread>,
}

struct KernelThread {
    task: TaskId,
    runs: Runs,
}

/// When a kernel thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Runs {
    Now,
    WhenWoken,
    /// At this time, or when it is woken.
    At(Nanos),
}

/// A read of a file that is in flight, or will be.
struct Transfer {
    io: IoId,
    file: FileId,
    from: Arc<std::fs::File>,
    page: u64,
    frames: Vec<Pfn>,
    /// Bytes that the file has there.
    bytes: u64,
}

/// A page that is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Want {
    pub(crate) page: u64,
    /// Bytes that the call still wants from the beginning of the page on.
    pub(crate) bytes: u64,
}

/// An access that is under way.
struct Miss {
    hired: Hired,
    access: Access,
    step: Step,
}

/// Why a page could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failed {
    Shortened,
    Errno(i32),
}

/// The engine asks by this whether somebody looks at a frame.
pub(crate) struct Doors(pub(crate) Arc<Arena>);

impl FrameGate for Doors {
    fn close(&mut self, pfn: Pfn) -> bool {
        self.0.gate(pfn).close()
    }

    fn open(&mut self, pfn: Pfn) {
        self.0.gate(pfn).open();
    }
}

/// The lock, held.
pub(crate) struct Locked<'a> {
    machine: &'a Machine,
    inner: Option<MutexGuard<'a, Inner>>,
    since: Instant,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.machine.held.count(self.since.elapsed());
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

/// A thread that would have woken others may have panicked.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Numbers of caches.
static IDS: AtomicU64 = AtomicU64::new(0);

impl Machine {
    /// A machine whose engine has no task yet.
    pub(crate) fn new(mut engine: Engine, arena: Arc<Arena>, io_threads: usize, pins_max: u64) -> Machine {
        let mm = engine.process_create(MemcgId::ROOT);
        let [owner, hitter] = [(); 2].map(|()| engine.task_create(mm, CpuId(0)));
        let threads = engine.start_kernel_threads();
        let threads = threads
            .into_iter()
            .map(|thread| KernelThread { task: thread.task, runs: runs(thread.wait, Nanos::ZERO) });
        let inner = Inner {
            threads: threads.collect(),
            engine,
            ops: Vec::new(),
            woken: Vec::new(),
            reads: Vec::new(),
            queue: VecDeque::new(),
            waiters: Vec::new(),
            files: Vec::new(),
            groups: vec![Group { mm, idle: Arc::default() }],
            owner,
            hitter,
            rings: Vec::new(),
            drained: Vec::new(),
            hits_of_ended: 0,
            pins_of_ended: 0,
            misses: 0,
            device_reads: 0,
            device_bytes: 0,
            serials: 0,
            closed: 0,
            now: Nanos::ZERO,
            stops: false,
        };
        Machine {
            arena,
            inner: Mutex::new(inner),
            service: Condvar::new(),
            readers: Condvar::new(),
            idle: Condvar::new(),
            began: Instant::now(),
            is_poisoned: AtomicBool::new(false),
            held: Histogram::default(),
            id: IDS.fetch_add(1, Relaxed),
            io_threads,
            pins_max,
        }
    }

    /// Takes the lock. The engine's time is now.
    pub(crate) fn lock(&self) -> Result<Locked<'_>, Error> {
        if !self.arena.is_of_this_process() || self.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let inner = self.inner.lock().map_err(|_| Error::Poisoned)?;
        let since = Instant::now();
        let mut locked = Locked { machine: self, inner: Some(inner), since };
        locked.tell_time(since - self.began);
        Ok(locked)
    }

    /// Something has panicked: nobody gets the lock any more, and whoever waits is told.
    pub(crate) fn poison(&self) {
        self.is_poisoned.store(true, Relaxed);
        self.service.notify_all();
        self.readers.notify_all();
        self.idle.notify_all();
    }

    fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Relaxed)
    }

    /// Takes a step of a task, and all that follows, to its end. What the last call has asked to be read is yet to be begun.
    pub(crate) fn see_through<'a>(
        &'a self,
        mut locked: Locked<'a>,
        task: TaskId,
        mut step: Step,
    ) -> Result<(Locked<'a>, Served), Error> {
        loop {
            locked.settle();
            locked = match step {
                Step::Done(served) => return Ok((locked, served)),
                Step::Again => {
                    drop(self.read(locked, 0)?);
                    let mut locked = self.lock()?;
                    // What others have read counts before more of it is evicted.
                    locked.drain_all();
                    locked
                }
                Step::Wait(Wait::Io(_)) => {
                    let locked = self.read(locked, 1)?;
                    self.wait(locked, task, None)?
                }
                Step::Wait(Wait::Woken) => {
                    let locked = self.read(locked, 0)?;
                    self.wait(locked, task, None)?
                }
                Step::Wait(Wait::WokenOr(span, _)) => {
                    let locked = self.read(locked, 0)?;
                    self.wait(locked, task, Some(Duration::from_nanos(span.0)))?
                }
                Step::Wait(Wait::Delay(span, _)) => {
                    drop(self.read(locked, 0)?);
                    std::thread::sleep(Duration::from_nanos(span.0));
                    self.lock()?
                }
            };
            step = locked.engine.resume(task);
        }
    }

    /// Begins what the last call has asked to be read: so many by this thread, which needs them, the rest by others, if there are any.
    pub(crate) fn read<'a>(&'a self, mut locked: Locked<'a>, own: usize) -> Result<Locked<'a>, Error> {
        let mut own = if self.io_threads == 0 { usize::MAX } else { own };
        while !locked.reads.is_empty() {
            let mut reads = std::mem::take(&mut locked.reads);
            let others = reads.split_off(own.min(reads.len()));
            if !others.is_empty() {
                others.iter().for_each(|_| self.readers.notify_one());
                locked.queue.extend(others);
            }
            if reads.is_empty() {
                break;
            }
            drop(locked);
            let results: Vec<_> = reads.iter().map(|read| read.perform(&self.arena)).collect();
            locked = self.lock()?;
            for (read, result) in reads.into_iter().zip(results) {
                locked.read_done(read, result);
            }
            own = if self.io_threads == 0 { usize::MAX } else { 0 };
        }
        Ok(locked)
    }

    /// Lets go of the lock until a task is woken, or for so long.
    fn wait<'a>(
        &'a self,
        mut locked: Locked<'a>,
        task: TaskId,
        span: Option<Duration>,
    ) -> Result<Locked<'a>, Error> {
        let until = span.map(|span| Instant::now() + span);
        loop {
            let waiter = locked.waiter(task);
            if std::mem::take(&mut waiter.is_woken) || until.is_some_and(|until| until <= Instant::now()) {
                waiter.thread = None;
                return Ok(locked);
            }
            waiter.thread = Some(std::thread::current());
            drop(locked);
            let left = until.map_or(LOOK_AGAIN, |until| until.saturating_duration_since(Instant::now()));
            std::thread::park_timeout(left.min(LOOK_AGAIN));
            locked = self.lock()?;
        }
    }

    /// Brings a page of a file in, on behalf of a group, and pins its frame.
    pub(crate) fn bring_in(&self, file: &File, group: usize, want: Want) -> Result<Pin<'_>, Error> {
        let mut locked = self.lock()?;
        locked.drain_all();
        local::give_back(self, &locked);
        locked = self.wait_if_going(locked, file)?;
        let mut miss = locked.begin(file, group, want)?;
        miss.step = locked.engine.start(miss.hired.task, miss.access);
        let found;
        (locked, found) = self.finish(locked, file, miss)?;
        drop(self.read(locked, 0)?);
        found
    }

    /// Brings pages of a file in, whose reads are in flight together, and shows each in its frame. All have come to an end when this
    /// returns, even where one has failed.
    pub(crate) fn bring_in_all(
        &self,
        file: &File,
        group: usize,
        wants: impl Iterator<Item = Want>,
        mut show: impl FnMut(usize, &Pin<'_>),
    ) -> Result<(), Error> {
        let mut locked = self.lock()?;
        locked.drain_all();
        local::give_back(self, &locked);
        let (mut misses, mut outcome) = (Vec::new(), Ok(()));
        for (at, want) in wants.enumerate() {
            // The lock was free between two steps of another one: the file may be forgotten.
            let mut miss = match locked.begin(file, group, want) {
                Ok(miss) => miss,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            miss.step = locked.engine.start(miss.hired.task, miss.access);
            locked.settle();
            while miss.step == Step::Again {
                drop(locked);
                locked = self.lock()?;
                locked.drain_all();
                miss.step = locked.engine.resume(miss.hired.task);
                locked.settle();
            }
            if matches!(miss.step, Step::Done(_)) {
                // It has nothing to wait for, and its page can go as soon as the lock is free.
                let found;
                (locked, found) = self.finish(locked, file, miss)?;
                outcome = outcome.and(found.map(|pin| show(at, &pin)));
                continue;
            }
            misses.push((at, miss));
        }
        locked = self.read(locked, 0)?;
        // This thread reads, too, as long as there is something that nobody has begun.
        while let Some(read) = locked.queue.pop_front() {
            drop(locked);
            let result = read.perform(&self.arena);
            locked = self.lock()?;
            locked.read_done(read, result);
        }
        for (at, miss) in misses {
            let found;
            (locked, found) = self.finish(locked, file, miss)?;
            outcome = outcome.and(found.map(|pin| show(at, &pin)));
        }
        drop(self.read(locked, 0)?);
        outcome
    }

    /// Sees a miss through to its end, and pins the frame of its page.
    fn finish<'a>(
        &'a self,
        mut locked: Locked<'a>,
        file: &File,
        miss: Miss,
    ) -> Result<(Locked<'a>, Result<Pin<'a>, Error>), Error> {
        let Miss { hired, access, mut step } = miss;
        let page = access.page;
        loop {
            let served;
            (locked, served) = self.see_through(locked, hired.task, step)?;
            let found = match served {
                // What the group owes for `memory.high` has cost the page.
                Served::Hit(Touched::Gone) | Served::Minor(Touched::Gone) | Served::Major(Touched::Gone) => {
                    step = locked.engine.start(hired.task, access);
                    continue;
                }
                Served::Hit(Touched::Frame(pfn))
                | Served::Minor(Touched::Frame(pfn))
                | Served::Major(Touched::Frame(pfn)) => match self.arena.pin(pfn) {
                    Ok(pin) => Ok(pin),
                    Err(Unpinned::Full) => Err(Error::Pinned { pinned: u64::from(u8::MAX), most: 254 }),
                    Err(Unpinned::Closed) => panic!("page {page} was served from {pfn:?}, which is closed"),
                },
                Served::Failed(error) => Err(locked.failure(file.id, page, error)),
                other => panic!("a read ended as {other:?}"),
            };
            locked.ended(file.id);
            return Ok((locked, found));
        }
    }

    /// Lets nobody begin to access a file, and waits for all who have.
    pub(crate) fn close_off<'a>(&'a self, mut locked: Locked<'a>, file: FileId) -> Result<Locked<'a>, Error> {
        locked.set_going(file, true);
        self.wait_while(locked, |locked| locked.files[file.0 as usize].as_ref().is_some_and(|of| of.busy > 0))
    }

    /// Whether a file that is going is forgotten in the end is known when it is: guards may hold its pages.
    fn wait_if_going<'a>(&'a self, locked: Locked<'a>, file: &File) -> Result<Locked<'a>, Error> {
        self.wait_while(locked, |locked| {
            locked.files[file.id.0 as usize].as_ref().is_some_and(|of| of.is_going && of.has(file.serial))
        })
    }

    /// It is known of a file that was going.
    pub(crate) fn settled(&self) {
        self.idle.notify_all();
    }

    fn wait_while<'a>(
        &'a self,
        mut locked: Locked<'a>,
        holds: impl Fn(&Inner) -> bool,
    ) -> Result<Locked<'a>, Error> {
        while holds(&locked) {
            let inner = locked.inner.take().expect("it is held");
            drop(locked);
            drop(self.idle.wait_timeout(inner, LOOK_AGAIN));
            locked = self.lock()?;
        }
        Ok(locked)
    }

    /// Runs the engine's kernel threads until all is to stop.
    pub(crate) fn run_kernel_threads(&self) {
        while let Ok(mut locked) = self.lock() {
            if locked.stops {
                return;
            }
            let now = locked.now;
            let is_due = |thread: &KernelThread| match thread.runs {
                Runs::Now => true,
                Runs::WhenWoken => false,
                Runs::At(time) => time <= now,
            };
            if let Some(at) = locked.threads.iter().position(is_due) {
                locked.drain_all();
                let task = locked.threads[at].task;
                let step = locked.engine.resume(task);
                locked.threads[at].runs = match step {
                    Step::Again => Runs::Now,
                    Step::Wait(wait) => runs(wait, now),
                    Step::Done(served) => panic!("a kernel thread has ended: {served:?}"),
                };
                locked.settle();
                let _ = self.read(locked, 0);
                continue;
            }
            let next = locked.threads.iter().filter_map(|thread| match thread.runs {
                Runs::At(time) => Some(Duration::from_nanos(time.0 - now.0)),
                _ => None,
            });
            let next = next.min().unwrap_or(Duration::from_secs(60));
            let inner = locked.inner.take().expect("it is held");
            drop(locked);
            let _ = self.service.wait_timeout(inner, next);
        }
    }

    /// Reads what nobody waits for until all is to stop.
    pub(crate) fn run_reader(&self) {
        let Ok(mut inner) = self.inner.lock() else { return };
        loop {
            if inner.stops || self.is_poisoned() {
                return;
            }
            let Some(read) = inner.queue.pop_front() else {
                match self.readers.wait(inner) {
                    Ok(again) => inner = again,
                    Err(_) => return,
                }
                continue;
            };
            drop(inner);
            let result = read.perform(&self.arena);
            match self.lock() {
                Ok(mut locked) => {
                    locked.read_done(read, result);
                    inner = locked.inner.take().expect("it is held");
                }
                Err(_) => return,
            }
        }
    }

    /// Has all threads end.
    pub(crate) fn stop(&self) {
        if let Ok(mut inner) = self.inner.lock() {
            inner.stops = true;
        }
        self.service.notify_all();
        self.readers.notify_all();
    }

    /// Counts pins of a thread that has no ring.
    #[cold]
    pub(crate) fn count_pins(&self, more: i64) {
        if let Ok(mut locked) = self.lock() {
            locked.pins_of_ended += more;
        }
    }

    /// Threads that read what nobody waits for.
    pub(crate) fn io_threads(&self) -> usize {
        self.io_threads
    }
}

/// When a kernel thread goes on that waits.
fn runs(wait: Wait, now: Nanos) -> Runs {
    match wait {
        Wait::Io(_) | Wait::Woken => Runs::WhenWoken,
        Wait::Delay(span, _) | Wait::WokenOr(span, _) => Runs::At(now + span),
    }
}

impl OpenFile {
    /// A file that nobody has open yet.
    pub(crate) fn new(
        path: PathBuf,
        file: std::fs::File,
        bytes: u64,
        inode: (u64, u64),
        is_direct: bool,
    ) -> OpenFile {
        let (file, handles) = (Arc::new(file), Vec::new());
        OpenFile { path, file, bytes, inode, is_direct, handles, is_going: false, busy: 0, failed: None }
    }

    /// Whether a handle of this number is of it.
    fn has(&self, serial: u64) -> bool {
        self.handles.iter().any(|&(of, _)| of == serial)
    }

    /// Whether no handle of it is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.handles.is_empty()
    }
}

impl Locked<'_> {
    /// A handle of a file has this object of the owner's. Returns a number that no other handle has.
    pub(crate) fn opened(&mut self, file: FileId, object: ObjectId) -> u64 {
        self.serials += 1;
        let serial = self.serials;
        let of = self.files[file.0 as usize].as_mut().expect("it was just opened");
        of.handles.push((serial, object));
        serial
    }

    /// A handle is gone; the object that is to be closed with it.
    pub(crate) fn drop_handle(&mut self, file: FileId, serial: u64) -> Option<ObjectId> {
        let of = self.files.get_mut(file.0 as usize)?.as_mut()?;
        let at = of.handles.iter().position(|&(of, _)| of == serial)?;
        let object = of.handles.swap_remove(at).1;
        self.closed += 1;
        Some(object)
    }

    /// Whether there is a handle of this number.
    pub(crate) fn is_open(&self, serial: u64) -> bool {
        self.files.iter().flatten().any(|of| of.has(serial))
    }

    /// All objects of a file, which are to be closed.
    pub(crate) fn take_objects(&mut self, file: FileId) -> Vec<ObjectId> {
        let of = self.files[file.0 as usize].as_mut();
        let handles = of.map_or_else(Vec::new, |of| std::mem::take(&mut of.handles));
        self.closed += handles.len() as u64;
        handles.into_iter().map(|(_, object)| object).collect()
    }

    /// Nobody may bring in pages of a file, or anybody again.
    pub(crate) fn set_going(&mut self, file: FileId, is_going: bool) {
        if let Some(of) = &mut self.files[file.0 as usize] {
            of.is_going = is_going;
        }
    }

    /// A group of its own address space.
    pub(crate) fn add_group(&mut self, memcg: MemcgId) -> usize {
        let mm = self.engine.process_create(memcg);
        self.groups.push(Group { mm, idle: Arc::default() });
        self.groups.len() - 1
    }

    fn tell_time(&mut self, since: Duration) {
        // A clock that stands still, or the lock that was got in another order than the time: the engine's never goes back.
        self.now = self.now.max(Nanos(since.as_nanos() as u64));
        let now = self.now;
        self.engine.set_now(now);
    }

    fn waiter(&mut self, task: TaskId) -> &mut Waiter {
        let at = task.0 as usize;
        if self.waiters.len() <= at {
            self.waiters.resize_with(at + 1, Waiter::default);
        }
        &mut self.waiters[at]
    }

    /// A task that accesses on behalf of a group, and does nothing else at the moment.
    pub(crate) fn hire(&mut self, group: usize) -> Hired {
        let Group { mm, idle } = &self.groups[group];
        let (mm, idle) = (*mm, Arc::clone(idle));
        let task = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let task = task.unwrap_or_else(|| self.engine.task_create(mm, CpuId(0)));
        self.waiter(task).is_woken = false;
        Hired { task, idle }
    }

    /// All that it takes to access a page of a file on behalf of a group.
    fn begin(&mut self, file: &File, group: usize, want: Want) -> Result<Miss, Error> {
        self.misses += 1;
        if !self.is_reachable(file) {
            return Err(file.forgotten());
        }
        let hired = self.hire(group);
        let owner = self.owner;
        let object = self.engine.lend((owner, file.object), hired.task)?;
        let wanted = u32::try_from(want.bytes).unwrap_or(u32::MAX);
        let access = Access { wanted, ..Access::new(object, want.page, false) };
        self.files[file.id.0 as usize].as_mut().expect("it is reachable").busy += 1;
        Ok(Miss { hired, access, step: Step::Again })
    }

    /// An access is over.
    fn ended(&mut self, file: FileId) {
        let of = self.files[file.0 as usize].as_mut().expect("nobody forgets it before");
        of.busy -= 1;
        if of.is_going && of.busy == 0 {
            self.machine.idle.notify_all();
        }
    }

    /// Whether pages of a file may be brought in through a handle.
    pub(crate) fn is_reachable(&self, file: &File) -> bool {
        let of = self.files.get(file.id.0 as usize).and_then(Option::as_ref);
        of.is_some_and(|of| !of.is_going && of.has(file.serial))
    }

    /// Carries out what the last call of the engine has decided, and notes what it wants read.
    pub(crate) fn settle(&mut self) {
        let arena = Arc::clone(&self.machine.arena);
        let inner = &mut **self;
        inner.engine.take_ops(&mut inner.ops);
        for op in std::mem::take(&mut inner.ops) {
            match op {
                Op::ReadFile { io, file, page, pages, .. } => {
                    let of =
                        inner.files[file.0 as usize].as_ref().expect("it is open as long as it has pages");
                    let bytes = (of.bytes - page * PAGE_SIZE).min(u64::from(pages) * PAGE_SIZE);
                    let frames = inner.engine.frames_of(io).collect();
                    inner.reads.push(Transfer { io, file, from: Arc::clone(&of.file), page, frames, bytes });
                }
                Op::FreeFrame { pfn, pages } => {
                    for gate in (pfn.0..pfn.0 + pages).map(|pfn| arena.gate(Pfn(pfn))) {
                        assert!(!gate.is_open() || gate.close(), "{pfn:?} is freed while somebody holds it");
                    }
                }
                Op::Copy { from, to, pages } => {
                    for at in 0..pages {
                        arena.copy(Pfn(from.0 + at), Pfn(to.0 + at));
                        arena.gate(Pfn(to.0 + at)).open();
                    }
                }
                // A file that is forgotten stays as it is on its device.
                Op::PunchHole { .. } => {}
                op => panic!("a cache of files that are only read is asked for {op:?}"),
            }
        }
        self.wake();
    }

    fn wake(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        self.engine.take_woken(&mut woken);
        for task in woken.drain(..) {
            if let Some(thread) = self.threads.iter_mut().find(|thread| thread.task == task) {
                thread.runs = Runs::Now;
                self.machine.service.notify_one();
                continue;
            }
            let waiter = self.waiter(task);
            waiter.is_woken = true;
            if let Some(thread) = waiter.thread.take() {
                thread.unpark();
            }
        }
        self.woken = woken;
    }

    /// A read has ended: what it has filled can be seen, and who waited for it goes on.
    fn read_done(&mut self, read: Transfer, result: Result<(), Failed>) {
        self.device_reads += 1;
        match result {
            Ok(()) => {
                self.device_bytes += read.bytes;
                read.frames.iter().for_each(|&pfn| self.machine.arena.gate(pfn).open());
            }
            Err(failed) => {
                if let Some(of) = &mut self.files[read.file.0 as usize] {
                    of.failed = Some((read.page, failed));
                }
            }
        }
        self.engine.io_done(read.io, CpuId(0), result.map_err(|_| IoError::Device));
        self.settle();
    }

    /// Tells the engine of all hits that it has not heard of.
    pub(crate) fn drain_all(&mut self) {
        let mut reads = std::mem::take(&mut self.drained);
        let inner = &mut **self;
        inner.rings.retain(|ring| {
            let is_over = ring.is_over();
            ring.drain(&mut reads);
            if is_over {
                inner.hits_of_ended += ring.hits();
                inner.pins_of_ended += ring.pins();
            }
            !is_over
        });
        let mut rest = reads.as_slice();
        while let Some(&first) = rest.first() {
            let run = rest.iter().take_while(|read| read.object() == first.object()).count();
            let through_it;
            (through_it, rest) = rest.split_at(run);
            self.tell_hits(first.object(), through_it);
        }
        reads.clear();
        self.drained = reads;
    }

    /// Tells the engine of hits through one handle.
    fn tell_hits(&mut self, object: ObjectId, mut reads: &[Read]) {
        let (owner, hitter) = (self.owner, self.hitter);
        // It may have been closed meanwhile.
        let Ok(object) = self.engine.lend((owner, object), hitter) else { return };
        while !reads.is_empty() {
            let access =
                |read: Read| Access { wanted: read.wanted(), ..Access::new(object, read.page(), false) };
            let hits = self.engine.run_hits(hitter, reads, access);
            // A page that has gone meanwhile has nothing to be noted.
            reads = &reads[(hits + 1).min(reads.len())..];
        }
        self.settle();
    }

    /// What an access's failure means to who made it.
    fn failure(&self, file: FileId, page: u64, error: AccessError) -> Error {
        let of = self.files[file.0 as usize].as_ref();
        let path = of.map_or_else(PathBuf::new, |of| of.path.clone());
        match (error, of.and_then(|of| of.failed)) {
            (AccessError::Oom(report), _) => Error::OutOfMemory(report),
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
            (other, _) => panic!("a read failed: {other}"),
        }
    }

    /// How many pages guards hold.
    pub(crate) fn pinned(&self) -> u64 {
        let of_rings: i64 = self.rings.iter().map(|ring| ring.pins()).sum();
        (of_rings + self.pins_of_ended).max(0) as u64
    }
}

impl Transfer {
    /// Reads what it is of. The last page is filled up with zeroes.
    fn perform(&self, arena: &Arena) -> Result<(), Failed> {
        let (offset, mut done) = (self.page * PAGE_SIZE, 0_u64);
        while done < self.bytes {
            // A read that ends within a page begins at that page again: direct I/O is by whole blocks.
            let skip = done / PAGE_SIZE * PAGE_SIZE;
            match arena.read_into(&self.frames, skip as usize, self.from.as_raw_fd(), offset + skip) {
                Ok(read) if skip + read as u64 > done => done = skip + read as u64,
                Ok(_) => return Err(Failed::Shortened),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failed::Errno(error.raw_os_error().unwrap_or(libc::EIO))),
            }
        }
        let last = self.bytes % PAGE_SIZE;
        if last > 0 {
            arena.zero(self.frames[(self.bytes / PAGE_SIZE) as usize], last as usize);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use std::path::Path;

    use super::*;
    use crate::{Memory, Open};

    const PAGE: usize = PAGE_SIZE as usize;

    /// A cache, and a file of so many pages in it.
    fn cache(name: &str, pages: usize) -> (Memory, crate::File) {
        let path = std::env::temp_dir().join(format!("pageout-machine-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![7; pages * PAGE]).unwrap();
        let memory = Memory::builder().budget(8 << 20).io_threads(1).build().unwrap();
        let file = memory.open(&path, Open::read().random().buffered(true)).unwrap();
        std::fs::remove_file(&path).unwrap();
        (memory, file)
    }

    /// Reads of a file give an error of the device from now on.
    fn break_device(memory: &Memory) {
        // Nothing is mapped at the address zero.
        let broken = std::fs::File::open(Path::new("/proc/self/mem")).unwrap();
        memory.0.machine.lock().unwrap().files[0].as_mut().unwrap().file = Arc::new(broken);
    }

    fn idle(memory: &Memory) -> usize {
        memory.0.machine.lock().unwrap().groups[0].idle.lock().unwrap().len()
    }

    #[test]
    fn whatever_fails_the_pool_has_all_its_tasks_afterwards() {
        let (memory, file) = cache("pool", 64);
        file.read_at(&mut [0; 9], 0).unwrap();
        let tasks = idle(&memory);
        assert!(tasks > 0);
        break_device(&memory);
        for page in 1..20 {
            let error = file.read_at(&mut [0; 9], page * PAGE_SIZE).unwrap_err();
            assert!(
                matches!(&error, Error::Io { source, .. } if source.raw_os_error() == Some(libc::EIO)),
                "{error}"
            );
        }
        let mut bufs = [[0; 9]; 40];
        let reads =
            bufs.iter_mut().zip(20..).map(|(buf, page)| crate::ReadAt { buf, offset: page * PAGE_SIZE });
        assert!(file.read_batch(&mut reads.collect::<Vec<_>>()).is_err());
        let hired = idle(&memory);
        assert!(hired >= tasks, "a batch hires more");
        let tasks = hired;
        assert!(file.page(62).is_err());
        assert!(memory.write("/proc/sys/vm/swappiness", "-5").is_err());
        let guard = file.page(0).unwrap();
        assert!(matches!(file.clone().forget(), Err(Error::Pinned { .. })));
        drop(guard);
        // Whoever can't be lent the file has lost nothing else.
        let (id, object) = (file.0.id, file.0.object);
        let mut locked = memory.0.machine.lock().unwrap();
        let owner = locked.owner;
        locked.engine.close(owner, object).unwrap();
        drop(locked);
        assert!(file.page(30).is_err());
        assert_eq!(idle(&memory), tasks);
        let locked = memory.0.machine.lock().unwrap();
        assert!(!locked.files[id.0 as usize].as_ref().unwrap().is_going);
    }

    #[test]
    fn the_words_of_a_file_that_is_forgotten_go_from_each_thread_at_its_next_miss() {
        let (memory, file) = cache("words", 64);
        let (_, other) = cache("words-other", 64);
        let machine = &memory.0.machine;
        file.read_at(&mut [0; 9], 0).unwrap();
        let read = file.clone();
        let (next, is_forgotten) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let read = read;
                read.read_at(&mut [0; 9], 0).unwrap();
                assert_eq!(local::kept(machine), 1);
                next.wait();
                is_forgotten.wait();
                assert!(matches!(read.page(0).map(drop), Err(Error::Forgotten { .. })));
                assert_eq!(local::kept(machine), 0);
            });
            next.wait();
            file.forget().unwrap();
            assert_eq!(local::kept(machine), 0, "who forgets it keeps nothing");
            is_forgotten.wait();
        });
        drop(other);
    }

    #[test]
    fn a_panic_of_a_read_is_told_to_all_who_wait_and_to_all_who_come() {
        let (memory, file) = cache("panic", 4096);
        // A frame that nobody has yet, and that is open: whoever reads into it finds that out.
        let arena = &memory.0.machine.arena;
        let frames = 0..memory.stats().unwrap().frames as u32;
        let free = frames.map(Pfn).filter(|&pfn| !arena.gate(pfn).is_open());
        free.collect::<Vec<_>>().into_iter().for_each(|pfn| arena.gate(pfn).open());
        let silent = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let outcomes = std::thread::scope(|scope| {
            let read = || file.read_at(&mut [0; 9], 5 * PAGE_SIZE);
            [scope.spawn(read), scope.spawn(read)].map(|reader| reader.join().unwrap())
        });
        std::panic::set_hook(silent);
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Poisoned))), "{outcomes:?}");
        assert!(matches!(memory.stats(), Err(Error::Poisoned)));
        assert!(matches!(file.page(6).map(drop), Err(Error::Poisoned)));
        assert!(matches!(memory.read("/proc/vmstat"), Err(Error::Poisoned)));
    }
}
