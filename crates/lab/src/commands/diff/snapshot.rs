//! A snapshot of `/proc/vmstat` or `memory.stat`: lines of a name and a value. The names tell which of the files it is of.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail, ensure};

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
}

impl Kind {
    /// Its name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Vmstat => "/proc/vmstat",
            Kind::MemoryStat => "memory.stat",
            Kind::MemoryStatV1 => "memory.stat of cgroup v1",
        }
    }

    fn of(names: &BTreeSet<&str>) -> Option<Kind> {
        let has = |all: &[&str]| all.iter().all(|name| names.contains(name));
        if names.contains("nr_free_pages")
            || has(&["pgfault", "pgscan_kswapd", "pswpin"]) && !names.contains("anon")
        {
            Some(Kind::Vmstat)
        } else if has(&["anon", "file"]) {
            Some(Kind::MemoryStat)
        } else if has(&["cache", "rss"]) {
            Some(Kind::MemoryStatV1)
        } else {
            None
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
                "{file}: it is of neither /proc/vmstat (which has nr_free_pages) nor a memory.stat (which has anon and file); is a part of it \
                 missing?"
            );
        };
        Ok(Snapshot { file: file.to_string(), kind, values })
    }
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
    fn a_file_is_known_by_its_names() {
        let kind = |text: &str| Snapshot::parse("a", text).unwrap().kind;
        assert_eq!(kind("nr_free_pages 7\n\npgfault 9\n"), Kind::Vmstat);
        assert_eq!(kind("anon 4096\nfile 0\n"), Kind::MemoryStat);
        assert_eq!(kind("cache 4096\nrss 0\n"), Kind::MemoryStatV1);
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
        check_refused("pgfault 1\n", &["neither", "nr_free_pages"]);
        check_refused("MemTotal:  16 kB\n", &["line 1", "/proc/meminfo"]);
        check_refused("anon N0=1 N1=2\n", &["memory.numa_stat"]);
    }
}
