//! Recordings as text of `perf script`: a line per region and window.
//!
//! ```text
//!   kdamond.0  4452 [000] 82877.315633: damon:damon_aggregated: target_id=0 nr_regions=17 A-B: NR AGE
//! ```
//! The lines of a window follow each other, `nr_regions` of them. Only its end is known. It begins at the end of the window before, and
//! the first one is as long as the mean of the others. The oldest kernels print no age, and an address as the target.
//!
//! Events are lost if the buffer of a recording is full, and a recording may be cut. So a window with fewer lines than they say is left out.

use std::collections::BTreeMap;

use super::{Accesses, LeftOut, Losses, Recording, Region, Skipped, Snapshot, Target};
use crate::error::{Error, bail, ensure};

const EVENT: &str = "damon_aggregated:";
/// The length of a window when there is one only.
const WINDOW_NS: u64 = 100_000_000;

/// A line of the event.
struct Line<'a> {
    /// The thread and its target: threads have targets of the same number.
    thread: &'a str,
    target: &'a str,
    time: u64,
    regions: u64,
    region: Region,
}

/// The windows of a target, as far as they were read.
#[derive(Default)]
struct Windows {
    snapshots: Vec<Snapshot>,
    /// Regions that the last window has, as its lines say.
    said: u64,
    /// The time of the last line.
    time: u64,
    incomplete: u64,
}

impl Windows {
    fn last_is_complete(&self) -> bool {
        self.snapshots.last().is_none_or(|last| last.regions.len() as u64 == self.said)
    }

    /// Drops the last window if lines of it are missing. The next one still begins at its end.
    fn close(&mut self) {
        if !self.last_is_complete() {
            self.snapshots.last_mut().expect("it is incomplete").regions.clear();
            self.incomplete += 1;
        }
    }

    /// Adds a line; the error is what was expected.
    fn add(&mut self, place: String, line: &Line) -> Result<(), String> {
        if line.time < self.time {
            return Err(format!("at least the time of the line before, {} ns", self.time));
        }
        self.time = line.time;
        let last = self.snapshots.last().and_then(|snapshot| snapshot.regions.last().copied());
        // A window with lost lines is followed by one that begins at the lowest address again.
        let goes_on = |last: Region| line.regions == self.said && line.region.start > last.start;
        match last.filter(|&last| !self.last_is_complete() && goes_on(last)) {
            Some(last) if line.region.start < last.end => {
                Err(format!("a region that begins at {} or above, where the one before ends", last.end))
            }
            Some(_) => {
                self.snapshots.last_mut().expect("it has a region").regions.push(line.region);
                Ok(())
            }
            None => {
                self.close();
                let start = self.snapshots.last().map_or(0, |last| last.end);
                let (end, regions) = (line.time, vec![line.region]);
                self.snapshots.push(Snapshot { place, start, end, regions, sample_us: None });
                self.said = line.regions;
                Ok(())
            }
        }
    }

    /// The windows as those of a target; the first one is as long as the mean of the others.
    fn target(mut self, name: String) -> (Target, u64) {
        self.close();
        let (first, last) = (self.snapshots[0].end, self.snapshots[self.snapshots.len() - 1].end);
        let others = self.snapshots.len() as u64 - 1;
        let mean = (last - first).checked_div(others).filter(|&mean| mean > 0);
        self.snapshots[0].start = first.saturating_sub(mean.unwrap_or(WINDOW_NS));
        // Those with lost lines are counted already.
        self.snapshots.retain(|snapshot| !snapshot.regions.is_empty());
        let is_window_guessed = mean.is_none();
        let target = Target { name, snapshots: self.snapshots, is_window_guessed, ..Target::default() };
        (target, self.incomplete)
    }
}

pub(super) fn read(place: &str, text: &str) -> Result<Recording, Error> {
    let mut targets: BTreeMap<(&str, &str), Windows> = BTreeMap::new();
    let mut order = Vec::new();
    let (mut skipped, mut losses) = (Skipped::default(), Losses::default());
    let lines = text.lines().count() as u64;
    for (number, line) in (1..).zip(text.lines()) {
        let at = || format!("{place}: line {number}");
        let found = || line.trim().chars().take(120).collect::<String>();
        let Some((head, fields)) = line.split_once(EVENT) else {
            let is_comment = line.trim_start().starts_with('#') || line.trim().is_empty();
            if !is_comment && !losses.add(line) {
                skipped.lines += 1;
                skipped.first.get_or_insert_with(|| (number, line.to_string()));
            }
            continue;
        };
        let line = match parse(head, fields) {
            Ok(line) => line,
            // The file was cut in this line, so its window is incomplete.
            Err(_) if number == lines && number > 1 && !text.ends_with('\n') => {
                skipped.lines += 1;
                skipped.first.get_or_insert_with(|| (number, line.to_string()));
                continue;
            }
            Err(expected) => bail!("{}: found `{}`, expected {expected}", at(), found()),
        };
        let key = (line.thread, line.target);
        if !targets.contains_key(&key) {
            order.push(key);
        }
        let windows = targets.entry(key).or_default();
        windows.add(at(), &line).map_err(|expected| {
            Error::asked(format!("{}: found `{}`, expected {expected}", at(), found()))
        })?;
    }
    ensure!(
        !targets.is_empty(),
        "{place}: found no line of damon:{EVENT} expected some\nhelp: record them by `damo record`, or by `perf record -e damon:damon_aggregated`"
    );
    let has_threads = order.iter().any(|(thread, _)| *thread != order[0].0);
    let mut left_out = LeftOut::default();
    let mut read = Vec::new();
    for (thread, number) in order {
        let name = if has_threads { format!("{thread} target {number}") } else { format!("target {number}") };
        let (target, incomplete) = targets.remove(&(thread, number)).expect("it was met").target(name);
        left_out.incomplete += incomplete;
        read.push(target);
    }
    Ok(Recording { targets: read, left_out, skipped, losses })
}

/// Reads a line; the error is what was expected.
fn parse<'a>(head: &'a str, fields: &'a str) -> Result<Line<'a>, &'static str> {
    let head = head.trim_end();
    let head = head.strip_suffix("damon:").unwrap_or(head).trim_end();
    let time = head.strip_suffix(':').and_then(|head| head.split_whitespace().last());
    let time = time.and_then(nanoseconds).ok_or("a time such as `82877.315633:` before the event")?;
    let thread = head.split_whitespace().next().unwrap_or_default();
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
    if words.next().is_some_and(|age| age.parse::<u32>().is_err()) {
        return Err("the age as a number");
    }
    let region = Region { start, end, accesses: Accesses::Samples(count.into()) };
    Ok(Line { thread, target, time, regions, region })
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
        let targets = read("perf.txt", &text).unwrap().targets;
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
            (good.replace(" 5 1", " 5 x"), "the age as a number"),
            (line("9.0", "0", 1, "4096-8192", "5 1"), "expected at least the time of the line before"),
        ] {
            let error = read("perf.txt", &(good.clone() + &broken)).unwrap_err().to_string();
            assert!(
                error.starts_with("perf.txt: line 2: found ") && error.contains(expected),
                "{expected}: {error}"
            );
        }
    }

    fn lines(of: &[(&str, u32, &str)]) -> String {
        of.iter().map(|(time, regions, range)| line(time, "0", *regions, range, "1 1")).collect()
    }

    #[test]
    fn window_with_lost_lines_is_left_out_and_counted() {
        let complete = [("1.0", 2, "0-4096"), ("1.0", 2, "4096-8192")];
        let next = [("1.2", 2, "0-4096"), ("1.2", 2, "4096-8192")];
        let cut = [("1.1", 2, "0-4096")];
        for (text, windows, incomplete) in [
            ([&complete[..], &next].concat(), 2, 0),
            ([&complete[..], &cut, &next].concat(), 2, 1),
            ([&complete[..], &cut].concat(), 1, 1),
            ([&cut[..], &next].concat(), 1, 1),
            ([&[("1.1", 3, "0-4096")], &next[..]].concat(), 1, 1),
            (cut.to_vec(), 0, 1),
        ] {
            let recording = read("perf.txt", &lines(&text)).unwrap();
            let [target] = &recording.targets[..] else { panic!("one target") };
            assert_eq!(
                (target.snapshots.len(), recording.left_out.incomplete),
                (windows, incomplete),
                "{text:?}"
            );
            if let [.., last] = &target.snapshots[..]
                && windows == 2
            {
                // The lost window took its time.
                assert_eq!(last.end - last.start, if incomplete == 1 { 100_000_000 } else { 200_000_000 });
            }
        }
    }

    #[test]
    fn overlapping_region_of_a_window_is_an_error() {
        let text = lines(&[("1.0", 2, "0-8192"), ("1.0", 2, "4096-12288")]);
        let error = read("perf.txt", &text).unwrap_err().to_string();
        assert!(
            error.starts_with("perf.txt: line 2: found ") && error.contains("begins at 8192 or above"),
            "{error}"
        );
    }

    #[test]
    fn threads_with_targets_of_the_same_number_are_kept_apart() {
        let text = lines(&[("1.0", 2, "0-4096"), ("1.0", 2, "4096-8192")]);
        let of_other = text.replace("kdamond.0", "kdamond.1");
        let both: String = text.lines().zip(of_other.lines()).map(|(a, b)| format!("{a}\n{b}\n")).collect();
        let recording = read("perf.txt", &both).unwrap();
        let names: Vec<&str> = recording.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(
            (names, recording.left_out),
            (vec!["kdamond.0 target 0", "kdamond.1 target 0"], LeftOut::default())
        );
    }

    #[test]
    fn other_lines_are_counted_and_a_cut_last_line_is_one_of_them() {
        let text = lines(&[("1.0", 1, "0-4096"), ("1.1", 1, "0-4096")]);
        let cut = format!(
            "# comment\nbash 7 [000] 1.0: sched:sched_switch: x\nLost 12 events\n{}",
            &text[..text.len() - 9]
        );
        let recording = read("perf.txt", &cut).unwrap();
        assert_eq!((recording.skipped.lines, recording.losses.events), (2, 12));
        assert_eq!(recording.targets[0].snapshots.len(), 1);
        let without_prefix = read("trace.txt", &text.replace("damon:damon", "damon")).unwrap();
        assert_eq!(without_prefix.targets, read("trace.txt", &text).unwrap().targets, "text of ftrace");
    }
}
