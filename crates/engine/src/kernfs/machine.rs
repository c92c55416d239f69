//! Files of the machine: a row each, with the functions that read and write it.
//!
//! Most are a parameter by its name; the others have their own functions, in neighbouring files. The check of a scenario's events uses these paths.

use super::damon;
use super::huge_memory::{
    hugepage_defrag_show, hugepage_defrag_store, max_ptes_none_show, max_ptes_none_store, nr_hugepages_show,
    nr_hugepages_store, shrink_underused_show, shrink_underused_store, size_enabled_show, size_enabled_store,
    transparent_hugepage_show, transparent_hugepage_store,
};
use super::lru_gen::{LRU_GEN, lru_gen_store};
use super::lru_gen_settings::{enabled_show, enabled_store, min_ttl_ms_show, min_ttl_ms_store};
use super::meminfo::{buddyinfo_show, meminfo_show, zoneinfo_show};
use super::numa::{demotion_enabled_store, pagecache_promotion_enabled_store};
use super::pghot::{DEBUG_SOURCES, SOURCES, sources_show, sources_store};
use super::swaps::swaps_show;
use super::{WRITTEN, WriteError, invalid, lines};
use crate::access::engine::Engine;
use crate::config::Parameter;
use crate::machine::step::Step;
use crate::migrate::CompactMemory;
use crate::mthp::MthpStat;
use crate::page_cache::DropCaches;
use crate::stat::Stat;
use crate::units::{PAGE_SIZE, TaskId};
use crate::zswap::Zswap;

/// A file of the machine.
pub struct MachineFile {
    /// The file's path.
    pub path: &'static str,
    by: ServedBy,
}

/// What serves a file.
enum ServedBy {
    /// A parameter, by its name: a number or a word.
    Sysctl(&'static str),
    /// The same of a module, of debugfs, or under a name that it has in some kernels: yes and no are `Y` and `N`.
    Module(&'static str),
    /// A figure of zswap, read only.
    Zswap(fn(&Zswap) -> u64, &'static str),
    /// Functions of its own, and what it is for.
    Functions { show: Option<Show>, store: Option<Store>, doc: &'static str },
}

type Show = fn(&mut Engine) -> String;
type Store = fn(&mut Engine, TaskId, &str) -> Result<Step, WriteError>;

const fn sysctl(path: &'static str, parameter: &'static str) -> MachineFile {
    MachineFile { path, by: ServedBy::Sysctl(parameter) }
}

const fn module(path: &'static str, parameter: &'static str) -> MachineFile {
    MachineFile { path, by: ServedBy::Module(parameter) }
}

const fn zswap(path: &'static str, figure: fn(&Zswap) -> u64, doc: &'static str) -> MachineFile {
    MachineFile { path, by: ServedBy::Zswap(figure, doc) }
}

const fn read(path: &'static str, show: Show, doc: &'static str) -> MachineFile {
    MachineFile { path, by: ServedBy::Functions { show: Some(show), store: None, doc } }
}

const fn write(path: &'static str, store: Store, doc: &'static str) -> MachineFile {
    MachineFile { path, by: ServedBy::Functions { show: None, store: Some(store), doc } }
}

const fn both(path: &'static str, show: Show, store: Store, doc: &'static str) -> MachineFile {
    MachineFile { path, by: ServedBy::Functions { show: Some(show), store: Some(store), doc } }
}

const fn hugepages<const ORDER: u8>(path: &'static str) -> MachineFile {
    both(
        path,
        nr_hugepages_show::<ORDER>,
        nr_hugepages_store::<ORDER>,
        "Number of huge pages of this size in the pool.",
    )
}

const fn mthp<const ORDER: u8, const STAT: usize>(path: &'static str) -> MachineFile {
    read(
        path,
        |engine| format!("{}\n", engine.core.mm.mthp.get(ORDER, MthpStat::ALL[STAT])),
        MthpStat::ALL[STAT].doc(),
    )
}

/// All files of the machine.
#[rustfmt::skip]
pub const MACHINE_FILES: &[MachineFile] = &[
    read("/proc/vmstat", vmstat_show, "Counters of the machine, always up to date."),
    read("/proc/meminfo", meminfo_show, "Uses of memory."),
    read("/proc/zoneinfo", zoneinfo_show, "Zones of all nodes: their watermarks, reserves and per-CPU lists."),
    read("/proc/buddyinfo", buddyinfo_show, "Free blocks of each zone by order."),
    read("/proc/swaps", swaps_show, "Swap devices, with their use and priorities."),
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
    write("/proc/sys/vm/compact_memory", compact_memory, "1: all zones are compacted."),
    write("/proc/sys/vm/drop_caches", drop_caches, "1: drop clean file pages that are not in use; 2: slab objects; 3: both."),
    read("/proc/sys/vm/stat_refresh", stat_refresh, "Empty. Reading it makes all CPUs check the free pages that they hold."),
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
    both("/proc/sys/vm/pghot_enabled_sources", |engine| sources_show(engine, SOURCES), |engine, _, value| sources_store(engine, SOURCES, value), "Enabled sources of hot pages, as bits: hint faults 1, hardware 2."),
    both("/sys/kernel/debug/pghot/enabled_sources", |engine| sources_show(engine, DEBUG_SOURCES), |engine, _, value| sources_store(engine, DEBUG_SOURCES, value), "Enabled sources of hot pages, as bits: hardware 1, walks of page tables 2, hint faults 4, reads of files 8."),
    module("/sys/kernel/debug/pghot/freq_threshold", "vm.pghot_freq_threshold"),
    module("/sys/kernel/debug/pghot/target_nid", "vm.pghot_target_nid"),
    module("/sys/kernel/debug/pghot/kmigrated_sleep_ms", "pghot.kmigrated_sleep_ms"),
    module("/sys/kernel/debug/pghot/kmigrated_batch_nr", "pghot.kmigrated_batch_nr"),
    zswap("/sys/kernel/debug/zswap/decompress_fail", |_| 0, "0: no page fails to decompress here."),
    zswap("/sys/kernel/debug/zswap/duplicate_entry", |zswap| zswap.stat.duplicate_entry, "Stores for a slot that had an entry."),
    zswap("/sys/kernel/debug/zswap/pool_limit_hit", |zswap| zswap.stat.pool_limit_hit, "Stores that found the pool full."),
    zswap("/sys/kernel/debug/zswap/pool_total_size", |zswap| zswap.pool.pages() * PAGE_SIZE, "Bytes of the pool."),
    zswap("/sys/kernel/debug/zswap/reject_alloc_fail", |zswap| zswap.stat.reject_alloc_fail, "Pages rejected because the pool got no memory for them."),
    zswap("/sys/kernel/debug/zswap/reject_compress_fail", |_| 0, "0: no page fails to compress here."),
    zswap("/sys/kernel/debug/zswap/reject_compress_poor", |zswap| zswap.stat.reject_compress_poor, "Pages rejected because they did not shrink."),
    zswap("/sys/kernel/debug/zswap/reject_kmemcache_fail", |_| 0, "0: allocating an entry never fails here."),
    zswap("/sys/kernel/debug/zswap/reject_reclaim_fail", |zswap| zswap.stat.reject_reclaim_fail, "Pages rejected because the pool was full."),
    zswap("/sys/kernel/debug/zswap/same_filled_pages", |zswap| zswap.stat.same_filled_pages, "Stored pages of one repeated word."),
    zswap("/sys/kernel/debug/zswap/stored_incompressible_pages", |zswap| zswap.stat.stored_incompressible_pages, "Pages stored uncompressed, because they did not shrink."),
    zswap("/sys/kernel/debug/zswap/stored_pages", |zswap| zswap.stored(), "Stored pages."),
    zswap("/sys/kernel/debug/zswap/written_back_pages", |zswap| zswap.stat.written_back_pages, "Pages written to the device."),
    module("/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms", "sched.numa_balancing.hot_threshold_ms"),
    module("/sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "sched.numa_balancing.scan_delay_ms"),
    module("/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms", "sched.numa_balancing.scan_period_max_ms"),
    module("/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms", "sched.numa_balancing.scan_period_min_ms"),
    module("/sys/kernel/debug/sched/numa_balancing/scan_size_mb", "sched.numa_balancing.scan_size_mb"),
    module("/sys/module/zswap/parameters/enabled", "zswap.enabled"),
    module("/sys/module/zswap/parameters/max_pool_percent", "zswap.max_pool_percent"),
    module("/sys/module/zswap/parameters/accept_threshold_percent", "zswap.accept_threshold_percent"),
    module("/sys/module/zswap/parameters/shrinker_enabled", "zswap.shrinker_enabled"),
    read("/sys/module/damon_reclaim/parameters/nr_reclaim_tried_regions", |engine| damon::reclaim(engine, |stats| stats.nr_tried), "Regions that DAMON_RECLAIM tried to reclaim."),
    read("/sys/module/damon_reclaim/parameters/bytes_reclaim_tried_regions", |engine| damon::reclaim(engine, |stats| stats.sz_tried), "Bytes of these regions."),
    read("/sys/module/damon_reclaim/parameters/nr_reclaimed_regions", |engine| damon::reclaim(engine, |stats| stats.nr_applied), "Regions of which DAMON_RECLAIM reclaimed something."),
    read("/sys/module/damon_reclaim/parameters/bytes_reclaimed_regions", |engine| damon::reclaim(engine, |stats| stats.sz_applied), "Bytes that DAMON_RECLAIM reclaimed."),
    read("/sys/module/damon_reclaim/parameters/nr_quota_exceeds", |engine| damon::reclaim(engine, |stats| stats.qt_exceeds), "Intervals in which the quota of DAMON_RECLAIM was used up."),
    read("/sys/module/damon_lru_sort/parameters/nr_lru_sort_tried_hot_regions", |engine| damon::lru_sort(engine, 0, |stats| stats.nr_tried), "Hot regions that DAMON_LRU_SORT tried to sort."),
    read("/sys/module/damon_lru_sort/parameters/bytes_lru_sort_tried_hot_regions", |engine| damon::lru_sort(engine, 0, |stats| stats.sz_tried), "Bytes of these regions."),
    read("/sys/module/damon_lru_sort/parameters/nr_lru_sorted_hot_regions", |engine| damon::lru_sort(engine, 0, |stats| stats.nr_applied), "Hot regions of which DAMON_LRU_SORT sorted something."),
    read("/sys/module/damon_lru_sort/parameters/bytes_lru_sorted_hot_regions", |engine| damon::lru_sort(engine, 0, |stats| stats.sz_applied), "Bytes of hot regions that DAMON_LRU_SORT sorted."),
    read("/sys/module/damon_lru_sort/parameters/nr_hot_quota_exceeds", |engine| damon::lru_sort(engine, 0, |stats| stats.qt_exceeds), "Intervals in which the quota for hot regions was used up."),
    read("/sys/module/damon_lru_sort/parameters/nr_lru_sort_tried_cold_regions", |engine| damon::lru_sort(engine, 1, |stats| stats.nr_tried), "Cold regions that DAMON_LRU_SORT tried to sort."),
    read("/sys/module/damon_lru_sort/parameters/bytes_lru_sort_tried_cold_regions", |engine| damon::lru_sort(engine, 1, |stats| stats.sz_tried), "Bytes of these regions."),
    read("/sys/module/damon_lru_sort/parameters/nr_lru_sorted_cold_regions", |engine| damon::lru_sort(engine, 1, |stats| stats.nr_applied), "Cold regions of which DAMON_LRU_SORT sorted something."),
    read("/sys/module/damon_lru_sort/parameters/bytes_lru_sorted_cold_regions", |engine| damon::lru_sort(engine, 1, |stats| stats.sz_applied), "Bytes of cold regions that DAMON_LRU_SORT sorted."),
    read("/sys/module/damon_lru_sort/parameters/nr_cold_quota_exceeds", |engine| damon::lru_sort(engine, 1, |stats| stats.qt_exceeds), "Intervals in which the quota for cold regions was used up."),
    read("/sys/module/damon_stat/parameters/estimated_memory_bandwidth", |engine| damon::bandwidth(engine), "Bytes per second that were accessed at least, by DAMON_STAT."),
    read("/sys/module/damon_stat/parameters/memory_idle_ms_percentiles", |engine| damon::idle_percentiles(engine), "Milliseconds without an access, of each percent of the memory; negative: time in use."),
    read("/sys/module/damon_stat/parameters/aggr_interval_us", |engine| damon::aggr_interval(engine), "Microseconds of an aggregation window, as DAMON_STAT has tuned it."),
    both(LRU_GEN, |engine| engine.lru_gen_text(false), lru_gen_store, "Generations with their ages and pages; commands that age and evict them."),
    read("/sys/kernel/debug/lru_gen_full", |engine| engine.lru_gen_text(true), "The generations of lru_gen, with refaults by tier and results of walks."),
    both("/sys/kernel/mm/lru_gen/enabled", enabled_show, enabled_store, "0x0001 MGLRU instead of the classic LRU, 0x0002 page-table walks, 0x0004 bits of upper entries."),
    both("/sys/kernel/mm/lru_gen/min_ttl_ms", min_ttl_ms_show, min_ttl_ms_store, "Milliseconds. kswapd has a process killed before it evicts younger pages."),
    both("/sys/kernel/mm/numa/demotion_enabled", |engine| format!("{}\n", engine.core.mm.config.demotion_enabled), demotion_enabled_store, "Whether reclaim moves pages to a slower tier."),
    both("/sys/kernel/mm/numa/pagecache_promotion_enabled", |engine| format!("{}\n", engine.core.mm.config.pagecache_promotion_enabled), pagecache_promotion_enabled_store, "Whether file pages that are read again leave a slower tier. Posted, in no released kernel."),
    both("/sys/kernel/mm/transparent_hugepage/enabled", transparent_hugepage_show, transparent_hugepage_store, "Which anonymous memory uses huge pages: always, madvise or never. Brackets mark the current value."),
    both("/sys/kernel/mm/transparent_hugepage/shrink_underused", shrink_underused_show, shrink_underused_store, "1: pressure splits huge pages of which more than max_ptes_none pages are zeroes. 0: it does not."),
    both("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", max_ptes_none_show, max_ptes_none_store, "Pages of 2 MiB that may be zeroes before the huge page is underused. 511: none is."),
    both("/sys/kernel/mm/transparent_hugepage/defrag", hugepage_defrag_show, hugepage_defrag_store, "Action of a fault for a huge page if no block is free: always, defer, defer+madvise, madvise or never. Brackets mark the current value."),
    hugepages::<1>("/sys/kernel/mm/hugepages/hugepages-8kB/nr_hugepages"),
    hugepages::<2>("/sys/kernel/mm/hugepages/hugepages-16kB/nr_hugepages"),
    hugepages::<3>("/sys/kernel/mm/hugepages/hugepages-32kB/nr_hugepages"),
    hugepages::<4>("/sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages"),
    hugepages::<5>("/sys/kernel/mm/hugepages/hugepages-128kB/nr_hugepages"),
    hugepages::<6>("/sys/kernel/mm/hugepages/hugepages-256kB/nr_hugepages"),
    hugepages::<7>("/sys/kernel/mm/hugepages/hugepages-512kB/nr_hugepages"),
    hugepages::<8>("/sys/kernel/mm/hugepages/hugepages-1024kB/nr_hugepages"),
    hugepages::<9>("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"),
    hugepages::<10>("/sys/kernel/mm/hugepages/hugepages-4096kB/nr_hugepages"),
    mthp::<1, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-8kB/stats/shmem_alloc"),
    mthp::<1, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-8kB/stats/shmem_fallback"),
    mthp::<1, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-8kB/stats/shmem_fallback_charge"),
    mthp::<1, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-8kB/stats/split"),
    mthp::<1, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-8kB/stats/split_failed"),
    both("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/enabled", size_enabled_show::<2>, size_enabled_store::<2>, "Which anonymous memory may have folios of this size: always, inherit, madvise or never. Brackets mark the current value."),
    mthp::<2, { MthpStat::AnonFaultAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/anon_fault_alloc"),
    mthp::<2, { MthpStat::AnonFaultFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/anon_fault_fallback"),
    mthp::<2, { MthpStat::AnonFaultFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/anon_fault_fallback_charge"),
    mthp::<2, { MthpStat::Zswpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/zswpout"),
    mthp::<2, { MthpStat::Swpin as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/swpin"),
    mthp::<2, { MthpStat::SwpinFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/swpin_fallback"),
    mthp::<2, { MthpStat::SwpinFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/swpin_fallback_charge"),
    mthp::<2, { MthpStat::Swpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/swpout"),
    mthp::<2, { MthpStat::SwpoutFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/swpout_fallback"),
    mthp::<2, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/shmem_alloc"),
    mthp::<2, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/shmem_fallback"),
    mthp::<2, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/shmem_fallback_charge"),
    mthp::<2, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/split"),
    mthp::<2, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/split_failed"),
    mthp::<2, { MthpStat::SplitDeferred as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/split_deferred"),
    mthp::<2, { MthpStat::NrAnon as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/nr_anon"),
    mthp::<2, { MthpStat::NrAnonPartlyMapped as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-16kB/stats/nr_anon_partially_mapped"),
    both("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/enabled", size_enabled_show::<3>, size_enabled_store::<3>, "Which anonymous memory may have folios of this size: always, inherit, madvise or never. Brackets mark the current value."),
    mthp::<3, { MthpStat::AnonFaultAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/anon_fault_alloc"),
    mthp::<3, { MthpStat::AnonFaultFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/anon_fault_fallback"),
    mthp::<3, { MthpStat::AnonFaultFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/anon_fault_fallback_charge"),
    mthp::<3, { MthpStat::Zswpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/zswpout"),
    mthp::<3, { MthpStat::Swpin as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/swpin"),
    mthp::<3, { MthpStat::SwpinFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/swpin_fallback"),
    mthp::<3, { MthpStat::SwpinFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/swpin_fallback_charge"),
    mthp::<3, { MthpStat::Swpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/swpout"),
    mthp::<3, { MthpStat::SwpoutFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/swpout_fallback"),
    mthp::<3, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/shmem_alloc"),
    mthp::<3, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/shmem_fallback"),
    mthp::<3, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/shmem_fallback_charge"),
    mthp::<3, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/split"),
    mthp::<3, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/split_failed"),
    mthp::<3, { MthpStat::SplitDeferred as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/split_deferred"),
    mthp::<3, { MthpStat::NrAnon as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/nr_anon"),
    mthp::<3, { MthpStat::NrAnonPartlyMapped as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-32kB/stats/nr_anon_partially_mapped"),
    both("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", size_enabled_show::<4>, size_enabled_store::<4>, "Which anonymous memory may have folios of this size: always, inherit, madvise or never. Brackets mark the current value."),
    mthp::<4, { MthpStat::AnonFaultAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/anon_fault_alloc"),
    mthp::<4, { MthpStat::AnonFaultFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/anon_fault_fallback"),
    mthp::<4, { MthpStat::AnonFaultFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/anon_fault_fallback_charge"),
    mthp::<4, { MthpStat::Zswpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/zswpout"),
    mthp::<4, { MthpStat::Swpin as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/swpin"),
    mthp::<4, { MthpStat::SwpinFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/swpin_fallback"),
    mthp::<4, { MthpStat::SwpinFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/swpin_fallback_charge"),
    mthp::<4, { MthpStat::Swpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/swpout"),
    mthp::<4, { MthpStat::SwpoutFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/swpout_fallback"),
    mthp::<4, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/shmem_alloc"),
    mthp::<4, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/shmem_fallback"),
    mthp::<4, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/shmem_fallback_charge"),
    mthp::<4, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/split"),
    mthp::<4, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/split_failed"),
    mthp::<4, { MthpStat::SplitDeferred as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/split_deferred"),
    mthp::<4, { MthpStat::NrAnon as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/nr_anon"),
    mthp::<4, { MthpStat::NrAnonPartlyMapped as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/nr_anon_partially_mapped"),
    both("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/enabled", size_enabled_show::<5>, size_enabled_store::<5>, "Which anonymous memory may have folios of this size: always, inherit, madvise or never. Brackets mark the current value."),
    mthp::<5, { MthpStat::AnonFaultAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/anon_fault_alloc"),
    mthp::<5, { MthpStat::AnonFaultFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/anon_fault_fallback"),
    mthp::<5, { MthpStat::AnonFaultFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/anon_fault_fallback_charge"),
    mthp::<5, { MthpStat::Zswpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/zswpout"),
    mthp::<5, { MthpStat::Swpin as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/swpin"),
    mthp::<5, { MthpStat::SwpinFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/swpin_fallback"),
    mthp::<5, { MthpStat::SwpinFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/swpin_fallback_charge"),
    mthp::<5, { MthpStat::Swpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/swpout"),
    mthp::<5, { MthpStat::SwpoutFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/swpout_fallback"),
    mthp::<5, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/shmem_alloc"),
    mthp::<5, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/shmem_fallback"),
    mthp::<5, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/shmem_fallback_charge"),
    mthp::<5, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/split"),
    mthp::<5, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/split_failed"),
    mthp::<5, { MthpStat::SplitDeferred as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/split_deferred"),
    mthp::<5, { MthpStat::NrAnon as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/nr_anon"),
    mthp::<5, { MthpStat::NrAnonPartlyMapped as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-128kB/stats/nr_anon_partially_mapped"),
    both("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/enabled", size_enabled_show::<6>, size_enabled_store::<6>, "Which anonymous memory may have folios of this size: always, inherit, madvise or never. Brackets mark the current value."),
    mthp::<6, { MthpStat::AnonFaultAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/anon_fault_alloc"),
    mthp::<6, { MthpStat::AnonFaultFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/anon_fault_fallback"),
    mthp::<6, { MthpStat::AnonFaultFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/anon_fault_fallback_charge"),
    mthp::<6, { MthpStat::Zswpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/zswpout"),
    mthp::<6, { MthpStat::Swpin as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/swpin"),
    mthp::<6, { MthpStat::SwpinFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/swpin_fallback"),
    mthp::<6, { MthpStat::SwpinFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/swpin_fallback_charge"),
    mthp::<6, { MthpStat::Swpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/swpout"),
    mthp::<6, { MthpStat::SwpoutFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/swpout_fallback"),
    mthp::<6, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/shmem_alloc"),
    mthp::<6, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/shmem_fallback"),
    mthp::<6, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/shmem_fallback_charge"),
    mthp::<6, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/split"),
    mthp::<6, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/split_failed"),
    mthp::<6, { MthpStat::SplitDeferred as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/split_deferred"),
    mthp::<6, { MthpStat::NrAnon as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/nr_anon"),
    mthp::<6, { MthpStat::NrAnonPartlyMapped as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-256kB/stats/nr_anon_partially_mapped"),
    both("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/enabled", size_enabled_show::<7>, size_enabled_store::<7>, "Which anonymous memory may have folios of this size: always, inherit, madvise or never. Brackets mark the current value."),
    mthp::<7, { MthpStat::AnonFaultAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/anon_fault_alloc"),
    mthp::<7, { MthpStat::AnonFaultFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/anon_fault_fallback"),
    mthp::<7, { MthpStat::AnonFaultFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/anon_fault_fallback_charge"),
    mthp::<7, { MthpStat::Zswpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/zswpout"),
    mthp::<7, { MthpStat::Swpin as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/swpin"),
    mthp::<7, { MthpStat::SwpinFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/swpin_fallback"),
    mthp::<7, { MthpStat::SwpinFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/swpin_fallback_charge"),
    mthp::<7, { MthpStat::Swpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/swpout"),
    mthp::<7, { MthpStat::SwpoutFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/swpout_fallback"),
    mthp::<7, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/shmem_alloc"),
    mthp::<7, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/shmem_fallback"),
    mthp::<7, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/shmem_fallback_charge"),
    mthp::<7, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/split"),
    mthp::<7, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/split_failed"),
    mthp::<7, { MthpStat::SplitDeferred as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/split_deferred"),
    mthp::<7, { MthpStat::NrAnon as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/nr_anon"),
    mthp::<7, { MthpStat::NrAnonPartlyMapped as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-512kB/stats/nr_anon_partially_mapped"),
    both("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/enabled", size_enabled_show::<8>, size_enabled_store::<8>, "Which anonymous memory may have folios of this size: always, inherit, madvise or never. Brackets mark the current value."),
    mthp::<8, { MthpStat::AnonFaultAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/anon_fault_alloc"),
    mthp::<8, { MthpStat::AnonFaultFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/anon_fault_fallback"),
    mthp::<8, { MthpStat::AnonFaultFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/anon_fault_fallback_charge"),
    mthp::<8, { MthpStat::Zswpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/zswpout"),
    mthp::<8, { MthpStat::Swpin as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/swpin"),
    mthp::<8, { MthpStat::SwpinFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/swpin_fallback"),
    mthp::<8, { MthpStat::SwpinFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/swpin_fallback_charge"),
    mthp::<8, { MthpStat::Swpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/swpout"),
    mthp::<8, { MthpStat::SwpoutFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/swpout_fallback"),
    mthp::<8, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/shmem_alloc"),
    mthp::<8, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/shmem_fallback"),
    mthp::<8, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/shmem_fallback_charge"),
    mthp::<8, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/split"),
    mthp::<8, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/split_failed"),
    mthp::<8, { MthpStat::SplitDeferred as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/split_deferred"),
    mthp::<8, { MthpStat::NrAnon as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/nr_anon"),
    mthp::<8, { MthpStat::NrAnonPartlyMapped as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-1024kB/stats/nr_anon_partially_mapped"),
    both("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled", size_enabled_show::<9>, size_enabled_store::<9>, "Which anonymous memory may have folios of this size: always, inherit, madvise or never. Brackets mark the current value."),
    mthp::<9, { MthpStat::AnonFaultAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/anon_fault_alloc"),
    mthp::<9, { MthpStat::AnonFaultFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/anon_fault_fallback"),
    mthp::<9, { MthpStat::AnonFaultFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/anon_fault_fallback_charge"),
    mthp::<9, { MthpStat::Zswpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/zswpout"),
    mthp::<9, { MthpStat::Swpin as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/swpin"),
    mthp::<9, { MthpStat::SwpinFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/swpin_fallback"),
    mthp::<9, { MthpStat::SwpinFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/swpin_fallback_charge"),
    mthp::<9, { MthpStat::Swpout as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/swpout"),
    mthp::<9, { MthpStat::SwpoutFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/swpout_fallback"),
    mthp::<9, { MthpStat::ShmemAlloc as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/shmem_alloc"),
    mthp::<9, { MthpStat::ShmemFallback as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/shmem_fallback"),
    mthp::<9, { MthpStat::ShmemFallbackCharge as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/shmem_fallback_charge"),
    mthp::<9, { MthpStat::Split as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/split"),
    mthp::<9, { MthpStat::SplitFailed as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/split_failed"),
    mthp::<9, { MthpStat::SplitDeferred as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/split_deferred"),
    mthp::<9, { MthpStat::NrAnon as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/nr_anon"),
    mthp::<9, { MthpStat::NrAnonPartlyMapped as usize }>("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/nr_anon_partially_mapped"),
];

impl MachineFile {
    /// Meaning of the file's contents, or effect of a write to it.
    pub fn doc(&self) -> &'static str {
        match self.by {
            ServedBy::Sysctl(name) | ServedBy::Module(name) => parameter(name).doc,
            ServedBy::Zswap(_, doc) | ServedBy::Functions { doc, .. } => doc,
        }
    }

    /// Returns true if it can be opened for reading: all except those that only request an action.
    pub fn is_readable(&self) -> bool {
        !matches!(self.by, ServedBy::Functions { show: None, .. })
    }

    /// Returns true if it can be opened for writing.
    pub fn is_writable(&self) -> bool {
        !matches!(self.by, ServedBy::Zswap(..) | ServedBy::Functions { store: None, .. })
    }

    /// The name of the parameter that it is, if it is one of `/proc/sys` under its own name.
    #[cfg(test)]
    pub(super) fn sysctl(&self) -> Option<&'static str> {
        if let ServedBy::Sysctl(name) = self.by { Some(name) } else { None }
    }

    /// The file's text; `None`: it can't be read.
    pub(super) fn show(&self, engine: &mut Engine) -> Option<String> {
        match self.by {
            ServedBy::Sysctl(name) => Some(engine.sysctl(name) + "\n"),
            ServedBy::Module(name) => Some(engine.module_parameter(name) + "\n"),
            ServedBy::Zswap(figure, _) => Some(format!("{}\n", figure(&engine.core.mm.zswap))),
            ServedBy::Functions { show, .. } => show.map(|show| show(engine)),
        }
    }

    /// Writes to the file.
    pub(super) fn store(&self, engine: &mut Engine, task: TaskId, value: &str) -> Result<Step, WriteError> {
        match self.by {
            ServedBy::Sysctl(name) => {
                engine.set_sysctl(name, value).map(|()| WRITTEN).map_err(WriteError::Invalid)
            }
            ServedBy::Module(name) => {
                engine.set_module_parameter(name, value).map(|()| WRITTEN).map_err(WriteError::Invalid)
            }
            ServedBy::Functions { store: Some(store), .. } => store(engine, task, value),
            ServedBy::Zswap(..) | ServedBy::Functions { store: None, .. } => Err(WriteError::NotPermitted),
        }
    }
}

/// The parameter of a row.
pub(super) fn parameter(name: &'static str) -> &'static Parameter {
    Parameter::by_name(name).expect("a row names a parameter")
}

fn vmstat_show(engine: &mut Engine) -> String {
    let stats = Stat::ALL.iter().filter(|stat| stat.is_in_vmstat());
    lines(stats.map(|&stat| (stat.name(), engine.core.mm.vmstat(stat))))
}

fn stat_refresh(engine: &mut Engine) -> String {
    engine.core.mm.refresh_all_lists();
    String::new()
}

fn compact_memory(engine: &mut Engine, task: TaskId, value: &str) -> Result<Step, WriteError> {
    if value != "1" {
        return Err(invalid("1"));
    }
    let zones = engine.core.mm.memory.zones.info().map(|zone| (zone.node, zone.zone));
    let request = Box::new(CompactMemory::new(zones));
    Ok(engine.current(task).compact_memory(request))
}

fn drop_caches(engine: &mut Engine, task: TaskId, value: &str) -> Result<Step, WriteError> {
    let request = value.parse().ok().and_then(DropCaches::new);
    let request = request.ok_or_else(|| invalid("1 (pages), 2 (slab objects) or 3 (both)"))?;
    Ok(engine.current(task).drop_caches(Box::new(request)))
}
