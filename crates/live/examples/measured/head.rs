//! What examples that measure have in common: a file, pages to read, time of the CPU, and what was found.
#![allow(dead_code, reason = "each example uses a part of it")]

use std::path::{Path, PathBuf};

use pageout::Stats;

pub(crate) const PAGE: usize = 4096;
pub(crate) const MIB: usize = 1 << 20;

/// A file that is on its device, and goes with this value.
pub(crate) struct Made(pub(crate) PathBuf);

impl Made {
    pub(crate) fn new(folder: &Path, bytes: usize) -> Made {
        let name = env!("CARGO_CRATE_NAME");
        let made = Made(folder.join(format!("pageout-{name}-{bytes}-{}", std::process::id())));
        let page: Vec<u8> = (0..PAGE).map(|at| (at % 251) as u8).collect();
        std::fs::write(&made.0, page.repeat(bytes / PAGE)).unwrap();
        std::fs::File::open(&made.0).unwrap().sync_all().unwrap();
        made
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Pages by Zipf's law, hot ones scattered over the file; or all alike.
pub(crate) fn draws(pages: usize, exponent: Option<f64>, count: usize) -> Vec<u64> {
    let mut state = 1_u64;
    let mut unit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let weight = |rank: usize| exponent.map_or(1.0, |exponent| ((rank + 1) as f64).powf(-exponent));
    let sums: Vec<f64> = (0..pages)
        .scan(0.0, |sum, rank| {
            *sum += weight(rank);
            Some(*sum)
        })
        .collect();
    let sum = *sums.last().unwrap();
    let page = |rank: usize| (rank.min(pages - 1) * 2_654_435_761 % pages) as u64;
    (0..count)
        .map(|_| {
            let wanted = unit() * sum;
            page(sums.partition_point(|&sum| sum < wanted))
        })
        .collect()
}

/// Nanoseconds of this thread's CPU time.
pub(crate) fn cpu(act: impl FnOnce()) -> f64 {
    let before = time_of(libc::CLOCK_THREAD_CPUTIME_ID);
    act();
    time_of(libc::CLOCK_THREAD_CPUTIME_ID) - before
}

pub(crate) fn process_time() -> f64 {
    time_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn time_of(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the one place that it is given, which lives until it returns.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(result, 0, "threads and processes have a clock");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The median, the least and the most.
pub(crate) fn middle(figures: &[f64]) -> (f64, f64, f64) {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    (figures[figures.len() / 2], figures[0], figures[figures.len() - 1])
}

pub(crate) fn print_lock(stats: &Stats) {
    let held = &stats.lock_held;
    println!(
        "  the lock was held {} times: half of them up to {:?}, 99 % up to {:?}, at most {:?}",
        held.times(),
        held.quantile(0.5),
        held.quantile(0.99),
        held.quantile(1.0)
    );
}
