//! The ways to record on this machine, best first: what each shows, what it lacks, and how to open a closed one.
//!
//! ```text
//!   events ─▶ regions ─▶ residency ─▶ processes ─▶ group     from every access down to a few counters
//! ```
//! `record` uses the first open way unless it is asked for another, and each refusal names the next one.

use std::path::Path;

use crate::cgroup::Cgroup;
use crate::damon;
use crate::error::Error;
use crate::root::Root;
use crate::tracefs::{self, Instance};
use crate::watch::GENERATIONS;

/// A way to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The name.
    pub name: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// What it lacks.
    pub lacks: &'static str,
    /// The command.
    pub command: &'static str,
    /// Why it is closed. `None`: it is open.
    pub closed: Option<String>,
    /// How to open it: a place, such as `docker`, with a line for it. Also given if the way is open, for other machines.
    pub open_by: &'static [(&'static str, &'static str)],
}

impl Way {
    /// Returns true if it can be used.
    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }
}

/// The number of the host's PID namespace, which the kernel gives to no other.
const HOST_PIDS: &str = "pid:[4026531836]";

/// The event of buffered reads, new in Linux 6.12.
const READS: &str = "filemap/mm_filemap_get_pages";

const OPEN_EVENTS: [(&str, &str); 4] = [
    ("mount", "mount -t tracefs nodev /sys/kernel/tracing"),
    (
        "capability",
        "root of the host's user and PID namespaces; CAP_SYS_ADMIN for the mount alone, CAP_SYS_PTRACE for names of files",
    ),
    (
        "docker",
        "docker run --pid host --cap-add SYS_PTRACE --security-opt apparmor=unconfined -v /sys/kernel/tracing:/sys/kernel/tracing -v /sys/fs/cgroup:/sys/fs/cgroup:ro ...",
    ),
    (
        "kubernetes",
        "hostPID: true; hostPath volumes of /sys/kernel/tracing and /sys/fs/cgroup; securityContext: {runAsUser: 0, capabilities: {add: [SYS_PTRACE]}, appArmorProfile: {type: Unconfined}}",
    ),
];

const OPEN_REGIONS: [(&str, &str); 4] = [
    ("mount", "mount -o remount,rw /sys"),
    (
        "capability",
        "root of the host's user namespace; CAP_SYS_ADMIN for the mount alone; the host's PID namespace",
    ),
    ("docker", "docker run --privileged --pid host ..."),
    ("kubernetes", "hostPID: true; securityContext: {privileged: true}"),
];

const OPEN_RESIDENCY: [(&str, &str); 4] = [
    ("mount", "none; the files must be visible under their names"),
    ("capability", "the owner of the files, or CAP_FOWNER"),
    ("docker", "docker run --volumes-from CONTAINER --cap-add FOWNER ..."),
    ("kubernetes", "a sidecar with the same volumes; securityContext: {capabilities: {add: [FOWNER]}}"),
];

const OPEN_PROCESSES: [(&str, &str); 4] = [
    ("mount", "mount -t proc proc /proc"),
    ("capability", "the user of the processes, or CAP_SYS_PTRACE"),
    ("docker", "docker run --pid container:NAME --cap-add SYS_PTRACE ..."),
    ("kubernetes", "shareProcessNamespace: true; securityContext: {capabilities: {add: [SYS_PTRACE]}}"),
];

const OPEN_GROUP: [(&str, &str); 4] = [
    ("mount", "mount -t cgroup2 none /sys/fs/cgroup, and `memory` in the parent's cgroup.subtree_control"),
    ("capability", "none; reading memory.stat needs no right"),
    ("docker", "docker run -v /sys/fs/cgroup:/sys/fs/cgroup:ro ..."),
    ("kubernetes", "a hostPath volume of /sys/fs/cgroup, read-only"),
];

const OPEN_GENERATIONS: [(&str, &str); 4] = [
    ("mount", "mount -t debugfs nodev /sys/kernel/debug; echo y > /sys/kernel/mm/lru_gen/enabled"),
    ("capability", "root of the host's user namespace; CAP_SYS_ADMIN for the mount alone"),
    ("docker", "docker run --security-opt apparmor=unconfined -v /sys/kernel/debug:/sys/kernel/debug:ro ..."),
    ("kubernetes", "a hostPath volume of /sys/kernel/debug; securityContext: {runAsUser: 0}"),
];

/// All ways, best first.
pub fn ways(root: &Root) -> Vec<Way> {
    let instance = need_host_pids(root).and_then(|()| Instance::new(root));
    let has_reads = instance.as_ref().is_ok_and(|instance| matches!(instance.format(READS), Ok(Some(_))));
    let is_old = instance.is_ok() && !has_reads;
    let events = instance.err().map(|error| reason(&error));
    let way =
        |name, shows, lacks, command, closed, open_by| Way { name, shows, lacks, command, closed, open_by };
    let damon = damon::usable(root).and_then(|()| match need_host_pids(root) {
        Ok(()) => Ok(()),
        Err(error) => Err(reason(&error)),
    });
    let io = root.has("/proc/self/io") || root.has("/proc/self/smaps_rollup");
    vec![
        way(
            "events",
            match is_old {
                true => {
                    "pages that come in, each with its file: `twin` answers for more memory. This kernel does not report reads (6.12 and later do)"
                }
                false => {
                    "each buffered read with its pages, faults, reclaim: `twin` answers for less and more memory"
                }
            },
            "hits on mapped pages, anonymous accesses, reads with O_DIRECT",
            "pageout record --into DIR -- COMMAND",
            events,
            &OPEN_EVENTS,
        ),
        way(
            "regions",
            "how often one process uses its address ranges, mapped and anonymous memory included (DAMON)",
            "single pages and their order, reads by calls; `twin` answers no question",
            "pageout record --into DIR --events regions --pid 812",
            damon.err(),
            &OPEN_REGIONS,
        ),
        way(
            "residency",
            "pages of named files in memory, and how many came and left between two looks (mincore)",
            "accesses, and pages that came and left between two looks",
            "pageout record --into DIR --events none --file '/srv/db/*' --pid 812",
            (!root.has("/proc/self")).then(|| "/proc is not mounted".to_string()),
            &OPEN_RESIDENCY,
        ),
        way(
            "processes",
            "bytes that calls read and bytes from disks (io), memory by kind (smaps_rollup)",
            "which pages; hits and misses of single files",
            "pageout record --into DIR --events none --pid 812",
            (!io).then(|| "/proc/PID/io and smaps_rollup are missing, or may not be read".to_string()),
            &OPEN_PROCESSES,
        ),
        way(
            "group",
            "memory, refaults and reclaim of a cgroup (memory.stat): `twin` gives the lower end of the curve",
            "accesses; which pages and which files",
            "pageout record --into DIR --events none --cgroup GROUP",
            own_group(root).err().map(|error| reason(&error)),
            &OPEN_GROUP,
        ),
        way(
            "generations",
            "how long ago pages of each cgroup were used (MGLRU): `working-set` reads begin.lru_gen and end.lru_gen",
            "which pages; accesses",
            "pageout record --into DIR --events none --cgroup GROUP",
            generations(root).err(),
            &OPEN_GENERATIONS,
        ),
    ]
}

/// Checks that events can be recorded. Errors: why not, and the next way.
pub fn events(root: &Root) -> Result<(), Error> {
    need_host_pids(root)?;
    Instance::new(root).map(drop)
}

/// The kernel's filter compares the host's process numbers, whatever namespace writes them.
pub(crate) fn need_host_pids(root: &Root) -> Result<(), Error> {
    let Ok(namespace) = std::fs::read_link(root.path("/proc/self/ns/pid")) else { return Ok(()) };
    if namespace == Path::new(HOST_PIDS) {
        return Ok(());
    }
    Err(Error::Asked(format!(
        "a PID namespace of its own: found {}, expected the host's {HOST_PIDS}, whose process numbers the kernel filters events by\nhelp: start the container with the host's (docker: --pid host; kubernetes: hostPID: true), or {NEXT}",
        namespace.display()
    )))
}

/// The way below events, as the rest of a help.
pub(crate) const NEXT: &str = "record counters only: `pageout record --into DIR --events none`";

/// The cgroup of this process.
pub(crate) fn own_group(root: &Root) -> Result<Cgroup, Error> {
    Cgroup::of_process(root, "self")
}

fn generations(root: &Root) -> Result<(), String> {
    match (root.text(GENERATIONS), root.text("/sys/kernel/mm/lru_gen/enabled")) {
        (Some(_), _) => Ok(()),
        (None, Some(_)) => Err("debugfs is not mounted, or this user has no access".to_string()),
        (None, None) => Err("CONFIG_LRU_GEN is off".to_string()),
    }
}

/// An error in a line, without its help.
fn reason(error: &Error) -> String {
    let text = error.to_string();
    text.split("\nhelp: ").next().unwrap_or_default().to_string()
}

/// Where tracefs is, for a table.
pub(crate) fn tracefs_place(root: &Root) -> String {
    tracefs::mount(root).unwrap_or_default().display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that has these files.
    fn fake(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::below(folder.path());
        (folder, root)
    }

    fn open(root: &Root) -> Vec<&'static str> {
        ways(root).iter().filter(|way| way.is_open()).map(|way| way.name).collect()
    }

    const IO: (&str, &str) = ("proc/self/io", "rchar: 1\n");

    #[test]
    fn container_without_tracefs_has_counters_of_either_version() {
        let second = [IO, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.stat", "anon 1\n")];
        assert_eq!(open(&fake(&second).1), ["residency", "processes", "group"]);
        let first = [
            IO,
            ("proc/self/cgroup", "4:memory:/docker/0123\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.stat", "cache 1\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1\n"),
        ];
        assert_eq!(open(&fake(&first).1), ["residency", "processes", "group"]);
        let no_controller = [IO, ("proc/self/cgroup", "0::/\n")];
        let (_folder, root) = fake(&no_controller);
        assert_eq!(open(&root), ["residency", "processes"]);
        let group = ways(&root).into_iter().find(|way| way.name == "group").unwrap();
        assert!(group.closed.unwrap().contains("the memory controller is off"));
        assert!(open(&fake(&[]).1).is_empty());
    }

    #[test]
    fn generations_and_regions_open_where_the_kernel_has_them() {
        let files = [
            IO,
            ("sys/kernel/debug/lru_gen", "memcg 1 /\n"),
            ("sys/kernel/mm/lru_gen/enabled", "0x0007\n"),
            ("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "0\n"),
        ];
        assert_eq!(open(&fake(&files).1), ["regions", "residency", "processes", "generations"]);
        let (_folder, root) = fake(&[("sys/kernel/mm/lru_gen/enabled", "0x0007\n")]);
        let closed = ways(&root).into_iter().find(|way| way.name == "generations").unwrap().closed;
        assert!(closed.unwrap().contains("debugfs is not mounted"));
    }

    #[test]
    fn container_with_its_own_pids_is_refused_events() {
        let (folder, root) = fake(&[IO]);
        let namespaces = folder.path().join("proc/self/ns");
        std::fs::create_dir_all(&namespaces).unwrap();
        std::os::unix::fs::symlink("pid:[4026532301]", namespaces.join("pid")).unwrap();
        let error = events(&root).unwrap_err().to_string();
        for part in ["found pid:[4026532301]", "--pid host", "hostPID: true", "--events none"] {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
        std::fs::remove_file(namespaces.join("pid")).unwrap();
        std::os::unix::fs::symlink(HOST_PIDS, namespaces.join("pid")).unwrap();
        let error = events(&root).unwrap_err().to_string();
        assert!(error.contains("tracefs") && error.contains("--events none"), "{error}");
    }

    #[test]
    fn each_way_has_a_line_for_each_place() {
        for way in ways(&fake(&[]).1) {
            let places: Vec<&str> = way.open_by.iter().map(|(place, _)| *place).collect();
            assert_eq!(places, ["mount", "capability", "docker", "kubernetes"], "{}", way.name);
        }
    }
}
