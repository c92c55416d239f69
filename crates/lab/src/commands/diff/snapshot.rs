//! A snapshot of `/proc/vmstat` or `memory.stat`: lines of a name and a value. The names tell which of the files it is of.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::change::{is_counter, is_counter_of, is_of};

/// Longer than any file of counters; what is none may have no end.
const LENGTH_MAX: u64 = 1 << 20;

/// What it is a snapshot of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `/proc/vmstat`: a machine, in pages.
    Vmstat,
    /// `memory.stat` of a cgroup, in bytes and events.
    MemoryStat,
    /// `memory.stat` of a cgroup v1.
    MemoryStatV1,
    /// Lines that `/proc/vmstat` and `memory.stat` both have: an excerpt.
    Unclear,
    /// `/proc/pressure/*`, or a cgroup's `*.pressure`.
    Pressure,
}

impl Kind {
    /// Its name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Vmstat => "/proc/vmstat",
            Kind::MemoryStat => "memory.stat",
            Kind::MemoryStatV1 => "memory.stat of cgroup v1",
            Kind::Unclear => "/proc/vmstat or memory.stat",
            Kind::Pressure => "/proc/pressure",
        }
    }

    /// The kind of a file with these names, or of an excerpt of it.
    fn of(names: &BTreeSet<&str>) -> Option<Kind> {
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
            name.starts_with("nr_") && is_of(Kind::Vmstat, name)
                || VMSTAT_ALONE.iter().any(|begin| name.starts_with(begin))
                || ["pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file"].contains(&name)
        };
        // The sums over all reclaimers and the sizes by type are a cgroup's alone.
        let is_group = |name: &str| {
            ["pgscan", "pgsteal"].contains(&name) || !is_counter(name) && is_of(Kind::MemoryStat, name)
        };
        if names.contains("anon") && names.contains("file") {
            Some(Kind::MemoryStat)
        } else if has(&is_vmstat) {
            Some(Kind::Vmstat)
        } else if has(&|name| V1_ALONE.contains(&name) || name.starts_with("total_")) {
            Some(Kind::MemoryStatV1)
        } else if has(&is_group) {
            Some(Kind::MemoryStat)
        } else if has(&|name| is_of(Kind::Unclear, name)) {
            Some(Kind::Unclear)
        } else {
            None
        }
    }

    /// The kind of two snapshots. Errors: they are of different files.
    pub(super) fn of_both(before: &Snapshot, after: &Snapshot) -> Option<Kind> {
        use Kind::{MemoryStat, Unclear, Vmstat};
        match (before.kind, after.kind) {
            (one, other) if one == other => Some(one),
            (Unclear, known @ (Vmstat | MemoryStat)) | (known @ (Vmstat | MemoryStat), Unclear) => {
                Some(known)
            }
            _ => None,
        }
    }
}

/// Names and values, in the order of the file.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) file: String,
    pub(super) kind: Kind,
    pub(super) values: Vec<(String, u64)>,
}

impl Snapshot {
    /// What a snapshot of pressure was when the machine booted, or the cgroup was made: totals of 0. The averages are those of now.
    pub(super) fn origin(&self) -> Snapshot {
        let value = |(name, value): &(String, u64)| match is_counter_of(self.kind, name) {
            true => (name.clone(), 0),
            false => (name.clone(), *value),
        };
        let values = self.values.iter().map(value).collect();
        Snapshot { file: String::new(), kind: self.kind, values }
    }

    /// Reads the snapshot at `path`.
    pub(super) fn open(path: &Path) -> anyhow::Result<Snapshot> {
        let file = path.display().to_string();
        let cannot_read = || format!("cannot read {file}");
        let mut bytes = Vec::new();
        let opened = File::open(path).with_context(cannot_read)?;
        opened.take(LENGTH_MAX + 1).read_to_end(&mut bytes).with_context(cannot_read)?;
        ensure!(
            bytes.len() as u64 <= LENGTH_MAX,
            "{file}: more than 1 MiB is no /proc/vmstat and no memory.stat"
        );
        let Ok(text) = String::from_utf8(bytes) else { bail!("{file}: it is no text") };
        Snapshot::parse(&file, &text)
    }

    pub(super) fn parse(file: &str, text: &str) -> anyhow::Result<Snapshot> {
        const EXPECTED: &str =
            "expected: lines of a name and a number, as /proc/vmstat and a cgroup's memory.stat have them";
        let mut values = Vec::new();
        let mut names = BTreeSet::new();
        if let Some(values) = pressure(file, text)? {
            return Ok(Snapshot { file: file.to_string(), kind: Kind::Pressure, values });
        }
        for (number, line) in (1..).zip(text.lines()) {
            let mut words = line.split_whitespace();
            let Some(name) = words.next() else { continue };
            let (value, rest) = (words.next(), words.next());
            if let Some(hint) = other_file(name, value) {
                bail!("{file}: line {number}: {hint}; {EXPECTED}");
            }
            let value = value.filter(|_| rest.is_none()).with_context(|| {
                format!(
                    "{file}: line {number}: `{}` is no name with a number; {EXPECTED}",
                    line.escape_debug()
                )
            })?;
            // Gauges are sums over CPUs, and the kernel has printed slightly negative ones.
            let value: u64 = value.parse().with_context(|| {
                format!(
                    "{file}: line {number}: `{}` of {name} is no whole number from 0",
                    value.escape_debug()
                )
            })?;
            ensure!(names.insert(name), "{file}: line {number}: {name} comes twice; one snapshot a file");
            values.push((name.to_string(), value));
        }
        ensure!(!values.is_empty(), "{file}: there is nothing in it; {EXPECTED}");
        ensure!(text.ends_with('\n'), "{file}: the last line has no end, so its number may be cut");
        let Some(kind) = Kind::of(&names) else {
            bail!(
                "{file}: found no name that is known here, expected: lines of /proc/vmstat (such as nr_free_pages), of a memory.stat (such \
                 as anon), or of /proc/pressure"
            );
        };
        Ok(Snapshot { file: file.to_string(), kind, values })
    }
}

/// The lines of `/proc/pressure/*`, `some avg10=0.00 avg60=0.12 avg300=0.17 total=1086220`: times in microseconds, averages in hundredths
/// of a percent. `None` for another file. Errors: a line of it that has another form.
fn pressure(file: &str, text: &str) -> anyhow::Result<Option<Vec<(String, u64)>>> {
    let is_pressure = |line: &str| ["some avg10=", "full avg10="].iter().any(|begin| line.starts_with(begin));
    if !text.lines().any(is_pressure) {
        return Ok(None);
    }
    let mut values = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let expected = || {
            format!(
                "{file}: line {number}: found `{}`, expected `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, or the same of `full`",
                line.escape_debug()
            )
        };
        let (who, fields) = line.split_once(' ').with_context(expected)?;
        ensure!(["some", "full"].contains(&who), expected());
        for field in fields.split_whitespace() {
            let (name, value) = field.split_once('=').with_context(expected)?;
            let (name, value) = match name {
                "total" => (format!("{who}_total_us"), value.parse().ok()),
                "avg10" | "avg60" | "avg300" => (format!("{who}_{name}"), hundredths(value)),
                _ => (format!("{who}_{name}"), None),
            };
            let value = value.with_context(expected)?;
            ensure!(
                values.iter().all(|(known, _)| *known != name),
                "{file}: line {number}: `{who}` comes twice; one snapshot a file"
            );
            values.push((name, value));
        }
    }
    ensure!(text.ends_with('\n'), "{file}: the last line has no end, so its number may be cut");
    Ok(Some(values))
}

/// `12.34` as 1234.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(whole) && is_number(part) && part.len() == 2)
        .then(|| whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(part.parse().ok()?))?
}

/// What a line says of files that look alike and are others.
fn other_file(name: &str, value: Option<&str>) -> Option<&'static str> {
    if name.ends_with(':') && name.starts_with("Mem") {
        return Some("this is /proc/meminfo, which has gauges alone; the counters are in /proc/vmstat");
    }
    if name.ends_with(',') || value == Some("0,") {
        return Some("this is /proc/zoneinfo or alike");
    }
    value.is_some_and(|value| value.starts_with("N0=")).then_some("this is memory.numa_stat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(text: &str, says: &[&str]) {
        let told = format!("{:#}", Snapshot::parse("a", text).unwrap_err());
        says.iter().for_each(|part| assert!(told.contains(part), "expected {part:?} in: {told}"));
    }

    #[test]
    fn file_is_known_by_names_of_an_excerpt() {
        let kind = |text: &str| Snapshot::parse("a", text).unwrap().kind;
        assert_eq!(kind("nr_free_pages 7\n\npgfault 9\n"), Kind::Vmstat);
        assert_eq!(kind("anon 4096\nfile 0\n"), Kind::MemoryStat);
        assert_eq!(kind("cache 4096\nrss 0\n"), Kind::MemoryStatV1);
        assert_eq!(kind("pgscan_kswapd 1\npgscan_direct 2\n"), Kind::Unclear);
        assert_eq!(kind("pgscan_kswapd 1\nallocstall_normal 2\n"), Kind::Vmstat);
        assert_eq!(kind("pgscan 1\npgsteal 2\n"), Kind::MemoryStat);
        assert_eq!(kind("total_pgfault 1\n"), Kind::MemoryStatV1);
        assert_eq!(kind("some avg10=0.00 avg60=0.12 avg300=0.17 total=1086220\n"), Kind::Pressure);
    }

    #[test]
    fn what_is_no_snapshot_is_refused_with_its_line() {
        check_refused("", &["nothing in it"]);
        check_refused("anon 1\nfile x\n", &["line 2", "`x` of file"]);
        check_refused("anon 1\nfile -2\n", &["line 2", "`-2`"]);
        check_refused("anon 1\nfile\n", &["line 2", "`file`"]);
        check_refused("anon 1 2\n", &["line 1", "no name with a number"]);
        check_refused("anon 1\nanon 2\n", &["line 2", "comes twice"]);
        check_refused("anon 1\nfile 2", &["no end"]);
        check_refused("of_tomorrow 1\n", &["no name that is known", "nr_free_pages"]);
        check_refused(
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=x\n",
            &["line 1", "expected `some avg10"],
        );
        check_refused("MemTotal:  16 kB\n", &["line 1", "/proc/meminfo"]);
        check_refused("anon N0=1 N1=2\n", &["memory.numa_stat"]);
    }
}
