//! A thread that waits for the lock is not overtaken forever.
//!
//! ```text
//!   free     whoever comes takes it, also where somebody waits who has been woken and does not run yet
//!            who waits was passed by so often: who comes sleeps until one of those who wait has it
//! ```
//! A thread that releases the lock and takes it again immediately is faster than one that has to be woken for it. Mostly this is right: no thread
//! sleeps for a free lock. But a thread that writes page after page took it some 400 times, two milliseconds, while one read waited. Yielding to the
//! waiting thread is not enough, as it may wait for the CPU of another. Kernels hand a lock over in this case, and for this reason.

use std::sync::TryLockError;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard, wait_at_most};

/// So often who waits is passed by: as many pages as a call of 64 KiB writes.
const PASSED_MAX: u32 = 16;
/// A sleeping thread checks again if the lock is held for long.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Threads that wait for a lock, and threads that let them go first.
#[derive(Default)]
pub(super) struct Turns {
    waiting: AtomicU32,
    /// How often others have come to the lock since one of those who wait got it last.
    passed: AtomicU32,
    /// Those sleep here who let others go first.
    behind: Mutex<()>,
    has_moved: Condvar,
}

impl Turns {
    /// Takes a lock, which is always taken by this; none where it is poisoned.
    pub(super) fn lock<'a, T>(&self, lock: &'a Mutex<T>) -> Option<MutexGuard<'a, T>> {
        if self.waiting.load(Relaxed) > 0 && self.passed.fetch_add(1, Relaxed) >= PASSED_MAX {
            self.let_pass()?;
        }
        match lock.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(_)) => return None,
            Err(TryLockError::WouldBlock) => {}
        }
        self.waiting.fetch_add(1, Relaxed);
        let guard = lock.lock();
        self.waiting.fetch_sub(1, Relaxed);
        if self.passed.swap(0, Relaxed) >= PASSED_MAX {
            // A thread that has just seen that it has to sleep does so before this, and is woken.
            drop(self.behind.lock());
            self.has_moved.notify_all();
        }
        guard.ok()
    }

    /// Waits until one of those who wait has the lock.
    #[cold]
    fn let_pass(&self) -> Option<()> {
        let is_passed = || self.waiting.load(Relaxed) > 0 && self.passed.load(Relaxed) >= PASSED_MAX;
        let mut behind = self.behind.lock().ok()?;
        while is_passed() {
            wait_at_most(&self.has_moved, behind, LOOK_AGAIN);
            behind = self.behind.lock().ok()?;
        }
        Some(())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn who_waits_is_passed_by_so_often_at_most_by_one_that_takes_the_lock_again_at_once() {
        let (turns, lock) = (Turns::default(), Mutex::new(0_u32));
        for round in 0..50 {
            let mut held = turns.lock(&lock).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| *turns.lock(&lock).unwrap() += 1);
                while turns.waiting.load(Relaxed) == 0 {
                    std::thread::yield_now();
                }
                let mut passed = 0;
                while *held == round {
                    drop(held);
                    held = turns.lock(&lock).unwrap();
                    passed += 1;
                    assert!(passed <= PASSED_MAX + 1, "who waits does not get it");
                }
                drop(held);
            });
        }
        assert_eq!(turns.waiting.load(Relaxed), 0);
    }
}
