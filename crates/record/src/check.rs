//! Which sources of a recording there are here, and what is lost without each.

use std::path::Path;

use crate::cgroup::Cgroup;
use crate::error::read_if_there;
use crate::event::KNOWN;
use crate::tracefs;

/// A source, and whether it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// What it is called.
    pub source: String,
    /// What it tells.
    pub tells: &'static str,
    /// Whether it can be used.
    pub is_there: bool,
    /// What there is instead, or what to do; what it is, if it is there.
    pub remark: String,
}

/// Tries each source. Makes an instance of tracefs for it, and removes it.
pub fn check() -> Vec<Availability> {
    let mut found = Vec::new();
    let mut tell = |source: &str, tells, is_there, remark: String| {
        found.push(Availability { source: source.to_string(), tells, is_there, remark });
    };
    let instance = tracefs::Instance::new();
    match &instance {
        Ok(_) => tell(
            "tracefs instance",
            "every event",
            true,
            format!("{}", tracefs::root().unwrap_or_default().display()),
        ),
        Err(error) => tell("tracefs instance", "every event", false, error.to_string()),
    }
    let release = read_if_there("/proc/sys/kernel/osrelease").unwrap_or_default();
    for known in KNOWN {
        let name = known.name.replace('/', ":");
        let (tells, without) = told(known.name);
        let (is_there, remark) = match &instance {
            Err(_) => (false, "not tried without an instance".to_string()),
            Ok(instance) => match instance.format(known.name) {
                Ok(Some(text)) => match known.reader(&text) {
                    Ok(_) => (true, String::new()),
                    Err(error) => (false, error.to_string()),
                },
                Ok(None) => (false, format!("{release} has it not; {without}")),
                Err(error) => (false, error.to_string()),
            },
        };
        // A kernel has the events of the file systems that it knows, and needs no others.
        if is_there || !without.is_empty() {
            tell(&name, tells, is_there, remark);
        }
    }
    drop(instance);
    match Cgroup::of_pid(std::process::id()) {
        Ok(group) => {
            let remark = format!("cgroup v{}, {}", group.version, group.folder().display());
            tell("memory.stat", "refaults, and what a group holds", true, remark);
            let pressure = group.version == 2 && group.folder().join("memory.pressure").exists();
            let remark = if pressure { "" } else { "cgroup v1 has none; the machine's alone" };
            tell("memory.pressure", "stalls of a group", pressure, remark.to_string());
        }
        Err(error) => tell("memory.stat", "refaults, and what a group holds", false, error.to_string()),
    }
    let there = |path: &str| Path::new(path).exists();
    let pressure = there("/proc/pressure/memory");
    tell(
        "/proc/pressure/memory",
        "stalls of the machine",
        pressure,
        if pressure { "" } else { "CONFIG_PSI is off, or psi=0" }.to_string(),
    );
    let generations = read_if_there("/sys/kernel/mm/lru_gen/enabled");
    let remark = match &generations {
        Some(enabled) => enabled.clone(),
        None => "CONFIG_LRU_GEN is off: the twin runs the two lists".to_string(),
    };
    tell("lru_gen", "which lists the kernel keeps", generations.is_some(), remark);
    let smaps = std::fs::read_to_string("/proc/self/smaps").is_ok_and(|text| text.contains("VmFlags:"));
    tell(
        "smaps",
        "advice of mappings",
        smaps,
        if smaps { "" } else { "CONFIG_PROC_PAGE_MONITOR is off: `--ask` can't tell random mappings" }
            .to_string(),
    );
    found
}

/// What an event tells, and what is lost without it; nothing is, where another file system's stands for it.
fn told(event: &str) -> (&'static str, &'static str) {
    match event.rsplit('/').next().unwrap_or_default() {
        "mm_filemap_get_pages" => (
            "each buffered read with its pages, hits too",
            "it came with Linux 6.12: insertions stand for reads, 1 to 4 % off at more memory and nothing at less",
        ),
        "mm_filemap_fault" => {
            ("faults of mapped files", "it came with Linux 6.12: mapped files are known by insertions alone")
        }
        "mm_filemap_map_pages" => {
            ("faults that pages nearby served", "it came with Linux 6.12: minor faults are not counted")
        }
        "mm_filemap_add_to_page_cache" => {
            ("what came into the page cache", "nothing says which reads missed")
        }
        "mm_filemap_delete_from_page_cache" => ("what left it", "evictions are known by counters alone"),
        "page_fault_user" => (
            "each fault of a program",
            "this machine's architecture has none: first touches of memory are not counted",
        ),
        "mm_vmscan_memcg_reclaim_begin" => {
            ("calls of reclaim at a limit", "calls of reclaim are not counted")
        }
        "mm_vmscan_memcg_reclaim_end" => ("what they freed", "what calls of reclaim freed is not known"),
        "mm_vmscan_direct_reclaim_begin" | "mm_vmscan_direct_reclaim_end" => {
            ("reclaim as the machine runs short", "what such reclaim evicts is taken for a truncation")
        }
        "ext4_evict_inode" | "f2fs_evict_inode" => ("files that are deleted", ""),
        "ext4_da_write_begin" | "ext4_write_begin" => ("writes to ext4", ""),
        "xfs_file_buffered_write" => ("writes to XFS", ""),
        "f2fs_write_begin" => ("writes to F2FS", ""),
        _ => ("fsync", ""),
    }
}
