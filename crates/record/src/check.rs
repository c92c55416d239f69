//! Which sources of a recording there are here, and what is lost without each.

use crate::damon;
use crate::error::Error;
use crate::event::KNOWN;
use crate::root::Root;
use crate::tracefs;
use crate::ways::{need_host_pids, own_group, tracefs_place};

/// A source, and whether it is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The name.
    pub source: String,
    /// The data that it provides.
    pub tells: &'static str,
    /// True if it can be used.
    pub is_there: bool,
    /// The consequence or remedy if it is missing; a detail if it is available.
    pub remark: String,
}

/// Tries each source. Makes an instance of tracefs for it, and removes it.
pub fn check(root: &Root) -> Vec<Availability> {
    let mut found = Vec::new();
    let mut tell = |source: &str, tells, is_there, remark: String| {
        found.push(Availability { source: source.to_string(), tells, is_there, remark });
    };
    let instance = need_host_pids(root).and_then(|()| tracefs::Instance::new(root));
    match &instance {
        Ok(_) => tell("tracefs instance", "every event", true, tracefs_place(root)),
        Err(error) => tell("tracefs instance", "every event", false, in_a_line(error)),
    }
    let release = root.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    for known in KNOWN {
        let name = known.name.replace('/', ":");
        let (tells, without) = told(known.name);
        let (is_there, remark) = match &instance {
            Err(_) => (false, "not tested without a trace instance".to_string()),
            Ok(instance) => match instance.format(known.name) {
                Ok(Some(text)) => match known.reader(&text) {
                    Ok(_) => (true, String::new()),
                    Err(error) => (false, in_a_line(&error)),
                },
                Ok(None) => (false, format!("missing in {release}; {without}")),
                Err(error) => (false, in_a_line(&error)),
            },
        };
        // A kernel has the events of the file systems that it knows, and needs no others.
        if is_there || !without.is_empty() {
            tell(&name, tells, is_there, remark);
        }
    }
    drop(instance);
    match own_group(root) {
        Ok(group) => {
            let remark = format!("cgroup v{}, {}", group.version, group.folder().display());
            tell("memory.stat", "refaults and memory of a group", true, remark);
            let pressure = group.version == 2 && group.folder().join("memory.pressure").exists();
            let remark =
                if pressure { "" } else { "missing in cgroup v1; only the machine's file is recorded" };
            tell("memory.pressure", "stalls of a group", pressure, remark.to_string());
        }
        Err(error) => tell("memory.stat", "refaults and memory of a group", false, in_a_line(&error)),
    }
    let pressure = root.has("/proc/pressure/memory");
    tell(
        "/proc/pressure/memory",
        "stalls of the machine",
        pressure,
        if pressure { "" } else { "CONFIG_PSI is off, or psi=0" }.to_string(),
    );
    let generations = root.text("/sys/kernel/mm/lru_gen/enabled");
    let remark = match &generations {
        Some(enabled) => enabled.clone(),
        None => "CONFIG_LRU_GEN is off: the twin uses the classic LRU".to_string(),
    };
    tell("lru_gen", "the kernel's LRU (MGLRU or classic)", generations.is_some(), remark);
    let smaps = root.text("/proc/self/smaps").is_some_and(|text| text.contains("VmFlags:"));
    tell(
        "smaps",
        "advice of mappings",
        smaps,
        if smaps { "" } else { "CONFIG_PROC_PAGE_MONITOR is off: `--ask` does not know random mappings" }
            .to_string(),
    );
    for (name, tells) in [
        ("io", "bytes that calls read, and bytes from disks, of each process"),
        ("smaps_rollup", "memory of each process, by kind"),
    ] {
        let is_there = root.text(format!("/proc/self/{name}")).is_some();
        let remark = if is_there { "" } else { "missing, or not readable by this user" };
        tell(name, tells, is_there, remark.to_string());
    }
    let damon = damon::usable(root);
    let is_there = damon.is_ok();
    tell("DAMON", "use of address ranges of one process", is_there, damon.err().unwrap_or_default());
    found
}

/// Returns the text of an error without line breaks, for a row of a table.
fn in_a_line(error: &Error) -> String {
    error.to_string().replace("\nhelp: ", "; ")
}

/// The data of an event, and the consequence without it. Nothing is lost if the event of another file system replaces it.
fn told(event: &str) -> (&'static str, &'static str) {
    match event.rsplit('/').next().unwrap_or_default() {
        "mm_filemap_get_pages" => (
            "each buffered read with its pages, including hits",
            "new in Linux 6.12: insertions replace reads, 1 to 4 % off with more memory, no answers for less",
        ),
        "mm_filemap_fault" => {
            ("faults of mapped files", "new in Linux 6.12: mapped files have only insertions")
        }
        "mm_filemap_map_pages" => {
            ("faults served by fault-around", "new in Linux 6.12: minor faults are not counted")
        }
        "mm_filemap_add_to_page_cache" => ("insertions into the page cache", "misses of reads are unknown"),
        "mm_filemap_delete_from_page_cache" => {
            ("removals from the page cache", "only counters show evictions")
        }
        "page_fault_user" => (
            "each fault of a program, if --events names touches",
            "missing on this architecture: first touches of memory are not counted",
        ),
        "mm_vmscan_memcg_reclaim_begin" => ("reclaim calls at a limit", "reclaim calls are not counted"),
        "mm_vmscan_memcg_reclaim_end" => {
            ("pages that they freed", "pages freed by reclaim calls are unknown")
        }
        "mm_vmscan_direct_reclaim_begin" | "mm_vmscan_direct_reclaim_end" => {
            ("direct reclaim for the machine", "evictions by direct reclaim look like truncation")
        }
        "ext4_evict_inode" | "f2fs_evict_inode" => ("deleted files", ""),
        "ext4_da_write_begin" | "ext4_write_begin" => ("writes to ext4", ""),
        "xfs_file_buffered_write" => ("writes to XFS", ""),
        "f2fs_write_begin" => ("writes to F2FS", ""),
        _ => ("fsync", ""),
    }
}
