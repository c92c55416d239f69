//! What a recording without events reads again and again: processes, pages of named files in memory, DAMON's regions, MGLRU's generations.
//!
//! ```text
//!   /proc/PID/io, smaps_rollup ─▶ processes.csv    bytes that calls read, and that came from disks
//!   mincore(2) of named files  ─▶ resident.csv     pages in memory; how many came and left between two looks
//!   DAMON's sysfs              ─▶ regions.csv      how often address ranges of one process are used
//!   debugfs lru_gen            ─▶ begin.lru_gen, end.lru_gen
//! ```
//! Figures that walk page tables or files take at most a fiftieth of the time: the pause after each look grows with what it took.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::damon::{self, Damon};
use crate::error::Error;
use crate::event::FileKey;
use crate::folder::write_error;
use crate::manifest::{
    BEGIN_GENERATIONS, END_GENERATIONS, FileRecord, PROCESSES, ProcessRecord, REGIONS, RESIDENT,
};
use crate::root::Root;
use crate::usage::{self, Totals, Usage};

/// Reports which pages of a file are in memory.
pub type Resident = fn(&File) -> io::Result<Vec<bool>>;

/// The columns of `resident.csv`. `file` counts the files of the manifest from 0. A page that came and left between two looks is in none.
const RESIDENT_COLUMNS: &str = "time_ns,file,resident_pages,came_pages,left_pages";
/// MGLRU's generations of all groups.
pub(crate) const GENERATIONS: &str = "/sys/kernel/debug/lru_gen";
/// The most files that are checked.
const FILES_MAX: usize = 1000;
/// The pause after a look, as a multiple of its duration.
const PAUSE: u32 = 50;

/// A checked file.
#[derive(Debug)]
struct Watched {
    key: FileKey,
    path: PathBuf,
    bytes: u64,
    pages: Vec<bool>,
    at_start: u64,
}

/// The figures of a recording without events.
#[derive(Debug)]
pub(crate) struct Watch {
    root: Root,
    folder: PathBuf,
    processes: BufWriter<File>,
    totals: Totals,
    resident: Option<(Resident, BufWriter<File>)>,
    files: Vec<Watched>,
    /// Files whose pages the kernel does not report to this user, or that are gone.
    closed: BTreeSet<FileKey>,
    left_out: u64,
    damon: Option<(Damon, BufWriter<File>)>,
    next_heavy: Duration,
}

impl Watch {
    /// Begins. `regions`: the process that DAMON is to watch. Errors: the folder can't be written; DAMON can't be used.
    pub(crate) fn new(
        root: &Root,
        folder: &Path,
        resident: Option<Resident>,
        regions: Option<u32>,
    ) -> Result<Watch, Error> {
        let create = |name: &str, columns: &str| {
            let path = folder.join(name);
            let write = || {
                let mut out = BufWriter::new(File::create(&path)?);
                writeln!(out, "{columns}")?;
                Ok(out)
            };
            write().map_err(|source| write_error(folder, &path, source))
        };
        let damon = match regions {
            Some(pid) => Some((Damon::new(root, pid)?, create(REGIONS, damon::COLUMNS)?)),
            None => None,
        };
        let watch = Watch {
            root: root.clone(),
            folder: folder.to_path_buf(),
            processes: create(PROCESSES, usage::COLUMNS)?,
            totals: Totals::default(),
            resident: match resident {
                Some(of) => Some((of, create(RESIDENT, RESIDENT_COLUMNS)?)),
                None => None,
            },
            files: Vec::new(),
            closed: BTreeSet::new(),
            left_out: 0,
            damon,
            next_heavy: Duration::ZERO,
        };
        watch.generations(BEGIN_GENERATIONS)?;
        Ok(watch)
    }

    /// Adds files to look at, by their paths.
    pub(crate) fn add<'a>(&mut self, paths: impl Iterator<Item = &'a Path>) {
        for path in paths.filter(|_| self.resident.is_some()) {
            let Ok(stat) = std::fs::metadata(path) else { continue };
            let key = FileKey::of_stat(stat.dev(), stat.ino());
            let is_known = self.closed.contains(&key) || self.files.iter().any(|file| file.key == key);
            if is_known || !stat.is_file() {
                continue;
            }
            if self.files.len() == FILES_MAX {
                self.left_out += u64::from(self.closed.insert(key));
                continue;
            }
            let (path, bytes) = (path.to_path_buf(), stat.size());
            self.files.push(Watched { key, path, bytes, pages: Vec::new(), at_start: 0 });
        }
    }

    /// Looks at these processes and at the files. `is_last`: whatever the last look took. Errors: the folder can't be written.
    pub(crate) fn take(
        &mut self,
        elapsed: Duration,
        pids: &BTreeSet<u32>,
        is_last: bool,
    ) -> Result<BTreeMap<u32, Usage>, Error> {
        let time_ns = elapsed.as_nanos() as u64;
        let is_heavy = is_last || elapsed >= self.next_heavy;
        let since = Instant::now();
        let of: BTreeMap<u32, Usage> =
            pids.iter().map(|&pid| (pid, Usage::of(&self.root, pid, is_heavy))).collect();
        self.totals.take(&of);
        let lines: String = of.iter().map(|(pid, usage)| usage.line(time_ns, *pid)).collect();
        self.processes.write_all(lines.as_bytes()).map_err(|source| self.error(PROCESSES, source))?;
        if is_heavy {
            self.look_at_files(time_ns)?;
            if let Some((damon, out)) = &mut self.damon {
                let lines = damon.lines(time_ns);
                out.write_all(lines.as_bytes())
                    .map_err(|source| write_error(&self.folder, &self.folder.join(REGIONS), source))?;
            }
            self.next_heavy = elapsed + since.elapsed() * PAUSE;
        }
        Ok(of)
    }

    fn look_at_files(&mut self, time_ns: u64) -> Result<(), Error> {
        let Some((resident, out)) = &mut self.resident else { return Ok(()) };
        let mut lines = String::new();
        for (at, file) in self.files.iter_mut().enumerate() {
            if self.closed.contains(&file.key) {
                continue;
            }
            let Ok(pages) = File::open(&file.path).and_then(|open| resident(&open)) else {
                self.closed.insert(file.key);
                continue;
            };
            let had = |page: usize| file.pages.get(page).copied().unwrap_or(false);
            let has = |page: usize| pages.get(page).copied().unwrap_or(false);
            let span = 0..pages.len().max(file.pages.len());
            let (came, left) = span.fold((0_u64, 0_u64), |(came, left), page| match (had(page), has(page)) {
                (false, true) => (came + 1, left),
                (true, false) => (came, left + 1),
                _ => (came, left),
            });
            let count = pages.iter().filter(|is_there| **is_there).count() as u64;
            if time_ns == 0 {
                file.at_start = count;
            }
            lines += &format!("{time_ns},{at},{count},{came},{left}\n");
            file.pages = pages;
        }
        out.write_all(lines.as_bytes())
            .map_err(|source| write_error(&self.folder, &self.folder.join(RESIDENT), source))
    }

    fn error(&self, name: &str, source: io::Error) -> Error {
        write_error(&self.folder, &self.folder.join(name), source)
    }

    /// Copies MGLRU's generations, if the kernel shows them.
    fn generations(&self, name: &str) -> Result<(), Error> {
        match self.root.text(GENERATIONS) {
            Some(text) => {
                std::fs::write(self.folder.join(name), text + "\n").map_err(|error| self.error(name, error))
            }
            None => Ok(()),
        }
    }

    /// Ends. Returns the sums of processes, the files and remarks. Errors: the folder can't be written.
    pub(crate) fn finish(
        mut self,
        is_anonymous: bool,
    ) -> Result<(ProcessRecord, Vec<FileRecord>, Vec<String>), Error> {
        self.generations(END_GENERATIONS)?;
        self.damon
            .take()
            .map_or(Ok(()), |(_, mut out)| out.flush())
            .map_err(|error| self.error(REGIONS, error))?;
        self.processes
            .flush()
            .map_err(|error| write_error(&self.folder, &self.folder.join(PROCESSES), error))?;
        let flushed = self.resident.as_mut().map_or(Ok(()), |(_, out)| out.flush());
        flushed.map_err(|error| self.error(RESIDENT, error))?;
        let mut remarks = Vec::new();
        let closed = self.closed.len() as u64 - self.left_out;
        if closed > 0 {
            remarks.push(format!(
                "{closed} files not checked to the end: deleted, or neither owned nor writable, and the kernel reports pages to owners and writers only"
            ));
        }
        if self.left_out > 0 {
            let left_out = self.left_out;
            remarks.push(format!(
                "{left_out} files left out: {FILES_MAX} files at most are checked; name others by --file"
            ));
        }
        let totals = self.totals.record();
        if totals.unreadable > 0 {
            remarks.push(format!(
                "/proc/PID/io of {} processes may not be read: run as root or as their user (in a container: CAP_SYS_PTRACE)",
                totals.unreadable
            ));
        }
        let files = self.files.iter().enumerate().map(|(at, file)| {
            let (major, minor) = file.key.major_minor();
            FileRecord {
                name: if is_anonymous { format!("file-{}", at + 1) } else { file.path.display().to_string() },
                device: format!("{major}:{minor}"),
                inode: if is_anonymous { 0 } else { file.key.inode },
                bytes: Some(file.bytes),
                resident_at_start: file.at_start,
                ..FileRecord::default()
            }
        });
        Ok((totals, files.collect(), remarks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of 4 KiB that begin with a letter are in memory, those that begin with a dot are not.
    fn letters(file: &File) -> io::Result<Vec<bool>> {
        let text = io::read_to_string(file)?;
        if text.starts_with('!') {
            Err(io::ErrorKind::PermissionDenied.into())
        } else {
            Ok(text.chars().map(|letter| letter != '.').collect())
        }
    }

    #[test]
    fn pages_that_came_and_left_between_looks_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (root, into) = (Root::below(folder.path()), folder.path().join("rec"));
        std::fs::create_dir(&into).unwrap();
        let (data, closed) = (folder.path().join("data"), folder.path().join("closed"));
        std::fs::write(&data, "xx..").unwrap();
        std::fs::write(&closed, "!").unwrap();
        let mut watch = Watch::new(&root, &into, Some(letters), None).unwrap();
        watch.add([data.as_path(), closed.as_path(), data.as_path()].into_iter());
        watch.take(Duration::ZERO, &BTreeSet::new(), false).unwrap();
        std::fs::write(&data, ".xxxx").unwrap();
        watch.take(Duration::from_secs(1), &BTreeSet::new(), true).unwrap();
        let (_, files, remarks) = watch.finish(false).unwrap();
        let text = std::fs::read_to_string(into.join(RESIDENT)).unwrap();
        assert_eq!(text, format!("{RESIDENT_COLUMNS}\n0,0,2,2,0\n1000000000,0,4,3,1\n"));
        assert_eq!((files.len(), files[0].resident_at_start), (2, 2));
        assert!(remarks[0].contains("1 files not checked"), "{remarks:?}");
    }

    #[test]
    fn generations_are_copied_at_both_ends() {
        let folder = tempfile::tempdir().unwrap();
        let debug = folder.path().join("sys/kernel/debug");
        std::fs::create_dir_all(&debug).unwrap();
        let into = folder.path().join("rec");
        std::fs::create_dir(&into).unwrap();
        std::fs::write(debug.join("lru_gen"), "memcg 1 /\n node 0\n").unwrap();
        let watch = Watch::new(&Root::below(folder.path()), &into, None, None).unwrap();
        std::fs::write(debug.join("lru_gen"), "memcg 2 /\n").unwrap();
        watch.finish(true).unwrap();
        assert_eq!(std::fs::read_to_string(into.join(BEGIN_GENERATIONS)).unwrap(), "memcg 1 /\n node 0\n");
        assert_eq!(std::fs::read_to_string(into.join(END_GENERATIONS)).unwrap(), "memcg 2 /\n");
        assert!(!into.join(RESIDENT).exists() && !into.join(REGIONS).exists());
    }
}
