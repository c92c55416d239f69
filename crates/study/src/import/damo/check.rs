//! Recordings that no kdamond can have made. The file is damaged, or its intervals are others than those it was recorded with.

use super::{Accesses, Snapshot, Target};
use crate::error::{Error, bail, ensure};
use crate::figures;

/// How many times the samples that fit into a window there may be, where the length of a window is known from the times of lines.
const TOLERANCE: f64 = 1.25;

/// Checks the snapshots of a target. Errors name the snapshot.
pub(super) fn target(target: &Target) -> Result<(), Error> {
    for snapshot in &target.snapshots {
        overlaps(snapshot)?;
        counts(target, snapshot)?;
    }
    Ok(())
}

/// Regions of a target never overlap.
fn overlaps(snapshot: &Snapshot) -> Result<(), Error> {
    let mut ranges: Vec<(u64, u64)> =
        snapshot.regions.iter().map(|region| (region.start, region.end)).collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        let [(start, end), (next, next_end)] = pair else { unreachable!("windows have two elements") };
        ensure!(
            next >= end,
            "{}: found overlapping regions {start}-{end} and {next}-{next_end}, expected each address in one region\n\
             help: the file is damaged, or joined from several recordings; import each by itself",
            snapshot.place
        );
    }
    Ok(())
}

/// A region has at most one access per sample.
fn counts(target: &Target, snapshot: &Snapshot) -> Result<(), Error> {
    let samples = target.samples(snapshot);
    let is_exact = target.aggr_us.is_some() && (target.sample_us.is_some() || snapshot.sample_us.is_some());
    let most = if is_exact { samples } else { samples * TOLERANCE };
    for region in &snapshot.regions {
        let range = format!("{}-{}", region.start, region.end);
        match region.accesses {
            Accesses::Percent(percent) if percent > 100.0 => {
                bail!(
                    "{}: region {range}: found {percent} % of samples with an access, expected at most 100 %",
                    snapshot.place
                );
            }
            Accesses::Samples(count) if count > most => {
                let known = match is_exact {
                    true => "aggr_us / sample_us".to_string(),
                    false => {
                        let assumed = if target.sample_us.is_none() { ", which is assumed" } else { "" };
                        let every = figures::time((target.sample_s(snapshot) * 1e9) as u64);
                        let window = figures::time(snapshot.end - snapshot.start);
                        format!("a sample every {every}{assumed}, for {window}")
                    }
                };
                let help = match target.sample_us {
                    Some(_) => "the file is damaged, or was recorded with other intervals",
                    None => {
                        "name the interval by --sample-interval, or import damon.data of `damo record`: it has the sampling interval"
                    }
                };
                bail!(
                    "{}: region {range}: found {count} samples with an access, expected at most {samples} ({known})\n\
                     help: {help}",
                    snapshot.place
                );
            }
            Accesses::Percent(_) | Accesses::Samples(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Region;
    use super::*;

    fn of(regions: &[(u64, u64, Accesses)]) -> Target {
        let region = |&(start, end, accesses): &(u64, u64, Accesses)| Region { start, end, accesses };
        let snapshot = Snapshot {
            place: "damon.data[0].snapshots[3]".to_string(),
            start: 0,
            end: 100_000_000,
            regions: regions.iter().map(region).collect(),
            sample_us: None,
        };
        Target { snapshots: vec![snapshot], ..Target::default() }
    }

    const IDLE: Accesses = Accesses::Samples(0.0);

    #[test]
    fn overlapping_regions_are_an_error_in_any_order() {
        assert!(target(&of(&[(8192, 12288, IDLE), (0, 8192, IDLE)])).is_ok(), "neighbours");
        for regions in [
            [(0, 8192, IDLE), (4096, 12288, IDLE)],
            [(4096, 12288, IDLE), (0, 8192, IDLE)],
            [(0, 8192, IDLE), (0, 8192, IDLE)],
            [(0, 16384, IDLE), (4096, 8192, IDLE)],
        ] {
            let error = target(&of(&regions)).unwrap_err().to_string();
            assert!(error.starts_with("damon.data[0].snapshots[3]: found overlapping regions "), "{error}");
        }
    }

    #[test]
    fn more_accesses_than_samples_are_an_error() {
        let failed = |count: f64, sample_us: Option<f64>, aggr_us: Option<f64>| {
            let of = Target { sample_us, aggr_us, ..of(&[(0, 4096, Accesses::Samples(count))]) };
            target(&of).err().map(|error| error.to_string())
        };
        assert_eq!(failed(20.0, Some(5e3), Some(1e5)), None);
        let error = failed(21.0, Some(5e3), Some(1e5)).unwrap();
        assert!(error.contains("found 21 samples with an access, expected at most 20 (aggr_us"), "{error}");
        assert_eq!(failed(25.0, None, None), None, "the times of lines are not exact");
        let error = failed(26.0, None, None).unwrap();
        assert!(error.contains("5.00 ms, which is assumed") || error.contains("which is assumed"), "{error}");
        assert!(error.contains("it has the sampling interval"), "{error}");
        let error = target(&of(&[(0, 4096, Accesses::Percent(101.0))])).unwrap_err().to_string();
        assert!(error.contains("found 101 % of samples"), "{error}");
    }
}
