//! Where an access's time went: each span that it waits is lost to one cause, and what is left is its own work.
//!
//! ```text
//!   ready                                                                               done
//!     ├─ cpu ─┼─ own work ─┼─ direct reclaim ─┼─ cpu ─┼─ own work ─┼─ device read ─┼─ own work ─┤─ thinking ─ ...
//! ```
//! An access is what the task asks for: a load or store, or one call of read(2) or write(2), however many pages that is of. It begins
//! when the task is ready for it, which is when the one before is done and the task has thought and come to its time. So a wait for a
//! CPU between two accesses is part of the second. Calls on whole files (fsync(2), truncation) stand between accesses and are none.
//!
//! A hit costs what it costs: hits that nothing holds up are counted, not recorded, and stand in a report at their price. All else comes
//! by here once, at its end.
//!
//! Work has a cause if a step of the engine reclaims or compacts, and then all of the step has it. A step that does both is split by the prices of
//! what compaction counts. Within a reclaim call every wait except that for a CPU is direct reclaim's.

use pageout_engine::Nanos;

use crate::latency::{LatencyHistogram, LatencySummary, Window, bucket_of, greatest_in};

/// Declares causes: a name in JSON, a name in texts, and what it stands for.
macro_rules! causes {
    ($($(#[$doc:meta])* $cause:ident: $name:literal, $title:literal;)*) => {
        /// A cause to which an access loses time.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Cause {
            $($(#[$doc])* $cause,)*
        }

        impl Cause {
            /// All causes.
            pub const ALL: &[Cause] = &[$(Cause::$cause),*];

            /// Its name in results for programs.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$cause => $name),* }
            }

            /// Its name in results for readers.
            pub fn title(self) -> &'static str {
                match self { $(Cause::$cause => $title),* }
            }
        }
    };
}

causes! {
    /// The device reads the file pages that the access needs, or has no free slot for readahead.
    DeviceRead: "device_read", "device read";
    /// A page comes back from swap: it is read, or decompressed.
    SwapIn: "swap_in", "swap-in";
    /// Another task has asked for the page, which is on its way.
    OthersRead: "others_read", "a page that another reads";
    /// The task reclaims, is throttled in reclaim, or waits for kswapd.
    DirectReclaim: "direct_reclaim", "direct reclaim";
    /// It compacts, to make a large block.
    Compaction: "compaction", "compaction";
    /// It is slowed since its group is above `memory.high`. What it reclaims for that is direct reclaim.
    MemoryHigh: "memory_high", "memory.high";
    /// It sleeps since too much is dirty (`balance_dirty_pages`).
    DirtyLimits: "dirty_limits", "dirty limits";
    /// Outside of reclaim calls it waits for pages to be written.
    Writeback: "writeback", "writeback";
    /// The OOM killer was called, and the task waits for the result.
    Oom: "oom", "the OOM killer";
    /// It is ready, and its CPU runs others.
    Cpu: "cpu", "a CPU";
    /// It has arrived, and the task is busy with those before it: in an open loop.
    Turn: "turn", "its turn";
}

/// The number of causes.
pub(crate) const CAUSES: usize = Cause::ALL.len();

/// Time lost since the last access was done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    by_cause: [u64; CAUSES],
    /// A bit for each cause that has any.
    some: u16,
}

impl Lost {
    #[inline]
    pub(crate) fn add(&mut self, cause: Cause, span: Nanos) {
        self.by_cause[cause as usize] += span.0;
        self.some |= u16::from(span.0 > 0) << cause as u16;
    }

    /// The time was not lost to an access.
    pub(crate) fn clear(&mut self) {
        *self = Lost::default();
    }
}

/// The total time of accesses of similar length, and the time lost to each cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Alike {
    total: u64,
    by_cause: [u64; CAUSES],
}

/// Accesses are alike if their spans are in the same quarter of an octave: so many buckets of a histogram.
const ALIKE_SHIFT: u32 = 5;

/// The least span of those that are alike.
fn least_of(alike: usize) -> u64 {
    (alike << ALIKE_SHIFT).checked_sub(1).map_or(0, |before| greatest_in(before) + 1)
}

/// The times of accesses, by cause.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AccessTimes {
    /// Time since when the current or the next access could be made.
    pub(crate) ready_at: Nanos,
    /// Time of the current call's pages so far, as far as they are done.
    pub(crate) call: Nanos,
    /// All but plain hits.
    all: LatencyHistogram,
    by_cause: [Option<Box<LatencyHistogram>>; CAUSES],
    alike: Window<Alike>,
    syncs: LatencyHistogram,
}

impl AccessTimes {
    pub(crate) fn new(ready_at: Nanos) -> AccessTimes {
        AccessTimes { ready_at, ..AccessTimes::default() }
    }

    /// Accesses recorded so far.
    pub(crate) fn count(&self) -> u64 {
        self.all.count()
    }

    /// An access is done that took so long, and has lost so much of that.
    pub(crate) fn record(&mut self, took: Nanos, lost: &mut Lost) {
        let bucket = bucket_of(took.0);
        self.all.record_in(bucket, took, 1);
        let alike = self.alike.at(bucket >> ALIKE_SHIFT);
        alike.total += took.0;
        let mut some = std::mem::take(&mut lost.some);
        while some != 0 {
            let cause = some.trailing_zeros() as usize;
            some &= some - 1;
            let span = std::mem::take(&mut lost.by_cause[cause]);
            alike.by_cause[cause] += span;
            self.by_cause[cause].get_or_insert_default().record(Nanos(span));
        }
    }

    /// So many accesses are done that nothing held up.
    pub(crate) fn record_hits(&mut self, took: Nanos, count: u64) {
        if count > 0 {
            self.all.record_many(took, count);
            self.alike.at(bucket_of(took.0) >> ALIKE_SHIFT).total += took.0 * count;
        }
    }

    /// An fsync(2) is over.
    pub(crate) fn record_sync(&mut self, took: Nanos) {
        self.syncs.record(took);
    }

    /// Adds what others have recorded.
    pub fn merge(&mut self, other: &AccessTimes) {
        self.all += &other.all;
        self.syncs += &other.syncs;
        for (mine, others) in self.by_cause.iter_mut().zip(&other.by_cause) {
            if let Some(others) = others {
                **mine.get_or_insert_default() += others;
            }
        }
        for (index, others) in other.alike.iter() {
            let mine = self.alike.at(index);
            mine.total += others.total;
            mine.by_cause.iter_mut().zip(others.by_cause).for_each(|(mine, others)| *mine += others);
        }
    }

    /// The figures that are printed.
    pub fn report(&self) -> AccessReport {
        let by_cause: Vec<(Cause, LatencySummary)> = Cause::ALL
            .iter()
            .zip(&self.by_cause)
            .filter_map(|(&cause, histogram)| Some((cause, histogram.as_ref()?.summary())))
            .collect();
        let lost: u64 = by_cause.iter().map(|(_, lost)| lost.total.0).sum();
        AccessReport {
            all: self.all.summary(),
            own_work: Nanos(self.all.total().0 - lost),
            slowest: self.slowest(),
            by_cause,
            syncs: self.syncs.summary(),
        }
    }

    /// One in a hundred, or as few more as there are that are alike.
    fn slowest(&self) -> Slowest {
        let wanted = self.all.count().div_ceil(100);
        let mut slowest = Slowest::default();
        let mut lost = [0; CAUSES];
        let mut buckets = self.all.buckets().rev().filter(|(_, count)| **count > 0).peekable();
        for (index, alike) in self.alike.iter().rev() {
            if slowest.count >= wanted {
                break;
            }
            while let Some((_, count)) = buckets.next_if(|(bucket, _)| bucket >> ALIKE_SHIFT == index) {
                slowest.from = Nanos(least_of(index));
                slowest.count += count;
            }
            slowest.total += Nanos(alike.total);
            lost.iter_mut().zip(alike.by_cause).for_each(|(sum, lost)| *sum += lost);
        }
        let causes = Cause::ALL.iter().zip(lost).filter(|(_, lost)| *lost > 0);
        slowest.by_cause = causes.map(|(&cause, lost)| (cause, Nanos(lost))).collect();
        slowest
    }
}

/// The access times of a task, or of all tasks of a group, with their causes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AccessReport {
    /// From when the task was ready for an access until it was done, hits included.
    pub all: LatencySummary,
    /// Time that accesses lost to each cause, of those that lost any to it; only causes that there were, in the order of [`Cause::ALL`].
    pub by_cause: Vec<(Cause, LatencySummary)>,
    /// The rest: what the accesses themselves, system calls and faults took of the CPU. With the sums by cause it makes the sum of all.
    pub own_work: Nanos,
    /// The causes of the slowest accesses.
    pub slowest: Slowest,
    /// Calls of fsync(2) between accesses.
    pub syncs: LatencySummary,
}

/// The slowest one in a hundred accesses, and as few more as there are that took about as long: within a quarter of each other.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Slowest {
    /// The slowest accesses took so long or longer, exactly.
    pub from: Nanos,
    /// The number of the slowest accesses.
    pub count: u64,
    /// The total time of the slowest accesses.
    pub total: Nanos,
    /// Time that the slowest accesses lost, by cause; the rest of `total` is own work.
    pub by_cause: Vec<(Cause, Nanos)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(by_cause: &[(Cause, u64)]) -> Lost {
        let mut lost = Lost::default();
        by_cause.iter().for_each(|&(cause, span)| lost.add(cause, Nanos(span)));
        lost
    }

    #[test]
    fn what_causes_took_and_own_work_are_all_that_accesses_took() {
        let mut times = AccessTimes::default();
        times.record_hits(Nanos(100), 50);
        times
            .record(Nanos(1_000), &mut lost(&[(Cause::DeviceRead, 600), (Cause::Cpu, 0), (Cause::Cpu, 150)]));
        times.record(Nanos(900), &mut lost(&[(Cause::DeviceRead, 800), (Cause::Oom, 0)]));
        let report = times.report();
        assert_eq!((report.all.count, report.all.total, report.all.max), (52, Nanos(6_900), Nanos(1_000)));
        let sums: Vec<_> = report.by_cause.iter().map(|(cause, of)| (*cause, of.count, of.total.0)).collect();
        assert_eq!(sums, [(Cause::DeviceRead, 2, 1_400), (Cause::Cpu, 1, 150)]);
        assert_eq!(report.own_work, Nanos(6_900 - 1_550));
    }

    #[test]
    fn an_access_leaves_nothing_to_the_next() {
        let mut times = AccessTimes::default();
        let mut lost = lost(&[(Cause::SwapIn, 70)]);
        times.record(Nanos(80), &mut lost);
        times.record(Nanos(80), &mut lost);
        assert_eq!(times.report().by_cause[0].1.count, 1);
    }

    #[test]
    fn the_slowest_are_one_in_a_hundred_with_where_their_time_went() {
        let mut times = AccessTimes::default();
        times.record_hits(Nanos(500), 980);
        (0..10).for_each(|_| times.record(Nanos(9_000), &mut lost(&[(Cause::DeviceRead, 8_000)])));
        (0..10).for_each(|_| times.record(Nanos(2_000_000), &mut lost(&[(Cause::DirtyLimits, 1_900_000)])));
        let slowest = times.report().slowest;
        assert_eq!((slowest.count, slowest.total), (10, Nanos(20_000_000)));
        assert_eq!(slowest.by_cause, [(Cause::DirtyLimits, Nanos(19_000_000))]);
        assert!((1_600_000..=2_000_000).contains(&slowest.from.0), "{}", slowest.from);
    }

    #[test]
    fn those_that_are_alike_are_within_a_quarter_of_their_least() {
        for span in (0..1 << 12).chain([u64::MAX / 2, u64::MAX]) {
            let index = bucket_of(span) >> ALIKE_SHIFT;
            assert!(least_of(index) <= span, "{span}");
            assert!(span < 128 || span - least_of(index) < least_of(index) / 4, "{span}");
        }
    }

    #[test]
    fn merged_times_are_those_of_all_their_accesses() {
        let (mut parts, mut all) = <([AccessTimes; 2], AccessTimes)>::default();
        for (part, took, cause) in
            [(0, 7_000, Cause::Cpu), (1, 90, Cause::MemoryHigh), (1, 30_000, Cause::Cpu)]
        {
            parts[part].record(Nanos(took), &mut lost(&[(cause, took / 2)]));
            all.record(Nanos(took), &mut lost(&[(cause, took / 2)]));
        }
        let [mut one, other] = parts;
        one.merge(&other);
        assert_eq!(one.report(), all.report());
    }
}
