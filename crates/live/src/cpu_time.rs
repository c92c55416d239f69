//! How long a thread has run.

use std::time::Duration;

/// CPU time of the thread that asks.
pub(crate) fn of_thread() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the one place that it is given, which lives until it returns.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "threads have a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
