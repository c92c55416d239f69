//! A recording of the kernel's kdamond over known accesses, as `ci/figures/damon-host/record.py` writes it.

use crate::files::{Files, text};
use crate::{Failure, PAGE};
use std::path::Path;

/// A finished window.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Window {
    pub(crate) end_ns: u64,
    pub(crate) regions: Vec<Seen>,
    /// What schemes were applied to before it ended, as it was then.
    pub(crate) applied: Vec<Seen>,
}

/// What a kdamond found of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) nr_accesses: u32,
    pub(crate) age: u32,
}

/// Addresses of the recording program, with the number of their class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Own {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) class: usize,
}

/// What was recorded.
pub(crate) struct Recording {
    pub(crate) files: Files,
    pub(crate) classes: Vec<String>,
    /// In the order of addresses.
    pub(crate) own: Vec<Own>,
    /// By class: the times at which it was touched.
    pub(crate) touches: Vec<Vec<u64>>,
    pub(crate) windows: Vec<Window>,
}

impl Recording {
    /// Reads a folder.
    pub(crate) fn read(folder: &Path) -> Result<Recording, Failure> {
        let mut classes: Vec<String> = Vec::new();
        let mut class = |name: &str| {
            let known = classes.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                classes.push(name.to_owned());
                classes.len() - 1
            })
        };
        let mut own = Vec::new();
        for [first, end, name] in rows(folder, "frames.csv")? {
            let (start, end) = (first.parse::<u64>()? * PAGE, end.parse::<u64>()? * PAGE);
            own.push(Own { start, end, class: class(&name) });
        }
        let mut touches: Vec<Vec<u64>> = Vec::new();
        for [name, start, _] in rows(folder, "touches.csv")? {
            let at = class(&name);
            touches.resize(touches.len().max(at + 1), Vec::new());
            touches[at].push(start.parse()?);
        }
        touches.resize(classes.len(), Vec::new());
        // All of the memory was written just before.
        let first =
            touches.iter().flatten().min().copied().ok_or("touches.csv: found no touch, expected some")?;
        touches.iter_mut().filter(|times| times.is_empty()).for_each(|times| times.push(first));
        let windows = windows(&text(folder, "trace.txt")?)?;
        Ok(Recording { files: Files::read(folder)?, classes, own, touches, windows })
    }

    /// The class of an address, if it is the recording program's.
    pub(crate) fn class_of(&self, address: u64) -> Option<usize> {
        let at = self.own.partition_point(|own| own.start <= address).checked_sub(1)?;
        let own = self.own[at];
        (address < own.end).then_some(own.class)
    }

    /// Bytes of each class in a region.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
        let first = self.own.partition_point(|own| own.end <= start);
        let own = self.own[first..].iter().take_while(move |own| own.start < end);
        own.map(move |own| (own.class, own.end.min(end) - own.start.max(start)))
    }

    /// Returns true if a class was touched from one time to below another.
    pub(crate) fn is_touched(&self, class: usize, from_ns: u64, to_ns: u64) -> bool {
        let times = &self.touches[class];
        times.get(times.partition_point(|&time| time < from_ns)).is_some_and(|&time| time < to_ns)
    }
}

/// Reads the lines of a table below its head, each with three fields.
fn rows(folder: &Path, name: &str) -> Result<Vec<[String; 3]>, Failure> {
    let row = |line: &str| {
        let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        <[String; 3]>::try_from(fields)
            .map_err(|fields| format!("{name}: found {fields:?}, expected three fields").into())
    };
    text(folder, name)?.lines().skip(1).map(row).collect()
}

/// Reads the complete windows of a trace.
fn windows(trace: &str) -> Result<Vec<Window>, Failure> {
    let mut windows: Vec<Window> = Vec::new();
    let (mut missing, mut applied) = (0, Vec::new());
    for line in trace.lines() {
        let Some((head, fields)) = line.split_once(": damo") else { continue };
        let line = region(head, fields);
        let (end_ns, count, region) =
            line.ok_or_else(|| format!("trace.txt: found `{fields}`, expected a region"))?;
        if fields.starts_with("s_before_apply:") {
            applied.push(region);
            continue;
        }
        if missing == 0 {
            windows.push(Window { end_ns, regions: Vec::new(), applied: std::mem::take(&mut applied) });
            missing = count;
        }
        windows.last_mut().expect("one was added").regions.push(region);
        missing -= 1;
    }
    if missing > 0 {
        windows.pop();
    }
    match windows.len() {
        0 | 1 => Err("trace.txt: found fewer than two windows, expected more".into()),
        _ => Ok(windows),
    }
}

/// The time, the number of regions, and the region of a line.
fn region(head: &str, fields: &str) -> Option<(u64, u64, Seen)> {
    let (seconds, fraction) = head.split_whitespace().last()?.split_once('.')?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    let time = seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction;
    let words: Vec<&str> = fields.split_whitespace().collect();
    let [_, .., count, range, nr_accesses, age] = words[..] else { return None };
    let count = count.strip_prefix("nr_regions=")?.parse().ok().filter(|&count| count > 0)?;
    let (start, end) = range.strip_suffix(':')?.split_once('-')?;
    let (start, end) = (start.parse().ok()?, end.parse().ok()?);
    Some((time, count, Seen { start, end, nr_accesses: nr_accesses.parse().ok()?, age: age.parse().ok()? }))
}
