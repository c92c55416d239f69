//! A memory cgroup whose processes have no more of the kernel's page cache than the budget.
//!
//! Version 1: a folder below the own group of the memory controller. Version 2: one below the own group or next to it, depending on which
//! parent enables the memory controller for its children. A group with processes cannot start to do so. Dropping the value removes the
//! folder, and the next value removes what a killed program has left behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, cannot};

const MOUNT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "pageout-bench-";

/// A group that was made.
#[derive(Debug)]
pub(super) struct Equal {
    folder: PathBuf,
    is_old: bool,
}

impl Equal {
    /// Makes one. Errors say why there can be none.
    pub(super) fn new() -> Result<Equal, Error> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(cannot("/proc/self/cgroup"))?;
        let parents = parents(Path::new(MOUNT), &own);
        if parents.is_empty() {
            return Err(Error::asked(format!("no memory controller below {MOUNT}")));
        }
        let mut why = Vec::new();
        for parent in parents {
            remove_left_behind(&parent);
            match Equal::below(&parent) {
                Ok(group) => return Ok(group),
                Err(error) => why.push(error.to_string()),
            }
        }
        why.dedup();
        Err(Error::asked(why.join("; ")))
    }

    fn below(parent: &Path) -> Result<Equal, Error> {
        let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder).map_err(cannot(format!("cannot create a cgroup in {}", parent.display())))?;
        let is_old = folder.join("memory.limit_in_bytes").exists();
        let group = Equal { folder, is_old };
        // What it may not swap, it may not have: swap would be memory beyond the limit.
        if is_old {
            let _ = group.write("memory.swappiness", "0");
        } else if group.folder.join("memory.max").exists() {
            let _ = group.write("memory.swap.max", "0");
        } else {
            let parent = parent.display();
            return Err(Error::asked(format!(
                "{parent} does not enable the memory controller for its child cgroups"
            )));
        }
        Ok(group)
    }

    /// Moves a process into it.
    pub(super) fn enter(&self, pid: u32) -> Result<(), Error> {
        let what = format!("cannot move the process into {}", self.folder.display());
        self.write("cgroup.procs", &pid.to_string()).map_err(cannot(what))
    }

    /// Bytes that its processes have in memory, the kernel's page cache included.
    pub(super) fn usage(&self) -> Result<u64, Error> {
        let file = if self.is_old { "memory.usage_in_bytes" } else { "memory.current" };
        let path = self.folder.join(file);
        let text = fs::read_to_string(&path).map_err(cannot(path.display()))?;
        text.trim().parse().map_err(cannot(path.display()))
    }

    /// Sets the total limit in bytes.
    pub(super) fn limit(&self, bytes: u64) -> Result<(), Error> {
        let file = if self.is_old { "memory.limit_in_bytes" } else { "memory.max" };
        let what = format!("cannot set {file} in {}", self.folder.display());
        self.write(file, &bytes.to_string()).map_err(cannot(what))
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(file), value)
    }
}

impl Drop for Equal {
    fn drop(&mut self) {
        // A process that has ended is in it for a moment yet.
        for _ in 0..100 {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => return,
            }
        }
    }
}

/// Folders in which a group may be made, by what /proc/self/cgroup says.
fn parents(mount: &Path, own: &str) -> Vec<PathBuf> {
    let path_of = |is_it: &dyn Fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            is_it(controllers).then(|| path.trim_start_matches('/').to_string())
        })
    };
    let old = path_of(&|controllers| controllers.split(',').any(|one| one == "memory"));
    let (roots, path, file) = match old {
        Some(path) => (vec![mount.join("memory")], path, "memory.limit_in_bytes"),
        None => {
            let path = path_of(&str::is_empty).unwrap_or_default();
            (vec![mount.to_path_buf(), mount.join("unified")], path, "cgroup.subtree_control")
        }
    };
    let mut found = Vec::new();
    for root in roots.iter().filter(|root| root.join(file).exists()) {
        // In a container the path may be the host's, and the own group is at the mount.
        let group = Some(root.join(&path)).filter(|group| group.join(file).exists());
        let group = group.unwrap_or_else(|| root.clone());
        found.push(group.clone());
        if let Some(above) = group.parent().filter(|above| above.starts_with(root)) {
            found.push(above.to_path_buf());
        }
    }
    found
}

/// Removes groups of programs that are gone.
fn remove_left_behind(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // One that has processes is not removed by this.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_made_where_the_own_one_is_or_beside_it() {
        let root =
            tempfile::Builder::new().prefix("equal-").tempdir_in(std::env::temp_dir()).expect("a folder");
        let mount = root.path();
        let make = |folder: &str, file: &str| {
            fs::create_dir_all(mount.join(folder)).expect("a folder");
            fs::write(mount.join(folder).join(file), "").expect("a file");
        };
        assert_eq!(parents(mount, "0::/\n"), Vec::<PathBuf>::new(), "nothing is mounted");
        make("", "cgroup.subtree_control");
        make("user.slice/shell", "cgroup.subtree_control");
        make("user.slice", "cgroup.subtree_control");
        let both = [mount.join("user.slice/shell"), mount.join("user.slice")];
        assert_eq!(parents(mount, "0::/user.slice/shell\n"), both);
        assert_eq!(parents(mount, "0::/of/the/host\n"), [mount], "in a container");
        make("memory", "memory.limit_in_bytes");
        make("memory/job", "memory.limit_in_bytes");
        let own = "3:cpu,cpuacct:/job\n4:memory:/job\n0::/user.slice\n";
        assert_eq!(
            parents(mount, own),
            [mount.join("memory/job"), mount.join("memory")],
            "the first version"
        );
    }
}
