//! A device on which requests fail, are short or torn, come late, or end in another order. It wraps the file that has the bytes.
//!
//! ```text
//!   request ─▶ when: now, after a time, once a later request has ended, when a test releases it
//!           ─▶ fate: well, fails, short (a part is done), torn (a part is done, and it fails)
//!           ─▶ the file ─▶ done: the script is notified of what was done
//! ```
//! A script ([`Faults`]) or a seeded plan ([`plan`]) decides. A ring can't submit requests of this device to the kernel: a thread makes each of them, and
//! the ring gets the answer (`machine/uring/called.rs`). So a delayed request holds back no other, and the bookkeeping of the ring is the product's.
//!
//! With the feature `failing`, the environment variable `PAGEOUT_FAILING` makes files fail in any program ([`plan`] describes its value).

pub(crate) mod plan; // faults by a seed, and the environment variable
#[cfg(test)]
mod tests; // the device below a cache

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use pageout_engine::{PAGE_SIZE, Pfn};

use super::{ByRing, Real, Storage};
use crate::arena::Arena;
pub(crate) use plan::plan_from_environment;

/// A request of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Read {
        offset: u64,
        bytes: usize,
    },
    Write {
        offset: u64,
        bytes: usize,
    },
    /// Everything that was written is to survive a loss of power.
    Flush,
    SetLen(u64),
    Len,
}

impl Request {
    /// Bytes that a part can be done of; none: the request is done or not.
    fn bytes(self) -> Option<usize> {
        match self {
            Request::Read { bytes, .. } | Request::Write { bytes, .. } => Some(bytes),
            Request::Flush | Request::SetLen(_) | Request::Len => None,
        }
    }

    /// The same request, of which this many bytes were done.
    fn cut(self, bytes: usize) -> Request {
        match self {
            Request::Read { offset, .. } => Request::Read { offset, bytes },
            Request::Write { offset, .. } => Request::Write { offset, bytes },
            whole @ (Request::Flush | Request::SetLen(_) | Request::Len) => whole,
        }
    }
}

/// How a request ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Well,
    /// Nothing is done, and it fails with this error.
    Fails(i32),
    /// This many bytes are done, and the answer says so. A request without bytes succeeds.
    Short(usize),
    /// This many bytes are done, and it fails. A request without bytes is done, and fails.
    Torn(usize, i32),
}

/// When a request is made.
#[derive(Clone, Debug)]
pub(crate) enum When {
    Now,
    After(Duration),
    /// Once a request that came later has ended, or after this long if none does.
    Overtaken(Duration),
    /// When a test says so.
    #[cfg(test)]
    Released(Arc<Held>),
}

/// Decides the outcome of requests, and is notified of completed ones.
pub(crate) trait Faults: Send + Sync + fmt::Debug {
    /// Called when the request is about to be made.
    fn fate(&self, request: Request) -> Fate;

    /// Called when the request arrives.
    fn when(&self, _request: Request) -> When {
        When::Now
    }

    /// A request, or a part of it, was done on the file.
    fn done(&self, _request: Request, _file: &File) {}
}

/// Requests that wait until a test releases them.
#[cfg(test)]
#[derive(Default, Debug)]
pub(crate) struct Held {
    /// Requests that are waiting, and whether they may go on.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

#[cfg(test)]
impl Held {
    pub(crate) fn release(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }

    /// Requests that wait at the moment.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn wait(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        let waited = self.changed.wait_while(state, |state| !state.1);
        waited.unwrap_or_else(PoisonError::into_inner).0 -= 1;
    }
}

/// A file on a device that fails.
pub(crate) struct Failing {
    real: Real,
    faults: Arc<dyn Faults>,
    /// Requests that have ended.
    ended: Mutex<u64>,
    one_has_ended: Condvar,
}

impl Failing {
    pub(crate) fn new(real: Real, faults: Arc<dyn Faults>) -> Failing {
        Failing { real, faults, ended: Mutex::new(0), one_has_ended: Condvar::new() }
    }

    /// Makes a request as the script says. `act` does at most so many bytes of it, and returns how many it has done.
    fn make(&self, request: Request, act: impl FnOnce(usize) -> io::Result<usize>) -> io::Result<usize> {
        self.wait(self.faults.when(request));
        let bytes = request.bytes();
        let (most, errno) = match self.faults.fate(request) {
            Fate::Well => (bytes, None),
            Fate::Fails(errno) => (Some(0), Some(errno)),
            Fate::Short(most) => (bytes.map(|bytes| bytes.min(most)), None),
            Fate::Torn(most, errno) => (bytes.map(|bytes| bytes.min(most)), Some(errno)),
        };
        let done = match most {
            Some(0) => Ok(0),
            most => {
                act(most.unwrap_or(0)).inspect(|&done| self.faults.done(request.cut(done), self.real.file()))
            }
        };
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.one_has_ended.notify_all();
        errno.map_or(done, |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    fn wait(&self, when: When) {
        match when {
            When::Now => {}
            When::After(span) => std::thread::sleep(span),
            When::Overtaken(longest) => {
                let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
                let before = *ended;
                let is_first = |ended: &mut u64| *ended == before;
                drop(self.one_has_ended.wait_timeout_while(ended, longest, is_first));
            }
            #[cfg(test)]
            When::Released(held) => held.wait(),
        }
    }
}

impl Storage for Failing {
    fn len(&self) -> io::Result<u64> {
        let mut len = 0;
        self.make(Request::Len, |_| {
            len = self.real.len()?;
            Ok(0)
        })?;
        Ok(len)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.make(Request::SetLen(bytes), |_| self.real.set_len(bytes).map(|()| 0)).map(drop)
    }

    fn read(&self, arena: &Arena, frames: &[Pfn], skip: usize, offset: u64) -> io::Result<usize> {
        let bytes = bytes_of(frames) - skip;
        self.make(Request::Read { offset, bytes }, |most| {
            let read = self.real.read(arena, frames, skip, offset)?.min(most);
            // Bytes beyond the answer of this read must not be correct by chance.
            for (at, &pfn) in frames[skip / PAGE_SIZE as usize..].iter().enumerate() {
                let from = read.saturating_sub(at * PAGE_SIZE as usize).min(PAGE_SIZE as usize);
                arena.zero(pfn, from);
            }
            Ok(read)
        })
    }

    fn write(&self, arena: &Arena, frames: &[Pfn], offset: u64) -> io::Result<usize> {
        let bytes = bytes_of(frames);
        self.make(Request::Write { offset, bytes }, |most| {
            let whole = most / PAGE_SIZE as usize * PAGE_SIZE as usize;
            match self.real.write_most(arena, frames, most, offset) {
                // By direct I/O some devices write whole pages only.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && whole < most => match whole {
                    0 => Ok(0),
                    _ => self.real.write_most(arena, frames, whole, offset),
                },
                written => written,
            }
        })
    }

    fn expect_write(&self, end: u64) {
        self.real.expect_write(end);
    }

    fn flush(&self, is_all: bool) -> io::Result<()> {
        self.make(Request::Flush, |_| self.real.flush(is_all).map(|()| 0)).map(drop)
    }

    fn by_ring(&self) -> ByRing {
        ByRing::Call
    }
}

fn bytes_of(frames: &[Pfn]) -> usize {
    frames.len() * PAGE_SIZE as usize
}
