//! Parallel runs, each on a thread of its own, with results in the order of the inputs whatever came first.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `run` to every item on up to `jobs` threads; 0 is one a CPU.
pub fn map<T: Sync, R: Send>(items: &[T], jobs: usize, run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results = map_while(items.len(), jobs, |index| Some(run(&items[index])));
    results.into_iter().map(|(_, result)| result).collect()
}

/// Applies `run` to the numbers from 0 to below `count` on up to `jobs` threads, until one has no result. Numbers are started in this
/// order; those not started by then are dropped. Returns each result with its number, sorted by number. Dropped numbers cost neither time
/// nor memory.
pub fn map_while<R: Send>(
    count: usize,
    jobs: usize,
    run: impl Fn(usize) -> Option<R> + Sync,
) -> Vec<(usize, R)> {
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = if jobs == 0 { cpus } else { jobs }.clamp(1, count.max(1));
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::default();
    let work = || {
        // No thread comes so often beyond the end that the number overflows.
        while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < count) {
            match run(index) {
                Some(result) => results
                    .lock()
                    .expect("no other thread panicked while it held the lock")
                    .push((index, result)),
                None => next.store(count, Ordering::Relaxed),
            }
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    let mut results = results.into_inner().expect("a thread that panicked has ended the scope");
    results.sort_unstable_by_key(|&(index, _)| index);
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_inputs() {
        let items: Vec<u64> = (0..100).collect();
        for jobs in [0, 1, 7, 1000] {
            assert!(map(&items, jobs, |item| item * 2).into_iter().eq((0..100).map(|item| item * 2)));
        }
        assert!(map(&[] as &[u64], 0, |item| *item).is_empty());
    }

    #[test]
    fn nothing_begins_after_one_without_a_result() {
        let begun = AtomicUsize::new(0);
        let results = map_while(1_000_000_000_000, 2, |index| {
            begun.fetch_add(1, Ordering::Relaxed);
            (index < 5).then_some(index)
        });
        assert_eq!(results, [0, 1, 2, 3, 4].map(|index| (index, index)));
        assert!(begun.into_inner() <= 5 + 2, "each thread looks once");
    }
}
