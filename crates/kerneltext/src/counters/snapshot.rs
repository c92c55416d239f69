//! A snapshot of `/proc/vmstat`, `memory.stat` or `/proc/pressure/*`: names and values. The kind of file follows from the names.

use std::collections::BTreeSet;
use std::num::ParseIntError;

use super::change::{is_counter, is_counter_of, is_of};

/// What a snapshot should be, for errors.
const EXPECTED: &str = "expected lines of a name and a number";

/// How to make a snapshot.
const HELP: &str = "\nhelp: save a snapshot by `cat /proc/vmstat > before`, or of a cgroup's memory.stat";

/// The reason why a text is not a snapshot. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The text is empty.
    #[error("found an empty file, {EXPECTED}{HELP}")]
    Empty,
    /// A line is not a name and one value.
    #[error("line {line}: found `{}`, {EXPECTED}{HELP}", .text.escape_debug())]
    Line {
        /// The line's number.
        line: usize,
        /// The line.
        text: String,
    },
    /// A value is not a number from 0 to 2^64 - 1.
    #[error("line {line}: {name}: found `{}`, expected a whole number from 0{HELP}", .value.escape_debug())]
    Value {
        /// The line's number.
        line: usize,
        /// The name before the value.
        name: String,
        /// The value.
        value: String,
        /// Why it is not a number.
        source: ParseIntError,
    },
    /// A name has a second value: two snapshots are in one text.
    #[error(
        "line {line}: duplicate {name}, expected one snapshot per file\nhelp: save each snapshot to a file of its own"
    )]
    Twice {
        /// The line's number.
        line: usize,
        /// The name.
        name: String,
    },
    /// The text is of another file of the kernel.
    #[error("line {line}: {what}, {EXPECTED}{HELP}")]
    OtherFile {
        /// The line's number.
        line: usize,
        /// Which file it is.
        what: &'static str,
    },
    /// A line of `/proc/pressure/*` has another form.
    #[error(
        "line {line}: found `{}`, expected `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, or the same with `full`{HELP}",
        .text.escape_debug()
    )]
    Pressure {
        /// The line's number.
        line: usize,
        /// The line.
        text: String,
    },
    /// The last line has no end, so its number may be cut.
    #[error("the last line has no end, so its number may be truncated{HELP}")]
    Cut,
    /// No name is known here.
    #[error(
        "found no known name, expected lines of /proc/vmstat (such as nr_free_pages), of a memory.stat (such as anon), or of /proc/pressure{HELP}"
    )]
    Unknown,
}

/// Kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `/proc/vmstat`: of a machine, in pages.
    Vmstat,
    /// `memory.stat` of a cgroup, in bytes and events.
    MemoryStat,
    /// `memory.stat` of a cgroup v1.
    MemoryStatV1,
    /// An excerpt with lines that `/proc/vmstat` and `memory.stat` both have.
    Excerpt,
    /// `/proc/pressure/*`, or a cgroup's `*.pressure`.
    Pressure,
}

impl FileKind {
    /// Name of the file.
    pub fn name(self) -> &'static str {
        match self {
            FileKind::Vmstat => "/proc/vmstat",
            FileKind::MemoryStat => "memory.stat",
            FileKind::MemoryStatV1 => "memory.stat of cgroup v1",
            FileKind::Excerpt => "/proc/vmstat or memory.stat",
            FileKind::Pressure => "/proc/pressure",
        }
    }

    /// The kind of a file with these names, or of an excerpt of it.
    fn of(names: &BTreeSet<&str>) -> Option<FileKind> {
        const V1_ALONE: [&str; 4] = ["cache", "rss", "mapped_file", "hierarchical_memory_limit"];
        const VMSTAT_ALONE: [&str; 9] = [
            "allocstall",
            "pgalloc_",
            "pgskip_",
            "kswapd_",
            "pageoutrun",
            "oom_kill",
            "drop_",
            "compact_",
            "balloon_",
        ];
        let has = |is_one: &dyn Fn(&str) -> bool| names.iter().any(|name| is_one(name));
        let is_vmstat = |name: &str| {
            name.starts_with("nr_") && is_of(FileKind::Vmstat, name)
                || VMSTAT_ALONE.iter().any(|begin| name.starts_with(begin))
                || ["pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file"].contains(&name)
        };
        // The sums over all reclaimers and the sizes by type are a cgroup's alone.
        let is_group = |name: &str| {
            ["pgscan", "pgsteal"].contains(&name) || !is_counter(name) && is_of(FileKind::MemoryStat, name)
        };
        if names.contains("anon") && names.contains("file") {
            Some(FileKind::MemoryStat)
        } else if has(&is_vmstat) {
            Some(FileKind::Vmstat)
        } else if has(&|name| V1_ALONE.contains(&name) || name.starts_with("total_")) {
            Some(FileKind::MemoryStatV1)
        } else if has(&is_group) {
            Some(FileKind::MemoryStat)
        } else if has(&|name| is_of(FileKind::Excerpt, name)) {
            Some(FileKind::Excerpt)
        } else {
            None
        }
    }

    /// The kind of two snapshots; `None` if they are of different files.
    pub fn of_both(before: &Snapshot, after: &Snapshot) -> Option<FileKind> {
        use FileKind::{Excerpt, MemoryStat, Vmstat};
        match (before.kind, after.kind) {
            (one, other) if one == other => Some(one),
            (Excerpt, known @ (Vmstat | MemoryStat)) | (known @ (Vmstat | MemoryStat), Excerpt) => {
                Some(known)
            }
            _ => None,
        }
    }
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Kind of the file.
    pub kind: FileKind,
    /// Names and values, in the order of the text. Averages of pressure are in hundredths of a percent, totals in microseconds.
    pub values: Vec<(String, u64)>,
}

impl Snapshot {
    /// The snapshot with all counters at 0: of pressure, as it was at boot or when the cgroup was created. Gauges keep their values.
    pub fn origin(&self) -> Snapshot {
        let value = |(name, value): &(String, u64)| match is_counter_of(self.kind, name) {
            true => (name.clone(), 0),
            false => (name.clone(), *value),
        };
        let values = self.values.iter().map(value).collect();
        Snapshot { kind: self.kind, values }
    }

    /// Reads a snapshot from the text of a file. Errors: the text is not a whole snapshot.
    pub fn parse(text: &str) -> Result<Snapshot, SnapshotError> {
        let mut values = Vec::new();
        let mut names = BTreeSet::new();
        if let Some(values) = pressure(text)? {
            return Ok(Snapshot { kind: FileKind::Pressure, values });
        }
        for (number, line) in (1..).zip(text.lines()) {
            let mut words = line.split_whitespace();
            let Some(name) = words.next() else { continue };
            let (value, rest) = (words.next(), words.next());
            if let Some(what) = other_file(name, value) {
                return Err(SnapshotError::OtherFile { line: number, what });
            }
            let not_a_pair = || SnapshotError::Line { line: number, text: line.to_string() };
            let text = value.filter(|_| rest.is_none()).ok_or_else(not_a_pair)?;
            // Gauges are sums over CPUs, and the kernel has printed slightly negative ones.
            let value: u64 = text.parse().map_err(|source| SnapshotError::Value {
                line: number,
                name: name.to_string(),
                value: text.to_string(),
                source,
            })?;
            if !names.insert(name) {
                return Err(SnapshotError::Twice { line: number, name: name.to_string() });
            }
            values.push((name.to_string(), value));
        }
        if values.is_empty() {
            return Err(SnapshotError::Empty);
        }
        if !text.ends_with('\n') {
            return Err(SnapshotError::Cut);
        }
        let kind = FileKind::of(&names).ok_or(SnapshotError::Unknown)?;
        Ok(Snapshot { kind, values })
    }
}

/// The lines of `/proc/pressure/*`, `some avg10=0.00 avg60=0.12 avg300=0.17 total=1086220`: times in microseconds, averages in hundredths
/// of a percent. `None` for another file. Errors: a line of it that has another form.
fn pressure(text: &str) -> Result<Option<Vec<(String, u64)>>, SnapshotError> {
    let is_pressure = |line: &str| ["some avg10=", "full avg10="].iter().any(|begin| line.starts_with(begin));
    if !text.lines().any(is_pressure) {
        return Ok(None);
    }
    let mut values = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let other_form = || SnapshotError::Pressure { line: number, text: line.to_string() };
        let (who, fields) = line.split_once(' ').ok_or_else(other_form)?;
        if !["some", "full"].contains(&who) {
            return Err(other_form());
        }
        for field in fields.split_whitespace() {
            let (name, value) = field.split_once('=').ok_or_else(other_form)?;
            let (name, value) = match name {
                "total" => (format!("{who}_total_us"), value.parse().ok()),
                "avg10" | "avg60" | "avg300" => (format!("{who}_{name}"), hundredths(value)),
                _ => (format!("{who}_{name}"), None),
            };
            let value = value.ok_or_else(other_form)?;
            if values.iter().any(|(known, _)| *known == name) {
                return Err(SnapshotError::Twice { line: number, name: format!("`{who}`") });
            }
            values.push((name, value));
        }
    }
    if text.ends_with('\n') { Ok(Some(values)) } else { Err(SnapshotError::Cut) }
}

/// `12.34` as 1234.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(whole) && is_number(part) && part.len() == 2)
        .then(|| whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(part.parse().ok()?))?
}

/// Which other file of the kernel a line is of.
fn other_file(name: &str, value: Option<&str>) -> Option<&'static str> {
    if name.ends_with(':') && name.starts_with("Mem") {
        return Some("this is /proc/meminfo, which has only gauges; the counters are in /proc/vmstat");
    }
    if name.ends_with(',') || value == Some("0,") {
        return Some("this is /proc/zoneinfo or a similar file");
    }
    value.is_some_and(|value| value.starts_with("N0=")).then_some("this is memory.numa_stat")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_refused(text: &str, says: &[&str]) {
        let error = Snapshot::parse(text).unwrap_err().to_string();
        says.iter().for_each(|part| assert!(error.contains(part), "expected {part:?} in: {error}"));
    }

    #[test]
    fn file_is_known_by_names_of_an_excerpt() {
        let kind = |text: &str| Snapshot::parse(text).unwrap().kind;
        assert_eq!(kind("nr_free_pages 7\n\npgfault 9\n"), FileKind::Vmstat);
        assert_eq!(kind("anon 4096\nfile 0\n"), FileKind::MemoryStat);
        assert_eq!(kind("cache 4096\nrss 0\n"), FileKind::MemoryStatV1);
        assert_eq!(kind("pgscan_kswapd 1\npgscan_direct 2\n"), FileKind::Excerpt);
        assert_eq!(kind("pgscan_kswapd 1\nallocstall_normal 2\n"), FileKind::Vmstat);
        assert_eq!(kind("pgscan 1\npgsteal 2\n"), FileKind::MemoryStat);
        assert_eq!(kind("total_pgfault 1\n"), FileKind::MemoryStatV1);
        assert_eq!(kind("some avg10=0.00 avg60=0.12 avg300=0.17 total=1086220\n"), FileKind::Pressure);
    }

    #[test]
    fn invalid_snapshot_error_shows_its_line() {
        check_refused("", &["empty file"]);
        check_refused("anon 1\nfile x\n", &["line 2", "file: found `x`"]);
        check_refused("anon 1\nfile -2\n", &["line 2", "`-2`"]);
        check_refused("anon 1\nfile\n", &["line 2", "`file`"]);
        check_refused("anon 1 2\n", &["line 1", "found `anon 1 2`"]);
        check_refused("anon 1\nanon 2\n", &["line 2", "duplicate anon"]);
        check_refused("anon 1\nfile 2", &["no end"]);
        check_refused("of_tomorrow 1\n", &["found no known name", "nr_free_pages"]);
        check_refused(
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=x\n",
            &["line 1", "expected `some avg10"],
        );
        check_refused("MemTotal:  16 kB\n", &["line 1", "/proc/meminfo"]);
        check_refused("anon N0=1 N1=2\n", &["memory.numa_stat"]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_snapshot_or_an_error(text in "(anon|file|nr_free_pages|[a-z]{1,3}|-?[0-9]{1,25}|[ \t\n:]){0,30}") {
            let _ = Snapshot::parse(&text);
        }
    }
}
