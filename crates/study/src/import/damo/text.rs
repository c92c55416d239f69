//! Recordings as text of `perf script`: a line per region and window.
//!
//! ```text
//!   kdamond.0  4452 [000] 82877.315633: damon:damon_aggregated: target_id=0 nr_regions=17 A-B: NR AGE
//! ```
//! The lines of a window follow each other, `nr_regions` of them. Only its end is known. It begins at the end of the window before, and
//! the first one is as long as the mean of the others. The oldest kernels print no age, and an address as the target.

use std::collections::BTreeMap;

use super::{Accesses, Region, Snapshot, Target};
use crate::error::{Error, bail, ensure};

const EVENT: &str = "damon:damon_aggregated:";
/// The length of a window when there is one only.
const WINDOW_NS: u64 = 100_000_000;

/// A line of the event.
struct Line<'a> {
    time: u64,
    target: &'a str,
    regions: u64,
    region: Region,
}

pub(super) fn read(place: &str, text: &str) -> Result<Vec<Target>, Error> {
    // Snapshots by target, and lines that the last one still lacks.
    let mut targets: BTreeMap<String, (Vec<Snapshot>, u64)> = BTreeMap::new();
    let mut order = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((head, fields)) = line.split_once(EVENT) else { continue };
        let Line { time, target, regions, region } = match parse(head, fields) {
            Ok(line) => line,
            Err(expected) => {
                let line: String = line.trim().chars().take(120).collect();
                bail!("{place}: line {number}: found `{line}`, expected {expected}")
            }
        };
        if !targets.contains_key(target) {
            order.push(target.to_string());
        }
        let (snapshots, missing) = targets.entry(target.to_string()).or_default();
        match (snapshots.last_mut(), *missing) {
            (Some(last), 1..) => {
                last.regions.push(region);
                *missing -= 1;
            }
            (last, _) => {
                let before = last.map_or(0, |last| last.end);
                ensure!(
                    time >= before,
                    "{place}: line {number}: found time {time} ns, expected at least that of the window before, {before} ns"
                );
                snapshots.push(Snapshot { start: before, end: time, regions: vec![region] });
                *missing = regions - 1;
            }
        }
    }
    ensure!(
        !targets.is_empty(),
        "{place}: found no line of {EVENT} expected some\nhelp: record them by `damo record`, or by `perf record -e damon:damon_aggregated`"
    );
    let of = |name: String| {
        let (mut snapshots, _) = targets.remove(&name).expect("it was met");
        let (first, last) = (snapshots[0].end, snapshots[snapshots.len() - 1].end);
        let others = snapshots.len() as u64 - 1;
        let mean = (last - first).checked_div(others).filter(|&mean| mean > 0).unwrap_or(WINDOW_NS);
        snapshots[0].start = first.saturating_sub(mean);
        Target { name: format!("target {name}"), snapshots, sample_us: None, aggr_us: None }
    };
    Ok(order.into_iter().map(of).collect())
}

/// Reads a line; the error is what was expected.
fn parse<'a>(head: &str, fields: &'a str) -> Result<Line<'a>, &'static str> {
    let time = head.trim_end().strip_suffix(':').and_then(|head| head.split_whitespace().last());
    let time = time.and_then(nanoseconds).ok_or("a time such as `82877.315633:` before the event")?;
    let mut words = fields.split_whitespace();
    let mut named = |name: &str| words.next().and_then(|word| word.strip_prefix(name));
    let target = named("target_id=").ok_or("`target_id=`")?;
    let regions = named("nr_regions=").and_then(|count| count.parse().ok()).filter(|&count| count > 0);
    let regions = regions.ok_or("`nr_regions=`, a number from 1")?;
    const RANGE: &str = "a range of addresses such as `4096-8192:`";
    let range = words.next().and_then(|word| word.strip_suffix(':')).ok_or(RANGE)?;
    let (start, end) = range.split_once('-').ok_or(RANGE)?;
    let (start, end) = (start.parse().map_err(|_| RANGE)?, end.parse().map_err(|_| RANGE)?);
    if start >= end {
        return Err("a range that is not empty");
    }
    let count: u32 = words.next().and_then(|word| word.parse().ok()).ok_or("the number of accesses")?;
    Ok(Line {
        time,
        target,
        regions,
        region: Region { start, end, accesses: Accesses::Samples(count.into()) },
    })
}

/// Seconds with a fraction, as nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(seconds) || !is_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time: &str, target: &str, regions: u32, range: &str, rest: &str) -> String {
        format!(
            "kdamond.0  4452 [000] {time}: damon:damon_aggregated: target_id={target} nr_regions={regions} {range}: {rest}\n"
        )
    }

    #[test]
    fn windows_follow_each_other_and_the_first_has_the_mean_length() {
        let text = line("10.100000", "0", 2, "4096-8192", "5 1")
            + "# comment of perf\n"
            + &line("10.100010", "0", 2, "8192-16384", "0 7")
            + &line("10.100020", "18446635277616476160", 1, "0-4096", "3")
            + &line("10.300000", "0", 1, "4096-16384", "20 0");
        let targets = read("perf.txt", &text).unwrap();
        let [first, old] = &targets[..] else { panic!("{targets:?}") };
        let times: Vec<(u64, u64, usize)> =
            first.snapshots.iter().map(|of| (of.start, of.end, of.regions.len())).collect();
        assert_eq!(times, [(9_900_000_000, 10_100_000_000, 2), (10_100_000_000, 10_300_000_000, 1)]);
        assert_eq!(old.name, "target 18446635277616476160");
        assert_eq!(old.snapshots[0].end - old.snapshots[0].start, WINDOW_NS, "one window only");
        assert_eq!(old.snapshots[0].regions[0].accesses, Accesses::Samples(3.0), "old kernels print no age");
    }

    #[test]
    fn line_that_cannot_be_read_is_named_with_its_number() {
        let good = line("10.1", "0", 1, "4096-8192", "5 1");
        for (broken, expected) in [
            (good.replace("10.1:", "now:"), "expected a time such as"),
            (good.replace("nr_regions=1", "nr_regions=0"), "a number from 1"),
            (good.replace("4096-8192", "8192-4096"), "a range that is not empty"),
            (good.replace(" 5 1", " x"), "the number of accesses"),
            (line("9.0", "0", 1, "4096-8192", "5 1"), "expected at least that of the window before"),
        ] {
            let error = read("perf.txt", &(good.clone() + &broken)).unwrap_err().to_string();
            assert!(
                error.starts_with("perf.txt: line 2: found ") && error.contains(expected),
                "{expected}: {error}"
            );
        }
    }
}
