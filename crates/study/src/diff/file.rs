//! Snapshots in files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pageout_kerneltext::counters::Snapshot;

use crate::error::{During, Error, bail, ensure};

/// Longer than any file of counters. A file of another kind may have no end.
const LENGTH_MAX: u64 = 1 << 20;

/// A snapshot and the file that it was read from.
#[derive(Debug)]
pub struct SnapshotFile {
    /// The file's name; empty for the state at boot, which is in no file.
    pub name: String,
    /// The counters of the file.
    pub snapshot: Snapshot,
}

impl SnapshotFile {
    /// Reads the snapshot at `path`.
    pub(super) fn open(path: &Path) -> Result<SnapshotFile, Error> {
        let name = path.display().to_string();
        let cannot_read = || format!("cannot read {name}");
        let mut bytes = Vec::new();
        let opened = File::open(path).during(cannot_read)?;
        opened.take(LENGTH_MAX + 1).read_to_end(&mut bytes).during(cannot_read)?;
        ensure!(
            bytes.len() as u64 <= LENGTH_MAX,
            "{name}: found more than 1 MiB, expected /proc/vmstat or memory.stat"
        );
        let Ok(text) = String::from_utf8(bytes) else {
            bail!(
                "{name}: found bytes that are not UTF-8, expected text\nhelp: give snapshots of /proc/vmstat, a memory.stat, or /proc/pressure"
            )
        };
        let snapshot = Snapshot::parse(&text).during(|| name.clone())?;
        Ok(SnapshotFile { name, snapshot })
    }

    /// The snapshot at boot, or when the cgroup was created: counters of 0.
    pub(super) fn origin(&self) -> SnapshotFile {
        SnapshotFile { name: String::new(), snapshot: self.snapshot.origin() }
    }
}
