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

use super::super::transfer::{Transfer, answer_of};
use crate::arena::Arena;

/// A request that a thread makes.
pub(super) struct Call {
    /// None: there are no descriptors left, and the thread that began the request made it.
    polled: Option<PipeReader>,
    /// Bytes, or the number of an error below zero.
    answer: Arc<OnceLock<i32>>,
}

impl Call {
    /// Has a thread make the next request of a transfer.
    pub(super) fn begin(arena: &Arc<Arena>, transfer: &Transfer) -> Call {
        let call = Call { polled: None, answer: Arc::default() };
        let (arena, storage) = (Arc::clone(arena), Arc::clone(&transfer.disk));
        let (frames, offset) = (transfer.frames_of_request().to_vec(), transfer.offset_of_request());
        let (is_write, answer) = (transfer.is_write(), Arc::clone(&call.answer));
        let make = Arc::new(move || {
            let made = match is_write {
                true => storage.write(&arena, &frames, offset),
                false => storage.read(&arena, &frames, 0, offset),
            };
            let _ = answer.set(answer_of(made));
        });
        let Ok((polled, closes)) = std::io::pipe() else {
            make();
            return call;
        };
        let made = Arc::clone(&make);
        let thread = std::thread::Builder::new().name("pageout-device".to_owned()).spawn(move || {
            made();
            // The request ends when the pipe is closed. Nothing of it may be in use then.
            drop(made);
            drop(closes);
        });
        if thread.is_err() {
            make();
        }
        Call { polled: Some(polled), ..call }
    }

    /// What ends in the ring when the thread has ended.
    pub(super) fn entry(&self) -> Entry {
        match &self.polled {
            Some(polled) => opcode::PollAdd::new(types::Fd(polled.as_raw_fd()), libc::POLLIN as u32).build(),
            None => opcode::Nop::new().build(),
        }
    }

    /// What the thread has answered, if it has not panicked.
    pub(super) fn answer(&self) -> i32 {
        self.answer.get().copied().unwrap_or(-libc::EIO)
    }
}
