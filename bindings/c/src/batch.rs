//! Reads in flight, into buffers of the C program.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pageout_live::{Error, File, Pending, ReadAt};

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

/// Checks what C has said of its buffers, before anything begins: each one exists, and shares no byte with another one or with the reads themselves.
fn check_buffers(reads: &[Read]) -> Result<(), Failure> {
    let own = reads.as_ptr_range();
    let mut places = Vec::with_capacity(reads.len() + 1);
    places.push((own.start.addr(), own.end.addr(), None));
    for (at, read) in reads.iter().enumerate().filter(|(_, read)| read.size > 0) {
        if read.buf.is_null() {
            return Err(Failure::invalid(format!("read {at} of the batch: `buf` is NULL")));
        }
        let start = read.buf.addr();
        let end = buffer_size(read.size).and_then(|size| start.checked_add(size)).ok_or_else(|| {
            Failure::invalid(format!("read {at} of the batch: a buffer of {} bytes is impossible", read.size))
        })?;
        places.push((start, end, Some(at)));
    }
    places.sort_unstable();
    // Sorted by their first byte, so the first one that overlaps any overlaps the next.
    for pair in places.windows(2) {
        let [(_, end, one), (start, _, other)] = pair else { unreachable!("windows of two") };
        if start < end {
            let text = match (one.min(other), one.max(other)) {
                (Some(one), Some(other)) => {
                    format!("the buffers of reads {one} and {other} of the batch overlap")
                }
                (_, other) => {
                    let at = other.expect("`reads` is there once");
                    format!("the buffer of read {at} of the batch overlaps `reads`")
                }
            };
            return Err(Failure::invalid(text));
        }
    }
    Ok(())
}

/// How many bytes a buffer of C's has, if any can have as many.
pub(crate) fn buffer_size(size: u64) -> Option<usize> {
    isize::try_from(size).ok().and_then(|size| usize::try_from(size).ok())
}

impl Batch {
    /// Begins reads, as far as the file goes.
    ///
    /// # Safety
    /// The buffers exist. Only the batch uses them while it exists.
    pub(crate) unsafe fn submit(file: &File, reads: &mut [Read]) -> Result<Batch, Failure> {
        if !reads.is_empty() {
            check_buffers(reads)?;
        }
        loop {
            let len = file.len();
            let mut begun = Vec::with_capacity(reads.len());
            for read in reads.iter() {
                let done = read.size.min(len.saturating_sub(read.offset));
                if done > 0 {
                    // SAFETY: the caller guarantees that `size` bytes exist, and that nothing else uses them until the batch ends. They are no more than
                    // a slice may have, and no part of another one of these. Uninitialized bytes come from C, where any value is valid.
                    let buf = unsafe { std::slice::from_raw_parts_mut(read.buf, done as usize) };
                    begun.push(ReadAt { buf, offset: read.offset });
                }
            }
            match file.submit(begun) {
                // It was made shorter meanwhile.
                Err(Error::BeyondEnd { .. }) if file.len() < len => {}
                pending => {
                    let batch = Batch(pending?);
                    for read in reads {
                        read.done = read.size.min(len.saturating_sub(read.offset));
                    }
                    return Ok(batch);
                }
            }
        }
    }

    /// Waits until all is read, at most this long. `None`: as long as it takes.
    pub(crate) fn poll(&mut self, timeout: Option<Duration>) -> Poll<Result<(), Failure>> {
        /// The thread that would wake it may have ended.
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
