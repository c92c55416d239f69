//! The machine around the tasks: its kernel, settings and disks.

use std::collections::BTreeMap;
use std::process::Command;

use crate::error::read_if_there;
use crate::event::FileKey;
use crate::manifest::{DeviceRecord, KernelRecord, Sample};
use crate::root::Root;

/// Settings that reclaim uses.
const SYSCTLS: [&str; 16] = [
    "vm.swappiness",
    "vm.vfs_cache_pressure",
    "vm.page-cluster",
    "vm.watermark_scale_factor",
    "vm.watermark_boost_factor",
    "vm.min_free_kbytes",
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.zone_reclaim_mode",
    "vm.overcommit_memory",
    "vm.laptop_mode",
    "kernel.numa_balancing",
];

/// Options of the kernel that decide what can be recorded or how memory is reclaimed.
const CONFIG: [&str; 12] = [
    "CONFIG_LRU_GEN",
    "CONFIG_LRU_GEN_ENABLED",
    "CONFIG_MEMCG",
    "CONFIG_MEMCG_V1",
    "CONFIG_ZSWAP",
    "CONFIG_ZRAM",
    "CONFIG_PSI",
    "CONFIG_TRANSPARENT_HUGEPAGE",
    "CONFIG_READ_ONLY_THP_FOR_FS",
    "CONFIG_NUMA",
    "CONFIG_HZ",
    "CONFIG_DAMON",
];

/// Settings that there are, by name.
pub(crate) fn sysctls(root: &Root) -> BTreeMap<String, i64> {
    let number = |name: &str| root.text(format!("/proc/sys/{}", name.replace('.', "/")))?.parse::<i64>().ok();
    SYSCTLS.iter().filter_map(|name| Some((name.to_string(), number(name)?))).collect()
}

/// The kernel and the machine.
pub(crate) fn kernel(root: &Root) -> KernelRecord {
    let release = root.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let meminfo = root.text("/proc/meminfo").unwrap_or_default();
    let kib = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let chosen = |path: &str| {
        let text = root.text(path)?;
        Some(
            text.split_once('[')
                .and_then(|(_, rest)| rest.split_once(']'))
                .map_or(text.clone(), |(word, _)| word.to_string()),
        )
    };
    let swaps = root.text("/proc/swaps").unwrap_or_default();
    let swap = swaps.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_string(), words.nth(1)?.parse::<u64>().ok()? << 10))
    });
    KernelRecord {
        machine: std::env::consts::ARCH.to_string(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        memory_bytes: kib.unwrap_or(0) << 10,
        lru_gen: root.text("/sys/kernel/mm/lru_gen/enabled"),
        transparent_hugepage: chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        zswap: root.text("/sys/module/zswap/parameters/enabled"),
        swap: swap.collect(),
        config: config(root, &release),
        release,
    }
}

/// Lines of the kernel's configuration that matter here, if it can be found.
fn config(root: &Root, release: &str) -> Vec<String> {
    let text = root.text(format!("/boot/config-{release}")).or_else(|| {
        let packed = root.path("/proc/config.gz");
        let unpacked = packed.exists().then(|| Command::new("zcat").arg(&packed).output());
        Some(String::from_utf8_lossy(&unpacked?.ok()?.stdout).into_owned())
    });
    let text = text.unwrap_or_default();
    let matters = |line: &&str| {
        let name = line.trim_start_matches("# ").split(['=', ' ']).next().unwrap_or_default();
        CONFIG.contains(&name)
    };
    text.lines().filter(matters).map(str::to_string).collect()
}

/// Reads, their time, writes and their time, in milliseconds, of each disk by its numbers.
pub(crate) type DiskCounts = BTreeMap<String, [u64; 4]>;

/// What disks have done so far.
pub(crate) fn disk_counts(root: &Root) -> DiskCounts {
    counts_of(&root.text("/proc/diskstats").unwrap_or_default())
}

fn counts_of(text: &str) -> DiskCounts {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        Some((
            format!("{}:{}", words.first()?, words.get(1)?),
            [number(3)?, number(6)?, number(7)?, number(10)?],
        ))
    };
    text.lines().filter_map(line).collect()
}

/// The disk of these numbers, with what it did between two moments.
pub(crate) fn device(root: &Root, number: &str, before: &DiskCounts, after: &DiskCounts) -> DeviceRecord {
    let folder = std::fs::canonicalize(root.path(format!("/sys/dev/block/{number}"))).ok();
    // A partition has no queue; its disk has.
    let disk = folder.as_ref().map(|folder| match folder.join("partition").exists() {
        true => folder.parent().unwrap_or(folder).to_path_buf(),
        false => folder.clone(),
    });
    let of = |file: &str| read_if_there(disk.as_ref()?.join(file));
    let read_ahead =
        root.text(format!("/sys/class/bdi/{number}/read_ahead_kb")).or_else(|| of("queue/read_ahead_kb"));
    let scheduler = of("queue/scheduler").unwrap_or_default();
    let scheduler = scheduler
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(scheduler.clone(), |(word, _)| word.to_string());
    let delta = |at: usize| {
        let get = |counts: &DiskCounts| counts.get(number).map_or(0, |counts| counts[at]);
        get(after).saturating_sub(get(before))
    };
    let mean = |count: u64, ms: u64| (count > 0).then(|| ms * 1_000_000 / count);
    DeviceRecord {
        number: number.to_string(),
        name: folder
            .and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_default(),
        file_system: file_system(root, number).unwrap_or_default(),
        read_ahead_kb: read_ahead.and_then(|text| text.parse().ok()),
        scheduler,
        rotational: of("queue/rotational").as_deref() == Some("1"),
        reads: delta(0),
        read_latency_ns: mean(delta(0), delta(1)),
        writes: delta(2),
        write_latency_ns: mean(delta(2), delta(3)),
    }
}

/// The readahead window of the files of a device.
pub(crate) fn read_ahead_kb(root: &Root, file: FileKey) -> Option<u64> {
    let (major, minor) = file.major_minor();
    root.text(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"))?.parse().ok()
}

/// The file system that is mounted from a device, with its options.
fn file_system(root: &Root, number: &str) -> Option<String> {
    let mounts = root.text("/proc/self/mountinfo")?;
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(number))?;
    let mut behind = line.split_once(" - ")?.1.split(' ');
    Some(format!("{} {}", behind.next()?, behind.nth(1)?))
}

/// Time that tasks of the whole machine were stalled for memory so far.
pub(crate) fn stalled_us(root: &Root) -> Option<u64> {
    crate::cgroup::stalled_us(&root.text("/proc/pressure/memory")?)
}

/// Counters of the machine, by the names of `/proc/vmstat`.
pub(crate) fn vmstat(root: &Root) -> BTreeMap<String, u64> {
    crate::cgroup::stat_of(&root.text("/proc/vmstat").unwrap_or_default())
}

/// What the machine holds now.
pub(crate) fn sample(root: &Root, time_ns: u64) -> Sample {
    let meminfo = root.text("/proc/meminfo").unwrap_or_default();
    let get = |name: &str| {
        let rest = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = rest.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    };
    let vmstat = vmstat(root);
    let count = |name: &str| vmstat.get(name).copied().unwrap_or(0);
    let shmem = get("Shmem");
    Sample {
        time_ns,
        usage_bytes: get("MemTotal").saturating_sub(get("MemFree")),
        file_bytes: (get("Cached") + get("Buffers")).saturating_sub(shmem),
        anon_bytes: get("AnonPages") + shmem,
        kernel_bytes: get("Slab") + get("KernelStack") + get("PageTables"),
        swap_bytes: get("SwapTotal").saturating_sub(get("SwapFree")),
        dirty_bytes: get("Dirty"),
        refaults: count("workingset_refault_file"),
        swap_ins: count("pswpin"),
        stalled_us: stalled_us(root),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_its_counts() {
        let text = " 254       0 vda 10 1 80 50 20 2 160 90 0 30 140 0 0 0 0\nshort line\n";
        assert_eq!(counts_of(text)["254:0"], [10, 50, 20, 90]);
        let after = counts_of(" 254 0 vda 30 1 80 90 20 2 160 90 0 30 140\n");
        let device = device(&Root::machine(), "254:0", &counts_of(text), &after);
        assert_eq!(
            (device.reads, device.read_latency_ns, device.write_latency_ns),
            (20, Some(2_000_000), None)
        );
    }
}
