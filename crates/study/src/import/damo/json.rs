//! Recordings as JSON: a list of records, one per target. Unknown fields are ignored, as newer versions have more.

use serde_json::Value;

use super::number::{Unit, number, whole};
use super::{Accesses, Region, Snapshot, Target};
use crate::error::{Error, bail};

/// Intervals that a kdamond may have. Unit: microseconds.
const INTERVALS_US: std::ops::RangeInclusive<f64> = 1.0..=1e12;

/// A value and its place in the file.
struct At<'a> {
    value: &'a Value,
    place: String,
}

pub(super) fn read(place: &str, bytes: &[u8]) -> Result<Vec<Target>, Error> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        Error::asked(format!("{place}: not complete JSON: {error}\nhelp: copy the file again"))
    })?;
    At { value: &value, place: place.to_string() }.list()?.iter().map(record).collect()
}

impl At<'_> {
    fn fail<T>(&self, expected: &str) -> Result<T, Error> {
        let found = match self.value {
            Value::Null => "null".to_string(),
            Value::Object(_) => "an object".to_string(),
            Value::Array(_) => "a list".to_string(),
            value => format!("`{}`", value.to_string().chars().take(60).collect::<String>()),
        };
        bail!("{}: found {found}, expected {expected}", self.place)
    }

    fn list(&self) -> Result<Vec<At<'_>>, Error> {
        let Value::Array(list) = self.value else { return self.fail("a list") };
        let at = |(index, value)| At { value, place: format!("{}[{index}]", self.place) };
        Ok(list.iter().enumerate().map(at).collect())
    }

    /// A field; null if it is missing.
    fn field(&self, name: &str) -> Result<At<'_>, Error> {
        let Value::Object(fields) = self.value else { return self.fail("an object") };
        let place = format!("{}.{name}", self.place);
        Ok(At { value: fields.get(name).unwrap_or(&Value::Null), place })
    }

    fn is_null(&self) -> bool {
        self.value.is_null()
    }

    fn number(&self, unit: Unit) -> Result<Option<f64>, Error> {
        match self.is_null() {
            true => Ok(None),
            false => {
                number(self.value, unit).map_or_else(|| self.fail(unit.words()), |number| Ok(Some(number)))
            }
        }
    }

    /// An interval of DAMON, in microseconds; `None`: it is missing, or 0.
    fn interval(&self, name: &str) -> Result<Option<f64>, Error> {
        let at = self.field(name)?;
        match at.number(Unit::Micros)?.filter(|&us| us > 0.0) {
            Some(us) if !INTERVALS_US.contains(&us) => at.fail("an interval from 1 us to 11 days"),
            interval => Ok(interval),
        }
    }

    fn whole(&self, unit: Unit) -> Result<u64, Error> {
        whole(self.value, unit).map_or_else(|| self.fail(unit.words()), Ok)
    }
}

fn record(at: &At) -> Result<Target, Error> {
    let name = match at.field("target_id")?.value {
        Value::Null => "target".to_string(),
        Value::String(name) => format!("target {name}"),
        other => format!("target {other}"),
    };
    let intervals = at.field("intervals")?;
    let (mut sample_us, mut aggr_us) = (None, None);
    if !intervals.is_null() {
        sample_us = intervals.interval("sample_us")?;
        aggr_us = intervals.interval("aggr_us")?;
    }
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for at in at.field("snapshots")?.list()? {
        let snapshot = snapshot(&at)?;
        // One without a region may stand for a missing one, at any time.
        let before = snapshots.iter().rfind(|snapshot| !snapshot.regions.is_empty());
        if let Some(before) = before.filter(|_| !snapshot.regions.is_empty()) {
            for (name, time, before) in
                [("start_time", snapshot.start, before.start), ("end_time", snapshot.end, before.end)]
            {
                if time < before {
                    let expected = format!("at least that of the snapshot before, {before}");
                    return at.field(name)?.fail(&expected);
                }
            }
        }
        snapshots.push(snapshot);
    }
    if sample_us.is_none() {
        sample_us = snapshots.iter().find_map(|snapshot| snapshot.sample_us);
    }
    if let (Some(sample), Some(aggr)) = (sample_us, aggr_us)
        && sample > aggr
    {
        return intervals.field("sample_us")?.fail(&format!("at most aggr_us, {aggr} us"));
    }
    Ok(Target { name, snapshots, sample_us, aggr_us, is_window_guessed: false })
}

fn snapshot(at: &At) -> Result<Snapshot, Error> {
    let (start, end) =
        (at.field("start_time")?.whole(Unit::Nanos)?, at.field("end_time")?.whole(Unit::Nanos)?);
    if end < start {
        return at.field("end_time")?.fail(&format!("at least its start_time, {start}"));
    }
    let regions = at.field("regions")?;
    let regions: Result<Vec<Option<Region>>, Error> = regions.list()?.iter().map(region).collect();
    let regions = regions?.into_iter().flatten().collect();
    let sample_us = at.interval("sample_interval_us")?;
    Ok(Snapshot { place: at.place.clone(), start, end, regions, sample_us })
}

/// A region; `None`: the one that stands for the missing snapshot behind a lone one.
fn region(at: &At) -> Result<Option<Region>, Error> {
    let (start, end) = (at.field("start")?.whole(Unit::Bytes)?, at.field("end")?.whole(Unit::Bytes)?);
    if end < start {
        return at.field("end")?.fail(&format!("at least its start, {start}"));
    }
    match (start, end) {
        (0, 0) => return Ok(None),
        (start, end) if start == end => return at.field("end")?.fail("more than its start"),
        _ => {}
    }
    let accesses = at.field("nr_accesses")?;
    let accesses = match (accesses.field("samples")?, accesses.field("percent")?) {
        (samples, _) if !samples.is_null() => Accesses::Samples(samples.number(Unit::Plain)?.unwrap_or(0.0)),
        (_, percent) if !percent.is_null() => {
            Accesses::Percent(percent.number(Unit::Percent)?.unwrap_or(0.0))
        }
        _ => return accesses.fail("`samples` or `percent`"),
    };
    Ok(Some(Region { start, end, accesses }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"[{
        "kdamond_idx": 0, "context_idx": 0, "scheme_idx": null, "target_id": 0, "data_source": "unknown",
        "intervals": {"sample_us": "5 ms", "aggr_us": "100 ms", "ops_update_us": "1 s",
                      "intervals_goal": {"access_bp": "0 %", "aggrs": "0", "min_sample_us": "0 ns", "max_sample_us": "0 ns"}},
        "scheme_filters": [],
        "snapshots": [
            {"start_time": "1,000,000,000", "end_time": 1100000000, "total_bytes": null, "damos_stats": null,
             "regions": [
                {"start": "94,827,419,009,024", "end": "94,827,419,017,216",
                 "nr_accesses": {"samples": "5", "percent": null}, "age": {"usec": null, "aggr_intervals": 3}},
                {"start": 4096, "end": "1.5 MiB", "nr_accesses": {"samples": null, "percent": "30 %", "hz": 60.0},
                 "age": {"usec": "2 s", "aggr_intervals": 20}, "sz_filter_passed": 0, "probe_hits": []}]},
            {"start_time": 1100000000, "end_time": 1200000000,
             "regions": [{"start": 0, "end": 0, "nr_accesses": {"samples": -1, "percent": null}, "age": {"usec": null}}]}]
    }]"#;

    #[test]
    fn record_of_all_forms_of_numbers_is_read() {
        let targets = read("damon.data", RECORD.as_bytes()).unwrap();
        let [target] = &targets[..] else { panic!("{targets:?}") };
        assert_eq!(
            (target.name.as_str(), target.sample_us, target.aggr_us),
            ("target 0", Some(5e3), Some(1e5))
        );
        let region = |start, end, accesses| Region { start, end, accesses };
        let first = Snapshot {
            place: "damon.data[0].snapshots[0]".to_string(),
            sample_us: None,
            start: 1_000_000_000,
            end: 1_100_000_000,
            regions: vec![
                region(94_827_419_009_024, 94_827_419_017_216, Accesses::Samples(5.0)),
                region(4096, 3 << 19, Accesses::Percent(30.0)),
            ],
        };
        assert_eq!(target.snapshots[0], first);
        assert_eq!(target.snapshots[1].regions, [], "a region of nothing stands for a missing snapshot");
    }

    #[test]
    fn wrong_field_is_named_with_its_place() {
        for (from, to, expected) in [
            (
                "\"94,827,419,009,024\"",
                "\"zz\"",
                "damon.data[0].snapshots[0].regions[0].start: found `\"zz\"`, expected an address",
            ),
            (
                "\"samples\": \"5\"",
                "\"samples\": null",
                "regions[0].nr_accesses: found an object, expected `samples` or `percent`",
            ),
            ("\"regions\": [\n", "\"areas\": [\n", "snapshots[0].regions: found null, expected a list"),
            (
                "1100000000, \"total",
                "10, \"total",
                "snapshots[0].end_time: found `10`, expected at least its start_time",
            ),
            ("\"5 ms\"", "\"5 parsecs\"", "intervals.sample_us: found `\"5 parsecs\"`, expected a time"),
            ("\"scheme_filters\": [],", "\"scheme_filters\": [}", "line 5"),
            (
                // Only times of snapshots with a region are in order.
                "1100000000, \"end_time\": 1200000000,\n             \"regions\": [{\"start\": 0, \"end\": 0, \"nr_accesses\": {\"samples\": -1",
                "999999999, \"end_time\": 1200000000,\n             \"regions\": [{\"start\": 0, \"end\": 4096, \"nr_accesses\": {\"samples\": 1",
                "snapshots[1].start_time: found `999999999`, expected at least that of the snapshot before, 1000000000",
            ),
            (
                "\"5 ms\"",
                "\"5 s\"",
                "intervals.sample_us: found `\"5 s\"`, expected at most aggr_us, 100000 us",
            ),
            ("\"5 ms\"", "\"5 ns\"", "intervals.sample_us: found `\"5 ns\"`, expected an interval from 1 us"),
            ("\"100 ms\"", "1e300", "intervals.aggr_us: found `1e+300`, expected an interval from 1 us"),
            (
                "\"end\": \"94,827,419,017,216\"",
                "\"end\": 94827419009024",
                "regions[0].end: found `94827419009024`, expected more than its start",
            ),
        ] {
            let broken = RECORD.replacen(from, to, 1);
            assert_ne!(broken, RECORD, "{from}");
            let error = read("damon.data", broken.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
