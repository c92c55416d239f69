//! Figures that a cache counts in addition to the kernel's counters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Figures of a [`crate::Memory`]: totals since it was built, and current values.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Pages that were read or written without the engine's lock.
    pub hits: u64,
    /// The part of these pages that was in slow memory ([`crate::Node::slow`]).
    pub slow_hits: u64,
    /// Pages that were read or written under it. They were not in memory, were still being read, or triggered readahead; or they were clean, and were
    /// written.
    pub misses: u64,
    /// Requests to devices, and the bytes that they read.
    pub device_reads: u64,
    /// See [`Stats::device_reads`].
    pub device_bytes: u64,
    /// Writes to devices, and their bytes.
    pub device_writes: u64,
    /// See [`Stats::device_writes`].
    pub device_bytes_written: u64,
    /// Pages that differ from their devices (`nr_dirty`), and pages under writeback (`nr_writeback`). A page may be both.
    pub dirty: u64,
    /// See [`Stats::dirty`].
    pub writeback: u64,
    /// Pages that came back soon after their eviction (`workingset_refault_file`).
    pub refaults: u64,
    /// Pages of files in memory.
    pub resident: u64,
    /// Pages of regions in memory, except those that reclaim is evicting (`nr_anon_pages`).
    pub anon: u64,
    /// Slots of the swap file that hold a page. Some of these pages are in memory as well.
    pub swapped: u64,
    /// Evicted pages of regions that were accessed again soon (`workingset_refault_anon`).
    pub refaults_anon: u64,
    /// Pages of regions that are compressed in memory ([`crate::Builder::zswap`]), and the frames that they take.
    pub zswapped: u64,
    /// See [`Stats::zswapped`].
    pub zswap_frames: u64,
    /// Pages that were stored compressed, pages that were compressed for that or in vain, and those among them that were compressed under the engine's
    /// lock.
    pub zswap_stores: u64,
    /// See [`Stats::zswap_stores`].
    pub zswap_compressions: u64,
    /// See [`Stats::zswap_stores`].
    pub zswap_compressions_locked: u64,
    /// Frames that the budget has for pages, of fast memory and of slow.
    pub frames: u64,
    /// Bytes that the engine's tables of files and regions take, and the frames that these have beyond what is reserved for them
    /// ([`crate::Builder::files`]).
    pub table_bytes: u64,
    /// See [`Stats::table_bytes`].
    pub table_frames: u64,
    /// Frames of slow memory among them, and the pages in these.
    pub slow_frames: u64,
    /// See [`Stats::slow_frames`].
    pub slow_resident: u64,
    /// Pages promoted from slow memory to fast (`pgpromote_success`), and demoted (`pgdemote_kswapd` and similar counters).
    pub promoted: u64,
    /// See [`Stats::promoted`].
    pub demoted: u64,
    /// Pages whose migration failed: no frame was free, or they were in use (`pgmigrate_fail`).
    pub moves_failed: u64,
    /// Migrations and evictions that failed because the page was held.
    pub kept_by_pins: u64,
    /// Pages that guards hold. A page counts once for each guard.
    pub pinned: u64,
    /// Times for which the engine's lock was held: in wall-clock time of one hold in eight, or in the holder's CPU time of each
    /// ([`crate::Builder::lock_held_by_cpu`]).
    pub lock_held: LockHeld,
}

/// Figures of a file ([`crate::File::stats`]): totals since the cache first opened it, or since it was forgotten, and current values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FileStats {
    /// Pages that were read or written without the engine's lock, through any handle.
    pub hits: u64,
    /// The part of these pages that was in slow memory.
    pub slow_hits: u64,
    /// Pages that were read or written under it: see [`Stats::misses`].
    pub misses: u64,
    /// Pages that came back soon after their eviction.
    pub refaults: u64,
    /// Pages that reclaim has evicted.
    pub evictions: u64,
    /// Pages in memory.
    pub resident: u64,
    /// Pages that differ from the device.
    pub dirty: u64,
    /// Pages under writeback. A page may be dirty, too.
    pub writeback: u64,
    /// Requests to the device that read the file.
    pub device_reads: u64,
    /// Bytes that these have read.
    pub device_bytes: u64,
    /// Requests to the device that wrote the file.
    pub device_writes: u64,
    /// Bytes that these have written.
    pub device_bytes_written: u64,
}

/// Figures of a group ([`crate::Group::stats`]): totals since it was created, and current values.
///
/// Accesses count for the group of their handle or region. Pages count for the group that is charged for them: the one whose access brought them in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GroupStats {
    /// Pages that were read or written without the engine's lock.
    pub hits: u64,
    /// The part of these pages that was in slow memory.
    pub slow_hits: u64,
    /// Pages that were read or written under it: see [`Stats::misses`].
    pub misses: u64,
    /// Pages of files that came back soon after their eviction (`workingset_refault_file`).
    pub refaults: u64,
    /// Pages of regions that came back soon after their eviction (`workingset_refault_anon`).
    pub refaults_anon: u64,
    /// Pages that reclaim has evicted (`pgsteal`).
    pub evictions: u64,
    /// Pages that are charged to the group (`memory.current`).
    pub charged: u64,
    /// Pages of files in memory.
    pub resident: u64,
    /// Pages of regions in memory, except those that reclaim is evicting.
    pub anon: u64,
    /// Slots of the swap file that are charged to the group.
    pub swapped: u64,
    /// Pages that differ from their devices.
    pub dirty: u64,
    /// Pages under writeback. A page may be dirty, too.
    pub writeback: u64,
}

/// Histogram of the times for which the engine's lock was held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockHeld {
    times: u64,
    /// By [`bucket`].
    counts: Vec<u64>,
}

/// Four buckets per doubling: the bounds of a bucket are an eighth from its middle.
const BUCKETS: usize = 4 * 40;

fn bucket(nanos: u64) -> usize {
    let nanos = nanos.max(4);
    let power = nanos.ilog2();
    let quarter = nanos >> (power - 2) & 3;
    ((4 * power) as usize + quarter as usize).min(BUCKETS - 1)
}

/// The longest time in a bucket.
fn upper(bucket: usize) -> u64 {
    let (power, quarter) = (bucket / 4, bucket as u64 % 4);
    if power < 2 { 4 } else { ((4 + quarter + 1) << power >> 2) - 1 }
}

impl LockHeld {
    /// Number of times that it was taken.
    pub fn times(&self) -> u64 {
        self.times
    }

    /// Returns the longest of the shortest `share` of all measured times, from 0 to 1, or at most a quarter more; zero if none was measured.
    pub fn quantile(&self, share: f64) -> Duration {
        let measured: u64 = self.counts.iter().sum();
        let wanted = (measured as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0;
        let found = self.counts.iter().position(|&count| {
            sum += count;
            sum >= wanted
        });
        found.map_or(Duration::ZERO, |bucket| Duration::from_nanos(upper(bucket)))
    }
}

/// The histogram in the form in which threads count.
pub(crate) struct Histogram([AtomicU64; BUCKETS]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Histogram {
    /// Must be called under the lock, so that there is one writer.
    pub(crate) fn count(&self, held: Duration) {
        let count = &self.0[bucket(held.as_nanos() as u64)];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// The histogram, and how often the lock was taken.
    pub(crate) fn read(&self, times: u64) -> LockHeld {
        LockHeld { times, counts: self.0.iter().map(|count| count.load(Relaxed)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_where_the_next_one_begins() {
        for bucket_at in 8..BUCKETS - 1 {
            assert_eq!(bucket(upper(bucket_at)), bucket_at, "{}", upper(bucket_at));
            assert_eq!(bucket(upper(bucket_at) + 1), bucket_at + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_at_most_a_quarter_too_long() {
        let histogram = Histogram::default();
        (1..=100).for_each(|micros| histogram.count(Duration::from_micros(micros)));
        let held = histogram.read(800);
        assert_eq!(held.times(), 800);
        for (share, micros) in [(0.5, 50), (0.99, 99), (1.0, 100)] {
            let (least, told) = (Duration::from_micros(micros), held.quantile(share));
            assert!(least <= told && told <= least * 5 / 4, "{share}: {told:?}");
        }
        assert_eq!(Histogram::default().read(7).quantile(0.99), Duration::ZERO);
    }
}
