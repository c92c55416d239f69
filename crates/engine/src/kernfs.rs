//! The text files by which a kernel is monitored and controlled, under the kernel's names and in its formats, so that existing tools can read them.
//! [reclaim 7]
//!
//! A file is a row of a table, with the functions that read and write it: `cgroup.rs` has those of a cgroup, `machine.rs` those of the machine. The
//! few directories per node, tier or device have their own modules. `docs/kernel-files.md` is made of the rows.

pub(crate) mod error; // why a file could not be read or written
mod cgroup; // files of a cgroup, a row each
mod machine; // files of the machine, a row each
mod meminfo; // `/proc/meminfo`, `/proc/zoneinfo` and `/proc/buddyinfo`
mod lru_gen; // the text of generations, and commands
mod swaps; // `/proc/swaps`
mod zram; // what compressed swap devices take
mod lru_gen_settings; // `enabled` and `min_ttl_ms`
mod numa; // nodes and tiers of memory
mod huge_memory; // whose memory is of huge pages
mod pghot; // sources of hot pages by bits
mod damon; // results of DAMON's modules
mod damon_admin; // settings and results of other kdamonds
mod oom_log; // what the log says of an OOM kill
mod sysctl; // parameters of a machine that runs

use crate::access::engine::Engine;
use crate::lru::Refused;
use crate::machine::step::{Served, Step};
use crate::reclaim::{Reclaimer, UserReclaim, Why};
use crate::units::{MemcgId, NodeId, SwapId, TaskId};
use std::fmt::{self, Write};

pub use cgroup::{CGROUP_FILES, CgroupFile, Holds};
pub use damon_admin::{DamonFile, damon_files};
pub use error::{Errno, FileError};
pub(crate) use lru_gen::LruGenWrite;
pub use machine::{MACHINE_FILES, MachineFile};
pub use numa::{NODE_FILES, NodeFile, kernel_bool};
pub use zram::{ZRAM_FILES, ZramFile};

const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// The file at a path, and what it is of.
enum OpenFile {
    Machine(&'static MachineFile),
    Memcg(MemcgId, &'static CgroupFile),
    Node(NodeId, &'static NodeFile),
    MemoryTier(u32),
    Zram(SwapId, &'static ZramFile),
    /// One of a kdamond, with its contents.
    Damon(String),
}

/// A write that completed immediately.
const WRITTEN: Step = Step::Done(Served::Written { reclaimed: 0 });

/// Why a file does not take what was written to it.
enum WriteError {
    /// It can't be written.
    NotPermitted,
    /// The value is malformed or out of range: what the file takes instead.
    Invalid(String),
    /// The only command written is refused.
    Refused(Refused),
    /// One of several commands is refused.
    Told(FileError),
}

fn invalid(expected: impl Into<String>) -> WriteError {
    WriteError::Invalid(expected.into())
}

impl Engine {
    /// Reads a file.
    pub fn read_file(&mut self, path: &str) -> Result<String, FileError> {
        let shown = match self.file_at(path)? {
            OpenFile::Machine(file) => file.show(self),
            OpenFile::Memcg(memcg, file) => file.show(self, memcg),
            OpenFile::Node(node, file) => file.show.map(|show| show(self, node)),
            OpenFile::MemoryTier(tier) => Some(self.nodelist_text(tier)),
            OpenFile::Zram(swap, file) => Some(self.zram_text(swap, file)),
            OpenFile::Damon(text) => Some(text),
        };
        shown.ok_or_else(|| FileError::NotPermitted(path.to_owned()))
    }

    /// Writes a file, as `task`, which must not be in the middle of anything else.
    ///
    /// `memory.reclaim`, `lru_gen`, and a limit set below what is in use, reclaim before they return: the step says whether
    /// the task has to go on.
    pub fn write_file(&mut self, task: TaskId, path: &str, value: &str) -> Result<Step, FileError> {
        let file = self.file_at(path)?;
        let value = value.trim();
        self.enter(task);
        let written = match file {
            OpenFile::Machine(file) => file.store(self, task, value),
            OpenFile::Memcg(memcg, file) => file.store(self, task, memcg, value),
            OpenFile::Node(node, file) => {
                file.store.map_or(Err(WriteError::NotPermitted), |store| store(self, task, node, value))
            }
            OpenFile::MemoryTier(_) | OpenFile::Zram(..) | OpenFile::Damon(_) => {
                Err(WriteError::NotPermitted)
            }
        };
        self.core.mm.watch_reads();
        let (path, value) = (path.to_owned(), value.to_owned());
        written.map_err(|error| match error {
            WriteError::NotPermitted => FileError::NotPermitted(path),
            WriteError::Invalid(expected) => FileError::Invalid { path, value, expected },
            WriteError::Refused(Refused { errno, expected }) => {
                FileError::Refused { path, number: 1, command: value, errno, expected }
            }
            WriteError::Told(error) => error,
        })
    }

    /// Reclaims this many pages from a group because a user asked for it (`memory.reclaim`).
    pub fn reclaim(&mut self, task: TaskId, memcg: MemcgId, pages: u64, swappiness: Option<u8>) -> Step {
        self.enter(task);
        let swappiness = swappiness.unwrap_or(self.core.mm.config.swappiness);
        self.current(task).user_reclaim(Box::new(UserReclaim::new(
            Reclaimer::new(memcg, Why::Requested, swappiness),
            pages,
        )))
    }

    /// Reclaims this many pages from a node, whichever groups they belong to, because a user asked for it (`nodeN/reclaim`). Reclaims nothing if
    /// the node has too few file pages for node reclaim.
    fn reclaim_node(&mut self, task: TaskId, node: NodeId, pages: u64, swappiness: Option<u8>) -> Step {
        self.enter(task);
        if !self.core.mm.has_enough_unmapped(node) {
            return WRITTEN;
        }
        let swappiness = swappiness.unwrap_or(self.core.mm.config.swappiness);
        let by = Reclaimer { node: Some(node), ..Reclaimer::new(MemcgId::ROOT, Why::Requested, swappiness) };
        self.current(task).user_reclaim(Box::new(UserReclaim::new(by, pages)))
    }

    /// Removes a group by its directory, as rmdir does: one without processes and without child groups. Its charges stay until they are reclaimed.
    pub fn remove_directory(&mut self, path: &str) -> Result<(), FileError> {
        let inside =
            path.strip_prefix(CGROUP_ROOT).filter(|inside| inside.is_empty() || inside.starts_with('/'));
        let memcg = inside.and_then(|inside| self.core.mm.memcgs.by_path(inside));
        let memcg = memcg.ok_or_else(|| FileError::NoSuchFile(path.to_owned()))?;
        let busy = |why: String| Err(FileError::Busy { path: path.to_owned(), why });
        let group = &self.core.mm.memcgs[memcg];
        if memcg == MemcgId::ROOT {
            return busy("it is the root cgroup".to_owned());
        }
        let children: Vec<&str> = group.children_names().collect();
        if !children.is_empty() {
            return busy(format!("remove its child groups first: {}", children.join(", ")));
        }
        match group.mms.len() {
            0 => {}
            1 => return busy("a process runs in it: let it exit or move it first".to_owned()),
            count => return busy(format!("{count} processes run in it: let them exit or move them first")),
        }
        self.core.memcg_offline(memcg);
        Ok(())
    }

    fn file_at(&self, path: &str) -> Result<OpenFile, FileError> {
        if let Some(file) = MACHINE_FILES.iter().find(|file| file.path == path) {
            return Ok(OpenFile::Machine(file));
        }
        let no_such_file = || FileError::NoSuchFile(path.to_owned());
        if let Some((number, file)) = zram::of_path(path) {
            let device = self.zram_device(number).ok_or_else(no_such_file)?;
            return Ok(OpenFile::Zram(device, file));
        }
        if path.starts_with(damon_admin::ADMIN) {
            return self.damon_admin_text(path).map(OpenFile::Damon).ok_or_else(no_such_file);
        }
        if let Some(tier) = numa::tier_of_path(path) {
            let is_there = self.core.mm.tiers.iter().any(|known| known.id == tier);
            return if is_there { Ok(OpenFile::MemoryTier(tier)) } else { Err(no_such_file()) };
        }
        if let Some((node, file)) = numa::node_of_path(path) {
            let is_there = node.index() < self.core.mm.config.node_pages.len();
            return if is_there { Ok(OpenFile::Node(node, file)) } else { Err(no_such_file()) };
        }
        let inside = path.strip_prefix(CGROUP_ROOT).ok_or_else(no_such_file)?;
        let (group, file) = inside.rsplit_once('/').ok_or_else(no_such_file)?;
        let no_such_group = || FileError::NoSuchGroup { path: path.to_owned(), group: group.to_owned() };
        let memcg = self.core.mm.memcgs.by_path(group).ok_or_else(no_such_group)?;
        let is_there = |file: &&CgroupFile| {
            file.only_in.is_none_or(|version| version == self.core.mm.config.cgroup_version)
                && (file.is_in_root || memcg != MemcgId::ROOT)
        };
        let file = CgroupFile::by_name(file).filter(is_there).ok_or_else(no_such_file)?;
        Ok(OpenFile::Memcg(memcg, file))
    }
}

/// Names with their values, line by line.
fn lines<T: fmt::Display>(pairs: impl IntoIterator<Item = (&'static str, T)>) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        writeln!(text, "{name} {value}").expect("writing to a string can't fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Policy, Stat};

    fn engine() -> (Engine, TaskId) {
        let mut engine =
            Engine::new(Config { policy: Policy::of("classic@6.12"), ..Config::default() }).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, crate::CpuId(0));
        (engine, task)
    }

    #[test]
    fn limits_are_written_and_read_in_bytes() {
        let (mut engine, task) = engine();
        let path = "/sys/fs/cgroup/job/memory.max";
        assert_eq!(engine.read_file(path).unwrap(), "max\n");
        let _ = engine.write_file(task, path, "64M\n").unwrap();
        assert_eq!(engine.read_file(path).unwrap(), "67108864\n");
    }

    #[test]
    fn a_malformed_value_is_refused_with_what_would_be_right() {
        let (mut engine, task) = engine();
        let error = engine.write_file(task, "/sys/fs/cgroup/job/memory.high", "64Q").unwrap_err();
        assert_eq!(
            error.to_string(),
            "/sys/fs/cgroup/job/memory.high: invalid value `64Q` (EINVAL): expected bytes, such as `268435456` or `256M`, or `max`"
        );
        assert!(engine.write_file(task, "/proc/sys/vm/swappiness", "201").is_err());
        assert!(engine.write_file(task, "/sys/fs/cgroup/job/memory.reclaim", "1M swappiness=900").is_err());
    }

    #[test]
    fn every_file_opens_as_its_row_says() {
        let (mut engine, task) = engine();
        for file in CGROUP_FILES {
            engine.core.mm.config.cgroup_version = file.only_in.unwrap_or(2);
            let path = format!("/sys/fs/cgroup/job/{}", file.name);
            let refused = Err(FileError::NotPermitted(path.clone()));
            assert_eq!(engine.read_file(&path).is_ok(), file.is_readable(), "{path}");
            assert_eq!(engine.write_file(task, &path, "4096") != refused, file.is_writable(), "{path}");
            let in_root = format!("/sys/fs/cgroup/{}", file.name);
            let is_there = engine.read_file(&in_root) != Err(FileError::NoSuchFile(in_root.clone()));
            assert_eq!(is_there, file.is_in_root, "{in_root}");
            let other = file.only_in.map(|version| 3 - version);
            if let Some(other) = other {
                engine.core.mm.config.cgroup_version = other;
                assert_eq!(engine.read_file(&path), Err(FileError::NoSuchFile(path.clone())));
            }
            let holds = match file.holds {
                Holds::Usage | Holds::Counters => [true, false],
                Holds::Request => [false, true],
                Holds::Limit(_) | Holds::Switch(_) | Holds::Nodes => [true, true],
            };
            assert_eq!([file.is_readable(), file.is_writable()], holds, "{path}");
        }
        for file in MACHINE_FILES {
            assert_eq!(engine.read_file(file.path).is_ok(), file.is_readable(), "{}", file.path);
            let refused = Err(FileError::NotPermitted(file.path.to_owned()));
            let mut written = engine.write_file(task, file.path, "1");
            assert_eq!(written != refused, file.is_writable(), "{}", file.path);
            while written == Ok(Step::Again) {
                written = Ok(engine.resume(task));
            }
        }
    }

    #[test]
    fn a_limit_is_at_first_what_its_row_says() {
        let (mut engine, _) = engine();
        for file in CGROUP_FILES {
            engine.core.mm.config.cgroup_version = file.only_in.unwrap_or(2);
            if let Holds::Limit(initial) = file.holds {
                let text = engine.read_file(&format!("/sys/fs/cgroup/job/{}", file.name)).unwrap();
                assert_eq!(text.trim(), initial, "{}", file.name);
            }
        }
    }

    #[test]
    fn unknown_files_and_groups_do_not_exist() {
        let (mut engine, _) = engine();
        for path in ["/proc/vmstats", "/sys/fs/cgroup/job/memory.maximum", ""] {
            assert_eq!(engine.read_file(path), Err(FileError::NoSuchFile(path.to_owned())));
        }
        let path = "/sys/fs/cgroup/jab/memory.max".to_owned();
        let of_none = FileError::NoSuchGroup { path: path.clone(), group: "/jab".to_owned() };
        assert_eq!(engine.read_file(&path), Err(of_none));
    }

    #[test]
    fn vmstat_has_one_line_a_counter() {
        let (mut engine, _) = engine();
        let text = engine.read_file("/proc/vmstat").unwrap();
        assert_eq!(text.lines().count(), Stat::ALL.iter().filter(|stat| stat.is_in_vmstat()).count());
        assert!(text.starts_with("nr_free_pages 262144\n"));
    }
}
