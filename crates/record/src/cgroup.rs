//! The files of a cgroup, of both versions: where it is, its limits, its counters, its tasks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, read, read_if_there};
use crate::manifest::Sample;

const MOUNT: &str = "/sys/fs/cgroup";

/// Files that say what a group may have, by version; those of the other version are not there.
const LIMITS: [&str; 16] = [
    "memory.max",
    "memory.high",
    "memory.low",
    "memory.min",
    "memory.swap.max",
    "memory.swap.high",
    "memory.zswap.max",
    "memory.zswap.writeback",
    "memory.oom.group",
    "memory.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.swappiness",
    "memory.kmem.limit_in_bytes",
    "memory.oom_control",
    "cgroup.type",
];

/// A group of tasks that pays for memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroup {
    /// 1 or 2.
    pub(crate) version: u8,
    /// From the root of the hierarchy.
    pub(crate) path: String,
    folder: PathBuf,
}

impl Cgroup {
    /// The group called `given`: a folder, or a path below the root of the hierarchy.
    pub(crate) fn find(given: &str) -> Result<Cgroup, Error> {
        let folders = [
            given.to_string(),
            format!("{MOUNT}/memory/{given}"),
            format!("{MOUNT}/{given}"),
            format!("{MOUNT}/unified/{given}"),
        ];
        let found = folders.iter().map(PathBuf::from).find(|folder| folder.join("memory.stat").is_file());
        let folder = found.ok_or_else(|| {
            let there = folders.iter().any(|folder| Path::new(folder).join("cgroup.procs").is_file());
            Error::Asked(match there {
                true => format!("the cgroup {given} has no memory.stat: its parent's cgroup.subtree_control lacks `memory`"),
                false => format!("there is no cgroup {given}, neither below {MOUNT} nor below {MOUNT}/memory"),
            })
        })?;
        Ok(Cgroup::at(folder))
    }

    fn at(folder: PathBuf) -> Cgroup {
        let folder = std::fs::canonicalize(&folder).unwrap_or(folder);
        let version =
            if folder.join("memory.limit_in_bytes").exists() || folder.join("memory.force_empty").exists() {
                1
            } else {
                2
            };
        let root = if version == 1 { format!("{MOUNT}/memory") } else { MOUNT.to_string() };
        let path = folder.strip_prefix(&root).unwrap_or(&folder).to_string_lossy().into_owned();
        Cgroup { version, path: format!("/{path}"), folder }
    }

    /// The group that a task pays from.
    pub(crate) fn of_pid(pid: u32) -> Result<Cgroup, Error> {
        let text = read(Path::new(&format!("/proc/{pid}/cgroup")))?;
        let path = |wanted: &dyn Fn(&str) -> bool| {
            text.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?);
                wanted(controllers).then(|| path.trim_start_matches('/').to_string())
            })
        };
        let old = path(&|controllers| controllers.split(',').any(|one| one == "memory"));
        let folder = match old {
            Some(path) => PathBuf::from(format!("{MOUNT}/memory/{path}")),
            None => PathBuf::from(format!("{MOUNT}/{}", path(&str::is_empty).unwrap_or_default())),
        };
        // In a container the path is the host's, and the container sees its own group at the mount.
        let folder = [folder, PathBuf::from(format!("{MOUNT}/memory")), PathBuf::from(MOUNT)]
            .into_iter()
            .find(|folder| folder.join("memory.stat").is_file());
        folder.map(Cgroup::at).ok_or_else(|| {
            Error::Asked(format!(
                "the cgroup of process {pid} has no memory.stat: the memory controller is off"
            ))
        })
    }

    /// All tasks, threads too, of the group and the groups below it.
    pub(crate) fn tasks(&self) -> Vec<u32> {
        let mut tasks = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            let text =
                read_if_there(folder.join("cgroup.threads")).or_else(|| read_if_there(folder.join("tasks")));
            tasks.extend(text.unwrap_or_default().lines().filter_map(|line| line.parse::<u32>().ok()));
            let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            folders.extend(
                below
                    .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                    .map(|entry| entry.path()),
            );
        }
        tasks
    }

    /// Moves a process into the group.
    pub(crate) fn enter(&self, pid: u32) -> Result<(), Error> {
        let path = self.folder.join("cgroup.procs");
        std::fs::write(&path, pid.to_string()).map_err(|source| Error::setting(&path, source))
    }

    /// What it may have: each file that there is.
    pub(crate) fn limits(&self) -> BTreeMap<String, String> {
        let read = |name: &str| Some((name.to_string(), read_if_there(self.folder.join(name))?));
        LIMITS.iter().filter_map(|name| read(name)).collect()
    }

    /// The lowest limit of the group and its parents, in bytes.
    pub(crate) fn limit(&self) -> Option<u64> {
        let file = if self.version == 1 { "memory.limit_in_bytes" } else { "memory.max" };
        let limits = self
            .folder
            .ancestors()
            .filter_map(|folder| read_if_there(folder.join(file))?.parse::<u64>().ok());
        // The first version's word for none is the largest multiple of a page.
        limits.min().filter(|&limit| limit < 1 << 62)
    }

    /// `memory.stat`, of the group and all below it.
    pub(crate) fn stat(&self) -> Result<BTreeMap<String, u64>, Error> {
        let text = read(&self.folder.join("memory.stat"))?;
        Ok(stat_of(&text))
    }

    /// What the group holds now.
    pub(crate) fn sample(&self, time_ns: u64) -> Result<Sample, Error> {
        let stat = self.stat()?;
        let get = |name: &str| stat.get(name).copied().unwrap_or(0);
        let number = |name: &str| read_if_there(self.folder.join(name)).and_then(|text| text.parse().ok());
        let (usage, kernel) = if self.version == 1 {
            (number("memory.usage_in_bytes"), number("memory.kmem.usage_in_bytes").unwrap_or(0))
        } else {
            (number("memory.current"), get("kernel"))
        };
        let shmem = get("shmem");
        let (file, anon) = match self.version {
            1 => (get("cache"), get("rss")),
            _ => (get("file"), get("anon")),
        };
        let swap = if self.version == 1 { get("swap") } else { number("memory.swap.current").unwrap_or(0) };
        let stalled = read_if_there(self.folder.join("memory.pressure")).and_then(|text| stalled_us(&text));
        Ok(Sample {
            time_ns,
            usage_bytes: usage.unwrap_or(file + anon + kernel),
            file_bytes: file.saturating_sub(shmem),
            anon_bytes: anon + shmem,
            kernel_bytes: kernel,
            swap_bytes: swap,
            dirty_bytes: get("file_dirty").max(get("dirty")),
            refaults: get("workingset_refault_file"),
            swap_ins: get("pswpin"),
            stalled_us: stalled,
        })
    }

    /// The name as it is told, by which a report knows it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Reads `memory.stat`. In the first version the sums over all groups below have names of their own, and it is these that count.
fn stat_of(text: &str) -> BTreeMap<String, u64> {
    let lines = || {
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(name, value)| Some((name, value.trim().parse::<u64>().ok()?)))
    };
    let mut stat: BTreeMap<String, u64> = lines().map(|(name, value)| (name.to_string(), value)).collect();
    for (name, value) in lines() {
        if let Some(name) = name.strip_prefix("total_") {
            stat.remove(&format!("total_{name}"));
            stat.insert(name.to_string(), value);
        }
    }
    stat
}

/// The total of the line `some` of a pressure file.
pub(crate) fn stalled_us(text: &str) -> Option<u64> {
    text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_groups_below_stand_for_the_group() {
        let stat =
            stat_of("cache 1\nrss 2\nhierarchical_memory_limit 9\ntotal_cache 10\ntotal_rss 20\nbad line\n");
        assert_eq!(stat["cache"], 10);
        assert_eq!(stat["rss"], 20);
        assert_eq!(stat["hierarchical_memory_limit"], 9);
        assert_eq!(stat.len(), 3);
    }

    #[test]
    fn stalls_are_the_total_of_some() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=11192256\nfull avg10=0.00 total=4111908";
        assert_eq!(stalled_us(text), Some(11_192_256));
        assert_eq!(stalled_us("nothing"), None);
    }

    #[test]
    fn what_is_no_group_is_named() {
        let error = Cgroup::find("no/such/group").unwrap_err().to_string();
        assert!(error.contains("no/such/group"), "{error}");
    }
}
