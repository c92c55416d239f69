//! A cgroup whose limit is set for each of several recordings, and that starts each of them empty.
//!
//! Pages that a run has left in memory are charged to the group, so they would be hits of the next run. Between runs the group's pages are
//! reclaimed: by `memory.force_empty` in cgroup v1, by `memory.reclaim` (Linux 5.19) in v2. Pages that other groups are charged for stay.

use std::path::{Path, PathBuf};

use crate::cgroup::Cgroup;
use crate::error::{Error, read_if_there};
use crate::root::Root;
use crate::ways::own_group;

/// Limit files, by version.
const LIMITS: [&str; 2] = ["memory.limit_in_bytes", "memory.max"];

/// What helps where no group can be made.
const HELP: &str =
    "start the command in a container with each limit (docker run --memory 48m), and record each";

/// A cgroup with a limit. Dropping it removes it, or restores the limit of an existing one.
#[derive(Debug)]
pub struct Limited {
    folder: PathBuf,
    file: PathBuf,
    /// The limit of an existing group.
    before: Option<String>,
}

impl Limited {
    /// The group `given`; without it a new one next to the caller's own, or in it. Errors: there is none, or none can be made.
    pub fn new(root: &Root, given: Option<&str>) -> Result<Limited, Error> {
        if let Some(given) = given {
            let folder = Cgroup::find(root, given)?.folder().to_path_buf();
            let file = limit_file(&folder).ok_or_else(|| {
                Error::Asked(format!(
                    "--limits: the cgroup {given} has no limit: it is the root\nhelp: {HELP}"
                ))
            })?;
            let before = read_if_there(&file);
            return Ok(Limited { folder, file, before });
        }
        let own =
            own_group(root).map_err(|error| Error::Asked(format!("--limits: {error}\nhelp: {HELP}")))?;
        let mut why = "its groups have no limit file".to_string();
        for parent in [Some(own.folder()), own.folder().parent()].into_iter().flatten() {
            let folder = parent.join(format!("pageout-record-{}", std::process::id()));
            if let Err(error) = std::fs::create_dir(&folder) {
                why = format!("{}: {error}", folder.display());
                continue;
            }
            if let Some(file) = limit_file(&folder) {
                return Ok(Limited { folder, file, before: None });
            }
            let _ = std::fs::remove_dir(&folder);
        }
        Err(Error::Asked(format!(
            "--limits: no cgroup with a limit can be made below {} ({why}): expected root, and `memory` in the parent's cgroup.subtree_control\nhelp: {HELP}",
            own.folder().display()
        )))
    }

    /// Its folder, which names it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reclaims its pages, and sets its limit. Errors: a process of it holds more than the limit.
    pub fn set(&self, bytes: u64) -> Result<(), Error> {
        let old = self.folder.join("memory.force_empty");
        let new = self.folder.join("memory.reclaim");
        if old.exists() {
            // It is busy while it has tasks; what they hold stays then.
            let _ = std::fs::write(&old, "0");
        } else if let Some(held) = read_if_there(self.folder.join("memory.current")) {
            // An error says that less was reclaimed: not all of it is reclaimable.
            let _ = std::fs::write(&new, held);
        }
        std::fs::write(&self.file, bytes.to_string()).map_err(|source| Error::setting(&self.file, source))
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        match &self.before {
            Some(before) => _ = std::fs::write(&self.file, before),
            None => _ = std::fs::remove_dir(&self.folder),
        }
    }
}

fn limit_file(folder: &Path) -> Option<PathBuf> {
    LIMITS.iter().map(|name| folder.join(name)).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_of_an_existing_group_is_restored() {
        for (version, files) in [
            ("memory", [("memory.limit_in_bytes", "999"), ("memory.force_empty", "")]),
            ("", [("memory.max", "max"), ("memory.current", "4096")]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let group = folder.path().join("sys/fs/cgroup").join(version).join("job");
            std::fs::create_dir_all(&group).unwrap();
            std::fs::write(group.join("memory.stat"), "anon 1\n").unwrap();
            files.iter().for_each(|(name, text)| std::fs::write(group.join(name), text).unwrap());
            let text = |name: &str| std::fs::read_to_string(group.join(name)).unwrap();
            let limited = Limited::new(&Root::below(folder.path()), Some("job")).unwrap();
            limited.set(48 << 20).unwrap();
            assert_eq!(text(files[0].0), "50331648");
            match version {
                "memory" => assert_eq!(text("memory.force_empty"), "0"),
                _ => assert_eq!(text("memory.reclaim"), "4096"),
            }
            drop(limited);
            assert_eq!(text(files[0].0), files[0].1);
        }
    }

    #[test]
    fn limits_without_a_controller_name_the_next_way() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("proc/self");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("cgroup"), "0::/\n").unwrap();
        let root = Root::below(folder.path());
        let error = Limited::new(&root, None).unwrap_err().to_string();
        assert!(error.contains("no memory.stat") && error.contains("docker run --memory"), "{error}");
        // The folders of a real hierarchy get their files from the kernel; these do not.
        let group = folder.path().join("sys/fs/cgroup");
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(group.join("memory.stat"), "anon 1\n").unwrap();
        let error = Limited::new(&root, None).unwrap_err().to_string();
        assert!(error.contains("cgroup.subtree_control") && error.contains("docker run --memory"), "{error}");
        assert_eq!(std::fs::read_dir(&group).unwrap().count(), 1, "the tried folder is gone");
    }
}
