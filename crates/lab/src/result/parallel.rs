//! Runs side by side: each on a thread of its own, results in the order of the inputs whatever came first.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `run` to every item on up to `jobs` threads; 0 is one a CPU.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], jobs: usize, run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = if jobs == 0 { cpus } else { jobs }.clamp(1, items.len().max(1));
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = run(item);
                    results.lock().expect("no other thread panicked while it held the lock")[index] =
                        Some(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("a thread that panicked has ended the scope");
    results.into_iter().map(|result| result.expect("every index was taken once")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_keep_the_order_of_the_inputs() {
        let items: Vec<u64> = (0..100).collect();
        for jobs in [0, 1, 7, 1000] {
            assert!(super::map(&items, jobs, |item| item * 2).into_iter().eq((0..100).map(|item| item * 2)));
        }
        assert!(super::map(&[] as &[u64], 0, |item| *item).is_empty());
    }
}
