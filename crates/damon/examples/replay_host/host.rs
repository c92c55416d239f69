//! This crate's kdamond on the accesses of a recording.
//!
//! ```text
//!   frames of the recording program    accessed when it touched them, and idle before
//!   all other memory                   accessed at random, with the chance that the kernel found for its region in that window, less the share of
//!                                      the program's frames in the region
//! ```
//! The kdamond begins as one region per range, and sees other memory as in the first recorded window until it has settled. The effect of its
//! schemes on folios is not known: they reject anonymous memory, which the program's is, and have no effect on other memory. The chance of other
//! memory is the mean of a few windows, because one count of ten samples is too coarse for a rate.

use crate::Failure;
use crate::recording::{Recording, Seen, Window};
use pageout_damon::{Applied, Apply, Draws, Kdamond, Memory, Metric, Range, Rules, SplitHistory, Step};

/// Windows before the recording, all of them like its first one.
const SETTLING: u64 = 120;
/// Windows before and after one whose mean is the rate in it.
const AROUND: usize = 2;
/// A tick of the kernel's clock.
const JIFFY_NS: u64 = 4_000_000;

/// Memory as a recording describes it.
struct Host<'a> {
    recording: &'a Recording,
    /// By window and region: the samples that found an access of other memory.
    others: Vec<Vec<f64>>,
    samples: u32,
    draws: Draws,
    prepared_ns: u64,
    now_ns: u64,
}

impl Host<'_> {
    /// What the kernel found of other memory: a region's count is the mean of its bytes.
    fn others(recording: &Recording, samples: u32) -> Vec<Vec<f64>> {
        let starts = recording.windows.iter().map(|window| window.end_ns);
        let starts = std::iter::once(recording.windows[0].end_ns).chain(starts);
        let of_window = |(window, start_ns): (&Window, u64)| {
            let sample_ns = (window.end_ns - start_ns) / u64::from(samples);
            let count = |class: usize| {
                let from = |at: u32| start_ns + u64::from(at) * sample_ns;
                (0..samples).filter(|&at| recording.is_touched(class, from(at), from(at + 1))).count() as f64
            };
            let counts: Vec<f64> = (0..recording.classes.len()).map(count).collect();
            let of_region = |region: &Seen| {
                let (mut own_bytes, mut own) = (0, 0.0);
                for (class, bytes) in recording.within(region.start, region.end) {
                    own_bytes += bytes;
                    own += bytes as f64 * counts[class];
                }
                let size = region.end - region.start;
                match size - own_bytes {
                    0 => 0.0,
                    rest => (f64::from(region.nr_accesses) * size as f64 - own) / rest as f64,
                }
            };
            window.regions.iter().map(of_region).collect()
        };
        recording.windows.iter().zip(starts).map(of_window).collect()
    }

    /// Samples of a window in which the kernel found an access at an address of other memory, in the mean of the windows around this time.
    fn found(&self, address: u64) -> f64 {
        let windows = &self.recording.windows;
        let at = windows.partition_point(|window| window.end_ns < self.now_ns).min(windows.len() - 1);
        let around = at.saturating_sub(AROUND)..(at + AROUND + 1).min(windows.len());
        let count = around.len() as f64;
        let found = around.map(|window| {
            let regions = &windows[window].regions;
            let at = regions.partition_point(|region| region.start <= address).checked_sub(1);
            at.filter(|&at| address < regions[at].end).map_or(0.0, |at| self.others[window][at])
        });
        found.sum::<f64>() / count
    }
}

impl Memory for Host<'_> {
    fn prepare(&mut self, _: usize, _: u64) {
        self.prepared_ns = self.now_ns;
    }

    fn is_young(&mut self, _: usize, address: u64) -> bool {
        match self.recording.class_of(address) {
            Some(class) => self.recording.is_touched(class, self.prepared_ns, self.now_ns),
            None => {
                let drawn = self.draws.within(0, 1 << 32) as f64 / (1u64 << 32) as f64;
                drawn * f64::from(self.samples) < self.found(address)
            }
        }
    }

    fn ranges(&mut self, _: usize) -> Option<Vec<Range>> {
        None
    }

    fn is_valid(&self, _: usize) -> bool {
        true
    }

    fn free_mem_rate(&self) -> u64 {
        unreachable!("no scheme has watermarks")
    }

    fn measure(&mut self, _: Metric) -> u64 {
        unreachable!("no scheme has goals")
    }
}

/// The windows of a kdamond on the accesses of a recording.
pub(crate) fn replay(recording: &Recording, rules: Rules, seed: u64) -> Result<Vec<Window>, Failure> {
    let attrs = recording.files.attrs()?;
    let samples = attrs.samples();
    let windows = &recording.windows;
    let (first, last) = (windows[0].end_ns, windows[windows.len() - 1].end_ns);
    // A sample interval has the time of the checks in it.
    let sample_ns = (last - first) / (windows.len() as u64 - 1) / u64::from(samples);
    let now_ns = first.saturating_sub(SETTLING * sample_ns * u64::from(samples));
    let others = Host::others(recording, samples);
    let draws = Draws::new(seed ^ 0x6057);
    let mut host = Host { recording, others, samples, draws, prepared_ns: now_ns, now_ns };
    let mut kdamond = Kdamond::new(attrs, rules, seed, JIFFY_NS)?;
    kdamond.add_target(&recording.files.ranges()?, false);
    recording.files.schemes()?.into_iter().for_each(|scheme| kdamond.add_scheme(scheme));
    let (mut history, mut found, mut applied) = (SplitHistory::default(), Vec::new(), Vec::new());
    while host.now_ns <= last {
        let end_ns = host.now_ns;
        match kdamond.step(&mut host, &mut history, end_ns) {
            Step::Sleep(_) => host.now_ns += sample_ns,
            Step::Aggregated => {
                let regions = kdamond.targets()[0].regions().iter().map(|region| Seen {
                    start: region.start,
                    end: region.end,
                    nr_accesses: region.nr_accesses,
                    age: region.age,
                });
                let window =
                    Window { end_ns, regions: regions.collect(), applied: std::mem::take(&mut applied) };
                if end_ns >= first {
                    found.push(window);
                }
            }
            Step::Apply(Apply { range, nr_accesses, age, .. }) => {
                applied.push(Seen { start: range.start, end: range.end, nr_accesses, age });
                kdamond.applied(Applied::default(), end_ns);
            }
            Step::Ended => return Err("the kdamond has ended, although its memory exists".into()),
            Step::Again | Step::Serve => {}
        }
    }
    Ok(found)
}
