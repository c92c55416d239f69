//! Tables of the kernel files that exist: the one place for their names. Reads, writes, results, and the checks and the reference of
//! scenarios all go through them.

use super::zswap::ZswapFile;

/// The kind of a cgroup file's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// Read: how much is in use.
    Usage,
    /// Read and written: a limit or a protection, and what it is before anyone writes it.
    Limit(&'static str),
    /// Read and written: a list of nodes, as `0-1,3`, or nothing.
    Nodes,
    /// Read and written: 0 or 1, and which of them it is at first.
    Switch(&'static str),
    /// Read: counters, line by line.
    Counters,
    /// Written: something to be done at once.
    Request,
}

/// A file that every cgroup has, or every one but the root.
pub struct CgroupFile {
    /// The file's name.
    pub name: &'static str,
    /// The kind of the file's contents, which says how it can be opened.
    pub holds: Holds,
    /// Whether the root has it, too. The root has no limits, and so no files for them.
    pub is_in_root: bool,
    /// Whether it was posted and is in no kernel that was released: results tell of it where it was set.
    pub is_posted: bool,
    /// Meaning of the file's contents, or effect of a write to it.
    pub doc: &'static str,
    pub(super) file: MemcgFile,
}

impl CgroupFile {
    /// The file of this name.
    pub fn by_name(name: &str) -> Option<&'static CgroupFile> {
        CGROUP_FILES.iter().find(|file| file.name == name)
    }

    /// Whether this is what it says before anyone writes it.
    pub fn is_initially(&self, text: &str) -> bool {
        matches!(self.holds, Holds::Limit(initial) | Holds::Switch(initial) if initial == text)
    }

    /// Whether it can be opened for reading.
    pub fn is_readable(&self) -> bool {
        self.holds != Holds::Request
    }

    /// Whether it can be opened for writing.
    pub fn is_writable(&self) -> bool {
        matches!(self.holds, Holds::Limit(_) | Holds::Switch(_) | Holds::Nodes | Holds::Request)
    }
}

/// Which file, for those who read and write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MemcgFile {
    Current,
    SwapCurrent,
    Min,
    Low,
    High,
    Max,
    DirtyMin,
    SoftLimit,
    SwapHigh,
    SwapMax,
    OomGroup,
    CpusetMems,
    CpusetMemsEffective,
    ZswapCurrent,
    ZswapMax,
    ZswapWriteback,
    Stat,
    Events,
    EventsLocal,
    SwapEvents,
    CgroupStat,
    Reclaim,
}

const fn limit(name: &'static str, file: MemcgFile, initial: &'static str, doc: &'static str) -> CgroupFile {
    CgroupFile { name, holds: Holds::Limit(initial), is_in_root: false, is_posted: false, doc, file }
}

const fn posted(file: CgroupFile) -> CgroupFile {
    CgroupFile { is_posted: true, ..file }
}

const fn reported(name: &'static str, file: MemcgFile, holds: Holds, doc: &'static str) -> CgroupFile {
    CgroupFile {
        name,
        holds,
        is_in_root: matches!(file, MemcgFile::Stat | MemcgFile::CgroupStat | MemcgFile::Reclaim),
        is_posted: false,
        doc,
        file,
    }
}

/// All files of a cgroup, usage and limits first.
#[rustfmt::skip]
pub const CGROUP_FILES: &[CgroupFile] = &[
    reported("memory.current", MemcgFile::Current, Holds::Usage, "Memory in use, in bytes."),
    limit("memory.max", MemcgFile::Max, "max", "Hard limit: a task that reaches it reclaims. If that frees too little, the run ends out of memory, or a process of the cgroup is killed: see machine.oom."),
    limit("memory.high", MemcgFile::High, "max", "Throttling limit: above it a task reclaims and is made to sleep, but nothing fails."),
    limit("memory.soft_limit_in_bytes", MemcgFile::SoftLimit, "9223372036854771712", "Soft limit, of cgroup v1 only (kernel.memcg.cgroup_version = 1): where the machine is short, a cgroup above it gives before others do. At other times it may have what there is. On two lists; generations go by the age of cgroups instead."),
    limit("memory.low", MemcgFile::Low, "0", "Memory that is spared while others have something to give."),
    limit("memory.min", MemcgFile::Min, "0", "Memory that is never taken."),
    posted(limit("memory.dirty_min", MemcgFile::DirtyMin, "0", "Proposed in May 2026, in no released kernel. A floor of dirty pages, in bytes, or \"max\": while the cgroup and those below it have fewer dirty and under writeback, its tasks do not sleep for what others have dirtied. The limits that follow from its own memory.max hold all the same. 0, as where there is no such file: whoever dirties pages waits for all that is dirty. Of cgroup v2 only.")),
    reported("memory.swap.current", MemcgFile::SwapCurrent, Holds::Usage, "Swap in use, in bytes."),
    limit("memory.swap.high", MemcgFile::SwapHigh, "max", "Throttling limit of swap: above it a task that allocates is made to sleep, as above memory.high, but nothing is reclaimed for it."),
    limit("memory.swap.max", MemcgFile::SwapMax, "max", "How much of the swap the cgroup may fill."),
    reported("memory.oom.group", MemcgFile::OomGroup, Holds::Switch("0"), "1: the OOM killer ends all processes of the cgroup and of those below it, or none. With machine.oom = \"kill\"."),
    reported("cpuset.mems", MemcgFile::CpusetMems, Holds::Nodes, "Nodes that pages of its tasks may come from, as \"0-1,3\"; empty: those of its parent. What is elsewhere already stays there. CPUs are bound by task: see task.cpunodebind."),
    reported("cpuset.mems.effective", MemcgFile::CpusetMemsEffective, Holds::Counters, "Nodes that they do come from."),
    reported("memory.zswap.current", MemcgFile::ZswapCurrent, Holds::Usage, "Compressed pages of zswap, in bytes."),
    limit("memory.zswap.max", MemcgFile::ZswapMax, "max", "How much of its memory may be compressed pages of zswap. Beyond it, the oldest is written to the device for the next; 0: none are."),
    reported("memory.zswap.writeback", MemcgFile::ZswapWriteback, Holds::Switch("1"), "0: its pages stay in zswap, and what zswap does not take stays in memory."),
    reported("memory.stat", MemcgFile::Stat, Holds::Counters, "Sizes and counters. Reading it flushes the statistics of the cgroup if enough is pending."),
    reported("memory.events", MemcgFile::Events, Holds::Counters, "How often limits were met, here and below."),
    reported("memory.events.local", MemcgFile::EventsLocal, Holds::Counters, "The same without what is below."),
    reported("memory.swap.events", MemcgFile::SwapEvents, Holds::Counters, "How often limits of swap were met, and how often a page got no slot."),
    reported("cgroup.stat", MemcgFile::CgroupStat, Holds::Counters, "Groups below this one: nr_descendants, and of those removed nr_dying_descendants, which are still charged for something."),
    reported("memory.reclaim", MemcgFile::Reclaim, Holds::Request, "Bytes to reclaim, optionally with ` swappiness=N`, or since 6.15 ` swappiness=max` for anonymous memory only."),
];

/// A file of the machine.
pub struct MachineFile {
    /// The file's path.
    pub path: &'static str,
    /// Whether it can be opened for writing.
    pub is_writable: bool,
    pub(super) target: MachineTarget,
}

impl MachineFile {
    /// Whether it can be opened for reading: all but those that only ask for something.
    pub fn is_readable(&self) -> bool {
        !matches!(self.target, MachineTarget::CompactMemory | MachineTarget::DropCaches)
    }
}

/// Which file, for those who read and write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MachineTarget {
    Vmstat,
    Meminfo,
    Zoneinfo,
    Buddyinfo,
    Swaps,
    Zswap(ZswapFile),
    /// A parameter of a module, one that debugfs has, or one that has another name in some kernel.
    Module(&'static str),
    /// A parameter, by its name.
    Sysctl(&'static str),
    /// Switches of sources of hot pages, by their names: each is a bit.
    PghotSources(&'static [&'static str]),
    /// Whether reclaim demotes.
    DemotionEnabled,
    /// Whether reads promote.
    PagecachePromotionEnabled,
    /// Whose memory is of huge pages.
    TransparentHugepage,
    LruGen,
    LruGenFull,
    CompactMemory,
    /// Clean pages of files that nobody uses, and slab objects, go.
    DropCaches,
    StatRefresh,
    Enabled,
    MinTtl,
    /// The pool of huge pages of an order.
    NrHugepages(u8),
}

pub(super) const LRU_GEN: &str = "/sys/kernel/debug/lru_gen";
pub(super) const ENABLED: &str = "/sys/kernel/mm/lru_gen/enabled";
pub(super) const MIN_TTL_MS: &str = "/sys/kernel/mm/lru_gen/min_ttl_ms";

const fn sysctl(path: &'static str, parameter: &'static str) -> MachineFile {
    MachineFile { path, is_writable: true, target: MachineTarget::Sysctl(parameter) }
}

const fn hugepages(path: &'static str, order: u8) -> MachineFile {
    MachineFile { path, is_writable: true, target: MachineTarget::NrHugepages(order) }
}

const fn debug(path: &'static str, file: ZswapFile) -> MachineFile {
    MachineFile { path, is_writable: false, target: MachineTarget::Zswap(file) }
}

const fn module(path: &'static str, parameter: &'static str) -> MachineFile {
    MachineFile { path, is_writable: true, target: MachineTarget::Module(parameter) }
}

const fn sources(path: &'static str, switches: &'static [&'static str]) -> MachineFile {
    MachineFile { path, is_writable: true, target: MachineTarget::PghotSources(switches) }
}

/// Sources of hot pages as the eighth posting numbers them.
const SOURCES: &[&str] = &["vm.pghot_record_hintfaults_enable", "vm.pghot_record_hwhints_enable"];

/// As the fourth and fifth do in debugfs; the last bit is an unposted branch's.
const DEBUG_SOURCES: &[&str] = &[
    "vm.pghot_record_hwhints_enable",
    "vm.pghot_record_pgtscans_enable",
    "vm.pghot_record_hintfaults_enable",
    "vm.pghot_record_fma_enable",
];

/// All files of the machine.
#[rustfmt::skip]
pub const MACHINE_FILES: &[MachineFile] = &[
    MachineFile { path: "/proc/vmstat", is_writable: false, target: MachineTarget::Vmstat },
    MachineFile { path: "/proc/meminfo", is_writable: false, target: MachineTarget::Meminfo },
    MachineFile { path: "/proc/zoneinfo", is_writable: false, target: MachineTarget::Zoneinfo },
    MachineFile { path: "/proc/buddyinfo", is_writable: false, target: MachineTarget::Buddyinfo },
    MachineFile { path: "/proc/swaps", is_writable: false, target: MachineTarget::Swaps },
    sysctl("/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps", "kernel.numa_balancing_promote_rate_limit_MBps"),
    sysctl("/proc/sys/kernel/numa_balancing", "kernel.numa_balancing"),
    sysctl("/proc/sys/vm/compaction_proactiveness", "vm.compaction_proactiveness"),
    sysctl("/proc/sys/vm/page-cluster", "vm.page-cluster"),
    sysctl("/proc/sys/vm/swappiness", "vm.swappiness"),
    sysctl("/proc/sys/vm/zone_reclaim_mode", "vm.zone_reclaim_mode"),
    sysctl("/proc/sys/vm/min_unmapped_ratio", "vm.min_unmapped_ratio"),
    sysctl("/proc/sys/vm/min_free_kbytes", "vm.min_free_kbytes"),
    sysctl("/proc/sys/vm/watermark_scale_factor", "vm.watermark_scale_factor"),
    sysctl("/proc/sys/vm/watermark_boost_factor", "vm.watermark_boost_factor"),
    sysctl("/proc/sys/vm/percpu_pagelist_high_fraction", "vm.percpu_pagelist_high_fraction"),
    MachineFile { path: "/proc/sys/vm/compact_memory", is_writable: true, target: MachineTarget::CompactMemory },
    MachineFile { path: "/proc/sys/vm/drop_caches", is_writable: true, target: MachineTarget::DropCaches },
    MachineFile { path: "/proc/sys/vm/stat_refresh", is_writable: false, target: MachineTarget::StatRefresh },
    sysctl("/proc/sys/vm/dirty_ratio", "vm.dirty_ratio"),
    sysctl("/proc/sys/vm/dirty_background_ratio", "vm.dirty_background_ratio"),
    sysctl("/proc/sys/vm/dirty_bytes", "vm.dirty_bytes"),
    sysctl("/proc/sys/vm/dirty_background_bytes", "vm.dirty_background_bytes"),
    sysctl("/proc/sys/vm/dirty_expire_centisecs", "vm.dirty_expire_centisecs"),
    sysctl("/proc/sys/vm/dirty_writeback_centisecs", "vm.dirty_writeback_centisecs"),
    sysctl("/proc/sys/vm/laptop_mode", "vm.laptop_mode"),
    sysctl("/proc/sys/vm/pghot_record_hwhints_enable", "vm.pghot_record_hwhints_enable"),
    sysctl("/proc/sys/vm/pghot_record_pgtscans_enable", "vm.pghot_record_pgtscans_enable"),
    sysctl("/proc/sys/vm/pghot_record_hintfaults_enable", "vm.pghot_record_hintfaults_enable"),
    sysctl("/proc/sys/vm/pghot_record_fma_enable", "vm.pghot_record_fma_enable"),
    sysctl("/proc/sys/vm/pghot_freq_threshold", "vm.pghot_freq_threshold"),
    sysctl("/proc/sys/vm/pghot_promote_freq_window_ms", "vm.pghot_promote_freq_window_ms"),
    sysctl("/proc/sys/vm/pghot_target_nid", "vm.pghot_target_nid"),
    module("/proc/sys/vm/pghot_promote_rate_limit_MBps", "kernel.numa_balancing_promote_rate_limit_MBps"),
    sources("/proc/sys/vm/pghot_enabled_sources", SOURCES),
    sources("/sys/kernel/debug/pghot/enabled_sources", DEBUG_SOURCES),
    module("/sys/kernel/debug/pghot/freq_threshold", "vm.pghot_freq_threshold"),
    module("/sys/kernel/debug/pghot/target_nid", "vm.pghot_target_nid"),
    module("/sys/kernel/debug/pghot/kmigrated_sleep_ms", "pghot.kmigrated_sleep_ms"),
    module("/sys/kernel/debug/pghot/kmigrated_batch_nr", "pghot.kmigrated_batch_nr"),
    debug("/sys/kernel/debug/zswap/decompress_fail", ZswapFile::NeverFails),
    debug("/sys/kernel/debug/zswap/duplicate_entry", ZswapFile::DuplicateEntry),
    debug("/sys/kernel/debug/zswap/pool_limit_hit", ZswapFile::PoolLimitHit),
    debug("/sys/kernel/debug/zswap/pool_total_size", ZswapFile::PoolTotalSize),
    debug("/sys/kernel/debug/zswap/reject_alloc_fail", ZswapFile::RejectAllocFail),
    debug("/sys/kernel/debug/zswap/reject_compress_fail", ZswapFile::NeverFails),
    debug("/sys/kernel/debug/zswap/reject_compress_poor", ZswapFile::RejectCompressPoor),
    debug("/sys/kernel/debug/zswap/reject_kmemcache_fail", ZswapFile::NeverFails),
    debug("/sys/kernel/debug/zswap/reject_reclaim_fail", ZswapFile::RejectReclaimFail),
    debug("/sys/kernel/debug/zswap/same_filled_pages", ZswapFile::SameFilledPages),
    debug("/sys/kernel/debug/zswap/stored_incompressible_pages", ZswapFile::StoredIncompressiblePages),
    debug("/sys/kernel/debug/zswap/stored_pages", ZswapFile::StoredPages),
    debug("/sys/kernel/debug/zswap/written_back_pages", ZswapFile::WrittenBackPages),
    module("/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms", "sched.numa_balancing.hot_threshold_ms"),
    module("/sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "sched.numa_balancing.scan_delay_ms"),
    module("/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms", "sched.numa_balancing.scan_period_max_ms"),
    module("/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms", "sched.numa_balancing.scan_period_min_ms"),
    module("/sys/kernel/debug/sched/numa_balancing/scan_size_mb", "sched.numa_balancing.scan_size_mb"),
    module("/sys/module/zswap/parameters/enabled", "zswap.enabled"),
    module("/sys/module/zswap/parameters/max_pool_percent", "zswap.max_pool_percent"),
    module("/sys/module/zswap/parameters/accept_threshold_percent", "zswap.accept_threshold_percent"),
    module("/sys/module/zswap/parameters/shrinker_enabled", "zswap.shrinker_enabled"),
    MachineFile { path: LRU_GEN, is_writable: true, target: MachineTarget::LruGen },
    MachineFile { path: "/sys/kernel/debug/lru_gen_full", is_writable: false, target: MachineTarget::LruGenFull },
    MachineFile { path: ENABLED, is_writable: true, target: MachineTarget::Enabled },
    MachineFile { path: MIN_TTL_MS, is_writable: true, target: MachineTarget::MinTtl },
    MachineFile { path: "/sys/kernel/mm/numa/demotion_enabled", is_writable: true, target: MachineTarget::DemotionEnabled },
    MachineFile { path: "/sys/kernel/mm/numa/pagecache_promotion_enabled", is_writable: true, target: MachineTarget::PagecachePromotionEnabled },
    MachineFile { path: "/sys/kernel/mm/transparent_hugepage/enabled", is_writable: true, target: MachineTarget::TransparentHugepage },
    hugepages("/sys/kernel/mm/hugepages/hugepages-8kB/nr_hugepages", 1),
    hugepages("/sys/kernel/mm/hugepages/hugepages-16kB/nr_hugepages", 2),
    hugepages("/sys/kernel/mm/hugepages/hugepages-32kB/nr_hugepages", 3),
    hugepages("/sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages", 4),
    hugepages("/sys/kernel/mm/hugepages/hugepages-128kB/nr_hugepages", 5),
    hugepages("/sys/kernel/mm/hugepages/hugepages-256kB/nr_hugepages", 6),
    hugepages("/sys/kernel/mm/hugepages/hugepages-512kB/nr_hugepages", 7),
    hugepages("/sys/kernel/mm/hugepages/hugepages-1024kB/nr_hugepages", 8),
    hugepages("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", 9),
    hugepages("/sys/kernel/mm/hugepages/hugepages-4096kB/nr_hugepages", 10),
];
