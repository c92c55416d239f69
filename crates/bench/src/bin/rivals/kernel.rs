//! The kernel's swap: a device of its own, and a memory cgroup.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::PAGES;
use crate::measured::PAGE;

/// Where the kernel swaps to.
#[derive(Clone, Copy)]
pub(crate) enum SwapOn {
    /// Compressed memory.
    Zram,
    /// A file in the folder.
    File,
}

/// A swap device and a cgroup, which go with this value.
pub(crate) struct Room {
    pub(crate) cgroup: PathBuf,
    swap: PathBuf,
    zram: Option<String>,
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {}", told.trim())) }
}

fn write(path: impl AsRef<Path>, value: &str) -> Result<(), String> {
    fs::write(&path, value).map_err(|error| format!("{}: {error}", path.as_ref().display()))
}

impl Room {
    /// # Errors
    /// Why there is none.
    pub(crate) fn new(on: SwapOn, folder: &Path, limit: u64) -> Result<Room, String> {
        let others = fs::read_to_string("/proc/swaps").map_err(|error| error.to_string())?;
        if others.lines().count() > 1 {
            return Err("the system swaps to another device".to_owned());
        }
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (of_all, limit_file) = if v1.is_dir() {
            (v1, "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let cgroup = of_all.join(format!("pageout-rivals-{}", std::process::id()));
        let mut room = Room { cgroup, swap: folder.join("pageout-rivals-swap"), zram: None };
        fs::create_dir_all(&room.cgroup).map_err(|error| format!("{}: {error}", room.cgroup.display()))?;
        write(room.cgroup.join(limit_file), &limit.to_string())?;
        match on {
            SwapOn::Zram => {
                let number = fs::read_to_string("/sys/class/zram-control/hot_add");
                let number = number.map_err(|error| format!("zram: {error}"))?.trim().to_owned();
                room.swap = format!("/dev/zram{number}").into();
                room.zram = Some(number.clone());
                write(format!("/sys/block/zram{number}/comp_algorithm"), "lz4")?;
                write(format!("/sys/block/zram{number}/disksize"), &(2 * PAGES).to_string())?;
            }
            SwapOn::File => {
                let size = (2 * PAGES).to_string();
                let path = room.swap.to_str().ok_or("a folder whose name is not Unicode")?;
                run("fallocate", &["-l", &size, path])?;
                run("chmod", &["600", path])?;
            }
        }
        let path = room.swap.to_str().ok_or("a folder whose name is not Unicode")?;
        run("mkswap", &[path])?;
        run("swapon", &[path])?;
        Ok(room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // Parts that do not exist cannot be removed.
        let _ = run("swapoff", &[&self.swap.to_string_lossy()]);
        let _ = match &self.zram {
            Some(number) => write("/sys/class/zram-control/hot_remove", number),
            None => fs::remove_file(&self.swap).map_err(|error| error.to_string()),
        };
        let _ = fs::remove_dir(&self.cgroup);
    }
}

/// This process is charged to a cgroup from now on.
pub(crate) fn join(cgroup: &Path) {
    fs::write(cgroup.join("cgroup.procs"), std::process::id().to_string()).unwrap();
}

/// This process gets no huge pages: a region has none.
pub(crate) fn use_single_pages() {
    // SAFETY: a setting of the process, without pointers.
    let result = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    assert_eq!(result, 0, "a process may refuse huge pages");
}

/// Major faults of this process, and bytes that the system has swapped.
pub(crate) struct Swapped {
    pub(crate) faults: f64,
    pub(crate) bytes: f64,
}

pub(crate) fn swapped() -> Swapped {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name is in parentheses; the tenth field behind it is `majflt`.
    let fields = stat.rsplit_once(')').unwrap().1;
    let faults = fields.split_whitespace().nth(9).unwrap().parse().unwrap();
    let vmstat = fs::read_to_string("/proc/vmstat").unwrap();
    let of = |name: &str| -> f64 {
        let line = vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap().parse().unwrap()
    };
    Swapped { faults, bytes: (of("pswpin") + of("pswpout")) * PAGE as f64 }
}

/// The peak of this process's resident set, in bytes.
pub(crate) fn resident_peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap().trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}
