//! From regions to accesses: a trace in which DAMON would have found what it has found. [access-aware 7]
//!
//! ```text
//!   n of N samples, a sample each s       rate of a page: -ln(1 - n/N) / s, for accesses at random times
//!   n = N                                 at least ln(2 N) / s: nothing more is known
//!   a snapshot                            accesses in the order of chance, each to a random page of a region
//! ```
//! Pages that no region had are left out, so that page numbers of a target have no holes. Neighbours stay neighbours.

use pageout_workload::Access;
use pageout_workload::rng::SplitMix64;

use super::{Snapshot, Target};
use crate::error::{Error, ensure};
use crate::figures;

const PAGE: u64 = 4096;
/// Accesses of a trace, about. A recording of minutes may stand for thousands of millions.
const ACCESSES: f64 = 10e6;
/// The share of saturated memory from which on a reader is warned.
const SATURATED: f64 = 0.2;
/// The stream of a recording is always the same.
const SEED: u64 = 0xda30;

/// Pages in a row that some region had.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    first: u64,
    end: u64,
    /// The trace's number of the first one.
    number: u64,
}

/// The accesses that stand for a recording.
pub(in crate::import) struct Stream {
    targets: Vec<Target>,
    /// By target, in order of addresses.
    runs: Vec<Vec<Run>>,
    /// The share of accesses that are kept.
    kept: f64,
    /// The share of memory and time in which each sample found an access.
    saturated: f64,
}

/// Pages of a region: the first, and the one behind the last.
fn pages(start: u64, end: u64) -> (u64, u64) {
    (start / PAGE, end.div_ceil(PAGE))
}

impl Target {
    /// Accesses of a page per second, and whether the rate is a lower bound.
    fn rate(&self, snapshot: &Snapshot, at: usize) -> (f64, bool) {
        let share = self.share(snapshot, &snapshot.regions[at]);
        match share < 1.0 {
            true => (-(1.0 - share).ln() / self.sample_s(snapshot), false),
            false => ((2.0 * self.samples(snapshot)).ln() / self.sample_s(snapshot), true),
        }
    }

    fn runs(&self) -> Vec<Run> {
        let regions = self.snapshots.iter().flat_map(|snapshot| &snapshot.regions);
        let mut ranges: Vec<(u64, u64)> = regions.map(|region| pages(region.start, region.end)).collect();
        ranges.sort_unstable();
        let mut runs: Vec<Run> = Vec::new();
        for (first, end) in ranges {
            match runs.last_mut() {
                Some(last) if first <= last.end => last.end = last.end.max(end),
                last => {
                    let number = last.map_or(0, |last| last.number + last.end - last.first);
                    runs.push(Run { first, end, number });
                }
            }
        }
        runs
    }
}

impl Snapshot {
    fn seconds(&self) -> f64 {
        (self.end - self.start) as f64 / 1e9
    }
}

impl Stream {
    pub(in crate::import) fn new(place: &str, targets: Vec<Target>) -> Result<Stream, Error> {
        ensure!(
            targets.len() < Access::OBJECTS_MAX as usize,
            "{place}: found {} targets, expected fewer than {}, which a trace can have",
            targets.len(),
            Access::OBJECTS_MAX
        );
        let (mut accesses, mut saturated, mut all) = (0.0, 0.0, 0.0);
        for target in &targets {
            for snapshot in &target.snapshots {
                for (at, region) in snapshot.regions.iter().enumerate() {
                    let (rate, is_bound) = target.rate(snapshot, at);
                    let (first, end) = pages(region.start, region.end);
                    let weight = (end - first) as f64 * snapshot.seconds();
                    accesses += rate * weight;
                    all += weight;
                    saturated += if is_bound { weight } else { 0.0 };
                }
            }
        }
        let runs: Vec<Vec<Run>> = targets.iter().map(Target::runs).collect();
        let largest =
            runs.iter().filter_map(|runs| runs.last()).map(|run| run.number + run.end - run.first).max();
        ensure!(
            largest.is_none_or(|pages| pages <= Access::PAGES_MAX),
            "{place}: found regions of one target with {} pages in sum, expected at most {}",
            figures::count(largest.unwrap_or(0)),
            figures::count(Access::PAGES_MAX)
        );
        let kept = if accesses > ACCESSES { ACCESSES / accesses } else { 1.0 };
        Ok(Stream { targets, runs, kept, saturated: if all > 0.0 { saturated / all } else { 0.0 } })
    }

    pub(in crate::import) fn names(&self) -> Vec<String> {
        self.targets.iter().map(|target| target.name.clone()).collect()
    }

    /// Snapshots of all targets.
    pub(in crate::import) fn snapshots(&self) -> u64 {
        self.targets.iter().map(|target| target.snapshots.len() as u64).sum()
    }

    /// Hands over all accesses, snapshot by snapshot.
    pub(in crate::import) fn write(
        &self,
        mut take: impl FnMut(&[Access]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut order: Vec<(u64, usize, usize)> = Vec::new();
        for (target, of) in self.targets.iter().enumerate() {
            order.extend(of.snapshots.iter().enumerate().map(|(at, snapshot)| (snapshot.start, target, at)));
        }
        order.sort_unstable();
        let mut random = SplitMix64::new(SEED);
        let mut out = Vec::new();
        for (_, target, at) in order {
            self.write_snapshot(target, at, &mut random, &mut out);
            if out.len() >= 1 << 16 {
                take(&out)?;
                out.clear();
            }
        }
        take(&out)
    }

    fn write_snapshot(&self, target: usize, at: usize, random: &mut SplitMix64, out: &mut Vec<Access>) {
        let (of, runs) = (&self.targets[target], &self.runs[target]);
        let snapshot = &of.snapshots[at];
        let seconds = snapshot.seconds() * self.kept;
        let mut sums = Vec::with_capacity(snapshot.regions.len());
        let mut sum = 0.0;
        for (at, region) in snapshot.regions.iter().enumerate() {
            let (first, end) = pages(region.start, region.end);
            sum += of.rate(snapshot, at).0 * (end - first) as f64 * seconds;
            sums.push(sum);
        }
        let count = sum.floor() as u64 + u64::from(random.unit() < sum.fract());
        for _ in 0..count {
            let place = random.unit() * sum;
            let region = sums.partition_point(|&sum| sum <= place).min(sums.len() - 1);
            let region = &snapshot.regions[region];
            let (first, end) = pages(region.start, region.end);
            let page = first + random.below(end - first);
            let run = runs[runs.partition_point(|run| run.end <= page)];
            out.push(Access::new(target as u32, run.number + page - run.first, false));
        }
    }

    /// What the trace does not have, and what was guessed.
    pub(in crate::import) fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![
            "the recording has no accesses: those of the trace are random ones at the recorded rates. Reads and writes, their order, sharing, \
             the kind of memory and all structure within a region are lost. Hit ratios of LRU-like policies come out too low, and curves of \
             miss ratios too straight"
                .to_string(),
        ];
        if self.targets.iter().any(|target| target.is_window_guessed) {
            remarks
                .push("a target has one window, whose length is not recorded: 100 ms is assumed".to_string());
        }
        if self.targets.iter().any(|target| target.sample_us.is_none()) {
            remarks
                .push("the sampling interval is not recorded: 5 ms, DAMON's default, is assumed (--sample-interval)".to_string());
        }
        if self.kept < 1.0 {
            remarks.push(format!(
                "1 of {} accesses is kept, of all regions alike",
                figures::count((1.0 / self.kept).round() as u64)
            ));
        }
        let share = 100.0 * self.saturated;
        if self.saturated > SATURATED {
            remarks.push(format!(
                "WARNING: {share:.0} % of memory and time had an access in each sample. Its rate is a lower bound, so hot memory is less hot \
                 than it was: record with a shorter sampling interval"
            ));
        } else if self.saturated > 0.0 {
            remarks.push(format!(
                "{share:.1} % of memory and time had an access in each sample: its rate is a lower bound"
            ));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Accesses, Region};
    use super::*;

    const BASE: u64 = 0x5000_0000_0000;

    /// One target of 10 s: regions by first page, pages and samples of 20.
    fn stream(regions: &[(u64, u64, f64)]) -> Stream {
        let region = |&(first, pages, samples): &(u64, u64, f64)| Region {
            start: BASE + first * PAGE,
            end: BASE + (first + pages) * PAGE,
            accesses: Accesses::Samples(samples),
        };
        let snapshot = |at: u64| Snapshot {
            start: at * 100_000_000,
            end: (at + 1) * 100_000_000,
            regions: regions.iter().map(region).collect(),
            ..Snapshot::default()
        };
        let snapshots = (0..100).map(snapshot).collect();
        Stream::new(
            "damon.data",
            vec![Target { name: "target 0".to_string(), snapshots, ..Target::default() }],
        )
        .unwrap()
    }

    fn accesses(stream: &Stream) -> Vec<Access> {
        let mut all = Vec::new();
        stream
            .write(|some| {
                all.extend_from_slice(some);
                Ok(())
            })
            .unwrap();
        all
    }

    /// What DAMON would find again: of 20 samples of 5 ms, those in which a page has an access.
    #[test]
    fn a_page_is_accessed_in_as_many_samples_as_recorded() {
        for samples in [1.0, 5.0, 15.0] {
            let stream = stream(&[(0, 8, samples)]);
            let per_page = accesses(&stream).len() as f64 / 8.0 / 10.0;
            let found = 20.0 * (1.0 - (-per_page * 0.005).exp());
            assert!((found - samples).abs() < 0.05 * samples, "{samples} samples, found {found}");
        }
    }

    #[test]
    fn idle_regions_have_no_accesses_and_holes_no_numbers() {
        let stream = stream(&[(0, 4, 5.0), (1000, 4, 5.0), (5000, 100, 0.0)]);
        let all = accesses(&stream);
        let pages: std::collections::BTreeSet<u64> = all.iter().map(|access| access.page()).collect();
        assert_eq!(pages, (0..8).collect(), "the second region follows the first");
        assert!(all.iter().all(|access| !access.is_write()));
        assert_eq!(accesses(&stream), all, "the same each time");
    }

    #[test]
    fn saturated_and_thinned_recordings_say_so() {
        assert_eq!(stream(&[(0, 4, 5.0)]).remarks().len(), 2, "what is lost, and the interval");
        let hot = stream(&[(0, 4, 20.0), (4, 4, 0.0)]).remarks();
        assert!(hot.iter().any(|remark| remark.starts_with("WARNING: 50 %")), "{hot:?}");
        let large = stream(&[(0, 1 << 20, 10.0)]);
        assert!(large.remarks().iter().any(|remark| remark.starts_with("1 of ")), "{:?}", large.remarks());
        let count = accesses(&large).len() as f64;
        assert!((count - ACCESSES).abs() < 0.01 * ACCESSES, "{count}");
    }
}
