//! Reads and writes in flight together, by io_uring: one system call begins all of them, and one waits for as many as are wanted.
//!
//! ```text
//!   begin    transfer ─▶ a number ─▶ the queue of what is submitted ─▶ one call
//!   wait     one call ─▶ the queue of what has ended ─▶ the number ─▶ its transfer, and what the kernel says
//! ```
//! A ring keeps each transfer until the kernel has reported its end, and waits for all of them when it is dropped. So no frame is freed
//! that the kernel may still fill. A system that refuses io_uring to this process refuses it when a ring is created, and never later: a
//! request that does nothing is sent through each new ring.

mod called; // requests of a storage that the kernel can't make

use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};

use super::transfer::{Failed, Transfer};
use crate::arena::{Arena, Vectors};
use crate::storage::ByRing;

/// As many requests as one system call hands over. More take another.
const ENTRIES: u32 = 64;

/// The number of a request that is about no transfer.
const NOTHING: u64 = u64::MAX;

/// A ring, and what is in flight through it.
pub(super) struct Uring {
    ring: IoUring,
    flight: Mutex<Flight>,
}

/// What the kernel has yet to answer, by the number that it answers with.
#[derive(Default)]
struct Flight {
    transfers: Vec<Option<InFlight>>,
    free: Vec<usize>,
}

/// A transfer, and what its request names.
struct InFlight {
    transfer: Transfer,
    vectors: Vectors,
    /// A thread makes it, and not the kernel.
    call: Option<called::Call>,
}

/// A transfer that has ended, and how.
pub(super) type Ended = (Transfer, Result<(), Failed>);

impl Flight {
    fn put(&mut self, transfer: Transfer, vectors: Vectors) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.transfers.push(None);
            self.transfers.len() - 1
        });
        self.transfers[number] = Some(InFlight { transfer, vectors, call: None });
        number
    }

    /// Takes out a transfer that the kernel has answered for.
    fn take(&mut self, number: usize, answer: i32) -> (Transfer, i32) {
        self.free.push(number);
        let ended = self.transfers[number].take().expect("the kernel answers once");
        let answer = ended.call.map_or(answer, |call| call.answer());
        (ended.transfer, answer)
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.transfers.len()
    }
}

impl InFlight {
    /// What the kernel is to do.
    fn request(&self, file: RawFd) -> Entry {
        let (file, offset) = (types::Fd(file), self.transfer.offset_of_request());
        match (&self.vectors, self.transfer.is_write()) {
            (Vectors::One(frame), true) => {
                opcode::Write::new(file, frame.iov_base.cast(), frame.iov_len as u32).offset(offset).build()
            }
            (Vectors::One(frame), false) => {
                opcode::Read::new(file, frame.iov_base.cast(), frame.iov_len as u32).offset(offset).build()
            }
            (Vectors::Many(frames), true) => {
                opcode::Writev::new(file, frames.as_ptr(), frames.len() as u32).offset(offset).build()
            }
            (Vectors::Many(frames), false) => {
                opcode::Readv::new(file, frames.as_ptr(), frames.len() as u32).offset(offset).build()
            }
        }
    }
}

impl Uring {
    /// A ring for a thread that waits itself for its own reads; an error if the system does not permit one to this process.
    pub(super) fn for_one() -> io::Result<Uring> {
        // The thread is in the kernel when a read ends: no interrupt is needed for that. Kernels before 5.19 don't know this flag.
        match IoUring::builder().setup_coop_taskrun().build(ENTRIES) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Uring::for_all(),
            made => Uring::new(made?),
        }
    }

    /// A ring in which any thread begins reads, and one thread waits for their ends.
    pub(super) fn for_all() -> io::Result<Uring> {
        Uring::new(IoUring::new(ENTRIES)?)
    }

    fn new(ring: IoUring) -> io::Result<Uring> {
        let params = ring.params();
        if !(params.is_feature_nodrop() && params.is_feature_submit_stable()) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel's io_uring is older than 5.5",
            ));
        }
        let ring = Uring { ring, flight: Mutex::default() };
        ring.push(&ring.flight(), &opcode::Nop::new().build().user_data(NOTHING));
        while let Err(error) = ring.ring.submit_and_wait(1) {
            if !is_passing(&error) {
                return Err(error);
            }
        }
        ring.take_answers(&mut Vec::new());
        Ok(ring)
    }

    /// Makes reads or writes, in flight together, and waits for all of them. They come back in the order in which they ended.
    pub(super) fn perform(&self, arena: &Arc<Arena>, transfers: Vec<Transfer>) -> Vec<Ended> {
        let count = transfers.len();
        self.begin(arena, transfers);
        let mut ended = Vec::with_capacity(count);
        self.wait(arena, count, &mut ended);
        ended
    }

    fn flight(&self) -> MutexGuard<'_, Flight> {
        // A panic leaves nothing half done there: transfers are in it before the kernel gets them.
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins reads into frames, which are closed, or writes of frames, which the engine keeps where they are.
    pub(super) fn begin(&self, arena: &Arc<Arena>, transfers: Vec<Transfer>) {
        transfers.iter().for_each(Transfer::announce);
        let mut flight = self.flight();
        for transfer in transfers {
            let is_write = transfer.is_write();
            let vectors = match is_write {
                true => arena.vectors_to_write(transfer.frames_of_request()),
                false => arena.vectors(transfer.frames_of_request()),
            };
            let number = flight.put(transfer, vectors);
            let begun = flight.transfers[number].as_mut().expect("it was just put there");
            let request = match begun.transfer.disk.by_ring() {
                ByRing::Descriptor(file) => begun.request(file),
                ByRing::Call => begun.call.insert(called::Call::begin(arena, &begun.transfer)).entry(),
            };
            self.push(&flight, &request.user_data(number as u64));
        }
        self.submit();
    }

    /// Wakes the waiting thread.
    pub(super) fn nudge(&self) {
        self.push(&self.flight(), &opcode::Nop::new().build().user_data(NOTHING));
        self.submit();
    }

    /// Hands a request over: one about nothing, or one of a transfer that is in flight.
    fn push(&self, _only_one: &MutexGuard<'_, Flight>, request: &Entry) {
        // SAFETY: any user of this queue has `flight` locked, so there is no other one. The memory named in the request exists until the kernel has
        // answered: its file and vectors are in `flight`, which `drop` empties by waiting; its frames are mapped for longer than any ring. Frames
        // that are read into are closed (`Arena::vectors` asserts it), and no thread opens or frees one before its transfer is handed back. The
        // kernel only reads the others.
        while unsafe { self.ring.submission_shared().push(request) }.is_err() {
            self.submit();
        }
    }

    fn submit(&self) {
        while let Err(error) = self.ring.submit() {
            assert!(
                is_passing(&error),
                "the kernel permitted io_uring to this process before, but does not now: {error}"
            );
            std::thread::yield_now();
        }
    }

    /// Waits until this many more requests have ended, and returns all transfers that have. A transfer that needs another request has not ended: the
    /// request is begun here, and a device does not delay the waiting thread.
    pub(super) fn wait(&self, arena: &Arc<Arena>, least: usize, ended: &mut Vec<Ended>) {
        let (mut count, mut answers) = (0, Vec::with_capacity(least));
        while count < least {
            match self.ring.submit_and_wait(least - count) {
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => panic!("the kernel does not say which reads have ended: {error}"),
            }
            count += self.take_answers(&mut answers);
            let mut again = Vec::new();
            for (mut transfer, answer) in answers.drain(..) {
                match transfer.answered(arena, answer) {
                    Some(result) => ended.push((transfer, result)),
                    None => again.push(transfer),
                }
            }
            if !again.is_empty() {
                count -= again.len();
                self.begin(arena, again);
            }
        }
    }

    /// Returns how many requests have ended, those about nothing included.
    fn take_answers(&self, into: &mut Vec<(Transfer, i32)>) -> usize {
        let mut flight = self.flight();
        // SAFETY: any user of this queue has `flight` locked, so there is no other one.
        let answers = unsafe { self.ring.completion_shared() };
        let mut count = 0;
        for answer in answers {
            count += 1;
            if answer.user_data() != NOTHING {
                into.push(flight.take(answer.user_data() as usize, answer.result()));
            }
        }
        count
    }
}

/// Returns true if a call succeeds if it is repeated: after a signal, or if the kernel is short of memory or has more results than fit.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut answers = Vec::new();
        while !self.flight().is_empty() {
            let waited = self.ring.submit_and_wait(1);
            assert!(waited.is_ok() || waited.is_err_and(|error| is_passing(&error)), "frames are in flight");
            self.take_answers(&mut answers);
        }
    }
}
