//! Reads that are under way, into buffers that are C's.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pageout_live::{File, Pending, ReadAt};

use crate::failure::Failure;

/// `struct pageout_read`.
#[repr(C)]
pub(crate) struct Read {
    buf: *mut u8,
    size: u64,
    offset: u64,
    done: u64,
}

/// `struct pageout_batch`.
pub(crate) struct Batch(Pending<'static>);

impl Batch {
    /// Begins reads, as far as the file goes.
    ///
    /// # Safety
    /// Nobody but the batch uses the buffers as long as it is there.
    pub(crate) unsafe fn submit(file: &File, reads: &mut [Read]) -> Result<Batch, Failure> {
        let len = file.len();
        let mut begun = Vec::with_capacity(reads.len());
        for (at, read) in reads.iter_mut().enumerate() {
            let done = read.size.min(len.saturating_sub(read.offset));
            if done > 0 {
                if read.buf.is_null() {
                    return Err(Failure::invalid(format!("read {at} of the batch has no buffer")));
                }
                // SAFETY: the caller's word: so many bytes are there, and nobody else uses them until the batch is over. Bytes that nobody has
                // written yet have come from C, and are as good as any.
                let buf = unsafe { std::slice::from_raw_parts_mut(read.buf, done as usize) };
                begun.push(ReadAt { buf, offset: read.offset });
            }
        }
        let batch = Batch(file.submit(begun)?);
        for read in reads {
            read.done = read.size.min(len.saturating_sub(read.offset));
        }
        Ok(batch)
    }

    /// Whether all is read, waiting so long at most; `None`: as long as it takes.
    pub(crate) fn poll(&mut self, timeout: Option<Duration>) -> Poll<Result<(), Failure>> {
        /// Whoever would wake it may be gone.
        const LOOK_AGAIN: Duration = Duration::from_secs(1);
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        if timeout == Some(Duration::ZERO) {
            return self.look(Waker::noop());
        }
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            if let Poll::Ready(outcome) = self.look(&waker) {
                return Poll::Ready(outcome);
            }
            let rest = until.map_or(LOOK_AGAIN, |until| until.saturating_duration_since(Instant::now()));
            if rest.is_zero() {
                return Poll::Pending;
            }
            thread::park_timeout(rest.min(LOOK_AGAIN));
        }
    }

    fn look(&mut self, waker: &Waker) -> Poll<Result<(), Failure>> {
        let outcome = Pin::new(&mut self.0).poll(&mut Context::from_waker(waker));
        outcome.map(|outcome| Ok(outcome?))
    }
}
