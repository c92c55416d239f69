//! The memory limit of the process's own cgroup: the least one on the way from it to the root.
//!
//! ```text
//!   /proc/self/cgroup      which group, by its path                0::/kubepods/pod7/box          9:memory:/docker/3f
//!   /proc/self/mountinfo   where its hierarchy is mounted          cgroup2 on /sys/fs/cgroup      cgroup with the option `memory`
//!   DIR and each folder above it, up to the mount                  memory.max                     memory.limit_in_bytes
//! ```
//! In a container, the mount may begin at the container's group, or the path may lead outside of what is mounted. Folders that do not exist have no limit, so
//! the mount's own folder is the innermost one that counts then.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::error::Error;

/// How often a limit is read that a budget follows.
pub(crate) const READ_EVERY: Duration = Duration::from_secs(1);

/// A share of the limit of a cgroup.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// Above 0, and at most 1.
    share: f64,
    group: Group,
    /// What there is without a limit, in bytes.
    memory: u64,
}

impl Share {
    /// A share of the limit of the process, whose files are below `root`: `/`, but in tests.
    ///
    /// # Errors
    /// [`Error::Config`] for a share that is none; [`Error::Io`] if the process's cgroup can't be read.
    pub(crate) fn new(share: f64, root: &Path, memory: u64) -> Result<Share, Error> {
        if !(share > 0.0 && share <= 1.0) {
            let what = format!("share {share} of a limit: expected a number above 0, and 1 at most");
            return Err(pageout_engine::ConfigError::Unknown(what).into());
        }
        Ok(Share { share, group: Group::of_process(root)?, memory })
    }

    /// The share in bytes, by the limit of now.
    pub(crate) fn bytes(&self) -> u64 {
        let limit = self.group.limit().unwrap_or(u64::MAX).min(self.memory);
        (limit as f64 * self.share) as u64
    }

    /// The share and its group, in words.
    pub(crate) fn describe(&self) -> String {
        format!("{} of the limit of {}", self.share, self.group.innermost.display())
    }
}

/// The cgroup that limits the memory of the process.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Group {
    /// Its folder, which may not exist here.
    innermost: PathBuf,
    /// The folder where its hierarchy is mounted.
    mount: PathBuf,
    /// The file with the limit.
    file: &'static str,
}

/// Where a hierarchy is mounted.
struct Mount {
    /// The group that is the root of what is mounted.
    root: String,
    at: String,
}

impl Group {
    fn of_process(root: &Path) -> Result<Group, Error> {
        let read = |path: &str| {
            let path = root.join(path);
            std::fs::read_to_string(&path).map_err(|source| io_error(&path, source))
        };
        let (groups, mounts) = (read("proc/self/cgroup")?, read("proc/self/mountinfo")?);
        // With both versions, the controller belongs to one of them: to version 1 if that lists it.
        let of_v1 = path_of(&groups, |controllers| controllers.split(',').any(|of| of == "memory"));
        let of_v2 = path_of(&groups, str::is_empty);
        let v1 = of_v1.and_then(|path| {
            let is_it =
                |kind: &str, options: &str| kind == "cgroup" && options.split(',').any(|of| of == "memory");
            Some((path, mount_of(&mounts, is_it)?, "memory.limit_in_bytes"))
        });
        let found =
            v1.or_else(|| Some((of_v2?, mount_of(&mounts, |kind, _| kind == "cgroup2")?, "memory.max")));
        let Some((path, mount, file)) = found else {
            let source = io::Error::new(io::ErrorKind::NotFound, "no mounted cgroup hierarchy limits memory");
            return Err(io_error(&root.join("proc/self/mountinfo"), source));
        };
        let at = root.join(mount.at.trim_start_matches('/'));
        let below = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let leads_out = below.components().any(|part| part == Component::ParentDir);
        let innermost = if leads_out { at.clone() } else { at.join(below) };
        Ok(Group { innermost, mount: at, file })
    }

    /// The least limit on the way to the root, in bytes; `None` if there is none. A limit that can't be read does not count.
    fn limit(&self) -> Option<u64> {
        let ways = self.innermost.ancestors().take_while(|folder| folder.starts_with(&self.mount));
        ways.filter_map(|folder| {
            let text = std::fs::read_to_string(folder.join(self.file)).ok()?;
            // `max` means unlimited.
            text.trim().parse().ok()
        })
        .min()
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { op: "reading", path: path.to_owned(), page: None, source }
}

/// The path of a process's group in the hierarchy of these controllers.
fn path_of(groups: &str, is_it: impl Fn(&str) -> bool) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        is_it(controllers).then_some(path)
    })
}

/// The first mount of a file system, by its kind and the options of its superblock.
fn mount_of(mounts: &str, is_it: impl Fn(&str, &str) -> bool) -> Option<Mount> {
    mounts.lines().find_map(|line| {
        let (of_mount, of_system) = line.split_once(" - ")?;
        let mut of_mount = of_mount.split(' ').skip(3);
        let (root, at) = (of_mount.next()?, of_mount.next()?);
        let mut of_system = of_system.split(' ');
        let (kind, options) = (of_system.next()?, of_system.nth(1).unwrap_or(""));
        is_it(kind, options).then(|| Mount { root: unescaped(root), at: unescaped(at) })
    })
}

/// The text of a field, in which a space is `\040`.
fn unescaped(field: &str) -> String {
    let mut text = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'\\').then(|| std::str::from_utf8(after.get(..3)?).ok()).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(code) => {
                text.push(code);
                rest = &after[3..];
            }
            None => {
                text.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use super::*;

    /// A root folder with the files of a process in a cgroup. It is removed with this value.
    pub(crate) struct Root(pub(crate) PathBuf);

    impl Root {
        pub(crate) fn new(name: &str, groups: &str, mounts: &str) -> Root {
            let root = std::env::temp_dir().join(format!("pageout-cgroup-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&root);
            let root = Root(root);
            root.write("proc/self/cgroup", groups);
            root.write("proc/self/mountinfo", mounts);
            root
        }

        /// A process in the group `/a/b` of version 2.
        pub(crate) fn v2(name: &str) -> Root {
            Root::new(
                name,
                "0::/a/b\n",
                "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
            )
        }

        pub(crate) fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn limit(&self) -> Option<u64> {
            Group::of_process(&self.0).unwrap().limit()
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn least_limit_of_nested_groups_counts() {
        let root = Root::v2("nested");
        root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
        root.write("sys/fs/cgroup/a/memory.max", "4096000\n");
        assert_eq!(root.limit(), Some(4_096_000));
        root.write("sys/fs/cgroup/a/b/memory.max", "2048000\n");
        assert_eq!(root.limit(), Some(2_048_000));
        root.write("sys/fs/cgroup/a/memory.max", "1024000\n");
        assert_eq!(root.limit(), Some(1_024_000));
    }

    #[test]
    fn group_without_limits_has_all_memory() {
        let root = Root::v2("unlimited");
        root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(root.limit(), None);
        assert_eq!(Share::new(0.5, &root.0, 8 << 20).unwrap().bytes(), 4 << 20);
        root.write("sys/fs/cgroup/a/memory.max", "4194304\n");
        assert_eq!(Share::new(0.5, &root.0, 8 << 20).unwrap().bytes(), 2 << 20);
    }

    #[test]
    fn version_1_is_read_where_it_has_the_controller() {
        let groups = "9:cpu,memory:/docker/3f\n2:name=systemd:/x\n0::/docker/3f\n";
        let mounts = "30 29 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            31 29 0:28 / /sys/fs/cgroup/cpu,memory rw - cgroup cgroup rw,cpu,memory\n";
        let root = Root::new("v1", groups, mounts);
        root.write("sys/fs/cgroup/cpu,memory/docker/3f/memory.limit_in_bytes", "9223372036854771712\n");
        root.write("sys/fs/cgroup/cpu,memory/docker/memory.limit_in_bytes", "5000000\n");
        root.write("sys/fs/cgroup/unified/docker/3f/memory.max", "7\n");
        assert_eq!(root.limit(), Some(5_000_000));
    }

    #[test]
    fn hybrid_without_memory_in_version_1_uses_version_2() {
        let groups = "2:cpu:/docker/3f\n0::/docker/3f\n";
        let mounts = "30 29 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            31 29 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let root = Root::new("hybrid", groups, mounts);
        root.write("sys/fs/cgroup/unified/docker/3f/memory.max", "7000000\n");
        assert_eq!(root.limit(), Some(7_000_000));
    }

    #[test]
    fn mount_of_a_container_begins_at_its_group() {
        let mounts = "30 29 0:27 /pods/p\\040q /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        let root = Root::new("bound", "0::/pods/p q/box\n", mounts);
        root.write("sys/fs/cgroup/memory.max", "9000000\n");
        root.write("sys/fs/cgroup/box/memory.max", "8000000\n");
        assert_eq!(root.limit(), Some(8_000_000));
        // By a namespace, the path leads to what is not mounted.
        for path in ["0::/../../elsewhere\n", "0::/elsewhere\n", "0::/\n"] {
            root.write("proc/self/cgroup", path);
            assert_eq!(root.limit(), Some(9_000_000), "{path}");
        }
    }

    #[test]
    fn share_or_root_that_is_none_is_an_error() {
        let root = Root::v2("refused");
        for share in [0.0, -1.0, 1.01, f64::NAN, f64::INFINITY] {
            let error = Share::new(share, &root.0, 1 << 30).unwrap_err().to_string();
            assert!(error.contains("expected a number above 0"), "{error}");
        }
        let root = Root::new("nowhere", "0::/\n", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        let error = Share::new(0.5, &root.0, 1 << 30).unwrap_err().to_string();
        assert!(error.contains("no mounted cgroup hierarchy limits memory"), "{error}");
    }
}
