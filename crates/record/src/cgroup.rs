//! The files of a cgroup, of both versions: where it is, its limits, its counters, its tasks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, read, read_if_there};
use crate::manifest::Sample;
use crate::root::Root;

/// Where hierarchies of cgroups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// Possible places of the memory controller's hierarchy below the mount: cgroup v1, v2 together with v1 controllers, and v2 only.
const ROOTS: [&str; 3] = ["memory", "unified", ""];

/// Limit files of a group, by version; files of the other version are missing.
const LIMITS: [&str; 15] = [
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
    "cgroup.type",
];

/// A group of tasks that pays for memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroup {
    /// 1 or 2; 0 without a memory controller.
    pub(crate) version: u8,
    /// From the root of the hierarchy.
    pub(crate) path: String,
    folder: PathBuf,
}

impl Cgroup {
    /// No group: the machine has no memory controller, or it is out of sight.
    pub(crate) fn none() -> Cgroup {
        Cgroup { version: 0, path: String::new(), folder: PathBuf::new() }
    }

    /// Returns true if there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.version > 0
    }

    /// The group called `given`: a folder, or a path below the root of the hierarchy.
    pub(crate) fn find(root: &Root, given: &str) -> Result<Cgroup, Error> {
        Cgroup::find_below(&root.path(MOUNT), given)
    }

    fn find_below(mount: &Path, given: &str) -> Result<Cgroup, Error> {
        let folders: Vec<PathBuf> = std::iter::once(PathBuf::from(given))
            .chain(ROOTS.iter().map(|root| mount.join(root).join(given.trim_start_matches('/'))))
            .collect();
        let found = folders.iter().find(|folder| folder.join("memory.stat").is_file());
        let folder = found.ok_or_else(|| {
            let there = folders.iter().any(|folder| folder.join("cgroup.procs").is_file());
            let mount = mount.display();
            Error::Asked(match there {
                true => format!("the cgroup {given} has no memory.stat: its parent's cgroup.subtree_control lacks `memory`\nhelp: as root, `echo +memory > PARENT/cgroup.subtree_control`, or record the processes of cgroup.procs by --pid"),
                false => format!("--cgroup {given}: no such cgroup below {mount} or {mount}/memory\nhelp: `find {mount} -name memory.stat` lists the cgroups; in a container mount the host's (docker: -v /sys/fs/cgroup:/sys/fs/cgroup:ro), or record processes by --pid"),
            })
        })?;
        Ok(Cgroup::at(mount, folder))
    }

    fn at(mount: &Path, folder: &Path) -> Cgroup {
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        let is_old =
            folder.join("memory.limit_in_bytes").exists() || folder.join("memory.force_empty").exists();
        let path = ROOTS.iter().find_map(|root| folder.strip_prefix(mount.join(root)).ok());
        let path = path.unwrap_or(&folder).to_string_lossy();
        Cgroup {
            version: if is_old { 1 } else { 2 },
            path: format!("/{}", path.trim_start_matches('/')),
            folder,
        }
    }

    /// The group that a task pays from.
    pub(crate) fn of_pid(root: &Root, pid: u32) -> Result<Cgroup, Error> {
        Cgroup::of_process(root, &pid.to_string())
    }

    /// The same of a process by its name in `/proc`, such as `self`.
    pub(crate) fn of_process(root: &Root, pid: &str) -> Result<Cgroup, Error> {
        let text = read(&root.path(format!("/proc/{pid}/cgroup")))?;
        Cgroup::of_text(&root.path(MOUNT), &text).ok_or_else(|| {
            Error::Asked(format!(
                "the cgroup of process {pid} has no memory.stat: the memory controller is off, or cgroups are not mounted"
            ))
        })
    }

    /// The group that a task pays from whose `/proc/PID/cgroup` is this.
    fn of_text(mount: &Path, text: &str) -> Option<Cgroup> {
        let path = |wanted: &dyn Fn(&str) -> bool| {
            text.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?);
                wanted(controllers).then(|| path.trim_start_matches('/').to_string())
            })
        };
        let old = path(&|controllers| controllers.split(',').any(|one| one == "memory"));
        let (roots, path) = match old {
            Some(path) => (&ROOTS[..1], path),
            None => (&ROOTS[1..], path(&str::is_empty).unwrap_or_default()),
        };
        // In a container the path is the host's, and the container sees its own group at the mount.
        let folders = roots.iter().map(|root| mount.join(root).join(&path));
        let mut folders = folders.chain(roots.iter().chain([&""]).map(|root| mount.join(root)));
        folders.find(|folder| folder.join("memory.stat").is_file()).map(|folder| Cgroup::at(mount, &folder))
    }

    /// All tasks, threads too, of the group and the groups below it.
    pub(crate) fn tasks(&self) -> Vec<u32> {
        let mut tasks = Vec::new();
        let mut folders = if self.is_there() { vec![self.folder.clone()] } else { Vec::new() };
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

    /// Its limits: each existing file.
    pub(crate) fn limits(&self) -> BTreeMap<String, String> {
        if !self.is_there() {
            return BTreeMap::new();
        }
        let read = |name: &str| Some((name.to_string(), read_if_there(self.folder.join(name))?));
        LIMITS.iter().filter_map(|name| read(name)).collect()
    }

    /// The lowest limit of the group and its parents, in bytes.
    pub(crate) fn limit(&self) -> Option<u64> {
        if !self.is_there() {
            return None;
        }
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
        if !self.is_there() {
            return Ok(BTreeMap::new());
        }
        let text = read(&self.folder.join("memory.stat"))?;
        Ok(stat_of(&text))
    }

    /// How often it met its limits so far, and processes that were killed: `memory.events`, of which the first version has but the last.
    pub(crate) fn events(&self) -> BTreeMap<String, u64> {
        if !self.is_there() {
            return BTreeMap::new();
        }
        let file = if self.version == 1 { "memory.oom_control" } else { "memory.events" };
        let mut events = stat_of(&read_if_there(self.folder.join(file)).unwrap_or_default());
        // Settings, and what is so just now.
        events.retain(|name, _| name != "oom_kill_disable" && name != "under_oom");
        events
    }

    /// What the group holds now.
    pub(crate) fn sample(&self, time_ns: u64) -> Result<Sample, Error> {
        let stat = self.stat()?;
        let get = |name: &str| stat.get(name).copied().unwrap_or(0);
        let number = |name: &str| read_if_there(self.folder.join(name)).and_then(|text| text.parse().ok());
        let (usage, kernel) = if self.version == 1 {
            (number("memory.usage_in_bytes"), number("memory.kmem.usage_in_bytes").unwrap_or(0))
        } else {
            // Before 5.18 there is no sum of it.
            let parts = || ["kernel_stack", "pagetables", "percpu", "sock", "slab"].map(get).iter().sum();
            (number("memory.current"), stat.get("kernel").copied().unwrap_or_else(parts))
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

    /// The display name, as reports show it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Reads `memory.stat`. In the first version the sums over all groups below have names of their own, and it is these that count.
pub(crate) fn stat_of(text: &str) -> BTreeMap<String, u64> {
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
        let error = Cgroup::find(&Root::machine(), "no/such/group").unwrap_err().to_string();
        assert!(error.contains("no/such/group"), "{error}");
    }

    /// A hierarchy of the second version as its [documentation](https://docs.kernel.org/admin-guide/cgroup-v2.html) has it, below `root`.
    fn second_version(root: &Path) {
        let group = root.join("app.slice/db.service");
        std::fs::create_dir_all(group.join("worker")).unwrap();
        let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
        for (folder, max) in [(root.join("app.slice"), "83886080\n"), (group.clone(), "max\n")] {
            write(&folder.join("memory.max"), max);
            write(&folder.join("memory.high"), "max\n");
            write(&folder.join("cgroup.procs"), "");
        }
        write(&group.join("memory.high"), "67108864\n");
        write(&group.join("memory.low"), "0\n");
        write(&group.join("memory.swap.max"), "0\n");
        write(&group.join("cgroup.type"), "domain threaded\n");
        write(&group.join("cgroup.threads"), "41\n42\n");
        write(&group.join("worker/cgroup.threads"), "43\n");
        write(&group.join("memory.current"), "60000000\n");
        write(&group.join("memory.swap.current"), "8192\n");
        write(&group.join("memory.events"), "low 0\nhigh 12\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n");
        write(
            &group.join("memory.pressure"),
            "some avg10=0.12 avg60=0.05 avg300=0.01 total=345678\nfull avg10=0.10 avg60=0.04 avg300=0.01 total=234567\n",
        );
        write(
            &group.join("memory.stat"),
            "anon 12000000\nfile 45000000\nkernel 3000000\nkernel_stack 49152\npagetables 106496\npercpu 600\nsock 0\nvmalloc 0\nshmem 1000000\nzswap 0\nzswapped 0\nfile_mapped 5000000\nfile_dirty 40960\nfile_writeback 0\nswapcached 0\nanon_thp 0\ninactive_anon 12000000\nactive_anon 0\ninactive_file 25000000\nactive_file 19000000\nunevictable 0\nslab_reclaimable 2000000\nslab_unreclaimable 500000\nslab 2500000\nworkingset_refault_anon 3\nworkingset_refault_file 777\npgscan 9000\npgsteal 8000\npswpin 2\npswpout 4\npgfault 5000\npgmajfault 60\n",
        );
    }

    #[test]
    fn a_group_of_the_second_version_is_read_by_its_own_files() {
        for mounted in ["", "unified"] {
            let mount = tempfile::tempdir().unwrap();
            let mount = mount.path().canonicalize().unwrap();
            second_version(&mount.join(mounted));
            let group = Cgroup::find_below(&mount, "/app.slice/db.service").unwrap();
            assert_eq!((group.version, group.path.as_str()), (2, "/app.slice/db.service"));
            assert_eq!(group.limit(), Some(80 << 20), "that of its parent, as it has none");
            assert_eq!(group.limits()["memory.high"], "67108864");
            assert_eq!(group.limits()["memory.max"], "max");
            assert_eq!(group.tasks(), [41, 42, 43]);
            assert_eq!((group.events()["high"], group.events()["oom_kill"]), (12, 1));
            let sample = Sample {
                time_ns: 5,
                usage_bytes: 60_000_000,
                file_bytes: 44_000_000,
                anon_bytes: 13_000_000,
                kernel_bytes: 3_000_000,
                swap_bytes: 8192,
                dirty_bytes: 40_960,
                refaults: 777,
                swap_ins: 2,
                stalled_us: Some(345_678),
            };
            assert_eq!(group.sample(5).unwrap(), sample);
            // A process of it, also in a container that sees its own group at the mount.
            assert_eq!(Cgroup::of_text(&mount, "0::/app.slice/db.service\n"), Some(group.clone()));
            let own = mount.join(mounted).join("app.slice/db.service");
            let inside = Cgroup::of_text(&own, "0::/docker/0123abcd\n").unwrap();
            assert_eq!((inside.path.as_str(), inside.folder), ("/", own.clone()));
            // Without the sum of what the kernel holds, as before Linux 5.18.
            let stat = std::fs::read_to_string(own.join("memory.stat")).unwrap();
            std::fs::write(own.join("memory.stat"), stat.replace("kernel 3000000\n", "")).unwrap();
            let parts = 49_152 + 106_496 + 600 + 2_500_000;
            assert_eq!(group.sample(5).unwrap().kernel_bytes, parts);
            // The controller is not passed on.
            std::fs::remove_file(own.join("memory.stat")).unwrap();
            let error = Cgroup::find_below(&mount, "app.slice/db.service").unwrap_err().to_string();
            assert!(error.contains("cgroup.subtree_control lacks `memory`"), "{error}");
        }
    }

    #[test]
    fn beside_a_second_version_without_memory_the_first_one_counts() {
        let mount = tempfile::tempdir().unwrap();
        let mount = mount.path().canonicalize().unwrap();
        let old = mount.join("memory/job");
        std::fs::create_dir_all(&old).unwrap();
        std::fs::create_dir_all(mount.join("unified/job")).unwrap();
        for (name, text) in [
            ("memory.stat", "cache 4096\nrss 8192\ntotal_cache 40960\ntotal_rss 81920\ntotal_swap 4096\n"),
            ("memory.limit_in_bytes", "33554432\n"),
            ("memory.usage_in_bytes", "123456\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        ] {
            std::fs::write(old.join(name), text).unwrap();
        }
        let group = Cgroup::of_text(&mount, "12:memory:/job\n3:cpu,cpuacct:/\n0::/job\n").unwrap();
        assert_eq!((group.version, group.path.as_str(), group.limit()), (1, "/job", Some(32 << 20)));
        assert_eq!(group.events(), BTreeMap::from([("oom_kill".to_string(), 2)]));
        let sample = group.sample(0).unwrap();
        assert_eq!((sample.file_bytes, sample.anon_bytes, sample.swap_bytes), (40_960, 81_920, 4096));
    }
}
