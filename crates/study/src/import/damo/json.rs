//! Recordings as JSON: a list of records, one per target. Unknown fields are ignored, as newer versions have more.

use serde_json::Value;

use super::number::{Unit, number, whole};
use super::{Accesses, Region, Snapshot, Target};
use crate::error::{Error, bail};

/// A value and its place in the file.
struct At<'a> {
    value: &'a Value,
    place: String,
}

pub(super) fn read(place: &str, bytes: &[u8]) -> Result<Vec<Target>, Error> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::asked(format!("{place}: line {}: {error}", error.line())))?;
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
        sample_us = intervals.field("sample_us")?.number(Unit::Micros)?;
        aggr_us = intervals.field("aggr_us")?.number(Unit::Micros)?;
    }
    let mut snapshots = Vec::new();
    for at in at.field("snapshots")?.list()? {
        if sample_us.is_none() {
            sample_us = at.field("sample_interval_us")?.number(Unit::Micros)?;
        }
        snapshots.push(snapshot(&at)?);
    }
    // An interval of nothing is none.
    let known = |us: Option<f64>| us.filter(|&us| us > 0.0);
    Ok(Target { name, snapshots, sample_us: known(sample_us), aggr_us: known(aggr_us) })
}

fn snapshot(at: &At) -> Result<Snapshot, Error> {
    let (start, end) =
        (at.field("start_time")?.whole(Unit::Nanos)?, at.field("end_time")?.whole(Unit::Nanos)?);
    if end < start {
        return at.field("end_time")?.fail(&format!("at least its start_time, {start}"));
    }
    let regions = at.field("regions")?;
    let regions: Result<Vec<Option<Region>>, Error> = regions.list()?.iter().map(region).collect();
    Ok(Snapshot { start, end, regions: regions?.into_iter().flatten().collect() })
}

/// A region; `None`: the one that stands for the missing snapshot behind a lone one.
fn region(at: &At) -> Result<Option<Region>, Error> {
    let (start, end) = (at.field("start")?.whole(Unit::Bytes)?, at.field("end")?.whole(Unit::Bytes)?);
    if end < start {
        return at.field("end")?.fail(&format!("at least its start, {start}"));
    }
    if start == end {
        return Ok(None);
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
        ] {
            let broken = RECORD.replacen(from, to, 1);
            assert_ne!(broken, RECORD, "{from}");
            let error = read("damon.data", broken.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
