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

mod json; // the three forms of JSON
mod number; // numbers as text, with commas and units
mod stream; // from regions to accesses
mod text; // lines of the tracepoint

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{During, Error, bail, ensure};

pub(super) use stream::Stream;

/// The most that a file may hold, after decompression.
const BYTES_MAX: usize = 2 << 30;

/// DAMON's default intervals, for recordings that name none.
const SAMPLE_US: f64 = 5_000.0;

/// What was watched: an address space, or physical memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) snapshots: Vec<Snapshot>,
    /// The time between two samples, if the recording has it. Unit: microseconds.
    pub(super) sample_us: Option<f64>,
    /// The length of a window, if the recording has it. Unit: microseconds.
    pub(super) aggr_us: Option<f64>,
}

/// What was known at the end of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    /// Unit: nanoseconds.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) regions: Vec<Region>,
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
    /// The time between two samples. Unit: seconds.
    fn sample_s(&self) -> f64 {
        self.sample_us.unwrap_or(SAMPLE_US) / 1e6
    }

    /// Samples of a window.
    fn samples(&self, snapshot: &Snapshot) -> f64 {
        let window_us = self.aggr_us.unwrap_or((snapshot.end - snapshot.start) as f64 / 1e3);
        (window_us / 1e6 / self.sample_s()).round().max(1.0)
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

/// Reads a recording. Errors: it can't be read, it is none, or a field of it has no use.
pub(super) fn read(path: &Path) -> Result<Vec<Target>, Error> {
    let mut file = File::open(path).during(|| format!("cannot read {}", path.display()))?;
    ensure!(!path.is_dir(), "{}: found a folder, expected a file of `damo record`", path.display());
    let mut bytes = Vec::new();
    file.by_ref()
        .take(BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .during(|| format!("cannot read {}", path.display()))?;
    ensure!(bytes.len() <= BYTES_MAX, "{}: found more than 2 GiB, expected less", path.display());
    let place = path.display().to_string();
    let mut targets = of_bytes(&place, bytes)?;
    for target in &mut targets {
        target.snapshots.retain(|snapshot| !snapshot.regions.is_empty());
    }
    targets.retain(|target| !target.snapshots.is_empty());
    ensure!(!targets.is_empty(), "{place}: found no region, expected snapshots of DAMON");
    Ok(targets)
}

fn of_bytes(place: &str, bytes: Vec<u8>) -> Result<Vec<Target>, Error> {
    let is_zlib = bytes.first() == Some(&0x78);
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
        Some(b'[' | b'{') => json::read(place, &bytes),
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
    fn share_of_samples_is_of_the_window_or_a_percentage() {
        let snapshot = Snapshot { start: 0, end: 100_000_000, regions: Vec::new() };
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
