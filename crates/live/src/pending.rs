//! [`Pending`]: reads in flight while their thread does something else.
//!
//! ```text
//!   submit ─▶ what is in memory is copied ─▶ the rest is begun, 32 pages at a time ─▶ the caller goes on
//!   the engine's own thread ─▶ sees each through ─▶ pins its page ─▶ wakes who waits
//!   poll, wait ─▶ copies out of pinned pages ─▶ begins the next
//! ```
//! Only the polling thread writes to a buffer: abandoned reads leave it alone, and their pages stay in memory like others.

use std::collections::VecDeque;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use pageout_engine::Pfn;

use crate::arena::OwnedPin;
use crate::error::Error;
use crate::file::{File, Inner, Piece, ReadAt};
use crate::guard::ZEROES;
use crate::length::Length;
use crate::machine::{Accessed, PageOwner};
use crate::memory::Shared;
use crate::paged::Paged;
use crate::region::Region;
use crate::sync::thread;
use crate::works::Sleeper;

/// More would hold more frames, and keep no device busier.
pub(crate) const TOGETHER_MAX: usize = 32;

/// A page that is there for reads that are pending.
pub(crate) enum Held {
    Pin(OwnedPin),
    /// A copy of a page of a file that is written: its writers do not wait for a thread that may poll at any time.
    Copy(Box<[u8]>),
    /// A page of a region that was never written.
    Zeroes,
}

impl Held {
    fn bytes(&self) -> &[u8] {
        match self {
            Held::Pin(pin) => pin.bytes(),
            Held::Copy(bytes) => bytes,
            Held::Zeroes => &ZEROES,
        }
    }
}

/// A page, or the error.
type Found = Result<Held, Error>;

/// Pages that are brought in for one [`Pending`].
#[derive(Default)]
pub(crate) struct Flight(Mutex<Landing>);

#[derive(Default)]
struct Landing {
    /// Pages that are present, by their place in the request.
    found: Vec<(usize, Found)>,
    /// Those that are not.
    left: usize,
    awaits: Option<Sleeper>,
    /// The request was abandoned.
    is_given_up: bool,
}

impl Flight {
    fn landing(&self) -> MutexGuard<'_, Landing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more page is in flight.
    pub(crate) fn begins(&self) {
        self.landing().left += 1;
    }

    /// A page is present, or failed. Returns the thread or task to be woken, once no lock is held.
    pub(crate) fn ends(&self, at: usize, found: Found) -> Option<Sleeper> {
        let mut landing = self.landing();
        landing.left -= 1;
        if landing.is_given_up {
            return None;
        }
        landing.found.push((at, found));
        landing.awaits.take()
    }

    /// The found pages are kept as copies: the pages may be written.
    pub(crate) fn copy_pins(&self) {
        for (_, found) in &mut self.landing().found {
            if let Ok(held @ Held::Pin(_)) = found {
                *held = Held::Copy(held.bytes().into());
            }
        }
    }

    /// The request was abandoned. The waker is dropped now: if it were dropped with the last miss, that would be under the engine's lock.
    fn give_up(&self) {
        let mut landing = self.landing();
        landing.is_given_up = true;
        let dropped = (landing.awaits.take(), std::mem::take(&mut landing.found));
        // A waker may own anything: what its drop calls may need the engine's lock, whose holder may need this one.
        drop(landing);
        drop(dropped);
    }
}

/// The file or region of pending reads.
pub(crate) enum Reader {
    File(File),
    Region(Region),
}

impl Reader {
    fn accessed(&self) -> Accessed<'_> {
        match self {
            Reader::File(file) => file.0.accessed(),
            Reader::Region(region) => Accessed::Region(&region.0),
        }
    }

    pub(crate) fn owner(&self) -> PageOwner {
        self.accessed().owner()
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Reader::File(file) => file.0.path(),
            Reader::Region(region) => region.0.path(),
        }
    }

    pub(crate) fn memory(&self) -> &Arc<Shared> {
        match self {
            Reader::File(file) => &file.0.memory,
            Reader::Region(region) => &region.0.memory,
        }
    }

    fn length(&self) -> &Length {
        match self {
            Reader::File(file) => &file.0.length,
            Reader::Region(region) => &region.0.length,
        }
    }

    fn written_frame(&self, page: u64) -> Option<Pfn> {
        match self {
            Reader::File(file) => file.0.written_frame(page),
            Reader::Region(region) => region.0.written_frame(page),
        }
    }

    /// The error of reads whose range was checked ([`Inner::error_up_to`]).
    fn error_of_reads(&self, reads: &[ReadAt<'_>], error: Error) -> Error {
        match self {
            Reader::File(file) => file.0.error_of_reads(reads, error),
            // A region is not forgotten.
            Reader::Region(_) => error,
        }
    }

    fn copy_what_is_there(&self, reads: &mut [ReadAt<'_>]) -> Result<Vec<(usize, Piece)>, Error> {
        match self {
            Reader::File(file) => file.0.copy_what_is_there(reads),
            Reader::Region(region) => region.0.copy_what_is_there(reads),
        }
    }

    /// Nothing can be read any more.
    fn is_poisoned(&self) -> bool {
        let machine = &self.memory().machine;
        machine.is_poisoned() || !machine.arena.is_of_this_process()
    }
}

/// Reads of a file or a region in flight ([`File::submit`], [`Region::submit`]). As a future it is ready when all of them have ended; [`Pending::wait`]
/// waits for that. If it is dropped before, its buffers are unchanged or partly filled.
///
/// A waker is called by one of up to four threads for wakers. It may call the cache, wait for the call, and drop handles. It must not wait for another waker, as
/// an executor's `block_on` does: while four wakers wait, no other is called.
#[must_use = "reads that nobody waits for leave their buffers as they are"]
pub struct Pending<'a> {
    of: Reader,
    reads: Vec<ReadAt<'a>>,
    /// What was not in memory: which read, and the part of it.
    missing: Vec<(usize, Piece)>,
    /// Those of them that are not begun yet.
    rest: VecDeque<usize>,
    /// Those that found no free memory because of the others.
    again: Vec<usize>,
    is_alone: bool,
    flight: Arc<Flight>,
    error: Option<Error>,
    /// Truncations of the file before it began.
    cuts: u64,
    /// Restarts left. A truncation in between restarts it.
    tries: u32,
}

/// If the file is shortened again and again, its reads may never see a single point in time.
const TRIES: u32 = 16;

impl<'a> Pending<'a> {
    pub(crate) fn new(
        of: Reader,
        reads: Vec<ReadAt<'a>>,
        missing: Vec<(usize, Piece)>,
        cuts: u64,
    ) -> Result<Pending<'a>, Error> {
        let rest = (0..missing.len()).collect();
        let (again, flight, error) = (Vec::new(), Arc::default(), None);
        let mut pending =
            Pending { of, reads, missing, rest, again, is_alone: false, flight, error, cuts, tries: TRIES };
        pending.begin_next()?;
        Ok(pending)
    }

    /// Begins what comes next, if anything.
    fn begin_next(&mut self) -> Result<(), Error> {
        let next: Vec<usize> = if self.rest.is_empty() {
            // A small group may not have enough memory for all of them together. Then they are read one after the other, or return the error.
            self.is_alone = true;
            self.again.pop().into_iter().collect()
        } else {
            self.rest.drain(..self.rest.len().min(TOGETHER_MAX)).collect()
        };
        if next.is_empty() {
            return Ok(());
        }
        let wants = next.iter().map(|&at| (at, self.missing[at].1.want));
        let (of, is_alone, flight) = (self.of.accessed(), self.is_alone, &self.flight);
        let begun = self.of.memory().guarded(|machine| machine.begin_all(of, wants, is_alone, flight));
        begun.map_err(|error| self.of.error_of_reads(&self.reads, error))
    }

    /// Returns true if all possible reads have ended, so that [`Pending::wait`] does not wait. Copies present pages. The task that has polled last is still
    /// woken.
    pub fn is_ready(&mut self) -> bool {
        match self.poll_all(|| None) {
            Poll::Ready(outcome) => {
                // The waiting caller gets it.
                self.error = outcome.err();
                true
            }
            Poll::Pending => false,
        }
    }

    /// Waits until all is read.
    ///
    /// # Errors
    /// As [`File::read_at`], of any of them; the others have been made.
    pub fn wait(mut self) -> Result<(), Error> {
        /// The task to wake may have ended.
        const LOOK_AGAIN: Duration = Duration::from_secs(1);
        /// Where a guard holds a page.
        const LOOK_FOR_GUARDS: Duration = Duration::from_millis(20);
        let memory = Arc::clone(self.of.memory());
        let machine = &*memory.machine;
        let mut guard_wait = machine.guard_wait();
        loop {
            if let Poll::Ready(outcome) = self.poll_all(|| Some(Sleeper::Thread(thread::current()))) {
                return outcome;
            }
            // The engine's own thread asks for the page, and does not know who waits for the guard.
            match self.written_page() {
                None => {
                    guard_wait = machine.guard_wait();
                    thread::park_timeout(LOOK_AGAIN);
                }
                Some((_, pfn)) if guard_wait.may_go_on(pfn) => thread::park_timeout(LOOK_FOR_GUARDS),
                Some((page, _)) => return Err(machine.lock()?.pinned_page(self.of.accessed().owner(), page)),
            }
        }
    }

    /// A page that must be read, and that is being written to.
    fn written_page(&self) -> Option<(u64, Pfn)> {
        let page = |(_, piece): &(usize, Piece)| piece.want.page;
        self.missing.iter().map(page).find_map(|page| Some((page, self.of.written_frame(page)?)))
    }

    /// Takes present pages, and begins the next ones. Without a sleeper, that of the last poll stays.
    fn poll_all(&mut self, sleeper: impl Fn() -> Option<Sleeper>) -> Poll<Result<(), Error>> {
        loop {
            if self.of.is_poisoned() {
                return Poll::Ready(Err(Error::Poisoned));
            }
            // Without the lock, as it may be a waker.
            let sleeper = sleeper();
            let (found, left) = {
                let mut landing = self.flight.landing();
                let found = std::mem::take(&mut landing.found);
                if found.is_empty() && landing.left > 0 {
                    let former = sleeper.and_then(|sleeper| landing.awaits.replace(sleeper));
                    // Without the lock, as in `give_up`.
                    drop(landing);
                    drop(former);
                    return Poll::Pending;
                }
                (found, landing.left)
            };
            found.into_iter().for_each(|(at, found)| self.take(at, found));
            if left > 0 {
                continue;
            }
            let is_over = self.rest.is_empty() && self.again.is_empty();
            match self.error.take() {
                Some(Error::CutMeanwhile { .. }) if self.tries > 0 => match self.begin_anew() {
                    Ok(()) => continue,
                    Err(error) => return Poll::Ready(Err(error)),
                },
                Some(error) => return Poll::Ready(Err(self.of.error_of_reads(&self.reads, error))),
                // Pages of one read may be of different moments.
                None if is_over && !self.of.length().is_uncut_since(self.cuts) && self.has_several() => {
                    self.error = Some(Error::CutMeanwhile { path: self.of.accessed().path().to_owned() });
                    continue;
                }
                None if is_over => return Poll::Ready(Ok(())),
                None => {}
            }
            if let Err(error) = self.begin_next() {
                return Poll::Ready(Err(error));
            }
        }
    }

    fn has_several(&self) -> bool {
        self.reads.iter().any(|read| Inner::is_of_several(read))
    }

    /// Starts again, because the file was truncated meanwhile.
    fn begin_anew(&mut self) -> Result<(), Error> {
        self.tries -= 1;
        self.cuts = self.of.length().cuts();
        self.missing = self.of.copy_what_is_there(&mut self.reads)?;
        self.rest = (0..self.missing.len()).collect();
        (self.again, self.is_alone) = (Vec::new(), false);
        self.begin_next()
    }

    /// Copies from a present page.
    fn take(&mut self, at: usize, found: Found) {
        let (read, piece) = &self.missing[at];
        match found {
            Ok(held) => piece.copy(held.bytes(), self.reads[*read].buf),
            Err(Error::OutOfMemory(_) | Error::Pinned { .. }) if !self.is_alone => self.again.push(at),
            Err(error) => _ = self.error.get_or_insert(error),
        }
    }
}

impl Future for Pending<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_all(|| Some(Sleeper::of(context)))
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        // In the child of a fork, the thread that would unlock what a thread of the parent had locked may not exist.
        if self.of.memory().machine.arena.is_of_this_process() {
            self.flight.give_up();
        }
    }
}

impl std::fmt::Debug for Pending<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("reads", &self.reads.len()).finish_non_exhaustive()
    }
}
