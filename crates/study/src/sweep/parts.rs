//! Rows on disk: parts of many rows each. A million small files would overload a shared file system. A part gets its name only when it is
//! complete.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pageout_record::regular;
use serde_json::{Map, Value};

/// Rows that a part has at most.
const ROWS_MAX: usize = 1_000;
/// Bytes that a part has at most: a mebibyte per row.
const PART_MAX: u64 = (ROWS_MAX as u64) << 20;
const PREFIX: &str = "part-";
const SUFFIX: &str = ".jsonl";

/// The row of a cell, with its key as `key`.
pub type Row = Map<String, Value>;

/// The writer of a sweep's folder.
pub struct Parts {
    directory: PathBuf,
    /// A part is written after this time.
    every: Duration,
    written: Instant,
    pending: Vec<Row>,
}

impl Parts {
    /// Opens a folder, and creates it if it is missing.
    pub fn open(directory: &Path, every: Duration) -> io::Result<Parts> {
        fs::create_dir_all(directory)?;
        Ok(Parts { directory: directory.to_path_buf(), every, written: Instant::now(), pending: Vec::new() })
    }

    /// Adds rows. Writes a part file if there are many rows, or if the last part is old enough.
    pub fn add(&mut self, rows: Vec<Row>) -> io::Result<()> {
        self.pending.extend(rows);
        while self.pending.len() >= ROWS_MAX {
            let rest = self.pending.split_off(ROWS_MAX);
            let written = self.write();
            self.pending.extend(rest);
            written?;
        }
        if self.written.elapsed() >= self.every { self.write() } else { Ok(()) }
    }

    /// Writes what has not been written yet.
    pub fn write(&mut self) -> io::Result<()> {
        self.written = Instant::now();
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for row in &self.pending {
            text += &sealed(&serde_json::to_string(row).expect("a row is JSON"));
            text.push('\n');
        }
        // The name is a hash of the contents: other writers use other names, unless they have the same rows.
        let name = format!("{PREFIX}{}{SUFFIX}", &blake3::hash(text.as_bytes()).to_hex()[..32]);
        let (meanwhile, mut file) = self.begin(&name)?;
        let write = || {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&meanwhile, self.directory.join(name))
        };
        write().inspect_err(|_| drop(fs::remove_file(&meanwhile)))?;
        self.pending.clear();
        Ok(())
    }

    /// Creates the file of a part under a temporary name. Threads of this process that write the same rows have different names.
    fn begin(&self, name: &str) -> io::Result<(PathBuf, fs::File)> {
        let mut number = 0;
        loop {
            let path = self.directory.join(format!(".{name}.{}-{number}.unfinished", std::process::id()));
            match fs::File::create_new(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// The rows of all parts of a folder, by key, and the parts that are damaged: their cells are run again.
pub fn rows(directory: &Path) -> io::Result<(BTreeMap<String, Row>, Vec<PathBuf>)> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            paths.push(path);
        }
    }
    paths.sort();
    let (mut all, mut damaged) = (BTreeMap::new(), Vec::new());
    for path in paths {
        match regular::read_text(&path, PART_MAX).ok().and_then(|text| parsed(&text)) {
            Some(rows) => all.extend(rows),
            None => damaged.push(path),
        }
    }
    Ok((all, damaged))
}

/// What stands before and behind the hash of a row.
const SEAL: [&str; 2] = [",\"row_hash\":\"", "\"}"];
/// Hexadecimal digits of it.
const DIGITS: usize = 32;

/// The hash of a row's text without its hash.
fn row_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..DIGITS].to_string()
}

/// A row with a hash of its own: a row that was changed is known from the others of its part.
fn sealed(row: &str) -> String {
    let open = row.strip_suffix('}').expect("a row is an object");
    format!("{open}{}{}{}", SEAL[0], row_hash(row), SEAL[1])
}

/// The text of a row without its hash; nothing if that is missing or another.
fn unsealed(line: &str) -> Option<String> {
    let rest = line.strip_suffix(SEAL[1])?;
    let (open, hash) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    let row = open.strip_suffix(SEAL[0])?.to_string() + "}";
    (row_hash(&row) == hash).then_some(row)
}

/// The rows of a part; nothing if it is not complete, or if a row has changed.
fn parsed(text: &str) -> Option<Vec<(String, Row)>> {
    let row = |line: &str| {
        let row: Row = serde_json::from_str(&unsealed(line)?).ok()?;
        Some((row.get("key")?.as_str()?.to_string(), row))
    };
    text.ends_with('\n').then(|| text.lines().map(row).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: usize) -> Row {
        Map::from_iter([("key".to_string(), Value::from(format!("{key:05}")))])
    }

    #[test]
    fn rows_come_back_whoever_wrote_them_and_a_damaged_part_counts_as_nothing() {
        let directory = tempfile::tempdir().unwrap();
        for from in [0, 1_500, 3_000] {
            let mut parts = Parts::open(directory.path(), Duration::from_secs(3600)).unwrap();
            parts.add((from..from + 1_500).map(row).collect()).unwrap();
            parts.write().unwrap();
        }
        let files: Vec<PathBuf> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 6, "a thousand and five hundred, thrice");
        let (all, damaged) = rows(directory.path()).unwrap();
        assert_eq!((all.len(), damaged.len()), (4_500, 0));
        let text = fs::read_to_string(&files[0]).unwrap();
        fs::write(&files[0], &text[..text.len() / 2 + 3]).unwrap();
        let (left, damaged) = rows(directory.path()).unwrap();
        assert_eq!(damaged, [files[0].clone()]);
        assert_eq!(left.len() + text.lines().count(), 4_500);
    }

    #[test]
    fn part_that_cannot_be_written_leaves_no_file_and_its_rows() {
        let directory = tempfile::tempdir().unwrap();
        let mut parts = Parts::open(directory.path(), Duration::from_secs(3600)).unwrap();
        parts.add((0..10).map(row).collect()).unwrap();
        parts.write().unwrap();
        let files = || -> Vec<PathBuf> {
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        // No file takes the place of a folder.
        let part = files().remove(0);
        fs::remove_file(&part).unwrap();
        fs::create_dir(&part).unwrap();
        parts.add((0..10).map(row).collect()).unwrap();
        parts.write().unwrap_err();
        assert_eq!(files(), std::slice::from_ref(&part));
        fs::remove_dir(&part).unwrap();
        parts.write().unwrap();
        assert_eq!(rows(directory.path()).unwrap().0.len(), 10);
    }

    #[test]
    fn row_that_was_changed_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let mut parts = Parts::open(directory.path(), Duration::from_secs(3600)).unwrap();
        let mut changed = row(7);
        changed.insert("misses".to_string(), Value::from(0.1));
        parts.add(vec![changed.clone()]).unwrap();
        parts.write().unwrap();
        let (all, damaged) = rows(directory.path()).unwrap();
        assert_eq!((&all["00007"], damaged.len()), (&changed, 0), "the hash is none of its figures");
        let file = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let without = text.split(",\"row_hash\"").next().unwrap().to_string() + "}\n";
        for other in [text.replace("0.1", "0.2"), without, text.replace("row_hash", "row_hush")] {
            fs::write(&file, other).unwrap();
            let (all, damaged) = rows(directory.path()).unwrap();
            assert_eq!((all.len(), damaged.len()), (0, 1));
        }
    }

    #[test]
    #[cfg(unix)]
    fn part_that_is_no_regular_file_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", directory.path().join("part-1.jsonl")).unwrap();
        assert_eq!(rows(directory.path()).unwrap().1.len(), 1);
    }
}
