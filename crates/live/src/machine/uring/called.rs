//! Requests of a storage that the kernel can't make: a thread makes each, and the ring is notified when it has ended.
//!
//! ```text
//!   begin    a pipe ─▶ the ring polls its one end, under the transfer's number; a thread has the other
//!   thread   Storage::read or write ─▶ the answer ─▶ the thread's end is closed ─▶ the poll ends
//!   wait     the number ─▶ its transfer, and the answer of the thread in place of the kernel's
//! ```
//! So everything but the request itself is the product's code: numbers, the queue, who waits, and what follows a short answer.

use std::io::PipeReader;
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};

use io_uring::squeue::Entry;
use io_uring::{opcode, types};

use super::super::transfer::Transfer;
use crate::arena::Arena;

/// A request that a thread makes.
pub(super) struct Call {
    /// None: there are no descriptors left, and the transfer is made by whoever waits for it.
    polled: Option<PipeReader>,
    /// Bytes, or the number of an error below zero.
    answer: Arc<OnceLock<i32>>,
}

impl Call {
    /// Has a thread make the request of a transfer.
    pub(super) fn begin(arena: &Arc<Arena>, transfer: &Transfer) -> Call {
        let answer = Arc::new(OnceLock::new());
        let Ok((polled, closes)) = std::io::pipe() else { return Call { polled: None, answer } };
        let (arena, storage, frames) =
            (Arc::clone(arena), Arc::clone(&transfer.disk), transfer.frames.clone());
        let (offset, is_write, says) = (transfer.offset(), transfer.is_write(), Arc::clone(&answer));
        let make = move || {
            let made = match is_write {
                true => storage.write(&arena, &frames, offset),
                false => storage.read(&arena, &frames, 0, offset),
            };
            let errno = |error: std::io::Error| -error.raw_os_error().unwrap_or(libc::EIO);
            let _ = says.set(made.map_or_else(errno, |bytes| bytes as i32));
            // The transfer ends when the pipe is closed. Nothing of it may be in use then.
            drop((arena, storage));
            drop(closes);
        };
        // If there is no thread, the pipe is closed, and nobody has answered.
        let _ = std::thread::Builder::new().name("pageout-failing".to_owned()).spawn(make);
        Call { polled: Some(polled), answer }
    }

    /// What ends in the ring when the thread has ended.
    pub(super) fn entry(&self) -> Entry {
        match &self.polled {
            Some(polled) => opcode::PollAdd::new(types::Fd(polled.as_raw_fd()), libc::POLLIN as u32).build(),
            None => opcode::Nop::new().build(),
        }
    }

    /// What the thread has answered. A thread that has panicked, or was never started, has broken the request off: it is made again.
    pub(super) fn answer(&self) -> i32 {
        self.answer.get().copied().unwrap_or(-libc::ECANCELED)
    }
}
