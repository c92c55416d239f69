//! Numbers of threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::holds::ThreadNumber;
use crate::sync::thread_local;

static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static THREAD: ThreadNumber = ThreadNumber(THREADS.fetch_add(1, Relaxed));
}

/// The number of this thread. One that is about to end has none of its own: it holds nothing that it waits for.
pub(crate) fn thread_number() -> ThreadNumber {
    THREAD.try_with(|&thread| thread).unwrap_or_default()
}
