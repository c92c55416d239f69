//! Which names inodes have, and which advice mappings: from what processes have open and mapped, while they live.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::read_if_there;
use crate::event::FileKey;
use crate::manifest::MappedAdvice;
use crate::root::Root;

/// Entries of folders that are checked to find names of files that were open too shortly.
const SEARCHED_MAX: usize = 200_000;

/// What is known of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) bytes: Option<u64>,
    pub(crate) deleted: bool,
    /// Another name of the same inode.
    pub(crate) also: Option<String>,
    pub(crate) advice: Option<MappedAdvice>,
}

/// Names found so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: BTreeMap<FileKey, Known>,
}

impl Names {
    /// Looks at what these processes have open.
    pub(crate) fn look(&mut self, root: &Root, pids: &BTreeSet<u32>) {
        for pid in pids {
            for entry in
                std::fs::read_dir(root.path(format!("/proc/{pid}/fd"))).into_iter().flatten().flatten()
            {
                let Ok(name) = std::fs::read_link(entry.path()) else { continue };
                if !name.is_absolute() {
                    continue;
                }
                if let Ok(file) = std::fs::metadata(entry.path())
                    && file.is_file()
                {
                    self.found(
                        FileKey::of_stat(file.dev(), file.ino()),
                        &name.to_string_lossy(),
                        Some(file.size()),
                    );
                }
            }
        }
    }

    /// Looks at what these processes have mapped, and with which advice. The kernel walks their page tables for it.
    pub(crate) fn look_at_mappings(&mut self, root: &Root, pids: &BTreeSet<u32>) {
        for pid in pids {
            let smaps = root.text(format!("/proc/{pid}/smaps")).unwrap_or_default();
            for (key, name, advice) in mappings(&smaps) {
                let size = std::fs::metadata(&name)
                    .ok()
                    .filter(|file| file.ino() == key.inode)
                    .map(|file| file.size());
                self.found(key, &name, size);
                if let Some(known) = self.known.get_mut(&key) {
                    known.advice = Some(advice);
                }
            }
        }
    }

    /// Paths of files that have a name.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.known.values().filter(|known| !known.deleted).map(|known| Path::new(&known.name))
    }

    fn found(&mut self, key: FileKey, name: &str, bytes: Option<u64>) {
        let (plain, deleted) = match name.strip_suffix(" (deleted)") {
            Some(plain) => (plain, true),
            None => (name, false),
        };
        let known =
            self.known.entry(key).or_insert_with(|| Known { name: plain.to_string(), ..Known::default() });
        if known.name != plain {
            known.also = Some(std::mem::replace(&mut known.name, plain.to_string()));
        }
        known.deleted = deleted;
        known.bytes = bytes.max(known.bytes);
    }

    /// The known data of a file. If a file system shows other device numbers than its events, the inode alone decides.
    pub(crate) fn of(&self, key: FileKey) -> Option<&Known> {
        self.known.get(&key).or_else(|| {
            let mut same = self.known.iter().filter(|(known, _)| known.inode == key.inode);
            let first = same.next();
            first.filter(|_| same.next().is_none()).map(|(_, known)| known)
        })
    }

    /// Searches for the names of files that no process has open, in and below the folders of `near`.
    pub(crate) fn search(&mut self, wanted: &BTreeSet<FileKey>, near: &BTreeSet<PathBuf>) {
        let mut wanted: BTreeSet<FileKey> =
            wanted.iter().copied().filter(|key| self.of(*key).is_none()).collect();
        let inodes: BTreeSet<u64> = wanted.iter().map(|key| key.inode).collect();
        let known =
            self.known.values().filter_map(|known| Some(Path::new(&known.name).parent()?.to_path_buf()));
        let mut folders: Vec<PathBuf> = near.iter().cloned().chain(known.collect::<BTreeSet<_>>()).collect();
        let (mut looked, mut been) = (0, BTreeSet::new());
        while let Some(folder) = folders.pop() {
            if wanted.is_empty() || !been.insert(folder.clone()) {
                continue;
            }
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                looked += 1;
                if looked > SEARCHED_MAX {
                    return;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                    continue;
                }
                // The folder has the inode's number. Asking each file would take most of the recorder's time.
                if !inodes.contains(&entry.ino()) {
                    continue;
                }
                let Ok(file) = entry.metadata() else { continue };
                if wanted.remove(&FileKey::of_stat(file.dev(), file.ino())) {
                    let key = FileKey::of_stat(file.dev(), file.ino());
                    self.found(key, &entry.path().to_string_lossy(), Some(file.size()));
                }
            }
        }
    }
}

/// The mapped files of the text of `smaps`, with their advice.
fn mappings(smaps: &str) -> Vec<(FileKey, String, MappedAdvice)> {
    let mut found = Vec::new();
    let mut current: Option<(FileKey, String)> = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let Some((key, name)) = current.take() else { continue };
            let has = |flag: &str| flags.split_whitespace().any(|one| one == flag);
            let advice = match (has("rr"), has("sr")) {
                (true, _) => MappedAdvice::Random,
                (_, true) => MappedAdvice::Sequential,
                _ => MappedAdvice::Normal,
            };
            found.push((key, name, advice));
        } else if let Some(mapping) = mapping(line) {
            current = mapping;
        }
    }
    found
}

/// A line that begins a mapping: `Some(None)` if no file is behind it.
fn mapping(line: &str) -> Option<Option<(FileKey, String)>> {
    let mut words = line.split_ascii_whitespace();
    let (from, _) = words.next()?.split_once('-')?;
    u64::from_str_radix(from, 16).ok()?;
    let (_, _, device) = (words.next()?, words.next()?, words.next()?);
    let (major, minor) = device.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let inode: u64 = words.next()?.parse().ok()?;
    let name = line.find('/').map(|at| line[at..].to_string());
    let key = FileKey { dev: number(major)? << 20 | number(minor)?, inode };
    Some(name.filter(|_| inode != 0).map(|name| (key, name)))
}

/// The processes that these tasks are of.
pub(crate) fn processes(root: &Root, tasks: &[u32], of: &mut BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let process = |task: u32| {
        let status = root.text(format!("/proc/{task}/status")).unwrap_or_default();
        status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok()).unwrap_or(task)
    };
    tasks.iter().map(|&task| *of.entry(task).or_insert_with(|| process(task))).collect()
}

/// The threads of a process.
pub(crate) fn threads(root: &Root, pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(root.path(format!("/proc/{pid}/task"))).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The letter of a task's state.
pub(crate) fn state(pid: u32) -> Option<char> {
    read_if_there(format!("/proc/{pid}/stat"))?.rsplit_once(')')?.1.trim_start().chars().next()
}

/// All processes of the machine.
pub(crate) fn all(root: &Root) -> Vec<u32> {
    let entries = std::fs::read_dir(root.path("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Kernel threads that reclaim for all groups: kswapd of each node, and DAMON's.
pub(crate) fn reclaimers(root: &Root) -> (Vec<u32>, Vec<u32>) {
    let (mut kswapd, mut damon) = (Vec::new(), Vec::new());
    for pid in all(root) {
        let name = root.text(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name.starts_with("kswapd") {
            kswapd.push(pid);
        } else if name.starts_with("kdamond") {
            damon.push(pid);
        }
    }
    (kswapd, damon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_their_advice() {
        let smaps = "7f00-7f10 r--s 00000000 fe:00 9986764                            /tmp/a b\nSize: 4 kB\nVmFlags: rd sh mr rr \n\
                     7f20-7f30 rw-p 00000000 00:00 0 \nVmFlags: rd wr\n7f40-7f50 r--p 00001000 fe:00 5 /lib/x\nVmFlags: rd sr\n";
        let key = |inode| FileKey { dev: 254 << 20, inode };
        let expected = [
            (key(9_986_764), "/tmp/a b".to_string(), MappedAdvice::Random),
            (key(5), "/lib/x".to_string(), MappedAdvice::Sequential),
        ];
        assert_eq!(mappings(smaps), expected);
    }

    #[test]
    fn an_open_file_has_its_name_and_a_second_name_is_kept() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, b"12345").unwrap();
        let stat = file.as_file().metadata().unwrap();
        let key = FileKey::of_stat(stat.dev(), stat.ino());
        let mut names = Names::default();
        names.look(&Root::machine(), &BTreeSet::from([std::process::id()]));
        assert_eq!(names.of(key).unwrap().bytes, Some(5));
        names.found(key, "/other (deleted)", None);
        let known = names.of(key).unwrap();
        assert!(known.deleted && known.also.is_some() && known.name == "/other");
    }

    #[test]
    fn a_file_that_nobody_has_open_is_found_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        let path = folder.path().join("deep/file");
        std::fs::write(&path, "x").unwrap();
        let stat = std::fs::metadata(&path).unwrap();
        let key = FileKey::of_stat(stat.dev(), stat.ino());
        let mut names = Names::default();
        names.search(&BTreeSet::from([key]), &BTreeSet::from([folder.path().to_path_buf()]));
        assert_eq!(names.of(key).unwrap().name, path.to_string_lossy());
    }
}
