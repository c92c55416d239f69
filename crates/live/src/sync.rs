//! The synchronisation primitives and clocks of this crate: here those of std. With the feature `shuttle`, which only the package in `shuttle/` turns
//! on, threads are shuttle's, which run one at a time in a random order. Waits of a second or more then have no timeout, so that a forgotten wake-up
//! is found. Shorter waits end, as their callers rely on that. Time advances by the calls that ask for it.

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread, thread_local,
    time::Instant,
};

#[cfg(feature = "shuttle")]
pub(crate) use drawn::{
    Condvar, Instant, Mutex, MutexGuard, another_may_go_on, thread, thread_local, wait_at_most,
};

/// Releases a lock until a notification, or for this time.
#[cfg(not(feature = "shuttle"))]
pub(crate) fn wait_at_most<T>(condvar: &Condvar, guard: MutexGuard<'_, T>, span: std::time::Duration) {
    drop(condvar.wait_timeout(guard, span));
}

#[cfg(feature = "shuttle")]
mod drawn {
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread_local;

    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    /// A span that only serves repeated checks is infinite here.
    const LOOK_AGAIN: Duration = Duration::from_secs(1);

    /// Releases a lock until a notification, or for this time.
    pub(crate) fn wait_at_most<T>(condvar: &Condvar, guard: MutexGuard<'_, T>, span: Duration) {
        if span < LOOK_AGAIN {
            drop(guard);
            thread::sleep(span);
        } else {
            drop(condvar.wait(guard));
        }
    }

    /// Lets another thread go on, if that is drawn.
    pub(crate) fn another_may_go_on() {
        shuttle::thread::sleep(Duration::ZERO);
    }

    pub(crate) mod thread {
        pub(crate) use shuttle::thread::{Builder, JoinHandle, Thread, current, yield_now};

        use std::time::Duration;

        pub(crate) fn park_timeout(span: Duration) {
            if span < super::LOOK_AGAIN { sleep(span) } else { shuttle::thread::park() }
        }

        /// Others go on meanwhile, also where an order prefers this thread to them: they bring about what it waits for.
        pub(crate) fn sleep(span: Duration) {
            super::NOW.fetch_add(span.as_nanos() as u64, super::Relaxed);
            yield_now();
        }
    }

    static NOW: AtomicU64 = AtomicU64::new(0);

    /// A time in nanoseconds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub(crate) struct Instant(u64);

    impl Instant {
        pub(crate) fn now() -> Instant {
            Instant(NOW.fetch_add(100, Relaxed))
        }

        pub(crate) fn elapsed(self) -> Duration {
            Instant::now() - self
        }

        pub(crate) fn saturating_duration_since(self, before: Instant) -> Duration {
            Duration::from_nanos(self.0.saturating_sub(before.0))
        }
    }

    impl std::ops::Sub for Instant {
        type Output = Duration;

        fn sub(self, before: Instant) -> Duration {
            self.saturating_duration_since(before)
        }
    }

    impl std::ops::Add<Duration> for Instant {
        type Output = Instant;

        fn add(self, span: Duration) -> Instant {
            Instant(self.0 + span.as_nanos() as u64)
        }
    }
}
