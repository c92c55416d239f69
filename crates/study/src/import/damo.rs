//! Recordings of `damo`: what DAMON found of each region, snapshot by snapshot. [access-aware 7]
//!
//! ```text
//!   damon.data   zlib stream of JSON ─┐
//!                JSON ────────────────┼─▶ targets ─▶ snapshots ─▶ regions: address range, samples with an access of all samples
//!   perf script  lines of text ───────┘                  │
//!                                                        └─▶ stream.rs: accesses that DAMON would have found so
//! ```
//! A recording has no accesses: it says in how many of the samples of a window one page of a region was accessed. So the trace is made
//! up, and the answer lists what that leaves out.
//!
//! A recording that no kdamond can have made is an error (`check.rs`): regions that overlap, more accesses than samples, times that run backwards.
//! Snapshots that a tool or a full buffer has cut short are left out and counted.

mod check; // recordings that no kdamond can have made
mod json; // the three forms of JSON
mod number; // numbers as text, with commas and units
mod stream; // from regions to accesses
mod text; // lines of the tracepoint

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{Losses, Skipped};
use crate::error::{During, Error, bail, ensure};
use crate::figures;

pub(super) use stream::Stream;

/// The most that a file may hold, after decompression.
const BYTES_MAX: usize = 2 << 30;

/// The most commas of a file of JSON: each value takes a multiple of its text in memory.
const COMMAS_MAX: usize = 1 << 27;

/// DAMON's default intervals, for recordings that name none.
const SAMPLE_US: f64 = 5_000.0;

/// A recording, and what is not used of it.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) targets: Vec<Target>,
    pub(super) left_out: LeftOut,
    /// Lines of text that are not of DAMON.
    pub(super) skipped: Skipped,
    pub(super) losses: Losses,
}

/// Snapshots that are not used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LeftOut {
    /// With fewer regions than the snapshot says.
    pub(super) incomplete: u64,
    /// Without a region.
    pub(super) empty: u64,
    /// That begin and end at the same time.
    pub(super) timeless: u64,
}

/// What was watched: an address space, or physical memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) snapshots: Vec<Snapshot>,
    /// The time between two samples, if the recording has it. Unit: microseconds.
    pub(super) sample_us: Option<f64>,
    /// The length of a window, if the recording has it. Unit: microseconds.
    pub(super) aggr_us: Option<f64>,
    /// The length of its only window is a guess.
    pub(super) is_window_guessed: bool,
}

/// What was known at the end of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    /// Where the file has it.
    pub(super) place: String,
    /// Unit: nanoseconds.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) regions: Vec<Region>,
    /// The time between two samples in this window, if intervals were tuned. Unit: microseconds.
    pub(super) sample_us: Option<f64>,
}

/// A range of addresses, `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) accesses: Accesses,
}

/// Samples that found an access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Accesses {
    Samples(f64),
    Percent(f64),
}

impl Target {
    /// Sets the time between two samples. Errors: the recording has another one.
    fn set_interval(&mut self, place: &str, given_us: u64) -> Result<(), Error> {
        let given = given_us as f64;
        if let Some(own) = self.sample_us.filter(|&own| own != given) {
            bail!(
                "--sample-interval: found {given_us} us, expected {own} us, which {place} has\nhelp: leave the option out"
            );
        }
        self.sample_us = Some(given);
        Ok(())
    }

    /// The time between two samples. Unit: seconds.
    fn sample_s(&self, snapshot: &Snapshot) -> f64 {
        snapshot.sample_us.or(self.sample_us).unwrap_or(SAMPLE_US) / 1e6
    }

    /// Samples of a window. Tuning never changes the number.
    fn samples(&self, snapshot: &Snapshot) -> f64 {
        let samples = match (self.aggr_us, self.sample_us) {
            (Some(window_us), Some(sample_us)) => window_us / sample_us,
            (Some(window_us), None) => window_us / 1e6 / self.sample_s(snapshot),
            (None, _) => (snapshot.end - snapshot.start) as f64 / 1e9 / self.sample_s(snapshot),
        };
        samples.round().max(1.0)
    }

    /// The share of samples that found an access, 0 to 1.
    fn share(&self, snapshot: &Snapshot, region: &Region) -> f64 {
        let share = match region.accesses {
            Accesses::Samples(count) => count / self.samples(snapshot),
            Accesses::Percent(percent) => percent / 100.0,
        };
        share.clamp(0.0, 1.0)
    }
}

/// Reads a recording. `sample_us`: the time between two samples, if the recording does not have it. Errors: it can't be read, it is none, a field of
/// it has no use, it has another interval, or no kdamond can have found this.
pub(super) fn read(path: &Path, sample_us: Option<u64>) -> Result<Recording, Error> {
    let mut file = File::open(path).during(|| format!("cannot read {}", path.display()))?;
    ensure!(!path.is_dir(), "{}: found a folder, expected a file of `damo record`", path.display());
    let mut bytes = Vec::new();
    file.by_ref()
        .take(BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .during(|| format!("cannot read {}", path.display()))?;
    ensure!(bytes.len() <= BYTES_MAX, "{}: found more than 2 GiB, expected less", path.display());
    let place = path.display().to_string();
    let mut recording = of_bytes(&place, bytes)?;
    recording.leave_out();
    for target in &mut recording.targets {
        sample_us.map_or(Ok(()), |given| target.set_interval(&place, given))?;
        check::target(target)?;
    }
    if recording.targets.is_empty() {
        let LeftOut { incomplete, empty, timeless } = recording.left_out;
        let found = match incomplete + empty + timeless {
            0 => "no snapshot".to_string(),
            _ => format!(
                "{incomplete} incomplete snapshots, {empty} without a region and {timeless} of no time"
            ),
        };
        bail!(
            "{place}: found {found}, expected snapshots of DAMON with regions\nhelp: record for longer than an \
             aggregation interval, while the target runs"
        );
    }
    Ok(recording)
}

impl Recording {
    /// Drops snapshots without a region or without a time, and counts them.
    fn leave_out(&mut self) {
        let left_out = &mut self.left_out;
        for target in &mut self.targets {
            target.snapshots.retain(|snapshot| {
                let (is_empty, is_timeless) = (snapshot.regions.is_empty(), snapshot.start == snapshot.end);
                left_out.empty += u64::from(is_empty);
                left_out.timeless += u64::from(!is_empty && is_timeless);
                !is_empty && !is_timeless
            });
        }
        self.targets.retain(|target| !target.snapshots.is_empty());
    }
}

impl LeftOut {
    /// What is not used, in words.
    pub(super) fn remarks(self) -> Vec<String> {
        let said = [
            (self.incomplete, "fewer regions than its lines say: some were lost, or the file was cut"),
            (self.empty, "no region"),
            (self.timeless, "no time between its start and its end"),
        ];
        let said = said.into_iter().filter(|&(count, _)| count > 0);
        said.map(|(count, why)| format!("{} left out, with {why}", figures::counted(count, "snapshot")))
            .collect()
    }
}

fn of_bytes(place: &str, bytes: Vec<u8>) -> Result<Recording, Error> {
    // The header of a zlib stream is a multiple of 31.
    let is_zlib = matches!(bytes[..], [0x78, flags, ..] if (0x7800 + u16::from(flags)) % 31 == 0);
    let bytes = match is_zlib {
        true => {
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&bytes, BYTES_MAX).map_err(|error| {
                Error::asked(format!(
                    "{place}: not a complete zlib stream: {error}\nhelp: copy the file again"
                ))
            })?
        }
        false => bytes,
    };
    if bytes.starts_with(b"PERFILE2") {
        bail!(
            "{place}: found a perf.data file, expected damon.data\nhelp: convert it by `perf script -i {place} > trace.txt`"
        );
    }
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[' | b'{') => {
            let commas = bytes.iter().filter(|&&byte| byte == b',').count();
            ensure!(
                commas <= COMMAS_MAX,
                "{place}: found {} commas, expected at most {}\nhelp: record for a shorter time, or with a longer \
                 aggregation interval",
                figures::count(commas as u64),
                figures::count(COMMAS_MAX as u64)
            );
            let targets = json::read(place, &bytes)?;
            Ok(Recording { targets, ..Recording::default() })
        }
        Some(_) => text::read(place, &String::from_utf8_lossy(&bytes)),
        None => bail!("{place}: found an empty file, expected a recording of `damo record`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(bytes: &[u8]) -> String {
        of_bytes("damon.data", bytes.to_vec()).unwrap_err().to_string()
    }

    #[test]
    fn file_that_is_no_recording_says_what_it_is() {
        for (bytes, expected) in [
            (&b""[..], "found an empty file"),
            (b"PERFILE2....", "perf script"),
            (b"\x78\x9cbroken", "not a complete zlib stream"),
            (b"[1", "line 1"),
            (b"{}", "found an object, expected a list"),
            (b"hello\n", "no line of damon:damon_aggregated"),
        ] {
            assert!(failed(bytes).contains(expected), "{expected}: {}", failed(bytes));
        }
    }

    #[test]
    fn given_interval_fills_a_gap_and_contradicts_nothing() {
        let region = Region { start: 0, end: 4096, accesses: Accesses::Samples(10.0) };
        let snapshot = Snapshot { end: 5_150_000_000, regions: vec![region], ..Snapshot::default() };
        let mut target = Target { snapshots: vec![snapshot], ..Target::default() };
        target.set_interval("a", 500_000).unwrap();
        assert_eq!(target.share(&target.snapshots[0], &region), 1.0, "10 of 10 samples");
        target.set_interval("a", 500_000).unwrap();
        let error = target.set_interval("a", 5_000).unwrap_err().to_string();
        assert!(error.contains("found 5000 us, expected 500000 us, which a has"), "{error}");
    }

    #[test]
    fn share_of_samples_is_of_the_window_or_a_percentage() {
        let snapshot = Snapshot { start: 0, end: 100_000_000, ..Snapshot::default() };
        let of = |accesses| Region { start: 0, end: 4096, accesses };
        let target = Target::default();
        assert_eq!(
            target.share(&snapshot, &of(Accesses::Samples(5.0))),
            0.25,
            "20 samples of 5 ms in 100 ms"
        );
        assert_eq!(target.share(&snapshot, &of(Accesses::Percent(30.0))), 0.3);
        let known = Target { sample_us: Some(1000.0), aggr_us: Some(50_000.0), ..Target::default() };
        assert_eq!(known.share(&snapshot, &of(Accesses::Samples(5.0))), 0.1);
        assert_eq!(known.share(&snapshot, &of(Accesses::Samples(500.0))), 1.0);
    }
}
