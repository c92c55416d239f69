//! Hits by handle: each thread counts its own, in a cache line of its own.
//!
//! ```text
//!   a hit     the thread's line of this handle: one more                    no other thread writes there
//!   a reader  lock ─▶ the sum over the threads that use the handle ─▶ unlock
//!   the end   of a thread or a handle: its sum is kept with the handle, the file, the group
//! ```

use std::sync::Arc;

use crate::atomic::{AtomicU64, Ordering};
use crate::ring::Hits;

/// Hits of one thread through one handle. Alone in its line: a neighbour might be another thread's.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct ThreadHits {
    all: AtomicU64,
    slow: AtomicU64,
}

impl ThreadHits {
    /// One more. Only its thread calls this.
    #[inline(always)]
    pub(crate) fn count(&self, is_slow: bool) {
        // One writer: no need for an instruction that keeps others out.
        let count = |of: &AtomicU64| of.store(of.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        count(&self.all);
        if is_slow {
            count(&self.slow);
        }
    }

    fn hits(&self) -> Hits {
        Hits { all: self.all.load(Ordering::Relaxed), slow: self.slow.load(Ordering::Relaxed) }
    }
}

/// Accesses through a handle, or to a region.
#[derive(Default)]
pub(crate) struct Counts {
    /// Accesses that needed the engine.
    pub(crate) misses: u64,
    /// Hits of threads that do not use it any more.
    of_ended: Hits,
    threads: Vec<Arc<ThreadHits>>,
}

/// A sum of [`Counts`].
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sum {
    pub(crate) hits: Hits,
    pub(crate) misses: u64,
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, more: Sum) {
        self.hits += more.hits;
        self.misses += more.misses;
    }
}

impl Counts {
    /// A thread begins to use it. Returns its line.
    pub(crate) fn join(&mut self) -> Arc<ThreadHits> {
        // A thread that has ended, or uses the handle no more, has no part in its line.
        let is_over = |line: &mut Arc<ThreadHits>| Arc::get_mut(line).is_some();
        for ended in self.threads.extract_if(.., is_over) {
            self.of_ended += ended.hits();
        }
        let line = Arc::<ThreadHits>::default();
        self.threads.push(Arc::clone(&line));
        line
    }

    pub(crate) fn sum(&self) -> Sum {
        let mut hits = self.of_ended;
        self.threads.iter().for_each(|line| hits += line.hits());
        Sum { hits, misses: self.misses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_of_ended_threads_stay_counted() {
        let mut counts = Counts::default();
        for round in 1..=10 {
            let line = counts.join();
            assert!(std::ptr::addr_of!(*line).addr().is_multiple_of(64) && size_of_val(&*line) == 64);
            (0..round).for_each(|at| line.count(at % 2 == 0));
            assert_eq!(counts.threads.len(), 1, "the lines of those before are gone");
        }
        let Sum { hits, misses } = counts.sum();
        assert_eq!((hits.all, hits.slow, misses), (55, 30, 0));
    }
}
